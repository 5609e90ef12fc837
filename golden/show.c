/* golden/show.c: `vaegolden show [ID]`, what a case is and what it measured.
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <stdlib.h>
#include <string.h>

typedef struct show {
    const char *golden, *id;
    vg_case_list cases;
    char dir[PATH_MAX];
} show;

enum { KEY_GOLDEN = CLI_KEY_COMMAND };

static const struct argp_option options[] = {
    {"golden", KEY_GOLDEN, "DIR", 0, "Folder of cases.json, models/ and the versions (default: golden)", 0},
    {0}};

static const char doc[] =
    "Print what a case is, its digests and noise levels in the newest version, and where its picture is. Without an "
    "ID: one line per case.\n"
    "\v"
    "Example:\n"
    "  vaegolden show sd15.d8.8x8";

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    show *x = ctx;
    if (key == KEY_GOLDEN) {
        x->golden = arg;
        return VR_OK;
    }
    if (x->id)
        return vr_fail(err, VR_E_ARGUMENT, "unexpected argument '%s'; want one id", arg);
    x->id = arg;
    return VR_OK;
}

/* "diffusers, tile 64x64, overlap 16x16, memory limit 2.0 MiB" */
static const char *tile_text(const vr_tile_options *o, char *buf, size_t size)
{
    char bytes[40];
    int n = snprintf(buf, size, "%s", vr_tile_mode_name(o->mode));
    if (o->tile_w)
        n += snprintf(buf + n, size - (size_t)n, ", tile %lldx%lld", (long long)o->tile_w, (long long)o->tile_h);
    if (o->overlap_w >= 0)
        n += snprintf(buf + n, size - (size_t)n, ", overlap %lldx%lld", (long long)o->overlap_w,
                      (long long)o->overlap_h);
    if (o->memory_limit)
        snprintf(buf + n, size - (size_t)n, ", memory limit %s", cli_bytes_text(o->memory_limit, bytes, sizeof bytes));
    return buf;
}

static void show_record(const show *x, const vg_record *r)
{
    char path[PATH_MAX];
    printf("weights   %s (%s)\nlatent    %s\noutput    %lldx%lldx%lldx%lld in %lld tile%s, black %g, white %g\n"
           "          sha256 %s\npixels    sha256 %s\ntruth     rms %.6g\n\n", r->weights_sha256, r->arch,
           r->latents_sha256, (long long)r->shape[0], (long long)r->shape[1], (long long)r->shape[2],
           (long long)r->shape[3], (long long)r->tiles, r->tiles == 1 ? "" : "s", r->range[0], r->range[1],
           r->output_sha256, r->pixels_sha256, r->truth_rms);
    printf("%-9s %-12s %-12s %s\n", r->no_truth ? "to golden" : "to truth", "rms", "max", "largest under (rms, max)");
    printf("%-9s %-12.4g %-12.4g -\n", "golden", r->golden.rms, r->golden.max);
    for (int k = 0; k < VG_CONTRACTS; k++)
        printf("%-9s %-12.4g %-12.4g %s, %s\n", vr_policy_name(vg_contract(k)), r->noise[k].d.rms, r->noise[k].d.max,
               vr_order_name(r->noise[k].rms_order), vr_order_name(r->noise[k].max_order));
    if (!vg_picture_path(path, x->dir, r->input.id, NULL) && vg_exists(path))
        printf("\npicture   %s\n", path);
}

/* The id that shares most of its beginning with what was said. */
static const char *nearest(const vg_case_list *l, const char *said)
{
    const char *best = l->item[0].id;
    size_t most = 0;
    for (int64_t i = 0; i < l->count; i++) {
        size_t n = 0;
        while (said[n] && said[n] == l->item[i].id[n])
            n++;
        if (n > most) {
            most = n;
            best = l->item[i].id;
        }
    }
    return best;
}

static int show_one(const show *x)
{
    char path[PATH_MAX], text[200];
    vg_record r;
    vr_error err = {VR_OK, ""};
    const vg_case *c = vg_cases_find(&x->cases, x->id);
    if (!c)
        return cli_error(CLI_FAILURE, "%s: no case '%s'; nearest is '%s' (vaegolden show lists all)", x->cases.path,
                         x->id, nearest(&x->cases, x->id));
    vr_status s = vg_record_path(path, x->dir, c->id, &err);
    const bool there = !s && vg_exists(path);
    s = s || !there ? s : vg_record_read(path, &r, &err);
    if (s)
        return cli_fail(&err);
    printf("case      %s (%s:%d)\n", c->id, x->cases.path, c->line);
    if (*c->why)
        printf("why       %s\n", c->why);
    printf("model     %s\nlatents   %s, %s\ntiling    %s\n", c->model, c->latents,
           c->space == VR_LATENT_RAW ? "raw" : "diffusion", tile_text(&c->tile, text, sizeof text));
    if (there)
        show_record(x, &r);
    else
        printf("%s has no record of it yet; vaegolden regen makes it\n", x->dir);
    return CLI_OK;
}

static int show_all(const show *x)
{
    char text[200];
    int64_t widest = 0;
    for (int64_t i = 0; i < x->cases.count; i++) {
        const int64_t n = (int64_t)strlen(x->cases.item[i].id);
        widest = n > widest ? n : widest;
    }
    for (int64_t i = 0; i < x->cases.count; i++) {
        const vg_case *c = &x->cases.item[i];
        printf("%-*s  %s  %s  %s\n", (int)widest, c->id, c->model, c->latents, tile_text(&c->tile, text, sizeof text));
    }
    return CLI_OK;
}

int vg_show(int argc, char **argv)
{
    show x = {.golden = "golden"};
    const cli_spec spec = {"show", options, doc, set};
    vr_error err = {VR_OK, ""};
    int n, code = cli_parse_arguments(&spec, "[ID]", argc, argv, &x);
    if (code != CLI_CONTINUE)
        return code;
    vr_status s = vg_cases_open(x.golden, &x.cases, &err);
    s = s ? s : vg_current(x.golden, x.dir, &n, &err);
    code = s ? cli_fail(&err) : x.id ? show_one(&x) : show_all(&x);
    vg_cases_close(&x.cases);
    return code;
}
