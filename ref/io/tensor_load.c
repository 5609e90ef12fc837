/* One tensor from "FILE" or "FILE#name" (clause F3.6).
 *
 * The content decides between .npy and safetensors; a name ending in .json is a
 * shard index. '#' is legal in file names and in tensor names: the name starts
 * after the last '#' that leaves an existing file to its left; where none does,
 * a whole that exists is the file, and else the last '#' is taken.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LISTED 6 /* names shown when the choice is open */

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Cuts spec in place; returns the tensor name or NULL. */
static char *split(char *spec)
{
    char *last = strrchr(spec, '#');
    for (char *p = last; p; p = memrchr(spec, '#', (size_t)(p - spec))) {
        *p = '\0';
        bool exists = is_file(spec);
        if (exists)
            return p + 1;
        *p = '#';
    }
    if (!last || is_file(spec))
        return NULL;
    *last = '\0';
    return last + 1;
}

/* "a F32[1,4,8,8], b F32[3], ... (9 in all)" */
static const char *list_names(const vr_safetensors *f, char *buf, size_t size)
{
    size_t n = 0;
    int64_t count = vr_safetensors_count(f);
    buf[0] = '\0';
    for (int64_t i = 0; i < count && i < LISTED && n + 1 < size; i++) {
        const vr_named_tensor *t = vr_safetensors_at(f, i);
        char shape[160];
        int put = snprintf(buf + n, size - n, "%s%.40s %s%s", i ? ", " : "", t->name,
                           t->tensor.dtype ? "" : "unknown type ",
                           vr_tensor_describe(&t->tensor, shape, sizeof shape));
        n += put > 0 ? (size_t)put : 0;
    }
    if (count > LISTED && n + 1 < size)
        snprintf(buf + n, size - n, ", ... (%lld in all)", (long long)count);
    return buf;
}

static vr_status choose(const vr_safetensors *f, const char *path, const char *name,
                        const vr_named_tensor **out, vr_error *err)
{
    char list[340];
    int64_t count = vr_safetensors_count(f);
    if (count == 0)
        return vr_fail(err, VR_E_NOTFOUND, "%s: holds no tensors", SHOW_PATH(path));
    if (!name && count > 1)
        return vr_fail(err, VR_E_ARGUMENT,
                       "%s: holds %lld tensors; choose one as FILE#name: %s", SHOW_PATH(path),
                       (long long)count, list_names(f, list, sizeof list));
    *out = name ? vr_safetensors_find(f, name) : vr_safetensors_at(f, 0);
    if (!*out)
        return vr_fail(err, VR_E_NOTFOUND, "%s: no tensor '%s'; there are: %s", SHOW_PATH(path),
                       SHOW_NAME(name), list_names(f, list, sizeof list));
    if ((*out)->tensor.dtype == VR_DTYPE_NONE)
        return vr_fail(err, VR_E_DTYPE, "%s: tensor '%s' has the unknown element type '%s'",
                       SHOW_PATH(path), SHOW_NAME((*out)->name), SHOW_NAME((*out)->dtype_text));
    return VR_OK;
}

static vr_status copy_chosen(const vr_safetensors *f, const char *path, const char *name,
                             vr_tensor *out, vr_error *err)
{
    const vr_named_tensor *n = NULL;
    int64_t count = 0;
    vr_status s = choose(f, path, name, &n, err);
    if (!s)
        s = vr_tensor_count(&n->tensor, &count, err);
    if (!s)
        s = vr_tensor_new(out, n->tensor.dtype, n->tensor.rank, n->tensor.dim, err);
    if (!s && count)
        memcpy(out->data, n->tensor.data, (size_t)count * vr_dtype_size(n->tensor.dtype));
    return s;
}

static vr_status load(const char *path, const char *name, vr_tensor *out, vr_error *err)
{
    vr_io_blob blob;
    vr_status s = vr_io_blob_open(path, &blob, err);
    if (s)
        return s;
    /* The suffix only decides what a file that is neither is reported as. */
    size_t n = strlen(path);
    if (vr_io_is_npy(&blob) || (n >= 4 && strcmp(path + n - 4, ".npy") == 0)) {
        s = name ? vr_fail(err, VR_E_ARGUMENT,
                           "%s: a .npy file holds one unnamed tensor; drop '#%s'",
                           SHOW_PATH(path), SHOW_NAME(name))
                 : vr_io_npy_parse(path, &blob, out, err);
        vr_io_blob_close(&blob);
        return s;
    }
    vr_safetensors *f;
    s = vr_io_safetensors_from(path, blob, &f, err);
    if (s)
        return s;
    s = copy_chosen(f, path, name, out, err);
    vr_safetensors_close(f);
    return s;
}

vr_status vr_tensor_load(const char *spec, vr_tensor *out, vr_error *err)
{
    *out = (vr_tensor){0};
    if (!spec || !*spec)
        return vr_fail(err, VR_E_ARGUMENT, "no tensor file given");
    char *path = strdup(spec);
    if (!path)
        return vr_fail(err, VR_E_NOMEM, "no memory for the name of a tensor file");
    char *name = split(path);
    vr_status s = load(path, name, out, err);
    free(path);
    return s;
}
