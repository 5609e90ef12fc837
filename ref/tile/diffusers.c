/* The three tilers of diffusers (clauses T2, T3, T4).
 *
 * AutoencoderKL's tile/factor form and the min/stride form of the video
 * decoders are one walk once sizes are whole cells: tiles every tile - overlap
 * cells, ragged at the end, blended in place in raster order, so that the
 * neighbours a tile is mixed with are already mixed. Corners are therefore not
 * the product of two ramps, and the order is part of the result. Only the
 * strips a later tile reads are held: the last rows of the tile row above and
 * the last columns of the tile to the left.
 *
 * AutoencoderTiny writes over one picture with a separable mask instead.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "tile/internal.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- plan ------------------------------------------------------------------- */

static vr_status plan_axis(vr_tile_axis *a, int64_t tile, int64_t step, vr_error *err)
{
    vr_status s = VR_OK;
    for (int64_t at = 0; s == VR_OK && at < a->cells; at += step)
        s = vr_axis_add(a, at, least(tile, a->cells - at), at * a->scale, 0, err);
    vr_axis_own(a);
    return s;
}

vr_status vr_plan_diffusers(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err)
{
    vr_tile_axis *h = &plan->grid[0].h, *w = &plan->grid[0].w;
    const int64_t tile_h = o->tile_h / h->scale, tile_w = o->tile_w / w->scale;
    vr_status s;
    if (h->cells <= tile_h && w->cells <= tile_w) {
        s = vr_axis_whole(h, err);
        return s == VR_OK ? vr_axis_whole(w, err) : s;
    }
    /* One long side is enough: the other is then cut wherever it passes a step. */
    s = plan_axis(h, tile_h, tile_h - o->overlap_h / h->scale, err);
    return s == VR_OK ? plan_axis(w, tile_w, tile_w - o->overlap_w / w->scale, err) : s;
}

/* ---- in-place blend (T2, T3) ------------------------------------------------- */

/* scratch[0]: for every column of tiles, planes x rows x width of the tile, one
 * column after the other. scratch[1]: planes x height x columns. */
typedef struct strips {
    int64_t rows, columns; /* capacity: overlap, or less where tiles are shorter */
} strips;

static strips strip_size(const vr_tile_plan *plan)
{
    const vr_tile_grid *g = &plan->grid[0];
    return (strips){g->h.count > 1 ? least(plan->options.overlap_h, vr_axis_pixels(&g->h, 0)) : 0,
                    g->w.count > 1 ? least(plan->options.overlap_w, vr_axis_pixels(&g->w, 0)) : 0};
}

static void strip_scratch(const vr_tile_plan *plan, int64_t planes, int64_t count[2])
{
    const vr_tile_grid *g = &plan->grid[0];
    const strips size = strip_size(plan);
    int64_t widths = 0;
    for (int64_t j = 0; j < g->w.count; j++)
        widths += vr_axis_pixels(&g->w, j);
    count[0] = planes * size.rows * widths;
    count[1] = planes * size.columns * vr_axis_pixels(&g->h, 0);
}

/* Ramp weights as the peer's scalars: formed in f64, used as f32 (clause T2.3). */
static void ramp(int64_t k, int64_t n, float *old, float *new)
{
    const double y = (double)k / (double)n;
    *old = (float)(1.0 - y);
    *new = (float)y;
}

static void mix(float *cur, const float *old, float wo, float wn)
{
    const float a = *old * wo, b = *cur * wn;
    *cur = a + b;
}

/* tile: [h][w]; above: the last `have` rows of the tile above, [have][w]. */
static void blend_rows(float *tile, int64_t h, int64_t w, const float *above, int64_t have, int64_t overlap)
{
    const int64_t n = least(least(have, h), overlap);
    for (int64_t y = 0; y < n; y++) {
        float wo, wn;
        ramp(y, n, &wo, &wn);
        for (int64_t x = 0; x < w; x++)
            mix(&tile[y * w + x], &above[(have - n + y) * w + x], wo, wn);
    }
}

/* left: the last `have` columns of the tile to the left, [h][have]. */
static void blend_columns(float *tile, int64_t h, int64_t w, const float *left, int64_t have, int64_t overlap)
{
    const int64_t n = least(least(have, w), overlap);
    for (int64_t x = 0; x < n; x++) {
        float wo, wn;
        ramp(x, n, &wo, &wn);
        for (int64_t y = 0; y < h; y++)
            mix(&tile[y * w + x], &left[y * have + have - n + x], wo, wn);
    }
}

static void emit(vr_blend *b, const float *tile, int64_t w, const vr_axis_tile *ty, const vr_axis_tile *tx, int64_t plane)
{
    float *to = b->picture + (plane * b->height + ty->owned) * b->width + tx->owned;
    for (int64_t y = 0; y < ty->owned_length; y++)
        memcpy(to + y * b->width, tile + y * w, (size_t)tx->owned_length * sizeof *to);
}

static void add_in_place(vr_blend *b, int64_t i, int64_t j, float *tile)
{
    const vr_tile_plan *plan = b->plan;
    const vr_tile_grid *g = &plan->grid[0];
    const strips size = strip_size(plan);
    const int64_t h = vr_axis_pixels(&g->h, i), w = vr_axis_pixels(&g->w, j);
    const int64_t rows = i ? least(size.rows, vr_axis_pixels(&g->h, i - 1)) : 0;
    const int64_t columns = j ? least(size.columns, vr_axis_pixels(&g->w, j - 1)) : 0;
    const int64_t keep_rows = least(size.rows, h), keep_columns = least(size.columns, w);
    int64_t before = 0;
    for (int64_t k = 0; k < j; k++)
        before += vr_axis_pixels(&g->w, k);
    float *above = b->scratch[0] + b->planes * size.rows * before, *left = b->scratch[1];
    for (int64_t p = 0; p < b->planes; p++, tile += h * w, above += size.rows * w,
                 left += size.columns * vr_axis_pixels(&g->h, 0)) {
        blend_rows(tile, h, w, above, rows, plan->options.overlap_h);
        blend_columns(tile, h, w, left, columns, plan->options.overlap_w);
        emit(b, tile, w, &g->h.tile[i], &g->w.tile[j], p);
        if (keep_rows)
            memcpy(above, tile + (h - keep_rows) * w, (size_t)(keep_rows * w) * sizeof *above);
        for (int64_t y = 0; keep_columns && y < h; y++)
            memcpy(left + y * keep_columns, tile + y * w + w - keep_columns, (size_t)keep_columns * sizeof *left);
    }
}

const vr_blend_scheme vr_blend_diffusers = {strip_scratch, add_in_place, NULL};

/* ---- AutoencoderTiny (T4) ---------------------------------------------------- */

static void no_scratch(const vr_tile_plan *plan, int64_t planes, int64_t count[2])
{
    (void)plan;
    (void)planes;
    count[0] = count[1] = 0;
}

/* Pixel k of a tile that is not the first: k / (overlap - 1), at most 1. */
static float mask(int64_t index, int64_t k, int64_t overlap)
{
    if (index == 0 || k >= overlap)
        return 1.0F;
    const float m = (float)k / (float)(overlap - 1);
    return m > 1.0F ? 1.0F : m;
}

static void add_masked(vr_blend *b, int64_t i, int64_t j, float *tile)
{
    const vr_tile_options *o = &b->plan->options;
    const vr_tile_grid *g = &b->plan->grid[0];
    const int64_t h = vr_axis_pixels(&g->h, i), w = vr_axis_pixels(&g->w, j);
    for (int64_t p = 0; p < b->planes; p++)
        for (int64_t y = 0; y < h; y++) {
            float *to = b->picture + (p * b->height + g->h.tile[i].owned + y) * b->width + g->w.tile[j].owned;
            const float *from = tile + (p * h + y) * w, my = mask(i, y, o->overlap_h);
            for (int64_t x = 0; x < w; x++) {
                const float m = my * mask(j, x, o->overlap_w), a = m * from[x], rest = 1.0F - m;
                const float c = rest * to[x];
                to[x] = a + c;
            }
        }
}

const vr_blend_scheme vr_blend_tiny = {no_scratch, add_masked, NULL};
