/* Honest backends that compute in another way than the reference. All must be accepted.
 * SPDX-License-Identifier: MIT */
#include "mutants/mutants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float read_in(const vr_tensor *t, int64_t i)
{
    float v = 0;
    vr_convert(VR_F32, &v, t->dtype, (const char *)t->data + (size_t)i * vr_dtype_size(t->dtype), 1, NULL);
    return v;
}

static float *as_floats(const vr_tensor *t)
{
    const int64_t n = vm_count(t);
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t k = 0; x && k < n; k++)
        x[k] = read_in(t, k);
    return x;
}

static int32_t golden(ref_job *j, const vp_job_desc *d)
{
    if (d->storage == VP_F32)
        j->exec.policy = VR_POLICY_GOLDEN;
    return VP_OK;
}

/* The undivided decode in parts of 24 pixels. */
static int32_t in_parts(ref_job *j, const vp_job_desc *d)
{
    const vr_tile_options o = {.mode = VR_TILE_EXACT, .tile_h = 24, .tile_w = 40, .overlap_h = -1, .overlap_w = -1};
    vr_tile_plan plan;
    vr_error err;
    if (!j->tiled && d->latent[2] == 1 && vr_tile_plan_make(j->program, j->latent, &o, &plan, &err) == VR_OK) {
        vr_tile_plan_free(&j->plan);
        j->plan = plan;
    }
    return VP_OK;
}

/* Channels innermost: another order of the same products. */
static void nhwc(ref_job *j, const vr_program *p, int32_t i, const vr_tensor *in[3], vr_tensor *out)
{
    const vr_op *op = &p->op[i];
    if (op->kind != VR_OP_CONV2D || j->storage == VR_F64)
        return;
    double *w = vm_weight(p, op, 0), *b = vm_weight(p, op, 1);
    float *x = as_floats(in[0]);
    int64_t d[4], y[4];
    vm_dims(in[0], d);
    vm_dims(out, y);
    const int64_t kh = op->p.conv2d.kh, kw = op->p.conv2d.kw;
    for (int64_t k = 0; w && x && k < vm_count(out); k++) {
        const int64_t col = k % y[3], row = k / y[3] % y[2], o = k / y[3] / y[2] % y[1], n = k / y[3] / y[2] / y[1];
        float sum = 0;
        for (int64_t a = 0; a < kh; a++)
            for (int64_t e = 0; e < kw; e++)
                for (int64_t c = 0; c < d[1]; c++) {
                    const int64_t r = row + a - op->p.conv2d.pad_top, q = col + e - op->p.conv2d.pad_left;
                    if (r >= 0 && r < d[2] && q >= 0 && q < d[3])
                        sum += x[((n * d[1] + c) * d[2] + r) * d[3] + q] * (float)w[((o * d[1] + c) * kh + a) * kw + e];
                }
        vm_set(out, k, vm_round(j, (double)(sum + (b ? (float)b[o] : 0.0F))));
    }
    free(w);
    free(b);
    free(x);
}

/* ---- Winograd F(2x2, 3x3) ------------------------------------------------------------------ */

static void transform_kernel(const double g[9], float u[16])
{
    float t[4][3];
    for (int c = 0; c < 3; c++) {
        const float a = (float)g[c], b = (float)g[3 + c], e = (float)g[6 + c];
        t[0][c] = a;
        t[1][c] = (a + b + e) * 0.5F;
        t[2][c] = (a - b + e) * 0.5F;
        t[3][c] = e;
    }
    for (int r = 0; r < 4; r++) {
        u[r * 4] = t[r][0];
        u[r * 4 + 1] = (t[r][0] + t[r][1] + t[r][2]) * 0.5F;
        u[r * 4 + 2] = (t[r][0] - t[r][1] + t[r][2]) * 0.5F;
        u[r * 4 + 3] = t[r][2];
    }
}

static void transform_input(const float d[16], float v[16])
{
    float t[16];
    for (int c = 0; c < 4; c++) {
        t[c] = d[c] - d[8 + c];
        t[4 + c] = d[4 + c] + d[8 + c];
        t[8 + c] = d[8 + c] - d[4 + c];
        t[12 + c] = d[4 + c] - d[12 + c];
    }
    for (int r = 0; r < 4; r++) {
        v[r * 4] = t[r * 4] - t[r * 4 + 2];
        v[r * 4 + 1] = t[r * 4 + 1] + t[r * 4 + 2];
        v[r * 4 + 2] = t[r * 4 + 2] - t[r * 4 + 1];
        v[r * 4 + 3] = t[r * 4 + 1] - t[r * 4 + 3];
    }
}

static void winograd(ref_job *j, const vr_program *p, int32_t i, const vr_tensor *in[3], vr_tensor *out)
{
    const vr_op *op = &p->op[i];
    if (op->kind != VR_OP_CONV2D || op->p.conv2d.kh != 3 || op->p.conv2d.kw != 3 || op->p.conv2d.pad_top != 1 ||
        op->p.conv2d.pad_bottom != 1 || op->p.conv2d.pad_left != 1 || op->p.conv2d.pad_right != 1 || j->storage != VR_F32)
        return;
    double *w = vm_weight(p, op, 0), *b = vm_weight(p, op, 1);
    float *x = as_floats(in[0]);
    int64_t d[4], y[4];
    vm_dims(in[0], d);
    vm_dims(out, y);
    float *u = malloc((size_t)(y[1] * d[1] * 16) * sizeof *u);
    for (int64_t k = 0; u && w && k < y[1] * d[1]; k++)
        transform_kernel(w + k * 9, u + k * 16);
    for (int64_t n = 0; u && w && x && n < y[0]; n++)
        for (int64_t row = 0; row < y[2]; row += 2)
            for (int64_t col = 0; col < y[3]; col += 2)
                for (int64_t o = 0; o < y[1]; o++) {
                    float m[16] = {0};
                    for (int64_t c = 0; c < d[1]; c++) {
                        float patch[16], v[16];
                        for (int k = 0; k < 16; k++) {
                            const int64_t r = row + k / 4 - 1, q = col + k % 4 - 1;
                            patch[k] = r >= 0 && r < d[2] && q >= 0 && q < d[3] ? x[((n * d[1] + c) * d[2] + r) * d[3] + q] : 0.0F;
                        }
                        transform_input(patch, v);
                        for (int k = 0; k < 16; k++)
                            m[k] += v[k] * u[(o * d[1] + c) * 16 + k];
                    }
                    for (int k = 0; k < 4; k++) {
                        float t[4];
                        for (int q = 0; q < 4; q++)
                            t[q] = k < 2 ? m[q] + m[4 + q] + m[8 + q] : m[4 + q] - m[8 + q] - m[12 + q];
                        const float v = k % 2 == 0 ? t[0] + t[1] + t[2] : t[1] - t[2] - t[3];
                        const int64_t r = row + k / 2, q = col + k % 2;
                        if (r < y[2] && q < y[3])
                            vm_set(out, ((n * y[1] + o) * y[2] + r) * y[3] + q, (double)(v + (b ? (float)b[o] : 0.0F)));
                    }
                }
    free(u);
    free(w);
    free(b);
    free(x);
}

/* ---- a norm fused with its activation: one rounding less -------------------------------------- */

typedef struct kept {
    int32_t op;
    float y[]; /* the norm's result before it was rounded to storage */
} kept;

static void fused(ref_job *j, const vr_program *p, int32_t i, const vr_tensor *in[3], vr_tensor *out)
{
    const vr_op *op = &p->op[i];
    if (op->kind == VR_OP_SILU && j->own && ((kept *)j->own)->op == op->in[0]) {
        for (int64_t k = 0; k < vm_count(out); k++) {
            const double v = (double)((kept *)j->own)->y[k];
            vm_set(out, k, vm_round(j, v / (1 + exp(-v))));
        }
        return;
    }
    if (op->kind != VR_OP_GROUP_NORM || j->storage == VR_F64)
        return;
    double *g = vm_weight(p, op, 0), *b = vm_weight(p, op, 1);
    float *x = as_floats(in[0]);
    int64_t d[4];
    vm_dims(out, d);
    free(j->own);
    j->own = malloc(sizeof(kept) + (size_t)vm_count(out) * sizeof(float));
    kept *k = j->own;
    const int64_t groups = op->p.group_norm.groups, count = d[1] / groups * d[2] * d[3], plane = d[2] * d[3];
    if (k)
        k->op = i;
    for (int64_t s = 0; k && g && b && x && s < d[0] * groups; s++) {
        double mean = 0, var = 0;
        for (int64_t q = 0; q < count; q++)
            mean += (double)x[s * count + q] / (double)count;
        for (int64_t q = 0; q < count; q++)
            var += ((double)x[s * count + q] - mean) * ((double)x[s * count + q] - mean) / (double)count;
        for (int64_t q = 0; q < count; q++) {
            const int64_t c = s % groups * (d[1] / groups) + q / plane;
            k->y[s * count + q] = (float)(((double)x[s * count + q] - mean) / sqrt(var + op->p.group_norm.eps) * g[c] + b[c]);
            vm_set(out, s * count + q, vm_round(j, (double)k->y[s * count + q]));
        }
    }
    free(g);
    free(b);
    free(x);
}

int32_t vm_chatter(ref_job *j, const vp_run_args *a);

#define ORDER(name_, o) {{.name = name_, .fixed_order = true, .order = o}, "pass", "", "*", NULL, "another order of summation"}
const mutant vm_honest[] = {
    ORDER("order_seq", VR_ORDER_SEQ),
    ORDER("order_lanes32", VR_ORDER_LANES32),
    ORDER("order_pairwise", VR_ORDER_PAIRWISE),
    ORDER("order_kblock64", VR_ORDER_KBLOCK64),
    {{.name = "golden", .on_prepare = golden}, "pass", "", "*", NULL, "sums in 64 bits"},
    {{.name = "two_threads", .threads = 2}, "pass", "", "*", NULL, "two threads, whatever was asked"},
    {{.name = "nhwc", .after_op = nhwc}, "pass", "", "*", NULL, "channels innermost"},
    {{.name = "winograd", .after_op = winograd}, "pass", "", "*", NULL, "Winograd F(2x2, 3x3) convolutions in f32"},
    {{.name = "fused", .after_op = fused}, "pass", "", "*", NULL, "group norm and silu fused, one rounding less"},
    {{.name = "in_parts", .on_prepare = in_parts}, "pass", "", "*", NULL, "undivided decodes computed in parts"},
    {{.name = "chatter", .after_run = vm_chatter}, "pass", "", "*", NULL, "prints garbage to standard output"},
};
const int32_t vm_honest_count = sizeof vm_honest / sizeof *vm_honest;
