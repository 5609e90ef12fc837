/* AutoencoderKL decoder (clause M3): any number of levels, widths and blocks, as
 * the tensors say. Every level has the same number of blocks and every level but
 * the last upsamples, so that a lost one shows. Residual block:
 *   t = conv(silu(GN(x))); t = conv(silu(GN(t))); y = t + (x or 1x1 conv of x)
 * The shortcut convolution is emitted first: it lets x be normalised in place,
 * which lowers the peak from 640 to 512 channels per output pixel.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>

#include "model/internal.h"

static const double EPS = 1e-6;

int64_t vr_kl_latent_channels(const vr_table *t)
{
    int64_t in = vr_dim_of(t, "decoder.conv_in.weight", 1, 0);
    return vr_dim_of(t, "post_quant_conv.weight", 1, in);
}

/* The last level does not upsample: one that does has lost its successor. */
int32_t vr_kl_levels(const vr_table *t)
{
    int32_t n = vr_table_indices(t, "decoder.up_blocks.");
    return n + (n > 0 && vr_table_has(t, "decoder.up_blocks.%d.upsamplers.", n - 1));
}

int32_t vr_kl_blocks(const vr_table *t)
{
    int32_t most = 1;
    for (int32_t i = vr_kl_levels(t) - 1; i >= 0; i--) {
        int32_t n = vr_table_indices(t, "decoder.up_blocks.%d.resnets.", i);
        most = n > most ? n : most;
    }
    return most;
}

static int32_t norm_act(vr_emit *e, const char *path, const char *norm, const char *act, int32_t x,
                        int64_t c)
{
    char name[VR_NAME_MAX];
    snprintf(name, sizeof name, "%s.%s", path, norm);
    x = vr_emit_norm(e, name, x, c, e->groups, EPS);
    snprintf(name, sizeof name, "%s.%s", path, act);
    return vr_program_unary(e->p, name, VR_OP_SILU, x);
}

static int32_t resnet(vr_emit *e, const char *path, int32_t x, int64_t ci, int64_t co)
{
    char name[VR_NAME_MAX];
    int32_t skip = x;
    if (ci != co) {
        snprintf(name, sizeof name, "%s.conv_shortcut", path);
        skip = vr_emit_conv(e, name, x, ci, co, 1, true);
    }
    int32_t t = norm_act(e, path, "norm1", "act1", x, ci);
    snprintf(name, sizeof name, "%s.conv1", path);
    t = vr_emit_conv(e, name, t, ci, co, 3, true);
    t = norm_act(e, path, "norm2", "act2", t, co);
    snprintf(name, sizeof name, "%s.conv2", path);
    t = vr_emit_conv(e, name, t, co, co, 3, true);
    snprintf(name, sizeof name, "%s.add", path);
    return vr_program_add(e->p, name, t, skip);
}

static int32_t attention(vr_emit *e, const char *path, int32_t x, int64_t c)
{
    char name[VR_NAME_MAX];
    static const char *const maps[3] = {"to_q", "to_k", "to_v"};
    int32_t v[3];
    snprintf(name, sizeof name, "%s.group_norm", path);
    int32_t n = vr_emit_norm(e, name, x, c, e->groups, EPS);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s.%s", path, maps[i]);
        v[i] = vr_emit_conv(e, name, n, c, c, 1, true);
    }
    snprintf(name, sizeof name, "%s.attention", path);
    n = vr_program_attention(e->p, name, v[0], v[1], v[2], 1.0 / sqrt((double)c));
    snprintf(name, sizeof name, "%s.to_out.0", path);
    n = vr_emit_conv(e, name, n, c, c, 1, true);
    snprintf(name, sizeof name, "%s.add", path);
    return vr_program_add(e->p, name, n, x);
}

/* What a level must have and the file lacks is reported as missing. */
static int32_t up_block(vr_emit *e, int32_t level, int32_t blocks, bool last, int32_t x, int64_t *c)
{
    char path[VR_NAME_MAX - 40], name[VR_NAME_MAX];
    for (int32_t j = 0; j < blocks; j++) {
        snprintf(path, sizeof path, "decoder.up_blocks.%d.resnets.%d", level, j);
        snprintf(name, sizeof name, "%s.conv2.weight", path);
        int64_t co = vr_dim_of(e->table, name, 0, *c);
        x = resnet(e, path, x, *c, co);
        *c = co;
    }
    if (!last) {
        snprintf(name, sizeof name, "decoder.up_blocks.%d.upsamplers.0.upsample", level);
        x = vr_program_upsample(e->p, name, x, 1, 2, 2);
        snprintf(name, sizeof name, "decoder.up_blocks.%d.upsamplers.0.conv", level);
        x = vr_emit_conv(e, name, x, *c, *c, 3, true);
    }
    return x;
}

int32_t vr_emit_kl(vr_emit *e, int32_t x)
{
    int64_t z = vr_dim_of(e->table, "decoder.conv_in.weight", 1, 4);
    int64_t c = vr_dim_of(e->table, "decoder.conv_in.weight", 0, 1);
    if (vr_table_has(e->table, "post_quant_conv."))
        x = vr_emit_conv(e, "post_quant_conv", x, vr_kl_latent_channels(e->table), z, 1, true);
    x = vr_emit_conv(e, "decoder.conv_in", x, z, c, 3, true);
    x = resnet(e, "decoder.mid_block.resnets.0", x, c, c);
    if (vr_table_has(e->table, "decoder.mid_block.attentions.0."))
        x = attention(e, "decoder.mid_block.attentions.0", x, c);
    x = resnet(e, "decoder.mid_block.resnets.1", x, c, c);
    const int32_t levels = vr_kl_levels(e->table), blocks = vr_kl_blocks(e->table);
    for (int32_t i = 0; i < levels; i++)
        x = up_block(e, i, blocks, i + 1 == levels, x, &c);
    x = vr_emit_norm(e, "decoder.conv_norm_out", x, c, e->groups, EPS);
    x = vr_program_unary(e->p, "decoder.conv_act", VR_OP_SILU, x);
    int64_t pictures = vr_dim_of(e->table, "decoder.conv_out.weight", 0, 3);
    return vr_emit_conv(e, "decoder.conv_out", x, c, pictures, 3, true);
}
