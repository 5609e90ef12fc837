/* What each architecture is (clauses M1, M3, M4, M5): parameters, extents, the
 * ids of its values, and any number of levels, widths and blocks.
 *
 * SPDX-License-Identifier: MIT */
#include "model_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    const char *arch;
    int64_t parameters, channels, scale; /* of the latent handed in */
    double lo;
    int32_t convs, norms;
} row;

/* Parameters of the KL decoders and of TAESD are published counts; those of
 * TAEF2 and TAESANA follow from the layer lists. */
static const row rows[] = {
    {"sd15", 49490199, 4, 8, -1.0, 40, 30},    {"sdxl", 49490199, 4, 8, -1.0, 40, 30},
    {"sd3", 49545475, 16, 8, -1.0, 39, 30},    {"flux1", 49545475, 16, 8, -1.0, 39, 30},
    {"flux2", 49620259, 128, 16, -1.0, 40, 30}, {"taesd", 1222531, 4, 8, 0.0, 35, 0},
    {"taesdxl", 1222531, 4, 8, 0.0, 35, 0},    {"taesd3", 1229443, 16, 8, 0.0, 35, 0},
    {"taef1", 1229443, 16, 8, 0.0, 35, 0},     {"taef2", 1338499, 32, 8, 0.0, 41, 3},
    {"taesana", 8301763, 32, 32, 0.0, 55, 0},
};

static int32_t count_kind(const vr_program *p, vr_op_kind kind)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->op_count; i++)
        n += p->op[i].kind == kind;
    return n;
}

Test(model_families, every_architecture_has_its_parameters_and_extents)
{
    int i = 0;
    for (const vr_arch_info *a = vr_arch_list(); a->name; a++, i++) {
        cr_assert(i < (int)(sizeof rows / sizeof rows[0]), "no row for %s", a->name);
        const row *r = &rows[i];
        cr_assert_str_eq(r->arch, a->name);
        char spec[64];
        snprintf(spec, sizeof spec, "synth:%s,dtype=F8_E5M2", a->name);
        vr_model *m = must_open(a->name, spec, NULL);
        int64_t n = 0;
        for (int32_t k = 0; k < m->program->weight_count; k++)
            n += m->program->weight[k].count;
        cr_assert_eq(n, r->parameters, "%s: %lld parameters", a->name, (long long)n);
        cr_assert_eq(m->latent_channels, r->channels, "%s", a->name);
        cr_assert_eq(m->latent_channels, a->diffusion_channels, "%s", a->name);
        cr_assert_eq(m->spatial_scale, r->scale, "%s", a->name);
        cr_assert_str_eq(m->arch, a->name);
        cr_assert_eq(m->program->range_lo, r->lo, "%s", a->name);
        cr_assert_eq(m->program->range_hi, 1.0, "%s", a->name);
        cr_assert_eq(count_kind(m->program, VR_OP_CONV2D), r->convs, "%s: %d convolutions", a->name,
                     count_kind(m->program, VR_OP_CONV2D));
        cr_assert_eq(count_kind(m->program, VR_OP_GROUP_NORM), r->norms, "%s", a->name);
        cr_assert_eq(m->program->op[m->program->output].channels, 3, "%s", a->name);
        cr_assert(strstr(m->description, a->description), "%s", m->description);
        vr_model_close(m);
    }
    cr_assert_eq(i, (int)(sizeof rows / sizeof rows[0]));
}

/* The ids people meet in reports; the order is that of execution. */
Test(model_families, kl_values_are_named_after_their_modules)
{
    static const char *const order[] = {
        "latent", "latent.scale_shift", "post_quant_conv", "decoder.conv_in",
        "decoder.mid_block.resnets.0.norm1", "decoder.mid_block.resnets.0.act1",
        "decoder.mid_block.resnets.0.conv1", "decoder.mid_block.resnets.0.norm2",
        "decoder.mid_block.resnets.0.act2", "decoder.mid_block.resnets.0.conv2",
        "decoder.mid_block.resnets.0.add", "decoder.mid_block.attentions.0.group_norm",
        "decoder.mid_block.attentions.0.to_q", "decoder.mid_block.attentions.0.to_k",
        "decoder.mid_block.attentions.0.to_v", "decoder.mid_block.attentions.0.attention",
        "decoder.mid_block.attentions.0.to_out.0", "decoder.mid_block.attentions.0.add",
        "decoder.up_blocks.0.resnets.2.add", "decoder.up_blocks.0.upsamplers.0.upsample",
        "decoder.up_blocks.0.upsamplers.0.conv", "decoder.up_blocks.2.resnets.0.conv_shortcut",
        "decoder.up_blocks.3.resnets.2.add", "decoder.conv_norm_out", "decoder.conv_act",
        "decoder.conv_out",
    };
    vr_model *m = must_open("sd15", "synth:sd15,div=32", NULL);
    int32_t at = -1;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        int32_t v = vr_program_find_tap(m->program, order[i]);
        cr_assert(v > at, "'%s' is value %d, after %d", order[i], v, at);
        at = v;
    }
    cr_assert_eq(at, m->program->output);
    cr_assert_eq(m->program->op[at].p.conv2d.kh, 3);
    const vr_op *norm = &m->program->op[vr_program_find_tap(m->program, "decoder.conv_norm_out")];
    cr_assert_eq(norm->p.group_norm.eps, 1e-6);
    vr_model_close(m);
}

Test(model_families, flux2_is_normalised_per_packed_channel_and_then_unpacked)
{
    vr_model *m = must_open("flux2", "synth:flux2,div=32", NULL);
    cr_assert_eq(vr_program_find_tap(m->program, "latent.scale_shift"), 1);
    cr_assert_eq(vr_program_find_tap(m->program, "latent.unpack"), 2);
    cr_assert_eq(m->program->op[1].channels, 128);
    cr_assert_eq(m->program->op[2].channels, 32);
    vr_model_close(m);
    const vr_model_options raw = {.latent_space = VR_LATENT_RAW};
    m = must_open("flux2 raw", "synth:flux2,div=32", &raw);
    cr_assert_eq(m->latent_channels, 32);
    cr_assert_eq(m->spatial_scale, 8);
    cr_assert(!m->normalises);
    cr_assert_eq(vr_program_find_tap(m->program, "post_quant_conv"), 1);
    vr_model_close(m);
}

Test(model_families, tiny_values_are_named_after_their_layers)
{
    static const char *const order[] = {
        "latent", "latent.tanh_clamp", "decoder.layers.0", "decoder.layers.1",
        "decoder.layers.2.pool.0", "decoder.layers.2.pool.1", "decoder.layers.2.pool.2",
        "decoder.layers.2.pool.3", "decoder.layers.2.pool.add", "decoder.layers.2.conv.0",
        "decoder.layers.2.conv.1", "decoder.layers.2.conv.4", "decoder.layers.2.add",
        "decoder.layers.2.fuse", "decoder.layers.5.upsample", "decoder.layers.6",
        "decoder.layers.18",
    };
    vr_model *m = must_open("taef2", "synth:taef2,div=16", NULL);
    int32_t at = -1;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        int32_t v = vr_program_find_tap(m->program, order[i]);
        cr_assert(v > at, "'%s' is value %d, after %d", order[i], v, at);
        at = v;
    }
    cr_assert_eq(m->program->op[1].p.tanh_clamp.limit, 3.0);
    const vr_op *pool = &m->program->op[vr_program_find_tap(m->program, "decoder.layers.2.pool.1")];
    cr_assert_eq(pool->p.group_norm.groups, 4);
    cr_assert_eq(pool->p.group_norm.eps, 1e-5);
    cr_assert_eq(vr_program_find_tap(m->program, "decoder.layers.7.pool.0"), -1);
    vr_model_close(m);
}

/* ---- topologies no published model has -------------------------------------- */

static void add_conv(bag *b, const char *base, int64_t co, int64_t ci, int64_t k, bool bias)
{
    char name[BAG_NAME];
    snprintf(name, sizeof name, "%.200s.weight", base);
    bag_add(b, name, VR_F32, 4, (const int64_t[]){co, ci, k, k});
    snprintf(name, sizeof name, "%.200s.bias", base);
    if (bias)
        bag_add(b, name, VR_F32, 1, &co);
}

static void add_norm(bag *b, const char *base, int64_t c)
{
    char name[BAG_NAME];
    snprintf(name, sizeof name, "%.200s.weight", base);
    bag_add(b, name, VR_F32, 1, &c);
    snprintf(name, sizeof name, "%.200s.bias", base);
    bag_add(b, name, VR_F32, 1, &c);
}

static void add_resnet(bag *b, const char *base, int64_t ci, int64_t co)
{
    char name[BAG_NAME];
    const char *const part[4] = {"norm1", "conv1", "norm2", "conv2"};
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%.150s.%s", base, part[i]);
        if (i % 2)
            add_conv(b, name, co, i == 1 ? ci : co, 3, true);
        else
            add_norm(b, name, i == 0 ? ci : co);
    }
    snprintf(name, sizeof name, "%.150s.conv_shortcut", base);
    if (ci != co)
        add_conv(b, name, co, ci, 1, true);
}

static bag *kl_of(int32_t levels, const int64_t *width, int32_t blocks, int64_t out)
{
    char name[BAG_NAME];
    bag *b = bag_of("synth:taesd,div=64", VR_LAYOUT_DIFFUSERS);
    bag_drop_start(b, "");
    int64_t c = width[0];
    add_conv(b, "decoder.conv_in", c, 5, 3, true);
    add_resnet(b, "decoder.mid_block.resnets.0", c, c);
    add_resnet(b, "decoder.mid_block.resnets.1", c, c);
    for (int32_t i = 0; i < levels; i++) {
        for (int32_t j = 0; j < blocks; j++, c = width[i]) {
            snprintf(name, sizeof name, "decoder.up_blocks.%d.resnets.%d", i, j);
            add_resnet(b, name, c, width[i]);
        }
        snprintf(name, sizeof name, "decoder.up_blocks.%d.upsamplers.0.conv", i);
        if (i + 1 < levels)
            add_conv(b, name, c, c, 3, true);
    }
    add_norm(b, "decoder.conv_norm_out", c);
    add_conv(b, "decoder.conv_out", out, c, 3, true);
    bag_meta(b, "vaeproof.norm_num_groups", "2");
    return b;
}

Test(model_families, levels_widths_blocks_and_channels_come_from_the_tensors)
{
    static const struct {
        int32_t levels;
        int64_t width[6];
        int32_t blocks;
        int64_t out;
    } nets[] = {
        {1, {4}, 1, 3},
        {2, {8, 2}, 5, 1},
        {3, {4, 4, 6}, 2, 4},
        {6, {12, 10, 8, 6, 4, 2}, 1, 3},
    };
    const vr_model_options raw = {.latent_space = VR_LATENT_RAW};
    for (size_t k = 0; k < sizeof nets / sizeof nets[0]; k++) {
        bag *b = kl_of(nets[k].levels, nets[k].width, nets[k].blocks, nets[k].out);
        vr_model *m = must_open("net", BAG_FILE(b), &raw);
        cr_assert_str_eq(m->arch, "kl");
        cr_assert_eq(m->latent_channels, 5);
        cr_assert_eq(m->spatial_scale, (int64_t)1 << (nets[k].levels - 1));
        cr_assert_eq(m->program->op[m->program->output].channels, nets[k].out);
        cr_assert_eq(count_kind(m->program, VR_OP_ATTENTION), 0);
        cr_assert_eq(m->program->weight_count, b->count, "%d of %lld tensors used",
                     m->program->weight_count, (long long)b->count);
        vr_tensor y = decode_small("net", m);
        vr_tensor_free(&y);
        /* The same under the other layout's names. */
        char other[IO_PATH];
        vr_error err = {VR_OK, ""};
        io_join(other, &b->dir, "o.safetensors");
        cr_assert_eq(vr_model_write(m, other, VR_LAYOUT_ORIGINAL, VR_DTYPE_NONE, &err), VR_OK, "%s",
                     err.text);
        vr_model *o = must_open("original", other, &raw);
        cr_assert_eq((int)o->layout, (int)VR_LAYOUT_ORIGINAL);
        assert_same_model("net", m, o);
        vr_model_close(o);
        vr_model_close(m);
        bag_free(b);
    }
}

Test(model_families, a_tiny_block_that_changes_width_has_a_skip)
{
    bag *b = bag_of("synth:taesd,div=16", VR_LAYOUT_DIFFUSERS); /* width 4 */
    bag_drop_start(b, "decoder.layers.12."); /* now 4 to 8, and 8 to 4 in the block after it */
    bag_drop_start(b, "decoder.layers.11.");
    add_conv(b, "decoder.layers.11", 8, 4, 3, false);
    add_conv(b, "decoder.layers.12.conv.0", 4, 8, 3, true);
    add_conv(b, "decoder.layers.12.conv.2", 4, 4, 3, true);
    add_conv(b, "decoder.layers.12.conv.4", 4, 4, 3, true);
    add_conv(b, "decoder.layers.12.skip", 4, 8, 1, false);
    vr_model *m = must_open("skip", BAG_FILE(b), NULL);
    int32_t skip = vr_program_find_tap(m->program, "decoder.layers.12.skip");
    cr_assert(skip > 0);
    cr_assert_eq(m->program->op[skip].p.conv2d.kh, 1);
    cr_assert_eq(m->program->op[skip].weight[1], -1);
    cr_assert_eq(m->program->op[skip].in[0],
                 vr_program_find_tap(m->program, "decoder.layers.11"));
    vr_tensor y = decode_small("skip", m);
    vr_tensor_free(&y);
    vr_model_close(m);
    bag_free(b);
}

Test(model_families, trained_taef2_weights_are_recognised)
{
    char path[IO_PATH];
    vr_model *m = must_open("taef2", shared_file("real/taef2_decoder.safetensors", path), NULL);
    cr_assert_str_eq(m->arch, "taef2");
    cr_assert_eq(m->latent_channels, 32);
    cr_assert_eq(m->spatial_scale, 8);
    cr_assert(!m->normalises);
    cr_assert_eq(m->ignored_tensors, 0);
    cr_assert_eq(count_kind(m->program, VR_OP_GROUP_NORM), 3);
    vr_tensor y = decode_small("taef2", m);
    cr_assert_eq(y.dim[2], 16);
    cr_assert_eq(y.dim[3], 24);
    vr_tensor_free(&y);
    vr_model_close(m);
}
