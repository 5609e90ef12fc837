/* Caps: the formula, and the sizes of a convolution's terms (J5).
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "judgecase.h"

TestSuite(judge_caps, .fini = release_tensors);

Test(judge_caps, dot_follows_the_formula)
{
    vr_tensor truth = make_tensor(VR_F64, 3, -1), magnitude = make_tensor(VR_F64, 3, -1), cap;
    put(&truth, 0, -2.0);
    put(&magnitude, 0, 10.0);
    put(&truth, 1, INFINITY);
    vj_rules rules = rules_of(VR_F16, VR_F32, VJ_LEVEL_OP);
    cr_assert_eq(vj_cap_dot(25, &magnitude, &truth, &rules, &cap, NULL), VR_OK);
    cr_assert(fabs(get(&cap, 0) - (4.0 * 5.0 * 0x1p-24 * 10.0 + 1.01 * 0x1p-11 * 2.0 + 0x1p-24)) < 1e-18);
    cr_assert(get(&cap, 1) == 0.0 && get(&cap, 2) == 0x1p-24);
    vr_tensor_free(&cap);
    rules.flush_subnormals = true;
    cr_assert_eq(vj_cap_dot(25, &magnitude, &truth, &rules, &cap, NULL), VR_OK);
    cr_assert_eq(get(&cap, 2), 0x1p-14, "a subnormal may become zero");
    vr_tensor_free(&cap);
    cr_assert_eq(vj_cap_dot(0, &magnitude, &truth, &rules, &cap, NULL), VR_E_RANGE);
}

Test(judge_caps, magnitude_of_a_convolution_by_hand)
{
    vr_tensor x = make_tensor(VR_F16, 1, 2, 2, 3, -1), w = make_tensor(VR_F32, 1, 2, 1, 2, -1);
    vr_tensor bias = make_tensor(VR_F32, 1, -1), out;
    for (int i = 0; i < 12; i++)
        put(&x, i, i % 2 ? -i : i);
    put(&w, 0, -1.0);
    put(&w, 1, 2.0);
    put(&w, 2, 3.0);
    put(&w, 3, -4.0);
    put(&bias, 0, -0.5);
    cr_assert_eq(vj_conv2d_magnitude(&x, &w, &bias, (const int64_t[4]){0, 0, 0, 1}, &out, NULL), VR_OK);
    cr_assert(out.dtype == VR_F64 && out.dim[2] == 2 && out.dim[3] == 3);
    cr_assert_eq(get(&out, 0), 0.5 + 0.0 + 2.0 + 18.0 + 28.0);
    cr_assert_eq(get(&out, 5), 0.5 + 5.0 + 33.0, "beyond the right border are zeros");
    vr_tensor_free(&out);
    cr_assert_eq(vj_conv2d_magnitude(&x, &w, NULL, (const int64_t[4]){0, 0, 0, 1}, &out, NULL), VR_OK);
    cr_assert_eq(get(&out, 0), 48.0);
    vr_tensor_free(&out);
    vr_error err;
    cr_assert_eq(vj_conv2d_magnitude(&bias, &w, NULL, (const int64_t[4]){0}, &out, &err), VR_E_SHAPE);
    cr_assert_eq(vj_conv2d_magnitude(&x, &bias, NULL, (const int64_t[4]){0}, &out, &err), VR_E_SHAPE, "%s", err.text);
}

/* A convolution as a program, from op to verdict. */
static vr_tensor convolve(const vr_tensor *x, const vr_tensor *w, vr_policy policy, vr_order order)
{
    vr_tensor out;
    vr_error err = {0};
    vr_program *p = vr_program_new("test", x->dim[1]);
    const int32_t weight = vr_program_weight(p, "w", NULL, w->dtype, 4, w->dim, w->data);
    const int32_t y = vr_program_conv2d(p, "y", 0, weight, -1, 1);
    const vr_exec_options opt = {.policy = policy, .order = order, .threads = 1};
    cr_assert_eq(vr_program_finish(p, y, -1.0, 1.0, &err), VR_OK, "%s", err.text);
    cr_assert_eq(vr_exec_run(p, x, &opt, &out, NULL, &err), VR_OK, "%s", err.text);
    vr_program_free(p);
    return keep(out);
}

Test(judge_caps, a_convolution_is_judged_with_its_caps)
{
    vr_tensor x = make_tensor(VR_F16, 1, 32, 12, 12, -1), w = make_tensor(VR_F16, 8, 32, 3, 3, -1), cap, size;
    for (int i = 0; i < 32 * 144; i++)
        put(&x, i, (double)vr_random_normal(1, 1, (uint64_t)i));
    for (int i = 0; i < 8 * 32 * 9; i++)
        put(&w, i, (double)vr_random_normal(1, 2, (uint64_t)i));
    const vr_tensor truth = convolve(&x, &w, VR_POLICY_TRUTH, VR_ORDER_SEQ);
    vr_tensor ideal[4];
    for (int k = 0; k < 4; k++)
        ideal[k] = convolve(&x, &w, VR_POLICY_F16, (vr_order)k);
    vr_tensor got = convolve(&x, &w, VR_POLICY_F16, VR_ORDER_KBLOCK64);
    const vj_rules rules = rules_of(VR_F16, VR_F32, VJ_LEVEL_OP);
    vj_result r;
    cr_assert_eq(vj_conv2d_magnitude(&x, &w, NULL, (const int64_t[4]){1, 1, 1, 1}, &size, NULL), VR_OK);
    cr_assert_eq(vj_cap_dot(288, &size, &truth, &rules, &cap, NULL), VR_OK);
    cr_assert_eq(vj_numeric(&got, &truth, ideal, 4, &rules, &cap, &r, NULL), VR_OK);
    cr_assert(r.status == VJ_PASS && r.numeric.cap_ratio < 1.0, "%s", r.reason);
    put(&w, 17, 0.0); /* one tap of one kernel lost */
    got = convolve(&x, &w, VR_POLICY_F16, VR_ORDER_SEQ);
    cr_assert_eq(vj_numeric(&got, &truth, ideal, 4, &rules, &cap, &r, NULL), VR_OK);
    cr_assert(r.status == VJ_FAIL && r.numeric.cap_ratio > 1.0, "%s", r.reason);
    vj_fingerprint f;
    cr_assert_eq(vj_fingerprint_make(&got, &truth, &cap, 0.0, NULL, &f, NULL), VR_OK);
    cr_assert(strstr(f.text, "channel 0"), "%s", f.text);
    vr_tensor_free(&size);
    vr_tensor_free(&cap);
}
