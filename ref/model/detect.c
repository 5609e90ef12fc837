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
            return vr_fail(err, VR_E_AMBIGUOUS, "tensors '%s' and '%s' are the same weight; keep one",
                           t->entry[i - 1].source, t->entry[i].source);
    return VR_OK;
}

static bool same_bytes(const vr_table *a, const vr_table *b, const vr_entry **x, const vr_entry **y)
{
    for (int64_t i = 0; i < a->count; i++) {
        const vr_entry *p = &a->entry[i], *q = vr_table_find(b, p->name);
        *x = p;
        *y = q ? q : &b->entry[0];
        int64_t n = 0;
        if (!q || p->tensor.dtype != q->tensor.dtype || p->tensor.rank != q->tensor.rank ||
            memcmp(p->tensor.dim, q->tensor.dim, sizeof p->tensor.dim) != 0 ||
            vr_tensor_count(&p->tensor, &n, NULL) != VR_OK ||
            memcmp(p->tensor.data, q->tensor.data, (size_t)n * vr_dtype_size(p->tensor.dtype)) != 0)
            return false;
    }
    *y = &b->entry[0];
    return a->count == b->count;
}

/* ---- what it is instead ------------------------------------------------- */

static vr_status nothing_found(const vr_safetensors *f, const char *path, vr_error *err)
{
    const int64_t n = vr_safetensors_count(f);
    bool encoder = false;
    for (int64_t i = 0; i < n; i++) {
        const char *name = vr_safetensors_at(f, i)->name;
        if (strstr(name, "decoder.middle.") || strstr(name, "decoder.upsamples."))
            return vr_fail(err, VR_E_MODEL, "%s: a Wan-style video decoder ('%s'); want an image decoder: AutoencoderKL or the TAESD family",
                           path, name);
        encoder = encoder || starts(name, "encoder.") || strstr(name, ".encoder.");
    }
    if (n == 0)
        return vr_fail(err, VR_E_MODEL, "%s: no tensors at all; want an AutoencoderKL or TAESD-family decoder", path);
    return vr_fail(err, VR_E_MODEL,
                   "%s: no decoder found among %lld tensors (for example '%s')%s; want names such as 'decoder.conv_in.weight' or '1.weight', bare or under first_stage_model., vae. or taesd_decoder.",
                   path, (long long)n, vr_safetensors_at(f, n / 2)->name,
                   encoder ? "; there is an encoder only" : "");
}

static vr_status refuse_video(const vr_table *t, const char *path, vr_error *err)
{
    for (int64_t i = 0; i < t->count; i++)
        if (t->entry[i].tensor.rank == 5)
            return vr_fail(err, VR_E_MODEL,
                           "%s: tensor '%s' has rank 5: a video decoder with 3-D convolutions; want an image decoder with rank 4",
                           path, t->entry[i].source);
    return VR_OK;
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

vr_status vr_find_decoder(const vr_safetensors *f, const char *path, vr_table *t, vr_found *out,
                          vr_error *err)
{
    const place *chosen = NULL;
    vr_status s = VR_OK;
    vr_table other = {.entry = NULL};
    for (int k = 0; k < PLACES && s == VR_OK; k++) {
        const place *p = &places[k];
        bool here = false;
        for (int64_t i = 0; i < vr_safetensors_count(f) && !here; i++) {
            const char *name = vr_safetensors_at(f, i)->name;
            here = starts(name, p->prefix) && proves(p, name + strlen(p->prefix));
        }
        if (!here)
            continue;
        int32_t levels = p->layout == VR_LAYOUT_ORIGINAL ? original_levels(f, p->prefix) : 0;
        if (!chosen) {
            chosen = p;
            out->levels = levels;
            s = collect(f, p, levels, t, err);
            continue;
        }
        const vr_entry *a = NULL, *b = NULL;
        s = collect(f, p, levels, &other, err);
        if (s == VR_OK && !same_bytes(t, &other, &a, &b))
            s = vr_fail(err, VR_E_AMBIGUOUS,
                        "two different decoders ('%s' and '%s'); keep one of them in the file",
                        a ? a->source : "?", b ? b->source : "?");
        vr_table_free(&other);
    }
    vr_table_free(&other);
    if (s != VR_OK) {
        vr_fail_prefix(err, "%s", path);
        return s;
    }
    if (!chosen)
        return nothing_found(f, path, err);
    out->family = chosen->family;
    out->layout = chosen->layout;
    snprintf(out->prefix, sizeof out->prefix, "%s", chosen->prefix);
    out->ignored = vr_safetensors_count(f) - t->count;
    out->context = context_of(f);
    if (out->family == VR_FAMILY_KL)
        out->levels = vr_kl_levels(t);
    return refuse_video(t, path, err);
}
