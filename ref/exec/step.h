/* One operation of a program, for everything that walks one.
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_EXEC_STEP_H
#define VAEREF_EXEC_STEP_H

#include "ops/ops.h"

/* Weight k of an operation, or NULL. */
const vr_weight *vr_op_weight(const vr_program *p, const vr_op *op, int k);

/* out = operation i of in[0..2]; `out` may be the memory of an input that
 * vr_program_in_place allows. */
vr_status vr_exec_op(vr_arith *a, const vr_program *p, int32_t i, const vr_view in[3], vr_view out,
                     vr_error *err);

/* Monotonic wall clock, seconds. */
double vr_seconds_now(void);

/* What every walk reports: time since `start`, threads, instruction set, scratch,
 * the pool (may be NULL) and the first non-finite value. op_seconds is kept. */
void vr_fill_stats(vr_exec_stats *stats, const vr_arith *a, const vr_pool *pool, double start,
                   const vr_nonfinite *nonfinite);

/* Looks for a NaN or an infinity in value `op` ([count] elements, f32 or f64 as
 * the policy stores). True when there is one; then *out is filled. */
bool vr_find_nonfinite(const vr_arith *a, int32_t op, const void *data, int64_t count, vr_nonfinite *out);

#endif
