/* Writing NumPy .npy files (clause F3.5): the bytes numpy.save writes.
 *
 * Version 1, header padded with spaces so that data starts at a multiple of 64.
 * (Newer NumPy also leaves room for the first extent to grow to 21 digits. With
 * at most VR_MAX_RANK extents of an array that fits an address space that room
 * always ends inside the same padding, so it changes no byte.) A header never
 * reaches the 65535 bytes that would need version 2.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <stdio.h>
#include <string.h>

#define HEADER_ROOM 512 /* 8 extents of 20 digits, padding and fixed text */

_Static_assert(VR_MAX_RANK * 22 + 64 + 80 < HEADER_ROOM, "header fits");

static const char *descr_of(vr_dtype t)
{
    switch (t) {
    case VR_F16:
        return "<f2";
    case VR_F32:
        return "<f4";
    case VR_F64:
        return "<f8";
    case VR_U8:
        return "|u1";
    default:
        return NULL;
    }
}

/* Fills buf with magic, version, length and padded text; returns its size. */
static size_t build_header(uint8_t buf[HEADER_ROOM], const char *descr, const vr_tensor *t)
{
    char text[HEADER_ROOM];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t i = 0; i < t->rank; i++) {
        const char *comma = t->rank == 1 ? "," : i + 1 < t->rank ? ", " : "";
        n += (size_t)snprintf(text + n, sizeof text - n, "%lld%s", (long long)t->dim[i], comma);
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "), }");
    size_t used = 10 + n + 1; /* + 1: the line break */
    size_t total = used + 64 - used % 64;
    uint16_t length = (uint16_t)(total - 10);
    memcpy(buf, "\x93NUMPY\x01\x00", 8);
    memcpy(buf + 8, &length, 2);
    memcpy(buf + 10, text, n);
    memset(buf + 10 + n, ' ', total - 10 - n);
    buf[total - 1] = '\n';
    return total;
}

vr_status vr_npy_write(const char *path, const vr_tensor *t, vr_error *err)
{
    const char *descr = descr_of(t->dtype);
    if (!descr)
        return vr_fail(err, VR_E_DTYPE,
                       "%s: .npy cannot hold %s; convert to F32 (or F16, F64, U8) first",
                       SHOW_PATH(path), vr_dtype_name(t->dtype));
    int64_t count;
    uint64_t bytes;
    if (t->rank < 0 || t->rank > VR_MAX_RANK || vr_tensor_count(t, &count, NULL) ||
        __builtin_mul_overflow((uint64_t)count, (uint64_t)vr_dtype_size(t->dtype), &bytes))
        return vr_fail(err, VR_E_SHAPE, "%s: the tensor has no valid shape", SHOW_PATH(path));
    if (bytes && !t->data)
        return vr_fail(err, VR_E_ARGUMENT, "%s: the tensor has no data", SHOW_PATH(path));
    uint8_t header[HEADER_ROOM];
    size_t n = build_header(header, descr, t);
    vr_file_writer *w;
    vr_status s = vr_file_create(path, &w, err);
    if (s)
        return s;
    s = vr_file_write(w, header, n, err);
    if (!s && bytes)
        s = vr_file_write(w, t->data, (size_t)bytes, err);
    if (s) {
        vr_file_abandon(w);
        return s;
    }
    return vr_file_commit(w, err);
}
