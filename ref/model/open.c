/* vr_model_open: find the tensors, decide the family and the normalisation,
 * emit the program, and refuse what does not fit (clauses M1 to M7).
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/internal.h"

void vr_model_close(vr_model *m)
{
    if (!m)
        return;
    vr_program_free(m->program);
    if (m->memory) {
        vr_table_free(&m->memory->table);
        vr_safetensors_close(m->memory->file);
        free(m->memory->data);
        free(m->memory);
    }
    free(m);
}

/* ---- checks on the tensors ---------------------------------------------- */

/* fp8 weights come with scales beside them; ignoring one gives wrong pictures. */
static vr_status refuse_scales(const vr_table *t, const char *path, vr_error *err)
{
    for (int64_t i = 0; i < t->count; i++) {
        const char *name = t->entry[i].name;
        size_t n = strlen(name);
        if (strstr(name, ".scale_weight") || strstr(name, "_scale_inv") || strstr(name, "weight_scale") ||
            (n > 6 && strcmp(name + n - 6, ".scale") == 0))
            return vr_fail(err, VR_E_UNSUPPORTED,
                           "%s: tensor '%s' scales a quantised weight; convert the file to plain F16, BF16 or F32 first",
                           path, t->entry[i].source);
    }
    return VR_OK;
}

static vr_status refuse_extra(const vr_table *t, int32_t levels, const char *path, vr_error *err)
{
    for (int64_t i = 0; i < t->count; i++) {
        const vr_entry *e = &t->entry[i];
        if (!e->used && strncmp(e->name, "bn.", 3) != 0)
            return vr_fail(err, VR_E_MODEL,
                           "%s: extra tensor '%s': this decoder (%d levels) has no place for it", path,
                           e->source, levels);
    }
    return VR_OK;
}

static vr_status refuse_nonfinite(const vr_program *p, const char *path, vr_error *err)
{
    enum { PART = 2048 };
    int32_t bad = -1;
    int64_t bad_at = 0;
#pragma omp parallel for schedule(dynamic)
    for (int32_t k = 0; k < p->weight_count; k++) {
        const vr_weight *w = &p->weight[k];
        double part[PART];
        for (int64_t first = 0; first < w->count; first += PART) {
            int64_t n = w->count - first < PART ? w->count - first : PART, at = -1;
            vr_convert(VR_F64, part, w->dtype, (const char *)w->data + (size_t)first * vr_dtype_size(w->dtype),
                       (uint64_t)n, NULL);
            double probe = 0.0;
            for (int64_t i = 0; i < n; i++)
                probe += part[i] * 0.0; /* 0 unless something is not finite */
            if (probe == 0.0)
                continue;
            for (int64_t i = n - 1; i >= 0; i--)
                at = part[i] - part[i] == 0.0 ? at : i;
#pragma omp critical(vr_model_nonfinite)
            if (bad < 0 || k < bad) {
                bad = k;
                bad_at = first + at;
            }
            break;
        }
    }
    if (bad >= 0)
        return vr_fail(err, VR_E_NONFINITE, "%s: tensor '%s' is not finite at element %lld; the file is damaged or was trained to overflow",
                       path, p->weight[bad].source_name, (long long)bad_at);
    return VR_OK;
}

/* Digest over one line per tensor, in canonical order: name, dtype, dims, SHA-256
 * of its bytes (clause M9). Tensors are hashed side by side. */
static vr_status hash_weights(const vr_table *t, char hex[65], vr_error *err)
{
    uint8_t(*digest)[32] = calloc((size_t)(t->count ? t->count : 1), 32);
    if (!digest)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate weight digests");
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < t->count; i++) {
        const vr_tensor *x = &t->entry[i].tensor;
        int64_t n = 0;
        vr_sha256 s;
        vr_sha256_init(&s);
        if (t->entry[i].used && vr_tensor_count(x, &n, NULL) == VR_OK)
            vr_sha256_update(&s, x->data, (size_t)n * vr_dtype_size(x->dtype));
        vr_sha256_final(&s, digest[i]);
    }
    vr_sha256 all;
    vr_sha256_init(&all);
    for (int64_t i = 0; i < t->count; i++) {
        const vr_entry *e = &t->entry[i];
        char line[VR_NAME_MAX + 128], shape[96], one[65];
        if (!e->used)
            continue;
        vr_tensor x = e->tensor;
        if (x.rank == 4 && x.dim[2] == 1 && x.dim[3] == 1 && strstr(e->name, ".attentions.0.to_"))
            x.rank = 2; /* the same weight in both layouts */
        vr_sha256_hex(digest[i], one);
        snprintf(line, sizeof line, "%s %s %s\n", e->name, vr_tensor_describe(&x, shape, sizeof shape), one);
        vr_sha256_update(&all, line, strlen(line));
    }
    vr_sha256_final(&all, digest[0]);
    vr_sha256_hex(digest[0], hex);
    free(digest);
    return VR_OK;
}

/* ---- configuration ------------------------------------------------------ */

static vr_status check_config(const vr_vae_config *c, vr_family family, const vr_table *t,
                              int64_t channels, const char *path, vr_error *err)
{
    const bool tiny = strcmp(c->class_name, "AutoencoderTiny") == 0;
    if (tiny != (family == VR_FAMILY_TINY))
        return vr_fail(err, VR_E_MODEL, "%s: config is for %s, the file holds %s", path, c->class_name,
                       family == VR_FAMILY_TINY ? "a TAESD-family decoder" : "an AutoencoderKL decoder");
    if (c->latent_channels && c->latent_channels != channels)
        return vr_fail(err, VR_E_MODEL, "%s: config says latent_channels %d, the tensors %lld", path,
                       c->latent_channels, (long long)channels);
    if (family == VR_FAMILY_KL && c->levels && c->levels != vr_kl_levels(t))
        return vr_fail(err, VR_E_MODEL, "%s: config says %d levels, the tensors %d", path, c->levels,
                       vr_kl_levels(t));
    for (int32_t i = 0; family == VR_FAMILY_KL && i < c->levels; i++) {
        char name[VR_NAME_MAX];
        snprintf(name, sizeof name, "decoder.up_blocks.%d.resnets.0.conv2.weight", i);
        int64_t want = c->block_out_channels[c->levels - 1 - i], got = vr_dim_of(t, name, 0, want);
        if (want != got)
            return vr_fail(err, VR_E_MODEL, "%s: config says %lld channels in up block %d, the tensors %lld",
                           path, (long long)want, i, (long long)got);
    }
    return VR_OK;
}

/* config.json beside the file, when it is there and describes an autoencoder. */
static const vr_vae_config *config_beside(const char *path, vr_vae_config *space)
{
    char name[4096];
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) + 1 : 0;
    if (snprintf(name, sizeof name, "%.*sconfig.json", n, path) >= (int)sizeof name || access(name, R_OK) != 0)
        return NULL;
    return vr_vae_config_read(name, space, NULL) == VR_OK ? space : NULL;
}

/* ---- building ----------------------------------------------------------- */

static vr_status report(const vr_emit *e, const char *path, vr_error *err)
{
    if (e->wrong.status != VR_OK)
        return vr_fail(err, e->wrong.status, "%s: %s", path, e->wrong.text);
    if (e->missing)
        return vr_fail(err, VR_E_MODEL, "%s: %d missing tensor%s: %s%s", path, e->missing,
                       e->missing == 1 ? "" : "s", e->names, e->missing > 3 ? ", ..." : "");
    return VR_OK;
}

static vr_status build(vr_model *m, const vr_normalise *n, const char *path, vr_error *err)
{
    struct vr_model_memory *mem = m->memory;
    const bool kl = mem->found.family == VR_FAMILY_KL;
    m->program = vr_program_new(kl ? "kl" : "tiny", n->channels);
    if (!m->program)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate a program");
    vr_emit e = {.p = m->program, .table = &mem->table, .groups = mem->groups, .wrong = {VR_OK, ""}};
    int32_t x = 0;
    if (n->apply)
        x = vr_program_scale_shift(m->program, "latent.scale_shift", x, n->scale, n->offset);
    if (n->packed)
        x = vr_program_unpack(m->program, "latent.unpack", x, 2, 2);
    x = kl ? vr_emit_kl(&e, x) : vr_emit_tiny(&e, x);
    vr_status s = report(&e, path, err);
    if (s == VR_OK)
        s = refuse_extra(&mem->table, mem->found.levels, path, err);
    if (s != VR_OK)
        return s;
    s = vr_program_finish(m->program, x, kl ? -1.0 : 0.0, 1.0, err);
    return s == VR_OK ? refuse_nonfinite(m->program, path, err) : vr_fail_prefix(err, "%s", path);
}

static void describe(vr_model *m, const vr_normalise *n, const vr_model_options *opt)
{
    int64_t sh, sw;
    vr_program_scale(m->program, &sh, &sw);
    struct vr_model_memory *mem = m->memory;
    const bool kl = mem->found.family == VR_FAMILY_KL;
    snprintf(m->arch, sizeof m->arch, "%s", n->arch ? n->arch->info->name : m->program->family);
    snprintf(m->description, sizeof m->description, "%s, %lld latent channels, %lldx",
             n->arch ? n->arch->info->description : kl ? "AutoencoderKL decoder" : "TAESD-family decoder",
             (long long)n->channels, (long long)sh);
    m->layout = mem->found.layout;
    snprintf(m->prefix, sizeof m->prefix, "%s", mem->found.prefix);
    m->latent_space = opt->latent_space;
    m->latent_channels = n->channels;
    m->spatial_scale = sh;
    m->normalises = n->apply;
    m->scaling_factor = n->scaling;
    m->shift_factor = n->shift;
    m->ignored_tensors = mem->found.ignored;
    /* How a raw latent of this model relates to a unit-variance one (clause M8). */
    mem->has_raw = n->arch ? n->arch->has_numbers : false;
    mem->raw_scaling = n->arch ? n->arch->scaling : 1.0;
    mem->raw_shift = n->arch ? n->arch->shift : 0.0;
}

static vr_status load_synth(vr_model *m, const char *spec, const char **arch, vr_error *err)
{
    vr_synth s;
    vr_status st = vr_synth_parse(spec, &s, err);
    if (st != VR_OK)
        return st;
    const vr_arch *a = vr_arch_find(s.arch);
    if (!a)
        return vr_fail(err, VR_E_ARGUMENT, "synth: arch '%s' is unknown; `vaeref synth --help` lists them", s.arch);
    struct vr_model_memory *mem = m->memory;
    st = vr_synth_table(&s, a, &mem->table, &mem->data, err);
    for (int64_t i = 0; i < mem->table.count; i++)
        mem->table.entry[i].source = mem->table.entry[i].name;
    mem->groups = s.groups;
    mem->found = (vr_found){.family = a->family, .layout = VR_LAYOUT_DIFFUSERS, .levels = a->stages};
    *arch = a->info->name;
    return st;
}

static vr_status load_file(vr_model *m, const char *path, const char **arch, vr_error *err)
{
    struct vr_model_memory *mem = m->memory;
    vr_status s = vr_safetensors_open(path, &mem->file, err);
    if (s == VR_OK)
        s = vr_find_decoder(mem->file, path, &mem->table, &mem->found, err);
    if (s == VR_OK)
        s = refuse_scales(&mem->table, path, err);
    if (s != VR_OK)
        return s;
    const char *groups = vr_safetensors_metadata(mem->file, "vaeproof.norm_num_groups");
    mem->groups = groups ? strtol(groups, NULL, 10) : 32;
    if (mem->groups < 1)
        mem->groups = 32;
    const char *named = vr_safetensors_metadata(mem->file, "vaeproof.arch");
    *arch = named && vr_arch_find(named) ? named : mem->found.context;
    /* A checkpoint's context is a hint about scaling, not a claim about channels. */
    const vr_arch *a = *arch ? vr_arch_find(*arch) : NULL;
    int64_t z = mem->found.family == VR_FAMILY_KL ? vr_kl_latent_channels(&mem->table) : 0;
    if (!named && a && a->info->latent_channels != z)
        *arch = NULL;
    return VR_OK;
}

static vr_status open_into(vr_model *m, const char *spec, const vr_model_options *opt, vr_error *err)
{
    const char *arch = NULL;
    vr_vae_config space;
    const vr_vae_config *config = opt->config;
    const bool synth = strncmp(spec, "synth:", 6) == 0;
    vr_status s = synth ? load_synth(m, spec + 6, &arch, err) : load_file(m, spec, &arch, err);
    if (s != VR_OK)
        return s;
    struct vr_model_memory *mem = m->memory;
    if (!config && !synth)
        config = config_beside(spec, &space);
    if (opt->arch)
        arch = opt->arch;
    int64_t z = mem->found.family == VR_FAMILY_KL ? vr_kl_latent_channels(&mem->table)
                                                  : vr_tiny_latent_channels(&mem->table);
    if (z == 0)
        return vr_fail(err, VR_E_MODEL, "%s: no '%s', which says how many channels a latent has", spec,
                       mem->found.family == VR_FAMILY_KL ? "decoder.conv_in.weight" : "weight of the first convolution");
    if (config) {
        s = check_config(config, mem->found.family, &mem->table, z, spec, err);
        if (config->norm_num_groups)
            mem->groups = config->norm_num_groups;
    }
    vr_normalise n = {.arch = NULL};
    if (s == VR_OK)
        s = vr_decide_normalise(&mem->table, mem->found.family, arch, config, opt, mem->file, z, spec, &n, err);
    if (s == VR_OK)
        s = build(m, &n, spec, err);
    if (s == VR_OK) {
        describe(m, &n, opt);
        s = hash_weights(&mem->table, m->weights_sha256, err);
    }
    return s;
}

vr_status vr_model_open(const char *spec, const vr_model_options *opt, vr_model **out, vr_error *err)
{
    const vr_model_options plain = {.latent_space = VR_LATENT_DIFFUSION};
    vr_model *m = calloc(1, sizeof *m);
    *out = NULL;
    if (m)
        m->memory = calloc(1, sizeof *m->memory);
    if (!m || !m->memory) {
        vr_model_close(m);
        return vr_fail(err, VR_E_NOMEM, "cannot allocate a model");
    }
    vr_status s = open_into(m, spec, opt ? opt : &plain, err);
    if (s != VR_OK) {
        vr_model_close(m);
        return s;
    }
    *out = m;
    return VR_OK;
}
