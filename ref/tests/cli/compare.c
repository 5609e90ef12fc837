/* cli_compare: how far two outputs of the tool are apart.
 *
 *   cli_compare tensors A B MAX          largest difference at most MAX
 *   cli_compare pictures A B MAX SHARE   largest difference at most MAX levels,
 *                                        at least SHARE of the values equal
 * Exit 0 within the limit, 1 beyond it or on any error.
 *
 * SPDX-License-Identifier: MIT */
#include "vaeref/core.h"
#include "vaeref/io.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const vr_error *err)
{
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

static double *as_doubles(const char *spec, vr_tensor *t, int64_t *count, vr_error *err)
{
    if (vr_tensor_load(spec, t, err) || vr_tensor_count(t, count, err))
        return NULL;
    double *v = malloc((size_t)*count * sizeof *v + 1);
    if (!v || vr_convert(VR_F64, v, t->dtype, t->data, (uint64_t)*count, err)) {
        free(v);
        return NULL;
    }
    return v;
}

static int tensors(const char *a, const char *b, double limit)
{
    vr_error err = {VR_OK, ""};
    vr_tensor t[2] = {{0}, {0}};
    int64_t n[2] = {0, 0};
    double *v[2] = {as_doubles(a, &t[0], &n[0], &err), as_doubles(b, &t[1], &n[1], &err)};
    int code = 1;
    char text[2][120];
    if (!v[0] || !v[1]) {
        fail(&err);
    } else if (t[0].rank != t[1].rank || memcmp(t[0].dim, t[1].dim, sizeof t[0].dim[0] * (size_t)t[0].rank)) {
        fprintf(stderr, "%s and %s differ in shape\n", vr_tensor_describe(&t[0], text[0], 120),
                vr_tensor_describe(&t[1], text[1], 120));
    } else {
        double worst = 0;
        for (int64_t i = 0; i < n[0]; i++)
            worst = fmax(worst, isfinite(v[0][i]) && isfinite(v[1][i]) ? fabs(v[0][i] - v[1][i])
                                                                        : INFINITY);
        printf("%s: largest difference %.3g, limit %.3g\n",
               vr_tensor_describe(&t[0], text[0], 120), worst, limit);
        code = !(worst <= limit);
    }
    for (int k = 0; k < 2; k++) {
        free(v[k]);
        vr_tensor_free(&t[k]);
    }
    return code;
}

static int pictures(const char *a, const char *b, int limit, double share)
{
    vr_error err = {VR_OK, ""};
    vr_image x = {0}, y = {0};
    int code = 1;
    if (vr_png_read(a, &x, &err) || vr_png_read(b, &y, &err)) {
        fail(&err);
    } else if (x.width != y.width || x.height != y.height || x.channels != y.channels ||
               x.depth != 8 || y.depth != 8) {
        fprintf(stderr, "%dx%dx%d depth %d and %dx%dx%d depth %d\n", x.width, x.height, x.channels,
                x.depth, y.width, y.height, y.channels, y.depth);
    } else {
        const uint8_t *p = x.data, *q = y.data;
        int worst = 0;
        size_t n = (size_t)x.width * (size_t)x.height * (size_t)x.channels, equal = 0;
        for (size_t i = 0; i < n; i++) {
            int d = abs(p[i] - q[i]);
            worst = d > worst ? d : worst;
            equal += d == 0;
        }
        double part = (double)equal / (double)n;
        printf("largest difference %d levels (limit %d), %.5f equal (limit %.5f)\n", worst, limit,
               part, share);
        code = !(worst <= limit && part >= share);
    }
    vr_image_free(&x);
    vr_image_free(&y);
    return code;
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "tensors"))
        return tensors(argv[2], argv[3], strtod(argv[4], NULL));
    if (argc == 6 && !strcmp(argv[1], "pictures"))
        return pictures(argv[2], argv[3], atoi(argv[4]), strtod(argv[5], NULL));
    fprintf(stderr, "usage: cli_compare tensors A B MAX | pictures A B MAX SHARE\n");
    return 1;
}
