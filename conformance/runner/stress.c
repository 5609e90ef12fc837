/* Level L7 and the badges: the same bits again, allocation failure, jobs in turn, limits.
 * SPDX-License-Identifier: MIT */
#include "runner/run.h"

#include <stdlib.h>
#include <string.h>

/* The decode these checks run: small, every kind of operation of its family. */
static bool make_problem(vc_run *r, const vc_case *c, const char *model, int64_t h, int64_t w, vc_entry *e, vc_case *k,
                         vc_problem *p, vc_result *res)
{
    static const struct {
        vr_dtype d;
    } order[] = {{VR_F32}, {VR_BF16}, {VR_F16}, {VR_F64}};
    vr_error err = {VR_OK, ""};
    *e = *c->entry;
    snprintf(e->model, sizeof e->model, "%s", model);
    e->level = VC_L3;
    *k = *c;
    k->entry = e;
    k->n = 1;
    k->h = h;
    k->w = w;
    bool found = false;
    for (int i = 0; i < 4 && !found; i++)
        if (r->caps.storage >> wire_dtype(order[i].d) & 1) {
            k->storage = order[i].d;
            found = true;
        }
    if (!found || !(r->caps.caps & VP_CAP_PROGRAM)) {
        vc_say(res, VC_UNSUPPORTED, "programs are not claimed");
        return false;
    }
    if (vc_problem_make(k, r->seed, p, &err) != VR_OK) {
        vc_say(res, VC_HARNESS_ERROR, "%s", err.text);
        return false;
    }
    for (int32_t i = 1; i < p->program->op_count; i++)
        if (!(r->caps.ops >> p->program->op[i].kind & 1)) {
            vc_say(res, VC_UNSUPPORTED, "operation %s is not claimed", vr_op_name(p->program->op[i].kind));
            vc_problem_free(p);
            return false;
        }
    return true;
}

/* Runs once with input number `run`; the output goes to *got. */
static bool once(vc_run *r, const vc_problem *p, int64_t run, vr_tensor *got, vc_result *res)
{
    vr_tensor feed[VC_FEEDS];
    vr_error err = {VR_OK, ""};
    *got = (vr_tensor){.data = NULL};
    if (vc_problem_inputs(p, run, feed, &err) != VR_OK) {
        vc_say(res, VC_HARNESS_ERROR, "%s", err.text);
        return false;
    }
    const vc_outcome o = vc_perform(r, p, p->first, p->last, p->feed_value, feed, p->feeds, p->c->storage, 0, got, res, &err);
    vc_from_outcome(r, o, "run", res);
    for (int32_t k = 0; k < p->feeds; k++)
        vr_tensor_free(&feed[k]);
    return o == VC_ANSWER && res->status == VC_PASS;
}

static bool same_bits(const vr_tensor *a, const vr_tensor *b)
{
    int64_t n = 0;
    vr_tensor_count(a, &n, NULL);
    return memcmp(a->data, b->data, (size_t)n * vr_dtype_size(a->dtype)) == 0;
}

static void repeat(vc_run *r, const vc_problem *p, int times, vc_result *res)
{
    vr_error err = {VR_OK, ""};
    vr_tensor want, got;
    vc_from_outcome(r, vc_prepare(r, p, 1, NULL, &err), "prepare", res);
    if (res->status != VC_PASS || !once(r, p, 0, &want, res))
        return;
    r->d1_tried = true;
    for (int k = 1; k < times && res->status == VC_PASS; k++) {
        if (once(r, p, 0, &got, res) && !same_bits(&want, &got)) {
            r->deterministic = false;
            if (r->caps.caps & VP_CAP_DETERMINISTIC)
                vc_say(res, VC_FAIL, "run %d of the same job on the same input has other bits, and determinism is claimed", k + 1);
            k = times;
        }
        vr_tensor_free(&got);
    }
    vr_tensor_free(&want);
}

static void threads(vc_run *r, const vc_problem *p, vc_result *res)
{
    vr_error err = {VR_OK, ""};
    vr_tensor out[2] = {{.data = NULL}, {.data = NULL}};
    for (int k = 0; k < 2 && res->status == VC_PASS; k++) {
        vc_from_outcome(r, vc_prepare(r, p, k + 1, NULL, &err), "prepare", res);
        if (res->status == VC_PASS)
            once(r, p, 0, &out[k], res);
    }
    if (res->status == VC_PASS) {
        r->d2_tried = true;
        r->order_free = r->order_free && same_bits(&out[0], &out[1]);
    }
    vr_tensor_free(&out[0]);
    vr_tensor_free(&out[1]);
}

/* The n-th allocation from the host fails, for n = 1, 2, ... until a whole life needs fewer. */
static void allocation(vc_run *r, const vc_problem *p, vc_result *res)
{
    vr_error err = {VR_OK, ""};
    vr_tensor got;
    json_t *answer = NULL;
    int refused = 0;
    for (int n = 1; n <= 200 && res->status == VC_PASS; n++) {
        vc_result quiet = {.status = VC_PASS};
        vc_outcome o = vc_child_call(&r->child, "close", NULL, r->timeout, NULL);
        if (o == VC_ANSWER)
            o = vc_child_call(&r->child, "inject", json_pack("{s:i, s:i}", "at", n, "count", 1), r->timeout, NULL);
        if (o == VC_ANSWER)
            o = vc_child_call(&r->child, "open", r->spec.options ? json_pack("{s:s}", "options", r->spec.options) : NULL, r->timeout, NULL);
        if (o == VC_ANSWER)
            o = vc_prepare(r, p, 1, NULL, &err);
        bool done = false;
        if (o == VC_ANSWER) {
            done = once(r, p, 0, &got, &quiet);
            vr_tensor_free(&got);
            o = r->child.pid ? VC_ANSWER : quiet.status == VC_STATUS_TIMEOUT ? VC_TIMEOUT : VC_CRASH;
        }
        refused += !done && r->child.pid != 0;
        if (o == VC_CRASH || o == VC_TIMEOUT) {
            vc_from_outcome(r, o, "allocation failure", res);
            snprintf(res->reason + strlen(res->reason), sizeof res->reason - strlen(res->reason), " (allocation %d failed)", n);
            return;
        }
        if (o == VC_REFUSED || o == VC_ANSWER)
            o = vc_child_call(&r->child, "close", NULL, r->timeout, &answer);
        const json_int_t live = json_integer_value(json_object_get(answer, "live"));
        const json_int_t used = json_integer_value(json_object_get(answer, "allocations"));
        json_decref(answer);
        answer = NULL;
        if (o == VC_ANSWER && live)
            vc_say(res, VC_FAIL, "%lld blocks are left after allocation %d failed", (long long)live, n);
        else
            vc_from_outcome(r, o, "close", res);
        if (used < n)
            break;
    }
    vc_child_call(&r->child, "inject", json_pack("{s:i, s:i}", "at", 0, "count", 0), r->timeout, NULL);
    vc_child_call(&r->child, "open", r->spec.options ? json_pack("{s:s}", "options", r->spec.options) : NULL, r->timeout, NULL);
    if (res->status == VC_PASS)
        vc_say(res, VC_PASS, "%d failing allocations gave an error", refused);
}

/* Jobs of two models in turn, each against its own first result. */
static void interleave(vc_run *r, const vc_problem *a, const vc_problem *b, vc_result *res)
{
    vr_error err = {VR_OK, ""};
    vr_tensor want[2] = {{.data = NULL}, {.data = NULL}}, got;
    for (int k = 0; k < 8 && res->status == VC_PASS; k++) {
        const vc_problem *p = k % 2 ? b : a;
        vc_from_outcome(r, vc_prepare(r, p, 1, NULL, &err), "prepare", res);
        if (res->status != VC_PASS || !once(r, p, 1, &got, res))
            break;
        if (k < 2) {
            want[k] = got;
            continue;
        }
        if (!same_bits(&want[k % 2], &got) && r->deterministic && (r->caps.caps & VP_CAP_DETERMINISTIC))
            vc_say(res, VC_FAIL, "job %d gives other bits after jobs of another shape than before them", k + 1);
        vr_tensor_free(&got);
    }
    vr_tensor_free(&want[0]);
    vr_tensor_free(&want[1]);
}

static void memory_limit(vc_run *r, const vc_problem *p, vc_result *res)
{
    vr_error err = {VR_OK, ""};
    vr_program_cost cost;
    vr_tensor got = {.data = NULL};
    vc_result quiet = {.status = VC_PASS};
    if (!(r->caps.caps & VP_CAP_MEMORY_LIMIT)) {
        vc_say(res, VC_UNSUPPORTED, "memory limits are not claimed");
        return;
    }
    vr_program_cost_of(p->program, p->latent, 4, &cost, NULL, &err);
    for (int k = 0; k < 2 && res->status == VC_PASS; k++) {
        const int64_t limit = k ? cost.peak_bytes * 2 : cost.peak_bytes / 64;
        vc_outcome o = vc_prepare(r, p, 1, json_pack("{s:I}", "memory_limit", (json_int_t)limit), &err);
        if (o == VC_ANSWER) {
            once(r, p, 0, &got, &quiet);
            o = quiet.status == VC_PASS ? VC_ANSWER : r->child.pid ? VC_REFUSED : VC_CRASH;
            vr_tensor_free(&got);
        }
        if (o == VC_CRASH)
            vc_say(res, VC_STATUS_CRASH, "with a limit of %lld bytes: %s", (long long)limit, r->child.text);
        else if (k == 0 && o == VC_ANSWER)
            vc_say(res, VC_FAIL, "a decode whose values need %lld bytes ran under a limit of %lld", (long long)cost.peak_bytes,
                   (long long)limit);
        else if (k == 1 && o == VC_REFUSED)
            vc_say(res, VC_FAIL, "a limit of twice what the decode needs was refused: %s", r->child.text);
        quiet.status = VC_PASS;
    }
}

void vc_stress_case(vc_run *r, const vc_case *c, vc_result *res)
{
    vc_entry e, e2;
    vc_case k, k2;
    vc_problem p, q;
    const char *check = c->entry->check;
    if (!make_problem(r, c, "synth:sd15,div=16", 4, 5, &e, &k, &p, res))
        return;
    if (strcmp(check, "repeat") == 0)
        repeat(r, &p, 30, res);
    else if (strcmp(check, "repeat_long") == 0)
        repeat(r, &p, 1000, res);
    else if (strcmp(check, "threads") == 0)
        threads(r, &p, res);
    else if (strcmp(check, "allocation") == 0)
        allocation(r, &p, res);
    else if (strcmp(check, "memory_limit") == 0)
        memory_limit(r, &p, res);
    else if (strcmp(check, "interleave") == 0) {
        if (make_problem(r, c, "synth:taesd,div=8", 7, 5, &e2, &k2, &q, res)) {
            interleave(r, &p, &q, res);
            vc_problem_free(&q);
        }
    } else
        vc_say(res, VC_HARNESS_ERROR, "no check '%s' on level L7", check);
    vc_problem_free(&p);
}
