/* A user's own model file and latents as a suite. SPDX-License-Identifier: MIT */
#include "runner/own_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vaeref/io.h"
#include "vaeref/model.h"

enum { MOST = 64 };

/* The one own model of a process. */
static struct {
    bool active;
    int count;
    vr_tensor latent[MOST];
    vr_model_options options;
    vr_vae_config config;
    const vc_entry *first;
} own;

static vr_status add_latent(const char *name, const vr_tensor *t, const vc_options *o, vc_suite *s, vr_error *err)
{
    char is[96];
    int64_t n = 0;
    if (own.count == MOST)
        return vr_fail(err, VR_E_RANGE, "%s holds more than %d tensors; want one of them named: %s#NAME", o->latents, MOST, o->latents);
    if (t->rank != 4 || !vr_dtype_is_float(t->dtype) || t->dim[0] < 1)
        return vr_fail(err, VR_E_SHAPE, "%s, '%s' is %s; want float latents [N,C,H,W]", o->latents, name,
                       vr_tensor_describe(t, is, sizeof is));
    vr_status st = vr_tensor_count(t, &n, err);
    if (st == VR_OK)
        st = vr_tensor_new(&own.latent[own.count], VR_F32, 4, t->dim, err);
    if (st == VR_OK)
        st = vr_convert(VR_F32, own.latent[own.count].data, t->dtype, t->data, (uint64_t)n, err);
    if (st != VR_OK)
        return st;
    vc_entry e = {.level = VC_L3, .spec = "M1", .op = VR_OP_KIND_COUNT, .contracts = 3,
                  .contract = {VR_F32, VR_F16, VR_BF16}, .size_count = 1, .size = {{t->dim[2], t->dim[3]}}, .batch_count = 1,
                  .batch = {t->dim[0]}, .fill_count = 1};
    snprintf(e.id, sizeof e.id, "decode.own.%.60s", name);
    vc_entry *grown = realloc(s->entry, (size_t)(s->entries + 1) * sizeof *grown);
    if (!grown)
        return vr_fail(err, VR_E_NOMEM, "no memory for cases");
    s->entry = grown;
    s->entry[s->entries++] = e;
    own.count++;
    return VR_OK;
}

static vr_status read_all(const vc_options *o, vc_suite *s, vr_error *err)
{
    vr_safetensors *f = NULL;
    const char *dot = strrchr(o->latents, '.');
    vr_status st = VR_OK;
    if (dot && strcmp(dot, ".safetensors") == 0) {
        st = vr_safetensors_open(o->latents, &f, err);
        for (int64_t k = 0; st == VR_OK && k < vr_safetensors_count(f); k++) {
            const vr_named_tensor *t = vr_safetensors_at(f, k);
            st = add_latent(t->name, &t->tensor, o, s, err);
        }
        vr_safetensors_close(f);
        return st;
    }
    vr_tensor t = {.data = NULL};
    const char *hash = strrchr(o->latents, '#');
    st = vr_tensor_load(o->latents, &t, err);
    if (st == VR_OK)
        st = add_latent(hash ? hash + 1 : "latents", &t, o, s, err);
    vr_tensor_free(&t);
    return st;
}

vr_status vc_own_model_suite(const vc_options *o, vc_suite *out, vr_error *err)
{
    vr_model *m = NULL;
    uint8_t digest[32];
    vr_sha256 sha;
    *out = (vc_suite){.entry = NULL};
    own.active = true;
    own.options = (vr_model_options){.arch = o->arch};
    vr_status s = VR_OK;
    if (o->config) {
        s = vr_vae_config_read(o->config, &own.config, err);
        own.options.config = &own.config;
    }
    if (s == VR_OK)
        s = vr_model_open(o->model, &own.options, &m, err); /* refused now, not case by case */
    if (s == VR_OK)
        s = read_all(o, out, err);
    for (int k = 0; s == VR_OK && k < own.count; k++)
        if (own.latent[k].dim[1] != m->latent_channels)
            s = vr_fail(err, VR_E_SHAPE, "%s: latents of %lld channels; %s (%s) wants %lld", o->latents,
                        (long long)own.latent[k].dim[1], o->model, m->arch, (long long)m->latent_channels);
    if (s == VR_OK) {
        vr_sha256_init(&sha);
        vr_sha256_update(&sha, m->weights_sha256, 64);
        for (int k = 0; k < own.count; k++) {
            int64_t n = 0;
            vr_tensor_count(&own.latent[k], &n, NULL);
            vr_sha256_update(&sha, own.latent[k].data, (size_t)n * 4);
        }
        vr_sha256_final(&sha, digest);
        vr_sha256_hex(digest, out->digest);
        if (strlen(o->model) >= sizeof out->entry[0].model)
            s = vr_fail(err, VR_E_RANGE, "--model %s: the path is too long; want at most %zu bytes", o->model,
                        sizeof out->entry[0].model - 1);
    }
    for (int64_t k = 0; s == VR_OK && k < out->entries; k++)
        snprintf(out->entry[k].model, sizeof out->entry[k].model, "%s", o->model);
    vr_model_close(m);
    if (s == VR_OK)
        s = vc_suite_expand(out, err);
    own.first = out->entry;
    if (s != VR_OK)
        vc_suite_free(out);
    return s;
}

const vr_tensor *vc_own_latents(const vc_case *c)
{
    const int64_t k = own.active && own.first ? c->entry - own.first : -1;
    return k >= 0 && k < own.count ? &own.latent[k] : NULL;
}

const vr_model_options *vc_own_options(const vc_case *c)
{
    return vc_own_latents(c) ? &own.options : NULL;
}

void vc_own_model_free(void)
{
    for (int k = 0; k < own.count; k++)
        vr_tensor_free(&own.latent[k]);
    own.count = 0;
    own.active = false;
}
