/* Attention with f32 accumulation in a named order (clause N6.3): scores,
 * exponentials and sums in f32, the quotient last, then storage rounding.
 * Lanes run across 32 queries; scores of one block: score[key][32].
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "core/detmath.h"
#include "ops/ops.h"

enum { LANES = VR_ORDERED_LANES };

typedef struct att_frame {
    const float *q, *k, *v; /* [c][stride] */
    float *y;
    int64_t c, n, stride;
    float scale;
} att_frame;

typedef struct att_block {
    float *query; /* [c][32] */
    float *score; /* [n][32] */
    float *key;   /* [c] */
    const float *ones; /* [n] */
} att_block;

static void softmax_block(const vr_arith *a, const att_frame *f, att_block b, float *sum)
{
    float top[LANES];
    memcpy(top, b.score, sizeof top);
    for (int64_t j = 1; j < f->n; j++)
        for (int i = 0; i < LANES; i++)
            top[i] = b.score[j * LANES + i] > top[i] ? b.score[j * LANES + i] : top[i];
    for (int64_t j = 0; j < f->n; j++)
        for (int i = 0; i < LANES; i++) {
            float d = b.score[j * LANES + i] - top[i];
            b.score[j * LANES + i] = (float)vr_exp((double)d);
        }
    a->k->ordered_dot32(a->order, b.ones, b.score, f->n, sum);
}

static void attend_block(const vr_arith *a, const att_frame *f, int64_t first, att_block b)
{
    int64_t columns = f->n - first < LANES ? f->n - first : LANES;
    memset(b.query, 0, (size_t)(f->c * LANES) * 4);
    for (int64_t c = 0; c < f->c; c++)
        memcpy(b.query + c * LANES, f->q + c * f->stride + first, (size_t)columns * 4);
    for (int64_t j = 0; j < f->n; j++) {
        for (int64_t c = 0; c < f->c; c++)
            b.key[c] = f->k[c * f->stride + j];
        float *s = b.score + j * LANES;
        a->k->ordered_dot32(a->order, b.key, b.query, f->c, s);
        for (int i = 0; i < LANES; i++)
            s[i] *= f->scale;
    }
    float sum[LANES], out[LANES];
    softmax_block(a, f, b, sum);
    for (int64_t c = 0; c < f->c; c++) {
        a->k->ordered_dot32(a->order, f->v + c * f->stride, b.score, f->n, out);
        for (int i = 0; i < LANES; i++)
            out[i] /= sum[i];
        vr_store_round(a, out, columns);
        memcpy(f->y + c * f->stride + first, out, (size_t)columns * 4);
    }
}

vr_status vr_attention_ordered(vr_arith *a, const vr_op *op, vr_view q, vr_view k, vr_view v,
                               vr_view y, vr_error *err)
{
    const vr_shape s = q.shape;
    const int64_t n = s.h * s.w, blocks = (n + LANES - 1) / LANES;
    const int64_t each = (s.c + n) * LANES + s.c;
    float *scratch = NULL;
    vr_status st = vr_scratch(a, (uint64_t)(each * a->threads + n) * 4, (void **)&scratch, err);
    if (st != VR_OK)
        return st;
    float *ones = scratch + each * a->threads;
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1.0f;
#pragma omp parallel for schedule(dynamic) num_threads(a->threads)
    for (int64_t i = 0; i < s.n * s.t * blocks; i++) {
        int64_t image = i / blocks, base = (image / s.t * s.c * s.t + image % s.t) * n;
        float *mine = scratch + omp_get_thread_num() * each;
        att_frame f = {(const float *)q.data + base, (const float *)k.data + base,
                       (const float *)v.data + base, (float *)y.data + base,
                       s.c, n, s.t * n, (float)op->p.attention.scale};
        att_block b = {mine, mine + s.c * LANES, mine + (s.c + n) * LANES, ones};
        attend_block(a, &f, i % blocks * LANES, b);
    }
    free(scratch);
    return VR_OK;
}
