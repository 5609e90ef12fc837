/* golden/record.c: one case's record as JSON, written and read (clause G3).
 *
 * The text is made by hand: the same numbers give the same bytes whatever the
 * JSON library's version. %.17g tells every double apart.
 *
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <float.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "vaegolden-case/1"

vr_policy vg_contract(int k)
{
    static const vr_policy contract[VG_CONTRACTS] = {VR_POLICY_F32, VR_POLICY_F16, VR_POLICY_BF16};
    return contract[k];
}

/* ---- writing ------------------------------------------------------------------- */

static void write_pair(FILE *f, const char *key, int64_t w, int64_t h)
{
    fprintf(f, ", \"%s\": [%lld, %lld]", key, (long long)w, (long long)h);
}

static void write_tile(FILE *f, const vr_tile_options *o)
{
    fprintf(f, ",\n    \"tile\": {\"mode\": \"%s\"", vr_tile_mode_name(o->mode));
    if (o->tile_w)
        write_pair(f, "tile", o->tile_w, o->tile_h);
    if (o->overlap_w >= 0)
        write_pair(f, "overlap", o->overlap_w, o->overlap_h);
    if (o->memory_limit)
        fprintf(f, ", \"memory_limit\": \"%lluB\"", (unsigned long long)o->memory_limit);
    fputc('}', f);
}

static void write_input(FILE *f, const vg_record *r)
{
    const vg_case *c = &r->input;
    fprintf(f, "{\n    \"model\": \"%s\",\n    \"weights_sha256\": \"%s\",\n    \"latents\": \"%s\",\n"
            "    \"latents_sha256\": \"%s\",\n    \"latent_space\": \"%s\"", c->model, r->weights_sha256, c->latents,
            r->latents_sha256, c->space == VR_LATENT_RAW ? "raw" : "diffusion");
    if (c->tile.mode != VR_TILE_NONE)
        write_tile(f, &c->tile);
    fputs("\n  }", f);
}

/* Digest of the input's own text. */
static bool digest_input(vg_record *r)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return false;
    write_input(f, r);
    const bool good = vg_close(f);
    if (good)
        vg_digest(text, n, r->input_sha256);
    free(text);
    return good;
}

static void write_noise(FILE *f, const vg_record *r)
{
    for (int k = 0; k < VG_CONTRACTS; k++) {
        const vg_noise *n = &r->noise[k];
        fprintf(f, "%s\n    \"%s\": {\"rms\": %.17g, \"rms_order\": \"%s\", \"max\": %.17g, \"max_order\": \"%s\"}",
                k ? "," : "", vr_policy_name(vg_contract(k)), n->d.rms, vr_order_name(n->rms_order), n->d.max,
                vr_order_name(n->max_order));
    }
}

char *vg_record_text(vg_record *r)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = digest_input(r) ? open_memstream(&text, &n) : NULL;
    if (!f)
        return NULL;
    fprintf(f, "{\n  \"schema\": \"" SCHEMA "\",\n  \"id\": \"%s\",\n  \"input\": ", r->input.id);
    write_input(f, r);
    fprintf(f, ",\n  \"input_sha256\": \"%s\",\n  \"arch\": \"%s\",\n  \"shape\": [%lld, %lld, %lld, %lld],\n"
            "  \"range\": [%.17g, %.17g],\n  \"tiles\": %lld,\n", r->input_sha256, r->arch, (long long)r->shape[0],
            (long long)r->shape[1], (long long)r->shape[2], (long long)r->shape[3], r->range[0], r->range[1],
            (long long)r->tiles);
    fprintf(f, "  \"output_sha256\": \"%s\",\n  \"pixels_sha256\": \"%s\",\n  \"against\": \"%s\",\n"
            "  \"truth_rms\": %.17g,\n  \"golden\": {\"rms\": %.17g, \"max\": %.17g},\n  \"noise\": {",
            r->output_sha256, r->pixels_sha256, vr_policy_name(r->no_truth ? VR_POLICY_GOLDEN : VR_POLICY_TRUTH),
            r->truth_rms, r->golden.rms, r->golden.max);
    write_noise(f, r);
    fputs("\n  }\n}\n", f);
    if (!vg_close(f)) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- reading ----------------------------------------------------------------------- */

static void read_order(vg_reader *r, const char *key, vr_order *out)
{
    char text[32];
    if (vg_read_text(r, key, true, text, sizeof text) && !vr_order_parse(text, out))
        vg_read_fail(r, key, "is '%s'; want a summation order such as seq", text);
}

static void read_deviation(vg_reader *r, vg_deviation *d)
{
    vg_read_real(r, "rms", 0, DBL_MAX, &d->rms);
    vg_read_real(r, "max", 0, DBL_MAX, &d->max);
}

static void close_child(vg_reader *r, vg_reader *child)
{
    if (vg_read_end(child))
        r->status = child->status;
}

static void read_input(vg_reader *r, vg_record *out)
{
    vg_reader in;
    if (!vg_read_object(r, "input", true, &in))
        return;
    vg_case_read_input(&in, &out->input);
    vg_read_digest(&in, "weights_sha256", out->weights_sha256);
    vg_read_digest(&in, "latents_sha256", out->latents_sha256);
    close_child(r, &in);
}

static void read_noise(vg_reader *r, vg_record *out)
{
    vg_reader noise, one;
    if (!vg_read_object(r, "noise", true, &noise))
        return;
    for (int k = 0; k < VG_CONTRACTS; k++) {
        if (!vg_read_object(&noise, vr_policy_name(vg_contract(k)), true, &one))
            continue;
        read_deviation(&one, &out->noise[k].d);
        read_order(&one, "rms_order", &out->noise[k].rms_order);
        read_order(&one, "max_order", &out->noise[k].max_order);
        close_child(&noise, &one);
    }
    close_child(r, &noise);
}

static void read_range(vg_reader *r, vg_record *out)
{
    /* Two whole numbers: -1, 1 or 0, 1. */
    int64_t v[2];
    if (!vg_read_ints(r, "range", true, false, 2, -1000, 1000, v))
        return;
    out->range[0] = (double)v[0];
    out->range[1] = (double)v[1];
    if (v[0] >= v[1])
        vg_read_fail(r, "range", "is empty: %lld is not below %lld", (long long)v[0], (long long)v[1]);
}

/* "truth", or "golden" where the scheme has no form under truth. */
static void read_truth(vg_reader *r, vg_record *out)
{
    char text[16];
    vr_policy p = VR_POLICY_COUNT;
    if (vg_read_text(r, "against", true, text, sizeof text) && (!vr_policy_parse(text, &p) || p > VR_POLICY_TRUTH))
        vg_read_fail(r, "against", "is '%s'; want truth or golden", text);
    out->no_truth = p == VR_POLICY_GOLDEN;
    vg_read_real(r, "truth_rms", DBL_MIN, DBL_MAX, &out->truth_rms);
}

static void read_all(vg_reader *r, vg_record *out)
{
    char schema[64];
    vg_reader golden;
    if (vg_read_text(r, "schema", true, schema, sizeof schema) && strcmp(schema, SCHEMA))
        vg_read_fail(r, "schema", "is '%s'; this tool reads '%s'", schema, SCHEMA);
    if (vg_read_text(r, "id", true, out->input.id, sizeof out->input.id) && !vg_id_valid(out->input.id))
        vg_read_fail(r, "id", "is '%s'; want a-z, 0-9 and, inside, . _ -", out->input.id);
    read_input(r, out);
    vg_read_digest(r, "input_sha256", out->input_sha256);
    vg_read_text(r, "arch", true, out->arch, sizeof out->arch);
    vg_read_ints(r, "shape", true, false, 4, 1, 1 << 20, out->shape);
    read_range(r, out);
    vg_read_int(r, "tiles", true, 1, 1 << 20, &out->tiles);
    vg_read_digest(r, "output_sha256", out->output_sha256);
    vg_read_digest(r, "pixels_sha256", out->pixels_sha256);
    read_truth(r, out);
    if (vg_read_object(r, "golden", true, &golden)) {
        read_deviation(&golden, &out->golden);
        close_child(r, &golden);
    }
    read_noise(r, out);
    vg_read_end(r);
}

vr_status vg_record_read(const char *path, vg_record *out, vr_error *err)
{
    vg_doc d;
    vg_reader r;
    memset(out, 0, sizeof *out);
    vr_status s = vg_doc_open(path, &d, err);
    if (s)
        return s;
    vg_read_root(&r, &d, err);
    read_all(&r, out);
    const char *name = strrchr(path, '/');
    char stem[VG_ID + 8];
    snprintf(stem, sizeof stem, "%s.json", out->input.id);
    if (!r.status && strcmp(stem, name ? name + 1 : path))
        vg_read_fail(&r, "id", "is '%s'; the file's name wants '%.*s'", out->input.id,
                     (int)strlen(name ? name + 1 : path) - 5, name ? name + 1 : path);
    /* Written by this tool, so its text is known; an edit by hand shows. */
    char stated[65], *text = NULL;
    memcpy(stated, out->input_sha256, sizeof stated);
    if (!r.status && !(text = vg_record_text(out)))
        r.status = vr_fail(err, VR_E_NOMEM, "%s: no memory to check it", path);
    else if (!r.status && strcmp(stated, out->input_sha256))
        vg_read_fail(&r, "input_sha256", "is not the digest of this input, which is %s", out->input_sha256);
    else if (!r.status && strcmp(text, d.text))
        r.status = vr_fail(err, VR_E_FORMAT, "%s: is not as vaegolden writes it (a number or the layout was changed)",
                           path);
    free(text);
    vg_doc_close(&d);
    return r.status;
}

/* ---- comparing ---------------------------------------------------------------------- */

typedef struct differences {
    char *buf;
    size_t size;
    unsigned bits;
} differences;

static void add(differences *d, unsigned bit, const char *fmt, ...) VR_PRINTF(3, 4);
static void add(differences *d, unsigned bit, const char *fmt, ...)
{
    const size_t n = strlen(d->buf);
    va_list ap;
    if (n && n + 2 < d->size)
        memcpy(d->buf + n, "; ", 3);
    const size_t at = strlen(d->buf);
    va_start(ap, fmt);
    vsnprintf(d->buf + at, d->size - at, fmt, ap);
    va_end(ap);
    d->bits |= bit;
}

static void digest(differences *d, unsigned bit, const char *what, const char *old, const char *now)
{
    if (strcmp(old, now))
        add(d, bit, "%s %.12s -> %.12s", what, old, now);
}

static void level(differences *d, const char *what, const char *metric, double old, double now)
{
    if (old != now && old > 0)
        add(d, VG_DIFF_NOISE, "%s %s %.4g -> %.4g (x%.6g)", what, metric, old, now, now / old);
    else if (old != now)
        add(d, VG_DIFF_NOISE, "%s %s %.4g -> %.4g", what, metric, old, now);
}

unsigned vg_record_compare(const vg_record *old, const vg_record *now, char *buf, size_t size)
{
    differences d = {buf, size, 0};
    *buf = '\0';
    if (!vg_input_equal(&old->input, &now->input))
        add(&d, VG_DIFF_INPUT, "another input under the same id");
    digest(&d, VG_DIFF_INPUT, "weights", old->weights_sha256, now->weights_sha256);
    digest(&d, VG_DIFF_INPUT, "latents", old->latents_sha256, now->latents_sha256);
    if (strcmp(old->arch, now->arch) || memcmp(old->shape, now->shape, sizeof old->shape) || old->tiles != now->tiles ||
        old->range[0] != now->range[0] || old->range[1] != now->range[1])
        add(&d, VG_DIFF_SHAPE, "%s %lldx%lldx%lldx%lld in %lld tiles -> %s %lldx%lldx%lldx%lld in %lld", old->arch,
            (long long)old->shape[0], (long long)old->shape[1], (long long)old->shape[2], (long long)old->shape[3],
            (long long)old->tiles, now->arch, (long long)now->shape[0], (long long)now->shape[1],
            (long long)now->shape[2], (long long)now->shape[3], (long long)now->tiles);
    digest(&d, VG_DIFF_OUTPUT, "output", old->output_sha256, now->output_sha256);
    digest(&d, VG_DIFF_PIXELS, "pixels", old->pixels_sha256, now->pixels_sha256);
    if (old->no_truth != now->no_truth)
        add(&d, VG_DIFF_NOISE, "noise is measured against another policy");
    level(&d, "truth", "rms", old->truth_rms, now->truth_rms);
    level(&d, "golden error", "rms", old->golden.rms, now->golden.rms);
    level(&d, "golden error", "max", old->golden.max, now->golden.max);
    for (int k = 0; k < VG_CONTRACTS; k++) {
        const char *name = vr_policy_name(vg_contract(k));
        const vg_noise *a = &old->noise[k], *b = &now->noise[k];
        level(&d, name, "noise rms", a->d.rms, b->d.rms);
        level(&d, name, "noise max", a->d.max, b->d.max);
        if (a->rms_order != b->rms_order || a->max_order != b->max_order)
            add(&d, VG_DIFF_NOISE, "%s worst orders %s, %s -> %s, %s", name, vr_order_name(a->rms_order),
                vr_order_name(a->max_order), vr_order_name(b->rms_order), vr_order_name(b->max_order));
    }
    return d.bits;
}
