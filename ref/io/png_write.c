/* Writing PNG pictures through libpng (clause F4.4).
 *
 * IHDR, IDAT and IEND only, fixed filter, level, strategy, window and memory:
 * the same pixels give the same bytes with one zlib. libpng hands its output to
 * an atomic file writer; an error there is kept and returned after the jump.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <png.h>
#include <string.h>

#define MAX_SIDE 65535

typedef struct encoder {
    png_structp png;
    png_infop info;
    vr_file_writer *file;
    const vr_image *image;
    vr_status status; /* of the file, when that is what failed */
    vr_error *err;
    char message[128];
} encoder;

static void on_error(png_structp png, png_const_charp text)
{
    encoder *e = png_get_error_ptr(png);
    strncpy(e->message, text, sizeof e->message - 1);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void on_write(png_structp png, png_bytep data, size_t n)
{
    encoder *e = png_get_io_ptr(png);
    e->status = vr_file_write(e->file, data, n, e->err);
    if (e->status)
        png_error(png, "write failed");
}

static void on_flush(png_structp png)
{
    (void)png; /* the writer flushes once, at commit */
}

static bool encode(encoder *e)
{
    static const int colour[5] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                  PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(png_jmpbuf(e->png)))
        return false;
    const vr_image *m = e->image;
    png_set_write_fn(e->png, e, on_write, on_flush);
    png_set_IHDR(e->png, e->info, (png_uint_32)m->width, (png_uint_32)m->height, m->depth,
                 colour[m->channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_filter(e->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_PAETH);
    png_set_compression_level(e->png, 6);
    png_set_compression_strategy(e->png, 1); /* Z_FILTERED */
    png_set_compression_mem_level(e->png, 8);
    png_set_compression_window_bits(e->png, 15);
    png_write_info(e->png, e->info);
    if (m->depth == 16)
        png_set_swap(e->png);
    size_t row = (size_t)m->width * (size_t)m->channels * (size_t)(m->depth / 8);
    for (int32_t y = 0; y < m->height; y++)
        png_write_row(e->png, (png_const_bytep)m->data + (size_t)y * row);
    png_write_end(e->png, NULL);
    return true;
}

static vr_status check_image(const char *path, const vr_image *m, vr_error *err)
{
    if (m->width < 1 || m->height < 1 || m->width > MAX_SIDE || m->height > MAX_SIDE)
        return vr_fail(err, VR_E_SHAPE, "%s: a picture of %dx%d pixels; 1..%d a side is possible",
                       SHOW_PATH(path), m->width, m->height, MAX_SIDE);
    if (m->channels < 1 || m->channels > 4 || (m->depth != 8 && m->depth != 16) || !m->data)
        return vr_fail(err, VR_E_ARGUMENT,
                       "%s: a picture of %d channels and %d bits; 1..4 channels of 8 or 16 bits "
                       "with data are possible",
                       SHOW_PATH(path), m->channels, m->depth);
    return VR_OK;
}

vr_status vr_png_write(const char *path, const vr_image *img, vr_error *err)
{
    encoder e = {.image = img, .err = err};
    vr_status s = check_image(path, img, err);
    if (!s)
        s = vr_file_create(path, &e.file, err);
    if (s)
        return s;
    e.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &e, on_error, on_warning);
    e.info = e.png ? png_create_info_struct(e.png) : NULL;
    if (!e.info)
        s = vr_fail(err, VR_E_NOMEM, "%s: no memory to encode a PNG", SHOW_PATH(path));
    else if (!encode(&e))
        s = e.status ? e.status
                     : vr_fail(err, VR_E_INTERNAL, "%s: libpng refused to encode: %s",
                               SHOW_PATH(path), e.message);
    png_destroy_write_struct(&e.png, &e.info);
    if (s) {
        vr_file_abandon(e.file);
        return s;
    }
    return vr_file_commit(e.file, err);
}
