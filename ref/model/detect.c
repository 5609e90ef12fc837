/* Finds the decoder in a file (clauses M1, M6): which family, under which
 * prefix, in which key layout. Two copies are accepted only when their bytes
 * agree. What looks like something else is named for what it is.
 *
 * SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

typedef struct place {
    vr_family family;
    vr_key_layout layout;
    const char *prefix;
} place;

/* Where decoders are known to lie. */
static const place places[] = {
    {VR_FAMILY_KL, VR_LAYOUT_DIFFUSERS, ""},
    {VR_FAMILY_KL, VR_LAYOUT_DIFFUSERS, "vae."},
    {VR_FAMILY_KL, VR_LAYOUT_DIFFUSERS, "first_stage_model."},
    {VR_FAMILY_KL, VR_LAYOUT_ORIGINAL, ""},
    {VR_FAMILY_KL, VR_LAYOUT_ORIGINAL, "vae."},
    {VR_FAMILY_KL, VR_LAYOUT_ORIGINAL, "first_stage_model."},
    {VR_FAMILY_TINY, VR_LAYOUT_DIFFUSERS, ""},
    {VR_FAMILY_TINY, VR_LAYOUT_DIFFUSERS, "vae."},
    {VR_FAMILY_TINY, VR_LAYOUT_DIFFUSERS, "first_stage_model."},
    {VR_FAMILY_TINY, VR_LAYOUT_ORIGINAL, ""},
    {VR_FAMILY_TINY, VR_LAYOUT_ORIGINAL, "decoder."},
    {VR_FAMILY_TINY, VR_LAYOUT_ORIGINAL, "taesd_decoder."},
    {VR_FAMILY_TINY, VR_LAYOUT_ORIGINAL, "vae.taesd_decoder."},
    {VR_FAMILY_TINY, VR_LAYOUT_ORIGINAL, "vae.decoder."},
    {VR_FAMILY_TINY, VR_LAYOUT_ORIGINAL, "first_stage_model.taesd_decoder."},
};
enum { PLACES = sizeof places / sizeof places[0] };

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Does this key (prefix removed) prove that the decoder lies here? */
static bool proves(const place *p, const char *key)
{
    if (p->family == VR_FAMILY_TINY)
        return p->layout == VR_LAYOUT_DIFFUSERS ? starts(key, "decoder.layers.")
                                                : isdigit((unsigned char)key[0]) != 0;
    if (p->layout == VR_LAYOUT_DIFFUSERS)
        return starts(key, "decoder.up_blocks.") || starts(key, "decoder.mid_block.");
    return starts(key, "decoder.up.") || starts(key, "decoder.mid.");
}

static int32_t original_levels(const vr_safetensors *f, const char *prefix)
{
    int32_t levels = 0;
    char start[80];
    snprintf(start, sizeof start, "%sdecoder.up.", prefix);
    for (int64_t i = 0; i < vr_safetensors_count(f); i++) {
        const char *name = vr_safetensors_at(f, i)->name;
        if (starts(name, start) && isdigit((unsigned char)name[strlen(start)])) {
            long v = strtol(name + strlen(start), NULL, 10);
            if (v < 64 && v + 1 > levels)
                levels = (int32_t)v + 1;
        }
    }
    return levels;
}

static vr_status collect(const vr_safetensors *f, const place *p, int32_t levels, vr_table *t,
                         vr_error *err)
{
    char canonical[VR_NAME_MAX];
    for (int64_t i = 0; i < vr_safetensors_count(f); i++) {
        const vr_named_tensor *n = vr_safetensors_at(f, i);
        if (!starts(n->name, p->prefix) ||
            !vr_key_canonical(p->family, p->layout, levels, n->name + strlen(p->prefix), canonical))
            continue;
        vr_status s = vr_table_add(t, canonical, n->name, &n->tensor, n->dtype_text, err);
        if (s != VR_OK)
            return s;
    }
    vr_table_sort(t);
    for (int64_t i = 1; i < t->count; i++)
        if (strcmp(t->entry[i - 1].name, t->entry[i].name) == 0)
            return vr_fail(err, VR_E_AMBIGUOUS,
                           "tensors '%s' and '%s' are the same weight; keep one",
                           t->entry[i - 1].source, t->entry[i].source);
    return VR_OK;
}

static bool same_tensor(const vr_tensor *a, const vr_tensor *b)
{
    int64_t n = 0;
    if (a->dtype != b->dtype || a->rank != b->rank ||
        memcmp(a->dim, b->dim, sizeof a->dim) != 0 || vr_tensor_count(a, &n, NULL) != VR_OK)
        return false;
    size_t bytes = (size_t)n * vr_dtype_size(a->dtype);
    return bytes == 0 || memcmp(a->data, b->data, bytes) == 0;
}

/* Same weights under the same canonical names? If not, *x and *y are the source
 * names of the first that differ. */
static bool same_tables(const vr_table *a, const vr_table *b, const char **x, const char **y)
{
    for (int64_t i = 0; i < a->count || i < b->count; i++) {
        const vr_entry *p = i < a->count ? &a->entry[i] : NULL;
        const vr_entry *q = p ? vr_table_find(b, p->name) : NULL;
        *x = p ? p->source : a->entry[0].source;
        *y = q ? q->source : b->entry[i < b->count ? i : 0].source;
        if (!p || !q || !same_tensor(&p->tensor, &q->tensor))
            return false;
    }
    return true;
}

static vr_status nothing_found(const vr_safetensors *f, const char *path, vr_error *err)
{
    const int64_t n = vr_safetensors_count(f);
    if (n == 0)
        return vr_fail(err, VR_E_MODEL,
                       "%s: no tensors at all; want an AutoencoderKL or TAESD-family decoder", path);
    const char *like = vr_looks_like(f);
    return vr_fail(err, VR_E_MODEL,
                   "%s: no decoder found among %lld tensors (for example '%s')%s%s; want names such "
                   "as 'decoder.conv_in.weight' or '1.weight', bare or under first_stage_model., "
                   "vae. or taesd_decoder.",
                   path, (long long)n, vr_safetensors_at(f, n / 2)->name,
                   *like ? "; it looks like " : "", like);
}

/* What the rest of an all-in-one checkpoint says about the family. */
static const char *context_of(const vr_safetensors *f)
{
    const char *arch = NULL;
    for (int64_t i = 0; i < vr_safetensors_count(f); i++) {
        const char *name = vr_safetensors_at(f, i)->name;
        if (starts(name, "conditioner.embedders."))
            return "sdxl";
        if (strstr(name, ".joint_blocks."))
            return "sd3";
        if (strstr(name, "double_blocks."))
            arch = "flux1";
        else if (starts(name, "cond_stage_model."))
            arch = "sd15";
    }
    return arch;
}

static bool lies_here(const vr_safetensors *f, const place *p)
{
    for (int64_t i = 0; i < vr_safetensors_count(f); i++) {
        const char *name = vr_safetensors_at(f, i)->name;
        if (starts(name, p->prefix) && proves(p, name + strlen(p->prefix)))
            return true;
    }
    return false;
}

/* Numbered layers prove little: an encoder has them too, from 0 on, where a
 * decoder has its clamp. */
static bool believable(const vr_safetensors *f, const place *p, const vr_table *t)
{
    char zero[80];
    snprintf(zero, sizeof zero, "%s0.weight", p->prefix);
    return p->family != VR_FAMILY_TINY || p->layout != VR_LAYOUT_ORIGINAL ||
           vr_table_find(t, "decoder.layers.0.weight") || !vr_safetensors_find(f, zero);
}

static vr_status search(const vr_safetensors *f, const vr_arch *wanted, vr_table *t,
                        const place **chosen, vr_error *err)
{
    vr_status s = VR_OK;
    for (int k = 0; k < PLACES && s == VR_OK; k++) {
        const place *p = &places[k];
        if ((wanted && wanted->family != p->family) || !lies_here(f, p))
            continue;
        vr_table here = {.entry = NULL};
        const char *a = NULL, *b = NULL;
        int32_t levels = p->layout == VR_LAYOUT_ORIGINAL ? original_levels(f, p->prefix) : 0;
        s = collect(f, p, levels, &here, err);
        if (s == VR_OK && !*chosen && believable(f, p, &here)) {
            *chosen = p;
            *t = here;
            continue;
        }
        if (s == VR_OK && believable(f, p, &here) && !same_tables(t, &here, &a, &b))
            s = vr_fail(err, VR_E_AMBIGUOUS,
                        "two different decoders ('%s' and '%s'); keep one of them in the file", a,
                        b);
        vr_table_free(&here);
    }
    return s;
}

vr_status vr_find_decoder(const vr_safetensors *f, const char *path, const vr_arch *wanted,
                          vr_table *t, vr_found *out, vr_error *err)
{
    const place *chosen = NULL;
    vr_status s = search(f, wanted, t, &chosen, err);
    if (s != VR_OK) {
        vr_fail_prefix(err, "%s", path);
        return s;
    }
    if (!chosen && wanted) /* then say what the file holds, not only that it is not this */
        return vr_find_decoder(f, path, NULL, t, out, err);
    if (!chosen)
        return nothing_found(f, path, err);
    out->family = chosen->family;
    out->layout = chosen->layout;
    snprintf(out->prefix, sizeof out->prefix, "%s", chosen->prefix);
    out->ignored = vr_safetensors_count(f) - t->count;
    out->context = context_of(f);
    out->levels = out->family == VR_FAMILY_KL ? vr_kl_levels(t) : 0;
    return vr_refuse_relatives(f, t, out, path, err);
}
