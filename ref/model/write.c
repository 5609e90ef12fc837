/* Writing a model in either key layout, and seeded latents (clauses M6 to M8).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

typedef struct out_list {
    char (*name)[VR_NAME_MAX];
    const char **names;
    vr_tensor *tensors;
    void **owned; /* converted copies */
    int64_t count;
} out_list;

static void free_list(out_list *l)
{
    for (int64_t i = 0; l->owned && i < l->count; i++)
        free(l->owned[i]);
    free(l->name);
    free(l->names);
    free(l->tensors);
    free(l->owned);
}

/* Attention maps are [co][ci] in diffusers files and [co][ci][1][1] in original ones. */
static void set_rank(vr_tensor *t, const char *canonical, vr_key_layout layout)
{
    if (!strstr(canonical, ".attentions.0.to_") || !strstr(canonical, ".weight"))
        return;
    if (layout == VR_LAYOUT_DIFFUSERS && t->rank == 4)
        t->rank = 2;
    if (layout == VR_LAYOUT_ORIGINAL && t->rank == 2) {
        t->rank = 4;
        t->dim[2] = t->dim[3] = 1;
    }
}

static vr_status add_tensor(out_list *l, const vr_entry *e, const vr_found *f, vr_key_layout layout,
                            vr_dtype dtype, vr_error *err)
{
    int64_t i = l->count, n;
    vr_tensor *t = &l->tensors[i];
    *t = e->tensor;
    set_rank(t, e->name, layout);
    if (layout == VR_LAYOUT_ORIGINAL)
        vr_key_original(f->family, f->levels, e->name, l->name[i]);
    else
        snprintf(l->name[i], VR_NAME_MAX, "%s", e->name);
    l->names[i] = l->name[i];
    l->count++;
    if (dtype == VR_DTYPE_NONE || dtype == t->dtype)
        return VR_OK;
    vr_status s = vr_tensor_count(t, &n, err);
    if (s != VR_OK)
        return s;
    l->owned[i] = malloc((size_t)n * vr_dtype_size(dtype) + 1);
    if (!l->owned[i])
        return vr_fail(err, VR_E_NOMEM, "cannot allocate '%s' as %s", e->name, vr_dtype_name(dtype));
    s = vr_convert(dtype, l->owned[i], t->dtype, t->data, (uint64_t)n, err);
    t->dtype = dtype;
    t->data = l->owned[i];
    return s;
}

vr_status vr_model_write(const vr_model *m, const char *path, vr_key_layout layout, vr_dtype dtype,
                         vr_error *err)
{
    const struct vr_model_memory *mem = m->memory;
    const size_t n = (size_t)mem->table.count;
    if (dtype != VR_DTYPE_NONE && !vr_dtype_is_float(dtype))
        return vr_fail(err, VR_E_DTYPE, "cannot write weights as %s; want a float type", vr_dtype_name(dtype));
    out_list l = {.name = calloc(n, VR_NAME_MAX), .names = calloc(n, sizeof *l.names),
                  .tensors = calloc(n, sizeof *l.tensors), .owned = calloc(n, sizeof *l.owned)};
    vr_status s = VR_OK;
    if (!l.name || !l.names || !l.tensors || !l.owned)
        s = vr_fail(err, VR_E_NOMEM, "cannot allocate a list of %zu tensors", n);
    for (size_t i = 0; s == VR_OK && i < n; i++)
        if (vr_dtype_is_float(mem->table.entry[i].tensor.dtype))
            s = add_tensor(&l, &mem->table.entry[i], &mem->found, layout, dtype, err);
    char groups[24], scaling[40], shift[40];
    snprintf(groups, sizeof groups, "%lld", (long long)mem->groups);
    snprintf(scaling, sizeof scaling, "%.17g", m->scaling_factor);
    snprintf(shift, sizeof shift, "%.17g", m->shift_factor);
    vr_metadata meta[4];
    int64_t k = 0;
    if (vr_arch_find(m->arch))
        meta[k++] = (vr_metadata){"vaeproof.arch", m->arch};
    meta[k++] = (vr_metadata){"vaeproof.norm_num_groups", groups};
    if (m->normalises && m->scaling_factor != 0.0) {
        meta[k++] = (vr_metadata){"vaeproof.scaling_factor", scaling};
        meta[k++] = (vr_metadata){"vaeproof.shift_factor", shift};
    }
    if (s == VR_OK)
        s = vr_safetensors_write(path, l.names, l.tensors, l.count, meta, k, err);
    free_list(&l);
    return s;
}

vr_status vr_model_latents(const vr_model *m, uint64_t seed, int64_t n, int64_t h, int64_t w,
                           vr_tensor *out, vr_error *err)
{
    const int64_t dim[4] = {n, m->latent_channels, h, w};
    if (n < 1 || h < 1 || w < 1)
        return vr_fail(err, VR_E_SHAPE, "latents of %lld x %lld x %lld; want at least 1 each", (long long)n,
                       (long long)h, (long long)w);
    vr_status s = vr_tensor_new(out, VR_F32, 4, dim, err);
    if (s != VR_OK)
        return s;
    float *x = out->data;
    const int64_t count = n * m->latent_channels * h * w;
    vr_random_fill(x, count, VR_NORMAL, seed, vr_random_stream("latents"), 0);
    if (m->latent_space == VR_LATENT_RAW && m->memory->has_raw)
        for (int64_t i = 0; i < count; i++)
            x[i] = (float)((double)x[i] / m->memory->raw_scaling + m->memory->raw_shift);
    return VR_OK;
}
