/* Logs: what is refused, what is a verdict, and that the same log gives the same bytes.
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"

#define RUN(shard, seed)                                                                                                     \
    "{\"event\":\"run\",\"schema\":\"vaeproof-log/1\",\"suite_version\":\"0.1.0\",\"suite_digest\":\"ab\",\"profile\":\"core\",\"seed\":\"" seed \
    "\",\"shard\":[" shard "],\"time\":\"t\",\"command\":[],\"backend\":{\"name\":\"b\",\"version\":\"1\",\"storage\":[\"f32\"]},\"required\":[\"a\"]}\n"
#define CASE(id, status) "{\"event\":\"case\",\"id\":\"" id "\",\"level\":\"L1\",\"status\":\"" status "\",\"reason\":\"<r & \\\"q\\\">\",\"seconds\":0.5}\n"
#define END "{\"event\":\"end\",\"counts\":{},\"exit\":0,\"seconds\":1.0,\"D1\":true}\n"

static char folder[64] = "/tmp/report-XXXXXX";
static char path[2][96];

static void write_log(int k, const char *text)
{
    if (!path[0][0]) {
        cr_assert_not_null(mkdtemp(folder));
        snprintf(path[0], sizeof path[0], "%s/a.jsonl", folder);
        snprintf(path[1], sizeof path[1], "%s/b.jsonl", folder);
    }
    FILE *f = fopen(path[k], "wb");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
}

static void clean(void)
{
    static const char *const name[] = {"a.jsonl", "b.jsonl", "report.json", "junit.xml", "index.html", "badge.txt"};
    for (size_t k = 0; k < sizeof name / sizeof *name; k++) {
        char p[128];
        snprintf(p, sizeof p, "%s/%s", folder, name[k]);
        unlink(p);
    }
    rmdir(folder);
}

Test(report, refusals, .fini = clean)
{
    static const struct {
        const char *text, *want;
    } row[] = {
        {"", ":1: no run"}, {"{}\n", "event ''"}, {"x\n", ":1:"}, {END, "want the run first"}, {CASE("a", "pass"), "want the run first"},
        {RUN("1,1", "0x1") RUN("1,1", "0x1"), ":2: a second run"}, {RUN("1", "0x1"), "a shard [i, n]"},
        {RUN("1,1", "0x1") "{\"event\":\"song\"}\n", "event 'song'"}, {RUN("1,1", "0x1") "{\"event\":\"case\"}\n", "wants id"},
        {RUN("1,1", "0x1") CASE("a", ""), "wants id"}, {RUN("1,1", "0x1") "{\"event\":\"end\",\"event\":\"end\"}\n", "duplicate"},
        {"{\"event\":\"run\",\"schema\":\"vaeproof-log/2\",\"shard\":[1,1]}\n", "want vaeproof-log/1"},
        {RUN("1,1", "0x1") CASE("a", "pass") CASE("a", "pass"), "in two logs"}, {RUN("1,1", "0x1") "{\"event\":\n" CASE("a", "pass"), ":2:"}};
    vc_report r;
    vr_error err = {VR_OK, ""};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        write_log(0, row[k].text);
        const char *p[1] = {path[0]};
        cr_assert_neq(vc_report_read(p, 1, &r, &err), VR_OK, "row %zu is accepted", k);
        cr_assert(strstr(err.text, row[k].want), "row %zu: want '%s' in '%s'", k, row[k].want, err.text);
    }
    static const char *const other[] = {RUN("2,2", "0x2"), RUN("2,3", "0x1"), "{\"event\":\"run\"}\n"};
    for (int k = 0; k < 3; k++) {
        write_log(0, RUN("1,2", "0x1") CASE("a", "pass"));
        write_log(1, other[k]);
        const char *p[2] = {path[0], path[1]};
        cr_assert_neq(vc_report_read(p, 2, &r, &err), VR_OK, "shards %d are accepted", k);
    }
    const char *nowhere[1] = {"/nonexistent/x"};
    cr_assert_eq(vc_report_read(nowhere, 1, &r, &err), VR_E_IO);
}

Test(report, verdicts, .fini = clean)
{
    static const struct {
        const char *text;
        int code;
    } row[] = {{RUN("1,1", "0x1") CASE("a", "pass") END, 0}, {RUN("1,1", "0x1") CASE("a", "waived") END, 6},
               {RUN("1,1", "0x1") CASE("a", "fail") END, 1}, {RUN("1,1", "0x1") CASE("a", "crash") END, 1},
               {RUN("1,1", "0x1") CASE("a", "xpass") END, 1}, {RUN("1,1", "0x1") CASE("a", "mistrusted") END, 1},
               {RUN("1,1", "0x1") CASE("a", "harness_error") END, 3}, {RUN("1,1", "0x1") CASE("a", "unsupported") END, 5},
               {RUN("1,1", "0x1"), 5}, {RUN("1,2", "0x1") CASE("a", "pass") END, 5},
               {RUN("1,1", "0x1") CASE("a", "pass") "{\"event\":\"ca", 5}};
    vr_error err = {VR_OK, ""};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        vc_report r;
        write_log(0, row[k].text);
        const char *p[1] = {path[0]};
        cr_assert_eq(vc_report_read(p, 1, &r, &err), VR_OK, "row %zu: %s", k, err.text);
        cr_assert_eq(vc_report_verdict(&r), row[k].code, "row %zu: %d", k, vc_report_verdict(&r));
        vc_report_free(&r);
    }
}

static char *slurp(const char *name)
{
    char p[128];
    static char buf[2][1 << 18];
    static int turn;
    snprintf(p, sizeof p, "%s/%s", folder, name);
    FILE *f = fopen(p, "rb");
    cr_assert_not_null(f, "no %s", p);
    char *b = buf[turn ^= 1];
    b[fread(b, 1, sizeof buf[0] - 1, f)] = '\0';
    fclose(f);
    return b;
}

Test(report, files_are_the_same_and_escaped, .fini = clean)
{
    vr_error err = {VR_OK, ""};
    write_log(0, RUN("1,2", "0x1") CASE("b<", "fail"));
    write_log(1, RUN("2,2", "0x1") CASE("a", "pass") END);
    for (int k = 0; k < 2; k++) {
        vc_report r;
        const char *p[2] = {path[k], path[1 - k]}; /* the order of the logs does not show */
        cr_assert_eq(vc_report_read(p, 2, &r, &err), VR_OK, "%s", err.text);
        json_array_set_new(json_object_get(r.run, "shard"), 0, json_integer(1));
        cr_assert_eq(vc_report_write(&r, folder, &err), VR_OK, "%s", err.text);
        vc_report_free(&r);
        static char first[3][1 << 18];
        static const char *const name[] = {"report.json", "junit.xml", "index.html"};
        for (int f = 0; f < 3; f++) {
            const char *text = slurp(name[f]);
            if (k == 0)
                snprintf(first[f], sizeof first[f], "%s", text);
            else
                cr_assert_str_eq(first[f], text, "%s differs", name[f]);
            cr_assert(f == 0 || (strstr(text, "b&lt;") && !strstr(text, "\"b<\"") && strstr(text, "&lt;r &amp; &quot;q&quot;&gt;")), "%s is not escaped",
                      name[f]);
        }
    }
    cr_assert(strstr(slurp("badge.txt"), "not conformant"));
}
