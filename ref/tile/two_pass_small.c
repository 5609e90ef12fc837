/* The small copy of a latent that two-pass-fast takes its statistics from
 * (clause T9.3).
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "tile/internal.h"

vr_shape vr_two_pass_small(const vr_tile_plan *plan)
{
    vr_shape l = plan->latent;
    const int64_t longer = l.h > l.w ? l.h : l.w, side = plan->options.tile_h / plan->grid[0].h.scale;
    l.h = l.h * side / longer;
    l.w = l.w * side / longer;
    l.h = l.h < 1 ? 1 : l.h;
    l.w = l.w < 1 ? 1 : l.w;
    return l;
}

static void channel_range(const float *x, int64_t n, double *mean, double *std, double *lo, double *hi)
{
    double sum = 0.0, sq = 0.0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double v = (double)x[i];
        sq += (v - *mean) * (v - *mean);
        *lo = v < *lo ? v : *lo;
        *hi = v > *hi ? v : *hi;
    }
    *std = n > 1 ? sqrt(sq / (double)(n - 1)) : 0.0;
}

/* Nearest-exact to a longer side of `side` cells, each channel brought back to
 * the whole's mean and deviation, clamped to the whole's range. */
vr_status vr_two_pass_small_copy(const vr_tensor *z, vr_shape small, vr_tensor *out, vr_error *err)
{
    const int64_t planes = z->dim[0] * z->dim[1], H = z->dim[2], W = z->dim[3];
    const int64_t dim[4] = {small.n, small.c, small.h, small.w};
    vr_status st = vr_tensor_new(out, VR_F32, 4, dim, err);
    if (st != VR_OK)
        return st;
    const int64_t n = dim[2] * dim[3];
    double lo = INFINITY, hi = -INFINITY, mean, std, a = 0, b = 0;
    channel_range(z->data, planes * H * W, &mean, &std, &lo, &hi);
    for (int64_t p = 0; p < planes; p++) {
        const float *src = (const float *)z->data + p * H * W;
        float *dst = (float *)out->data + p * n;
        double m0, s0, m1, s1;
        for (int64_t y = 0; y < dim[2]; y++)
            for (int64_t x = 0; x < dim[3]; x++)
                dst[y * dim[3] + x] = src[(2 * y + 1) * H / (2 * dim[2]) * W + (2 * x + 1) * W / (2 * dim[3])];
        channel_range(src, H * W, &m0, &s0, &a, &b);
        channel_range(dst, n, &m1, &s1, &a, &b);
        for (int64_t i = 0; i < n; i++) {
            double v = s1 > 0.0 ? ((double)dst[i] - m1) / s1 * s0 + m0 : (double)dst[i];
            dst[i] = (float)(v < lo ? lo : v > hi ? hi : v);
        }
    }
    return VR_OK;
}
