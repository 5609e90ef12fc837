/* Dense tensors on the heap. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vaeref/core.h"

#define MAX_ELEMENTS ((int64_t)1 << 62)

vr_status vr_tensor_count(const vr_tensor *t, int64_t *count, vr_error *err)
{
    if (t->rank < 0 || t->rank > VR_MAX_RANK)
        return vr_fail(err, VR_E_SHAPE, "rank %d; want 0 to %d", t->rank, VR_MAX_RANK);
    int64_t n = 1;
    bool empty = false;
    for (int32_t i = 0; i < t->rank; i++) {
        int64_t d = t->dim[i];
        if (d < 0)
            return vr_fail(err, VR_E_SHAPE, "dimension %d is %lld; want 0 or more", i, (long long)d);
        if (d == 0)
            empty = true;
        else if (n > MAX_ELEMENTS / d)
            return vr_fail(err, VR_E_SHAPE, "shape has more than 2^62 elements");
        else
            n *= d;
    }
    *count = empty ? 0 : n;
    return VR_OK;
}

char *vr_tensor_describe(const vr_tensor *t, char *buf, size_t size)
{
    int n = snprintf(buf, size, "%s[", vr_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank && i < VR_MAX_RANK && n >= 0 && (size_t)n < size; i++)
        n += snprintf(buf + n, size - (size_t)n, i ? ",%lld" : "%lld", (long long)t->dim[i]);
    if (n >= 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, "]");
    return buf;
}

vr_status vr_tensor_new(vr_tensor *t, vr_dtype dtype, int32_t rank, const int64_t *dim, vr_error *err)
{
    vr_tensor made = {.dtype = dtype, .rank = rank};
    if (vr_dtype_size(dtype) == 0)
        return vr_fail(err, VR_E_DTYPE, "element type %d is unknown", (int)dtype);
    if (rank < 0 || rank > VR_MAX_RANK)
        return vr_fail(err, VR_E_SHAPE, "rank %d; want 0 to %d", rank, VR_MAX_RANK);
    if (rank > 0)
        memcpy(made.dim, dim, (size_t)rank * sizeof dim[0]);
    int64_t count;
    vr_status s = vr_tensor_count(&made, &count, err);
    if (s != VR_OK)
        return s;
    size_t each = vr_dtype_size(dtype);
    if ((uint64_t)count > (SIZE_MAX - 64) / each)
        return vr_fail(err, VR_E_NOMEM, "a tensor of %lld elements does not fit in memory", (long long)count);
    size_t bytes = ((size_t)count * each + 63) / 64 * 64;
    made.data = aligned_alloc(64, bytes ? bytes : 64);
    if (!made.data)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate %zu bytes for a tensor", bytes);
    *t = made;
    return VR_OK;
}

void vr_tensor_free(vr_tensor *t)
{
    if (!t)
        return;
    free(t->data);
    *t = (vr_tensor){.dtype = VR_DTYPE_NONE};
}
