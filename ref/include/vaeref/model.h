/* vaeref/model.h: from a model file to a program.
 *
 * The file decides: family, latent channels, widths and levels are inferred
 * from tensor names and shapes; config.json and options override. Whatever
 * cannot be told (for instance which scaling_factor a 4-channel file wants) is
 * asked for, never guessed. Specification: docs/spec/models.md (clauses M1..).
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_MODEL_H
#define VAEREF_MODEL_H

#include "vaeref/core.h"
#include "vaeref/io.h"
#include "vaeref/program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which space the latent handed to the decoder is in (clause M2).
 * DIFFUSION: as a pipeline's denoiser leaves it (scaled; FLUX.2: packed and
 * batch-normalised). RAW: as the autoencoder's encoder made it. Each program
 * begins with the conversion its own network needs, applied exactly once. */
typedef enum vr_latent_space { VR_LATENT_DIFFUSION, VR_LATENT_RAW } vr_latent_space;

typedef enum vr_key_layout { VR_LAYOUT_DIFFUSERS, VR_LAYOUT_ORIGINAL } vr_key_layout;

/* Known architectures ("arch"): name, one-line description. Terminated by a
 * NULL name. E.g. sd15, sdxl, sd3, flux1, flux2, taesd, taesdxl, taesd3, taef1,
 * taef2, taesana. */
typedef struct vr_arch_info {
    const char *name, *description;
    int64_t latent_channels;      /* of a RAW latent */
    int64_t diffusion_channels;   /* of a DIFFUSION latent (FLUX.2: 128) */
    int64_t spatial_scale;        /* pixels per RAW latent cell */
} vr_arch_info;
VR_API const vr_arch_info *vr_arch_list(void);

typedef struct vr_model_options {
    vr_latent_space latent_space;
    const char *arch;             /* NULL: infer */
    const vr_vae_config *config;  /* NULL: none, or config.json beside the file when present */
    bool has_scaling_factor, has_shift_factor;
    double scaling_factor, shift_factor; /* override everything */
} vr_model_options;

typedef struct vr_model {
    vr_program *program;
    char arch[32];                /* decided architecture, e.g. "sd15", "kl" when unnamed */
    char description[160];        /* one line for people */
    vr_key_layout layout;
    char prefix[64];              /* key prefix found, e.g. "first_stage_model." */
    vr_latent_space latent_space;
    int64_t latent_channels;      /* channels of the latent this program takes */
    int64_t spatial_scale;        /* pixels per cell of that latent */
    bool normalises;              /* a scale_shift is applied first */
    double scaling_factor, shift_factor; /* used; meaningless unless normalises */
    int64_t ignored_tensors;      /* tensors of the file that a decoder does not need */
    char weights_sha256[65];      /* over (name, dtype, dims, bytes) in canonical name order */
    struct vr_model_memory *memory; /* file mapping or generated weights; private */
} vr_model;

/* spec: a .safetensors file, a .safetensors.index.json, or
 * "synth:ARCH[,seed=N][,div=D][,dtype=T]" (clause M7: seeded weights, widths
 * divided by D). `opt` may be NULL (diffusion space, infer everything).
 * Errors: VR_E_MODEL (no decoder, missing or misshapen tensors; the first few
 * are named), VR_E_AMBIGUOUS (competing copies, scaling unknown; says which
 * option settles it), VR_E_NONFINITE (a weight is NaN or infinite). */
VR_API vr_status vr_model_open(const char *spec, const vr_model_options *opt, vr_model **out,
                               vr_error *err);
VR_API void vr_model_close(vr_model *m); /* NULL-safe */

/* Writes the model's tensors (decoder and post_quant_conv, statistics) as
 * safetensors in the given layout and dtype (VR_DTYPE_NONE keeps each). The
 * arch and the normalisation go into __metadata__ ("vaeproof.arch", ...). */
VR_API vr_status vr_model_write(const vr_model *m, const char *path, vr_key_layout layout,
                                vr_dtype dtype, vr_error *err);

/* Seeded near-normal latents [n][latent_channels][h][w] for the model's latent
 * space (clause M8); F32, owned by the caller (vr_tensor_free). */
VR_API vr_status vr_model_latents(const vr_model *m, uint64_t seed, int64_t n, int64_t h,
                                  int64_t w, vr_tensor *out, vr_error *err);

#ifdef __cplusplus
}
#endif
#endif
