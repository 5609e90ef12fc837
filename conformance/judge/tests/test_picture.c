/* PSNR, SSIM and seams of pictures (J10). SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "judgecase.h"

TestSuite(judge_picture, .fini = release_tensors);

static vj_result r;
static vr_error err;

enum { SIDE = 128 };

static vr_axis_tile whole[1] = {{0, 16, 0, 128}}, halves[2] = {{0, 8, 0, 64}, {8, 8, 64, 64}};
static vr_axis_tile thirds[3] = {{0, 6, 0, 40}, {5, 6, 40, 40}, {10, 6, 80, 48}};
static const vr_tile_grid one_border = {.h = {16, 8, 1, whole, 0, -1}, .w = {16, 8, 2, halves, 0, 0}};
static const vr_tile_grid quarters = {.h = {16, 8, 2, halves, 0, 0}, .w = {16, 8, 2, halves, 0, 0}};
static const vr_tile_grid ninths = {.h = {16, 8, 3, thirds, 0, 8}, .w = {16, 8, 3, thirds, 0, 8}};

/* A smooth picture in -1..1. */
static vr_tensor reference(void)
{
    vr_tensor t = make_tensor(VR_F32, 1, 3, SIDE, SIDE, -1);
    for (int i = 0; i < 3 * SIDE * SIDE; i++)
        ((float *)t.data)[i] =
            0.8f * sinf(0.11f * (float)(i % SIDE)) * cosf(0.07f * (float)(i / SIDE % SIDE) + (float)(i / SIDE / SIDE));
    return t;
}

/* Noise correlated over neighbours, stronger on every eighth column as decoders have it. */
static vr_tensor with_noise(const vr_tensor *want, double sigma, uint64_t seed)
{
    vr_tensor t = copy_as(VR_F32, want);
    float *noise = make_tensor(VR_F32, 3 * SIDE * SIDE + SIDE + 1, -1).data;
    vr_random_fill(noise, 3 * SIDE * SIDE + SIDE + 1, VR_NORMAL, seed, 1, 0);
    for (int i = 0; i < 3 * SIDE * SIDE; i++) {
        const float e = 0.5f * (noise[i] + noise[i + 1] + noise[i + SIDE] + noise[i + SIDE + 1]);
        ((float *)t.data)[i] += (float)sigma * e * (i % 8 == 0 ? 1.5f : 1.0f);
    }
    return t;
}

static vj_status judge(const vr_tensor *got, const vr_tensor *want, const vr_tensor *ideal, const vr_tile_grid *g)
{
    cr_assert_eq(vj_picture(got, want, ideal, 2, -1.0, 1.0, g, 8, &r, &err), VR_OK, "%s", err.text);
    return r.status;
}

Test(judge_picture, gates_follow_the_noise)
{
    const vr_tensor want = reference();
    const vr_tensor ideal[2] = {with_noise(&want, 2e-4, 1), with_noise(&want, 1.6e-4, 2)};
    vr_tensor got = with_noise(&want, 2e-4, 3);
    cr_assert_eq(judge(&got, &want, ideal, NULL), VJ_PASS, "%s", r.reason);
    cr_assert(fabs(r.picture.psnr_noise - r.picture.psnr) < 0.3 && r.picture.psnr_limit == r.picture.psnr_noise - 6.0,
              "%.3f %.3f", r.picture.psnr_noise, r.picture.psnr);
    cr_assert(r.picture.ssim > 0.9999 && r.picture.ssim_limit == 0.9999 && isnan(r.picture.border_score));
    cr_assert(r.picture.psnr_u8 > 45.0 && r.picture.psnr_u8 < r.picture.psnr, "8 bits hide and add: %.2f",
              r.picture.psnr_u8);
    got = with_noise(&want, 3.8e-4, 3);
    cr_assert_eq(judge(&got, &want, ideal, NULL), VJ_PASS, "5.6 dB: %s", r.reason);
    got = with_noise(&want, 4.2e-4, 3);
    cr_assert_eq(judge(&got, &want, ideal, NULL), VJ_FAIL, "6.4 dB");
    cr_assert(strstr(r.reason, "PSNR"), "%s", r.reason);
}

Test(judge_picture, ssim_gate_widens_with_the_noise_only)
{
    const vr_tensor want = reference();
    const vr_tensor ideal[2] = {with_noise(&want, 1e-2, 1), with_noise(&want, 1e-2, 2)};
    const vr_tensor got = with_noise(&want, 1.9e-2, 3);
    cr_assert_eq(judge(&got, &want, ideal, NULL), VJ_PASS, "%s", r.reason);
    cr_assert(r.picture.ssim < 0.9999 &&
              fabs((1.0 - r.picture.ssim_limit) / (1.0 - r.picture.ssim_noise) - 4.0) < 1e-6);
}

Test(judge_picture, noise_moved_to_where_the_picture_is_flat_fails_by_ssim)
{
    vr_tensor want = reference(), ideal[2], got;
    for (int i = 0; i < 3 * SIDE * SIDE; i++) /* the left half is flat */
        put(&want, i, i % SIDE < 64 ? 0.0 : get(&want, i));
    ideal[0] = with_noise(&want, 1e-3, 1);
    ideal[1] = with_noise(&want, 1e-3, 2);
    got = with_noise(&want, 1e-3, 3);
    for (int i = 0; i < 3 * SIDE * SIDE; i++)
        for (int k = 0; k < 3; k++)
            if ((i % SIDE < 64) != (k == 2))
                put(k < 2 ? &ideal[k] : &got, i, get(&want, i));
    cr_assert_eq(judge(&got, &want, ideal, NULL), VJ_FAIL, "%s", r.reason);
    cr_assert(strstr(r.reason, "SSIM") && r.picture.psnr > r.picture.psnr_noise - 1.0, "%s", r.reason);
}

Test(judge_picture, a_shifted_picture_fails)
{
    const vr_tensor want = reference();
    const vr_tensor ideal[2] = {with_noise(&want, 1e-3, 1), with_noise(&want, 1e-3, 2)};
    vr_tensor got = copy_as(VR_F32, &want);
    memmove(got.data, (float *)got.data + 1, (3 * SIDE * SIDE - 1) * sizeof(float));
    cr_assert_eq(judge(&got, &want, ideal, NULL), VJ_FAIL);
}

Test(judge_picture, seams_fail_and_the_same_noise_without_passes)
{
    const vr_tensor want = reference();
    const vr_tensor ideal[2] = {with_noise(&want, 1e-3, 1), with_noise(&want, 1e-3, 2)};
    for (int kind = 0; kind < 3; kind++) {
        vr_tensor got = with_noise(&want, 1e-3, 4);
        for (int i = 0; i < 3 * SIDE * SIDE; i++) {
            const int x = i % SIDE, y = i / SIDE % SIDE;
            const float step = kind == 1   ? 1e-3f * (float)(x >= 64)
                               : kind == 2 ? 8e-3f * (float)(x == 64 && y == 64)
                                           : 0.0f;
            ((float *)got.data)[i] += step;
        }
        cr_assert_eq(judge(&got, &want, ideal, &quarters), kind == 0 ? VJ_PASS : VJ_FAIL, "%d: %s", kind, r.reason);
        cr_assert(kind == 0 || strstr(r.reason, kind == 1 ? "border steps" : "corners"), "%s", r.reason);
        cr_assert(r.picture.border_limit == 1.0 && r.picture.corner_limit == 2.0, "4 border pieces, 1 corner");
    }
    vr_tensor got = with_noise(&want, 1e-3, 4);
    for (int i = 0; i < 3 * SIDE * SIDE; i++)
        ((float *)got.data)[i] += 2e-3f * (float)(i % SIDE >= 64);
    cr_assert_eq(judge(&got, &want, ideal, &one_border), VJ_FAIL, "%s", r.reason);
    cr_assert(r.picture.border_limit == 1.5 && isnan(r.picture.corner_score));
}

Test(judge_picture, honest_noise_passes_every_grid_under_200_seeds)
{
    static const vr_tile_grid *const grids[] = {&one_border, &quarters, &ninths};
    double most[3] = {0}, corner[3] = {0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        const vr_tensor want = reference();
        const vr_tensor ideal[2] = {with_noise(&want, 1e-3, 7000 + seed), with_noise(&want, 1e-3, 8000 + seed)};
        const vr_tensor got = with_noise(&want, 1e-3, 9000 + seed);
        const int g = (int)(seed % 3);
        cr_expect_eq(judge(&got, &want, ideal, grids[g]), VJ_PASS, "seed %d grid %d: %s", (int)seed, g, r.reason);
        most[g] = fmax(most[g], r.picture.border_score);
        corner[g] = fmax(corner[g], r.picture.corner_score);
        release_tensors();
    }
    cr_log_info("border %.2f %.2f %.2f, corner - %.2f %.2f", most[0], most[1], most[2], corner[1], corner[2]);
}

Test(judge_picture, what_cannot_be_judged_is_not_trusted)
{
    const vr_tensor want = reference(), noise[2] = {with_noise(&want, 1e-3, 1), with_noise(&want, 1e-3, 2)};
    vr_tensor equal[2] = {want, want}, got = with_noise(&want, 1e-3, 4);
    cr_assert_eq(judge(&want, &want, equal, NULL), VJ_MISTRUSTED);
    cr_assert(strstr(r.reason, "no noise"), "%s", r.reason);
    equal[1] = with_noise(&want, 1e-3, 3);
    put(&equal[1], 9, NAN);
    cr_assert_eq(judge(&got, &want, equal, NULL), VJ_MISTRUSTED);
    put(&got, 70, INFINITY);
    cr_assert_eq(judge(&got, &want, noise, NULL), VJ_FAIL);
    cr_assert(strstr(r.reason, "1 elements of the picture are not finite"), "%s", r.reason);
    got = with_noise(&want, 1e-3, 4);
    cr_assert_eq(vj_picture(&got, &want, noise, 2, -1.0, 1.0, &quarters, 64, &r, &err), VR_OK);
    cr_assert(r.status == VJ_MISTRUSTED && strstr(r.reason, "placebo"), "%s", r.reason);
}

Test(judge_picture, grids_and_shapes_are_checked)
{
    vr_tensor a = make_tensor(VR_F32, 1, 3, 128, 100, -1), flat = make_tensor(VR_F32, 3, 16, -1);
    cr_assert_eq(vj_picture(&a, &a, &a, 1, -1.0, 1.0, &quarters, 8, &r, &err), VR_E_RANGE);
    cr_assert(strstr(err.text, "columns own 128 pixels; the picture has 100"), "%s", err.text);
    vr_tensor tall = make_tensor(VR_F32, 1, 3, 130, 128, -1);
    cr_assert_eq(vj_picture(&tall, &tall, &tall, 1, -1.0, 1.0, &quarters, 8, &r, &err), VR_E_RANGE);
    cr_assert(strstr(err.text, "rows own 128 pixels; the picture has 130"), "%s", err.text);
    cr_assert_eq(vj_picture(&flat, &flat, &flat, 1, -1.0, 1.0, NULL, 8, &r, &err), VR_E_SHAPE);
    cr_assert_eq(vj_picture(&a, &a, &a, 1, 1.0, 1.0, NULL, 8, &r, &err), VR_E_RANGE);
}
