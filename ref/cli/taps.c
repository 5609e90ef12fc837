/* ref/cli/taps.c: --taps DIR, every value of a decode as a .npy file.
 *
 * Names are NNN_TAP.npy, NNN the operation's number; bytes of a tap that a file
 * name should not hold become %XX. index.json lists them in execution order.
 * After a failure or an interrupt what was written is removed again.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static vr_status path_in(const char *dir, const char *name, char *buf, size_t size, vr_error *err)
{
    int n = snprintf(buf, size, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= size)
        return vr_fail(err, VR_E_ARGUMENT, "--taps: the path %.200s... is too long", dir);
    return VR_OK;
}

vr_status cli_taps_start(cli_taps *t, const char *dir, const vr_program *p, vr_error *err)
{
    memset(t, 0, sizeof *t);
    t->dir = dir;
    t->program = p;
    t->index = json_array();
    if (!t->index)
        return vr_fail(err, VR_E_NOMEM, "out of memory");
    struct stat st;
    if (!mkdir(dir, 0777))
        t->made_dir = true;
    else if (errno != EEXIST)
        return vr_fail(err, VR_E_IO, "--taps %s: cannot create the folder: %s", dir,
                       strerror(errno));
    else if (stat(dir, &st) || !S_ISDIR(st.st_mode))
        return vr_fail(err, VR_E_IO, "--taps %s: exists and is not a folder", dir);
    char path[PATH_MAX];
    vr_status s = path_in(dir, "index.json", path, sizeof path, err);
    return s ? s : cli_output_check(path, err);
}

static void file_name(int32_t op, const char *tap, char *buf, size_t size)
{
    int n = snprintf(buf, size, "%03d_", (int)op);
    size_t at = n > 0 ? (size_t)n : 0;
    for (; *tap && at + 8 < size; tap++) {
        unsigned char c = (unsigned char)*tap;
        if (isalnum(c) || c == '.' || c == '_' || c == '-')
            buf[at++] = (char)c;
        else
            at += (size_t)snprintf(buf + at, size - at, "%%%02X", c);
    }
    snprintf(buf + at, size - at, ".npy");
}

vr_status cli_taps_value(cli_taps *t, int32_t op, const char *tap, const vr_tensor *v,
                         vr_error *err)
{
    char name[200], path[PATH_MAX];
    file_name(op, tap, name, sizeof name);
    vr_status s = path_in(t->dir, name, path, sizeof path, err);
    if (!s)
        s = vr_npy_write(path, v, err);
    if (s)
        return s;
    json_t *e = json_pack("{s:i, s:s, s:s, s:s, s:o, s:s}", "op", (int)op, "tap", tap, "kind",
                          vr_op_name(t->program->op[op].kind), "dtype", vr_dtype_name(v->dtype),
                          "shape", cli_json_dims(v->rank, v->dim), "file", name);
    if (!e || json_array_append_new(t->index, e))
        return vr_fail(err, VR_E_NOMEM, "out of memory");
    return VR_OK;
}

vr_status cli_taps_finish(cli_taps *t, vr_error *err)
{
    char path[PATH_MAX];
    vr_status s = path_in(t->dir, "index.json", path, sizeof path, err);
    return s ? s : cli_json_write(path, t->index, err);
}

void cli_taps_discard(cli_taps *t)
{
    char path[PATH_MAX];
    size_t i;
    json_t *e;
    json_array_foreach(t->index, i, e)
        if (!path_in(t->dir, json_string_value(json_object_get(e, "file")), path, sizeof path,
                     NULL))
            unlink(path);
    json_array_clear(t->index);
    if (t->made_dir)
        rmdir(t->dir);
}

void cli_taps_free(cli_taps *t)
{
    json_decref(t->index);
    t->index = NULL;
}
