/* Memory that runner and child share. SPDX-License-Identifier: MIT */
#include "runner/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint8_t guard_byte(uint64_t at)
{
    return (uint8_t)(0xC5 ^ (at * 31));
}

static vr_status map_new(vc_slot *s, const char *dir, uint64_t bytes, vr_error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, s->name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    s->map = MAP_FAILED;
    if (fd >= 0 && posix_fallocate(fd, 0, (off_t)bytes) == 0)
        s->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int why = errno;
    if (fd >= 0)
        close(fd);
    if (s->map == MAP_FAILED) {
        s->map = NULL;
        return vr_fail(err, VR_E_IO, "cannot share %llu bytes in %s: %s", (unsigned long long)bytes, path, strerror(why));
    }
    s->map_bytes = bytes;
    return VR_OK;
}

vr_status vc_slot_bytes(vc_slot *s, const char *dir, const char *name, uint64_t bytes, vr_error *err)
{
    *s = (vc_slot){.offset = 0};
    snprintf(s->name, sizeof s->name, "%s", name);
    vr_status st = map_new(s, dir, bytes ? bytes : 1, err);
    s->tensor.data = s->map;
    return st;
}

vr_status vc_slot_make(vc_slot *s, const char *dir, const char *name, uint32_t dtype, const int64_t dim[5], int64_t pad,
                       vr_error *err)
{
    *s = (vc_slot){.offset = VC_GUARD};
    snprintf(s->name, sizeof s->name, "%s", name);
    vp_tensor *t = &s->tensor;
    *t = (vp_tensor){.size = sizeof *t, .dtype = dtype, .rank = 5};
    int64_t step = 1;
    for (int d = 4; d >= 0; d--) {
        t->dim[d] = dim[d];
        t->stride[d] = step;
        step *= dim[d] + (d == 4 ? pad : 0);
    }
    const uint64_t e = wire_dtype_size(dtype);
    t->bytes = (uint64_t)(step - pad) * e; /* the last row ends with its last element */
    vr_status st = map_new(s, dir, (VC_GUARD + t->bytes + VC_GUARD + 63) / 64 * 64, err);
    if (st != VR_OK)
        return st;
    t->data = (char *)s->map + VC_GUARD;
    for (uint64_t k = 0; k < s->map_bytes; k++)
        ((uint8_t *)s->map)[k] = guard_byte(k);
    return VR_OK;
}

void vc_slot_free(vc_slot *s)
{
    if (s->map)
        munmap(s->map, s->map_bytes);
    s->map = NULL;
}

static int64_t rows_of(const vp_tensor *t)
{
    return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

static char *row_at(const vc_slot *s, int64_t row)
{
    return (char *)s->tensor.data + (uint64_t)(row * s->tensor.stride[3]) * wire_dtype_size(s->tensor.dtype);
}

static uint64_t row_bytes(const vc_slot *s)
{
    return (uint64_t)s->tensor.dim[4] * wire_dtype_size(s->tensor.dtype);
}

void vc_slot_put(vc_slot *s, const void *dense)
{
    const uint64_t n = row_bytes(s);
    for (int64_t r = 0; r < rows_of(&s->tensor); r++)
        memcpy(row_at(s, r), (const char *)dense + (uint64_t)r * n, n);
}

void vc_slot_get(const vc_slot *s, void *dense)
{
    const uint64_t n = row_bytes(s);
    for (int64_t r = 0; r < rows_of(&s->tensor); r++)
        memcpy((char *)dense + (uint64_t)r * n, row_at(s, r), n);
}

/* A NaN of the dtype with a payload that nobody computes. */
static void poison_element(uint32_t dtype, uint8_t poison, unsigned char out[8])
{
    const uint64_t f64 = 0x7ff4dead0000beefu + poison;
    const uint32_t f32 = 0x7fa5dea0u + poison;
    const uint16_t f16 = (uint16_t)(0x7d50u + poison), bf16 = (uint16_t)(0x7fa8u + poison);
    if (dtype == VP_F64)
        memcpy(out, &f64, 8);
    else if (dtype == VP_F32)
        memcpy(out, &f32, 4);
    else
        memcpy(out, dtype == VP_F16 ? &f16 : &bf16, 2);
}

void vc_slot_poison(vc_slot *s, uint8_t poison)
{
    unsigned char e[8];
    const uint64_t size = wire_dtype_size(s->tensor.dtype);
    poison_element(s->tensor.dtype, poison, e);
    s->poison = poison;
    for (int64_t r = 0; r < rows_of(&s->tensor); r++)
        for (int64_t x = 0; x < s->tensor.dim[4]; x++)
            memcpy(row_at(s, r) + (uint64_t)x * size, e, size);
}

int64_t vc_slot_untouched(const vc_slot *s)
{
    unsigned char e[8];
    int64_t n = 0;
    const uint64_t size = wire_dtype_size(s->tensor.dtype);
    poison_element(s->tensor.dtype, s->poison, e);
    for (int64_t r = 0; r < rows_of(&s->tensor); r++)
        for (int64_t x = 0; x < s->tensor.dim[4]; x++)
            n += memcmp(row_at(s, r) + (uint64_t)x * size, e, size) == 0;
    return n;
}

int64_t vc_slot_trespass(const vc_slot *s, int64_t *first)
{
    const uint64_t row = row_bytes(s), step = (uint64_t)s->tensor.stride[3] * wire_dtype_size(s->tensor.dtype);
    const uint64_t rows = (uint64_t)rows_of(&s->tensor);
    int64_t n = 0;
    *first = 0;
    for (uint64_t k = 0; k < s->map_bytes; k++) {
        const uint64_t in = k - s->offset; /* wraps before the data: then past every row */
        const bool element = k >= s->offset && in / step < rows && in % step < row;
        if (element || ((const uint8_t *)s->map)[k] == guard_byte(k))
            continue;
        if (!n++)
            *first = (int64_t)k - (int64_t)s->offset;
    }
    return n;
}

json_t *vc_slot_json(const vc_slot *s)
{
    return wire_tensor(s->name, s->offset, &s->tensor);
}
