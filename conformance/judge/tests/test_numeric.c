/* The numeric judge: order of its rules and every reason not to trust (J1 to J6).
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "judgecase.h"

TestSuite(judge_numeric, .fini = release_tensors);

enum { N = 400 };
static dots d;
static vj_rules rules;
static vj_result r;
static vr_error err;

static vj_status judge(const vr_tensor *got)
{
    cr_assert_eq(vj_numeric(got, &d.truth, d.ideal, SUM_IDEALS, &rules, NULL, &r, &err), VR_OK, "%s", err.text);
    cr_assert(strlen(r.reason) > 10);
    return r.status;
}

static vr_tensor begin(vr_dtype storage)
{
    d = make_dots(288, 20, 20, false, storage, 21);
    rules = rules_of(storage, VR_F32, VJ_LEVEL_OP);
    vr_tensor good = sum_dots(&d, SUM_LANES16, storage);
    cr_assert_eq(judge(&good), VJ_PASS, "%s", r.reason);
    return good;
}

Test(judge_numeric, limits_are_the_specified_ones)
{
    const vj_limits *rows, *f32 = vj_limits_find((vj_contract){VR_F32, VR_F32});
    cr_assert_eq(vj_limits_all(&rows), 5);
    cr_assert(f32->rms[VJ_LEVEL_OP] == 2.0 && f32->max[VJ_LEVEL_OP] == 4.0 && f32->rms[VJ_LEVEL_DECODE] == 3.0);
    const vj_limits *bf16 = vj_limits_find((vj_contract){VR_BF16, VR_F32});
    cr_assert(bf16->rms[VJ_LEVEL_OP] == 1.25 && bf16->max[VJ_LEVEL_OP] == 2.0 && bf16->u8_lsb == 2 && bf16->ulp == 1.0);
    const vj_limits *embedded = vj_limits_find((vj_contract){VR_F16, VR_F16});
    cr_assert(embedded->rms[VJ_LEVEL_BLOCK] == 3.0 && embedded->rms[VJ_LEVEL_DECODE] == 4.0);
    cr_assert_null(vj_limits_find((vj_contract){VR_BF16, VR_BF16}));
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < VJ_LEVEL_COUNT; k++)
            cr_assert(rows[i].max[k] > rows[i].rms[k], "the largest of many errors is given more room");
}

Test(judge_numeric, numbers_follow_their_definitions)
{
    vr_tensor truth = make_tensor(VR_F64, 16, 16, -1), ideal[2] = {make_tensor(VR_F32, 16, 16, -1),
                                                                  make_tensor(VR_F32, 16, 16, -1)};
    vr_tensor got = make_tensor(VR_F32, 16, 16, -1);
    for (int i = 0; i < 256; i++) {
        put(&truth, i, 1.0);
        put(&ideal[0], i, 1.0 + 0x1p-22);
        put(&ideal[1], i, 1.0 - 0x1p-21);
        put(&got, i, 1.0 + (i == 37 ? 0x1p-20 : 0x1p-21));
    }
    const vj_rules f32 = rules_of(VR_F32, VR_F32, VJ_LEVEL_OP);
    cr_assert_eq(vj_numeric(&got, &truth, ideal, 2, &f32, NULL, &r, NULL), VR_OK);
    cr_assert_eq(r.status, VJ_PASS, "%s", r.reason);
    cr_assert(r.numeric.truth_rms == 1.0 && r.numeric.floor == 0x1p-27 && r.numeric.zero_share == 0.0);
    cr_assert(r.numeric.noise_rms == 0x1p-21 && r.numeric.noise_max == 0x1p-21 && r.numeric.ideal_spread == 2.0);
    cr_assert(fabs(r.numeric.error_rms - 0x1p-21 * sqrt(259.0 / 256.0)) < 1e-15 && r.numeric.error_max == 0x1p-20);
    cr_assert(r.numeric.ratio_max == 2.0 && r.elements == 256 && isnan(r.numeric.cap_ratio) && isnan(r.ulp.max));
    cr_assert_eq(r.worst_count, 5);
    cr_assert(r.worst[0].index == 37 && r.worst[0].ratio == 2.0 && r.worst[0].truth == 1.0 &&
              r.worst[0].ideal == 1.0 + 0x1p-22 && r.worst[0].got == 1.0 + 0x1p-20 && r.worst[1].ratio == 1.0);
}

Test(judge_numeric, one_wrong_element_fails_by_the_largest_error)
{
    vr_tensor got = begin(VR_F16);
    put(&got, 123, get(&got, 123) + 10.0 * r.numeric.noise_max);
    cr_assert_eq(judge(&got), VJ_FAIL);
    cr_assert(r.numeric.ratio_max > 2.0 && r.worst[0].index == 123);
    cr_assert(strstr(r.reason, "[6,3]") && strstr(r.reason, "limit 2"), "%s", r.reason);
}

Test(judge_numeric, a_small_error_everywhere_fails_by_rms)
{
    vr_tensor got = begin(VR_F16);
    vr_tensor wide = copy_as(VR_F32, &got);
    for (int i = 0; i < N; i++)
        put(&wide, i, get(&wide, i) + (i % 2 ? 1.0 : -1.0) * 1.2 * r.numeric.noise_rms);
    cr_assert_eq(judge(&wide), VJ_FAIL);
    cr_assert(r.numeric.ratio_rms > 1.25 && r.numeric.ratio_max < 2.0, "%s", r.reason);
    cr_assert(strstr(r.reason, "limit 1.25"), "%s", r.reason);
    rules.level = VJ_LEVEL_BLOCK; /* rms limit 2 */
    cr_assert_eq(judge(&wide), VJ_PASS, "%s", r.reason);
}

Test(judge_numeric, outputs_of_any_float_type_are_read)
{
    vr_tensor got = begin(VR_F16), wide = copy_as(VR_F64, &got), bf16 = copy_as(VR_BF16, &got);
    cr_assert_eq(judge(&wide), VJ_PASS);
    cr_assert_eq(judge(&bf16), VJ_FAIL, "bf16 is too coarse for f16");
}

Test(judge_numeric, zero_output_and_scaled_output_fail)
{
    vr_tensor got = begin(VR_BF16), none = make_tensor(VR_BF16, 20, 20, -1);
    cr_assert_eq(judge(&none), VJ_FAIL);
    for (int i = 0; i < N; i++)
        put(&got, i, get(&got, i) * 1.01);
    cr_assert_eq(judge(&got), VJ_FAIL, "%s", r.reason);
}

Test(judge_numeric, non_finite_values_come_first)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        vr_tensor got = begin(VR_F16);
        put(&got, 41, bad[i]);
        put(&got, 60, NAN);
        cr_assert_eq(judge(&got), VJ_FAIL);
        cr_assert(strstr(r.reason, "2 elements") && strstr(r.reason, "[2,1]"), "%s", r.reason);
        cr_assert(r.wrong == 2 && r.first_wrong == 41 && isinf(r.worst[0].ratio) && r.worst[0].index == 41);
        cr_assert(isfinite(r.numeric.error_rms), "the rest is measured");
        release_tensors();
    }
}

Test(judge_numeric, non_finite_truth_is_matched_in_kind)
{
    vr_tensor got = begin(VR_F16);
    const double want[3] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        put(&d.truth, i, want[i]);
        for (int k = 0; k < SUM_IDEALS; k++)
            put(&d.ideal[k], i, want[i]);
        put(&got, i, want[i]);
    }
    cr_assert_eq(judge(&got), VJ_PASS, "%s", r.reason);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            const double given[4] = {NAN, INFINITY, -INFINITY, 1.0};
            put(&got, i, given[k]);
            cr_expect_eq(judge(&got), i == k ? VJ_PASS : VJ_FAIL, "truth %g, got %g: %s", want[i], given[k], r.reason);
            put(&got, i, want[i]);
        }
}

Test(judge_numeric, caps_fail_one_element_that_the_noise_would_hide)
{
    vr_tensor got = begin(VR_F16), cap;
    cr_assert_eq(vj_cap_dot(288, &d.magnitude, &d.truth, &rules, &cap, NULL), VR_OK);
    int64_t small = 0; /* the truth nearest to zero has the smallest cap */
    for (int i = 0; i < N; i++)
        small = fabs(get(&d.truth, i)) < fabs(get(&d.truth, small)) ? i : small;
    put(&got, small, get(&d.truth, small) + 0.9 * r.numeric.noise_max);
    cr_assert_eq(judge(&got), VJ_PASS, "%s", r.reason);
    cr_assert_eq(vj_numeric(&got, &d.truth, d.ideal, SUM_IDEALS, &rules, &cap, &r, NULL), VR_OK);
    cr_assert(r.status == VJ_FAIL && r.wrong == 1 && r.first_wrong == small && strstr(r.reason, "cap"), "%s", r.reason);
    cr_assert(r.numeric.cap_ratio > 1.0);
    for (int over = 0; over < 2; over++) {
        vr_tensor wide = copy_as(VR_F64, &d.ideal[0]);
        put(&wide, small, get(&d.truth, small) + (over ? 1.001 : 0.999) * get(&cap, small));
        cr_assert_eq(vj_numeric(&wide, &d.truth, d.ideal, SUM_IDEALS, &rules, &cap, &r, NULL), VR_OK);
        cr_assert_eq(r.status, over ? VJ_FAIL : VJ_PASS, "%s", r.reason);
    }
    put(&cap, small, -1.0);
    cr_assert_eq(vj_numeric(&got, &d.truth, d.ideal, SUM_IDEALS, &rules, &cap, &r, &err), VR_E_RANGE);
    vr_tensor_free(&cap);
}

Test(judge_numeric, caps_that_an_ideal_breaks_are_not_trusted)
{
    vr_tensor got = begin(VR_F16), cap = make_tensor(VR_F64, 20, 20, -1);
    for (int i = 0; i < N; i++)
        put(&cap, i, 1e-9);
    cr_assert_eq(vj_numeric(&got, &d.truth, d.ideal, SUM_IDEALS, &rules, &cap, &r, NULL), VR_OK);
    cr_assert(r.status == VJ_MISTRUSTED && strstr(r.reason, "caps are wrong"), "%s", r.reason);
}

Test(judge_numeric, flushed_subnormals_are_forgiven_where_the_contract_says_so)
{
    vr_tensor got = begin(VR_F16);
    for (int i = 0; i < N; i++) { /* f16 subnormals */
        const double x = get(&d.truth, i) * 1e-6;
        put(&d.truth, i, x);
        for (int k = 0; k < SUM_IDEALS; k++)
            put(&d.ideal[k], i, x);
        put(&got, i, i % 2 ? x : 0.0);
    }
    cr_assert_eq(judge(&got), VJ_FAIL);
    rules.flush_subnormals = true;
    cr_assert_eq(judge(&got), VJ_PASS, "%s", r.reason);
}

/* ---- mistrusted ---------------------------------------------------------- */

Test(judge_numeric, few_elements_are_not_trusted)
{
    dots few = make_dots(288, 15, 17, false, VR_F32, 2), many = make_dots(288, 16, 16, false, VR_F32, 2);
    const vj_rules f32 = rules_of(VR_F32, VR_F32, VJ_LEVEL_OP);
    vr_tensor got = sum_dots(&few, SUM_LANES16, VR_F32), more = sum_dots(&many, SUM_LANES16, VR_F32);
    cr_assert_eq(vj_numeric(&got, &few.truth, few.ideal, SUM_IDEALS, &f32, NULL, &r, NULL), VR_OK);
    cr_assert(r.status == VJ_MISTRUSTED && strstr(r.reason, "255"), "%s", r.reason);
    put(&got, 3, NAN);
    cr_assert_eq(vj_numeric(&got, &few.truth, few.ideal, SUM_IDEALS, &f32, NULL, &r, NULL), VR_OK);
    cr_assert_eq(r.status, VJ_FAIL, "NaN is wrong in any company");
    cr_assert_eq(vj_numeric(&more, &many.truth, many.ideal, SUM_IDEALS, &f32, NULL, &r, NULL), VR_OK);
    cr_assert_eq(r.status, VJ_PASS, "256 are enough");
}

Test(judge_numeric, unexplained_zeros_are_not_trusted)
{
    vr_tensor got = begin(VR_F16);
    for (int i = 0; i < 121; i++) { /* 30.25 % */
        put(&d.truth, i, 0.0);
        for (int k = 0; k < SUM_IDEALS; k++)
            put(&d.ideal[k], i, 0.0);
        put(&got, i, 0.0);
    }
    cr_assert_eq(judge(&got), VJ_MISTRUSTED);
    cr_assert(strstr(r.reason, "zero"), "%s", r.reason);
    rules.explained_zeros = 0.5; /* behind a ReLU */
    cr_assert_eq(judge(&got), VJ_PASS, "%s", r.reason);
}

Test(judge_numeric, a_truth_far_below_its_scale_is_not_trusted)
{
    vr_tensor got = begin(VR_F16);
    rules.expected_rms = 990.0 * r.numeric.truth_rms;
    cr_assert_eq(judge(&got), VJ_PASS);
    rules.expected_rms = 1010.0 * r.numeric.truth_rms;
    cr_assert_eq(judge(&got), VJ_MISTRUSTED);
    cr_assert(strstr(r.reason, "thousandth"), "%s", r.reason);
}

Test(judge_numeric, ideals_without_noise_are_not_trusted)
{
    vr_tensor got = begin(VR_F32);
    for (int k = 0; k < SUM_IDEALS; k++)
        d.ideal[k] = d.truth;
    cr_assert_eq(judge(&got), VJ_MISTRUSTED);
    cr_assert(strstr(r.reason, "exactly"), "%s", r.reason);
}

Test(judge_numeric, ideals_that_disagree_are_not_trusted)
{
    vr_tensor got = begin(VR_F32);
    const double spread = r.numeric.ideal_spread;
    cr_assert(spread > 1.5 && spread < 10.0, "%.2f", spread);
    for (int i = 0; i < N; i++)
        put(&d.ideal[2], i, get(&d.truth, i) * (1.0 + 3e-5));
    cr_assert_eq(judge(&got), VJ_MISTRUSTED);
    cr_assert(strstr(r.reason, "ill-conditioned"), "%s", r.reason);
    d.ideal[2] = d.truth; /* an exact one does not count */
    cr_assert_eq(judge(&got), VJ_PASS, "%s", r.reason);
}

Test(judge_numeric, a_case_that_leaves_the_storage_type_is_not_trusted)
{
    vr_tensor got = begin(VR_F16);
    put(&d.truth, 7, 70000.0);
    for (int k = 0; k < SUM_IDEALS; k++)
        put(&d.ideal[k], 7, INFINITY);
    put(&got, 7, INFINITY);
    cr_assert_eq(judge(&got), VJ_MISTRUSTED);
    cr_assert(strstr(r.reason, "leaves the storage type"), "%s", r.reason);
}

/* ---- use ----------------------------------------------------------------- */

Test(judge_numeric, wrong_use_is_refused_with_what_would_be_right)
{
    vr_tensor got = begin(VR_F16), flat = make_tensor(VR_F16, 400, -1), ints = make_tensor(VR_I32, 20, 20, -1);
    vr_tensor f32 = copy_as(VR_F32, &d.truth), none = make_tensor(VR_F64, 0, 3, -1);
    vj_rules bad = rules;
    cr_assert_eq(vj_numeric(&flat, &d.truth, d.ideal, 1, &rules, NULL, &r, &err), VR_E_SHAPE);
    cr_assert(strstr(err.text, "F16[400]") && strstr(err.text, "F64[20,20]"), "%s", err.text);
    cr_assert_eq(vj_numeric(&ints, &d.truth, d.ideal, 1, &rules, NULL, &r, &err), VR_E_DTYPE);
    cr_assert_eq(vj_numeric(&got, &f32, d.ideal, 1, &rules, NULL, &r, &err), VR_E_DTYPE);
    cr_assert(strstr(err.text, "truth is F32; want F64"), "%s", err.text);
    cr_assert_eq(vj_numeric(&got, &d.truth, d.ideal, 0, &rules, NULL, &r, &err), VR_E_RANGE);
    cr_assert_eq(vj_numeric(&got, &d.truth, d.ideal, VJ_MAX_IDEALS + 1, &rules, NULL, &r, &err), VR_E_RANGE);
    cr_assert_eq(vj_numeric(&got, &d.truth, &flat, 1, &rules, NULL, &r, &err), VR_E_SHAPE);
    cr_assert_eq(vj_numeric(&got, &d.truth, d.ideal, 1, &rules, &f32, &r, &err), VR_E_DTYPE);
    cr_assert_eq(vj_numeric(&none, &none, &none, 1, &rules, NULL, &r, &err), VR_E_SHAPE);
    bad.limits = NULL;
    cr_assert_eq(vj_numeric(&got, &d.truth, d.ideal, 1, &bad, NULL, &r, &err), VR_E_ARGUMENT);
    bad = rules;
    bad.explained_zeros = 1.5;
    cr_assert_eq(vj_numeric(&got, &d.truth, d.ideal, 1, &bad, NULL, &r, &err), VR_E_RANGE);
    bad = rules;
    bad.level = VJ_LEVEL_COUNT;
    cr_assert_eq(vj_numeric(&got, &d.truth, d.ideal, 1, &bad, NULL, &r, &err), VR_E_ARGUMENT);
}
