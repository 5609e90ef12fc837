/* The other operations: oneDNN's where it has them (swish, tanh, sums, matrix products,
 * softmax), plain loops where it has not (group norm, copies, clamps).
 *
 * SPDX-License-Identifier: MIT */
#include "backends/onednn/onednn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float *weights(const on_net *n, const vr_op *op, int k)
{
    const vr_weight *w = &n->p->weight[op->weight[k]];
    float *x = malloc((size_t)w->count * sizeof *x);
    if (x)
        vr_convert(VR_F32, x, w->dtype, w->data, (uint64_t)w->count, NULL);
    return x;
}

static vr_status group_norm(const on_net *n, const vr_op *op, const on_value *in, on_value *out, vr_error *err)
{
    float *x = on_floats(n, in), *g = weights(n, op, 0), *b = weights(n, op, 1);
    const vr_shape s = in->shape;
    const int64_t groups = op->p.group_norm.groups, per = s.c / groups, plane = s.t * s.h * s.w, count = per * plane;
    const bool ok = x && g && b;
#pragma omp parallel for schedule(static)
    for (int64_t k = 0; k < (ok ? s.n * groups : 0); k++) {
        float *y = x + k * count;
        double mean = 0, var = 0;
        for (int64_t i = 0; i < count; i++)
            mean += (double)y[i];
        mean /= (double)count;
        for (int64_t i = 0; i < count; i++)
            var += ((double)y[i] - mean) * ((double)y[i] - mean);
        const float rstd = (float)(1.0 / sqrt(var / (double)count + op->p.group_norm.eps)), m = (float)mean;
        for (int64_t i = 0; i < count; i++) {
            const int64_t c = k % groups * per + i / plane;
            y[i] = (y[i] - m) * rstd * g[c] + b[c];
        }
    }
    if (ok)
        on_store(n, out, x);
    free(x);
    free(g);
    free(b);
    return ok ? VR_OK : vr_fail(err, VR_E_NOMEM, "no memory for a group norm");
}

static vr_status eltwise(const on_net *n, dnnl_alg_kind_t kind, const on_value *in, on_value *out, const char *what, vr_error *err)
{
    const int64_t count = on_count(in->shape);
    dnnl_memory_desc_t d;
    dnnl_eltwise_desc_t desc;
    dnnl_status_t s = on_desc(&d, 1, &count, on_type(n));
    if (s == dnnl_success)
        s = dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference, kind, &d, kind == dnnl_eltwise_swish ? 1.0F : 0.0F, 0.0F);
    const on_arg arg[2] = {{DNNL_ARG_SRC, &d, in->data}, {DNNL_ARG_DST, &d, out->data}};
    const vr_status st = on_check(s, what, err);
    return st == VR_OK ? on_once(n, &desc, arg, 2, what, err) : st;
}

static vr_status add(const on_net *n, const on_value *a, const on_value *b, on_value *out, vr_error *err)
{
    const int64_t count = on_count(a->shape);
    dnnl_memory_desc_t d;
    dnnl_binary_desc_t desc;
    dnnl_status_t s = on_desc(&d, 1, &count, on_type(n));
    if (s == dnnl_success)
        s = dnnl_binary_desc_init(&desc, dnnl_binary_add, &d, &d, &d);
    const on_arg arg[3] = {{DNNL_ARG_SRC_0, &d, a->data}, {DNNL_ARG_SRC_1, &d, b->data}, {DNNL_ARG_DST, &d, out->data}};
    const vr_status st = on_check(s, "sum", err);
    return st == VR_OK ? on_once(n, &desc, arg, 3, "sum", err) : st;
}

/* Copies: nearest upsampling and unpacking. */
static void rearrange(const on_net *n, const vr_op *op, const on_value *in, on_value *out)
{
    const vr_shape a = in->shape, b = out->shape;
    const size_t e = on_size(n);
    const bool up = op->kind == VR_OP_UPSAMPLE_NEAREST;
    const int64_t fh = up ? op->p.upsample.factor_h : op->p.unpack.fh, fw = up ? op->p.upsample.factor_w : op->p.unpack.fw;
    for (int64_t k = 0; k < b.n * b.c; k++)
        for (int64_t y = 0; y < b.h; y++)
            for (int64_t x = 0; x < b.w; x++) {
                const int64_t c = up ? k : k / b.c * a.c + (k % b.c * fh + y % fh) * fw + x % fw;
                memcpy((char *)out->data + (size_t)((k * b.h + y) * b.w + x) * e,
                       (const char *)in->data + (size_t)((c * a.h + y / fh) * a.w + x / fw) * e, e);
            }
}

static vr_status pointwise(const on_net *n, const vr_op *op, const on_value *in, on_value *out, vr_error *err)
{
    float *x = on_floats(n, in);
    const vr_shape s = in->shape;
    const int64_t plane = s.t * s.h * s.w, count = on_count(s);
    if (!x)
        return vr_fail(err, VR_E_NOMEM, "no memory for %s", op->tap);
    for (int64_t k = 0; k < count; k++) {
        const int64_t c = k / plane % s.c;
        if (op->kind == VR_OP_SCALE_SHIFT)
            x[k] = (float)((double)x[k] * op->p.scale_shift.scale[c] + op->p.scale_shift.shift[c]);
        else if (op->kind == VR_OP_TANH_CLAMP)
            x[k] = (float)(op->p.tanh_clamp.limit * tanh((double)x[k] / op->p.tanh_clamp.limit));
        else
            x[k] = x[k] < (float)op->p.clamp.lo ? (float)op->p.clamp.lo : x[k] > (float)op->p.clamp.hi ? (float)op->p.clamp.hi : x[k];
    }
    on_store(n, out, x);
    free(x);
    return VR_OK;
}

vr_status on_operation(on_net *n, int32_t i, const on_value *in[3], on_value *out, vr_error *err)
{
    const vr_op *op = &n->p->op[i];
    out->data = aligned_alloc(64, ((size_t)on_count(out->shape) * on_size(n) + 63) / 64 * 64);
    if (!out->data)
        return vr_fail(err, VR_E_NOMEM, "no memory for value %d (%s)", (int)i, op->tap);
    switch (op->kind) {
    case VR_OP_CONV2D:
        return on_conv2d(n, i, in[0], out, err);
    case VR_OP_GROUP_NORM:
        return group_norm(n, op, in[0], out, err);
    case VR_OP_SILU:
        return eltwise(n, dnnl_eltwise_swish, in[0], out, "swish", err);
    case VR_OP_RELU:
        return eltwise(n, dnnl_eltwise_relu, in[0], out, "relu", err);
    case VR_OP_ADD:
        return add(n, in[0], in[1], out, err);
    case VR_OP_ATTENTION:
        return on_attention(n, op, in, out, err);
    case VR_OP_UPSAMPLE_NEAREST:
    case VR_OP_UNPACK:
        rearrange(n, op, in[0], out);
        return VR_OK;
    case VR_OP_TANH_CLAMP:
    case VR_OP_SCALE_SHIFT:
    case VR_OP_CLAMP:
        return pointwise(n, op, in[0], out, err);
    default:
        return vr_fail(err, VR_E_UNSUPPORTED, "operation %s", vr_op_name(op->kind));
    }
}
