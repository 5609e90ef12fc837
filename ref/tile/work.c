/* What a plan costs (clauses T1.6, T1.7): tiles, distinct shapes, multiply-adds
 * from the program itself, and the peak of what the scheme holds.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "tile/internal.h"

typedef struct shape_count {
    int64_t h, w, count; /* input cells; how many tiles */
} shape_count;

typedef struct shape_list {
    shape_count *at;
    size_t count, room;
} shape_list;

static vr_status too_much(vr_error *err)
{
    return vr_fail(err, VR_E_RANGE, "the plan's counts pass 2^63; want larger tiles or less overlap");
}

static vr_status list_add(shape_list *l, shape_count c, vr_error *err)
{
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 16;
        shape_count *grown = realloc(l->at, room * sizeof *grown);
        if (!grown)
            return vr_fail(err, VR_E_NOMEM, "no memory for %zu tile shapes", room);
        l->at = grown;
        l->room = room;
    }
    l->at[l->count++] = c;
    return VR_OK;
}

static int by_shape(const void *a, const void *b)
{
    const shape_count *x = a, *y = b;
    if (x->h != y->h)
        return x->h < y->h ? -1 : 1;
    return (x->w > y->w) - (x->w < y->w);
}

static void list_merge(shape_list *l)
{
    size_t n = 0;
    if (l->count > 1)
        qsort(l->at, l->count, sizeof *l->at, by_shape);
    for (size_t i = 0; i < l->count; i++) {
        if (n && by_shape(&l->at[n - 1], &l->at[i]) == 0)
            l->at[n - 1].count += l->at[i].count;
        else
            l->at[n++] = l->at[i];
    }
    l->count = n;
}

/* Distinct lengths of one axis, as shapes (length, 1). */
static vr_status axis_lengths(const vr_tile_axis *a, shape_list *l, vr_error *err)
{
    vr_status s = VR_OK;
    for (int64_t i = 0; s == VR_OK && i < a->count; i++) {
        shape_count *last = l->count ? &l->at[l->count - 1] : NULL;
        if (last && last->h == a->tile[i].length)
            last->count++;
        else
            s = list_add(l, (shape_count){a->tile[i].length, 1, 1}, err);
    }
    list_merge(l);
    return s;
}

static vr_status grid_shapes(const vr_tile_grid *g, shape_list *l, vr_error *err)
{
    shape_list h = {NULL, 0, 0}, w = {NULL, 0, 0};
    vr_status s = axis_lengths(&g->h, &h, err);
    if (s == VR_OK)
        s = axis_lengths(&g->w, &w, err);
    for (size_t i = 0; s == VR_OK && i < h.count; i++)
        for (size_t j = 0; s == VR_OK && j < w.count; j++) {
            int64_t n;
            if (__builtin_mul_overflow(h.at[i].count, w.at[j].count, &n))
                s = too_much(err);
            else
                s = list_add(l, (shape_count){h.at[i].h, w.at[j].h, n}, err);
        }
    free(h.at);
    free(w.at);
    return s;
}

static vr_shape sized(vr_shape latent, int64_t h, int64_t w)
{
    latent.h = h;
    latent.w = w;
    return latent;
}

/* Adds one shape's cost. peak: largest of a tile's activations plus its input. */
static vr_status add_shape(const vr_program *p, vr_tile_plan *plan, const shape_count *c, int64_t *peak,
                           int64_t *cells, vr_error *err)
{
    const vr_shape in = sized(plan->latent, c->h, c->w);
    vr_program_cost cost;
    int64_t elements, macs, area;
    vr_status s = vr_program_cost_of(p, in, 4, &cost, NULL, err);
    if (s == VR_OK)
        s = vr_shape_count(in, &elements, err);
    if (s != VR_OK)
        return s;
    if (__builtin_mul_overflow(cost.macs, c->count, &macs) || __builtin_mul_overflow(c->h * c->w, c->count, &area) ||
        __builtin_add_overflow(plan->macs, macs, &plan->macs) || __builtin_add_overflow(*cells, area, cells) ||
        __builtin_add_overflow(plan->tile_count, c->count, &plan->tile_count))
        return too_much(err);
    if (cost.peak_bytes + 4 * elements > *peak)
        *peak = cost.peak_bytes + 4 * elements;
    return VR_OK;
}

/* Picture and buffers of a blend, in bytes. */
static vr_status held_bytes(const vr_program *p, const vr_tile_plan *plan, int64_t *bytes, vr_error *err)
{
    vr_shape *shape = malloc((size_t)p->op_count * sizeof *shape);
    if (!shape)
        return vr_fail(err, VR_E_NOMEM, "no memory for %d shapes", (int)p->op_count);
    vr_status s = vr_program_shapes(p, plan->latent, shape, err);
    int64_t scratch[2] = {0, 0}, count = 0;
    if (s == VR_OK)
        s = vr_shape_count(shape[p->output], &count, err);
    if (s == VR_OK) {
        const vr_shape o = shape[p->output];
        vr_blend_scheme_of(plan->options.mode)->scratch(plan, o.n * o.c * o.t, scratch);
        *bytes = 4 * (count + scratch[0] + scratch[1]);
    }
    free(shape);
    return s;
}

static vr_status sum_up(const vr_program *p, vr_tile_plan *plan, const shape_list *l, vr_error *err)
{
    vr_program_cost whole;
    int64_t peak = 0, cells = 0, held = 0;
    vr_status s = vr_program_cost_of(p, plan->latent, 4, &whole, NULL, err);
    for (size_t i = 0; s == VR_OK && i < l->count; i++)
        s = add_shape(p, plan, &l->at[i], &peak, &cells, err);
    if (s != VR_OK)
        return s;
    plan->tile_shapes = (int64_t)l->count;
    plan->work_ratio = whole.macs ? (double)plan->macs / (double)whole.macs
                                  : (double)cells / ((double)plan->latent.h * (double)plan->latent.w);
    plan->peak_bytes = whole.peak_bytes;
    if (plan->options.mode == VR_TILE_EXACT) { /* one decode of the whole, whatever the parts */
        plan->macs = whole.macs;
        plan->work_ratio = 1;
        return vr_exact_predict(p, plan->latent, &plan->options, plan->options.memory_limit, 4,
                                &plan->peak_bytes, err);
    }
    if (plan->options.mode == VR_TILE_TWO_PASS_FAST && plan->tile_count > 1) { /* and the decode of the small copy */
        vr_program_cost small;
        s = vr_program_cost_of(p, vr_two_pass_small(plan), 4, &small, NULL, err);
        plan->macs += s == VR_OK ? small.macs : 0;
        plan->work_ratio = whole.macs ? (double)plan->macs / (double)whole.macs : plan->work_ratio;
    }
    if (s == VR_OK && plan->tile_count > 1 && plan->options.mode >= VR_TILE_TWO_PASS && plan->options.mode <= VR_TILE_TWO_PASS_FIXED)
        return vr_two_pass_peak(p, plan, &plan->peak_bytes, err);
    if (s == VR_OK && plan->tile_count > 1 && vr_tile_mode_blends(plan->options.mode)) {
        s = held_bytes(p, plan, &held, err);
        plan->peak_bytes = peak + held;
    }
    return s;
}

vr_status vr_plan_work(const vr_program *p, vr_tile_plan *plan, vr_error *err)
{
    shape_list l = {NULL, 0, 0};
    vr_status s = VR_OK;
    for (int g = 0; s == VR_OK && g < plan->grid_count; g++)
        s = grid_shapes(&plan->grid[g], &l, err);
    list_merge(&l);
    if (s == VR_OK)
        s = sum_up(p, plan, &l, err);
    free(l.at);
    return s;
}
