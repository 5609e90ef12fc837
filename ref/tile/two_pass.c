/* Two-pass group norm (clause T9): tiles run the whole program in step. At each
 * group norm the tiles' statistics are merged and every tile is normalised with
 * the merged ones; attention stays inside a tile. The result is the crop of each
 * tile's owned pixels, without blending.
 *
 *   two-pass        as published: mean = sum w m, var = sum w v over the padded
 *                   tiles (w: share of cells), which leaves out the variance
 *                   between tiles and counts overlapped cells several times
 *   two-pass-fast   statistics of one decode of a small copy of the latent
 *   two-pass-fixed  statistics over owned cells only, merged with the variance
 *                   between tiles (Chan et al.); the plan's pad is the true halo
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "core/detmath.h"
#include "exec/step.h"
#include "tile/internal.h"

typedef struct tp_tile {
    vr_axis_tile h, w;
    vr_shape *shape; /* per value */
    void **data;
    vr_tensor latent;
} tp_tile;

typedef struct tp_state {
    const vr_program *p;
    const vr_exec_options *opt;
    vr_arith arith;
    vr_pool *pool;
    int32_t *last;
    int64_t scale, elem;
    bool owned_only;       /* two-pass-fixed */
    vr_moments **recorded; /* per operation: constants to use, or NULL */
    bool record;
    vr_nonfinite nonfinite;
    int64_t done, total;
} tp_state;

/* ---- statistics --------------------------------------------------------- */

/* The owned cells of value v of a tile as a dense copy from the pool. */
static vr_status owned_copy(tp_state *s, const tp_tile *t, int32_t v, vr_view *out, vr_error *err)
{
    const vr_shape q = t->shape[v];
    const int64_t per_h = q.h / t->h.length, per_w = q.w / t->w.length; /* cells per latent cell */
    const int64_t y0 = (t->h.owned / s->scale - t->h.start) * per_h, x0 = (t->w.owned / s->scale - t->w.start) * per_w;
    vr_shape o = q;
    o.h = t->h.owned_length / s->scale * per_h;
    o.w = t->w.owned_length / s->scale * per_w;
    out->shape = o;
    vr_status st = vr_pool_alloc(s->pool, (uint64_t)(o.n * o.c * o.t * o.h * o.w * s->elem), &out->data, err);
    if (st != VR_OK)
        return st;
    for (int64_t plane = 0; plane < q.n * q.c * q.t; plane++)
        for (int64_t y = 0; y < o.h; y++)
            memcpy((char *)out->data + (plane * o.h + y) * o.w * s->elem,
                   (const char *)t->data[v] + ((plane * q.h + y0 + y) * q.w + x0) * s->elem,
                   (size_t)(o.w * s->elem));
    return VR_OK;
}

static vr_status tile_moments(tp_state *s, const tp_tile *t, int32_t i, vr_moments *m, double *cells, vr_error *err)
{
    const int32_t in = s->p->op[i].in[0];
    vr_view x = {t->shape[in], t->data[in]};
    vr_status st = s->owned_only ? owned_copy(s, t, in, &x, err) : VR_OK;
    if (st != VR_OK)
        return st;
    *cells = (double)(x.shape.t * x.shape.h * x.shape.w);
    st = vr_group_norm_moments(&s->arith, &s->p->op[i], x, m, err);
    if (s->owned_only)
        vr_pool_free(s->pool, x.data);
    return st;
}

/* m[tile][k] -> merged[k]. */
static void merge(const tp_state *s, const vr_moments *m, const double *cells, int64_t tiles, int64_t n,
                  double eps, vr_moments *merged)
{
    double all = 0.0;
    for (int64_t t = 0; t < tiles; t++)
        all += cells[t];
    for (int64_t k = 0; k < n; k++) {
        double mean = 0.0, var = 0.0;
        for (int64_t t = 0; t < tiles; t++)
            mean += cells[t] / all * m[t * n + k].mean;
        for (int64_t t = 0; t < tiles; t++) {
            double apart = s->owned_only ? m[t * n + k].mean - mean : 0.0;
            var += cells[t] / all * (m[t * n + k].var + apart * apart);
        }
        merged[k] = (vr_moments){mean, var, vr_rsqrt(var + eps)};
    }
}

static vr_status merged_moments(tp_state *s, const tp_tile *tile, int64_t tiles, int32_t i,
                                vr_moments *merged, vr_error *err)
{
    const vr_op *op = &s->p->op[i];
    const int64_t n = tile[0].shape[i].n * op->p.group_norm.groups;
    if (s->recorded && !s->record) {
        memcpy(merged, s->recorded[i], (size_t)n * sizeof *merged);
        return VR_OK;
    }
    vr_moments *m = calloc((size_t)(tiles * n), sizeof *m);
    double *cells = calloc((size_t)tiles, sizeof *cells);
    vr_status st = m && cells ? VR_OK : vr_fail(err, VR_E_NOMEM, "cannot allocate moments of %lld tiles", (long long)tiles);
    for (int64_t t = 0; st == VR_OK && t < tiles; t++)
        st = tile_moments(s, &tile[t], i, m + t * n, &cells[t], err);
    if (st == VR_OK && tiles == 1)
        memcpy(merged, m, (size_t)n * sizeof *m); /* nothing to merge: as undivided */
    else if (st == VR_OK)
        merge(s, m, cells, tiles, n, op->p.group_norm.eps, merged);
    if (st == VR_OK && s->record) {
        s->recorded[i] = calloc((size_t)n, sizeof *merged);
        if (s->recorded[i])
            memcpy(s->recorded[i], merged, (size_t)n * sizeof *merged);
        else
            st = vr_fail(err, VR_E_NOMEM, "cannot allocate moments");
    }
    free(m);
    free(cells);
    return st;
}

/* ---- the walk in step --------------------------------------------------- */

static vr_status step_tile(tp_state *s, tp_tile *t, int32_t i, const vr_moments *merged, vr_error *err)
{
    const vr_op *op = &s->p->op[i];
    const vr_shape q = t->shape[i];
    const int64_t count = q.n * q.c * q.t * q.h * q.w;
    const int32_t over = vr_program_in_place(s->p, s->last, i);
    vr_status st = VR_OK;
    if (over >= 0)
        t->data[i] = t->data[op->in[over]];
    else
        st = vr_pool_alloc(s->pool, (uint64_t)(count * s->elem), &t->data[i], err);
    vr_view in[3] = {{.data = NULL}}, out = {q, t->data[i]};
    for (int k = 0; k < 3 && op->in[k] >= 0; k++)
        in[k] = (vr_view){t->shape[op->in[k]], t->data[op->in[k]]};
    if (st == VR_OK && op->kind == VR_OP_GROUP_NORM)
        st = vr_group_norm_apply(&s->arith, op, vr_op_weight(s->p, op, 0), vr_op_weight(s->p, op, 1), merged,
                                 in[0], out, err);
    else if (st == VR_OK)
        st = vr_exec_op(&s->arith, s->p, i, in, out, err);
    for (int k = 0; k < 3; k++) {
        int32_t v = op->in[k];
        if (v > 0 && s->last[v] == i && t->data[v]) {
            if (t->data[v] != t->data[i])
                vr_pool_free(s->pool, t->data[v]);
            t->data[v] = NULL;
        }
    }
    if (st == VR_OK && s->nonfinite.op < 0)
        vr_find_nonfinite(&s->arith, i, out.data, count, &s->nonfinite);
    return st;
}

static vr_status walk_tiles(tp_state *s, tp_tile *tile, int64_t tiles, vr_error *err)
{
    vr_status st = VR_OK;
    vr_moments *merged = NULL;
    for (int32_t i = 1; st == VR_OK && i < s->p->op_count; i++) {
        const vr_op *op = &s->p->op[i];
        if (op->kind == VR_OP_GROUP_NORM) {
            free(merged);
            merged = calloc((size_t)(tile[0].shape[i].n * op->p.group_norm.groups), sizeof *merged);
            st = merged ? merged_moments(s, tile, tiles, i, merged, err) : vr_fail(err, VR_E_NOMEM, "cannot allocate moments");
        }
        for (int64_t t = 0; st == VR_OK && t < tiles; t++)
            st = step_tile(s, &tile[t], i, merged, err);
        s->done += tiles;
        if (st == VR_OK && s->opt->on_progress && !s->opt->on_progress(s->opt->ctx, s->done, s->total))
            st = vr_fail(err, VR_E_CANCELLED, "cancelled after operation %d of %d", i, s->p->op_count - 1);
    }
    free(merged);
    return st;
}

/* ---- tiles -------------------------------------------------------------- */

static void free_tile(tp_state *s, tp_tile *t)
{
    for (int32_t v = 1; t->data && v < s->p->op_count; v++)
        if (t->data[v])
            vr_pool_free(s->pool, t->data[v]);
    free(t->data);
    free(t->shape);
    vr_tensor_free(&t->latent);
    *t = (tp_tile){.data = NULL};
}

/* Rows and columns [h.start..], [w.start..] of `whole` ([n][c][H][W], dense). */
static vr_status make_tile(tp_state *s, const vr_tensor *whole, vr_axis_tile h, vr_axis_tile w, tp_tile *t, vr_error *err)
{
    const int64_t n = whole->dim[0], c = whole->dim[1], H = whole->dim[2], W = whole->dim[3];
    const int64_t dim[4] = {n, c, h.length, w.length};
    *t = (tp_tile){.h = h, .w = w, .shape = calloc((size_t)s->p->op_count, sizeof *t->shape),
                   .data = calloc((size_t)s->p->op_count, sizeof *t->data)};
    if (!t->shape || !t->data)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate a tile");
    vr_status st = vr_tensor_new(&t->latent, whole->dtype, 4, dim, err);
    if (st == VR_OK)
        st = vr_program_shapes(s->p, (vr_shape){n, c, 1, h.length, w.length}, t->shape, err);
    if (st != VR_OK)
        return st;
    for (int64_t plane = 0; plane < n * c; plane++)
        for (int64_t y = 0; y < h.length; y++)
            memcpy((char *)t->latent.data + (plane * h.length + y) * w.length * s->elem,
                   (const char *)whole->data + ((plane * H + h.start + y) * W + w.start) * s->elem,
                   (size_t)(w.length * s->elem));
    t->data[0] = t->latent.data;
    return VR_OK;
}

/* The owned pixels of a finished tile go to the picture. */
static void place_tile(const tp_state *s, const tp_tile *t, vr_tensor *out)
{
    const vr_shape q = t->shape[s->p->output];
    const int64_t y0 = t->h.owned - t->h.start * s->scale, x0 = t->w.owned - t->w.start * s->scale;
    for (int64_t plane = 0; plane < q.n * q.c; plane++)
        for (int64_t y = 0; y < t->h.owned_length; y++)
            memcpy((char *)out->data + ((plane * out->dim[2] + t->h.owned + y) * out->dim[3] + t->w.owned) * s->elem,
                   (const char *)t->data[s->p->output] + ((plane * q.h + y0 + y) * q.w + x0) * s->elem,
                   (size_t)(t->w.owned_length * s->elem));
}

/* Decodes tiles [first, first+count) of the grid in step. */
static vr_status run_tiles(tp_state *s, const vr_tensor *latent, const vr_tile_grid *g, int64_t first,
                           int64_t count, vr_tensor *out, vr_error *err)
{
    tp_tile *tile = calloc((size_t)count, sizeof *tile);
    vr_status st = tile ? VR_OK : vr_fail(err, VR_E_NOMEM, "cannot allocate %lld tiles", (long long)count);
    for (int64_t i = 0; st == VR_OK && i < count; i++)
        st = make_tile(s, latent, g->h.tile[(first + i) / g->w.count], g->w.tile[(first + i) % g->w.count], &tile[i], err);
    if (st == VR_OK)
        st = walk_tiles(s, tile, count, err);
    for (int64_t i = 0; tile && i < count; i++) {
        if (st == VR_OK && out)
            place_tile(s, &tile[i], out);
        free_tile(s, &tile[i]);
    }
    free(tile);
    return st;
}

/* ---- fast statistics ---------------------------------------------------- */

static vr_status record_small(tp_state *s, const vr_tensor *latent, vr_shape shape, vr_error *err)
{
    vr_tensor small = {.data = NULL};
    s->recorded = calloc((size_t)s->p->op_count, sizeof *s->recorded);
    if (!s->recorded)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate recorded moments");
    vr_status st = vr_two_pass_small_copy(latent, shape, &small, err);
    if (st != VR_OK)
        return st;
    vr_axis_tile h = {0, small.dim[2], 0, small.dim[2] * s->scale}, w = {0, small.dim[3], 0, small.dim[3] * s->scale};
    vr_tile_grid g = {.h = {.count = 1, .tile = &h}, .w = {.count = 1, .tile = &w}};
    s->record = true;
    st = run_tiles(s, &small, &g, 0, 1, NULL, err);
    s->record = false;
    vr_tensor_free(&small);
    return st;
}

/* The pool gets what the picture and the tiles' latents leave of the limit. */
static vr_status create_pool(tp_state *s, const vr_tile_plan *plan, vr_error *err)
{
    const uint64_t limit = s->opt->memory_limit, held = (uint64_t)vr_two_pass_held(s->p, plan, s->elem);
    if (limit && limit <= held)
        return vr_fail(err, VR_E_BUDGET, "memory limit %llu bytes: the picture and the tiles' latents take %llu; this "
                       "plan needs %lld", (unsigned long long)limit, (unsigned long long)held,
                       (long long)plan->peak_bytes);
    return vr_pool_create(limit ? limit - held : 0, &s->pool, err);
}

/* ---- entry -------------------------------------------------------------- */

static vr_status run_plan(tp_state *s, const vr_tensor *latent, const vr_tile_plan *plan, vr_tensor *out, vr_error *err)
{
    const vr_tile_grid *g = &plan->grid[0];
    const int64_t tiles = g->h.count * g->w.count;
    s->total = tiles * (s->p->op_count - 1);
    if (plan->options.mode != VR_TILE_TWO_PASS_FAST || tiles == 1)
        return run_tiles(s, latent, g, 0, tiles, out, err);
    if (s->elem == 8)
        return vr_fail(err, VR_E_UNSUPPORTED, "two-pass-fast has no truth form: its statistics come from a resampled f32 latent");
    s->total += s->p->op_count - 1;
    vr_status st = record_small(s, latent, vr_two_pass_small(plan), err);
    if (st == VR_OK && s->nonfinite.op >= 0) { /* as published: the slow way instead */
        s->nonfinite.op = -1;
        for (int32_t i = 0; i < s->p->op_count; i++)
            free(s->recorded[i]);
        free(s->recorded);
        s->recorded = NULL;
        return run_tiles(s, latent, g, 0, tiles, out, err);
    }
    for (int64_t t = 0; st == VR_OK && t < tiles; t++)
        st = run_tiles(s, latent, g, t, 1, out, err);
    return st;
}

vr_status vr_two_pass_run(const vr_program *p, const vr_tensor *latent, const vr_tile_plan *plan,
                          const vr_exec_options *opt, vr_tensor *out, vr_tile_stats *stats, vr_error *err)
{
    const double start = vr_seconds_now();
    int64_t sw, count = 0;
    tp_state s = {.p = p, .opt = opt, .elem = opt->policy == VR_POLICY_TRUTH ? 8 : 4, .nonfinite = {.op = -1},
                  .owned_only = plan->options.mode == VR_TILE_TWO_PASS_FIXED};
    s.arith = (vr_arith){.policy = opt->policy, .order = opt->order,
                         .threads = opt->threads ? opt->threads : omp_get_max_threads()};
    vr_program_scale(p, &s.scale, &sw);
    vr_tensor z = {.data = NULL};
    *out = z;
    const vr_shape l = plan->latent;
    vr_status st = vr_kernels_get(&s.arith.k, err);
    const vr_dtype dtype = s.elem == 8 ? VR_F64 : VR_F32;
    const int64_t flat[4] = {l.n, l.c, l.h, l.w};
    int64_t dim[4] = {l.n, 0, l.h * s.scale, l.w * s.scale};
    s.last = calloc((size_t)p->op_count, sizeof *s.last);
    if (st == VR_OK && !s.last)
        st = vr_fail(err, VR_E_NOMEM, "cannot allocate live ranges");
    if (st == VR_OK && (l.t != 1 || s.scale != sw))
        st = vr_fail(err, VR_E_UNSUPPORTED, "two-pass tiling takes pictures with one scale for rows and columns");
    if (st == VR_OK) {
        vr_program_live_ranges(p, s.last);
        st = create_pool(&s, plan, err);
    }
    if (st == VR_OK)
        st = vr_tensor_new(&z, dtype, 4, flat, err);
    if (st == VR_OK)
        st = vr_tensor_count(&z, &count, err);
    if (st == VR_OK)
        st = vr_convert(dtype, z.data, latent->dtype, latent->data, (uint64_t)count, err);
    if (st == VR_OK) {
        if (dtype == VR_F32)
            vr_store_round(&s.arith, z.data, count);
        dim[1] = p->op[p->output].channels;
        st = vr_tensor_new(out, dtype, 4, dim, err);
    }
    if (st == VR_OK)
        st = run_plan(&s, &z, plan, out, err);
    if (st != VR_OK)
        vr_tensor_free(out);
    if (stats) {
        stats->tiles_done = plan->tile_count;
        vr_fill_stats(&stats->exec, &s.arith, s.pool, start, &s.nonfinite);
        stats->exec.pool.peak_bytes += (uint64_t)vr_two_pass_held(p, plan, s.elem);
    }
    for (int32_t i = 0; s.recorded && i < p->op_count; i++)
        free(s.recorded[i]);
    free(s.recorded);
    vr_pool_destroy(s.pool);
    vr_tensor_free(&z);
    free(s.last);
    return st;
}
