/* vaeref/metrics.h: how two pictures differ, and whether the difference follows
 * a tile grid. Everything in f64; nothing is quantised first. Specification:
 * docs/spec/metrics.md (clauses Q1..).
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_METRICS_H
#define VAEREF_METRICS_H

#include "vaeref/core.h"
#include "vaeref/io.h"
#include "vaeref/tile.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vr_comparison {
    bool identical;        /* every bit equal */
    int64_t nonfinite;     /* elements where either is NaN or infinite; then the rest is NaN */
    double max_abs;        /* largest |got - want| */
    int64_t max_at[4];     /* its [n, c, y, x] */
    double rms;
    double psnr;           /* dB against the range; +inf when rms is 0 */
    double ssim;           /* 11x11 Gaussian (sigma 1.5) on luma, mean over pictures;
                              NaN when a side is below 11 */
    /* With a grid of more than one tile, of the error E = got - want; else NaN. */
    double tone_step;      /* largest difference of mean E between neighbouring tiles */
    double border_score;   /* mean step of E across tile borders / p99 of placebo lines */
    double corner_score;   /* the same for mixed differences where borders cross */
} vr_comparison;

/* got, want: F32 [n][c][h][w] of one shape. range_lo..range_hi: black and white
 * (required: a score without its range means nothing). grid: NULL, or the tiles
 * whose owned pixels partition the picture. phase: pixels per latent cell;
 * placebo lines share a border's phase modulo it, since decoders have a texture
 * of that period. VR_E_SHAPE, VR_E_RANGE. */
VR_API vr_status vr_compare_pictures(const vr_tensor *got, const vr_tensor *want, double range_lo,
                                     double range_hi, const vr_tile_grid *grid, int64_t phase,
                                     vr_comparison *out, vr_error *err);

/* 8-bit RGB picture of |got - want| of sample n (largest channel), grey, times
 * gain, tile borders drawn in red when grid is given. gain 0: chosen so that the
 * largest difference is white; *gain receives what was used. */
VR_API vr_status vr_difference_picture(const vr_tensor *got, const vr_tensor *want, int64_t n,
                                       double range_lo, double range_hi, const vr_tile_grid *grid,
                                       double *gain, vr_image *out, vr_error *err);

#ifdef __cplusplus
}
#endif
#endif
