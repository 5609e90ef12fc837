/* golden/regen.c: `vaegolden regen`, makes a golden version or proves that it
 * comes out the same (clause G4).
 *
 * Everything is computed anew into DIR/.part, one atomic file per case, and DIR
 * is touched only at the end (install.c). What a killed run left in .part is
 * used again if the same tool made it from the same input; a case that merely
 * lies in DIR is not taken for computed.
 *
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

typedef struct regen {
    const char *golden, *output, *only;
    int64_t jobs;
    bool new_version;
    vg_case_list cases;
    vg_models models;
    vg_job *job;          /* selected cases; those already in .part are closed */
    int64_t count, resumed, finished;
    char dir[PATH_MAX], part[PATH_MAX];
    int lock;
} regen;

enum { KEY_GOLDEN = CLI_KEY_COMMAND, KEY_ONLY, KEY_NEW };

static const struct argp_option options[] = {
    {"golden", KEY_GOLDEN, "DIR", 0, "Folder of cases.json, models/ and the versions (default: golden)", 0},
    {"output", 'o', "DIR", 0, "Make the version in this folder (default: the newest of v1, v2, ... in --golden)", 0},
    {"only", KEY_ONLY, "GLOB", 0, "Compute the cases whose id matches, such as 'sd15.*'; keep the others", 0},
    {"jobs", 'j', "N", 0, "Threads (default: OMP_NUM_THREADS, or all CPUs)", 0},
    {"new-version", KEY_NEW, NULL, 0, "Make the next version, in which digests may differ", 0},
    {0}};

static const char doc[] =
    "Compute every golden digest and noise level anew. In an existing version nothing may change but what is "
    "added; a killed or interrupted run is continued by the same command.\n"
    "\v"
    "Examples:\n"
    "  vaegolden regen && git diff --exit-code golden/\n"
    "  vaegolden regen --output /tmp/mine && vaegolden diff golden/v1 /tmp/mine\n"
    "  vaegolden regen --only 'sd15.*'";

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    regen *x = ctx;
    switch (key) {
    case KEY_GOLDEN:
        x->golden = arg;
        return VR_OK;
    case 'o':
        x->output = arg;
        return *arg ? VR_OK : vr_fail(err, VR_E_ARGUMENT, "--output '': want a folder");
    case KEY_ONLY:
        x->only = arg;
        return VR_OK;
    case KEY_NEW:
        x->new_version = true;
        return VR_OK;
    default:
        return cli_integer("--jobs", arg, 1, VG_MAX_JOBS, &x->jobs, err);
    }
}

/* ---- before ------------------------------------------------------------------------ */

static vr_status choose_folder(regen *x, vr_error *err)
{
    char manifest[PATH_MAX], name[24];
    int n;
    if (x->output)
        return vg_join(x->dir, x->output, "", err);
    vr_status s = vg_current(x->golden, x->dir, &n, err);
    s = s ? s : vg_join(manifest, x->dir, VG_MANIFEST, err);
    /* A version without a manifest is unfinished: it is continued, not left behind. */
    if (s || !x->new_version || n == 0 || !vg_exists(manifest))
        return s;
    snprintf(name, sizeof name, "v%d", n + 1);
    return vg_join(x->dir, x->golden, name, err);
}

/* Models, latents and plans of the selected cases. */
static vr_status open_jobs(regen *x, vr_error *err)
{
    x->job = calloc((size_t)x->cases.count, sizeof *x->job);
    if (!x->job)
        return vr_fail(err, VR_E_NOMEM, "out of memory for a list of cases");
    for (int64_t i = 0; i < x->cases.count; i++) {
        const vg_case *c = &x->cases.item[i];
        if (x->only && fnmatch(x->only, c->id, 0))
            continue;
        vr_status s = vg_job_open(x->golden, c, &x->models, &x->job[x->count], err);
        if (s)
            return vr_fail_prefix(err, "%s:%d", x->cases.path, c->line), s;
        x->count++;
    }
    if (!x->count)
        return vr_fail(err, VR_E_ARGUMENT, "--only '%s': no case of %s matches; vaegolden show lists them", x->only,
                       x->cases.path);
    return VR_OK;
}

/* One regen per folder: the lock goes with the process, however it ends. */
static vr_status lock_folder(regen *x, vr_error *err)
{
    vr_status s = vg_mkdir(x->dir, err);
    if (s)
        return s;
    x->lock = open(x->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (x->lock < 0)
        return vr_fail(err, VR_E_IO, "%s: cannot open this folder: %s", x->dir, strerror(errno));
    if (flock(x->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return vr_fail(err, VR_E_IO, "%s: another regen is at work here", x->dir);
    return VR_OK;
}

/* .part is of use only to the very tool that made it. */
static vr_status open_part(regen *x, vr_error *err)
{
    char stamp[PATH_MAX], path[PATH_MAX], self[65], *old = NULL;
    size_t size;
    vr_status s = vg_join(x->part, x->dir, VG_PART, err);
    s = s ? s : vg_join(stamp, x->part, "made-by", err);
    s = s ? s : vg_file_digest("/proc/self/exe", self, err);
    if (s)
        return s;
    const bool same = !vg_file_read(stamp, &old, &size, NULL) && !strcmp(old, self);
    free(old);
    if (!same)
        vg_remove_tree(x->part);
    s = vg_mkdir(x->part, err); /* a kill while it was being removed leaves parts of it */
    s = s ? s : vg_join(path, x->part, "cases", err);
    s = s ? s : vg_mkdir(path, err);
    s = s ? s : vg_join(path, x->part, "pictures", err);
    s = s ? s : vg_mkdir(path, err);
    return s || same ? s : vg_file_write(stamp, self, strlen(self), err);
}

/* Whether .part holds the case, complete and from the same input. */
static bool staged(const regen *x, const vg_job *j)
{
    char path[PATH_MAX];
    vg_record r;
    if (vg_record_path(path, x->part, j->c->id, NULL) || vg_record_read(path, &r, NULL) ||
        strcmp(r.input_sha256, j->record.input_sha256))
        return false;
    return !j->c->picture || (!vg_picture_path(path, x->part, j->c->id, NULL) && vg_exists(path));
}

static void drop_staged(regen *x)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < x->count; i++) {
        if (staged(x, &x->job[i])) {
            vg_job_close(&x->job[i]);
            x->resumed++;
        } else {
            x->job[kept++] = x->job[i];
        }
    }
    x->count = kept;
}

/* ---- a case is done ------------------------------------------------------------------- */

static vr_status write_case(const regen *x, vg_job *j, vr_error *err)
{
    char path[PATH_MAX];
    const int64_t *d = j->record.shape;
    vr_status s = VR_OK;
    if (j->c->picture) { /* first: the record says that the case is complete */
        s = vg_picture_path(path, x->part, j->c->id, err);
        s = s ? s : vg_png_write(path, d[3], d[2], d[1], j->pixels, err);
    }
    char *text = vg_record_text(&j->record);
    if (!text)
        s = vr_fail(err, VR_E_NOMEM, "out of memory for a record");
    s = s ? s : vg_record_path(path, x->part, j->c->id, err);
    s = s ? s : vg_file_write(path, text, strlen(text), err);
    free(text);
    return s;
}

static vr_status done(void *ctx, int64_t i, vr_status s, const vr_error *e, vr_error *err)
{
    regen *x = ctx;
    vg_job *j = &x->job[i];
    if (s) {
        *err = *e;
        return vr_fail_prefix(err, "%s:%d", x->cases.path, j->c->line);
    }
    s = write_case(x, j, err);
    vg_job_close(j);
    x->finished += s == VR_OK;
    return s;
}

/* ---- all --------------------------------------------------------------------------------- */

static vr_status prepare(regen *x, vr_error *err)
{
    const char *isa;
    vr_status s = vg_cases_open(x->golden, &x->cases, err);
    s = s ? s : vr_exec_isa(&isa, err);
    s = s ? s : choose_folder(x, err);
    s = s ? s : vg_check_folder(x->dir, err);
    s = s ? s : vg_check_frozen(&x->cases, x->dir, err);
    s = s ? s : open_jobs(x, err);
    s = s ? s : lock_folder(x, err);
    s = s ? s : open_part(x, err);
    if (!s)
        drop_staged(x);
    return s;
}

static void say_done(const regen *x, const vg_installed *in, double seconds)
{
    printf("%s: %lld case%s computed", x->dir, (long long)x->finished, x->finished == 1 ? "" : "s");
    if (x->resumed)
        printf(", %lld kept from a run that was stopped", (long long)x->resumed);
    if (in->changed)
        printf("; %lld file%s new or changed", (long long)in->changed, in->changed == 1 ? "" : "s");
    else
        printf("; nothing changed");
    if (in->missing)
        printf("; no manifest: %lld of %lld cases are not there yet, first '%s' (run without --only)",
               (long long)in->missing, (long long)x->cases.count, in->first_missing);
    printf(" (%.1f s)\n", seconds);
}

static int run(regen *x)
{
    vr_error err = {VR_OK, ""};
    vg_installed in;
    const double start = cli_now();
    if (x->output && x->new_version)
        return cli_error(CLI_USAGE, "--new-version numbers a folder itself; want it or --output, not both");
    if (prepare(x, &err))
        return cli_fail(&err);
    vr_status s = vg_work(x->job, x->count, x->jobs ? (int32_t)x->jobs : vg_default_jobs(), done, x, &err);
    if (s == VR_E_CANCELLED)
        return cli_error(CLI_INTERRUPTED, "interrupted; %lld of %lld cases are done and kept: the same command "
                         "continues", (long long)(x->finished + x->resumed), (long long)(x->count + x->resumed));
    s = s ? s : vg_install(&x->cases, x->dir, &in, &err);
    if (s)
        return cli_fail(&err);
    say_done(x, &in, cli_now() - start);
    return CLI_OK;
}

int vg_regen(int argc, char **argv)
{
    regen x = {.golden = "golden", .lock = -1};
    const cli_spec spec = {"regen", options, doc, set};
    int code = cli_parse(&spec, argc, argv, &x);
    if (code != CLI_CONTINUE)
        return code;
    code = run(&x);
    for (int64_t i = 0; i < x.count; i++)
        vg_job_close(&x.job[i]);
    free(x.job);
    vg_models_close(&x.models);
    vg_cases_close(&x.cases);
    if (x.lock >= 0)
        close(x.lock);
    return code;
}
