/* Tile mode auto (clause T11): covers at the least cost, within the limit, and as exact
 * on coordinates as every other scheme.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tilecase.h"
#include "vaeref/costs.h"
#include "vaeref/model.h"

/* ---- covers --------------------------------------------------------------------- */

Test(tile_auto, published_cover_costs)
{
    static const int64_t size[] = {32, 48, 64, 96};
    static const double cost[] = {1.3, 1.7, 2.2, 3.9};
    static const struct {
        int64_t length;
        double value;
        int64_t count[4];
    } want[] = {{40, 1.70, {0, 1, 0, 0}}, {80, 3.40, {0, 2, 0, 0}}, {100, 3.90, {0, 1, 1, 0}}, {200, 7.80, {0, 2, 2, 0}},
                {256, 10.00, {-1, 0, 0, 0}}};
    vr_cover c;
    vr_error err = {VR_OK, ""};
    cr_assert_eq(vr_cover_build(size, cost, 4, 8, 256, &c, &err), VR_OK, "%s", err.text);
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        int64_t got[4];
        cr_assert_float_eq(c.value[want[k].length], want[k].value, 1e-12, "length %lld: %g", (long long)want[k].length,
                           c.value[want[k].length]);
        cr_assert(vr_cover_read(&c, size, 4, want[k].length, got));
        for (int i = 0; want[k].count[0] >= 0 && i < 4; i++)
            cr_assert_eq(got[i], want[k].count[i], "length %lld", (long long)want[k].length);
    }
    vr_cover_free(&c);
}

/* Every way to cover, tried. */
static double brute(const int64_t *size, const double *cost, int n, int64_t overlap, int64_t length)
{
    double best = INFINITY;
    for (int k = 0; k < n; k++) {
        if (size[k] <= overlap && size[k] < length)
            continue;
        const double v = size[k] >= length ? cost[k] : cost[k] + brute(size, cost, n, overlap, length - size[k] + overlap);
        best = v < best ? v : best;
    }
    return best;
}

Test(tile_auto, covers_are_optimal)
{
    tc_rng r = {5};
    for (int set = 0; set < 200; set++) {
        int64_t size[4], at = 1, count[4];
        double cost[4];
        const int n = (int)tc_random(&r, 1, 4);
        const int64_t overlap = tc_random(&r, 0, 3);
        for (int k = 0; k < n; k++) {
            at += tc_random(&r, 1, 4);
            size[k] = at;
            cost[k] = tc_random(&r, 0, 5) ? (double)tc_random(&r, 1, 100) : INFINITY;
        }
        vr_cover c;
        vr_error err = {VR_OK, ""};
        cr_assert_eq(vr_cover_build(size, cost, n, overlap, 20, &c, &err), VR_OK);
        for (int64_t length = 1; length <= 20; length++) {
            const double want = brute(size, cost, n, overlap, length);
            cr_assert(c.value[length] == want || fabs(c.value[length] - want) < 1e-9, "set %d length %lld", set, (long long)length);
            const bool covered = vr_cover_read(&c, size, n, length, count);
            cr_assert_eq(covered, isfinite(want), "set %d length %lld", set, (long long)length);
            int64_t reach = overlap;
            for (int k = 0; covered && k < n; k++)
                reach += count[k] * (size[k] - overlap);
            cr_assert(!covered || reach >= length, "set %d: covers %lld of %lld", set, (long long)reach, (long long)length);
        }
        vr_cover_free(&c);
    }
}

/* ---- plans ------------------------------------------------------------------------ */

static vr_tile_costs random_costs(tc_rng *r, int64_t most)
{
    vr_tile_costs c = {.measured = true};
    int64_t at = tc_random(r, 1, 3);
    while (c.count < 6 && at <= most) {
        c.size[c.count++] = at;
        at += tc_random(r, 1, 12);
    }
    for (int i = 0; i < c.count; i++)
        for (int j = 0; j < c.count; j++)
            c.cost[i][j] = (double)tc_random(r, 1, 1000) * 1e-6;
    return c;
}

Test(tile_auto, coordinates_come_back, .timeout = 200)
{
    tc_rng r = {99};
    int tiled = 0, tried = 0;
    for (int set = 0; set < 200; set++) {
        const int64_t scale = (int64_t[]){8, 4, 1, 2, 3}[set % 5];
        vr_program *p = tc_upsampler(2, scale, scale);
        const vr_tile_costs costs = random_costs(&r, 60);
        const int64_t overlap = tc_random(&r, 0, costs.size[costs.count - 1] / 2);
        const vr_tile_options o = {.mode = VR_TILE_AUTO, .overlap_h = overlap * scale, .overlap_w = overlap * scale, .costs = &costs};
        for (int64_t k = 0; k < 12; k++) {
            const int64_t n = (set * 12 + k) % 200 + 1, m = set % 3 ? 1 : tc_random(&r, 1, 40);
            const int64_t h = set % 2 ? n : m, w = set % 2 ? m : n;
            vr_error err = {VR_OK, ""};
            vr_tile_plan plan;
            tried++;
            if (vr_tile_plan_make(p, (vr_shape){1, 2, 1, h, w}, &o, &plan, &err) != VR_OK)
                continue; /* tiles of at most half the overlap: refused */
            tiled += plan.tile_count > 1;
            for (int ones = 0; ones < 2; ones++) {
                tc_decoder d = {.scale_h = scale, .scale_w = scale};
                vr_tensor z = tc_coordinates(h, w), out;
                cr_assert_eq(vr_tile_blend_run(&plan, &z, ones ? tc_decode_one : tc_decode_pixels, &d, &out, &err), VR_OK, "%s", err.text);
                cr_assert(out.dim[2] == h * scale && out.dim[3] == w * scale);
                for (int64_t y = 0; y < out.dim[2]; y++)
                    for (int64_t x = 0; x < out.dim[3]; x++) {
                        const double got = (double)((float *)out.data)[y * out.dim[3] + x];
                        const double want = ones ? 1.0 : (double)y;
                        cr_assert(fabs(got - want) <= 1e-6 * (ones ? 1.0 : (double)out.dim[2]), "set %d %lldx%lld at %lld,%lld: %g", set,
                                  (long long)h, (long long)w, (long long)y, (long long)x, got);
                    }
                cr_assert_eq(d.calls, plan.tile_count);
                vr_tensor_free(&z);
                vr_tensor_free(&out);
            }
            vr_tile_plan_free(&plan);
        }
        vr_program_free(p);
    }
    cr_assert(tried > 2000 && tiled > tried / 4, "%d of %d plans have tiles", tiled, tried);
}

Test(tile_auto, obeys_the_limit_and_says_why)
{
    vr_error err = {VR_OK, ""};
    vr_model *m = NULL;
    vr_tensor z, whole, out;
    cr_assert_eq(vr_model_open("synth:sd15,div=16", NULL, &m, &err), VR_OK, "%s", err.text);
    cr_assert_eq(vr_model_latents(m, 1, 1, 40, 33, &z, &err), VR_OK);
    cr_assert_eq(vr_exec_run(m->program, &z, NULL, &whole, NULL, &err), VR_OK);
    const vr_shape l = {1, 4, 1, 40, 33};
    int64_t before = 0, tiles = 0;
    for (uint64_t limit = 0; limit != 1; limit = limit == 0 ? 9000000 : limit > 4200000 ? limit - 1000000 : 1) {
        vr_tile_options o = {.mode = VR_TILE_AUTO, .overlap_h = 32, .overlap_w = 32, .memory_limit = limit};
        vr_tile_plan plan;
        vr_tile_stats st = {.tiles_done = 0};
        vr_auto_report r;
        const vr_exec_options opt = {.memory_limit = limit};
        cr_assert_eq(vr_tile_plan_make(m->program, l, &o, &plan, &err), VR_OK, "limit %llu: %s", (unsigned long long)limit, err.text);
        cr_assert_eq(vr_auto_explain(m->program, l, &plan.options, &r, &err), VR_OK);
        cr_assert_eq(r.undivided_chosen, plan.tile_count == 1);
        cr_assert(plan.tile_count >= before, "a smaller limit gives fewer tiles");
        before = plan.tile_count;
        cr_assert(!limit || (uint64_t)plan.peak_bytes <= limit, "plans %lld under %llu", (long long)plan.peak_bytes, (unsigned long long)limit);
        cr_assert(isinf(r.uniform_cost) || r.undivided_chosen || r.cover_cost <= r.uniform_cost * (1 + 1e-12), "a uniform tiling is cheaper");
        cr_assert_eq(vr_tile_decode(m->program, &z, &plan, &opt, &out, &st, &err), VR_OK, "%s", err.text);
        cr_assert_eq((int64_t)st.exec.pool.peak_bytes, plan.peak_bytes);
        if (plan.tile_count == 1)
            cr_assert_eq(memcmp(out.data, whole.data, (size_t)(3 * 320 * 264) * 4), 0, "one tile is the undivided decode");
        tiles = plan.tile_count;
        vr_tensor_free(&out);
        vr_tile_plan_free(&plan);
    }
    cr_assert_gt(tiles, 1);
    vr_tile_plan plan;
    const vr_tile_options small = {.mode = VR_TILE_AUTO, .overlap_h = 32, .overlap_w = 32, .memory_limit = 1000};
    cr_assert_eq(vr_tile_plan_make(m->program, l, &small, &plan, &err), VR_E_BUDGET);
    cr_assert(strstr(err.text, "smallest needs"), "%s", err.text);
    const vr_tile_options sized = {.mode = VR_TILE_AUTO, .tile_h = 64, .tile_w = 64, .overlap_h = -1, .overlap_w = -1};
    cr_assert_eq(vr_tile_plan_make(m->program, l, &sized, &plan, &err), VR_E_RANGE);
    cr_assert(strstr(err.text, "leave the tile out"), "%s", err.text);
    const vr_tile_options odd = {.mode = VR_TILE_AUTO, .overlap_h = 30, .overlap_w = 30};
    cr_assert_eq(vr_tile_plan_make(m->program, l, &odd, &plan, &err), VR_E_RANGE);
    cr_assert(strstr(err.text, "such as 32"), "%s", err.text);
    vr_tensor_free(&whole);
    vr_tensor_free(&z);
    vr_model_close(m);
}

/* ---- files ------------------------------------------------------------------------ */

#define TABLE(schema, sizes, seconds, more)                                                                              \
    "{\"schema\": \"" schema "\", \"arch\": \"sd15\", \"weights_sha256\": \"ab\", \"machine\": \"m\", \"isa\": \"v4\", \"policy\": " \
    "\"golden\", \"threads\": 2, \"rounds\": 1, \"sizes\": " sizes ", \"seconds\": " seconds more "}"
#define V1 "vaeproof-tile-costs/1"

Test(tile_auto, cost_files)
{
    static const struct {
        const char *text, *want;
    } bad[] = {
        {"", "1:"}, {"[]", "object"}, {"{}", "schema"}, {TABLE("vaeproof-tile-costs/2", "[4]", "[[1.0]]", ""), V1},
        {TABLE(V1, "[]", "[]", ""), "1 to 16"}, {TABLE(V1, "[4, 4]", "[[1.0, 1.0], [1.0, 1.0]]", ""), "ascending"},
        {TABLE(V1, "[0]", "[[1.0]]", ""), "ascending"}, {TABLE(V1, "[4.5]", "[[1.0]]", ""), "whole numbers"},
        {TABLE(V1, "[4]", "[[0.0]]", ""), "positive"}, {TABLE(V1, "[4]", "[[-1]]", ""), "positive"},
        {TABLE(V1, "[4]", "[[\"1\"]]", ""), "positive"}, {TABLE(V1, "[4]", "[[1.0, 2.0]]", ""), "positive"},
        {TABLE(V1, "[4, 8]", "[[1.0, 2.0]]", ""), "one row for each"}, {TABLE(V1, "[4]", "[[1e999]]", ""), ""},
        {TABLE(V1, "[4]", "[[NaN]]", ""), ""}, {TABLE(V1, "[4]", "[[1.0]]", ", \"more\": 1"), "no such key"},
        {TABLE(V1, "[4]", "[[1.0]]", ", \"arch\": \"x\""), "duplicate"}, {TABLE(V1, "[70000]", "[[1.0]]", ""), "65536"},
        {"{\"schema\": \"" V1 "\"}", "arch"}, {"{\"schema\": \"" V1 "\", \"arch\": 3}", "a text"},
        {"{\"schema\": \"" V1 "\", \"arch\": \"a\", \"weights_sha256\": \"\", \"machine\": \"\", \"isa\": \"\", \"policy\": \"\", \"threads\": 0}",
         "threads"}};
    char path[] = "/tmp/costs-XXXXXX";
    const int fd = mkstemp(path);
    vr_error err = {VR_OK, ""};
    vr_tile_costs c, again;
    cr_assert_geq(fd, 0);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cr_assert_eq(ftruncate(fd, 0), 0);
        cr_assert_eq(pwrite(fd, bad[k].text, strlen(bad[k].text), 0), (ssize_t)strlen(bad[k].text));
        cr_assert_eq(vr_tile_costs_read(path, &c, &err), VR_E_FORMAT, "row %zu is accepted", k);
        cr_assert(strstr(err.text, bad[k].want) && strstr(err.text, path), "row %zu: '%s'", k, err.text);
    }
    tc_rng r = {1};
    c = random_costs(&r, 60);
    snprintf(c.arch, sizeof c.arch, "sd15");
    c.threads = c.rounds = 1;
    cr_assert_eq(vr_tile_costs_write(path, &c, &err), VR_OK, "%s", err.text);
    cr_assert_eq(vr_tile_costs_read(path, &again, &err), VR_OK, "%s", err.text);
    cr_assert_eq(again.count, c.count);
    for (int i = 0; i < c.count; i++)
        for (int j = 0; j < c.count; j++)
            cr_assert_float_eq(again.cost[i][j], c.cost[i][j], 1e-15);
    close(fd);
    unlink(path);
    cr_assert_eq(vr_tile_costs_read(path, &c, &err), VR_E_IO);
}
