/* Single-head attention over the positions of each frame (clause N4.6), under
 * golden and truth, in f64:
 *   s_ij = (sum over c of q[c][i] k[c][j]) * scale         c in order
 *   p_ij = exp(s_ij - max_j s_ij),  l_i = sum over j p_ij  j in order
 *   y[c][i] = (sum over j of v[c][j] p_ij) / l_i           j in order
 * Queries are taken in blocks; scores exist for one block at a time
 *     score[tile][key][nr]
 * never as an N x N matrix. Blocks do not change the bits.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "ops/ops.h"

typedef struct att_plan {
    int64_t c, n;             /* channels, positions */
    int64_t mr, nr, tiles;    /* query tiles per block */
    int64_t keys;             /* n rounded up to mr */
    int64_t frame_stride;     /* elements between channels of one frame */
    double scale;
} att_plan;

typedef struct att_space { /* per thread */
    double *query;  /* [tile][c][nr] */
    double *score;  /* [tile][keys][nr] */
    double *packed; /* [max(c, n)][mr] */
    double *sum;    /* [tile][nr] */
} att_space;

static double load(const vr_arith *a, const void *x, int64_t i)
{
    return vr_arith_is_f64(a) ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* packed[d][m] = x[d*step_d + (first+m)*step_m], zero past `limit`. */
#define PACK_LOOP(type)                                                                   \
    for (int64_t d = 0; d < depth; d++) {                                                 \
        const type *src = (const type *)x + d * step_d + first * step_m;                  \
        double *dst = packed + d * p->mr;                                                 \
        for (int64_t m = 0; m < p->mr; m++)                                               \
            dst[m] = m < inside ? (double)src[m * step_m] : 0.0;                          \
    }

static void pack(const vr_arith *a, const att_plan *p, const void *x, int64_t depth, int64_t step_d,
                 int64_t first, int64_t limit, int64_t step_m, double *packed)
{
    const int64_t inside = limit - first < p->mr ? limit - first : p->mr;
    if (vr_arith_is_f64(a))
        PACK_LOOP(double)
    else
        PACK_LOOP(float)
}

static void block_scores(const vr_arith *a, const att_plan *p, const void *q, const void *k,
                         int64_t first, int64_t tiles, att_space s)
{
    const double zero[VR_MAX_MR] = {0};
    vr_micro_fn *micro = vr_arith_is_f64(a) ? a->k->micro_strict : a->k->micro_fused;
    for (int64_t t = 0; t < tiles; t++)
        for (int64_t c = 0; c < p->c; c++)
            for (int64_t i = 0; i < p->nr; i++) {
                int64_t pos = first + t * p->nr + i;
                s.query[(t * p->c + c) * p->nr + i] =
                    pos < p->n ? load(a, q, c * p->frame_stride + pos) : 0.0;
            }
    for (int64_t j = 0; j < p->keys; j += p->mr) {
        pack(a, p, k, p->c, p->frame_stride, j, p->n, 1, s.packed);
        for (int64_t t = 0; t < tiles; t++)
            micro(s.packed, s.query + t * p->c * p->nr, p->c, 1, 1, p->nr, p->nr, zero,
                  s.score + (t * p->keys + j) * p->nr);
    }
    for (int64_t t = 0; t < tiles; t++)
        a->k->softmax_columns(s.score + t * p->keys * p->nr, p->n, p->scale, s.sum + t * p->nr);
}

static void block_values(const vr_arith *a, const att_plan *p, const void *v, void *y,
                         int64_t first, int64_t tiles, att_space s)
{
    const double zero[VR_MAX_MR] = {0};
    double acc[VR_MAX_MR * VR_MAX_NR];
    for (int64_t c = 0; c < p->c; c += p->mr) {
        pack(a, p, v, p->n, 1, c, p->c, p->frame_stride, s.packed);
        for (int64_t t = 0; t < tiles; t++) {
            a->k->micro_strict(s.packed, s.score + t * p->keys * p->nr, p->n, 1, 1, p->nr, p->nr,
                               zero, acc);
            for (int64_t m = 0; m < p->mr && c + m < p->c; m++)
                for (int64_t i = 0; i < p->nr && first + t * p->nr + i < p->n; i++) {
                    double r = acc[m * p->nr + i] / s.sum[t * p->nr + i];
                    int64_t at = (c + m) * p->frame_stride + first + t * p->nr + i;
                    if (vr_arith_is_f64(a))
                        ((double *)y)[at] = r;
                    else
                        ((float *)y)[at] = (float)r;
                }
        }
    }
}

static att_plan plan_attention(const vr_arith *a, const vr_op *op, vr_shape s)
{
    att_plan p = {.c = s.c, .n = s.h * s.w, .mr = a->k->mr, .nr = a->k->nr,
                  .frame_stride = s.t * s.h * s.w, .scale = op->p.attention.scale};
    p.keys = (p.n + p.mr - 1) / p.mr * p.mr;
    /* Packing is repaid by many queries per block; a block's scores stay small. */
    int64_t block_bytes = 8 << 20;
    p.tiles = block_bytes / (p.keys * p.nr * 8);
    int64_t most = (64 + p.nr - 1) / p.nr, all = (p.n + p.nr - 1) / p.nr;
    p.tiles = p.tiles < 1 ? 1 : p.tiles > most ? most : p.tiles;
    p.tiles = p.tiles > all ? all : p.tiles;
    return p;
}

vr_status vr_op_attention(vr_arith *a, const vr_op *op, vr_view q, vr_view k, vr_view v, vr_view y,
                          vr_error *err)
{
    if (!vr_arith_is_fixed(a))
        return vr_attention_ordered(a, op, q, k, v, y, err);
    const vr_shape s = q.shape;
    const att_plan p = plan_attention(a, op, s);
    const int64_t elem = vr_arith_is_f64(a) ? 8 : 4, width = p.tiles * p.nr;
    const int64_t blocks = (p.n + width - 1) / width;
    const int64_t nq = p.c * width, ns = p.keys * width, np = (p.c > p.n ? p.c : p.n) * p.mr;
    const int64_t each = nq + ns + np + width;
    double *scratch = NULL;
    vr_status st = vr_scratch(a, (uint64_t)(each * a->threads) * 8, (void **)&scratch, err);
    if (st != VR_OK)
        return st;
#pragma omp parallel for schedule(dynamic) num_threads(a->threads)
    for (int64_t i = 0; i < s.n * s.t * blocks; i++) {
        int64_t image = i / blocks, first = i % blocks * width, n = image / s.t, t = image % s.t;
        int64_t base = (n * s.c * s.t + t) * p.n * elem;
        int64_t left = (p.n - first + p.nr - 1) / p.nr, tiles = left < p.tiles ? left : p.tiles;
        double *mine = scratch + omp_get_thread_num() * each;
        att_space space = {mine, mine + nq, mine + nq + ns, mine + nq + ns + np};
        block_scores(a, &p, (const char *)q.data + base, (const char *)k.data + base, first, tiles, space);
        block_values(a, &p, (const char *)v.data + base, (char *)y.data + base, first, tiles, space);
    }
    free(scratch);
    return VR_OK;
}
