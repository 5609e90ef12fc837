/* golden/cases.c: golden/cases.json, the list of cases (clause G2).
 *
 * Strict on purpose: an unknown key is a misspelt one, and a case that is not
 * what its author meant would be frozen for years. SPDX-License-Identifier: MIT */
#include "golden.h"

#include <stdlib.h>
#include <string.h>

#define SCHEMA "vaegolden-cases/1"

bool vg_id_valid(const char *id)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t n = strlen(id);
    return n > 0 && n < VG_ID && strspn(id, letters) == n && !strchr("._-", id[0]) && !strchr("._-", id[n - 1]);
}

/* A file below models/, without a way out of it. */
static bool below(const char *spec)
{
    if (*spec == '/' || !*spec)
        return false;
    for (const char *at = spec; at; at = strchr(at, '/'), at += at != NULL)
        if (!strncmp(at, "../", 3) || !strcmp(at, "..") || *at == '/' || !strncmp(at, "./", 2))
            return false;
    return true;
}

vr_status vg_model_path(const char *golden, const char *spec, char path[PATH_MAX], vr_error *err)
{
    char name[VG_TEXT + 8];
    snprintf(name, sizeof name, "models/%.*s", VG_TEXT - 1, spec);
    return vg_join(path, golden, name, err);
}

static void read_model(vg_reader *r, vg_case *c)
{
    if (!vg_read_text(r, "model", true, c->model, sizeof c->model) || !strncmp(c->model, "synth:", 6))
        return;
    const size_t n = strlen(c->model);
    if (!below(c->model) || n < 13 || strcmp(c->model + n - 12, ".safetensors"))
        vg_read_fail(r, "model", "is '%s'; want synth:ARCH[,seed=N][,div=D][,dtype=T], or a .safetensors file as its "
                     "path below models/", c->model);
}

static void read_latents(vg_reader *r, vg_case *c)
{
    cli_latents_args a;
    vr_error e = {VR_OK, ""};
    if (!vg_read_text(r, "latents", true, c->latents, sizeof c->latents))
        return;
    if (cli_latents_set(&a, "value", c->latents, &e))
        vg_read_fail(r, "latents", "is wrong: %s", e.text);
    else if (!a.seeded && !below(c->latents))
        vg_read_fail(r, "latents", "is '%s'; want seed:N,HxW[,n=B], or FILE[#name] as a path below models/",
                     c->latents);
}

static void read_tile(vg_reader *r, vr_tile_options *o)
{
    vg_reader t;
    char mode[32], bytes[32];
    int64_t v[2];
    *o = (vr_tile_options){.mode = VR_TILE_NONE, .overlap_h = -1, .overlap_w = -1};
    if (!vg_read_object(r, "tile", false, &t))
        return;
    if (vg_read_text(&t, "mode", true, mode, sizeof mode) &&
        (!vr_tile_mode_parse(mode, &o->mode) || o->mode == VR_TILE_NONE || o->mode == VR_TILE_AUTO)) {
        char list[300] = "";
        for (int m = VR_TILE_NONE + 1; m < VR_TILE_AUTO; m++) {
            const size_t n = strlen(list);
            snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", vr_tile_mode_name((vr_tile_mode)m));
        }
        vg_read_fail(&t, "mode", "is '%s'; want one of %s (no tiling: no key 'tile')", mode, list);
    }
    if (vg_read_ints(&t, "tile", false, true, 2, 1, 1000000, v)) {
        o->tile_w = v[0];
        o->tile_h = v[1];
    }
    if (vg_read_ints(&t, "overlap", false, true, 2, 0, 1000000, v)) {
        o->overlap_w = v[0];
        o->overlap_h = v[1];
    }
    if (vg_read_text(&t, "memory_limit", false, bytes, sizeof bytes)) {
        vr_error e = {VR_OK, ""};
        if (cli_bytes("value", bytes, &o->memory_limit, &e))
            vg_read_fail(&t, "memory_limit", "is wrong: %s", e.text);
    }
    if (vg_read_end(&t))
        r->status = t.status;
}

void vg_case_read_input(vg_reader *r, vg_case *c)
{
    char space[32] = "diffusion";
    vr_error e = {VR_OK, ""};
    read_model(r, c);
    read_latents(r, c);
    if (vg_read_text(r, "latent_space", false, space, sizeof space) && cli_latent_space(space, &c->space, &e))
        vg_read_fail(r, "latent_space", "is '%s'; want diffusion or raw", space);
    read_tile(r, &c->tile);
}

bool vg_input_equal(const vg_case *a, const vg_case *b)
{
    const vr_tile_options *s = &a->tile, *t = &b->tile;
    return !strcmp(a->model, b->model) && !strcmp(a->latents, b->latents) && a->space == b->space &&
           s->mode == t->mode && s->tile_h == t->tile_h && s->tile_w == t->tile_w && s->overlap_h == t->overlap_h &&
           s->overlap_w == t->overlap_w && s->memory_limit == t->memory_limit;
}

static void read_case(vg_reader *r, vg_case *c)
{
    memset(c, 0, sizeof *c);
    c->line = vg_read_line(r);
    if (vg_read_text(r, "id", true, c->id, sizeof c->id)) {
        if (!vg_id_valid(c->id)) {
            vg_read_fail(r, "id", "is '%s'; want a-z, 0-9 and, inside, . _ -", c->id);
            return;
        }
        snprintf(r->what, sizeof r->what, "case '%.*s'", (int)sizeof r->what - 8, c->id);
    }
    vg_case_read_input(r, c);
    vg_read_bool(r, "picture", &c->picture);
    vg_read_text(r, "why", false, c->why, sizeof c->why);
    vg_read_end(r);
}

/* Versions are data, not the tool's: provenance must not change with a build. */
static void read_version(vg_reader *r, const char *key, char *buf, size_t size)
{
    int a, b, n = 0;
    if (vg_read_text(r, key, true, buf, size) &&
        (sscanf(buf, "%4d.%4d%n", &a, &b, &n) != 2 || buf[n] || a < 0 || b < 0))
        vg_read_fail(r, key, "is '%s'; want a version such as 1.0", buf);
}

static vr_status refuse_double(const vg_case_list *l, int64_t i, vg_reader *r)
{
    const vg_case *c = &l->item[i];
    for (int64_t k = 0; k < i; k++) {
        const vg_case *o = &l->item[k];
        if (!strcmp(c->id, o->id))
            return vg_read_fail(r, "id", "is taken: line %d has the same id; an id names one case", o->line);
        if (vg_input_equal(c, o))
            return vg_read_fail(r, NULL, "its input is that of case '%s' on line %d; each case wants its own", o->id,
                                o->line);
    }
    return VR_OK;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const vg_case *)a)->id, ((const vg_case *)b)->id);
}

static vr_status read_list(const vg_doc *d, vg_case_list *out, vr_error *err)
{
    vg_reader r;
    char schema[64];
    const json_t *list = NULL;
    size_t at = 0;
    vg_read_root(&r, d, err);
    if (vg_read_text(&r, "schema", true, schema, sizeof schema) && strcmp(schema, SCHEMA))
        vg_read_fail(&r, "schema", "is '%s'; this tool reads '%s'", schema, SCHEMA);
    read_version(&r, "suite_version", out->suite, sizeof out->suite);
    read_version(&r, "spec_version", out->spec, sizeof out->spec);
    if (!vg_read_list(&r, "cases", &list, &at) || vg_read_end(&r))
        return r.status;
    out->item = calloc(json_array_size(list), sizeof *out->item);
    if (!out->item)
        return vr_fail(err, VR_E_NOMEM, "%s: no memory for its cases", d->path);
    for (size_t i = 0; i < json_array_size(list); i++) {
        vg_reader e;
        vg_read_element(&e, d, list, at, i, err);
        read_case(&e, &out->item[i]);
        if (e.status || refuse_double(out, (int64_t)i, &e))
            return e.status;
        out->count++;
    }
    qsort(out->item, (size_t)out->count, sizeof *out->item, by_id);
    return VR_OK;
}

vr_status vg_cases_open(const char *golden, vg_case_list *out, vr_error *err)
{
    vg_doc d;
    memset(out, 0, sizeof *out);
    vr_status s = vg_join(out->path, golden, "cases.json", err);
    s = s ? s : vg_doc_open(out->path, &d, err);
    if (s == VR_E_NOTFOUND)
        vr_fail(err, s, "%s: there is no such file; run from the repository's root, or say --golden DIR", out->path);
    if (s)
        return s;
    vg_digest(d.text, d.size, out->sha256);
    s = read_list(&d, out, err);
    vg_doc_close(&d);
    if (s)
        vg_cases_close(out);
    return s;
}

void vg_cases_close(vg_case_list *l)
{
    free(l->item);
    memset(l, 0, sizeof *l);
}

const vg_case *vg_cases_find(const vg_case_list *l, const char *id)
{
    vg_case key;
    snprintf(key.id, sizeof key.id, "%.63s", id);
    return l->count ? bsearch(&key, l->item, (size_t)l->count, sizeof key, by_id) : NULL;
}
