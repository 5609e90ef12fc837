/* Flicker at the borders of temporal chunks (J11). SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "judgecase.h"

TestSuite(judge_flicker, .fini = release_tensors);

static vj_result r;
static vr_error err;

enum { T = 57, SIDE = 16, FRAME = SIDE * SIDE }; /* 1 + 4 * 14 frames */

/* Chunks of four latent frames; and one border alone. */
static const int64_t borders[] = {17, 33, 49}, many[] = {9, 17, 25, 33, 41, 49}, one[] = {29};

/* Noise that lasts for the four frames of a latent frame, plus a little of each frame. */
static vr_tensor video(uint64_t seed)
{
    vr_tensor t = make_tensor(VR_F32, 1, 3, T, SIDE, SIDE, -1);
    float *slow = make_tensor(VR_F32, 3 * 16 * FRAME, -1).data;
    vr_random_fill(slow, 3 * 16 * FRAME, VR_NORMAL, seed, 1, 0);
    vr_random_fill(t.data, 3 * T * FRAME, VR_NORMAL, seed, 2, 0);
    for (int i = 0; i < 3 * T * FRAME; i++) {
        const int c = i / FRAME / T, f = i / FRAME % T, latent = (f + 3) / 4;
        ((float *)t.data)[i] = 1e-3f * (slow[(c * 16 + latent) * FRAME + i % FRAME] + 0.3f * ((float *)t.data)[i]);
    }
    return t;
}

static vj_status judge(const vr_tensor *got, const vr_tensor *want, const int64_t *b, int64_t n)
{
    cr_assert_eq(vj_flicker(got, want, b, n, 4, &r, &err), VR_OK, "%s", err.text);
    return r.status;
}

Test(judge_flicker, honest_noise_passes_under_200_seeds)
{
    double most[3] = {0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        const vr_tensor got = video(seed), want = make_tensor(VR_F32, 1, 3, T, SIDE, SIDE, -1);
        cr_expect_eq(judge(&got, &want, one, 1), VJ_PASS, "seed %d: %s", (int)seed, r.reason);
        most[0] = fmax(most[0], fmax(r.flicker.change_score, r.flicker.level_score));
        cr_expect_eq(judge(&got, &want, borders, 3), VJ_PASS, "seed %d: %s", (int)seed, r.reason);
        most[1] = fmax(most[1], fmax(r.flicker.change_score, r.flicker.level_score));
        cr_expect_eq(judge(&got, &want, many, 4), VJ_PASS, "seed %d: %s", (int)seed, r.reason);
        most[2] = fmax(most[2], fmax(r.flicker.change_score, r.flicker.level_score));
        release_tensors();
    }
    cr_log_info("largest scores: %.3f with one border, %.3f with three, %.3f with four", most[0], most[1], most[2]);
}

Test(judge_flicker, placebos_share_the_phase_and_leave_out_the_first_frame)
{
    const vr_tensor want = make_tensor(VR_F32, 1, 3, T, SIDE, SIDE, -1);
    vr_tensor got = video(1);
    judge(&got, &want, borders, 3);
    cr_assert(r.flicker.borders == 3 && r.flicker.placebos == 10, "5, 9, ... 53 but the borders: %d",
              (int)r.flicker.placebos);
    const double before = r.flicker.change_score;
    for (int i = 0; i < 3 * T * FRAME; i++)
        if (i / FRAME % T == 0)
            ((float *)got.data)[i] = 1.0f; /* the picture frame is far off */
    judge(&got, &want, borders, 3);
    cr_assert_eq(r.flicker.change_score, before);
}

Test(judge_flicker, scores_by_hand)
{
    vr_tensor want = make_tensor(VR_F32, 1, 1, 12, 1, 2, -1), got = make_tensor(VR_F32, 1, 1, 12, 1, 2, -1);
    for (int t = 0; t < 12; t++) { /* steps of (1, -1); at frame 6 of (3, 3) */
        const double side = t >= 6 ? 3.0 : 0.0;
        put(&got, 2 * t, t + side);
        put(&got, 2 * t + 1, -t + side);
    }
    const int64_t at[] = {6};
    cr_assert_eq(vj_flicker(&got, &want, at, 1, 1, &r, NULL), VR_OK);
    cr_assert(r.flicker.placebos == 9 && r.flicker.limit == 1.5 && fabs(r.flicker.change_score - 3.0) < 1e-12,
              "(4 + 2) / 2 over 1: %g", r.flicker.change_score);
    cr_assert(isinf(r.flicker.level_score) && r.status == VJ_FAIL, "no level changes elsewhere");
}

Test(judge_flicker, a_step_of_brightness_and_a_lost_history_fail)
{
    vr_tensor want = make_tensor(VR_F32, 1, 3, T, SIDE, SIDE, -1), got = video(2);
    for (int i = 0; i < 3 * T * FRAME; i++) {
        const int f = i / FRAME % T;
        ((float *)got.data)[i] += 2.5e-4f * (float)((f >= 17) + (f >= 33) + (f >= 49)); /* a quarter sigma */
    }
    cr_assert_eq(judge(&got, &want, borders, 3), VJ_FAIL);
    cr_assert(r.flicker.limit == 1.0 && strstr(r.reason, "brightness"), "%s", r.reason);
    got = video(2);
    for (int i = 0; i < 3 * T * FRAME; i++) { /* the first frames of a chunk start from nothing */
        const int f = i / FRAME % T;
        if (f == 17 || f == 33 || f == 49)
            ((float *)got.data)[i] *= i % 2 ? -5.0f : 5.0f;
    }
    cr_assert_eq(judge(&got, &want, borders, 3), VJ_FAIL);
    cr_assert(r.flicker.change_score > 2.0, "%s", r.reason);
}

Test(judge_flicker, equal_videos_score_zero_and_short_ones_are_not_trusted)
{
    const vr_tensor a = video(3), zero = make_tensor(VR_F32, 1, 3, T, SIDE, SIDE, -1);
    cr_assert_eq(judge(&a, &a, borders, 3), VJ_PASS);
    cr_assert(r.flicker.change_score == 0.0 && r.flicker.level_score == 0.0);
    const int64_t all[] = {9, 13, 17, 21, 25, 29, 33};
    cr_assert_eq(judge(&a, &zero, all, 7), VJ_MISTRUSTED);
    cr_assert(strstr(r.reason, "6 placebo"), "%s", r.reason);
}

Test(judge_flicker, non_finite_frames_fail)
{
    const vr_tensor want = make_tensor(VR_F32, 1, 3, T, SIDE, SIDE, -1);
    vr_tensor got = video(4);
    put(&got, (T + 21) * FRAME + 5, NAN);
    cr_assert_eq(judge(&got, &want, borders, 3), VJ_FAIL);
    cr_assert(strstr(r.reason, "frame 21"), "%s", r.reason);
}

Test(judge_flicker, use_is_checked)
{
    const vr_tensor a = make_tensor(VR_F32, 1, 1, 9, 2, 2, -1), b = make_tensor(VR_F32, 1, 9, 2, 2, -1);
    const int64_t late[] = {9}, first[] = {1}, back[] = {5, 5};
    cr_assert_eq(vj_flicker(&a, &a, late, 1, 4, &r, &err), VR_E_RANGE);
    cr_assert(strstr(err.text, "ascending frames 1 to 8"), "%s", err.text);
    cr_assert_eq(vj_flicker(&a, &a, first, 1, 4, &r, &err), VR_E_RANGE);
    cr_assert_eq(vj_flicker(&a, &a, back, 2, 4, &r, &err), VR_E_RANGE);
    cr_assert_eq(vj_flicker(&a, &a, back, 0, 4, &r, &err), VR_E_RANGE);
    cr_assert_eq(vj_flicker(&a, &a, back, 1, 0, &r, &err), VR_E_RANGE);
    cr_assert_eq(vj_flicker(&b, &b, back, 1, 4, &r, &err), VR_E_SHAPE);
}
