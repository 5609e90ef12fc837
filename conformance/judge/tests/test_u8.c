/* 8-bit pictures: which samples may differ, and how many (J9).
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "judgecase.h"

TestSuite(judge_u8, .fini = release_tensors);

static vj_result r;
static vr_error err;

enum { H = 40, W = 40, COUNT = 3 * H * W };

typedef struct scene {
    vr_tensor truth, ideal[2];
    vj_rules rules;
    uint64_t seed;
} scene;

/* x with an error of `noise` (before storage), stored. */
static vr_tensor noisy(const scene *s, double noise, uint64_t stream, vr_dtype storage)
{
    vr_tensor t = make_tensor(storage, 1, 3, H, W, -1);
    for (int i = 0; i < COUNT; i++)
        put(&t, i, get(&s->truth, i) + noise * (double)vr_random_normal(s->seed, stream, (uint64_t)i));
    return t;
}

/* Uniform in -1..1, the published case; two ideals. */
static scene begin(vr_dtype storage, double noise, uint64_t seed)
{
    scene s = {.truth = make_tensor(VR_F64, 1, 3, H, W, -1),
               .rules = rules_of(storage, VR_F32, VJ_LEVEL_DECODE),
               .seed = seed};
    for (int i = 0; i < COUNT; i++)
        put(&s.truth, i, 2.0 * (double)vr_random_uniform(seed, 0, (uint64_t)i) - 1.0);
    s.ideal[0] = noisy(&s, noise, 1, storage);
    s.ideal[1] = noisy(&s, noise, 2, storage);
    return s;
}

static vr_tensor quantise(const vr_tensor *picture)
{
    const vr_tensor f32 = copy_as(VR_F32, picture);
    vr_tensor u8 = make_tensor(VR_U8, 1, H, W, 3, -1);
    vr_to_u8(f32.data, 3, H, W, -1.0, 1.0, u8.data);
    return u8;
}

static vj_status judge(const scene *s, const vr_tensor *u8)
{
    cr_assert_eq(vj_u8(u8, &s->truth, s->ideal, 2, -1.0, 1.0, &s->rules, NULL, &r, &err), VR_OK, "%s", err.text);
    return r.status;
}

Test(judge_u8, share_is_predicted_by_the_mean_error)
{
    scene s = begin(VR_BF16, 1e-6, 5);
    const vr_tensor picture = noisy(&s, 1e-6, 3, VR_BF16), u8 = quantise(&picture);
    cr_assert_eq(judge(&s, &u8), VJ_PASS, "%s", r.reason);
    cr_assert(fabs(r.u8.predicted - 0.083) < 0.008, "published 0.083 LSB: %.4f", r.u8.predicted);
    cr_assert(fabs(r.u8.share - 0.0825) < 0.015 && r.u8.lsb == 1 && r.u8.illegal == 0, "%.4f", r.u8.share);
    cr_assert(r.u8.limit > 2.0 * r.u8.predicted && r.u8.limit < 2.5 * r.u8.predicted);
}

Test(judge_u8, honest_pictures_pass_under_200_seeds)
{
    static const vr_dtype storage[] = {VR_F32, VR_F16, VR_BF16};
    static const double noise[] = {1e-6, 1e-4, 2e-3};
    for (uint64_t seed = 0; seed < 200; seed++)
        for (int k = 0; k < 3; k++) {
            scene s = begin(storage[k], noise[k], seed);
            const vr_tensor picture = noisy(&s, noise[k], 3, storage[k]), u8 = quantise(&picture);
            cr_expect_eq(judge(&s, &u8), VJ_PASS, "%s seed %d: %s", vr_dtype_name(storage[k]), (int)seed, r.reason);
            release_tensors();
        }
}

Test(judge_u8, off_by_one_far_from_a_half_integer_fails)
{
    scene s = begin(VR_F32, 1e-6, 8);
    vr_tensor u8 = quantise(&s.truth);
    put(&s.truth, 2 * H * W + 5 * W + 7, (100.3 / 255.0) * 2.0 - 1.0); /* channel 2, row 5, column 7 */
    uint8_t *sample = &((uint8_t *)u8.data)[(5 * W + 7) * 3 + 2];
    *sample = 101;
    for (int k = 0; k < 2; k++)
        put(&s.ideal[k], 2 * H * W + 5 * W + 7, get(&s.truth, 2 * H * W + 5 * W + 7));
    cr_assert_eq(judge(&s, &u8), VJ_FAIL);
    cr_assert(r.u8.illegal == 1 && strstr(r.reason, "[0,2,5,7]") && strstr(r.reason, "100.3"), "%s", r.reason);
    *sample = 100;
    cr_assert_eq(judge(&s, &u8), VJ_PASS, "%s", r.reason);
}

Test(judge_u8, off_by_one_at_a_half_integer_is_legal)
{
    scene s = begin(VR_F32, 1e-6, 9);
    for (int k = -1; k <= 1; k += 2) {
        const double x = (100.5 + k * 1e-5) / 255.0 * 2.0 - 1.0;
        put(&s.truth, 11, x);
        put(&s.ideal[0], 11, x);
        put(&s.ideal[1], 11, x);
        vr_tensor u8 = quantise(&s.truth);
        cr_assert_eq(((uint8_t *)u8.data)[33], k < 0 ? 100 : 101);
        ((uint8_t *)u8.data)[33] = k < 0 ? 101 : 100;
        cr_assert_eq(judge(&s, &u8), VJ_PASS, "%s", r.reason);
        cr_assert_eq(llround(r.u8.share * (double)COUNT), 1);
    }
}

Test(judge_u8, too_many_legal_flips_fail)
{
    scene s = begin(VR_F16, 1e-4, 10);
    const vr_tensor picture = noisy(&s, 5e-4, 3, VR_F16), u8 = quantise(&picture);
    cr_assert_eq(judge(&s, &u8), VJ_FAIL);
    cr_assert(r.u8.illegal == 0 && r.u8.share > r.u8.limit && strstr(r.reason, "predicts"), "%s", r.reason);
}

Test(judge_u8, two_levels_fail_even_where_noise_is_large)
{
    scene s = begin(VR_F16, 8e-3, 12); /* about one level */
    const vr_tensor picture = noisy(&s, 8e-3, 3, VR_F16), u8 = quantise(&picture);
    cr_assert_eq(judge(&s, &u8), VJ_FAIL);
    cr_assert(r.u8.lsb >= 2 && strstr(r.reason, "limit 1"), "%s", r.reason);
    scene b = begin(VR_BF16, 3e-3, 12);
    const vr_tensor noisy_bf16 = noisy(&b, 3e-3, 3, VR_BF16), u8b = quantise(&noisy_bf16);
    cr_assert_eq(judge(&b, &u8b), VJ_PASS, "two levels are allowed for bf16: %s", r.reason);
    cr_assert(r.u8.lsb == 2 && r.u8.lsb_limit == 2);
}

Test(judge_u8, usual_mistakes_fail)
{
    scene s = begin(VR_F16, 1e-4, 13);
    const vr_tensor good = quantise(&s.truth), cut = make_tensor(VR_U8, 1, H, W, 3, -1);
    const vr_tensor swapped = make_tensor(VR_U8, 1, H, W, 3, -1), wide = make_tensor(VR_U8, 1, H, W, 3, -1);
    for (int i = 0; i < COUNT; i++) {
        const int at = i % (H * W) * 3 + i / (H * W);
        const double v = (get(&s.truth, i) + 1.0) / 2.0;
        ((uint8_t *)cut.data)[at] = (uint8_t)(v * 255.0);
        ((uint8_t *)wide.data)[at] = (uint8_t)fmin(255.0, v * 256.0);
        ((uint8_t *)swapped.data)[at] = ((uint8_t *)good.data)[at - at % 3 + 2 - at % 3];
    }
    cr_assert_eq(judge(&s, &good), VJ_PASS);
    cr_assert_eq(judge(&s, &cut), VJ_FAIL, "truncation");
    cr_assert_eq(judge(&s, &wide), VJ_FAIL, "times 256");
    cr_assert_eq(judge(&s, &swapped), VJ_FAIL, "BGR");
}

Test(judge_u8, caps_set_the_distance_per_sample)
{
    scene s = begin(VR_F32, 1e-6, 14);
    vr_tensor u8 = quantise(&s.truth), cap = make_tensor(VR_F64, 1, 3, H, W, -1);
    put(&s.truth, 11, (100.5 - 0.01) / 255.0 * 2.0 - 1.0);
    put(&s.ideal[0], 11, get(&s.truth, 11));
    put(&s.ideal[1], 11, get(&s.truth, 11));
    ((uint8_t *)u8.data)[33] = 101;
    for (int i = 0; i < COUNT; i++)
        put(&cap, i, 2e-5);
    put(&cap, 11, 0.02 * 2.0 / 255.0);
    cr_assert_eq(vj_u8(&u8, &s.truth, s.ideal, 2, -1.0, 1.0, &s.rules, &cap, &r, &err), VR_OK);
    cr_assert(r.status == VJ_PASS && fabs(r.u8.delta - 0.02) < 1e-9, "%s", r.reason);
    put(&cap, 11, 0.005 * 2.0 / 255.0);
    cr_assert_eq(vj_u8(&u8, &s.truth, s.ideal, 2, -1.0, 1.0, &s.rules, &cap, &r, &err), VR_OK);
    cr_assert(r.status == VJ_FAIL && r.u8.illegal == 1, "%s", r.reason);
}

Test(judge_u8, clipped_and_non_finite_truth_is_not_trusted)
{
    scene s = begin(VR_F16, 1e-4, 15);
    for (int i = 0; i < COUNT * 4 / 10; i++)
        for (int k = -1; k < 2; k++)
            put(k < 0 ? &s.truth : &s.ideal[k], i, 1.5 + 1e-4 * k);
    vr_tensor u8 = quantise(&s.truth);
    cr_assert_eq(judge(&s, &u8), VJ_MISTRUSTED);
    cr_assert(strstr(r.reason, "clipped"), "%s", r.reason);
    s.rules.explained_zeros = 0.2;
    cr_assert_eq(judge(&s, &u8), VJ_PASS, "%s", r.reason);
    ((uint8_t *)u8.data)[0] = 254;
    cr_assert_eq(judge(&s, &u8), VJ_FAIL, "beyond white there is no half-integer");
    for (int k = -1; k < 2; k++)
        put(k < 0 ? &s.truth : &s.ideal[k], 3, NAN);
    cr_assert_eq(judge(&s, &u8), VJ_MISTRUSTED, "%s", r.reason);
}

Test(judge_u8, layout_and_range_are_checked)
{
    scene s = begin(VR_F16, 1e-4, 16);
    vr_tensor planar = make_tensor(VR_U8, 1, 3, H, W, -1), u8 = quantise(&s.truth);
    cr_assert_eq(vj_u8(&planar, &s.truth, s.ideal, 2, -1.0, 1.0, &s.rules, NULL, &r, &err), VR_E_SHAPE);
    cr_assert(strstr(err.text, "U8[1,40,40,3] (N,H,W,C)"), "%s", err.text);
    cr_assert_eq(vj_u8(&u8, &s.truth, s.ideal, 2, 1.0, -1.0, &s.rules, NULL, &r, &err), VR_E_RANGE);
    cr_assert_eq(vj_u8(&u8, &s.truth, s.ideal, 0, -1.0, 1.0, &s.rules, NULL, &r, &err), VR_E_RANGE);
}
