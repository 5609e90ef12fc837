/* Picture metrics against values worked out by hand (clauses Q1 to Q4).
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "vaeref/metrics.h"

/* Pictures of the running test, freed after it. */
static vr_tensor made[8];
static int made_count;

static void free_pictures(void)
{
    for (int i = 0; i < made_count; i++)
        vr_tensor_free(&made[i]);
}

TestSuite(metrics, .fini = free_pictures);

static vr_tensor picture(int64_t c, int64_t h, int64_t w, float value)
{
    vr_tensor t;
    const int64_t dim[4] = {1, c, h, w};
    cr_assert_eq(vr_tensor_new(&t, VR_F32, 4, dim, NULL), VR_OK);
    for (int64_t i = 0; i < c * h * w; i++)
        ((float *)t.data)[i] = value;
    cr_assert(made_count < 8);
    return made[made_count++] = t;
}

static vr_comparison compare(const vr_tensor *a, const vr_tensor *b, double hi, const vr_tile_grid *g)
{
    vr_comparison c;
    vr_error err;
    cr_assert_eq(vr_compare_pictures(a, b, 0.0, hi, g, 8, &c, &err), VR_OK, "%s", err.text);
    return c;
}

/* Four tiles of 64 x 64 owned pixels. */
static vr_axis_tile halves[2] = {{0, 8, 0, 64}, {8, 8, 64, 64}};
static const vr_tile_grid quarters = {.h = {16, 8, 2, halves, 0, 0}, .w = {16, 8, 2, halves, 0, 0}};

Test(metrics, psnr_uses_the_stated_range_and_wide_arithmetic)
{
    vr_tensor a = picture(1, 16, 16, 0.0f), b = picture(1, 16, 16, 16.0f);
    vr_comparison c = compare(&a, &b, 255.0, NULL);
    cr_assert(fabs(c.psnr - 24.048) < 5e-4, "%.6f", c.psnr);
    cr_assert_eq(c.max_abs, 16.0);
    c = compare(&a, &a, 255.0, NULL);
    cr_assert(c.identical && isinf(c.psnr) && c.rms == 0.0 && fabs(c.ssim - 1.0) < 1e-12);
    const float x[4] = {10, 200, 0, 255}, y[4] = {11, 199, 1, 254};
    vr_tensor s = picture(1, 2, 2, 0), t = picture(1, 2, 2, 0);
    memcpy(s.data, x, sizeof x);
    memcpy(t.data, y, sizeof y);
    c = compare(&s, &t, 255.0, NULL);
    cr_assert(fabs(c.psnr - 48.131) < 5e-4, "%.6f", c.psnr);
    cr_assert(isnan(c.ssim), "a window larger than the picture has no SSIM");
}

Test(metrics, the_largest_error_is_found_with_its_place)
{
    vr_tensor a = picture(3, 20, 30, 0.5f), b = picture(3, 20, 30, 0.5f);
    ((float *)a.data)[(2 * 20 + 7) * 30 + 11] = 0.75f;
    vr_comparison c = compare(&a, &b, 1.0, NULL);
    cr_assert_eq(c.max_abs, 0.25);
    cr_assert(c.max_at[0] == 0 && c.max_at[1] == 2 && c.max_at[2] == 7 && c.max_at[3] == 11);
    cr_assert(fabs(c.rms - 0.25 / sqrt(1800.0)) < 1e-15);
}

Test(metrics, ssim_of_uncorrelated_textures_follows_its_formula)
{
    /* Equal means, covariance 0 by construction: a varies by column pairs, b by row pairs. */
    vr_tensor a = picture(1, 64, 64, 0), b = picture(1, 64, 64, 0);
    for (int y = 0; y < 64; y++)
        for (int x = 0; x < 64; x++) {
            ((float *)a.data)[y * 64 + x] = 0.5f + (x % 2 ? 0.01f : -0.01f);
            ((float *)b.data)[y * 64 + x] = 0.5f + (y % 2 ? 0.01f : -0.01f);
        }
    vr_comparison one = compare(&a, &b, 1.0, NULL), wide = compare(&a, &b, 255.0, NULL);
    cr_assert(fabs(one.ssim - 0.8182) < 2e-3, "L = 1: %.6f", one.ssim);
    cr_assert(wide.ssim > 0.9999, "L = 255: %.6f", wide.ssim);
}

Test(metrics, nan_fails_instead_of_being_skipped)
{
    vr_tensor a = picture(1, 16, 16, 0.0f), b = picture(1, 16, 16, 0.0f);
    ((float *)a.data)[3] = NAN;
    vr_comparison c = compare(&a, &b, 1.0, NULL);
    cr_assert(c.nonfinite == 1 && isnan(c.rms) && isnan(c.psnr) && isnan(c.max_abs) && !c.identical);
}

/* Noise everywhere, a step of `dc` in the right half of the tiles. */
static vr_comparison stepped(double dc, double corner)
{
    vr_tensor a = picture(3, 128, 128, 0.0f), b = picture(3, 128, 128, 0.0f);
    for (int64_t i = 0; i < 3 * 128 * 128; i++) {
        int64_t x = i % 128, y = i / 128 % 128;
        float noise = 0.1f * vr_random_normal(4, 1, (uint64_t)i);
        ((float *)a.data)[i] = noise + (x >= 64 ? (float)dc : 0.0f) + (x >= 64 && y >= 64 ? (float)corner : 0.0f);
    }
    return compare(&a, &b, 2.0, &quarters);
}

Test(metrics, a_seam_raises_the_border_score_and_noise_does_not)
{
    vr_comparison none = stepped(0.0, 0.0), seam = stepped(0.2, 0.0), corner = stepped(0.0, 2.0);
    cr_assert(none.border_score < 1.0 && none.corner_score < 1.0, "%.3f %.3f", none.border_score, none.corner_score);
    cr_assert(none.tone_step < 0.02, "%.4f", none.tone_step);
    cr_assert(seam.border_score > 1.0, "%.3f", seam.border_score);
    cr_assert(fabs(seam.tone_step - 0.2) < 0.02, "%.4f", seam.tone_step);
    cr_assert(seam.corner_score < 1.0, "a straight seam has no corner: %.3f", seam.corner_score);
    cr_assert(corner.corner_score > 1.0, "%.3f", corner.corner_score);
}

Test(metrics, identical_pictures_score_zero_on_every_border)
{
    vr_tensor a = picture(3, 128, 128, 0.25f);
    vr_comparison c = compare(&a, &a, 1.0, &quarters);
    cr_assert(c.border_score == 0.0 && c.corner_score == 0.0 && c.tone_step == 0.0);
}

Test(metrics, difference_picture_is_amplified_to_white_with_the_grid_in_red)
{
    vr_tensor a = picture(3, 128, 128, 0.0f), b = picture(3, 128, 128, 0.0f);
    ((float *)a.data)[5 * 128 + 9] = 0.01f;
    double gain = 0.0;
    vr_image img;
    cr_assert_eq(vr_difference_picture(&a, &b, 0, 0.0, 1.0, &quarters, &gain, &img, NULL), VR_OK);
    const uint8_t *px = img.data;
    cr_assert(fabs(gain - 100.0) < 1e-3);
    cr_assert_eq(px[(5 * 128 + 9) * 3 + 1], 255);
    cr_assert_eq(px[(5 * 128 + 10) * 3 + 1], 0);
    cr_assert(px[(64 * 128 + 3) * 3] == 255 && px[(64 * 128 + 3) * 3 + 1] == 0);
    vr_image_free(&img);
}

Test(metrics, shapes_and_ranges_are_checked)
{
    vr_tensor a = picture(1, 4, 4, 0), b = picture(1, 4, 5, 0);
    vr_comparison c;
    cr_assert_eq(vr_compare_pictures(&a, &b, 0, 1, NULL, 8, &c, NULL), VR_E_SHAPE);
    cr_assert_eq(vr_compare_pictures(&a, &a, 1, 1, NULL, 8, &c, NULL), VR_E_RANGE);
    cr_assert_eq(vr_compare_pictures(&a, &a, 0, NAN, NULL, 8, &c, NULL), VR_E_RANGE);
}
