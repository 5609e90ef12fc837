/* Writing one safetensors file (clause F2.8).
 *
 * Header and data go out in the order the caller gives; data is streamed from
 * the caller's tensors, so nothing but the header is held. The header obeys the
 * reader's own limit and is padded with spaces to a multiple of 8, so data of a
 * homogeneous file is aligned. Same input, same bytes.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

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

static json_t *tensor_entry(const vr_tensor *t, uint64_t begin, uint64_t end)
{
    json_t *shape = json_array();
    for (int32_t i = 0; shape && i < t->rank; i++)
        if (json_array_append_new(shape, json_integer(t->dim[i])) != 0) {
            json_decref(shape);
            shape = NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", vr_dtype_name(t->dtype), "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static vr_status add_tensor(const char *path, json_t *root, const char *name, const vr_tensor *t,
                            uint64_t *at, vr_error *err)
{
    uint64_t bytes, end;
    vr_status s = tensor_bytes(path, name, t, &bytes, err);
    if (s)
        return s;
    if (strcmp(name, "__metadata__") == 0)
        return vr_fail(err, VR_E_ARGUMENT, "%s: a tensor may not be named '__metadata__'",
                       SHOW_PATH(path));
    if (json_object_get(root, name))
        return vr_fail(err, VR_E_ARGUMENT, "%s: two tensors are named '%s'", SHOW_PATH(path),
                       SHOW_NAME(name));
    if (__builtin_add_overflow(*at, bytes, &end) || end > INT64_MAX)
        return vr_fail(err, VR_E_SHAPE, "%s: more than 2^63 bytes of tensors", SHOW_PATH(path));
    json_t *entry = tensor_entry(t, *at, end);
    if (!entry)
        return vr_fail(err, VR_E_NOMEM, "%s: no memory for its header", SHOW_PATH(path));
    if (json_object_set_new(root, name, entry) != 0)
        return vr_fail(err, VR_E_ARGUMENT, "%s: tensor name '%s' is not valid UTF-8",
                       SHOW_PATH(path), SHOW_NAME(name));
    *at = end;
    return VR_OK;
}

static vr_status add_metadata(const char *path, json_t *root, const vr_metadata *meta,
                              int64_t count, vr_error *err)
{
    if (count <= 0)
        return VR_OK;
    json_t *object = json_object();
    if (!object || json_object_set_new(root, "__metadata__", object) != 0)
        return vr_fail(err, VR_E_NOMEM, "%s: no memory for its header", SHOW_PATH(path));
    for (int64_t i = 0; i < count; i++)
        if (json_object_set_new(object, meta[i].key, json_string(meta[i].value)) != 0)
            return vr_fail(err, VR_E_ARGUMENT, "%s: metadata key '%s' or its value is not UTF-8",
                           SHOW_PATH(path), meta[i].key ? SHOW_NAME(meta[i].key) : "");
    return VR_OK;
}

/* The whole header text, not padded; *text is freed with free(). */
static vr_status build_header(const char *path, const char *const *names,
                              const vr_tensor *tensors, int64_t count, const vr_metadata *meta,
                              int64_t meta_count, char **text, vr_error *err)
{
    uint64_t at = 0;
    json_t *root = json_object();
    vr_status s = root ? add_metadata(path, root, meta, meta_count, err)
                       : vr_fail(err, VR_E_NOMEM, "%s: no memory for its header",
                                 SHOW_PATH(path));
    for (int64_t i = 0; !s && i < count; i++)
        s = add_tensor(path, root, names[i], &tensors[i], &at, err);
    if (!s) {
        *text = json_dumps(root, JSON_COMPACT);
        if (!*text)
            s = vr_fail(err, VR_E_NOMEM, "%s: no memory for its header", SHOW_PATH(path));
    }
    json_decref(root);
    return s;
}

static vr_status write_header(vr_file_writer *w, const char *path, const char *text,
                              vr_error *err)
{
    static const char spaces[8] = "        ";
    size_t len = strlen(text), pad = (8 - len % 8) % 8;
    uint64_t n = len + pad;
    if (n > VR_SAFETENSORS_MAX_HEADER)
        return vr_fail(err, VR_E_UNSUPPORTED,
                       "%s: its header would have %llu bytes; readers take at most %u",
                       SHOW_PATH(path), (unsigned long long)n, VR_SAFETENSORS_MAX_HEADER);
    vr_status s = vr_file_write(w, &n, sizeof n, err);
    if (!s)
        s = vr_file_write(w, text, len, err);
    if (!s)
        s = vr_file_write(w, spaces, pad, err);
    return s;
}

vr_status vr_safetensors_write(const char *path, const char *const *names,
                               const vr_tensor *tensors, int64_t count, const vr_metadata *meta,
                               int64_t meta_count, vr_error *err)
{
    char *text = NULL;
    vr_file_writer *w = NULL;
    vr_status s = build_header(path, names, tensors, count, meta, meta_count, &text, err);
    if (!s)
        s = vr_file_create(path, &w, err);
    if (!s)
        s = write_header(w, path, text, err);
    for (int64_t i = 0; !s && i < count; i++) {
        uint64_t bytes;
        s = tensor_bytes(path, names[i], &tensors[i], &bytes, err);
        if (!s && bytes)
            s = vr_file_write(w, tensors[i].data, (size_t)bytes, err);
    }
    free(text);
    if (s) {
        vr_file_abandon(w);
        return s;
    }
    return vr_file_commit(w, err);
}
