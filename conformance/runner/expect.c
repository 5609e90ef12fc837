/* What the reference makes of a problem's inputs: truth, and every legitimate order of
 * the case's contract (clauses N1, N6). Only called after the answer has come.
 *
 * SPDX-License-Identifier: MIT */
#include "runner/problem.h"

static vr_policy contract_policy(vr_dtype storage)
{
    return storage == VR_F16 ? VR_POLICY_F16 : storage == VR_BF16 ? VR_POLICY_BF16 : storage == VR_F64 ? VR_POLICY_TRUTH
                                                                                                       : VR_POLICY_F32;
}

/* A range from feeds, or (latent given) the tiled whole. */
typedef struct evaluation {
    const vc_problem *p;
    int32_t first, last;
    const vr_exec_feed *feed;
    int32_t feeds;
    const vr_tensor *latent;
} evaluation;

static vr_status evaluate(const evaluation *e, vr_policy policy, int order, int threads, vr_tensor *out, vr_error *err)
{
    const vr_exec_options opt = {.policy = policy, .order = (vr_order)order, .threads = threads};
    if (e->latent)
        return vr_tile_decode(e->p->program, e->latent, &e->p->plan, &opt, out, NULL, err);
    return vr_exec_range(e->p->program, e->p->latent, e->first, e->last, e->feed, e->feeds, &e->last, 1, &opt, out, err);
}

/* Truth and every order. The cases are small: one thread for each evaluation, several
 * evaluations at once. The results do not depend on it (N4). */
static vr_status evaluate_all(const evaluation *e, vr_policy truth, vc_expected *out, vr_error *err)
{
    const vr_policy policy = contract_policy(e->p->c->storage);
    vr_status s[VR_ORDER_COUNT + 1];
    vr_error why[VR_ORDER_COUNT + 1];
    *out = (vc_expected){.ideals = 0};
#pragma omp parallel for schedule(dynamic)
    for (int k = 0; k <= VR_ORDER_COUNT; k++) {
        why[k].status = VR_OK;
        s[k] = k == 0 ? evaluate(e, truth, 0, 1, &out->truth, &why[k])
                      : evaluate(e, policy, k - 1, 1, &out->ideal[k - 1], &why[k]);
    }
    for (int k = 0; k <= VR_ORDER_COUNT; k++)
        if (s[k] != VR_OK) {
            *err = why[k];
            vc_expected_free(out);
            return s[k];
        }
    out->ideals = VR_ORDER_COUNT;
    return vc_round_to_storage(&out->truth, VR_F64, err);
}

vr_status vc_range_expect(const vc_problem *p, int32_t first, int32_t last, const vr_exec_feed *feed, int32_t feeds,
                          vc_expected *out, vr_error *err)
{
    const evaluation e = {p, first, last, feed, feeds, NULL};
    return evaluate_all(&e, VR_POLICY_TRUTH, out, err);
}

static vr_status tiled_expect(const vc_problem *p, const vr_tensor *latent, vc_expected *out, vr_error *err)
{
    /* The fast statistics of two-pass-fast come from an f32 copy: golden stands in for truth. */
    const evaluation e = {p, p->first, p->last, NULL, 0, latent};
    return evaluate_all(&e, p->plan.options.mode == VR_TILE_TWO_PASS_FAST ? VR_POLICY_GOLDEN : VR_POLICY_TRUTH, out, err);
}

/* A view of the same memory without the frame axis. */
static vr_tensor picture_view(const vr_tensor *t)
{
    vr_tensor v = *t;
    if (t->rank == 5) {
        v.rank = 4;
        v.dim[2] = t->dim[3];
        v.dim[3] = t->dim[4];
    }
    return v;
}

vr_status vc_problem_expect(const vc_problem *p, const vr_tensor *feed, vc_expected *out, vr_error *err)
{
    if (p->tiled) {
        const vr_tensor z = picture_view(&feed[0]);
        return tiled_expect(p, &z, out, err);
    }
    vr_exec_feed f[VC_FEEDS];
    for (int32_t k = 0; k < p->feeds; k++)
        f[k] = (vr_exec_feed){p->feed_value[k], &feed[k]};
    return vc_range_expect(p, p->first, p->last, f, p->feeds, out, err);
}

void vc_expected_free(vc_expected *e)
{
    vr_tensor_free(&e->truth);
    for (int o = 0; o < VC_IDEALS; o++)
        vr_tensor_free(&e->ideal[o]);
    e->ideals = 0;
}
