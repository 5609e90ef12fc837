/* Helpers of the emitters: weights by name with their shapes checked, missing
 * ones collected so that one error names several.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "model/internal.h"

static void record_missing(vr_emit *e, const char *name)
{
    size_t n = strlen(e->names);
    if (e->missing++ < 3)
        snprintf(e->names + n, sizeof e->names - n, "%s%s", n ? ", " : "", name);
}

static void record_wrong(vr_emit *e, const vr_entry *t, const char *what)
{
    char found[96];
    if (e->wrong.status == VR_OK)
        vr_fail(&e->wrong, VR_E_MODEL, "tensor '%s' is %s; want %s", t->source,
                vr_tensor_describe(&t->tensor, found, sizeof found), what);
}

static void describe_dims(int32_t rank, const int64_t *dim, char *buf, size_t size)
{
    int n = snprintf(buf, size, "shape [");
    for (int32_t i = 0; i < rank; i++)
        n += dim[i] < 0 ? snprintf(buf + n, size - (size_t)n, "%sany", i ? "," : "")
                        : snprintf(buf + n, size - (size_t)n, "%s%lld", i ? "," : "", (long long)dim[i]);
    snprintf(buf + n, size - (size_t)n, "]");
}

int32_t vr_need(vr_emit *e, const char *name, int32_t rank, const int64_t *dim)
{
    vr_entry *t = vr_table_find(e->table, name);
    if (!t) {
        record_missing(e, name);
        return -1;
    }
    t->used = true;
    char text[96];
    if (!vr_dtype_is_float(t->tensor.dtype)) {
        if (e->wrong.status == VR_OK)
            vr_fail(&e->wrong, VR_E_DTYPE, "tensor '%s' has element type %s; want F64, F32, F16, BF16, F8_E4M3 or F8_E5M2",
                    t->source, t->dtype_text);
        return -1;
    }
    int64_t got[4] = {1, 1, 1, 1};
    int32_t have = t->tensor.rank;
    bool as_1x1 = have == 2 && rank == 4 && dim[2] == 1 && dim[3] == 1;
    bool fits = have == rank || as_1x1;
    for (int32_t i = 0; fits && i < have; i++) {
        got[i] = t->tensor.dim[i];
        fits = got[i] > 0 && (dim[i] < 0 || dim[i] == got[i]);
    }
    if (!fits) {
        describe_dims(rank, dim, text, sizeof text);
        record_wrong(e, t, text);
        return -1;
    }
    return vr_program_weight(e->p, name, t->source, t->tensor.dtype, rank, got, t->tensor.data);
}

int32_t vr_emit_conv(vr_emit *e, const char *base, int32_t x, int64_t ci, int64_t co, int64_t k,
                     bool bias)
{
    char name[VR_NAME_MAX];
    const int64_t dim[4] = {co, ci, k, k};
    snprintf(name, sizeof name, "%s.weight", base);
    int32_t w = vr_need(e, name, 4, dim), b = -1;
    if (bias) {
        snprintf(name, sizeof name, "%s.bias", base);
        b = vr_need(e, name, 1, dim);
    }
    return vr_program_conv2d(e->p, base, x, w, b, k / 2);
}

int32_t vr_emit_norm(vr_emit *e, const char *base, int32_t x, int64_t c, int64_t groups, double eps)
{
    char name[VR_NAME_MAX];
    snprintf(name, sizeof name, "%s.weight", base);
    int32_t gamma = vr_need(e, name, 1, &c);
    snprintf(name, sizeof name, "%s.bias", base);
    int32_t beta = vr_need(e, name, 1, &c);
    if (c % groups && e->wrong.status == VR_OK)
        vr_fail(&e->wrong, VR_E_MODEL,
                "'%s' has %lld channels, not divisible into %lld norm groups; give a config.json with norm_num_groups",
                base, (long long)c, (long long)groups);
    return vr_program_group_norm(e->p, base, x, gamma, beta, groups, eps);
}
