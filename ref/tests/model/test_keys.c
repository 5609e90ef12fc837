/* Names in the two layouts (clause M6): the published table of SD 1.5, and the
 * rule for any number of levels.
 *
 * SPDX-License-Identifier: MIT */
#include "model_test.h"

#include <stdio.h>
#include <string.h>

static void check_pair(const char *diffusers, const char *original, int32_t levels)
{
    char got[VR_NAME_MAX];
    cr_assert(vr_key_canonical(VR_FAMILY_KL, VR_LAYOUT_ORIGINAL, levels, original, got),
              "'%s' is not known", original);
    cr_assert_str_eq(got, diffusers, "'%s' became '%s', want '%s'", original, got, diffusers);
    vr_key_original(VR_FAMILY_KL, levels, diffusers, got);
    cr_assert_str_eq(got, original, "'%s' became '%s', want '%s'", diffusers, got, original);
    cr_assert(vr_key_canonical(VR_FAMILY_KL, VR_LAYOUT_DIFFUSERS, levels, diffusers, got));
    cr_assert_str_eq(got, diffusers, "'%s' does not stay, but became '%s'", diffusers, got);
}

/* Every line of the table, and every tensor of the model in the table. */
Test(model_keys, sd15_has_the_published_names_and_shapes)
{
    char path[IO_PATH], line[512];
    const char *tsv = shared_file("data/tiling_keys_sd15.tsv", path);
    FILE *f = fopen(tsv, "r");
    cr_assert_not_null(f);
    vr_model *m = must_open("sd15", "synth:sd15", NULL);
    cr_assert_not_null(fgets(line, sizeof line, f)); /* heading */
    int rows = 0;
    while (fgets(line, sizeof line, f)) {
        char diffusers[200], original[200], shape[100], want[120] = "", got[96];
        /* "(a, b)", or "diffusers (a, b) ; ldm (a, b, 1, 1)" */
        cr_assert_eq(sscanf(line, "%199[^\t]\t%199[^\t]\t%*[^(](%99[^)])", diffusers, original,
                            shape) == 3 ||
                         sscanf(line, "%199[^\t]\t%199[^\t]\t(%99[^)])", diffusers, original,
                                shape) == 3, true, "%s", line);
        check_pair(diffusers, original, 4);
        const vr_entry *e = vr_table_find(&m->memory->table, diffusers);
        cr_assert_not_null(e, "the model has no '%s'", diffusers);
        for (char *p = shape, *q = want; *p; p++) /* "512, 4, 3, 3" as in "F32[512,4,3,3]" */
            if (*p != ' ' && !(*p == ',' && p[1] == '\0'))
                *q++ = *p;
        vr_tensor t = e->tensor;
        vr_tensor_describe(&t, got, sizeof got);
        /* Attention maps are made with four axes and written with two. */
        if (strstr(diffusers, ".attentions.0.to_") && strstr(diffusers, ".weight")) {
            t.rank = 2;
            vr_tensor_describe(&t, got, sizeof got);
        }
        cr_assert(strncmp(got, "F32[", 4) == 0 && strncmp(got + 4, want, strlen(want)) == 0 &&
                      got[4 + strlen(want)] == ']',
                  "%s is %s, want [%s]", diffusers, got, want);
        rows++;
    }
    fclose(f);
    cr_assert_eq(rows, 140, "%d rows", rows);
    cr_assert_eq(m->memory->table.count, 140);
    cr_assert_eq(m->program->weight_count, 140);
    vr_model_close(m);
}

Test(model_keys, up_levels_are_counted_from_the_other_end_whatever_their_number)
{
    char diffusers[VR_NAME_MAX], original[VR_NAME_MAX];
    for (int32_t levels = 1; levels <= 8; levels++)
        for (int32_t i = 0; i < levels; i++) {
            snprintf(diffusers, sizeof diffusers, "decoder.up_blocks.%d.resnets.2.norm1.weight", i);
            snprintf(original, sizeof original, "decoder.up.%d.block.2.norm1.weight",
                     levels - 1 - i);
            check_pair(diffusers, original, levels);
            snprintf(diffusers, sizeof diffusers, "decoder.up_blocks.%d.upsamplers.0.conv.bias", i);
            snprintf(original, sizeof original, "decoder.up.%d.upsample.conv.bias",
                     levels - 1 - i);
            check_pair(diffusers, original, levels);
        }
}

Test(model_keys, old_attention_names_are_the_same_weights)
{
    static const char *const rows[][2] = {
        {"query.weight", "to_q.weight"}, {"key.bias", "to_k.bias"},
        {"value.weight", "to_v.weight"}, {"proj_attn.bias", "to_out.0.bias"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char key[VR_NAME_MAX], want[VR_NAME_MAX], got[VR_NAME_MAX];
        snprintf(key, sizeof key, "decoder.mid_block.attentions.0.%s", rows[i][0]);
        snprintf(want, sizeof want, "decoder.mid_block.attentions.0.%s", rows[i][1]);
        cr_assert(vr_key_canonical(VR_FAMILY_KL, VR_LAYOUT_DIFFUSERS, 4, key, got));
        cr_assert_str_eq(got, want);
    }
}

Test(model_keys, the_clamp_of_a_sequential_is_counted_and_that_of_diffusers_is_not)
{
    static const char *const rows[][2] = {
        {"1.weight", "decoder.layers.0.weight"},
        {"3.conv.0.bias", "decoder.layers.2.conv.0.bias"},
        {"3.pool.1.weight", "decoder.layers.2.pool.1.weight"},
        {"19.weight", "decoder.layers.18.weight"},
    };
    char got[VR_NAME_MAX];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert(vr_key_canonical(VR_FAMILY_TINY, VR_LAYOUT_ORIGINAL, 0, rows[i][0], got));
        cr_assert_str_eq(got, rows[i][1]);
        vr_key_original(VR_FAMILY_TINY, 0, rows[i][1], got);
        cr_assert_str_eq(got, rows[i][0]);
    }
    cr_assert(!vr_key_canonical(VR_FAMILY_TINY, VR_LAYOUT_ORIGINAL, 0, "0.weight", got),
              "a clamp has no weight");
}

Test(model_keys, names_of_other_parts_are_not_a_decoders)
{
    static const char *const others[] = {
        "encoder.conv_in.weight", "quant_conv.weight", "loss.logvar", "model_ema.decay",
        "bn.num_batches_tracked", "decoder_ema.conv_in.weight",
    };
    char got[VR_NAME_MAX];
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        for (int layout = 0; layout < 2; layout++)
            cr_assert(!vr_key_canonical(VR_FAMILY_KL, (vr_key_layout)layout, 4, others[i], got),
                      "'%s' was taken for '%s'", others[i], got);
    char longest[2 * VR_NAME_MAX];
    memset(longest, 'a', sizeof longest - 1);
    memcpy(longest, "decoder.", 8);
    longest[sizeof longest - 1] = '\0';
    cr_assert(!vr_key_canonical(VR_FAMILY_KL, VR_LAYOUT_DIFFUSERS, 4, longest, got),
              "a name too long to keep was cut");
}
