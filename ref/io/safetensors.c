/* Opening and asking a safetensors model, one file or many (clause F2).
 *
 * The tensors of all shards are gathered into one list in ascending byte order
 * of their names; a name may appear once. Everything handed out points into
 * the mappings and parsed headers that live until vr_safetensors_close.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <stdlib.h>
#include <string.h>

/* The name decides; a header and an index are both JSON inside. */
static bool is_index(const char *path)
{
    size_t n = strlen(path);
    return n >= 5 && strcmp(path + n - 5, ".json") == 0;
}

static vr_status gather(const char *path, vr_safetensors *f, vr_error *err)
{
    size_t total = 0;
    for (int64_t i = 0; i < f->shard_count; i++)
        total += (size_t)f->shard[i].count;
    f->tensor = calloc(total + 1, sizeof *f->tensor);
    if (!f->tensor)
        return vr_fail(err, VR_E_NOMEM, "%s: no memory for %zu tensor records", SHOW_PATH(path),
                       total);
    for (int64_t i = 0; i < f->shard_count; i++) {
        const vr_io_shard *s = &f->shard[i];
        if (s->count)
            memcpy(f->tensor + f->count, s->tensor, (size_t)s->count * sizeof *s->tensor);
        f->count += s->count;
    }
    qsort(f->tensor, (size_t)f->count, sizeof *f->tensor, vr_io_by_name);
    for (int64_t i = 1; i < f->count; i++)
        if (strcmp(f->tensor[i - 1].name, f->tensor[i].name) == 0)
            return vr_fail(err, VR_E_FORMAT, "%s: tensor '%s' is in two shards, '%s' and '%s'",
                           SHOW_PATH(path), SHOW_NAME(f->tensor[i].name),
                           SHOW_PATH(f->tensor[i - 1].file), SHOW_PATH(f->tensor[i].file));
    return VR_OK;
}

static vr_status open_single(const char *path, vr_io_blob blob, vr_safetensors *f, vr_error *err)
{
    f->shard = calloc(1, sizeof *f->shard);
    if (!f->shard) {
        vr_io_blob_close(&blob);
        return vr_fail(err, VR_E_NOMEM, "%s: no memory to open it", SHOW_PATH(path));
    }
    vr_status s = vr_io_shard_parse(path, blob, &f->shard[0], err);
    f->shard_count = s ? 0 : 1;
    return s;
}

vr_status vr_io_safetensors_from(const char *path, vr_io_blob blob, vr_safetensors **out,
                                 vr_error *err)
{
    *out = NULL;
    vr_safetensors *f = calloc(1, sizeof *f);
    if (!f) {
        vr_io_blob_close(&blob);
        return vr_fail(err, VR_E_NOMEM, "%s: no memory to open it", SHOW_PATH(path));
    }
    vr_status s;
    if (is_index(path)) {
        s = vr_io_index_parse(path, &blob, f, err);
        vr_io_blob_close(&blob);
    } else {
        s = open_single(path, blob, f, err);
    }
    if (!s)
        s = gather(path, f, err);
    if (s) {
        vr_safetensors_close(f);
        return s;
    }
    *out = f;
    return VR_OK;
}

vr_status vr_safetensors_open(const char *path, vr_safetensors **out, vr_error *err)
{
    *out = NULL;
    vr_io_blob blob;
    vr_status s = vr_io_blob_open(path, &blob, err);
    return s ? s : vr_io_safetensors_from(path, blob, out, err);
}

void vr_safetensors_close(vr_safetensors *f)
{
    if (!f)
        return;
    for (int64_t i = 0; i < f->shard_count; i++)
        vr_io_shard_close(&f->shard[i]);
    free(f->shard);
    free(f->tensor);
    free(f);
}

int64_t vr_safetensors_count(const vr_safetensors *f)
{
    return f->count;
}

const vr_named_tensor *vr_safetensors_at(const vr_safetensors *f, int64_t i)
{
    return i >= 0 && i < f->count ? &f->tensor[i] : NULL;
}

const vr_named_tensor *vr_safetensors_find(const vr_safetensors *f, const char *name)
{
    vr_named_tensor key = {.name = name};
    return f->count ? bsearch(&key, f->tensor, (size_t)f->count, sizeof key, vr_io_by_name) : NULL;
}

const char *vr_safetensors_metadata(const vr_safetensors *f, const char *key)
{
    for (int64_t i = 0; i < f->shard_count; i++) {
        const json_t *meta = json_object_get(f->shard[i].header, "__metadata__");
        const char *value = json_string_value(json_object_get(meta, key));
        if (value)
            return value;
    }
    return NULL;
}
