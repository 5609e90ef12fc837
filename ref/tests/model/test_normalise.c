/* What stands in front of the network (clause M2): published values, wrong ways of
 * getting them, and which source of numbers wins.
 *
 * SPDX-License-Identifier: MIT */
#include "model_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* z of a latent value 1, from the first operation of the program. */
static double z_of_one(const vr_model *m, int64_t channel)
{
    cr_assert(m->program->op[1].kind == VR_OP_SCALE_SHIFT, "the first operation is %s",
              vr_op_name(m->program->op[1].kind));
    return 1.0 * m->program->op[1].p.scale_shift.scale[channel] +
           m->program->op[1].p.scale_shift.shift[channel];
}

static void near(const char *what, double got, double want)
{
    cr_assert(fabs(got - want) <= 1e-15 * fabs(want), "%s: %.17g, want %.17g", what, got, want);
}

Test(model_normalise, published_numbers_are_applied_once_and_in_the_right_order)
{
    static const struct {
        const char *arch;
        double z, wrong[3]; /* omitted shift, wrong order, doubled or inverted */
    } rows[] = {
        {"sd15", 1 / 0.18215, {1.0, 0.18215, 1 / 0.13025}},
        {"sdxl", 1 / 0.13025, {1.0, 0.13025, 1 / 0.18215}},
        {"sd3", 1 / 1.5305 + 0.0609, {1 / 1.5305, 1.0609 / 1.5305, 1.5305}},
        {"flux1", 1 / 0.3611 + 0.1159, {1 / 0.3611, 1.1159 / 0.3611, (1 - 0.1159) * 0.3611}},
    };
    for (size_t i = 0; i < 4; i++) {
        char spec[40];
        snprintf(spec, sizeof spec, "synth:%s,div=32", rows[i].arch);
        vr_model *m = must_open(spec, spec, NULL);
        cr_assert(m->normalises);
        double z = z_of_one(m, m->latent_channels - 1);
        near(rows[i].arch, z, rows[i].z);
        for (int k = 0; k < 3; k++)
            cr_assert(fabs(z - rows[i].wrong[k]) > 1e-3, "%s: a wrong way gives the same",
                      rows[i].arch);
        int ops = 0;
        for (int32_t k = 0; k < m->program->op_count; k++)
            ops += m->program->op[k].kind == VR_OP_SCALE_SHIFT;
        cr_assert_eq(ops, 1);
        vr_model_close(m);
        const vr_model_options raw = {.latent_space = VR_LATENT_RAW};
        m = must_open(spec, spec, &raw);
        cr_assert(!m->normalises);
        cr_assert_neq((int)m->program->op[1].kind, (int)VR_OP_SCALE_SHIFT);
        vr_model_close(m);
    }
}

Test(model_normalise, flux_example_of_the_field_reports)
{
    vr_model *m = must_open("flux1", "synth:flux1,div=32", NULL);
    cr_assert(fabs(z_of_one(m, 0) - 2.8852) < 1e-4, "%g", z_of_one(m, 0));
    vr_model_close(m);
}

Test(model_normalise, tiny_takes_diffusion_latents_as_they_are_and_scales_raw_ones)
{
    const vr_model_options raw = {.latent_space = VR_LATENT_RAW};
    vr_model *m = must_open("taef1", "synth:taef1,div=32", NULL);
    cr_assert(!m->normalises);
    cr_assert_eq((int)m->program->op[1].kind, (int)VR_OP_TANH_CLAMP);
    vr_model_close(m);
    m = must_open("taef1 raw", "synth:taef1,div=32", &raw);
    near("taef1", z_of_one(m, 3), (1 - 0.1159) * 0.3611);
    vr_model_close(m);
    m = must_open("taesdxl raw", "synth:taesdxl,div=32", &raw);
    near("taesdxl", z_of_one(m, 3), 0.13025);
    vr_model_close(m);
    assert_refused("taef2 raw", "synth:taef2,div=32", &raw, VR_E_AMBIGUOUS,
                   PARTS("no scaling factor is published", "'taef2'"));
    assert_refused("taesana raw", "synth:taesana,div=32", &raw, VR_E_AMBIGUOUS,
                   PARTS("no scaling factor is published", "'taesana'"));
    const vr_model_options own = {.latent_space = VR_LATENT_RAW, .has_scaling_factor = true,
                                  .scaling_factor = 0.25, .has_shift_factor = true,
                                  .shift_factor = 0.5};
    m = must_open("taef2 raw, given", "synth:taef2,div=32", &own);
    near("taef2", z_of_one(m, 0), 0.125);
    vr_model_close(m);
}

Test(model_normalise, flux2_uses_the_statistics_of_the_file)
{
    bag *b = bag_of("synth:flux2,div=32", VR_LAYOUT_DIFFUSERS);
    ((float *)bag_edit(b, "bn.running_var"))[77] = 4.0f;
    ((float *)bag_edit(b, "bn.running_mean"))[77] = -0.5f;
    vr_model *m = must_open("flux2", BAG_FILE(b), NULL);
    near("channel 77", z_of_one(m, 77), sqrt(4.0 + 1e-4) - 0.5);
    vr_model_close(m);
    vr_vae_config c = {.class_name = "AutoencoderKLFlux2", .has_batch_norm_eps = true,
                       .batch_norm_eps = 0.5, .patch_size = {2, 2}, .latent_channels = 32};
    const vr_model_options opt = {.config = &c};
    m = must_open("flux2, eps", BAG_FILE(b), &opt);
    near("channel 77, eps", z_of_one(m, 77), sqrt(4.5) - 0.5);
    /* ... which a file written from it keeps. */
    vr_error err = {VR_OK, ""};
    const char *out = IO_FILE(&b->dir, "out.safetensors");
    cr_assert_eq(vr_model_write(m, out, VR_LAYOUT_ORIGINAL, VR_DTYPE_NONE, &err), VR_OK, "%s",
                 err.text);
    vr_model_close(m);
    m = must_open("flux2, eps kept", out, NULL);
    near("channel 77, eps kept", z_of_one(m, 77), sqrt(4.5) - 0.5);
    vr_model_close(m);

    bag_drop_start(b, "bn.");
    const char *path = BAG_FILE(b);
    assert_refused("no statistics", path, NULL, VR_E_AMBIGUOUS,
                   PARTS("bn.running_mean", "bn.running_var", "raw"));
    const vr_model_options named = {.arch = "flux2"};
    assert_refused("no statistics, named", path, &named, VR_E_MODEL,
                   PARTS("bn.running_var", "--latent-space raw"));
    const vr_model_options raw = {.latent_space = VR_LATENT_RAW};
    m = must_open("raw needs none", path, &raw);
    cr_assert_eq(m->latent_channels, 32);
    vr_model_close(m);
    bag_free(b);
}

/* ---- which source wins ------------------------------------------------------- */

static void expect(const char *what, const char *path, const vr_model_options *opt, double z)
{
    vr_model *m = must_open(what, path, opt);
    near(what, z_of_one(m, 0), z);
    vr_model_close(m);
}

Test(model_normalise, unknown_scaling_is_asked_for_with_the_choices)
{
    bag *b = bag_of("synth:sd15,div=32", VR_LAYOUT_DIFFUSERS);
    const char *path = BAG_FILE(b);
    assert_refused("4 channels", path, NULL, VR_E_AMBIGUOUS,
                   PARTS("scaling factor", "sd15 (0.18215)", "sdxl (0.13025)", "config.json", "raw"));
    const vr_model_options raw = {.latent_space = VR_LATENT_RAW};
    vr_model *m = must_open("raw", path, &raw);
    cr_assert_str_eq(m->arch, "kl");
    vr_model_close(m);
    bag_free(b);

    b = bag_of("synth:sd3,div=32", VR_LAYOUT_DIFFUSERS);
    assert_refused("16 channels", BAG_FILE(b), NULL, VR_E_AMBIGUOUS,
                   PARTS("sd3 (1.5305, shift 0.0609)", "flux1 (0.3611, shift 0.1159)"));
    bag_free(b);

    b = bag_of("synth:taesd,div=32", VR_LAYOUT_DIFFUSERS);
    assert_refused("raw latents for TAESD or TAESDXL", BAG_FILE(b), &raw, VR_E_AMBIGUOUS,
                   PARTS("scaling factor", "taesd (0.18215) or taesdxl (0.13025)",
                         "diffusion-space"));
    bag_free(b);
}

Test(model_normalise, options_beat_config_beats_metadata_beats_checkpoint)
{
    const int64_t one = 1;
    bag *b = bag_of("synth:sd15,div=32", VR_LAYOUT_DIFFUSERS);
    bag_prefix(b, "first_stage_model.");
    bag_add(b, "conditioner.embedders.0.transformer.weight", VR_F16, 1, &one);
    const char *path = BAG_FILE(b);
    expect("checkpoint", path, NULL, 1 / 0.13025);
    const vr_model_options sd15 = {.arch = "sd15"};
    expect("arch beats checkpoint", path, &sd15, 1 / 0.18215);

    bag_meta(b, "vaeproof.scaling_factor", "0.5");
    bag_meta(b, "vaeproof.shift_factor", "2");
    path = BAG_FILE(b);
    expect("metadata", path, NULL, 1 / 0.5 + 2);
    expect("an arch named by the caller beats metadata", path, &sd15, 1 / 0.18215);
    bag_meta(b, "vaeproof.arch", "sd15");
    path = BAG_FILE(b);
    expect("unless the metadata names that arch too", path, &sd15, 1 / 0.5 + 2);

    vr_vae_config c = {.class_name = "AutoencoderKL", .has_scaling_factor = true,
                       .scaling_factor = 0.25};
    vr_model_options opt = {.config = &c, .arch = "sd15"};
    expect("config, whole: no shift", path, &opt, 4);
    c.has_shift_factor = true;
    c.shift_factor = -1;
    expect("config with a shift", path, &opt, 3);
    opt.has_scaling_factor = true;
    opt.scaling_factor = 0.125;
    expect("scaling given", path, &opt, 7);
    opt.has_shift_factor = true;
    opt.shift_factor = 0;
    expect("scaling and shift given", path, &opt, 8);
    bag_free(b);
}

Test(model_normalise, the_rest_of_a_checkpoint_tells_the_family)
{
    static const struct {
        const char *spec, *key;
        double z;
    } rows[] = {
        {"synth:sd15,div=32", "conditioner.embedders.0.model.weight", 1 / 0.13025},
        {"synth:sd15,div=32", "cond_stage_model.transformer.weight", 1 / 0.18215},
        {"synth:sd3,div=32", "model.diffusion_model.joint_blocks.0.weight", 1 / 1.5305 + 0.0609},
        {"synth:sd3,div=32", "model.diffusion_model.double_blocks.0.weight", 1 / 0.3611 + 0.1159},
        {"synth:sd3,div=32", "double_blocks.0.img_attn.weight", 1 / 0.3611 + 0.1159},
    };
    const int64_t one = 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bag *b = bag_of(rows[i].spec, VR_LAYOUT_ORIGINAL);
        bag_prefix(b, i % 2 ? "vae." : "first_stage_model.");
        bag_add(b, rows[i].key, VR_F16, 1, &one);
        expect(rows[i].key, BAG_FILE(b), NULL, rows[i].z);
        bag_free(b);
    }
    /* A hint about 16-channel models says nothing about a 4-channel decoder. */
    bag *b = bag_of("synth:sd15,div=32", VR_LAYOUT_ORIGINAL);
    bag_add(b, "model.diffusion_model.double_blocks.0.weight", VR_F16, 1, &one);
    assert_refused("hint that does not fit", BAG_FILE(b), NULL, VR_E_AMBIGUOUS,
                   PARTS("scaling factor"));
    bag_free(b);
}

Test(model_normalise, a_factor_that_would_not_be_used_is_refused)
{
    const vr_model_options raw = {.latent_space = VR_LATENT_RAW, .has_scaling_factor = true,
                                  .scaling_factor = 0.5};
    assert_refused("raw", "synth:sd15,div=32", &raw, VR_E_ARGUMENT,
                   PARTS("would not be used", "raw latents"));
    const vr_model_options shift = {.has_shift_factor = true, .shift_factor = 0.5};
    assert_refused("diffusion, Tiny", "synth:taesd,div=32", &shift, VR_E_ARGUMENT,
                   PARTS("would not be used", "diffusion-space latents"));
    static const double bad[] = {0.0, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        const vr_model_options opt = {.has_scaling_factor = true, .scaling_factor = bad[i]};
        assert_refused("bad scaling", "synth:sd15,div=32", &opt, VR_E_RANGE,
                       PARTS("finite scaling other than 0"));
    }
    const vr_model_options lost = {.has_shift_factor = true, .shift_factor = NAN};
    assert_refused("bad shift", "synth:sd15,div=32", &lost, VR_E_RANGE, PARTS("shift"));
}

/* ---- mean and std -------------------------------------------------------------- */

Test(model_normalise, mean_and_std_of_a_config_are_per_channel_and_survive_writing)
{
    vr_vae_config c = {.class_name = "AutoencoderKL", .has_scaling_factor = true,
                       .scaling_factor = 0.5, .stats_count = 4,
                       .latents_mean = {-1.6574, 1.886, -1.383, -0.5},
                       .latents_std = {8.4927, 5.9022, 6.5498, 2.0}};
    const vr_model_options opt = {.config = &c};
    vr_error err = {VR_OK, ""};
    bag *b = bag_of("synth:sdxl,div=32", VR_LAYOUT_DIFFUSERS);
    const char *out = IO_FILE(&b->dir, "out.safetensors");
    vr_model *m = must_open("config", BAG_FILE(b), &opt);
    near("channel 3", z_of_one(m, 3), 3.5); /* 2 / 0.5 - 0.5, not 1/2/0.5 - 0.5 */
    near("channel 0", z_of_one(m, 0), 8.4927 / 0.5 - 1.6574);
    cr_assert_eq(vr_model_write(m, out, VR_LAYOUT_ORIGINAL, VR_DTYPE_NONE, &err), VR_OK, "%s",
                 err.text);
    vr_model *again = must_open("written", out, NULL);
    assert_same_model("written", m, again);
    vr_model_close(again);
    vr_model_close(m);
    /* Also when it was read in raw space, where they are not applied. */
    const vr_model_options raw = {.config = &c, .latent_space = VR_LATENT_RAW};
    m = must_open("raw", BAG_FILE(b), &raw);
    cr_assert(!m->normalises);
    cr_assert_eq(vr_model_write(m, out, VR_LAYOUT_ORIGINAL, VR_DTYPE_NONE, &err), VR_OK);
    vr_model_close(m);
    expect("written from raw", out, NULL, 8.4927 / 0.5 - 1.6574);
    const vr_model_options shift = {.config = &c, .has_shift_factor = true, .shift_factor = 0.25};
    expect("a shift given replaces the mean", BAG_FILE(b), &shift, 8.4927 / 0.5 + 0.25);
    c.stats_count = 3;
    assert_refused("3 of 4", BAG_FILE(b), &opt, VR_E_MODEL, PARTS("3 latents_mean", "4 latent"));
    bag_free(b);
}

Test(model_normalise, damaged_metadata_is_refused_not_passed_over)
{
    static const struct {
        const char *key, *value;
    } rows[] = {
        {"vaeproof.scaling_factor", "half"},   {"vaeproof.scaling_factor", ""},
        {"vaeproof.scaling_factor", "0.5,0.5"}, {"vaeproof.scaling_factor", "nan"},
        {"vaeproof.shift_factor", "0.1 "},     {"vaeproof.latents_mean", "1,2,,3"},
        {"vaeproof.norm_num_groups", "0"},     {"vaeproof.norm_num_groups", "4 of 8"},
        {"vaeproof.norm_num_groups", "-4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bag *b = bag_of("synth:sd15,div=32", VR_LAYOUT_DIFFUSERS);
        bag_meta(b, rows[i].key, rows[i].value);
        assert_refused(rows[i].value, BAG_FILE(b), NULL, VR_E_FORMAT,
                       PARTS("__metadata__", rows[i].key));
        bag_free(b);
    }
    bag *b = bag_of("synth:sd15,div=32", VR_LAYOUT_DIFFUSERS);
    bag_meta(b, "vaeproof.scaling_factor", "0.5");
    bag_meta(b, "vaeproof.latents_mean", "1,2,3,4");
    assert_refused("mean without std", BAG_FILE(b), NULL, VR_E_FORMAT, PARTS("latents_std"));
    bag_free(b);
}

/* ---- seeded latents (clause M8) -------------------------------------------------- */

Test(model_normalise, seeded_latents_fit_their_space)
{
    const vr_model_options raw = {.latent_space = VR_LATENT_RAW};
    vr_error err = {VR_OK, ""};
    vr_model *d = must_open("diffusion", "synth:flux1,div=32", NULL);
    vr_model *r = must_open("raw", "synth:flux1,div=32", &raw);
    vr_tensor x, y;
    cr_assert_eq(vr_model_latents(d, 9, 2, 8, 16, &x, &err), VR_OK, "%s", err.text);
    cr_assert_eq(vr_model_latents(r, 9, 2, 8, 16, &y, &err), VR_OK, "%s", err.text);
    const int64_t n = 2 * 16 * 8 * 16;
    const uint64_t stream = vr_random_stream("latents");
    const float *p = x.data, *q = y.data;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        cr_assert_eq(p[i], vr_random_normal(9, stream, (uint64_t)i), "element %d", (int)i);
        cr_assert_eq(q[i], (float)((double)p[i] * (1 / 0.3611) + 0.1159), "raw element %d", (int)i);
        sum += p[i];
        squares += (double)p[i] * p[i];
    }
    cr_assert(fabs(sum / (double)n) < 0.06 && fabs(squares / (double)n - 1) < 0.1);
    vr_tensor_free(&x);
    vr_tensor_free(&y);
    static const int64_t none[][3] = {{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {-1, 1, 1}};
    for (int i = 0; i < 4; i++)
        cr_assert_eq(vr_model_latents(d, 9, none[i][0], none[i][1], none[i][2], &x, &err),
                     VR_E_SHAPE);
    vr_model_close(d);
    vr_model_close(r);
}
