/* A local decoder cannot tell that it was tiled (clause T1.9): under every
 * blending scheme, for every width and height from 1 to 200 cells, pixel
 * coordinates come back as they are, every pixel is covered, weights sum to 1
 * and the number of decodes is the planned one.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tilecase.h"

#if defined(__SANITIZE_ADDRESS__)
enum { SETS = 20, PAIRS = 10 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { SETS = 20, PAIRS = 10 };
#else
enum { SETS = 200, PAIRS = 200 };
#endif
#else
enum { SETS = 200, PAIRS = 200 };
#endif
enum { LONGEST = 200 };

static double worst(const vr_tensor *t, bool ones)
{
    const int64_t h = t->dim[2], w = t->dim[3];
    const float *v = t->data;
    double most = 0;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            double a = fabs((double)v[y * w + x] - (ones ? 1.0 : (double)y));
            double b = fabs((double)v[(h + y) * w + x] - (ones ? 1.0 : (double)x));
            if (!(a <= most)) /* NaN counts as wrong */
                most = isnan(a) ? INFINITY : a;
            if (!(b <= most))
                most = isnan(b) ? INFINITY : b;
        }
    return most;
}

static void check(const vr_program *p, const vr_tile_options *o, const tc_decoder *like, int64_t h, int64_t w, bool ones)
{
    char name[200];
    vr_error err = {VR_OK, ""};
    vr_tile_plan plan;
    vr_tensor out;
    tc_decoder d = *like;
    tc_name(o, h, w, name, sizeof name);
    cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 2, 1, h, w}, o, &plan, &err), VR_OK, "%s: %s", name, err.text);
    vr_tensor z = tc_coordinates(h, w);
    vr_status s = vr_tile_blend_run(&plan, &z, ones ? tc_decode_one : tc_decode_pixels, &d, &out, &err);
    cr_assert_eq(s, VR_OK, "%s: %s", name, err.text);
    cr_assert(out.dim[2] == h * d.scale_h && out.dim[3] == w * d.scale_w, "%s: size", name);
    const double e = worst(&out, ones), most = (double)(h * d.scale_h > w * d.scale_w ? h * d.scale_h : w * d.scale_w);
    /* sdcpp's f32 Horner loses two digits where terms of size 10 cancel (clause T7.5). */
    const double limit = o->mode == VR_TILE_SDCPP ? 4e-6 : 1e-6;
    cr_assert(e <= (ones ? limit : limit * most), "%s: %s off by %g", name, ones ? "sum of weights" : "coordinates", e);
    cr_assert_eq(d.calls, plan.tile_count, "%s: %lld decodes, %lld planned", name, (long long)d.calls,
                 (long long)plan.tile_count);
    vr_tensor_free(&z);
    vr_tensor_free(&out);
    vr_tile_plan_free(&plan);
}

/* Along one axis; the other is a single cell of one pixel. */
static void sweep(vr_tile_mode mode, bool rows)
{
    static const int64_t scales[] = {8, 4, 2, 8, 1, 16, 4, 2, 8, 3};
    tc_rng r = {(uint64_t)mode * 1000000 + (rows ? 500000U : 0U)};
    for (int k = 0; k < SETS; k++) {
        const int64_t scale = scales[k % 10];
        const tc_decoder d = {.scale_h = rows ? scale : 1, .scale_w = rows ? 1 : scale};
        vr_program *p = tc_upsampler(2, d.scale_h, d.scale_w);
        const vr_tile_options o = tc_options(&r, mode, d.scale_h, d.scale_w, tc_random(&r, 2, 1 + LONGEST * 3 / 4));
        for (int64_t n = 1; n <= LONGEST; n++)
            check(p, &o, &d, rows ? n : 1, rows ? 1 : n, (k + n) % 8 == 0);
        vr_program_free(p);
    }
}

static void pairs(vr_tile_mode mode)
{
    tc_rng r = {(uint64_t)mode * 1000000 + 900000};
    for (int k = 0; k < PAIRS; k++) {
        const int64_t large = k % 16 == 0;
        const tc_decoder d = {.scale_h = large ? 8 : tc_random(&r, 1, 3), .scale_w = large ? 8 : tc_random(&r, 1, 3)};
        const int64_t longest = large ? 40 : LONGEST, h = tc_random(&r, 1, longest), w = tc_random(&r, 1, longest);
        vr_program *p = tc_upsampler(2, d.scale_h, d.scale_w);
        const vr_tile_options o = tc_options(&r, mode, d.scale_h, d.scale_w, tc_random(&r, 8, 80));
        check(p, &o, &d, h, w, false);
        if (k % 4 == 0)
            check(p, &o, &d, h, w, true);
        vr_program_free(p);
    }
}

#define SCHEME(name, mode)                                                       \
    Test(tile_identity, name##_every_height, .timeout = 100) { sweep(mode, true); }  \
    Test(tile_identity, name##_every_width, .timeout = 100) { sweep(mode, false); }  \
    Test(tile_identity, name##_random_pairs, .timeout = 100) { pairs(mode); }
SCHEME(diffusers, VR_TILE_DIFFUSERS)
SCHEME(diffusers_stride, VR_TILE_DIFFUSERS_STRIDE)
SCHEME(diffusers_tiny, VR_TILE_DIFFUSERS_TINY)
SCHEME(comfy, VR_TILE_COMFY)
SCHEME(comfy_3pass, VR_TILE_COMFY_3PASS)
SCHEME(sdcpp, VR_TILE_SDCPP)

/* The same through a program and the executor: upsampling is one operation. */
Test(tile_identity, one_op_program_decodes_as_undivided, .timeout = 100)
{
    tc_rng r = {77};
    vr_program *p = tc_upsampler(2, 8, 8);
    for (int k = 0; k < 6 * PAIRS / 4; k++) {
        char name[200];
        vr_error err = {VR_OK, ""};
        const int64_t h = tc_random(&r, 1, 40), w = tc_random(&r, 1, 40);
        const vr_tile_options o = tc_options(&r, tc_blends[k % 6], 8, 8, 20);
        const vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .threads = 1};
        vr_tensor z = tc_coordinates(h, w), tiled, whole;
        vr_tile_plan plan;
        vr_tile_stats stats = {.tiles_done = 0};
        tc_name(&o, h, w, name, sizeof name);
        cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 2, 1, h, w}, &o, &plan, &err), VR_OK, "%s: %s", name, err.text);
        cr_assert_eq(vr_tile_decode(p, &z, &plan, &opt, &tiled, &stats, &err), VR_OK, "%s: %s", name, err.text);
        cr_assert_eq(vr_exec_run(p, &z, &opt, &whole, NULL, &err), VR_OK);
        cr_assert(tiled.dim[2] == 8 * h && tiled.dim[3] == 8 * w, "%s: size", name);
        for (int64_t i = 0; i < 2 * 64 * h * w; i++)
            cr_assert(fabsf(((float *)tiled.data)[i] - ((float *)whole.data)[i]) <= 1e-4F, "%s: element %lld", name,
                      (long long)i);
        cr_assert_eq(stats.tiles_done, plan.tile_count, "%s", name);
        cr_assert_eq((int64_t)stats.exec.pool.peak_bytes, plan.peak_bytes, "%s: peak %lld, predicted %lld", name,
                     (long long)stats.exec.pool.peak_bytes, (long long)plan.peak_bytes);
        vr_tensor_free(&z);
        vr_tensor_free(&tiled);
        vr_tensor_free(&whole);
        vr_tile_plan_free(&plan);
    }
    vr_program_free(p);
}
