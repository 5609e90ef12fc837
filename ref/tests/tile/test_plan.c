/* Plans: what is refused and how, how many tiles, where, and what they cost
 * (clauses T1 to T8).
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tilecase.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static vr_status make(const vr_tile_options *o, int64_t h, int64_t w, vr_tile_plan *plan, vr_error *err)
{
    vr_program *p = tc_upsampler(1, 8, 8);
    vr_status s = vr_tile_plan_make(p, (vr_shape){1, 1, 1, h, w}, o, plan, err);
    vr_program_free(p);
    return s;
}

static vr_tile_options square(vr_tile_mode mode, int64_t tile, int64_t overlap)
{
    return (vr_tile_options){mode, tile, tile, overlap, overlap, 0, NULL, NULL};
}

typedef struct refusal {
    vr_tile_mode mode;
    int64_t tile, overlap;
    const char *says[4];
} refusal;

/* Latent 10x10 unless the numbers say otherwise: refusals do not depend on it. */
Test(tile_plan, parameters_the_formulas_get_wrong_are_refused_with_numbers_and_remedy, .timeout = 20)
{
    static const refusal table[] = {
        /* tl = 30, f = .25: step 22 cells = 176 pixels, keep 180 */
        {VR_TILE_DIFFUSERS, 240, -1, {"overlap 60 of tile 240", "start every 176", "180", "56 or 64"}},
        {VR_TILE_DIFFUSERS_STRIDE, 240, 60, {"overlap 60 of tile 240", "start every 176", "180", "56 or 64"}},
        /* min 128, stride 192 */
        {VR_TILE_DIFFUSERS_STRIDE, 128, -64, {"overlap -64 of tile 128", "stride would pass the tile", "0 to 120", ""}},
        {VR_TILE_DIFFUSERS, 64, 21, {"overlap 21 of tile 64", "16 or 24", "", ""}}, /* A01's variant: third of 8 cells */
        /* A02, in pixels at 8 a cell */
        {VR_TILE_COMFY, 32, 32, {"overlap 32 of tile 32", "never advance", "at most 24", "at least 40"}},
        {VR_TILE_COMFY, 32, 48, {"overlap 48 of tile 32", "never advance", "at most 24", "at least 56"}},
        {VR_TILE_COMFY_3PASS, 64, 32, {"overlap 32 of tile 64", "halved", "at most 24", "at least 80"}},
        {VR_TILE_COMFY_3PASS, 256, 128, {"overlap 128 of tile 256", "halved", "at most 120", "at least 272"}}, /* R02 */
        {VR_TILE_COMFY_3PASS, 8, -1, {"overlap 0 of tile 8", "halved", "at least 16", ""}},
        {VR_TILE_COMFY, 64, 64, {"at most 56", "at least 72", "", ""}}, /* R02: 8/8 and 8/9 */
        {VR_TILE_COMFY, 64, 72, {"at most 56", "at least 80", "", ""}},
        {VR_TILE_COMFY, 64, -8, {"overlap -8 of tile 64", "negative", "0 to 56", ""}},
        {VR_TILE_SDCPP, 256, 136, {"overlap 136 of tile 256", "half", "at most 128", "at least 272"}},
        {VR_TILE_SDCPP, 72, 40, {"overlap 40 of tile 72", "half", "at most 32", "at least 80"}}, /* odd in cells */
        {VR_TILE_SDCPP, 256, 256, {"never advance", "at most 128", "", ""}},
        {VR_TILE_SDCPP, 24, -1, {"tile height 24", "too small", "at least 32", ""}},
        {VR_TILE_DIFFUSERS_TINY, 64, 0, {"overlap 0 of tile 64", "ramp", "8 to 56", ""}},
        {VR_TILE_DIFFUSERS_TINY, 56, -1, {"overlap 0 of tile 56", "ramp", "8 to 48", ""}}, /* its own eighth */
        {VR_TILE_DIFFUSERS_TINY, 64, 4, {"overlap 4 of tile 64", "ramp", "8 to 56", ""}},
        {VR_TILE_DIFFUSERS_TINY, 64, 12, {"overlap 12 of tile 64", "8 or 16", "", ""}},
        {VR_TILE_COMFY, 64, 20, {"overlap 20 of tile 64", "16 or 24", "", ""}},
        {VR_TILE_DIFFUSERS, 4, -1, {"tile height 4", "too small", "at least 8", ""}},
        {VR_TILE_EXACT, 7, -1, {"tile height 7", "too small", "at least 8", ""}},
        {VR_TILE_DIFFUSERS, -64, -1, {"tile height -64", "negative", "at least 8", ""}},
        {VR_TILE_SDCPP, 100, -1, {"tile height 100", "96 and 104", "", ""}},
        {VR_TILE_DIFFUSERS, 9, 0, {"tile height 9", "8 and 16", "", ""}},
        {VR_TILE_COMFY, (int64_t)1 << 40, 0, {"too large", "1073741824", "", ""}},
        {VR_TILE_TWO_PASS, 256, 64, {"overlap 64", "does not blend", "88", "leave the overlap out"}},
        {VR_TILE_EXACT, 256, 64, {"overlap 64", "does not blend", "leave the overlap out", ""}},
    };
    for (int k = 0; k < COUNT(table); k++) {
        const refusal *r = &table[k];
        vr_error err = {VR_OK, ""};
        vr_tile_plan plan;
        const vr_tile_options o = square(r->mode, r->tile, r->overlap);
        vr_status s = make(&o, 10, 10, &plan, &err);
        cr_assert_eq(s, VR_E_RANGE, "%s %lld/%lld: status %d %s", vr_tile_mode_name(r->mode), (long long)r->tile,
                     (long long)r->overlap, (int)s, err.text);
        for (int i = 0; i < 4 && r->says[i]; i++)
            cr_assert(strstr(err.text, r->says[i]) != NULL, "want '%s' in: %s", r->says[i], err.text);
        cr_assert(strncmp(err.text, vr_tile_mode_name(r->mode), strlen(vr_tile_mode_name(r->mode))) == 0, "%s", err.text);
        cr_assert(plan.tile_count == 0 && plan.grid[0].h.tile == NULL, "a refused plan holds nothing");
    }
}

/* What a refusal proposes must itself be accepted. */
Test(tile_plan, width_is_refused_as_height_is_and_remedies_work, .timeout = 20)
{
    for (int m = 0; m < 6; m++)
        for (int64_t tile = 0; tile <= 320; tile += 4)
            for (int64_t overlap = -24; overlap <= 340; overlap += 4) {
                vr_error err = {VR_OK, ""}, err2;
                vr_tile_plan plan;
                vr_tile_options o = {tc_blends[m], 256, tile, 32, overlap, 0, NULL, NULL};
                vr_status s = make(&o, 20, 20, &plan, &err);
                vr_tile_plan_free(&plan);
                if (s == VR_OK)
                    continue;
                cr_assert(strstr(err.text, "width") != NULL, "%s", err.text);
                const char *at = strstr(err.text, "nearest is ");
                if (!at && !(at = strstr(err.text, "nearest are ")))
                    at = strstr(err.text, "at most ");
                at = at ? strpbrk(at, "0123456789") : strstr(err.text, "want a tile of at least ");
                if (!at)
                    continue;
                const int64_t value = strtoll(at[0] == 'w' ? at + 24 : at, NULL, 10);
                const bool of_tile = at[0] == 'w' || strstr(err.text, "tile width") != NULL;
                *(of_tile ? &o.tile_w : &o.overlap_w) = value;
                s = make(&o, 20, 20, &plan, &err2);
                /* a proposed tile may leave the overlap to be refused next */
                cr_assert(s == VR_OK || (of_tile && strstr(err2.text, "overlap")), "%s\nthen %s", err.text, err2.text);
                vr_tile_plan_free(&plan);
            }
}

typedef struct tiles {
    vr_tile_mode mode;
    int64_t tile, overlap, h, w; /* cells */
    int64_t rows, columns;
} tiles;

Test(tile_plan, numbers_of_tiles, .timeout = 20)
{
    static const tiles table[] = {
        /* A04: tile 8, overlap 2 */
        {VR_TILE_COMFY, 8, 2, 1, 1, 1, 1}, {VR_TILE_COMFY, 8, 2, 1, 8, 1, 1}, {VR_TILE_COMFY, 8, 2, 7, 7, 1, 1},
        {VR_TILE_COMFY, 8, 2, 8, 8, 1, 1}, {VR_TILE_COMFY, 8, 2, 9, 8, 2, 1}, {VR_TILE_COMFY, 8, 2, 8, 9, 1, 2},
        {VR_TILE_COMFY, 8, 2, 9, 9, 2, 2}, {VR_TILE_COMFY, 64, 2, 32, 32, 1, 1},
        {VR_TILE_SDCPP, 8, 2, 8, 8, 1, 1}, {VR_TILE_SDCPP, 8, 2, 9, 8, 2, 1}, {VR_TILE_SDCPP, 8, 2, 9, 9, 2, 2},
        {VR_TILE_EXACT, 8, 0, 9, 8, 2, 1}, {VR_TILE_EXACT, 8, 0, 8, 8, 1, 1}, {VR_TILE_TWO_PASS, 8, 11, 30, 30, 1, 1},
        {VR_TILE_TWO_PASS, 8, 11, 31, 30, 2, 1},
        /* diffusers cuts both sides as soon as one is long (clause T2.2) */
        {VR_TILE_DIFFUSERS, 8, 2, 8, 8, 1, 1}, {VR_TILE_DIFFUSERS, 8, 2, 9, 8, 2, 2},
        {VR_TILE_DIFFUSERS, 8, 2, 9, 6, 2, 1}, {VR_TILE_DIFFUSERS_TINY, 8, 2, 8, 8, 1, 1},
        {VR_TILE_DIFFUSERS_TINY, 8, 2, 9, 8, 2, 2},
        /* R05: stride 6; needed 1 1 1 2 2 3 */
        {VR_TILE_COMFY, 8, 2, 1, 6, 1, 1}, {VR_TILE_COMFY, 8, 2, 1, 7, 1, 1}, {VR_TILE_COMFY, 8, 2, 1, 14, 1, 2},
        {VR_TILE_COMFY, 8, 2, 1, 15, 1, 3}, {VR_TILE_SDCPP, 8, 2, 1, 14, 1, 2},
        {VR_TILE_EXACT, 6, 0, 1, 6, 1, 1}, {VR_TILE_EXACT, 6, 0, 1, 7, 1, 2},
        /* R05 in the diffusers forms: the published loop; its last tile is emitted, not redundant */
        {VR_TILE_DIFFUSERS, 8, 2, 1, 9, 1, 2}, {VR_TILE_DIFFUSERS, 8, 2, 1, 14, 1, 3}, {VR_TILE_DIFFUSERS, 8, 2, 1, 15, 1, 3},
        /* A07 */
        {VR_TILE_SDCPP, 32, 8, 64, 65, 3, 3}, {VR_TILE_COMFY, 32, 8, 64, 65, 3, 3}, {VR_TILE_COMFY, 32, 8, 33, 33, 2, 2},
        /* sizes just above k tiles */
        {VR_TILE_COMFY, 8, 0, 1, 17, 1, 3}, {VR_TILE_SDCPP, 8, 0, 1, 17, 1, 3}, {VR_TILE_DIFFUSERS, 8, 0, 1, 17, 1, 3},
        {VR_TILE_NONE, 0, 0, 50, 60, 1, 1},
    };
    for (int k = 0; k < COUNT(table); k++) {
        const tiles *t = &table[k];
        vr_error err = {VR_OK, ""};
        vr_tile_plan plan;
        const vr_tile_options o = square(t->mode, 8 * t->tile, 8 * t->overlap);
        char name[200];
        tc_name(&o, t->h, t->w, name, sizeof name);
        cr_assert_eq(make(&o, t->h, t->w, &plan, &err), VR_OK, "%s: %s", name, err.text);
        cr_assert(plan.grid[0].h.count == t->rows && plan.grid[0].w.count == t->columns, "%s: %lldx%lld tiles, want %lldx%lld",
                  name, (long long)plan.grid[0].h.count, (long long)plan.grid[0].w.count, (long long)t->rows,
                  (long long)t->columns);
        cr_assert_eq(plan.tile_count, t->rows * t->columns, "%s", name);
        vr_tile_plan_free(&plan);
    }
}

/* 2t - L rounds to t in f32: the step would be 0. */
Test(tile_plan, sdcpp_counts_beyond_f32_are_refused, .timeout = 20)
{
    const vr_tile_options o = square(VR_TILE_SDCPP, (int64_t)1 << 30, 0);
    vr_error err = {VR_OK, ""};
    vr_tile_plan plan;
    cr_assert_eq(make(&o, 1, ((int64_t)1 << 27) + 1, &plan, &err), VR_E_RANGE);
    cr_assert(strstr(err.text, "f32") != NULL, "%s", err.text);
}

Test(tile_plan, owned_regions_partition_every_axis_and_lie_in_their_input, .timeout = 60)
{
    tc_rng r = {5};
    const vr_tile_mode modes[] = {VR_TILE_DIFFUSERS, VR_TILE_DIFFUSERS_STRIDE, VR_TILE_DIFFUSERS_TINY, VR_TILE_COMFY,
                                  VR_TILE_COMFY_3PASS, VR_TILE_SDCPP, VR_TILE_TWO_PASS, VR_TILE_TWO_PASS_FIXED, VR_TILE_EXACT};
    float *weights;
    vr_program *p = tc_convolver(3, 1, 8, &weights);
    for (int k = 0; k < 9 * 400; k++) {
        const vr_tile_mode m = modes[k % 9];
        vr_tile_options o = tc_options(&r, m, 8, 8, 40);
        vr_error err = {VR_OK, ""};
        vr_tile_plan plan;
        const int64_t h = tc_random(&r, 1, 200), w = tc_random(&r, 1, 200);
        if (m >= VR_TILE_TWO_PASS)
            o.overlap_h = o.overlap_w = -1;
        if (m == VR_TILE_EXACT) {
            o.tile_h = tc_random(&r, 8, 300);
            o.tile_w = tc_random(&r, 8, 300);
        }
        char name[200];
        tc_name(&o, h, w, name, sizeof name);
        cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 1, 1, h, w}, &o, &plan, &err), VR_OK, "%s: %s", name, err.text);
        for (int g = 0; g < 2 * plan.grid_count; g++) {
            const vr_tile_axis *a = g & 1 ? &plan.grid[g / 2].w : &plan.grid[g / 2].h;
            int64_t at = 0;
            for (int64_t i = 0; i < a->count; i++) {
                const vr_axis_tile *t = &a->tile[i];
                cr_assert(t->owned == at && t->owned_length > 0, "%s: tile %lld owns from %lld", name, (long long)i, (long long)t->owned);
                at += t->owned_length;
                cr_assert(t->start >= 0 && t->length > 0 && t->start + t->length <= a->cells, "%s: input", name);
                cr_assert(t->start * 8 <= t->owned && at <= (t->start + t->length) * 8, "%s: tile %lld owns what it lacks", name, (long long)i);
            }
            cr_assert_eq(at, a->cells * a->scale, "%s: %lld pixels owned", name, (long long)at);
            cr_assert(a->count == 1 ? a->effective_overlap == -1 : a->effective_overlap >= 0, "%s", name);
        }
        vr_tile_plan_free(&plan);
    }
    vr_program_free(p);
    free(weights);
}

typedef struct shrunk {
    vr_tile_mode mode;
    int64_t tile, overlap, cells; /* pixels, pixels, cells */
    int64_t effective;            /* pixels */
} shrunk;

Test(tile_plan, effective_overlap_is_reported_not_the_requested, .timeout = 20)
{
    static const shrunk table[] = {
        {VR_TILE_SDCPP, 256, 128, 63, 8},   /* just below two tiles it collapses */
        {VR_TILE_SDCPP, 256, 128, 79, 64},  /* 8 cells */
        {VR_TILE_SDCPP, 256, 128, 64, 128}, /* three tiles fit */
        {VR_TILE_SDCPP, 256, 128, 33, 31 * 8},
        {VR_TILE_SDCPP, 256, 128, 32, -1},
        {VR_TILE_DIFFUSERS, 64, 16, 13, 8}, /* A01: a sliver of one cell */
        {VR_TILE_DIFFUSERS, 64, 16, 14, 16},
        {VR_TILE_COMFY, 64, 16, 15, 16},
        {VR_TILE_TWO_PASS, 256, -1, 100, 88},
        {VR_TILE_EXACT, 100, -1, 100, 0},
    };
    for (int k = 0; k < COUNT(table); k++) {
        const vr_tile_options o = square(table[k].mode, table[k].tile, table[k].overlap);
        vr_error err = {VR_OK, ""};
        vr_tile_plan plan;
        char name[200];
        tc_name(&o, 1, table[k].cells, name, sizeof name);
        cr_assert_eq(make(&o, 1, table[k].cells, &plan, &err), VR_OK, "%s: %s", name, err.text);
        cr_assert_eq(plan.grid[0].w.effective_overlap, table[k].effective, "%s: %lld", name,
                     (long long)plan.grid[0].w.effective_overlap);
        cr_assert_eq(plan.grid[0].w.requested_overlap, plan.options.overlap_w, "%s", name);
        vr_tile_plan_free(&plan);
    }
}

Test(tile_plan, defaults_are_the_peers, .timeout = 20)
{
    static const struct {
        vr_tile_mode mode;
        int64_t tile, want_tile, want_overlap;
    } table[] = {
        {VR_TILE_DIFFUSERS, 0, 512, 128}, {VR_TILE_DIFFUSERS, 1024, 1024, 256}, {VR_TILE_DIFFUSERS_STRIDE, 0, 256, 64},
        {VR_TILE_DIFFUSERS_TINY, 0, 512, 64}, {VR_TILE_COMFY, 0, 512, 64}, {VR_TILE_COMFY, 128, 128, 32},
        {VR_TILE_COMFY_3PASS, 0, 512, 64}, {VR_TILE_COMFY_3PASS, 64, 64, 16}, {VR_TILE_SDCPP, 0, 256, 128},
        {VR_TILE_TWO_PASS, 0, 512, 88}, {VR_TILE_TWO_PASS_FAST, 0, 512, 88}, {VR_TILE_TWO_PASS_FIXED, 0, 512, 0},
        {VR_TILE_EXACT, 0, 256, 0},
    };
    for (int k = 0; k < COUNT(table); k++) {
        const vr_tile_options o = square(table[k].mode, table[k].tile, -1);
        vr_error err = {VR_OK, ""};
        vr_tile_plan plan;
        cr_assert_eq(make(&o, 10, 10, &plan, &err), VR_OK, "%s", err.text);
        cr_assert(plan.options.tile_h == table[k].want_tile && plan.options.tile_w == table[k].want_tile &&
                      plan.options.overlap_h == table[k].want_overlap && plan.options.overlap_w == table[k].want_overlap,
                  "%s: tile %lld overlap %lld", vr_tile_mode_name(o.mode), (long long)plan.options.tile_h,
                  (long long)plan.options.overlap_h);
        const vr_tile_options again = plan.options; /* a plan's options make the same plan */
        vr_tile_plan_free(&plan);
        cr_assert_eq(make(&again, 10, 10, &plan, &err), VR_OK, "%s", err.text);
        vr_tile_plan_free(&plan);
    }
}

/* Published split of the two-pass scheme: tile 64, pad 11. */
Test(tile_plan, two_pass_geometry, .timeout = 20)
{
    static const struct {
        int64_t cells, tile, count, starts[4], lengths[4], owned[4];
    } table[] = {
        {86, 64, 1, {0}, {86}, {0}},
        {87, 64, 2, {0, 64}, {86, 23}, {0, 75}},           /* inner 65: side 33 becomes 64 */
        {128, 64, 2, {0, 64}, {86, 64}, {0, 75}},          /* inner 106: side 53 becomes 64 */
        {192, 48, 4, {0, 48, 96, 144}, {70, 70, 70, 48}, {0, 59, 107, 155}}, /* side 43: 64 too large, 48 fits */
        {64, 20, 3, {0, 16, 32}, {38, 38, 32}, {0, 27, 43}}, /* inner 42: side 14 becomes 16 */
    };
    for (int k = 0; k < COUNT(table); k++) {
        const vr_tile_options o = square(VR_TILE_TWO_PASS, table[k].tile * 8, -1);
        vr_error err = {VR_OK, ""};
        vr_tile_plan plan;
        cr_assert_eq(make(&o, table[k].cells, 1, &plan, &err), VR_OK, "%s", err.text);
        const vr_tile_axis *a = &plan.grid[0].h;
        cr_assert_eq(a->count, table[k].count, "%lld cells: %lld tiles", (long long)table[k].cells, (long long)a->count);
        for (int i = 0; i < a->count; i++)
            cr_assert(a->tile[i].start == table[k].starts[i] && a->tile[i].length == table[k].lengths[i] &&
                          a->tile[i].owned == 8 * table[k].owned[i],
                      "%lld cells, tile %d: %lld+%lld owns from %lld", (long long)table[k].cells, i,
                      (long long)a->tile[i].start, (long long)a->tile[i].length, (long long)a->tile[i].owned);
        vr_tile_plan_free(&plan);
    }
    /* fixed: pad is the program's halo, 1 cell below conv, up, conv */
    float *weights;
    vr_program *p = tc_convolver(1, 1, 2, &weights);
    vr_receptive_field f;
    vr_error err;
    vr_tile_plan plan;
    const vr_tile_options o = square(VR_TILE_TWO_PASS_FIXED, 16, -1);
    cr_assert_eq(vr_program_receptive_field(p, &f, &err), VR_OK);
    cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 1, 1, 40, 40}, &o, &plan, &err), VR_OK, "%s", err.text);
    cr_assert(f.halo_low > 0 && plan.options.overlap_h == 2 * f.halo_low, "pad %lld", (long long)plan.options.overlap_h);
    cr_assert_eq(plan.grid[0].h.tile[0].length, 8 + 2 * f.halo_low);
    vr_tile_plan_free(&plan);
    vr_program_free(p);
    free(weights);
}

Test(tile_plan, work_is_summed_over_distinct_shapes, .timeout = 20)
{
    float *weights;
    vr_program *p = tc_convolver(9, 3, 4, &weights);
    tc_rng r = {12};
    for (int k = 0; k < 60; k++) {
        const vr_tile_options o = tc_options(&r, tc_blends[k % 6], 4, 4, 12);
        const int64_t h = tc_random(&r, 1, 40), w = tc_random(&r, 1, 40);
        vr_error err = {VR_OK, ""};
        vr_tile_plan plan;
        cr_assert_eq(vr_tile_plan_make(p, (vr_shape){2, 3, 1, h, w}, &o, &plan, &err), VR_OK, "%s", err.text);
        int64_t macs = 0, count = 0, shapes = 0;
        bool *seen = calloc((size_t)(41 * 41), sizeof *seen);
        for (int g = 0; g < plan.grid_count; g++)
            for (int64_t i = 0; i < plan.grid[g].h.count; i++)
                for (int64_t j = 0; j < plan.grid[g].w.count; j++) {
                    const int64_t th = plan.grid[g].h.tile[i].length, tw = plan.grid[g].w.tile[j].length;
                    vr_program_cost c;
                    cr_assert_eq(vr_program_cost_of(p, (vr_shape){2, 3, 1, th, tw}, 4, &c, NULL, &err), VR_OK);
                    macs += c.macs;
                    count++;
                    shapes += !seen[th * 41 + tw];
                    seen[th * 41 + tw] = true;
                }
        vr_program_cost whole;
        cr_assert_eq(vr_program_cost_of(p, (vr_shape){2, 3, 1, h, w}, 4, &whole, NULL, &err), VR_OK);
        cr_assert(plan.macs == macs && plan.tile_count == count && plan.tile_shapes == shapes, "%lld MACs, %lld tiles, %lld shapes",
                  (long long)plan.macs, (long long)plan.tile_count, (long long)plan.tile_shapes);
        cr_assert_eq(plan.work_ratio, (double)macs / (double)whole.macs);
        if (o.mode == VR_TILE_SDCPP)
            cr_assert_eq(shapes, 1, "sdcpp makes tiles of one shape");
        free(seen);
        vr_tile_plan_free(&plan);
    }
    vr_program_free(p);
    free(weights);
}

Test(tile_plan, names_round_trip_and_unknown_is_refused, .timeout = 20)
{
    for (int m = 0; m < VR_TILE_MODE_COUNT; m++) {
        vr_tile_mode back = VR_TILE_MODE_COUNT;
        cr_assert(vr_tile_mode_parse(vr_tile_mode_name((vr_tile_mode)m), &back) && (int)back == m, "mode %d", m);
    }
    vr_tile_mode x;
    cr_assert_not(vr_tile_mode_parse("bogus", &x));
    cr_assert_str_eq(vr_tile_mode_name(VR_TILE_MODE_COUNT), "?");
    vr_error err;
    vr_tile_plan plan;
    const vr_tile_options bad = {.mode = VR_TILE_MODE_COUNT};
    cr_assert_eq(make(&bad, 4, 4, &plan, &err), VR_E_ARGUMENT);
    vr_program *p = tc_upsampler(2, 8, 8);
    cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 3, 1, 4, 4}, NULL, &plan, &err), VR_E_SHAPE);
    cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 2, 1, 0, 4}, NULL, &plan, &err), VR_E_SHAPE);
    cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 2, 1, 3, 4}, NULL, &plan, &err), VR_OK);
    cr_assert(plan.options.mode == VR_TILE_NONE && plan.tile_count == 1 && plan.work_ratio == 1);
    vr_tile_plan_free(&plan);
    vr_tile_plan_free(NULL);
    vr_program_free(p);
}
