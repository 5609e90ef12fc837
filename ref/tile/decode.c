/* Decoding under any tiling mode (clauses T1.4, T1.7, T1.8).
 *
 * A plan of one tile runs the program on the latent itself, so it is the
 * undivided decode bit for bit. The blending schemes run the program once for
 * each tile; the memory limit is shared: what the scheme holds is taken off
 * before a tile gets the rest.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "exec/step.h"
#include "tile/internal.h"

typedef struct tile_run {
    const vr_program *p;
    const vr_exec_options *opt;  /* the caller's */
    vr_exec_options tile_opt;    /* of one tile */
    const vr_tile_plan *plan;
    vr_tile_stats stats;
    vr_pool *pool;
    uint64_t picture_bytes, peak;
    int64_t macs_done, tile_macs;
    double *op_seconds;          /* of the tile being run; NULL: not wanted */
} tile_run;

static uint64_t held(const tile_run *r)
{
    vr_pool_stats st;
    vr_pool_get_stats(r->pool, &st);
    return r->picture_bytes + st.live_bytes;
}

static bool on_progress(void *ctx, int64_t done, int64_t total)
{
    tile_run *r = ctx;
    r->tile_macs = total;
    return r->opt->on_progress(r->opt->ctx, r->macs_done + done, r->plan->macs);
}

static void add_stats(tile_run *r, const vr_exec_stats *s)
{
    vr_exec_stats *to = &r->stats.exec;
    const uint64_t before = held(r), peak = before + s->pool.peak_bytes;
    if (peak > r->peak)
        r->peak = peak;
    to->pool.allocations += s->pool.allocations;
    to->pool.hits += s->pool.hits;
    if (before + s->pool.peak_held_bytes > to->pool.peak_held_bytes)
        to->pool.peak_held_bytes = before + s->pool.peak_held_bytes;
    if (s->weight_scratch_bytes > to->weight_scratch_bytes)
        to->weight_scratch_bytes = s->weight_scratch_bytes;
    if (to->nonfinite.op < 0)
        to->nonfinite = s->nonfinite;
    to->threads = s->threads;
    to->isa = s->isa;
    for (int32_t i = 0; r->op_seconds && i < r->p->op_count; i++)
        to->op_seconds[i] += r->op_seconds[i];
}

static vr_status decode_tile(void *ctx, const vr_tensor *latent, vr_tensor *out, vr_error *err)
{
    tile_run *r = ctx;
    vr_exec_stats s = {.op_seconds = r->op_seconds};
    s.nonfinite.op = -1;
    if (r->op_seconds)
        memset(r->op_seconds, 0, (size_t)r->p->op_count * sizeof *r->op_seconds);
    if (r->opt->memory_limit) {
        const uint64_t now = held(r);
        if (now >= r->opt->memory_limit)
            return vr_fail(err, VR_E_BUDGET,
                           "memory limit %llu bytes: the picture and the blend hold %llu before tile %lld; want a "
                           "higher limit",
                           (unsigned long long)r->opt->memory_limit, (unsigned long long)now,
                           (long long)r->stats.tiles_done);
        r->tile_opt.memory_limit = r->opt->memory_limit - now;
    }
    r->tile_macs = 0;
    vr_status st = vr_exec_run(r->p, latent, &r->tile_opt, out, &s, err);
    if (st != VR_OK) {
        vr_fail_prefix(err, "tile %lld of %lld", (long long)(r->stats.tiles_done + 1), (long long)r->plan->tile_count);
        return st;
    }
    add_stats(r, &s);
    r->macs_done += r->tile_macs;
    r->stats.tiles_done++;
    return VR_OK;
}

/* Bytes and channels of the finished picture. */
static vr_status picture_of(tile_run *r, int64_t *channels, vr_error *err)
{
    vr_shape *shape = malloc((size_t)r->p->op_count * sizeof *shape);
    if (!shape)
        return vr_fail(err, VR_E_NOMEM, "no memory for %d shapes", (int)r->p->op_count);
    int64_t count = 0;
    vr_status s = vr_program_shapes(r->p, r->plan->latent, shape, err);
    if (s == VR_OK)
        s = vr_shape_count(shape[r->p->output], &count, err);
    if (s == VR_OK)
        *channels = shape[r->p->output].t == r->plan->latent.t ? shape[r->p->output].c : 0;
    free(shape);
    r->picture_bytes = (uint64_t)count * sizeof(float);
    return s;
}

static vr_status blend(tile_run *r, const vr_tensor *latent, vr_tensor *out, vr_error *err)
{
    const uint64_t limit = r->opt->memory_limit;
    int64_t channels = 0;
    vr_status s = picture_of(r, &channels, err);
    if (s != VR_OK)
        return s;
    if (limit && limit <= r->picture_bytes)
        return vr_fail(err, VR_E_BUDGET, "memory limit %llu bytes: the picture alone takes %llu; this plan needs %lld",
                       (unsigned long long)limit, (unsigned long long)r->picture_bytes, (long long)r->plan->peak_bytes);
    s = vr_pool_create(limit ? limit - r->picture_bytes : 0, &r->pool, err);
    if (s == VR_OK)
        s = vr_blend_run_in(r->plan, latent, channels, decode_tile, r, r->pool, out, err);
    if (r->pool) {
        vr_pool_stats st;
        vr_pool_get_stats(r->pool, &st);
        r->stats.exec.pool.allocations += st.allocations;
        r->stats.exec.pool.hits += st.hits;
    }
    r->stats.exec.pool.peak_bytes = r->peak;
    return s;
}

static vr_status blend_tiles(tile_run *r, const vr_tensor *latent, vr_tensor *out, vr_error *err)
{
    double *sums = r->stats.exec.op_seconds;
    if (sums) {
        r->op_seconds = malloc((size_t)r->p->op_count * sizeof *r->op_seconds);
        if (!r->op_seconds)
            return vr_fail(err, VR_E_NOMEM, "no memory for %d times", (int)r->p->op_count);
        memset(sums, 0, (size_t)r->p->op_count * sizeof *sums);
    }
    r->tile_opt = *r->opt;
    r->tile_opt.on_value = NULL;
    r->tile_opt.on_progress = r->opt->on_progress ? on_progress : NULL;
    r->tile_opt.ctx = r;
    const double start = vr_seconds_now();
    vr_status s = blend(r, latent, out, err);
    r->stats.exec.seconds = vr_seconds_now() - start;
    vr_pool_destroy(r->pool);
    free(r->op_seconds);
    return s;
}

vr_status vr_tile_decode(const vr_program *p, const vr_tensor *latent, const vr_tile_plan *plan,
                         const vr_exec_options *opt, vr_tensor *out, vr_tile_stats *stats, vr_error *err)
{
    const vr_exec_options plain = {.policy = VR_POLICY_GOLDEN};
    tile_run r = {.p = p, .opt = opt ? opt : &plain, .plan = plan};
    r.stats.exec.op_seconds = stats ? stats->exec.op_seconds : NULL;
    r.stats.exec.nonfinite.op = -1;
    *out = (vr_tensor){.data = NULL};
    vr_status s;
    if (plan->tile_count < 1)
        return vr_fail(err, VR_E_ARGUMENT, "the tile plan is empty; want one that vr_tile_plan_make filled");
    const bool whole = plan->tile_count == 1 && plan->options.mode != VR_TILE_EXACT;
    switch (whole ? VR_TILE_NONE : plan->options.mode) {
    case VR_TILE_TWO_PASS:
    case VR_TILE_TWO_PASS_FAST:
    case VR_TILE_TWO_PASS_FIXED:
        s = vr_two_pass_run(p, latent, plan, r.opt, out, &r.stats, err);
        break;
    case VR_TILE_EXACT:
        s = vr_exact_run(p, latent, plan, r.opt, out, &r.stats, err);
        break;
    default:
        if (!whole) {
            s = blend_tiles(&r, latent, out, err);
            break;
        }
        s = vr_exec_run(p, latent, r.opt, out, &r.stats.exec, err);
        r.stats.tiles_done = s == VR_OK;
    }
    if (stats)
        *stats = r.stats;
    return s;
}
