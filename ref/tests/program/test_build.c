/* The builder: what it keeps, and how its first failure reaches finish.
 * Refusals of the whole program are in test_validate.c.
 * SPDX-License-Identifier: MIT */
#include "topology.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

Test(program_build, a_built_program_keeps_everything_it_was_given)
{
    const int64_t dim[4] = {8, 3, 2, 5};
    double scale[3] = {1, 2, 3}, shift[3] = {4, 5, 6};
    char tap[16] = "pre", name[16] = "w", source[16] = "old.w";
    vr_program *p = vr_program_new("a family whose name is too long to keep", 3);
    cr_assert(p && strlen(p->family) == sizeof p->family - 1);
    int32_t w = vr_program_weight(p, name, source, VR_F16, 4, dim, topology_data);
    int32_t b = topo_weight1(p, "b", 8);
    int32_t x = vr_program_scale_shift(p, tap, 0, scale, shift);
    int32_t y = vr_program_conv2d_pads(p, "conv", x, w, b, 1, 2, 3, 4);
    int32_t z = vr_program_unpack(p, "unpack", y, 2, 4);
    vr_error err = {0};
    cr_assert(vr_program_finish(p, z, -1, 1, &err) == VR_OK, "%s", err.text);
    cr_assert(err.status == VR_OK);
    /* What was passed may be changed or freed afterwards. */
    memset(tap, 'x', sizeof tap - 1);
    memset(name, 'x', sizeof name - 1);
    memset(source, 'x', sizeof source - 1);
    memset(scale, 0, sizeof scale);
    cr_assert(p->op_count == 4 && p->weight_count == 2 && p->output == 3);
    cr_assert(p->range_lo == -1 && p->range_hi == 1);
    cr_assert_str_eq(p->op[0].tap, "latent");
    cr_assert_str_eq(p->op[1].tap, "pre");
    cr_assert(p->op[1].p.scale_shift.scale[2] == 3 && p->op[1].p.scale_shift.shift[0] == 4);
    const vr_op *c = &p->op[2];
    cr_assert(c->channels == 8 && c->p.conv2d.kh == 2 && c->p.conv2d.kw == 5);
    cr_assert(c->p.conv2d.pad_top == 1 && c->p.conv2d.pad_bottom == 2);
    cr_assert(c->p.conv2d.pad_left == 3 && c->p.conv2d.pad_right == 4);
    cr_assert(c->in[0] == 1 && c->in[1] == -1 && c->weight[0] == w && c->weight[1] == b);
    cr_assert(p->op[3].channels == 1 && p->op[3].weight[0] == -1);
    cr_assert_str_eq(p->weight[0].name, "w");
    cr_assert_str_eq(p->weight[0].source_name, "old.w");
    cr_assert_str_eq(p->weight[1].source_name, "b");
    cr_assert(p->weight[0].dtype == VR_F16 && p->weight[0].count == 8 * 3 * 2 * 5);
    cr_assert(p->weight[0].data == topology_data);
    vr_program_free(p);
}

Test(program_build, taps_are_found_among_many)
{
    vr_program *p = vr_program_new("many", 1);
    char tap[32];
    int32_t x = 0;
    for (int i = 1; i <= 300; i++) { /* the lists grow several times */
        snprintf(tap, sizeof tap, "block.%d", i);
        x = vr_program_unary(p, tap, i % 2 ? VR_OP_SILU : VR_OP_RELU, x);
    }
    cr_assert(vr_program_finish(p, x, 0, 1, NULL) == VR_OK);
    for (int i = 1; i <= 300; i++) {
        snprintf(tap, sizeof tap, "block.%d", i);
        cr_assert(vr_program_find_tap(p, tap) == i, "%s", tap);
    }
    cr_assert(vr_program_find_tap(p, "latent") == 0);
    cr_assert(vr_program_find_tap(p, "block.301") == -1);
    cr_assert(vr_program_find_tap(p, "block") == -1);
    cr_assert(vr_program_find_tap(p, NULL) == -1);
    vr_program_free(p);
}

Test(program_build, operation_names_are_those_of_the_table)
{
    cr_assert_str_eq(vr_op_name(VR_OP_INPUT), "input");
    cr_assert_str_eq(vr_op_name(VR_OP_UPSAMPLE_NEAREST), "upsample_nearest");
    cr_assert_str_eq(vr_op_name(VR_OP_CLAMP), "clamp");
    cr_assert_str_eq(vr_op_name(VR_OP_KIND_COUNT), "?");
    cr_assert_str_eq(vr_op_name((vr_op_kind)-1), "?");
}

/* Each breaks program `p`, whose value 1 and weight 0 ([2,2,1,1]) are good. */
static int32_t break_it(vr_program *p, int how)
{
    const int64_t dim[5] = {2, 2, 1, 1, 1}, zero[2] = {2, 0};
    const int64_t huge[3] = {1 << 20, 1 << 20, 1 << 7};
    static const double one[2] = {1, 1};
    switch (how) {
    case 0: return vr_program_unary(p, "a", VR_OP_RELU, 1);
    case 1: return vr_program_unary(p, "", VR_OP_RELU, 1);
    case 2: return vr_program_unary(p, NULL, VR_OP_RELU, 1);
    case 3: return vr_program_unary(p, "b", VR_OP_RELU, 2);
    case 4: return vr_program_unary(p, "b", VR_OP_RELU, -1);
    case 5: return vr_program_unary(p, "b", VR_OP_ADD, 1);
    case 6: return vr_program_add(p, "b", 1, 7);
    case 7: return vr_program_attention(p, "b", 1, 1, -1, 1.0);
    case 8: return vr_program_conv2d(p, "b", 1, 1, -1, 0);
    case 9: return vr_program_conv2d(p, "b", 1, 0, -2, 0);
    case 10: return vr_program_group_norm(p, "b", 1, 5, 0, 1, 0);
    case 11: return vr_program_scale_shift(p, "b", 1, one, NULL);
    case 12: return vr_program_weight(p, "w1", NULL, VR_I32, 1, dim, topology_data);
    case 13: return vr_program_weight(p, "w1", NULL, VR_F32, 0, dim, topology_data);
    case 14: return vr_program_weight(p, "w1", NULL, VR_F32, 6, dim, topology_data);
    case 15: return vr_program_weight(p, "w1", NULL, VR_F32, 2, zero, topology_data);
    case 16: return vr_program_weight(p, "w1", NULL, VR_F32, 3, huge, topology_data);
    case 17: return vr_program_weight(p, "w1", NULL, VR_F32, 1, dim, NULL);
    case 18: return vr_program_weight(p, "", NULL, VR_F32, 1, dim, topology_data);
    default: return 0;
    }
}

Test(program_build, the_first_failure_sticks_and_finish_reports_it)
{
    static const struct {
        vr_status status;
        const char *says;
    } row[] = {
        {VR_E_ARGUMENT, "relu 'a': operation 1 (silu) has the same tap id"},
        {VR_E_ARGUMENT, "operation 2 (relu) has no tap id"},
        {VR_E_ARGUMENT, "operation 2 (relu) has no tap id"},
        {VR_E_ARGUMENT, "relu 'b': input 0 is value 2, wanted 0..1"},
        {VR_E_ARGUMENT, "relu 'b': input 0 is value -1, wanted 0..1"},
        {VR_E_ARGUMENT, "'b': add is not a parameterless operation"},
        {VR_E_ARGUMENT, "add 'b': input 1 is value 7, wanted 0..1"},
        {VR_E_ARGUMENT, "attention 'b': input 2 is value -1, wanted 0..1"},
        {VR_E_ARGUMENT, "conv2d 'b': weight number 1, but the program has 1 weights"},
        {VR_E_ARGUMENT, "conv2d 'b': weight number -2"},
        {VR_E_ARGUMENT, "group_norm 'b': weight number 5"},
        {VR_E_ARGUMENT, "scale_shift 'b' wants both a scale and a shift"},
        {VR_E_DTYPE, "weight 'w1' is I32, wanted a float type"},
        {VR_E_SHAPE, "weight 'w1' has rank 0, wanted 1..5"},
        {VR_E_SHAPE, "weight 'w1' has rank 6, wanted 1..5"},
        {VR_E_SHAPE, "weight 'w1': dimension 1 is 0"},
        {VR_E_SHAPE, "weight 'w1': dimension 2 is 128"},
        {VR_E_ARGUMENT, "weight 'w1' has no data"},
        {VR_E_ARGUMENT, "weight 1 has no name"},
    };
    for (int i = 0; i < (int)(sizeof row / sizeof row[0]); i++) {
        vr_program *p = vr_program_new("t", 2);
        topo_weight4(p, "w", 2, 2, 1, 1);
        cr_assert(vr_program_unary(p, "a", VR_OP_SILU, 0) == 1);
        cr_assert(break_it(p, i) == -1, "case %d", i);
        /* Good calls do nothing now, and a second mistake does not hide the first. */
        int32_t ops = p->op_count, weights = p->weight_count;
        cr_assert(vr_program_unary(p, "c", VR_OP_SILU, 1) == -1, "case %d", i);
        cr_assert(topo_weight1(p, "v", 4) == -1, "case %d", i);
        cr_assert(vr_program_unary(p, "a", VR_OP_SILU, 99) == -1, "case %d", i);
        cr_assert(p->op_count == ops && p->weight_count == weights, "case %d", i);
        vr_error err = {0};
        cr_assert(vr_program_finish(p, 1, 0, 1, &err) == row[i].status, "case %d: %s", i,
                  err.text);
        cr_assert(err.status == row[i].status, "case %d", i);
        cr_assert(strstr(err.text, row[i].says), "case %d: %s", i, err.text);
        cr_assert(vr_program_finish(p, 1, 0, 1, NULL) == row[i].status, "case %d again", i);
        vr_program_free(p);
    }
}

Test(program_build, every_call_takes_a_program_that_could_not_be_made)
{
    const double one = 1;
    vr_program *p = NULL;
    vr_error err = {0};
    cr_assert(topo_weight1(p, "w", 1) == -1);
    cr_assert(vr_program_conv2d(p, "t", 0, 0, -1, 0) == -1);
    cr_assert(vr_program_group_norm(p, "t", 0, 0, 0, 1, 0) == -1);
    cr_assert(vr_program_unary(p, "t", VR_OP_SILU, 0) == -1);
    cr_assert(vr_program_tanh_clamp(p, "t", 0, 1) == -1);
    cr_assert(vr_program_upsample(p, "t", 0, 1, 2, 2) == -1);
    cr_assert(vr_program_attention(p, "t", 0, 0, 0, 1) == -1);
    cr_assert(vr_program_add(p, "t", 0, 0) == -1);
    cr_assert(vr_program_scale_shift(p, "t", 0, &one, &one) == -1);
    cr_assert(vr_program_unpack(p, "t", 0, 1, 1) == -1);
    cr_assert(vr_program_clamp(p, "t", 0, 0, 1) == -1);
    cr_assert(vr_program_finish(p, 0, 0, 1, &err) == VR_E_NOMEM && err.text[0]);
    vr_program_free(p);
}

Test(program_build, a_latent_without_channels_is_refused_at_finish)
{
    static const int64_t channels[] = {0, -4, INT64_MAX};
    for (size_t i = 0; i < 3; i++) {
        vr_program *p = vr_program_new("t", channels[i]);
        int32_t y = vr_program_unary(p, "a", VR_OP_SILU, 0);
        vr_error err = {0};
        cr_assert(y == -1 && vr_program_finish(p, y, 0, 1, &err) == VR_E_ARGUMENT);
        cr_assert(strstr(err.text, "channels"), "%s", err.text);
        vr_program_free(p);
    }
}

Test(program_build, a_finished_program_cannot_be_added_to_or_finished_again)
{
    for (int again = 0; again < 2; again++) {
        vr_program *p = vr_program_new("t", 2);
        int32_t a = vr_program_unary(p, "a", VR_OP_SILU, 0);
        cr_assert(vr_program_finish(p, a, 0, 1, NULL) == VR_OK);
        vr_error err = {0};
        if (!again)
            cr_assert(vr_program_unary(p, "b", VR_OP_SILU, a) == -1);
        cr_assert(vr_program_finish(p, a, 0, 1, &err) == VR_E_ARGUMENT);
        cr_assert(strstr(err.text, "is finished"), "%s", err.text);
        cr_assert(p->op_count == 2);
        vr_program_free(p);
    }
}

Test(program_build, reading_functions_refuse_an_unfinished_program)
{
    vr_program *p = vr_program_new("t", 2);
    vr_program_unary(p, "a", VR_OP_SILU, 0);
    vr_shape shape[2];
    vr_program_cost c;
    vr_receptive_field r;
    vr_error err = {0};
    const vr_shape latent = {1, 2, 1, 4, 4};
    cr_assert(vr_program_shapes(p, latent, shape, &err) == VR_E_ARGUMENT);
    cr_assert(strstr(err.text, "not finished"), "%s", err.text);
    cr_assert(vr_program_cost_of(p, latent, 4, &c, NULL, NULL) == VR_E_ARGUMENT);
    cr_assert(vr_program_receptive_field(p, &r, NULL) == VR_E_ARGUMENT);
    cr_assert(vr_program_receptive_field(NULL, &r, NULL) == VR_E_ARGUMENT);
    vr_program_free(p);
}
