/* report.json, junit.xml, badge.txt. SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static const char *const statuses[] = {"pass", "fail", "crash", "timeout", "unsupported", "skipped", "mistrusted", "waived", "xpass",
                                       "not_run", "harness_error"};

static json_t *counts(const vc_report *r)
{
    json_t *o = json_object();
    for (size_t k = 0; k < sizeof statuses / sizeof *statuses; k++)
        json_object_set_new(o, statuses[k], json_integer(vc_report_count(r, statuses[k])));
    return o;
}

static vr_status write_json(const vc_report *r, const char *path, vr_error *err)
{
    const int code = vc_report_verdict(r);
    json_t *run = json_copy(r->run);
    json_object_del(run, "event");
    json_object_del(run, "schema");
    json_object_del(run, "required");
    json_t *o = json_pack("{s:s, s:i, s:s, s:o, s:o, s:O}", "schema", "vaeproof-report/1", "exit", code, "verdict", vc_report_verdict_text(code),
                          "counts", counts(r), "run", run, "cases", r->cases);
    if (r->missing[0])
        json_object_set_new(o, "missing", json_string(r->missing));
    static const char *const badge[] = {"D1", "D2"};
    for (int k = 0; k < 2; k++)
        if (json_object_get(r->end, badge[k]))
            json_object_set(o, badge[k], json_object_get(r->end, badge[k]));
    char *dump = json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    vc_text t = {.at = NULL};
    if (dump)
        vc_text_add(&t, "%s\n", dump);
    t.failed = t.failed || !dump;
    free(dump);
    json_decref(o);
    return vc_text_save(&t, path, err);
}

vr_status vc_report_junit(const vc_report *r, const char *path, vr_error *err)
{
    vc_text t = {.at = NULL};
    size_t k;
    json_t *c;
    const int64_t idle = vc_report_count(r, "unsupported") + vc_report_count(r, "skipped") + vc_report_count(r, "not_run");
    const int64_t good = vc_report_count(r, "pass") + vc_report_count(r, "waived");
    double seconds = 0;
    json_array_foreach(r->cases, k, c)
        seconds += json_number_value(json_object_get(c, "seconds"));
    vc_text_add(&t, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"vaecheck %s\" tests=\"%zu\" failures=\"%lld\" "
                    "skipped=\"%lld\" time=\"%.3f\">\n<properties><property name=\"seed\" value=\"%s\"/><property name=\"backend\" value=\"",
                text_of(r->run, "profile"), json_array_size(r->cases),
                (long long)((int64_t)json_array_size(r->cases) - idle - good), (long long)idle, seconds, text_of(r->run, "seed"));
    vc_text_escaped(&t, text_of(json_object_get(r->run, "backend"), "name"));
    vc_text_add(&t, "\"/></properties>\n");
    json_array_foreach(r->cases, k, c) {
        const char *status = text_of(c, "status");
        vc_text_add(&t, "<testcase classname=\"%s\" name=\"", text_of(c, "level"));
        vc_text_escaped(&t, text_of(c, "id"));
        vc_text_add(&t, "\" time=\"%.3f\">", json_number_value(json_object_get(c, "seconds")));
        const json_t *ratio = json_object_get(json_object_get(c, "judge"), "ratio_rms");
        if (json_is_number(ratio))
            vc_text_add(&t, "<properties><property name=\"ratio\" value=\"%.6g\"/></properties>", json_number_value(ratio));
        if (strcmp(status, "unsupported") == 0 || strcmp(status, "skipped") == 0 || strcmp(status, "not_run") == 0) {
            vc_text_add(&t, "<skipped message=\"");
            vc_text_escaped(&t, text_of(c, "reason"));
            vc_text_add(&t, "\"/>");
        } else if (strcmp(status, "pass") != 0 && strcmp(status, "waived") != 0) {
            vc_text_add(&t, "<failure type=\"%s\" message=\"", status);
            vc_text_escaped(&t, text_of(c, "reason"));
            vc_text_add(&t, "\">");
            vc_text_escaped(&t, text_of(c, "repro"));
            vc_text_add(&t, "</failure>");
        }
        vc_text_add(&t, "</testcase>\n");
    }
    if (r->missing[0]) {
        vc_text_add(&t, "<testcase classname=\"run\" name=\"complete\"><failure type=\"incomplete\" message=\"%s\"/></testcase>\n", r->missing);
    }
    vc_text_add(&t, "</testsuite>\n</testsuites>\n");
    return vc_text_save(&t, path, err);
}

vr_status vc_report_write(const vc_report *r, const char *dir, vr_error *err)
{
    char path[PATH_MAX];
    const int code = vc_report_verdict(r);
    vc_text badge = {.at = NULL};
    vc_text_add(&badge, "%s %s: %s%s, profile %s, suite %s, contracts", text_of(json_object_get(r->run, "backend"), "name"),
                text_of(json_object_get(r->run, "backend"), "version"), vc_report_verdict_text(code), vc_report_scope(r), text_of(r->run, "profile"),
                text_of(r->run, "suite_version"));
    size_t k;
    json_t *v;
    json_array_foreach(json_object_get(json_object_get(r->run, "backend"), "storage"), k, v)
        vc_text_add(&badge, " %s", json_string_value(v));
    vc_text_add(&badge, "%s%s\n", json_is_true(json_object_get(r->end, "D1")) ? " D1" : "", json_is_true(json_object_get(r->end, "D2")) ? " D2" : "");
    snprintf(path, sizeof path, "%s/badge.txt", dir);
    vr_status s = vc_text_save(&badge, path, err);
    snprintf(path, sizeof path, "%s/report.json", dir);
    if (s == VR_OK)
        s = write_json(r, path, err);
    snprintf(path, sizeof path, "%s/junit.xml", dir);
    if (s == VR_OK)
        s = vc_report_junit(r, path, err);
    snprintf(path, sizeof path, "%s/index.html", dir);
    return s == VR_OK ? vc_report_html(r, path, err) : s;
}
