/* Every arithmetic operation against plain loops written straight from the
 * specification (clauses N4, N6): the results must be equal bit for bit, under
 * golden, truth, and every policy and order with f32 accumulation.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/detmath.h"
#include "vaeref/exec.h"

/* ---- plain f32 sums in an order (N6.1) ---------------------------------- */

static float sum_lanes(const float *p, int64_t k, int lanes)
{
    float l[32] = {0};
    for (int64_t i = 0; i < k; i++)
        l[i % lanes] += p[i];
    for (int half = lanes / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            l[i] += l[i + half];
    return l[0];
}

/* Recursive form: the largest power of two first, then the rest. */
static float sum_pairwise(const float *p, int64_t k)
{
    if (k == 1)
        return p[0];
    int64_t left = 1;
    while (left * 2 < k)
        left *= 2;
    return sum_pairwise(p, left) + sum_pairwise(p + left, k - left);
}

static float sum_order(vr_order o, const float *p, int64_t k)
{
    if (k == 0)
        return 0.0f;
    switch (o) {
    case VR_ORDER_LANES8:
        return sum_lanes(p, k, 8);
    case VR_ORDER_LANES32:
        return sum_lanes(p, k, 32);
    case VR_ORDER_PAIRWISE:
        return sum_pairwise(p, k);
    case VR_ORDER_KBLOCK64: {
        float t = 0.0f;
        for (int64_t i = 0; i < k; i += 64)
            t += sum_lanes(p + i, k - i < 64 ? k - i : 64, 1);
        return t;
    }
    default:
        return sum_lanes(p, k, 1);
    }
}

static float store(vr_policy p, float x)
{
    return p == VR_POLICY_F16 ? vr_round_to(VR_F16, x) : p == VR_POLICY_BF16 ? vr_round_to(VR_BF16, x) : x;
}

/* ---- one-operation programs --------------------------------------------- */

typedef struct fixture {
    vr_policy policy;
    vr_order order;
    vr_tensor x, y;
    float *w, *b; /* raw weights */
} fixture;

static float *randoms(int64_t n, uint64_t stream, float centre)
{
    float *v = malloc((size_t)n * 4);
    for (int64_t i = 0; i < n; i++)
        v[i] = centre + vr_random_normal(11, stream, (uint64_t)i);
    return v;
}

static void latent(fixture *f, int64_t n, int64_t c, int64_t h, int64_t w, float centre)
{
    const int64_t dim[4] = {n, c, h, w};
    cr_assert_eq(vr_tensor_new(&f->x, VR_F32, 4, dim, NULL), VR_OK);
    for (int64_t i = 0; i < n * c * h * w; i++)
        ((float *)f->x.data)[i] = centre + vr_random_normal(5, 1, (uint64_t)i);
}

static void run(fixture *f, vr_program *p, int32_t out)
{
    vr_error err;
    const vr_exec_options opt = {.policy = f->policy, .order = f->order, .threads = 2};
    cr_assert_eq(vr_program_finish(p, out, -1.0, 1.0, &err), VR_OK, "%s", err.text);
    cr_assert_eq(vr_exec_run(p, &f->x, &opt, &f->y, NULL, &err), VR_OK, "%s", err.text);
    vr_program_free(p);
}

static void done(fixture *f)
{
    vr_tensor_free(&f->x);
    vr_tensor_free(&f->y);
    free(f->w);
    free(f->b);
}

/* Bit equality of output element i with the expected f64 or f32 value. */
static void expect(const fixture *f, int64_t i, double want64, float want32, const char *what)
{
    if (f->policy == VR_POLICY_TRUTH)
        cr_assert(memcmp((double *)f->y.data + i, &want64, 8) == 0, "%s %s element %lld: %.17g, not %.17g",
                  what, vr_policy_name(f->policy), (long long)i, ((double *)f->y.data)[i], want64);
    else
        cr_assert(memcmp((float *)f->y.data + i, &want32, 4) == 0, "%s %s %s element %lld: %.9g, not %.9g",
                  what, vr_policy_name(f->policy), vr_order_name(f->order), (long long)i,
                  (double)((float *)f->y.data)[i], (double)want32);
}

#define FOR_EACH_POLICY(f)                                                      \
    for (int pol = 0; pol < VR_POLICY_COUNT; pol++)                             \
        for (int ord = 0; ord < (pol <= VR_POLICY_TRUTH ? 1 : VR_ORDER_COUNT); ord++) \
            if ((f.policy = (vr_policy)pol, f.order = (vr_order)ord, true))

/* ---- conv2d ------------------------------------------------------------- */

typedef struct conv_case {
    int64_t n, ci, co, h, w, kh, kw, top, bottom, left, right;
    bool bias;
} conv_case;

static void check_conv(fixture f, const conv_case *c)
{
    latent(&f, c->n, c->ci, c->h, c->w, 0.1f);
    int64_t k = c->ci * c->kh * c->kw, dim[4] = {c->co, c->ci, c->kh, c->kw};
    f.w = randoms(c->co * k, 2, 0.05f);
    f.b = randoms(c->co, 3, 0.0f);
    vr_program *p = vr_program_new("t", c->ci);
    int32_t w = vr_program_weight(p, "w", "w", VR_F32, 4, dim, f.w);
    int32_t b = c->bias ? vr_program_weight(p, "b", "b", VR_F32, 1, dim, f.b) : -1;
    run(&f, p, vr_program_conv2d_pads(p, "y", 0, w, b, c->top, c->bottom, c->left, c->right));
    int64_t oh = c->h + c->top + c->bottom - c->kh + 1, ow = c->w + c->left + c->right - c->kw + 1, at = 0;
    float *terms = malloc((size_t)k * 4);
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t o = 0; o < c->co; o++)
            for (int64_t y = 0; y < oh; y++)
                for (int64_t x = 0; x < ow; x++, at++) {
                    double acc = c->bias ? (double)f.b[o] : 0.0;
                    for (int64_t j = 0; j < k; j++) {
                        int64_t ic = j / (c->kh * c->kw), iy = y + j / c->kw % c->kh - c->top;
                        int64_t ix = x + j % c->kw - c->left;
                        bool in = iy >= 0 && iy < c->h && ix >= 0 && ix < c->w;
                        float v = in ? ((float *)f.x.data)[((n * c->ci + ic) * c->h + iy) * c->w + ix] : 0.0f;
                        acc += (double)f.w[o * k + j] * (double)v;
                        terms[j] = store(f.policy, f.w[o * k + j]) * store(f.policy, v);
                    }
                    float f32 = (float)acc;
                    if (f.policy > VR_POLICY_TRUTH)
                        f32 = store(f.policy, sum_order(f.order, terms, k) +
                                                  (c->bias ? store(f.policy, f.b[o]) : 0.0f));
                    expect(&f, at, acc, f32, "conv2d");
                }
    free(terms);
    done(&f);
}

Test(reference, conv2d_equals_plain_loops_bit_for_bit)
{
    const conv_case cases[] = {
        {1, 3, 5, 4, 6, 3, 3, 1, 1, 1, 1, true},   {2, 1, 1, 1, 1, 3, 3, 1, 1, 1, 1, true},
        {1, 17, 9, 3, 35, 1, 1, 0, 0, 0, 0, false}, {1, 4, 7, 9, 5, 5, 3, 0, 2, 1, 0, true},
        {1, 8, 13, 2, 70, 3, 3, 1, 1, 1, 1, false}, {1, 70, 4, 3, 3, 3, 3, 1, 1, 1, 1, true},
        {2, 2, 3, 40, 3, 3, 1, 1, 1, 0, 0, true},   {1, 1, 2, 3, 130, 1, 7, 0, 0, 3, 3, true},
    };
    fixture f = {.w = NULL};
    FOR_EACH_POLICY(f)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            check_conv(f, &cases[i]);
}

/* ---- group norm --------------------------------------------------------- */

static double lanes8(const double *v, int64_t n)
{
    double l[8] = {0};
    for (int64_t i = 0; i < n; i++)
        l[i % 8] += v[i];
    return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

static void fixed_norm(const double *x, int64_t rows, int64_t w, double eps, double *mean, double *rstd)
{
    double *d = malloc((size_t)w * 8), s = 0.0, q = 0.0;
    for (int64_t r = 0; r < rows; r++)
        s += lanes8(x + r * w, w);
    *mean = s / (double)(rows * w);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < w; i++)
            d[i] = (x[r * w + i] - *mean) * (x[r * w + i] - *mean);
        q += lanes8(d, w);
    }
    *rstd = vr_rsqrt(q / (double)(rows * w) + eps);
    free(d);
}

static void f32_norm(vr_order o, const float *x, int64_t rows, int64_t w, float eps, float *mean, float *rstd)
{
    float *sums = malloc((size_t)(rows + w) * 4), *d = sums + rows;
    for (int64_t r = 0; r < rows; r++)
        sums[r] = sum_order(o, x + r * w, w);
    *mean = sum_order(o, sums, rows) / (float)(rows * w);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < w; i++)
            d[i] = (x[r * w + i] - *mean) * (x[r * w + i] - *mean);
        sums[r] = sum_order(o, d, w);
    }
    *rstd = (float)vr_rsqrt((double)(sum_order(o, sums, rows) / (float)(rows * w) + eps));
    free(sums);
}

static void check_norm(fixture f, int64_t n, int64_t c, int64_t groups, int64_t h, int64_t w, float centre)
{
    latent(&f, n, c, h, w, centre);
    int64_t dim[1] = {c}, per = c / groups * h * w, rows = c / groups * h;
    f.w = randoms(c, 2, 1.0f);
    f.b = randoms(c, 3, 0.0f);
    vr_program *p = vr_program_new("t", c);
    int32_t g = vr_program_weight(p, "g", "g", VR_F32, 1, dim, f.w);
    int32_t b = vr_program_weight(p, "b", "b", VR_F32, 1, dim, f.b);
    run(&f, p, vr_program_group_norm(p, "y", 0, g, b, groups, 1e-6));
    double *x64 = malloc((size_t)per * 8);
    float *x32 = malloc((size_t)per * 4);
    for (int64_t i = 0; i < n * groups; i++) {
        double mean, rstd;
        float fmean, frstd;
        for (int64_t j = 0; j < per; j++) {
            x32[j] = store(f.policy, ((float *)f.x.data)[i * per + j]);
            x64[j] = (double)x32[j];
        }
        fixed_norm(x64, rows, w, 1e-6, &mean, &rstd);
        f32_norm(f.order, x32, rows, w, 1e-6f, &fmean, &frstd);
        for (int64_t j = 0; j < per; j++) {
            int64_t ch = (i % groups) * (c / groups) + j / (h * w);
            double y = (x64[j] - mean) * (rstd * (double)f.w[ch]) + (double)f.b[ch];
            float y32 = (float)y;
            if (f.policy > VR_POLICY_TRUTH)
                y32 = store(f.policy, (x32[j] - fmean) * (frstd * store(f.policy, f.w[ch])) +
                                          store(f.policy, f.b[ch]));
            expect(&f, i * per + j, y, y32, "group_norm");
        }
    }
    free(x64);
    free(x32);
    done(&f);
}

Test(reference, group_norm_equals_plain_loops_bit_for_bit)
{
    fixture f = {.w = NULL};
    FOR_EACH_POLICY(f) {
        check_norm(f, 2, 6, 3, 5, 7, 0.0f);
        check_norm(f, 1, 4, 4, 1, 1, 0.0f);
        check_norm(f, 1, 8, 1, 9, 33, 3.0f);
    }
}

/* ---- attention ---------------------------------------------------------- */

static void check_attention(fixture f, int64_t n, int64_t c, int64_t h, int64_t w)
{
    latent(&f, n, c, h, w, 0.0f);
    const double scale = 1.0 / sqrt((double)c);
    vr_program *p = vr_program_new("t", c);
    run(&f, p, vr_program_attention(p, "y", 0, 0, 0, scale));
    int64_t m = h * w;
    double *s = malloc((size_t)m * 8);
    float *s32 = malloc((size_t)m * 4), *terms = malloc((size_t)(m > c ? m : c) * 4);
    for (int64_t b = 0; b < n; b++)
        for (int64_t i = 0; i < m; i++) {
            const float *x = (const float *)f.x.data + b * c * m;
            double top = -INFINITY, sum = 0.0;
            float top32 = -INFINITY;
            for (int64_t j = 0; j < m; j++) {
                double dot = 0.0;
                for (int64_t k = 0; k < c; k++) {
                    dot += (double)x[k * m + i] * (double)x[k * m + j];
                    terms[k] = store(f.policy, x[k * m + j]) * store(f.policy, x[k * m + i]);
                }
                s[j] = dot * scale;
                s32[j] = sum_order(f.order, terms, c) * (float)scale;
                top = s[j] > top ? s[j] : top;
                top32 = s32[j] > top32 ? s32[j] : top32;
            }
            for (int64_t j = 0; j < m; j++) {
                s[j] = vr_exp(s[j] - top);
                sum += s[j];
                s32[j] = (float)vr_exp((double)(s32[j] - top32));
            }
            float sum32 = sum_order(f.order, s32, m);
            for (int64_t k = 0; k < c; k++) {
                double acc = 0.0;
                for (int64_t j = 0; j < m; j++) {
                    acc += (double)x[k * m + j] * s[j];
                    terms[j] = store(f.policy, x[k * m + j]) * s32[j];
                }
                float y32 = (float)(acc / sum);
                if (f.policy > VR_POLICY_TRUTH)
                    y32 = store(f.policy, sum_order(f.order, terms, m) / sum32);
                expect(&f, (b * c + k) * m + i, acc / sum, y32, "attention");
            }
        }
    free(s);
    free(s32);
    free(terms);
    done(&f);
}

Test(reference, attention_equals_plain_loops_bit_for_bit)
{
    fixture f = {.w = NULL};
    FOR_EACH_POLICY(f) {
        check_attention(f, 2, 5, 3, 4);
        check_attention(f, 1, 1, 1, 1);
        check_attention(f, 1, 19, 9, 15);
    }
}

/* ---- element-wise ------------------------------------------------------- */

Test(reference, element_wise_operations_equal_their_formulas)
{
    fixture f = {.w = NULL};
    FOR_EACH_POLICY(f)
        for (int kind = 0; kind < 5; kind++) {
            latent(&f, 1, 3, 4, 9, 0.0f);
            const double scale[3] = {0.3, -2.0, 7.25}, shift[3] = {0.1, 3.0, -1.0 / 3.0};
            vr_program *p = vr_program_new("t", 3);
            int32_t y = kind == 0   ? vr_program_unary(p, "y", VR_OP_SILU, 0)
                        : kind == 1 ? vr_program_unary(p, "y", VR_OP_RELU, 0)
                        : kind == 2 ? vr_program_tanh_clamp(p, "y", 0, 3.0)
                        : kind == 3 ? vr_program_clamp(p, "y", 0, -0.5, 0.75)
                                    : vr_program_scale_shift(p, "y", 0, scale, shift);
            run(&f, p, y);
            for (int64_t i = 0; i < 108; i++) {
                double x = (double)store(f.policy, ((float *)f.x.data)[i]);
                double want = kind == 0   ? vr_silu(x)
                              : kind == 1 ? (x < 0 ? 0.0 : x)
                              : kind == 2 ? 3.0 * vr_tanh(x / 3.0)
                              : kind == 3 ? (x < -0.5 ? -0.5 : x > 0.75 ? 0.75 : x)
                                          : x * scale[i / 36] + shift[i / 36];
                expect(&f, i, want, store(f.policy, (float)want), "element-wise");
            }
            done(&f);
            f.w = f.b = NULL;
        }
}

Test(reference, unpack_and_upsample_move_values_to_the_specified_places)
{
    fixture f = {.policy = VR_POLICY_GOLDEN};
    latent(&f, 2, 12, 3, 2, 0.0f);
    vr_program *p = vr_program_new("t", 12);
    run(&f, p, vr_program_upsample(p, "up", vr_program_unpack(p, "u", 0, 2, 3), 1, 2, 1));
    /* unpack: 2 channels, 6 x 6; upsample rows by 2: 12 x 6 */
    for (int64_t n = 0; n < 2; n++)
        for (int64_t c = 0; c < 2; c++)
            for (int64_t y = 0; y < 12; y++)
                for (int64_t x = 0; x < 6; x++) {
                    int64_t r = y / 2, from = (c * 2 + r % 2) * 3 + x % 3;
                    float want = ((float *)f.x.data)[((n * 12 + from) * 3 + r / 2) * 2 + x / 3];
                    float got = ((float *)f.y.data)[((n * 2 + c) * 12 + y) * 6 + x];
                    cr_assert_eq(got, want, "%lld %lld %lld %lld", (long long)n, (long long)c,
                                 (long long)y, (long long)x);
                }
    done(&f);
}
