/* One set of weights under every name it goes by (clause M6), and writing it.
 *
 * SPDX-License-Identifier: MIT */
#include "model_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Widths that differ per level, so that a swapped order of levels shows. */
static const char KL[] = "synth:sd15,div=16,seed=3";
static const char TINY[] = "synth:taesd,div=16,seed=3";
static const char FLUX2[] = "synth:flux2,div=32,seed=3";

static void check(const char *what, const char *spec, vr_key_layout layout, const char *prefix,
                  void (*change)(bag *), const char *arch)
{
    const vr_model_options opt = {.arch = arch};
    vr_model *want = must_open(what, spec, NULL);
    bag *b = bag_of(spec, layout);
    bag_prefix(b, prefix);
    if (change)
        change(b);
    vr_model *got = must_open(what, BAG_FILE(b), &opt);
    assert_same_model(what, want, got);
    cr_assert_eq((int)got->layout, (int)layout, "%s", what);
    cr_assert_str_eq(got->prefix, prefix, "%s: prefix '%s'", what, got->prefix);
    vr_model_close(got);
    vr_model_close(want);
    bag_free(b);
}

Test(model_layouts, every_layout_and_prefix_is_the_same_model)
{
    static const char *const kl[] = {"", "first_stage_model.", "vae."};
    static const char *const tiny_original[] = {"", "decoder.", "taesd_decoder.",
                                                "vae.taesd_decoder.", "vae.decoder."};
    static const char *const tiny_diffusers[] = {"", "vae.", "first_stage_model."};
    char what[100];
    for (int i = 0; i < 3; i++)
        for (int layout = 0; layout < 2; layout++) {
            snprintf(what, sizeof what, "KL, layout %d, prefix '%s'", layout, kl[i]);
            check(what, KL, (vr_key_layout)layout, kl[i], NULL, "sd15");
            check(what, FLUX2, (vr_key_layout)layout, kl[i], NULL, NULL);
        }
    for (int i = 0; i < 5; i++) {
        snprintf(what, sizeof what, "Tiny, original, prefix '%s'", tiny_original[i]);
        check(what, TINY, VR_LAYOUT_ORIGINAL, tiny_original[i], NULL, NULL);
        check(what, "synth:taef2,div=16", VR_LAYOUT_ORIGINAL, tiny_original[i], NULL, NULL);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(what, sizeof what, "Tiny, diffusers, prefix '%s'", tiny_diffusers[i]);
        check(what, TINY, VR_LAYOUT_DIFFUSERS, tiny_diffusers[i], NULL, NULL);
        check(what, "synth:taesana,div=32", VR_LAYOUT_DIFFUSERS, tiny_diffusers[i], NULL, NULL);
    }
}

/* ---- variants of one file -------------------------------------------------- */

static void old_attention(bag *b)
{
    bag_replace(b, "attentions.0.to_q", "attentions.0.query");
    bag_replace(b, "attentions.0.to_k", "attentions.0.key");
    bag_replace(b, "attentions.0.to_v", "attentions.0.value");
    bag_replace(b, "attentions.0.to_out.0", "attentions.0.proj_attn");
}

static void attention_rank(bag *b, const char *part, int32_t rank)
{
    for (int64_t i = 0; i < b->count; i++)
        if (strstr(b->name[i], part) && strstr(b->name[i], ".weight") && b->tensor[i].rank != 1 &&
            !strstr(b->name[i], "norm")) {
            cr_assert_neq(b->tensor[i].rank, rank, "%s has that rank already", b->name[i]);
            b->tensor[i].rank = rank;
            b->tensor[i].dim[2] = b->tensor[i].dim[3] = 1;
        }
}

static void four_axes(bag *b)
{
    attention_rank(b, ".attentions.0.", 4);
}

static void two_axes(bag *b)
{
    attention_rank(b, ".attn_1.", 2);
}

static void nested_post_quant(bag *b)
{
    bag_replace(b, "post_quant_conv", "decoder.post_quant_conv");
}

static void other_parts(bag *b)
{
    const int64_t n = 2;
    char name[BAG_NAME];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "model.diffusion_model.input_blocks.%d.weight", i);
        bag_add(b, name, VR_F16, 1, &n);
    }
    bag_add(b, "model_ema.decay", VR_F32, 1, &n);
    bag_add(b, "model_ema.num_updates", VR_I32, 1, &n);
    bag_add(b, "loss.logvar", VR_F32, 1, &n);
    bag_add(b, "encoder.conv_in.weight", VR_F32, 1, &n);
    bag_add(b, "quant_conv.weight", VR_F32, 1, &n);
    bag_add(b, "bn.num_batches_tracked", VR_I64, 1, &n);
    bag_add(b, "scaled_fp8", VR_F8_E4M3, 1, &n); /* of some other part: nothing here is 8-bit */
}

static void second_copy_agrees(bag *b)
{
    int64_t n = b->count;
    char name[BAG_NAME + 32];
    for (int64_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "first_stage_model.%s", b->name[i]);
        bag_copy(b, b->name[i], name);
    }
}

Test(model_layouts, spellings_of_one_file_are_the_same_model)
{
    check("old attention names", KL, VR_LAYOUT_DIFFUSERS, "", old_attention, "sd15");
    check("attention maps with four axes", KL, VR_LAYOUT_DIFFUSERS, "", four_axes, "sd15");
    check("attention maps with two axes", KL, VR_LAYOUT_ORIGINAL, "", two_axes, "sd15");
    check("post_quant_conv inside", KL, VR_LAYOUT_ORIGINAL, "", nested_post_quant, "sd15");
    check("post_quant_conv inside", FLUX2, VR_LAYOUT_DIFFUSERS, "", nested_post_quant, NULL);
    check("other parts", KL, VR_LAYOUT_ORIGINAL, "first_stage_model.", other_parts, "sd15");
    check("a second copy that agrees", KL, VR_LAYOUT_DIFFUSERS, "", second_copy_agrees, "sd15");
}

Test(model_layouts, what_a_decoder_does_not_need_is_counted)
{
    bag *b = bag_of(KL, VR_LAYOUT_ORIGINAL);
    other_parts(b);
    const vr_model_options opt = {.arch = "sd15"};
    vr_model *m = must_open("other parts", BAG_FILE(b), &opt);
    cr_assert_eq(m->ignored_tensors, 207);
    vr_model_close(m);
    /* Also when its type is unknown. */
    const char *path = BAG_FILE(b);
    file_patch(path, "\"loss.logvar\"", "F32", "F99");
    m = must_open("unknown type elsewhere", path, &opt);
    vr_model_close(m);
    bag_free(b);
}

Test(model_layouts, arch_settles_which_of_two_families_is_meant)
{
    bag *b = bag_of(KL, VR_LAYOUT_DIFFUSERS), *t = bag_of(TINY, VR_LAYOUT_ORIGINAL);
    for (int64_t i = 0; i < t->count; i++) {
        char name[BAG_NAME + 20];
        snprintf(name, sizeof name, "taesd_decoder.%s", t->name[i]);
        bag_add(b, name, t->tensor[i].dtype, t->tensor[i].rank, t->tensor[i].dim);
    }
    const char *path = BAG_FILE(b);
    assert_refused("two families", path, NULL, VR_E_AMBIGUOUS,
                   PARTS("two different decoders", "'decoder.", "'taesd_decoder."));
    static const char *const arch[] = {"sd15", "taesd"};
    for (int i = 0; i < 2; i++) {
        const vr_model_options opt = {.arch = arch[i]};
        vr_model *m = must_open(arch[i], path, &opt);
        cr_assert_str_eq(m->arch, arch[i]);
        cr_assert_str_eq(m->program->family, i ? "tiny" : "kl");
        vr_model_close(m);
    }
    bag_free(t);
    bag_free(b);
}

/* ---- writing ----------------------------------------------------------------- */

static void check_round_trip(const char *spec, vr_key_layout first)
{
    vr_error err = {VR_OK, ""};
    bag *b = bag_of("synth:taesd,div=64", VR_LAYOUT_DIFFUSERS); /* for its folder */
    const char *path[3] = {IO_FILE(&b->dir, "1.safetensors"), IO_FILE(&b->dir, "2.safetensors"),
                           IO_FILE(&b->dir, "3.safetensors")};
    vr_model *m = must_open(spec, spec, NULL);
    for (int i = 0; i < 3; i++) {
        vr_key_layout layout = ((int)first + i) % 2 ? VR_LAYOUT_ORIGINAL : VR_LAYOUT_DIFFUSERS;
        cr_assert_eq(vr_model_write(m, path[i], layout, VR_DTYPE_NONE, &err), VR_OK, "%s: %s", spec,
                     err.text);
        vr_model *next = must_open(spec, path[i], NULL);
        assert_same_model(spec, m, next);
        cr_assert_str_eq(next->arch, m->arch);
        cr_assert_eq((int)next->layout, (int)layout);
        vr_model_close(m);
        m = next;
    }
    vr_model_close(m);
    size_t n0, n1, n2;
    uint8_t *x = io_get(path[0], &n0), *y = io_get(path[1], &n1), *z = io_get(path[2], &n2);
    cr_assert(n0 == n2 && memcmp(x, z, n0) == 0, "%s: there and back is another file", spec);
    cr_assert(n0 != n1 || memcmp(x, y, n0) != 0, "%s: both layouts are one file", spec);
    free(x);
    free(y);
    free(z);
    bag_free(b);
}

Test(model_layouts, there_and_back_is_the_same_file)
{
    for (const vr_arch_info *a = vr_arch_list(); a->name; a++) {
        char spec[64];
        snprintf(spec, sizeof spec, "synth:%s,div=32,dtype=%s", a->name,
                 a->latent_channels == 16 ? "BF16" : "F32");
        check_round_trip(spec, VR_LAYOUT_DIFFUSERS);
        check_round_trip(spec, VR_LAYOUT_ORIGINAL);
    }
}

Test(model_layouts, attention_maps_have_the_rank_of_the_layout)
{
    bag *d = bag_of(KL, VR_LAYOUT_DIFFUSERS), *o = bag_of(KL, VR_LAYOUT_ORIGINAL);
    int64_t q = bag_find(d, "decoder.mid_block.attentions.0.to_q.weight");
    int64_t p = bag_find(o, "decoder.mid.attn_1.q.weight");
    cr_assert_eq(d->tensor[q].rank, 2);
    cr_assert_eq(o->tensor[p].rank, 4);
    cr_assert_eq(o->tensor[p].dim[2], 1);
    bag_find(o, "decoder.up.3.upsample.conv.weight");
    bag_find(o, "decoder.up.0.block.0.nin_shortcut.weight");
    bag_free(d);
    bag_free(o);
}

Test(model_layouts, a_weight_that_the_type_cannot_hold_is_not_written)
{
    bag *b = bag_of(TINY, VR_LAYOUT_DIFFUSERS);
    ((float *)bag_edit(b, "decoder.layers.6.weight"))[5] = 1e6f;
    vr_model *m = must_open("large", BAG_FILE(b), NULL);
    const char *out = IO_FILE(&b->dir, "out.safetensors");
    vr_error err = {VR_OK, ""};
    cr_assert_eq(vr_model_write(m, out, VR_LAYOUT_DIFFUSERS, VR_F16, &err), VR_E_RANGE);
    cr_assert(strstr(err.text, "element 5") && strstr(err.text, "decoder.layers.6.weight") &&
                  strstr(err.text, "F16"), "%s", err.text);
    cr_assert_eq(io_dir_entries(&b->dir), 1, "something was left behind");
    cr_assert_eq(vr_model_write(m, out, VR_LAYOUT_DIFFUSERS, VR_I32, &err), VR_E_DTYPE);
    cr_assert_eq(vr_model_write(m, out, VR_LAYOUT_DIFFUSERS, VR_BF16, &err), VR_OK, "%s", err.text);
    vr_model_close(m);
    bag_free(b);
}
