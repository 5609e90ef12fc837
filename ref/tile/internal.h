/* What the files of ref/tile/ share. SPDX-License-Identifier: MIT */
#ifndef VAEREF_TILE_INTERNAL_H
#define VAEREF_TILE_INTERNAL_H

#include "vaeref/tile.h"

/* ---- plans ---------------------------------------------------------------- */

/* Everything the schemes do alike is in plan.c: defaults, the checks every
 * scheme needs, counts and work. A planner is called with plan->options
 * filled in and checked, plan->latent set and the axes of grid 0 holding cells
 * and scale; it adds tiles. It refuses what only its own formulas get wrong. */
vr_status vr_plan_diffusers(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err);
vr_status vr_plan_comfy(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err);
vr_status vr_plan_sdcpp(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err);
vr_status vr_plan_two_pass(const vr_program *p, const vr_tile_options *o, vr_tile_plan *plan, vr_error *err);
vr_status vr_plan_exact(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err);
vr_status vr_plan_auto(const vr_program *p, const vr_tile_options *o, vr_tile_plan *plan, vr_error *err);

/* Cells of context a two-pass scheme gives each side of a tile (clause T8.2). */
vr_status vr_two_pass_pad(const vr_program *p, vr_tile_mode mode, int64_t *pad_h, int64_t *pad_w,
                          vr_error *err);

/* Bytes a two-pass decode holds beside the pool: the picture and the latents of
 * the tiles that run together. */
int64_t vr_two_pass_held(const vr_program *p, const vr_tile_plan *plan, int64_t elem);
/* Peak of all that such a decode holds under f32 (clause T9.5). */
vr_status vr_two_pass_peak(const vr_program *p, const vr_tile_plan *plan, int64_t *peak, vr_error *err);
/* The small latent that two-pass-fast takes its statistics from (clause T9.3). */
vr_shape vr_two_pass_small(const vr_tile_plan *plan);
vr_status vr_two_pass_small_copy(const vr_tensor *latent, vr_shape small, vr_tensor *out, vr_error *err);

/* Counts, distinct shapes, multiply-adds and predicted peak (clause T1.6, T1.7). */
vr_status vr_plan_work(const vr_program *p, vr_tile_plan *plan, vr_error *err);

/* Appends a tile to an axis (grows by doubling). */
vr_status vr_axis_add(vr_tile_axis *axis, int64_t start, int64_t length, int64_t owned,
                      int64_t owned_length, vr_error *err);
/* Gives every tile of an axis the pixels from its nominal start to the next. */
void vr_axis_own(vr_tile_axis *axis);
/* One tile, the whole axis. */
vr_status vr_axis_whole(vr_tile_axis *axis, vr_error *err);

bool vr_tile_mode_blends(vr_tile_mode m); /* diffusers*, comfy*, sdcpp, auto */

/* ---- blends --------------------------------------------------------------- */

/* One blend in progress. Pictures are [planes][h][w], planes = n * c' * t. */
typedef struct vr_blend {
    const vr_tile_plan *plan;
    int64_t planes, height, width;
    float *picture;    /* what becomes the result; zero at first */
    float *scratch[2]; /* as the scheme's `scratch` asked; zero at first */
    int32_t grid;      /* pass being run */
} vr_blend;

typedef struct vr_blend_scheme {
    /* Floats the scheme holds beside the picture. */
    void (*scratch)(const vr_tile_plan *plan, int64_t planes, int64_t count[2]);
    /* Mixes in tile (i, j) of the current pass, in raster order. tile:
     * [planes][h][w] pixels; the scheme may write over it. */
    void (*add)(vr_blend *b, int64_t i, int64_t j, float *tile);
    void (*end_pass)(vr_blend *b); /* NULL: nothing to do */
} vr_blend_scheme;

extern const vr_blend_scheme vr_blend_diffusers, vr_blend_tiny, vr_blend_comfy, vr_blend_sdcpp, vr_blend_auto;
const vr_blend_scheme *vr_blend_scheme_of(vr_tile_mode m); /* NULL: no blend */

/* Pixels along an axis of tile i's decoded input. */
static inline int64_t vr_axis_pixels(const vr_tile_axis *a, int64_t i)
{
    return a->tile[i].length * a->scale;
}

/* vr_tile_blend_run with its memory made visible: buffers come from `pool`, the
 * picture (planes * H * W floats, on the heap since the caller keeps it) is
 * allocated before the first tile when channels > 0 says how many it has. */
vr_status vr_blend_run_in(const vr_tile_plan *plan, const vr_tensor *latent, int64_t channels,
                          vr_tile_decoder *decode, void *ctx, vr_pool *pool, vr_tensor *out,
                          vr_error *err);

/* ---- executors that are more than a blend of whole decodes ---------------- */

vr_status vr_two_pass_run(const vr_program *p, const vr_tensor *latent, const vr_tile_plan *plan,
                          const vr_exec_options *opt, vr_tensor *out, vr_tile_stats *stats, vr_error *err);
vr_status vr_exact_run(const vr_program *p, const vr_tensor *latent, const vr_tile_plan *plan,
                       const vr_exec_options *opt, vr_tensor *out, vr_tile_stats *stats, vr_error *err);

/* Peak of activations of an exact run under a limit (0: none), by a dry run;
 * VR_E_BUDGET when the limit is too small. elem: bytes per element. */
vr_status vr_exact_predict(const vr_program *p, vr_shape latent, const vr_tile_options *o,
                           uint64_t memory_limit, int64_t elem, int64_t *peak, vr_error *err);

#endif
