/* golden/diff.c: `vaegolden diff OLD NEW`, what a new version changes (clause G5).
 *
 * From the records alone, and the pictures where both have one; nothing is
 * computed. Exit code 1 when anything differs, as diff(1).
 *
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct side {
    const char *dir;
    vg_names ids;
} side;

typedef struct tally {
    int64_t same, differ, added, removed, output, noise, input;
    double ratio_lo, ratio_hi; /* new noise / old noise, over contracts and metrics */
} tally;

typedef struct args {
    const char *dir[2];
    int count;
} args;

static const struct argp_option options[] = {{0}};

static const char doc[] =
    "Compare two golden versions: which cases differ, were added or removed, and how noise levels changed.\n"
    "\v"
    "Example:\n"
    "  vaegolden diff golden/v1 golden/v2";

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    args *a = ctx;
    (void)key;
    if (a->count == 2)
        return vr_fail(err, VR_E_ARGUMENT, "unexpected argument '%s'; want two folders, OLD and NEW", arg);
    a->dir[a->count++] = arg;
    return VR_OK;
}

static void note_ratio(tally *t, double old, double now)
{
    if (old <= 0 || now == old)
        return;
    const double r = now / old;
    t->ratio_lo = t->ratio_lo == 0 || r < t->ratio_lo ? r : t->ratio_lo;
    t->ratio_hi = r > t->ratio_hi ? r : t->ratio_hi;
}

/* Largest difference of two pictures' samples; -1 when it cannot be told. */
static int picture_difference(const side *a, const side *b, const char *id)
{
    char path[2][PATH_MAX];
    vr_image img[2];
    int most = -1;
    if (vg_picture_path(path[0], a->dir, id, NULL) || vg_picture_path(path[1], b->dir, id, NULL) ||
        vr_png_read(path[0], &img[0], NULL))
        return -1;
    if (!vr_png_read(path[1], &img[1], NULL)) {
        if (img[0].width == img[1].width && img[0].height == img[1].height && img[0].channels == img[1].channels &&
            img[0].depth == 8 && img[1].depth == 8) {
            const int64_t n = (int64_t)img[0].width * img[0].height * img[0].channels;
            most = 0;
            for (int64_t i = 0; i < n; i++) {
                const int d = abs(((const uint8_t *)img[0].data)[i] - ((const uint8_t *)img[1].data)[i]);
                most = d > most ? d : most;
            }
        }
        vr_image_free(&img[1]);
    }
    vr_image_free(&img[0]);
    return most;
}

static vr_status compare(const side *a, const side *b, const char *id, tally *t, vr_error *err)
{
    char path[2][PATH_MAX], what[1200];
    vg_record r[2];
    vr_status s = vg_record_path(path[0], a->dir, id, err);
    s = s ? s : vg_record_path(path[1], b->dir, id, err);
    for (int i = 0; !s && i < 2; i++)
        s = vg_record_read(path[i], &r[i], err);
    if (s)
        return s;
    const unsigned bits = vg_record_compare(&r[0], &r[1], what, sizeof what);
    t->same += bits == 0;
    t->differ += bits != 0;
    t->output += (bits & (VG_DIFF_OUTPUT | VG_DIFF_SHAPE)) != 0;
    t->noise += (bits & VG_DIFF_NOISE) != 0;
    t->input += (bits & VG_DIFF_INPUT) != 0;
    for (int k = 0; k < VG_CONTRACTS; k++) {
        note_ratio(t, r[0].noise[k].d.rms, r[1].noise[k].d.rms);
        note_ratio(t, r[0].noise[k].d.max, r[1].noise[k].d.max);
    }
    if (!bits)
        return VR_OK;
    const int most = bits & VG_DIFF_PIXELS ? picture_difference(a, b, id) : -1;
    printf("differs  %s: %s", id, what);
    if (most >= 0)
        printf("; 8-bit samples by %d at most", most);
    putchar('\n');
    return VR_OK;
}

static vr_status walk(const side *a, const side *b, tally *t, vr_error *err)
{
    vr_status s = VR_OK;
    for (int64_t i = 0, k = 0; !s && (i < a->ids.count || k < b->ids.count);) {
        const int order = i == a->ids.count ? 1 : k == b->ids.count ? -1 : strcmp(a->ids.item[i], b->ids.item[k]);
        if (order < 0) {
            printf("removed  %s\n", a->ids.item[i++]);
            t->removed++;
        } else if (order > 0) {
            printf("added    %s\n", b->ids.item[k++]);
            t->added++;
        } else {
            s = compare(a, b, a->ids.item[i], t, err);
            i++;
            k++;
        }
    }
    return s;
}

static void summary(const side *a, const side *b, const tally *t)
{
    printf("%s -> %s: %lld cases are the same, %lld differ (%lld in input, %lld in output, %lld in noise), %lld added, "
           "%lld removed\n", a->dir, b->dir, (long long)t->same, (long long)t->differ, (long long)t->input,
           (long long)t->output, (long long)t->noise, (long long)t->added, (long long)t->removed);
    if (t->ratio_hi > 0)
        printf("noise levels that changed: %.6g to %.6g times the old\n", t->ratio_lo, t->ratio_hi);
}

int vg_diff(int argc, char **argv)
{
    args arg = {{NULL, NULL}, 0};
    const cli_spec spec = {"diff", options, doc, set};
    vr_error err = {VR_OK, ""};
    const int code = cli_parse_arguments(&spec, "OLD NEW", argc, argv, &arg);
    if (code != CLI_CONTINUE)
        return code;
    if (arg.count != 2)
        return cli_error(CLI_USAGE, "diff: want two folders, OLD and NEW (vaegolden diff --help)");
    side a = {.dir = arg.dir[0]}, b = {.dir = arg.dir[1]};
    tally t = {0};
    vr_status s = vg_list_ids(a.dir, &a.ids, &err);
    s = s ? s : vg_list_ids(b.dir, &b.ids, &err);
    s = s ? s : walk(&a, &b, &t, &err);
    if (!s)
        summary(&a, &b, &t);
    vg_names_free(&a.ids);
    vg_names_free(&b.ids);
    return s ? cli_fail(&err) : t.differ + t.added + t.removed ? CLI_FAILURE : CLI_OK;
}
