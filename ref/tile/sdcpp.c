/* stable-diffusion.cpp's tiler (clause T7): tiles of one size, the last moved
 * back to end at the border, its doubly covered start skipped; smootherstep.
 *
 * The planner adapts the overlap so that tiles fit; its quotients are f32 as in
 * the peer, because truncating them decides whole cells. What overlap came out
 * is the axis's effective_overlap: just below two tiles it collapses.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "tile/internal.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Overlap in cells that the peer settles on; cells > tile. From 0 to below tile
 * as long as f32 holds the counts. */
static int64_t adapted_overlap(int64_t cells, int64_t tile, int64_t overlap)
{
    const int64_t step = tile - overlap;
    int64_t n = (cells - overlap) / step;
    const int64_t over = ((n + 1) * step + overlap) % cells;
    if (over != step && over <= n * (tile / 2 - overlap))
        n++;
    float part;
    if (n <= 2)
        part = (float)(2 * tile - cells) / (float)tile;
    else
        part = (float)(tile * n - cells) / (float)(tile * (n - 1));
    const float whole = (float)tile * part;
    return (int64_t)whole;
}

static vr_status plan_axis(vr_tile_axis *a, const char *side, int64_t tile, int64_t overlap, vr_error *err)
{
    if (a->cells <= tile)
        return vr_axis_whole(a, err);
    const int64_t adapted = adapted_overlap(a->cells, tile, overlap);
    if (adapted < 0 || adapted >= tile)
        return vr_fail(err, VR_E_RANGE,
                       "sdcpp: tile %lld of %lld pixels (%s): the peer's f32 planner cannot tell the two apart; want "
                       "a tile of at most %d",
                       (long long)(tile * a->scale), (long long)(a->cells * a->scale), side, 1 << 20);
    vr_status s = VR_OK;
    for (int64_t at = 0; s == VR_OK; at += tile - adapted) {
        const int64_t start = least(at, a->cells - tile);
        s = vr_axis_add(a, start, tile, at * a->scale, 0, err);
        if (at + tile >= a->cells)
            break;
    }
    vr_axis_own(a);
    return s;
}

vr_status vr_plan_sdcpp(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err)
{
    vr_tile_grid *g = &plan->grid[0];
    vr_status s = plan_axis(&g->h, "height", o->tile_h / g->h.scale, o->overlap_h / g->h.scale, err);
    return s == VR_OK ? plan_axis(&g->w, "width", o->tile_w / g->w.scale, o->overlap_w / g->w.scale, err) : s;
}

/* ---- blend -------------------------------------------------------------------- */

static void no_scratch(const vr_tile_plan *plan, int64_t planes, int64_t count[2])
{
    (void)plan;
    (void)planes;
    count[0] = count[1] = 0;
}

/* Horner as the peer writes it: x*x*x*(x*(6x-15)+10). */
static float smootherstep(float x)
{
    const float a = 6.0F * x - 15.0F, b = x * a + 10.0F;
    return x * x * x * b;
}

/* Overlap in pixels that tiles of this axis are blended over. */
static int64_t blended(const vr_tile_axis *a)
{
    return a->count > 1 ? a->effective_overlap : 0;
}

/* Weight of pixel k (from `skip`) of tile i. */
static float weight(const vr_tile_axis *a, int64_t i, int64_t k, int64_t skip)
{
    const int64_t overlap = blended(a), n = vr_axis_pixels(a, i);
    float u = 1.0F;
    if (overlap > 0 && a->tile[i].start > 0)
        u = (float)(k - skip) / (float)overlap;
    if (overlap > 0 && a->tile[i].start + a->tile[i].length < a->cells) {
        const float end = (float)(n - k) / (float)overlap;
        u = u < end ? u : end;
    }
    return smootherstep(u < 1.0F ? u : 1.0F);
}

static void add(vr_blend *b, int64_t i, int64_t j, float *tile)
{
    const vr_tile_grid *g = &b->plan->grid[0];
    const int64_t h = vr_axis_pixels(&g->h, i), w = vr_axis_pixels(&g->w, j);
    const int64_t top = g->h.tile[i].start * g->h.scale, left = g->w.tile[j].start * g->w.scale;
    const int64_t skip_y = g->h.tile[i].owned - top, skip_x = g->w.tile[j].owned - left;
    const bool sums = blended(&g->h) > 0 || blended(&g->w) > 0;
    for (int64_t y = skip_y; y < h; y++) {
        const float wy = weight(&g->h, i, y, skip_y);
        for (int64_t x = skip_x; x < w; x++) {
            const float wx = weight(&g->w, j, x, skip_x);
            for (int64_t p = 0; p < b->planes; p++) {
                float *to = &b->picture[(p * b->height + top + y) * b->width + left + x];
                const float v = tile[(p * h + y) * w + x];
                if (!sums) {
                    *to = v;
                    continue;
                }
                const float vy = v * wy, vyx = vy * wx;
                *to += vyx;
            }
        }
    }
}

const vr_blend_scheme vr_blend_sdcpp = {no_scratch, add, NULL};
