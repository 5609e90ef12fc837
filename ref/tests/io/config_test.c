/* config.json of diffusers (clause F5).
 *
 * SPDX-License-Identifier: MIT */
#include "io_test.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static vr_status parse(const char *text, vr_vae_config *c, vr_error *err)
{
    vr_io_blob b = io_blob(text, strlen(text));
    vr_status s = vr_io_config_parse("vae/config.json", &b, c, err);
    vr_io_blob_close(&b);
    return s;
}

Test(config, kl_fields_are_read_and_null_is_absent)
{
    vr_vae_config c;
    vr_error err = {0};
    vr_status s = parse(
        "{\"_class_name\": \"AutoencoderKL\", \"_diffusers_version\": \"0.30\", \"act_fn\": "
        "\"silu\", \"block_out_channels\": [128, 256, 512, 512], \"down_block_types\": [\"x\"], "
        "\"force_upcast\": true, \"latent_channels\": 16, \"latents_mean\": null, "
        "\"latents_std\": null, \"layers_per_block\": 2, \"norm_num_groups\": 32, "
        "\"out_channels\": 3, \"sample_size\": 1024, \"scaling_factor\": 0.3611, "
        "\"shift_factor\": 0.1159, \"use_post_quant_conv\": false, \"use_quant_conv\": false}",
        &c, &err);
    cr_assert(s == VR_OK, "%s", err.text);
    cr_assert(!strcmp(c.class_name, "AutoencoderKL") && !strcmp(c.act_fn, "silu"));
    cr_assert(c.levels == 4 && c.block_out_channels[0] == 128 && c.block_out_channels[3] == 512);
    cr_assert(c.latent_channels == 16 && c.out_channels == 3 && c.layers_per_block == 2);
    cr_assert(c.norm_num_groups == 32 && c.stats_count == 0);
    cr_assert(c.has_scaling_factor && c.scaling_factor == 0.3611);
    cr_assert(c.has_shift_factor && c.shift_factor == 0.1159);
    cr_assert(c.has_force_upcast && c.force_upcast);
    cr_assert(c.has_use_post_quant_conv && !c.use_post_quant_conv);
    cr_assert(!c.has_batch_norm_eps && c.patch_size[0] == 0 && !c.has_upsample_fn);
}

Test(config, silence_leaves_fields_absent)
{
    vr_vae_config c;
    cr_assert(!parse("{\"_class_name\": \"AutoencoderDC\", \"shift_factor\": null}", &c, NULL));
    cr_assert(!strcmp(c.class_name, "AutoencoderDC"));
    vr_vae_config none = {0};
    memset(c.class_name, 0, sizeof c.class_name);
    cr_assert(!memcmp(&c, &none, sizeof c));
}

Test(config, tiny_flux2_and_statistics_are_read)
{
    vr_vae_config c;
    vr_error err = {0};
    vr_status s = parse("{\"_class_name\": \"AutoencoderTiny\", \"act_fn\": \"relu\", "
                        "\"block_out_channels\": [1], \"decoder_block_out_channels\": "
                        "[64, 64, 64, 64], \"num_decoder_blocks\": [3, 3, 3, 1], "
                        "\"upsample_fn\": \"nearest\", \"scaling_factor\": 1}",
                        &c, &err);
    cr_assert(s == VR_OK, "%s", err.text);
    cr_assert(c.levels == 4 && c.block_out_channels[0] == 64);
    cr_assert(c.num_decoder_blocks_count == 4 && c.num_decoder_blocks[3] == 1);
    cr_assert(c.has_upsample_fn && !strcmp(c.upsample_fn, "nearest") && c.scaling_factor == 1);
    s = parse("{\"_class_name\": \"AutoencoderKLFlux2\", \"batch_norm_eps\": 1e-4, "
              "\"patch_size\": [2, 2], \"latent_channels\": 2, \"latents_mean\": [0, -1.5], "
              "\"latents_std\": [1, 2.5]}",
              &c, &err);
    cr_assert(s == VR_OK, "%s", err.text);
    cr_assert(c.has_batch_norm_eps && c.batch_norm_eps == 1e-4 && c.patch_size[1] == 2);
    cr_assert(c.stats_count == 2 && c.latents_mean[1] == -1.5 && c.latents_std[1] == 2.5);
    cr_assert(!parse("{\"_class_name\": \"AutoencoderKL\", \"patch_size\": 2}", &c, NULL));
    cr_assert(c.patch_size[0] == 2 && c.patch_size[1] == 2);
}

typedef struct row {
    const char *rest; /* after the class name, from line 2 on */
    vr_status status;
    const char *needle;
} row;

static const row rows[] = {
    {"\"scaling_factor\": \"0.18\"", VR_E_FORMAT, ":2: 'scaling_factor' is a string; a number"},
    {"\"scaling_factor\": true", VR_E_FORMAT, "'scaling_factor' is a boolean"},
    {"\"scaling_factor\": 0", VR_E_RANGE, "'scaling_factor' is 0"},
    {"\"x\": {\"scaling_factor\": 1},\n\"y\": \"scaling_factor\",\n\"scaling_factor\": []",
     VR_E_FORMAT, ":4: 'scaling_factor' is a list"},
    {"\"shift_factor\": []", VR_E_FORMAT, "'shift_factor' is a list; a number"},
    {"\"latent_channels\": 4.0", VR_E_FORMAT, "'latent_channels' is a real number; an integer"},
    {"\"latent_channels\": 0", VR_E_RANGE, "'latent_channels' is 0; an integer from 1 to 256"},
    {"\"latent_channels\": 257", VR_E_RANGE, "'latent_channels' is 257"},
    {"\"latent_channels\": -4", VR_E_RANGE, "'latent_channels' is -4"},
    {"\"out_channels\": 4294967299", VR_E_RANGE, "'out_channels' is 4294967299"},
    {"\"layers_per_block\": [2]", VR_E_FORMAT, "'layers_per_block' is a list; an integer"},
    {"\"norm_num_groups\": \"32\"", VR_E_FORMAT, "'norm_num_groups' is a string"},
    {"\"block_out_channels\": 128", VR_E_FORMAT, "is an integer; a list of 1 to 8 values"},
    {"\"block_out_channels\": []", VR_E_RANGE, "'block_out_channels' is a list of 0"},
    {"\"block_out_channels\": [1,2,3,4,5,6,7,8,9]", VR_E_RANGE, "is a list of 9"},
    {"\"block_out_channels\": [128, null]", VR_E_FORMAT, "'block_out_channels' is null"},
    {"\"decoder_block_out_channels\": {}", VR_E_FORMAT, "'decoder_block_out_channels'"},
    {"\"force_upcast\": 1", VR_E_FORMAT, "'force_upcast' is an integer; true or false"},
    {"\"use_post_quant_conv\": \"no\"", VR_E_FORMAT, "'use_post_quant_conv' is a string"},
    {"\"latents_mean\": [1, 2]", VR_E_FORMAT, "'latents_mean' is there with 2 values"},
    {"\"latents_std\": [1]", VR_E_FORMAT, "a latents_mean of the same length"},
    {"\"latents_mean\": [1, \"2\"], \"latents_std\": [1, 1]", VR_E_FORMAT, "a list of numbers"},
    {"\"latents_mean\": [1, 2], \"latents_std\": [1, 0]", VR_E_RANGE, "'latents_std' is not"},
    {"\"latent_channels\": 4, \"latents_mean\": [1], \"latents_std\": [1]", VR_E_FORMAT,
     "one value for each of 4 latent_channels"},
    {"\"upsample_fn\": 3", VR_E_FORMAT, "'upsample_fn' is an integer; a string"},
    {"\"act_fn\": \"a name of more than thirty-one letters\"", VR_E_RANGE, "'act_fn' is too long"},
    {"\"batch_norm_eps\": -1", VR_E_RANGE, "'batch_norm_eps' is not positive"},
    {"\"patch_size\": [2]", VR_E_FORMAT, "'patch_size' is a list; [height, width]"},
    {"\"patch_size\": [2, \"2\"]", VR_E_FORMAT, "'patch_size' is a string"},
    {"\"out_channels\": 3, \"out_channels\": 3", VR_E_FORMAT, "duplicate object key"},
    {"\"scaling_factor\": 1e999", VR_E_FORMAT, "config.json:2:"},
    {"\"scaling_factor\": NaN", VR_E_FORMAT, "config.json:2:"},
    {"\"scaling_factor\":", VR_E_FORMAT, "not valid JSON"},
};

Test(config, wrong_values_are_refused_with_file_and_line)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "{\"_class_name\": \"AutoencoderKL\",\n%s}", rows[i].rest);
        vr_vae_config c;
        vr_error err = {0};
        vr_status s = parse(text, &c, &err);
        cr_assert(s == rows[i].status, "%s: status %d %s", rows[i].rest, s, err.text);
        cr_assert(strstr(err.text, rows[i].needle), "%s: %s", rows[i].rest, err.text);
        cr_assert(strstr(err.text, "config.json"), "%s: %s", rows[i].rest, err.text);
        cr_assert(c.class_name[0] == '\0', "%s", rows[i].rest);
        cr_assert(parse(text, &c, NULL) == rows[i].status);
    }
}

Test(config, other_files_and_classes_are_refused)
{
    static const row whole[] = {
        {"", VR_E_FORMAT, "is empty"},
        {"[]", VR_E_FORMAT, "is a list; an object"},
        {"{}", VR_E_FORMAT, "no '_class_name'"},
        {"{\n\n\"_class_name\": 1}", VR_E_FORMAT, ":3: '_class_name' is an integer"},
        {"{\n\"_class_name\": \"UNet2DConditionModel\"}", VR_E_UNSUPPORTED,
         ":2: class 'UNet2DConditionModel' is not one this reads"},
        {"{\"_class_name\": \"AutoencoderKLWan\"}", VR_E_UNSUPPORTED, "'AutoencoderKLWan'"},
        {"{\"_class_name\": null}", VR_E_FORMAT, "'_class_name' is null"},
        {"version https://git-lfs", VR_E_FORMAT, "config.json:1:"},
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        vr_vae_config c;
        vr_error err = {0};
        vr_status s = parse(whole[i].rest, &c, &err);
        cr_assert(s == whole[i].status && strstr(err.text, whole[i].needle), "%s: %s",
                  whole[i].rest, err.text);
    }
    io_dir d = io_dir_make();
    vr_vae_config c;
    vr_error err = {0};
    cr_assert(vr_vae_config_read(d.path, &c, &err) == VR_E_IO);
    cr_assert(vr_vae_config_read(IO_FILE(&d, "none"), &c, &err) == VR_E_NOTFOUND);
    static const char text[] = "{\"_class_name\": \"AutoencoderTiny\"}";
    io_put(IO_FILE(&d, "config.json"), text, sizeof text - 1);
    cr_assert(vr_vae_config_read(IO_FILE(&d, "config.json"), &c, &err) == VR_OK);
    io_dir_remove(&d);
}
