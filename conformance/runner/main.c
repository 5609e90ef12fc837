/* vaecheck: is this backend right? SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <omp.h>

#include "runner/own_model.h"
#include "runner/report_step.h"
#include "runner/run.h"
#include "runner/select.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

static int fail(int code, const char *text)
{
    fprintf(stderr, "vaecheck: error: %s\n", text);
    return code;
}

static const char *bin_dir(void)
{
    static char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return path;
}

/* ---- one case, told ---------------------------------------------------------------- */

static void apply_waiver(vc_run *r, const vc_case *c, vc_result *res)
{
    vc_waiver *w = vc_waiver_find(&r->waivers, c->id, r->caps.name);
    if (!w)
        return;
    if (res->status == VC_PASS) {
        vc_say(res, VC_XPASS, "it passes, and a waiver says it does not (%s); take the waiver out", w->issue);
        return;
    }
    const double ratio = res->judged ? res->judge.numeric.ratio_rms : 0;
    if (strcmp(vc_status_name(res->status), w->status) != 0 || (w->bound >= 0 && ratio > w->bound))
        return;
    char was[500];
    snprintf(was, sizeof was, "%.480s", res->reason);
    w->used++;
    r->waivers.applied++;
    vc_say(res, VC_WAIVED, "waived until %s (%s): %s", w->expires, w->issue, was);
}

static void tell(const vc_run *r, const vc_case *c, const vc_result *res, int64_t k, int64_t n, bool quiet)
{
    const bool bad = res->status != VC_PASS && res->status != VC_UNSUPPORTED && res->status != VC_WAIVED;
    const bool bar = isatty(STDERR_FILENO) && !r->verbose && !quiet;
    if (bar)
        fprintf(stderr, "\r\033[K");
    if ((bad || r->verbose) && !quiet) {
        printf("%-12s %s%s%s\n", vc_status_name(res->status), c->id, res->reason[0] ? ": " : "", res->reason);
        if (bad && res->fingerprint[0])
            printf("             %s\n", res->fingerprint);
    }
    if (bar)
        fprintf(stderr, "%lld/%lld %s", (long long)k + 1, (long long)n, k + 1 == n ? "\r\033[K" : c->id);
    fflush(stdout);
}

/* ---- verdict ---------------------------------------------------------------------------- */

static int verdict(const vc_run *r, const vc_selection *sel, int64_t done)
{
    const int64_t *k = r->counts;
    const int64_t executed = done - k[VC_UNSUPPORTED] - k[VC_SKIPPED] - k[VC_NOT_RUN];
    if (k[VC_HARNESS_ERROR])
        return VC_EXIT_HARNESS;
    if (k[VC_FAIL] + k[VC_STATUS_CRASH] + k[VC_STATUS_TIMEOUT] + k[VC_MISTRUSTED] + k[VC_XPASS])
        return VC_EXIT_NO;
    if (done < sel->count || executed < 1)
        return VC_EXIT_INCOMPLETE;
    return k[VC_WAIVED] ? VC_EXIT_WAIVED : VC_EXIT_OK;
}

static void summary(const vc_run *r, const vc_selection *sel, int64_t done, int code, double seconds, bool part)
{
    static const char *const text[] = {"conformant", "NOT conformant", "", "the suite itself is at fault", "", "incomplete",
                                       "conformant with waivers only"};
    printf("%s %s: %s%s; ", r->caps.name, r->caps.version, code >= 0 && code <= 6 ? text[code] : "?",
           code == 0 && part ? " as far as asked" : "");
    for (int k = 0; k < VC_STATUS_COUNT; k++)
        if (r->counts[k])
            printf("%lld %s, ", (long long)r->counts[k], vc_status_name((vc_status)k));
    printf("%lld of %lld cases in %.1f s; seed 0x%016llx", (long long)done, (long long)sel->count, seconds,
           (unsigned long long)r->seed);
    if (r->d1_tried || r->d2_tried)
        printf("; badges:%s%s%s", r->d1_tried && r->deterministic ? " D1" : "", r->d2_tried && r->order_free ? " D2" : "",
               (r->d1_tried && r->deterministic) || (r->d2_tried && r->order_free) ? "" : " none");
    printf("\n");
}

static int run_cases(vc_run *r, const vc_options *o, const vc_selection *sel, int argc, char **argv)
{
    const double start = wire_now();
    int64_t done = 0;
    r->partial = o->any_level || o->any_contract || o->pattern || o->model;
    vc_log_run(r, argc, argv, sel->item, sel->count, o->shard, o->shards);
    for (; done < sel->count && !interrupted; done++) {
        vc_result res;
        const vc_case *c = sel->item[done];
        vc_case_run(r, c, &res);
        apply_waiver(r, c, &res);
        r->counts[res.status]++;
        vc_log_case(r, c, &res, sel->required[done]);
        tell(r, c, &res, done, sel->count, o->quiet);
        vc_result_free(&res);
    }
    const int code = verdict(r, sel, done);
    const double seconds = wire_now() - start;
    vc_log_end(r, code, seconds);
    summary(r, sel, done, code, seconds, r->partial || o->shards > 1);
    return code;
}

/* ---- setting up ------------------------------------------------------------------------- */

static int open_log(vc_run *r, const vc_options *o, char *path, size_t size)
{
    path[0] = '\0';
    if (o->report) {
        if (mkdir(o->report, 0777) != 0 && errno != EEXIST) {
            fprintf(stderr, "vaecheck: error: --report %s: %s\n", o->report, strerror(errno));
            return VC_EXIT_USAGE;
        }
        snprintf(path, size, "%s/events.jsonl", o->report);
        snprintf(r->log_dir, sizeof r->log_dir, "%s", o->report);
    }
    if (o->log)
        snprintf(path, size, "%s", o->log);
    if (o->junit && !path[0])
        snprintf(path, size, "%s.jsonl", o->junit);
    if (!path[0])
        return VC_CONTINUE;
    r->log = fopen(path, "w");
    if (r->log)
        return VC_CONTINUE;
    fprintf(stderr, "vaecheck: error: cannot write %s: %s\n", path, strerror(errno));
    return VC_EXIT_USAGE;
}

static int no_backend(const vc_run *r, vc_outcome o)
{
    fprintf(stderr, "vaecheck: error: backend %s %s: %s\n", r->spec.text, r->caps.name[0] ? "does not open" : "does not load",
            r->child.text);
    if (r->child.log_size)
        fprintf(stderr, "%s%s", r->child.log, r->child.log[r->child.log_size - 1] == '\n' ? "" : "\n");
    if (o == VC_REFUSED && (r->child.code == VP_E_UNSUPPORTED || r->child.code == VP_E_DEVICE))
        return VC_EXIT_NO_DEVICE;
    return VC_EXIT_LOAD;
}

static int with_backend(vc_run *r, const vc_options *o, vc_suite *suite, int argc, char **argv)
{
    char log_path[PATH_MAX];
    vr_error err = {VR_OK, ""};
    vc_selection sel = {.count = 0};
    const vc_outcome opened = vc_run_open(r);
    if (opened != VC_ANSWER)
        return no_backend(r, opened);
    int code = open_log(r, o, log_path, sizeof log_path);
    if (code != VC_CONTINUE)
        return code;
    if (vc_select(suite, o, &sel, &err) != VR_OK)
        code = fail(VC_EXIT_USAGE, err.text);
    else
        code = run_cases(r, o, &sel, argc, argv);
    vc_selection_free(&sel);
    if (r->log && fclose(r->log) != 0)
        code = fail(VC_EXIT_INCOMPLETE, "the log could not be written");
    r->log = NULL;
    if (log_path[0] && (o->report || o->junit))
        code = vc_report_step(log_path, o->report, o->junit, code);
    return code;
}

static int list_cases(vc_suite *suite, const vc_options *o)
{
    vr_error err = {VR_OK, ""};
    vc_selection sel;
    if (vc_select(suite, o, &sel, &err) != VR_OK)
        return fail(VC_EXIT_USAGE, err.text);
    for (int64_t k = 0; k < sel.count; k++)
        puts(sel.item[k]->id);
    vc_selection_free(&sel);
    return 0;
}

static int load_suite(vc_options *o, vc_suite *suite, char *dir, size_t size)
{
    vr_error err = {VR_OK, ""};
    snprintf(dir, size, "%s", o->cases ? o->cases : VAEPROOF_CASES_DIR);
    static char list[PATH_MAX]; /* an installed tool has its suite in ../share, one that was built in the sources */
    snprintf(list, sizeof list, "%s/../share/vaeproof/mustpass/%s.txt", bin_dir(), vc_profile_name[o->profile]);
    if (!o->cases && access(list, R_OK) == 0) {
        snprintf(dir, size, "%s/../share/vaeproof/cases", bin_dir());
        o->mustpass = o->mustpass ? o->mustpass : list;
    }
    const vr_status s = o->model ? vc_own_model_suite(o, suite, &err) : vc_suite_load(dir, suite, &err);
    return s == VR_OK ? VC_CONTINUE : fail(VC_EXIT_USAGE, err.text);
}

int main(int argc, char **argv)
{
    vc_options o;
    vc_suite suite = {.entry = NULL};
    char dir[PATH_MAX], today[11];
    vr_error err = {VR_OK, ""};
    if (argc > 1 && strcmp(argv[1], "merge") == 0)
        return vc_merge_command(argc - 1, argv + 1);
    int code = vc_options_parse(argc, argv, &o);
    if (code != VC_CONTINUE)
        return code;
    code = load_suite(&o, &suite, dir, sizeof dir);
    if (code != VC_CONTINUE)
        return code;
    if (o.list) {
        code = list_cases(&suite, &o);
        vc_suite_free(&suite);
        return code;
    }
    prctl(PR_SET_DUMPABLE, 0); /* a child cannot look in here */
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
    static vc_run r;
    r = (vc_run){.suite = &suite, .seed = o.seed, .profile = o.profile, .timeout = o.timeout, .locate = !o.no_locate,
                 .verbose = o.verbose, .deterministic = true, .order_free = true};
    if (!o.has_seed && getrandom(&r.seed, sizeof r.seed, 0) != sizeof r.seed)
        r.seed = (uint64_t)time(NULL);
    if (o.threads)
        omp_set_num_threads(o.threads);
    const time_t t = time(NULL);
    struct tm tm;
    strftime(today, sizeof today, "%Y-%m-%d", gmtime_r(&t, &tm));
    if (o.waivers && vc_waivers_load(o.waivers, VAEPROOF_VERSION, today, &r.waivers, &err) != VR_OK)
        code = fail(VC_EXIT_USAGE, err.text);
    else if (vc_backend_find(o.backend, bin_dir(), &r.spec, &err) != VR_OK)
        code = fail(VC_EXIT_LOAD, err.text);
    else if (vc_child_init(&r.child, &r.spec, &err) != VR_OK)
        code = fail(VC_EXIT_HARNESS, err.text);
    else {
        r.spec.options = o.option;
        code = with_backend(&r, &o, &suite, argc, argv);
    }
    vc_child_free(&r.child);
    vc_waivers_free(&r.waivers);
    vc_own_model_free();
    vc_suite_free(&suite);
    return code;
}
