/* Reading a program: shapes, upscaling, live ranges, writing in place, reach.
 * SPDX-License-Identifier: MIT */
#include "topology.h"

#include <criterion/criterion.h>
#include <string.h>

static void finish(vr_program *p, int32_t y)
{
    vr_error err = {0};
    cr_assert(vr_program_finish(p, y, 0, 1, &err) == VR_OK, "%s", err.text);
}

static void assert_shape(const vr_shape *got, vr_shape want, const char *what)
{
    cr_assert(memcmp(got, &want, sizeof want) == 0, "%s: [%lld,%lld,%lld,%lld,%lld]", what,
              (long long)got->n, (long long)got->c, (long long)got->t, (long long)got->h,
              (long long)got->w);
}

Test(program_reading, shape_count_knows_its_limits)
{
    const int64_t big = 1 << 23;
    static const int64_t bad[][5] = {
        {0, 1, 1, 1, 1}, {1, -1, 1, 1, 1}, {1, 1, 0, 1, 1}, {1, 1, 1, 0, 1}, {1, 1, 1, 1, 0},
        {1, 2, 1, 1 << 23, 1 << 23}, {1, 1, 1, INT64_MAX, INT64_MAX},
        {1, 1, 1, 1, (INT64_C(1) << 46) + 1}, {-2, 1, 1, -2, 1},
    };
    int64_t n = 0;
    cr_assert(vr_shape_count((vr_shape){2, 3, 5, 7, 11}, &n, NULL) == VR_OK && n == 2310);
    cr_assert(vr_shape_count((vr_shape){1, 1, 1, big, big}, &n, NULL) == VR_OK);
    cr_assert(n == INT64_C(1) << 46);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        vr_error err = {0};
        vr_shape s = {bad[i][0], bad[i][1], bad[i][2], bad[i][3], bad[i][4]};
        cr_assert(vr_shape_count(s, &n, &err) == VR_E_SHAPE && err.text[0], "case %d", (int)i);
    }
    cr_assert(n == INT64_C(1) << 46, "a failure must not touch the result");
}

Test(program_reading, shapes_follow_the_latent_and_keep_batch_and_frames)
{
    vr_program *p = vr_program_new("t", 8);
    int32_t w = topo_weight4(p, "w", 6, 2, 3, 5);
    int32_t u = vr_program_unpack(p, "unpack", 0, 2, 2);
    int32_t c = vr_program_conv2d_pads(p, "conv", u, w, -1, 1, 0, 2, 3);
    int32_t n = topo_norm(p, "norm", c, 3);
    int32_t o = vr_program_attention(p, "attn", n, n, n, 1);
    int32_t s = vr_program_upsample(p, "up", o, 2, 3, 1);
    finish(p, s);
    vr_shape v[6];
    vr_error err = {0};
    cr_assert(vr_program_shapes(p, (vr_shape){3, 8, 4, 5, 7}, v, &err) == VR_OK, "%s", err.text);
    assert_shape(&v[0], (vr_shape){3, 8, 4, 5, 7}, "latent");
    assert_shape(&v[u], (vr_shape){3, 2, 4, 10, 14}, "unpack");
    assert_shape(&v[c], (vr_shape){3, 6, 4, 9, 15}, "conv");
    assert_shape(&v[n], (vr_shape){3, 6, 4, 9, 15}, "norm");
    assert_shape(&v[o], (vr_shape){3, 6, 4, 9, 15}, "attention");
    assert_shape(&v[s], (vr_shape){3, 6, 8, 27, 15}, "upsample");
    int64_t sh, sw;
    vr_program_scale(p, &sh, &sw);
    cr_assert(sh == 6 && sw == 2, "%lld %lld", (long long)sh, (long long)sw);
    vr_program_free(p);
}

Test(program_reading, a_latent_that_does_not_fit_is_refused_with_the_operation)
{
    vr_program *p = vr_program_new("t", 4);
    int32_t w = topo_weight4(p, "w", 4, 4, 3, 3);
    int32_t y = vr_program_upsample(p, "up", 0, 1, 2, 2);
    y = vr_program_conv2d(p, "c", y, w, -1, 0);
    y = vr_program_upsample(p, "big", y, 1, 1 << 15, 1 << 15);
    finish(p, y);
    static const struct {
        vr_shape latent;
        const char *says;
    } row[] = {
        {{1, 3, 1, 4, 4}, "the latent has 3 channels, wanted 4"},
        {{1, 4, 1, 0, 4}, "latent: shape"},
        {{1, 4, 1, 1, 4},
         "conv2d 'c': a kernel of 3 x 3 (rows x columns) does not fit an input of 2 x 8"},
        {{1, 4, 1, 4, 1}, "does not fit an input of 8 x 2 with padding 0,0,0,0"},
        {{1, 4, 1, 1 << 10, 1 << 10}, "upsample_nearest 'big': shape"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        vr_shape v[4];
        vr_program_cost c;
        vr_error err = {0};
        cr_assert(vr_program_shapes(p, row[i].latent, v, &err) == VR_E_SHAPE, "case %d", (int)i);
        cr_assert(strstr(err.text, row[i].says), "case %d: %s", (int)i, err.text);
        cr_assert(vr_program_cost_of(p, row[i].latent, 4, &c, NULL, NULL) == VR_E_SHAPE);
    }
    vr_shape v[4];
    cr_assert(vr_program_shapes(p, (vr_shape){1, 4, 1, 2, 2}, v, NULL) == VR_OK);
    vr_program_free(p);
}

Test(program_reading, published_decoders_upscale_eightfold_and_give_three_channels)
{
    vr_program *p[2] = {topo_kl_decoder((topo_kl){16, false, false}, NULL),
                        topo_tiny_decoder(16, NULL)};
    for (int i = 0; i < 2; i++) {
        vr_shape v[256];
        int64_t sh, sw;
        cr_assert(p[i] && p[i]->op_count < 256);
        vr_program_scale(p[i], &sh, &sw);
        cr_assert(sh == 8 && sw == 8);
        cr_assert(vr_program_shapes(p[i], (vr_shape){1, 16, 1, 1, 5}, v, NULL) == VR_OK);
        assert_shape(&v[p[i]->output], (vr_shape){1, 3, 1, 8, 40}, p[i]->family);
        vr_program_free(p[i]);
    }
}

/* latent -> a -> b(norm) -> c(silu) -> d(conv) -> e(add d,a) -> f(add e,e) -> g */
Test(program_reading, a_value_is_written_over_exactly_when_it_dies_element_wise)
{
    vr_program *p = vr_program_new("t", 4);
    double one[4] = {1, 1, 1, 1};
    int32_t a = vr_program_tanh_clamp(p, "a", 0, 3);      /* not over the latent */
    int32_t b = topo_norm(p, "b", a, 2);                  /* a is read again by e */
    int32_t c = vr_program_unary(p, "c", VR_OP_SILU, b);  /* over b */
    int32_t d = topo_conv(p, "d", c, 4, 3, false);        /* never */
    int32_t e = vr_program_add(p, "e", d, a);             /* over d, the first that dies */
    int32_t f = vr_program_add(p, "f", e, e);             /* over e */
    int32_t g = topo_norm(p, "g", f, 2);                  /* over f: statistics come first */
    int32_t h = vr_program_scale_shift(p, "h", g, one, one);
    int32_t i = vr_program_add(p, "i", g, h);             /* g dies here; h was new */
    int32_t j = vr_program_upsample(p, "j", i, 1, 1, 1);  /* never, even by 1 */
    int32_t k = vr_program_attention(p, "k", j, j, j, 1); /* never */
    int32_t l = vr_program_unary(p, "l", VR_OP_RELU, k);
    int32_t m = vr_program_clamp(p, "m", l, 0, 1);
    int32_t n = vr_program_unpack(p, "n", m, 2, 2);       /* never */
    finish(p, n);
    int32_t last[15];
    vr_program_live_ranges(p, last);
    const int32_t want_last[15] = {a, e, c, d, e, f, g, i, i, j, k, l, m, n, 15};
    const int32_t want_place[15] = {-1, -1, -1, 0, -1, 0, 0, 0, -1, 0, -1, -1, 0, 0, -1};
    for (int32_t v = 0; v < p->op_count; v++) {
        cr_assert(last[v] == want_last[v], "last use of %s: %d", p->op[v].tap, (int)last[v]);
        int32_t place = vr_program_in_place(p, last, v);
        cr_assert(place == want_place[v], "%s over input %d", p->op[v].tap, (int)place);
    }
    (void)b;
    (void)h;
    vr_program_free(p);
}

Test(program_reading, the_second_input_of_an_add_is_written_over_when_the_first_lives_on)
{
    vr_program *p = vr_program_new("t", 4);
    int32_t a = vr_program_unary(p, "a", VR_OP_SILU, 0);
    int32_t b = topo_conv(p, "b", a, 4, 1, false);
    int32_t c = vr_program_add(p, "c", a, b);
    int32_t d = vr_program_add(p, "d", 0, c); /* the latent dies, but is not ours */
    int32_t e = vr_program_add(p, "e", d, a);
    finish(p, e);
    int32_t last[6];
    vr_program_live_ranges(p, last);
    cr_assert(vr_program_in_place(p, last, c) == 1);
    cr_assert(vr_program_in_place(p, last, d) == 1);
    cr_assert(vr_program_in_place(p, last, e) == 0);
    cr_assert(last[0] == d && last[e] == 6);
    vr_program_free(p);
}

Test(program_reading, reach_of_single_operations_is_that_of_their_window)
{
    static const struct {
        const char *what;
        int64_t kh, kw, top, bottom, left, right, up_h, up_w;
        int64_t low, high, low_w, high_w;
    } row[] = {
        {"1x1", 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0},
        {"3x3", 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        {"3x5 one-sided", 3, 5, 0, 2, 4, 0, 1, 1, 0, 2, 4, 0},
        {"even", 2, 4, 0, 1, 1, 2, 1, 1, 0, 1, 1, 2},
        {"after doubling", 3, 3, 1, 1, 1, 1, 2, 2, 1, 1, 1, 1},
        {"5 after 4 and 2", 5, 5, 2, 2, 2, 2, 4, 2, 1, 1, 1, 1},
        {"7 after 2 and 3", 7, 7, 3, 3, 3, 3, 2, 3, 2, 2, 1, 1},
        {"more padding than kernel", 3, 3, 5, 0, 0, 0, 1, 1, 5, 0, 0, 2},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        vr_program *p = vr_program_new("t", 1);
        int32_t y = vr_program_upsample(p, "u", 0, 1, row[i].up_h, row[i].up_w);
        int32_t w = topo_weight4(p, "w", 1, 1, row[i].kh, row[i].kw);
        y = vr_program_conv2d_pads(p, "c", y, w, -1, row[i].top, row[i].bottom, row[i].left,
                                   row[i].right);
        finish(p, y);
        vr_receptive_field r;
        cr_assert(vr_program_receptive_field(p, &r, NULL) == VR_OK);
        cr_assert(r.halo_low == row[i].low && r.halo_high == row[i].high &&
                      r.halo_low_w == row[i].low_w && r.halo_high_w == row[i].high_w,
                  "%s: %lld %lld %lld %lld", row[i].what, (long long)r.halo_low,
                  (long long)r.halo_high, (long long)r.halo_low_w, (long long)r.halo_high_w);
        cr_assert(r.global_ops == 0);
        vr_program_free(p);
    }
}
