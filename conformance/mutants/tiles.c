/* Wrong tilings: the plan is changed after it was made, or the picture after it was
 * blended. SPDX-License-Identifier: MIT */
#include "mutants/mutants.h"

#include <stdlib.h>
#include <string.h>

static bool blends(const vr_tile_plan *p)
{
    return p->options.mode >= VR_TILE_DIFFUSERS && p->options.mode <= VR_TILE_SDCPP && p->tile_count > 1;
}

/* The ramp is made for another overlap than the tiles have. */
static void other_ramp(vr_tile_plan *p)
{
    if (blends(p) && p->options.overlap_w >= 16)
        p->options.overlap_w -= 8;
}

/* The last column of tiles reads one cell too early. */
static void last_column_early(vr_tile_plan *p)
{
    for (int g = 0; blends(p) && g < p->grid_count; g++)
        if (p->grid[g].w.count > 1 && p->grid[g].w.tile[p->grid[g].w.count - 1].start > 0)
            p->grid[g].w.tile[p->grid[g].w.count - 1].start--;
}

/* Tiles are decoded from one cell of context less. */
static void shifted_rows(vr_tile_plan *p)
{
    for (int g = 0; blends(p) && g < p->grid_count; g++)
        for (int64_t i = 1; i < p->grid[g].h.count; i++)
            p->grid[g].h.tile[i].start--;
}

/* Two-pass tiles own a pixel row of their neighbours. */
static void greedy_tiles(vr_tile_plan *p)
{
    if (p->options.mode >= VR_TILE_TWO_PASS && p->options.mode <= VR_TILE_TWO_PASS_FIXED && p->grid[0].h.count > 1)
        p->grid[0].h.tile[1].start++;
}

static float *output(const vp_run_args *a, int64_t dim[5])
{
    vp_value *w = vp_want_at(a, 0);
    memcpy(dim, w->tensor.dim, 5 * sizeof *dim);
    return w->tensor.dtype == VP_F32 && w->tensor.stride[4] == 1 && w->tensor.stride[3] == dim[4] ? w->tensor.data : NULL;
}

/* A corner where four tiles meet is off, as when tails are saved before they are blended. */
static int32_t corner(ref_job *j, const vp_run_args *a)
{
    int64_t d[5];
    float *x = output(a, d);
    const vr_tile_grid *g = &j->plan.grid[0];
    if (!x || !blends(&j->plan) || g->h.count < 2 || g->w.count < 2)
        return VP_OK;
    const int64_t y0 = g->h.tile[1].owned, x0 = g->w.tile[1].owned;
    for (int64_t c = 0; c < d[0] * d[1]; c++)
        for (int64_t r = y0; r < y0 + 4 && r < d[3]; r++)
            for (int64_t q = x0; q < x0 + 4 && q < d[4]; q++)
                x[(c * d[3] + r) * d[4] + q] += 0.02F;
    return VP_OK;
}

/* The last tile is not there. */
static int32_t last_tile_skipped(ref_job *j, const vp_run_args *a)
{
    int64_t d[5];
    float *x = output(a, d);
    const vr_tile_grid *g = &j->plan.grid[0];
    if (!x || !blends(&j->plan))
        return VP_OK;
    const int64_t y0 = g->h.tile[g->h.count - 1].owned, x0 = g->w.tile[g->w.count - 1].owned;
    for (int64_t c = 0; c < d[0] * d[1]; c++)
        for (int64_t r = y0; r < d[3]; r++)
            for (int64_t q = x0; q < d[4]; q++)
                x[(c * d[3] + r) * d[4] + q] = 0;
    return VP_OK;
}

/* Weights sum to 0.999 where tiles overlap. */
static int32_t weights_short(ref_job *j, const vp_run_args *a)
{
    int64_t d[5];
    float *x = output(a, d);
    const vr_tile_grid *g = &j->plan.grid[0];
    if (!x || !blends(&j->plan) || g->w.count < 2)
        return VP_OK;
    for (int64_t c = 0; c < d[0] * d[1] * d[3]; c++)
        for (int64_t q = g->w.tile[1].owned; q < g->w.tile[1].owned + 8 && q < d[4]; q++)
            x[c * d[4] + q] *= 0.999F;
    return VP_OK;
}

#define PLAN(fn, glob, text) {{.name = #fn, .change_plan = fn}, "fail", "L4", glob, NULL, text}
#define AFTER(fn, glob, text) {{.name = #fn, .after_run = fn}, "fail", "L4", glob, NULL, text}
const mutant vm_tiles[] = {
    PLAN(other_ramp, "tile.*.f32.12x16", "blend ramp of another length than the overlap"),
    PLAN(last_column_early, "tile.*.f32.12x16", "last tiles shifted instead of ragged"),
    PLAN(shifted_rows, "tile.*.f32.12x16", "rows of tiles start one cell early"),
    PLAN(greedy_tiles, "tile.two-pass*.f32.*", "context lost on one side"),
    AFTER(corner, "tile.*.f32.12x16", "a step where vertical and horizontal overlaps cross"),
    AFTER(last_tile_skipped, "tile.*.f32.12x16", "last tile skipped"),
    AFTER(weights_short, "tile.*.f32.12x16", "blend weights do not sum to 1"),
};
const int32_t vm_tiles_count = sizeof vm_tiles / sizeof *vm_tiles;
