/* 8-bit pictures (J9): a sample may differ by one only where the truth lies so
 * near to a half-integer that honest noise decides, and no more samples may
 * differ than that noise predicts: a rounding flips with a probability equal to
 * the size of the error in units of a level (LSB).
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "judge/internal.h"
#include "vaeref/exec.h"

vr_status vj_check_picture(const char *what, const vr_tensor *t, double range_lo, double range_hi, vr_error *err)
{
    char text[VJ_PLACE * 2];
    if (t->rank != 4)
        return vr_fail(err, VR_E_SHAPE, "%s is %s; want rank 4 [N,C,H,W]", what,
                       vr_tensor_describe(t, text, sizeof text));
    if (!(range_hi > range_lo) || !isfinite(range_lo) || !isfinite(range_hi))
        return vr_fail(err, VR_E_RANGE, "range %g..%g; want finite numbers, the first below the second", range_lo,
                       range_hi);
    return VR_OK;
}

vr_status vj_as_u8(const vr_tensor *f32, double range_lo, double range_hi, uint8_t **out, vr_error *err)
{
    const int64_t c = f32->dim[1], h = f32->dim[2], w = f32->dim[3], sample = c * h * w;
    *out = malloc((size_t)(f32->dim[0] * sample));
    if (!*out)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate %lld 8-bit samples", (long long)(f32->dim[0] * sample));
    for (int64_t n = 0; n < f32->dim[0]; n++)
        vr_to_u8((const float *)f32->data + n * sample, c, h, w, range_lo, range_hi, *out + n * sample);
    return VR_OK;
}

typedef struct levels { /* from picture values to 8-bit levels */
    double lo, per_unit;
} levels;

static double level_of(const levels *l, double x)
{
    const double v = (x - l->lo) * l->per_unit;
    return v < 0.0 ? 0.0 : v > 255.0 ? 255.0 : v;
}

/* Share of samples that the worst ideal is expected to flip; share of clipped ones. */
static vr_status predict(const vr_tensor *truth, const vr_tensor *ideals, int32_t n_ideals, const levels *l,
                         int64_t count, double *clipped, double *share, vr_error *err)
{
    double t[VJ_BLOCK], x[VJ_BLOCK], sum[VJ_MAX_IDEALS] = {0};
    int64_t ends = 0;
    for (int64_t first = 0; first < count; first += VJ_BLOCK) {
        const int64_t n = count - first < VJ_BLOCK ? count - first : VJ_BLOCK;
        vr_status s = vj_read(truth, first, n, t, err);
        for (int64_t i = 0; s == VR_OK && i < n; i++) {
            t[i] = level_of(l, t[i]);
            ends += t[i] == 0.0 || t[i] == 255.0;
        }
        for (int32_t k = 0; s == VR_OK && k < n_ideals; k++) {
            s = vj_read(&ideals[k], first, n, x, err);
            for (int64_t i = 0; i < n; i++)
                sum[k] += fmin(1.0, fabs(level_of(l, x[i]) - t[i]));
        }
        if (s != VR_OK)
            return s;
    }
    *share = 0.0;
    for (int32_t k = 0; k < n_ideals; k++)
        *share = fmax(*share, sum[k] / (double)count);
    *clipped = (double)ends / (double)count;
    return VR_OK;
}

/* Counts samples that differ from `want` and those that may not. */
static int64_t count_flips(const uint8_t *got, const uint8_t *want, const vr_tensor *truth, const levels *l,
                           const vr_tensor *cap, vj_result *r)
{
    const int64_t c = truth->dim[1], plane = truth->dim[2] * truth->dim[3];
    const double fixed = r->u8.delta;
    int64_t flips = 0;
    for (int64_t i = 0; i < r->elements; i++) {
        const int64_t at = (i / plane / c * plane + i % plane) * c + i / plane % c; /* [n][h][w][c] */
        const int32_t lsb = abs((int32_t)got[at] - (int32_t)want[at]);
        if (lsb == 0)
            continue;
        const double delta = cap ? vj_at(cap, i) * l->per_unit : fixed;
        const double allowed = 0.5 + delta, off = fabs((double)got[at] - level_of(l, vj_at(truth, i)));
        flips++;
        r->u8.lsb = lsb > r->u8.lsb ? lsb : r->u8.lsb;
        r->u8.illegal += off > allowed;
        if (off > allowed || lsb > r->u8.lsb_limit)
            vj_count_wrong(r, i);
        vj_keep_worst(r, i, (double)want[at], (double)got[at], off / allowed);
    }
    return flips;
}

static void decide(const vr_tensor *truth, const levels *l, vj_result *r)
{
    char place[VJ_PLACE];
    const vj_element *w = &r->worst[0];
    if (r->u8.lsb > r->u8.lsb_limit)
        vj_verdict(r, VJ_FAIL,
                   "samples are off by up to %d levels (limit %d); the worst is %g at %s, want %g; %lld of %lld differ",
                   (int)r->u8.lsb, (int)r->u8.lsb_limit, w->got, vj_place(truth, w->index, place, sizeof place),
                   w->truth, (long long)llround(r->u8.share * (double)r->elements), (long long)r->elements);
    else if (r->u8.illegal)
        vj_verdict(
            r, VJ_FAIL,
            "%lld samples differ where no half-integer is within %.3g, so rounding cannot explain it; the worst is %g "
            "at %s, truth %.4f",
            (long long)r->u8.illegal, r->u8.delta, w->got, vj_place(truth, w->index, place, sizeof place),
            level_of(l, vj_at(truth, w->index)));
    else if (r->u8.share > r->u8.limit)
        vj_verdict(r, VJ_FAIL, "%.3g %% of the samples differ; noise predicts %.3g %% and %.3g %% is the limit",
                   100.0 * r->u8.share, 100.0 * r->u8.predicted, 100.0 * r->u8.limit);
    else
        vj_verdict(r, VJ_PASS, "%.3g %% of %lld samples differ by %d at most (predicted %.3g %%, limit %.3g %%)",
                   100.0 * r->u8.share, (long long)r->elements, (int)r->u8.lsb, 100.0 * r->u8.predicted,
                   100.0 * r->u8.limit);
}

static vr_status check(const vr_tensor *got, const vr_tensor *truth, double lo, double hi, vr_error *err)
{
    char text[VJ_PLACE * 2];
    vr_status s = vj_check_picture("truth", truth, lo, hi, err);
    if (s != VR_OK)
        return s;
    if (got->dtype != VR_U8 || got->rank != 4 || got->dim[0] != truth->dim[0] || got->dim[1] != truth->dim[2] ||
        got->dim[2] != truth->dim[3] || got->dim[3] != truth->dim[1])
        return vr_fail(err, VR_E_SHAPE, "output is %s; want U8[%lld,%lld,%lld,%lld] (N,H,W,C)",
                       vr_tensor_describe(got, text, sizeof text), (long long)truth->dim[0], (long long)truth->dim[2],
                       (long long)truth->dim[3], (long long)truth->dim[1]);
    return VR_OK;
}

vr_status vj_u8(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *ideals, int32_t n_ideals,
                double range_lo, double range_hi, const vj_rules *rules, const vr_tensor *cap, vj_result *out,
                vr_error *err)
{
    vj_tally t;
    double clipped;
    vj_start(out);
    vr_status s = check(got, truth, range_lo, range_hi, err);
    if (s == VR_OK)
        s = vj_tally_make(NULL, truth, ideals, n_ideals, rules, cap, &t, out, err);
    if (s != VR_OK || vj_mistrust_ideals(truth, ideals, &t, out))
        return s;
    if (t.measured != out->elements) {
        vj_verdict(out, VJ_MISTRUSTED, "%lld elements of the truth are not finite; 8 bits cannot show them",
                   (long long)(out->elements - t.measured));
        return VR_OK;
    }
    if (vj_mistrust_statistics(&t, rules, n_ideals, out))
        return VR_OK;
    const levels l = {range_lo, 255.0 / (range_hi - range_lo)};
    s = predict(truth, ideals, n_ideals, &l, out->elements, &clipped, &out->u8.predicted, err);
    if (s != VR_OK || vj_mistrust_zeros(clipped, rules, "samples are clipped to black or white", out))
        return s;
    const double n = (double)out->elements, p = fmin(1.0, 2.0 * out->u8.predicted);
    out->u8.limit = fmin(1.0, ceil(n * (p + 3.0 * sqrt(p * (1.0 - p) / n))) / n);
    out->u8.lsb_limit = rules->limits->u8_lsb;
    out->u8.delta = l.per_unit * out->numeric.limit_max * fmax(out->numeric.noise_max, out->numeric.floor);
    if (cap) {
        out->u8.delta = 0.0;
        for (int64_t i = 0; i < out->elements; i++)
            out->u8.delta = fmax(out->u8.delta, vj_at(cap, i) * l.per_unit);
    }
    vr_tensor f32 = {0};
    uint8_t *want = NULL;
    s = vj_as_f32(truth, &f32, err);
    if (s == VR_OK)
        s = vj_as_u8(&f32, range_lo, range_hi, &want, err);
    if (s == VR_OK) {
        out->u8.share = (double)count_flips(got->data, want, truth, &l, cap, out) / n;
        decide(truth, &l, out);
    }
    free(want);
    vr_tensor_free(&f32);
    return s;
}
