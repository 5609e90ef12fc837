/* golden/manifest.c: MANIFEST.sha256, readable by `sha256sum -c` (clause G4).
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 64 };

/* NULL when a path of the manifest is good, else what is wrong with it. */
static const char *path_fault(const char *p)
{
    for (const char *c = p; *c; c++)
        if (iscntrl((unsigned char)*c))
            return *c == '\r' ? "the line ends with a carriage return" : "its path holds a control character";
    if (!*p)
        return "its path is empty";
    if (*p == '*')
        return "it is in binary form ('*'); two spaces are needed before the path";
    if (*p == '/' || *p == ' ')
        return "its path must be relative to the version's folder";
    for (const char *at = p; at; at = strchr(at, '/'), at += at != NULL)
        if (!strncmp(at, "../", 3) || !strcmp(at, "..") || !strncmp(at, "./", 2) || *at == '/')
            return "its path leaves the version's folder or is not in its shortest form";
    if (!strcmp(p, VG_MANIFEST))
        return "a manifest cannot hold itself";
    return NULL;
}

static const char *line_fault(const char *line, const struct vg_manifest_line *before)
{
    const size_t digits = strspn(line, "0123456789abcdef");
    if (!*line)
        return "it is empty";
    if (digits != DIGITS)
        return "it does not begin with 64 digits 0-9, a-f";
    if (strncmp(line + DIGITS, "  ", 2))
        return "two spaces are needed after the digest";
    const char *fault = path_fault(line + DIGITS + 2);
    const int order = before && !fault ? strcmp(before->path, line + DIGITS + 2) : -1;
    if (order == 0)
        return "its path is that of the line before";
    return order > 0 ? "it is out of order; paths ascend" : fault;
}

static vr_status read_lines(const char *path, char *text, vg_manifest *m, vr_error *err)
{
    size_t lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    m->line = calloc(lines + 1, sizeof *m->line);
    if (!m->line)
        return vr_fail(err, VR_E_NOMEM, "%s: no memory to read it", path);
    for (char *at = text; *at;) {
        char *end = strchr(at, '\n');
        const char *fault = NULL;
        if (end)
            *end = '\0';
        else
            fault = "it does not end with a line break: the file is cut off";
        if (!fault)
            fault = line_fault(at, m->count ? &m->line[m->count - 1] : NULL);
        if (fault)
            return vr_fail(err, VR_E_FORMAT, "%s:%lld: %s: '%.80s'", path, (long long)m->count + 1, fault, at);
        struct vg_manifest_line *l = &m->line[m->count];
        memcpy(l->digest, at, DIGITS);
        l->path = strdup(at + DIGITS + 2);
        if (!l->path)
            return vr_fail(err, VR_E_NOMEM, "%s: no memory to read it", path);
        m->count++;
        at = end + 1;
    }
    return m->count ? VR_OK : vr_fail(err, VR_E_FORMAT, "%s:1: the manifest is empty", path);
}

vr_status vg_manifest_read(const char *dir, vg_manifest *out, vr_error *err)
{
    char path[PATH_MAX], *text = NULL;
    size_t size = 0;
    memset(out, 0, sizeof *out);
    vr_status s = vg_join(path, dir, VG_MANIFEST, err);
    s = s ? s : vg_file_read(path, &text, &size, err);
    if (s == VR_E_NOTFOUND)
        return vr_fail(err, s, "%s: there is no manifest: an unfinished version; vaegolden regen finishes it", path);
    if (s)
        return s;
    if (memchr(text, '\0', size)) {
        int line = 1;
        for (const char *c = text; *c; c++)
            line += *c == '\n';
        s = vr_fail(err, VR_E_FORMAT, "%s:%d: it holds a NUL byte", path, line);
    }
    s = s ? s : read_lines(path, text, out, err);
    free(text);
    if (s)
        vg_manifest_free(out);
    return s;
}

const struct vg_manifest_line *vg_manifest_find(const vg_manifest *m, const char *path)
{
    int64_t lo = 0, hi = m->count;
    while (lo < hi) {
        const int64_t mid = (lo + hi) / 2;
        const int order = strcmp(m->line[mid].path, path);
        if (order == 0)
            return &m->line[mid];
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

void vg_manifest_free(vg_manifest *m)
{
    for (int64_t i = 0; i < m->count; i++)
        free(m->line[i].path);
    free(m->line);
    memset(m, 0, sizeof *m);
}
