/* A program as JSON and back (clause A4.3). The reader trusts nothing: it is also
 * what a child runs on bytes from outside.
 *
 * SPDX-License-Identifier: MIT */
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

static uint64_t aligned(uint64_t n)
{
    return (n + 63) & ~(uint64_t)63;
}

/* ---- writing ------------------------------------------------------------------ */

static void parameters(const vr_op *op, int64_t i[16], double f[8])
{
    switch (op->kind) {
    case VR_OP_CONV2D:
        i[0] = op->p.conv2d.kh;
        i[1] = op->p.conv2d.kw;
        i[2] = op->p.conv2d.pad_top;
        i[3] = op->p.conv2d.pad_bottom;
        i[4] = op->p.conv2d.pad_left;
        i[5] = op->p.conv2d.pad_right;
        break;
    case VR_OP_GROUP_NORM:
        i[0] = op->p.group_norm.groups;
        f[0] = op->p.group_norm.eps;
        break;
    case VR_OP_TANH_CLAMP:
        f[0] = op->p.tanh_clamp.limit;
        break;
    case VR_OP_UPSAMPLE_NEAREST:
        i[0] = op->p.upsample.factor_t;
        i[1] = op->p.upsample.factor_h;
        i[2] = op->p.upsample.factor_w;
        break;
    case VR_OP_ATTENTION:
        f[0] = op->p.attention.scale;
        break;
    case VR_OP_UNPACK:
        i[0] = op->p.unpack.fh;
        i[1] = op->p.unpack.fw;
        break;
    case VR_OP_CLAMP:
        f[0] = op->p.clamp.lo;
        f[1] = op->p.clamp.hi;
        break;
    case VR_OP_INPUT:
    case VR_OP_SILU:
    case VR_OP_RELU:
    case VR_OP_ADD:
    case VR_OP_SCALE_SHIFT:
    case VR_OP_KIND_COUNT:
        break;
    }
}

static json_t *doubles(const double *v, int64_t n)
{
    json_t *a = json_array();
    for (int64_t k = 0; k < n; k++)
        json_array_append_new(a, json_real(v[k]));
    return a;
}

static json_t *op_json(const vr_op *op)
{
    int64_t i[16] = {0};
    double f[8] = {0};
    parameters(op, i, f);
    json_t *in = json_array();
    for (int k = 0; k < 6; k++)
        json_array_append_new(in, json_integer((json_int_t)i[k]));
    json_t *j = json_pack("{s:i, s:[i, i, i], s:[i, i], s:I, s:o, s:o, s:s}", "kind", (int)op->kind, "in", (int)op->in[0],
                          (int)op->in[1], (int)op->in[2], "weight", (int)op->weight[0], (int)op->weight[1], "channels",
                          (json_int_t)op->channels, "i", in, "f", doubles(f, 2), "tap", op->tap);
    if (op->kind == VR_OP_SCALE_SHIFT)
        json_object_set_new(j, "table", json_pack("[o, o]", doubles(op->p.scale_shift.scale, op->channels),
                                                  doubles(op->p.scale_shift.shift, op->channels)));
    return j;
}

json_t *wire_program(const vr_program *p, uint64_t *weight_bytes)
{
    json_t *ops = json_array(), *weights = json_array();
    for (int32_t i = 0; i < p->op_count; i++)
        json_array_append_new(ops, op_json(&p->op[i]));
    uint64_t at = 0;
    for (int32_t k = 0; k < p->weight_count; k++) {
        const vr_weight *w = &p->weight[k];
        json_t *dim = json_array();
        for (int d = 0; d < w->rank; d++)
            json_array_append_new(dim, json_integer((json_int_t)w->dim[d]));
        json_array_append_new(weights, json_pack("{s:s, s:i, s:o, s:I}", "name", w->name, "dtype",
                                                 (int)wire_dtype(w->dtype), "dim", dim, "offset", (json_int_t)at));
        at = aligned(at + (uint64_t)w->count * vr_dtype_size(w->dtype));
    }
    *weight_bytes = at;
    return json_pack("{s:o, s:o, s:i, s:[f, f], s:I}", "ops", ops, "weights", weights, "output", (int)p->output, "range",
                     p->range_lo, p->range_hi, "weight_bytes", (json_int_t)at);
}

void wire_copy_weights(const vr_program *p, void *to)
{
    uint64_t at = 0;
    for (int32_t k = 0; k < p->weight_count; k++) {
        const uint64_t bytes = (uint64_t)p->weight[k].count * vr_dtype_size(p->weight[k].dtype);
        memcpy((char *)to + at, p->weight[k].data, bytes);
        at = aligned(at + bytes);
    }
}

/* ---- reading ------------------------------------------------------------------- */

static vr_status read_integers(json_t *a, int64_t *out, size_t most, const char *what, size_t i, vr_error *err)
{
    if (!json_is_array(a) || json_array_size(a) > most)
        return vr_fail(err, VR_E_FORMAT, "operation %zu: '%s' wants an array of at most %zu integers", i, what, most);
    for (size_t k = 0; k < json_array_size(a); k++) {
        if (!json_is_integer(json_array_get(a, k)))
            return vr_fail(err, VR_E_FORMAT, "operation %zu: '%s' holds something that is no integer", i, what);
        out[k] = json_integer_value(json_array_get(a, k));
    }
    return VR_OK;
}

static vr_status read_table(json_t *t, vp_op *op, double **at, size_t i, vr_error *err)
{
    for (size_t k = 0; k < 2; k++) {
        json_t *a = json_array_get(t, k);
        if (json_array_size(a) != (size_t)op->channels)
            return vr_fail(err, VR_E_FORMAT, "operation %zu: 'table' wants 2 arrays of %lld numbers", i,
                           (long long)op->channels);
        op->table[k] = *at;
        for (size_t c = 0; c < (size_t)op->channels; c++)
            *(*at)++ = json_number_value(json_array_get(a, c));
    }
    return VR_OK;
}

static vr_status read_op(json_t *j, size_t i, size_t weights, vp_op *op, double **table, vr_error *err)
{
    int64_t in[4] = {-1, -1, -1, -1}, w[4] = {-1, -1, -1, -1};
    json_t *f = json_object_get(j, "f");
    op->size = sizeof *op;
    op->tap = json_string_value(json_object_get(j, "tap"));
    op->kind = (uint32_t)json_integer_value(json_object_get(j, "kind"));
    op->channels = json_integer_value(json_object_get(j, "channels"));
    if (!op->tap || !json_is_integer(json_object_get(j, "kind")) || op->channels < 1 || op->channels > 1 << 24 ||
        !json_is_array(f) || json_array_size(f) > 8)
        return vr_fail(err, VR_E_FORMAT, "operation %zu: want kind, channels, tap and f", i);
    for (size_t k = 0; k < json_array_size(f); k++)
        op->f[k] = json_number_value(json_array_get(f, k));
    vr_status s = read_integers(json_object_get(j, "in"), in, 4, "in", i, err);
    if (s == VR_OK)
        s = read_integers(json_object_get(j, "weight"), w, 4, "weight", i, err);
    if (s == VR_OK)
        s = read_integers(json_object_get(j, "i"), op->i, 16, "i", i, err);
    for (int k = 0; s == VR_OK && k < 4; k++) {
        if (in[k] < -1 || in[k] >= (int64_t)i || w[k] < -1 || w[k] >= (int64_t)weights)
            return vr_fail(err, VR_E_FORMAT, "operation %zu reads value %lld or weight %lld, which there is not", i,
                           (long long)in[k], (long long)w[k]);
        op->in[k] = (int32_t)in[k];
        op->weight[k] = (int32_t)w[k];
    }
    if (s == VR_OK && op->kind == VP_OP_SCALE_SHIFT)
        s = read_table(json_object_get(j, "table"), op, table, i, err);
    return s;
}

static vr_status read_weight(json_t *j, size_t k, void *base, uint64_t size, vp_weight *w, vr_error *err)
{
    const json_t *dim = json_object_get(j, "dim");
    vp_tensor *t = &w->tensor;
    *w = (vp_weight){.size = sizeof *w, .name = json_string_value(json_object_get(j, "name"))};
    t->size = sizeof *t;
    t->dtype = (uint32_t)json_integer_value(json_object_get(j, "dtype"));
    t->rank = (uint32_t)json_array_size(dim);
    const int64_t offset = json_integer_value(json_object_get(j, "offset"));
    uint64_t count = 1;
    if (!w->name || !wire_dtype_size(t->dtype) || t->rank < 1 || t->rank > 5 || offset < 0)
        return vr_fail(err, VR_E_FORMAT, "weight %zu: want name, dtype, dim and offset", k);
    for (uint32_t d = 0; d < t->rank; d++) {
        t->dim[d] = json_integer_value(json_array_get(dim, d));
        if (t->dim[d] < 1 || __builtin_mul_overflow(count, (uint64_t)t->dim[d], &count) || count > (uint64_t)1 << 40)
            return vr_fail(err, VR_E_FORMAT, "weight %zu (%s): extents out of range", k, w->name);
    }
    wire_dense(t);
    if ((uint64_t)offset > size || t->bytes > size - (uint64_t)offset)
        return vr_fail(err, VR_E_FORMAT, "weight %zu (%s) ends at byte %llu of %llu", k, w->name,
                       (unsigned long long)((uint64_t)offset + t->bytes), (unsigned long long)size);
    t->data = (char *)base + offset;
    return VR_OK;
}

vr_status wire_program_read(json_t *json, void *weights, uint64_t weight_bytes, wire_program_copy *out, vr_error *err)
{
    json_t *ops = json_object_get(json, "ops"), *ws = json_object_get(json, "weights");
    json_t *range = json_object_get(json, "range");
    const size_t n = json_array_size(ops), m = json_array_size(ws);
    size_t doubles_needed = 0, i;
    json_t *j;
    *out = (wire_program_copy){.source = json_incref(json)};
    json_array_foreach(ops, i, j)
        doubles_needed += json_array_size(json_array_get(json_object_get(j, "table"), 0)) +
                          json_array_size(json_array_get(json_object_get(j, "table"), 1));
    if (n < 2 || n > 100000 || m > 100000 || json_array_size(range) != 2)
        return vr_fail(err, VR_E_FORMAT, "a program of %zu operations and %zu weights; want 2 to 100000 operations and a "
                       "range of two numbers", n, m);
    out->op = calloc(n, sizeof *out->op);
    out->weight = calloc(m ? m : 1, sizeof *out->weight);
    out->table = calloc(doubles_needed ? doubles_needed : 1, sizeof *out->table);
    if (!out->op || !out->weight || !out->table)
        return vr_fail(err, VR_E_NOMEM, "no memory for a program of %zu operations", n);
    double *table = out->table;
    vr_status s = VR_OK;
    for (size_t k = 0; s == VR_OK && k < m; k++)
        s = read_weight(json_array_get(ws, k), k, weights, weight_bytes, &out->weight[k], err);
    for (size_t k = 0; s == VR_OK && k < n; k++)
        s = read_op(json_array_get(ops, k), k, m, &out->op[k], &table, err);
    const json_int_t output = json_integer_value(json_object_get(json, "output"));
    if (s == VR_OK && (output < 1 || output >= (json_int_t)n))
        s = vr_fail(err, VR_E_FORMAT, "output is value %lld of %zu", (long long)output, n);
    out->program = (vp_program){.size = sizeof out->program, .op_count = (uint32_t)n, .op_stride = sizeof(vp_op),
                                .weight_count = (uint32_t)m, .weight_stride = sizeof(vp_weight),
                                .output = (int32_t)output, .op = out->op, .weight = out->weight,
                                .range_lo = json_number_value(json_array_get(range, 0)),
                                .range_hi = json_number_value(json_array_get(range, 1))};
    return s;
}

void wire_program_free(wire_program_copy *p)
{
    free(p->op);
    free(p->weight);
    free(p->table);
    json_decref(p->source);
    *p = (wire_program_copy){.op = NULL};
}
