/* Proving a PNG file before decoding it (clause F4.1).
 *
 * Walks the chunks without allocating: signature, IHDR first, every chunk
 * inside the file with a right checksum, IDAT present, IEND at the end. Bytes
 * after IEND are not part of the picture and are allowed. The IHDR is then held
 * against the compressed size: deflate cannot expand more than 1032 times, so a
 * header that promises more pixels than the data can give is refused here.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <string.h>
#include <zlib.h>

#define MAX_SIDE 65535u
#define DEFLATE_MOST 1032u /* output bytes per input byte, zlib technical details */

typedef unsigned long long ull;

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

typedef struct chunk {
    uint32_t length;
    char type[5];
    const uint8_t *data;
    size_t offset; /* of its length field in the file */
} chunk;

/* Reads the chunk at *at and moves on. */
static vr_status next_chunk(const char *path, const vr_io_blob *b, size_t *at, chunk *c,
                            vr_error *err)
{
    if (b->size - *at < 12)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: truncated: a chunk is needed at byte %zu (no IEND yet), file has %zu",
                       SHOW_PATH(path), *at, b->size);
    const uint8_t *p = b->data + *at;
    c->length = be32(p);
    for (int i = 0; i < 4; i++)
        c->type[i] = p[4 + i] >= 0x20 && p[4 + i] < 0x7f ? (char)p[4 + i] : '?';
    c->type[4] = '\0';
    c->data = p + 8;
    c->offset = *at;
    if (c->length > 0x7fffffffu || c->length > b->size - *at - 12)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: truncated: chunk %s needs bytes %zu..%llu, file has %zu",
                       SHOW_PATH(path), c->type, *at, (ull)*at + 12 + c->length, b->size);
    uint32_t right = (uint32_t)crc32(0, p + 4, c->length + 4), given = be32(c->data + c->length);
    if (right != given)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: chunk %s at byte %zu has checksum %08x; its content gives %08x",
                       SHOW_PATH(path), c->type, *at, given, right);
    *at += (size_t)c->length + 12;
    return VR_OK;
}

static bool is_legal_depth(uint8_t colour, uint8_t bits)
{
    switch (colour) {
    case 0:
        return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
    case 3:
        return bits == 1 || bits == 2 || bits == 4 || bits == 8;
    case 2:
    case 4:
    case 6:
        return bits == 8 || bits == 16;
    default:
        return false;
    }
}

static vr_status read_ihdr(const char *path, const chunk *c, vr_io_png_head *h, vr_error *err)
{
    if (strcmp(c->type, "IHDR") != 0 || c->length != 13)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: first chunk is %s of %u bytes; IHDR of 13 bytes is needed",
                       SHOW_PATH(path), c->type, c->length);
    const uint8_t *p = c->data;
    h->width = be32(p);
    h->height = be32(p + 4);
    h->bits = p[8];
    h->colour = p[9];
    h->interlace = p[12];
    if (h->width < 1 || h->height < 1 || h->width > MAX_SIDE || h->height > MAX_SIDE)
        return vr_fail(err, VR_E_FORMAT, "%s: IHDR gives %ux%u pixels; 1..%u a side is possible",
                       SHOW_PATH(path), h->width, h->height, MAX_SIDE);
    if (!is_legal_depth(h->colour, h->bits))
        return vr_fail(err, VR_E_FORMAT, "%s: IHDR gives colour type %u with %u bits: no such PNG",
                       SHOW_PATH(path), h->colour, h->bits);
    if (p[10] != 0 || p[11] != 0 || p[12] > 1)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: IHDR gives compression %u, filter %u, interlace %u; 0, 0 and 0 or 1 "
                       "are possible",
                       SHOW_PATH(path), p[10], p[11], p[12]);
    return VR_OK;
}

/* Bytes of the filtered picture: one filter byte and the packed row, per row. */
static uint64_t packed_bytes(const vr_io_png_head *h)
{
    static const uint8_t channels[7] = {1, 0, 3, 1, 2, 0, 4};
    static const uint8_t x0[7] = {0, 4, 0, 2, 0, 1, 0}, dx[7] = {8, 8, 4, 4, 2, 2, 1};
    static const uint8_t y0[7] = {0, 0, 4, 0, 2, 0, 1}, dy[7] = {8, 8, 8, 4, 4, 2, 2};
    uint64_t pixel = (uint64_t)channels[h->colour] * h->bits;
    if (!h->interlace)
        return (uint64_t)h->height * (1 + (h->width * pixel + 7) / 8);
    uint64_t sum = 0;
    for (int i = 0; i < 7; i++) {
        uint64_t w = h->width > x0[i] ? (h->width - x0[i] + dx[i] - 1u) / dx[i] : 0;
        uint64_t n = h->height > y0[i] ? (h->height - y0[i] + dy[i] - 1u) / dy[i] : 0;
        if (w)
            sum += n * (1 + (w * pixel + 7) / 8);
    }
    return sum;
}

static vr_status check_expansion(const char *path, const vr_io_png_head *h, vr_error *err)
{
    uint64_t need = packed_bytes(h), most = h->idat_bytes * DEFLATE_MOST;
    if (need <= most)
        return VR_OK;
    return vr_fail(err, VR_E_FORMAT,
                   "%s: IHDR gives %ux%u pixels (%llu bytes), but %llu bytes of IDAT can hold at "
                   "most %llu",
                   SHOW_PATH(path), h->width, h->height, (ull)need, (ull)h->idat_bytes,
                   (ull)most);
}

vr_status vr_io_png_scan(const char *path, const vr_io_blob *b, vr_io_png_head *out,
                         vr_error *err)
{
    *out = (vr_io_png_head){0};
    if (b->size == 0)
        return vr_fail(err, VR_E_FORMAT, "%s: is empty; a PNG picture was expected",
                       SHOW_PATH(path));
    if (b->size < 8 || memcmp(b->data, "\x89PNG\r\n\x1a\n", 8) != 0)
        return vr_fail(err, VR_E_FORMAT, "%s: is not a PNG picture: no PNG signature%s",
                       SHOW_PATH(path), vr_io_kind_note(b->data, b->size));
    size_t at = 8;
    chunk c;
    vr_status s = next_chunk(path, b, &at, &c, err);
    if (!s)
        s = read_ihdr(path, &c, out, err);
    while (!s && strcmp(c.type, "IEND") != 0) {
        s = next_chunk(path, b, &at, &c, err);
        if (!s && strcmp(c.type, "IDAT") == 0)
            out->idat_bytes += c.length;
        out->has_trns = out->has_trns || (!s && strcmp(c.type, "tRNS") == 0);
    }
    if (!s && out->idat_bytes == 0)
        s = vr_fail(err, VR_E_FORMAT, "%s: has no picture data (no IDAT chunk)", SHOW_PATH(path));
    return s ? s : check_expansion(path, out, err);
}
