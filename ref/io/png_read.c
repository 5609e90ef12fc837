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
    size_t row_bytes; /* of a row as libpng delivers it */
    png_bytep rows;   /* within image.data */
    bool no_memory;
    png_colorp palette;
    png_bytep alpha; /* of the first alpha_count palette entries */
    int palette_count, alpha_count;
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

static bool is_palette(const decoder *d)
{
    return d->head.colour == PNG_COLOR_TYPE_PALETTE;
}

/* Transformations to 8 or 16 bits per sample, whole channels, host order; a
 * palette picture to one index per byte, since libpng's own expansion would
 * paint an index beyond the palette black instead of saying so. */
static void set_transforms(decoder *d)
{
    const vr_io_png_head *h = &d->head;
    if (is_palette(d)) {
        png_set_packing(d->png);
        return;
    }
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
                          .channels = output_channels(&d->head),
                          .depth = d->head.bits == 16 ? 16 : 8};
    return true;
}

static bool decode_rows(decoder *d)
{
    if (setjmp(png_jmpbuf(d->png)))
        return false;
    int passes = d->head.interlace ? PNG_INTERLACE_ADAM7_PASSES : 1;
    for (int pass = 0; pass < passes; pass++)
        for (int32_t y = 0; y < d->image.height; y++)
            png_read_row(d->png, d->rows + (size_t)y * d->row_bytes, NULL);
    png_read_end(d->png, d->info);
    png_get_PLTE(d->png, d->info, &d->palette, &d->palette_count);
    png_get_tRNS(d->png, d->info, &d->alpha, &d->alpha_count, NULL);
    return true;
}

/* Indices lie at the end of image.data and are replaced from its start: pixel
 * i + 1 is never overwritten before it is read. */
static vr_status expand_palette(decoder *d, const char *path, vr_error *err)
{
    size_t n = (size_t)d->image.width * (size_t)d->image.height;
    png_bytep out = d->image.data;
    for (size_t i = 0; i < n; i++) {
        int index = d->rows[i];
        if (index >= d->palette_count)
            return vr_fail(err, VR_E_FORMAT,
                           "%s: pixel %zu,%zu has palette index %d, the palette has %d",
                           SHOW_PATH(path), i % (size_t)d->image.width,
                           i / (size_t)d->image.width, index, d->palette_count);
        *out++ = d->palette[index].red;
        *out++ = d->palette[index].green;
        *out++ = d->palette[index].blue;
        if (d->image.channels == 4)
            *out++ = index < d->alpha_count ? d->alpha[index] : 255;
    }
    return VR_OK;
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
    size_t width = d->head.width, height = d->head.height;
    size_t row = width * (size_t)d->image.channels * (size_t)(d->image.depth / 8);
    /* A tRNS chunk that libpng ignores (misplaced, wrong size) ends here. */
    if (d->row_bytes != (is_palette(d) ? width : row))
        return vr_fail(err, VR_E_FORMAT,
                       "%s: a row decodes to %zu bytes, IHDR and tRNS make it %zu",
                       SHOW_PATH(path), d->row_bytes, row);
    /* At most 65535 * 65535 * 8 bytes: fits 64 bits. */
    d->image.data = calloc(height, row);
    d->no_memory = !d->image.data;
    if (d->no_memory)
        return fail_png(d, path, err);
    d->rows = (png_bytep)d->image.data + (is_palette(d) ? height * (row - width) : 0);
    if (!decode_rows(d))
        return fail_png(d, path, err);
    return is_palette(d) ? expand_palette(d, path, err) : VR_OK;
}

vr_status vr_io_png_decode(const char *path, const vr_io_blob *b, vr_image *out, vr_error *err)
{
    *out = (vr_image){0};
    decoder d = {.blob = b};
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
