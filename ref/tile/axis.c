/* Tiles of one axis as a growing list (clause T1.2).
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "tile/internal.h"

enum { MOST_TILES = 1 << 22 }; /* of one axis: far beyond use, bounds the memory of a plan */

vr_status vr_axis_add(vr_tile_axis *axis, int64_t start, int64_t length, int64_t owned,
                      int64_t owned_length, vr_error *err)
{
    const int64_t n = axis->count;
    if (n >= MOST_TILES)
        return vr_fail(err, VR_E_RANGE, "more than %d tiles along one axis; want larger tiles or less overlap",
                       (int)MOST_TILES);
    if ((n & (n - 1)) == 0) { /* full at 0, 1, 2, 4, ... */
        size_t room = n ? (size_t)n * 2 : 1;
        vr_axis_tile *grown = realloc(axis->tile, room * sizeof *grown);
        if (!grown)
            return vr_fail(err, VR_E_NOMEM, "no memory for %zu tiles", room);
        axis->tile = grown;
    }
    axis->tile[axis->count++] = (vr_axis_tile){start, length, owned, owned_length};
    return VR_OK;
}

void vr_axis_own(vr_tile_axis *axis)
{
    for (int64_t i = 0; i < axis->count; i++) {
        int64_t end = i + 1 < axis->count ? axis->tile[i + 1].owned : axis->cells * axis->scale;
        axis->tile[i].owned_length = end - axis->tile[i].owned;
    }
}

vr_status vr_axis_whole(vr_tile_axis *axis, vr_error *err)
{
    return vr_axis_add(axis, 0, axis->cells, 0, axis->cells * axis->scale, err);
}
