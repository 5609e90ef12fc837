/* index.html: one file, no network. SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char style[] =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;color:#1b1b1f;background:#fff}"
    "h1{font-size:1.5em;margin:.2em 0}h2{font-size:1.15em;margin:1.6em 0 .4em}code,.m{font-family:ui-monospace,monospace;font-size:.88em}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25em .6em;border-bottom:1px solid #e4e4ea;vertical-align:top}"
    ".v{display:inline-block;padding:.25em .8em;border-radius:4px;color:#fff;font-weight:600}.good{background:#1a7f37}.bad{background:#b3261e}"
    ".meh{background:#8a6100}.s-pass{color:#1a7f37}.s-unsupported,.s-skipped{color:#6b6b76}.s-waived{color:#8a6100}"
    ".s-fail,.s-crash,.s-timeout,.s-mistrusted,.s-xpass,.s-harness_error{color:#b3261e;font-weight:600}"
    ".card{border:1px solid #e0b4b0;border-radius:6px;padding:.7em 1em;margin:.8em 0}.pics{display:flex;gap:1em;flex-wrap:wrap}"
    ".pics figure{margin:0}.pics img{image-rendering:pixelated;min-width:192px;max-width:370px;border:1px solid #ddd;display:block}"
    "figcaption{font-size:.85em;color:#555}input,select{font:inherit;padding:.2em .4em;margin-right:.6em}.num{text-align:right}";

static const char script[] =
    "const q=document.getElementById('q'),s=document.getElementById('s'),r=[...document.querySelectorAll('#all tbody tr')],"
    "n=document.getElementById('n');function f(){let k=0;for(const e of r){const v=(!q.value||e.dataset.id.includes(q.value))&&"
    "(!s.value||e.dataset.s===s.value);e.hidden=!v;k+=v}n.textContent=k+' of '+r.length}q.oninput=s.onchange=f;f();";

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* ---- pictures ------------------------------------------------------------------------- */

static void add_file(vc_text *t, const char *path)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char b[3];
    size_t n;
    FILE *f = fopen(path, "rb");
    vc_text_add(t, "data:image/png;base64,");
    while (f && (n = fread(b, 1, 3, f)) > 0) {
        const unsigned v = (unsigned)b[0] << 16 | (n > 1 ? (unsigned)b[1] << 8 : 0) | (n > 2 ? b[2] : 0);
        vc_text_add(t, "%c%c%c%c", digit[v >> 18], digit[v >> 12 & 63], n > 1 ? digit[v >> 6 & 63] : '=', n > 2 ? digit[v & 63] : '=');
    }
    if (f)
        fclose(f);
}

static void add_pictures(vc_text *t, const vc_report *r, const json_t *c)
{
    static const char *const key[] = {"golden", "got", "difference", "heat"};
    static const char *const caption[] = {"golden", "got", "difference, amplified", "difference with the tile grid"};
    const json_t *files = json_object_get(c, "files");
    if (!json_object_size(files))
        return;
    vc_text_add(t, "<div class=pics>");
    for (int k = 0; k < 4; k++) {
        char path[PATH_MAX];
        const char *name = text_of(files, key[k]);
        if (!*name || strchr(name, '/'))
            continue;
        snprintf(path, sizeof path, "%.3800s/%.250s", r->folder, name);
        vc_text_add(t, "<figure><img alt=\"%s\" src=\"", caption[k]);
        add_file(t, path);
        vc_text_add(t, "\"><figcaption>%s</figcaption></figure>", caption[k]);
    }
    vc_text_add(t, "</div>");
}

/* ---- parts ------------------------------------------------------------------------------ */

static bool is_bad(const char *s)
{
    return strcmp(s, "pass") != 0 && strcmp(s, "unsupported") != 0 && strcmp(s, "skipped") != 0 && strcmp(s, "waived") != 0;
}

static void add_worst(vc_text *t, const json_t *list)
{
    size_t k, d;
    json_t *e, *i;
    if (!json_array_size(list))
        return;
    vc_text_add(t, "<table><tr><th>element [n, c, y, x]<th class=num>truth<th class=num>got<th class=num>ratio</tr>");
    json_array_foreach(list, k, e) {
        vc_text_add(t, "<tr class=m><td>[");
        json_array_foreach(json_object_get(e, "index"), d, i)
            vc_text_add(t, "%s%lld", d ? ", " : "", (long long)json_integer_value(i));
        vc_text_add(t, "]<td class=num>%.8g<td class=num>", json_number_value(json_object_get(e, "truth")));
        if (json_object_get(e, "got"))
            vc_text_add(t, "%.8g", json_number_value(json_object_get(e, "got")));
        else
            vc_text_add(t, "NaN");
        vc_text_add(t, "<td class=num>%.4g</tr>", json_number_value(json_object_get(e, "ratio")));
    }
    vc_text_add(t, "</table>");
}

static void add_failure(vc_text *t, const vc_report *r, const json_t *c)
{
    static const char *const part[] = {"fingerprint", "repro", "log"};
    static const char *const label[] = {"where", "again", "log"};
    vc_text_add(t, "<div class=card><b class=\"s-%s\">%s</b> <code>", text_of(c, "status"), text_of(c, "status"));
    vc_text_escaped(t, text_of(c, "id"));
    vc_text_add(t, "</code><br>");
    vc_text_escaped(t, text_of(c, "reason"));
    const json_t *u = json_object_get(c, "culprit");
    if (u) {
        vc_text_add(t, "<br>first wrong operation: <code>%lld ", (long long)json_integer_value(json_object_get(u, "op")));
        vc_text_escaped(t, text_of(u, "tap"));
        vc_text_add(t, "</code> (%s)", text_of(u, "kind"));
    }
    for (int k = 0; k < 3; k++)
        if (*text_of(c, part[k])) {
            vc_text_add(t, "<br>%s: <code>", label[k]);
            vc_text_escaped(t, text_of(c, part[k]));
            vc_text_add(t, "</code>");
        }
    add_worst(t, json_object_get(c, "worst"));
    add_pictures(t, r, c);
    vc_text_add(t, "</div>\n");
}

/* How far the errors lie from the limit: rms ratio over its limit, in classes of 0.1. */
static void add_histogram(vc_text *t, const vc_report *r)
{
    int64_t bin[12] = {0}, most = 1;
    size_t k;
    json_t *c;
    json_array_foreach(r->cases, k, c) {
        const json_t *j = json_object_get(c, "judge");
        const double v = json_number_value(json_object_get(j, "ratio_rms")), l = json_number_value(json_object_get(j, "limit_rms"));
        if (json_object_get(j, "ratio_rms") && l > 0) {
            const int b = v / l >= 1.1 ? 11 : (int)(v / l * 10);
            most = ++bin[b] > most ? bin[b] : most;
        }
    }
    vc_text_add(t, "<h2>Error over its limit</h2><svg width=640 height=190 role=img aria-label=\"histogram\">");
    for (int b = 0; b < 12; b++) {
        const double h = 140.0 * (double)bin[b] / (double)most;
        vc_text_add(t, "<rect x=%d y=%.1f width=46 height=%.1f fill=\"%s\"/><text x=%d y=%.1f font-size=11 text-anchor=middle>%lld</text>"
                       "<text x=%d y=180 font-size=11 text-anchor=middle>%s%.1f</text>",
                    10 + b * 52, 160 - h, h, b < 10 ? "#3b6fb6" : "#b3261e", 33 + b * 52, 156 - h, (long long)bin[b], 10 + b * 52, b == 11 ? "≥" : "",
                    (double)b / 10);
    }
    vc_text_add(t, "<line x1=530 x2=530 y1=5 y2=165 stroke=\"#b3261e\" stroke-dasharray=\"4 3\"/></svg>"
                   "<p>rms error ratio over the limit of each numeric case; 1 is the limit.</p>");
}

static void add_table(vc_text *t, const vc_report *r)
{
    static const char *const statuses[] = {"pass", "fail", "crash", "timeout", "mistrusted", "unsupported", "waived", "xpass"};
    size_t k;
    json_t *c;
    vc_text_add(t, "<h2>All cases</h2><p><input id=q placeholder=\"part of an id\"><select id=s><option value=\"\">every status");
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        vc_text_add(t, "<option>%s", statuses[i]);
    vc_text_add(t, "</select><span id=n></span></p><table id=all><thead><tr><th>case<th>level<th>clause<th>status<th class=num>ratio<th class=num>limit"
                   "<th class=num>s</tr></thead><tbody>\n");
    json_array_foreach(r->cases, k, c) {
        const json_t *j = json_object_get(c, "judge");
        vc_text_add(t, "<tr data-id=\"");
        vc_text_escaped(t, text_of(c, "id"));
        vc_text_add(t, "\" data-s=\"%s\"><td><code>", text_of(c, "status"));
        vc_text_escaped(t, text_of(c, "id"));
        vc_text_add(t, "</code><td>%s<td>", text_of(c, "level"));
        vc_text_escaped(t, text_of(c, "spec"));
        vc_text_add(t, "<td class=\"s-%s\" title=\"", text_of(c, "status"));
        vc_text_escaped(t, text_of(c, "reason"));
        vc_text_add(t, "\">%s", text_of(c, "status"));
        if (json_object_get(j, "ratio_rms"))
            vc_text_add(t, "<td class=num>%.3g<td class=num>%.3g", json_number_value(json_object_get(j, "ratio_rms")),
                        json_number_value(json_object_get(j, "limit_rms")));
        else
            vc_text_add(t, "<td><td>");
        vc_text_add(t, "<td class=num>%.2f</tr>\n", json_number_value(json_object_get(c, "seconds")));
    }
    vc_text_add(t, "</tbody></table>");
}

vr_status vc_report_html(const vc_report *r, const char *path, vr_error *err)
{
    static const char *const statuses[] = {"pass", "fail", "crash", "timeout", "mistrusted", "unsupported", "waived", "xpass", "harness_error"};
    const json_t *b = json_object_get(r->run, "backend");
    const int code = vc_report_verdict(r);
    vc_text t = {.at = NULL};
    size_t k;
    json_t *c;
    vc_text_add(&t, "<!doctype html><html lang=en><meta charset=utf-8><title>");
    vc_text_escaped(&t, text_of(b, "name"));
    vc_text_add(&t, " conformance</title><meta name=viewport content=\"width=device-width\"><link rel=icon href=\"data:,\"><style>%s</style><h1>", style);
    vc_text_escaped(&t, text_of(b, "name"));
    vc_text_add(&t, " ");
    vc_text_escaped(&t, text_of(b, "version"));
    vc_text_add(&t, "</h1><p><span class=\"v %s\">%s%s</span> profile %s, suite %s, seed <code>%s</code>%s%s</p><p>",
                code == 0 ? "good" : code == 6 ? "meh" : "bad", vc_report_verdict_text(code), vc_report_scope(r), text_of(r->run, "profile"),
                text_of(r->run, "suite_version"), text_of(r->run, "seed"), json_is_true(json_object_get(r->end, "D1")) ? ", badge D1" : "",
                json_is_true(json_object_get(r->end, "D2")) ? ", badge D2" : "");
    if (r->missing[0])
        vc_text_add(&t, "<b class=s-fail>%s.</b> ", r->missing);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (vc_report_count(r, statuses[i]))
            vc_text_add(&t, "<span class=\"s-%s\">%lld %s</span> &nbsp; ", statuses[i], (long long)vc_report_count(r, statuses[i]), statuses[i]);
    vc_text_add(&t, "</p><table><tr><th>vendor<td>");
    vc_text_escaped(&t, text_of(b, "vendor"));
    vc_text_add(&t, "<tr><th>device<td>");
    vc_text_escaped(&t, text_of(b, "device"));
    vc_text_add(&t, "<tr><th>contracts<td>");
    json_array_foreach(json_object_get(b, "storage"), k, c)
        vc_text_add(&t, "%s ", json_string_value(c));
    vc_text_add(&t, "<tr><th>tile modes<td>");
    json_array_foreach(json_object_get(b, "tiles"), k, c)
        vc_text_add(&t, "%s ", json_string_value(c));
    vc_text_add(&t, "<tr><th>cases digest<td><code>%s</code><tr><th>time<td>%s</table>", text_of(r->run, "suite_digest"), text_of(r->run, "time"));
    bool any = false;
    json_array_foreach(r->cases, k, c) {
        if (!is_bad(text_of(c, "status")))
            continue;
        if (!any)
            vc_text_add(&t, "<h2>What is wrong</h2>\n");
        any = true;
        add_failure(&t, r, c);
    }
    add_histogram(&t, r);
    add_table(&t, r);
    vc_text_add(&t, "<script>%s</script></html>\n", script);
    return vc_text_save(&t, path, err);
}
