/* Modes that are planned here and executed elsewhere.
 * SPDX-License-Identifier: MIT */
#include "tile/internal.h"

vr_status vr_plan_auto(const vr_program *p, vr_tile_plan *plan, vr_error *err)
{
    (void)p;
    (void)plan;
    return vr_fail(err, VR_E_UNSUPPORTED, "tiling mode 'auto' is not in this build; want another mode");
}

vr_status vr_two_pass_run(const vr_program *p, const vr_tensor *latent, const vr_tile_plan *plan,
                          const vr_exec_options *opt, vr_tensor *out, vr_tile_stats *stats, vr_error *err)
{
    (void)p, (void)latent, (void)opt, (void)out, (void)stats;
    return vr_fail(err, VR_E_UNSUPPORTED, "tiling mode '%s' can be planned but not executed by this build",
                   vr_tile_mode_name(plan->options.mode));
}

vr_status vr_exact_run(const vr_program *p, const vr_tensor *latent, const vr_tile_plan *plan,
                       const vr_exec_options *opt, vr_tensor *out, vr_tile_stats *stats, vr_error *err)
{
    (void)p, (void)latent, (void)opt, (void)out, (void)stats;
    return vr_fail(err, VR_E_UNSUPPORTED, "tiling mode '%s' can be planned but not executed by this build",
                   vr_tile_mode_name(plan->options.mode));
}
