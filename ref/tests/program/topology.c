/* Topologies of topology.h.
 * SPDX-License-Identifier: MIT */
#include "topology.h"

#include <math.h>
#include <stdio.h>

const float topology_data[1] = {0};

static const char *join(char *buf, size_t size, const char *a, const char *b)
{
    snprintf(buf, size, "%s%s", a, b);
    return buf;
}

int32_t topo_weight4(vr_program *p, const char *name, int64_t co, int64_t ci, int64_t kh,
                     int64_t kw)
{
    const int64_t dim[4] = {co, ci, kh, kw};
    return vr_program_weight(p, name, NULL, VR_F32, 4, dim, topology_data);
}

int32_t topo_weight1(vr_program *p, const char *name, int64_t c)
{
    return vr_program_weight(p, name, NULL, VR_F32, 1, &c, topology_data);
}

static int64_t channels(const vr_program *p, int32_t x)
{
    return p && x >= 0 ? p->op[x].channels : 1;
}

int32_t topo_conv(vr_program *p, const char *tap, int32_t x, int64_t co, int64_t k, bool bias)
{
    char n[128];
    int32_t w = topo_weight4(p, join(n, sizeof n, tap, ".weight"), co, channels(p, x), k, k);
    int32_t b = bias ? topo_weight1(p, join(n, sizeof n, tap, ".bias"), co) : -1;
    return vr_program_conv2d(p, tap, x, w, b, k / 2);
}

int32_t topo_norm(vr_program *p, const char *tap, int32_t x, int64_t groups)
{
    char n[128];
    int32_t g = topo_weight1(p, join(n, sizeof n, tap, ".weight"), channels(p, x));
    int32_t b = topo_weight1(p, join(n, sizeof n, tap, ".bias"), channels(p, x));
    return vr_program_group_norm(p, tap, x, g, b, groups, 1e-6);
}

static int32_t residual(vr_program *p, const char *at, int32_t x, int64_t co, bool shortcut_first)
{
    char n[128];
    int32_t skip = x;
    bool widen = channels(p, x) != co;
    if (widen && shortcut_first)
        skip = topo_conv(p, join(n, sizeof n, at, ".conv_shortcut"), x, co, 1, true);
    int32_t y = topo_norm(p, join(n, sizeof n, at, ".norm1"), x, 32);
    y = vr_program_unary(p, join(n, sizeof n, at, ".silu1"), VR_OP_SILU, y);
    y = topo_conv(p, join(n, sizeof n, at, ".conv1"), y, co, 3, true);
    y = topo_norm(p, join(n, sizeof n, at, ".norm2"), y, 32);
    y = vr_program_unary(p, join(n, sizeof n, at, ".silu2"), VR_OP_SILU, y);
    y = topo_conv(p, join(n, sizeof n, at, ".conv2"), y, co, 3, true);
    if (widen && !shortcut_first)
        skip = topo_conv(p, join(n, sizeof n, at, ".conv_shortcut"), x, co, 1, true);
    return vr_program_add(p, join(n, sizeof n, at, ".add"), y, skip);
}

static int32_t attention(vr_program *p, const char *at, int32_t x)
{
    char n[128];
    int64_t c = channels(p, x);
    int32_t y = topo_norm(p, join(n, sizeof n, at, ".group_norm"), x, 32);
    int32_t q = topo_conv(p, join(n, sizeof n, at, ".to_q"), y, c, 1, true);
    int32_t k = topo_conv(p, join(n, sizeof n, at, ".to_k"), y, c, 1, true);
    int32_t v = topo_conv(p, join(n, sizeof n, at, ".to_v"), y, c, 1, true);
    y = vr_program_attention(p, join(n, sizeof n, at, ".attention"), q, k, v,
                             1.0 / sqrt((double)c));
    y = topo_conv(p, join(n, sizeof n, at, ".to_out.0"), y, c, 1, true);
    return vr_program_add(p, join(n, sizeof n, at, ".add"), x, y);
}

static vr_program *finish(vr_program *p, int32_t y, double lo, vr_error *err)
{
    if (vr_program_finish(p, y, lo, 1.0, err) == VR_OK)
        return p;
    vr_program_free(p);
    return NULL;
}

vr_program *topo_kl_decoder(topo_kl o, vr_error *err)
{
    static const int64_t width[4] = {512, 512, 256, 128};
    char at[96];
    vr_program *p = vr_program_new("kl", o.latent_channels);
    int32_t x = 0;
    if (o.post_quant_conv)
        x = topo_conv(p, "post_quant_conv", x, o.latent_channels, 1, true);
    x = topo_conv(p, "decoder.conv_in", x, 512, 3, true);
    x = residual(p, "decoder.mid_block.resnets.0", x, 512, o.shortcut_first);
    x = attention(p, "decoder.mid_block.attentions.0", x);
    x = residual(p, "decoder.mid_block.resnets.1", x, 512, o.shortcut_first);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 3; j++) {
            snprintf(at, sizeof at, "decoder.up_blocks.%d.resnets.%d", i, j);
            x = residual(p, at, x, width[i], o.shortcut_first);
        }
        if (i == 3)
            break;
        snprintf(at, sizeof at, "decoder.up_blocks.%d.upsample", i);
        x = vr_program_upsample(p, at, x, 1, 2, 2);
        snprintf(at, sizeof at, "decoder.up_blocks.%d.upsamplers.0.conv", i);
        x = topo_conv(p, at, x, width[i], 3, true);
    }
    x = topo_norm(p, "decoder.conv_norm_out", x, 32);
    x = vr_program_unary(p, "decoder.silu_out", VR_OP_SILU, x);
    x = topo_conv(p, "decoder.conv_out", x, 3, 3, true);
    return finish(p, x, -1.0, err);
}

static int32_t tiny_block(vr_program *p, int layer, int32_t x)
{
    char at[96];
    int32_t y = x;
    for (int k = 0; k < 3; k++) {
        snprintf(at, sizeof at, "decoder.layers.%d.conv.%d", layer, 2 * k);
        y = topo_conv(p, at, y, 64, 3, true);
        snprintf(at, sizeof at, "decoder.layers.%d.relu.%d", layer, k);
        if (k < 2)
            y = vr_program_unary(p, at, VR_OP_RELU, y);
    }
    snprintf(at, sizeof at, "decoder.layers.%d.add", layer);
    y = vr_program_add(p, at, y, x);
    snprintf(at, sizeof at, "decoder.layers.%d.fuse", layer);
    return vr_program_unary(p, at, VR_OP_RELU, y);
}

vr_program *topo_tiny_decoder(int64_t latent_channels, vr_error *err)
{
    char at[96];
    int layer = 2;
    vr_program *p = vr_program_new("tiny", latent_channels);
    int32_t x = vr_program_tanh_clamp(p, "decoder.clamp", 0, 3.0);
    x = topo_conv(p, "decoder.layers.0", x, 64, 3, true);
    x = vr_program_unary(p, "decoder.layers.1", VR_OP_RELU, x);
    for (int stage = 0; stage < 3; stage++) {
        for (int b = 0; b < 3; b++)
            x = tiny_block(p, layer++, x);
        snprintf(at, sizeof at, "decoder.layers.%d", layer++);
        x = vr_program_upsample(p, at, x, 1, 2, 2);
        snprintf(at, sizeof at, "decoder.layers.%d", layer++);
        x = topo_conv(p, at, x, 64, 3, false);
    }
    x = tiny_block(p, layer++, x);
    snprintf(at, sizeof at, "decoder.layers.%d", layer);
    x = topo_conv(p, at, x, 3, 3, true);
    return finish(p, x, 0.0, err);
}
