/* What the files of ref/model/ share: a table of tensors under canonical
 * (diffusers) names, wherever they came from, and the context of an emitter.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_MODEL_INTERNAL_H
#define VAEREF_MODEL_INTERNAL_H

#include "vaeref/model.h"

enum { VR_NAME_MAX = 200 };
#define VR_BN_EPS 1e-4 /* FLUX.2, unless config.json says otherwise */

typedef struct vr_entry {
    char name[VR_NAME_MAX]; /* canonical */
    const char *source;     /* name in the file; owned by the file or the arena */
    vr_tensor tensor;       /* data not owned, perhaps unaligned; dtype NONE if unknown */
    const char *dtype_text;
    bool used;
} vr_entry;

/* Sorted by canonical name. */
typedef struct vr_table {
    vr_entry *entry;
    int64_t count, room;
} vr_table;

void vr_table_free(vr_table *t);
vr_status vr_table_add(vr_table *t, const char *name, const char *source, const vr_tensor *tensor,
                       const char *dtype_text, vr_error *err);
void vr_table_sort(vr_table *t);
vr_entry *vr_table_find(const vr_table *t, const char *name);
/* printf-style lookup */
vr_entry *vr_table_findf(const vr_table *t, const char *fmt, ...) VR_PRINTF(2, 3);
/* true when some name starts with the formatted text */
bool vr_table_has(const vr_table *t, const char *fmt, ...) VR_PRINTF(2, 3);
/* 1 + the largest index among the names "<formatted text><index>."; 0 if there is
 * none. Indices of 64 and above are not counted (and so have no place). */
int32_t vr_table_indices(const vr_table *t, const char *fmt, ...) VR_PRINTF(2, 3);

typedef enum vr_family { VR_FAMILY_KL, VR_FAMILY_TINY } vr_family;

/* One known architecture (clause M1.7): what the numbers of a published family are. */
typedef struct vr_arch {
    const vr_arch_info *info;
    vr_family family;
    bool has_numbers;    /* scaling and shift are published */
    double scaling, shift;
    bool post_quant;     /* KL: post_quant_conv present */
    bool batch_norm;     /* KL: FLUX.2 statistics and 2x2 un-packing */
    bool pool;           /* Tiny: group-norm pool in the first stage */
    int32_t stages;      /* Tiny: widths of the stages; KL: of the levels, from the top */
    int32_t width[6], blocks[6];
} vr_arch;

const vr_arch *vr_arch_find(const char *name); /* NULL if unknown */
const vr_arch *vr_arch_at(int i);              /* NULL past the end */

/* Canonical <-> original names. `levels`: up blocks of a KL decoder. False when
 * the name is not one a decoder has. dst: VR_NAME_MAX bytes. */
bool vr_key_canonical(vr_family f, vr_key_layout layout, int32_t levels, const char *key, char *dst);
void vr_key_original(vr_family f, int32_t levels, const char *canonical, char *dst);

/* Where the decoder of a file lies. */
typedef struct vr_found {
    vr_family family;
    vr_key_layout layout;
    char prefix[64];
    int32_t levels;
    int64_t ignored;
    const char *context; /* arch that other tensors of a checkpoint point to, or NULL */
} vr_found;
/* Finds the decoder in a file and fills the table; see detect.c. `wanted` (may be
 * NULL) settles which of two families is meant. */
vr_status vr_find_decoder(const vr_safetensors *f, const char *path, const vr_arch *wanted,
                          vr_table *t, vr_found *out, vr_error *err);
/* What a file without a decoder looks like instead, for people; "" if nothing. */
const char *vr_looks_like(const vr_safetensors *f);
/* VR_E_UNSUPPORTED or VR_E_MODEL for networks whose names are nearly a decoder's. */
vr_status vr_refuse_relatives(const vr_safetensors *f, const vr_table *t, const vr_found *found,
                              const char *path, vr_error *err);

/* Checks on tensors (check.c); `path` is for messages. */
vr_status vr_refuse_scales(const vr_safetensors *f, const vr_table *t, const char *path,
                           vr_error *err);
vr_status vr_refuse_extra(const vr_table *t, int32_t levels, const char *path, vr_error *err);
vr_status vr_refuse_nonfinite(const vr_program *p, const char *path, vr_error *err);
vr_status vr_hash_weights(const vr_table *t, char hex[65], vr_error *err);
/* Index of the first NaN or infinity, or -1. */
int64_t vr_first_nonfinite(vr_dtype t, const void *data, int64_t count);

/* config.json (configured.c). Reads the one beside `model_path` when it is there and
 * of a class that the family has; its path goes into `name`. NULL: none. */
const vr_vae_config *vr_config_beside(const char *model_path, vr_family family, char *name,
                                      size_t size, vr_vae_config *space);
/* VR_E_MODEL where config and tensors contradict each other. */
vr_status vr_check_config(const vr_vae_config *c, vr_family family, const vr_table *t,
                          int64_t channels, const char *path, vr_error *err);

/* What an emitter works with. Missing and misshapen tensors are collected, so
 * that one error names several. */
typedef struct vr_emit {
    vr_program *p;
    vr_table *table;
    int32_t missing;
    char names[300];     /* the first few missing */
    vr_error wrong;      /* first tensor with a wrong shape or type */
    int64_t groups;      /* KL: norm groups */
} vr_emit;

/* Registers tensor `name` as a weight of the given dims (-1 = any); a rank-2
 * attention weight is taken as 1x1. Returns its index or -1 (recorded). */
int32_t vr_need(vr_emit *e, const char *name, int32_t rank, const int64_t *dim);
/* The same for "<base>.weight" [co][ci][k][k], "<base>.bias" [co]. */
int32_t vr_emit_conv(vr_emit *e, const char *base, int32_t x, int64_t ci, int64_t co, int64_t k,
                     bool bias);
int32_t vr_emit_norm(vr_emit *e, const char *base, int32_t x, int64_t c, int64_t groups, double eps);
/* Dimension d of a tensor, or `otherwise` when it is absent. */
int64_t vr_dim_of(const vr_table *t, const char *name, int32_t d, int64_t otherwise);

/* Each emits the network from value x to the output, and returns the output. */
int32_t vr_emit_kl(vr_emit *e, int32_t x);
int32_t vr_emit_tiny(vr_emit *e, int32_t x);
int64_t vr_kl_latent_channels(const vr_table *t);   /* what the network takes; 0 unknown */
int64_t vr_tiny_latent_channels(const vr_table *t);
int32_t vr_kl_levels(const vr_table *t);
int32_t vr_kl_blocks(const vr_table *t);             /* of each level */
int32_t vr_tiny_upsamples(const vr_table *t);

/* Normalisation in front of the network (clause M2). The numbers as published... */
typedef struct vr_numbers {
    bool known;            /* scaling and shift are */
    double scaling, shift;
    int32_t stats;         /* entries of mean and std; 0: none */
    double mean[VR_CONFIG_MAX_LATENT], std[VR_CONFIG_MAX_LATENT];
    double bn_eps;         /* FLUX.2 */
} vr_numbers;
/* ... and what the program does with them. */
typedef struct vr_normalise {
    const vr_arch *arch;   /* decided or NULL */
    bool apply, packed;    /* scale_shift wanted; un-packing wanted */
    vr_numbers num;
    int64_t channels;      /* of the latent the program takes */
    double scale[VR_CONFIG_MAX_LATENT], offset[VR_CONFIG_MAX_LATENT];
} vr_normalise;

/* What is to be decided from. */
typedef struct vr_evidence {
    const vr_table *table;
    vr_family family;
    const vr_safetensors *file;   /* NULL: synthetic */
    const vr_arch *arch;          /* named by option, metadata or checkpoint; or NULL */
    const vr_vae_config *config;  /* or NULL */
    const vr_model_options *opt;
    int64_t channels;             /* of the network's latent */
    const char *path;             /* for messages */
} vr_evidence;
/* Numbers from the strongest source (numbers.c); known = false when none states them. */
vr_status vr_find_numbers(const vr_evidence *v, vr_numbers *out, vr_error *err);
vr_status vr_decide_normalise(const vr_evidence *v, vr_normalise *out, vr_error *err);
/* The names of the known architectures, "sd15, sdxl, ..." into buf; returns buf. */
char *vr_arch_names(char *buf, size_t size);

/* Seeded weights (clause M7). `arena` keeps names and data. */
typedef struct vr_synth {
    char arch[32];
    uint64_t seed;
    int64_t div;
    vr_dtype dtype;
    int64_t groups; /* out */
} vr_synth;
vr_status vr_synth_parse(const char *spec, vr_synth *out, vr_error *err);
vr_status vr_synth_table(vr_synth *s, const vr_arch *arch, vr_table *t, void **data, vr_error *err);

struct vr_model_memory {
    vr_safetensors *file;
    void *data;       /* generated weights */
    vr_table table;
    vr_found found;
    int64_t groups;
    vr_numbers numbers; /* for seeded raw latents and for writing */
};

#endif
