/* The folder of case files as one suite. SPDX-License-Identifier: MIT */
#include "runner/suite.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_json(const struct dirent *d)
{
    const size_t n = strlen(d->d_name);
    return n > 5 && d->d_name[0] != '.' && strcmp(d->d_name + n - 5, ".json") == 0;
}

static char *slurp(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long n = -1;
    if (f && fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && n <= 64 << 20 && fseek(f, 0, SEEK_SET) == 0)
        text = malloc((size_t)n + 1);
    if (text && fread(text, 1, (size_t)n, f) != (size_t)n) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    *size = text ? (size_t)n : 0;
    return text;
}

vr_status vc_suite_load(const char *dir, vc_suite *out, vr_error *err)
{
    struct dirent **list = NULL;
    vr_sha256 sha;
    uint8_t digest[32];
    *out = (vc_suite){.entry = NULL};
    const int n = scandir(dir, &list, is_json, by_name);
    if (n < 1)
        return vr_fail(err, VR_E_IO, "no case files in %s%s%s; want --cases FOLDER", dir, n < 0 ? ": " : "",
                       n < 0 ? strerror(errno) : "");
    vr_sha256_init(&sha);
    vr_status s = VR_OK;
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX];
        size_t size = 0;
        snprintf(path, sizeof path, "%s/%s", dir, list[i]->d_name);
        char *text = s == VR_OK ? slurp(path, &size) : NULL;
        if (s == VR_OK && !text)
            s = vr_fail(err, VR_E_IO, "cannot read %s: %s", path, strerror(errno));
        if (s == VR_OK) {
            vr_sha256_update(&sha, list[i]->d_name, strlen(list[i]->d_name) + 1);
            vr_sha256_update(&sha, text, size);
            s = vc_suite_parse(path, text, size, out, err);
        }
        free(text);
        free(list[i]);
    }
    free(list);
    vr_sha256_final(&sha, digest);
    vr_sha256_hex(digest, out->digest);
    if (s == VR_OK)
        s = vc_suite_expand(out, err);
    if (s != VR_OK)
        vc_suite_free(out);
    return s;
}

void vc_suite_free(vc_suite *s)
{
    free(s->entry);
    free(s->item);
    *s = (vc_suite){.entry = NULL};
}
