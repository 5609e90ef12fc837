/* Operations that only move values: nearest upsampling and channel un-packing
 * (clause N4.5). Exact under every policy.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "ops/ops.h"

/* One output row from one input row, each value repeated `f` times. */
static void repeat_row(bool f64, const void *x, void *y, int64_t w, int64_t f)
{
    if (f64) {
        const double *s = x;
        double *d = y;
        for (int64_t i = 0; i < w; i++)
            for (int64_t j = 0; j < f; j++)
                d[i * f + j] = s[i];
    } else {
        const float *s = x;
        float *d = y;
        for (int64_t i = 0; i < w; i++)
            for (int64_t j = 0; j < f; j++)
                d[i * f + j] = s[i];
    }
}

void vr_op_upsample(vr_arith *a, const vr_op *op, vr_view x, vr_view y)
{
    const bool f64 = vr_arith_is_f64(a);
    const int64_t elem = f64 ? 8 : 4, ft = op->p.upsample.factor_t, fh = op->p.upsample.factor_h,
                  fw = op->p.upsample.factor_w;
    const vr_shape xs = x.shape, ys = y.shape;
    /* planes [n][c][t] of the output; each reads plane t / ft of the input */
#pragma omp parallel for schedule(static) num_threads(a->threads)
    for (int64_t i = 0; i < ys.n * ys.c * ys.t; i++) {
        int64_t plane = i / ys.t * xs.t + i % ys.t / ft;
        for (int64_t r = 0; r < ys.h; r++) {
            const char *src = (const char *)x.data + (plane * xs.h + r / fh) * xs.w * elem;
            char *dst = (char *)y.data + (i * ys.h + r) * ys.w * elem;
            if (r % fh == 0)
                repeat_row(f64, src, dst, xs.w, fw);
            else
                memcpy(dst, dst - ys.w * elem, (size_t)(ys.w * elem));
        }
    }
}

void vr_op_unpack(vr_arith *a, const vr_op *op, vr_view x, vr_view y)
{
    const int64_t elem = vr_arith_is_f64(a) ? 8 : 4, fh = op->p.unpack.fh, fw = op->p.unpack.fw;
    const vr_shape xs = x.shape, ys = y.shape;
    /* y[n][c][t][r*fh+i][s*fw+j] = x[n][(c*fh+i)*fw+j][t][r][s] */
#pragma omp parallel for schedule(static) num_threads(a->threads)
    for (int64_t p = 0; p < ys.n * ys.c * ys.t; p++) {
        int64_t t = p % ys.t, c = p / ys.t % ys.c, n = p / ys.t / ys.c;
        for (int64_t r = 0; r < ys.h; r++)
            for (int64_t s = 0; s < ys.w; s++) {
                int64_t from = (c * fh + r % fh) * fw + s % fw;
                int64_t index = (((n * xs.c + from) * xs.t + t) * xs.h + r / fh) * xs.w + s / fw;
                memcpy((char *)y.data + ((p * ys.h + r) * ys.w + s) * elem,
                       (const char *)x.data + index * elem, (size_t)elem);
            }
    }
}
