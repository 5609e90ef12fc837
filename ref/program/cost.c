/* Exact work and memory of a program for one latent shape.
 *
 * Multiply-adds: a convolution does out * ci * kh * kw of them, attention
 * 2 * c * (h*w)^2 for each frame (scores, then the weighted sum). Memory: the
 * pool is followed through the program under the rules of live.c. All counts
 * are integers and exact; one that would not fit int64_t is an error.
 *
 * SPDX-License-Identifier: MIT */
#include "program/internal.h"

#include <stdlib.h>

struct cost_pass {
    const vr_program *p;
    const vr_shape *shape;
    const int32_t *last;
    const bool *projection; /* convolution that feeds or follows attention */
    int64_t element_bytes;
    int64_t live; /* bytes in the pool after the operation before */
};

static vr_status too_much(const vr_op *op, const char *what, vr_error *err)
{
    return vr_prog_fail(op, err, VR_E_RANGE, "%s pass 2^63 at this latent size", what);
}

static int64_t value_bytes(const struct cost_pass *c, int32_t v)
{
    int64_t count = 0; /* at most 2^46: vr_program_shapes checked it */
    vr_shape_count(c->shape[v], &count, NULL);
    return count * c->element_bytes;
}

static vr_status macs_of(const struct cost_pass *c, int32_t i, int64_t *macs, vr_error *err)
{
    const vr_op *op = &c->p->op[i];
    const vr_shape *s = &c->shape[i];
    int64_t count = 0, per_element = 0;
    vr_shape_count(*s, &count, NULL);
    if (op->kind == VR_OP_CONV2D) {
        const vr_weight *w = &c->p->weight[op->weight[0]];
        per_element = w->count / w->dim[0]; /* ci * kh * kw */
    } else if (op->kind == VR_OP_ATTENTION) {
        per_element = 2 * s->h * s->w;
    }
    if (__builtin_mul_overflow(count, per_element, macs))
        return too_much(op, "multiply-adds", err);
    return VR_OK;
}

/* Follows the pool over operation i and fills its activation bytes. */
static vr_status memory_of(struct cost_pass *c, int32_t i, vr_op_cost *cost, vr_error *err)
{
    const vr_op *op = &c->p->op[i];
    if (op->kind == VR_OP_INPUT)
        return VR_OK; /* the latent is the caller's */
    int32_t over = vr_program_in_place(c->p, c->last, i);
    cost->written_bytes = value_bytes(c, i);
    if (over < 0 && __builtin_add_overflow(c->live, cost->written_bytes, &c->live))
        return too_much(op, "live bytes", err);
    cost->live_bytes = c->live;
    for (int32_t j = 0; j < vr_prog_inputs(op->kind); j++) {
        if (!vr_prog_distinct_input(op, j))
            continue;
        cost->read_bytes += value_bytes(c, op->in[j]);
        bool dies = op->in[j] != 0 && c->last[op->in[j]] == i;
        /* What was written over lives on as the result. */
        if (dies && (over < 0 || op->in[j] != op->in[over]))
            c->live -= value_bytes(c, op->in[j]);
    }
    return VR_OK;
}

static vr_status op_cost(struct cost_pass *c, int32_t i, vr_op_cost *cost, vr_error *err)
{
    const vr_op *op = &c->p->op[i];
    *cost = (vr_op_cost){0};
    for (int k = 0; k < 2; k++)
        if (op->weight[k] >= 0) {
            const vr_weight *w = &c->p->weight[op->weight[k]];
            cost->weight_bytes += w->count * (int64_t)vr_dtype_size(w->dtype);
        }
    vr_status s = macs_of(c, i, &cost->macs, err);
    return s == VR_OK ? memory_of(c, i, cost, err) : s;
}

static vr_status add_cost(const struct cost_pass *c, int32_t i, const vr_op_cost *cost,
                          vr_program_cost *total, vr_error *err)
{
    const vr_op *op = &c->p->op[i];
    if (__builtin_add_overflow(total->macs, cost->macs, &total->macs))
        return too_much(op, "multiply-adds of the program", err);
    if (op->kind == VR_OP_ATTENTION)
        total->attention_macs += cost->macs;
    else if (c->projection[i])
        total->attention_projection_macs += cost->macs;
    else
        total->conv_macs += cost->macs;
    if (cost->live_bytes > total->peak_bytes) {
        total->peak_bytes = cost->live_bytes;
        total->peak_op = i;
    }
    return VR_OK;
}

static bool is_pointwise_conv(const vr_op *op)
{
    return op->kind == VR_OP_CONV2D && op->p.conv2d.kh == 1 && op->p.conv2d.kw == 1;
}

static void mark_projections(const vr_program *p, bool *projection)
{
    for (int32_t i = 1; i < p->op_count; i++) {
        const vr_op *op = &p->op[i];
        if (op->kind == VR_OP_ATTENTION)
            for (int j = 0; j < 3; j++)
                projection[op->in[j]] = is_pointwise_conv(&p->op[op->in[j]]);
        else if (is_pointwise_conv(op) && p->op[op->in[0]].kind == VR_OP_ATTENTION)
            projection[i] = true;
    }
}

static vr_status run_pass(struct cost_pass *c, vr_program_cost *total, vr_op_cost *per_op,
                          vr_error *err)
{
    vr_program_cost t = {0};
    for (int32_t k = 0; k < c->p->weight_count; k++) {
        const vr_weight *w = &c->p->weight[k];
        t.parameters += w->count;
        t.weight_bytes += w->count * (int64_t)vr_dtype_size(w->dtype);
    }
    for (int32_t i = 0; i < c->p->op_count; i++) {
        vr_op_cost cost;
        vr_status s = op_cost(c, i, &cost, err);
        if (s == VR_OK)
            s = add_cost(c, i, &cost, &t, err);
        if (s != VR_OK)
            return s;
        if (per_op)
            per_op[i] = cost;
    }
    *total = t;
    return VR_OK;
}

vr_status vr_program_cost_of(const vr_program *p, vr_shape latent, int64_t element_bytes,
                             vr_program_cost *total, vr_op_cost *per_op, vr_error *err)
{
    vr_status s = vr_prog_need_finished(p, err);
    if (s != VR_OK)
        return s;
    if (element_bytes < 1 || element_bytes > 8)
        return vr_fail(err, VR_E_ARGUMENT, "elements of %lld bytes, wanted 1..8",
                       (long long)element_bytes);
    size_t n = (size_t)p->op_count;
    vr_shape *shape = malloc(n * sizeof *shape);
    int32_t *last = malloc(n * sizeof *last);
    bool *projection = calloc(n, sizeof *projection);
    if (!shape || !last || !projection) {
        s = vr_fail(err, VR_E_NOMEM, "program '%s': no memory to cost %d operations", p->family,
                    (int)p->op_count);
        goto done;
    }
    s = vr_program_shapes(p, latent, shape, err);
    if (s != VR_OK)
        goto done;
    vr_program_live_ranges(p, last);
    mark_projections(p, projection);
    struct cost_pass c = {p, shape, last, projection, element_bytes, 0};
    s = run_pass(&c, total, per_op, err);
done:
    free(shape);
    free(last);
    free(projection);
    return s;
}
