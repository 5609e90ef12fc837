/* Outputs that no rounding can excuse: bytes, and integers (J7).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "judge/internal.h"

/* "0x3f800000 (1)" */
static char *bytes_text(const vr_tensor *t, int64_t index, char *buf, size_t size)
{
    const size_t width = vr_dtype_size(t->dtype);
    const uint8_t *x = (const uint8_t *)t->data + (size_t)index * width;
    size_t used = (size_t)snprintf(buf, size, "0x");
    for (size_t i = width; i > 0 && used < size; i--)
        used += (size_t)snprintf(buf + used, size - used, "%02x", x[i - 1]); /* little endian */
    if (used < size)
        snprintf(buf + used, size - used, " (%.9g)", vj_at(t, index));
    return buf;
}

vr_status vj_exact(const vr_tensor *got, const vr_tensor *want, vj_result *out, vr_error *err)
{
    char place[VJ_PLACE], a[64], b[64];
    vj_start(out);
    vr_status s = vj_check_shape("output", got, want, err);
    if (s == VR_OK && got->dtype != want->dtype)
        s = vr_fail(err, VR_E_DTYPE, "output is %s; want %s", vr_dtype_name(got->dtype), vr_dtype_name(want->dtype));
    if (s == VR_OK)
        s = vj_count("output", want, &out->elements, err);
    if (s != VR_OK)
        return s;
    const size_t width = vr_dtype_size(want->dtype);
    const uint8_t *x = got->data, *y = want->data;
    out->wrong_above = 0.0;
    if (memcmp(x, y, (size_t)out->elements * width) == 0) {
        vj_verdict(out, VJ_PASS, "all %lld elements are equal byte for byte", (long long)out->elements);
        return VR_OK;
    }
    for (int64_t i = 0; i < out->elements; i++) {
        if (memcmp(x + (size_t)i * width, y + (size_t)i * width, width) == 0)
            continue;
        const double g = vj_at(got, i), t = vj_at(want, i);
        vj_count_wrong(out, i);
        vj_keep_worst(out, i, t, g, isfinite(g) && isfinite(t) && g != t ? fabs(g - t) : INFINITY);
    }
    vj_verdict(out, VJ_FAIL, "%lld of %lld elements differ; the first at %s is %s, want %s", (long long)out->wrong,
               (long long)out->elements, vj_place(want, out->first_wrong, place, sizeof place),
               bytes_text(got, out->first_wrong, a, sizeof a), bytes_text(want, out->first_wrong, b, sizeof b));
    return VR_OK;
}

/* ---- integers ------------------------------------------------------------ */

static vr_status check_integer(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *magnitude,
                               const vj_rules *rules, int64_t *count, vr_error *err)
{
    vr_status s = vj_check_rules(rules, err);
    if (s == VR_OK)
        s = vj_check_f64("truth", truth, err);
    if (s == VR_OK)
        s = vj_check_shape("output", got, truth, err);
    if (s == VR_OK && vr_dtype_size(got->dtype) == 0)
        s = vr_fail(err, VR_E_DTYPE, "output has no element type");
    if (s == VR_OK && magnitude)
        s = vj_check_f64("magnitude", magnitude, err);
    if (s == VR_OK && magnitude)
        s = vj_check_shape("magnitude", magnitude, truth, err);
    return s == VR_OK ? vj_count("truth", truth, count, err) : s;
}

/* Is this case one where every order gives the same integer? */
static bool mistrust_integer(const vr_tensor *shape, int64_t index, double truth, double magnitude,
                             const vj_rules *rules, vj_result *r)
{
    char place[VJ_PLACE];
    const vj_contract c = rules->limits->contract;
    const double limit = 1.0 / vj_type_of(c.accumulate)->u;
    const bool fits = isfinite(truth) && truth == floor(truth) && vj_round(c.storage, truth) == truth;
    if (fits && fmax(magnitude, fabs(truth)) <= limit)
        return false;
    vj_place(shape, index, place, sizeof place);
    if (truth != floor(truth) || !isfinite(truth))
        vj_verdict(r, VJ_MISTRUSTED, "truth at %s is %.9g; want an integer", place, truth);
    else if (vj_round(c.storage, truth) != truth)
        vj_verdict(r, VJ_MISTRUSTED, "truth at %s is %.9g, which %s cannot hold", place, truth,
                   vr_dtype_name(c.storage));
    else
        vj_verdict(r, VJ_MISTRUSTED, "sums at %s reach %.9g; integers are exact in %s up to %.9g", place,
                   fmax(magnitude, fabs(truth)), vr_dtype_name(c.accumulate), limit);
    return true;
}

vr_status vj_integer_exact(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *magnitude,
                           const vj_rules *rules, vj_result *out, vr_error *err)
{
    double g[VJ_BLOCK], t[VJ_BLOCK], m[VJ_BLOCK] = {0};
    char place[VJ_PLACE];
    int64_t zeros = 0;
    vj_start(out);
    vr_status s = check_integer(got, truth, magnitude, rules, &out->elements, err);
    out->wrong_above = 0.0;
    for (int64_t first = 0; s == VR_OK && first < out->elements; first += VJ_BLOCK) {
        const int64_t n = out->elements - first < VJ_BLOCK ? out->elements - first : VJ_BLOCK;
        s = vj_read(truth, first, n, t, err);
        if (s == VR_OK)
            s = vj_read(got, first, n, g, err);
        if (s == VR_OK && magnitude)
            s = vj_read(magnitude, first, n, m, err);
        for (int64_t i = 0; s == VR_OK && i < n; i++) {
            if (mistrust_integer(truth, first + i, t[i], m[i], rules, out))
                return VR_OK;
            zeros += t[i] == 0.0;
            if (g[i] == t[i]) /* both zeros are one value; NaN is none */
                continue;
            vj_count_wrong(out, first + i);
            vj_keep_worst(out, first + i, t[i], g[i], isfinite(g[i]) ? fabs(g[i] - t[i]) : INFINITY);
        }
    }
    if (s != VR_OK)
        return s;
    out->numeric.zero_share = (double)zeros / (double)out->elements;
    if (out->wrong)
        vj_verdict(out, VJ_FAIL, "%lld of %lld integers differ; the first at %s is %.17g, want %.17g",
                   (long long)out->wrong, (long long)out->elements,
                   vj_place(truth, out->first_wrong, place, sizeof place), vj_at(got, out->first_wrong),
                   vj_at(truth, out->first_wrong));
    else if (!vj_mistrust_zeros(out->numeric.zero_share, rules, "integers are zero", out))
        vj_verdict(out, VJ_PASS, "all %lld integers are exact", (long long)out->elements);
    return VR_OK;
}
