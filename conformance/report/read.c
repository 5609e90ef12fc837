/* Logs in, one run out. SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static vr_status take_run(const char *path, int line, json_t *j, vc_report *r, vr_error *err)
{
    static const char *const same[] = {"suite_version", "suite_digest", "profile", "seed"};
    if (strcmp(text_of(j, "schema"), "vaeproof-log/1") != 0)
        return vr_fail(err, VR_E_FORMAT, "%s:%d: schema '%s'; want vaeproof-log/1", path, line, text_of(j, "schema"));
    if (json_array_size(json_object_get(j, "shard")) != 2)
        return vr_fail(err, VR_E_FORMAT, "%s:%d: a run wants a shard [i, n]", path, line);
    if (!r->run) {
        r->run = json_incref(j);
        return VR_OK;
    }
    for (size_t k = 0; k < sizeof same / sizeof *same; k++)
        if (strcmp(text_of(j, same[k]), text_of(r->run, same[k])) != 0)
            return vr_fail(err, VR_E_ARGUMENT, "%s: %s is '%s', the first log has '%s'; want shards of one run (the same --seed)", path,
                           same[k], text_of(j, same[k]), text_of(r->run, same[k]));
    const json_t *a = json_object_get(j, "backend"), *b = json_object_get(r->run, "backend");
    if (strcmp(text_of(a, "name"), text_of(b, "name")) != 0 || strcmp(text_of(a, "version"), text_of(b, "version")) != 0)
        return vr_fail(err, VR_E_ARGUMENT, "%s: backend %s %s, the first log has %s %s", path, text_of(a, "name"), text_of(a, "version"),
                       text_of(b, "name"), text_of(b, "version"));
    return VR_OK;
}

static vr_status take_case(const char *path, int line, json_t *j, vc_report *r, vr_error *err)
{
    if (!*text_of(j, "id") || !*text_of(j, "status") || !*text_of(j, "level"))
        return vr_fail(err, VR_E_FORMAT, "%s:%d: a case wants id, level and status", path, line);
    return json_array_append(r->cases, j) == 0 ? VR_OK : vr_fail(err, VR_E_NOMEM, "no memory for cases");
}

static vr_status take_line(const char *path, int line, const char *text, size_t n, bool last, vc_report *r, json_t **run, vr_error *err)
{
    json_error_t je;
    json_t *j = json_loadb(text, n, JSON_REJECT_DUPLICATES, &je);
    if (!j && last) {
        r->cut = true; /* written when the run was killed */
        return VR_OK;
    }
    if (!j)
        return vr_fail(err, VR_E_FORMAT, "%s:%d: %s", path, line, je.text);
    const char *event = text_of(j, "event");
    vr_status s = VR_OK;
    if (!*run && strcmp(event, "run") != 0)
        s = vr_fail(err, VR_E_FORMAT, "%s:%d: event '%s'; want the run first", path, line, event);
    else if (*run && strcmp(event, "run") == 0)
        s = vr_fail(err, VR_E_FORMAT, "%s:%d: a second run in one log", path, line);
    else if (strcmp(event, "run") == 0) {
        s = take_run(path, line, j, r, err);
        *run = s == VR_OK ? json_incref(j) : NULL;
    } else if (strcmp(event, "case") == 0)
        s = take_case(path, line, j, r, err);
    else if (strcmp(event, "end") == 0) {
        json_decref(r->end);
        r->end = json_incref(j);
    } else
        s = vr_fail(err, VR_E_FORMAT, "%s:%d: event '%s'; want run, case or end", path, line, event);
    json_decref(j);
    return s;
}

static vr_status read_log(const char *path, vc_report *r, json_t **run, vr_error *err)
{
    FILE *f = fopen(path, "rb");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    *run = NULL;
    if (!f)
        return vr_fail(err, VR_E_IO, "cannot read %s: %s", path, strerror(errno));
    vr_status s = VR_OK;
    for (int k = 1; s == VR_OK && (n = getline(&line, &room, f)) > 0; k++) {
        const bool whole = line[n - 1] == '\n';
        s = take_line(path, k, line, (size_t)n, !whole, r, run, err);
    }
    free(line);
    fclose(f);
    if (s == VR_OK && !*run)
        s = vr_fail(err, VR_E_FORMAT, "%s:1: no run in this log", path);
    return s;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(text_of(*(json_t *const *)a, "id"), text_of(*(json_t *const *)b, "id"));
}

/* Cases by id; doubled ones are refused. */
static vr_status sort_cases(vc_report *r, vr_error *err)
{
    const size_t n = json_array_size(r->cases);
    json_t **list = calloc(n + 1, sizeof(json_t *)), *sorted = json_array();
    vr_status s = list && sorted ? VR_OK : vr_fail(err, VR_E_NOMEM, "no memory for %zu cases", n);
    for (size_t k = 0; s == VR_OK && k < n; k++)
        list[k] = json_array_get(r->cases, k);
    if (s == VR_OK)
        qsort(list, n, sizeof *list, by_id);
    for (size_t k = 0; s == VR_OK && k < n; k++) {
        if (k && strcmp(text_of(list[k - 1], "id"), text_of(list[k], "id")) == 0)
            s = vr_fail(err, VR_E_ARGUMENT, "case %s is in two logs; want each shard once", text_of(list[k], "id"));
        else
            json_array_append(sorted, list[k]);
    }
    free(list);
    json_decref(r->cases);
    r->cases = sorted;
    return s;
}

static void find_missing(vc_report *r, json_t *const *runs, int count)
{
    size_t required = 0;
    const json_int_t shards = json_integer_value(json_array_get(json_object_get(r->run, "shard"), 1));
    for (json_int_t i = 1; i <= shards && !r->missing[0]; i++) {
        bool there = false;
        for (int k = 0; k < count; k++)
            there = there || json_integer_value(json_array_get(json_object_get(runs[k], "shard"), 0)) == i;
        if (!there)
            snprintf(r->missing, sizeof r->missing, "shard %d of %d is missing", (int)i, (int)shards);
    }
    for (int k = 0; k < count; k++)
        required += json_array_size(json_object_get(runs[k], "required"));
    if (!r->missing[0] && json_array_size(r->cases) < required)
        snprintf(r->missing, sizeof r->missing, "%zu of %zu cases have a result", json_array_size(r->cases), required);
}

vr_status vc_report_read(const char *const *paths, int count, vc_report *out, vr_error *err)
{
    json_t **runs = calloc((size_t)count + 1, sizeof(json_t *));
    *out = (vc_report){.cases = json_array()};
    vr_status s = runs && out->cases ? VR_OK : vr_fail(err, VR_E_NOMEM, "no memory for logs");
    for (int k = 0; s == VR_OK && k < count; k++)
        s = read_log(paths[k], out, &runs[k], err);
    const json_t *n = s == VR_OK ? json_array_get(json_object_get(out->run, "shard"), 1) : NULL;
    for (int k = 0; s == VR_OK && k < count; k++)
        if (!json_equal(json_array_get(json_object_get(runs[k], "shard"), 1), n))
            s = vr_fail(err, VR_E_ARGUMENT, "%s is a shard of another number of shards", paths[k]);
    if (s == VR_OK)
        s = sort_cases(out, err);
    if (s == VR_OK) {
        find_missing(out, runs, count);
        snprintf(out->folder, sizeof out->folder, "%s", paths[0]);
        char *slash = strrchr(out->folder, '/');
        snprintf(slash ? slash : out->folder, slash ? 1 : 2, "%s", slash ? "" : ".");
    }
    for (int k = 0; runs && k < count; k++)
        json_decref(runs[k]);
    free(runs);
    if (s != VR_OK)
        vc_report_free(out);
    return s;
}

void vc_report_free(vc_report *r)
{
    json_decref(r->run);
    json_decref(r->cases);
    json_decref(r->end);
    *r = (vc_report){.run = NULL};
}

int64_t vc_report_count(const vc_report *r, const char *status)
{
    size_t k;
    json_t *c;
    int64_t n = 0;
    json_array_foreach(r->cases, k, c)
        n += strcmp(text_of(c, "status"), status) == 0;
    return n;
}

int vc_report_verdict(const vc_report *r)
{
    const int64_t idle = vc_report_count(r, "unsupported") + vc_report_count(r, "skipped") + vc_report_count(r, "not_run");
    if (vc_report_count(r, "harness_error"))
        return 3;
    if (vc_report_count(r, "fail") + vc_report_count(r, "crash") + vc_report_count(r, "timeout") + vc_report_count(r, "mistrusted") +
        vc_report_count(r, "xpass"))
        return 1;
    if (r->missing[0] || r->cut || (int64_t)json_array_size(r->cases) <= idle)
        return 5;
    return vc_report_count(r, "waived") ? 6 : 0;
}

const char *vc_report_verdict_text(int code)
{
    switch (code) {
    case 0:
        return "conformant";
    case 1:
        return "not conformant";
    case 3:
        return "the suite itself is at fault";
    case 6:
        return "conformant with waivers only";
    default:
        return "incomplete";
    }
}

const char *vc_report_scope(const vc_report *r)
{
    return json_is_true(json_object_get(r->run, "partial")) ? " as far as asked" : "";
}
