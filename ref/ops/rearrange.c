/* Operations that only move values: nearest upsampling and channel un-packing
 * (clause N4.5). Exact under every policy.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "ops/ops.h"

/* y[s] = x[(x0 + s) / f - in_x0] */
static void repeat_row(bool f64, const void *x, void *y, int64_t w, int64_t f, int64_t x0, int64_t in_x0)
{
    int64_t s = 0, from = x0 / f - in_x0, left = f - x0 % f; /* repeats left of the first value */
    for (; s < w; from++, left = f)
        for (; left > 0 && s < w; left--, s++) {
            if (f64)
                ((double *)y)[s] = ((const double *)x)[from];
            else
                ((float *)y)[s] = ((const float *)x)[from];
        }
}

void vr_upsample_part(vr_arith *a, const vr_op *op, vr_view x, int64_t in_y0, int64_t in_x0,
                      vr_view y, int64_t y0, int64_t x0)
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
            int64_t from = (y0 + r) / fh - in_y0;
            const char *src = (const char *)x.data + (plane * xs.h + from) * xs.w * elem;
            char *dst = (char *)y.data + (i * ys.h + r) * ys.w * elem;
            if (r == 0 || (y0 + r) % fh == 0)
                repeat_row(f64, src, dst, ys.w, fw, x0, in_x0);
            else
                memcpy(dst, dst - ys.w * elem, (size_t)(ys.w * elem));
        }
    }
}

void vr_unpack_part(vr_arith *a, const vr_op *op, vr_view x, int64_t in_y0, int64_t in_x0, vr_view y,
                    int64_t y0, int64_t x0)
{
    const int64_t elem = vr_arith_is_f64(a) ? 8 : 4, fh = op->p.unpack.fh, fw = op->p.unpack.fw;
    const vr_shape xs = x.shape, ys = y.shape;
    /* y[n][c][t][r*fh+i][s*fw+j] = x[n][(c*fh+i)*fw+j][t][r][s] */
#pragma omp parallel for schedule(static) num_threads(a->threads)
    for (int64_t p = 0; p < ys.n * ys.c * ys.t; p++) {
        int64_t t = p % ys.t, c = p / ys.t % ys.c, n = p / ys.t / ys.c;
        for (int64_t r = 0; r < ys.h; r++)
            for (int64_t s = 0; s < ys.w; s++) {
                int64_t ay = y0 + r, ax = x0 + s, from = (c * fh + ay % fh) * fw + ax % fw;
                int64_t row = ((n * xs.c + from) * xs.t + t) * xs.h + ay / fh - in_y0;
                memcpy((char *)y.data + ((p * ys.h + r) * ys.w + s) * elem,
                       (const char *)x.data + (row * xs.w + ax / fw - in_x0) * elem, (size_t)elem);
            }
    }
}

void vr_op_upsample(vr_arith *a, const vr_op *op, vr_view x, vr_view y)
{
    vr_upsample_part(a, op, x, 0, 0, y, 0, 0);
}

void vr_op_unpack(vr_arith *a, const vr_op *op, vr_view x, vr_view y)
{
    vr_unpack_part(a, op, x, 0, 0, y, 0, 0);
}
