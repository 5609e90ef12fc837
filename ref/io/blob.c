/* Whole input files as read-only memory (clauses F2..F5).
 *
 * A regular file is mapped once with the size it has at opening; a file that
 * grows later is read as it was, one that another process cuts short while it
 * is in use ends the process with SIGBUS as any mapping does. Pipes and devices
 * are read to memory, up to STREAM_LIMIT.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STREAM_LIMIT ((size_t)1 << 30) /* an endless device must stop somewhere */

/* Reads fd to its end into exactly the bytes it gave. */
static vr_status read_all(const char *path, int fd, size_t limit, vr_io_blob *out, vr_error *err)
{
    size_t have = 0, room = 0;
    uint8_t *data = NULL;
    vr_status s;
    for (;;) {
        if (have == room) {
            room = room ? room * 2 : 65536;
            uint8_t *more = realloc(data, room);
            if (!more) {
                s = vr_fail(err, VR_E_NOMEM, "%s: no memory for %zu bytes", SHOW_PATH(path), room);
                goto fail;
            }
            data = more;
        }
        ssize_t got = read(fd, data + have, room - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            s = vr_fail(err, VR_E_IO, "%s: cannot read: %s", SHOW_PATH(path), ERRNO_TEXT(errno));
            goto fail;
        }
        if (got == 0)
            break;
        have += (size_t)got;
        if (have > limit) {
            s = vr_fail(err, VR_E_UNSUPPORTED,
                        "%s: gives more than %zu bytes; a stream this long must be a file",
                        SHOW_PATH(path), limit);
            goto fail;
        }
    }
    if (have == 0) {
        free(data);
        data = NULL;
    } else {
        uint8_t *exact = realloc(data, have);
        data = exact ? exact : data;
    }
    *out = (vr_io_blob){data, have, false};
    return VR_OK;
fail:
    free(data);
    return s;
}

static vr_status blob_from_fd(const char *path, int fd, vr_io_blob *out, vr_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return vr_fail(err, VR_E_IO, "%s: cannot examine: %s", SHOW_PATH(path),
                       ERRNO_TEXT(errno));
    if (S_ISDIR(st.st_mode))
        return vr_fail(err, VR_E_IO, "%s: is a folder; a file is needed", SHOW_PATH(path));
    if (!S_ISREG(st.st_mode))
        return read_all(path, fd, STREAM_LIMIT, out, err);
    if (st.st_size == 0)
        return VR_OK;
    size_t size = (size_t)st.st_size;
    void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) /* some file systems cannot map */
        return read_all(path, fd, size, out, err);
    *out = (vr_io_blob){p, size, true};
    return VR_OK;
}

vr_status vr_io_blob_open(const char *path, vr_io_blob *out, vr_error *err)
{
    *out = (vr_io_blob){0};
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        int e = errno;
        if (e == ENOENT || e == ENOTDIR)
            return vr_fail(err, VR_E_NOTFOUND, "%s: no such file", SHOW_PATH(path));
        return vr_fail(err, VR_E_IO, "%s: cannot open: %s", SHOW_PATH(path), ERRNO_TEXT(e));
    }
    vr_status s = blob_from_fd(path, fd, out, err);
    close(fd);
    return s;
}

void vr_io_blob_close(vr_io_blob *b)
{
    if (b->mapped)
        munmap((void *)(uintptr_t)b->data, b->size);
    else
        free((void *)(uintptr_t)b->data);
    *b = (vr_io_blob){0};
}
