/* Bytes and integers (J7). SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "judgecase.h"

TestSuite(judge_exact, .fini = release_tensors);

static vj_result r;
static vr_error err;

Test(judge_exact, every_type_is_compared_by_its_bytes)
{
    static const vr_dtype types[] = {VR_F64, VR_F32, VR_F16, VR_BF16, VR_U8, VR_I32, VR_F8_E4M3};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        vr_tensor a = make_tensor(types[i], 3, 5, -1), b = make_tensor(types[i], 3, 5, -1);
        cr_assert_eq(vj_exact(&a, &b, &r, NULL), VR_OK);
        cr_assert(r.status == VJ_PASS && r.elements == 15 && r.wrong == 0 && r.first_wrong == -1);
        ((uint8_t *)a.data)[15 * vr_dtype_size(types[i]) - 1] ^= 1;
        ((uint8_t *)a.data)[7 * vr_dtype_size(types[i])] ^= 1;
        cr_assert_eq(vj_exact(&a, &b, &r, NULL), VR_OK);
        cr_assert(r.status == VJ_FAIL && r.wrong == 2 && r.first_wrong == 7 && r.wrong_above == 0.0);
        cr_assert(strstr(r.reason, "2 of 15") && strstr(r.reason, "[1,2]"), "%s: %s", vr_dtype_name(types[i]),
                  r.reason);
    }
}

Test(judge_exact, values_are_shown_with_their_bytes)
{
    vr_tensor a = make_tensor(VR_F32, 2, -1), b = make_tensor(VR_F32, 2, -1);
    put(&a, 1, -0.0);
    cr_assert_eq(vj_exact(&a, &b, &r, NULL), VR_OK);
    cr_assert(r.status == VJ_FAIL && strstr(r.reason, "0x80000000 (-0)") && strstr(r.reason, "0x00000000 (0)"), "%s",
              r.reason);
    cr_assert(isinf(r.worst[0].ratio));
}

Test(judge_exact, one_shape_and_type)
{
    vr_tensor a = make_tensor(VR_F32, 2, -1), b = make_tensor(VR_F16, 2, -1), c = make_tensor(VR_F32, 2, 1, -1);
    cr_assert_eq(vj_exact(&a, &b, &r, &err), VR_E_DTYPE);
    cr_assert(strstr(err.text, "F32; want F16"), "%s", err.text);
    cr_assert_eq(vj_exact(&a, &c, &r, &err), VR_E_SHAPE);
}

/* ---- integers ------------------------------------------------------------ */

static vr_tensor got, truth, magnitude;
static vj_rules rules;

static vj_status judge(void)
{
    cr_assert_eq(vj_integer_exact(&got, &truth, &magnitude, &rules, &r, &err), VR_OK, "%s", err.text);
    return r.status;
}

/* Sums of eight products of integers -3..3 as bf16 stores them and f32 adds them. */
static void begin(vr_dtype storage, uint64_t seed)
{
    got = make_tensor(storage, 2, 32, -1);
    truth = make_tensor(VR_F64, 2, 32, -1);
    magnitude = make_tensor(VR_F64, 2, 32, -1);
    rules = rules_of(storage, VR_F32, VJ_LEVEL_OP);
    for (int i = 0; i < 64; i++) {
        double sum = 0.0, size = 0.0;
        for (int k = 0; k < 8; k++) {
            const double a = (double)(vr_random_u32(seed, 1, (uint64_t)(i * 8 + k)) % 7) - 3.0;
            const double b = (double)(vr_random_u32(seed, 2, (uint64_t)(i * 8 + k)) % 7) - 3.0;
            sum += a * b;
            size += fabs(a * b);
        }
        put(&truth, i, sum);
        put(&got, i, sum);
        put(&magnitude, i, size);
    }
}

Test(judge_exact, integers_pass_when_equal_and_fail_by_one)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        begin(VR_BF16, seed);
        cr_assert_eq(judge(), VJ_PASS, "seed %d: %s", (int)seed, r.reason);
        put(&got, 33, get(&truth, 33) + 1.0);
        cr_assert_eq(judge(), VJ_FAIL);
        cr_assert(r.wrong == 1 && r.first_wrong == 33 && strstr(r.reason, "[1,1]"), "%s", r.reason);
        release_tensors();
    }
}

Test(judge_exact, zeros_have_no_sign_and_nan_is_no_integer)
{
    begin(VR_F16, 1);
    put(&truth, 2, -0.0);
    put(&got, 2, 0.0);
    cr_assert_eq(judge(), VJ_PASS, "%s", r.reason);
    put(&got, 2, NAN);
    cr_assert_eq(judge(), VJ_FAIL);
    cr_assert(isinf(r.worst[0].ratio));
}

Test(judge_exact, integers_that_some_order_would_round_are_not_trusted)
{
    begin(VR_F16, 1);
    put(&magnitude, 5, 16777217.0);
    cr_assert_eq(judge(), VJ_MISTRUSTED);
    cr_assert(strstr(r.reason, "16777216"), "%s", r.reason);
    begin(VR_F16, 1);
    put(&truth, 5, 2049.0);
    cr_assert_eq(judge(), VJ_MISTRUSTED);
    cr_assert(strstr(r.reason, "F16 cannot hold"), "%s", r.reason);
    begin(VR_F16, 1);
    put(&truth, 5, 1.5);
    cr_assert_eq(judge(), VJ_MISTRUSTED);
    begin(VR_F16, 1);
    put(&truth, 5, INFINITY);
    cr_assert_eq(judge(), VJ_MISTRUSTED);
    begin(VR_F16, 1);
    for (int i = 0; i < 21; i++) {
        put(&truth, i, 0.0);
        put(&got, i, 0.0);
    }
    cr_assert_eq(judge(), VJ_MISTRUSTED, "a third is zero");
}

Test(judge_exact, integer_outputs_may_have_an_integer_type)
{
    begin(VR_F32, 4);
    got = copy_as(VR_F32, &truth);
    vr_tensor ints = make_tensor(VR_I32, 2, 32, -1);
    for (int i = 0; i < 64; i++)
        ((int32_t *)ints.data)[i] = (int32_t)get(&truth, i);
    got = ints;
    cr_assert_eq(judge(), VJ_PASS, "%s", r.reason);
    cr_assert_eq(vj_integer_exact(&got, &truth, NULL, &rules, &r, NULL), VR_OK);
    cr_assert_eq(r.status, VJ_PASS);
    cr_assert_eq(vj_integer_exact(&got, &ints, NULL, &rules, &r, &err), VR_E_DTYPE);
}
