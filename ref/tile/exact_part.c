/* One part of a value, computed from parts of stored values (clause T10.3): a
 * convolution asks for the rows and columns it reads and no more; zeros appear
 * at true borders only; a group norm applies statistics of the true whole.
 * Every result is the one the undivided operation gives, bit for bit.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "tile/exact.h"

/* Arithmetic for work of so many elements: waking threads for little of it costs
 * more than they bring (the result does not depend on their number, N4). */
enum { WORTH_SHARING_CONV = 4096, WORTH_SHARING = 65536 };

static vr_arith *arith_for(ex_state *s, int64_t bytes, int64_t worth)
{
    s->arith.threads = bytes / s->elem < worth ? 1 : s->threads;
    return &s->arith;
}

static vr_shape part_shape(const ex_state *s, int32_t v, ex_region r)
{
    vr_shape q = s->shape[v];
    q.h = r.y1 - r.y0;
    q.w = r.x1 - r.x0;
    return q;
}

static vr_status new_part(ex_state *s, int32_t v, ex_region r, ex_part *out, vr_error *err)
{
    *out = (ex_part){.r = r, .shape = part_shape(s, v, r), .owned = true};
    const vr_shape q = out->shape;
    out->bytes = (uint64_t)(q.n * q.c * q.t * q.h * q.w * s->elem);
    return ex_alloc(s, out->bytes, &out->data, err);
}

void ex_release(ex_state *s, ex_part *part)
{
    if (part->owned)
        ex_free(s, part->bytes, part->data);
    *part = (ex_part){.owned = false};
}

static vr_view view_of(const ex_part *p)
{
    return (vr_view){p->shape, p->data};
}

/* Copies between a part and the whole value it belongs to, row by row. */
static void copy_rows(const ex_state *s, int32_t v, const ex_part *part, bool to_whole)
{
    const vr_shape whole = s->shape[v], q = part->shape;
    const int64_t bytes = q.w * s->elem;
    char *base = s->value[v].data, *mine = part->data;
#pragma omp parallel for schedule(static) num_threads(s->threads) if (part->bytes > WORTH_SHARING * 4)
    for (int64_t plane = 0; plane < q.n * q.c * q.t; plane++)
        for (int64_t y = 0; y < q.h; y++) {
            char *a = base + ((plane * whole.h + part->r.y0 + y) * whole.w + part->r.x0) * s->elem;
            char *b = mine + (plane * q.h + y) * bytes;
            if (to_whole)
                memcpy(a, b, (size_t)bytes);
            else
                memcpy(b, a, (size_t)bytes);
        }
}

void ex_copy_in(const ex_state *s, int32_t v, const ex_part *part)
{
    if (!s->dry)
        copy_rows(s, v, part, true);
}

static vr_status load_stored(ex_state *s, int32_t v, ex_region r, bool writable, ex_part *out, vr_error *err)
{
    const vr_shape whole = s->shape[v];
    bool all = r.y0 == 0 && r.x0 == 0 && r.y1 == whole.h && r.x1 == whole.w;
    if (all && !writable && s->value[v].place != EX_STORE) {
        *out = (ex_part){.r = r, .shape = whole, .data = s->value[v].data};
        return VR_OK;
    }
    vr_status st = new_part(s, v, r, out, err);
    if (st == VR_OK && !s->dry)
        copy_rows(s, v, out, false);
    return st;
}

/* ---- operations --------------------------------------------------------- */

static vr_status eval_conv(ex_state *s, int32_t v, ex_region r, ex_part *out, vr_error *err)
{
    const vr_op *op = &s->p->op[v];
    const vr_shape in = s->shape[op->in[0]];
    const int64_t top = op->p.conv2d.pad_top, left = op->p.conv2d.pad_left;
    ex_region q = {r.y0 - top, r.y1 - 1 - top + op->p.conv2d.kh, r.x0 - left,
                   r.x1 - 1 - left + op->p.conv2d.kw};
    const int64_t above = q.y0 < 0 ? -q.y0 : 0, before = q.x0 < 0 ? -q.x0 : 0;
    q.y0 += above;
    q.x0 += before;
    q.y1 = q.y1 < in.h ? q.y1 : in.h;
    q.x1 = q.x1 < in.w ? q.x1 : in.w;
    ex_part x;
    vr_status st = ex_eval(s, op->in[0], q, false, &x, err);
    if (st != VR_OK)
        return st;
    st = new_part(s, v, r, out, err);
    if (st == VR_OK && !s->dry) {
        ex_value *e = &s->value[v];
        if (!e->packed) {
            s->arith.threads = s->threads;
            st = vr_conv2d_pack(&s->arith, op, &s->p->weight[op->weight[0]],
                                op->weight[1] < 0 ? NULL : &s->p->weight[op->weight[1]], &e->weights, err);
            e->packed = st == VR_OK;
        }
        if (st == VR_OK)
            st = vr_conv2d_apply(arith_for(s, (int64_t)out->bytes, WORTH_SHARING_CONV), &e->weights, above, before, view_of(&x), view_of(out), err);
        if (st != VR_OK)
            ex_release(s, out);
    }
    ex_release(s, &x);
    return st;
}

static vr_status eval_rearranged(ex_state *s, int32_t v, ex_region r, ex_part *out, vr_error *err)
{
    const vr_op *op = &s->p->op[v];
    const bool up = op->kind == VR_OP_UPSAMPLE_NEAREST;
    const int64_t fh = up ? op->p.upsample.factor_h : op->p.unpack.fh;
    const int64_t fw = up ? op->p.upsample.factor_w : op->p.unpack.fw;
    const ex_region q = {r.y0 / fh, (r.y1 - 1) / fh + 1, r.x0 / fw, (r.x1 - 1) / fw + 1};
    ex_part x;
    vr_status st = ex_eval(s, op->in[0], q, false, &x, err);
    if (st != VR_OK)
        return st;
    st = new_part(s, v, r, out, err);
    if (st == VR_OK && !s->dry) {
        if (up)
            vr_upsample_part(arith_for(s, (int64_t)out->bytes, WORTH_SHARING), op, view_of(&x), q.y0, q.x0, view_of(out), r.y0, r.x0);
        else
            vr_unpack_part(arith_for(s, (int64_t)out->bytes, WORTH_SHARING), op, view_of(&x), q.y0, q.x0, view_of(out), r.y0, r.x0);
    }
    ex_release(s, &x);
    return st;
}

/* Element-wise and group norm: over the part of in[0], which is ours to write. */
static vr_status eval_in_place(ex_state *s, int32_t v, ex_region r, ex_part *out, vr_error *err)
{
    const vr_op *op = &s->p->op[v];
    ex_part other = {.owned = false};
    vr_status st = ex_eval(s, op->in[0], r, true, out, err);
    if (st == VR_OK && op->kind == VR_OP_ADD) {
        st = ex_eval(s, op->in[1], r, false, &other, err);
        if (st != VR_OK)
            ex_release(s, out);
    }
    if (st != VR_OK || s->dry) {
        ex_release(s, &other);
        return st;
    }
    vr_view x = view_of(out);
    vr_arith *a = arith_for(s, (int64_t)out->bytes, WORTH_SHARING);
    if (op->kind == VR_OP_ADD)
        vr_op_add(a, x, view_of(&other), x);
    else if (op->kind == VR_OP_GROUP_NORM)
        st = vr_group_norm_apply(a, op, &s->p->weight[op->weight[0]],
                                 &s->p->weight[op->weight[1]], s->value[v].moments, x, x, err);
    else
        vr_op_unary(a, op, x, x);
    ex_release(s, &other);
    if (st != VR_OK)
        ex_release(s, out);
    return st;
}

vr_status ex_eval(ex_state *s, int32_t v, ex_region r, bool writable, ex_part *out, vr_error *err)
{
    if (s->value[v].place != EX_NOWHERE)
        return load_stored(s, v, r, writable, out, err);
    if (s->counting && !s->value[v].stored)
        s->recomputed += (r.y1 - r.y0) * (r.x1 - r.x0) * s->shape[v].n * s->shape[v].c * s->shape[v].t;
    switch (s->p->op[v].kind) {
    case VR_OP_CONV2D:
        return eval_conv(s, v, r, out, err);
    case VR_OP_UPSAMPLE_NEAREST:
    case VR_OP_UNPACK:
        return eval_rearranged(s, v, r, out, err);
    case VR_OP_GROUP_NORM:
    case VR_OP_SILU:
    case VR_OP_RELU:
    case VR_OP_TANH_CLAMP:
    case VR_OP_SCALE_SHIFT:
    case VR_OP_CLAMP:
    case VR_OP_ADD:
        return eval_in_place(s, v, r, out, err);
    case VR_OP_INPUT:
    case VR_OP_ATTENTION:
    case VR_OP_KIND_COUNT:
        break;
    }
    return vr_fail(err, VR_E_INTERNAL, "operation %d (%s) cannot be computed in parts", v, s->p->op[v].tap);
}

vr_status ex_need(ex_state *s, int32_t v, ex_region r, uint64_t *bytes, vr_error *err)
{
    ex_state dry = *s;
    ex_part part;
    dry.dry = true;
    dry.counting = false;
    dry.live = dry.peak = 0;
    vr_status st = ex_eval(&dry, v, r, true, &part, err);
    *bytes = dry.peak;
    return st;
}
