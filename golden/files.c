/* golden/files.c: files and folders of a golden version.
 *
 * Writing goes through the atomic writer of vaeref/io.h: what is there under its
 * final name is whole.
 *
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BYTES = 64 << 20, MAX_DEPTH = 6 };

vr_status vg_file_read(const char *path, char **text, size_t *size, vr_error *err)
{
    *text = NULL;
    *size = 0;
    FILE *f = fopen(path, "rb");
    if (!f)
        return vr_fail(err, errno == ENOENT || errno == ENOTDIR ? VR_E_NOTFOUND : VR_E_IO, "%s: cannot open: %s", path,
                       strerror(errno));
    struct stat st;
    vr_status s = VR_OK;
    if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode))
        s = vr_fail(err, VR_E_IO, "%s: is no file", path);
    else if (st.st_size > MAX_BYTES)
        s = vr_fail(err, VR_E_FORMAT, "%s: has %lld bytes; no file of a golden version has more than %d", path,
                    (long long)st.st_size, MAX_BYTES);
    char *t = s ? NULL : malloc((size_t)st.st_size + 1);
    if (!s && !t)
        s = vr_fail(err, VR_E_NOMEM, "%s: no memory to read it", path);
    const size_t n = s ? 0 : fread(t, 1, (size_t)st.st_size, f);
    if (!s && n != (size_t)st.st_size)
        s = vr_fail(err, VR_E_IO, "%s: cannot read: %s", path, ferror(f) ? strerror(errno) : "it became shorter");
    fclose(f);
    if (s) {
        free(t);
        return s;
    }
    t[n] = '\0';
    *text = t;
    *size = n;
    return VR_OK;
}

void vg_digest(const void *data, size_t n, char hex[65])
{
    vr_sha256 h;
    uint8_t d[32];
    vr_sha256_init(&h);
    vr_sha256_update(&h, data, n);
    vr_sha256_final(&h, d);
    vr_sha256_hex(d, hex);
}

bool vg_close(FILE *f)
{
    const bool lost = ferror(f) != 0;
    return fclose(f) == 0 && !lost;
}

vr_status vg_file_digest(const char *path, char hex[65], vr_error *err)
{
    char *text;
    size_t n;
    vr_status s = vg_file_read(path, &text, &n, err);
    if (s)
        return s;
    vg_digest(text, n, hex);
    free(text);
    return VR_OK;
}

vr_status vg_file_write(const char *path, const void *data, size_t n, vr_error *err)
{
    vr_file_writer *w;
    vr_status s = vr_file_create(path, &w, err);
    if (s)
        return s;
    s = vr_file_write(w, data, n, err);
    if (s) {
        vr_file_abandon(w);
        return s;
    }
    return vr_file_commit(w, err);
}

/* ---- paths ---------------------------------------------------------------------- */

vr_status vg_join(char path[PATH_MAX], const char *dir, const char *name, vr_error *err)
{
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (n >= PATH_MAX ||
        snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, dir, *name ? "/" : "", name) >= PATH_MAX)
        return vr_fail(err, VR_E_ARGUMENT, "path is too long: %.80s.../%.40s", dir, name);
    return VR_OK;
}

vr_status vg_record_path(char path[PATH_MAX], const char *dir, const char *id, vr_error *err)
{
    char name[VG_ID + 16];
    snprintf(name, sizeof name, "cases/%.63s.json", id);
    return vg_join(path, dir, name, err);
}

vr_status vg_picture_path(char path[PATH_MAX], const char *dir, const char *id, vr_error *err)
{
    char name[VG_ID + 16];
    snprintf(name, sizeof name, "pictures/%.63s.png", id);
    return vg_join(path, dir, name, err);
}

bool vg_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

vr_status vg_mkdir(const char *path, vr_error *err)
{
    struct stat st;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        return VR_OK;
    return vr_fail(err, VR_E_IO, "%s: cannot make this folder: %s", path,
                   errno == EEXIST ? "a file is in its place" : strerror(errno));
}

vr_status vg_sync_dir(const char *path, vr_error *err)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return vr_fail(err, VR_E_IO, "%s: cannot open this folder: %s", path, strerror(errno));
    const int bad = fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS ? errno : 0;
    close(fd);
    return bad ? vr_fail(err, VR_E_IO, "%s: cannot sync this folder: %s", path, strerror(bad)) : VR_OK;
}

/* ---- names ------------------------------------------------------------------------ */

vr_status vg_names_add(vg_names *n, const char *name, vr_error *err)
{
    if ((n->count & (n->count - 1)) == 0) { /* grows at powers of two */
        char **grown = realloc(n->item, (size_t)(n->count ? 2 * n->count : 1) * sizeof *grown);
        if (!grown)
            return vr_fail(err, VR_E_NOMEM, "out of memory for a list of files");
        n->item = grown;
    }
    n->item[n->count] = strdup(name);
    if (!n->item[n->count])
        return vr_fail(err, VR_E_NOMEM, "out of memory for a list of files");
    n->count++;
    return VR_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void vg_names_sort(vg_names *n)
{
    if (n->count > 1)
        qsort(n->item, (size_t)n->count, sizeof *n->item, by_bytes);
}

bool vg_names_has(const vg_names *n, const char *name)
{
    return n->count && bsearch(&name, n->item, (size_t)n->count, sizeof *n->item, by_bytes);
}

void vg_names_free(vg_names *n)
{
    for (int64_t i = 0; i < n->count; i++)
        free(n->item[i]);
    free(n->item);
    memset(n, 0, sizeof *n);
}

/* Everything below DIR/RELATIVE that is no folder. */
static vr_status walk(const char *dir, const char *relative, int depth, vg_names *out, vr_error *err)
{
    char path[PATH_MAX];
    vr_status s = vg_join(path, dir, relative, err);
    DIR *d = s ? NULL : opendir(path);
    if (!d)
        return s ? s : vr_fail(err, errno == ENOENT ? VR_E_NOTFOUND : VR_E_IO, "%s: cannot open this folder: %s", path,
                               strerror(errno));
    for (struct dirent *e; !s && (e = readdir(d));) {
        char name[PATH_MAX];
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || (!*relative && !strcmp(e->d_name, VG_PART)))
            continue;
        if (snprintf(name, sizeof name, "%s%s%s", relative, *relative ? "/" : "", e->d_name) >= PATH_MAX)
            s = vr_fail(err, VR_E_ARGUMENT, "%s: a path in this folder is too long", path);
        const bool folder = !s && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
        if (!s && folder && depth < MAX_DEPTH)
            s = walk(dir, name, depth + 1, out, err);
        else if (!s)
            s = vg_names_add(out, name, err);
    }
    closedir(d);
    return s;
}

vr_status vg_list(const char *dir, vg_names *out, vr_error *err)
{
    memset(out, 0, sizeof *out);
    vr_status s = walk(dir, "", 0, out, err);
    if (s)
        vg_names_free(out);
    else
        vg_names_sort(out);
    return s;
}

vr_status vg_list_ids(const char *dir, vg_names *out, vr_error *err)
{
    vg_names all;
    char path[PATH_MAX];
    memset(out, 0, sizeof *out);
    vr_status s = vg_join(path, dir, "cases", err);
    if (!s && !vg_exists(path))
        s = vr_fail(err, VR_E_NOTFOUND, "%s: is no golden version: it has no folder cases/", dir);
    s = s ? s : vg_list(path, &all, err);
    if (s)
        return s;
    for (int64_t i = 0; !s && i < all.count; i++) {
        char *dot = strrchr(all.item[i], '.');
        if (!dot || strcmp(dot, ".json"))
            continue;
        *dot = '\0';
        if (vg_id_valid(all.item[i]))
            s = vg_names_add(out, all.item[i], err);
    }
    vg_names_free(&all);
    vg_names_sort(out); /* without ".json" the order may be another */
    if (s)
        vg_names_free(out);
    return s;
}

void vg_remove_tree(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char below[PATH_MAX];
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || vg_join(below, path, e->d_name, NULL))
            continue;
        if (lstat(below, &st) == 0 && S_ISDIR(st.st_mode))
            vg_remove_tree(below);
        else
            unlink(below);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

vr_status vg_current(const char *golden, char path[PATH_MAX], int *n, vr_error *err)
{
    *n = 0;
    DIR *d = opendir(golden);
    if (!d)
        return vr_fail(err, VR_E_NOTFOUND,
                       "%s: cannot open this folder: %s; run from the repository's root, or say --golden DIR", golden,
                       strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        char *end, again[24];
        const long v = e->d_name[0] == 'v' ? strtol(e->d_name + 1, &end, 10) : 0;
        snprintf(again, sizeof again, "v%ld", v);
        if (v > *n && v < 100000 && !strcmp(again, e->d_name))
            *n = (int)v;
    }
    closedir(d);
    char name[24];
    snprintf(name, sizeof name, "v%d", *n ? *n : 1);
    return vg_join(path, golden, name, err);
}
