/* ComfyUI's tiled_scale_multidim (clause T5) and the average of three passes
 * its picture decode makes with it (clause T6).
 *
 * Every tile is feathered on all sides, picture borders included, and the sum
 * is divided by the sum of the weights, so the order of tiles moves nothing but
 * the last bit. The final clamp(y/2 + 1/2, 0, 1) of the peer is no part of it:
 * the result is what the decoder makes.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "tile/internal.h"

static vr_status plan_axis(vr_tile_axis *a, int64_t tile, int64_t overlap, vr_error *err)
{
    if (a->cells <= tile)
        return vr_axis_whole(a, err);
    vr_status s = VR_OK;
    for (int64_t at = 0; s == VR_OK && at < a->cells - overlap; at += tile - overlap)
        s = vr_axis_add(a, at, tile < a->cells - at ? tile : a->cells - at, at * a->scale, 0, err);
    vr_axis_own(a);
    return s;
}

static vr_status plan_pass(vr_tile_grid *g, const vr_tile_options *o, int64_t tile_h, int64_t tile_w, vr_error *err)
{
    vr_status s = plan_axis(&g->h, tile_h, o->overlap_h / g->h.scale, err);
    return s == VR_OK ? plan_axis(&g->w, tile_w, o->overlap_w / g->w.scale, err) : s;
}

static bool fits(const vr_tile_axis *a, int64_t tile)
{
    return a->cells <= tile;
}

vr_status vr_plan_comfy(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err)
{
    vr_tile_grid *g = plan->grid;
    const int64_t h = o->tile_h / g->h.scale, w = o->tile_w / g->w.scale;
    if (o->mode == VR_TILE_COMFY)
        return plan_pass(g, o, h, w, err);
    if (fits(&g->h, h / 2) && fits(&g->w, w / 2)) { /* three times the same: once */
        plan->grid_count = 1;
        return plan_pass(g, o, h, w, err);
    }
    vr_status s = plan_pass(&g[0], o, 2 * h, w / 2, err);
    if (s == VR_OK)
        s = plan_pass(&g[1], o, h / 2, 2 * w, err);
    return s == VR_OK ? plan_pass(&g[2], o, h, w, err) : s;
}

/* ---- blend -------------------------------------------------------------------- */

static int64_t picture_pixels(const vr_tile_plan *plan)
{
    const vr_tile_grid *g = &plan->grid[0];
    return g->h.cells * g->h.scale * g->w.cells * g->w.scale;
}

/* scratch[0]: weighted sum of a pass, where the picture itself cannot serve.
 * scratch[1]: sum of weights, one plane: it is the same for all; then the two
 * factors of every column of a tile. */
static void scratch(const vr_tile_plan *plan, int64_t planes, int64_t count[2])
{
    count[0] = plan->grid_count > 1 ? planes * picture_pixels(plan) : 0;
    count[1] = picture_pixels(plan) + 2 * plan->grid[0].w.cells * plan->grid[0].w.scale;
}

/* Weight of pixel k of n along an axis: two factors, each 1 outside its ramp. A
 * tile shorter than two ramps has both; one no longer than a ramp has none. The
 * factor met at the lower step of the peer's loop comes first. */
static void feather(int64_t k, int64_t n, int64_t ramp, float *first, float *second)
{
    const int64_t back = n - 1 - k, low = k < back ? k : back, high = k < back ? back : k;
    *first = ramp < n && low < ramp ? (float)((double)(low + 1) / (double)ramp) : 1.0F;
    *second = ramp < n && high < ramp ? (float)((double)(high + 1) / (double)ramp) : 1.0F;
}

static void add(vr_blend *b, int64_t i, int64_t j, float *tile)
{
    const vr_tile_options *o = &b->plan->options;
    const vr_tile_grid *g = &b->plan->grid[b->grid];
    const int64_t h = vr_axis_pixels(&g->h, i), w = vr_axis_pixels(&g->w, j), plane = b->height * b->width;
    const bool alone = g->h.count == 1 && g->w.count == 1; /* a pass of one tile is not feathered */
    float *sum = b->plan->grid_count > 1 ? b->scratch[0] : b->picture;
    float *x1 = b->scratch[1] + plane, *x2 = x1 + b->width;
    for (int64_t x = 0; x < w; x++)
        feather(x, w, alone ? w : o->overlap_w, &x1[x], &x2[x]);
    for (int64_t y = 0; y < h; y++) {
        const int64_t at = (g->h.tile[i].owned + y) * b->width + g->w.tile[j].owned;
        float y1, y2;
        feather(y, h, alone ? h : o->overlap_h, &y1, &y2);
        const float my = y1 * y2;
        for (int64_t x = 0; x < w; x++) {
            const float half = my * x1[x], m = half * x2[x];
            b->scratch[1][at + x] += m;
            for (int64_t p = 0; p < b->planes; p++) {
                const float v = tile[(p * h + y) * w + x] * m;
                sum[p * plane + at + x] += v;
            }
        }
    }
}

/* One pass of three: added to the others, and its buffers made ready again. */
static void end_one_of_three(vr_blend *b)
{
    const int64_t plane = b->height * b->width;
    for (int64_t p = 0; p < b->planes; p++)
        for (int64_t k = 0; k < plane; k++) {
            float *to = &b->picture[p * plane + k];
            const float v = b->scratch[0][p * plane + k] / b->scratch[1][k];
            *to = b->grid == 0 ? v : *to + v;
            if (b->grid == 2)
                *to /= 3.0F;
        }
    memset(b->scratch[0], 0, (size_t)(b->planes * plane) * sizeof(float));
    memset(b->scratch[1], 0, (size_t)plane * sizeof(float));
}

static void end_pass(vr_blend *b)
{
    const int64_t plane = b->height * b->width;
    if (b->plan->grid_count > 1) {
        end_one_of_three(b);
        return;
    }
    for (int64_t p = 0; p < b->planes; p++)
        for (int64_t k = 0; k < plane; k++)
            b->picture[p * plane + k] /= b->scratch[1][k];
}

const vr_blend_scheme vr_blend_comfy = {scratch, add, end_pass};
