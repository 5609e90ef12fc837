/* conv2d with f32 accumulation in a named order (clause N6.1): per output the
 * products over (ci, ky, kx) are rounded to f32 and summed in that order, the
 * bias is added last, and the result is rounded to the policy's storage.
 * Lanes run across 32 output columns; a column block's inputs are gathered into
 *     col[k][32]
 * once and reused by every output channel.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "ops/ops.h"

enum { LANES = VR_ORDERED_LANES };

static void gather(const vr_conv_weights *cw, int64_t top, int64_t left, vr_shape xs,
                   const float *image, int64_t y, int64_t x0, float *col)
{
    int64_t plane = xs.t * xs.h * xs.w;
    for (int64_t c = 0; c < xs.c; c++)
        for (int64_t ky = 0; ky < cw->kh; ky++)
            for (int64_t kx = 0; kx < cw->kw; kx++, col += LANES) {
                int64_t iy = y + ky - top;
                for (int64_t i = 0; i < LANES; i++) {
                    int64_t ix = x0 + i + kx - left;
                    bool inside = iy >= 0 && iy < xs.h && ix >= 0 && ix < xs.w;
                    col[i] = inside ? image[c * plane + iy * xs.w + ix] : 0.0f;
                }
            }
}

static vr_status read_f32(const vr_weight *w, vr_policy policy, float *dst, vr_error *err)
{
    enum { PART = 2048 };
    double tmp[PART];
    for (int64_t i = 0; i < w->count; i += PART) {
        int64_t n = w->count - i < PART ? w->count - i : PART;
        vr_status s = vr_weight_read(w, policy, i, n, tmp, err);
        if (s != VR_OK)
            return s;
        for (int64_t j = 0; j < n; j++)
            dst[i + j] = (float)tmp[j]; /* exact: the policy's storage fits f32 */
    }
    return VR_OK;
}

/* ordered[co][depth], then bias[co]. */
vr_status vr_conv2d_pack_ordered(vr_arith *a, const vr_weight *w, const vr_weight *bias,
                                 vr_conv_weights *out, vr_error *err)
{
    vr_status s = vr_scratch(a, (uint64_t)(w->count + out->co) * 4, (void **)&out->ordered, err);
    if (s != VR_OK)
        return s;
    memset(out->ordered + w->count, 0, (size_t)out->co * 4);
    s = read_f32(w, a->policy, out->ordered, err);
    if (s == VR_OK && bias)
        s = read_f32(bias, a->policy, out->ordered + w->count, err);
    if (s != VR_OK)
        vr_conv2d_release(out);
    return s;
}

vr_status vr_conv2d_apply_ordered(vr_arith *a, const vr_conv_weights *cw, int64_t top, int64_t left,
                                  vr_view x, vr_view y, vr_error *err)
{
    const vr_shape xs = x.shape, ys = y.shape;
    const int64_t across = (ys.w + LANES - 1) / LANES, items = ys.n * ys.t * ys.h * across;
    const float *add = cw->ordered + cw->co * cw->depth;
    float *cols = NULL;
    vr_status s = vr_scratch(a, (uint64_t)(cw->depth * LANES * a->threads) * 4, (void **)&cols, err);
    if (s != VR_OK)
        return s;
#pragma omp parallel for schedule(dynamic) num_threads(a->threads)
    for (int64_t i = 0; i < items; i++) {
        float *col = cols + (int64_t)omp_get_thread_num() * cw->depth * LANES;
        int64_t x0 = i % across * LANES, row = i / across % ys.h, image = i / across / ys.h;
        int64_t n = image / ys.t, t = image % ys.t;
        int64_t columns = ys.w - x0 < LANES ? ys.w - x0 : LANES;
        gather(cw, top, left, xs, (const float *)x.data + (n * xs.c * xs.t + t) * xs.h * xs.w, row,
               x0, col);
        for (int64_t c = 0; c < ys.c; c++) {
            float out[LANES];
            a->k->ordered_dot32(a->order, cw->ordered + c * cw->depth, col, cw->depth, out);
            for (int64_t j = 0; j < columns; j++)
                out[j] += add[c];
            vr_store_round(a, out, columns);
            float *dst = (float *)y.data + ((n * ys.c + c) * ys.t + t) * ys.h * ys.w;
            memcpy(dst + row * ys.w + x0, out, (size_t)columns * 4);
        }
    }
    free(cols);
    return VR_OK;
}
