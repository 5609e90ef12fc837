/* Reading PNG pictures through libpng (clause F4.2).
 *
 * png_chunks.c has already proven the container, so the only errors left are in
 * the compressed data. Samples are handed out as stored: no gamma, no colour
 * management, no alpha multiplication; only palettes and depths below 8 bits
 * are expanded. Every object that changes after setjmp lives in the decoder
 * struct, never in a local variable, so longjmp cannot lose its value.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

typedef struct decoder {
    png_structp png;
    png_infop info;
    const vr_io_blob *blob;
    size_t at; /* next byte to hand to libpng */
    vr_io_png_head head;
    vr_image image;
    size_t row_bytes;
    bool no_memory;
    int bad_index, palette_size;
    char message[128]; /* of the last libpng error */
} decoder;

static void on_error(png_structp png, png_const_charp text)
{
    decoder *d = png_get_error_ptr(png);
    strncpy(d->message, text, sizeof d->message - 1);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void on_read(png_structp png, png_bytep out, size_t n)
{
    decoder *d = png_get_io_ptr(png);
    if (n > d->blob->size - d->at)
        png_error(png, "data ends too early");
    memcpy(out, d->blob->data + d->at, n);
    d->at += n;
}

static int output_channels(const vr_io_png_head *h)
{
    static const int channels[7] = {1, 0, 3, 3, 2, 0, 4};
    return channels[h->colour] + (h->has_trns && (h->colour == 0 || h->colour == 2 ||
                                                  h->colour == 3));
}

/* Transformations to 8 or 16 bits per sample, whole channels, host order. */
static void set_transforms(decoder *d)
{
    const vr_io_png_head *h = &d->head;
    if (h->colour == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(d->png);
    if (h->colour == PNG_COLOR_TYPE_GRAY && h->bits < 8)
        png_set_expand_gray_1_2_4_to_8(d->png);
    if (h->has_trns)
        png_set_tRNS_to_alpha(d->png);
    if (h->bits == 16)
        png_set_swap(d->png);
}

/* Everything up to the size of a row; false on a libpng error. */
static bool start(decoder *d)
{
    if (setjmp(png_jmpbuf(d->png)))
        return false;
    png_set_read_fn(d->png, d, on_read);
    png_set_user_limits(d->png, 65535, 65535);
    png_set_crc_action(d->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    /* Only what changes samples is looked at: text, profiles and times are
     * skipped unread (tRNS is not among the skipped). */
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(d->png, d->info);
    set_transforms(d);
    png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    d->row_bytes = png_get_rowbytes(d->png, d->info);
    d->image = (vr_image){.width = (int32_t)d->head.width,
                          .height = (int32_t)d->head.height,
                          .channels = png_get_channels(d->png, d->info),
                          .depth = png_get_bit_depth(d->png, d->info)};
    return true;
}

static bool decode_rows(decoder *d)
{
    if (setjmp(png_jmpbuf(d->png)))
        return false;
    int passes = d->head.interlace ? PNG_INTERLACE_ADAM7_PASSES : 1;
    for (int pass = 0; pass < passes; pass++)
        for (int32_t y = 0; y < d->image.height; y++)
            png_read_row(d->png, (png_bytep)d->image.data + (size_t)y * d->row_bytes, NULL);
    png_read_end(d->png, d->info);
    png_colorp palette;
    if (png_get_PLTE(d->png, d->info, &palette, &d->palette_size))
        d->bad_index = png_get_palette_max(d->png, d->info);
    return true;
}

static vr_status fail_png(const decoder *d, const char *path, vr_error *err)
{
    if (d->no_memory)
        return vr_fail(err, VR_E_NOMEM, "%s: no memory for %dx%d pixels of PNG", SHOW_PATH(path),
                       (int)d->head.width, (int)d->head.height);
    return vr_fail(err, VR_E_FORMAT, "%s: damaged PNG data near byte %zu: %s", SHOW_PATH(path),
                   d->at, d->message);
}

static vr_status decode(decoder *d, const char *path, vr_error *err)
{
    if (!start(d))
        return fail_png(d, path, err);
    size_t sample = d->head.bits == 16 ? 2 : 1;
    size_t want = (size_t)d->head.width * (size_t)output_channels(&d->head) * sample;
    if (d->row_bytes != want)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: a row decodes to %zu bytes, IHDR and tRNS make it %zu",
                       SHOW_PATH(path), d->row_bytes, want);
    /* At most 65535 * 65535 * 8 bytes: fits 64 bits. */
    d->image.data = calloc(d->head.height, d->row_bytes);
    d->no_memory = !d->image.data;
    if (d->no_memory || !decode_rows(d))
        return fail_png(d, path, err);
    if (d->bad_index >= d->palette_size && d->palette_size > 0)
        return vr_fail(err, VR_E_FORMAT, "%s: a pixel has palette index %d, the palette has %d",
                       SHOW_PATH(path), d->bad_index, d->palette_size);
    return VR_OK;
}

vr_status vr_io_png_decode(const char *path, const vr_io_blob *b, vr_image *out, vr_error *err)
{
    *out = (vr_image){0};
    decoder d = {.blob = b, .bad_index = -1};
    vr_status s = vr_io_png_scan(path, b, &d.head, err);
    if (s)
        return s;
    d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
    d.info = d.png ? png_create_info_struct(d.png) : NULL;
    d.no_memory = !d.info;
    s = d.info ? decode(&d, path, err) : fail_png(&d, path, err);
    png_destroy_read_struct(&d.png, &d.info, NULL);
    if (s) {
        vr_image_free(&d.image);
        return s;
    }
    *out = d.image;
    return VR_OK;
}

vr_status vr_png_read(const char *path, vr_image *out, vr_error *err)
{
    *out = (vr_image){0};
    vr_io_blob blob;
    vr_status s = vr_io_blob_open(path, &blob, err);
    if (s)
        return s;
    s = vr_io_png_decode(path, &blob, out, err);
    vr_io_blob_close(&blob);
    return s;
}

void vr_image_free(vr_image *img)
{
    if (!img)
        return;
    free(img->data);
    *img = (vr_image){0};
}
