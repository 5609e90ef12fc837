/* Wrong operations. Each works in `after_op`: the reference's result is replaced or
 * spoiled where the fault would show. Inputs are as the operation read them: strided
 * copies are made before, so tensors here are dense.
 *
 * SPDX-License-Identifier: MIT */
#include "mutants/mutants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AFTER(name) static void name(ref_job *j, const vr_program *p, int32_t i, const vr_tensor *in[3], vr_tensor *out)
#define ONLY(k)                   \
    (void)j, (void)p, (void)in;   \
    if (p->op[i].kind != (k))     \
        return

static double read_in(const ref_job *j, const vr_tensor *t, int64_t i)
{
    double v = 0; /* inputs may still be in 16 bits */
    vr_convert(VR_F64, &v, t->dtype, (const char *)t->data + (size_t)i * vr_dtype_size(t->dtype), 1, NULL);
    return vm_round(j, v);
}

/* ---- convolutions ------------------------------------------------------------------------ */

typedef struct conv_fault {
    bool swap_k, no_bias, half_sums, bf16_products, drop_channel;
    int64_t shift_y, shift_x;
} conv_fault;

static double round_sum(const conv_fault *f, double v)
{
    return f->half_sums ? (double)vr_round_to(VR_F16, (float)v) : (double)(float)v;
}

static void conv(ref_job *j, const vr_program *p, int32_t i, const vr_tensor *in[3], vr_tensor *out, const conv_fault *f)
{
    const vr_op *op = &p->op[i];
    double *w = vm_weight(p, op, 0), *b = vm_weight(p, op, 1);
    int64_t x[4], y[4];
    vm_dims(in[0], x);
    vm_dims(out, y);
    const int64_t kh = op->p.conv2d.kh, kw = op->p.conv2d.kw, ci = x[1] - (f->drop_channel ? 1 : 0);
    double *flat = malloc((size_t)vm_count(in[0]) * sizeof *flat);
    for (int64_t k = 0; flat && k < vm_count(in[0]); k++)
        flat[k] = read_in(j, in[0], k);
    for (int64_t k = 0; w && flat && k < vm_count(out); k++) {
        const int64_t col = k % y[3], row = k / y[3] % y[2], o = k / y[3] / y[2] % y[1], n = k / y[3] / y[2] / y[1];
        double sum = 0;
        for (int64_t c = 0; c < ci; c++)
            for (int64_t a = 0; a < kh; a++)
                for (int64_t e = 0; e < kw; e++) {
                    const int64_t r = row + a - op->p.conv2d.pad_top + f->shift_y, q = col + e - op->p.conv2d.pad_left + f->shift_x;
                    if (r < 0 || r >= x[2] || q < 0 || q >= x[3])
                        continue;
                    const int64_t wa = f->swap_k && kh == kw ? e : a, we = f->swap_k && kh == kw ? a : e;
                    double v = flat[((n * x[1] + c) * x[2] + r) * x[3] + q], m = w[((o * x[1] + c) * kh + wa) * kw + we];
                    if (f->bf16_products) {
                        v = (double)vr_round_to(VR_BF16, (float)v);
                        m = (double)vr_round_to(VR_BF16, (float)m);
                    }
                    sum = round_sum(f, sum + round_sum(f, v * m));
                }
        if (b && !f->no_bias)
            sum = round_sum(f, sum + b[o]);
        vm_set(out, k, vm_round(j, sum));
    }
    free(flat);
    free(w);
    free(b);
}

#define CONV(name, ...)                                     \
    AFTER(name)                                             \
    {                                                       \
        ONLY(VR_OP_CONV2D);                                 \
        conv(j, p, i, in, out, &(const conv_fault){__VA_ARGS__}); \
    }
CONV(swapped_kernel, .swap_k = true)
CONV(no_bias, .no_bias = true)
CONV(half_sums, .half_sums = true)
CONV(bf16_products, .bf16_products = true)
CONV(last_channel, .drop_channel = true)
CONV(pad_row, .shift_y = 1)
CONV(pad_column, .shift_x = 1)

/* ---- group norm --------------------------------------------------------------------------- */

typedef struct norm_fault {
    double eps;
    bool unbiased, first_item, per_row, keep_groups, half_groups;
} norm_fault;

static void norm(ref_job *j, const vr_program *p, int32_t i, const vr_tensor *in[3], vr_tensor *out, const norm_fault *f)
{
    const vr_op *op = &p->op[i];
    double *g = vm_weight(p, op, 0), *b = vm_weight(p, op, 1);
    int64_t d[4];
    vm_dims(out, d);
    int64_t groups = op->p.group_norm.groups;
    if (f->half_groups && groups % 2 == 0)
        groups /= 2;
    const int64_t per = d[1] / groups, plane = d[2] * d[3], count = per * plane;
    const double eps = f->eps > 0 ? f->eps : op->p.group_norm.eps;
    for (int64_t n = 0; g && b && n < d[0]; n++)
        for (int64_t k = 0; k < groups; k++) {
            const int64_t from = ((f->first_item ? 0 : n) * d[1] + k * per) * plane, to = (n * d[1] + k * per) * plane;
            const int64_t stat = f->per_row ? per * d[3] : count;
            double mean = 0, var = 0;
            for (int64_t q = 0; q < stat; q++)
                mean += read_in(j, in[0], from + q);
            mean /= (double)stat;
            for (int64_t q = 0; q < stat; q++) {
                const double e = read_in(j, in[0], from + q) - mean;
                var += e * e;
            }
            var /= (double)(f->unbiased && stat > 1 ? stat - 1 : stat);
            for (int64_t q = 0; q < count; q++) {
                const int64_t c = k * per + q / plane;
                vm_set(out, to + q, vm_round(j, (read_in(j, in[0], to + q) - mean) / sqrt(var + eps) * g[c] + b[c]));
            }
        }
    free(g);
    free(b);
}

#define NORM(name, ...)                                     \
    AFTER(name)                                             \
    {                                                       \
        ONLY(VR_OP_GROUP_NORM);                             \
        norm(j, p, i, in, out, &(const norm_fault){__VA_ARGS__}); \
    }
NORM(large_eps, .eps = 1e-3)
NORM(unbiased, .unbiased = true)
NORM(first_item, .first_item = true)
NORM(first_rows, .per_row = true)
NORM(half_groups, .half_groups = true)

/* ---- attention ------------------------------------------------------------------------------ */

typedef struct attention_fault {
    bool no_scale, own_row, swap_kv, across_batch;
} attention_fault;

static void attention(ref_job *j, const vr_program *p, int32_t i, const vr_tensor *in[3], vr_tensor *out, const attention_fault *f)
{
    const vr_tensor *q = in[0], *k = in[f->swap_kv ? 2 : 1], *v = in[f->swap_kv ? 1 : 2];
    int64_t d[4];
    vm_dims(out, d);
    const int64_t cells = d[2] * d[3];
    double *s = malloc((size_t)cells * sizeof *s);
    for (int64_t n = 0; s && n < d[0]; n++)
        for (int64_t a = 0; a < cells; a++) {
            const int64_t other = f->across_batch ? 0 : n;
            double most = -INFINITY, sum = 0;
            for (int64_t b = 0; b < cells; b++) {
                s[b] = 0;
                for (int64_t c = 0; c < d[1]; c++)
                    s[b] += read_in(j, q, (n * d[1] + c) * cells + a) * read_in(j, k, (other * d[1] + c) * cells + b);
                s[b] = f->own_row && b / d[3] != a / d[3] ? -INFINITY : s[b] * (f->no_scale ? 1.0 : p->op[i].p.attention.scale);
                most = s[b] > most ? s[b] : most;
            }
            for (int64_t b = 0; b < cells; b++)
                sum += s[b] = exp(s[b] - most);
            for (int64_t c = 0; c < d[1]; c++) {
                double y = 0;
                for (int64_t b = 0; b < cells; b++)
                    y += s[b] * read_in(j, v, (other * d[1] + c) * cells + b);
                vm_set(out, (n * d[1] + c) * cells + a, vm_round(j, y / sum));
            }
        }
    free(s);
}

#define ATTENTION(name, ...)                                          \
    AFTER(name)                                                       \
    {                                                                 \
        ONLY(VR_OP_ATTENTION);                                        \
        attention(j, p, i, in, out, &(const attention_fault){__VA_ARGS__}); \
    }
ATTENTION(no_scale, .no_scale = true)
ATTENTION(own_row, .own_row = true)
ATTENTION(swapped_kv, .swap_kv = true)
ATTENTION(across_batch, .across_batch = true)

/* ---- the rest --------------------------------------------------------------------------------- */

AFTER(fast_silu)
{
    ONLY(VR_OP_SILU);
    for (int64_t k = 0; k < vm_count(out); k++) {
        const double x = read_in(j, in[0], k);
        vm_set(out, k, vm_round(j, x / (1 + exp(-1.702 * x))));
    }
}

AFTER(silu_is_relu)
{
    ONLY(VR_OP_SILU);
    for (int64_t k = 0; k < vm_count(out); k++)
        vm_set(out, k, fmax(read_in(j, in[0], k), 0));
}

AFTER(tanh_unscaled)
{
    ONLY(VR_OP_TANH_CLAMP);
    for (int64_t k = 0; k < vm_count(out); k++)
        vm_set(out, k, vm_round(j, p->op[i].p.tanh_clamp.limit * tanh(read_in(j, in[0], k))));
}

AFTER(shifted_upsample)
{
    ONLY(VR_OP_UPSAMPLE_NEAREST);
    int64_t x[4], y[4];
    vm_dims(in[0], x);
    vm_dims(out, y);
    for (int64_t k = 0; k < vm_count(out); k++) {
        const int64_t c = k / y[3] / y[2], row = k / y[3] % y[2], col = k % y[3];
        const int64_t from = (col + 1) * x[3] / y[3] < x[3] ? (col + 1) * x[3] / y[3] : x[3] - 1;
        vm_set(out, k, read_in(j, in[0], (c * x[2] + row * x[2] / y[2]) * x[3] + from));
    }
}

AFTER(linear_upsample)
{
    ONLY(VR_OP_UPSAMPLE_NEAREST);
    int64_t x[4], y[4];
    vm_dims(in[0], x);
    vm_dims(out, y);
    for (int64_t k = 0; k < vm_count(out); k++) {
        const int64_t c = k / y[3] / y[2], row = k / y[3] % y[2] * x[2] / y[2], col = k % y[3];
        const double at = ((double)col + 0.5) * (double)x[3] / (double)y[3] - 0.5;
        const int64_t a = at < 0 ? 0 : (int64_t)at, b = a + 1 < x[3] ? a + 1 : a;
        const double t = at < 0 ? 0 : at - (double)a;
        vm_set(out, k, vm_round(j, (1 - t) * read_in(j, in[0], (c * x[2] + row) * x[3] + a) + t * read_in(j, in[0], (c * x[2] + row) * x[3] + b)));
    }
}

AFTER(unpack_order)
{
    ONLY(VR_OP_UNPACK);
    int64_t x[4], y[4];
    vm_dims(in[0], x);
    vm_dims(out, y);
    const int64_t fh = p->op[i].p.unpack.fh, fw = p->op[i].p.unpack.fw;
    for (int64_t k = 0; k < vm_count(out); k++) {
        const int64_t col = k % y[3], row = k / y[3] % y[2], c = k / y[3] / y[2] % y[1], n = k / y[3] / y[2] / y[1];
        const int64_t from = (row % fh * fw + col % fw) * y[1] + c; /* positions slowest */
        vm_set(out, k, read_in(j, in[0], ((n * x[1] + from) * x[2] + row / fh) * x[3] + col / fw));
    }
}

AFTER(add_forgets)
{
    ONLY(VR_OP_ADD);
    for (int64_t k = 0; k < vm_count(out); k++)
        vm_set(out, k, read_in(j, in[0], k));
}

AFTER(shift_first)
{
    ONLY(VR_OP_SCALE_SHIFT);
    int64_t d[4];
    vm_dims(out, d);
    for (int64_t k = 0; k < vm_count(out); k++) {
        const int64_t c = k / (d[2] * d[3]) % d[1];
        vm_set(out, k, vm_round(j, (read_in(j, in[0], k) + p->op[i].p.scale_shift.shift[c]) * p->op[i].p.scale_shift.scale[c]));
    }
}

AFTER(no_clamp)
{
    ONLY(VR_OP_CLAMP);
    for (int64_t k = 0; k < vm_count(out); k++)
        vm_set(out, k, read_in(j, in[0], k));
}

AFTER(not_a_number)
{
    ONLY(VR_OP_CONV2D);
    vm_set(out, vm_count(out) / 2, (double)NAN);
}

AFTER(black_for_large)
{
    ONLY(VR_OP_CONV2D); /* large values painted black */
    for (int64_t k = 0; k < vm_count(out); k++)
        if (vm_get(out, k) > 2)
            vm_set(out, k, 0);
}

AFTER(lane_fault)
{
    ONLY(VR_OP_CONV2D);
    int64_t d[4];
    vm_dims(out, d);
    for (int64_t k = 0; d[3] > 64 && k < vm_count(out); k++)
        if (k % d[3] >= 64 && k % d[3] % 8 == 7)
            vm_set(out, k, vm_get(out, k) + 1);
}

AFTER(second_item)
{
    ONLY(VR_OP_CONV2D);
    int64_t d[4];
    vm_dims(out, d);
    const int64_t per = vm_count(out) / d[0];
    for (int64_t k = per; k < vm_count(out); k++)
        vm_set(out, k, vm_get(out, k - per));
}

AFTER(last_row_lost)
{
    ONLY(VR_OP_CONV2D);
    int64_t d[4];
    vm_dims(out, d);
    for (int64_t k = 0; k < vm_count(out); k++)
        if (k / d[3] % d[2] == d[2] - 1)
            vm_set(out, k, 0);
}

#define M(fn, level, glob, kind, text) {{.name = #fn, .after_op = fn}, "fail", level, glob, kind, text}
const mutant vm_ops[] = {
    M(swapped_kernel, "L1", "op.conv2d.k3.f32.*8x8*", "conv2d", "kernel rows and columns exchanged by a layout change"),
    M(no_bias, "L1", "op.conv2d.k3.f32.*8x8*", "conv2d", "bias forgotten in a fused path"),
    M(half_sums, "L1", "op.conv2d.positive.f32.*", "conv2d", "sums in 16 bits"),
    M(bf16_products, "L1", "op.conv2d.k3.f32.*8x8", "conv2d", "a matrix unit used for f32 without asking"),
    M(last_channel, "L1", "op.conv2d.k3.f32.*8x8*", "conv2d", "channel loop one short"),
    M(pad_row, "L1", "op.conv2d.k3.f32.*8x8*", "conv2d", "padding off by one row"),
    M(pad_column, "L1", "op.conv2d.k3.f32.*8x8*", "conv2d", "padding off by one column"),
    M(large_eps, "L1", "op.group_norm.g*.f32.*", "group_norm", "another epsilon"),
    M(unbiased, "L1", "op.group_norm.g*.f32.*", "group_norm", "variance over n - 1"),
    M(first_item, "L1", "op.group_norm.*n2*", NULL, "statistics of the first item of a batch for all"),
    M(first_rows, "L1", "op.group_norm.g*.f32.*", "group_norm", "statistics of the first rows only"),
    M(half_groups, "L1", "op.group_norm.g*.f32.*", "group_norm", "half as many groups"),
    M(no_scale, "L1", "op.attention.one.f32.*", "attention", "scores not scaled"),
    M(own_row, "L1", "op.attention.one.f32.*", "attention", "attention within a row only"),
    M(swapped_kv, "L1", "op.attention.one.f32.*", "attention", "keys and values exchanged"),
    M(across_batch, "L1", "op.attention.batch.*", NULL, "all items attend to the first"),
    M(fast_silu, "L1", "op.silu.*", "silu", "x * sigmoid(1.702 x)"),
    M(silu_is_relu, "L1", "op.silu.*", "silu", "another activation"),
    M(tanh_unscaled, "L1", "op.tanh_clamp.*", NULL, "limit * tanh(x)"),
    M(shifted_upsample, "L1", "op.upsample.*.f32.*", "upsample_nearest", "nearest with another rounding"),
    M(linear_upsample, "L1", "op.upsample.*.f32.*", "upsample_nearest", "linear instead of nearest"),
    M(unpack_order, "L1", "op.unpack.*", NULL, "channels unpacked in another order"),
    M(add_forgets, "L1", "op.add.*", "add", "a residual connection lost"),
    M(shift_first, "L1", "op.scale_shift.*", NULL, "shifted before it is scaled"),
    M(no_clamp, "L1", "op.clamp.*", NULL, "output not clamped"),
    M(not_a_number, "L1", "op.conv2d.k3.f32.*8x8*", "conv2d", "one NaN"),
    M(black_for_large, "L1", "op.conv2d.k3.f32.*8x8", "conv2d", "large values written as black"),
    M(lane_fault, "L1", "op.conv2d.wide.*", NULL, "one lane in eight wrong above a width of 64"),
    M(second_item, "L1", "op.conv2d.batch.*", NULL, "every item of a batch is the first"),
    M(last_row_lost, "L1", "op.conv2d.k3.f32.*8x8*", "conv2d", "last row not computed"),
};
const int32_t vm_ops_count = sizeof vm_ops / sizeof *vm_ops;
