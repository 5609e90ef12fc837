/* From a log to reports, and `vaecheck merge`. SPDX-License-Identifier: MIT */
#include "runner/report_step.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "report/report.h"

static int fail(int code, const char *text)
{
    fprintf(stderr, "vaecheck: error: %s\n", text);
    return code;
}

static vr_status write_all(const vc_report *r, const char *dir, const char *junit, vr_error *err)
{
    vr_status s = dir ? vc_report_write(r, dir, err) : VR_OK;
    return s == VR_OK && junit ? vc_report_junit(r, junit, err) : s;
}

int vc_report_step(const char *log, const char *dir, const char *junit, int code)
{
    vc_report r;
    vr_error err = {VR_OK, ""};
    if (vc_report_read(&log, 1, &r, &err) != VR_OK)
        return fail(5, err.text);
    if (write_all(&r, dir, junit, &err) != VR_OK)
        code = fail(5, err.text);
    else if (dir)
        printf("report: %s/index.html\n", dir);
    vc_report_free(&r);
    return code;
}

typedef struct merge_args {
    const char *report, *junit, *log[4096];
    int logs;
} merge_args;

static const struct argp_option options[] = {
    {"report", 'r', "DIR", 0, "Write report.json, junit.xml, index.html there", 0},
    {"junit", 'j', "FILE", 0, "Write a JUnit file", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    merge_args *a = state->input;
    switch (key) {
    case 'r':
        a->report = arg;
        return 0;
    case 'j':
        a->junit = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (a->logs == 4096)
            argp_error(state, "more than 4096 logs");
        else
            a->log[a->logs++] = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "want the logs of all shards: vaecheck merge --report DIR LOG...");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int vc_merge_command(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "LOG...", "Join the logs of a sharded run and give one verdict.", NULL, NULL, NULL};
    static merge_args a;
    vc_report r;
    vr_error err = {VR_OK, ""};
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    if (a.report && mkdir(a.report, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "vaecheck: error: --report %s: %s\n", a.report, strerror(errno));
        return 2;
    }
    const vr_status s = vc_report_read(a.log, a.logs, &r, &err);
    if (s != VR_OK)
        return fail(s == VR_E_ARGUMENT ? 5 : 2, err.text);
    int code = vc_report_verdict(&r);
    if (write_all(&r, a.report, a.junit, &err) != VR_OK)
        code = fail(5, err.text);
    const json_t *b = json_object_get(r.run, "backend");
    printf("%s: %s%s; %zu cases of %d logs%s%s\n", json_string_value(json_object_get(b, "name")), vc_report_verdict_text(code), vc_report_scope(&r),
           json_array_size(r.cases), a.logs, r.missing[0] ? "; " : "", r.missing);
    vc_report_free(&r);
    return code;
}
