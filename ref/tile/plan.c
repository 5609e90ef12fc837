/* Making a tile plan (clause T1): defaults, what every scheme refuses, then the
 * scheme's own planner, then counts.
 *
 * Sizes come in as pixels and become cells here, once: after the checks both
 * tile and overlap are whole cells, so no later formula rounds. Nothing a user
 * asked for is changed silently; what a published formula would get wrong is
 * refused with both numbers and the nearest values that work.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tile/internal.h"

#define LL(x) ((long long)(x))
enum { LEAST_TILE = 8, MOST_PIXELS = 1 << 30 };

/* One axis of the request. */
typedef struct side {
    vr_tile_mode mode;
    const char *name; /* "height", "width" */
    int64_t scale, *tile, *overlap;
} side;

static int64_t whole_cells(int64_t pixels, int64_t scale)
{
    return pixels / scale * scale;
}

/* ---- tile ------------------------------------------------------------------ */

static int64_t default_tile(const side *d)
{
    int64_t t = d->mode == VR_TILE_DIFFUSERS_STRIDE || d->mode == VR_TILE_EXACT ? 256
                : d->mode == VR_TILE_SDCPP                                      ? 32 * d->scale
                                                                                : 512;
    t = whole_cells(t, d->scale);
    return t > 0 ? t : d->scale;
}

static int64_t least_tile(const side *d)
{
    int64_t cells = d->mode == VR_TILE_SDCPP ? 4 : 1; /* sdcpp would raise it to 4 silently */
    int64_t least = cells * d->scale;
    while (d->mode != VR_TILE_EXACT && least < LEAST_TILE)
        least += d->scale;
    return least < LEAST_TILE ? LEAST_TILE : least;
}

static vr_status check_tile(const side *d, vr_error *err)
{
    const char *mode = vr_tile_mode_name(d->mode);
    if (*d->tile == 0)
        *d->tile = default_tile(d);
    const int64_t t = *d->tile, least = least_tile(d), low = whole_cells(t, d->scale);
    if (t < least)
        return vr_fail(err, VR_E_RANGE, "%s: tile %s %lld pixels is too small; want at least %lld", mode,
                       d->name, LL(t), LL(least));
    if (t > MOST_PIXELS)
        return vr_fail(err, VR_E_RANGE, "%s: tile %s %lld pixels is too large; want at most %d", mode,
                       d->name, LL(t), (int)MOST_PIXELS);
    if (low == t || d->mode == VR_TILE_EXACT)
        return VR_OK;
    if (low < least)
        return vr_fail(err, VR_E_RANGE,
                       "%s: tile %s %lld pixels is not a multiple of the %lld pixels of a latent cell; nearest is %lld",
                       mode, d->name, LL(t), LL(d->scale), LL(low + d->scale));
    return vr_fail(err, VR_E_RANGE,
                   "%s: tile %s %lld pixels is not a multiple of the %lld pixels of a latent cell; "
                   "nearest are %lld and %lld",
                   mode, d->name, LL(t), LL(d->scale), LL(low), LL(low + d->scale));
}

/* ---- overlap of the blending schemes --------------------------------------- */

static int64_t default_overlap(const side *d)
{
    const int64_t t = *d->tile, s = d->scale, cells = t / s;
    switch (d->mode) {
    case VR_TILE_DIFFUSERS:
        return t / 4; /* may be no whole number of cells: then it is refused */
    case VR_TILE_DIFFUSERS_STRIDE:
        return whole_cells(64, s);
    case VR_TILE_DIFFUSERS_TINY:
        return cells / 8 * s;
    case VR_TILE_SDCPP:
        return cells / 2 * s;
    default: /* comfy: the node's rule */
        return whole_cells(t < 4 * 64 ? t / 4 : 64, s);
    }
}

/* Overlaps that work, and why those below `lo` and above `hi` do not. */
typedef struct bounds {
    int64_t lo, hi, tile; /* tile: smallest that would take the overlap asked for */
    const char *below, *above;
} bounds;

static bounds overlap_bounds(const side *d)
{
    const int64_t s = d->scale, cells = *d->tile / s, o = *d->overlap > 0 ? *d->overlap : 0;
    const int64_t up = (o + s - 1) / s * s; /* overlap in whole cells */
    bounds b = {0, (cells - 1) * s, whole_cells(o, s) + s, "it is negative", "tiles would never advance"};
    if (d->mode == VR_TILE_DIFFUSERS_STRIDE) {
        b.below = "the stride would pass the tile and lose the pixels between";
    } else if (d->mode == VR_TILE_DIFFUSERS_TINY) {
        b.lo = s > 1 ? s : 2;
        b.below = "the ramp k/(overlap-1) would have no end and erase every tile but the first";
    } else if (d->mode == VR_TILE_SDCPP) {
        b.hi = cells / 2 * s;
        b.tile = 2 * up;
        b.above = "more than half: three tiles would meet where the blend weighs two";
    } else if (d->mode == VR_TILE_COMFY_3PASS) {
        b.hi = (cells / 2 - 1) * s;
        b.tile = 2 * (whole_cells(o, s) + s);
        b.above = "the passes with halved tiles would never advance";
    }
    return b;
}

static vr_status refuse_overlap(const side *d, const bounds *b, const char *why, vr_error *err)
{
    const char *mode = vr_tile_mode_name(d->mode);
    if (b->hi < b->lo)
        return vr_fail(err, VR_E_RANGE, "%s: overlap %lld of tile %lld pixels (%s): %s; want a tile of at least %lld",
                       mode, LL(*d->overlap), LL(*d->tile), d->name, why,
                       LL(b->tile > *d->tile ? b->tile : *d->tile + d->scale));
    if (*d->overlap > b->hi)
        return vr_fail(err, VR_E_RANGE,
                       "%s: overlap %lld of tile %lld pixels (%s): %s; want an overlap of at most %lld, or a "
                       "tile of at least %lld",
                       mode, LL(*d->overlap), LL(*d->tile), d->name, why, LL(b->hi), LL(b->tile));
    return vr_fail(err, VR_E_RANGE, "%s: overlap %lld of tile %lld pixels (%s): %s; want %lld to %lld", mode,
                   LL(*d->overlap), LL(*d->tile), d->name, why, LL(b->lo), LL(b->hi));
}

/* An overlap of no whole number of cells. The diffusers forms truncate the step
 * to cells but the kept part to pixels; the others would truncate quietly. */
static vr_status refuse_fraction(const side *d, const bounds *b, vr_error *err)
{
    const int64_t t = *d->tile, o = *d->overlap, s = d->scale;
    const int64_t low = whole_cells(o, s), high = low + s;
    char want[64], why[160];
    if (low < b->lo || high > b->hi)
        snprintf(want, sizeof want, "%lld", LL(low < b->lo ? high : low));
    else
        snprintf(want, sizeof want, "%lld or %lld", LL(low), LL(high));
    if (d->mode == VR_TILE_DIFFUSERS || d->mode == VR_TILE_DIFFUSERS_STRIDE)
        snprintf(why, sizeof why,
                 "tiles would start every %lld pixels but %lld of each are kept: wrong size or shifted content",
                 LL(whole_cells(t - o, s)), LL(t - o));
    else
        snprintf(why, sizeof why, "not a multiple of the %lld pixels of a latent cell", LL(s));
    return vr_fail(err, VR_E_RANGE, "%s: overlap %lld of tile %lld pixels (%s): %s; nearest is %s",
                   vr_tile_mode_name(d->mode), LL(o), LL(t), d->name, why, want);
}

static vr_status check_overlap(const side *d, vr_error *err)
{
    if (*d->overlap == -1)
        *d->overlap = default_overlap(d);
    const bounds b = overlap_bounds(d);
    if (*d->overlap < b.lo)
        return refuse_overlap(d, &b, *d->overlap < 0 && d->mode != VR_TILE_DIFFUSERS_STRIDE ? "it is negative" : b.below,
                              err);
    if (*d->overlap >= *d->tile)
        return refuse_overlap(d, &b, "tiles would never advance", err);
    if (*d->overlap > b.hi)
        return refuse_overlap(d, &b, b.above, err);
    if (*d->overlap % d->scale)
        return refuse_fraction(d, &b, err);
    return VR_OK;
}

/* two-pass and exact do not blend: their context is not the caller's choice. */
static vr_status check_fixed_overlap(const side *d, int64_t pixels, vr_error *err)
{
    if (*d->overlap != -1 && *d->overlap != pixels)
        return vr_fail(err, VR_E_RANGE,
                       "%s: overlap %lld pixels (%s): this scheme does not blend, its context is %lld; "
                       "leave the overlap out",
                       vr_tile_mode_name(d->mode), LL(*d->overlap), d->name, LL(pixels));
    *d->overlap = pixels;
    return VR_OK;
}

/* auto chooses its tiles; only the overlap is the caller's. */
static vr_status check_auto(const side *d, vr_error *err)
{
    if (*d->tile != 0)
        return vr_fail(err, VR_E_RANGE, "auto: tile %lld pixels (%s): this mode chooses its tiles from a cost table; leave the tile "
                       "out", LL(*d->tile), d->name);
    if (*d->overlap == -1)
        *d->overlap = whole_cells(64, d->scale) > 0 ? whole_cells(64, d->scale) : d->scale;
    if (*d->overlap < 0 || *d->overlap > MOST_PIXELS || *d->overlap % d->scale)
        return vr_fail(err, VR_E_RANGE, "auto: overlap %lld pixels (%s); want a multiple of the %lld pixels of a latent cell, "
                       "such as %lld", LL(*d->overlap), d->name, LL(d->scale),
                       LL(*d->overlap < 0 ? d->scale : whole_cells(*d->overlap, d->scale) + d->scale));
    return VR_OK;
}

static vr_status check_side(const vr_program *p, const side *d, vr_error *err)
{
    if (*d->tile < 0)
        return vr_fail(err, VR_E_RANGE, "%s: tile %s %lld pixels is negative; want at least %lld",
                       vr_tile_mode_name(d->mode), d->name, LL(*d->tile), LL(least_tile(d)));
    if (d->mode == VR_TILE_AUTO)
        return check_auto(d, err);
    vr_status s = check_tile(d, err);
    if (s != VR_OK)
        return s;
    if (vr_tile_mode_blends(d->mode))
        return check_overlap(d, err);
    int64_t pad_h = 0, pad_w = 0;
    s = vr_two_pass_pad(p, d->mode, &pad_h, &pad_w, err);
    return s == VR_OK ? check_fixed_overlap(d, (d->name[0] == 'h' ? pad_h : pad_w) * d->scale, err) : s;
}

/* ---- the plan --------------------------------------------------------------- */

static vr_status plan_tiles(const vr_program *p, vr_tile_plan *plan, vr_error *err)
{
    const vr_tile_options *o = &plan->options;
    switch (o->mode) {
    case VR_TILE_DIFFUSERS:
    case VR_TILE_DIFFUSERS_STRIDE:
    case VR_TILE_DIFFUSERS_TINY:
        return vr_plan_diffusers(o, plan, err);
    case VR_TILE_COMFY:
    case VR_TILE_COMFY_3PASS:
        return vr_plan_comfy(o, plan, err);
    case VR_TILE_SDCPP:
        return vr_plan_sdcpp(o, plan, err);
    case VR_TILE_TWO_PASS:
    case VR_TILE_TWO_PASS_FAST:
    case VR_TILE_TWO_PASS_FIXED:
        return vr_plan_two_pass(p, o, plan, err);
    case VR_TILE_EXACT:
        return vr_plan_exact(o, plan, err);
    case VR_TILE_AUTO:
        return vr_plan_auto(p, o, plan, err);
    default:
        break;
    }
    vr_status s = vr_axis_whole(&plan->grid[0].h, err);
    return s == VR_OK ? vr_axis_whole(&plan->grid[0].w, err) : s;
}

static int64_t tile_end(const vr_tile_axis *a, int64_t i) /* pixels */
{
    return (a->tile[i].start + a->tile[i].length) * a->scale;
}

/* Clause T1.5. */
static void measure_overlap(vr_tile_mode mode, vr_tile_axis *a)
{
    a->effective_overlap = -1;
    for (int64_t i = 0; i + 1 < a->count; i++) {
        int64_t end = tile_end(a, i) < tile_end(a, i + 1) ? tile_end(a, i) : tile_end(a, i + 1);
        int64_t both = mode == VR_TILE_EXACT ? 0 : end - a->tile[i + 1].owned;
        if (a->effective_overlap < 0 || both < a->effective_overlap)
            a->effective_overlap = both;
    }
}

static vr_status make(const vr_program *p, vr_tile_plan *plan, vr_error *err)
{
    vr_tile_options *o = &plan->options;
    if ((unsigned)o->mode >= VR_TILE_MODE_COUNT)
        return vr_fail(err, VR_E_ARGUMENT, "tiling mode %d; want 0 to %d", (int)o->mode, VR_TILE_MODE_COUNT - 1);
    if (plan->latent.c != p->op[0].channels)
        return vr_fail(err, VR_E_SHAPE, "latent of %lld channels; this decoder needs %lld", LL(plan->latent.c),
                       LL(p->op[0].channels));
    int64_t scale_h, scale_w, count;
    vr_status s = vr_shape_count(plan->latent, &count, err);
    if (s != VR_OK)
        return s;
    vr_program_scale(p, &scale_h, &scale_w);
    if (o->mode != VR_TILE_NONE) {
        const side h = {o->mode, "height", scale_h, &o->tile_h, &o->overlap_h};
        const side w = {o->mode, "width", scale_w, &o->tile_w, &o->overlap_w};
        s = check_side(p, &h, err);
        if (s == VR_OK)
            s = check_side(p, &w, err);
    }
    plan->grid_count = o->mode == VR_TILE_COMFY_3PASS ? 3 : 1;
    for (int g = 0; g < 3; g++) {
        plan->grid[g].h = (vr_tile_axis){.cells = plan->latent.h, .scale = scale_h, .requested_overlap = o->overlap_h};
        plan->grid[g].w = (vr_tile_axis){.cells = plan->latent.w, .scale = scale_w, .requested_overlap = o->overlap_w};
    }
    if (s == VR_OK)
        s = plan_tiles(p, plan, err);
    for (int g = 0; s == VR_OK && g < plan->grid_count; g++) {
        measure_overlap(o->mode, &plan->grid[g].h);
        measure_overlap(o->mode, &plan->grid[g].w);
    }
    return s == VR_OK ? vr_plan_work(p, plan, err) : s;
}

vr_status vr_tile_plan_make(const vr_program *p, vr_shape latent, const vr_tile_options *opt,
                            vr_tile_plan *out, vr_error *err)
{
    const vr_tile_options plain = {.mode = VR_TILE_NONE, .overlap_h = -1, .overlap_w = -1};
    *out = (vr_tile_plan){.options = opt ? *opt : plain, .latent = latent};
    vr_status s = make(p, out, err);
    if (s != VR_OK)
        vr_tile_plan_free(out);
    return s;
}

void vr_tile_plan_free(vr_tile_plan *plan)
{
    if (!plan)
        return;
    for (int g = 0; g < 3; g++) {
        free(plan->grid[g].h.tile);
        free(plan->grid[g].w.tile);
    }
    memset(plan, 0, sizeof *plan);
}
