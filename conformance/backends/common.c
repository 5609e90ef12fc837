/* What backends built on the reference's types share: tensors across the boundary,
 * options, codes. SPDX-License-Identifier: MIT */
#include "backends/common.h"

#include <stdio.h>
#include <string.h>

int32_t vp_code_of(vr_status s)
{
    switch (s) {
    case VR_OK:
        return VP_OK;
    case VR_E_UNSUPPORTED:
        return VP_E_UNSUPPORTED;
    case VR_E_NOMEM:
    case VR_E_BUDGET:
        return VP_E_MEMORY;
    case VR_E_CANCELLED:
        return VP_E_CANCELLED;
    case VR_E_INTERNAL:
        return VP_E_INTERNAL;
    default:
        return VP_E_ARGUMENT;
    }
}

bool vp_option(const char *list, const char *name, char *value, size_t size)
{
    const size_t n = strlen(name);
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, n) == 0 && at[n] == '=') {
            snprintf(value, size, "%.*s", (int)strcspn(at + n + 1, ","), at + n + 1);
            return true;
        }
    return false;
}

static int64_t offset_of(const vp_tensor *t, int64_t k)
{
    int64_t at = 0;
    for (uint32_t d = t->rank; d-- > 0;) {
        at += k % t->dim[d] * t->stride[d];
        k /= t->dim[d];
    }
    return at;
}

static bool dense(const vp_tensor *t)
{
    int64_t step = 1;
    for (uint32_t d = t->rank; d-- > 0; step *= t->dim[d])
        if (t->dim[d] > 1 && t->stride[d] != step)
            return false;
    return true;
}

/* Strided to dense (`in`), or back. */
static void copy_elements(const vp_tensor *t, void *packed, bool in)
{
    const size_t e = t->dtype == VP_F64 ? 8 : t->dtype == VP_F32 ? 4 : 2;
    int64_t n = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        n *= t->dim[d];
    if (dense(t)) {
        memcpy(in ? packed : t->data, in ? t->data : packed, (size_t)n * e);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        char *a = (char *)t->data + (size_t)offset_of(t, k) * e, *b = (char *)packed + (size_t)k * e;
        memcpy(in ? b : a, in ? a : b, e);
    }
}

vr_status vp_take_in(const vp_tensor *t, vr_tensor *out, vr_error *err)
{
    vr_dtype d;
    if (t->rank != 5 || !vp_dtype_of(t->dtype, &d))
        return vr_fail(err, VR_E_ARGUMENT, "a value of rank %u, dtype %u; want rank 5 and a float type", t->rank, t->dtype);
    const int64_t four[4] = {t->dim[0], t->dim[1], t->dim[3], t->dim[4]};
    vr_status s = vr_tensor_new(out, d, t->dim[2] == 1 ? 4 : 5, t->dim[2] == 1 ? four : t->dim, err);
    if (s == VR_OK)
        copy_elements(t, out->data, true);
    return s;
}

vr_status vp_give_out(const vp_host *host, const vr_tensor *from, vp_tensor *t, vr_error *err)
{
    vr_dtype d;
    int64_t n = 0, m = 1;
    if (!vp_dtype_of(t->dtype, &d))
        return vr_fail(err, VR_E_ARGUMENT, "a value is wanted in dtype %u; want a float type", t->dtype);
    for (uint32_t k = 0; k < t->rank; k++)
        m *= t->dim[k];
    vr_status s = vr_tensor_count(from, &n, err);
    if (s == VR_OK && n != m)
        return vr_fail(err, VR_E_SHAPE, "a value of %lld elements is wanted as %lld", (long long)n, (long long)m);
    void *packed = host->alloc(host->ctx, (uint64_t)n * vr_dtype_size(d), 64);
    if (!packed)
        return vr_fail(err, VR_E_NOMEM, "no memory to hand out %lld elements", (long long)n);
    s = vr_convert(d, packed, from->dtype, from->data, (uint64_t)n, err);
    if (s == VR_OK)
        copy_elements(t, packed, false);
    host->free(host->ctx, packed);
    return s;
}

void vp_fill_plan(const vr_tile_plan *p, vp_tile *tiles, uint32_t room, uint32_t *count)
{
    *count = 0;
    for (int g = 0; g < p->grid_count; g++)
        for (int64_t y = 0; y < p->grid[g].h.count; y++)
            for (int64_t x = 0; x < p->grid[g].w.count; x++, (*count)++) {
                const vr_axis_tile *h = &p->grid[g].h.tile[y], *w = &p->grid[g].w.tile[x];
                if (*count < room)
                    tiles[*count] = (vp_tile){g, h->start, w->start, h->length, w->length, h->owned, w->owned,
                                              h->owned_length, w->owned_length};
            }
}
