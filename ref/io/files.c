/* Atomic file writing (clause F1).
 *
 * A new file is written under a temporary name in the target folder, synced and
 * renamed over the target, so every reader sees the old file or the whole new
 * one. Two kinds of target cannot be renamed over and are written straight
 * through: existing targets that are not regular files (devices, pipes,
 * sockets) and the process's own descriptors (/dev/stdout, /dev/fd/N, ...).
 * The folder is held open, so a folder renamed meanwhile still gets its file.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES 65536

struct vr_file_writer {
    char *shown;   /* path as the caller gave it */
    char *real;    /* path after links; its last component is the target name */
    char tmp[256]; /* name in the folder; "" when written straight through */
    int dir, fd;   /* -1 when closed */
    int failed;    /* errno of the first failed write, 0 if none */
    size_t fill;
    uint8_t buffer[BUFFER_BYTES];
};

static vr_status fail_write(const vr_file_writer *w, const char *what, int e, vr_error *err)
{
    return vr_fail(err, VR_E_IO, "%s: cannot %s: %s", SHOW_PATH(w->shown), what, ERRNO_TEXT(e));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Descriptor number that `path` names, or -1. Opening such a path again would
 * start at offset 0 of a redirected file; duplicating keeps the position. */
static int own_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(folders[i]);
        if (strncmp(path, folders[i], n) != 0)
            continue;
        char *end;
        errno = 0;
        long v = strtol(path + n, &end, 10);
        if (path[n] >= '0' && path[n] <= '9' && *end == '\0' && errno == 0 && v < 1 << 20)
            return (int)v;
    }
    return -1;
}

static vr_status open_folder(vr_file_writer *w, vr_error *err)
{
    size_t n = (size_t)(base_name(w->real) - w->real);
    char *folder = n ? strndup(w->real, n) : strdup(".");
    if (!folder)
        return vr_fail(err, VR_E_NOMEM, "%s: no memory for its path", SHOW_PATH(w->shown));
    w->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int e = errno;
    free(folder);
    if (w->dir >= 0)
        return VR_OK;
    if (e == ENOENT || e == ENOTDIR)
        return vr_fail(err, VR_E_NOTFOUND, "%s: the folder it should go into does not exist",
                       SHOW_PATH(w->shown));
    return fail_write(w, "open its folder", e, err);
}

/* A name nobody else uses; old_mode: permissions to keep, or 0 for the umask. */
static vr_status open_temporary(vr_file_writer *w, mode_t old_mode, vr_error *err)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        uint64_t r = 0;
        if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
            r = (uint64_t)getpid() * 0x9e3779b97f4a7c15u + (uint64_t)attempt;
        snprintf(w->tmp, sizeof w->tmp, ".%.200s.%016llx.tmp", base_name(w->real),
                 (unsigned long long)r);
        w->fd = openat(w->dir, w->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0) {
            if (old_mode && fchmod(w->fd, old_mode) != 0)
                return fail_write(w, "keep its permissions", errno, err);
            return VR_OK;
        }
        if (errno != EEXIST)
            break;
    }
    int e = errno;
    w->tmp[0] = '\0';
    return fail_write(w, "create a file beside it", e, err);
}

static vr_status open_through(vr_file_writer *w, int own, vr_error *err)
{
    w->fd = own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 0)
                     : open(w->real, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return w->fd >= 0 ? VR_OK : fail_write(w, "open for writing", errno, err);
}

static vr_status open_target(vr_file_writer *w, vr_error *err)
{
    const char *path = w->shown;
    int own = own_descriptor(path);
    if (own >= 0)
        return open_through(w, own, err);
    struct stat st;
    mode_t mode = 0;
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return vr_fail(err, VR_E_IO, "%s: is a folder; a file name is needed",
                           SHOW_PATH(path));
        /* Replace what a link points to, not the link. */
        char *real = realpath(path, NULL);
        if (!real)
            return fail_write(w, "resolve its path", errno, err);
        free(w->real);
        w->real = real;
        if (!S_ISREG(st.st_mode))
            return open_through(w, -1, err);
        if (access(real, W_OK) != 0)
            return fail_write(w, "replace it", errno, err);
        mode = st.st_mode & 0777;
    } else if (lstat(path, &st) == 0) {
        return vr_fail(err, VR_E_NOTFOUND, "%s: is a symbolic link to nothing", SHOW_PATH(path));
    } else if (base_name(path)[0] == '\0') {
        return vr_fail(err, VR_E_ARGUMENT, "%s: has no file name at its end", SHOW_PATH(path));
    }
    vr_status s = open_folder(w, err);
    return s ? s : open_temporary(w, mode, err);
}

vr_status vr_file_create(const char *path, vr_file_writer **out, vr_error *err)
{
    *out = NULL;
    if (!path || !*path)
        return vr_fail(err, VR_E_ARGUMENT, "no output file name given");
    vr_file_writer *w = malloc(sizeof *w);
    if (!w)
        return vr_fail(err, VR_E_NOMEM, "%s: no memory to write it", SHOW_PATH(path));
    w->tmp[0] = '\0';
    w->dir = w->fd = -1;
    w->failed = 0;
    w->fill = 0;
    w->shown = strdup(path);
    w->real = strdup(path);
    vr_status s = !w->shown || !w->real
                      ? vr_fail(err, VR_E_NOMEM, "%s: no memory to write it", SHOW_PATH(path))
                      : open_target(w, err);
    if (s) {
        vr_file_abandon(w);
        return s;
    }
    *out = w;
    return VR_OK;
}

static vr_status write_all(vr_file_writer *w, const uint8_t *data, size_t n, vr_error *err)
{
    while (n > 0 && !w->failed) {
        ssize_t put = write(w->fd, data, n < 1u << 30 ? n : 1u << 30);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            w->failed = errno;
            break;
        }
        data += put;
        n -= (size_t)put;
    }
    return w->failed ? fail_write(w, "write", w->failed, err) : VR_OK;
}

static vr_status flush(vr_file_writer *w, vr_error *err)
{
    size_t n = w->fill;
    w->fill = 0;
    return write_all(w, w->buffer, n, err);
}

vr_status vr_file_write(vr_file_writer *w, const void *data, size_t n, vr_error *err)
{
    if (w->failed)
        return fail_write(w, "write", w->failed, err);
    if (n >= BUFFER_BYTES) {
        vr_status s = flush(w, err);
        return s ? s : write_all(w, data, n, err);
    }
    if (n > BUFFER_BYTES - w->fill) {
        vr_status s = flush(w, err);
        if (s)
            return s;
    }
    if (n > 0)
        memcpy(w->buffer + w->fill, data, n);
    w->fill += n;
    return VR_OK;
}

/* Pipes, devices and a few file systems cannot sync; that is no lost data. */
static bool cannot_sync(int e)
{
    return e == EINVAL || e == ENOTSUP || e == ENOSYS || e == EROFS;
}

static vr_status finish(vr_file_writer *w, vr_error *err)
{
    vr_status s = flush(w, err);
    if (s)
        return s;
    if (fsync(w->fd) != 0 && !cannot_sync(errno))
        return fail_write(w, "sync", errno, err);
    int fd = w->fd;
    w->fd = -1;
    if (close(fd) != 0 && errno != EINTR) /* network file systems report here */
        return fail_write(w, "close", errno, err);
    if (w->tmp[0] == '\0')
        return VR_OK;
    if (renameat(w->dir, w->tmp, w->dir, base_name(w->real)) != 0)
        return fail_write(w, "put the finished file in place", errno, err);
    w->tmp[0] = '\0'; /* nothing left to remove */
    if (fsync(w->dir) != 0 && !cannot_sync(errno))
        return fail_write(w, "sync its folder (the file is complete)", errno, err);
    return VR_OK;
}

vr_status vr_file_commit(vr_file_writer *w, vr_error *err)
{
    vr_status s = finish(w, err);
    vr_file_abandon(w);
    return s;
}

void vr_file_abandon(vr_file_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    if (w->tmp[0] != '\0')
        unlinkat(w->dir, w->tmp, 0);
    if (w->dir >= 0)
        close(w->dir);
    free(w->shown);
    free(w->real);
    free(w);
}
