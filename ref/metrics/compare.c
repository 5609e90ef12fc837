/* Error, PSNR and SSIM (clauses Q1, Q2). SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/internal.h"

enum { WINDOW = 11 };

static vr_status check(const vr_tensor *a, const vr_tensor *b, double lo, double hi, vr_error *err)
{
    char x[96], y[96];
    if (a->dtype != VR_F32 || b->dtype != VR_F32 || a->rank != 4 || b->rank != 4 ||
        memcmp(a->dim, b->dim, 4 * sizeof a->dim[0]) != 0)
        return vr_fail(err, VR_E_SHAPE, "pictures %s and %s; want two F32[N,C,H,W] of one shape",
                       vr_tensor_describe(a, x, sizeof x), vr_tensor_describe(b, y, sizeof y));
    if (!(hi > lo) || !isfinite(lo) || !isfinite(hi))
        return vr_fail(err, VR_E_RANGE, "range %g..%g; want finite numbers, the first below the second", lo, hi);
    return VR_OK;
}

/* Owned pixels of an axis partition 0..extent. */
static vr_status check_axis(const vr_tile_axis *a, int64_t extent, const char *which, vr_error *err)
{
    int64_t at = 0;
    for (int64_t i = 0; i < a->count; i++) {
        if (a->tile[i].owned != at || a->tile[i].owned_length < 1 || a->tile[i].owned_length > extent - at)
            return vr_fail(err, VR_E_RANGE, "tile %lld of the %s owns %lld pixels from %lld; want tiles that partition %lld",
                           (long long)i, which, (long long)a->tile[i].owned_length, (long long)a->tile[i].owned,
                           (long long)extent);
        at += a->tile[i].owned_length;
    }
    return at == extent ? VR_OK
                        : vr_fail(err, VR_E_RANGE, "the tiles of the %s own %lld of %lld pixels; want all", which,
                                  (long long)at, (long long)extent);
}

/* ---- SSIM --------------------------------------------------------------- */

/* Luma of sample n (BT.601 weights for three channels, else the mean), f64. */
static void luma(const vr_tensor *t, int64_t n, double *out)
{
    const int64_t c = t->dim[1], plane = t->dim[2] * t->dim[3];
    const float *x = (const float *)t->data + n * c * plane;
    for (int64_t i = 0; i < plane; i++) {
        double sum = 0.0;
        for (int64_t k = 0; k < c; k++)
            sum += (double)x[k * plane + i];
        out[i] = c == 3 ? 0.299 * (double)x[i] + 0.587 * (double)x[plane + i] + 0.114 * (double)x[2 * plane + i]
                        : sum / (double)c;
    }
}

/* out[y][x], valid windows only: h-10 by w-10. tmp: h by w-10. */
static void blur(const double *in, int64_t h, int64_t w, const double g[WINDOW], double *tmp, double *out)
{
    const int64_t ow = w - WINDOW + 1, oh = h - WINDOW + 1;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < ow; x++) {
            double s = 0.0;
            for (int64_t k = 0; k < WINDOW; k++)
                s += g[k] * in[y * w + x + k];
            tmp[y * ow + x] = s;
        }
    for (int64_t y = 0; y < oh; y++)
        for (int64_t x = 0; x < ow; x++) {
            double s = 0.0;
            for (int64_t k = 0; k < WINDOW; k++)
                s += g[k] * tmp[(y + k) * ow + x];
            out[y * ow + x] = s;
        }
}

static double ssim_of(const double *a, const double *b, int64_t h, int64_t w, double range, double *work)
{
    double g[WINDOW], total = 0.0;
    for (int i = 0; i < WINDOW; i++)
        total += g[i] = exp(-(i - 5) * (i - 5) / (2.0 * 1.5 * 1.5));
    for (int i = 0; i < WINDOW; i++)
        g[i] /= total;
    const int64_t n = h * w, m = (h - WINDOW + 1) * (w - WINDOW + 1);
    double *prod = work, *tmp = work + n, *stat = work + 2 * n; /* five maps of n */
    const double c1 = 0.01 * range * 0.01 * range, c2 = 0.03 * range * 0.03 * range;
    blur(a, h, w, g, tmp, stat);
    blur(b, h, w, g, tmp, stat + n);
    const double *const left[3] = {a, b, a}, *const right[3] = {a, b, b};
    for (int k = 0; k < 3; k++) {
        for (int64_t i = 0; i < n; i++)
            prod[i] = left[k][i] * right[k][i];
        blur(prod, h, w, g, tmp, stat + (2 + k) * n);
    }
    double sum = 0.0;
    for (int64_t i = 0; i < m; i++) {
        double ma = stat[i], mb = stat[n + i], va = stat[2 * n + i] - ma * ma, vb = stat[3 * n + i] - mb * mb;
        double cov = stat[4 * n + i] - ma * mb;
        sum += (2 * ma * mb + c1) * (2 * cov + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2));
    }
    return sum / (double)m;
}

static vr_status mean_ssim(const vr_tensor *a, const vr_tensor *b, double range, double *out, vr_error *err)
{
    const int64_t h = a->dim[2], w = a->dim[3];
    *out = NAN;
    if (h < WINDOW || w < WINDOW)
        return VR_OK;
    double *space = malloc((size_t)(9 * h * w) * sizeof *space);
    if (!space)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate SSIM maps of %lldx%lld", (long long)w, (long long)h);
    double sum = 0.0;
    for (int64_t n = 0; n < a->dim[0]; n++) {
        luma(a, n, space);
        luma(b, n, space + h * w);
        sum += ssim_of(space, space + h * w, h, w, range, space + 2 * h * w);
    }
    free(space);
    *out = sum / (double)a->dim[0];
    return VR_OK;
}

/* ---- errors ------------------------------------------------------------- */

static void errors(const vr_tensor *a, const vr_tensor *b, double range, vr_comparison *out)
{
    const int64_t c = a->dim[1], h = a->dim[2], w = a->dim[3], count = a->dim[0] * c * h * w;
    const float *x = a->data, *y = b->data;
    double sq = 0.0;
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i])) {
            out->nonfinite++;
            continue;
        }
        double d = fabs((double)x[i] - (double)y[i]);
        sq += d * d;
        if (d > out->max_abs) {
            out->max_abs = d;
            at = i;
        }
    }
    const int64_t place[4] = {at / (c * h * w), at / (h * w) % c, at / w % h, at % w};
    memcpy(out->max_at, place, sizeof place);
    out->rms = sqrt(sq / (double)count);
    out->psnr = out->rms > 0.0 ? 20.0 * log10(range / out->rms) : INFINITY;
}

vr_status vr_compare_pictures(const vr_tensor *got, const vr_tensor *want, double range_lo,
                              double range_hi, const vr_tile_grid *grid, int64_t phase,
                              vr_comparison *out, vr_error *err)
{
    int64_t count;
    vr_status s = check(got, want, range_lo, range_hi, err);
    if (s == VR_OK)
        s = vr_tensor_count(got, &count, err);
    if (s == VR_OK && count == 0)
        s = vr_fail(err, VR_E_SHAPE, "pictures are empty");
    if (s == VR_OK && grid)
        s = check_axis(&grid->h, got->dim[2], "rows", err);
    if (s == VR_OK && grid)
        s = check_axis(&grid->w, got->dim[3], "columns", err);
    if (s != VR_OK)
        return s;
    const double range = range_hi - range_lo;
    *out = (vr_comparison){.tone_step = NAN, .border_score = NAN, .corner_score = NAN, .ssim = NAN};
    out->identical = memcmp(got->data, want->data, (size_t)count * 4) == 0;
    errors(got, want, range, out);
    if (out->nonfinite) {
        out->max_abs = out->rms = out->psnr = NAN;
        return VR_OK;
    }
    s = mean_ssim(got, want, range, &out->ssim, err);
    if (s == VR_OK && grid && (grid->h.count > 1 || grid->w.count > 1))
        s = vr_seam_scores(got, want, grid, phase, out, err);
    return s;
}
