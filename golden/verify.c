/* golden/verify.c: `vaegolden verify`, does this build decode as frozen?
 *
 * Two questions: are the files of the version what its manifest says (files
 * missing, extra, changed), and does every record come out again (clause G6)?
 * Every fault is a line on stdout; the verdict is the exit code.
 *
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

typedef struct verify {
    const char *golden, *given, *only;
    int64_t jobs;
    char dir[PATH_MAX];
    bool current;          /* the version cases.json speaks of */
    vg_case_list cases;    /* read when current */
    vg_manifest manifest;
    vg_record *record;     /* frozen; those that could be read */
    int64_t records;
    vg_models models;
    vg_job *job;
    const vg_record **frozen; /* of job i */
    int64_t count, agree, faults;
} verify;

enum { KEY_GOLDEN = CLI_KEY_COMMAND, KEY_ONLY };

static const struct argp_option options[] = {
    {"golden", KEY_GOLDEN, "DIR", 0, "Folder of cases.json, models/ and the versions (default: golden)", 0},
    {"only", KEY_ONLY, "GLOB", 0, "Compute only the cases whose id matches", 0},
    {"jobs", 'j', "N", 0, "Threads (default: OMP_NUM_THREADS, or all CPUs)", 0},
    {0}};

static const char doc[] =
    "Compute every case of a golden version again (default: the newest) and compare digests and noise levels bit for "
    "bit; check its files against its manifest.\n"
    "\v"
    "Examples:\n"
    "  vaegolden verify\n"
    "  vaegolden verify golden/v1 --only 'taesd*'\n"
    "Exit code 1 when anything differs; each difference is one line.";

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    verify *x = ctx;
    switch (key) {
    case KEY_GOLDEN:
        x->golden = arg;
        return VR_OK;
    case KEY_ONLY:
        x->only = arg;
        return VR_OK;
    case 'j':
        return cli_integer("--jobs", arg, 1, VG_MAX_JOBS, &x->jobs, err);
    default:
        if (x->given)
            return vr_fail(err, VR_E_ARGUMENT, "unexpected argument '%s'; want one folder", arg);
        x->given = arg;
        return VR_OK;
    }
}

static void fault(verify *x, const char *fmt, ...) VR_PRINTF(2, 3);
static void fault(verify *x, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
    x->faults++;
}

/* ---- files ------------------------------------------------------------------------- */

static vr_status check_files(verify *x, vr_error *err)
{
    vg_names have;
    vr_error e = {VR_OK, ""};
    vr_status s = vg_list(x->dir, &have, err);
    if (s)
        return s;
    if (vg_manifest_read(x->dir, &x->manifest, &e)) {
        fault(x, "%s", e.text);
        vg_names_free(&have);
        return VR_OK;
    }
    for (int64_t i = 0; !s && i < x->manifest.count; i++) {
        const struct vg_manifest_line *l = &x->manifest.line[i];
        char path[PATH_MAX], now[65];
        s = vg_join(path, x->dir, l->path, err);
        if (s)
            break;
        if (!vg_names_has(&have, l->path))
            fault(x, "%s/" VG_MANIFEST ":%lld: '%s' is missing", x->dir, (long long)i + 1, l->path);
        else if (vg_file_digest(path, now, &e))
            fault(x, "%s", e.text);
        else if (strcmp(now, l->digest))
            fault(x, "%s/" VG_MANIFEST ":%lld: '%s' was changed: %.12s is written, the file has %.12s", x->dir,
                  (long long)i + 1, l->path, l->digest, now);
    }
    for (int64_t i = 0; i < have.count; i++)
        if (strcmp(have.item[i], VG_MANIFEST) && !vg_manifest_find(&x->manifest, have.item[i]))
            fault(x, "%s: '%s' is not in the manifest", x->dir, have.item[i]);
    vg_names_free(&have);
    return s;
}

static vr_status read_records(verify *x, vr_error *err)
{
    vg_names ids;
    vr_status s = vg_list_ids(x->dir, &ids, err);
    if (s)
        return s;
    x->record = calloc((size_t)(ids.count ? ids.count : 1), sizeof *x->record);
    if (!x->record)
        s = vr_fail(err, VR_E_NOMEM, "out of memory for a list of cases");
    for (int64_t i = 0; !s && i < ids.count; i++) {
        char path[PATH_MAX];
        vr_error e = {VR_OK, ""};
        s = vg_record_path(path, x->dir, ids.item[i], err);
        if (!s && vg_record_read(path, &x->record[x->records], &e))
            fault(x, "%s", e.text);
        else
            x->records++;
    }
    vg_names_free(&ids);
    return s;
}

/* The version and cases.json speak of the same cases. */
static vr_status check_list(verify *x, vr_error *err)
{
    vr_status s = vg_cases_open(x->golden, &x->cases, err);
    int64_t k = 0;
    for (int64_t i = 0; !s && i < x->cases.count; i++) {
        const vg_case *c = &x->cases.item[i];
        char picture[PATH_MAX];
        while (k < x->records && strcmp(x->record[k].input.id, c->id) < 0)
            fault(x, "case '%s': is in %s, not in %s", x->record[k++].input.id, x->dir, x->cases.path);
        if (k == x->records || strcmp(x->record[k].input.id, c->id)) {
            fault(x, "%s:%d: case '%s': %s has no good record of it", x->cases.path, c->line, c->id, x->dir);
            continue;
        }
        if (!vg_input_equal(c, &x->record[k++].input))
            fault(x, "%s:%d: case '%s': is not what %s froze under this id", x->cases.path, c->line, c->id, x->dir);
        s = vg_picture_path(picture, x->dir, c->id, err);
        if (!s && c->picture && !vg_exists(picture))
            fault(x, "%s:%d: case '%s': has no picture %s", x->cases.path, c->line, c->id, picture);
    }
    while (!s && k < x->records)
        fault(x, "case '%s': is in %s, not in %s", x->record[k++].input.id, x->dir, x->cases.path);
    return s;
}

static vr_status check_provenance(verify *x, vr_error *err)
{
    char path[PATH_MAX], *have = NULL;
    size_t n;
    vr_error e = {VR_OK, ""};
    if (x->records == 0)
        return VR_OK;
    vr_status s = vg_join(path, x->dir, VG_PROVENANCE, err);
    if (s)
        return s;
    char *want = vg_provenance_text(&x->cases, x->record, x->records);
    if (!want)
        return vr_fail(err, VR_E_NOMEM, "out of memory");
    if (vg_file_read(path, &have, &n, &e))
        fault(x, "%s", e.text);
    else if (strcmp(have, want)) {
        int line = 1;
        for (size_t i = 0; have[i] && have[i] == want[i]; i++)
            line += have[i] == '\n';
        fault(x, "%s:%d: is not what cases.json and the records give; vaegolden regen writes it", path, line);
    }
    free(have);
    free(want);
    return VR_OK;
}

/* ---- pictures ------------------------------------------------------------------------- */

/* The picture of a record, if it has one of the right size: 8-bit samples. */
static bool read_picture(const verify *x, const vg_record *r, vr_image *img)
{
    char path[PATH_MAX];
    if (vg_picture_path(path, x->dir, r->input.id, NULL) || !vg_exists(path) || vr_png_read(path, img, NULL))
        return false;
    if (img->depth == 8 && img->channels == r->shape[1] && img->height == r->shape[2] && img->width == r->shape[3])
        return true;
    vr_image_free(img);
    return false;
}

static void check_picture(verify *x, const vg_record *r)
{
    char path[PATH_MAX], now[65];
    vr_image img;
    if (vg_picture_path(path, x->dir, r->input.id, NULL) || !vg_exists(path))
        return;
    if (!read_picture(x, r, &img)) {
        fault(x, "%s: is no 8-bit picture of the record's size", path);
        return;
    }
    vg_digest(img.data, (size_t)(r->shape[1] * r->shape[2] * r->shape[3]), now);
    if (strcmp(now, r->pixels_sha256))
        fault(x, "%s: its pixels are %.12s, the record says %.12s", path, now, r->pixels_sha256);
    vr_image_free(&img);
}

/* ---- computing --------------------------------------------------------------------------- */

/* How far a differing output is off, as well as frozen numbers can tell. */
static void distance(const verify *x, const vg_job *j, const vg_record *old, char *buf, size_t size)
{
    const double unit = old->noise[0].d.rms;
    vr_image img;
    *buf = '\0';
    if (unit > 0)
        snprintf(buf, size, "; golden is now %.3g f32 noise levels from truth, was %.3g", j->record.golden.rms / unit,
                 old->golden.rms / unit);
    if (!j->pixels || !read_picture(x, old, &img))
        return;
    const int64_t n = old->shape[1] * old->shape[2] * old->shape[3];
    int64_t differ = 0;
    int most = 0;
    const bool same_size = !memcmp(old->shape, j->record.shape, sizeof old->shape);
    for (int64_t i = 0; same_size && i < n; i++) {
        const int d = abs((int)((const uint8_t *)img.data)[i] - (int)j->pixels[i]);
        differ += d != 0;
        most = d > most ? d : most;
    }
    vr_image_free(&img);
    const size_t at = strlen(buf);
    if (same_size)
        snprintf(buf + at, size - at, "; %lld of %lld 8-bit samples differ, by %d at most", (long long)differ,
                 (long long)n, most);
}

static vr_status done(void *ctx, int64_t i, vr_status s, const vr_error *e, vr_error *err)
{
    verify *x = ctx;
    vg_job *j = &x->job[i];
    const vg_record *old = x->frozen[i];
    char what[1200], far[200];
    (void)err;
    if (s) {
        fault(x, "%s", e->text);
    } else if (vg_record_compare(old, &j->record, what, sizeof what)) {
        const unsigned bits = vg_record_compare(old, &j->record, what, sizeof what);
        distance(x, j, old, far, sizeof far);
        fault(x, "case '%s': %s%s", old->input.id, what, bits & VG_DIFF_OUTPUT ? far : "");
    } else {
        x->agree++;
    }
    vg_job_close(j);
    return VR_OK;
}

static vr_status open_jobs(verify *x, vr_error *err)
{
    const size_t n = (size_t)(x->records ? x->records : 1);
    x->job = calloc(n, sizeof *x->job);
    x->frozen = calloc(n, sizeof *x->frozen);
    if (!x->job || !x->frozen)
        return vr_fail(err, VR_E_NOMEM, "out of memory for a list of cases");
    int64_t selected = 0;
    for (int64_t i = 0; i < x->records; i++) {
        const vg_record *r = &x->record[i];
        vr_error e = {VR_OK, ""};
        if (x->only && fnmatch(x->only, r->input.id, 0))
            continue;
        selected++;
        check_picture(x, r);
        if (vg_job_open(x->golden, &r->input, &x->models, &x->job[x->count], &e))
            fault(x, "%s", e.text);
        else
            x->frozen[x->count++] = r;
    }
    if (x->only && !selected)
        return vr_fail(err, VR_E_ARGUMENT, "--only '%s': no case of %s matches; vaegolden show lists them", x->only,
                       x->dir);
    return VR_OK;
}

static vr_status choose_folder(verify *x, vr_error *err)
{
    int n = 1;
    vr_status s = x->given ? vg_join(x->dir, x->given, "", err) : vg_current(x->golden, x->dir, &n, err);
    x->current = !x->given;
    if (!s && n == 0)
        s = vr_fail(err, VR_E_NOTFOUND, "%s: holds no version v1, v2, ...; vaegolden regen makes one", x->golden);
    return s;
}

static int run(verify *x)
{
    vr_error err = {VR_OK, ""};
    const char *isa = "";
    const double start = cli_now();
    const int32_t jobs = x->jobs ? (int32_t)x->jobs : vg_default_jobs();
    vr_status s = choose_folder(x, &err);
    s = s ? s : vr_exec_isa(&isa, &err);
    s = s ? s : check_files(x, &err);
    s = s ? s : read_records(x, &err);
    if (!s && x->current) {
        s = check_list(x, &err);
        s = s ? s : check_provenance(x, &err);
    }
    s = s ? s : open_jobs(x, &err);
    s = s ? s : vg_work(x->job, x->count, jobs, done, x, &err);
    if (s == VR_E_CANCELLED)
        return cli_error(CLI_INTERRUPTED, "interrupted; %lld cases agreed, %lld faults so far", (long long)x->agree,
                         (long long)x->faults);
    if (s)
        return cli_fail(&err);
    if (x->faults)
        return cli_error(CLI_FAILURE, "%s: %lld fault%s; %lld of %lld cases agree", x->dir, (long long)x->faults,
                         x->faults == 1 ? "" : "s", (long long)x->agree, (long long)x->records);
    if (!x->agree)
        return cli_error(CLI_FAILURE, "%s: holds no case", x->dir);
    printf("%s: %lld of %lld cases computed, all agree in outputs, pixels and noise levels; %lld files as in the "
           "manifest (compiler %s, %s, %d threads, %.1f s)\n", x->dir, (long long)x->agree, (long long)x->records,
           (long long)x->manifest.count, __VERSION__, isa, (int)jobs, cli_now() - start);
    return CLI_OK;
}

int vg_verify(int argc, char **argv)
{
    verify x = {.golden = "golden"};
    const cli_spec spec = {"verify", options, doc, set};
    int code = cli_parse_arguments(&spec, "[DIR]", argc, argv, &x);
    if (code != CLI_CONTINUE)
        return code;
    code = run(&x);
    for (int64_t i = 0; i < x.count; i++)
        vg_job_close(&x.job[i]);
    free(x.job);
    free(x.frozen);
    free(x.record);
    vg_models_close(&x.models);
    vg_manifest_free(&x.manifest);
    vg_cases_close(&x.cases);
    return code;
}
