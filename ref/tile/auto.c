/* Tile mode `auto` (clause T11): the cheapest cover of the picture by overlapped tiles
 * of the shapes of a cost table, within a memory limit; or no tiles at all.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tile/internal.h"
#include "vaeref/costs.h"

#define LL(x) ((long long)(x))

typedef struct chooser {
    const vr_program *p;
    vr_shape latent;
    const vr_tile_options *o;
    vr_tile_costs costs;    /* a copy: those of the options, or multiply-adds */
    int64_t over_h, over_w; /* cells */
    double usable[VR_COST_SIZES][VR_COST_SIZES]; /* infinite: excluded */
    vr_auto_report *r;
} chooser;

static uint64_t limit_of(const vr_tile_options *o)
{
    return o->memory_limit ? o->memory_limit : UINT64_MAX;
}

/* Shapes whose decode, beside the picture, passes the limit are out; so are tiles that
 * are not twice the overlap, in which two ramps would meet. */
static vr_status exclude(chooser *c, vr_error *err)
{
    vr_shape *shape = malloc((size_t)c->p->op_count * sizeof *shape);
    int64_t picture = 0;
    vr_status s = shape ? vr_program_shapes(c->p, c->latent, shape, err) : vr_fail(err, VR_E_NOMEM, "no memory for shapes");
    if (s == VR_OK)
        s = vr_shape_count(shape[c->p->output], &picture, err);
    const int64_t row = s == VR_OK ? 4 * shape[c->p->output].w : 0; /* the blend's weights */
    free(shape);
    for (int32_t i = 0; s == VR_OK && i < c->costs.count; i++)
        for (int32_t j = 0; s == VR_OK && j < c->costs.count; j++) {
            vr_program_cost cost;
            vr_shape in = c->latent;
            in.h = c->costs.size[i] < c->latent.h ? c->costs.size[i] : c->latent.h;
            in.w = c->costs.size[j] < c->latent.w ? c->costs.size[j] : c->latent.w;
            s = vr_program_cost_of(c->p, in, 4, &cost, NULL, err);
            if (s != VR_OK)
                break;
            const int64_t peak = cost.peak_bytes + 4 * (in.n * in.c * in.t * in.h * in.w) + 4 * picture + row;
            c->r->tile_peak_bytes[i][j] = peak;
            const bool fits = (uint64_t)peak <= limit_of(c->o);
            const bool ramps = (in.h == c->latent.h || in.h >= 2 * c->over_h) && (in.w == c->latent.w || in.w >= 2 * c->over_w);
            c->usable[i][j] = fits && ramps ? c->costs.cost[i][j] : INFINITY;
            c->r->shapes++;
            c->r->excluded += !fits;
        }
    return s;
}

static double product_cost(const chooser *c, const int64_t *rows, const int64_t *columns)
{
    double sum = 0;
    for (int32_t i = 0; i < c->costs.count; i++)
        for (int32_t j = 0; j < c->costs.count; j++)
            if (rows[i] && columns[j])
                sum += (double)(rows[i] * columns[j]) * c->usable[i][j];
    return sum;
}

/* Columns covered at the least cost as if all rows had height k; rows then covered at
 * the least cost given those columns; the best over k. */
static vr_status best_cover(chooser *c, vr_error *err)
{
    const int32_t n = c->costs.count;
    c->r->cover_cost = INFINITY;
    vr_status s = VR_OK;
    for (int32_t k = 0; s == VR_OK && k < n; k++) {
        vr_cover across, down;
        int64_t columns[VR_COST_SIZES], rows[VR_COST_SIZES];
        double band[VR_COST_SIZES];
        s = vr_cover_build(c->costs.size, c->usable[k], n, c->over_w, c->latent.w, &across, err);
        if (s != VR_OK)
            break;
        if (vr_cover_read(&across, c->costs.size, n, c->latent.w, columns)) {
            for (int32_t i = 0; i < n; i++) {
                band[i] = 0;
                for (int32_t j = 0; j < n; j++)
                    band[i] += columns[j] ? (double)columns[j] * c->usable[i][j] : 0;
            }
            s = vr_cover_build(c->costs.size, band, n, c->over_h, c->latent.h, &down, err);
            if (s == VR_OK && vr_cover_read(&down, c->costs.size, n, c->latent.h, rows)) {
                const double cost = product_cost(c, rows, columns);
                if (cost < c->r->cover_cost) {
                    c->r->cover_cost = cost;
                    memcpy(c->r->rows, rows, sizeof rows);
                    memcpy(c->r->columns, columns, sizeof columns);
                }
            }
            vr_cover_free(&down);
        }
        vr_cover_free(&across);
    }
    return s;
}

static int64_t tiles_needed(int64_t length, int64_t tile, int64_t overlap)
{
    return tile >= length ? 1 : (length - overlap + tile - overlap - 1) / (tile - overlap);
}

static void best_uniform(chooser *c)
{
    vr_auto_report *r = c->r;
    r->uniform_cost = INFINITY;
    for (int32_t i = 0; i < c->costs.count; i++)
        for (int32_t j = 0; j < c->costs.count; j++) {
            const int64_t h = c->costs.size[i], w = c->costs.size[j];
            if (!isfinite(c->usable[i][j]) || (h <= c->over_h && h < c->latent.h) || (w <= c->over_w && w < c->latent.w))
                continue;
            const double cost = (double)(tiles_needed(c->latent.h, h, c->over_h) * tiles_needed(c->latent.w, w, c->over_w)) *
                                c->usable[i][j];
            if (cost < r->uniform_cost) {
                r->uniform_cost = cost;
                r->uniform_rows = h;
                r->uniform_columns = w;
            }
        }
}

/* The undivided decode: in the table when a shape of it contains the picture, else by
 * the multiply-adds of the largest. */
static vr_status undivided(chooser *c, vr_error *err)
{
    vr_auto_report *r = c->r;
    const int32_t n = c->costs.count;
    vr_program_cost whole, largest;
    vr_shape l = c->latent;
    vr_status s = vr_program_cost_of(c->p, l, 4, &whole, NULL, err);
    l.h = l.w = c->costs.size[n - 1];
    if (s == VR_OK)
        s = vr_program_cost_of(c->p, l, 4, &largest, NULL, err);
    if (s != VR_OK)
        return s;
    r->undivided_peak_bytes = whole.peak_bytes;
    r->undivided_fits = (uint64_t)whole.peak_bytes <= limit_of(c->o);
    r->undivided_cost = largest.macs > 0 ? c->costs.cost[n - 1][n - 1] * ((double)whole.macs / (double)largest.macs)
                                         : (double)(c->latent.h * c->latent.w);
    for (int32_t i = n; i-- > 0;)
        for (int32_t j = n; j-- > 0;)
            if (c->costs.size[i] >= c->latent.h && c->costs.size[j] >= c->latent.w && c->costs.measured)
                r->undivided_cost = c->costs.cost[i][j];
    return VR_OK;
}

static vr_status no_room(const chooser *c, vr_error *err)
{
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < c->costs.count; i++)
        for (int32_t j = 0; j < c->costs.count; j++)
            least = c->r->tile_peak_bytes[i][j] < least ? c->r->tile_peak_bytes[i][j] : least;
    return vr_fail(err, VR_E_BUDGET, "auto: no tile of the cost table fits %llu bytes (the smallest needs %lld with the picture), nor "
                   "covers %lldx%lld cells with an overlap of at most half of it; want a higher limit, less overlap, or mode exact",
                   (unsigned long long)limit_of(c->o), LL(least), LL(c->latent.h), LL(c->latent.w));
}

static vr_status decide(chooser *c, vr_error *err)
{
    vr_status s = c->o->costs ? VR_OK : vr_tile_costs_from_macs(c->p, &c->costs, err);
    if (c->o->costs)
        c->costs = *c->o->costs;
    *c->r = (vr_auto_report){.measured = c->costs.measured};
    if (s == VR_OK)
        s = exclude(c, err);
    if (s == VR_OK)
        s = undivided(c, err);
    if (s == VR_OK)
        s = best_cover(c, err);
    if (s != VR_OK)
        return s;
    best_uniform(c);
    c->r->undivided_chosen = c->r->undivided_fits && c->r->undivided_cost <= c->r->cover_cost;
    return c->r->undivided_chosen || isfinite(c->r->cover_cost) ? VR_OK : no_room(c, err);
}

/* Tiles of one axis, largest first; the last is moved back so as to end with the axis. */
static vr_status lay_out(const vr_tile_costs *costs, const int64_t *count_of, int64_t overlap, vr_tile_axis *a, vr_error *err)
{
    int64_t at = 0, end = 0;
    vr_status s = VR_OK;
    for (int32_t k = costs->count; s == VR_OK && k-- > 0;)
        for (int64_t i = 0; s == VR_OK && i < count_of[k] && end < a->cells; i++) {
            const int64_t length = costs->size[k] < a->cells ? costs->size[k] : a->cells;
            const int64_t start = at + length > a->cells ? a->cells - length : at;
            const int64_t owned = a->count ? (end - overlap) * a->scale : 0; /* the ramp: the last cells of the tile before */
            end = start + length;
            s = vr_axis_add(a, start, length, owned, 0, err);
            at = end - overlap;
        }
    vr_axis_own(a);
    return s;
}

vr_status vr_plan_auto(const vr_program *p, const vr_tile_options *o, vr_tile_plan *plan, vr_error *err)
{
    vr_auto_report report;
    vr_tile_axis *h = &plan->grid[0].h, *w = &plan->grid[0].w;
    chooser c = {.p = p, .latent = plan->latent, .o = o, .over_h = o->overlap_h / h->scale, .over_w = o->overlap_w / w->scale,
                 .r = &report};
    vr_status s = decide(&c, err);
    if (s != VR_OK)
        return s;
    if (report.undivided_chosen) {
        s = vr_axis_whole(h, err);
        return s == VR_OK ? vr_axis_whole(w, err) : s;
    }
    s = lay_out(&c.costs, report.rows, c.over_h, h, err);
    return s == VR_OK ? lay_out(&c.costs, report.columns, c.over_w, w, err) : s;
}

vr_status vr_auto_explain(const vr_program *p, vr_shape latent, const vr_tile_options *opt, vr_auto_report *out, vr_error *err)
{
    int64_t scale_h, scale_w;
    vr_program_scale(p, &scale_h, &scale_w);
    chooser c = {.p = p, .latent = latent, .o = opt, .r = out, .over_h = opt->overlap_h / scale_h,
                 .over_w = opt->overlap_w / scale_w};
    return decide(&c, err);
}

/* ---- the blend ------------------------------------------------------------------- */

static void scratch(const vr_tile_plan *plan, int64_t planes, int64_t count[2])
{
    (void)planes;
    count[0] = plan->grid[0].w.cells * plan->grid[0].w.scale; /* weights of one row of a tile */
    count[1] = 0;
}

/* Weight of picture pixel `at` in tile i: a ramp up over the overlap with the tile
 * before, one down over that with the next, 1 between; 0 before and after. */
static float weight(const vr_tile_axis *a, int64_t i, int64_t overlap, int64_t at)
{
    const int64_t own = a->tile[i].owned, next = i + 1 < a->count ? a->tile[i + 1].owned : INT64_MAX;
    if (i > 0 && at < own)
        return 0.0F;
    if (i > 0 && at < own + overlap)
        return (float)(((double)(at - own) + 0.5) / (double)overlap);
    if (at >= next)
        return at < next + overlap ? 1.0F - (float)(((double)(at - next) + 0.5) / (double)overlap) : 0.0F;
    return 1.0F;
}

static void add(vr_blend *b, int64_t i, int64_t j, float *tile)
{
    const vr_tile_options *o = &b->plan->options;
    const vr_tile_grid *g = &b->plan->grid[0];
    const int64_t h = vr_axis_pixels(&g->h, i), w = vr_axis_pixels(&g->w, j), plane = b->height * b->width;
    const int64_t top = g->h.tile[i].start * g->h.scale, left = g->w.tile[j].start * g->w.scale;
    float *mx = b->scratch[0];
    for (int64_t x = 0; x < w; x++)
        mx[x] = weight(&g->w, j, o->overlap_w, left + x);
    for (int64_t y = 0; y < h; y++) {
        const float my = weight(&g->h, i, o->overlap_h, top + y);
        for (int64_t x = 0; x < w; x++) {
            const float m = my * mx[x];
            for (int64_t p = 0; m != 0.0F && p < b->planes; p++) {
                const float v = tile[(p * h + y) * w + x] * m;
                b->picture[p * plane + (top + y) * b->width + left + x] += v;
            }
        }
    }
}

const vr_blend_scheme vr_blend_auto = {scratch, add, NULL};
