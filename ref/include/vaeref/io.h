/* vaeref/io.h: files a decoder reads and writes.
 *
 * safetensors (single, sharded), NPY, PNG and diffusers config.json. Every
 * reader checks each size it uses against the file before using it; every
 * writer writes a temporary file in the target folder, syncs it and renames
 * it, so a failure leaves what was there before. Specification:
 * docs/spec/formats.md (clauses F1..).
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_IO_H
#define VAEREF_IO_H

#include "vaeref/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- atomic file writing (clause F1) ------------------------------------ */

typedef struct vr_file_writer vr_file_writer;

/* Opens a temporary file beside `path`. Fails early if the folder is missing
 * or `path` is a folder. */
VR_API vr_status vr_file_create(const char *path, vr_file_writer **out, vr_error *err);
VR_API vr_status vr_file_write(vr_file_writer *w, const void *data, size_t n, vr_error *err);
/* Flush, fsync, rename onto path. Frees w whether it succeeds or not; on
 * failure the temporary file is removed and the old file is untouched. */
VR_API vr_status vr_file_commit(vr_file_writer *w, vr_error *err);
VR_API void vr_file_abandon(vr_file_writer *w); /* NULL-safe */

/* ---- safetensors (clause F2) -------------------------------------------- */

#define VR_SAFETENSORS_MAX_HEADER 100000000u /* bytes; as the format's own reader */

typedef struct vr_named_tensor {
    const char *name;      /* UTF-8, owned by the file */
    vr_tensor tensor;      /* data: into the mapping, NOT necessarily aligned */
    const char *dtype_text;/* as written; tensor.dtype is NONE if unknown to us */
    const char *file;      /* path of the file (shard) it lies in */
    uint64_t offset;       /* byte offset of its data in that file */
} vr_named_tensor;

typedef struct vr_safetensors vr_safetensors;

/* Opens FILE.safetensors or a sharded set through FILE.safetensors.index.json.
 * Read-only mapping; headers fully validated (clause F2 lists each rule). */
VR_API vr_status vr_safetensors_open(const char *path, vr_safetensors **out, vr_error *err);
VR_API void vr_safetensors_close(vr_safetensors *f); /* NULL-safe */
VR_API int64_t vr_safetensors_count(const vr_safetensors *f);
/* In ascending name order; valid until close. */
VR_API const vr_named_tensor *vr_safetensors_at(const vr_safetensors *f, int64_t i);
VR_API const vr_named_tensor *vr_safetensors_find(const vr_safetensors *f, const char *name);
/* Value of a __metadata__ key, or NULL. */
VR_API const char *vr_safetensors_metadata(const vr_safetensors *f, const char *key);

typedef struct vr_metadata {
    const char *key, *value;
} vr_metadata;

/* Writes tensors in the order given (dtype and dims from each tensor; names
 * from `names`). Header padded with spaces to a multiple of 8. */
VR_API vr_status vr_safetensors_write(const char *path, const char *const *names,
                                      const vr_tensor *tensors, int64_t count,
                                      const vr_metadata *meta, int64_t meta_count, vr_error *err);

/* ---- NPY (clause F3) ---------------------------------------------------- */

/* Reads v1..v3, C order, little endian f2 f4 f8 u1. Result owned by the caller
 * (vr_tensor_free). Fortran order, big endian and pickled objects are refused
 * by name. */
VR_API vr_status vr_npy_read(const char *path, vr_tensor *out, vr_error *err);
/* v1 header (v2 when it must be), same types. */
VR_API vr_status vr_npy_write(const char *path, const vr_tensor *t, vr_error *err);

/* ---- one tensor from "FILE[#name]" -------------------------------------- */

/* .npy, or .safetensors with #name (needed only when the file holds more than
 * one tensor). Copies, so the result is aligned and owned by the caller; dtype
 * as in the file. */
VR_API vr_status vr_tensor_load(const char *spec, vr_tensor *out, vr_error *err);

/* ---- PNG (clause F4) ---------------------------------------------------- */

typedef struct vr_image {
    int32_t width, height;  /* pixels, >= 1 */
    int32_t channels;       /* 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA */
    int32_t depth;          /* bits per sample: 8 or 16 */
    void *data;             /* [height][width][channels], uint8_t or host-order uint16_t */
} vr_image;

/* Grey 1/2/4/8/16, RGB, RGBA, palette (expanded to RGB or RGBA), interlaced or
 * not. Limits: 65535 pixels a side, and the decoded size is checked against
 * the IHDR before allocation. */
VR_API vr_status vr_png_read(const char *path, vr_image *out, vr_error *err);
/* No time, text or gamma chunks: same pixels, same bytes (for one zlib). */
VR_API vr_status vr_png_write(const char *path, const vr_image *img, vr_error *err);
VR_API void vr_image_free(vr_image *img); /* NULL-safe; clears the struct */

/* ---- diffusers config.json (clause F5) ---------------------------------- */

#define VR_CONFIG_MAX_LEVELS 8
#define VR_CONFIG_MAX_LATENT 256

/* Fields that matter to a decoder; `has_x` false where the file is silent. */
typedef struct vr_vae_config {
    char class_name[64];          /* "_class_name", e.g. "AutoencoderKL" */
    bool has_scaling_factor;
    double scaling_factor;
    bool has_shift_factor;        /* JSON null counts as absent */
    double shift_factor;
    int32_t latent_channels;      /* 0 = absent */
    int32_t out_channels;         /* 0 = absent */
    int32_t layers_per_block;     /* 0 = absent */
    int32_t norm_num_groups;      /* 0 = absent */
    int32_t levels;               /* entries of block_out_channels; 0 = absent */
    int32_t block_out_channels[VR_CONFIG_MAX_LEVELS];
    bool has_use_post_quant_conv, use_post_quant_conv;
    bool has_force_upcast, force_upcast;
    int32_t stats_count;          /* latents_mean/std entries; 0 = absent */
    double latents_mean[VR_CONFIG_MAX_LATENT];
    double latents_std[VR_CONFIG_MAX_LATENT];
    /* AutoencoderTiny */
    int32_t num_decoder_blocks_count; /* 0 = absent */
    int32_t num_decoder_blocks[VR_CONFIG_MAX_LEVELS];
    bool has_upsample_fn;
    char upsample_fn[32];
    char act_fn[32];              /* "" = absent */
    /* FLUX.2 */
    bool has_batch_norm_eps;
    double batch_norm_eps;
    int32_t patch_size[2];        /* {0,0} = absent */
} vr_vae_config;

/* Reads AutoencoderKL, AutoencoderKLFlux2, AutoencoderTiny and AutoencoderDC
 * configs; another class is refused by name. Unknown keys are ignored (they
 * belong to the encoder or to tiling); known keys of a wrong type are refused
 * with file and line. */
VR_API vr_status vr_vae_config_read(const char *path, vr_vae_config *out, vr_error *err);

#ifdef __cplusplus
}
#endif
#endif
