/* config.json beside a model and against its tensors (clause M1.6).
 *
 * SPDX-License-Identifier: MIT */
#include "model_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void config_file(const bag *b, const char *json)
{
    char path[IO_PATH];
    io_put(io_join(path, &b->dir, "config.json"), json, strlen(json));
}

static double scale_of(const vr_model *m)
{
    return m->program->op[1].p.scale_shift.scale[0];
}

Test(model_config, the_one_beside_the_file_is_used_where_it_fits)
{
    bag *b = bag_of("synth:sd15,div=32", VR_LAYOUT_DIFFUSERS);
    const char *path = BAG_FILE(b);
    static const struct {
        const char *json;
        double scale; /* 0: asked for */
    } rows[] = {
        {"{\"_class_name\":\"AutoencoderKL\",\"scaling_factor\":0.25}", 4},
        /* diffusers' default, which early files leave out */
        {"{\"_class_name\":\"AutoencoderKL\",\"latent_channels\":4}", 1 / 0.18215},
        {"{\"_class_name\":\"UNet2DConditionModel\",\"scaling_factor\":0.25}", 0},
        {"{\"_class_name\":\"AutoencoderTiny\",\"scaling_factor\":1.0}", 0},
        {"{\"_class_name\":\"AutoencoderKL\",", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        config_file(b, rows[i].json);
        if (rows[i].scale == 0) {
            assert_refused(rows[i].json, path, NULL, VR_E_AMBIGUOUS, PARTS("scaling factor"));
            continue;
        }
        vr_model *m = must_open(rows[i].json, path, NULL);
        cr_assert_eq(scale_of(m), rows[i].scale, "%s: %g", rows[i].json, scale_of(m));
        vr_model_close(m);
    }
    /* In a tree as diffusers lays it out, too; and it is named when it contradicts. */
    config_file(b, "{\"_class_name\":\"AutoencoderKL\",\"latent_channels\":16}");
    assert_refused("contradiction", path, NULL, VR_E_MODEL,
                   PARTS("config.json", "latent_channels 16", "4"));
    /* One given replaces it. */
    vr_vae_config c = {.class_name = "AutoencoderKL", .has_scaling_factor = true,
                       .scaling_factor = 0.5};
    const vr_model_options opt = {.config = &c};
    vr_model *m = must_open("given", path, &opt);
    cr_assert_eq(scale_of(m), 2.0);
    vr_model_close(m);
    bag_free(b);
}

/* scaling_factor 1 in a Tiny config is what a pipeline divides by, not the family's number. */
Test(model_config, a_tiny_config_does_not_set_the_raw_scaling)
{
    bag *b = bag_of("synth:taesd,div=32", VR_LAYOUT_DIFFUSERS);
    config_file(b, "{\"_class_name\":\"AutoencoderTiny\",\"scaling_factor\":1.0}");
    const vr_model_options raw = {.latent_space = VR_LATENT_RAW, .arch = "taesdxl"};
    vr_model *m = must_open("raw", BAG_FILE(b), &raw);
    cr_assert_eq(scale_of(m), 0.13025);
    vr_model_close(m);
    bag_free(b);
}

Test(model_config, numbers_tell_the_name)
{
    bag *b = bag_of("synth:sdxl,div=32", VR_LAYOUT_DIFFUSERS);
    config_file(b, "{\"_class_name\":\"AutoencoderKL\",\"scaling_factor\":0.13025}");
    vr_model *m = must_open("sdxl", BAG_FILE(b), NULL);
    cr_assert_str_eq(m->arch, "sdxl");
    vr_model_close(m);
    config_file(b, "{\"_class_name\":\"AutoencoderKL\",\"scaling_factor\":0.08333}");
    m = must_open("unnamed", BAG_FILE(b), NULL);
    cr_assert_str_eq(m->arch, "kl");
    vr_model_close(m);
    bag_free(b);
}

Test(model_config, norm_groups_come_from_the_config_when_it_says)
{
    bag *b = bag_of("synth:sd15,div=32", VR_LAYOUT_DIFFUSERS);
    vr_vae_config c = {.class_name = "AutoencoderKL", .norm_num_groups = 2};
    const vr_model_options opt = {.config = &c};
    vr_model *m = must_open("2 groups", BAG_FILE(b), &opt);
    cr_assert_eq(m->program->op[vr_program_find_tap(m->program, "decoder.conv_norm_out")]
                     .p.group_norm.groups, 2);
    vr_model_close(m);
    c.norm_num_groups = 3;
    assert_refused("3 groups", BAG_FILE(b), &opt, VR_E_MODEL,
                   PARTS("not divisible into 3 norm groups", "norm_num_groups"));
    b->metas = 0; /* then 32, which these widths are not */
    const vr_model_options arch = {.arch = "sd15"};
    assert_refused("32 groups", BAG_FILE(b), &arch, VR_E_MODEL,
                   PARTS("not divisible into 32 norm groups"));
    bag_free(b);
}

Test(model_config, contradictions_name_both_sides)
{
#define KL .class_name = "AutoencoderKL"
#define TINY .class_name = "AutoencoderTiny"
    static const struct {
        const char *what, *spec;
        vr_vae_config c;
        const char *part[2];
    } rows[] = {
        {"class", "synth:sd15,div=32", {TINY}, {"AutoencoderTiny", "an AutoencoderKL"}},
        {"class", "synth:taesd,div=32", {KL}, {"AutoencoderKL", "TAESD-family"}},
        {"class DC", "synth:sd15,div=32", {.class_name = "AutoencoderDC"},
         {"AutoencoderDC", "an AutoencoderKL"}},
        {"latent channels", "synth:taesd,div=32", {TINY, .latent_channels = 16},
         {"latent_channels 16", "4"}},
        {"levels", "synth:sd15,div=32", {KL, .levels = 3}, {"3 levels", "4"}},
        {"layers", "synth:sd15,div=32", {KL, .layers_per_block = 3}, {"layers_per_block 3", "2"}},
        {"out", "synth:sd15,div=32", {KL, .out_channels = 4}, {"out_channels 4", "3"}},
        {"out", "synth:taesd,div=32", {TINY, .out_channels = 1}, {"out_channels 1", "3"}},
        {"width", "synth:sd15,div=32", {KL, .levels = 4, .block_out_channels = {4, 8, 16, 8}},
         {"8 channels in up block 0", "16"}},
        {"post_quant", "synth:sd15,div=32", {KL, .has_use_post_quant_conv = true},
         {"use_post_quant_conv false", "is there"}},
        {"no post_quant", "synth:sd3,div=32",
         {KL, .has_use_post_quant_conv = true, .use_post_quant_conv = true},
         {"use_post_quant_conv true", "is missing"}},
        {"patch", "synth:flux2,div=32",
         {.class_name = "AutoencoderKLFlux2", .patch_size = {4, 4}}, {"patch_size 4x4", "2x2"}},
        {"blocks", "synth:taesd,div=32",
         {TINY, .num_decoder_blocks_count = 4, .num_decoder_blocks = {3, 3, 2, 1}},
         {"num_decoder_blocks", "10"}},
        {"upsamplings", "synth:taesd,div=32",
         {TINY, .num_decoder_blocks_count = 3, .num_decoder_blocks = {4, 4, 2}},
         {"upsamplings are 2", "3"}},
        {"upsample_fn", "synth:taesd,div=32", {TINY, .has_upsample_fn = true,
         .upsample_fn = "bilinear"}, {"'bilinear'", "'nearest'"}},
        {"act_fn", "synth:taesd,div=32", {TINY, .act_fn = "silu"}, {"'silu'", "'relu'"}},
        {"Tiny scaling", "synth:taesd,div=32", {TINY, .has_scaling_factor = true,
         .scaling_factor = 0.5}, {"scaling_factor 0.5", "want 1 and 0"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const vr_model_options opt = {.config = &rows[i].c};
        vr_error err = {VR_OK, ""};
        vr_model *m = NULL;
        vr_status s = vr_model_open(rows[i].spec, &opt, &m, &err);
        cr_assert(s == VR_E_MODEL || s == VR_E_UNSUPPORTED, "%s: %s", rows[i].what,
                  s ? err.text : "opened");
        for (int k = 0; k < 2; k++)
            cr_assert(strstr(err.text, rows[i].part[k]), "%s: want '%s' in: %s", rows[i].what,
                      rows[i].part[k], err.text);
    }
}

Test(model_config, one_that_agrees_changes_nothing)
{
    vr_vae_config kl = {KL, .latent_channels = 4, .out_channels = 3, .layers_per_block = 2,
                        .levels = 4, .block_out_channels = {4, 8, 16, 16},
                        .has_use_post_quant_conv = true, .use_post_quant_conv = true,
                        .has_scaling_factor = true, .scaling_factor = 0.18215};
    vr_vae_config tiny = {TINY, .latent_channels = 4, .out_channels = 3, .act_fn = "relu",
                          .num_decoder_blocks_count = 4, .num_decoder_blocks = {3, 3, 3, 1},
                          .has_upsample_fn = true, .upsample_fn = "nearest",
                          .has_scaling_factor = true, .scaling_factor = 1};
    static const char *const spec[] = {"synth:sd15,div=32", "synth:taesd,div=32"};
    for (int i = 0; i < 2; i++) {
        const vr_model_options opt = {.config = i ? &tiny : &kl};
        vr_model *a = must_open(spec[i], spec[i], NULL), *b = must_open(spec[i], spec[i], &opt);
        assert_same_model(spec[i], a, b);
        vr_model_close(a);
        vr_model_close(b);
    }
}
