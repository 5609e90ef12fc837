/* Names of the tiling modes (vaeref/tile.h).
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "tile/internal.h"

static const char *const names[VR_TILE_MODE_COUNT] = {
#define VR_X(name, text) [name] = text,
    VR_TILE_MODE_MAP(VR_X)
#undef VR_X
};

const char *vr_tile_mode_name(vr_tile_mode m)
{
    return (unsigned)m < VR_TILE_MODE_COUNT ? names[m] : "?";
}

bool vr_tile_mode_parse(const char *s, vr_tile_mode *out)
{
    for (int m = 0; s && m < VR_TILE_MODE_COUNT; m++)
        if (!strcmp(s, names[m])) {
            *out = (vr_tile_mode)m;
            return true;
        }
    return false;
}

bool vr_tile_mode_blends(vr_tile_mode m)
{
    return vr_blend_scheme_of(m) != NULL;
}

const vr_blend_scheme *vr_blend_scheme_of(vr_tile_mode m)
{
    switch (m) {
    case VR_TILE_DIFFUSERS:
    case VR_TILE_DIFFUSERS_STRIDE:
        return &vr_blend_diffusers;
    case VR_TILE_DIFFUSERS_TINY:
        return &vr_blend_tiny;
    case VR_TILE_COMFY:
    case VR_TILE_COMFY_3PASS:
        return &vr_blend_comfy;
    case VR_TILE_SDCPP:
        return &vr_blend_sdcpp;
    case VR_TILE_AUTO:
        return &vr_blend_auto;
    default:
        return NULL;
    }
}
