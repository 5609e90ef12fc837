/* A config.json against the tensors (clause M1.6): it may add what tensors cannot
 * tell, and may not contradict them.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/internal.h"

static bool class_fits(const vr_vae_config *c, vr_family family)
{
    if (!c->class_name[0]) /* filled in by a caller, not read from a file */
        return true;
    if (family == VR_FAMILY_TINY)
        return strcmp(c->class_name, "AutoencoderTiny") == 0;
    return strcmp(c->class_name, "AutoencoderKL") == 0 ||
           strcmp(c->class_name, "AutoencoderKLFlux2") == 0;
}

const vr_vae_config *vr_config_beside(const char *model_path, vr_family family, char *name,
                                      size_t size, vr_vae_config *space)
{
    const char *slash = strrchr(model_path, '/');
    int n = slash ? (int)(slash - model_path) + 1 : 0;
    if (snprintf(name, size, "%.*sconfig.json", n, model_path) >= (int)size ||
        access(name, R_OK) != 0)
        return NULL;
    /* One that is not ours (a denoiser's, say) or cannot be read is as if absent. */
    return vr_vae_config_read(name, space, NULL) == VR_OK && class_fits(space, family) ? space
                                                                                       : NULL;
}

static vr_status differ(const char *path, const char *what, long long config, long long tensors,
                        vr_error *err)
{
    return vr_fail(err, VR_E_MODEL, "%s: config says %s %lld, the tensors %lld", path, what, config,
                   tensors);
}

static vr_status check_kl(const vr_vae_config *c, const vr_table *t, const char *path,
                          vr_error *err)
{
    const int32_t levels = vr_kl_levels(t);
    const int32_t blocks = vr_kl_blocks(t);
    const bool post = vr_table_has(t, "post_quant_conv.");
    if (c->levels && c->levels != levels)
        return vr_fail(err, VR_E_MODEL, "%s: config says %d levels, the tensors %d", path,
                       c->levels, levels);
    if (c->layers_per_block && c->layers_per_block + 1 != blocks)
        return differ(path, "layers_per_block", c->layers_per_block, blocks - 1, err);
    if (c->has_use_post_quant_conv && c->use_post_quant_conv != post)
        return vr_fail(err, VR_E_MODEL,
                       "%s: config says use_post_quant_conv %s, but 'post_quant_conv.weight' is %s",
                       path, c->use_post_quant_conv ? "true" : "false", post ? "there" : "missing");
    if ((c->patch_size[0] && c->patch_size[0] != 2) || (c->patch_size[1] && c->patch_size[1] != 2))
        return vr_fail(err, VR_E_UNSUPPORTED, "%s: config says patch_size %dx%d; want 2x2", path,
                       c->patch_size[0], c->patch_size[1]);
    for (int32_t i = 0; i < c->levels; i++) {
        char name[VR_NAME_MAX];
        snprintf(name, sizeof name, "decoder.up_blocks.%d.resnets.0.conv2.weight", i);
        int64_t want = c->block_out_channels[c->levels - 1 - i], got = vr_dim_of(t, name, 0, want);
        if (want != got)
            return vr_fail(err, VR_E_MODEL,
                           "%s: config says %lld channels in up block %d, the tensors %lld", path,
                           (long long)want, i, (long long)got);
    }
    return VR_OK;
}

static vr_status check_tiny(const vr_vae_config *c, const vr_table *t, const char *path,
                            vr_error *err)
{
    int32_t blocks = 0;
    for (int32_t i = 0; i < c->num_decoder_blocks_count; i++)
        blocks += c->num_decoder_blocks[i];
    int32_t have = 0, last = vr_table_indices(t, "decoder.layers.");
    for (int32_t k = 0; k < last; k++)
        have += vr_table_has(t, "decoder.layers.%d.conv.", k);
    if (c->num_decoder_blocks_count && blocks != have)
        return differ(path, "num_decoder_blocks adds up to", blocks, have, err);
    if (c->num_decoder_blocks_count && c->num_decoder_blocks_count - 1 != vr_tiny_upsamples(t))
        return differ(path, "upsamplings are", c->num_decoder_blocks_count - 1,
                      vr_tiny_upsamples(t), err);
    if (c->has_upsample_fn && strcmp(c->upsample_fn, "nearest") != 0)
        return vr_fail(err, VR_E_UNSUPPORTED, "%s: config says upsample_fn '%s'; want 'nearest'",
                       path, c->upsample_fn);
    if (c->act_fn[0] && strcmp(c->act_fn, "relu") != 0)
        return vr_fail(err, VR_E_UNSUPPORTED, "%s: config says act_fn '%s'; want 'relu'", path,
                       c->act_fn);
    /* A pipeline would divide by it; the published ones all say 1 and 0. */
    if ((c->has_scaling_factor && c->scaling_factor != 1.0) ||
        (c->has_shift_factor && c->shift_factor != 0.0))
        return vr_fail(err, VR_E_UNSUPPORTED,
                       "%s: config says scaling_factor %g, shift_factor %g; a TAESD-family decoder "
                       "takes diffusion latents as they are: want 1 and 0",
                       path, c->has_scaling_factor ? c->scaling_factor : 1.0, c->shift_factor);
    return VR_OK;
}

vr_status vr_check_config(const vr_vae_config *c, vr_family family, const vr_table *t,
                          int64_t channels, const char *path, vr_error *err)
{
    const bool tiny = family == VR_FAMILY_TINY;
    if (!class_fits(c, family))
        return vr_fail(err, VR_E_MODEL, "%s: config is for %s, the file holds %s", path,
                       c->class_name,
                       tiny ? "a TAESD-family decoder (AutoencoderTiny)"
                            : "an AutoencoderKL decoder");
    if (c->latent_channels && c->latent_channels != channels)
        return differ(path, "latent_channels", c->latent_channels, channels, err);
    char last[VR_NAME_MAX] = "decoder.conv_out.weight";
    if (tiny)
        snprintf(last, sizeof last, "decoder.layers.%d.weight",
                 vr_table_indices(t, "decoder.layers.") - 1);
    int64_t out = vr_dim_of(t, last, 0, c->out_channels);
    if (c->out_channels && c->out_channels != out)
        return differ(path, "out_channels", c->out_channels, out, err);
    return tiny ? check_tiny(c, t, path, err) : check_kl(c, t, path, err);
}
