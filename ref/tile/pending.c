/* Modes that are planned here and executed elsewhere.
 * SPDX-License-Identifier: MIT */
#include "tile/internal.h"

vr_status vr_plan_auto(const vr_program *p, vr_tile_plan *plan, vr_error *err)
{
    (void)p;
    (void)plan;
    return vr_fail(err, VR_E_UNSUPPORTED, "tiling mode 'auto' is not in this build; want another mode");
}
