/* ref/cli/output.c: files the tool writes, and how it words sizes.
 *
 * Every file goes through the atomic writers of vaeref/io.h, so a failure
 * leaves what was there before.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    cli_format format;
    const char *extension;
} formats[] = {{CLI_PNG, ".png"}, {CLI_NPY, ".npy"}, {CLI_SAFETENSORS, ".safetensors"}};
enum { FORMATS = sizeof formats / sizeof *formats };

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && !strcmp(s + n - m, end) && s[n - m - 1] != '/';
}

vr_status cli_output_format(const char *path, unsigned allowed, cli_format *out, vr_error *err)
{
    char list[64] = "";
    for (int i = 0; i < FORMATS; i++) {
        if (!(allowed & (unsigned)formats[i].format))
            continue;
        if (ends_with(path, formats[i].extension)) {
            *out = formats[i].format;
            return VR_OK;
        }
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", formats[i].extension);
    }
    return vr_fail(err, VR_E_ARGUMENT, "output '%s': the name must end in %s", path, list);
}

vr_status cli_output_check(const char *path, vr_error *err)
{
    /* Devices and pipes are written straight through; opening a pipe to try it
     * would end its reader's input. */
    struct stat st;
    if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return access(path, W_OK)
                   ? vr_fail(err, VR_E_IO, "%s: cannot write: %s", path, strerror(errno))
                   : VR_OK;
    vr_file_writer *w;
    vr_status s = vr_file_create(path, &w, err);
    if (!s)
        vr_file_abandon(w);
    return s;
}

void cli_output_remove(const char *path)
{
    struct stat st;
    if (!lstat(path, &st) && S_ISREG(st.st_mode)) /* never a device or a link */
        unlink(path);
}

vr_status cli_numbered(const char *path, int64_t i, char *buf, size_t size, vr_error *err)
{
    const char *dot = strrchr(path, '.');
    int stem = (int)(dot ? dot - path : (long)strlen(path));
    int n = snprintf(buf, size, "%.*s_%05lld%s", stem, path, (long long)i, dot ? dot : "");
    if (n < 0 || (size_t)n >= size)
        return vr_fail(err, VR_E_ARGUMENT, "output name is too long (%zu bytes): %.80s...",
                       strlen(path), path);
    return VR_OK;
}

vr_status cli_tensor_write(const char *path, cli_format f, const char *name, const vr_tensor *t,
                           const vr_metadata *meta, int64_t meta_count, vr_error *err)
{
    if (f == CLI_NPY)
        return vr_npy_write(path, t, err);
    return vr_safetensors_write(path, &name, t, 1, meta, meta_count, err);
}

/* ---- JSON ----------------------------------------------------------------------- */

/* 15 digits: 0.18215 stays 0.18215. */
#define JSON_STYLE (JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15))

static char *json_text(const json_t *root, vr_error *err)
{
    char *text = root ? json_dumps(root, JSON_STYLE) : NULL;
    if (!text)
        vr_fail(err, VR_E_NOMEM, "out of memory while writing JSON");
    return text;
}

vr_status cli_json_write(const char *path, const json_t *root, vr_error *err)
{
    char *text = json_text(root, err);
    if (!text)
        return VR_E_NOMEM;
    vr_file_writer *w = NULL;
    vr_status s = vr_file_create(path, &w, err);
    if (!s)
        s = vr_file_write(w, text, strlen(text), err);
    if (!s)
        s = vr_file_write(w, "\n", 1, err);
    if (!s)
        s = vr_file_commit(w, err);
    else
        vr_file_abandon(w);
    free(text);
    return s;
}

vr_status cli_json_print(const json_t *root, vr_error *err)
{
    char *text = json_text(root, err);
    if (!text)
        return VR_E_NOMEM;
    puts(text); /* main checks stdout at the end */
    free(text);
    return VR_OK;
}

json_t *cli_json_dims(int32_t rank, const int64_t *dim)
{
    json_t *a = json_array();
    for (int32_t i = 0; a && i < rank; i++)
        json_array_append_new(a, json_integer(dim[i]));
    return a;
}

json_t *cli_json_shape(vr_shape s)
{
    if (s.t > 1)
        return cli_json_dims(5, (int64_t[]){s.n, s.c, s.t, s.h, s.w});
    return cli_json_dims(4, (int64_t[]){s.n, s.c, s.h, s.w});
}

char *cli_shape_text(vr_shape s, char *buf, size_t size)
{
    if (s.t > 1)
        snprintf(buf, size, "%lldx%lldx%lldx%lldx%lld", (long long)s.n, (long long)s.c,
                 (long long)s.t, (long long)s.h, (long long)s.w);
    else
        snprintf(buf, size, "%lldx%lldx%lldx%lld", (long long)s.n, (long long)s.c, (long long)s.h,
                 (long long)s.w);
    return buf;
}

char *cli_normalisation_text(const vr_model *m, char *buf, size_t size)
{
    if (!m->normalises)
        snprintf(buf, size, "none, %s latents",
                 m->latent_space == VR_LATENT_RAW ? "raw" : "diffusion");
    else if (m->scaling_factor == 0) /* FLUX.2: no single factor */
        snprintf(buf, size, "per channel, from the model's statistics");
    else
        snprintf(buf, size, "scaling %.9g, shift %.9g", m->scaling_factor, m->shift_factor);
    return buf;
}

void cli_normalisation_json(const vr_model *m, json_t *root)
{
    bool factors = m->normalises && m->scaling_factor != 0;
    json_object_set_new(root, "normalises", json_boolean(m->normalises));
    json_object_set_new(root, "scaling_factor",
                        factors ? json_real(m->scaling_factor) : json_null());
    json_object_set_new(root, "shift_factor", factors ? json_real(m->shift_factor) : json_null());
}

char *cli_bytes_text(uint64_t bytes, char *buf, size_t size)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int i = 0;
    for (; v >= 1024 && i < 4; i++)
        v /= 1024;
    snprintf(buf, size, i ? "%.1f %s" : "%.0f %s", v, unit[i]);
    return buf;
}
