/* Units in the last place (J8). SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "judgecase.h"

TestSuite(judge_ulp, .fini = release_tensors);

static vj_result r;
static vr_error err;

/* The verdict on one value; the rest of the tensor is right. */
static double ulp_of(vr_dtype storage, double truth, double got)
{
    vr_tensor g = make_tensor(VR_F64, 4, -1), t = make_tensor(VR_F64, 4, -1);
    for (int i = 0; i < 4; i++) {
        put(&t, i, i == 2 ? truth : 1.0);
        put(&g, i, i == 2 ? got : 1.0);
    }
    const vj_rules rules = rules_of(storage, storage == VR_F64 ? VR_F64 : VR_F32, VJ_LEVEL_OP);
    cr_assert_eq(vj_ulp(&g, &t, &rules, &r, &err), VR_OK, "%s", err.text);
    cr_assert_eq(r.status == VJ_FAIL, r.ulp.max > r.ulp.limit, "%s", r.reason);
    cr_assert_eq(r.first_wrong, r.status == VJ_FAIL ? 2 : -1);
    return r.ulp.max;
}

Test(judge_ulp, is_the_spacing_at_the_truth)
{
    cr_assert_eq(ulp_of(VR_F32, 1.0, 1.0 + 0x1p-23), 1.0);
    cr_assert_eq(ulp_of(VR_F32, 1.5, 1.5 - 3 * 0x1p-23), 3.0);
    cr_assert_eq(ulp_of(VR_F32, 2.0, 2.0 + 0x1p-22), 1.0);
    cr_assert_eq(ulp_of(VR_F16, 1000.0, 1000.5), 1.0);
    cr_assert_eq(ulp_of(VR_BF16, -1.0, -1.0 - 0x1p-7), 1.0);
    cr_assert_eq(ulp_of(VR_F64, 1.0, 1.0 + 0x1p-52), 1.0);
    cr_assert_eq(ulp_of(VR_F32, 1.0 + 0x1p-24, 1.0), 0.5, "the truth is not rounded first");
    cr_assert_eq(ulp_of(VR_F32, 1.0, 1.0 + 5 * 0x1p-23), 5.0);
    cr_assert(r.status == VJ_FAIL && strstr(r.reason, "limit 4") && strstr(r.reason, "[2]"), "%s", r.reason);
}

Test(judge_ulp, near_zero_the_smallest_normal_is_allowed_and_no_more)
{
    static const struct {
        vr_dtype t;
        double normal;
    } type[] = {{VR_F32, 0x1p-126}, {VR_F16, 0x1p-14}, {VR_BF16, 0x1p-126}};
    for (int i = 0; i < 3; i++) {
        const double m = type[i].normal;
        cr_assert_eq(ulp_of(type[i].t, 0.0, -0.0), 0.0);
        cr_assert_eq(ulp_of(type[i].t, -0.0, 0.0), 0.0);
        cr_assert_eq(ulp_of(type[i].t, 0.0, m), 0.0);
        cr_assert_gt(ulp_of(type[i].t, 0.0, 1.01 * m), 100.0);
        cr_assert_eq(ulp_of(type[i].t, 0.75 * m, 0.0), 0.0, "flushed");
        cr_assert_eq(ulp_of(type[i].t, 0.3 * m, -0.7 * m), 0.0);
        cr_assert_gt(ulp_of(type[i].t, 8.0 * m, 7.2 * m), 8.0, "normal values are held to their ulp");
        cr_assert_gt(ulp_of(type[i].t, 2.0 * m, 0.0), 100.0);
    }
}

Test(judge_ulp, non_finite_values_and_overflow)
{
    cr_assert(isinf(ulp_of(VR_F32, 1.0, NAN)) && isinf(ulp_of(VR_F32, 1.0, INFINITY)));
    cr_assert(isinf(ulp_of(VR_F32, INFINITY, -INFINITY)) && isinf(ulp_of(VR_F32, NAN, 1.0)));
    cr_assert(ulp_of(VR_F32, NAN, NAN) == 0.0 && ulp_of(VR_F32, -INFINITY, -INFINITY) == 0.0);
    cr_assert_eq(ulp_of(VR_F16, 65520.0, INFINITY), 0.0, "rounds to infinity");
    cr_assert(isinf(ulp_of(VR_F16, 65500.0, INFINITY)), "too early");
    cr_assert(isinf(ulp_of(VR_F16, 65520.0, -INFINITY)));
    cr_assert_eq(ulp_of(VR_F16, 65520.0, 65504.0), 0.5);
}

/* silu through f32, stored; `bad` cuts the exponent's argument to bf16. */
static vj_status silu(vr_dtype storage, uint64_t seed, bool bad)
{
    vr_tensor g = make_tensor(storage, 512, -1), t = make_tensor(VR_F64, 512, -1);
    for (int i = 0; i < 512; i++) {
        const float x = vr_round_to(storage, 4.0f * vr_random_normal(seed, 1, (uint64_t)i));
        put(&t, i, (double)x / (1.0 + exp(-(double)x)));
        put(&g, i, (double)(x / (1.0f + expf(bad ? -vr_round_to(VR_BF16, 1.01f * x) : -x))));
    }
    const vj_rules rules = rules_of(storage, VR_F32, VJ_LEVEL_OP);
    cr_assert_eq(vj_ulp(&g, &t, &rules, &r, NULL), VR_OK);
    return r.status;
}

Test(judge_ulp, honest_silu_passes_under_200_seeds_and_a_coarse_one_fails)
{
    static const vr_dtype storage[] = {VR_F32, VR_F16, VR_BF16};
    for (int s = 0; s < 3; s++)
        for (uint64_t seed = 0; seed < 200; seed++) {
            cr_assert_eq(silu(storage[s], seed, false), VJ_PASS, "%s seed %d: %s", vr_dtype_name(storage[s]), (int)seed,
                         r.reason);
            cr_assert(r.ulp.mean > 0.0 && r.ulp.mean < 1.0);
            cr_assert_eq(silu(storage[s], seed, true), VJ_FAIL, "%s", r.reason);
            release_tensors();
        }
}

Test(judge_ulp, zeros_are_counted_and_use_is_checked)
{
    vr_tensor g = make_tensor(VR_F16, 10, -1), t = make_tensor(VR_F64, 10, -1);
    vj_rules rules = rules_of(VR_F16, VR_F32, VJ_LEVEL_OP);
    cr_assert_eq(vj_ulp(&g, &t, &rules, &r, NULL), VR_OK);
    cr_assert_eq(r.status, VJ_MISTRUSTED);
    rules.explained_zeros = 0.7;
    cr_assert_eq(vj_ulp(&g, &t, &rules, &r, NULL), VR_OK);
    cr_assert_eq(r.status, VJ_PASS);
    cr_assert_eq(vj_ulp(&g, &g, &rules, &r, &err), VR_E_DTYPE);
}

Test(judge_ulp, its_cap_marks_the_same_elements)
{
    vr_tensor g = make_tensor(VR_F64, 6, -1), t = make_tensor(VR_F64, 6, -1), cap;
    const double truth[6] = {1.0, 1024.0, 0x1p-130, 0.0, INFINITY, 1.0},
                 got[6] = {1.0 + 0x1p-20, 1024.0 + 0x1p-12, 0, 0, INFINITY, 1};
    for (int i = 0; i < 6; i++) {
        put(&t, i, truth[i]);
        put(&g, i, got[i]);
    }
    const vj_rules rules = rules_of(VR_F32, VR_F32, VJ_LEVEL_OP);
    vj_fingerprint f;
    cr_assert_eq(vj_ulp(&g, &t, &rules, &r, NULL), VR_OK);
    cr_assert_eq(vj_cap_ulp(&t, &rules, &cap, NULL), VR_OK);
    cr_assert_eq(vj_fingerprint_make(&g, &t, &cap, 0.0, NULL, &f, NULL), VR_OK);
    cr_assert(r.wrong == 1 && f.wrong == 1 && f.first_flat == 0 && r.first_wrong == 0);
    vr_tensor_free(&cap);
}
