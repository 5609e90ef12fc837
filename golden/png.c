/* golden/png.c: a PNG whose bytes depend on the pixels alone.
 *
 * Compressed bytes differ between zlib versions, and a committed picture must
 * come out the same everywhere (clause G4). So the image data are stored blocks:
 * larger by about a half for a photograph, but fixed. Layout: PNG specification
 * (third edition) 5 and 11, RFC 1950, RFC 1951 3.2.4.
 *
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 65535, MAX_SIDE = 65535 };

static uint32_t crc32(const uint8_t *p, size_t n)
{
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++)
            c = (c >> 1) ^ (0xedb88320u & (0u - (c & 1u)));
    }
    return ~c;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
    return p + 4;
}

/* Closes the chunk whose type begins at `type` and whose data end at `end`. */
static uint8_t *close_chunk(uint8_t *type, uint8_t *end)
{
    put32(type - 4, (uint32_t)(end - type - 4));
    return put32(end, crc32(type, (size_t)(end - type)));
}

static uint8_t *open_chunk(uint8_t *p, const char *type)
{
    memcpy(p + 4, type, 4);
    return p + 4;
}

/* Filter byte 0 and samples of every row, as one zlib stream of stored blocks. */
static uint8_t *put_pixels(uint8_t *p, int64_t w, int64_t h, int64_t c, const uint8_t *pixels)
{
    const size_t row = (size_t)(w * c), total = (row + 1) * (size_t)h;
    uint32_t a = 1, b = 0; /* Adler-32 */
    *p++ = 0x78;
    *p++ = 0x01;
    for (size_t at = 0; at < total; at++) {
        if (at % BLOCK == 0) {
            const size_t n = total - at < BLOCK ? total - at : BLOCK;
            *p++ = at + n == total; /* the last block? */
            *p++ = (uint8_t)(n & 255);
            *p++ = (uint8_t)(n >> 8);
            *p++ = (uint8_t)(~n & 255);
            *p++ = (uint8_t)(~n >> 8 & 255);
        }
        const size_t x = at % (row + 1);
        const uint8_t v = x ? pixels[at / (row + 1) * row + x - 1] : 0;
        *p++ = v;
        a = (a + v) % 65521;
        b = (b + a) % 65521;
    }
    return put32(p, b << 16 | a);
}

vr_status vg_png_write(const char *path, int64_t w, int64_t h, int64_t c, const uint8_t *pixels, vr_error *err)
{
    if (w < 1 || h < 1 || w > MAX_SIDE || h > MAX_SIDE || (c != 1 && c != 3))
        return vr_fail(err, VR_E_SHAPE, "%s: a picture of %lldx%lld with %lld channels; want 1 or 3 channels and sides "
                       "from 1 to %d", path, (long long)w, (long long)h, (long long)c, MAX_SIDE);
    const size_t total = (size_t)(w * c + 1) * (size_t)h;
    uint8_t *png = malloc(total + 5 * (total / BLOCK + 1) + 100);
    if (!png)
        return vr_fail(err, VR_E_NOMEM, "%s: no memory for a picture of %lldx%lld", path, (long long)w, (long long)h);
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    memcpy(png, signature, 8);
    uint8_t *type = open_chunk(png + 8, "IHDR");
    uint8_t *p = put32(put32(type + 4, (uint32_t)w), (uint32_t)h);
    const uint8_t form[5] = {8, c == 3 ? 2 : 0, 0, 0, 0}; /* bits, colour, deflate, filter, no interlace */
    memcpy(p, form, 5);
    p = close_chunk(type, p + 5);
    type = open_chunk(p, "IDAT");
    p = close_chunk(type, put_pixels(type + 4, w, h, c, pixels));
    type = open_chunk(p, "IEND");
    p = close_chunk(type, type + 4);
    vr_status s = vg_file_write(path, png, (size_t)(p - png), err);
    free(png);
    return s;
}
