/* What a two-pass decode holds (clause T9.5): the executor's allocations, walked
 * without the work, so that plans name the peak that a decode will have.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "tile/internal.h"

typedef struct walk {
    const vr_program *p;
    const vr_tile_plan *plan;
    int32_t *last;
    vr_shape *shape;     /* [rows' lengths][columns' lengths][operation], equal lengths shared */
    int64_t *h_class, *w_class; /* of a tile: index of its length among the distinct ones */
    int64_t w_classes;
    int64_t live, peak;  /* bytes in the pool, f32 */
} walk;

int64_t vr_two_pass_held(const vr_program *p, const vr_tile_plan *plan, int64_t elem)
{
    const vr_shape l = plan->latent;
    const vr_tile_grid *g = &plan->grid[0];
    int64_t cells = 0, most_h = 0, most_w = 0, sum_h = 0, sum_w = 0;
    for (int64_t i = 0; i < g->h.count; i++) {
        sum_h += g->h.tile[i].length;
        most_h = g->h.tile[i].length > most_h ? g->h.tile[i].length : most_h;
    }
    for (int64_t i = 0; i < g->w.count; i++) {
        sum_w += g->w.tile[i].length;
        most_w = g->w.tile[i].length > most_w ? g->w.tile[i].length : most_w;
    }
    cells = plan->options.mode == VR_TILE_TWO_PASS_FAST ? most_h * most_w : sum_h * sum_w;
    return elem * l.n * (p->op[p->output].channels * l.h * g->h.scale * l.w * g->w.scale + l.c * cells);
}

/* Index of each tile's length among the distinct lengths of an axis; how many. */
static int64_t classes(const vr_tile_axis *a, int64_t *of)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->count; i++) {
        int64_t k = 0;
        while (k < i && a->tile[k].length != a->tile[i].length)
            k++;
        of[i] = k < i ? of[k] : n++;
    }
    return n;
}

static void grow(walk *w, int64_t bytes)
{
    w->live += bytes;
    w->peak = w->live > w->peak ? w->live : w->peak;
}

static int64_t bytes_of(vr_shape s)
{
    return 4 * s.n * s.c * s.t * s.h * s.w;
}

/* The copy of a tile's owned cells that two-pass-fixed takes moments of. */
static void owned_copy(walk *w, vr_shape in, const vr_axis_tile *h, const vr_axis_tile *v)
{
    const vr_tile_grid *g = &w->plan->grid[0];
    in.h = h->owned_length / g->h.scale * (in.h / h->length);
    in.w = v->owned_length / g->w.scale * (in.w / v->length);
    grow(w, bytes_of(in));
    w->live -= bytes_of(in);
}

static void step(walk *w, const vr_shape *shape, int32_t i)
{
    const vr_op *op = &w->p->op[i];
    const int32_t over = vr_program_in_place(w->p, w->last, i);
    if (over < 0)
        grow(w, bytes_of(shape[i]));
    for (int k = 0; k < 3; k++) {
        const int32_t v = op->in[k];
        bool again = false;
        for (int j = 0; j < k; j++)
            again = again || op->in[j] == v;
        if (v > 0 && !again && w->last[v] == i && k != over)
            w->live -= bytes_of(shape[v]);
    }
}

/* Tiles [first, first + count) in step; their pictures are freed at the end. */
static void walk_tiles(walk *w, int64_t first, int64_t count)
{
    const vr_tile_grid *g = &w->plan->grid[0];
    for (int32_t i = 1; i < w->p->op_count; i++) {
        const bool owned = w->p->op[i].kind == VR_OP_GROUP_NORM && w->plan->options.mode == VR_TILE_TWO_PASS_FIXED;
        for (int pass = owned ? 0 : 1; pass < 2; pass++)
            for (int64_t t = first; t < first + count; t++) {
                const int64_t y = t / g->w.count, x = t % g->w.count;
                const vr_shape *shape =
                    w->shape + (w->h_class[y] * w->w_classes + w->w_class[x]) * w->p->op_count;
                if (pass)
                    step(w, shape, i);
                else
                    owned_copy(w, shape[w->p->op[i].in[0]], &g->h.tile[y], &g->w.tile[x]);
            }
    }
    w->live = 0;
}

static vr_status all_shapes(walk *w, vr_error *err)
{
    const vr_tile_grid *g = &w->plan->grid[0];
    vr_status s = VR_OK;
    for (int64_t y = 0; s == VR_OK && y < g->h.count; y++)
        for (int64_t x = 0; s == VR_OK && x < g->w.count; x++) {
            vr_shape *shape = w->shape + (w->h_class[y] * w->w_classes + w->w_class[x]) * w->p->op_count;
            vr_shape in = w->plan->latent;
            in.h = g->h.tile[y].length;
            in.w = g->w.tile[x].length;
            if (!shape[0].n)
                s = vr_program_shapes(w->p, in, shape, err);
        }
    return s;
}

vr_status vr_two_pass_peak(const vr_program *p, const vr_tile_plan *plan, int64_t *peak, vr_error *err)
{
    const vr_tile_grid *g = &plan->grid[0];
    const int64_t tiles = g->h.count * g->w.count;
    walk w = {.p = p, .plan = plan, .last = calloc((size_t)p->op_count, sizeof *w.last),
              .h_class = calloc((size_t)g->h.count, sizeof *w.h_class),
              .w_class = calloc((size_t)g->w.count, sizeof *w.w_class)};
    vr_status s = w.last && w.h_class && w.w_class ? VR_OK : vr_fail(err, VR_E_NOMEM, "cannot allocate live ranges");
    if (s == VR_OK) {
        const int64_t h_classes = classes(&g->h, w.h_class);
        w.w_classes = classes(&g->w, w.w_class);
        w.shape = calloc((size_t)(h_classes * w.w_classes * p->op_count), sizeof *w.shape);
        s = w.shape ? all_shapes(&w, err) : vr_fail(err, VR_E_NOMEM, "cannot allocate shapes");
    }
    if (s == VR_OK) {
        vr_program_live_ranges(p, w.last);
        if (plan->options.mode != VR_TILE_TWO_PASS_FAST)
            walk_tiles(&w, 0, tiles);
        for (int64_t t = 0; plan->options.mode == VR_TILE_TWO_PASS_FAST && t < tiles; t++)
            walk_tiles(&w, t, 1);
        *peak = w.peak + vr_two_pass_held(p, plan, 4);
    }
    free(w.shape);
    free(w.w_class);
    free(w.h_class);
    free(w.last);
    return s;
}
