/* The oneDNN backend: what its files share. SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_ONEDNN_H
#define VAEPROOF_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "backends/common.h"
#include "vaeref/program.h"

/* A value between operations: dense [n][c][h][w], float or bf16 bits. */
typedef struct on_value {
    vr_shape shape;
    void *data; /* owned; NULL: not there */
} on_value;

typedef struct on_conv {   /* one prepared convolution: operation and input shape */
    int32_t op;
    vr_shape in;
    dnnl_primitive_t primitive;
} on_conv;

typedef struct on_net {
    const vr_program *p;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    bool bf16;             /* storage; else f32. Sums are f32 */
    void **weight;         /* per weight of the program: converted to what its operation takes, or NULL */
    on_conv *conv;         /* cache of convolutions by shape */
    int32_t conv_count, conv_room;
    uint64_t hits;
} on_net;

dnnl_data_type_t on_type(const on_net *n);
size_t on_size(const on_net *n);
int64_t on_count(vr_shape s);
/* VR_E_INTERNAL with the name of what failed, or VR_OK. */
vr_status on_check(dnnl_status_t s, const char *what, vr_error *err);
/* Memory descriptor of a dense tensor. */
dnnl_status_t on_desc(dnnl_memory_desc_t *d, int rank, const int64_t *dim, dnnl_data_type_t type);
/* Runs a primitive with up to four (argument, descriptor, data) triples. */
typedef struct on_arg {
    int index;
    const dnnl_memory_desc_t *desc;
    void *data;
} on_arg;
/* Makes a primitive from an operation descriptor, runs it and drops it. */
vr_status on_once(const on_net *n, const void *desc, const on_arg *arg, int count, const char *what, vr_error *err);
vr_status on_execute(const on_net *n, dnnl_primitive_t p, const on_arg *arg, int count, const char *what, vr_error *err);

/* out->shape is set; out->data allocated here. in: the operation's inputs. */
vr_status on_operation(on_net *n, int32_t i, const on_value *in[3], on_value *out, vr_error *err);
vr_status on_conv2d(on_net *n, int32_t i, const on_value *x, on_value *out, vr_error *err);
vr_status on_attention(on_net *n, const vr_op *op, const on_value *in[3], on_value *out, vr_error *err);

/* Values as floats and back, for operations oneDNN does not have. */
float *on_floats(const on_net *n, const on_value *v);
void on_store(const on_net *n, on_value *v, const float *x);

void on_net_free(on_net *n);

#endif
