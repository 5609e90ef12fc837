/* Writing one safetensors file (clause F2.8).
 *
 * Header and data go out in the order the caller gives; data is streamed from
 * the caller's tensors, so nothing but the header is held. The header obeys the
 * reader's own limit and is padded with spaces to a multiple of 8, so data of a
 * homogeneous file is aligned. Same input, same bytes. The text is built here:
 * Jansson 2.14 can lose parts of a dump when memory runs out.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of one tensor; refuses what the reader would refuse. */
static vr_status tensor_bytes(const char *path, const char *name, const vr_tensor *t,
                              uint64_t *bytes, vr_error *err)
{
    int64_t count;
    if (vr_dtype_size(t->dtype) == 0)
        return vr_fail(err, VR_E_DTYPE, "%s: tensor '%s' has no element type", SHOW_PATH(path),
                       SHOW_NAME(name));
    if (t->rank < 0 || t->rank > VR_MAX_RANK || vr_tensor_count(t, &count, NULL))
        return vr_fail(err, VR_E_SHAPE, "%s: tensor '%s' has no valid shape", SHOW_PATH(path),
                       SHOW_NAME(name));
    if (__builtin_mul_overflow((uint64_t)count, (uint64_t)vr_dtype_size(t->dtype), bytes))
        return vr_fail(err, VR_E_SHAPE, "%s: tensor '%s' is larger than 2^64 bytes",
                       SHOW_PATH(path), SHOW_NAME(name));
    if (*bytes && !t->data)
        return vr_fail(err, VR_E_ARGUMENT, "%s: tensor '%s' has no data", SHOW_PATH(path),
                       SHOW_NAME(name));
    return VR_OK;
}

/* Header text that grows; `failed` is sticky, so that callers check once. */
typedef struct text {
    char *p;
    size_t n, room;
    bool failed;
} text;

static void add(text *t, const char *bytes, size_t n)
{
    if (!t->failed && n > t->room - t->n) {
        size_t room = (t->n + n) * 2;
        char *p = realloc(t->p, room);
        t->failed = !p;
        t->p = p ? p : t->p;
        t->room = p ? room : t->room;
    }
    if (t->failed)
        return;
    memcpy(t->p + t->n, bytes, n);
    t->n += n;
}

static void add_text(text *t, const char *s)
{
    add(t, s, strlen(s));
}

static void add_number(text *t, uint64_t v)
{
    char digits[24];
    add(t, digits, (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)v));
}

/* A JSON string: UTF-8 as it is, control characters escaped. */
static void add_quoted(text *t, const char *s)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    add(t, "\"", 1);
    for (; *s; s++) {
        const char *special = strchr(from, *s);
        char escaped[8];
        if (special)
            add(t, (char[2]){'\\', to[special - from]}, 2);
        else if ((unsigned char)*s < 0x20)
            add(t, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)*s));
        else
            add(t, s, 1);
    }
    add(t, "\"", 1);
}

static vr_status add_metadata(const char *path, text *t, const vr_metadata *meta, int64_t count,
                              vr_error *err)
{
    if (count <= 0)
        return VR_OK;
    add_text(t, "\"__metadata__\":{");
    for (int64_t i = 0; i < count; i++) {
        if (!vr_io_is_utf8(meta[i].key) || !vr_io_is_utf8(meta[i].value))
            return vr_fail(err, VR_E_ARGUMENT,
                           "%s: metadata key '%s' or its value is not valid UTF-8",
                           SHOW_PATH(path), SHOW_NAME(meta[i].key));
        for (int64_t k = 0; k < i; k++) /* a handful of keys */
            if (strcmp(meta[i].key, meta[k].key) == 0)
                return vr_fail(err, VR_E_ARGUMENT, "%s: two metadata keys are '%s'",
                               SHOW_PATH(path), SHOW_NAME(meta[i].key));
        add_text(t, i ? "," : "");
        add_quoted(t, meta[i].key);
        add_text(t, ":");
        add_quoted(t, meta[i].value);
    }
    add_text(t, "}");
    return VR_OK;
}

static vr_status add_tensor(const char *path, text *h, const char *name, const vr_tensor *t,
                            uint64_t *at, vr_error *err)
{
    uint64_t bytes, end;
    vr_status s = tensor_bytes(path, name, t, &bytes, err);
    if (s)
        return s;
    if (!vr_io_is_utf8(name))
        return vr_fail(err, VR_E_ARGUMENT, "%s: tensor name '%s' is not valid UTF-8",
                       SHOW_PATH(path), SHOW_NAME(name));
    if (strcmp(name, "__metadata__") == 0)
        return vr_fail(err, VR_E_ARGUMENT, "%s: a tensor may not be named '__metadata__'",
                       SHOW_PATH(path));
    if (__builtin_add_overflow(*at, bytes, &end) || end > INT64_MAX)
        return vr_fail(err, VR_E_SHAPE, "%s: more than 2^63 bytes of tensors", SHOW_PATH(path));
    add_text(h, h->n > 1 ? "," : "");
    add_quoted(h, name);
    add_text(h, ":{\"dtype\":");
    add_quoted(h, vr_dtype_name(t->dtype));
    add_text(h, ",\"shape\":[");
    for (int32_t i = 0; i < t->rank; i++) {
        add_text(h, i ? "," : "");
        add_number(h, (uint64_t)t->dim[i]);
    }
    add_text(h, "],\"data_offsets\":[");
    add_number(h, *at);
    add_text(h, ",");
    add_number(h, end);
    add_text(h, "]}");
    *at = end;
    return VR_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static vr_status check_distinct(const char *path, const char *const *names, int64_t count,
                                vr_error *err)
{
    if (count < 2)
        return VR_OK;
    const char **sorted = calloc((size_t)count, sizeof *sorted);
    if (!sorted)
        return vr_fail(err, VR_E_NOMEM, "%s: no memory for its header", SHOW_PATH(path));
    memcpy(sorted, names, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_text);
    vr_status s = VR_OK;
    for (int64_t i = 1; i < count && !s; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            s = vr_fail(err, VR_E_ARGUMENT, "%s: two tensors are named '%s'", SHOW_PATH(path),
                        SHOW_NAME(sorted[i]));
    free(sorted);
    return s;
}

/* The whole header text, not padded. */
static vr_status build_header(const char *path, const char *const *names,
                              const vr_tensor *tensors, int64_t count, const vr_metadata *meta,
                              int64_t meta_count, text *h, vr_error *err)
{
    uint64_t at = 0;
    vr_status s = check_distinct(path, names, count, err);
    add_text(h, "{");
    if (!s)
        s = add_metadata(path, h, meta, meta_count, err);
    for (int64_t i = 0; !s && i < count; i++)
        s = add_tensor(path, h, names[i], &tensors[i], &at, err);
    add_text(h, "}");
    if (!s && h->failed)
        s = vr_fail(err, VR_E_NOMEM, "%s: no memory for its header", SHOW_PATH(path));
    return s;
}

static vr_status write_header(vr_file_writer *w, const char *path, const text *h, vr_error *err)
{
    static const char spaces[] = "        ";
    size_t pad = (8 - h->n % 8) % 8;
    uint64_t n = h->n + pad;
    if (n > VR_SAFETENSORS_MAX_HEADER)
        return vr_fail(err, VR_E_UNSUPPORTED,
                       "%s: its header would have %llu bytes; readers take at most %u",
                       SHOW_PATH(path), (unsigned long long)n, VR_SAFETENSORS_MAX_HEADER);
    vr_status s = vr_file_write(w, &n, sizeof n, err);
    if (!s)
        s = vr_file_write(w, h->p, h->n, err);
    if (!s)
        s = vr_file_write(w, spaces, pad, err);
    return s;
}

vr_status vr_safetensors_write(const char *path, const char *const *names,
                               const vr_tensor *tensors, int64_t count, const vr_metadata *meta,
                               int64_t meta_count, vr_error *err)
{
    text h = {0};
    vr_file_writer *w = NULL;
    vr_status s = build_header(path, names, tensors, count, meta, meta_count, &h, err);
    if (!s)
        s = vr_file_create(path, &w, err);
    if (!s)
        s = write_header(w, path, &h, err);
    for (int64_t i = 0; !s && i < count; i++) {
        uint64_t bytes;
        s = tensor_bytes(path, names[i], &tensors[i], &bytes, err);
        if (!s && bytes)
            s = vr_file_write(w, tensors[i].data, (size_t)bytes, err);
    }
    free(h.p);
    if (s) {
        vr_file_abandon(w);
        return s;
    }
    return vr_file_commit(w, err);
}
