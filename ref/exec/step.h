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

#endif
