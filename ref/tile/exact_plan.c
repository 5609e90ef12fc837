/* Geometry of `exact` (clause T10): the picture cut into tile x tile pixels,
 * smaller at the end. Any size of tile or picture will do, cells included.
 *
 * SPDX-License-Identifier: MIT */
#include "tile/internal.h"

static vr_status plan_axis(vr_tile_axis *a, int64_t tile, vr_error *err)
{
    const int64_t pixels = a->cells * a->scale;
    vr_status s = VR_OK;
    for (int64_t at = 0; s == VR_OK && at < pixels; at += tile) {
        const int64_t length = tile < pixels - at ? tile : pixels - at;
        const int64_t start = at / a->scale, end = (at + length + a->scale - 1) / a->scale;
        s = vr_axis_add(a, start, end - start, at, length, err); /* cells under the region; halos differ by layer */
    }
    return s;
}

vr_status vr_plan_exact(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err)
{
    vr_status s = plan_axis(&plan->grid[0].h, o->tile_h, err);
    return s == VR_OK ? plan_axis(&plan->grid[0].w, o->tile_w, err) : s;
}
