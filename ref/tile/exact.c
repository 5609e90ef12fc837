/* Tile mode `exact` (clause T10): every operation is computed over the true
 * whole, part by part, so that the result is the undivided one bit for bit, in
 * as little activation memory as asked for.
 *
 * Values that something needs whole (group-norm statistics, attention), that
 * several operations read, or that would make a convolution run twice are
 * *stored*; the rest is computed on demand for each part. A stored value lies in
 * the pool when it fits beside the parts' working memory, else in the host
 * store. All decisions follow from shapes and the limit: a dry run takes them
 * first and fails, if it must, before any work.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "exec/step.h"
#include "tile/exact.h"

static vr_status put_somewhere(ex_state *s, int32_t v, ex_place place, vr_error *err)
{
    ex_value *e = &s->value[v];
    vr_status st = place == EX_POOL ? ex_alloc(s, e->bytes, &e->data, err) : ex_store_get(s, e->bytes, &e->data, err);
    return st;
}

/* ---- producing ---------------------------------------------------------- */

static void drop_weights(ex_state *s)
{
    for (int32_t v = 0; v < s->p->op_count; v++)
        if (s->value[v].packed) {
            vr_conv2d_release(&s->value[v].weights);
            s->value[v].packed = false;
        }
}

static vr_status produce_parts(ex_state *s, int32_t v, vr_error *err)
{
    ex_value *e = &s->value[v];
    const vr_shape q = s->shape[v];
    ex_choice c;
    vr_status st = ex_choose(s, v, &c, err);
    if (st != VR_OK)
        return st;
    ex_part part;
    if (c.place == EX_POOL && c.th == q.h && c.tw == q.w) { /* in one piece: the part is the value */
        st = ex_eval(s, v, (ex_region){0, q.h, 0, q.w}, true, &part, err);
        e->data = part.data;
        e->place = EX_POOL;
        return st;
    }
    st = put_somewhere(s, v, c.place, err);
    for (int64_t y = 0; st == VR_OK && y < q.h; y += c.th)
        for (int64_t x = 0; st == VR_OK && x < q.w; x += c.tw) {
            ex_region r = {y, y + c.th < q.h ? y + c.th : q.h, x, x + c.tw < q.w ? x + c.tw : q.w};
            st = ex_eval(s, v, r, true, &part, err);
            if (st != VR_OK)
                break;
            ex_copy_in(s, v, &part);
            ex_release(s, &part);
        }
    e->place = c.place; /* only now: while parts are computed the value is not there to be read */
    return st;
}

static vr_status produce_attention(ex_state *s, int32_t v, vr_error *err)
{
    const vr_op *op = &s->p->op[v];
    ex_value *e = &s->value[v];
    bool fits = s->live + e->bytes <= ex_limit(s);
    e->place = fits ? EX_POOL : EX_STORE;
    vr_status st = put_somewhere(s, v, e->place, err);
    if (st != VR_OK || s->dry)
        return st;
    /* Keys, values and queries are read block by block into scratch, wherever
     * the whole lies. */
    vr_view in[3];
    for (int k = 0; k < 3; k++)
        in[k] = (vr_view){s->shape[op->in[k]], s->value[op->in[k]].data};
    return vr_op_attention(&s->arith, op, in[0], in[1], in[2], (vr_view){s->shape[v], e->data}, err);
}

static vr_status take_moments(ex_state *s, int32_t v, vr_error *err)
{
    const vr_op *op = &s->p->op[v];
    ex_value *e = &s->value[v];
    const size_t n = (size_t)(s->shape[v].n * op->p.group_norm.groups);
    e->moments = calloc(n, sizeof *e->moments);
    if (!e->moments)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate moments of '%s'", op->tap);
    if (s->dry)
        return VR_OK;
    const int32_t in = op->in[0];
    return vr_group_norm_moments(&s->arith, op, (vr_view){s->shape[in], s->value[in].data}, e->moments, err);
}

static void forget(ex_state *s, int32_t v)
{
    ex_value *e = &s->value[v];
    if (e->place == EX_POOL)
        ex_free(s, e->bytes, e->data);
    else if (e->place == EX_STORE)
        ex_store_put(s, e->bytes, e->data);
    e->place = EX_NOWHERE;
    e->data = NULL;
}

static void watch(ex_state *s, int32_t v)
{
    const vr_shape q = s->shape[v];
    if (!s->dry && s->nonfinite.op < 0)
        vr_find_nonfinite(&s->arith, v, s->value[v].data, q.n * q.c * q.t * q.h * q.w, &s->nonfinite);
}

static vr_status walk(ex_state *s, const vr_op_cost *cost, vr_error *err)
{
    vr_status st = VR_OK;
    for (int32_t i = 1; st == VR_OK && i < s->p->op_count; i++) {
        s->arith.threads = s->threads;
        if (s->p->op[i].kind == VR_OP_GROUP_NORM)
            st = take_moments(s, i, err);
        if (st == VR_OK && s->value[i].stored) {
            st = s->p->op[i].kind == VR_OP_ATTENTION ? produce_attention(s, i, err) : produce_parts(s, i, err);
            drop_weights(s);
            s->arith.threads = s->threads;
            if (st == VR_OK)
                watch(s, i);
        }
        for (int32_t v = 1; st == VR_OK && v <= i; v++)
            if (s->value[v].place != EX_NOWHERE && s->value[v].last == i)
                forget(s, v);
        s->done_macs += cost[i].macs;
        if (st == VR_OK && !s->dry && s->opt->on_progress && cost[i].macs > 0 &&
            !s->opt->on_progress(s->opt->ctx, s->done_macs, s->total_macs))
            st = vr_fail(err, VR_E_CANCELLED, "cancelled after operation %d of %d (%s)", i,
                         s->p->op_count - 1, s->p->op[i].tap);
    }
    return st;
}

/* ---- setting up --------------------------------------------------------- */

static void clean(ex_state *s)
{
    for (int32_t v = 0; s->value && v < s->p->op_count; v++) {
        forget(s, v);
        free(s->value[v].moments);
        s->value[v].moments = NULL;
    }
    if (s->value)
        drop_weights(s);
}

static vr_status set_up(ex_state *s, vr_shape latent, vr_op_cost *cost, vr_error *err)
{
    const size_t n = (size_t)s->p->op_count;
    vr_program_cost total;
    s->shape = calloc(n, sizeof *s->shape);
    s->value = calloc(n, sizeof *s->value);
    bool *heavy = calloc(n, sizeof *heavy);
    vr_status st = s->shape && s->value && heavy ? VR_OK : vr_fail(err, VR_E_NOMEM, "cannot allocate the run state");
    if (st == VR_OK)
        st = vr_program_shapes(s->p, latent, s->shape, err);
    if (st == VR_OK)
        st = vr_program_cost_of(s->p, latent, s->elem, &total, cost, err);
    if (st == VR_OK) {
        s->total_macs = total.macs;
        ex_choose_stored(s, heavy);
        s->out_h = s->shape[s->p->output].h;
        s->out_w = s->shape[s->p->output].w;
        for (size_t v = 0; v < n; v++) {
            const vr_shape q = s->shape[v];
            s->value[v].bytes = (uint64_t)(q.n * q.c * q.t * q.h * q.w * s->elem);
        }
        s->value[0].place = EX_CALLER;
    }
    free(heavy);
    return st;
}

/* One walk, dry or real. What it found stays in *s; values are forgotten. */
static vr_status dry_walk(ex_state *s, const vr_op_cost *cost, vr_error *err)
{
    s->dry = s->counting = true;
    vr_status st = walk(s, cost, err);
    clean(s);
    s->value[0].place = EX_CALLER;
    s->dry = s->counting = false;
    return st;
}

static int64_t on_demand_elements(const ex_state *s)
{
    int64_t once = 0;
    for (int32_t v = 1; v < s->p->op_count; v++)
        if (!s->value[v].stored)
            once += (int64_t)s->value[v].bytes / s->elem;
    return once;
}

vr_status vr_exact_predict(const vr_program *p, vr_shape latent, const vr_tile_options *o,
                           uint64_t memory_limit, int64_t elem, int64_t *peak, vr_error *err)
{
    const vr_exec_options opt = {.memory_limit = memory_limit};
    ex_state s = {.p = p, .opt = &opt, .elem = elem, .tile_h = o->tile_h, .tile_w = o->tile_w};
    s.arith.threads = s.threads = 1;
    vr_op_cost *cost = calloc((size_t)p->op_count, sizeof *cost);
    vr_status st = cost ? set_up(&s, latent, cost, err) : vr_fail(err, VR_E_NOMEM, "cannot allocate costs");
    if (st == VR_OK)
        st = dry_walk(&s, cost, err);
    *peak = (int64_t)s.peak;
    free(s.shape);
    free(s.value);
    free(cost);
    return st;
}

static vr_status convert_latent(const ex_state *s, const vr_tensor *latent, vr_tensor *copy, vr_error *err)
{
    int64_t count;
    char text[96];
    const vr_dtype want = s->elem == 8 ? VR_F64 : VR_F32;
    if (!vr_dtype_is_float(latent->dtype))
        return vr_fail(err, VR_E_DTYPE, "latent is %s; want a float type", vr_tensor_describe(latent, text, sizeof text));
    vr_status st = vr_tensor_new(copy, want, latent->rank, latent->dim, err);
    if (st == VR_OK)
        st = vr_tensor_count(latent, &count, err);
    if (st == VR_OK)
        st = vr_convert(want, copy->data, latent->dtype, latent->data, (uint64_t)count, err);
    if (st == VR_OK && want == VR_F32)
        vr_store_round(&s->arith, copy->data, count);
    return st;
}

static vr_status hand_over(const ex_state *s, int32_t rank, vr_tensor *out, vr_error *err)
{
    const vr_shape q = s->shape[s->p->output];
    const int64_t four[4] = {q.n, q.c, q.h, q.w}, five[5] = {q.n, q.c, q.t, q.h, q.w};
    vr_status st = vr_tensor_new(out, s->elem == 8 ? VR_F64 : VR_F32, rank, rank == 4 ? four : five, err);
    if (st == VR_OK)
        memcpy(out->data, s->value[s->p->output].data, s->value[s->p->output].bytes);
    return st;
}

vr_status vr_exact_run(const vr_program *p, const vr_tensor *latent, const vr_tile_plan *plan,
                       const vr_exec_options *opt, vr_tensor *out, vr_tile_stats *stats, vr_error *err)
{
    const double start = vr_seconds_now();
    ex_state s = {.p = p, .opt = opt, .elem = opt->policy == VR_POLICY_TRUTH ? 8 : 4,
                  .tile_h = plan->options.tile_h, .tile_w = plan->options.tile_w,
                  .spill_dir = plan->options.spill_dir, .nonfinite = {.op = -1}};
    s.arith = (vr_arith){.policy = opt->policy, .order = opt->order,
                         .threads = opt->threads ? opt->threads : omp_get_max_threads()};
    s.threads = s.arith.threads;
    vr_tensor copy = {.data = NULL};
    *out = copy;
    vr_op_cost *cost = calloc((size_t)p->op_count, sizeof *cost);
    vr_status st = cost ? vr_kernels_get(&s.arith.k, err) : vr_fail(err, VR_E_NOMEM, "cannot allocate costs");
    if (st == VR_OK)
        st = set_up(&s, plan->latent, cost, err);
    if (st == VR_OK)
        st = dry_walk(&s, cost, err);
    const uint64_t predicted = s.peak;
    const int64_t computed = s.recomputed;
    s.peak = s.live = s.store_live = s.store_peak = s.store_written = 0;
    s.done_macs = 0;
    if (st == VR_OK)
        st = vr_pool_create(opt->memory_limit, &s.pool, err);
    if (st == VR_OK)
        st = convert_latent(&s, latent, &copy, err);
    if (st == VR_OK) {
        s.value[0].data = copy.data;
        st = walk(&s, cost, err);
    }
    if (st == VR_OK)
        st = hand_over(&s, latent->rank, out, err);
    if (st == VR_OK && s.peak != predicted)
        st = vr_fail(err, VR_E_INTERNAL, "exact tiling: peak of %llu bytes, predicted %llu",
                     (unsigned long long)s.peak, (unsigned long long)predicted);
    if (st != VR_OK)
        vr_tensor_free(out);
    if (stats) {
        stats->recomputed_elements = s.value ? computed - on_demand_elements(&s) : 0;
        stats->spilled_bytes = s.store_written;
        stats->spill_peak_bytes = s.store_peak;
        stats->tiles_done = plan->tile_count;
        s.arith.threads = s.threads;
        vr_fill_stats(&stats->exec, &s.arith, s.pool, start, &s.nonfinite);
    }
    if (s.value) {
        s.dry = false;
        clean(&s);
    }
    vr_pool_destroy(s.pool);
    vr_tensor_free(&copy);
    free(s.shape);
    free(s.value);
    free(cost);
    return st;
}
