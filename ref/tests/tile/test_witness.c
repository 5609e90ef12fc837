/* Weights and geometry of every blending scheme against a second, plain
 * statement of the published formulas (clauses T2 to T7): all tiles held at
 * once, float64, starts computed here. Tiles are unrelated noise, so a wrong
 * weight, order, ramp or start cannot hide.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tilecase.h"

enum { MOST = 64 };

typedef struct cut { /* of one axis, in cells */
    int64_t cells, scale, count, start[MOST], length[MOST], nominal[MOST], overlap;
} cut;

typedef struct canvas {
    int64_t h, w;
    double *v;
} canvas;

static canvas canvas_new(int64_t h, int64_t w)
{
    return (canvas){h, w, calloc((size_t)(h * w), sizeof(double))};
}

static canvas noise_tile(int64_t call, int64_t h, int64_t w)
{
    canvas c = canvas_new(h, w);
    for (int64_t k = 0; k < h * w; k++)
        c.v[k] = (double)tc_noise(call, k);
    return c;
}

static int64_t min2(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- diffusers ---------------------------------------------------------------- */

static cut cut_stepping(int64_t cells, int64_t scale, int64_t tile, int64_t overlap)
{
    cut c = {.cells = cells, .scale = scale, .overlap = overlap};
    for (int64_t at = 0; at < cells; at += tile - overlap) {
        c.start[c.count] = c.nominal[c.count] = at;
        c.length[c.count++] = min2(tile, cells - at);
    }
    return c;
}

static void blend_v(const canvas *a, canvas *b, int64_t extent)
{
    int64_t n = min2(min2(a->h, b->h), extent);
    for (int64_t y = 0; y < n; y++)
        for (int64_t x = 0; x < b->w; x++)
            b->v[y * b->w + x] = a->v[(a->h - n + y) * a->w + x] * (1 - (double)y / (double)n) +
                                 b->v[y * b->w + x] * ((double)y / (double)n);
}

static void blend_h(const canvas *a, canvas *b, int64_t extent)
{
    int64_t n = min2(min2(a->w, b->w), extent);
    for (int64_t x = 0; x < n; x++)
        for (int64_t y = 0; y < b->h; y++)
            b->v[y * b->w + x] = a->v[y * a->w + a->w - n + x] * (1 - (double)x / (double)n) +
                                 b->v[y * b->w + x] * ((double)x / (double)n);
}

static canvas witness_diffusers(const cut *h, const cut *w, int64_t tile_h, int64_t tile_w)
{
    canvas out = canvas_new(h->cells * h->scale, w->cells * w->scale);
    canvas *tile = calloc((size_t)(h->count * w->count), sizeof *tile);
    for (int64_t k = 0; k < h->count * w->count; k++)
        tile[k] = noise_tile(k, h->length[k / w->count] * h->scale, w->length[k % w->count] * w->scale);
    for (int64_t k = 0; k < h->count * w->count; k++) {
        const int64_t i = k / w->count, j = k % w->count;
        if (i > 0)
            blend_v(&tile[k - w->count], &tile[k], h->overlap * h->scale);
        if (j > 0)
            blend_h(&tile[k - 1], &tile[k], w->overlap * w->scale);
        const int64_t keep_h = (tile_h - h->overlap) * h->scale, keep_w = (tile_w - w->overlap) * w->scale;
        for (int64_t y = 0; y < min2(keep_h, tile[k].h); y++)
            for (int64_t x = 0; x < min2(keep_w, tile[k].w); x++)
                out.v[(i * keep_h + y) * out.w + j * keep_w + x] = tile[k].v[y * tile[k].w + x];
    }
    for (int64_t k = 0; k < h->count * w->count; k++)
        free(tile[k].v);
    free(tile);
    return out;
}

static double tiny_mask(int64_t index, int64_t k, int64_t overlap)
{
    const double m = (double)k / (double)(overlap - 1);
    return index == 0 || m > 1 ? 1 : m;
}

static canvas witness_tiny(const cut *h, const cut *w)
{
    canvas out = canvas_new(h->cells * h->scale, w->cells * w->scale);
    for (int64_t k = 0; k < h->count * w->count; k++) {
        const int64_t i = k / w->count, j = k % w->count;
        canvas t = noise_tile(k, h->length[i] * h->scale, w->length[j] * w->scale);
        for (int64_t y = 0; y < t.h; y++)
            for (int64_t x = 0; x < t.w; x++) {
                double m = tiny_mask(i, y, h->overlap * h->scale) * tiny_mask(j, x, w->overlap * w->scale);
                double *o = &out.v[(h->start[i] * h->scale + y) * out.w + w->start[j] * w->scale + x];
                *o = m * t.v[y * t.w + x] + (1 - m) * *o;
            }
        free(t.v);
    }
    return out;
}

/* ---- comfy ---------------------------------------------------------------------- */

static cut cut_comfy(int64_t cells, int64_t scale, int64_t tile, int64_t overlap)
{
    cut c = {.cells = cells, .scale = scale, .overlap = overlap};
    for (int64_t at = 0; c.count == 0 || (cells > tile && at < cells - overlap); at += tile - overlap) {
        c.start[c.count] = c.nominal[c.count] = at;
        c.length[c.count++] = min2(tile, cells - at);
    }
    return c;
}

static void feather(canvas *m, int64_t ramp, bool rows)
{
    const int64_t n = rows ? m->h : m->w;
    if (ramp >= n)
        return;
    for (int64_t t = 0; t < ramp; t++)
        for (int64_t o = 0; o < (rows ? m->w : m->h); o++) {
            const double a = (double)(t + 1) / (double)ramp;
            m->v[rows ? t * m->w + o : o * m->w + t] *= a;
            m->v[rows ? (n - 1 - t) * m->w + o : o * m->w + n - 1 - t] *= a;
        }
}

static canvas witness_comfy(const cut *h, const cut *w, int64_t *call)
{
    canvas num = canvas_new(h->cells * h->scale, w->cells * w->scale), den = canvas_new(num.h, num.w);
    for (int64_t k = 0; k < h->count * w->count; k++) {
        const int64_t i = k / w->count, j = k % w->count;
        canvas t = noise_tile((*call)++, h->length[i] * h->scale, w->length[j] * w->scale), m = canvas_new(t.h, t.w);
        for (int64_t e = 0; e < m.h * m.w; e++)
            m.v[e] = 1;
        if (h->count * w->count > 1) {
            feather(&m, h->overlap * h->scale, true);
            feather(&m, w->overlap * w->scale, false);
        }
        for (int64_t y = 0; y < t.h; y++)
            for (int64_t x = 0; x < t.w; x++) {
                const int64_t at = (h->start[i] * h->scale + y) * num.w + w->start[j] * w->scale + x;
                num.v[at] += t.v[y * t.w + x] * m.v[y * t.w + x];
                den.v[at] += m.v[y * t.w + x];
            }
        free(t.v);
        free(m.v);
    }
    for (int64_t k = 0; k < num.h * num.w; k++)
        num.v[k] /= den.v[k];
    free(den.v);
    return num;
}

/* ---- sdcpp ------------------------------------------------------------------------ */

static cut cut_sdcpp(int64_t cells, int64_t scale, int64_t tile, int64_t target)
{
    cut c = {.cells = cells, .scale = scale};
    if (cells <= tile)
        return (cut){.cells = cells, .scale = scale, .count = 1, .length = {cells}};
    int64_t n = (cells - target) / (tile - target), over = ((n + 1) * (tile - target) + target) % cells;
    if (over != tile - target && over <= n * (tile / 2 - target))
        n++;
    if (n < 2)
        n = 2;
    c.overlap = (int64_t)((float)tile * ((float)(tile * n - cells) / (float)(tile * (n - 1))));
    for (int64_t at = 0;; at += tile - c.overlap) {
        const bool last = at + tile >= cells;
        c.nominal[c.count] = at;
        c.start[c.count] = last ? cells - tile : at;
        c.length[c.count++] = tile;
        if (last)
            return c;
    }
}

static double smoother(double x)
{
    return 6 * pow(x, 5) - 15 * pow(x, 4) + 10 * pow(x, 3);
}

static double sd_weight(const cut *c, int64_t i, int64_t k)
{
    const double overlap = (double)(c->overlap * c->scale);
    const int64_t skip = (c->nominal[i] - c->start[i]) * c->scale, n = c->length[i] * c->scale;
    double u = 1;
    if (k < skip)
        return 0;
    if (overlap > 0 && i > 0)
        u = fmin(u, (double)(k - skip) / overlap);
    if (overlap > 0 && i + 1 < c->count)
        u = fmin(u, (double)(n - k) / overlap);
    return smoother(u);
}

static canvas witness_sdcpp(const cut *h, const cut *w)
{
    canvas out = canvas_new(h->cells * h->scale, w->cells * w->scale);
    for (int64_t k = 0; k < h->count * w->count; k++) {
        const int64_t i = k / w->count, j = k % w->count;
        canvas t = noise_tile(k, h->length[i] * h->scale, w->length[j] * w->scale);
        for (int64_t y = 0; y < t.h; y++)
            for (int64_t x = 0; x < t.w; x++)
                out.v[(h->start[i] * h->scale + y) * out.w + w->start[j] * w->scale + x] +=
                    t.v[y * t.w + x] * sd_weight(h, i, y) * sd_weight(w, j, x);
        free(t.v);
    }
    return out;
}

/* ---- comparison ---------------------------------------------------------------------- */

static canvas witness(const vr_tile_options *o, int64_t h, int64_t w, int64_t sh, int64_t sw)
{
    const int64_t th = o->tile_h / sh, tw = o->tile_w / sw, oh = o->overlap_h / sh, ow = o->overlap_w / sw;
    if (o->mode == VR_TILE_SDCPP) {
        const cut a = cut_sdcpp(h, sh, th, oh), b = cut_sdcpp(w, sw, tw, ow);
        return witness_sdcpp(&a, &b);
    }
    int64_t call = 0;
    if (o->mode == VR_TILE_COMFY || (o->mode == VR_TILE_COMFY_3PASS && h <= th / 2 && w <= tw / 2)) {
        const cut a = cut_comfy(h, sh, th, oh), b = cut_comfy(w, sw, tw, ow);
        return witness_comfy(&a, &b, &call);
    }
    if (o->mode == VR_TILE_COMFY_3PASS) {
        canvas sum = canvas_new(h * sh, w * sw);
        for (int pass = 0; pass < 3; pass++) {
            const int64_t ph = pass == 0 ? 2 * th : pass == 1 ? th / 2 : th, pw = pass == 0 ? tw / 2 : pass == 1 ? 2 * tw : tw;
            const cut a = cut_comfy(h, sh, ph, oh), b = cut_comfy(w, sw, pw, ow);
            canvas one = witness_comfy(&a, &b, &call);
            for (int64_t k = 0; k < sum.h * sum.w; k++)
                sum.v[k] += one.v[k] / 3;
            free(one.v);
        }
        return sum;
    }
    const bool small = h <= th && w <= tw;
    const cut a = cut_stepping(h, sh, small ? h : th, small ? 0 : oh), b = cut_stepping(w, sw, small ? w : tw, small ? 0 : ow);
    return o->mode == VR_TILE_DIFFUSERS_TINY ? witness_tiny(&a, &b) : witness_diffusers(&a, &b, small ? h : th, small ? w : tw);
}

static void compare(vr_tile_mode mode)
{
    tc_rng r = {(uint64_t)mode + 4242};
    for (int k = 0; k < 150; k++) {
        char name[200];
        vr_error err = {VR_OK, ""};
        const int64_t sh = tc_random(&r, 1, 3), sw = tc_random(&r, 1, 3), h = tc_random(&r, 1, 40), w = tc_random(&r, 1, 40);
        const vr_tile_options o = tc_options(&r, mode, sh, sw, 24);
        tc_decoder d = {.scale_h = sh, .scale_w = sw};
        vr_program *p = tc_upsampler(1, sh, sw);
        const int64_t dim[4] = {1, 1, h, w};
        vr_tensor z, out;
        vr_tile_plan plan;
        tc_name(&o, h, w, name, sizeof name);
        cr_assert_eq(vr_tensor_new(&z, VR_F32, 4, dim, &err), VR_OK);
        for (int64_t i = 0; i < h * w; i++)
            ((float *)z.data)[i] = 0;
        cr_assert_eq(vr_tile_plan_make(p, (vr_shape){1, 1, 1, h, w}, &o, &plan, &err), VR_OK, "%s: %s", name, err.text);
        cr_assert_eq(vr_tile_blend_run(&plan, &z, tc_decode_noise, &d, &out, &err), VR_OK, "%s: %s", name, err.text);
        canvas want = witness(&o, h, w, sh, sw);
        for (int64_t i = 0; i < want.h * want.w; i++) {
            const double got = (double)((float *)out.data)[i];
            cr_assert(fabs(got - want.v[i]) <= 1e-5, "%s: pixel %lld,%lld is %.9g, want %.9g", name,
                      (long long)(i / want.w), (long long)(i % want.w), got, want.v[i]);
        }
        free(want.v);
        vr_tensor_free(&z);
        vr_tensor_free(&out);
        vr_tile_plan_free(&plan);
        vr_program_free(p);
    }
}

Test(tile_witness, diffusers, .timeout = 60) { compare(VR_TILE_DIFFUSERS); }
Test(tile_witness, diffusers_stride, .timeout = 60) { compare(VR_TILE_DIFFUSERS_STRIDE); }
Test(tile_witness, diffusers_tiny, .timeout = 60) { compare(VR_TILE_DIFFUSERS_TINY); }
Test(tile_witness, comfy, .timeout = 60) { compare(VR_TILE_COMFY); }
Test(tile_witness, comfy_3pass, .timeout = 60) { compare(VR_TILE_COMFY_3PASS); }
Test(tile_witness, sdcpp, .timeout = 60) { compare(VR_TILE_SDCPP); }
