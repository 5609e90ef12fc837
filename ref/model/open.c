/* vr_model_open: find the tensors, decide the family and the normalisation,
 * emit the program, and refuse what does not fit (clauses M1 to M7).
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

enum { SHOWN = 190 }; /* of a path in a message */

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

/* ---- building ----------------------------------------------------------- */

/* What is missing often makes the next shape wrong, and the other way round: both
 * are told, what is missing first. */
static vr_status report(const vr_emit *e, const char *path, vr_error *err)
{
    const bool wrong = e->wrong.status != VR_OK;
    if (e->missing)
        return vr_fail(err, VR_E_MODEL, "%s: %d missing tensor%s: %s%s%s%s", path, e->missing,
                       e->missing == 1 ? "" : "s", e->names, e->missing > 3 ? ", ..." : "",
                       wrong ? "; and " : "", wrong ? e->wrong.text : "");
    return wrong ? vr_fail(err, e->wrong.status, "%s: %s", path, e->wrong.text) : VR_OK;
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
        s = vr_refuse_extra(&mem->table, mem->found.levels, path, err);
    if (s != VR_OK)
        return s;
    s = vr_program_finish(m->program, x, kl ? -1.0 : 0.0, 1.0, err);
    return s == VR_OK ? vr_refuse_nonfinite(m->program, path, err) : vr_fail_prefix(err, "%s", path);
}

static void describe(vr_model *m, const vr_normalise *n, const vr_model_options *opt)
{
    int64_t sh, sw;
    vr_program_scale(m->program, &sh, &sw);
    struct vr_model_memory *mem = m->memory;
    const bool kl = mem->found.family == VR_FAMILY_KL;
    const char *unnamed = kl ? "AutoencoderKL decoder" : "TAESD-family decoder";
    snprintf(m->arch, sizeof m->arch, "%s", n->arch ? n->arch->info->name : m->program->family);
    snprintf(m->description, sizeof m->description, "%s, %lld latent channels, %lldx",
             n->arch ? n->arch->info->description : unnamed, (long long)n->channels,
             (long long)sh);
    m->layout = mem->found.layout;
    snprintf(m->prefix, sizeof m->prefix, "%s", mem->found.prefix);
    m->latent_space = opt->latent_space;
    m->latent_channels = n->channels;
    m->spatial_scale = sh;
    m->normalises = n->apply;
    m->scaling_factor = n->num.scaling;
    m->shift_factor = n->num.shift;
    m->ignored_tensors = mem->found.ignored;
    mem->numbers = n->num;
}

/* ---- where the tensors come from ------------------------------------------ */

static vr_status load_synth(vr_model *m, const char *spec, const vr_arch **arch, vr_error *err)
{
    vr_synth s;
    vr_status st = vr_synth_parse(spec, &s, err);
    if (st != VR_OK)
        return st;
    char names[160];
    const vr_arch *a = *arch = vr_arch_find(s.arch);
    if (!a)
        return vr_fail(err, VR_E_ARGUMENT, "synth: arch '%s' is unknown; want one of %s", s.arch,
                       vr_arch_names(names, sizeof names));
    struct vr_model_memory *mem = m->memory;
    st = vr_synth_table(&s, a, &mem->table, &mem->data, err);
    for (int64_t i = 0; i < mem->table.count; i++)
        mem->table.entry[i].source = mem->table.entry[i].name;
    mem->groups = s.groups;
    mem->found = (vr_found){.family = a->family, .layout = VR_LAYOUT_DIFFUSERS,
                            .levels = a->family == VR_FAMILY_KL ? a->stages : 0};
    return st;
}

static vr_status read_groups(struct vr_model_memory *mem, const char *path, vr_error *err)
{
    static const char key[] = "vaeproof.norm_num_groups";
    const char *text = vr_safetensors_metadata(mem->file, key);
    mem->groups = 32;
    if (!text)
        return VR_OK;
    char *end;
    mem->groups = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || mem->groups < 1 || mem->groups > 65536)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: __metadata__ '%s' is '%.40s'; want a whole number from 1 to 65536", path,
                       key, text);
    return VR_OK;
}

/* *arch: what the caller named, or else the file's metadata, or else the rest of
 * the checkpoint. */
static vr_status load_file(vr_model *m, const char *spec, const char *path, const vr_arch **arch,
                           vr_error *err)
{
    struct vr_model_memory *mem = m->memory;
    vr_status s = vr_safetensors_open(spec, &mem->file, err);
    if (s == VR_OK)
        s = vr_find_decoder(mem->file, path, *arch, &mem->table, &mem->found, err);
    if (s == VR_OK)
        s = vr_refuse_scales(mem->file, &mem->table, path, err);
    if (s == VR_OK)
        s = read_groups(mem, path, err);
    if (s != VR_OK || *arch)
        return s;
    const char *named = vr_safetensors_metadata(mem->file, "vaeproof.arch");
    *arch = named ? vr_arch_find(named) : NULL;
    if (*arch || !mem->found.context || mem->found.family != VR_FAMILY_KL)
        return VR_OK;
    /* The company a decoder keeps hints at its scaling; it does not overrule its shape. */
    const vr_arch *hint = vr_arch_find(mem->found.context);
    if (hint->info->latent_channels == vr_kl_latent_channels(&mem->table))
        *arch = hint;
    return VR_OK;
}

static vr_status latent_channels(const struct vr_model_memory *mem, const char *path, int64_t *z,
                                 vr_error *err)
{
    const bool kl = mem->found.family == VR_FAMILY_KL;
    const char *name = kl ? "decoder.conv_in.weight" : "decoder.layers.0.weight";
    const vr_entry *e = vr_table_find(&mem->table, name);
    *z = kl ? vr_kl_latent_channels(&mem->table) : vr_tiny_latent_channels(&mem->table);
    bool whole = e && e->tensor.rank == 4 && *z > 0;
    for (int32_t i = 0; whole && i < 4; i++)
        whole = e->tensor.dim[i] > 0;
    if (whole)
        return VR_OK;
    if (!e)
        return vr_fail(err, VR_E_MODEL,
                       "%s: missing tensor '%s'%s, which says how many channels a latent has (%lld "
                       "tensors of a decoder are there)",
                       path, name, kl ? "" : " ('1.weight' in the original layout)",
                       (long long)mem->table.count);
    char found[96];
    return vr_fail(err, VR_E_MODEL, "%s: tensor '%s' is %s; want 4 axes, none of them 0", path,
                   e->source, vr_tensor_describe(&e->tensor, found, sizeof found));
}

static vr_status open_into(vr_model *m, const char *spec, const vr_model_options *opt,
                           vr_error *err)
{
    struct vr_model_memory *mem = m->memory;
    const bool synth = strncmp(spec, "synth:", 6) == 0;
    const size_t length = strlen(spec);
    char path[SHOWN + 8], beside[4096], names[160];
    snprintf(path, sizeof path, "%s%s", length > SHOWN ? "..." : "",
             length > SHOWN ? spec + length - SHOWN : spec);
    const vr_arch *arch = opt->arch ? vr_arch_find(opt->arch) : NULL, *made = NULL;
    if (opt->arch && !arch)
        return vr_fail(err, VR_E_ARGUMENT, "arch '%.40s' is unknown; want one of %s", opt->arch,
                       vr_arch_names(names, sizeof names));
    vr_status s = synth ? load_synth(m, spec + 6, &made, err)
                        : load_file(m, spec, path, &arch, err);
    int64_t z = 0;
    if (s == VR_OK)
        s = latent_channels(mem, path, &z, err);
    if (s != VR_OK)
        return s;
    vr_vae_config space;
    const vr_vae_config *config = opt->config;
    if (!config && !synth)
        config = vr_config_beside(spec, mem->found.family, beside, sizeof beside, &space);
    if (config) {
        s = vr_check_config(config, mem->found.family, &mem->table, z,
                            opt->config ? path : beside, err);
        if (config->norm_num_groups)
            mem->groups = config->norm_num_groups;
    }
    const vr_evidence v = {.table = &mem->table, .family = mem->found.family, .file = mem->file,
                           .arch = arch ? arch : made, .config = config, .opt = opt,
                           .channels = z, .path = path};
    vr_normalise n = {.arch = NULL};
    if (s == VR_OK)
        s = vr_decide_normalise(&v, &n, err);
    if (s == VR_OK)
        s = build(m, &n, path, err);
    if (s == VR_OK) {
        describe(m, &n, opt);
        s = vr_hash_weights(&mem->table, m->weights_sha256, err);
    }
    return s;
}

vr_status vr_model_open(const char *spec, const vr_model_options *opt, vr_model **out,
                        vr_error *err)
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
