/* See io_test.h. A helper that cannot do its work aborts the test.
 *
 * SPDX-License-Identifier: MIT */
#include "io_test.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static void need(bool ok, const char *what)
{
    if (!ok) {
        perror(what);
        abort();
    }
}

io_dir io_dir_make(void)
{
    io_dir d;
    const char *base = getenv("TMPDIR");
    snprintf(d.path, sizeof d.path, "%.200s/vaeref-io-XXXXXX", base ? base : P_tmpdir);
    need(mkdtemp(d.path) != NULL, "mkdtemp");
    return d;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void io_dir_remove(const io_dir *d)
{
    nftw(d->path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int io_dir_entries(const io_dir *d)
{
    DIR *f = opendir(d->path);
    need(f != NULL, "opendir");
    int n = 0;
    for (struct dirent *e; (e = readdir(f));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(f);
    return n;
}

const char *io_join(char buf[IO_PATH], const io_dir *d, const char *name)
{
    int n = snprintf(buf, IO_PATH, "%s/%s", d->path, name);
    need(n > 0 && n < IO_PATH, "io_join");
    return buf;
}

void io_put(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    need(f != NULL, path);
    need(n == 0 || fwrite(data, 1, n, f) == n, path);
    need(fclose(f) == 0, path);
}

uint8_t *io_get(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    need(f != NULL, path);
    io_bytes b = {0};
    uint8_t part[4096];
    for (size_t got; (got = fread(part, 1, sizeof part, f)) > 0;)
        io_add(&b, part, got);
    fclose(f);
    *n = b.n;
    return b.p;
}

void io_add(io_bytes *b, const void *data, size_t n)
{
    b->p = realloc(b->p, b->n + n + 1);
    need(b->p != NULL, "realloc");
    if (n)
        memcpy(b->p + b->n, data, n);
    b->n += n;
}

void io_free(io_bytes *b)
{
    free(b->p);
    *b = (io_bytes){0};
}

io_bytes io_safetensors(const char *header, size_t data)
{
    io_bytes b = {0};
    uint64_t n = strlen(header);
    io_add(&b, &n, 8);
    io_add(&b, header, n);
    for (size_t i = 0; i < data; i++) {
        uint8_t v = (uint8_t)i;
        io_add(&b, &v, 1);
    }
    return b;
}

vr_io_blob io_blob(const void *data, size_t n)
{
    uint8_t *p = n ? malloc(n) : NULL;
    need(n == 0 || p, "malloc");
    if (n)
        memcpy(p, data, n);
    return (vr_io_blob){p, n, false};
}

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

void io_png_chunk(io_bytes *b, const char *type, const void *data, size_t n)
{
    uint8_t word[4];
    size_t start = b->n + 4;
    put32(word, (uint32_t)n);
    io_add(b, word, 4);
    io_add(b, type, 4);
    io_add(b, data, n);
    put32(word, (uint32_t)crc32(0, b->p + start, (uInt)(n + 4)));
    io_add(b, word, 4);
}

void io_png_start(io_bytes *b, uint32_t w, uint32_t h, int bits, int colour, int interlace)
{
    uint8_t ihdr[13] = {0};
    put32(ihdr, w);
    put32(ihdr + 4, h);
    ihdr[8] = (uint8_t)bits;
    ihdr[9] = (uint8_t)colour;
    ihdr[12] = (uint8_t)interlace;
    io_add(b, "\x89PNG\r\n\x1a\n", 8);
    io_png_chunk(b, "IHDR", ihdr, 13);
}

void io_png_idat(io_bytes *b, const void *raw, size_t n)
{
    uLongf room = compressBound((uLong)n);
    uint8_t *z = malloc(room);
    need(z && compress(z, &room, raw, (uLong)n) == Z_OK, "compress");
    io_png_chunk(b, "IDAT", z, room);
    free(z);
}

void io_png_end(io_bytes *b)
{
    io_png_chunk(b, "IEND", NULL, 0);
}
