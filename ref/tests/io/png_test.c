/* PNG pictures (clause F4): every kind the format has, built by hand with zlib
 * so that reader and writer are not only compared with each other; and damage.
 *
 * SPDX-License-Identifier: MIT */
#include "io_test.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static vr_status decode(const io_bytes *b, vr_image *m, vr_error *err)
{
    vr_io_blob blob = io_blob(b->p, b->n);
    vr_status s = vr_io_png_decode("p.png", &blob, m, err);
    vr_io_blob_close(&blob);
    return s;
}

Test(png, every_layout_comes_back_and_twice_the_same_bytes)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "a.png"), *again = IO_FILE(&d, "b.png");
    static const int32_t sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {7, 5}, {64, 33}};
    uint8_t data[64 * 33 * 8];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i * 31 + i / 7);
    for (int channels = 1; channels <= 4; channels++)
        for (int depth = 8; depth <= 16; depth += 8)
            for (size_t k = 0; k < 5; k++) {
                vr_image m = {sizes[k][0], sizes[k][1], channels, depth, data}, r;
                vr_error err = {0};
                cr_assert(!vr_png_write(path, &m, &err), "%s", err.text);
                cr_assert(!vr_png_write(again, &m, &err), "%s", err.text);
                cr_assert(!vr_png_read(path, &r, &err), "%s", err.text);
                size_t n = (size_t)(m.width * m.height * channels * depth / 8), n1, n2;
                cr_assert(r.width == m.width && r.height == m.height);
                cr_assert(r.channels == channels && r.depth == depth);
                cr_assert(!memcmp(r.data, data, n), "%d channels %d bits", channels, depth);
                uint8_t *a = io_get(path, &n1), *b = io_get(again, &n2);
                cr_assert(n1 == n2 && !memcmp(a, b, n1));
                /* IHDR, IDAT..., IEND and nothing else */
                cr_assert(!memcmp(a + 37, "IDAT", 4) && !memcmp(a + n1 - 8, "IEND", 4));
                free(a);
                free(b);
                vr_image_free(&r);
            }
    io_dir_remove(&d);
}

typedef struct kind {
    const char *title;
    uint32_t w, h;
    int bits, colour;
    const char *plte, *trns;
    size_t plte_n, trns_n;
    const char *raw; /* filter byte 0 and packed samples, per row */
    size_t raw_n;
    int channels, depth;
    const char *want; /* 16-bit samples big endian as in the file */
    size_t want_n;
} kind;

#define RAW(s) s, sizeof(s) - 1
#define NONE NULL, NULL, 0, 0

static const kind kinds[] = {
    {"grey 1", 3, 2, 1, 0, NONE, RAW("\0\xa0\0\x40"), 1, 8, RAW("\xff\0\xff\0\xff\0")},
    {"grey 2", 4, 1, 2, 0, NONE, RAW("\0\x1b"), 1, 8, RAW("\0\x55\xaa\xff")},
    {"grey 4", 2, 1, 4, 0, NONE, RAW("\0\x2f"), 1, 8, RAW("\x22\xff")},
    {"grey 8", 2, 1, 8, 0, NONE, RAW("\0\7\xfe"), 1, 8, RAW("\7\xfe")},
    {"grey 16", 2, 1, 16, 0, NONE, RAW("\0\1\2\xfe\xff"), 1, 16, RAW("\1\2\xfe\xff")},
    {"RGB 16", 1, 1, 16, 2, NONE, RAW("\0\1\2\3\4\5\6"), 3, 16, RAW("\1\2\3\4\5\6")},
    {"grey and alpha", 1, 1, 8, 4, NONE, RAW("\0\7\x80"), 2, 8, RAW("\7\x80")},
    {"RGBA", 1, 1, 8, 6, NONE, RAW("\0\1\2\3\0"), 4, 8, RAW("\1\2\3\0")},
    {"palette 2", 4, 1, 2, 3, "\1\2\3\4\5\6\7\7\7", NULL, 9, 0, RAW("\0\x18"), 3, 8,
     RAW("\1\2\3\4\5\6\7\7\7\1\2\3")},
    {"palette 8, clear colour", 2, 1, 8, 3, "\1\2\3\4\5\6", "\x40", 6, 1, RAW("\0\0\1"), 4, 8,
     RAW("\1\2\3\x40\4\5\6\xff")},
    {"grey 8, clear value", 2, 1, 8, 0, NULL, "\0\7", 0, 2, RAW("\0\7\x08"), 2, 8,
     RAW("\7\0\x08\xff")},
    {"grey 2, clear value", 2, 1, 2, 0, NULL, "\0\1", 0, 2, RAW("\0\x70"), 2, 8,
     RAW("\x55\0\xff\xff")},
    {"RGB 8, clear colour", 2, 1, 8, 2, NULL, "\0\1\0\2\0\3", 0, 6, RAW("\0\1\2\3\1\2\4"), 4, 8,
     RAW("\1\2\3\0\1\2\4\xff")},
    {"filters", 3, 3, 8, 0, NONE, RAW("\1\1\1\1\2\1\1\1\4\1\1\1"), 1, 8,
     RAW("\1\2\3\2\3\4\3\4\5")},
};

static void swap_pairs(uint8_t *p, size_t n)
{
    for (size_t i = 0; i + 1 < n; i += 2) {
        uint8_t t = p[i];
        p[i] = p[i + 1];
        p[i + 1] = t;
    }
}

Test(png, every_kind_of_the_format_gives_its_samples)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const kind *k = &kinds[i];
        io_bytes b = {0};
        io_png_start(&b, k->w, k->h, k->bits, k->colour, 0);
        io_png_chunk(&b, "gAMA", "\0\0\xb1\x8f", 4); /* must not touch the samples */
        if (k->plte)
            io_png_chunk(&b, "PLTE", k->plte, k->plte_n);
        if (k->trns)
            io_png_chunk(&b, "tRNS", k->trns, k->trns_n);
        io_png_idat(&b, k->raw, k->raw_n);
        io_png_end(&b);
        vr_image m;
        vr_error err = {0};
        cr_assert(!decode(&b, &m, &err), "%s: %s", k->title, err.text);
        cr_assert(m.channels == k->channels && m.depth == k->depth, "%s: %d x %d bits", k->title,
                  m.channels, m.depth);
        if (m.depth == 16)
            swap_pairs(m.data, k->want_n);
        cr_assert(!memcmp(m.data, k->want, k->want_n), "%s", k->title);
        vr_image_free(&m);
        io_free(&b);
    }
}

Test(png, interlaced_pictures_come_out_in_order)
{
    static const uint32_t x0[7] = {0, 4, 0, 2, 0, 1, 0}, dx[7] = {8, 8, 4, 4, 2, 2, 1};
    static const uint32_t y0[7] = {0, 0, 4, 0, 2, 0, 1}, dy[7] = {8, 8, 8, 4, 4, 2, 2};
    static const uint32_t sizes[][2] = {{1, 1}, {2, 3}, {5, 1}, {8, 8}, {13, 11}};
    for (size_t k = 0; k < 5; k++) {
        uint32_t w = sizes[k][0], h = sizes[k][1];
        io_bytes raw = {0}, b = {0};
        for (int p = 0; p < 7; p++)
            for (uint32_t y = y0[p]; y < h && x0[p] < w; y += dy[p]) {
                io_add(&raw, "", 1);
                for (uint32_t x = x0[p]; x < w; x += dx[p]) {
                    uint8_t v = (uint8_t)(y * 16 + x);
                    io_add(&raw, &v, 1);
                }
            }
        io_png_start(&b, w, h, 8, 0, 1);
        io_png_idat(&b, raw.p, raw.n);
        io_png_end(&b);
        vr_image m;
        vr_error err = {0};
        cr_assert(!decode(&b, &m, &err), "%s", err.text);
        for (uint32_t y = 0; y < h; y++)
            for (uint32_t x = 0; x < w; x++)
                cr_assert(((uint8_t *)m.data)[y * w + x] == y * 16 + x);
        vr_image_free(&m);
        io_free(&raw);
        io_free(&b);
    }
}

Test(png, split_data_other_chunks_and_bytes_after_the_end_are_fine)
{
    io_bytes whole = {0}, b = {0};
    io_png_start(&whole, 2, 2, 8, 0, 0);
    size_t at = whole.n;
    io_png_idat(&whole, "\0\1\2\0\3\4", 6);
    size_t n = whole.n - at - 12;
    io_png_start(&b, 2, 2, 8, 0, 0);
    io_png_chunk(&b, "tEXt", "Comment\0hello", 13);
    for (size_t i = 0; i < n; i++) /* one byte per IDAT */
        io_png_chunk(&b, "IDAT", whole.p + at + 8 + i, 1);
    io_png_chunk(&b, "IDAT", NULL, 0);
    io_png_chunk(&b, "tIME", "\7\xe8\1\1\0\0\0", 7);
    io_png_end(&b);
    io_add(&b, "trailing bytes", 14);
    vr_image m;
    vr_error err = {0};
    cr_assert(!decode(&b, &m, &err), "%s", err.text);
    cr_assert(!memcmp(m.data, "\1\2\3\4", 4));
    vr_image_free(&m);
    vr_image_free(NULL);
    io_free(&whole);
    io_free(&b);
}

/* What is done to a good 2x2 grey picture. Chunks: IHDR at 8, IDAT at 33. */
typedef enum harm {
    H_EMPTY, H_TEXT, H_JPEG, H_LF_EATEN, H_ONLY_SIGNATURE, H_CRC_IHDR, H_CRC_IDAT, H_CUT_IDAT,
    H_CUT_IEND, H_NO_IEND, H_NO_IDAT, H_HUGE, H_TALL, H_WIDTH_0, H_WIDTH_65536, H_BITS_3,
    H_RGB_4, H_COLOUR_1, H_INTERLACE_2, H_COMPRESSION_1, H_FIRST_NOT_IHDR, H_LONG_CHUNK,
    H_BAD_DEFLATE, H_FEW_ROWS, H_BAD_FILTER, H_BAD_ADLER, H_NO_PALETTE, H_INDEX, H_UNKNOWN_CRITICAL,
    H_TWO_IHDR, H_EMPTY_IDAT,
} harm;

static const struct {
    harm harm;
    const char *needle;
} harms[] = {
    {H_EMPTY, "is empty; a PNG picture"},
    {H_TEXT, "not a PNG picture: no PNG signature; it looks like plain text"},
    {H_JPEG, "JPEG"},
    {H_LF_EATEN, "not a PNG picture"},
    {H_ONLY_SIGNATURE, "truncated: a chunk is needed at byte 8"},
    {H_CRC_IHDR, "chunk IHDR at byte 8 has checksum"},
    {H_CRC_IDAT, "chunk IDAT at byte 33 has checksum"},
    {H_CUT_IDAT, "truncated: chunk IDAT needs bytes 33.."},
    {H_CUT_IEND, "no IEND yet"},
    {H_NO_IEND, "no IEND yet"},
    {H_NO_IDAT, "no picture data"},
    {H_HUGE, "IHDR gives 65535x65535 pixels (34358755335 bytes), but"},
    {H_TALL, "IHDR gives 1x65535 pixels"},
    {H_WIDTH_0, "IHDR gives 0x2 pixels; 1..65535"},
    {H_WIDTH_65536, "IHDR gives 65536x2 pixels"},
    {H_BITS_3, "colour type 0 with 3 bits"},
    {H_RGB_4, "colour type 2 with 4 bits"},
    {H_COLOUR_1, "colour type 1 with 8 bits"},
    {H_INTERLACE_2, "interlace 2"},
    {H_COMPRESSION_1, "compression 1"},
    {H_FIRST_NOT_IHDR, "first chunk is IDAT"},
    {H_LONG_CHUNK, "truncated: chunk"},
    {H_BAD_DEFLATE, "damaged PNG data near byte"},
    {H_FEW_ROWS, "damaged PNG data near byte"},
    {H_BAD_FILTER, "bad adaptive filter"},
    {H_BAD_ADLER, "damaged PNG data near byte"},
    {H_NO_PALETTE, "damaged PNG data near byte"},
    {H_INDEX, "pixel 1,1 has palette index 3, the palette has 2"},
    {H_UNKNOWN_CRITICAL, "damaged PNG data near byte"},
    {H_TWO_IHDR, "damaged PNG data near byte"},
    {H_EMPTY_IDAT, "no picture data"},
};

static void start_of(io_bytes *b, harm h)
{
    uint32_t w = h == H_HUGE ? 65535 : h == H_TALL ? 1 : h == H_WIDTH_0 ? 0
               : h == H_WIDTH_65536 ? 65536 : 2;
    uint32_t height = h == H_HUGE || h == H_TALL ? 65535 : 2;
    int bits = h == H_BITS_3 ? 3 : h == H_RGB_4 ? 4 : h == H_HUGE ? 16 : 8;
    int colour = h == H_RGB_4 ? 2 : h == H_COLOUR_1 ? 1 : h == H_HUGE ? 6
               : h == H_NO_PALETTE || h == H_INDEX ? 3 : 0;
    if (h == H_FIRST_NOT_IHDR)
        io_add(b, "\x89PNG\r\n\x1a\n", 8);
    else
        io_png_start(b, w, height, bits, colour, h == H_INTERLACE_2 ? 2 : 0);
    if (h == H_COMPRESSION_1) { /* IHDR again, with right checksum */
        uint8_t ihdr[13];
        memcpy(ihdr, b->p + 16, 13);
        ihdr[10] = 1;
        b->n = 8;
        io_png_chunk(b, "IHDR", ihdr, 13);
    }
    if (h == H_TWO_IHDR)
        io_png_chunk(b, "IHDR", "\0\0\0\2\0\0\0\2\x08\0\0\0\0", 13);
    if (h == H_INDEX)
        io_png_chunk(b, "PLTE", "\1\2\3\4\5\6", 6);
    if (h == H_UNKNOWN_CRITICAL)
        io_png_chunk(b, "QQQQ", "x", 1);
}

static io_bytes harmed(harm h)
{
    io_bytes b = {0};
    start_of(&b, h);
    size_t idat = b.n;
    if (h == H_BAD_DEFLATE)
        io_png_chunk(&b, "IDAT", "\x78\x9c\xff\xff\xff\xff\xff\xff", 8);
    else if (h == H_EMPTY_IDAT)
        io_png_chunk(&b, "IDAT", NULL, 0);
    else if (h == H_BAD_ADLER) {
        io_png_idat(&b, "\0\1\2\0\3\4", 6);
        size_t n = b.n - idat - 12;
        uint8_t z[64];
        memcpy(z, b.p + idat + 8, n);
        z[n - 1] ^= 1;
        b.n = idat;
        io_png_chunk(&b, "IDAT", z, n);
    } else if (h != H_NO_IDAT)
        io_png_idat(&b, h == H_INDEX ? "\0\1\1\0\1\3" : h == H_BAD_FILTER ? "\0\1\2\7\3\4"
                                                                          : "\0\1\2\0\3\4",
                    h == H_FEW_ROWS ? 3 : 6);
    size_t end = b.n;
    io_png_end(&b);
    if (h == H_EMPTY)
        b.n = 0;
    if (h == H_TEXT)
        memset(b.p, 'a', b.n);
    if (h == H_JPEG)
        memcpy(b.p, "\xff\xd8\xff\xe0", 4);
    if (h == H_LF_EATEN)
        memmove(b.p + 4, b.p + 5, --b.n - 4);
    if (h == H_ONLY_SIGNATURE)
        b.n = 8;
    if (h == H_CRC_IHDR)
        b.p[19] ^= 4;
    if (h == H_CRC_IDAT)
        b.p[end - 1] ^= 1;
    if (h == H_CUT_IDAT)
        b.n = end - 3;
    if (h == H_CUT_IEND)
        b.n -= 1;
    if (h == H_NO_IEND)
        b.n = end;
    if (h == H_LONG_CHUNK)
        b.p[idat] = 0xff;
    return b;
}

Test(png, damaged_pictures_are_refused_with_place_and_reason)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "bad.png");
    for (size_t i = 0; i < sizeof harms / sizeof harms[0]; i++) {
        io_bytes b = harmed(harms[i].harm);
        io_put(path, b.p, b.n);
        vr_image m = {.data = &d};
        vr_error err = {0};
        vr_status s = vr_png_read(path, &m, &err);
        cr_assert(s == VR_E_FORMAT, "harm %d: status %d %s", harms[i].harm, s, err.text);
        cr_assert(m.data == NULL && m.width == 0, "harm %d", harms[i].harm);
        cr_assert(strstr(err.text, harms[i].needle), "harm %d: %s", harms[i].harm, err.text);
        cr_assert(strstr(err.text, "bad.png: "), "harm %d: %s", harms[i].harm, err.text);
        cr_assert(vr_png_read(path, &m, NULL) == VR_E_FORMAT);
        io_free(&b);
    }
    vr_image m;
    cr_assert(vr_png_read(d.path, &m, NULL) == VR_E_IO);
    cr_assert(vr_png_read(IO_FILE(&d, "none.png"), &m, NULL) == VR_E_NOTFOUND);
    io_dir_remove(&d);
}

Test(png, the_writer_refuses_impossible_pictures)
{
    io_dir d = io_dir_make();
    uint8_t v[64] = {0};
    static const struct {
        int32_t w, h, channels, depth;
        vr_status status;
    } rows[] = {
        {0, 1, 3, 8, VR_E_SHAPE},    {1, 0, 3, 8, VR_E_SHAPE},     {65536, 1, 1, 8, VR_E_SHAPE},
        {1, -1, 1, 8, VR_E_SHAPE},   {1, 1, 0, 8, VR_E_ARGUMENT},  {1, 1, 5, 8, VR_E_ARGUMENT},
        {1, 1, 3, 1, VR_E_ARGUMENT}, {1, 1, 3, 32, VR_E_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        vr_image m = {rows[i].w, rows[i].h, rows[i].channels, rows[i].depth, v};
        vr_error err = {0};
        cr_assert(vr_png_write(IO_FILE(&d, "no.png"), &m, &err) == rows[i].status, "row %zu", i);
        cr_assert(strstr(err.text, "no.png"), "%s", err.text);
    }
    vr_image m = {1, 1, 3, 8, NULL};
    cr_assert(vr_png_write(IO_FILE(&d, "no.png"), &m, NULL) == VR_E_ARGUMENT);
    m.data = v;
    cr_assert(vr_png_write(IO_FILE(&d, "none/no.png"), &m, NULL) == VR_E_NOTFOUND);
    cr_assert(io_dir_entries(&d) == 0);
    io_dir_remove(&d);
}
