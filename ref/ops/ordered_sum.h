/* Sums of f32 values in the named orders (clause N6).
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_OPS_ORDERED_SUM_H
#define VAEREF_OPS_ORDERED_SUM_H

#include "vaeref/exec.h"

float vr_sum_ordered(vr_order order, const float *v, int64_t n);

#endif
