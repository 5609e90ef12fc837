/* vaeproof/backend.h: what a decoder must look like to be judged by vaecheck.
 *
 * A backend is a shared library with one exported symbol, vp_backend_get, that
 * fills a table of functions. It is handed a decoder as a *program* (a flat list
 * of primitive operations with weights) and runs all of it, any range of it, or
 * one operation; or, when it only knows model files, the file's whole decode.
 * It declares what it can do; what it does not declare is never asked of it.
 *
 * This header is plain C11, stands alone and links nothing. Rules:
 *  - every struct begins with `size`: the bytes its writer knows. A reader uses
 *    what both know and takes the rest as zero. Structs grow at the end only.
 *  - arrays of structs are stepped by the stride given beside them.
 *  - functions return VP_OK or a negative code; last_error has the text.
 *  - nothing changes owner: inputs are valid during the call (a program and its
 *    weights: until `release`), outputs are written into the caller's memory.
 *  - one thread at a time per device; different devices may run at once.
 * Guide and an example: docs/abi.md.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_BACKEND_H
#define VAEPROOF_BACKEND_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VP_ABI_MAJOR 1u /* a different major is refused */
#define VP_ABI_MINOR 0u

/* ---- codes: numbers never change their meaning --------------------------- */

enum {
    VP_OK = 0,
    VP_E_ARGUMENT = -1,    /* the caller is wrong: text says how */
    VP_E_UNSUPPORTED = -2, /* right, but not by this backend */
    VP_E_MEMORY = -3,      /* host or device memory, or the limit given */
    VP_E_DEVICE = -4,      /* device lost, driver, no device */
    VP_E_FILE = -5,        /* a model file */
    VP_E_CANCELLED = -6,
    VP_E_INTERNAL = -7
};

enum { VP_F64 = 1, VP_F32 = 2, VP_F16 = 3, VP_BF16 = 4, VP_U8 = 5, VP_I64 = 6 };

/* Operation kinds. Formulas: docs/spec/operations.md, clause N4. i[] and f[] are
 * the integer and real parameters of vp_op. */
enum {
    VP_OP_INPUT = 0,
    VP_OP_CONV2D = 1,           /* i: kh, kw, pad top, bottom, left, right; weight: [co][ci][kh][kw], bias [co] or -1 */
    VP_OP_GROUP_NORM = 2,       /* i: groups; f: eps; weight: gamma [c], beta [c] */
    VP_OP_SILU = 3,
    VP_OP_RELU = 4,
    VP_OP_TANH_CLAMP = 5,       /* f: limit; limit * tanh(x / limit) */
    VP_OP_UPSAMPLE_NEAREST = 6, /* i: factors of t, h, w */
    VP_OP_ATTENTION = 7,        /* f: scale; in: q, k, v, one head over all cells of a picture */
    VP_OP_ADD = 8,
    VP_OP_SCALE_SHIFT = 9,      /* table: scale and shift, `channels` doubles each */
    VP_OP_UNPACK = 10,          /* i: fh, fw */
    VP_OP_CLAMP = 11            /* f: lo, hi */
};

/* Tile modes (docs/spec/tiling.md). */
enum {
    VP_TILE_NONE = 0, VP_TILE_DIFFUSERS = 1, VP_TILE_DIFFUSERS_STRIDE = 2, VP_TILE_DIFFUSERS_TINY = 3,
    VP_TILE_COMFY = 4, VP_TILE_COMFY_3PASS = 5, VP_TILE_SDCPP = 6, VP_TILE_TWO_PASS = 7,
    VP_TILE_TWO_PASS_FAST = 8, VP_TILE_TWO_PASS_FIXED = 9, VP_TILE_EXACT = 10, VP_TILE_AUTO = 11
};

/* ---- data ------------------------------------------------------------------ */

/* Strides are in elements. Activations are [n][c][t][h][w] (rank 5) with t = 1
 * for pictures; weights as their operation says. Strides may be any that do not
 * overlap; VP_CAP_STRIDES says that a backend takes others than dense ones. */
typedef struct vp_tensor {
    uint32_t size, dtype, rank, flags;
    int64_t dim[8], stride[8];
    void *data;
    uint64_t bytes; /* from data to the end of what may be touched */
} vp_tensor;

typedef struct vp_weight {
    uint32_t size, reserved;
    const char *name; /* diffusers' key */
    vp_tensor tensor; /* dense; data may be unaligned */
} vp_weight;

typedef struct vp_op {
    uint32_t size, kind;
    int32_t in[4];      /* values read; -1: unused */
    int32_t weight[4];  /* indices of weights; -1: absent */
    int64_t channels;   /* of the value it makes */
    int64_t i[16];
    double f[8];
    const double *table[2];
    const char *tap;    /* stable id of the value, e.g. "decoder.mid_block.attentions.0.to_q" */
} vp_op;

/* Value k is made by operation k; operation 0 is the latent. */
typedef struct vp_program {
    uint32_t size, op_count, op_stride, weight_count, weight_stride;
    int32_t output;
    const vp_op *op;         /* op_stride bytes apart */
    const vp_weight *weight; /* weight_stride bytes apart */
    double range_lo, range_hi; /* black and white in the output */
} vp_program;

/* pixels; -1 overlap, 0 tile: the scheme's own default */
typedef struct vp_tiling {
    uint32_t size, mode;
    int64_t tile_h, tile_w, overlap_h, overlap_w;
} vp_tiling;

/* Video (latent frames) and offload: their place is fixed, their use is declared
 * by VP_CAP_TEMPORAL and VP_CAP_OFFLOAD. mode 0: none. */
typedef struct vp_temporal {
    uint32_t size, mode;
    int64_t chunk, overlap;
    int64_t parameter[4];
} vp_temporal;

typedef struct vp_offload {
    uint32_t size, mode;
    uint64_t device_bytes;  /* budget of weights and activations on the device */
    const char *placement;  /* expression; NULL: the backend's own */
} vp_offload;

typedef struct vp_job_desc {
    uint32_t size;
    uint32_t storage, accumulate; /* contract: dtype between operations, dtype of sums */
    int32_t threads;              /* 0: the backend's choice */
    const vp_program *program;    /* NULL for a model-file job */
    const char *model_path, *config_path; /* model-file job: safetensors with diffusers' keys, and its config.json */
    int64_t latent[5];            /* n, c, t, h, w: the only shape this job will see */
    uint64_t memory_limit;        /* bytes of activations; 0: none */
    vp_tiling tiling;
    vp_temporal temporal;
    vp_offload offload;
    const char *options;          /* "name=value,..." as the user gave with --option; NULL: none */
} vp_job_desc;

typedef struct vp_value {
    uint32_t size;
    int32_t value;
    vp_tensor tensor;
} vp_value;

/* Runs operations first..last (inclusive). Every value they read that is made
 * before `first` is fed. Whole decode: first 1, last = output, fed value 0.
 * Values wanted other than `last` need VP_CAP_TAPS; a range other than the whole
 * needs VP_CAP_RANGE. Fed values come in the storage dtype; wanted ones are
 * asked in the storage dtype or in F32. A tiled job runs the whole only. */
typedef struct vp_run_args {
    uint32_t size;
    int32_t first, last;
    uint32_t feed_count, want_count, value_stride;
    const vp_value *feed;
    vp_value *want;
} vp_run_args;

/* One tile of a plan: input in latent cells, owned pixels. */
typedef struct vp_tile {
    int64_t pass, y, x, h, w, owned_y, owned_x, owned_h, owned_w;
} vp_tile;

typedef struct vp_stats {
    uint32_t size, reserved;
    double seconds;             /* of the last run, without transfers of this interface */
    uint64_t peak_bytes;        /* of activations, of the last run */
    uint64_t executions;        /* runs of this job */
    uint64_t pool_allocations, pool_hits;
    uint64_t fallback_ops;      /* operations that ran elsewhere than the device named in info */
    uint64_t spilled_bytes;
    double total_seconds;       /* of all runs */
} vp_stats;

#define VP_CAP_PROGRAM (1ull << 0)  /* takes programs */
#define VP_CAP_RANGE (1ull << 1)    /* runs any range, one operation included */
#define VP_CAP_TAPS (1ull << 2)     /* hands out inner values */
#define VP_CAP_MODEL (1ull << 3)    /* takes model files */
#define VP_CAP_STRIDES (1ull << 4)  /* takes strided inputs and outputs */
#define VP_CAP_BATCH (1ull << 5)    /* n > 1 */
#define VP_CAP_TEMPORAL (1ull << 6)
#define VP_CAP_OFFLOAD (1ull << 7)
#define VP_CAP_PLAN (1ull << 8)     /* reports its tile plan */
#define VP_CAP_MEMORY_LIMIT (1ull << 9) /* obeys memory_limit */
#define VP_CAP_DETERMINISTIC (1ull << 10) /* same bits in every run (badge D1) */

typedef struct vp_info {
    uint32_t size, abi_major, abi_minor, reserved;
    char name[64], version[64], vendor[64], device[128];
    uint64_t caps;
    uint32_t storage_mask;  /* bit d: storage dtype d, accumulating in F32 (F64 for F64) */
    uint32_t tile_mask;     /* bit m: tile mode m; bit 0 counts as set */
    uint64_t op_mask;       /* bit k: operation kind k */
    uint64_t half_sums_mask;/* bit d: also accumulates in storage dtype d (profile embedded) */
} vp_info;

typedef struct vp_host {
    uint32_t size, abi_major;
    void *ctx;
    void (*log)(void *ctx, int32_t level, const char *message); /* 0 error .. 3 debug; any thread */
    void *(*alloc)(void *ctx, uint64_t bytes, uint64_t align);  /* NULL when there is none; failures are injected here */
    void (*free)(void *ctx, void *p);
    int32_t (*cancelled)(void *ctx); /* poll during long work: non-zero: return VP_E_CANCELLED */
} vp_host;

typedef struct vp_device vp_device;
typedef struct vp_job vp_job;

typedef struct vp_backend {
    uint32_t size, abi_major;
    int32_t (*info)(vp_info *out);                       /* needs no device */
    int32_t (*open)(const char *options, vp_device **out);
    void (*close)(vp_device *d);
    int32_t (*prepare)(vp_device *d, const vp_job_desc *desc, vp_job **out); /* VP_E_UNSUPPORTED: not claimed */
    int32_t (*run)(vp_job *j, const vp_run_args *args);
    void (*release)(vp_job *j);
    int32_t (*stats)(vp_job *j, vp_stats *out);          /* NULL: none */
    int32_t (*plan)(vp_job *j, vp_tile *tiles, uint32_t room, uint32_t *count); /* NULL: none */
    const char *(*last_error)(vp_device *d);             /* d NULL: of open; never NULL */
    /* append below only */
} vp_backend;

/* The one exported symbol. Fills *out up to out->size; refuses another major. */
int32_t vp_backend_get(const vp_host *host, vp_backend *out);

static inline const vp_op *vp_program_op(const vp_program *p, uint32_t i)
{
    return (const vp_op *)((const char *)p->op + (uint64_t)i * p->op_stride);
}

static inline const vp_weight *vp_program_weight_at(const vp_program *p, uint32_t i)
{
    return (const vp_weight *)((const char *)p->weight + (uint64_t)i * p->weight_stride);
}

static inline const vp_value *vp_feed_at(const vp_run_args *a, uint32_t i)
{
    return (const vp_value *)((const char *)a->feed + (uint64_t)i * a->value_stride);
}

static inline vp_value *vp_want_at(const vp_run_args *a, uint32_t i)
{
    return (vp_value *)((char *)a->want + (uint64_t)i * a->value_stride);
}

#ifdef __cplusplus
}
#endif
#endif
