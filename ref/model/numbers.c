/* Where scaling, shift, mean and std come from (clause M2.3). Strongest first:
 * options, config.json, the file's own metadata, the architecture. Each source
 * replaces the weaker ones as a whole, so that no pair is mixed from two.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

/* `count` numbers separated by commas, or at least one when *count is 0. */
static bool parse_list(const char *text, int32_t room, double *out, int32_t *count)
{
    *count = 0;
    for (;; text++) {
        char *end;
        double v = strtod(text, &end);
        if (end == text || *count == room || !isfinite(v) || (*end && *end != ','))
            return false;
        out[(*count)++] = v;
        text = end;
        if (!*text)
            return true;
    }
}

static vr_status metadata_list(const vr_evidence *v, const char *key, int32_t room, double *out,
                               int32_t *count, vr_error *err)
{
    const char *text = v->file ? vr_safetensors_metadata(v->file, key) : NULL;
    *count = 0;
    if (!text || parse_list(text, room, out, count))
        return VR_OK;
    return vr_fail(err, VR_E_FORMAT, "%s: __metadata__ '%s' is '%.40s'; want %s", v->path, key, text,
                   room == 1 ? "a number" : "numbers separated by commas");
}

static vr_status from_metadata(const vr_evidence *v, vr_numbers *n, vr_error *err)
{
    double scaling = 0.0, shift = 0.0;
    int32_t one, two, means, stds;
    vr_numbers own = {.bn_eps = n->bn_eps};
    vr_status s = metadata_list(v, "vaeproof.scaling_factor", 1, &scaling, &one, err);
    if (s == VR_OK)
        s = metadata_list(v, "vaeproof.shift_factor", 1, &shift, &two, err);
    if (s == VR_OK)
        s = metadata_list(v, "vaeproof.latents_mean", VR_CONFIG_MAX_LATENT, own.mean, &means, err);
    if (s == VR_OK)
        s = metadata_list(v, "vaeproof.latents_std", VR_CONFIG_MAX_LATENT, own.std, &stds, err);
    if (s == VR_OK)
        s = metadata_list(v, "vaeproof.batch_norm_eps", 1, &own.bn_eps, &two, err);
    if (s != VR_OK)
        return s;
    n->bn_eps = own.bn_eps;
    if (!one)
        return VR_OK;
    if (means != stds)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: __metadata__ has %d vaeproof.latents_mean and %d vaeproof.latents_std; "
                       "want as many of each", v->path, means, stds);
    own.known = true;
    own.scaling = scaling;
    own.shift = shift;
    own.stats = means;
    *n = own;
    return VR_OK;
}

static void from_config(const vr_vae_config *c, int64_t channels, vr_numbers *n)
{
    if (c->has_batch_norm_eps)
        n->bn_eps = c->batch_norm_eps;
    /* diffusers' AutoencoderKL leaves out 0.18215, its default; early files do. */
    bool by_default = !n->known && !c->has_scaling_factor && channels == 4 &&
                      strcmp(c->class_name, "AutoencoderKL") == 0;
    if (!c->has_scaling_factor && !by_default)
        return;
    n->known = true;
    n->scaling = by_default ? 0.18215 : c->scaling_factor;
    n->shift = c->has_shift_factor ? c->shift_factor : 0.0;
    n->stats = c->stats_count;
    memcpy(n->mean, c->latents_mean, sizeof n->mean);
    memcpy(n->std, c->latents_std, sizeof n->std);
}

/* An architecture named by the caller is not overruled by a file that names another. */
static bool metadata_counts(const vr_evidence *v)
{
    const char *named = v->file ? vr_safetensors_metadata(v->file, "vaeproof.arch") : NULL;
    return !v->opt->arch || !v->arch || !v->arch->has_numbers ||
           (named && strcmp(named, v->opt->arch) == 0);
}

static vr_status check_numbers(const vr_evidence *v, const vr_numbers *n, vr_error *err)
{
    if (n->known && (!(fabs(n->scaling) > 0.0) || !isfinite(n->scaling) || !isfinite(n->shift)))
        return vr_fail(err, VR_E_RANGE,
                       "%s: scaling factor %g, shift %g: want a finite scaling other than 0",
                       v->path, n->scaling, n->shift);
    if (n->stats && n->stats != v->channels)
        return vr_fail(err, VR_E_MODEL,
                       "%s: %d latents_mean/std values, the decoder has %lld latent channels",
                       v->path, n->stats, (long long)v->channels);
    if (!(n->bn_eps >= 0.0))
        return vr_fail(err, VR_E_RANGE, "%s: batch_norm_eps %g; want 0 or more", v->path, n->bn_eps);
    return VR_OK;
}

vr_status vr_find_numbers(const vr_evidence *v, vr_numbers *n, vr_error *err)
{
    *n = (vr_numbers){.bn_eps = VR_BN_EPS};
    if (v->arch && v->arch->has_numbers) {
        n->known = true;
        n->scaling = v->arch->scaling;
        n->shift = v->arch->shift;
    }
    vr_status s = metadata_counts(v) ? from_metadata(v, n, err) : VR_OK;
    if (s != VR_OK)
        return s;
    if (v->config && v->family == VR_FAMILY_KL) /* a Tiny config's 1 is not the family's number */
        from_config(v->config, v->channels, n);
    if (v->opt->has_scaling_factor) {
        n->known = true;
        n->scaling = v->opt->scaling_factor;
    }
    if (v->opt->has_shift_factor) {
        n->shift = v->opt->shift_factor;
        for (int32_t c = 0; c < n->stats; c++)
            n->mean[c] = n->shift;
    }
    return check_numbers(v, n, err);
}
