/* A picture of the difference, amplified, with the tile grid (clause Q4).
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/internal.h"

static double largest_channel(const vr_tensor *a, const vr_tensor *b, int64_t n, int64_t i)
{
    const int64_t c = a->dim[1], plane = a->dim[2] * a->dim[3];
    double most = 0.0;
    for (int64_t k = 0; k < c; k++) {
        int64_t j = (n * c + k) * plane + i;
        double d = fabs((double)((const float *)a->data)[j] - (double)((const float *)b->data)[j]);
        most = d > most || d != d ? d : most;
    }
    return most;
}

static void draw_grid(const vr_tile_grid *g, vr_image *img)
{
    uint8_t *px = img->data;
    for (int32_t y = 0; y < img->height; y++)
        for (int32_t x = 0; x < img->width; x++) {
            bool line = false;
            for (int64_t i = 1; i < g->h.count; i++)
                line = line || g->h.tile[i].owned == y;
            for (int64_t i = 1; i < g->w.count; i++)
                line = line || g->w.tile[i].owned == x;
            if (line)
                px[(y * img->width + x) * 3] = 255;
        }
}

vr_status vr_difference_picture(const vr_tensor *got, const vr_tensor *want, int64_t n,
                                double range_lo, double range_hi, const vr_tile_grid *grid,
                                double *gain, vr_image *out, vr_error *err)
{
    vr_comparison c;
    vr_status s = vr_compare_pictures(got, want, range_lo, range_hi, NULL, 1, &c, err);
    if (s != VR_OK)
        return s;
    if (n < 0 || n >= got->dim[0])
        return vr_fail(err, VR_E_RANGE, "sample %lld; want 0 to %lld", (long long)n, (long long)got->dim[0] - 1);
    const int64_t count = got->dim[2] * got->dim[3];
    const double range = range_hi - range_lo;
    if (*gain == 0.0)
        *gain = c.max_abs > 0.0 ? range / c.max_abs : 1.0; /* NaN differences: gain NaN, drawn white below */
    *out = (vr_image){.width = (int32_t)got->dim[3], .height = (int32_t)got->dim[2], .channels = 3, .depth = 8,
                      .data = malloc((size_t)count * 3)};
    if (!out->data)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate a picture of %lld pixels", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        double v = largest_channel(got, want, n, i) / range * *gain * 255.0;
        uint8_t grey = v < 255.0 ? (uint8_t)(v + 0.5) : 255;
        memset((uint8_t *)out->data + 3 * i, grey, 3);
    }
    if (grid)
        draw_grid(grid, out);
    return VR_OK;
}
