/* One safetensors file: header rules and tensor ranges (clause F2.1..F2.6).
 *
 * Layout: u64 little-endian N, N bytes of JSON, data. Data start is exactly
 * 8 + N, aligned or not. Nothing is allocated by a number read from the file
 * before that number was checked against the file's size. After parsing every
 * tensor's range lies inside the file, fits its shape and type, and the ranges
 * cover the data without hole, overlap or rest.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

typedef struct extent {
    uint64_t begin, end; /* within the data section */
    const char *name;
} extent;

int vr_io_by_name(const void *a, const void *b)
{
    const vr_named_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* clause F2.1: the length field and the place of the header */
static vr_status read_header(const char *path, const vr_io_blob *b, json_t **root,
                             uint64_t *data_start, vr_error *err)
{
    const char *note = vr_io_kind_note(b->data, b->size);
    if (b->size == 0)
        return vr_fail(err, VR_E_FORMAT, "%s: is empty; a safetensors file was expected",
                       SHOW_PATH(path));
    if (b->size < 8)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: has %zu bytes; a safetensors file starts with an 8-byte header "
                       "length%s",
                       SHOW_PATH(path), b->size, note);
    uint64_t n;
    memcpy(&n, b->data, sizeof n);
    if (n > VR_SAFETENSORS_MAX_HEADER)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: header length %llu is over the limit of %u bytes; this is not a "
                       "safetensors file%s",
                       SHOW_PATH(path), (ull)n, VR_SAFETENSORS_MAX_HEADER, note);
    if (n > b->size - 8)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: truncated: header needs bytes 8..%llu, file has %zu%s",
                       SHOW_PATH(path), (ull)n + 8, b->size, note);
    if (n == 0 || b->data[8] != '{')
        return vr_fail(err, VR_E_FORMAT,
                       "%s: header of %llu bytes at byte 8 does not start with '{'%s",
                       SHOW_PATH(path), (ull)n, note);
    *data_start = 8 + n;
    return vr_io_json_parse(path, b->data + 8, (size_t)n, 8, false, root, err);
}

/* A non-negative integer; 1.5, 1e3, -1, true and "1" are none. */
static bool get_u63(const json_t *v, uint64_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

static vr_status read_shape(const char *path, const char *name, const json_t *v, vr_tensor *t,
                            vr_error *err)
{
    if (!json_is_array(v))
        return vr_fail(err, VR_E_FORMAT,
                       "%s: tensor '%s': 'shape' is %s; a list of integers is needed",
                       SHOW_PATH(path), SHOW_NAME(name), vr_io_json_kind(v));
    size_t rank = json_array_size(v);
    if (rank > VR_MAX_RANK)
        return vr_fail(err, VR_E_UNSUPPORTED, "%s: tensor '%s' has %zu dimensions; at most %d",
                       SHOW_PATH(path), SHOW_NAME(name), rank, VR_MAX_RANK);
    t->rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        uint64_t d;
        if (!get_u63(json_array_get(v, i), &d))
            return vr_fail(err, VR_E_FORMAT,
                           "%s: tensor '%s': shape[%zu] is not an integer >= 0",
                           SHOW_PATH(path), SHOW_NAME(name), i);
        t->dim[i] = (int64_t)d;
    }
    return VR_OK;
}

static vr_status read_range(const char *path, const char *name, const json_t *v, extent *x,
                            vr_error *err)
{
    if (!json_is_array(v) || json_array_size(v) != 2)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: tensor '%s': 'data_offsets' is %s of %zu; a list of two integers "
                       "[begin, end] is needed",
                       SHOW_PATH(path), SHOW_NAME(name), vr_io_json_kind(v), json_array_size(v));
    if (!get_u63(json_array_get(v, 0), &x->begin) || !get_u63(json_array_get(v, 1), &x->end))
        return vr_fail(err, VR_E_FORMAT,
                       "%s: tensor '%s': 'data_offsets' are not both integers >= 0",
                       SHOW_PATH(path), SHOW_NAME(name));
    if (x->begin > x->end)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: tensor '%s': data_offsets [%llu, %llu] run backwards",
                       SHOW_PATH(path), SHOW_NAME(name), (ull)x->begin, (ull)x->end);
    return VR_OK;
}

/* clause F2.4: the range is as long as shape and type say */
static vr_status check_size(const char *path, const vr_named_tensor *n, const extent *x,
                            vr_error *err)
{
    int64_t count;
    char shape[160];
    vr_tensor_describe(&n->tensor, shape, sizeof shape);
    if (vr_tensor_count(&n->tensor, &count, NULL))
        return vr_fail(err, VR_E_FORMAT, "%s: tensor '%s': shape %s has more than 2^62 elements",
                       SHOW_PATH(path), SHOW_NAME(n->name), shape);
    if (n->tensor.dtype == VR_DTYPE_NONE)
        return VR_OK; /* an element size we do not know */
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)count, (uint64_t)vr_dtype_size(n->tensor.dtype), &bytes))
        bytes = UINT64_MAX;
    if (bytes != x->end - x->begin)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: tensor '%s': %s needs %llu bytes, its data_offsets [%llu, %llu] "
                       "hold %llu",
                       SHOW_PATH(path), SHOW_NAME(n->name), shape, (ull)bytes, (ull)x->begin,
                       (ull)x->end, (ull)(x->end - x->begin));
    return VR_OK;
}

static vr_status read_tensor(const char *path, const char *name, const json_t *entry,
                             const vr_io_blob *b, uint64_t data_start, vr_named_tensor *out,
                             extent *x, vr_error *err)
{
    *out = (vr_named_tensor){.name = name, .file = path};
    if (!json_is_object(entry))
        return vr_fail(err, VR_E_FORMAT,
                       "%s: tensor '%s' is %s; an object with dtype, shape and data_offsets is "
                       "needed",
                       SHOW_PATH(path), SHOW_NAME(name), vr_io_json_kind(entry));
    const json_t *dtype = json_object_get(entry, "dtype");
    if (!json_is_string(dtype))
        return vr_fail(err, VR_E_FORMAT, "%s: tensor '%s': 'dtype' is %s; a string is needed",
                       SHOW_PATH(path), SHOW_NAME(name), vr_io_json_kind(dtype));
    out->dtype_text = json_string_value(dtype);
    out->tensor.dtype = vr_dtype_from_name(out->dtype_text);
    *x = (extent){.name = name};
    vr_status s = read_shape(path, name, json_object_get(entry, "shape"), &out->tensor, err);
    if (!s)
        s = read_range(path, name, json_object_get(entry, "data_offsets"), x, err);
    if (!s)
        s = check_size(path, out, x, err);
    if (s)
        return s;
    uint64_t room = b->size - data_start;
    if (x->end > room)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: truncated: tensor '%s' needs bytes %llu..%llu, file has %zu",
                       SHOW_PATH(path), SHOW_NAME(name), (ull)(data_start + x->begin),
                       (ull)(data_start + x->end), b->size);
    out->offset = data_start + x->begin;
    out->tensor.data = (void *)(uintptr_t)(b->data + out->offset);
    return VR_OK;
}

static int by_place(const void *a, const void *b)
{
    const extent *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end); /* empty ones first */
}

/* clause F2.5: no hole, no overlap, nothing after the last tensor */
static vr_status check_cover(const char *path, extent *x, int64_t count, uint64_t room,
                             vr_error *err)
{
    qsort(x, (size_t)count, sizeof *x, by_place);
    uint64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        if (x[i].begin < at)
            return vr_fail(err, VR_E_FORMAT,
                           "%s: tensors '%s' and '%s' overlap: the second begins at data byte "
                           "%llu, the first ends at %llu",
                           SHOW_PATH(path), SHOW_NAME(x[i - 1].name), SHOW_NAME(x[i].name),
                           (ull)x[i].begin, (ull)at);
        if (x[i].begin > at)
            return vr_fail(err, VR_E_FORMAT,
                           "%s: a hole of %llu bytes before tensor '%s': it begins at data byte "
                           "%llu, not %llu",
                           SHOW_PATH(path), (ull)(x[i].begin - at), SHOW_NAME(x[i].name),
                           (ull)x[i].begin, (ull)at);
        at = x[i].end;
    }
    if (at < room)
        return vr_fail(err, VR_E_FORMAT, "%s: has %llu extra bytes after the last tensor",
                       SHOW_PATH(path), (ull)(room - at));
    return VR_OK;
}

static vr_status check_metadata(const char *path, json_t *meta, vr_error *err)
{
    if (!json_is_object(meta))
        return vr_fail(err, VR_E_FORMAT, "%s: '__metadata__' is %s; an object is needed",
                       SHOW_PATH(path), vr_io_json_kind(meta));
    const char *key;
    json_t *value;
    json_object_foreach(meta, key, value)
        if (!json_is_string(value))
            return vr_fail(err, VR_E_FORMAT,
                           "%s: '__metadata__' key '%s' is %s; only strings are allowed",
                           SHOW_PATH(path), SHOW_NAME(key), vr_io_json_kind(value));
    return VR_OK;
}

static vr_status read_tensors(vr_io_shard *s, uint64_t data_start, extent *x, vr_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(s->header, key, value) {
        vr_status st;
        if (strcmp(key, "__metadata__") == 0)
            st = check_metadata(s->path, value, err);
        else {
            st = read_tensor(s->path, key, value, &s->blob, data_start, &s->tensor[s->count],
                             &x[s->count], err);
            s->count++;
        }
        if (st)
            return st;
    }
    qsort(s->tensor, (size_t)s->count, sizeof *s->tensor, vr_io_by_name);
    return check_cover(s->path, x, s->count, s->blob.size - data_start, err);
}

vr_status vr_io_shard_parse(const char *path, vr_io_blob blob, vr_io_shard *out, vr_error *err)
{
    uint64_t data_start = 0;
    extent *x = NULL;
    *out = (vr_io_shard){.blob = blob};
    vr_status s = VR_E_NOMEM;
    out->path = strdup(path);
    if (!out->path) {
        vr_fail(err, s, "%s: no memory for its path", SHOW_PATH(path));
        goto done;
    }
    s = read_header(path, &out->blob, &out->header, &data_start, err);
    if (s)
        goto done;
    size_t keys = json_object_size(out->header) + 1; /* + 1: never a zero-size block */
    out->tensor = calloc(keys, sizeof *out->tensor);
    x = calloc(keys, sizeof *x);
    s = out->tensor && x ? read_tensors(out, data_start, x, err)
                         : vr_fail(err, VR_E_NOMEM, "%s: no memory for %zu tensor records",
                                   SHOW_PATH(path), keys);
done:
    free(x);
    if (s)
        vr_io_shard_close(out);
    return s;
}

void vr_io_shard_close(vr_io_shard *s)
{
    free(s->tensor);
    json_decref(s->header);
    vr_io_blob_close(&s->blob);
    free(s->path);
    *s = (vr_io_shard){0};
}

const vr_named_tensor *vr_io_shard_find(const vr_io_shard *s, const char *name)
{
    vr_named_tensor key = {.name = name};
    return s->count ? bsearch(&key, s->tensor, (size_t)s->count, sizeof key, vr_io_by_name) : NULL;
}
