/* What the files of ref/tile/ share. SPDX-License-Identifier: MIT */
#ifndef VAEREF_TILE_INTERNAL_H
#define VAEREF_TILE_INTERNAL_H

#include "vaeref/tile.h"

/* Planners of one axis set: fill grid(s); the frame around (counts, work) is
 * vr_tile_plan_make's. One file per scheme. */
vr_status vr_plan_diffusers(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err);
vr_status vr_plan_comfy(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err);
vr_status vr_plan_sdcpp(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err);
vr_status vr_plan_two_pass(const vr_program *p, const vr_tile_options *o, vr_tile_plan *plan, vr_error *err);
vr_status vr_plan_exact(const vr_tile_options *o, vr_tile_plan *plan, vr_error *err);

/* Executors that are more than a blend of whole decodes. */
vr_status vr_two_pass_run(const vr_program *p, const vr_tensor *latent, const vr_tile_plan *plan,
                          const vr_exec_options *opt, vr_tensor *out, vr_tile_stats *stats, vr_error *err);
vr_status vr_exact_run(const vr_program *p, const vr_tensor *latent, const vr_tile_plan *plan,
                       const vr_exec_options *opt, vr_tensor *out, vr_tile_stats *stats, vr_error *err);

/* Peak of activations of an exact run under a limit (0: none), by a dry run;
 * VR_E_BUDGET when the limit is too small. elem: bytes per element. */
vr_status vr_exact_predict(const vr_program *p, vr_shape latent, const vr_tile_options *o,
                           uint64_t memory_limit, int64_t elem, int64_t *peak, vr_error *err);

/* Appends a tile to an axis (grows by doubling). */
vr_status vr_axis_add(vr_tile_axis *axis, int64_t start, int64_t length, int64_t owned,
                      int64_t owned_length, vr_error *err);

#endif
