/* golden/json.c: strict reading of small JSON files, with a line in every error.
 *
 * Jansson keeps no positions after parsing, so the place of a key is found again
 * by walking the text, which is known to be valid by then: member i of an object
 * is the i-th in the text, however its key is spelt.
 *
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

vr_status vg_doc_open(const char *path, vg_doc *out, vr_error *err)
{
    memset(out, 0, sizeof *out);
    vr_status s = vg_file_read(path, &out->text, &out->size, err);
    if (s)
        return s;
    json_error_t e = {0};
    out->path = strdup(path);
    out->root = json_loadb(out->text, out->size, JSON_REJECT_DUPLICATES, &e);
    if (!out->path || (!out->root && json_error_code(&e) == json_error_out_of_memory))
        s = vr_fail(err, VR_E_NOMEM, "%s: no memory to read it", path);
    else if (!out->root)
        s = vr_fail(err, VR_E_FORMAT, "%s:%d:%d: not valid JSON: %s", path, e.line, e.column, e.text);
    else if (!json_is_object(out->root))
        s = vr_fail(err, VR_E_FORMAT, "%s:1: an object {...} is needed", path);
    if (s)
        vg_doc_close(out);
    return s;
}

void vg_doc_close(vg_doc *d)
{
    json_decref(d->root);
    free(d->text);
    free(d->path);
    memset(d, 0, sizeof *d);
}

/* ---- places ------------------------------------------------------------------ */

static size_t skip_space(const vg_doc *d, size_t i)
{
    while (i < d->size && strchr(" \t\r\n", d->text[i]))
        i++;
    return i;
}

static size_t skip_value(const vg_doc *d, size_t i)
{
    int depth = 0;
    for (; i < d->size; i++) {
        const char c = d->text[i];
        if (c == '"') {
            for (i++; i < d->size && d->text[i] != '"'; i++)
                i += d->text[i] == '\\';
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth-- == 0)
                return i; /* the end of what encloses the value */
        } else if (c == ',' && depth == 0) {
            return i;
        }
    }
    return i;
}

/* Member or element i of the object or list at `at`: key (objects) and value. */
static void child_at(const vg_doc *d, size_t at, size_t i, size_t *key, size_t *value)
{
    const bool object = d->text[at] == '{';
    size_t p = skip_space(d, at + 1);
    for (;; i--) {
        *key = p;
        if (object) {
            p = skip_value(d, p); /* over `"key": value` to the comma ... */
            size_t q = *key + 1;  /* ... and back to what follows the key */
            while (q < p && d->text[q] != '"')
                q += d->text[q] == '\\' ? 2 : 1;
            q = skip_space(d, q + 1);
            *value = skip_space(d, q + 1);
        } else {
            *value = p;
            p = skip_value(d, p);
        }
        if (i == 0 || p >= d->size)
            return;
        p = skip_space(d, p + 1);
    }
}

static int line_of(const vg_doc *d, size_t at)
{
    int line = 1;
    for (size_t i = 0; i < at && i < d->size; i++)
        line += d->text[i] == '\n';
    return line;
}

/* Number of a key among the members; -1 when absent. */
static long number_of(const vg_reader *r, const char *key)
{
    long i = 0;
    const char *k;
    json_t *v;
    json_object_foreach((json_t *)r->object, k, v) {
        if (strcmp(k, key) == 0)
            return i;
        i++;
    }
    return -1;
}

/* ---- reading ------------------------------------------------------------------- */

static void begin(vg_reader *r, const vg_doc *d, const json_t *object, size_t at, vr_error *err)
{
    memset(r, 0, sizeof *r);
    r->doc = d;
    r->object = object;
    r->at = at;
    r->err = err;
}

void vg_read_root(vg_reader *r, const vg_doc *d, vr_error *err)
{
    begin(r, d, d->root, skip_space(d, 0), err);
}

int vg_read_line(const vg_reader *r)
{
    return line_of(r->doc, r->at);
}

vr_status vg_read_fail(vg_reader *r, const char *key, const char *fmt, ...)
{
    if (r->status)
        return r->status;
    char text[400];
    size_t at = r->at, value;
    const long n = key ? number_of(r, key) : -1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n >= 0)
        child_at(r->doc, r->at, (size_t)n, &at, &value);
    r->status = vr_fail(r->err, VR_E_FORMAT, "%s:%d: %s%s%s%.40s%s%s", r->doc->path, line_of(r->doc, at), r->what,
                        *r->what ? ": " : "", key ? "'" : "", key ? key : "", key ? "' " : "", text);
    return r->status;
}

static const char *kind(const json_t *v)
{
    static const char *const text[] = {[JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "a string",
                                       [JSON_INTEGER] = "an integer", [JSON_REAL] = "a real number",
                                       [JSON_TRUE] = "true", [JSON_FALSE] = "false", [JSON_NULL] = "null"};
    return text[json_typeof(v)];
}

/* The value, noted as known; NULL when absent or after a failure. */
static const json_t *take(vg_reader *r, const char *key, bool required)
{
    if (r->status)
        return NULL;
    if (r->keys < (int)(sizeof r->key / sizeof *r->key))
        r->key[r->keys++] = key;
    const json_t *v = json_object_get(r->object, key);
    if (!v && required)
        vg_read_fail(r, NULL, "key '%s' is missing", key);
    return v;
}

static void wrong_kind(vg_reader *r, const char *key, const json_t *v, const char *need)
{
    vg_read_fail(r, key, "is %s; %s is needed", kind(v), need);
}

bool vg_read_text(vg_reader *r, const char *key, bool required, char *buf, size_t size)
{
    const json_t *v = take(r, key, required);
    if (!v)
        return false;
    const char *s = json_string_value(v);
    if (!s)
        wrong_kind(r, key, v, "a string");
    else if (json_string_length(v) >= size)
        vg_read_fail(r, key, "has %zu characters; at most %zu fit", json_string_length(v), size - 1);
    for (size_t i = 0; !r->status && s[i]; i++) /* plain text: it is written out again as it is */
        if (s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\')
            vg_read_fail(r, key, "has the byte 0x%02x; printable ASCII without quotes and backslashes is needed",
                         (unsigned)(unsigned char)s[i]);
    if (r->status)
        return false;
    memcpy(buf, s, strlen(s) + 1);
    return true;
}

bool vg_read_digest(vg_reader *r, const char *key, char hex[65])
{
    char text[80];
    if (!vg_read_text(r, key, true, text, sizeof text))
        return false;
    if (strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64) {
        vg_read_fail(r, key, "is no SHA-256: 64 digits 0-9, a-f are needed");
        return false;
    }
    memcpy(hex, text, 65);
    return true;
}

static bool integer(vg_reader *r, const char *key, const json_t *v, int64_t lo, int64_t hi, int64_t *out)
{
    if (!json_is_integer(v)) {
        wrong_kind(r, key, v, "an integer");
    } else if (json_integer_value(v) < lo || json_integer_value(v) > hi) {
        vg_read_fail(r, key, "is %lld; an integer from %lld to %lld is needed", (long long)json_integer_value(v),
                     (long long)lo, (long long)hi);
    } else {
        *out = json_integer_value(v);
        return true;
    }
    return false;
}

bool vg_read_int(vg_reader *r, const char *key, bool required, int64_t lo, int64_t hi, int64_t *out)
{
    const json_t *v = take(r, key, required);
    return v && integer(r, key, v, lo, hi, out);
}

bool vg_read_ints(vg_reader *r, const char *key, bool required, bool one, int n, int64_t lo, int64_t hi, int64_t *out)
{
    const json_t *v = take(r, key, required);
    if (!v)
        return false;
    if (one && json_is_integer(v)) {
        if (!integer(r, key, v, lo, hi, out))
            return false;
        for (int i = 1; i < n; i++)
            out[i] = out[0];
        return true;
    }
    if (!json_is_array(v) || json_array_size(v) != (size_t)n) {
        vg_read_fail(r, key, "is %s; %sa list of %d integers is needed",
                     json_is_array(v) ? "a list of another length" : kind(v), one ? "an integer or " : "", n);
        return false;
    }
    for (int i = 0; i < n; i++)
        if (!integer(r, key, json_array_get(v, (size_t)i), lo, hi, &out[i]))
            return false;
    return true;
}

bool vg_read_real(vg_reader *r, const char *key, double lo, double hi, double *out)
{
    const json_t *v = take(r, key, true);
    if (!v)
        return false;
    const double x = json_number_value(v);
    if (!json_is_number(v)) {
        wrong_kind(r, key, v, "a number");
    } else if (!(x >= lo && x <= hi)) {
        vg_read_fail(r, key, "is %g; a number from %g to %g is needed", x, lo, hi);
    } else {
        *out = x;
        return true;
    }
    return false;
}

bool vg_read_bool(vg_reader *r, const char *key, bool *out)
{
    const json_t *v = take(r, key, false);
    if (v && !json_is_boolean(v))
        wrong_kind(r, key, v, "true or false");
    if (!v || r->status)
        return false;
    *out = json_is_true(v);
    return true;
}

bool vg_read_object(vg_reader *r, const char *key, bool required, vg_reader *child)
{
    const json_t *v = take(r, key, required);
    if (v && !json_is_object(v))
        wrong_kind(r, key, v, "an object");
    if (!v || r->status)
        return false;
    size_t at, value;
    child_at(r->doc, r->at, (size_t)number_of(r, key), &at, &value);
    begin(child, r->doc, v, value, r->err);
    snprintf(child->what, sizeof child->what, "%s", r->what);
    return true;
}

bool vg_read_list(vg_reader *r, const char *key, const json_t **list, size_t *at)
{
    const json_t *v = take(r, key, true);
    if (v && !json_is_array(v))
        wrong_kind(r, key, v, "a list");
    else if (v && json_array_size(v) == 0)
        vg_read_fail(r, key, "is empty; at least one entry is needed");
    if (!v || r->status)
        return false;
    size_t key_at;
    child_at(r->doc, r->at, (size_t)number_of(r, key), &key_at, at);
    *list = v;
    return true;
}

void vg_read_element(vg_reader *r, const vg_doc *d, const json_t *list, size_t list_at, size_t i, vr_error *err)
{
    size_t key, at;
    child_at(d, list_at, i, &key, &at);
    const json_t *v = json_array_get(list, i);
    begin(r, d, v, at, err);
    if (!json_is_object(v))
        vg_read_fail(r, NULL, "entry %zu of the list is %s; an object {...} is needed", i + 1, kind(v));
}

vr_status vg_read_end(vg_reader *r)
{
    const char *k;
    json_t *v;
    if (r->status)
        return r->status;
    json_object_foreach((json_t *)r->object, k, v) {
        int i = 0;
        while (i < r->keys && strcmp(r->key[i], k) != 0)
            i++;
        if (i < r->keys)
            continue;
        char known[300] = "";
        for (i = 0; i < r->keys; i++) {
            const size_t n = strlen(known);
            snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", r->key[i]);
        }
        return vg_read_fail(r, k, "is no key known here; known: %s", known);
    }
    return VR_OK;
}
