/* Hot loops, one table per instruction set (clauses N4, N5, N6).
 *
 * Every entry computes the same bits in every table: lanes run across outputs,
 * never along a sum, and only products of two f32 values (exact in f64) may be
 * contracted into a fused multiply-add. The sources are compiled once per
 * instruction set: microkernel_fused.c with contraction, strict.c without.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_OPS_KERNELS_H
#define VAEREF_OPS_KERNELS_H

#include <stdint.h>

#include "vaeref/core.h"
#include "vaeref/exec.h"

/* Largest tile any table uses: rows of `weights` (mr) by lanes (nr). */
#define VR_MAX_MR 8
#define VR_MAX_NR 32

/* out[m][i] = init[m] + sum over c, ky, kx (in that order, one chain per output)
 *             of w[((c*kh + ky)*kw + kx)*mr + m] * x[c*x_c + ky*x_r + kx + i]
 * for m < mr, i < nr. `x` is readable for nr + kw - 1 lanes per row. */
typedef void vr_micro_fn(const double *w, const double *x, int64_t ci, int64_t kh, int64_t kw,
                         int64_t x_c, int64_t x_r, const double *init, double *out);

/* Element-wise functions evaluated in f64, rounded once to f32. */
typedef enum vr_unary_kind { VR_U_SILU, VR_U_RELU, VR_U_TANH_CLAMP, VR_U_CLAMP, VR_U_SCALE_SHIFT } vr_unary_kind;

typedef struct vr_kernels {
    const char *name;  /* "portable", "x86-64-v2", ... */
    int32_t mr, nr;
    vr_micro_fn *micro_fused;  /* both factors hold f32 values */
    vr_micro_fn *micro_strict; /* any factors: product rounded, then added */

    /* y[i] = f(x[i]); a, b: parameters (limit; lo, hi; scale, shift). */
    void (*unary_f32)(vr_unary_kind k, const float *x, float *y, int64_t n, double a, double b);
    void (*unary_f64)(vr_unary_kind k, const double *x, double *y, int64_t n, double a, double b);
    void (*add_f32)(const float *a, const float *b, float *y, int64_t n);
    void (*add_f64)(const double *a, const double *b, double *y, int64_t n);

    /* Row sums of group norm: sum of x[i], or of (x[i]-mean)^2, in eight lanes
     * (lane l takes i = l mod 8), lanes combined ((0+4)+(2+6))+((1+5)+(3+7)). */
    double (*row_sum_f32)(const float *x, int64_t n);
    double (*row_sum_f64)(const double *x, int64_t n);
    double (*row_sq_f32)(const float *x, int64_t n, double mean);
    double (*row_sq_f64)(const double *x, int64_t n, double mean);
    /* y = (x - mean) * a + b */
    void (*affine_f32)(const float *x, float *y, int64_t n, double mean, double a, double b);
    void (*affine_f64)(const double *x, double *y, int64_t n, double mean, double a, double b);

    /* s[j*nr + i] <- exp(s*scale - max_j), sum[i] = sum over j in order. */
    void (*softmax_columns)(double *s, int64_t rows, double scale, double *sum);

    /* Widening copies used when packing. */
    void (*widen)(const float *x, double *y, int64_t n);
    /* true when every value is finite */
    bool (*all_finite_f32)(const float *x, int64_t n);
    bool (*all_finite_f64)(const double *x, int64_t n);
    /* y[i] = x[i] rounded to f16 / bf16, kept as f32. */
    void (*round_f16)(float *x, int64_t n);
    void (*round_bf16)(float *x, int64_t n);

    /* f32 accumulation in a named order (clause N6):
     * out[i] = order-sum over k of w[k] * col[k*lanes + i], i < lanes (= 32). */
    void (*ordered_dot32)(vr_order order, const float *w, const float *col, int64_t k, float *out);
} vr_kernels;

#define VR_ORDERED_LANES 32

/* The table to use: best for this machine, or the one VAEREF_ISA names. */
vr_status vr_kernels_get(const vr_kernels **out, vr_error *err);

#endif
