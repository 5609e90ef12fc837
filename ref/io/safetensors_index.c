/* Sharded models: FILE.safetensors.index.json (clause F2.7).
 *
 * {"weight_map": {tensor name: file name, ...}}; file names are relative to
 * the index's folder and may not leave it. Each shard is opened once and fully
 * validated; each mapped tensor must be in the shard the map names. Tensors of
 * a shard that the map does not mention are kept.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <stdlib.h>
#include <string.h>

static bool leaves_folder(const char *file)
{
    if (file[0] == '/')
        return true;
    for (const char *p = file; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
            return true;
    }
    return false;
}

/* Path of `file` beside the index, on the heap. */
static char *beside(const char *index, const char *file)
{
    const char *slash = strrchr(index, '/');
    size_t folder = slash ? (size_t)(slash - index) + 1 : 0, n = strlen(file);
    char *p = malloc(folder + n + 1);
    if (p) {
        memcpy(p, index, folder);
        memcpy(p + folder, file, n + 1);
    }
    return p;
}

static vr_status open_shard(const char *index, const char *file, vr_io_shard *out, vr_error *err)
{
    char *path = beside(index, file);
    if (!path)
        return vr_fail(err, VR_E_NOMEM, "%s: no memory for the name of a shard",
                       SHOW_PATH(index));
    vr_io_blob blob;
    vr_status s = vr_io_blob_open(path, &blob, err);
    if (!s)
        s = vr_io_shard_parse(path, blob, out, err);
    free(path);
    if (s)
        vr_fail_prefix(err, "%s: shard '%s'", SHOW_PATH(index), SHOW_NAME(file));
    return s;
}

static vr_status check_entry(const char *index, const char *name, const json_t *file,
                             vr_error *err)
{
    const char *text = json_string_value(file);
    if (!text)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: weight_map gives %s for tensor '%s'; a file name is needed",
                       SHOW_PATH(index), vr_io_json_kind(file), SHOW_NAME(name));
    if (!*text || leaves_folder(text))
        return vr_fail(err, VR_E_FORMAT,
                       "%s: weight_map sends tensor '%s' to '%s'; a file inside the index's own "
                       "folder is needed",
                       SHOW_PATH(index), SHOW_NAME(name), SHOW_NAME(text));
    return VR_OK;
}

/* seen: file name -> shard number */
static vr_status read_map(const char *index, const json_t *map, json_t *seen, vr_safetensors *f,
                          vr_error *err)
{
    const char *name;
    json_t *file;
    json_object_foreach((json_t *)(uintptr_t)map, name, file) {
        vr_status s = check_entry(index, name, file, err);
        if (s)
            return s;
        const char *text = json_string_value(file);
        json_t *number = json_object_get(seen, text);
        if (!number) {
            s = open_shard(index, text, &f->shard[f->shard_count], err);
            if (s)
                return s;
            number = json_integer(f->shard_count++);
            if (json_object_set_new(seen, text, number) != 0)
                return vr_fail(err, VR_E_NOMEM, "%s: no memory for its list of shards",
                               SHOW_PATH(index));
        }
    }
    return VR_OK;
}

static vr_status check_map(const char *index, const json_t *map, const json_t *seen,
                           const vr_safetensors *f, vr_error *err)
{
    const char *name;
    json_t *file;
    json_object_foreach((json_t *)(uintptr_t)map, name, file) {
        const char *text = json_string_value(file);
        const vr_io_shard *s = &f->shard[json_integer_value(json_object_get(seen, text))];
        if (!vr_io_shard_find(s, name))
            return vr_fail(err, VR_E_FORMAT,
                           "%s: weight_map puts tensor '%s' into shard '%s', which does not "
                           "hold it",
                           SHOW_PATH(index), SHOW_NAME(name), SHOW_NAME(text));
    }
    return VR_OK;
}

static vr_status open_mapped(const char *index, const json_t *map, vr_safetensors *f,
                             vr_error *err)
{
    f->shard = calloc(json_object_size(map) + 1, sizeof *f->shard);
    json_t *seen = json_object();
    vr_status s = f->shard && seen ? read_map(index, map, seen, f, err)
                                   : vr_fail(err, VR_E_NOMEM, "%s: no memory for its shards",
                                             SHOW_PATH(index));
    if (!s)
        s = check_map(index, map, seen, f, err);
    json_decref(seen);
    return s;
}

vr_status vr_io_index_parse(const char *path, const vr_io_blob *b, vr_safetensors *f,
                            vr_error *err)
{
    json_t *root = NULL;
    vr_status s = vr_io_json_parse(path, b->data, b->size, 0, true, &root, err);
    if (s)
        return s;
    const json_t *map = json_object_get(root, "weight_map");
    s = json_is_object(map)
            ? open_mapped(path, map, f, err)
            : vr_fail(err, VR_E_FORMAT,
                      "%s: 'weight_map' is %s; an object from tensor names to file names is "
                      "needed (is this a .safetensors.index.json?)",
                      SHOW_PATH(path), vr_io_json_kind(map));
    json_decref(root);
    return s;
}
