/* Element-wise functions: no sum, so no noise to measure; error in units in the
 * last place of the storage type against the truth in f64 (J8).
 *
 * SPDX-License-Identifier: MIT */
#include "judge/internal.h"

/* Distance of neighbouring values of the type at |x|; never below its smallest
 * subnormal. */
static double ulp_at(const vj_type *type, double x)
{
    int e;
    if (x == 0.0)
        return type->smallest_subnormal;
    (void)frexp(x, &e); /* |x| in [2^(e-1), 2^e) */
    e = e - 1 > type->emin ? e - 1 : type->emin;
    return ldexp(1.0, e - type->precision + 1);
}

/* Error in ulp; infinite for a contradiction. Near zero, where a flushed or
 * denormal intermediate costs every bit, anything within the smallest normal
 * value counts as exact: there the ulp says nothing. */
static double ulp_error(double got, double truth, const vj_type *type)
{
    const double stored = vj_round(type->dtype, truth);
    if (isfinite(truth) && isinf(stored) && got == stored)
        return 0.0; /* the type has no such value: overflow as the type says */
    vj_pair p = vj_pair_of(got, truth);
    if (p != VJ_MEASURE)
        return p == VJ_SAME ? 0.0 : INFINITY;
    const double e = fabs(got - truth);
    if (fabs(truth) < type->smallest_normal && e <= type->smallest_normal)
        return 0.0;
    return e / ulp_at(type, truth);
}

vr_status vj_ulp(const vr_tensor *got, const vr_tensor *truth, const vj_rules *rules, vj_result *out, vr_error *err)
{
    double g[VJ_BLOCK], t[VJ_BLOCK], sum = 0.0;
    char place[VJ_PLACE];
    int64_t zeros = 0;
    vj_start(out);
    vr_status s = vj_check_rules(rules, err);
    if (s == VR_OK)
        s = vj_check_f64("truth", truth, err);
    if (s == VR_OK)
        s = vj_check_float("output", got, err);
    if (s == VR_OK)
        s = vj_check_shape("output", got, truth, err);
    if (s == VR_OK)
        s = vj_count("truth", truth, &out->elements, err);
    if (s != VR_OK)
        return s;
    const vj_type *type = vj_type_of(rules->limits->contract.storage);
    out->ulp.limit = rules->limits->ulp;
    out->ulp.max = 0.0;
    for (int64_t first = 0; s == VR_OK && first < out->elements; first += VJ_BLOCK) {
        const int64_t n = out->elements - first < VJ_BLOCK ? out->elements - first : VJ_BLOCK;
        s = vj_read(truth, first, n, t, err);
        if (s == VR_OK)
            s = vj_read(got, first, n, g, err);
        for (int64_t i = 0; s == VR_OK && i < n; i++) {
            const double e = ulp_error(g[i], t[i], type);
            zeros += t[i] == 0.0;
            sum += e;
            out->ulp.max = fmax(out->ulp.max, e);
            vj_keep_worst(out, first + i, t[i], g[i], e);
            if (!(e <= out->ulp.limit))
                vj_count_wrong(out, first + i);
        }
    }
    if (s != VR_OK)
        return s;
    out->ulp.mean = sum / (double)out->elements;
    out->numeric.zero_share = (double)zeros / (double)out->elements;
    const vj_element *w = &out->worst[0];
    if (out->wrong) {
        vj_verdict(out, VJ_FAIL, "%lld elements are wrong; the worst by %.4g %s ulp (limit %g): %.9g at %s, truth %.9g",
                   (long long)out->wrong, w->ratio, vr_dtype_name(type->dtype), out->ulp.limit, w->got,
                   vj_place(truth, w->index, place, sizeof place), w->truth);
    } else if (!vj_mistrust_zeros(out->numeric.zero_share, rules, "elements of the truth are zero", out)) {
        vj_verdict(out, VJ_PASS, "%.3g %s ulp at most (limit %g), %.3g on average, %lld elements", out->ulp.max,
                   vr_dtype_name(type->dtype), out->ulp.limit, out->ulp.mean, (long long)out->elements);
    }
    return VR_OK;
}

vr_status vj_cap_ulp(const vr_tensor *truth, const vj_rules *rules, vr_tensor *cap, vr_error *err)
{
    int64_t count = 0;
    vr_status s = vj_check_rules(rules, err);
    if (s == VR_OK)
        s = vj_check_f64("truth", truth, err);
    if (s == VR_OK)
        s = vj_count("truth", truth, &count, err);
    if (s == VR_OK)
        s = vr_tensor_new(cap, VR_F64, truth->rank, truth->dim, err);
    if (s != VR_OK)
        return s;
    const vj_type *type = vj_type_of(rules->limits->contract.storage);
    for (int64_t i = 0; i < count; i++) {
        const double t = vj_at(truth, i), least = fabs(t) < type->smallest_normal ? type->smallest_normal : 0.0;
        ((double *)cap->data)[i] = isfinite(t) ? fmax(least, rules->limits->ulp * ulp_at(type, t)) : 0.0;
    }
    return VR_OK;
}
