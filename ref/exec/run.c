/* The executor: walks a program once, value by value (clauses N1, N4, N8).
 *
 * A value lives in the pool from the operation that makes it to the last that
 * reads it; an element-wise operation writes over an input that dies there.
 * So the pool's peak is exactly vr_program_cost's peak_bytes.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "exec/step.h"
#include "vaeref/exec.h"

typedef struct run_state {
    const vr_program *p;
    const vr_exec_options *opt;
    vr_arith arith;
    vr_shape *shape;   /* per value */
    int32_t *last;     /* per value */
    void **data;       /* per value: pool block, or the latent */
    vr_op_cost *cost;
    vr_pool *pool;
    vr_tensor latent;  /* converted copy, when one was needed */
    vr_exec_stats stats;
    int32_t rank;
} run_state;

static vr_dtype value_dtype(const run_state *r)
{
    return vr_arith_is_f64(&r->arith) ? VR_F64 : VR_F32;
}

static void describe_value(const run_state *r, int32_t i, vr_tensor *t)
{
    const vr_shape s = r->shape[i];
    *t = (vr_tensor){.dtype = value_dtype(r), .rank = r->rank, .data = r->data[i]};
    int64_t dim[5] = {s.n, s.c, s.t, s.h, s.w};
    int k = 0;
    for (int d = 0; d < 5; d++)
        if (r->rank == 5 || d != 2)
            t->dim[k++] = dim[d];
}

/* ---- the latent --------------------------------------------------------- */

static vr_status take_latent(run_state *r, const vr_tensor *latent, vr_error *err)
{
    char text[96];
    int64_t count;
    vr_status s = vr_tensor_count(latent, &count, err);
    if (s != VR_OK)
        return s;
    const vr_dtype want = value_dtype(r);
    bool ready = latent->dtype == want && ((uintptr_t)latent->data & (vr_dtype_size(want) - 1)) == 0 &&
                 r->arith.policy != VR_POLICY_F16 && r->arith.policy != VR_POLICY_BF16;
    if (ready) {
        r->data[0] = latent->data;
        return VR_OK;
    }
    if (!vr_dtype_is_float(latent->dtype))
        return vr_fail(err, VR_E_DTYPE, "latent is %s; want a float type",
                       vr_tensor_describe(latent, text, sizeof text));
    s = vr_tensor_new(&r->latent, want, latent->rank, latent->dim, err);
    if (s == VR_OK)
        s = vr_convert(want, r->latent.data, latent->dtype, latent->data, (uint64_t)count, err);
    if (s == VR_OK && want == VR_F32)
        vr_store_round(&r->arith, r->latent.data, count);
    r->data[0] = r->latent.data;
    return s;
}

static vr_status latent_shape(const vr_program *p, const vr_tensor *t, vr_shape *out, vr_error *err)
{
    char text[96];
    vr_tensor_describe(t, text, sizeof text);
    if (t->rank == 4)
        *out = (vr_shape){t->dim[0], t->dim[1], 1, t->dim[2], t->dim[3]};
    else if (t->rank == 5)
        *out = (vr_shape){t->dim[0], t->dim[1], t->dim[2], t->dim[3], t->dim[4]};
    else
        return vr_fail(err, VR_E_SHAPE, "latent is %s; want rank 4 [N,C,H,W] or rank 5 [N,C,T,H,W]", text);
    if (out->c != p->op[0].channels)
        return vr_fail(err, VR_E_SHAPE, "latent is %s; this decoder needs %lld channels, not %lld", text,
                       (long long)p->op[0].channels, (long long)out->c);
    return VR_OK;
}

/* ---- one operation ------------------------------------------------------ */

static vr_status compute(run_state *r, int32_t i, vr_error *err)
{
    const vr_op *op = &r->p->op[i];
    vr_view in[3] = {{.data = NULL}};
    for (int k = 0; k < 3 && op->in[k] >= 0; k++)
        in[k] = (vr_view){r->shape[op->in[k]], r->data[op->in[k]]};
    return vr_exec_op(&r->arith, r->p, i, in, (vr_view){r->shape[i], r->data[i]}, err);
}

/* Memory for value i: an input that dies here, or a new block. */
static vr_status place(run_state *r, int32_t i, vr_error *err)
{
    const vr_op *op = &r->p->op[i];
    int32_t over = vr_program_in_place(r->p, r->last, i);
    if (over >= 0) {
        r->data[i] = r->data[op->in[over]];
        return VR_OK;
    }
    int64_t count;
    vr_status s = vr_shape_count(r->shape[i], &count, err);
    if (s == VR_OK)
        s = vr_pool_alloc(r->pool, (uint64_t)count * vr_dtype_size(value_dtype(r)), &r->data[i], err);
    if (s != VR_OK)
        vr_fail_prefix(err, "operation %d (%s)", i, op->tap);
    return s;
}

static void release_dead(run_state *r, int32_t i)
{
    const vr_op *op = &r->p->op[i];
    for (int k = 0; k < 3; k++) {
        int32_t v = op->in[k];
        if (v > 0 && r->last[v] == i && r->data[v]) {
            if (r->data[v] != r->data[i]) /* else written over: it lives on as value i */
                vr_pool_free(r->pool, r->data[v]);
            r->data[v] = NULL;
        }
    }
}

/* ---- the walk ----------------------------------------------------------- */

static vr_status report_value(run_state *r, int32_t i, vr_error *err)
{
    const vr_shape q = r->shape[i];
    if (r->stats.nonfinite.op < 0)
        vr_find_nonfinite(&r->arith, i, r->data[i], q.n * q.c * q.t * q.h * q.w, &r->stats.nonfinite);
    if (!r->opt->on_value)
        return VR_OK;
    vr_tensor t;
    describe_value(r, i, &t);
    return r->opt->on_value(r->opt->ctx, i, r->p->op[i].tap, &t, err);
}

static vr_status walk(run_state *r, int64_t total, vr_error *err)
{
    int64_t done = 0;
    vr_status s = report_value(r, 0, err);
    for (int32_t i = 1; s == VR_OK && i < r->p->op_count; i++) {
        double start = vr_seconds_now();
        s = place(r, i, err);
        if (s == VR_OK)
            s = compute(r, i, err);
        if (s == VR_OK)
            s = report_value(r, i, err);
        if (s != VR_OK)
            break;
        release_dead(r, i);
        if (r->stats.op_seconds)
            r->stats.op_seconds[i] = vr_seconds_now() - start;
        done += r->cost[i].macs;
        if (r->opt->on_progress && r->cost[i].macs > 0 && !r->opt->on_progress(r->opt->ctx, done, total))
            s = vr_fail(err, VR_E_CANCELLED, "cancelled after operation %d of %d (%s)", i,
                        r->p->op_count - 1, r->p->op[i].tap);
    }
    return s;
}

static vr_status prepare(run_state *r, const vr_tensor *latent, int64_t *total, vr_error *err)
{
    const size_t n = (size_t)r->p->op_count;
    r->shape = calloc(n, sizeof *r->shape);
    r->last = calloc(n, sizeof *r->last);
    r->data = calloc(n, sizeof *r->data);
    r->cost = calloc(n, sizeof *r->cost);
    if (!r->shape || !r->last || !r->data || !r->cost)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate the run state");
    vr_shape in;
    vr_program_cost cost;
    vr_status s = latent_shape(r->p, latent, &in, err);
    if (s == VR_OK)
        s = vr_program_shapes(r->p, in, r->shape, err);
    if (s == VR_OK)
        s = vr_program_cost_of(r->p, in, (int64_t)vr_dtype_size(value_dtype(r)), &cost, r->cost, err);
    if (s != VR_OK)
        return s;
    *total = cost.macs;
    vr_program_live_ranges(r->p, r->last);
    s = vr_pool_create(r->opt->memory_limit, &r->pool, err);
    return s == VR_OK ? take_latent(r, latent, err) : s;
}

static vr_status hand_over(run_state *r, vr_tensor *out, vr_error *err)
{
    vr_tensor t;
    int64_t count;
    describe_value(r, r->p->output, &t);
    vr_status s = vr_tensor_count(&t, &count, err);
    if (s == VR_OK)
        s = vr_tensor_new(out, t.dtype, t.rank, t.dim, err);
    if (s == VR_OK)
        memcpy(out->data, t.data, (size_t)count * vr_dtype_size(t.dtype));
    return s;
}

static void finish(run_state *r)
{
    vr_pool_destroy(r->pool);
    vr_tensor_free(&r->latent);
    free(r->shape);
    free(r->last);
    free(r->data);
    free(r->cost);
}

vr_status vr_exec_run(const vr_program *p, const vr_tensor *latent, const vr_exec_options *opt,
                      vr_tensor *out, vr_exec_stats *stats, vr_error *err)
{
    const vr_exec_options plain = {.policy = VR_POLICY_GOLDEN};
    run_state r = {.p = p, .opt = opt ? opt : &plain, .rank = latent->rank};
    r.stats.nonfinite.op = -1;
    r.stats.op_seconds = stats ? stats->op_seconds : NULL;
    if ((unsigned)r.opt->policy >= VR_POLICY_COUNT || (unsigned)r.opt->order >= VR_ORDER_COUNT ||
        r.opt->threads < 0)
        return vr_fail(err, VR_E_ARGUMENT, "policy %d, order %d, threads %d: out of range",
                       (int)r.opt->policy, (int)r.opt->order, r.opt->threads);
    *out = (vr_tensor){.data = NULL};
    r.arith = (vr_arith){.policy = r.opt->policy, .order = r.opt->order,
                         .threads = r.opt->threads ? r.opt->threads : omp_get_max_threads()};
    double start = vr_seconds_now();
    int64_t total = 0;
    vr_status s = vr_kernels_get(&r.arith.k, err);
    if (s == VR_OK)
        s = prepare(&r, latent, &total, err);
    if (s == VR_OK)
        s = walk(&r, total, err);
    if (s == VR_OK)
        s = hand_over(&r, out, err);
    const vr_nonfinite nonfinite = r.stats.nonfinite;
    vr_fill_stats(&r.stats, &r.arith, r.pool, start, &nonfinite);
    if (stats)
        *stats = r.stats;
    finish(&r);
    return s;
}
