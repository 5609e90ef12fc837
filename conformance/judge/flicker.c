/* Flicker (J11): does the error of a video change at the borders of temporal
 * chunks more than it does elsewhere? The same question as seams, along time.
 *
 * For a transition into frame t, with E = got - want of a frame:
 *     change D(t) = mean |E(t) - E(t-1)|,   level J(t) = |mean E(t) - mean E(t-1)|,
 * of each sample and channel by itself: videos have few transitions, and an average
 * over channels would leave too few placebos to know their spread. Placebos are the
 * transitions of the borders' phase modulo the frames of a latent frame that are no
 * border; the first frame of a causal decoder is a picture by itself, so the step
 * out of it is neither. Scores: mean over borders / 99th percentile of placebos.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "judge/internal.h"

enum { MIN_PLACEBOS = 8 };

typedef struct video {
    const vr_tensor *got, *want;
    int64_t planes, frames, pixels; /* planes = n * c */
} video;

/* D(t) and J(t) of every plane; NaN when a value is not finite. */
static vr_status transition(const video *v, int64_t t, double *change, double *level, vr_error *err)
{
    double x[4][VJ_BLOCK];
    for (int64_t p = 0; p < v->planes; p++) {
        double steps = 0.0, jump = 0.0;
        const int64_t now = (p * v->frames + t) * v->pixels, before = now - v->pixels;
        for (int64_t first = 0; first < v->pixels; first += VJ_BLOCK) {
            const int64_t n = v->pixels - first < VJ_BLOCK ? v->pixels - first : VJ_BLOCK;
            vr_status s = vj_read(v->got, now + first, n, x[0], err);
            if (s == VR_OK)
                s = vj_read(v->want, now + first, n, x[1], err);
            if (s == VR_OK)
                s = vj_read(v->got, before + first, n, x[2], err);
            if (s == VR_OK)
                s = vj_read(v->want, before + first, n, x[3], err);
            if (s != VR_OK)
                return s;
            for (int64_t i = 0; i < n; i++) {
                const double d = (x[0][i] - x[1][i]) - (x[2][i] - x[3][i]);
                steps += fabs(d);
                jump += d;
            }
        }
        change[p] = steps / (double)v->pixels;
        level[p] = fabs(jump) / (double)v->pixels;
    }
    return VR_OK;
}

static bool has(const int64_t *list, int64_t n, int64_t value)
{
    for (int64_t i = 0; i < n; i++)
        if (list[i] == value)
            return true;
    return false;
}

static bool has_phase(const int64_t *list, int64_t n, int64_t value, int64_t stride)
{
    for (int64_t i = 0; i < n; i++)
        if (list[i] % stride == value % stride)
            return true;
    return false;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* As Q3: a border without any step scores 0. Sorts the placebos. */
static double score(double border, int64_t borders, double *placebo, int64_t placebos)
{
    if (border == 0.0 || borders == 0)
        return 0.0;
    qsort(placebo, (size_t)placebos, sizeof *placebo, ascending);
    return border / (double)borders / placebo[(int64_t)ceil(0.99 * (double)placebos) - 1];
}

static vr_status check(const vr_tensor *got, const vr_tensor *want, const int64_t *border, int64_t borders,
                       int64_t stride, vj_result *r, vr_error *err)
{
    char text[VJ_PLACE * 2];
    vr_status s = vj_check_float("reference", want, err);
    if (s == VR_OK && want->rank != 5)
        s = vr_fail(err, VR_E_SHAPE, "reference is %s; want rank 5 [N,C,T,H,W]",
                    vr_tensor_describe(want, text, sizeof text));
    if (s == VR_OK)
        s = vj_check_float("output", got, err);
    if (s == VR_OK)
        s = vj_check_shape("output", got, want, err);
    if (s == VR_OK)
        s = vj_count("reference", want, &r->elements, err);
    if (s == VR_OK && stride < 1)
        s = vr_fail(err, VR_E_RANGE, "stride %lld; want frames per latent frame, 1 or more", (long long)stride);
    if (s == VR_OK && borders < 1)
        s = vr_fail(err, VR_E_RANGE, "%lld chunk borders; want at least one", (long long)borders);
    for (int64_t i = 0; s == VR_OK && i < borders; i++)
        if (border[i] < 1 || border[i] >= want->dim[2] || (i > 0 && border[i] <= border[i - 1]))
            s = vr_fail(err, VR_E_RANGE, "chunk border %lld is frame %lld; want ascending frames 1 to %lld",
                        (long long)i, (long long)border[i], (long long)want->dim[2] - 1);
    if (s == VR_OK && borders == 1 && border[0] == 1)
        s = vr_fail(err, VR_E_RANGE,
                    "the only chunk border is frame 1, which follows the picture frame and has no placebo");
    return s;
}

static void decide(vj_result *r)
{
    const double change = r->flicker.change_score, level = r->flicker.level_score, limit = r->flicker.limit;
    if (r->wrong)
        vj_verdict(r, VJ_FAIL, "the transition into frame %lld holds a value that is not finite",
                   (long long)r->first_wrong);
    else if (isnan(change) || isnan(level))
        vj_verdict(r, VJ_MISTRUSTED, "%lld placebo transitions; %d is the least that shows what is usual",
                   (long long)r->flicker.placebos, MIN_PLACEBOS);
    else if (level > limit)
        vj_verdict(r, VJ_FAIL,
                   "brightness of the error jumps at chunk borders: %.2f of the 99th percentile elsewhere (limit %.2f)",
                   level, limit);
    else if (change > limit)
        vj_verdict(r, VJ_FAIL, "the error changes at chunk borders: %.2f of the 99th percentile elsewhere (limit %.2f)",
                   change, limit);
    else
        vj_verdict(r, VJ_PASS, "chunk borders: change %.2f, level %.2f of the 99th percentile elsewhere (limit %.2f)",
                   change, level, limit);
}

vr_status vj_flicker(const vr_tensor *got, const vr_tensor *want, const int64_t *border, int64_t borders,
                     int64_t stride, vj_result *out, vr_error *err)
{
    vj_start(out);
    vr_status s = check(got, want, border, borders, stride, out, err);
    if (s != VR_OK)
        return s;
    const video v = {got, want, want->dim[0] * want->dim[1], want->dim[2], want->dim[3] * want->dim[4]};
    double *change = malloc((size_t)(2 * v.frames * v.planes) * sizeof *change);
    if (!change)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate %lld transitions", (long long)(v.frames * v.planes));
    double *level = change + v.frames * v.planes, change_sum = 0.0, level_sum = 0.0;
    int64_t placebos = 0, on_border = 0; /* planes of transitions */
    for (int64_t t = 2; s == VR_OK && t < v.frames; t++) {
        const bool is_border = has(border, borders, t);
        if (!is_border && !has_phase(border, borders, t, stride))
            continue;
        s = transition(&v, t, change + placebos, level + placebos, err); /* a border's are overwritten next */
        double all = 0.0;
        for (int64_t p = 0; s == VR_OK && p < v.planes; p++) {
            all += change[placebos + p];
            change_sum += is_border ? change[placebos + p] : 0.0;
            level_sum += is_border ? level[placebos + p] : 0.0;
        }
        if (!isfinite(all))
            vj_count_wrong(out, t);
        placebos += is_border ? 0 : v.planes;
        on_border += is_border ? v.planes : 0;
    }
    out->flicker.borders = on_border / v.planes;
    out->flicker.limit = out->flicker.borders < VJ_FLICKER_MANY ? VJ_FLICKER_LIMIT_FEW : VJ_FLICKER_LIMIT;
    out->flicker.placebos = placebos / v.planes;
    if (s == VR_OK && !out->wrong && (out->flicker.placebos >= MIN_PLACEBOS || change_sum == 0.0)) {
        out->flicker.change_score = score(change_sum, on_border, change, placebos);
        out->flicker.level_score = score(level_sum, on_border, level, placebos);
    }
    free(change);
    if (s == VR_OK)
        decide(out);
    return s;
}
