/* From the latent handed in to what the network takes (clause M2). Numbers come
 * from numbers.c; they are never guessed.
 *
 *   KL, diffusion:     z = y / scaling + shift, or y * std / scaling + mean
 *   FLUX.2, diffusion: z = y * sqrt(var + eps) + mean, then 2x2 un-packing
 *   Tiny, raw:         y = (z - shift) * scaling
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/internal.h"

static bool has_batch_norm(const vr_evidence *v)
{
    return v->family == VR_FAMILY_KL &&
           (vr_table_has(v->table, "bn.") || (v->arch && v->arch->batch_norm) ||
            (v->config && strcmp(v->config->class_name, "AutoencoderKLFlux2") == 0));
}

/* The architecture by what only it has. NULL: undecided. */
static const vr_arch *recognise(const vr_evidence *v)
{
    if (v->channels != 32)
        return NULL;
    if (v->family == VR_FAMILY_KL)
        return has_batch_norm(v) ? vr_arch_find("flux2") : NULL;
    if (vr_tiny_upsamples(v->table) == 5)
        return vr_arch_find("taesana");
    return vr_table_has(v->table, "decoder.layers.2.pool.") ? vr_arch_find("taef2") : NULL;
}

/* The architecture by its published numbers, once these are known: a name only. */
static const vr_arch *name_by_numbers(const vr_evidence *v, const vr_numbers *n)
{
    if (!n->known || n->stats || v->family != VR_FAMILY_KL || vr_kl_levels(v->table) != 4)
        return NULL;
    for (int i = 0; vr_arch_at(i); i++) {
        const vr_arch *a = vr_arch_at(i);
        if (a->family == VR_FAMILY_KL && a->has_numbers && a->info->latent_channels == v->channels &&
            fabs(a->scaling - n->scaling) < 1e-12 && fabs(a->shift - n->shift) < 1e-12 &&
            a->post_quant == vr_table_has(v->table, "post_quant_conv."))
            return a;
    }
    return NULL;
}

static vr_status check_arch(const vr_evidence *v, vr_error *err)
{
    const vr_arch *a = v->arch;
    if (!a)
        return VR_OK;
    if (a->family != v->family)
        return vr_fail(err, VR_E_MODEL, "%s: arch '%s' is %s, the file holds %s", v->path,
                       a->info->name,
                       a->family == VR_FAMILY_KL ? "an AutoencoderKL" : "a TAESD-family decoder",
                       v->family == VR_FAMILY_KL ? "an AutoencoderKL" : "a TAESD-family decoder");
    if (a->info->latent_channels != v->channels)
        return vr_fail(err, VR_E_MODEL,
                       "%s: arch '%s' has %lld latent channels, the file's decoder takes %lld",
                       v->path, a->info->name, (long long)a->info->latent_channels,
                       (long long)v->channels);
    bool waived = v->config && v->config->has_use_post_quant_conv;
    if (a->post_quant && !waived && !vr_table_has(v->table, "post_quant_conv."))
        return vr_fail(err, VR_E_MODEL,
                       "%s: missing tensor 'post_quant_conv.weight', which '%s' has; if it was left "
                       "out on purpose, say so in a config.json (use_post_quant_conv false)",
                       v->path, a->info->name);
    return VR_OK;
}

/* "sd15 (0.18215) or sdxl (0.13025)": the architectures this file could be. */
static void candidates(const vr_evidence *v, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = '\0';
    for (int i = 0; vr_arch_at(i) && n < size; i++) {
        const vr_arch *a = vr_arch_at(i);
        if (a->family != v->family || !a->has_numbers || a->info->latent_channels != v->channels)
            continue;
        n += (size_t)snprintf(buf + n, size - n, "%s%s (%g", n ? " or " : "", a->info->name,
                              a->scaling);
        if (n < size && a->shift != 0.0)
            n += (size_t)snprintf(buf + n, size - n, ", shift %g", a->shift);
        if (n < size)
            n += (size_t)snprintf(buf + n, size - n, ")");
    }
    if (n == 0)
        snprintf(buf, size, "none known has so many");
}

static vr_status ask_for_numbers(const vr_evidence *v, vr_error *err)
{
    char choice[160];
    if (v->arch) /* known, but nobody publishes numbers for it */
        return vr_fail(err, VR_E_AMBIGUOUS,
                       "%s: no scaling factor is published for raw latents of '%s'; give one, or "
                       "decode diffusion-space latents",
                       v->path, v->arch->info->name);
    if (v->family == VR_FAMILY_KL && v->channels == 32)
        return vr_fail(err, VR_E_AMBIGUOUS,
                       "%s: a 32-channel decoder without 'bn.running_mean' and 'bn.running_var', "
                       "which diffusion-space FLUX.2 latents need; decode raw latents, or use a "
                       "file that has them, or give a scaling factor",
                       v->path);
    candidates(v, choice, sizeof choice);
    return vr_fail(err, VR_E_AMBIGUOUS,
                   "%s: the scaling factor of a %lld-channel decoder is not in the file; choose an "
                   "arch: %s; or give a config.json, a scaling factor, or %s latents",
                   v->path, (long long)v->channels, choice,
                   v->family == VR_FAMILY_KL ? "raw" : "diffusion-space");
}

static vr_status read_statistics(const vr_evidence *v, const char *name, int64_t count, double *out,
                                 vr_error *err)
{
    const vr_entry *e = vr_table_find(v->table, name);
    if (!e)
        return vr_fail(err, VR_E_MODEL,
                       "%s: no tensor '%s', which diffusion-space FLUX.2 latents need; decode raw "
                       "latents instead (--latent-space raw), or use a file that has it",
                       v->path, name);
    if (e->tensor.rank != 1 || e->tensor.dim[0] != count || !vr_dtype_is_float(e->tensor.dtype))
        return vr_fail(err, VR_E_MODEL, "%s: tensor '%s' wants shape [%lld] and a float type",
                       v->path, e->source, (long long)count);
    return vr_convert(VR_F64, out, e->tensor.dtype, e->tensor.data, (uint64_t)count, err);
}

static vr_status flux2(const vr_evidence *v, vr_normalise *n, vr_error *err)
{
    n->apply = n->packed = true;
    n->channels = 4 * v->channels;
    if (n->channels > VR_CONFIG_MAX_LATENT)
        return vr_fail(err, VR_E_MODEL, "%s: %lld packed channels; want at most %d", v->path,
                       (long long)n->channels, VR_CONFIG_MAX_LATENT);
    vr_status s = read_statistics(v, "bn.running_var", n->channels, n->scale, err);
    if (s == VR_OK)
        s = read_statistics(v, "bn.running_mean", n->channels, n->offset, err);
    for (int64_t c = 0; s == VR_OK && c < n->channels; c++) {
        const double variance = n->scale[c] + n->num.bn_eps;
        if (!(n->scale[c] >= 0.0) || !(variance > 0.0) || !isfinite(variance) ||
            !isfinite(n->offset[c]))
            return vr_fail(err, VR_E_NONFINITE,
                           "%s: 'bn.running_var' %g and 'bn.running_mean' %g of channel %lld; want "
                           "finite numbers, the first not negative",
                           v->path, n->scale[c], n->offset[c], (long long)c);
        n->scale[c] = sqrt(variance);
    }
    return s;
}

static void kl(vr_normalise *n)
{
    const vr_numbers *k = &n->num;
    n->apply = true;
    for (int64_t c = 0; c < n->channels; c++) {
        n->scale[c] = k->stats ? k->std[c] / k->scaling : 1.0 / k->scaling;
        n->offset[c] = k->stats ? k->mean[c] : k->shift;
    }
}

static void tiny(vr_normalise *n)
{
    n->apply = true;
    for (int64_t c = 0; c < n->channels; c++) {
        n->scale[c] = n->num.scaling;
        n->offset[c] = -n->num.shift * n->num.scaling;
    }
}

vr_status vr_decide_normalise(const vr_evidence *given, vr_normalise *n, vr_error *err)
{
    vr_evidence v = *given;
    const bool raw = v.opt->latent_space == VR_LATENT_RAW, is_kl = v.family == VR_FAMILY_KL;
    if (v.channels < 1 || v.channels > VR_CONFIG_MAX_LATENT)
        return vr_fail(err, VR_E_MODEL, "%s: %lld latent channels; want 1 to %d", v.path,
                       (long long)v.channels, VR_CONFIG_MAX_LATENT);
    if (!v.arch)
        v.arch = recognise(&v);
    n->channels = v.channels;
    vr_status s = check_arch(&v, err);
    if (s == VR_OK)
        s = vr_find_numbers(&v, &n->num, err);
    if (s != VR_OK)
        return s;
    n->arch = v.arch ? v.arch : name_by_numbers(&v, &n->num);
    if (is_kl == raw) { /* the network takes these as they are */
        if (v.opt->has_scaling_factor || v.opt->has_shift_factor)
            return vr_fail(err, VR_E_ARGUMENT,
                           "%s: %s takes %s latents as they are, so the scaling or shift factor "
                           "given would not be used; leave it out, or say that the latents are %s",
                           v.path, is_kl ? "an AutoencoderKL" : "a TAESD-family decoder",
                           raw ? "raw" : "diffusion-space", raw ? "diffusion-space" : "raw");
        return VR_OK;
    }
    if (has_batch_norm(&v) && !v.opt->has_scaling_factor)
        return flux2(&v, n, err);
    if (!n->num.known)
        return ask_for_numbers(&v, err);
    if (is_kl)
        kl(n);
    else
        tiny(n);
    return VR_OK;
}
