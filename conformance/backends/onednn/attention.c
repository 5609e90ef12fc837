/* Attention as two matrix products and a softmax, in f32 for each picture of a batch.
 * SPDX-License-Identifier: MIT */
#include "backends/onednn/onednn.h"

#include <stdlib.h>

/* A matrix [rows][columns] that lies with those strides. */
static dnnl_status_t matrix(dnnl_memory_desc_t *d, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step)
{
    const dnnl_dims_t dims = {rows, columns}, strides = {row_step, column_step};
    return dnnl_memory_desc_init_by_strides(d, 2, dims, dnnl_f32, strides);
}

static vr_status product(const on_net *n, const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *c,
                         float *x, float *y, float *z, vr_error *err)
{
    dnnl_matmul_desc_t desc;
    dnnl_status_t s = dnnl_matmul_desc_init(&desc, a, b, NULL, c);
    const on_arg arg[3] = {{DNNL_ARG_SRC, a, x}, {DNNL_ARG_WEIGHTS, b, y}, {DNNL_ARG_DST, c, z}};
    const vr_status st = on_check(s, "matrix product", err);
    return st == VR_OK ? on_once(n, &desc, arg, 3, "matrix product", err) : st;
}

static vr_status softmax(const on_net *n, const dnnl_memory_desc_t *d, float *x, vr_error *err)
{
    dnnl_softmax_desc_t desc;
    dnnl_status_t s = dnnl_softmax_forward_desc_init(&desc, dnnl_forward_inference, d, 1);
    const on_arg arg[2] = {{DNNL_ARG_SRC, d, x}, {DNNL_ARG_DST, d, x}};
    const vr_status st = on_check(s, "softmax", err);
    return st == VR_OK ? on_once(n, &desc, arg, 2, "softmax", err) : st;
}

vr_status on_attention(on_net *n, const vr_op *op, const on_value *in[3], on_value *out, vr_error *err)
{
    const vr_shape s = out->shape;
    const int64_t cells = s.h * s.w, one = s.c * cells;
    float *q = on_floats(n, in[0]), *k = on_floats(n, in[1]), *v = on_floats(n, in[2]);
    float *score = malloc((size_t)(cells * cells) * sizeof *score), *y = malloc((size_t)(s.n * one) * sizeof *y);
    dnnl_memory_desc_t by_cell, by_channel, square;
    vr_status st = q && k && v && score && y ? VR_OK : vr_fail(err, VR_E_NOMEM, "no memory for attention over %lld cells", (long long)cells);
    if (st == VR_OK)
        st = on_check(matrix(&by_cell, cells, s.c, 1, cells) | matrix(&by_channel, s.c, cells, cells, 1) |
                          matrix(&square, cells, cells, cells, 1), "matrices", err);
    for (int64_t i = 0; st == VR_OK && i < s.n; i++) {
        st = product(n, &by_cell, &by_channel, &square, q + i * one, k + i * one, score, err); /* [cell][c] x [c][cell] */
        for (int64_t m = 0; st == VR_OK && m < cells * cells; m++)
            score[m] *= (float)op->p.attention.scale;
        if (st == VR_OK)
            st = softmax(n, &square, score, err);
        if (st == VR_OK) /* [cell][cell] x [cell][c], written as [c][cell] */
            st = product(n, &square, &by_cell, &by_cell, score, v + i * one, y + i * one, err);
    }
    if (st == VR_OK)
        on_store(n, out, y);
    free(q);
    free(k);
    free(v);
    free(score);
    free(y);
    return st;
}
