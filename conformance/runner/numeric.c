/* Levels L1 to L4: run, compute what is expected, judge. Expected values are made
 * after the answer has come, in this process.
 *
 * A job is run several times with other inputs (and, where the backend takes them,
 * other strides), and all results are judged together: a result kept from an earlier
 * run shows, and small outputs make enough elements (clause J6).
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/own_model.h"
#include "runner/run.h"
#include "vaeref/metrics.h"

enum { MOST_RUNS = 8, ENOUGH_ELEMENTS = 512 };

static int64_t runs_for(const vc_problem *p)
{
    int64_t n = 1;
    if (vc_own_latents(p->c))
        return 1; /* the latents that were given, and no others */
    if (p->tiled)
        return 1; /* large, and what a second run would show is asked of undivided decodes */
    vr_shape_count(p->shape[p->last], &n, NULL);
    int64_t runs = p->method == VC_BY_RATIO ? (VJ_POOL_ELEMENTS + n - 1) / n : 2;
    const int64_t most = n * MOST_RUNS < ENOUGH_ELEMENTS ? (ENOUGH_ELEMENTS + n - 1) / n : MOST_RUNS;
    return runs < 2 ? 2 : runs > most ? most : runs;
}

/* ---- pooling: [n][c][t][h][w] results one after another along n --------------------- */

static vr_status append(vr_tensor *all, const vr_tensor *one, const int64_t dim[5], int64_t run, int64_t runs, vr_error *err)
{
    int64_t count = 0;
    vr_status s = vr_tensor_count(one, &count, err);
    if (s == VR_OK && !all->data) {
        const int64_t d[5] = {dim[0] * runs, dim[1], dim[2], dim[3], dim[4]};
        s = vr_tensor_new(all, one->dtype, 5, d, err);
    }
    if (s == VR_OK) {
        const size_t bytes = (size_t)count * vr_dtype_size(one->dtype);
        memcpy((char *)all->data + (size_t)run * bytes, one->data, bytes);
    }
    return s;
}

typedef struct pool {
    vr_tensor got;
    vc_expected want;
    int64_t runs;
} pool;

static void pool_free(pool *p)
{
    vr_tensor_free(&p->got);
    vc_expected_free(&p->want);
}

static vr_status pool_add(pool *all, const vc_problem *p, int64_t run, const vr_tensor *got, const vr_tensor *feed, vr_error *err)
{
    int64_t dim[5];
    vc_expected e;
    vc_dims(p->shape[p->last], dim);
    vr_status s = vc_problem_expect(p, feed, &e, err);
    if (s == VR_OK)
        s = append(&all->got, got, dim, run, all->runs, err);
    if (s == VR_OK)
        s = append(&all->want.truth, &e.truth, dim, run, all->runs, err);
    for (int32_t k = 0; s == VR_OK && k < e.ideals; k++)
        s = append(&all->want.ideal[k], &e.ideal[k], dim, run, all->runs, err);
    all->want.ideals = s == VR_OK ? e.ideals : 0;
    vc_expected_free(&e);
    return s;
}

/* ---- judging --------------------------------------------------------------------------- */

static vr_status judge(const vc_problem *p, const pool *all, vc_result *res, vr_error *err)
{
    const vj_contract contract = {p->c->storage, p->c->storage == VR_F64 ? VR_F64 : VR_F32};
    const vj_rules rules = {.limits = vj_limits_find(contract), .level = p->depth,
                            .explained_zeros = p->c->fill == VC_INTEGER || p->method != VC_BY_RATIO    ? 1.0
                                               : p->program->op[p->last].kind == VR_OP_RELU ? 0.6 /* half of what enters */
                                                                                            : 0.05};
    vr_tensor want = {.data = NULL};
    vr_status s = VR_OK;
    if (!rules.limits)
        return vr_fail(err, VR_E_INTERNAL, "no limits for contract %s", vc_contract_name(p->c->storage));
    switch (p->method) {
    case VC_BY_INTEGER:
        res->judge_name = "integer";
        s = vj_integer_exact(&all->got, &all->want.truth, NULL, &rules, &res->judge, err);
        break;
    case VC_BY_ULP:
        res->judge_name = "ulp";
        s = vj_ulp(&all->got, &all->want.truth, &rules, &res->judge, err);
        break;
    case VC_BY_BYTES:
        res->judge_name = "exact";
        s = vr_tensor_new(&want, all->got.dtype, 5, all->got.dim, err);
        int64_t n = 0;
        if (s == VR_OK)
            s = vr_tensor_count(&want, &n, err);
        if (s == VR_OK)
            s = vr_convert(want.dtype, want.data, VR_F64, all->want.truth.data, (uint64_t)n, err);
        if (s == VR_OK)
            s = vj_exact(&all->got, &want, &res->judge, err);
        vr_tensor_free(&want);
        break;
    case VC_BY_RATIO:
        res->judge_name = "numeric";
        s = vj_numeric(&all->got, &all->want.truth, all->want.ideal, all->want.ideals, &rules, NULL, &res->judge, err);
        break;
    }
    if (s != VR_OK)
        return s;
    res->judged = true;
    memcpy(res->index_dims, all->got.dim, sizeof res->index_dims);
    const vc_status status[] = {VC_PASS, VC_FAIL, VC_MISTRUSTED};
    vc_say(res, status[res->judge.status], "%s", res->judge.reason);
    if (res->status == VC_FAIL) {
        vj_fingerprint f;
        if (vj_fingerprint_make(&all->got, &all->want.truth, NULL, res->judge.wrong_above,
                                p->tiled ? &p->plan.grid[0] : NULL, &f, err) == VR_OK)
            snprintf(res->fingerprint, sizeof res->fingerprint, "%.399s", f.text);
    }
    return VR_OK;
}

/* ---- tile plans -------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    return memcmp(a, b, 9 * sizeof(int64_t));
}

/* The backend's plan against the reference's, whatever the order of its tiles. */
static void judge_plan(vc_run *r, const vc_problem *p, vc_result *res)
{
    json_t *answer = NULL, *t;
    size_t i;
    if (vc_child_call(&r->child, "plan", NULL, r->timeout, &answer) != VC_ANSWER) {
        json_decref(answer);
        vc_say(res, VC_FAIL, "it claims to report its tile plan and does not: %s", r->child.text);
        return;
    }
    json_t *tiles = json_object_get(answer, "tiles");
    const size_t n = json_array_size(tiles);
    int64_t want_count = 0, k = 0;
    for (int g = 0; g < p->plan.grid_count; g++)
        want_count += p->plan.grid[g].h.count * p->plan.grid[g].w.count;
    int64_t(*got)[9] = calloc(n + 1, sizeof *got), (*want)[9] = calloc((size_t)want_count + 1, sizeof *want);
    if (got && want) {
        json_array_foreach(tiles, i, t)
            for (size_t d = 0; d < 9; d++)
                got[i][d] = json_integer_value(json_array_get(t, d));
        for (int g = 0; g < p->plan.grid_count; g++)
            for (int64_t y = 0; y < p->plan.grid[g].h.count; y++)
                for (int64_t x = 0; x < p->plan.grid[g].w.count; x++) {
                    const vr_axis_tile *h = &p->plan.grid[g].h.tile[y], *w = &p->plan.grid[g].w.tile[x];
                    const int64_t one[9] = {g, h->start, w->start, h->length, w->length, h->owned, w->owned,
                                            h->owned_length, w->owned_length};
                    memcpy(want[k++], one, sizeof one);
                }
        qsort(got, n, sizeof *got, by_place);
        qsort(want, (size_t)want_count, sizeof *want, by_place);
        if (n != (size_t)want_count)
            vc_say(res, VC_FAIL, "its plan has %zu tiles; the scheme has %lld here", n, (long long)want_count);
        for (size_t q = 0; res->status != VC_FAIL && q < n; q++)
            if (memcmp(got[q], want[q], sizeof *got) != 0)
                vc_say(res, VC_FAIL, "a tile of its plan reads %lld cells from row %lld, column %lld (%lld x %lld); the scheme "
                       "reads %lld from %lld, %lld (%lld x %lld)", (long long)(got[q][3] * got[q][4]), (long long)got[q][1],
                       (long long)got[q][2], (long long)got[q][3], (long long)got[q][4],
                       (long long)(want[q][3] * want[q][4]), (long long)want[q][1], (long long)want[q][2],
                       (long long)want[q][3], (long long)want[q][4]);
    }
    free(got);
    free(want);
    json_decref(answer);
}

/* A plan of one tile: the bits of the same backend's undivided decode. */
static void judge_one_tile(vc_run *r, vc_problem *p, const vr_tensor *feed, const vr_tensor *tiled, vc_result *res, vr_error *err)
{
    vr_tensor whole = {.data = NULL};
    int64_t n = 0;
    p->tiled = false;
    vc_outcome o = vc_prepare(r, p, 1, NULL, err);
    if (o == VC_ANSWER)
        o = vc_perform(r, p, p->first, p->last, p->feed_value, feed, p->feeds, p->c->storage, 0, &whole, res, err);
    p->tiled = true;
    if (o != VC_ANSWER) {
        vc_from_outcome(r, o, "the undivided decode", res);
        return;
    }
    vr_tensor_count(&whole, &n, NULL);
    if (res->status == VC_PASS && memcmp(whole.data, tiled->data, (size_t)n * vr_dtype_size(whole.dtype)) != 0)
        vc_say(res, VC_FAIL, "one tile that covers the picture does not give the bits of its own undivided decode");
    vr_tensor_free(&whole);
}

/* ---- one case ------------------------------------------------------------------------------- */

static bool claimed(const vc_run *r, const vc_problem *p, vc_result *res)
{
    const vc_caps *k = &r->caps;
    const vc_entry *e = p->c->entry;
    const bool file = !(k->caps & VP_CAP_PROGRAM) && (k->caps & VP_CAP_MODEL) && p->model && e->level >= VC_L3;
    if (!(k->caps & VP_CAP_PROGRAM) && !file)
        vc_say(res, VC_UNSUPPORTED, "programs are not claimed");
    else if (!(k->storage >> wire_dtype(p->c->storage) & 1))
        vc_say(res, VC_UNSUPPORTED, "storage %s is not claimed", vc_contract_name(p->c->storage));
    else if (p->c->n > 1 && !(k->caps & VP_CAP_BATCH))
        vc_say(res, VC_UNSUPPORTED, "batches are not claimed");
    else if (p->tiled && !(k->tiles >> e->tile.mode & 1))
        vc_say(res, VC_UNSUPPORTED, "tile mode %s is not claimed", vr_tile_mode_name(e->tile.mode));
    else if ((p->first != 1 || p->last != p->program->output) && !(k->caps & VP_CAP_RANGE))
        vc_say(res, VC_UNSUPPORTED, "ranges of a program are not claimed");
    else if (!file)
        for (int32_t i = p->first; i <= p->last; i++)
            if (!(k->ops >> p->program->op[i].kind & 1)) {
                vc_say(res, VC_UNSUPPORTED, "operation %s is not claimed", vr_op_name(p->program->op[i].kind));
                break;
            }
    return res->status != VC_UNSUPPORTED;
}

static void keep_pictures(const vc_problem *p, const vr_tensor *got, const vr_tensor *feed, vc_result *res)
{
    vr_error err = {VR_OK, ""};
    vc_expected e;
    if (p->last != p->program->output || res->got.data || vc_problem_expect(p, feed, &e, &err) != VR_OK)
        return;
    int64_t n = 0, dim[5];
    vc_dims(p->shape[p->last], dim);
    const int64_t four[4] = {dim[0], dim[1], dim[3], dim[4]};
    if (vr_tensor_new(&res->got, VR_F32, 4, four, &err) == VR_OK && vr_tensor_new(&res->want, VR_F32, 4, four, &err) == VR_OK &&
        vr_tensor_count(&res->got, &n, &err) == VR_OK) {
        vr_convert(VR_F32, res->got.data, got->dtype, got->data, (uint64_t)n, &err);
        vr_convert(VR_F32, res->want.data, VR_F64, e.truth.data, (uint64_t)n, &err);
    }
    double gain = 0;
    res->range_lo = p->program->range_lo;
    res->range_hi = p->program->range_hi;
    if (p->tiled && res->want.data)
        vr_difference_picture(&res->got, &res->want, 0, res->range_lo, res->range_hi, &p->plan.grid[0], &gain, &res->heat, &err);
    vc_expected_free(&e);
}

static void judged_runs(vc_run *r, vc_problem *p, vc_result *res, vr_error *err)
{
    pool all = {.runs = runs_for(p)};
    vr_tensor feed[VC_FEEDS], got, last_feed[VC_FEEDS], last = {.data = NULL};
    memset(last_feed, 0, sizeof last_feed);
    vr_status s = VR_OK;
    for (int64_t k = 0; s == VR_OK && k < all.runs && res->status == VC_PASS; k++) {
        const int64_t pad = k == 1 && (r->caps.caps & VP_CAP_STRIDES) ? 3 : 0;
        s = vc_problem_inputs(p, k, feed, err);
        if (s != VR_OK)
            break;
        const vc_outcome o = vc_perform(r, p, p->first, p->last, p->feed_value, feed, p->feeds, p->c->storage, pad, &got, res, err);
        if (o != VC_ANSWER)
            vc_from_outcome(r, o, "run", res);
        else if (res->status == VC_PASS)
            s = pool_add(&all, p, k, &got, feed, err);
        vr_tensor_free(&last);
        last = got;
        for (int32_t f = 0; f < p->feeds; f++) {
            vr_tensor_free(&last_feed[f]);
            last_feed[f] = feed[f];
        }
    }
    if (s == VR_OK && res->status == VC_PASS)
        s = judge(p, &all, res, err);
    if (s == VR_OK && res->status == VC_FAIL && last.data && p->depth == VJ_LEVEL_DECODE)
        keep_pictures(p, &last, last_feed, res);
    if (s == VR_OK && res->status == VC_PASS && p->tiled && (r->caps.caps & VP_CAP_PLAN))
        judge_plan(r, p, res);
    if (s == VR_OK && res->status == VC_PASS && p->tiled && p->plan.tile_count == 1)
        judge_one_tile(r, p, last_feed, &last, res, err);
    if (s != VR_OK)
        vc_say(res, VC_HARNESS_ERROR, "%s", err->text);
    vr_tensor_free(&last);
    for (int32_t f = 0; f < p->feeds; f++)
        vr_tensor_free(&last_feed[f]);
    pool_free(&all);
}

void vc_numeric_case(vc_run *r, const vc_case *c, vc_result *res)
{
    vc_problem p;
    vr_error err = {VR_OK, ""};
    if (vc_problem_make(c, r->seed, &p, &err) != VR_OK) {
        vc_say(res, VC_HARNESS_ERROR, "%s", err.text);
        return;
    }
    if (claimed(r, &p, res)) {
        const vc_outcome o = vc_prepare(r, &p, vc_own_latents(c) ? 0 : 1, NULL, &err); /* small: one thread */
        if (o == VC_REFUSED && r->child.code == VP_E_UNSUPPORTED && !(r->caps.caps & VP_CAP_PROGRAM))
            vc_say(res, VC_UNSUPPORTED, "%s", r->child.text); /* families cannot be claimed one by one */
        else if (o != VC_ANSWER)
            vc_from_outcome(r, o, "prepare", res);
        else
            judged_runs(r, &p, res, &err);
        if (r->locate && res->status == VC_FAIL && res->judged)
            vc_locate(r, &p, res);
    }
    vc_problem_free(&p);
}
