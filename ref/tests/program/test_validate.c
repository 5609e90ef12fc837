/* What vr_program_finish refuses, and that it says which operation and weight.
 * SPDX-License-Identifier: MIT */
#include "topology.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* Value 1 "a" is relu(latent), 4 channels. Each function makes one mistake and
 * returns the output. */
static int32_t conv_of(vr_program *p, int32_t rank, const int64_t *dim, int64_t bias, int64_t pad)
{
    int32_t w = vr_program_weight(p, "c.weight", NULL, VR_F32, rank, dim, topology_data);
    int32_t b = bias ? topo_weight1(p, "c.bias", bias) : -1;
    return vr_program_conv2d(p, "c", 1, w, b, pad);
}

static int32_t conv_mistake(vr_program *p, int how)
{
    const int64_t good[4] = {6, 4, 3, 3}, in[4] = {6, 5, 3, 3};
    const int64_t wide[4] = {6, 4, 1, (1 << 20) + 1};
    int32_t y;
    switch (how) {
    case 0: return conv_of(p, 4, in, 6, 1);
    case 1: return conv_of(p, 2, good, 6, 1);
    case 2: return conv_of(p, 4, good, 4, 1);
    case 3: return conv_of(p, 4, good, 6, -1);
    case 4: return conv_of(p, 4, good, 6, (1 << 20) + 1);
    case 5: return vr_program_conv2d(p, "c", 1, -1, -1, 1);
    case 6: return conv_of(p, 4, wide, 6, 1);
    case 7: /* the operation and its weight no longer agree */
        y = conv_of(p, 4, good, 6, 1);
        p->op[y].p.conv2d.kw = 5;
        return y;
    case 8:
        return vr_program_conv2d_pads(p, "c", 1, topo_weight4(p, "c.weight", 1, 4, 1, 1), -1, 0,
                                      0, 0, -3);
    case 9: /* [6,1] is not [6] */
        y = vr_program_weight(p, "c.bias", NULL, VR_F32, 2, (const int64_t[2]){6, 1},
                              topology_data);
        return vr_program_conv2d(p, "c", 1, topo_weight4(p, "c.weight", 6, 4, 3, 3), y, 1);
    default: return -1;
    }
}

static int32_t norm_of(vr_program *p, int64_t gamma, int64_t beta, int64_t groups, double eps)
{
    int32_t g = gamma ? topo_weight1(p, "n.weight", gamma) : -1;
    int32_t b = beta ? topo_weight1(p, "n.bias", beta) : -1;
    return vr_program_group_norm(p, "n", 1, g, b, groups, eps);
}

static int32_t other_mistake(vr_program *p, int how)
{
    double scale[4] = {1, 1, 1, 1}, shift[4] = {0, 0, 0, 0};
    int32_t y;
    switch (how) {
    case 0: return norm_of(p, 5, 4, 2, 1e-6);
    case 1: return norm_of(p, 4, 3, 2, 1e-6);
    case 2: return norm_of(p, 0, 4, 2, 1e-6);
    case 3: return norm_of(p, 4, 0, 2, 1e-6);
    case 4: return norm_of(p, 4, 4, 3, 1e-6);
    case 5: return norm_of(p, 4, 4, 0, 1e-6);
    case 6: return norm_of(p, 4, 4, 2, -1e-6);
    case 7: return norm_of(p, 4, 4, 2, NAN);
    case 8: return vr_program_tanh_clamp(p, "t", 1, 0);
    case 9: return vr_program_tanh_clamp(p, "t", 1, INFINITY);
    case 10: return vr_program_upsample(p, "u", 1, 1, 0, 2);
    case 11: return vr_program_upsample(p, "u", 1, 1, 2, (1 << 16) + 1);
    case 12: return vr_program_upsample(p, "u", 1, -1, 2, 2);
    case 13: return vr_program_unpack(p, "u", 1, 3, 1);
    case 14: return vr_program_unpack(p, "u", 1, 0, 1);
    case 15:
        shift[2] = NAN;
        return vr_program_scale_shift(p, "s", 1, scale, shift);
    case 16:
        scale[3] = INFINITY;
        return vr_program_scale_shift(p, "s", 1, scale, shift);
    case 17: return vr_program_clamp(p, "k", 1, 1, -1);
    case 18: return vr_program_clamp(p, "k", 1, NAN, 1);
    case 19: return vr_program_attention(p, "o", 1, 1, 1, NAN);
    case 20: return vr_program_add(p, "s", 1, topo_conv(p, "c", 1, 5, 1, false));
    case 21: return vr_program_attention(p, "o", 1, 1, topo_conv(p, "c", 1, 5, 1, false), 1);
    case 22: /* twice the rows of the other */
        return vr_program_add(p, "s", 1, vr_program_upsample(p, "u", 1, 1, 2, 1));
    case 23: /* two columns fewer */
        y = topo_weight4(p, "c.weight", 4, 4, 3, 3);
        y = vr_program_conv2d_pads(p, "c", 1, y, -1, 1, 1, 0, 0);
        return vr_program_add(p, "s", 1, y);
    case 24: /* twice the frames */
        return vr_program_attention(p, "o", 1, vr_program_upsample(p, "u", 1, 2, 1, 1), 1, 1);
    case 25:
        y = vr_program_upsample(p, "u", 1, 1, 1 << 12, 1);
        return vr_program_upsample(p, "v", y, 1, 1 << 9, 1);
    case 26:
        vr_program_unary(p, "lost", VR_OP_SILU, 1);
        return vr_program_unary(p, "s", VR_OP_SILU, 1);
    case 27: /* the chain goes on after the output */
        vr_program_unary(p, "late", VR_OP_SILU, 1);
        return 1;
    case 28: return 0;
    case 29: return -1;
    case 30: return 2;
    case 31: /* a value before it is made */
        y = vr_program_unary(p, "b", VR_OP_SILU, 1);
        p->op[1].in[0] = y;
        return y;
    case 32: /* shrunk then doubled, and doubled then shrunk */
        y = topo_weight4(p, "c.weight", 4, 4, 3, 3);
        return vr_program_add(
            p, "s",
            vr_program_upsample(p, "v", vr_program_conv2d(p, "c", 1, y, -1, 0), 1, 2, 2),
            vr_program_conv2d(p, "d", vr_program_upsample(p, "u", 1, 1, 2, 2), y, -1, 0));
    default: return -1;
    }
}

static vr_program *start(void)
{
    vr_program *p = vr_program_new("t", 4);
    vr_program_unary(p, "a", VR_OP_RELU, 0);
    return p;
}

static void expect(vr_program *p, const char *set, int i, int32_t output, vr_status status,
                   const char *says)
{
    vr_error err = {0};
    vr_status s = vr_program_finish(p, output, 0, 1, &err);
    cr_assert(s == status && err.status == status, "%s %d: status %d: %s", set, i, (int)s,
              err.text);
    cr_assert(strstr(err.text, says), "%s %d: %s", set, i, err.text);
    vr_program_free(p);
}

Test(program_validate, a_convolution_that_does_not_fit_is_refused_by_name)
{
    static const struct {
        vr_status status;
        const char *says;
    } row[] = {
        {VR_E_SHAPE,
         "conv2d 'c': weight 'c.weight' [6,5,3,3] takes 5 channels, but its input 'a' has 4"},
        {VR_E_SHAPE, "conv2d 'c': weight 'c.weight' [6,4], wanted rank 4"},
        {VR_E_SHAPE, "conv2d 'c': bias 'c.bias' [4], wanted [6], one per channel"},
        {VR_E_RANGE, "conv2d 'c': padding top is -1"},
        {VR_E_RANGE, "conv2d 'c': padding top is 1048577"},
        {VR_E_ARGUMENT, "conv2d 'c': has no weight"},
        {VR_E_SHAPE, "weight 'c.weight' [6,4,1,1048577]: a kernel extent passes 1048576"},
        {VR_E_SHAPE, "weight 'c.weight' [6,4,3,3], wanted [6,4,3,5] as the operation says"},
        {VR_E_RANGE, "conv2d 'c': padding right is -3"},
        {VR_E_SHAPE, "conv2d 'c': bias 'c.bias' [6,1], wanted [6]"},
    };
    for (int i = 0; i < (int)(sizeof row / sizeof row[0]); i++) {
        vr_program *p = start();
        int32_t y = conv_mistake(p, i);
        expect(p, "conv", i, y, row[i].status, row[i].says);
    }
}

Test(program_validate, other_mistakes_are_refused_by_name)
{
    static const struct {
        vr_status status;
        const char *says;
    } row[] = {
        {VR_E_SHAPE, "group_norm 'n': gamma 'n.weight' [5], wanted [4]"},
        {VR_E_SHAPE, "group_norm 'n': beta 'n.bias' [3], wanted [4]"},
        {VR_E_ARGUMENT, "group_norm 'n': has no gamma"},
        {VR_E_ARGUMENT, "group_norm 'n': has no beta"},
        {VR_E_SHAPE, "group_norm 'n': 3 groups do not divide 4 channels"},
        {VR_E_SHAPE, "group_norm 'n': 0 groups do not divide 4 channels"},
        {VR_E_RANGE, "group_norm 'n': eps is -1e-06"},
        {VR_E_RANGE, "group_norm 'n': eps is nan"},
        {VR_E_RANGE, "tanh_clamp 't': limit is 0"},
        {VR_E_RANGE, "tanh_clamp 't': limit is inf"},
        {VR_E_RANGE, "upsample_nearest 'u': factor along rows is 0"},
        {VR_E_RANGE, "upsample_nearest 'u': factor along columns is 65537"},
        {VR_E_RANGE, "upsample_nearest 'u': factor along frames is -1"},
        {VR_E_SHAPE, "unpack 'u': 4 channels of 'a' cannot be unpacked into 3 positions"},
        {VR_E_RANGE, "unpack 'u': factor along rows is 0"},
        {VR_E_NONFINITE, "scale_shift 's': channel 2: scale 1, shift nan"},
        {VR_E_NONFINITE, "scale_shift 's': channel 3: scale inf, shift 0"},
        {VR_E_RANGE, "clamp 'k': bounds are 1..-1"},
        {VR_E_RANGE, "clamp 'k': bounds are nan..1"},
        {VR_E_RANGE, "attention 'o': scale is nan"},
        {VR_E_SHAPE, "add 's': 'a' has 4 channels and 'c' has 5"},
        {VR_E_SHAPE, "attention 'o': 'a' has 4 channels and 'c' has 5"},
        {VR_E_SHAPE, "add 's': 'a' has 1 x latent +0 rows and 'u' has 2 x latent +0"},
        {VR_E_SHAPE, "add 's': 'a' has 1 x latent +0 columns and 'c' has 1 x latent -2"},
        {VR_E_SHAPE, "attention 'o': 'a' has 1 x latent +0 frames and 'u' has 2 x latent"},
        {VR_E_RANGE, "upsample_nearest 'v': upscaling of rows reaches 2097152"},
        {VR_E_ARGUMENT, "silu 'lost': value 2 is used by no operation and is not the output"},
        {VR_E_ARGUMENT, "silu 'late': value 2 is used by no operation"},
        {VR_E_ARGUMENT, "the output is value 0, wanted the result of an operation, 1..1"},
        {VR_E_ARGUMENT, "the output is value -1"},
        {VR_E_ARGUMENT, "the output is value 2, wanted the result of an operation, 1..1"},
        {VR_E_ARGUMENT, "relu 'a': input 0 is value 2, but it is operation 1"},
        {VR_E_SHAPE, "add 's': 'v' has 2 x latent -4 rows and 'd' has 2 x latent -2"},
    };
    for (int i = 0; i < (int)(sizeof row / sizeof row[0]); i++) {
        vr_program *p = start();
        int32_t y = other_mistake(p, i);
        expect(p, "other", i, y, row[i].status, row[i].says);
    }
}

Test(program_validate, an_output_range_without_width_is_refused)
{
    static const double range[][2] = {{1, 1}, {1, -1}, {NAN, 1}, {0, NAN}, {-INFINITY, 1}};
    for (size_t i = 0; i < sizeof range / sizeof range[0]; i++) {
        vr_program *p = start();
        vr_error err = {0};
        cr_assert(vr_program_finish(p, 1, range[i][0], range[i][1], &err) == VR_E_RANGE,
                  "case %d", (int)i);
        cr_assert(strstr(err.text, "wanted black"), "%s", err.text);
        vr_program_free(p);
    }
}

/* Unusual but right: even kernels, more padding than kernel, open clamps,
 * extents that agree again after differing. */
Test(program_validate, unusual_but_consistent_programs_pass)
{
    vr_program *p = start();
    int32_t w = topo_weight4(p, "w", 4, 4, 2, 4);
    int32_t y = vr_program_conv2d_pads(p, "shrink", 1, w, -1, 0, 0, 0, 0); /* -1, -3 */
    y = vr_program_conv2d_pads(p, "grow", y, w, -1, 2, 0, 6, 0);          /* +1, +3 */
    y = vr_program_add(p, "same", y, 1);
    y = vr_program_clamp(p, "open", y, -INFINITY, INFINITY);
    y = vr_program_clamp(p, "point", y, 0, 0);
    y = vr_program_unpack(p, "unpack", y, 1, 1);
    vr_error err = {0};
    cr_assert(vr_program_finish(p, y, 0, 1, &err) == VR_OK, "%s", err.text);
    vr_program_free(p);
}
