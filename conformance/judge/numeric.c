/* The error ratio (J3 to J6): error of the output over the noise that honest
 * orders of summation make under the same contract.
 *
 * SPDX-License-Identifier: MIT */
#include "judge/internal.h"

/* ---- measuring ----------------------------------------------------------- */

typedef struct block {
    double truth[VJ_BLOCK], got[VJ_BLOCK], ideal[VJ_BLOCK], cap[VJ_BLOCK];
} block;

static void measure_ideal(const block *b, int64_t first, int64_t n, int32_t k, bool capped, vj_tally *t)
{
    for (int64_t i = 0; i < n; i++) {
        vj_pair p = vj_pair_of(b->ideal[i], b->truth[i]);
        if (p == VJ_CONTRADICT && t->bad_ideal_at < 0) {
            t->bad_ideal_at = first + i;
            t->bad_ideal = k;
        }
        if (p != VJ_MEASURE)
            continue;
        double e = fabs(b->ideal[i] - b->truth[i]);
        t->ideal_sq[k] += e * e;
        t->ideal_max[k] = fmax(t->ideal_max[k], e);
        if (capped && !(e <= b->cap[i]) && t->over_ideal_at < 0) {
            t->over_ideal_at = first + i;
            t->over_ideal = k;
        }
    }
}

static void measure_got(const block *b, int64_t first, int64_t n, const vj_rules *rules, const vj_type *storage,
                        bool capped, vj_tally *t, vj_result *r)
{
    for (int64_t i = 0; i < n; i++) {
        vj_pair p = vj_pair_of(b->got[i], b->truth[i]);
        if (p == VJ_CONTRADICT) {
            if (t->contradictions++ == 0)
                t->first_contradiction = first + i;
            vj_count_wrong(r, first + i);
            vj_keep_worst(r, first + i, b->truth[i], b->got[i], INFINITY);
        }
        if (p != VJ_MEASURE)
            continue;
        double e = vj_error_of(b->got[i], b->truth[i], rules, storage);
        t->error_sq += e * e;
        t->error_max = fmax(t->error_max, e);
        vj_keep_worst(r, first + i, b->truth[i], b->got[i], e);
        if (!capped)
            continue;
        double over = e / b->cap[i];
        if (e > 0.0 && over > t->worst_cap) {
            t->worst_cap = over;
            t->worst_cap_at = first + i;
        }
        if (e > b->cap[i]) {
            t->over_cap++;
            vj_count_wrong(r, first + i);
        }
    }
}

static vr_status measure(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *ideals, int32_t n_ideals,
                         const vj_rules *rules, const vr_tensor *cap, int64_t count, vj_tally *t, vj_result *r,
                         vr_error *err)
{
    const vj_type *storage = vj_type_of(rules->limits->contract.storage);
    block b;
    for (int64_t first = 0; first < count; first += VJ_BLOCK) {
        const int64_t n = count - first < VJ_BLOCK ? count - first : VJ_BLOCK;
        vr_status s = vj_read(truth, first, n, b.truth, err);
        if (s == VR_OK && cap)
            s = vj_read(cap, first, n, b.cap, err);
        for (int64_t i = 0; s == VR_OK && i < n; i++) {
            if (!isfinite(b.truth[i]))
                continue;
            t->measured++;
            t->zeros += fabs(b.truth[i]) <= storage->smallest_subnormal / 2.0;
            t->truth_sq += b.truth[i] * b.truth[i];
            if (cap && !(b.cap[i] >= 0.0))
                return vr_fail(err, VR_E_RANGE, "cap of element %lld is %g; want 0 or more", (long long)(first + i),
                               b.cap[i]);
        }
        for (int32_t k = 0; s == VR_OK && k < n_ideals; k++) {
            s = vj_read(&ideals[k], first, n, b.ideal, err);
            if (s == VR_OK)
                measure_ideal(&b, first, n, k, cap != NULL, t);
        }
        if (s == VR_OK && got)
            s = vj_read(got, first, n, b.got, err);
        if (s != VR_OK)
            return s;
        if (got)
            measure_got(&b, first, n, rules, storage, cap != NULL, t, r);
    }
    return VR_OK;
}

/* Sums to the numbers of the result (J4). */
static void finish(const vj_tally *t, int32_t n_ideals, const vj_rules *rules, bool capped, bool judged,
                   const vr_tensor *ideals, vj_result *r)
{
    const double n = t->measured ? (double)t->measured : 1.0;
    const vj_limits *l = rules->limits;
    double least = INFINITY;
    r->numeric.truth_rms = sqrt(t->truth_sq / n);
    r->numeric.zero_share = (double)t->zeros / n;
    r->numeric.floor = vj_type_of(l->contract.storage)->u * r->numeric.truth_rms / 8.0;
    r->numeric.noise_rms = r->numeric.noise_max = 0.0;
    for (int32_t k = 0; k < n_ideals; k++) {
        double rms = sqrt(t->ideal_sq[k] / n);
        r->numeric.noise_rms = fmax(r->numeric.noise_rms, rms);
        r->numeric.noise_max = fmax(r->numeric.noise_max, t->ideal_max[k]);
        if (rms > 0.0) /* an ideal that is the truth itself says nothing about the spread */
            least = fmin(least, rms);
    }
    r->numeric.ideal_spread = r->numeric.noise_rms > 0.0 ? r->numeric.noise_rms / least : 1.0;
    r->numeric.limit_rms = l->rms[rules->level];
    r->numeric.limit_max = l->max[rules->level];
    if (!judged)
        return;
    const double rms_unit = fmax(r->numeric.noise_rms, r->numeric.floor);
    const double max_unit = fmax(r->numeric.noise_max, r->numeric.floor);
    r->numeric.error_rms = sqrt(t->error_sq / n);
    r->numeric.error_max = t->error_max;
    r->numeric.ratio_rms = r->numeric.error_rms == 0.0 ? 0.0 : r->numeric.error_rms / rms_unit;
    r->numeric.ratio_max = r->numeric.error_max == 0.0 ? 0.0 : r->numeric.error_max / max_unit;
    r->numeric.cap_ratio = capped ? t->worst_cap : NAN;
    for (int32_t i = 0; i < r->worst_count; i++) {
        r->worst[i].ratio /= max_unit;
        r->worst[i].ideal = vj_at(&ideals[0], r->worst[i].index);
    }
    /* Where only the rms is too large, single errors beyond twice what that allows. */
    r->wrong_above = r->numeric.ratio_max > r->numeric.limit_max ? r->numeric.limit_max * max_unit
                                                                 : 2.0 * r->numeric.limit_rms * rms_unit;
}

vr_status vj_tally_make(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *ideals, int32_t n_ideals,
                        const vj_rules *rules, const vr_tensor *cap, vj_tally *t, vj_result *r, vr_error *err)
{
    int64_t count = 0;
    vr_status s = vj_check_rules(rules, err);
    if (s == VR_OK)
        s = vj_check_f64("truth", truth, err);
    if (s == VR_OK)
        s = vj_count("truth", truth, &count, err);
    if (s == VR_OK && got)
        s = vj_check_float("output", got, err);
    if (s == VR_OK && got)
        s = vj_check_shape("output", got, truth, err);
    if (s == VR_OK)
        s = vj_check_ideals(ideals, n_ideals, truth, err);
    if (s == VR_OK && cap)
        s = vj_check_f64("cap", cap, err);
    if (s == VR_OK && cap)
        s = vj_check_shape("cap", cap, truth, err);
    if (s != VR_OK)
        return s;
    *t = (vj_tally){.bad_ideal_at = -1, .over_ideal_at = -1, .worst_cap_at = -1};
    s = measure(got, truth, ideals, n_ideals, rules, cap, count, t, r, err);
    r->elements = count;
    if (s == VR_OK)
        finish(t, n_ideals, rules, cap != NULL, got != NULL, ideals, r);
    return s;
}

/* ---- judging ------------------------------------------------------------- */

bool vj_mistrust_ideals(const vr_tensor *truth, const vr_tensor *ideals, const vj_tally *t, vj_result *r)
{
    char place[VJ_PLACE];
    if (t->bad_ideal_at >= 0) {
        vj_verdict(r, VJ_MISTRUSTED, "ideal %d is %g at %s, where the truth is %g: the case leaves the storage type",
                   (int)t->bad_ideal, vj_at(&ideals[t->bad_ideal], t->bad_ideal_at),
                   vj_place(truth, t->bad_ideal_at, place, sizeof place), vj_at(truth, t->bad_ideal_at));
        return true;
    }
    return false;
}

bool vj_mistrust_statistics(const vj_tally *t, const vj_rules *rules, int32_t n_ideals, vj_result *r)
{
    if (t->measured < VJ_MIN_ELEMENTS) {
        vj_verdict(r, VJ_MISTRUSTED, "%lld finite elements; %d is the least that can be judged by their rms",
                   (long long)t->measured, VJ_MIN_ELEMENTS);
        return true;
    }
    if (vj_mistrust_zeros(r->numeric.zero_share, rules, "elements of the truth are zero", r))
        return true;
    if (r->numeric.truth_rms < 1e-3 * rules->expected_rms) {
        vj_verdict(r, VJ_MISTRUSTED,
                   "rms of the truth is %.3g; the case was made for %.3g, and a thousandth is the limit",
                   r->numeric.truth_rms, rules->expected_rms);
        return true;
    }
    if (r->numeric.noise_rms < r->numeric.floor || r->numeric.noise_rms == 0.0) {
        vj_verdict(r, VJ_MISTRUSTED,
                   "noise of %d ideals is %.3g, below the floor %.3g: nothing is rounded here, judge it exactly",
                   (int)n_ideals, r->numeric.noise_rms, r->numeric.floor);
        return true;
    }
    if (r->numeric.ideal_spread > 100.0) {
        vj_verdict(r, VJ_MISTRUSTED,
                   "the ideals' errors differ by a factor %.0f (limit 100): the case is ill-conditioned",
                   r->numeric.ideal_spread);
        return true;
    }
    return false;
}

/* What no statistics can excuse: non-finite values, then caps. */
static bool judge_elements(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *ideals,
                           const vr_tensor *cap, const vj_tally *t, vj_result *r)
{
    char place[VJ_PLACE];
    if (t->contradictions) {
        int64_t i = t->first_contradiction;
        vj_verdict(r, VJ_FAIL, "%lld elements are not finite as the truth is; the first is %g at %s, truth %g",
                   (long long)t->contradictions, vj_at(got, i), vj_place(truth, i, place, sizeof place),
                   vj_at(truth, i));
        return true;
    }
    if (t->over_ideal_at >= 0) {
        int64_t i = t->over_ideal_at;
        vj_verdict(r, VJ_MISTRUSTED,
                   "ideal %d misses the truth at %s by %.3g, more than its cap %.3g: the caps are wrong",
                   (int)t->over_ideal, vj_place(truth, i, place, sizeof place),
                   fabs(vj_at(&ideals[t->over_ideal], i) - vj_at(truth, i)), vj_at(cap, i));
        return true;
    }
    if (t->over_cap) {
        int64_t i = t->worst_cap_at;
        vj_verdict(r, VJ_FAIL,
                   "%lld elements miss the truth by more than their cap; the worst is %.9g at %s, truth %.9g, cap %.3g",
                   (long long)t->over_cap, vj_at(got, i), vj_place(truth, i, place, sizeof place), vj_at(truth, i),
                   vj_at(cap, i));
        return true;
    }
    return false;
}

vr_status vj_numeric(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *ideals, int32_t n_ideals,
                     const vj_rules *rules, const vr_tensor *cap, vj_result *out, vr_error *err)
{
    vj_tally t;
    char place[VJ_PLACE];
    vj_start(out);
    vr_status s = vj_tally_make(got, truth, ideals, n_ideals, rules, cap, &t, out, err);
    if (s != VR_OK || vj_mistrust_ideals(truth, ideals, &t, out) || judge_elements(got, truth, ideals, cap, &t, out) ||
        vj_mistrust_statistics(&t, rules, n_ideals, out))
        return s;
    const bool rms = out->numeric.ratio_rms <= out->numeric.limit_rms; /* false for NaN */
    const bool max = out->numeric.ratio_max <= out->numeric.limit_max;
    const vj_element *w = &out->worst[0];
    if (rms && max)
        vj_verdict(out, VJ_PASS, "error over noise: rms %.3g of %.3g, largest %.3g of %.3g, %lld elements",
                   out->numeric.ratio_rms, out->numeric.limit_rms, out->numeric.ratio_max, out->numeric.limit_max,
                   (long long)out->elements);
    else
        vj_verdict(out, VJ_FAIL,
                   "error over noise is %.4g in %s (limit %.3g), %.4g in %s (limit %.3g); worst %.9g at %s, truth %.9g",
                   rms ? out->numeric.ratio_max : out->numeric.ratio_rms, rms ? "its largest" : "rms",
                   rms ? out->numeric.limit_max : out->numeric.limit_rms,
                   rms ? out->numeric.ratio_rms : out->numeric.ratio_max, rms ? "rms" : "its largest",
                   rms ? out->numeric.limit_rms : out->numeric.limit_max, w->got,
                   vj_place(truth, w->index, place, sizeof place), w->truth);
    return VR_OK;
}
