/* diffusers config.json of a VAE (clause F5).
 *
 * Four classes are read; every other class is refused by name. A key that a
 * decoder does not need is ignored whatever its value; a key it needs must have
 * the right type and range, and a wrong one is reported with file and line.
 * JSON null counts as absent everywhere.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    const char *path;
    const vr_io_blob *blob;
    const json_t *root;
    vr_error *err;
    vr_status status; /* first failure; later fields are skipped */
} reader;

static void refuse(reader *r, vr_status s, const char *key, const char *got, const char *need)
{
    int line = vr_io_json_line(r->blob->data, r->blob->size, key);
    r->status = vr_fail(r->err, s, "%s:%d: '%s' is %s; %s is needed", SHOW_PATH(r->path), line,
                        key, got, need);
}

/* The value, or NULL when absent, null, or after a failure. */
static const json_t *get(const reader *r, const char *key)
{
    const json_t *v = r->status ? NULL : json_object_get(r->root, key);
    return json_is_null(v) ? NULL : v;
}

static void get_text(reader *r, const char *key, char *out, size_t size)
{
    const json_t *v = get(r, key);
    if (!v)
        return;
    if (!json_is_string(v))
        refuse(r, VR_E_FORMAT, key, vr_io_json_kind(v), "a string");
    else if (json_string_length(v) >= size)
        refuse(r, VR_E_RANGE, key, "too long", "a short name");
    else
        memcpy(out, json_string_value(v), json_string_length(v) + 1);
}

static void get_bool(reader *r, const char *key, bool *has, bool *out)
{
    const json_t *v = get(r, key);
    if (!v)
        return;
    if (!json_is_boolean(v)) {
        refuse(r, VR_E_FORMAT, key, vr_io_json_kind(v), "true or false");
        return;
    }
    *has = true;
    *out = json_is_true(v);
}

static void get_real(reader *r, const char *key, bool *has, double *out)
{
    const json_t *v = get(r, key);
    if (!v)
        return;
    if (!json_is_number(v)) {
        refuse(r, VR_E_FORMAT, key, vr_io_json_kind(v), "a number");
        return;
    }
    *has = true;
    *out = json_number_value(v);
}

/* 1..most, as one value of a key or of a list under it. */
static int32_t to_count(reader *r, const char *key, const json_t *v, int32_t most)
{
    char text[64];
    if (!json_is_integer(v)) {
        refuse(r, VR_E_FORMAT, key, vr_io_json_kind(v), "an integer");
        return 0;
    }
    json_int_t n = json_integer_value(v);
    if (n >= 1 && n <= most)
        return (int32_t)n;
    char need[64];
    snprintf(text, sizeof text, "%lld", (long long)n);
    snprintf(need, sizeof need, "an integer from 1 to %d", most);
    refuse(r, VR_E_RANGE, key, text, need);
    return 0;
}

static void get_count(reader *r, const char *key, int32_t most, int32_t *out)
{
    const json_t *v = get(r, key);
    if (v)
        *out = to_count(r, key, v, most);
}

/* Checks that v is a list of 1..most entries; returns their number or 0. */
static int32_t list_size(reader *r, const char *key, const json_t *v, size_t most)
{
    char got[64], need[64];
    size_t n = json_array_size(v);
    if (json_is_array(v) && n >= 1 && n <= most)
        return (int32_t)n;
    snprintf(need, sizeof need, "a list of 1 to %zu values", most);
    if (!json_is_array(v)) {
        refuse(r, VR_E_FORMAT, key, vr_io_json_kind(v), need);
        return 0;
    }
    snprintf(got, sizeof got, "a list of %zu", n);
    refuse(r, VR_E_RANGE, key, got, need);
    return 0;
}

static void get_counts(reader *r, const char *key, int32_t *count, int32_t *out)
{
    const json_t *v = get(r, key);
    if (!v)
        return;
    int32_t n = list_size(r, key, v, VR_CONFIG_MAX_LEVELS);
    for (int32_t i = 0; i < n && !r->status; i++)
        out[i] = to_count(r, key, json_array_get(v, (size_t)i), 65536);
    *count = n;
}

static void get_reals(reader *r, const char *key, int32_t *count, double *out)
{
    const json_t *v = get(r, key);
    *count = 0;
    if (!v)
        return;
    int32_t n = list_size(r, key, v, VR_CONFIG_MAX_LATENT);
    for (int32_t i = 0; i < n && !r->status; i++) {
        const json_t *e = json_array_get(v, (size_t)i);
        if (!json_is_number(e))
            refuse(r, VR_E_FORMAT, key, "a list with something else in it", "a list of numbers");
        out[i] = json_number_value(e);
    }
    *count = n;
}

/* latents_mean and latents_std come together, one value per latent channel. */
static void get_stats(reader *r, vr_vae_config *c)
{
    int32_t means, stds;
    char got[64], need[64];
    get_reals(r, "latents_mean", &means, c->latents_mean);
    get_reals(r, "latents_std", &stds, c->latents_std);
    if (r->status)
        return;
    if (means != stds) {
        const char *key = means ? "latents_mean" : "latents_std";
        snprintf(got, sizeof got, "there with %d values", means ? means : stds);
        snprintf(need, sizeof need, "a %s of the same length",
                 means ? "latents_std" : "latents_mean");
        refuse(r, VR_E_FORMAT, key, got, need);
        return;
    }
    if (means && c->latent_channels && means != c->latent_channels) {
        snprintf(got, sizeof got, "a list of %d", means);
        snprintf(need, sizeof need, "one value for each of %d latent_channels",
                 c->latent_channels);
        refuse(r, VR_E_FORMAT, "latents_mean", got, need);
        return;
    }
    for (int32_t i = 0; i < stds; i++)
        if (!(c->latents_std[i] > 0)) {
            refuse(r, VR_E_RANGE, "latents_std", "not positive everywhere",
                   "a list of numbers > 0");
            return;
        }
    c->stats_count = means;
}

/* [2, 2] or 2; absent stays {0, 0} */
static void get_patch(reader *r, int32_t out[2])
{
    const json_t *v = get(r, "patch_size");
    if (json_is_integer(v)) {
        out[0] = out[1] = to_count(r, "patch_size", v, 64);
    } else if (v && json_array_size(v) != 2) {
        refuse(r, VR_E_FORMAT, "patch_size", vr_io_json_kind(v), "[height, width]");
    } else if (v) {
        for (size_t i = 0; i < 2 && !r->status; i++)
            out[i] = to_count(r, "patch_size", json_array_get(v, i), 64);
    }
}

static void get_class(reader *r, char *out, size_t size)
{
    static const char *const known[] = {"AutoencoderKL", "AutoencoderKLFlux2", "AutoencoderTiny",
                                        "AutoencoderDC"};
    const json_t *v = json_object_get(r->root, "_class_name");
    const char *name = json_string_value(v);
    if (!v) {
        r->status = vr_fail(r->err, VR_E_FORMAT,
                            "%s: has no '_class_name'; the config.json of a VAE is needed",
                            SHOW_PATH(r->path));
        return;
    }
    if (!name) {
        refuse(r, VR_E_FORMAT, "_class_name", vr_io_json_kind(v), "a string");
        return;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i]) == 0) {
            snprintf(out, size, "%s", name);
            return;
        }
    r->status = vr_fail(r->err, VR_E_UNSUPPORTED,
                        "%s:%d: class '%s' is not one this reads: AutoencoderKL, "
                        "AutoencoderKLFlux2, AutoencoderTiny, AutoencoderDC",
                        SHOW_PATH(r->path),
                        vr_io_json_line(r->blob->data, r->blob->size, "_class_name"),
                        SHOW_NAME(name));
}

static void check_scale(reader *r, const vr_vae_config *c)
{
    if (!r->status && c->has_scaling_factor && !(fabs(c->scaling_factor) > 0))
        refuse(r, VR_E_RANGE, "scaling_factor", "0", "a number other than 0");
    if (!r->status && c->has_batch_norm_eps && !(c->batch_norm_eps > 0))
        refuse(r, VR_E_RANGE, "batch_norm_eps", "not positive", "a number > 0");
}

static void read_fields(reader *r, vr_vae_config *c)
{
    get_class(r, c->class_name, sizeof c->class_name);
    get_real(r, "scaling_factor", &c->has_scaling_factor, &c->scaling_factor);
    get_real(r, "shift_factor", &c->has_shift_factor, &c->shift_factor);
    get_count(r, "latent_channels", VR_CONFIG_MAX_LATENT, &c->latent_channels);
    get_count(r, "out_channels", 65536, &c->out_channels);
    get_count(r, "layers_per_block", 64, &c->layers_per_block);
    get_count(r, "norm_num_groups", 65536, &c->norm_num_groups);
    /* Where the two halves differ, the decoder's own list counts. */
    const char *widths =
        get(r, "decoder_block_out_channels") ? "decoder_block_out_channels" : "block_out_channels";
    get_counts(r, widths, &c->levels, c->block_out_channels);
    get_bool(r, "use_post_quant_conv", &c->has_use_post_quant_conv, &c->use_post_quant_conv);
    get_bool(r, "force_upcast", &c->has_force_upcast, &c->force_upcast);
    get_stats(r, c);
    get_counts(r, "num_decoder_blocks", &c->num_decoder_blocks_count, c->num_decoder_blocks);
    get_text(r, "upsample_fn", c->upsample_fn, sizeof c->upsample_fn);
    c->has_upsample_fn = c->upsample_fn[0] != '\0';
    get_text(r, "act_fn", c->act_fn, sizeof c->act_fn);
    get_real(r, "batch_norm_eps", &c->has_batch_norm_eps, &c->batch_norm_eps);
    get_patch(r, c->patch_size);
    check_scale(r, c);
}

vr_status vr_io_config_parse(const char *path, const vr_io_blob *b, vr_vae_config *out,
                             vr_error *err)
{
    *out = (vr_vae_config){0};
    if (b->size == 0)
        return vr_fail(err, VR_E_FORMAT, "%s: is empty; the config.json of a VAE was expected",
                       SHOW_PATH(path));
    json_t *root = NULL;
    vr_status s = vr_io_json_parse(path, b->data, b->size, 0, true, &root, err);
    if (s)
        return s;
    reader r = {.path = path, .blob = b, .root = root, .err = err};
    read_fields(&r, out);
    json_decref(root);
    if (r.status)
        *out = (vr_vae_config){0};
    return r.status;
}

vr_status vr_vae_config_read(const char *path, vr_vae_config *out, vr_error *err)
{
    *out = (vr_vae_config){0};
    vr_io_blob blob;
    vr_status s = vr_io_blob_open(path, &blob, err);
    if (s)
        return s;
    s = vr_io_config_parse(path, &blob, out, err);
    vr_io_blob_close(&blob);
    return s;
}
