/* Shared by the files of ref/metrics/. SPDX-License-Identifier: MIT */
#ifndef VAEREF_METRICS_INTERNAL_H
#define VAEREF_METRICS_INTERNAL_H

#include "vaeref/metrics.h"

/* Fills tone_step, border_score, corner_score. */
vr_status vr_seam_scores(const vr_tensor *got, const vr_tensor *want, const vr_tile_grid *grid,
                         int64_t phase, vr_comparison *out, vr_error *err);

#endif
