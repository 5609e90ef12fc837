/* Every operation kind against PyTorch in float64 (ops.safetensors), under
 * every policy and order: clauses N1, N4, N6.
 *
 * golden: the float64 result rounded once. truth: float64's own noise. The
 * others: what honest arithmetic of that precision loses, from each case's
 * number of terms and magnitude (make_ops.py says how they are formed). A case
 * whose tolerance is a quarter of its output or more says nothing about that
 * precision; it is left out and counted.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>

#include "ops_case.h"
#include "vaeref/exec.h"

static double half_ulp_f32(double v)
{
    float a = fabsf((float)v);
    return 0.5 * ((double)nextafterf(a, INFINITY) - (double)a);
}

/* Runs the case; dies with its name when it cannot or the shape is wrong. */
static void run(const oracle_case *c, vr_policy policy, vr_order order, vr_tensor *out)
{
    vr_error err;
    const vr_exec_options opt = {.policy = policy, .order = order, .threads = 1};
    vr_status s = vr_exec_run(c->program, &c->x, &opt, out, NULL, &err);
    cr_assert_eq(s, VR_OK, "%s %s: %s", c->name, vr_policy_name(policy), s == VR_OK ? "" : err.text);
    for (int32_t i = 0; i < 4; i++)
        cr_assert_eq(out->dim[i], c->y.dim[i], "%s: axis %d has %lld, expected %lld", c->name, i,
                     (long long)out->dim[i], (long long)c->y.dim[i]);
}

/* What a sum of c->terms roundings of size `unit` is off by. */
static double sum_noise(const oracle_case *c, double unit, double magnitude)
{
    return sqrt(c->terms) * unit * magnitude;
}

typedef void case_check(const oracle_case *c);

static void for_every_case(case_check *check)
{
    oracle_fixture o;
    vr_error err;
    cr_assert_eq(oracle_open("ops.safetensors", "ops_cases.json", &o, &err), VR_OK, "%s", err.text);
    for (size_t i = 0; i < o.count; i++) {
        oracle_case c;
        cr_assert_eq(oracle_case_make(&o, i, &c, &err), VR_OK, "row %zu: %s", i, err.text);
        check(&c);
        oracle_case_free(&c);
    }
    oracle_close(&o);
}

Test(oracle_ops, fixture_covers_every_operation_kind)
{
    oracle_fixture o;
    vr_error err;
    int seen[VR_OP_KIND_COUNT] = {0};
    cr_assert_eq(oracle_open("ops.safetensors", "ops_cases.json", &o, &err), VR_OK, "%s", err.text);
    for (size_t i = 0; i < o.count; i++) {
        oracle_case c;
        cr_assert_eq(oracle_case_make(&o, i, &c, &err), VR_OK, "row %zu: %s", i, err.text);
        seen[c.kind]++;
        oracle_case_free(&c);
    }
    for (int k = VR_OP_INPUT + 1; k < VR_OP_KIND_COUNT; k++)
        cr_assert(seen[k] >= 2, "%s has %d cases", vr_op_name((vr_op_kind)k), seen[k]);
    oracle_close(&o);
}

static void check_golden(const oracle_case *c)
{
    vr_tensor out;
    run(c, VR_POLICY_GOLDEN, VR_ORDER_SEQ, &out);
    const double *want = c->y.data;
    const float *got = out.data;
    double slack = sum_noise(c, 4 * 0x1p-53, c->magnitude_max);
    for (int64_t i = 0; i < c->count; i++) {
        double off = fabs((double)got[i] - want[i]);
        cr_assert(off <= half_ulp_f32(want[i]) + slack, "%s: element %lld is %.9g, float64 says %.17g",
                  c->name, (long long)i, (double)got[i], want[i]);
    }
    vr_tensor_free(&out);
}

Test(oracle_ops, golden_is_the_float64_result_rounded_once)
{
    for_every_case(check_golden);
}

static void check_truth(const oracle_case *c)
{
    vr_tensor out;
    run(c, VR_POLICY_TRUTH, VR_ORDER_SEQ, &out);
    const double *want = c->y.data, *got = out.data;
    double tolerance = sum_noise(c, 4 * 0x1p-53, c->magnitude_max);
    for (int64_t i = 0; i < c->count; i++)
        cr_assert(fabs(got[i] - want[i]) <= tolerance, "%s: element %lld is %.17g, PyTorch says %.17g",
                  c->name, (long long)i, got[i], want[i]);
    vr_tensor_free(&out);
}

Test(oracle_ops, truth_differs_by_float64_noise_only)
{
    for_every_case(check_truth);
}

/* Returns false when the case says nothing at this precision. */
static bool check_rounded(const oracle_case *c, vr_policy policy, double unit, vr_order order)
{
    const double *want = c->y.data;
    double square = 0, error = 0, n = (double)c->count;
    for (int64_t i = 0; i < c->count; i++)
        square += want[i] * want[i];
    double rms = sqrt(square / n);
    double tolerance = sum_noise(c, 0x1p-24, c->magnitude_rms) + 2 * unit * c->magnitude_rms;
    if (tolerance >= 0.25 * rms)
        return false;
    vr_tensor out;
    run(c, policy, order, &out);
    const float *got = out.data;
    for (int64_t i = 0; i < c->count; i++)
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    error = sqrt(error / n);
    cr_assert(error <= tolerance, "%s %s %s: rms error %.3g, honest arithmetic stays below %.3g", c->name,
              vr_policy_name(policy), vr_order_name(order), error, tolerance);
    vr_tensor_free(&out);
    return true;
}

/* At most `silent` cases may say nothing. */
static void check_policy(vr_policy policy, double unit, int silent)
{
    oracle_fixture o;
    vr_error err;
    cr_assert_eq(oracle_open("ops.safetensors", "ops_cases.json", &o, &err), VR_OK, "%s", err.text);
    for (int order = 0; order < VR_ORDER_COUNT; order++) {
        int left_out = 0;
        for (size_t i = 0; i < o.count; i++) {
            oracle_case c;
            cr_assert_eq(oracle_case_make(&o, i, &c, &err), VR_OK, "row %zu: %s", i, err.text);
            if (!check_rounded(&c, policy, unit, (vr_order)order))
                left_out++;
            oracle_case_free(&c);
        }
        cr_assert(left_out <= silent, "%s: %d cases say nothing, %d may", vr_policy_name(policy), left_out,
                  silent);
    }
    oracle_close(&o);
}

Test(oracle_ops, f32_loses_what_f32_sums_lose_in_every_order)
{
    check_policy(VR_POLICY_F32, 0x1p-24, 0);
}

Test(oracle_ops, f16_loses_what_f16_storage_loses_in_every_order)
{
    check_policy(VR_POLICY_F16, 0x1p-11, 4);
}

Test(oracle_ops, bf16_loses_what_bf16_storage_loses_in_every_order)
{
    check_policy(VR_POLICY_BF16, 0x1p-8, 6);
}
