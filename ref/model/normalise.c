/* From the latent handed in to what the network takes (clause M2). Numbers come
 * from, in this order: options, config.json, the file's own metadata, the named
 * architecture, the rest of an all-in-one checkpoint. They are never guessed.
 *
 *   KL, diffusion:     z = y / scaling + shift, or y * std / scaling + mean
 *   FLUX.2, diffusion: z = y * sqrt(var + eps) + mean, then 2x2 un-packing
 *   Tiny, raw:         y = (z - shift) * scaling
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

/* The architecture by name, or by what only it has. NULL: undecided. */
static const vr_arch *decide_arch(const vr_table *t, vr_family family, const char *name, int64_t channels)
{
    if (name)
        return vr_arch_find(name);
    if (family == VR_FAMILY_KL)
        return channels == 32 && vr_table_find(t, "bn.running_mean") ? vr_arch_find("flux2") : NULL;
    if (channels == 32 && vr_tiny_upsamples(t) == 5)
        return vr_arch_find("taesana");
    return channels == 32 && vr_table_has(t, "decoder.layers.2.pool.") ? vr_arch_find("taef2") : NULL;
}

static vr_status check_arch(const vr_arch *a, vr_family family, int64_t channels, const char *path,
                            vr_error *err)
{
    if (a->family != family)
        return vr_fail(err, VR_E_MODEL, "%s: arch '%s' is %s, the file holds %s", path, a->info->name,
                       a->family == VR_FAMILY_KL ? "an AutoencoderKL" : "a TAESD-family decoder",
                       family == VR_FAMILY_KL ? "an AutoencoderKL" : "a TAESD-family decoder");
    if (a->info->latent_channels != channels)
        return vr_fail(err, VR_E_MODEL, "%s: arch '%s' has %lld latent channels, the file's decoder takes %lld",
                       path, a->info->name, (long long)a->info->latent_channels, (long long)channels);
    return VR_OK;
}

static bool metadata_number(const vr_safetensors *f, const char *key, double *out)
{
    const char *text = f ? vr_safetensors_metadata(f, key) : NULL;
    char *end;
    if (!text)
        return false;
    *out = strtod(text, &end);
    return end != text && *end == '\0';
}

/* scaling and shift, or false when nothing states them. */
static bool find_numbers(const vr_model_options *opt, const vr_vae_config *config,
                         const vr_safetensors *file, vr_normalise *n)
{
    bool scaling = false, shift = false;
    if (n->arch && n->arch->has_numbers) {
        n->scaling = n->arch->scaling;
        n->shift = n->arch->shift;
        scaling = shift = true;
    }
    double v;
    if (metadata_number(file, "vaeproof.scaling_factor", &v)) {
        n->scaling = v;
        scaling = true;
    }
    if (metadata_number(file, "vaeproof.shift_factor", &v)) {
        n->shift = v;
        shift = true;
    }
    if (config && config->has_scaling_factor) {
        n->scaling = config->scaling_factor;
        scaling = true;
        n->shift = config->has_shift_factor ? config->shift_factor : 0.0;
        shift = true;
    }
    if (opt->has_scaling_factor) {
        n->scaling = opt->scaling_factor;
        scaling = true;
    }
    if (opt->has_shift_factor) {
        n->shift = opt->shift_factor;
        shift = true;
    }
    if (!shift)
        n->shift = 0.0;
    return scaling;
}

static vr_status ask_for_numbers(int64_t channels, const char *path, vr_error *err)
{
    const char *choice = channels == 4    ? "sd15 (0.18215) or sdxl (0.13025)"
                         : channels == 16 ? "sd3 (1.5305, shift 0.0609) or flux1 (0.3611, shift 0.1159)"
                                          : "none known";
    return vr_fail(err, VR_E_AMBIGUOUS,
                   "%s: the scaling factor of a %lld-channel decoder is not in the file; choose an arch: %s; or give a config.json, a scaling factor, or raw latents",
                   path, (long long)channels, choice);
}

static vr_status read_statistics(const vr_table *t, const char *name, int64_t count, double *out,
                                 const char *path, vr_error *err)
{
    const vr_entry *e = vr_table_find(t, name);
    if (!e)
        return vr_fail(err, VR_E_MODEL,
                       "%s: no tensor '%s', which diffusion-space FLUX.2 latents need; decode raw latents instead, or use a file that has it",
                       path, name);
    if (e->tensor.rank != 1 || e->tensor.dim[0] != count || !vr_dtype_is_float(e->tensor.dtype))
        return vr_fail(err, VR_E_MODEL, "%s: tensor '%s' wants shape [%lld] and a float type", path,
                       e->source, (long long)count);
    return vr_convert(VR_F64, out, e->tensor.dtype, e->tensor.data, (uint64_t)count, err);
}

static vr_status flux2(const vr_table *t, const vr_vae_config *config, const char *path,
                       vr_normalise *n, vr_error *err)
{
    const double eps = config && config->has_batch_norm_eps ? config->batch_norm_eps : 1e-4;
    n->apply = n->packed = true;
    n->channels *= 4;
    if (n->channels > VR_CONFIG_MAX_LATENT)
        return vr_fail(err, VR_E_MODEL, "%s: %lld packed channels; want at most %d", path,
                       (long long)n->channels, VR_CONFIG_MAX_LATENT);
    vr_status s = read_statistics(t, "bn.running_var", n->channels, n->scale, path, err);
    if (s == VR_OK)
        s = read_statistics(t, "bn.running_mean", n->channels, n->offset, path, err);
    for (int64_t c = 0; s == VR_OK && c < n->channels; c++) {
        if (!(n->scale[c] + eps > 0.0) || !isfinite(n->scale[c]) || !isfinite(n->offset[c]))
            return vr_fail(err, VR_E_NONFINITE, "%s: batch-norm statistics of channel %lld are not finite and positive",
                           path, (long long)c);
        n->scale[c] = sqrt(n->scale[c] + eps);
    }
    return s;
}

static vr_status kl_numbers(const vr_model_options *opt, const vr_vae_config *config,
                            const vr_safetensors *file, const char *path, vr_normalise *n, vr_error *err)
{
    if (!find_numbers(opt, config, file, n))
        return ask_for_numbers(n->channels, path, err);
    if (!(fabs(n->scaling) > 0.0) || !isfinite(n->scaling) || !isfinite(n->shift))
        return vr_fail(err, VR_E_RANGE, "%s: scaling factor %g, shift %g: want a finite scaling other than 0", path,
                       n->scaling, n->shift);
    const bool stats = config && config->stats_count > 0;
    if (stats && config->stats_count != n->channels)
        return vr_fail(err, VR_E_MODEL, "%s: config has %d latents_mean/std values, the decoder %lld channels", path,
                       config->stats_count, (long long)n->channels);
    n->apply = true;
    for (int64_t c = 0; c < n->channels; c++) {
        n->scale[c] = stats ? config->latents_std[c] / n->scaling : 1.0 / n->scaling;
        n->offset[c] = stats ? config->latents_mean[c] : n->shift;
    }
    return VR_OK;
}

vr_status vr_decide_normalise(const vr_table *t, vr_family family, const char *arch_name,
                              const vr_vae_config *config, const vr_model_options *opt,
                              const vr_safetensors *file, int64_t channels, const char *path,
                              vr_normalise *n, vr_error *err)
{
    n->arch = decide_arch(t, family, arch_name, channels);
    n->channels = channels;
    if (arch_name && !n->arch)
        return vr_fail(err, VR_E_ARGUMENT, "arch '%s' is unknown; `vaeref synth --help` lists them", arch_name);
    vr_status s = n->arch ? check_arch(n->arch, family, channels, path, err) : VR_OK;
    if (s != VR_OK)
        return s;
    if (channels < 1 || channels > VR_CONFIG_MAX_LATENT)
        return vr_fail(err, VR_E_MODEL, "%s: %lld latent channels; want 1 to %d", path, (long long)channels,
                       VR_CONFIG_MAX_LATENT);
    const bool raw = opt->latent_space == VR_LATENT_RAW;
    if (family == VR_FAMILY_KL) {
        if (raw)
            return VR_OK;
        bool own = opt->has_scaling_factor || (config && config->has_scaling_factor);
        return n->arch && n->arch->batch_norm && !own ? flux2(t, config, path, n, err)
                                                      : kl_numbers(opt, config, file, path, n, err);
    }
    if (!raw)
        return VR_OK; /* these networks take diffusion-space latents as they are */
    if (!find_numbers(opt, config, file, n))
        return n->arch ? vr_fail(err, VR_E_AMBIGUOUS,
                                 "%s: no scaling factor is published for raw latents of '%s'; give one, or decode diffusion-space latents",
                                 path, n->arch->info->name)
                       : ask_for_numbers(channels, path, err);
    n->apply = true;
    for (int64_t c = 0; c < channels; c++) {
        n->scale[c] = n->scaling;
        n->offset[c] = -n->shift * n->scaling;
    }
    return VR_OK;
}
