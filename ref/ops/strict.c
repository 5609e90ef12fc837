/* Hot loops that must not contract, once per instruction set: element-wise
 * functions, group-norm sums, softmax, the strict multiply-add tile, and sums
 * in named f32 orders (clauses N4, N5, N6). Lanes run across outputs, except in
 * row_sum, whose eight lanes are part of its definition.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/detmath.h"
#include "core/smallfloat.h"
#include "ops/isa.inc.h"
#include "ops/kernels.h"
#include "ops/microkernel.inc.h"

/* ---- multiply-add tile -------------------------------------------------- */

vr_micro_fn VR_NAME(vr_micro_fused); /* microkernel_fused.c */

static void micro_strict(const double *w, const double *x, int64_t ci, int64_t kh, int64_t kw,
                         int64_t x_c, int64_t x_r, const double *init, double *out)
{
    vr_micro_body(w, x, ci, kh, kw, x_c, x_r, init, out);
}

/* ---- element-wise ------------------------------------------------------- */

static inline double silu1(double x, double a, double b)
{
    (void)a, (void)b;
    return vr_silu(x);
}
static inline double relu1(double x, double a, double b)
{
    (void)a, (void)b;
    return x < 0.0 ? 0.0 : x; /* NaN stays NaN */
}
static inline double tanh_clamp1(double x, double a, double b)
{
    (void)b;
    return a * vr_tanh(x / a);
}
static inline double clamp1(double x, double a, double b)
{
    double y = x < a ? a : x;
    return y > b ? b : y;
}
static inline double scale_shift1(double x, double a, double b)
{
    return x * a + b;
}

#define UNARY_CASE(kind, fn)                     \
    case kind:                                   \
        for (int64_t i = 0; i < n; i++)          \
            y[i] = (UNARY_T)fn((double)x[i], a, b); \
        return;

#define UNARY_FUNCTION(name, type)                                                        \
    static void name(vr_unary_kind k, const type *x, type *y, int64_t n, double a, double b) \
    {                                                                                     \
        switch (k) {                                                                      \
            UNARY_CASE(VR_U_SILU, silu1)                                                  \
            UNARY_CASE(VR_U_RELU, relu1)                                                  \
            UNARY_CASE(VR_U_TANH_CLAMP, tanh_clamp1)                                      \
            UNARY_CASE(VR_U_CLAMP, clamp1)                                                \
            UNARY_CASE(VR_U_SCALE_SHIFT, scale_shift1)                                    \
        }                                                                                 \
    }

#define UNARY_T float
UNARY_FUNCTION(unary_f32, float)
#undef UNARY_T
#define UNARY_T double
UNARY_FUNCTION(unary_f64, double)
#undef UNARY_T

/* f32 addition equals f64 addition rounded once: 53 >= 2*24 + 2 bits. */
static void add_f32(const float *a, const float *b, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}
static void add_f64(const double *a, const double *b, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

/* ---- group norm --------------------------------------------------------- */

static inline double combine8(const double l[8])
{
    return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

#define ROW_FUNCTIONS(suffix, type)                                                            \
    static double row_sum_##suffix(const type *x, int64_t n)                                   \
    {                                                                                          \
        double l[8] = {0};                                                                     \
        int64_t i = 0;                                                                         \
        for (; i + 8 <= n; i += 8)                                                             \
            for (int64_t j = 0; j < 8; j++)                                                    \
                l[j] += (double)x[i + j];                                                      \
        for (; i < n; i++)                                                                     \
            l[i & 7] += (double)x[i];                                                          \
        return combine8(l);                                                                    \
    }                                                                                          \
    static double row_sq_##suffix(const type *x, int64_t n, double mean)                       \
    {                                                                                          \
        double l[8] = {0};                                                                     \
        int64_t i = 0;                                                                         \
        for (; i + 8 <= n; i += 8)                                                             \
            for (int64_t j = 0; j < 8; j++) {                                                  \
                double d = (double)x[i + j] - mean;                                            \
                l[j] += d * d;                                                                 \
            }                                                                                  \
        for (; i < n; i++) {                                                                   \
            double d = (double)x[i] - mean;                                                    \
            l[i & 7] += d * d;                                                                 \
        }                                                                                      \
        return combine8(l);                                                                    \
    }                                                                                          \
    static void affine_##suffix(const type *x, type *y, int64_t n, double mean, double a,      \
                                double b)                                                      \
    {                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                        \
            y[i] = (type)(((double)x[i] - mean) * a + b);                                      \
    }
ROW_FUNCTIONS(f32, float)
ROW_FUNCTIONS(f64, double)

/* ---- softmax over columns of a [rows][NR] score block ------------------- */

static void softmax_columns(double *s, int64_t rows, double scale, double *sum)
{
    double top[NR];
    for (int64_t i = 0; i < NR; i++) {
        top[i] = s[i] * scale;
        sum[i] = 0.0;
    }
    for (int64_t j = 0; j < rows; j++)
        for (int64_t i = 0; i < NR; i++) {
            double v = s[j * NR + i] * scale;
            s[j * NR + i] = v;
            top[i] = v > top[i] ? v : top[i];
        }
    for (int64_t j = 0; j < rows; j++)
        for (int64_t i = 0; i < NR; i++) {
            double e = vr_exp(s[j * NR + i] - top[i]);
            s[j * NR + i] = e;
            sum[i] += e;
        }
}

/* ---- conversions and checks --------------------------------------------- */

static void widen(const float *x, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (double)x[i];
}

static bool all_finite_f32(const float *x, int64_t n)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, 4);
        bad |= (uint32_t)((u & 0x7f800000u) == 0x7f800000u);
    }
    return bad == 0;
}

static bool all_finite_f64(const double *x, int64_t n)
{
    uint64_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t u;
        memcpy(&u, x + i, 8);
        bad |= (uint64_t)((u & 0x7ff0000000000000u) == 0x7ff0000000000000u);
    }
    return bad == 0;
}

static void round_f16(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)vr_f64_from_small(vr_small_from_f64((double)x[i], &vr_fmt_f16), &vr_fmt_f16);
}

static void round_bf16(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)vr_f64_from_small(vr_small_from_f64((double)x[i], &vr_fmt_bf16), &vr_fmt_bf16);
}

/* ---- f32 sums of products in named orders ------------------------------- */

enum { W = VR_ORDERED_LANES };

static inline void mul_add(float *acc, float w, const float *col)
{
    for (int i = 0; i < W; i++)
        acc[i] += w * col[i]; /* rounded product, then rounded sum */
}

static void lanes_dot(int lanes, const float *w, const float *col, int64_t k, float *out)
{
    float acc[32][W];
    memset(acc, 0, sizeof(float) * (size_t)lanes * W);
    for (int64_t j = 0; j < k; j++)
        mul_add(acc[j % lanes], w[j], col + j * W);
    for (int half = lanes / 2; half >= 1; half /= 2)
        for (int l = 0; l < half; l++)
            for (int i = 0; i < W; i++)
                acc[l][i] += acc[l + half][i];
    memcpy(out, acc[0], sizeof acc[0]);
}

/* Binary counter: partial[b] holds a sum of 2^b consecutive products. */
static void pairwise_dot(const float *w, const float *col, int64_t k, float *out)
{
    float partial[48][W], run[W];
    for (int64_t j = 0; j < k; j++) {
        for (int i = 0; i < W; i++)
            run[i] = w[j] * col[j * W + i];
        int b = 0;
        for (int64_t t = j; t & 1; t >>= 1, b++)
            for (int i = 0; i < W; i++)
                run[i] = partial[b][i] + run[i];
        memcpy(partial[b], run, sizeof run);
    }
    bool first = true;
    for (int b = 0; b < 48; b++) {
        if (!((k >> b) & 1))
            continue;
        for (int i = 0; i < W; i++)
            run[i] = first ? partial[b][i] : partial[b][i] + run[i];
        first = false;
    }
    if (first)
        memset(run, 0, sizeof run);
    memcpy(out, run, sizeof run);
}

static void kblock_dot(const float *w, const float *col, int64_t k, float *out)
{
    float total[W] = {0};
    for (int64_t j = 0; j < k; j += 64) {
        float acc[W] = {0};
        int64_t end = j + 64 < k ? j + 64 : k;
        for (int64_t t = j; t < end; t++)
            mul_add(acc, w[t], col + t * W);
        for (int i = 0; i < W; i++)
            total[i] += acc[i];
    }
    memcpy(out, total, sizeof total);
}

static void ordered_dot32(vr_order order, const float *w, const float *col, int64_t k, float *out)
{
    switch (order) {
    case VR_ORDER_LANES8:
        lanes_dot(8, w, col, k, out);
        return;
    case VR_ORDER_LANES32:
        lanes_dot(32, w, col, k, out);
        return;
    case VR_ORDER_PAIRWISE:
        pairwise_dot(w, col, k, out);
        return;
    case VR_ORDER_KBLOCK64:
        kblock_dot(w, col, k, out);
        return;
    case VR_ORDER_SEQ:
    case VR_ORDER_COUNT:
        break;
    }
    float acc[W] = {0};
    for (int64_t j = 0; j < k; j++)
        mul_add(acc, w[j], col + j * W);
    memcpy(out, acc, sizeof acc);
}

const vr_kernels VR_NAME(vr_kernels_table);
const vr_kernels VR_NAME(vr_kernels_table) = {
    .name = VR_ISA_TEXT,
    .mr = MR,
    .nr = (int32_t)NR,
    .micro_fused = VR_NAME(vr_micro_fused),
    .micro_strict = micro_strict,
    .unary_f32 = unary_f32,
    .unary_f64 = unary_f64,
    .add_f32 = add_f32,
    .add_f64 = add_f64,
    .row_sum_f32 = row_sum_f32,
    .row_sum_f64 = row_sum_f64,
    .row_sq_f32 = row_sq_f32,
    .row_sq_f64 = row_sq_f64,
    .affine_f32 = affine_f32,
    .affine_f64 = affine_f64,
    .softmax_columns = softmax_columns,
    .widen = widen,
    .all_finite_f32 = all_finite_f32,
    .all_finite_f64 = all_finite_f64,
    .round_f16 = round_f16,
    .round_bf16 = round_bf16,
    .ordered_dot32 = ordered_dot32,
};
