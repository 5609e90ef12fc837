/* Level L0: loading, claims, refusals, and nothing left behind. SPDX-License-Identifier: MIT */
#include "runner/run.h"

#include <string.h>

/* A small sound request: relu over [1][4][1][4][4]. */
static json_t *request(int kind, int storage, int tile, int channels)
{
    json_t *input = json_pack("{s:i, s:[i, i, i], s:[i, i], s:i, s:[], s:[], s:s}", "kind", VP_OP_INPUT, "in", -1, -1, -1,
                              "weight", -1, -1, "channels", 4, "i", "f", "tap", "latent");
    json_t *op = json_pack("{s:i, s:[i, i, i], s:[i, i], s:i, s:[i, i, i, i], s:[f, f], s:s}", "kind", kind, "in", 0, -1, -1,
                           "weight", -1, -1, "channels", 4, "i", 1, 1, 1, 1, "f", 1.0, 1.0, "tap", "op");
    json_t *program = json_pack("{s:[o, o], s:[], s:i, s:[f, f], s:i}", "ops", input, op, "weights", "output", 1, "range", -1.0,
                                1.0, "weight_bytes", 0);
    return json_pack("{s:o, s:i, s:i, s:i, s:[i, i, i, i, i], s:{s:i, s:i, s:i, s:i, s:i}}", "program", program, "storage",
                     storage, "accumulate", storage == VP_F64 ? VP_F64 : VP_F32, "threads", 1, "latent", 1, channels, 1, 4, 4,
                     "tile", "mode", tile, "tile_h", 0, "tile_w", 0, "overlap_h", -1, "overlap_w", -1);
}

static void must_refuse(vc_run *r, json_t *q, const char *what, vc_result *res)
{
    const vc_outcome o = vc_child_call(&r->child, "prepare", q, r->timeout, NULL);
    if (o == VC_ANSWER)
        vc_say(res, VC_FAIL, "%s was accepted; want a refusal with a code and a text", what);
    else if (o != VC_REFUSED)
        vc_from_outcome(r, o, what, res);
    else if (r->child.code >= 0)
        vc_say(res, VC_FAIL, "%s was refused with code %d; want a negative one", what, (int)r->child.code);
    else if (strstr(r->child.text, "no text"))
        vc_say(res, VC_FAIL, "%s was refused without a text", what);
}

/* A storage and an operation that both are claimed, for requests that must be fine but for one thing. */
static int a_storage(const vc_run *r)
{
    static const int order[] = {VP_F32, VP_BF16, VP_F16, VP_F64};
    for (int k = 0; k < 4; k++)
        if (r->caps.storage >> order[k] & 1)
            return order[k];
    return VP_F32;
}

static int an_op(const vc_run *r)
{
    static const int order[] = {VP_OP_RELU, VP_OP_SILU, VP_OP_CLAMP, VP_OP_TANH_CLAMP, VP_OP_UPSAMPLE_NEAREST};
    for (int k = 0; k < 5; k++)
        if (r->caps.ops >> order[k] & 1)
            return order[k];
    return VP_OP_RELU;
}

static void claims(vc_run *r, vc_result *res)
{
    static const int storages[] = {VP_F64, VP_F32, VP_F16, VP_BF16};
    if (!r->caps.name[0])
        vc_say(res, VC_FAIL, "it has no name");
    if (!(r->caps.caps & (VP_CAP_PROGRAM | VP_CAP_MODEL)))
        vc_say(res, VC_FAIL, "it claims neither programs nor model files");
    for (int k = 0; k < 4 && res->status == VC_PASS && (r->caps.caps & VP_CAP_PROGRAM); k++) {
        if (!(r->caps.storage >> storages[k] & 1))
            continue;
        const vc_outcome o = vc_child_call(&r->child, "prepare", request(an_op(r), storages[k], 0, 4), r->timeout, NULL);
        static const char *const name[] = {"", "f64", "f32", "f16", "bf16"};
        char what[64];
        snprintf(what, sizeof what, "a job in storage %s", name[storages[k]]);
        vc_from_outcome(r, o, what, res);
    }
}

static void open_close(vc_run *r, vc_result *res)
{
    json_t *answer = NULL;
    for (int k = 0; k < 1000 && res->status == VC_PASS; k++) {
        vc_outcome o = vc_child_call(&r->child, "close", NULL, r->timeout, &answer);
        const json_int_t live = json_integer_value(json_object_get(answer, "live"));
        json_decref(answer);
        answer = NULL;
        if (o == VC_ANSWER && live)
            vc_say(res, VC_FAIL, "%lld blocks of the host's memory are left after close number %d", (long long)live, k + 1);
        if (o == VC_ANSWER)
            o = vc_child_call(&r->child, "open", r->spec.options ? json_pack("{s:s}", "options", r->spec.options) : NULL, r->timeout, NULL);
        if (o == VC_ANSWER && k % 100 == 0 && (r->caps.caps & VP_CAP_PROGRAM))
            o = vc_child_call(&r->child, "prepare", request(an_op(r), a_storage(r), 0, 4), r->timeout, NULL);
        vc_from_outcome(r, o, "open and close", res);
    }
}

static void refuse_range(vc_run *r, vc_result *res)
{
    static const int range[][2] = {{0, 1}, {1, 2}, {2, 1}, {-5, 1}, {1, 1000000}};
    vc_outcome o = vc_child_call(&r->child, "prepare", request(an_op(r), a_storage(r), 0, 4), r->timeout, NULL);
    vc_from_outcome(r, o, "prepare", res);
    vc_slot in, out;
    vr_error err = {VR_OK, ""};
    const int64_t dim[5] = {1, 4, 1, 4, 4};
    memset(&in, 0, sizeof in);
    memset(&out, 0, sizeof out);
    if (vc_slot_make(&in, r->child.dir, "in0", (uint32_t)a_storage(r), dim, 0, &err) != VR_OK ||
        vc_slot_make(&out, r->child.dir, "out", (uint32_t)a_storage(r), dim, 0, &err) != VR_OK) {
        vc_say(res, VC_HARNESS_ERROR, "%s", err.text);
    } else {
        vc_slot_poison(&in, 1);
        for (size_t k = 0; k < sizeof range / sizeof *range && res->status == VC_PASS; k++) {
            json_t *q = json_pack("{s:i, s:i, s:[{s:i, s:o}], s:[{s:i, s:o}]}", "first", range[k][0], "last", range[k][1],
                                  "feed", "value", 0, "tensor", vc_slot_json(&in), "want", "value", 1, "tensor",
                                  vc_slot_json(&out));
            o = vc_child_call(&r->child, "run", q, r->timeout, NULL);
            if (o == VC_ANSWER)
                vc_say(res, VC_FAIL, "operations %d..%d of a program of operation 1 alone were run; want a refusal", range[k][0],
                       range[k][1]);
            else if (o != VC_REFUSED)
                vc_from_outcome(r, o, "a range the program does not have", res);
        }
    }
    vc_slot_free(&in);
    vc_slot_free(&out);
}

void vc_abi_case(vc_run *r, const vc_case *c, vc_result *res)
{
    const char *k = c->entry->check;
    const bool programs = (r->caps.caps & VP_CAP_PROGRAM) != 0;
    if (strcmp(k, "claims") == 0)
        claims(r, res);
    else if (strcmp(k, "open_close") == 0)
        open_close(r, res);
    else if (!programs)
        vc_say(res, VC_UNSUPPORTED, "programs are not claimed");
    else if (strcmp(k, "refuse_kind") == 0)
        must_refuse(r, request(250, a_storage(r), 0, 4), "an operation of kind 250", res);
    else if (strcmp(k, "refuse_channels") == 0)
        must_refuse(r, request(an_op(r), a_storage(r), 0, 5), "a latent of 5 channels for a program of 4", res);
    else if (strcmp(k, "refuse_storage") == 0)
        must_refuse(r, request(an_op(r), 99, 0, 4), "storage dtype 99", res);
    else if (strcmp(k, "refuse_tile") == 0)
        must_refuse(r, request(an_op(r), a_storage(r), 200, 4), "tile mode 200", res);
    else if (strcmp(k, "refuse_range") == 0)
        refuse_range(r, res);
    else if (strcmp(k, "prepare_twice") == 0)
        for (int i = 0; i < 50 && res->status == VC_PASS; i++)
            vc_from_outcome(r, vc_child_call(&r->child, "prepare", request(an_op(r), a_storage(r), 0, 4), r->timeout, NULL),
                            "prepare", res);
    else
        vc_say(res, VC_HARNESS_ERROR, "no check '%s' on level L0", k);
}
