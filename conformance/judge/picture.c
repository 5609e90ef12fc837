/* Whole pictures (J10): PSNR and SSIM against what honest noise has, seams against
 * placebo lines. The reference must have decoded under the same tile plan: how
 * good a plan is, is another question.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "judge/internal.h"
#include "vaeref/metrics.h"

/* PSNR of the two pictures after quantising, dB. */
static vr_status psnr_u8(const vr_tensor *got, const vr_tensor *want, double lo, double hi, double *psnr, vr_error *err)
{
    const int64_t count = want->dim[0] * want->dim[1] * want->dim[2] * want->dim[3];
    uint8_t *a = NULL, *b = NULL;
    double sq = 0.0;
    vr_status s = vj_as_u8(got, lo, hi, &a, err);
    if (s == VR_OK)
        s = vj_as_u8(want, lo, hi, &b, err);
    for (int64_t i = 0; s == VR_OK && i < count; i++)
        sq += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    free(a);
    free(b);
    *psnr = sq > 0.0 ? 20.0 * log10(255.0 / sqrt(sq / (double)count)) : INFINITY;
    return s;
}

/* PSNR and SSIM of the worst ideal. */
static vr_status noise_of(const vr_tensor *want, const vr_tensor *ideals, int32_t n_ideals, double lo, double hi,
                          vj_result *r, vr_error *err)
{
    r->picture.psnr_noise = INFINITY;
    r->picture.ssim_noise = NAN;
    for (int32_t k = 0; k < n_ideals; k++) {
        vr_tensor ideal = {0};
        vr_comparison c;
        vr_status s = vj_as_f32(&ideals[k], &ideal, err);
        if (s == VR_OK)
            s = vr_compare_pictures(&ideal, want, lo, hi, NULL, 1, &c, err);
        vr_tensor_free(&ideal);
        if (s != VR_OK)
            return s;
        if (!(c.psnr >= r->picture.psnr_noise)) /* NaN stays to be seen */
            r->picture.psnr_noise = c.psnr;
        r->picture.ssim_noise = k == 0 ? c.ssim : fmin(r->picture.ssim_noise, c.ssim);
        if (isnan(r->picture.psnr_noise))
            break;
    }
    r->picture.psnr_limit = r->picture.psnr_noise - VJ_PSNR_SLACK_DB;
    /* 1 - SSIM grows with the square of the error, so 6 dB are a factor of 4. */
    r->picture.ssim_limit = 1.0 - fmax(VJ_SSIM_LOSS, 4.0 * (1.0 - r->picture.ssim_noise));
    return VR_OK;
}

static void decide(const vr_comparison *c, bool tiled, vj_result *r)
{
    if (isnan(r->picture.psnr_noise))
        vj_verdict(r, VJ_MISTRUSTED, "an ideal or the reference picture holds a value that is not finite");
    else if (isinf(r->picture.psnr_noise))
        vj_verdict(r, VJ_MISTRUSTED, "the ideals equal the reference picture: there is no noise to judge by");
    else if (c->nonfinite)
        vj_verdict(r, VJ_FAIL, "%lld elements of the picture are not finite", (long long)c->nonfinite);
    else if (!(c->psnr >= r->picture.psnr_limit))
        vj_verdict(r, VJ_FAIL,
                   "PSNR is %.2f dB; honest noise has %.2f dB and %.2f dB is the limit; worst at [%lld,%lld,%lld,%lld]",
                   c->psnr, r->picture.psnr_noise, r->picture.psnr_limit, (long long)c->max_at[0],
                   (long long)c->max_at[1], (long long)c->max_at[2], (long long)c->max_at[3]);
    else if (c->ssim < r->picture.ssim_limit)
        vj_verdict(r, VJ_FAIL, "SSIM is %.6f; honest noise has %.6f and %.6f is the limit", c->ssim,
                   r->picture.ssim_noise, r->picture.ssim_limit);
    else if (tiled && isnan(c->border_score))
        vj_verdict(
            r, VJ_MISTRUSTED,
            "no tile border lies on the phase, or fewer than eight placebo lines do: no seam can be told from texture");
    else if (tiled && c->border_score > r->picture.border_limit)
        vj_verdict(r, VJ_FAIL,
                   "the tile grid shows: border steps are %.2f of the 99th percentile elsewhere (limit %.2f)",
                   c->border_score, r->picture.border_limit);
    else if (tiled && c->corner_score > r->picture.corner_limit) /* NaN without corners */
        vj_verdict(r, VJ_FAIL, "corners of the tile grid show: %.2f of the 99th percentile elsewhere (limit %.2f)",
                   c->corner_score, r->picture.corner_limit);
    else
        vj_verdict(r, VJ_PASS, "PSNR %.2f dB (limit %.2f), SSIM %.6f (limit %.6f), border score %.2f", c->psnr,
                   r->picture.psnr_limit, c->ssim, r->picture.ssim_limit, c->border_score);
}

vr_status vj_picture(const vr_tensor *got, const vr_tensor *want, const vr_tensor *ideals, int32_t n_ideals,
                     double range_lo, double range_hi, const vr_tile_grid *grid, int64_t phase, vj_result *out,
                     vr_error *err)
{
    vr_tensor a = {0}, b = {0};
    vr_comparison c;
    vj_start(out);
    vr_status s = vj_check_picture("reference", want, range_lo, range_hi, err);
    if (s == VR_OK)
        s = vj_check_float("reference", want, err);
    if (s == VR_OK)
        s = vj_check_float("output", got, err);
    if (s == VR_OK)
        s = vj_check_shape("output", got, want, err);
    if (s == VR_OK)
        s = vj_check_ideals(ideals, n_ideals, want, err);
    if (s == VR_OK)
        s = vj_count("reference", want, &out->elements, err);
    if (s == VR_OK && grid)
        s = vj_check_grid(grid, want->dim[2], want->dim[3], err);
    if (s == VR_OK)
        s = vj_as_f32(got, &a, err);
    if (s == VR_OK)
        s = vj_as_f32(want, &b, err);
    if (s == VR_OK)
        s = noise_of(&b, ideals, n_ideals, range_lo, range_hi, out, err);
    if (s == VR_OK)
        s = vr_compare_pictures(&a, &b, range_lo, range_hi, grid, phase, &c, err);
    if (s == VR_OK)
        s = psnr_u8(&a, &b, range_lo, range_hi, &out->picture.psnr_u8, err);
    vr_tensor_free(&a);
    vr_tensor_free(&b);
    if (s != VR_OK)
        return s;
    const bool tiled = grid && (grid->h.count > 1 || grid->w.count > 1);
    out->picture.psnr = c.psnr;
    out->picture.ssim = c.ssim;
    out->picture.tone_step = c.tone_step;
    out->picture.border_score = c.border_score;
    out->picture.corner_score = c.corner_score;
    if (tiled) {
        const int64_t rows = grid->h.count, columns = grid->w.count;
        const int64_t borders = (rows - 1) * columns + (columns - 1) * rows, corners = (rows - 1) * (columns - 1);
        out->picture.border_limit = borders < VJ_SEAM_MANY ? VJ_BORDER_LIMIT_FEW : VJ_SEAM_LIMIT;
        out->picture.corner_limit = corners < VJ_SEAM_MANY ? VJ_CORNER_LIMIT_FEW : VJ_SEAM_LIMIT;
    }
    out->wrong_above = (range_hi - range_lo) * pow(10.0, -out->picture.psnr_limit / 20.0);
    decide(&c, tiled, out);
    return VR_OK;
}
