/* Strict JSON for headers, indexes and configs (clauses F2, F5).
 *
 * Jansson refuses invalid UTF-8, NUL inside strings, NaN, integers beyond 64
 * bits and nesting deeper than 2048; duplicate keys are refused by flag. The
 * library keeps no positions after parsing, so the line of a key is found again
 * by a scan over text already known to be valid.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <string.h>

vr_status vr_io_json_parse(const char *path, const uint8_t *text, size_t size, uint64_t base,
                           bool lines, json_t **root, vr_error *err)
{
    json_error_t e = {0};
    *root = json_loadb((const char *)text, size, JSON_REJECT_DUPLICATES, &e);
    if (!*root) {
        /* A failed allocation deep in the parser leaves the text empty. */
        if (json_error_code(&e) == json_error_out_of_memory || e.text[0] == '\0')
            return vr_fail(err, VR_E_NOMEM, "%s: no memory to parse %zu bytes of JSON",
                           SHOW_PATH(path), size);
        if (lines)
            return vr_fail(err, VR_E_FORMAT, "%s:%d:%d: not valid JSON: %s", SHOW_PATH(path),
                           e.line, e.column, e.text);
        return vr_fail(err, VR_E_FORMAT, "%s: header is not valid JSON at byte %llu: %s",
                       SHOW_PATH(path), (unsigned long long)base + (unsigned long long)e.position,
                       e.text);
    }
    if (!json_is_object(*root)) {
        const char *kind = vr_io_json_kind(*root);
        json_decref(*root);
        *root = NULL;
        return vr_fail(err, VR_E_FORMAT, "%s: the JSON text is %s; an object {...} is needed",
                       SHOW_PATH(path), kind);
    }
    return VR_OK;
}

/* Index just after the string that starts at text[i] == '"'. */
static size_t skip_string(const uint8_t *text, size_t size, size_t i)
{
    for (i++; i < size && text[i] != '"'; i++)
        if (text[i] == '\\')
            i++;
    return i + 1;
}

int vr_io_json_line(const uint8_t *text, size_t size, const char *key)
{
    size_t len = strlen(key);
    int line = 1, depth = 0;
    for (size_t i = 0; i < size;) {
        uint8_t c = text[i];
        if (c == '"') {
            size_t end = skip_string(text, size, i);
            /* A value of the same text is followed by ',' or '}', not ':'. */
            if (depth == 1 && end <= size && end - i == len + 2 &&
                memcmp(text + i + 1, key, len) == 0) {
                size_t j = end;
                while (j < size && (text[j] == ' ' || text[j] == '\t' || text[j] == '\n' ||
                                    text[j] == '\r'))
                    j++;
                if (j < size && text[j] == ':')
                    return line;
            }
            i = end; /* a JSON string holds no raw line break */
            continue;
        }
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        line += c == '\n';
        i++;
    }
    return 0;
}

const char *vr_io_json_kind(const json_t *v)
{
    if (!v)
        return "absent";
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "unknown";
}
