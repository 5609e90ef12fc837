/* Geometry of the two-pass schemes (clause T8): owned boxes that partition the
 * picture, each decoded from its box and a pad of context, cropped, not blended.
 *
 * The pad is 11 cells as published; two-pass-fixed takes what the program's
 * receptive field really needs.
 *
 * SPDX-License-Identifier: MIT */
#include "tile/internal.h"

enum { PUBLISHED_PAD = 11 };

vr_status vr_two_pass_pad(const vr_program *p, vr_tile_mode mode, int64_t *pad_h, int64_t *pad_w, vr_error *err)
{
    *pad_h = *pad_w = 0;
    if (mode == VR_TILE_TWO_PASS || mode == VR_TILE_TWO_PASS_FAST)
        *pad_h = *pad_w = PUBLISHED_PAD;
    if (mode != VR_TILE_TWO_PASS_FIXED)
        return VR_OK;
    vr_receptive_field f;
    vr_status s = vr_program_receptive_field(p, &f, err);
    if (s != VR_OK)
        return s;
    *pad_h = f.halo_low > f.halo_high ? f.halo_low : f.halo_high;
    *pad_w = f.halo_low_w > f.halo_high_w ? f.halo_low_w : f.halo_high_w;
    return VR_OK;
}

/* Rounds a box side up to a multiple of 32, 16, 8, 4 or 2, the first that still
 * fits into the tile asked for. */
static int64_t rounded_side(int64_t side, int64_t tile)
{
    for (int64_t d = 32; d >= 2; d /= 2) {
        int64_t up = (side + d - 1) / d * d;
        if (up <= tile)
            return up;
    }
    return side;
}

static vr_status plan_axis(vr_tile_axis *a, int64_t tile, int64_t pad, vr_error *err)
{
    const int64_t inner = a->cells - 2 * pad, n = inner > 0 ? (inner + tile - 1) / tile : 1;
    if (n == 1)
        return vr_axis_whole(a, err);
    const int64_t side = rounded_side((inner + n - 1) / n, tile);
    vr_status s = VR_OK;
    for (int64_t k = 0; s == VR_OK && k < n; k++) {
        const int64_t start = k * side, end = start + side + 2 * pad;
        const int64_t owned = k == 0 ? 0 : start + pad; /* the border ring goes to the edge tiles */
        s = vr_axis_add(a, start, (end < a->cells ? end : a->cells) - start, owned * a->scale, 0, err);
    }
    vr_axis_own(a);
    return s;
}

vr_status vr_plan_two_pass(const vr_program *p, const vr_tile_options *o, vr_tile_plan *plan, vr_error *err)
{
    vr_tile_axis *h = &plan->grid[0].h, *w = &plan->grid[0].w;
    int64_t pad_h, pad_w;
    vr_status s = vr_two_pass_pad(p, o->mode, &pad_h, &pad_w, err);
    if (s != VR_OK)
        return s;
    s = plan_axis(h, o->tile_h / h->scale, pad_h, err);
    return s == VR_OK ? plan_axis(w, o->tile_w / w->scale, pad_w, err) : s;
}
