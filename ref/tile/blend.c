/* Runs a blending plan with any decoder (clause T1.8): cuts tiles out of the
 * latent in raster order, has each decoded, hands it to the scheme. At most one
 * tile, the picture and what the scheme asked for are held.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "tile/internal.h"

#define LL(x) ((long long)(x))

typedef struct blend_run {
    vr_blend b;
    const vr_tensor *latent;
    vr_tile_decoder *decode;
    void *ctx;
    vr_pool *pool;
    vr_tensor *out;
    void *input; /* pool block for the largest tile's cells */
} blend_run;

static int64_t outer(const vr_tensor *t) /* product of all but rows and columns */
{
    int64_t n = 1;
    for (int32_t k = 0; k + 2 < t->rank; k++)
        n *= t->dim[k];
    return n;
}

static int64_t rows_of(const vr_tensor *t)
{
    return t->dim[t->rank - 2];
}

static int64_t columns_of(const vr_tensor *t)
{
    return t->dim[t->rank - 1];
}

static vr_status check_latent(const vr_tile_plan *plan, const vr_tensor *latent, vr_error *err)
{
    char is[120];
    const vr_shape s = plan->latent;
    vr_tensor_describe(latent, is, sizeof is);
    if (plan->grid_count < 1)
        return vr_fail(err, VR_E_ARGUMENT, "the tile plan is empty; want one that vr_tile_plan_make filled");
    bool same = (latent->rank == 4 && s.t == 1) || (latent->rank == 5 && latent->dim[2] == s.t);
    same = same && latent->dim[0] == s.n && latent->dim[1] == s.c && rows_of(latent) == s.h && columns_of(latent) == s.w;
    if (!same)
        return vr_fail(err, VR_E_SHAPE, "latent is %s; the tile plan was made for [n=%lld,c=%lld,t=%lld,h=%lld,w=%lld]",
                       is, LL(s.n), LL(s.c), LL(s.t), LL(s.h), LL(s.w));
    return VR_OK;
}

/* ---- memory ------------------------------------------------------------------- */

static vr_status take_picture(blend_run *r, const vr_tensor *like, int64_t channels, vr_error *err)
{
    vr_blend *b = &r->b;
    int64_t dim[5];
    for (int32_t k = 0; k < like->rank; k++)
        dim[k] = like->dim[k];
    dim[1] = channels;
    dim[like->rank - 2] = b->height;
    dim[like->rank - 1] = b->width;
    vr_status s = vr_tensor_new(r->out, VR_F32, like->rank, dim, err);
    if (s != VR_OK)
        return s;
    b->planes = outer(r->out);
    b->picture = r->out->data;
    memset(b->picture, 0, (size_t)(b->planes * b->height * b->width) * sizeof *b->picture);
    int64_t count[2];
    vr_blend_scheme_of(b->plan->options.mode)->scratch(b->plan, b->planes, count);
    for (int k = 0; s == VR_OK && k < 2; k++)
        if (count[k] > 0) {
            void *block;
            s = vr_pool_alloc(r->pool, (uint64_t)count[k] * sizeof(float), &block, err);
            if (s == VR_OK)
                b->scratch[k] = memset(block, 0, (size_t)count[k] * sizeof(float));
        }
    return s;
}

/* ---- one tile ----------------------------------------------------------------- */

/* Copies the cells of a tile; the block is made to measure. */
static vr_status cut(blend_run *r, const vr_axis_tile *ty, const vr_axis_tile *tx, vr_tensor *t, vr_error *err)
{
    const vr_tensor *z = r->latent;
    const size_t size = vr_dtype_size(z->dtype);
    const int64_t h = rows_of(z), w = columns_of(z), n = outer(z);
    *t = *z;
    t->dim[t->rank - 2] = ty->length;
    t->dim[t->rank - 1] = tx->length;
    t->data = NULL;
    vr_status s = vr_pool_alloc(r->pool, (uint64_t)(n * ty->length * tx->length) * size, &r->input, err);
    if (s != VR_OK)
        return s;
    t->data = r->input;
    char *to = r->input;
    for (int64_t p = 0; p < n; p++)
        for (int64_t y = 0; y < ty->length; y++, to += (size_t)tx->length * size)
            memcpy(to, (const char *)z->data + (size_t)((p * h + ty->start + y) * w + tx->start) * size,
                   (size_t)tx->length * size);
    return VR_OK;
}

static vr_status check_tile(const blend_run *r, const vr_tensor *in, const vr_tensor *t, vr_error *err)
{
    char is[120];
    const vr_tile_grid *g = &r->b.plan->grid[r->b.grid];
    vr_tensor_describe(t, is, sizeof is);
    bool good = t->rank == in->rank && t->dim[0] == in->dim[0] && t->dim[1] > 0 && (t->rank == 4 || t->dim[2] > 0) &&
                rows_of(t) == rows_of(in) * g->h.scale && columns_of(t) == columns_of(in) * g->w.scale;
    if (!good || (r->b.picture && outer(t) != r->b.planes))
        return vr_fail(err, VR_E_SHAPE, "the tile decoder made %s of %lldx%lld cells; want %lldx%lld pixels in the same planes",
                       is, LL(rows_of(in)), LL(columns_of(in)), LL(rows_of(in) * g->h.scale),
                       LL(columns_of(in) * g->w.scale));
    return VR_OK;
}

/* The blend is in f32 whatever the decoder made. */
static vr_status as_f32(vr_tensor *t, vr_error *err)
{
    if (t->dtype == VR_F32)
        return VR_OK;
    vr_tensor f;
    int64_t count;
    vr_status s = vr_tensor_count(t, &count, err);
    if (s == VR_OK)
        s = vr_tensor_new(&f, VR_F32, t->rank, t->dim, err);
    if (s != VR_OK)
        return s;
    s = vr_convert(VR_F32, f.data, t->dtype, t->data, (uint64_t)count, err);
    vr_tensor_free(t);
    *t = f;
    return s;
}

static vr_status decode_tile(blend_run *r, int64_t i, int64_t j, vr_error *err)
{
    const vr_tile_grid *g = &r->b.plan->grid[r->b.grid];
    vr_tensor in, tile = {.data = NULL};
    vr_status s = cut(r, &g->h.tile[i], &g->w.tile[j], &in, err);
    if (s == VR_OK)
        s = r->decode(r->ctx, &in, &tile, err);
    if (s == VR_OK)
        s = check_tile(r, &in, &tile, err);
    if (s == VR_OK)
        s = as_f32(&tile, err);
    if (s == VR_OK && !r->b.picture) {
        /* frames are the decoder's as well: take the tile's own shape */
        s = take_picture(r, &tile, tile.dim[1], err);
    }
    if (s == VR_OK)
        vr_blend_scheme_of(r->b.plan->options.mode)->add(&r->b, i, j, tile.data);
    vr_tensor_free(&tile);
    vr_pool_free(r->pool, r->input);
    r->input = NULL;
    return s;
}

static vr_status run_passes(blend_run *r, vr_error *err)
{
    const vr_tile_plan *plan = r->b.plan;
    const vr_blend_scheme *scheme = vr_blend_scheme_of(plan->options.mode);
    vr_status s = VR_OK;
    for (r->b.grid = 0; s == VR_OK && r->b.grid < plan->grid_count; r->b.grid++) {
        const vr_tile_grid *g = &plan->grid[r->b.grid];
        for (int64_t i = 0; s == VR_OK && i < g->h.count; i++)
            for (int64_t j = 0; s == VR_OK && j < g->w.count; j++)
                s = decode_tile(r, i, j, err);
        if (s == VR_OK && scheme->end_pass)
            scheme->end_pass(&r->b);
    }
    return s;
}

vr_status vr_blend_run_in(const vr_tile_plan *plan, const vr_tensor *latent, int64_t channels,
                          vr_tile_decoder *decode, void *ctx, vr_pool *pool, vr_tensor *out, vr_error *err)
{
    blend_run r = {.latent = latent, .decode = decode, .ctx = ctx, .pool = pool, .out = out};
    const vr_tile_grid *g = &plan->grid[0];
    *out = (vr_tensor){.data = NULL};
    if (!vr_tile_mode_blends(plan->options.mode))
        return vr_fail(err, VR_E_ARGUMENT, "tiling mode '%s' does not blend whole decodes; want diffusers*, comfy*, sdcpp or auto",
                       vr_tile_mode_name(plan->options.mode));
    vr_status s = check_latent(plan, latent, err);
    if (s != VR_OK)
        return s;
    r.b = (vr_blend){.plan = plan, .height = g->h.cells * g->h.scale, .width = g->w.cells * g->w.scale};
    if (plan->tile_count == 1) { /* clause T1.4: the undivided decode itself */
        s = decode(ctx, latent, out, err);
        if (s == VR_OK)
            s = check_tile(&r, latent, out, err);
        if (s == VR_OK)
            s = as_f32(out, err);
    } else {
        if (channels > 0)
            s = take_picture(&r, latent, channels, err);
        if (s == VR_OK)
            s = run_passes(&r, err);
    }
    vr_pool_free(pool, r.b.scratch[0]);
    vr_pool_free(pool, r.b.scratch[1]);
    vr_pool_free(pool, r.input);
    if (s != VR_OK)
        vr_tensor_free(out);
    return s;
}

vr_status vr_tile_blend_run(const vr_tile_plan *plan, const vr_tensor *latent, vr_tile_decoder *decode,
                            void *ctx, vr_tensor *out, vr_error *err)
{
    vr_pool *pool;
    vr_status s = vr_pool_create(0, &pool, err);
    if (s != VR_OK)
        return s;
    s = vr_blend_run_in(plan, latent, 0, decode, ctx, pool, out, err);
    vr_pool_destroy(pool);
    return s;
}
