/* A case made concrete. Weights and inputs are drawn from a counter-based generator
 * keyed by (seed, case, tensor, index): they depend on nothing else.
 *
 * Integer fills are small enough that every partial sum is exact in the accumulator
 * and every result in the storage, in any order (clause J7.2).
 *
 * SPDX-License-Identifier: MIT */
#include "runner/problem.h"
#include "runner/own_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vc_dims(vr_shape s, int64_t dim[5])
{
    const int64_t d[5] = {s.n, s.c, s.t, s.h, s.w};
    memcpy(dim, d, sizeof d);
}

vr_status vc_round_to_storage(vr_tensor *t, vr_dtype storage, vr_error *err)
{
    vr_tensor r;
    int64_t n = 0;
    if (t->dtype == storage)
        return VR_OK;
    vr_status s = vr_tensor_new(&r, storage, t->rank, t->dim, err);
    if (s == VR_OK)
        s = vr_tensor_count(t, &n, err);
    if (s == VR_OK)
        s = vr_convert(storage, r.data, t->dtype, t->data, (uint64_t)n, err);
    if (s != VR_OK)
        return s;
    vr_tensor_free(t);
    *t = r;
    return VR_OK;
}

/* ---- numbers ------------------------------------------------------------------------ */

static uint64_t stream_of(const vc_problem *p, const char *what, int64_t k)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s/%lld", p->c->id, what, (long long)k);
    return vr_random_stream(name);
}

/* x[n] as an input of the case's fill; integers -2..2. */
static void fill_input(const vc_problem *p, uint64_t stream, float *x, int64_t n)
{
    if (p->c->fill == VC_INTEGER) {
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)((int)(vr_random_u32(p->seed, stream, (uint64_t)i) % 5) - 2);
        return;
    }
    vr_random_fill(x, n, VR_NORMAL, p->seed, stream, 0);
    for (int64_t i = 0; p->c->fill == VC_POSITIVE && i < n; i++)
        x[i] = 4.0f + x[i] / 8.0f; /* all of one sign, far from zero */
}

/* [co][ci][kh][kw]. Integers: +-1 at so many places of each output that sums stay
 * below 256, which bf16 still holds exactly. */
static void fill_conv(const vc_problem *p, uint64_t stream, float *w, int64_t co, int64_t terms)
{
    const int64_t nonzero = terms < 100 ? terms : 100;
    if (p->c->fill != VC_INTEGER) {
        vr_random_fill(w, co * terms, VR_NORMAL, p->seed, stream, 0);
        for (int64_t i = 0; i < co * terms; i++)
            w[i] = (p->c->fill == VC_POSITIVE ? fabsf(w[i]) : w[i]) / sqrtf((float)terms);
        return;
    }
    memset(w, 0, (size_t)(co * terms) * sizeof *w);
    for (int64_t o = 0; o < co; o++)
        for (int64_t k = 0; k < nonzero; k++) {
            const uint32_t r = vr_random_u32(p->seed, stream, (uint64_t)(o * nonzero + k));
            const int64_t at = nonzero == terms ? k : (int64_t)(r >> 1) % terms;
            w[o * terms + at] = (r & 1) ? 1.0f : -1.0f;
        }
}

/* A weight in the storage dtype; freed with the problem. */
static int32_t add_weight(vc_problem *p, const char *name, int32_t rank, const int64_t *dim, float *values, vr_error *err)
{
    vr_tensor t;
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dim[d];
    int32_t index = -1;
    if (p->own_count < 8 && vr_tensor_new(&t, p->c->storage, rank, dim, err) == VR_OK) {
        vr_convert(p->c->storage, t.data, VR_F32, values, (uint64_t)n, err);
        p->own_weights[p->own_count++] = t.data; /* a tensor's memory is its data */
        index = vr_program_weight(p->own_program, name, NULL, p->c->storage, rank, dim, t.data);
    }
    free(values);
    return index;
}

static int32_t conv_weights(vc_problem *p, const char *name, int64_t co, int64_t ci, int64_t kh, int64_t kw, vr_error *err)
{
    const int64_t dim[4] = {co, ci, kh, kw};
    float *w = malloc((size_t)(co * ci * kh * kw) * sizeof *w);
    if (!w)
        return -1;
    fill_conv(p, stream_of(p, name, 0), w, co, ci * kh * kw);
    return add_weight(p, name, 4, dim, w, err);
}

static int32_t vector(vc_problem *p, const char *name, int64_t n, float around, float spread, vr_error *err)
{
    float *w = malloc((size_t)n * sizeof *w);
    if (!w)
        return -1;
    vr_random_fill(w, n, VR_NORMAL, p->seed, stream_of(p, name, 0), 0);
    for (int64_t i = 0; i < n; i++)
        w[i] = p->c->fill == VC_INTEGER ? (float)((int)(w[i] * 2)) : around + spread * w[i];
    return add_weight(p, name, 1, &n, w, err);
}

/* ---- single operations -------------------------------------------------------------- */

static int32_t build_op(vc_problem *p, vr_error *err)
{
    const vc_entry *e = p->c->entry;
    const int64_t ci = p->c->ci, co = p->c->co ? p->c->co : ci;
    vr_program *q = p->own_program;
    int32_t a, b, v;
    switch (e->op) {
    case VR_OP_CONV2D:
        a = conv_weights(p, "op.weight", co, ci, e->kernel[0], e->kernel[1], err);
        b = e->bias ? vector(p, "op.bias", co, 0.0f, 1.0f, err) : -1;
        return vr_program_conv2d_pads(q, "op", 0, a, b, e->pad[0], e->pad[1], e->pad[2], e->pad[3]);
    case VR_OP_GROUP_NORM:
        a = vector(p, "op.weight", ci, 1.0f, 0.25f, err);
        b = vector(p, "op.bias", ci, 0.0f, 0.5f, err);
        return vr_program_group_norm(q, "op", 0, a, b, e->groups, e->real[0]);
    case VR_OP_TANH_CLAMP:
        return vr_program_tanh_clamp(q, "op", 0, e->real[0]);
    case VR_OP_CLAMP:
        return vr_program_clamp(q, "op", 0, e->real[0], e->real[1]);
    case VR_OP_UPSAMPLE_NEAREST:
        return vr_program_upsample(q, "op", 0, e->factor[0], e->factor[1], e->factor[2]);
    case VR_OP_UNPACK:
        return vr_program_unpack(q, "op", 0, e->factor[1], e->factor[2]);
    case VR_OP_ADD: /* two values to add: both are fed */
        a = vr_program_unary(q, "a", VR_OP_RELU, 0);
        b = vr_program_unary(q, "b", VR_OP_SILU, 0);
        return vr_program_add(q, "op", a, b);
    case VR_OP_ATTENTION:
        a = vr_program_conv2d(q, "q", 0, conv_weights(p, "q.weight", ci, ci, 1, 1, err), -1, 0);
        b = vr_program_conv2d(q, "k", 0, conv_weights(p, "k.weight", ci, ci, 1, 1, err), -1, 0);
        v = vr_program_conv2d(q, "v", 0, conv_weights(p, "v.weight", ci, ci, 1, 1, err), -1, 0);
        return vr_program_attention(q, "op", a, b, v, 1.0 / sqrt((double)ci));
    case VR_OP_SCALE_SHIFT: {
        double scale[512], shift[512];
        for (int64_t i = 0; i < ci && i < 512; i++) {
            scale[i] = 0.5 + vr_random_uniform(p->seed, stream_of(p, "scale", 0), (uint64_t)i);
            shift[i] = vr_random_normal(p->seed, stream_of(p, "shift", 0), (uint64_t)i);
        }
        return vr_program_scale_shift(q, "op", 0, scale, shift);
    }
    default:
        return vr_program_unary(q, "op", e->op, 0);
    }
}

static vc_method op_method(const vc_case *c)
{
    switch (c->entry->op) {
    case VR_OP_CONV2D:
        return c->fill == VC_INTEGER ? VC_BY_INTEGER : VC_BY_RATIO;
    case VR_OP_UPSAMPLE_NEAREST:
    case VR_OP_UNPACK:
    case VR_OP_RELU:
    case VR_OP_CLAMP:
        return VC_BY_BYTES;
    case VR_OP_SILU:
    case VR_OP_TANH_CLAMP:
    case VR_OP_ADD:
        return VC_BY_ULP;
    default:
        return VC_BY_RATIO;
    }
}

static vr_status make_op(vc_problem *p, vr_error *err)
{
    const vc_case *c = p->c;
    if (c->entry->op == VR_OP_SCALE_SHIFT && c->ci > 512)
        return vr_fail(err, VR_E_RANGE, "case %s: scale_shift takes at most 512 channels here", c->id);
    p->own_program = vr_program_new("op", c->ci);
    p->last = build_op(p, err);
    vr_status s = vr_program_finish(p->own_program, p->last, -1.0, 1.0, err);
    if (s != VR_OK)
        return vr_fail_prefix(err, "case %s", c->id);
    p->program = p->own_program;
    p->first = p->last;
    p->latent = (vr_shape){c->n, c->ci, 1, c->h, c->w};
    p->method = op_method(c);
    p->depth = VJ_LEVEL_OP;
    return VR_OK;
}

/* ---- parts of models ------------------------------------------------------------------ */

int32_t vc_range_reads(const vr_program *p, int32_t first, int32_t last, int32_t *value)
{
    int32_t n = 0;
    for (int32_t i = first; i <= last; i++)
        for (int k = 0; k < 3; k++) {
            const int32_t v = p->op[i].in[k];
            bool known = v < 0 || v >= first;
            for (int32_t q = 0; !known && q < n; q++)
                known = value[q] == v;
            if (!known && n < VC_FEEDS)
                value[n++] = v;
        }
    return n;
}

static vr_status make_model(vc_problem *p, vr_error *err)
{
    const vc_case *c = p->c;
    const vc_entry *e = c->entry;
    char spec[600], dtype[8];
    snprintf(dtype, sizeof dtype, "%s", c->storage == VR_F16 ? "F16" : c->storage == VR_BF16 ? "BF16" : "F32");
    snprintf(spec, sizeof spec, "%s,seed=%llu,dtype=%s", e->model, (unsigned long long)(p->seed % 1000000000u), dtype);
    vr_status s = vr_model_open(strncmp(e->model, "synth:", 6) == 0 ? spec : e->model, vc_own_options(c), &p->model, err);
    if (s != VR_OK)
        return vr_fail_prefix(err, "case %s", c->id);
    p->program = p->model->program;
    p->latent = (vr_shape){c->n, p->model->latent_channels, 1, c->h, c->w};
    p->method = VC_BY_RATIO;
    p->depth = e->level == VC_L2 ? VJ_LEVEL_BLOCK : VJ_LEVEL_DECODE;
    p->first = 1;
    p->last = p->program->output;
    if (e->level == VC_L2) {
        p->first = vr_program_find_tap(p->program, e->from);
        p->last = vr_program_find_tap(p->program, e->to);
        if (p->first < 1 || p->last < p->first)
            return vr_fail(err, VR_E_FORMAT, "case %s: taps '%s' and '%s' are no range of %s", c->id, e->from, e->to, e->model);
    }
    if (e->tile.mode != VR_TILE_NONE) {
        p->tiled = true;
        s = vr_tile_plan_make(p->program, p->latent, &e->tile, &p->plan, err);
        if (s != VR_OK)
            return vr_fail_prefix(err, "case %s", c->id);
    }
    return VR_OK;
}

vr_status vc_problem_make(const vc_case *c, uint64_t seed, vc_problem *out, vr_error *err)
{
    *out = (vc_problem){.c = c, .seed = seed};
    vr_status s = c->entry->op != VR_OP_KIND_COUNT ? make_op(out, err) : make_model(out, err);
    if (s == VR_OK) {
        out->shape = calloc((size_t)out->program->op_count, sizeof *out->shape);
        s = out->shape ? vr_program_shapes(out->program, out->latent, out->shape, err)
                       : vr_fail(err, VR_E_NOMEM, "no memory for shapes");
    }
    if (s == VR_OK)
        out->feeds = vc_range_reads(out->program, out->first, out->last, out->feed_value);
    if (s != VR_OK)
        vc_problem_free(out);
    return s;
}

void vc_problem_free(vc_problem *p)
{
    vr_tile_plan_free(&p->plan);
    vr_program_free(p->own_program);
    vr_model_close(p->model);
    for (int32_t k = 0; k < p->own_count; k++)
        free(p->own_weights[k]);
    free(p->shape);
    *p = (vc_problem){.c = NULL};
}

/* ---- inputs ------------------------------------------------------------------------------ */

static vr_status random_value(const vc_problem *p, int32_t v, int64_t run, vr_tensor *out, vr_error *err)
{
    int64_t dim[5], n = 0;
    vc_dims(p->shape[v], dim);
    vr_status s = vr_tensor_new(out, VR_F32, 5, dim, err);
    if (s == VR_OK)
        s = vr_tensor_count(out, &n, err);
    if (s != VR_OK)
        return s;
    char what[32];
    snprintf(what, sizeof what, "input%d", (int)v);
    fill_input(p, stream_of(p, what, run), out->data, n);
    return vc_round_to_storage(out, p->c->storage, err);
}

vr_status vc_problem_inputs(const vc_problem *p, int64_t run, vr_tensor *feed, vr_error *err)
{
    vr_status s = VR_OK;
    for (int32_t k = 0; k < p->feeds; k++)
        feed[k] = (vr_tensor){.data = NULL};
    if (p->own_program) {
        for (int32_t k = 0; s == VR_OK && k < p->feeds; k++)
            s = random_value(p, p->feed_value[k], run, &feed[k], err);
        return s;
    }
    vr_tensor z = {.data = NULL};
    const vr_tensor *own = vc_own_latents(p->c);
    if (own) {
        int64_t n = 0;
        s = vr_tensor_new(&z, VR_F32, 4, own->dim, err);
        if (s == VR_OK)
            s = vr_tensor_count(own, &n, err);
        if (s == VR_OK)
            memcpy(z.data, own->data, (size_t)n * sizeof(float));
    } else {
        s = vr_model_latents(p->model, p->seed + (uint64_t)run, p->c->n, p->c->h, p->c->w, &z, err);
    }
    if (s == VR_OK)
        s = vc_round_to_storage(&z, p->c->storage, err);
    if (s == VR_OK && p->first == 1) {
        feed[0] = z;
        return VR_OK;
    }
    /* Inside a model: what the reference has there. */
    const vr_exec_feed latent = {0, &z};
    const vr_exec_options opt = {.policy = VR_POLICY_GOLDEN};
    if (s == VR_OK)
        s = vr_exec_range(p->program, p->latent, 1, p->first - 1, &latent, 1, p->feed_value, p->feeds, &opt, feed, err);
    for (int32_t k = 0; s == VR_OK && k < p->feeds; k++)
        s = vc_round_to_storage(&feed[k], p->c->storage, err);
    vr_tensor_free(&z);
    return s;
}
