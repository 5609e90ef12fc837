/* Element-wise operations (clause N4.4): each output from f64 arithmetic on its
 * own inputs, rounded once to f32 and, under f16 and bf16, once more to storage.
 * Input and output may be the same memory.
 *
 * SPDX-License-Identifier: MIT */
#include "ops/ops.h"

enum { CHUNK = 16384 };

static int64_t elements(vr_shape s)
{
    return s.n * s.c * s.t * s.h * s.w;
}

static void unary_span(vr_arith *a, vr_unary_kind k, vr_view x, vr_view y, int64_t first,
                       int64_t n, double p0, double p1)
{
    if (vr_arith_is_f64(a)) {
        a->k->unary_f64(k, (const double *)x.data + first, (double *)y.data + first, n, p0, p1);
        return;
    }
    float *dst = (float *)y.data + first;
    a->k->unary_f32(k, (const float *)x.data + first, dst, n, p0, p1);
    vr_store_round(a, dst, n);
}

void vr_op_unary(vr_arith *a, const vr_op *op, vr_view x, vr_view y)
{
    const int64_t total = elements(y.shape);
    if (op->kind == VR_OP_SCALE_SHIFT) {
        const int64_t plane = y.shape.t * y.shape.h * y.shape.w, planes = y.shape.n * y.shape.c;
#pragma omp parallel for schedule(static) num_threads(a->threads)
        for (int64_t i = 0; i < planes; i++) {
            int64_t c = i % y.shape.c;
            unary_span(a, VR_U_SCALE_SHIFT, x, y, i * plane, plane, op->p.scale_shift.scale[c],
                       op->p.scale_shift.shift[c]);
        }
        return;
    }
    vr_unary_kind k = VR_U_SILU;
    double p0 = 0.0, p1 = 0.0;
    if (op->kind == VR_OP_RELU) {
        k = VR_U_RELU;
    } else if (op->kind == VR_OP_TANH_CLAMP) {
        k = VR_U_TANH_CLAMP;
        p0 = op->p.tanh_clamp.limit;
    } else if (op->kind == VR_OP_CLAMP) {
        k = VR_U_CLAMP;
        p0 = op->p.clamp.lo;
        p1 = op->p.clamp.hi;
    }
#pragma omp parallel for schedule(static) num_threads(a->threads)
    for (int64_t i = 0; i < (total + CHUNK - 1) / CHUNK; i++) {
        int64_t first = i * CHUNK, n = total - first < CHUNK ? total - first : CHUNK;
        unary_span(a, k, x, y, first, n, p0, p1);
    }
}

void vr_op_add(vr_arith *a, vr_view x0, vr_view x1, vr_view y)
{
    const int64_t total = elements(y.shape);
#pragma omp parallel for schedule(static) num_threads(a->threads)
    for (int64_t i = 0; i < (total + CHUNK - 1) / CHUNK; i++) {
        int64_t first = i * CHUNK, n = total - first < CHUNK ? total - first : CHUNK;
        if (vr_arith_is_f64(a)) {
            a->k->add_f64((const double *)x0.data + first, (const double *)x1.data + first,
                          (double *)y.data + first, n);
        } else {
            float *dst = (float *)y.data + first;
            a->k->add_f32((const float *)x0.data + first, (const float *)x1.data + first, dst, n);
            vr_store_round(a, dst, n);
        }
    }
}
