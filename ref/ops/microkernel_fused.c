/* Multiply-add tile with contraction allowed: both factors hold f32 values, so
 * the product is exact in f64 and fused equals unfused (clause N4.2). This is
 * the only translation unit compiled with -ffp-contract=fast.
 *
 * SPDX-License-Identifier: MIT */
#include "ops/isa.inc.h"
#include "ops/microkernel.inc.h"

void VR_NAME(vr_micro_fused)(const double *w, const double *x, int64_t ci, int64_t kh, int64_t kw,
                             int64_t x_c, int64_t x_r, const double *init, double *out);
void VR_NAME(vr_micro_fused)(const double *w, const double *x, int64_t ci, int64_t kh, int64_t kw,
                             int64_t x_c, int64_t x_r, const double *init, double *out)
{
    vr_micro_body(w, x, ci, kh, kw, x_c, x_r, init, out);
}
