/* Memory, weights and the convolution of the oneDNN backend. SPDX-License-Identifier: MIT */
#include "backends/onednn/onednn.h"

#include <stdlib.h>
#include <string.h>

dnnl_data_type_t on_type(const on_net *n)
{
    return n->bf16 ? dnnl_bf16 : dnnl_f32;
}

size_t on_size(const on_net *n)
{
    return n->bf16 ? 2 : 4;
}

int64_t on_count(vr_shape s)
{
    return s.n * s.c * s.t * s.h * s.w;
}

vr_status on_check(dnnl_status_t s, const char *what, vr_error *err)
{
    if (s == dnnl_success)
        return VR_OK;
    return vr_fail(err, s == dnnl_out_of_memory ? VR_E_NOMEM : VR_E_INTERNAL, "oneDNN: %s: status %d", what, (int)s);
}

dnnl_status_t on_desc(dnnl_memory_desc_t *d, int rank, const int64_t *dim, dnnl_data_type_t type)
{
    dnnl_dims_t dims, strides;
    int64_t step = 1;
    for (int k = rank; k-- > 0;) {
        dims[k] = dim[k];
        strides[k] = step;
        step *= dim[k];
    }
    return dnnl_memory_desc_init_by_strides(d, rank, dims, type, strides);
}

vr_status on_execute(const on_net *n, dnnl_primitive_t p, const on_arg *arg, int count, const char *what, vr_error *err)
{
    dnnl_memory_t memory[6];
    dnnl_exec_arg_t args[6] = {{0, NULL}};
    int made = 0;
    dnnl_status_t s = dnnl_success;
    for (; s == dnnl_success && made < count; made++) {
        s = dnnl_memory_create(&memory[made], arg[made].desc, n->engine, arg[made].data);
        if (s != dnnl_success)
            break;
        args[made] = (dnnl_exec_arg_t){arg[made].index, memory[made]};
    }
    if (s == dnnl_success)
        s = dnnl_primitive_execute(p, n->stream, made, args);
    if (s == dnnl_success)
        s = dnnl_stream_wait(n->stream);
    for (int k = 0; k < made; k++)
        dnnl_memory_destroy(memory[k]);
    return on_check(s, what, err);
}

vr_status on_once(const on_net *n, const void *desc, const on_arg *arg, int count, const char *what, vr_error *err)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t p = NULL;
    dnnl_status_t made = dnnl_primitive_desc_create(&pd, desc, NULL, n->engine, NULL);
    if (made == dnnl_success)
        made = dnnl_primitive_create(&p, pd);
    vr_status s = on_check(made, what, err);
    if (s == VR_OK)
        s = on_execute(n, p, arg, count, what, err);
    if (p)
        dnnl_primitive_destroy(p);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    return s;
}

float *on_floats(const on_net *n, const on_value *v)
{
    const int64_t count = on_count(v->shape);
    float *x = malloc((size_t)count * sizeof *x);
    if (x)
        vr_convert(VR_F32, x, n->bf16 ? VR_BF16 : VR_F32, v->data, (uint64_t)count, NULL);
    return x;
}

void on_store(const on_net *n, on_value *v, const float *x)
{
    vr_convert(n->bf16 ? VR_BF16 : VR_F32, v->data, VR_F32, x, (uint64_t)on_count(v->shape), NULL);
}

/* ---- convolutions ------------------------------------------------------------------------ */

/* Weight k of an operation: kernels in the storage dtype, biases in f32. */
static vr_status weight_of(on_net *n, const vr_op *op, int k, void **out, vr_error *err)
{
    *out = NULL;
    if (op->weight[k] < 0)
        return VR_OK;
    void **slot = &n->weight[op->weight[k]];
    if (!*slot) {
        const vr_weight *w = &n->p->weight[op->weight[k]];
        const vr_dtype to = k == 0 && n->bf16 ? VR_BF16 : VR_F32;
        *slot = malloc((size_t)w->count * vr_dtype_size(to));
        if (!*slot)
            return vr_fail(err, VR_E_NOMEM, "no memory for weight %s", w->name);
        vr_status s = vr_convert(to, *slot, w->dtype, w->data, (uint64_t)w->count, err);
        if (s != VR_OK)
            return s;
    }
    *out = *slot;
    return VR_OK;
}

typedef struct conv_descs {
    dnnl_memory_desc_t x, w, b, y;
} conv_descs;

static vr_status describe(const on_net *n, const vr_op *op, vr_shape in, vr_shape out, conv_descs *d, vr_error *err)
{
    const int64_t x[4] = {in.n, in.c, in.h, in.w}, y[4] = {out.n, out.c, out.h, out.w};
    const int64_t w[4] = {out.c, in.c, op->p.conv2d.kh, op->p.conv2d.kw}, b[1] = {out.c};
    dnnl_status_t s = on_desc(&d->x, 4, x, on_type(n));
    if (s == dnnl_success)
        s = on_desc(&d->w, 4, w, on_type(n));
    if (s == dnnl_success)
        s = on_desc(&d->b, 1, b, dnnl_f32);
    if (s == dnnl_success)
        s = on_desc(&d->y, 4, y, on_type(n));
    return on_check(s, "memory descriptors of a convolution", err);
}

static vr_status make_conv(const on_net *n, const vr_op *op, const conv_descs *d, bool bias, dnnl_primitive_t *out, vr_error *err)
{
    const dnnl_dims_t strides = {1, 1}, left = {op->p.conv2d.pad_top, op->p.conv2d.pad_left},
                      right = {op->p.conv2d.pad_bottom, op->p.conv2d.pad_right};
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t s = dnnl_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_direct, &d->x, &d->w,
                                                         bias ? &d->b : NULL, &d->y, strides, left, right);
    if (s == dnnl_success)
        s = dnnl_primitive_desc_create(&pd, &desc, NULL, n->engine, NULL);
    if (s == dnnl_success)
        s = dnnl_primitive_create(out, pd);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    return on_check(s, "convolution", err);
}

static bool same_shape(vr_shape a, vr_shape b)
{
    return a.n == b.n && a.c == b.c && a.t == b.t && a.h == b.h && a.w == b.w;
}

/* The primitive for operation i on that input shape, kept. */
static vr_status cached(on_net *n, int32_t i, vr_shape in, const conv_descs *d, bool bias, dnnl_primitive_t *out, vr_error *err)
{
    for (int32_t k = 0; k < n->conv_count; k++)
        if (n->conv[k].op == i && same_shape(n->conv[k].in, in)) {
            n->hits++;
            *out = n->conv[k].primitive;
            return VR_OK;
        }
    if (n->conv_count == n->conv_room) {
        const int32_t room = n->conv_room ? 2 * n->conv_room : 64;
        on_conv *grown = realloc(n->conv, (size_t)room * sizeof *grown);
        if (!grown)
            return vr_fail(err, VR_E_NOMEM, "no memory for %d convolutions", (int)room);
        n->conv = grown;
        n->conv_room = room;
    }
    vr_status s = make_conv(n, &n->p->op[i], d, bias, out, err);
    if (s == VR_OK)
        n->conv[n->conv_count++] = (on_conv){i, in, *out};
    return s;
}

vr_status on_conv2d(on_net *n, int32_t i, const on_value *x, on_value *out, vr_error *err)
{
    const vr_op *op = &n->p->op[i];
    void *w, *b;
    conv_descs d;
    dnnl_primitive_t primitive = NULL;
    vr_status s = weight_of(n, op, 0, &w, err);
    if (s == VR_OK)
        s = weight_of(n, op, 1, &b, err);
    if (s == VR_OK)
        s = describe(n, op, x->shape, out->shape, &d, err);
    if (s == VR_OK)
        s = cached(n, i, x->shape, &d, b != NULL, &primitive, err);
    if (s != VR_OK)
        return s;
    const on_arg arg[4] = {{DNNL_ARG_SRC, &d.x, x->data}, {DNNL_ARG_WEIGHTS, &d.w, w}, {DNNL_ARG_DST, &d.y, out->data},
                           {DNNL_ARG_BIAS, &d.b, b}};
    return on_execute(n, primitive, arg, b ? 4 : 3, "convolution", err);
}

void on_net_free(on_net *n)
{
    for (int32_t k = 0; k < n->conv_count; k++)
        dnnl_primitive_destroy(n->conv[k].primitive);
    for (int32_t k = 0; n->weight && k < n->p->weight_count; k++)
        free(n->weight[k]);
    free(n->conv);
    free(n->weight);
    if (n->stream)
        dnnl_stream_destroy(n->stream);
    if (n->engine)
        dnnl_engine_destroy(n->engine);
    *n = (on_net){.p = NULL};
}
