/* The executor's contract: memory, taps, non-finite values, cancelling, 8-bit
 * output (vaeref/exec.h, clauses N1.5, N8, F4).
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "nets.h"

Test(exec, pool_peak_is_exactly_the_predicted_peak)
{
    test_net net = test_net_make(3, 2, 9, 14);
    const vr_policy policies[] = {VR_POLICY_GOLDEN, VR_POLICY_TRUTH, VR_POLICY_F16};
    for (int i = 0; i < 3; i++) {
        vr_error err;
        vr_tensor out;
        vr_exec_stats stats = {.op_seconds = NULL};
        vr_program_cost cost;
        const vr_exec_options opt = {.policy = policies[i], .threads = 2};
        cr_assert_eq(vr_exec_run(net.program, &net.latent, &opt, &out, &stats, &err), VR_OK, "%s", err.text);
        int64_t elem = policies[i] == VR_POLICY_TRUTH ? 8 : 4;
        cr_assert_eq(vr_program_cost_of(net.program, (vr_shape){2, 3, 1, 9, 14}, elem, &cost, NULL, &err), VR_OK);
        cr_assert_eq((int64_t)stats.pool.peak_bytes, cost.peak_bytes, "%s: pool %llu, predicted %lld",
                     vr_policy_name(policies[i]), (unsigned long long)stats.pool.peak_bytes,
                     (long long)cost.peak_bytes);
        cr_assert_eq(stats.nonfinite.op, -1);
        vr_tensor_free(&out);
    }
    test_net_free(&net);
}

Test(exec, memory_limit_below_the_peak_is_refused_and_the_peak_itself_suffices)
{
    test_net net = test_net_make(3, 1, 16, 16);
    vr_error err;
    vr_tensor out;
    vr_program_cost cost;
    vr_program_cost_of(net.program, (vr_shape){1, 3, 1, 16, 16}, 4, &cost, NULL, &err);
    vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .memory_limit = (uint64_t)cost.peak_bytes - 64};
    cr_assert_eq(vr_exec_run(net.program, &net.latent, &opt, &out, NULL, &err), VR_E_BUDGET);
    cr_assert(strstr(err.text, "operation") != NULL, "%s", err.text);
    cr_assert_null(out.data);
    opt.memory_limit = (uint64_t)cost.peak_bytes;
    cr_assert_eq(vr_exec_run(net.program, &net.latent, &opt, &out, NULL, &err), VR_OK, "%s", err.text);
    vr_tensor_free(&out);
    test_net_free(&net);
}

typedef struct tap_log {
    int count;
    bool shapes_agree;
    const vr_shape *want;
    int stop_at;
} tap_log;

static vr_status log_tap(void *ctx, int32_t op, const char *tap, const vr_tensor *v, vr_error *err)
{
    tap_log *t = ctx;
    const vr_shape s = t->want[op];
    t->count++;
    if (v->rank != 4 || v->dim[0] != s.n || v->dim[1] != s.c || v->dim[2] != s.h || v->dim[3] != s.w)
        t->shapes_agree = false;
    return op == t->stop_at ? vr_fail(err, VR_E_IO, "stopped at %s", tap) : VR_OK;
}

Test(exec, every_value_is_shown_once_with_its_shape_and_a_tap_can_stop_the_run)
{
    test_net net = test_net_make(5, 2, 6, 5);
    vr_error err;
    vr_tensor out;
    vr_shape shapes[64];
    vr_program_shapes(net.program, (vr_shape){2, 3, 1, 6, 5}, shapes, &err);
    tap_log log = {0, true, shapes, -1};
    vr_exec_options opt = {.on_value = log_tap, .ctx = &log};
    cr_assert_eq(vr_exec_run(net.program, &net.latent, &opt, &out, NULL, &err), VR_OK, "%s", err.text);
    cr_assert_eq(log.count, net.program->op_count);
    cr_assert(log.shapes_agree);
    vr_tensor_free(&out);
    log = (tap_log){0, true, shapes, 4};
    cr_assert_eq(vr_exec_run(net.program, &net.latent, &opt, &out, NULL, &err), VR_E_IO);
    cr_assert_eq(log.count, 5);
    cr_assert_null(out.data);
    test_net_free(&net);
}

static bool stop_half_way(void *ctx, int64_t done, int64_t total)
{
    (void)ctx;
    return done * 2 < total;
}

Test(exec, a_cancelled_run_says_so_and_leaves_no_output)
{
    test_net net = test_net_make(5, 1, 8, 8);
    vr_error err;
    vr_tensor out;
    const vr_exec_options opt = {.on_progress = stop_half_way};
    cr_assert_eq(vr_exec_run(net.program, &net.latent, &opt, &out, NULL, &err), VR_E_CANCELLED);
    cr_assert_null(out.data);
    test_net_free(&net);
}

/* One channel scaled until f16 cannot hold it: reported where it first appears. */
Test(exec, f16_overflow_is_reported_at_the_tap_where_it_first_appears)
{
    test_net net = test_net_make(5, 1, 8, 8);
    int32_t conv1 = vr_program_find_tap(net.program, "conv1");
    float *w = net.weights;
    const vr_weight *weight = &net.program->weight[net.program->op[conv1].weight[0]];
    w += (const float *)weight->data - net.weights;
    for (int64_t i = 0; i < weight->dim[1] * 9; i++)
        w[i] = 30000.0f; /* fits f16; the sum of 108 terms does not */
    vr_error err;
    vr_tensor out;
    vr_exec_stats stats = {.op_seconds = NULL};
    vr_exec_options opt = {.policy = VR_POLICY_F16};
    cr_assert_eq(vr_exec_run(net.program, &net.latent, &opt, &out, &stats, &err), VR_OK, "%s", err.text);
    cr_assert_eq(stats.nonfinite.op, conv1, "first at %d, not at conv1", stats.nonfinite.op);
    cr_assert(stats.nonfinite.inf_count > 0 && stats.nonfinite.nan_count == 0);
    bool nan = false;
    for (int i = 0; i < 3 * 16 * 16; i++)
        nan = nan || isnan(((float *)out.data)[i]);
    cr_assert(nan, "an overflow that became a NaN must stay visible in the output");
    vr_tensor_free(&out);
    opt.policy = VR_POLICY_BF16;
    cr_assert_eq(vr_exec_run(net.program, &net.latent, &opt, &out, &stats, &err), VR_OK);
    cr_assert_eq(stats.nonfinite.op, -1, "bf16 has the range");
    vr_tensor_free(&out);
    test_net_free(&net);
}

Test(exec, a_nan_in_the_latent_is_reported_at_the_latent)
{
    test_net net = test_net_make(5, 1, 4, 4);
    ((float *)net.latent.data)[17] = NAN;
    vr_error err;
    vr_tensor out;
    vr_exec_stats stats = {.op_seconds = NULL};
    cr_assert_eq(vr_exec_run(net.program, &net.latent, NULL, &out, &stats, &err), VR_OK);
    cr_assert_eq(stats.nonfinite.op, 0);
    cr_assert_eq(stats.nonfinite.first_index, 17);
    cr_assert_eq(stats.nonfinite.nan_count, 1);
    vr_tensor_free(&out);
    test_net_free(&net);
}

Test(exec, wrong_latents_are_refused_with_the_channels_named)
{
    test_net net = test_net_make(5, 1, 4, 4);
    vr_error err;
    vr_tensor out, bad = net.latent;
    bad.dim[1] = 4;
    bad.dim[2] = 3;
    cr_assert_eq(vr_exec_run(net.program, &bad, NULL, &out, NULL, &err), VR_E_SHAPE);
    cr_assert(strstr(err.text, "needs 3 channels, not 4"), "%s", err.text);
    bad = net.latent;
    bad.rank = 3;
    cr_assert_eq(vr_exec_run(net.program, &bad, NULL, &out, NULL, &err), VR_E_SHAPE);
    bad = net.latent;
    bad.dtype = VR_I32;
    cr_assert_eq(vr_exec_run(net.program, &bad, NULL, &out, NULL, &err), VR_E_DTYPE);
    test_net_free(&net);
}

Test(exec, f16_bf16_and_f64_latents_decode_as_their_f32_values)
{
    test_net net = test_net_make(6, 1, 5, 6);
    const vr_dtype types[] = {VR_F16, VR_BF16, VR_F64};
    for (int i = 0; i < 3; i++) {
        vr_error err;
        vr_tensor narrow, wide, a, b;
        cr_assert_eq(vr_tensor_new(&narrow, types[i], 4, net.latent.dim, &err), VR_OK);
        cr_assert_eq(vr_tensor_new(&wide, VR_F32, 4, net.latent.dim, &err), VR_OK);
        vr_convert(types[i], narrow.data, VR_F32, net.latent.data, 90, &err);
        vr_convert(VR_F32, wide.data, types[i], narrow.data, 90, &err);
        cr_assert_eq(vr_exec_run(net.program, &narrow, NULL, &a, NULL, &err), VR_OK);
        cr_assert_eq(vr_exec_run(net.program, &wide, NULL, &b, NULL, &err), VR_OK);
        cr_assert_eq(memcmp(a.data, b.data, 3 * 10 * 12 * 4), 0, "%s", vr_dtype_name(types[i]));
        vr_tensor_free(&narrow);
        vr_tensor_free(&wide);
        vr_tensor_free(&a);
        vr_tensor_free(&b);
    }
    test_net_free(&net);
}

Test(exec, eight_bit_output_rounds_half_to_even_and_defines_every_input)
{
    const float in[] = {-1.0f, 1.0f, 0.0f, -0.99607843f, INFINITY, -INFINITY, NAN, 1.1f, -1.1f};
    const uint8_t want[] = {0, 255, 128, 0, 255, 0, 0, 255, 0};
    uint8_t out[9];
    cr_assert_eq(vr_to_u8(in, 1, 1, 9, -1.0, 1.0, out), 1);
    for (int i = 0; i < 9; i++)
        if (i != 3)
            cr_assert_eq(out[i], want[i], "input %d: %d", i, out[i]);
    /* exact halves exist when the range is 0..255 */
    const float halves[] = {0.5f, 1.5f, 2.5f, 253.5f, 254.5f, 2.5000002f};
    const uint8_t even[] = {0, 2, 2, 254, 254, 3};
    cr_assert_eq(vr_to_u8(halves, 1, 1, 6, 0.0, 255.0, out), 0);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(out[i], even[i], "half %d: %d", i, out[i]);
    const float planes[] = {0.0f, 1.0f, 1.0f, 0.0f, 0.2f, 0.4f}; /* [3][1][2] */
    const uint8_t pixels[] = {0, 255, 51, 255, 0, 102};
    vr_to_u8(planes, 3, 1, 2, 0.0, 1.0, out);
    cr_assert_eq(memcmp(out, pixels, 6), 0);
}

Test(exec, unknown_instruction_set_is_refused)
{
    const char *name;
    vr_error err;
    setenv("VAEREF_ISA", "x87", 1);
    cr_assert_eq(vr_exec_isa(&name, &err), VR_E_ARGUMENT);
    cr_assert(strstr(err.text, "portable"), "%s", err.text);
    setenv("VAEREF_ISA", "portable", 1);
    cr_assert_eq(vr_exec_isa(&name, &err), VR_OK);
    cr_assert_str_eq(name, "portable");
}
