/* The TAESD family (clause M5): tanh clamp, then the layers in index order, as
 * the tensors say: a block where "<k>.conv.0" exists, a convolution where
 * "<k>.weight" does; index 1 is a ReLU, any other gap a nearest x2 upsampling.
 *   B(x) = relu(conv(relu(conv(relu(conv(x'))))) + skip(x'))
 *   x' = x + pool(x) with pool = 1x1, GN(4), relu, 1x1 where present (TAEF2)
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "model/internal.h"

enum { POOL_GROUPS = 4 };

int64_t vr_tiny_latent_channels(const vr_table *t)
{
    return vr_dim_of(t, "decoder.layers.0.weight", 1, 0);
}

static int32_t last_layer(const vr_table *t)
{
    return vr_table_indices(t, "decoder.layers.") - 1;
}

int32_t vr_tiny_upsamples(const vr_table *t)
{
    int32_t n = 0, last = last_layer(t);
    for (int32_t k = 2; k < last; k++)
        n += !vr_table_has(t, "decoder.layers.%d.", k);
    return n;
}

/* ---- is the order of layers one that decoders have? ---------------------- */

typedef enum layer { GAP, CONV, BLOCK, OTHER } layer;

static layer layer_at(const vr_table *t, int32_t k)
{
    if (vr_table_has(t, "decoder.layers.%d.conv.", k))
        return BLOCK;
    if (vr_table_findf(t, "decoder.layers.%d.weight", k))
        return CONV;
    return vr_table_has(t, "decoder.layers.%d.", k) ? OTHER : GAP;
}

/* A layer without tensors is taken for an upsampling, so an absent block must not
 * pass for one: an upsampling stands between a block and a convolution, and only
 * there; the last convolution follows a block. */
static const char *order_fault(const vr_table *t, int32_t last, int32_t *k)
{
    for (*k = 0; *k <= last; ++*k)
        if (layer_at(t, *k) == OTHER)
            return "is neither a convolution nor a block";
    for (*k = 0; *k <= last; ++*k)
        if (vr_table_findf(t, "decoder.layers.%d.conv.weight", *k))
            return "grows frames: this is a TAEHV video decoder; want an image decoder";
    *k = 0;
    if (layer_at(t, 0) != CONV)
        return "is no convolution, as the first must be";
    *k = 1;
    if (layer_at(t, 1) != GAP)
        return "has tensors, but a ReLU stands there";
    for (*k = 2; *k < last; ++*k) {
        layer before = layer_at(t, *k - 1), here = layer_at(t, *k), next = layer_at(t, *k + 1);
        if (here == GAP && (before != BLOCK || next != CONV || *k + 1 == last))
            return "has no tensors and is no upsampling (block, upsampling, convolution): missing";
        if (here == CONV && before != GAP)
            return "is a convolution with no upsampling before it: a layer is missing";
    }
    *k = last;
    return last < 3 || layer_at(t, last) != CONV || layer_at(t, last - 1) != BLOCK
               ? "is the last; want a convolution after a block: layers are missing"
               : NULL;
}

static bool check_order(vr_emit *e, int32_t last)
{
    int32_t k = 0;
    const char *fault = order_fault(e->table, last, &k);
    if (fault && e->wrong.status == VR_OK)
        vr_fail(&e->wrong, VR_E_MODEL, "layer 'decoder.layers.%d' ('%d' in the original layout) %s",
                k, k + 1, fault);
    return fault == NULL;
}

/* ---- layers ---------------------------------------------------------------- */

static int32_t conv_relu(vr_emit *e, int32_t k, const char *part, int32_t index, int32_t x, int64_t ci,
                         int64_t co, int64_t size, bool bias, bool relu)
{
    char name[VR_NAME_MAX];
    snprintf(name, sizeof name, "decoder.layers.%d.%s.%d", k, part, index);
    x = vr_emit_conv(e, name, x, ci, co, size, bias);
    if (!relu)
        return x;
    snprintf(name, sizeof name, "decoder.layers.%d.%s.%d", k, part, index + 1);
    return vr_program_unary(e->p, name, VR_OP_RELU, x);
}

static int32_t pool(vr_emit *e, int32_t k, int32_t x, int64_t c)
{
    char name[VR_NAME_MAX];
    snprintf(name, sizeof name, "decoder.layers.%d.pool.0.weight", k);
    int64_t wide = vr_dim_of(e->table, name, 0, 4 * c);
    int32_t t = conv_relu(e, k, "pool", 0, x, c, wide, 1, false, false);
    snprintf(name, sizeof name, "decoder.layers.%d.pool.1", k);
    t = vr_emit_norm(e, name, t, wide, POOL_GROUPS, 1e-5);
    snprintf(name, sizeof name, "decoder.layers.%d.pool.2", k);
    t = vr_program_unary(e->p, name, VR_OP_RELU, t);
    t = conv_relu(e, k, "pool", 3, t, wide, c, 1, false, false);
    snprintf(name, sizeof name, "decoder.layers.%d.pool.add", k);
    return vr_program_add(e->p, name, x, t);
}

static int32_t block(vr_emit *e, int32_t k, int32_t x, int64_t *c)
{
    char name[VR_NAME_MAX];
    snprintf(name, sizeof name, "decoder.layers.%d.conv.0.weight", k);
    int64_t co = vr_dim_of(e->table, name, 0, *c);
    if (vr_table_has(e->table, "decoder.layers.%d.pool.", k))
        x = pool(e, k, x, *c);
    int32_t t = conv_relu(e, k, "conv", 0, x, *c, co, 3, true, true);
    t = conv_relu(e, k, "conv", 2, t, co, co, 3, true, true);
    t = conv_relu(e, k, "conv", 4, t, co, co, 3, true, false);
    int32_t skip = x;
    if (*c != co) {
        snprintf(name, sizeof name, "decoder.layers.%d.skip", k);
        skip = vr_emit_conv(e, name, x, *c, co, 1, false);
    }
    *c = co;
    snprintf(name, sizeof name, "decoder.layers.%d.add", k);
    t = vr_program_add(e->p, name, t, skip);
    snprintf(name, sizeof name, "decoder.layers.%d.fuse", k);
    return vr_program_unary(e->p, name, VR_OP_RELU, t);
}

int32_t vr_emit_tiny(vr_emit *e, int32_t x)
{
    char name[VR_NAME_MAX];
    const int32_t last = last_layer(e->table);
    int64_t c = vr_tiny_latent_channels(e->table);
    if (!check_order(e, last))
        return -1;
    x = vr_program_tanh_clamp(e->p, "latent.tanh_clamp", x, 3.0);
    for (int32_t k = 0; k <= last; k++) {
        snprintf(name, sizeof name, "decoder.layers.%d", k);
        if (vr_table_has(e->table, "decoder.layers.%d.conv.", k)) {
            x = block(e, k, x, &c);
        } else if (vr_table_has(e->table, "decoder.layers.%d.", k)) {
            char w[VR_NAME_MAX + 8];
            snprintf(w, sizeof w, "%s.weight", name);
            int64_t co = vr_dim_of(e->table, w, 0, c);
            bool bias = k == 0 || k == last || /* after an upsampling there is none as a rule */
                        vr_table_findf(e->table, "%s.bias", name);
            x = vr_emit_conv(e, name, x, c, co, 3, bias);
            c = co;
        } else if (k == 1) {
            x = vr_program_unary(e->p, name, VR_OP_RELU, x);
        } else {
            snprintf(name, sizeof name, "decoder.layers.%d.upsample", k);
            x = vr_program_upsample(e->p, name, x, 1, 2, 2);
        }
    }
    return x;
}
