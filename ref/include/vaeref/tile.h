/* vaeref/tile.h: spatial tiling, every scheme people run and one that is exact.
 *
 * A plan is data: where each tile's input lies, what of the picture it
 * contributes to, in which order. Blending schemes (diffusers*, comfy*, sdcpp)
 * decode each tile as a picture of its own and mix; two-pass schemes keep tiles
 * in step and share group-norm statistics; `exact` computes every operation
 * over the true whole, part by part. Specification: docs/spec/tiling.md (T1..).
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_TILE_H
#define VAEREF_TILE_H

#include "vaeref/core.h"
#include "vaeref/exec.h"
#include "vaeref/program.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VR_TILE_MODE_MAP(X)                        \
    X(VR_TILE_NONE, "none")                         \
    X(VR_TILE_DIFFUSERS, "diffusers")               \
    X(VR_TILE_DIFFUSERS_STRIDE, "diffusers-stride") \
    X(VR_TILE_DIFFUSERS_TINY, "diffusers-tiny")     \
    X(VR_TILE_COMFY, "comfy")                       \
    X(VR_TILE_COMFY_3PASS, "comfy-3pass")           \
    X(VR_TILE_SDCPP, "sdcpp")                       \
    X(VR_TILE_TWO_PASS, "two-pass")                 \
    X(VR_TILE_TWO_PASS_FAST, "two-pass-fast")       \
    X(VR_TILE_TWO_PASS_FIXED, "two-pass-fixed")     \
    X(VR_TILE_EXACT, "exact")                       \
    X(VR_TILE_AUTO, "auto")
typedef enum vr_tile_mode {
#define VR_X(name, text) name,
    VR_TILE_MODE_MAP(VR_X)
#undef VR_X
    VR_TILE_MODE_COUNT
} vr_tile_mode;

VR_API const char *vr_tile_mode_name(vr_tile_mode m); /* "?" if unknown */
VR_API bool vr_tile_mode_parse(const char *s, vr_tile_mode *out);

struct vr_tile_costs; /* vaeref/costs.h */

typedef struct vr_tile_options {
    vr_tile_mode mode;
    int64_t tile_h, tile_w;       /* pixels; 0: the scheme's default */
    int64_t overlap_h, overlap_w; /* pixels; -1: the scheme's default */
    uint64_t memory_limit;        /* exact, auto: planned under this limit; 0: none.
                                     vr_exec_options.memory_limit is what a decode obeys */
    const struct vr_tile_costs *costs; /* auto: the caller's, during planning; NULL: multiply-adds */
    const char *spill_dir;        /* exact: folder of the host store's files; NULL: memory */
} vr_tile_options;

/* One tile along one axis. Input in latent cells, output in pixels. */
typedef struct vr_axis_tile {
    int64_t start, length;         /* input cells [start, start + length) */
    int64_t owned, owned_length;   /* pixels it is responsible for: these partition the axis */
} vr_axis_tile;

typedef struct vr_tile_axis {
    int64_t cells, scale;          /* latent extent, pixels per cell */
    int64_t count;
    vr_axis_tile *tile;
    int64_t requested_overlap;     /* pixels */
    int64_t effective_overlap;     /* pixels, smallest between neighbours; -1 for one tile */
} vr_tile_axis;

/* Tiles of one pass: the product of two axes, rows slowest. */
typedef struct vr_tile_grid {
    vr_tile_axis h, w;
} vr_tile_grid;

typedef struct vr_tile_plan {
    vr_tile_options options;       /* with defaults filled in */
    vr_shape latent;
    int32_t grid_count;            /* 1; comfy-3pass: 3 */
    vr_tile_grid grid[3];
    int64_t tile_count;            /* decodes over all grids */
    int64_t tile_shapes;           /* distinct input shapes: what kernel caches see */
    int64_t macs;                  /* of all tiles */
    double work_ratio;             /* macs / macs of the undivided decode */
    int64_t peak_bytes;            /* predicted peak of activations (f32), all that the scheme holds */
} vr_tile_plan;

/* Plans a decode of `latent` by `p`. Parameters for which the published
 * formulas give wrong sizes, gaps or shifted content are refused (VR_E_RANGE)
 * with the reason and the nearest valid values. */
VR_API vr_status vr_tile_plan_make(const vr_program *p, vr_shape latent, const vr_tile_options *opt,
                                   vr_tile_plan *out, vr_error *err);
VR_API void vr_tile_plan_free(vr_tile_plan *plan); /* NULL-safe; clears */

/* Decodes one tile: latent [n][c][h][w] -> picture [n][c'][h*s][w*s], owned by
 * the caller (vr_tensor_free). */
typedef vr_status vr_tile_decoder(void *ctx, const vr_tensor *latent, vr_tensor *out, vr_error *err);

/* Runs a blending plan with any decoder: what the schemes do, independent of
 * what a decode is. Arithmetic of the blend: f32 products and sums as the
 * scheme's clause states. out: F32, owned by the caller. */
VR_API vr_status vr_tile_blend_run(const vr_tile_plan *plan, const vr_tensor *latent,
                                   vr_tile_decoder *decode, void *ctx, vr_tensor *out, vr_error *err);

typedef struct vr_tile_stats {
    vr_exec_stats exec;            /* pool: all activations of the scheme; nonfinite: first tile that had one */
    int64_t tiles_done;
    int64_t recomputed_elements;   /* exact: element-wise results computed more than once */
    uint64_t spilled_bytes;        /* exact: written to the host store */
    uint64_t spill_peak_bytes;     /* exact: largest size of the host store */
} vr_tile_stats;

/* Decodes under any mode, `none` included. opt->memory_limit bounds activations
 * (exact chooses its parts to fit; the others fail with VR_E_BUDGET). */
VR_API vr_status vr_tile_decode(const vr_program *p, const vr_tensor *latent,
                                const vr_tile_plan *plan, const vr_exec_options *opt,
                                vr_tensor *out, vr_tile_stats *stats, vr_error *err);

#ifdef __cplusplus
}
#endif
#endif
