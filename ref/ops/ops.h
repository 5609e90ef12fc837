/* Operations as free functions on dense values (clause N4). One file each; the
 * arithmetic policy is a parameter. Values are NCTHW, f32 (f64 under truth);
 * under f16 and bf16 they are f32 that hold values of that type.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_OPS_OPS_H
#define VAEREF_OPS_OPS_H

#include "ops/kernels.h"
#include "vaeref/exec.h"
#include "vaeref/program.h"

/* How to compute; `scratch_peak` collects the largest scratch of one operation. */
typedef struct vr_arith {
    const vr_kernels *k;
    vr_policy policy;
    vr_order order;
    int32_t threads;
    uint64_t scratch_peak; /* bytes */
} vr_arith;

typedef struct vr_view {
    vr_shape shape;
    void *data; /* dense NCTHW; float, or double under truth */
} vr_view;

static inline bool vr_arith_is_f64(const vr_arith *a)
{
    return a->policy == VR_POLICY_TRUTH;
}
/* true for golden and truth: f64 accumulation in one fixed order */
static inline bool vr_arith_is_fixed(const vr_arith *a)
{
    return a->policy == VR_POLICY_GOLDEN || a->policy == VR_POLICY_TRUTH;
}

/* Elements [first, first+n) of a weight as the policy stores them, as f64. */
vr_status vr_weight_read(const vr_weight *w, vr_policy policy, int64_t first, int64_t n,
                         double *dst, vr_error *err);

/* Rounds x to the policy's 16-bit storage; nothing for the others. */
void vr_store_round(const vr_arith *a, float *x, int64_t n);

/* Scratch memory, 64-byte aligned, counted in a->scratch_peak (release with free). */
vr_status vr_scratch(vr_arith *a, uint64_t bytes, void **out, vr_error *err);

/* Weights of one convolution as the hot loops want them: packed once, applied to
 * the whole image or to any part of it with the same bits. */
typedef struct vr_conv_weights {
    int64_t co, ci, kh, kw, depth; /* depth = ci*kh*kw */
    double *packed, *bias;         /* golden, truth: [co block][depth][mr] and [co] */
    float *ordered;                /* f32, f16, bf16: [co][depth], then bias [co] */
} vr_conv_weights;

vr_status vr_conv2d_pack(vr_arith *a, const vr_op *op, const vr_weight *w, const vr_weight *bias,
                         vr_conv_weights *out, vr_error *err);
void vr_conv2d_release(vr_conv_weights *cw); /* clears */
/* y(r, s) reads x(r - pad_top + i, s - pad_left + j); what lies outside x is 0. A
 * part of an image passes x with its real neighbours and the pads that make the
 * positions agree, so that zeros appear at true borders only. */
vr_status vr_conv2d_apply(vr_arith *a, const vr_conv_weights *cw, int64_t pad_top, int64_t pad_left,
                          vr_view x, vr_view y, vr_error *err);

/* y[co][.] = bias + sum over (ci, ky, kx) of w * x, zero outside. */
vr_status vr_op_conv2d(vr_arith *a, const vr_op *op, const vr_weight *w, const vr_weight *bias,
                       vr_view x, vr_view y, vr_error *err);

/* Group norm in two steps, so that statistics may come from elsewhere (tiles).
 * moments: [n][groups]. */
typedef struct vr_moments {
    double mean, var, rstd; /* biased variance; rstd = rsqrt(var + eps) */
} vr_moments;
vr_status vr_group_norm_moments(vr_arith *a, const vr_op *op, vr_view x, vr_moments *m, vr_error *err);
/* y = (x - mean) * (rstd * gamma) + beta; y may be the memory of x. */
vr_status vr_group_norm_apply(vr_arith *a, const vr_op *op, const vr_weight *gamma,
                              const vr_weight *beta, const vr_moments *m, vr_view x, vr_view y,
                              vr_error *err);
vr_status vr_op_group_norm(vr_arith *a, const vr_op *op, const vr_weight *gamma,
                           const vr_weight *beta, vr_view x, vr_view y, vr_error *err);
vr_status vr_op_attention(vr_arith *a, const vr_op *op, vr_view q, vr_view k, vr_view v, vr_view y,
                          vr_error *err);
/* silu, relu, tanh_clamp, clamp, scale_shift; x and y may be the same memory. */
void vr_op_unary(vr_arith *a, const vr_op *op, vr_view x, vr_view y);
void vr_op_add(vr_arith *a, vr_view x0, vr_view x1, vr_view y);
/* Output cells (y0.., x0..) of the upsampled or unpacked whole, from the part of
 * the input that starts at (in_y0, in_x0) and holds every cell they read. */
void vr_upsample_part(vr_arith *a, const vr_op *op, vr_view x, int64_t in_y0, int64_t in_x0,
                      vr_view y, int64_t y0, int64_t x0);
void vr_unpack_part(vr_arith *a, const vr_op *op, vr_view x, int64_t in_y0, int64_t in_x0, vr_view y,
                    int64_t y0, int64_t x0);
void vr_op_upsample(vr_arith *a, const vr_op *op, vr_view x, vr_view y);
void vr_op_unpack(vr_arith *a, const vr_op *op, vr_view x, vr_view y);

/* The f32-accumulating forms, called by the functions above. */
vr_status vr_conv2d_pack_ordered(vr_arith *a, const vr_weight *w, const vr_weight *bias,
                                 vr_conv_weights *out, vr_error *err);
vr_status vr_conv2d_apply_ordered(vr_arith *a, const vr_conv_weights *cw, int64_t top, int64_t left,
                                  vr_view x, vr_view y, vr_error *err);
vr_status vr_attention_ordered(vr_arith *a, const vr_op *op, vr_view q, vr_view k, vr_view v,
                               vr_view y, vr_error *err);

#endif
