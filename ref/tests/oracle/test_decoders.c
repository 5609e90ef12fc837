/* Whole decoders against diffusers in float64 (decoders.safetensors), from
 * both key layouts: clauses M1 to M7.
 *
 * Each row is a seeded model. It is written in both layouts, opened again and
 * decoded. golden: rms error within 1e-6 and largest within 1e-5 of the
 * output's rms, the same bits from both layouts. truth: rms within 1e-9.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "vaeref/exec.h"
#include "vaeref/model.h"

/* Parameters of the largest model to decode. Sanitizers make the full-width
 * ones take minutes and see the same code in the divided ones. */
#ifndef ORACLE_LARGEST_MODEL
#define ORACLE_LARGEST_MODEL INT64_MAX
#endif

typedef struct decoder_row {
    const char *name, *model;   /* owned by the fixture */
    const json_t *json;
    vr_vae_config config;
    vr_model_options options;
    vr_tensor latent;           /* F32 */
    vr_tensor want;             /* F64 */
    int64_t count;              /* elements of want */
    double rms;
} decoder_row;

#define MUST(call, row) \
    do { \
        vr_status status_ = (call); \
        cr_assert_eq(status_, VR_OK, "%s: %s", (row)->name, status_ == VR_OK ? "" : err.text); \
    } while (0)

/* The model as read back from a file in `layout`. The file is gone again at
 * once (it stays mapped), so that a failing test leaves nothing behind. */
static vr_model *through_a_file(const decoder_row *r, const vr_model *model, int layout)
{
    vr_error err = {VR_OK, ""};
    vr_model *again = NULL;
    const char *root = getenv("TMPDIR");
    char folder[256], file[320];
    snprintf(folder, sizeof folder, "%s/vaeproof-oracle-XXXXXX", root && *root ? root : "/var/tmp");
    cr_assert_not_null(mkdtemp(folder), "cannot make %s", folder);
    snprintf(file, sizeof file, "%s/model.safetensors", folder);
    vr_status s = vr_model_write(model, file, (vr_key_layout)layout, VR_DTYPE_NONE, &err);
    if (s == VR_OK)
        s = vr_model_open(file, &r->options, &again, &err);
    unlink(file);
    rmdir(folder);
    MUST(s, r);
    return again;
}

/* Row i with its latent and expected picture; weights and latents must be
 * those the fixture was made from. */
static void row_open(const oracle_fixture *f, size_t i, decoder_row *r, vr_model **model)
{
    vr_error err = {VR_OK, ""};
    char path[4096], hex[65];
    memset(r, 0, sizeof *r);
    r->json = json_array_get(f->rows, i);
    r->name = oracle_string(r->json, "name");
    r->model = oracle_string(r->json, "model");
    r->rms = oracle_real(r->json, "rms");
    cr_assert(r->name && r->model && r->rms > 0, "row %zu of decoders.json is incomplete", i);
    const char *config = oracle_string(r->json, "config");
    if (config) {
        MUST(vr_vae_config_read(oracle_path(path, sizeof path, config), &r->config, &err), r);
        r->options.config = &r->config;
    }
    MUST(vr_model_open(r->model, &r->options, model, &err), r);
    cr_assert_str_eq((*model)->weights_sha256, oracle_string(r->json, "weights_sha256"),
                     "%s: %s makes other weights than the fixture was made from", r->name, r->model);
    const json_t *shape = json_object_get(r->json, "latent_shape");
    int64_t dim[4], n;
    for (size_t k = 0; k < 4; k++)
        dim[k] = json_integer_value(json_array_get(shape, k));
    MUST(vr_model_latents(*model, (uint64_t)oracle_integer(r->json, "latent_seed"), dim[0], dim[2], dim[3],
                          &r->latent, &err), r);
    MUST(vr_tensor_count(&r->latent, &n, &err), r);
    oracle_sha256(r->latent.data, (size_t)n * sizeof(float), hex);
    cr_assert_str_eq(hex, oracle_string(r->json, "latents_sha256"), "%s: other latents", r->name);
    MUST(oracle_tensor(f, r->name, VR_F64, &r->want, &err), r);
    MUST(vr_tensor_count(&r->want, &r->count, &err), r);
}

static void row_close(decoder_row *r, vr_model *model)
{
    vr_tensor_free(&r->latent);
    vr_tensor_free(&r->want);
    vr_model_close(model);
}

static void decode(const decoder_row *r, const vr_model *m, vr_policy policy, vr_tensor *out)
{
    vr_error err = {VR_OK, ""};
    const vr_exec_options opt = {.policy = policy};
    MUST(vr_exec_run(m->program, &r->latent, &opt, out, NULL, &err), r);
    for (int32_t k = 0; k < 4; k++)
        cr_assert_eq(out->dim[k], r->want.dim[k], "%s: axis %d is %lld, expected %lld", r->name, k,
                     (long long)out->dim[k], (long long)r->want.dim[k]);
}

static double element(const vr_tensor *t, int64_t i)
{
    return t->dtype == VR_F64 ? ((const double *)t->data)[i] : (double)((const float *)t->data)[i];
}

/* Errors as fractions of the expected output's rms. A NaN fails. */
static void check_error(const decoder_row *r, const vr_tensor *out, const char *what, double rms_limit,
                        double max_limit)
{
    double square = 0, largest = 0;
    for (int64_t i = 0; i < r->count; i++) {
        double off = fabs(element(out, i) - element(&r->want, i));
        square += off * off;
        largest = off > largest ? off : largest;
    }
    double rms = sqrt(square / (double)r->count);
    cr_assert(rms <= rms_limit * r->rms, "%s %s: rms error %.3g of the output, limit %.1g", r->name, what,
              rms / r->rms, rms_limit);
    cr_assert(largest <= max_limit * r->rms, "%s %s: largest error %.3g of the output, limit %.1g", r->name,
              what, largest / r->rms, max_limit);
}

static const char *const layout_name[] = {"diffusers", "original"};

/* Decodes the model from a file in each layout; both outputs must be the same bits. */
static void check_layouts(const decoder_row *r, const vr_model *model)
{
    vr_tensor out[2];
    for (int layout = 0; layout < 2; layout++) {
        vr_model *again = through_a_file(r, model, layout);
        cr_assert_eq((int)again->layout, layout, "%s: written as %s, read as %s", r->name,
                     layout_name[layout], layout_name[again->layout]);
        decode(r, again, VR_POLICY_GOLDEN, &out[layout]);
        check_error(r, &out[layout], layout_name[layout], 1e-6, 1e-5);
        vr_model_close(again);
    }
    cr_assert_eq(memcmp(out[0].data, out[1].data, (size_t)r->count * sizeof(float)), 0,
                 "%s: the two key layouts decode to different bits", r->name);
    vr_tensor_free(&out[0]);
    vr_tensor_free(&out[1]);
}

static void check_truth(const decoder_row *r, const vr_model *model)
{
    vr_tensor out;
    decode(r, model, VR_POLICY_TRUTH, &out);
    check_error(r, &out, "truth", 1e-9, 1e-8);
    vr_tensor_free(&out);
}

Test(oracle_decoders, golden_from_both_key_layouts_and_truth_agree_with_diffusers)
{
    oracle_fixture f;
    vr_error err;
    cr_assert_eq(oracle_open("decoders.safetensors", "decoders.json", &f, &err), VR_OK, "%s", err.text);
    for (size_t i = 0; i < f.count; i++) {
        decoder_row r;
        vr_model *model;
        if (oracle_integer(json_array_get(f.rows, i), "parameters") > ORACLE_LARGEST_MODEL)
            continue;
        row_open(&f, i, &r, &model);
        check_layouts(&r, model);
        check_truth(&r, model);
        row_close(&r, model);
    }
    oracle_close(&f);
}

Test(oracle_decoders, every_published_family_has_a_row)
{
    oracle_fixture f;
    vr_error err;
    cr_assert_eq(oracle_open("decoders.safetensors", "decoders.json", &f, &err), VR_OK, "%s", err.text);
    for (const vr_arch_info *a = vr_arch_list(); a->name; a++) {
        char start[64];
        int rows = 0;
        snprintf(start, sizeof start, "synth:%s,", a->name);
        for (size_t i = 0; i < f.count; i++) {
            const char *model = oracle_string(json_array_get(f.rows, i), "model");
            rows += model && strncmp(model, start, strlen(start)) == 0;
        }
        cr_assert(rows > 0, "no row for %s", a->name);
    }
    oracle_close(&f);
}
