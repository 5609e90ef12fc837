/* Memory of the exact executor: the pool that carries the limit, and the host
 * store for values that cannot stay in it.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tile/exact.h"

vr_status ex_alloc(ex_state *s, uint64_t bytes, void **out, vr_error *err)
{
    *out = NULL;
    if (!s->dry) {
        vr_status st = vr_pool_alloc(s->pool, bytes, out, err);
        if (st != VR_OK)
            return st;
    }
    s->live += bytes;
    if (s->live > s->peak)
        s->peak = s->live;
    return VR_OK;
}

void ex_free(ex_state *s, uint64_t bytes, void *p)
{
    s->live -= bytes;
    if (!s->dry)
        vr_pool_free(s->pool, p);
}

/* A file that has no name: it vanishes with the process, however that ends. */
static vr_status map_file(const char *dir, uint64_t bytes, void **out, vr_error *err)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        char name[4096];
        if (snprintf(name, sizeof name, "%s/vaeref-spill-XXXXXX", dir) >= (int)sizeof name)
            return vr_fail(err, VR_E_IO, "spill folder '%s': path too long", dir);
        fd = mkstemp(name);
        if (fd >= 0)
            unlink(name);
    }
    if (fd < 0)
        return vr_fail(err, VR_E_IO, "spill folder '%s': cannot create a file: %s", dir, strerror(errno));
    int failed = posix_fallocate(fd, 0, (off_t)bytes); /* a full disk is an error now, not a signal later */
    void *p = failed ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int why = failed ? failed : errno;
    close(fd);
    if (p == MAP_FAILED)
        return vr_fail(err, VR_E_IO, "spill folder '%s': cannot hold %llu bytes: %s", dir,
                       (unsigned long long)bytes, strerror(why));
    *out = p;
    return VR_OK;
}

vr_status ex_store_get(ex_state *s, uint64_t bytes, void **out, vr_error *err)
{
    *out = NULL;
    if (!s->dry) {
        if (s->spill_dir) {
            vr_status st = map_file(s->spill_dir, bytes, out, err);
            if (st != VR_OK)
                return st;
        } else if (!(*out = aligned_alloc(64, (bytes + 63) / 64 * 64))) {
            return vr_fail(err, VR_E_NOMEM, "cannot allocate %llu bytes of host store", (unsigned long long)bytes);
        }
    }
    s->store_live += bytes;
    s->store_written += bytes;
    if (s->store_live > s->store_peak)
        s->store_peak = s->store_live;
    return VR_OK;
}

void ex_store_put(ex_state *s, uint64_t bytes, void *p)
{
    s->store_live -= bytes;
    if (s->dry || !p)
        return;
    if (s->spill_dir)
        munmap(p, bytes);
    else
        free(p);
}
