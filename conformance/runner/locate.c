/* Which operation went wrong first (clause A6): every operation of the range is fed
 * with the reference's values and judged by itself. Several may be wrong; the first is
 * named, with how far it is out.
 *
 * SPDX-License-Identifier: MIT */
#include "runner/run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool same_values(const vr_tensor *got, const vr_tensor *truth)
{
    int64_t n = 0;
    vr_tensor_count(got, &n, NULL);
    for (int64_t k = 0; k < n; k++) {
        double v = 0;
        vr_convert(VR_F64, &v, got->dtype, (const char *)got->data + (size_t)k * vr_dtype_size(got->dtype), 1, NULL);
        if (v != ((const double *)truth->data)[k])
            return false;
    }
    return true;
}

/* Judges operation i alone; true when it is wrong. value: the reference's, F32, for every value. */
static bool wrong_alone(vc_run *r, const vc_problem *p, int32_t i, vr_tensor *value, double *ratio)
{
    vr_error err = {VR_OK, ""};
    vc_result quiet = {.status = VC_PASS};
    int32_t read[VC_FEEDS];
    vr_tensor feed[VC_FEEDS], got = {.data = NULL};
    vr_exec_feed f[VC_FEEDS];
    vc_expected e;
    memset(feed, 0, sizeof feed);
    const int32_t feeds = vc_range_reads(p->program, i, i, read);
    vr_status s = VR_OK;
    for (int32_t k = 0; s == VR_OK && k < feeds; k++) {
        int64_t n = 0, dim[5];
        vc_dims(p->shape[read[k]], dim);
        s = vr_tensor_new(&feed[k], p->c->storage, 5, dim, &err);
        if (s == VR_OK)
            s = vr_tensor_count(&feed[k], &n, &err);
        if (s == VR_OK)
            s = vr_convert(p->c->storage, feed[k].data, value[read[k]].dtype, value[read[k]].data, (uint64_t)n, &err);
        f[k] = (vr_exec_feed){read[k], &feed[k]};
    }
    bool wrong = false;
    if (s == VR_OK && vc_range_expect(p, i, i, f, feeds, &e, &err) == VR_OK) {
        const vc_outcome o = vc_perform(r, p, i, i, read, feed, feeds, p->c->storage, 0, &got, &quiet, &err);
        const vj_rules rules = {.limits = vj_limits_find((vj_contract){p->c->storage, VR_F32}), .level = VJ_LEVEL_OP,
                                .explained_zeros = 1.0};
        vj_result j;
        wrong = o != VC_ANSWER || quiet.status != VC_PASS;
        *ratio = 0;
        const vr_op_kind kind = p->program->op[i].kind;
        if (!wrong && (kind == VR_OP_UPSAMPLE_NEAREST || kind == VR_OP_UNPACK || kind == VR_OP_RELU || kind == VR_OP_CLAMP)) {
            wrong = !same_values(&got, &e.truth); /* copies: there is no noise to measure against */
        } else if (!wrong && rules.limits) {
            vr_tensor flat = got, truth = e.truth; /* one shape for the judge */
            int64_t n = 0;
            vr_tensor_count(&got, &n, NULL);
            flat.rank = truth.rank = 1;
            flat.dim[0] = truth.dim[0] = n;
            for (int32_t k = 0; k < e.ideals; k++) {
                e.ideal[k].rank = 1;
                e.ideal[k].dim[0] = n;
            }
            if (vj_numeric(&flat, &truth, e.ideal, e.ideals, &rules, NULL, &j, &err) == VR_OK) {
                *ratio = j.numeric.ratio_rms;
                /* Small values: some slack, since one operation has few elements here. */
                wrong = j.status == VJ_FAIL && (j.numeric.ratio_rms > 2 * j.numeric.limit_rms ||
                                                j.numeric.ratio_max > 4 * j.numeric.limit_max || j.wrong > 0);
            }
        }
        vc_expected_free(&e);
    }
    vr_tensor_free(&got);
    for (int32_t k = 0; k < feeds; k++)
        vr_tensor_free(&feed[k]);
    return wrong;
}

typedef struct keeper {
    vr_tensor *value;
} keeper;

static vr_status keep(void *ctx, int32_t op, const char *tap, const vr_tensor *v, vr_error *err)
{
    vr_tensor *to = &((keeper *)ctx)->value[op];
    int64_t n = 0;
    (void)tap;
    vr_status s = vr_tensor_new(to, v->dtype, v->rank, v->dim, err);
    if (s == VR_OK)
        s = vr_tensor_count(v, &n, err);
    if (s == VR_OK)
        memcpy(to->data, v->data, (size_t)n * vr_dtype_size(v->dtype));
    return s;
}

void vc_locate(vc_run *r, const vc_problem *p, vc_result *res)
{
    const double start = wire_now();
    vr_error err = {VR_OK, ""};
    if (p->own_program || !(r->caps.caps & VP_CAP_RANGE) || p->program->op_count > 512) {
        if (p->own_program) {
            res->culprit = p->last;
            res->culprit_kind = vr_op_name(p->program->op[p->last].kind);
            snprintf(res->culprit_tap, sizeof res->culprit_tap, "%s", p->program->op[p->last].tap);
            res->culprit_ratio = res->judge.numeric.ratio_rms;
        }
        return;
    }
    vr_tensor *value = calloc((size_t)p->program->op_count, sizeof *value);
    if (!value)
        return;
    keeper k = {value};
    vr_tensor z = {.data = NULL}, out = {.data = NULL};
    vc_problem plain = *p; /* the same job, not tiled */
    plain.tiled = false;
    const vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .on_value = keep, .ctx = &k};
    vr_tensor feed[VC_FEEDS]; /* of the whole: the latent */
    vc_problem whole = *p;
    whole.first = 1;
    vr_status s = vc_problem_inputs(&whole, 0, feed, &err);
    if (s == VR_OK)
        z = feed[0];
    if (s == VR_OK)
        s = vr_exec_run(p->program, &z, &opt, &out, NULL, &err);
    if (s == VR_OK && vc_prepare(r, &plain, 1, NULL, &err) == VC_ANSWER) {
        res->culprit = -2;
        for (int32_t i = p->first; i <= p->last && wire_now() - start < 20 && r->child.pid; i++) {
            double ratio = 0;
            if (!wrong_alone(r, &plain, i, value, &ratio))
                continue;
            res->culprit = i;
            res->culprit_kind = vr_op_name(p->program->op[i].kind);
            res->culprit_ratio = ratio;
            snprintf(res->culprit_tap, sizeof res->culprit_tap, "%s", p->program->op[i].tap);
            snprintf(res->reason + strlen(res->reason), sizeof res->reason - strlen(res->reason),
                     "; the first operation that is wrong by itself is %d, %s (%s)", (int)i, res->culprit_tap, res->culprit_kind);
            break;
        }
    }
    for (int32_t i = 0; i < p->program->op_count; i++)
        vr_tensor_free(&value[i]);
    free(value);
    vr_tensor_free(&out);
    vr_tensor_free(&z);
}
