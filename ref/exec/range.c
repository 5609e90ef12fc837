/* A range of a program, fed with the values it reads: single operations, blocks,
 * and a decode with its inner values (clause N9). For judging and for backends;
 * it keeps no pool, a value lives to its last use in the range.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "exec/step.h"

typedef struct range_state {
    const vr_program *p;
    vr_arith arith;
    int32_t first, last;
    vr_shape *shape;
    int32_t *used;  /* last operation of the range that reads the value */
    void **data;
    bool *keep;     /* wanted, or given away */
} range_state;

static int64_t count_of(vr_shape s)
{
    return s.n * s.c * s.t * s.h * s.w;
}

static size_t elem(const range_state *r)
{
    return vr_arith_is_f64(&r->arith) ? 8 : 4;
}

static vr_status new_value(range_state *r, int32_t v, vr_error *err)
{
    const size_t bytes = (size_t)count_of(r->shape[v]) * elem(r);
    r->data[v] = aligned_alloc(64, (bytes + 63) / 64 * 64);
    return r->data[v] ? VR_OK : vr_fail(err, VR_E_NOMEM, "no memory for value %d (%s)", v, r->p->op[v].tap);
}

static vr_status take_feed(range_state *r, const vr_exec_feed *f, vr_error *err)
{
    char text[96];
    int64_t count;
    if (f->value < 0 || f->value >= r->first || !f->tensor)
        return vr_fail(err, VR_E_ARGUMENT, "value %d is fed; want a value made before operation %d", f->value, r->first);
    if (r->data[f->value])
        return vr_fail(err, VR_E_ARGUMENT, "value %d (%s) is fed twice", f->value, r->p->op[f->value].tap);
    vr_status s = vr_tensor_count(f->tensor, &count, err);
    if (s == VR_OK && count != count_of(r->shape[f->value]))
        return vr_fail(err, VR_E_SHAPE, "value %d (%s) is fed as %s; want %lld elements", f->value,
                       r->p->op[f->value].tap, vr_tensor_describe(f->tensor, text, sizeof text),
                       (long long)count_of(r->shape[f->value]));
    if (s == VR_OK)
        s = new_value(r, f->value, err);
    const vr_dtype want = vr_arith_is_f64(&r->arith) ? VR_F64 : VR_F32;
    if (s == VR_OK)
        s = vr_convert(want, r->data[f->value], f->tensor->dtype, f->tensor->data, (uint64_t)count, err);
    if (s == VR_OK && want == VR_F32)
        vr_store_round(&r->arith, r->data[f->value], count);
    return s;
}

static vr_status step(range_state *r, int32_t i, vr_error *err)
{
    const vr_op *op = &r->p->op[i];
    vr_view in[3] = {{.data = NULL}};
    for (int k = 0; k < 3 && op->in[k] >= 0; k++) {
        if (!r->data[op->in[k]])
            return vr_fail(err, VR_E_ARGUMENT, "operation %d (%s) reads value %d (%s), which is neither fed nor made in "
                           "%d..%d", i, op->tap, op->in[k], r->p->op[op->in[k]].tap, r->first, r->last);
        in[k] = (vr_view){r->shape[op->in[k]], r->data[op->in[k]]};
    }
    vr_status s = new_value(r, i, err);
    if (s == VR_OK)
        s = vr_exec_op(&r->arith, r->p, i, in, (vr_view){r->shape[i], r->data[i]}, err);
    for (int k = 0; k < 3; k++) {
        const int32_t v = op->in[k];
        if (v >= 0 && r->used[v] == i && !r->keep[v] && r->data[v]) {
            free(r->data[v]);
            r->data[v] = NULL;
        }
    }
    return s;
}

static vr_status hand_out(range_state *r, int32_t v, vr_tensor *out, vr_error *err)
{
    const vr_shape q = r->shape[v];
    const bool video = r->shape[0].t > 1;
    const int64_t four[4] = {q.n, q.c, q.h, q.w}, five[5] = {q.n, q.c, q.t, q.h, q.w};
    if (!r->data[v])
        return vr_fail(err, VR_E_ARGUMENT, "value %d (%s) is wanted, but neither fed nor made in %d..%d", v,
                       r->p->op[v].tap, r->first, r->last);
    vr_status s = vr_tensor_new(out, vr_arith_is_f64(&r->arith) ? VR_F64 : VR_F32, video ? 5 : 4,
                                video ? five : four, err);
    if (s == VR_OK)
        memcpy(out->data, r->data[v], (size_t)count_of(q) * elem(r));
    return s;
}

static vr_status run(range_state *r, vr_shape latent, const vr_exec_feed *feed, int32_t feeds, const int32_t *want,
                     int32_t wants, vr_tensor *out, vr_error *err)
{
    vr_status s = vr_program_shapes(r->p, latent, r->shape, err);
    for (int32_t k = 0; s == VR_OK && k < feeds; k++)
        s = take_feed(r, &feed[k], err);
    for (int32_t i = r->first; i <= r->last; i++)
        for (int k = 0; k < 3; k++)
            if (r->p->op[i].in[k] >= 0)
                r->used[r->p->op[i].in[k]] = i;
    for (int32_t k = 0; s == VR_OK && k < wants; k++) {
        if (want[k] < 0 || want[k] > r->last)
            return vr_fail(err, VR_E_ARGUMENT, "value %d is wanted; want 0 to %d", want[k], r->last);
        r->keep[want[k]] = true;
    }
    for (int32_t i = r->first; s == VR_OK && i <= r->last; i++)
        s = step(r, i, err);
    for (int32_t k = 0; s == VR_OK && k < wants; k++)
        s = hand_out(r, want[k], &out[k], err);
    return s;
}

vr_status vr_exec_range(const vr_program *p, vr_shape latent, int32_t first, int32_t last, const vr_exec_feed *feed,
                        int32_t feeds, const int32_t *want, int32_t wants, const vr_exec_options *opt, vr_tensor *out,
                        vr_error *err)
{
    const vr_exec_options plain = {.policy = VR_POLICY_GOLDEN};
    const size_t n = (size_t)p->op_count;
    if (!opt)
        opt = &plain;
    for (int32_t k = 0; k < wants; k++)
        out[k] = (vr_tensor){.data = NULL};
    if (first < 1 || last < first || last >= p->op_count)
        return vr_fail(err, VR_E_ARGUMENT, "operations %d..%d; want a range within 1..%d", first, last, p->op_count - 1);
    range_state r = {.p = p, .first = first, .last = last, .shape = calloc(n, sizeof *r.shape),
                     .used = calloc(n, sizeof *r.used), .data = calloc(n, sizeof *r.data),
                     .keep = calloc(n, sizeof *r.keep)};
    r.arith = (vr_arith){.policy = opt->policy, .order = opt->order,
                         .threads = opt->threads ? opt->threads : omp_get_max_threads()};
    vr_status s = r.shape && r.used && r.data && r.keep ? vr_kernels_get(&r.arith.k, err)
                                                        : vr_fail(err, VR_E_NOMEM, "cannot allocate the run state");
    if (s == VR_OK)
        s = run(&r, latent, feed, feeds, want, wants, out, err);
    for (int32_t k = 0; s != VR_OK && k < wants; k++)
        vr_tensor_free(&out[k]);
    for (size_t v = 0; r.data && v < n; v++)
        free(r.data[v]);
    free(r.shape);
    free(r.used);
    free(r.data);
    free(r.keep);
    return s;
}
