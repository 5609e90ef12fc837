/* What a file is instead of, or besides, an image decoder (clause M1.3): a message
 * that names it saves its reader an hour.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "model/internal.h"

typedef struct sign {
    const char *part, *meaning; /* part: of a tensor name */
} sign;

/* The more specific first. */
static const sign signs[] = {
    {"decoder.middle.", "a Wan-style video decoder"},
    {"decoder.upsamples.", "a Wan-style video decoder"},
    {"decoder.stages.", "a DC-AE (Sana) decoder in its original layout"},
    {"decoder.conv_in.", "part of a decoder, without its mid and up blocks"},
    {"decoder.conv_out.", "part of a decoder, without its mid and up blocks"},
    {"lora_", "a LoRA"},
    {"double_blocks.", "a FLUX denoiser"},
    {"joint_blocks.", "an SD3 denoiser"},
    {"transformer_blocks.", "a denoiser"},
    {"down_blocks.", "a UNet denoiser or an encoder"},
    {"model.diffusion_model.", "a denoiser without its autoencoder"},
    {"diffusion_model.", "a denoiser"},
    {"text_model.", "a text encoder"},
    {"encoder.", "an encoder only"},
};

const char *vr_looks_like(const vr_safetensors *f)
{
    const vr_named_tensor *zero = vr_safetensors_find(f, "0.weight");
    if (zero && zero->tensor.rank == 4 && zero->tensor.dim[1] == 3)
        return "an encoder only, of the TAESD family (its first layer takes pictures)";
    for (size_t k = 0; k < sizeof signs / sizeof signs[0]; k++)
        for (int64_t i = 0; i < vr_safetensors_count(f); i++)
            if (strstr(vr_safetensors_at(f, i)->name, signs[k].part))
                return signs[k].meaning;
    return "";
}

static const char *source_of(const vr_table *t, const char *start)
{
    for (int64_t i = 0; i < t->count; i++)
        if (strncmp(t->entry[i].name, start, strlen(start)) == 0)
            return t->entry[i].source;
    return NULL;
}

static vr_status refuse_video(const vr_table *t, const char *path, vr_error *err)
{
    for (int64_t i = 0; i < t->count; i++)
        if (t->entry[i].tensor.rank == 5)
            return vr_fail(err, VR_E_MODEL,
                           "%s: tensor '%s' has rank 5: a video decoder with 3-D convolutions; "
                           "want an image decoder with rank 4",
                           path, t->entry[i].source);
    return VR_OK;
}

vr_status vr_refuse_relatives(const vr_safetensors *f, const vr_table *t, const vr_found *found,
                              const char *path, vr_error *err)
{
    const char *dc = source_of(t, "decoder.up_blocks.0.0.");
    if (dc)
        return vr_fail(err, VR_E_MODEL,
                       "%s: tensor '%s' is of an AutoencoderDC (Sana) decoder; want AutoencoderKL "
                       "or the TAESD family",
                       path, dc);
    for (int64_t i = 0; i < vr_safetensors_count(f); i++) {
        const char *name = vr_safetensors_at(f, i)->name;
        size_t n = strlen(found->prefix);
        if (strncmp(name, found->prefix, n) == 0 && strncmp(name + n, "quantize.", 9) == 0)
            return vr_fail(err, VR_E_MODEL,
                           "%s: tensor '%s' is of a vector-quantised autoencoder, whose latents go "
                           "through a codebook; want AutoencoderKL",
                           path, name);
    }
    return refuse_video(t, path, err);
}
