/* Writing a model in either key layout (clause M6), with what its tensors do not
 * say as metadata.
 *
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
    int64_t at = s == VR_OK ? vr_first_nonfinite(dtype, t->data, n) : -1;
    return at < 0 ? s
                  : vr_fail(err, VR_E_RANGE,
                            "element %lld of '%s' is beyond the range of %s; want a type with more "
                            "range, such as BF16 or F32",
                            (long long)at, e->name, vr_dtype_name(dtype));
}

/* What the tensors do not say (clause M6.5). */
typedef struct notes {
    vr_metadata item[8];
    int64_t count;
    char groups[24], scaling[40], shift[40], eps[40];
    char mean[VR_CONFIG_MAX_LATENT * 26], std[VR_CONFIG_MAX_LATENT * 26];
} notes;

static const char *list_of(char *buf, size_t size, const double *x, int32_t n)
{
    size_t at = 0;
    for (int32_t i = 0; i < n; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%.17g", i ? "," : "", x[i]);
    return buf;
}

static void note(notes *k, const char *key, const char *value)
{
    k->item[k->count++] = (vr_metadata){key, value};
}

static void take_notes(notes *k, const vr_model *m)
{
    const vr_numbers *n = &m->memory->numbers;
    k->count = 0;
    if (vr_arch_find(m->arch))
        note(k, "vaeproof.arch", m->arch);
    snprintf(k->groups, sizeof k->groups, "%lld", (long long)m->memory->groups);
    note(k, "vaeproof.norm_num_groups", k->groups);
    if (n->bn_eps != VR_BN_EPS)
        note(k, "vaeproof.batch_norm_eps", list_of(k->eps, sizeof k->eps, &n->bn_eps, 1));
    if (!n->known)
        return;
    note(k, "vaeproof.scaling_factor", list_of(k->scaling, sizeof k->scaling, &n->scaling, 1));
    note(k, "vaeproof.shift_factor", list_of(k->shift, sizeof k->shift, &n->shift, 1));
    if (n->stats == 0)
        return;
    note(k, "vaeproof.latents_mean", list_of(k->mean, sizeof k->mean, n->mean, n->stats));
    note(k, "vaeproof.latents_std", list_of(k->std, sizeof k->std, n->std, n->stats));
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
    notes meta;
    take_notes(&meta, m);
    if (s == VR_OK)
        s = vr_safetensors_write(path, l.names, l.tensors, l.count, meta.item,
                                  meta.count, err);
    free_list(&l);
    return s;
}
