/* Blending and decoding under plans: corners, field cases, memory, progress,
 * failure (clauses T1 to T7).
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tilecase.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static vr_tensor zeros(int64_t h, int64_t w)
{
    const int64_t dim[4] = {1, 1, h, w};
    vr_tensor t;
    if (vr_tensor_new(&t, VR_F32, 4, dim, NULL) != VR_OK)
        abort();
    memset(t.data, 0, (size_t)(h * w) * sizeof(float));
    return t;
}

/* Constant tiles of the given values, tile and overlap in pixels, scale 1. */
static vr_tensor greys(vr_tile_options o, int64_t size, const float *value)
{
    vr_program *p = tc_upsampler(1, 1, 1);
    tc_greys g = {{.scale_h = 1, .scale_w = 1}, value};
    vr_tensor z = zeros(size, size), out;
    vr_tile_plan plan;
    vr_error err = {VR_OK, ""};
    cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 1, 1, size, size}, &o, &plan, &err), VR_OK, "%s", err.text);
    cr_assert_eq(plan.grid[0].h.count * plan.grid[0].w.count, 4, "four tiles have values");
    cr_assert_eq(vr_tile_blend_run(&plan, &z, tc_decode_grey, &g, &out, &err), VR_OK, "%s", err.text);
    vr_tensor_free(&z);
    vr_tile_plan_free(&plan);
    vr_program_free(p);
    return out;
}

/* Weight of each of four tiles at one pixel, by lighting one at a time. */
static void corner(vr_tile_options o, int64_t size, int64_t y, int64_t x, double weight[4])
{
    for (int k = 0; k < 4; k++) {
        float value[4] = {0, 0, 0, 0};
        value[k] = 1;
        vr_tensor out = greys(o, size, value);
        weight[k] = (double)((float *)out.data)[y * size + x];
        vr_tensor_free(&out);
    }
}

/* Above-left, above, left, current. */
Test(tile_blend, diffusers_corner_weights_are_not_separable, .timeout = 20)
{
    const vr_tile_mode modes[] = {VR_TILE_DIFFUSERS, VR_TILE_DIFFUSERS_STRIDE};
    for (int m = 0; m < 2; m++)
        for (int a = 0; a < 4; a++)
            for (int b = 0; b < 4; b++) {
                const double v = a / 4.0, h = b / 4.0;
                const double want[4] = {(1 - v) * (1 - h) * (1 + h), h * h * (1 - v), (1 - h) * v, h * v};
                double got[4];
                corner((vr_tile_options){modes[m], 16, 16, 4, 4, 0, NULL, NULL}, 24, 12 + a, 12 + b, got);
                for (int k = 0; k < 4; k++)
                    cr_assert_float_eq(got[k], want[k], 1e-7, "v %g h %g: weight %d is %g, want %g", v, h, k, got[k], want[k]);
            }
    double got[4];
    const double known[4] = {.46875, .03125, .375, .125}; /* h = .25, v = .5 */
    corner((vr_tile_options){VR_TILE_DIFFUSERS, 16, 16, 4, 4, 0, NULL, NULL}, 24, 14, 13, got);
    for (int k = 0; k < 4; k++)
        cr_assert_float_eq(got[k], known[k], 1e-7, "weight %d is %g", k, got[k]);
}

/* Four greys 0, 1, 2, 4; overlap 2 gives comfy ramps of 1/3 and 2/3 (R04). */
Test(tile_blend, comfy_corner_is_bilinear, .timeout = 20)
{
    const float value[4] = {0, 1, 2, 4};
    const double want[4] = {10.0 / 9, 14.0 / 9, 17.0 / 9, 22.0 / 9}; /* 1.1111 1.5556 1.8889 2.4444 */
    vr_tensor out = greys((vr_tile_options){VR_TILE_COMFY, 8, 8, 2, 2, 0, NULL, NULL}, 14, value);
    for (int k = 0; k < 4; k++) {
        const double got = (double)((float *)out.data)[(6 + k / 2) * 14 + 6 + k % 2];
        cr_assert_float_eq(got, want[k], 1e-6, "corner %d is %g, want %g", k, got, want[k]);
    }
    vr_tensor_free(&out);
}

/* Products of the two axes' masks, each over (overlap - 1). */
Test(tile_blend, tiny_corner_overwrites_with_the_product_mask, .timeout = 20)
{
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
            const double v = a / 3.0, h = b / 3.0;
            const double want[4] = {(1 - v * h) * (1 - v) * (1 - h), (1 - v * h) * (1 - v) * h, (1 - v * h) * v, v * h};
            double got[4];
            corner((vr_tile_options){VR_TILE_DIFFUSERS_TINY, 16, 16, 4, 4, 0, NULL, NULL}, 24, 12 + a, 12 + b, got);
            for (int k = 0; k < 4; k++)
                cr_assert_float_eq(got[k], want[k], 1e-6, "v %g h %g: weight %d is %g, want %g", v, h, k, got[k], want[k]);
        }
}

/* The grey of every corner pixel lies between the tiles' greys and the weights sum to 1. */
Test(tile_blend, sdcpp_corner_is_the_product_of_smoothersteps, .timeout = 20)
{
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
            const double v = a / 4.0, h = b / 4.0;
            const double wv = v * v * v * (v * (6 * v - 15) + 10), wh = h * h * h * (h * (6 * h - 15) + 10);
            const double want[4] = {(1 - wv) * (1 - wh), (1 - wv) * wh, wv * (1 - wh), wv * wh};
            double got[4];
            corner((vr_tile_options){VR_TILE_SDCPP, 8, 8, 4, 4, 0, NULL, NULL}, 12, 4 + a, 4 + b, got);
            for (int k = 0; k < 4; k++)
                cr_assert_float_eq(got[k], want[k], 1e-6, "v %g h %g: weight %d is %g, want %g", v, h, k, got[k], want[k]);
        }
}

/* ---- field cases ------------------------------------------------------------------ */

typedef struct field_case {
    const char *id;
    vr_tile_mode mode;
    int64_t tile, overlap, h, w; /* cells of 8 pixels */
} field_case;

Test(tile_blend, field_cases_come_out_whole, .timeout = 30)
{
    static const field_case table[] = {
        {"A01", VR_TILE_DIFFUSERS, 8, 2, 13, 1}, {"A01", VR_TILE_DIFFUSERS_STRIDE, 8, 2, 13, 1},
        {"A02c", VR_TILE_COMFY, 4, 0, 10, 10}, {"A02c", VR_TILE_DIFFUSERS, 4, 0, 10, 10}, {"A02c", VR_TILE_SDCPP, 4, 0, 10, 10},
        {"A02c", VR_TILE_DIFFUSERS_STRIDE, 4, 0, 10, 10}, {"A02c", VR_TILE_COMFY_3PASS, 4, 0, 10, 10},
        {"A02e", VR_TILE_COMFY, 16, 0, 10, 10}, {"A02e", VR_TILE_DIFFUSERS, 16, 0, 10, 10}, {"A02e", VR_TILE_SDCPP, 16, 0, 10, 10},
        {"A07", VR_TILE_SDCPP, 32, 8, 64, 65}, {"A07", VR_TILE_SDCPP, 32, 8, 65, 64}, {"A07", VR_TILE_SDCPP, 32, 8, 1, 65},
        {"A07", VR_TILE_DIFFUSERS, 32, 8, 33, 33}, {"A07", VR_TILE_COMFY, 32, 8, 65, 64}, {"A07", VR_TILE_DIFFUSERS_TINY, 32, 8, 1, 65},
        {"R01", VR_TILE_DIFFUSERS, 8, 2, 9, 1}, {"R01", VR_TILE_DIFFUSERS, 8, 2, 13, 9}, {"R01", VR_TILE_DIFFUSERS, 8, 2, 14, 20},
        {"R01", VR_TILE_DIFFUSERS, 8, 2, 15, 13}, {"R01", VR_TILE_DIFFUSERS, 8, 2, 20, 14}, {"R01", VR_TILE_DIFFUSERS, 8, 2, 1, 9},
        {"R01", VR_TILE_DIFFUSERS_STRIDE, 8, 2, 20, 13}, {"R01", VR_TILE_DIFFUSERS_TINY, 8, 2, 15, 13},
        {"R02", VR_TILE_COMFY, 8, 6, 12, 12}, {"R02", VR_TILE_DIFFUSERS, 8, 6, 12, 12}, {"R02", VR_TILE_DIFFUSERS_TINY, 8, 6, 12, 12},
        {"R05", VR_TILE_COMFY, 8, 2, 14, 15}, {"R05", VR_TILE_DIFFUSERS, 8, 2, 14, 15},
        {"R09", VR_TILE_SDCPP, 32, 16, 115, 172}, {"R09", VR_TILE_DIFFUSERS, 32, 8, 3, 200}, {"R09", VR_TILE_COMFY, 32, 8, 1, 1},
    };
    vr_program *p = tc_upsampler(2, 8, 8);
    for (int k = 0; k < COUNT(table); k++) {
        const field_case *c = &table[k];
        const vr_tile_options o = {c->mode, 8 * c->tile, 8 * c->tile, 8 * c->overlap, 8 * c->overlap, 0, NULL, NULL};
        tc_decoder d = {.scale_h = 8, .scale_w = 8};
        vr_error err = {VR_OK, ""};
        vr_tile_plan plan;
        vr_tensor z = tc_coordinates(c->h, c->w), out;
        char name[200];
        tc_name(&o, c->h, c->w, name, sizeof name);
        cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 2, 1, c->h, c->w}, &o, &plan, &err), VR_OK, "%s %s: %s", c->id, name, err.text);
        cr_assert_eq(vr_tile_blend_run(&plan, &z, tc_decode_pixels, &d, &out, &err), VR_OK, "%s %s: %s", c->id, name, err.text);
        cr_assert(out.dim[2] == 8 * c->h && out.dim[3] == 8 * c->w, "%s %s: size", c->id, name);
        for (int64_t i = 0; i < out.dim[2] * out.dim[3]; i++) {
            const float *v = out.data;
            const double dy = fabs((double)v[i] - (double)(i / out.dim[3]));
            const double dx = fabs((double)v[out.dim[2] * out.dim[3] + i] - (double)(i % out.dim[3]));
            const double limit = c->mode == VR_TILE_SDCPP ? 6e-3 : 2e-3; /* of up to 1600; clause T7.5 */
            cr_assert(dy <= limit && dx <= limit, "%s %s: pixel %lld off by %g, %g", c->id, name, (long long)i, dy, dx);
        }
        cr_assert_eq(d.calls, plan.tile_count, "%s %s: %lld tiles announced, %lld decoded", c->id, name, (long long)plan.tile_count,
                     (long long)d.calls);
        vr_tensor_free(&z);
        vr_tensor_free(&out);
        vr_tile_plan_free(&plan);
    }
    vr_program_free(p);
}

/* ---- decoding ----------------------------------------------------------------------- */

static const vr_exec_options single = {.policy = VR_POLICY_GOLDEN, .threads = 1};

typedef struct fixture {
    vr_program *p;
    float *weights;
    vr_tensor z;
    vr_shape shape;
} fixture;

static fixture fixture_new(int64_t n, int64_t h, int64_t w)
{
    fixture f = {.shape = {n, 2, 1, h, w}};
    f.p = tc_convolver(31, 2, 4, &f.weights);
    const int64_t dim[4] = {n, 2, h, w};
    if (vr_tensor_new(&f.z, VR_F32, 4, dim, NULL) != VR_OK)
        abort();
    for (int64_t k = 0; k < n * 2 * h * w; k++)
        ((float *)f.z.data)[k] = tc_noise(1, k);
    return f;
}

static void fixture_free(fixture *f)
{
    vr_program_free(f->p);
    free(f->weights);
    vr_tensor_free(&f->z);
}

static bool same_bytes(const vr_tensor *a, const vr_tensor *b)
{
    int64_t n = 0;
    vr_tensor_count(a, &n, NULL);
    return a->rank == b->rank && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) &&
           !memcmp(a->data, b->data, (size_t)n * vr_dtype_size(a->dtype));
}

/* A04: one tile is the undivided decode, bit for bit, and the plan says one. */
Test(tile_blend, a_picture_within_one_tile_is_the_undivided_decode, .timeout = 30)
{
    static const int64_t sizes[][2] = {{1, 1}, {1, 8}, {7, 7}, {8, 8}};
    for (int k = 0; k < 7 * COUNT(sizes); k++) {
        fixture f = fixture_new(1, sizes[k % 4][0], sizes[k % 4][1]);
        const vr_tile_mode m = k / 4 < 6 ? tc_blends[k / 4] : VR_TILE_NONE;
        const int64_t tile = m == VR_TILE_COMFY_3PASS ? 64 : 32; /* its narrowest pass has half */
        const vr_tile_options o = {m, tile, tile, 8, 8, 0, NULL, NULL};
        vr_error err = {VR_OK, ""};
        vr_tile_plan plan;
        vr_tensor whole, tiled;
        vr_tile_stats stats = {.tiles_done = 0};
        cr_assert_eq(vr_tile_plan_make(f.p, f.shape, &o, &plan, &err), VR_OK, "%s", err.text);
        cr_assert_eq(plan.tile_count, 1, "%s", vr_tile_mode_name(m));
        cr_assert_eq(vr_exec_run(f.p, &f.z, &single, &whole, NULL, &err), VR_OK);
        cr_assert_eq(vr_tile_decode(f.p, &f.z, &plan, &single, &tiled, &stats, &err), VR_OK, "%s", err.text);
        cr_assert(same_bytes(&whole, &tiled), "%s differs from none", vr_tile_mode_name(m));
        cr_assert(stats.tiles_done == 1 && (int64_t)stats.exec.pool.peak_bytes == plan.peak_bytes);
        vr_tensor_free(&whole);
        vr_tensor_free(&tiled);
        vr_tile_plan_free(&plan);
        fixture_free(&f);
    }
}

typedef struct watcher {
    int64_t calls, last, total, stop_after;
} watcher;

static bool watch(void *ctx, int64_t done, int64_t total)
{
    watcher *w = ctx;
    cr_assert(done > w->last && done <= total, "%lld after %lld of %lld", (long long)done, (long long)w->last, (long long)total);
    w->calls++;
    w->last = done;
    w->total = total;
    return !w->stop_after || w->calls < w->stop_after;
}

Test(tile_blend, progress_ends_at_the_planned_work_and_peak_is_the_predicted, .timeout = 30)
{
    for (int m = 0; m < 6; m++) {
        fixture f = fixture_new(2, 13, 21);
        const vr_tile_options o = {tc_blends[m], 32, 32, 8, 8, 0, NULL, NULL};
        double seconds[8] = {0};
        watcher w = {0, 0, 0, 0};
        vr_error err = {VR_OK, ""};
        vr_tile_plan plan;
        vr_tensor out;
        vr_tile_stats stats = {.exec = {.op_seconds = seconds}};
        vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .threads = 1, .on_progress = watch, .ctx = &w};
        cr_assert_eq(vr_tile_plan_make(f.p, f.shape, &o, &plan, &err), VR_OK, "%s", err.text);
        opt.memory_limit = (uint64_t)plan.peak_bytes;
        cr_assert_eq(vr_tile_decode(f.p, &f.z, &plan, &opt, &out, &stats, &err), VR_OK, "%s", err.text);
        cr_assert(w.last == plan.macs && w.total == plan.macs, "%s: %lld of %lld", vr_tile_mode_name(o.mode), (long long)w.last,
                  (long long)plan.macs);
        cr_assert_eq(stats.tiles_done, plan.tile_count);
        cr_assert_eq((int64_t)stats.exec.pool.peak_bytes, plan.peak_bytes, "%s: peak %lld, predicted %lld",
                     vr_tile_mode_name(o.mode), (long long)stats.exec.pool.peak_bytes, (long long)plan.peak_bytes);
        cr_assert(seconds[1] > 0 && stats.exec.op_seconds == seconds && stats.exec.nonfinite.op == -1);
        vr_tensor_free(&out);

        opt.on_progress = NULL;
        opt.memory_limit = (uint64_t)plan.peak_bytes - 1;
        cr_assert_eq(vr_tile_decode(f.p, &f.z, &plan, &opt, &out, NULL, &err), VR_E_BUDGET, "%s", vr_tile_mode_name(o.mode));
        cr_assert_null(out.data);
        opt.memory_limit = 64;
        cr_assert_eq(vr_tile_decode(f.p, &f.z, &plan, &opt, &out, NULL, &err), VR_E_BUDGET);
        cr_assert(strstr(err.text, "picture alone") != NULL, "%s", err.text);

        opt.memory_limit = 0;
        opt.on_progress = watch;
        w = (watcher){0, 0, 0, 3}; /* two convolutions a tile: stops in the second tile */
        cr_assert_eq(vr_tile_decode(f.p, &f.z, &plan, &opt, &out, NULL, &err), VR_E_CANCELLED);
        cr_assert(out.data == NULL && strstr(err.text, "tile 2 of") != NULL, "%s", err.text);
        vr_tile_plan_free(&plan);
        fixture_free(&f);
    }
}

/* Batch, 16-bit latents and f64 policy go through the same blend. */
Test(tile_blend, batches_and_policies, .timeout = 30)
{
    fixture f = fixture_new(2, 13, 21);
    const int64_t half = 2 * 13 * 21;
    for (int m = 0; m < 6; m++) {
        const vr_tile_options o = {tc_blends[m], 32, 32, 8, 8, 0, NULL, NULL};
        vr_error err = {VR_OK, ""};
        vr_tile_plan plan, one;
        vr_tensor out, second, exact, z = f.z;
        cr_assert_eq(vr_tile_plan_make(f.p, f.shape, &o, &plan, &err), VR_OK, "%s", err.text);
        cr_assert_eq(vr_tile_decode(f.p, &f.z, &plan, &single, &out, NULL, &err), VR_OK, "%s", err.text);
        z.dim[0] = 1;
        z.data = (float *)f.z.data + half;
        cr_assert_eq(vr_tile_decode(f.p, &z, &plan, &single, &second, NULL, &err), VR_E_SHAPE); /* a plan of another shape */
        cr_assert_eq(vr_tile_plan_make(f.p, (vr_shape){1, 2, 1, 13, 21}, &o, &one, &err), VR_OK);
        cr_assert_eq(vr_tile_decode(f.p, &z, &one, &single, &second, NULL, &err), VR_OK);
        cr_assert_eq(memcmp((float *)out.data + half * 16, second.data, (size_t)half * 16 * sizeof(float)), 0,
                     "%s: a picture depends on its batch", vr_tile_mode_name(o.mode));
        const vr_exec_options truth = {.policy = VR_POLICY_TRUTH, .threads = 1};
        cr_assert_eq(vr_tile_decode(f.p, &f.z, &plan, &truth, &exact, NULL, &err), VR_OK, "%s", err.text);
        cr_assert_eq(exact.dtype, VR_F32);
        for (int64_t k = 0; k < 32 * half; k++)
            cr_assert_float_eq(((float *)exact.data)[k], ((float *)out.data)[k], 1e-5F);
        vr_tensor_free(&exact);
        vr_tensor_free(&out);
        vr_tensor_free(&second);
        vr_tile_plan_free(&one);
        vr_tile_plan_free(&plan);
    }
    fixture_free(&f);
}

/* Away from the joins a tile has all the context the program needs. */
Test(tile_blend, tiled_differs_from_undivided_near_joins_only, .timeout = 30)
{
    fixture f = fixture_new(1, 24, 8);
    const vr_tile_options o = {VR_TILE_DIFFUSERS, 48, 48, 16, 16, 0, NULL, NULL}; /* 12 cells, step 8 */
    vr_error err = {VR_OK, ""};
    vr_tile_plan plan;
    vr_tensor whole, tiled;
    int different = 0;
    cr_assert_eq(vr_tile_plan_make(f.p, f.shape, &o, &plan, &err), VR_OK, "%s", err.text);
    cr_assert_eq(vr_exec_run(f.p, &f.z, &single, &whole, NULL, &err), VR_OK);
    cr_assert_eq(vr_tile_decode(f.p, &f.z, &plan, &single, &tiled, NULL, &err), VR_OK, "%s", err.text);
    cr_assert_eq(plan.grid[0].w.count, 1);
    for (int64_t k = 0; k < 2 * 96 * 32; k++) {
        const int64_t y = k / 32 % 96;
        const bool joined = (y >= 32 && y < 48) || (y >= 64 && y < 80); /* overlap */
        const bool same = ((float *)whole.data)[k] == ((float *)tiled.data)[k];
        cr_assert(joined || same, "row %lld is outside every overlap", (long long)y);
        different += !same;
    }
    cr_assert_neq(different, 0, "blending border-affected pixels cannot be exact");
    vr_tensor_free(&whole);
    vr_tensor_free(&tiled);
    vr_tile_plan_free(&plan);
    fixture_free(&f);
}

Test(tile_blend, a_failing_tile_ends_the_run_and_leaves_nothing, .timeout = 30)
{
    vr_program *p = tc_upsampler(2, 8, 8);
    for (int m = 0; m < 6; m++)
        for (int64_t at = 1; at <= 3; at++) {
            const vr_tile_options o = {tc_blends[m], 64, 64, 16, 16, 0, NULL, NULL};
            tc_decoder d = {.scale_h = 8, .scale_w = 8, .fail_at = at};
            vr_error err = {VR_OK, ""};
            vr_tile_plan plan;
            vr_tensor z = tc_coordinates(20, 20), out;
            cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 2, 1, 20, 20}, &o, &plan, &err), VR_OK, "%s", err.text);
            cr_assert_eq(vr_tile_blend_run(&plan, &z, tc_decode_pixels, &d, &out, &err), VR_E_CANCELLED);
            cr_assert(out.data == NULL && d.calls == at);
            d = (tc_decoder){.scale_h = 4, .scale_w = 8}; /* a decoder that does not fit the plan */
            cr_assert_eq(vr_tile_blend_run(&plan, &z, tc_decode_pixels, &d, &out, &err), VR_E_SHAPE);
            cr_assert(strstr(err.text, "the tile decoder made") != NULL, "%s", err.text);
            vr_tensor_free(&z);
            vr_tile_plan_free(&plan);
        }
    vr_program_free(p);
}
