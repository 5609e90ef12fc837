/* Group norm (clause N4.3): per sample and group, mean and biased variance over
 * (channels of the group) x frames x rows x columns, in two passes. A sum is
 * formed row by row (rows in memory order c, t, y; each row as kernels.h says),
 * so it does not depend on how an image was cut into tiles of whole rows.
 *   y = (x - mean) * (gamma / sqrt(var + eps)) + beta
 * y may be the memory of x: statistics are complete before the first write.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include <omp.h>

#include "core/detmath.h"
#include "ops/ops.h"
#include "ops/ordered_sum.h"

static vr_moments fixed_moments(const vr_arith *a, const void *x, int64_t rows, int64_t w, double eps)
{
    const double count = (double)(rows * w);
    const bool f64 = vr_arith_is_f64(a);
    double sum = 0.0, sq = 0.0;
    for (int64_t r = 0; r < rows; r++)
        sum += f64 ? a->k->row_sum_f64((const double *)x + r * w, w)
                   : a->k->row_sum_f32((const float *)x + r * w, w);
    double mean = sum / count;
    for (int64_t r = 0; r < rows; r++)
        sq += f64 ? a->k->row_sq_f64((const double *)x + r * w, w, mean)
                  : a->k->row_sq_f32((const float *)x + r * w, w, mean);
    double var = sq / count;
    return (vr_moments){mean, var, vr_rsqrt(var + eps)};
}

/* The same in f32: each row, then the row sums, in the named order. */
static vr_moments ordered_moments(const vr_arith *a, const float *x, int64_t rows, int64_t w,
                               double eps, float *sums, float *squares)
{
    const float count = (float)(rows * w);
    for (int64_t r = 0; r < rows; r++)
        sums[r] = vr_sum_ordered(a->order, x + r * w, w);
    float mean = vr_sum_ordered(a->order, sums, rows) / count;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < w; i++) {
            float d = x[r * w + i] - mean;
            squares[i] = d * d;
        }
        sums[r] = vr_sum_ordered(a->order, squares, w);
    }
    float var = vr_sum_ordered(a->order, sums, rows) / count;
    return (vr_moments){(double)mean, (double)var, (double)(float)vr_rsqrt((double)(var + (float)eps))};
}

static void apply_channel(const vr_arith *a, const void *x, void *y, int64_t n, vr_moments m,
                          double gamma, double beta)
{
    if (vr_arith_is_f64(a)) {
        a->k->affine_f64(x, y, n, m.mean, m.rstd * gamma, beta);
    } else if (a->policy == VR_POLICY_GOLDEN) {
        a->k->affine_f32(x, y, n, m.mean, m.rstd * gamma, beta);
    } else {
        const float *src = x;
        float *dst = y, mean = (float)m.mean, scale = (float)m.rstd * (float)gamma, shift = (float)beta;
        for (int64_t i = 0; i < n; i++)
            dst[i] = (src[i] - mean) * scale + shift;
        vr_store_round(a, dst, n);
    }
}

vr_status vr_group_norm_moments(vr_arith *a, const vr_op *op, vr_view x, vr_moments *m, vr_error *err)
{
    const vr_shape s = x.shape;
    const int64_t groups = op->p.group_norm.groups, per = s.c / groups, plane = s.t * s.h * s.w;
    const int64_t elem = vr_arith_is_f64(a) ? 8 : 4, rows = per * s.t * s.h;
    float *space = NULL; /* per thread: row sums, one row */
    vr_status st = vr_scratch(a, (uint64_t)((rows + s.w) * a->threads) * 4, (void **)&space, err);
    if (st != VR_OK)
        return st;
#pragma omp parallel for schedule(dynamic) num_threads(a->threads)
    for (int64_t i = 0; i < s.n * groups; i++) {
        const char *src = (const char *)x.data + i * per * plane * elem;
        float *sums = space + omp_get_thread_num() * (rows + s.w);
        m[i] = vr_arith_is_fixed(a)
                   ? fixed_moments(a, src, rows, s.w, op->p.group_norm.eps)
                   : ordered_moments(a, (const float *)(const void *)src, rows, s.w,
                                     op->p.group_norm.eps, sums, sums + rows);
    }
    free(space);
    return VR_OK;
}

vr_status vr_group_norm_apply(vr_arith *a, const vr_op *op, const vr_weight *gamma,
                              const vr_weight *beta, const vr_moments *m, vr_view x, vr_view y,
                              vr_error *err)
{
    const vr_shape s = x.shape;
    const int64_t groups = op->p.group_norm.groups, per = s.c / groups, plane = s.t * s.h * s.w;
    const int64_t elem = vr_arith_is_f64(a) ? 8 : 4;
    double *affine = NULL; /* gamma[c], beta[c] */
    vr_status st = vr_scratch(a, (uint64_t)(2 * s.c) * 8, (void **)&affine, err);
    if (st == VR_OK)
        st = vr_weight_read(gamma, a->policy, 0, s.c, affine, err);
    if (st == VR_OK)
        st = vr_weight_read(beta, a->policy, 0, s.c, affine + s.c, err);
    if (st == VR_OK) {
#pragma omp parallel for schedule(static) num_threads(a->threads)
        for (int64_t i = 0; i < s.n * s.c; i++) {
            int64_t n = i / s.c, c = i % s.c;
            apply_channel(a, (const char *)x.data + i * plane * elem, (char *)y.data + i * plane * elem,
                          plane, m[n * groups + c / per], affine[c], affine[s.c + c]);
        }
    }
    free(affine);
    return st;
}

vr_status vr_op_group_norm(vr_arith *a, const vr_op *op, const vr_weight *gamma,
                           const vr_weight *beta, vr_view x, vr_view y, vr_error *err)
{
    vr_moments *m = NULL;
    vr_status st = vr_scratch(a, (uint64_t)(x.shape.n * op->p.group_norm.groups) * sizeof *m,
                              (void **)&m, err);
    if (st == VR_OK)
        st = vr_group_norm_moments(a, op, x, m, err);
    if (st == VR_OK)
        st = vr_group_norm_apply(a, op, gamma, beta, m, x, y, err);
    free(m);
    return st;
}
