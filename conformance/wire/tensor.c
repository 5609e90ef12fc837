/* Tensors as JSON (clause A4.2). SPDX-License-Identifier: MIT */
#include "wire/wire.h"

#include <string.h>

uint32_t wire_dtype(vr_dtype d)
{
    switch (d) {
    case VR_F64:
        return VP_F64;
    case VR_F32:
        return VP_F32;
    case VR_F16:
        return VP_F16;
    case VR_BF16:
        return VP_BF16;
    default:
        return 0;
    }
}

uint64_t wire_dtype_size(uint32_t d)
{
    static const uint8_t size[] = {0, 8, 4, 2, 2, 1, 8};
    return d < sizeof size ? size[d] : 0;
}

void wire_dense(vp_tensor *t)
{
    int64_t step = 1;
    for (uint32_t d = t->rank; d-- > 0;) {
        t->stride[d] = step;
        step *= t->dim[d];
    }
    t->bytes = (uint64_t)step * wire_dtype_size(t->dtype);
}

json_t *wire_tensor(const char *file, uint64_t offset, const vp_tensor *t)
{
    json_t *dim = json_array(), *stride = json_array();
    for (uint32_t d = 0; d < t->rank; d++) {
        json_array_append_new(dim, json_integer((json_int_t)t->dim[d]));
        json_array_append_new(stride, json_integer((json_int_t)t->stride[d]));
    }
    return json_pack("{s:s, s:I, s:i, s:o, s:o, s:I}", "file", file, "offset", (json_int_t)offset, "dtype",
                     (int)t->dtype, "dim", dim, "stride", stride, "bytes", (json_int_t)t->bytes);
}

vr_status wire_tensor_read(json_t *json, vp_tensor *t, const char **file, uint64_t *offset, vr_error *err)
{
    const json_t *dim = json_object_get(json, "dim"), *stride = json_object_get(json, "stride");
    *t = (vp_tensor){.size = sizeof *t, .rank = (uint32_t)json_array_size(dim)};
    *file = json_string_value(json_object_get(json, "file"));
    t->dtype = (uint32_t)json_integer_value(json_object_get(json, "dtype"));
    const json_int_t at = json_integer_value(json_object_get(json, "offset"));
    const json_int_t bytes = json_integer_value(json_object_get(json, "bytes"));
    if (!*file || !**file || strchr(*file, '/') || at < 0 || bytes < 1 || !wire_dtype_size(t->dtype) || t->rank < 1 ||
        t->rank > 8 || json_array_size(stride) != t->rank)
        return vr_fail(err, VR_E_FORMAT, "a tensor wants file, offset, bytes, dtype, and 1 to 8 dims and strides");
    *offset = (uint64_t)at;
    t->bytes = (uint64_t)bytes;
    uint64_t end = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        t->dim[d] = json_integer_value(json_array_get(dim, d));
        t->stride[d] = json_integer_value(json_array_get(stride, d));
        uint64_t reach;
        if (t->dim[d] < 1 || t->stride[d] < 0 ||
            __builtin_mul_overflow((uint64_t)(t->dim[d] - 1), (uint64_t)t->stride[d], &reach) ||
            __builtin_add_overflow(end, reach, &end) || end > (uint64_t)1 << 44)
            return vr_fail(err, VR_E_FORMAT, "a tensor's extents or strides are out of range");
    }
    if ((end + 1) * wire_dtype_size(t->dtype) > t->bytes)
        return vr_fail(err, VR_E_FORMAT, "a tensor's last element lies beyond its %llu bytes",
                       (unsigned long long)t->bytes);
    return VR_OK;
}
