/* Waivers. SPDX-License-Identifier: MIT */
#include "runner/waiver.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

static int line_of(const char *text, size_t size, const char *word)
{
    int line = 1;
    const size_t n = word ? strlen(word) : 0;
    for (size_t i = 0; n && i + n <= size; i++) {
        if (memcmp(text + i, word, n) == 0)
            return line;
        line += text[i] == '\n';
    }
    return 1;
}

/* Days of a date since 1970, -1 when it is none. */
static int64_t days(const char *date)
{
    int y, m, d, n = 0;
    if (sscanf(date, "%4d-%2d-%2d%n", &y, &m, &d, &n) != 3 || n != 10 || date[10] || y < 1970 || m < 1 || m > 12 || d < 1 || d > 31)
        return -1;
    struct tm t = {.tm_year = y - 1900, .tm_mon = m - 1, .tm_mday = d};
    const time_t at = timegm(&t);
    return t.tm_mday == d ? (int64_t)(at / 86400) : -1;
}

typedef struct source {
    const char *name, *text;
    size_t size;
    const char *suite, *today;
} source;

static vr_status wrong(const source *s, const char *where, const char *key, const char *want, vr_error *err)
{
    return vr_fail(err, VR_E_FORMAT, "%s:%d: waiver, key '%s': want %s", s->name, line_of(s->text, s->size, where ? where : key),
                   key, want);
}

static vr_status parse_one(const source *s, json_t *j, vc_waiver *w, vr_error *err)
{
    struct {
        const char *key;
        char *to;
        size_t room;
    } field[] = {{"case", w->pattern, sizeof w->pattern}, {"backend", w->backend, sizeof w->backend},
                 {"status", w->status, sizeof w->status}, {"reason", w->reason, sizeof w->reason},
                 {"issue", w->issue, sizeof w->issue}, {"owner", w->owner, sizeof w->owner},
                 {"expires", w->expires, sizeof w->expires}};
    const char *key, *where = json_string_value(json_object_get(j, "case"));
    json_t *v;
    *w = (vc_waiver){.bound = -1};
    if (!json_is_object(j))
        return wrong(s, NULL, "waivers", "objects", err);
    json_object_foreach(j, key, v) {
        bool known = strcmp(key, "bound") == 0 || strcmp(key, "suite") == 0;
        for (size_t i = 0; i < sizeof field / sizeof *field; i++)
            known = known || strcmp(key, field[i].key) == 0;
        if (!known)
            return wrong(s, where, key, "no such key; case, backend, suite, status, bound, reason, issue, owner, expires", err);
    }
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        const char *text = json_string_value(json_object_get(j, field[i].key));
        if (!text || !*text || strlen(text) >= field[i].room)
            return wrong(s, where, field[i].key, "a text, neither empty nor too long", err);
        snprintf(field[i].to, field[i].room, "%s", text);
    }
    const char *suite = json_string_value(json_object_get(j, "suite"));
    if (!suite || strcmp(suite, s->suite) != 0)
        return vr_fail(err, VR_E_FORMAT, "%s:%d: waiver for suite '%s'; this is %s", s->name, line_of(s->text, s->size, where),
                       suite ? suite : "missing", s->suite);
    static const char *const statuses[] = {"fail", "crash", "timeout", "mistrusted"};
    bool known = false;
    for (int i = 0; i < 4; i++)
        known = known || strcmp(w->status, statuses[i]) == 0;
    if (!known)
        return wrong(s, where, "status", "fail, crash, timeout or mistrusted", err);
    json_t *bound = json_object_get(j, "bound");
    if (bound && !json_is_number(bound))
        return wrong(s, where, "bound", "a number", err);
    w->bound = bound ? json_number_value(bound) : -1;
    const int64_t end = days(w->expires), now = days(s->today);
    if (end < 0)
        return wrong(s, where, "expires", "a date YYYY-MM-DD", err);
    if (end < now)
        return vr_fail(err, VR_E_FORMAT, "%s:%d: the waiver of '%s' expired on %s; want it renewed or the fault mended", s->name,
                       line_of(s->text, s->size, where), w->pattern, w->expires);
    if (end > now + 180)
        return wrong(s, where, "expires", "at most 180 days from today", err);
    return VR_OK;
}

vr_status vc_waivers_parse(const char *name, const char *text, size_t size, const char *suite, const char *today,
                           vc_waivers *out, vr_error *err)
{
    json_error_t je;
    const source s = {name, text, size, suite, today};
    *out = (vc_waivers){.item = NULL};
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &je), *v;
    if (!root)
        return vr_fail(err, VR_E_FORMAT, "%s:%d: %s", name, je.line, je.text);
    const char *schema = json_string_value(json_object_get(root, "schema")), *key;
    json_t *list = json_object_get(root, "waivers");
    vr_status st = VR_OK;
    json_object_foreach(root, key, v)
        if (st == VR_OK && strcmp(key, "schema") != 0 && strcmp(key, "waivers") != 0)
            st = wrong(&s, key, key, "no such key; schema and waivers", err);
    if (st == VR_OK && (!schema || strcmp(schema, "vaeproof-waivers/1") != 0))
        st = vr_fail(err, VR_E_FORMAT, "%s:%d: schema '%s'; want vaeproof-waivers/1", name, line_of(text, size, "schema"),
                     schema ? schema : "missing");
    if (st == VR_OK && !json_is_array(list))
        st = wrong(&s, NULL, "waivers", "an array", err);
    if (st == VR_OK) {
        out->item = calloc(json_array_size(list) + 1, sizeof *out->item);
        if (!out->item)
            st = vr_fail(err, VR_E_NOMEM, "no memory for waivers");
    }
    for (size_t i = 0; st == VR_OK && i < json_array_size(list); i++) {
        st = parse_one(&s, json_array_get(list, i), &out->item[i], err);
        out->count += st == VR_OK;
    }
    json_decref(root);
    if (st != VR_OK)
        vc_waivers_free(out);
    return st;
}

vr_status vc_waivers_load(const char *path, const char *suite, const char *today, vc_waivers *out, vr_error *err)
{
    FILE *f = fopen(path, "rb");
    char *text = malloc(1 << 20);
    *out = (vc_waivers){.item = NULL};
    vr_status s;
    if (!f || !text) {
        s = vr_fail(err, VR_E_IO, "cannot read waivers %s: %s", path, strerror(errno));
    } else {
        const size_t n = fread(text, 1, 1 << 20, f);
        s = n == 1 << 20 ? vr_fail(err, VR_E_FORMAT, "%s: more than a MiB of waivers", path)
                         : vc_waivers_parse(path, text, n, suite, today, out, err);
    }
    if (f)
        fclose(f);
    free(text);
    return s;
}

void vc_waivers_free(vc_waivers *w)
{
    free(w->item);
    *w = (vc_waivers){.item = NULL};
}

vc_waiver *vc_waiver_find(vc_waivers *w, const char *id, const char *backend)
{
    if (strncmp(id, "abi.", 4) == 0)
        return NULL;
    for (int64_t i = 0; i < w->count; i++)
        if (strcmp(w->item[i].backend, backend) == 0 && fnmatch(w->item[i].pattern, id, 0) == 0)
            return &w->item[i];
    return NULL;
}
