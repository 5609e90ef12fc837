/* Helpers of the tests of ref/io: a private folder per test, files from bytes,
 * safetensors and PNG files built by hand (not by the code under test).
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_IO_TEST_H
#define VAEREF_IO_TEST_H

#include "io/io_internal.h"

#define IO_PATH 512

typedef struct io_dir {
    char path[IO_PATH / 2];
} io_dir;

io_dir io_dir_make(void);
void io_dir_remove(const io_dir *d);
int io_dir_entries(const io_dir *d); /* number of files in it */
/* d/name in buf */
const char *io_join(char buf[IO_PATH], const io_dir *d, const char *name);
#define IO_FILE(d, name) io_join((char[IO_PATH]){0}, (d), (name))

void io_put(const char *path, const void *data, size_t n);
uint8_t *io_get(const char *path, size_t *n); /* free() it */

/* A growing byte string; abort()s without memory. */
typedef struct io_bytes {
    uint8_t *p;
    size_t n;
} io_bytes;

void io_add(io_bytes *b, const void *data, size_t n);
void io_free(io_bytes *b);

/* Header length, header, then `data` bytes 0, 1, 2, ... */
io_bytes io_safetensors(const char *header, size_t data);

/* A heap copy without slack, as a blob the parsers may own. */
vr_io_blob io_blob(const void *data, size_t n);

/* Signature and chunks with right checksums. */
void io_png_start(io_bytes *b, uint32_t w, uint32_t h, int bits, int colour, int interlace);
void io_png_chunk(io_bytes *b, const char *type, const void *data, size_t n);
void io_png_idat(io_bytes *b, const void *raw, size_t n); /* deflated */
void io_png_end(io_bytes *b);

#endif
