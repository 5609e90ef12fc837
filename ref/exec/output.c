/* From decoder output to 8-bit samples (clause F4).
 * SPDX-License-Identifier: MIT */
#include "vaeref/exec.h"

/* Round half to even of a value in [0, 255], without the rounding mode. */
static uint8_t round_half_even(double v)
{
    double whole = (double)(int)v, rest = v - whole;
    int up = rest > 0.5 || (rest == 0.5 && ((int)whole & 1));
    return (uint8_t)((int)whole + up);
}

int64_t vr_to_u8(const float *src, int64_t c, int64_t h, int64_t w, double range_lo,
                 double range_hi, uint8_t *dst)
{
    int64_t nan = 0;
    const double width = range_hi - range_lo;
    for (int64_t k = 0; k < c; k++)
        for (int64_t i = 0; i < h * w; i++) {
            double v = ((double)src[k * h * w + i] - range_lo) / width;
            if (v != v) {
                nan++;
                v = 0.0;
            }
            v = v < 0.0 ? 0.0 : v > 1.0 ? 1.0 : v;
            dst[i * c + k] = round_half_even(v * 255.0);
        }
    return nan;
}
