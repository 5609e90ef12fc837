/* conv2d under golden and truth (clause N4.2): per output one chain in f64,
 * starting at the bias, over input channel, kernel row, kernel column.
 *
 * The image is cut into items (rows x columns x a range of output channels).
 * An item's input is widened once into a patch
 *     patch[column tile][row][ci][stride]   (f64, zero outside the image)
 * that stays in the second-level cache while the packed weights
 *     packed[co block][ci][kh][kw][mr]
 * stream past it. Which item an output falls into does not change its bits.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "ops/ops.h"

enum { PATCH_BYTES = 500 * 1024, ITEMS_PER_THREAD = 6 };

typedef struct conv_plan {
    int64_t images, ci, h, w, co, kh, kw, top, left, oh, ow; /* oh x ow: output extent */
    int64_t depth;      /* ci*kh*kw */
    int64_t mr, nr, blocks;
    int64_t stride;     /* doubles per packed row: nr + kw - 1, rounded to a cache line */
    int64_t rows, tiles;/* output rows and column tiles of an item */
    int64_t bands, groups, splits; /* items: bands x groups x splits per image */
    int64_t patch;      /* doubles */
} conv_plan;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static conv_plan plan_conv(const vr_arith *a, const vr_conv_weights *cw, int64_t pad_top,
                           int64_t pad_left, vr_shape xs, vr_shape ys)
{
    conv_plan p = {.images = xs.n * xs.t, .ci = xs.c, .h = xs.h, .w = xs.w, .co = ys.c,
                   .kh = cw->kh, .kw = cw->kw, .top = pad_top, .left = pad_left,
                   .oh = ys.h, .ow = ys.w, .mr = a->k->mr, .nr = a->k->nr};
    if (p.kh == 1 && p.kw == 1 && ys.h == xs.h && ys.w == xs.w) {
        p.w = p.ow = xs.h * xs.w; /* a 1x1 kernel sees no rows */
        p.h = p.oh = 1;
    }
    p.depth = p.ci * p.kh * p.kw;
    p.blocks = ceil_div(p.co, p.mr);
    p.stride = (p.nr + p.kw - 1 + 7) / 8 * 8;
    int64_t row_bytes = p.ci * p.stride * 8;
    int64_t all_tiles = ceil_div(p.ow, p.nr);
    int64_t room = PATCH_BYTES / row_bytes; /* packed rows x tiles that fit */
    p.tiles = room / (p.kh + 1);
    p.tiles = p.tiles < 1 ? 1 : p.tiles > 4 ? 4 : p.tiles;
    p.tiles = p.tiles > all_tiles ? all_tiles : p.tiles;
    p.rows = room / p.tiles - (p.kh - 1);
    p.rows = p.rows < 1 ? 1 : p.rows > p.oh ? p.oh : p.rows;
    p.bands = ceil_div(p.oh, p.rows);
    p.groups = ceil_div(all_tiles, p.tiles);
    int64_t items = p.images * p.bands * p.groups, want = (int64_t)a->threads * ITEMS_PER_THREAD;
    p.splits = 1;
    if (a->threads > 1 && items < want)
        p.splits = ceil_div(want, items);
    if (p.splits > p.blocks)
        p.splits = p.blocks;
    p.patch = p.tiles * (p.rows + p.kh - 1) * p.ci * p.stride;
    return p;
}

/* dst[0..stride) = x[x0 .. x0+stride), zero outside [0, w). */
static void pack_row(const vr_arith *a, double *dst, const void *row, int64_t x0, int64_t w,
                     int64_t stride)
{
    int64_t lo = x0 < 0 ? -x0 : 0;
    int64_t hi = x0 + stride > w ? w - x0 : stride;
    if (hi <= lo) {
        memset(dst, 0, (size_t)stride * 8);
        return;
    }
    for (int64_t i = 0; i < lo; i++)
        dst[i] = 0.0;
    if (vr_arith_is_f64(a))
        memcpy(dst + lo, (const double *)row + x0 + lo, (size_t)(hi - lo) * 8);
    else
        a->k->widen((const float *)row + x0 + lo, dst + lo, hi - lo);
    for (int64_t i = hi; i < stride; i++)
        dst[i] = 0.0;
}

static void pack_patch(const vr_arith *a, const conv_plan *p, const char *image,
                       int64_t channel_stride, int64_t elem, int64_t y0, int64_t rows,
                       int64_t tile0, int64_t tiles, double *patch)
{
    int64_t in_rows = rows + p->kh - 1;
    const int64_t ahead = 2; /* channels: planes are far apart, so ask early */
    for (int64_t c = 0; c < p->ci; c++)
        for (int64_t r = 0; r < in_rows; r++) {
            int64_t y = y0 + r - p->top;
            bool inside = y >= 0 && y < p->h;
            const char *row = image + (c * channel_stride + (inside ? y * p->w : 0)) * elem;
            for (int64_t t = 0; t < tiles; t++) {
                int64_t x0 = (tile0 + t) * p->nr - p->left;
                double *dst = patch + ((t * in_rows + r) * p->ci + c) * p->stride;
                if (!inside) {
                    memset(dst, 0, (size_t)p->stride * 8);
                    continue;
                }
                if (c + ahead < p->ci && x0 >= 0)
                    for (int64_t i = 0; i < p->nr * elem && x0 * elem + i < p->w * elem; i += 64)
                        __builtin_prefetch(row + ahead * channel_stride * elem + x0 * elem + i);
                pack_row(a, dst, row, x0, p->w, p->stride);
            }
        }
}

/* One tile's sums to the output row, rounded once. */
static void store_tile(const vr_arith *a, const double *acc, int64_t nr, int64_t channels,
                       int64_t columns, void *y, int64_t y_channel)
{
    for (int64_t m = 0; m < channels; m++) {
        if (vr_arith_is_f64(a)) {
            memcpy((double *)y + m * y_channel, acc + m * nr, (size_t)columns * 8);
        } else {
            float *dst = (float *)y + m * y_channel;
            for (int64_t i = 0; i < columns; i++)
                dst[i] = (float)acc[m * nr + i];
        }
    }
}

static void run_item(const vr_arith *a, const conv_plan *p, int64_t item, const double *packed,
                     const double *bias, vr_view x, vr_view y, double *patch)
{
    int64_t split = item % p->splits, rest = item / p->splits;
    int64_t group = rest % p->groups;
    rest /= p->groups;
    int64_t band = rest % p->bands, image = rest / p->bands;
    int64_t n = image / x.shape.t, t = image % x.shape.t;
    int64_t elem = vr_arith_is_f64(a) ? 8 : 4;
    int64_t x_channel = x.shape.t * p->h * p->w, y_channel = y.shape.t * p->oh * p->ow;
    const char *src = (const char *)x.data + (n * p->ci * x_channel + t * p->h * p->w) * elem;
    char *dst = (char *)y.data + (n * p->co * y_channel + t * p->oh * p->ow) * elem;

    int64_t y0 = band * p->rows, rows = p->oh - y0 < p->rows ? p->oh - y0 : p->rows;
    int64_t all_tiles = ceil_div(p->ow, p->nr), tile0 = group * p->tiles;
    int64_t tiles = all_tiles - tile0 < p->tiles ? all_tiles - tile0 : p->tiles;
    int64_t block0 = p->blocks * split / p->splits, block1 = p->blocks * (split + 1) / p->splits;
    int64_t in_rows = rows + p->kh - 1;
    pack_patch(a, p, src, x_channel, elem, y0, rows, tile0, tiles, patch);

    vr_micro_fn *micro = vr_arith_is_f64(a) ? a->k->micro_strict : a->k->micro_fused;
    double acc[VR_MAX_MR * VR_MAX_NR];
    for (int64_t b = block0; b < block1; b++) {
        int64_t channels = p->co - b * p->mr < p->mr ? p->co - b * p->mr : p->mr;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < tiles; i++) {
                micro(packed + b * p->depth * p->mr, patch + (i * in_rows + r) * p->ci * p->stride,
                      p->ci, p->kh, p->kw, p->stride, p->ci * p->stride, bias + b * p->mr, acc);
                int64_t x0 = (tile0 + i) * p->nr;
                int64_t columns = p->ow - x0 < p->nr ? p->ow - x0 : p->nr;
                store_tile(a, acc, p->nr, channels, columns,
                           dst + (b * p->mr * y_channel + (y0 + r) * p->ow + x0) * elem, y_channel);
            }
    }
}

/* packed[depth][mr] and bias[mr] of block b, zero beyond co. `rows`: mr*depth. */
static vr_status pack_block(const vr_arith *a, const vr_conv_weights *cw, int64_t b,
                            const vr_weight *w, const vr_weight *bias, double *rows, vr_error *err)
{
    const int64_t mr = a->k->mr, depth = cw->depth, left = cw->co - b * mr;
    const int64_t channels = left < mr ? left : mr;
    double *packed = cw->packed + b * depth * mr, *packed_bias = cw->bias + b * mr;
    vr_status s = vr_weight_read(w, a->policy, b * mr * depth, channels * depth, rows, err);
    memset(packed_bias, 0, (size_t)mr * 8);
    if (s == VR_OK && bias)
        s = vr_weight_read(bias, a->policy, b * mr, channels, packed_bias, err);
    memset(rows + channels * depth, 0, (size_t)((mr - channels) * depth) * 8);
    for (int64_t k = 0; k < depth; k++)
        for (int64_t m = 0; m < mr; m++)
            packed[k * mr + m] = rows[m * depth + k];
    return s;
}

static vr_status pack_fixed(const vr_arith *a, vr_conv_weights *cw, const vr_weight *w,
                            const vr_weight *bias, double *rows, vr_error *err)
{
    const int64_t blocks = ceil_div(cw->co, a->k->mr);
    vr_status status = VR_OK;
#pragma omp parallel for schedule(static) num_threads(a->threads)
    for (int64_t b = 0; b < blocks; b++) {
        vr_error mine = {VR_OK, ""};
        double *space = rows + (int64_t)omp_get_thread_num() * a->k->mr * cw->depth;
        vr_status s = pack_block(a, cw, b, w, bias, space, &mine);
        if (s != VR_OK) {
#pragma omp critical(vr_conv2d_pack)
            status = vr_fail(err, s, "%s", mine.text);
        }
    }
    return status;
}

vr_status vr_conv2d_pack(vr_arith *a, const vr_op *op, const vr_weight *w, const vr_weight *bias,
                         vr_conv_weights *out, vr_error *err)
{
    *out = (vr_conv_weights){.co = w->dim[0], .ci = w->dim[1], .kh = op->p.conv2d.kh,
                             .kw = op->p.conv2d.kw};
    out->depth = out->ci * out->kh * out->kw;
    if (!vr_arith_is_fixed(a))
        return vr_conv2d_pack_ordered(a, w, bias, out, err);
    const int64_t padded = ceil_div(out->co, a->k->mr) * a->k->mr;
    double *rows = NULL;
    vr_status s = vr_scratch(a, (uint64_t)(padded * (out->depth + 1)) * 8, (void **)&out->packed, err);
    if (s == VR_OK)
        s = vr_scratch(a, (uint64_t)(a->k->mr * out->depth * a->threads) * 8, (void **)&rows, err);
    if (s == VR_OK) {
        out->bias = out->packed + padded * out->depth;
        s = pack_fixed(a, out, w, bias, rows, err);
    }
    free(rows);
    if (s != VR_OK)
        vr_conv2d_release(out);
    return s;
}

void vr_conv2d_release(vr_conv_weights *cw)
{
    free(cw->packed);
    free(cw->ordered);
    *cw = (vr_conv_weights){.packed = NULL};
}

vr_status vr_conv2d_apply(vr_arith *a, const vr_conv_weights *cw, int64_t pad_top, int64_t pad_left,
                          vr_view x, vr_view y, vr_error *err)
{
    if (!vr_arith_is_fixed(a))
        return vr_conv2d_apply_ordered(a, cw, pad_top, pad_left, x, y, err);
    const conv_plan p = plan_conv(a, cw, pad_top, pad_left, x.shape, y.shape);
    double *patches = NULL;
    vr_status s = vr_scratch(a, (uint64_t)(p.patch * a->threads) * 8, (void **)&patches, err);
    if (s != VR_OK)
        return s;
    const int64_t items = p.images * p.bands * p.groups * p.splits;
#pragma omp parallel for schedule(dynamic) num_threads(a->threads)
    for (int64_t i = 0; i < items; i++)
        run_item(a, &p, i, cw->packed, cw->bias, x, y,
                 patches + (int64_t)omp_get_thread_num() * p.patch);
    free(patches);
    return VR_OK;
}

vr_status vr_op_conv2d(vr_arith *a, const vr_op *op, const vr_weight *w, const vr_weight *bias,
                       vr_view x, vr_view y, vr_error *err)
{
    vr_conv_weights cw;
    vr_status s = vr_conv2d_pack(a, op, w, bias, &cw, err);
    if (s == VR_OK)
        s = vr_conv2d_apply(a, &cw, op->p.conv2d.pad_top, op->p.conv2d.pad_left, x, y, err);
    vr_conv2d_release(&cw);
    return s;
}
