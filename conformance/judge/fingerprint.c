/* Where the error lies (J12): what a person looks for first in a picture of the
 * difference, found by counting.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/internal.h"
#include "judge/pattern.h"

static const struct noun {
    const char *one, *many;
    bool edges;
} nouns[VJ_AXES] = {
    {"sample", "samples", false}, {"channel", "channels", false}, {"frame", "frames", true},
    {"row", "rows", true},        {"column", "columns", true},
};

typedef struct counts {
    int64_t *of[VJ_AXES];       /* wrong elements per position of each axis */
    int64_t *seam_y, *seam_x;   /* distance of a row, a column to the nearest tile border */
    bool *hit;                  /* as long as the longest axis */
    void *memory;
} counts;

/* ---- counting ------------------------------------------------------------ */

static vr_status view(const vr_tensor *t, int64_t extent[VJ_AXES], vr_error *err)
{
    for (int a = 0; a < VJ_AXES; a++)
        extent[a] = 1;
    if (t->rank < 1 || t->rank > 5)
        return vr_fail(err, VR_E_SHAPE, "output has rank %d; want 1 to 5", (int)t->rank);
    int a = VJ_AXIS_X;
    for (int32_t i = t->rank - 1; i >= 0; i--, a--) {
        if (a == VJ_AXIS_T && t->rank < 5) /* pictures have no frames */
            a--;
        extent[a] = t->dim[i];
    }
    return VR_OK;
}

static void seam_distances(const vr_tile_axis *axis, int64_t *distance, int64_t extent)
{
    for (int64_t j = 0; j < extent; j++) {
        distance[j] = INT64_MAX;
        for (int64_t i = 1; axis && i < axis->count; i++) {
            const int64_t b = axis->tile[i].owned, d = j >= b ? j - b + 1 : b - j;
            distance[j] = d < distance[j] ? d : distance[j];
        }
    }
}

static vr_status counts_make(const int64_t extent[VJ_AXES], const vr_tile_grid *grid, counts *c, vr_error *err)
{
    int64_t total = extent[VJ_AXIS_Y] + extent[VJ_AXIS_X], longest = 1;
    for (int a = 0; a < VJ_AXES; a++) {
        total += extent[a];
        longest = extent[a] > longest ? extent[a] : longest;
    }
    int64_t *next = c->memory = calloc((size_t)total * sizeof(int64_t) + (size_t)longest * sizeof(bool), 1);
    if (!next)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate counts of %lld positions", (long long)total);
    for (int a = 0; a < VJ_AXES; a++) {
        c->of[a] = next;
        next += extent[a];
    }
    c->seam_y = next;
    c->seam_x = next + extent[VJ_AXIS_Y];
    c->hit = (bool *)(next + extent[VJ_AXIS_Y] + extent[VJ_AXIS_X]);
    seam_distances(grid ? &grid->h : NULL, c->seam_y, extent[VJ_AXIS_Y]);
    seam_distances(grid ? &grid->w : NULL, c->seam_x, extent[VJ_AXIS_X]);
    return VR_OK;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void add(vj_fingerprint *f, counts *c, int64_t flat)
{
    int64_t at[VJ_AXES], rest = flat;
    for (int a = VJ_AXES - 1; a >= 0; a--) {
        at[a] = rest % f->extent[a];
        rest /= f->extent[a];
        c->of[a][at[a]]++;
        f->low[a] = f->wrong == 0 || at[a] < f->low[a] ? at[a] : f->low[a];
        f->high[a] = at[a] > f->high[a] ? at[a] : f->high[a];
    }
    const int64_t y = at[VJ_AXIS_Y], x = at[VJ_AXIS_X], h = f->extent[VJ_AXIS_Y], w = f->extent[VJ_AXIS_X];
    const int64_t edge = 1 + least(least(y, h - 1 - y), least(x, w - 1 - x)), seam = least(c->seam_y[y], c->seam_x[x]);
    f->frame_width = edge > f->frame_width ? edge : f->frame_width;
    if (seam != INT64_MAX)
        f->seam_width = seam > f->seam_width ? seam : f->seam_width;
    f->fold_x[x % 64]++;
    f->fold_y[y % 64]++;
    f->fold_flat[flat % 64]++;
    if (f->wrong++ == 0)
        f->first_flat = flat;
    f->last_flat = flat;
}

static vr_status scan(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *cap, double above,
                      vj_fingerprint *f, counts *c, vr_error *err)
{
    double g[VJ_BLOCK], t[VJ_BLOCK], limit[VJ_BLOCK];
    for (int64_t first = 0; first < f->elements; first += VJ_BLOCK) {
        const int64_t n = least(f->elements - first, VJ_BLOCK);
        vr_status s = vj_read(got, first, n, g, err);
        if (s == VR_OK)
            s = vj_read(truth, first, n, t, err);
        if (s == VR_OK && cap)
            s = vj_read(cap, first, n, limit, err);
        if (s != VR_OK)
            return s;
        for (int64_t i = 0; i < n; i++) {
            const vj_pair p = vj_pair_of(g[i], t[i]);
            if (p == VJ_CONTRADICT || (p == VJ_MEASURE && !(fabs(g[i] - t[i]) <= (cap ? limit[i] : above))))
                add(f, c, first + i);
        }
    }
    return VR_OK;
}

static int64_t tile_of(const vr_tile_axis *a, int64_t low, int64_t high)
{
    for (int64_t i = 0; i < a->count; i++)
        if (low >= a->tile[i].owned && high < a->tile[i].owned + a->tile[i].owned_length)
            return i;
    return -1;
}

static void locate_tile(const vr_tile_grid *g, vj_fingerprint *f)
{
    const int64_t row = tile_of(&g->h, f->low[VJ_AXIS_Y], f->high[VJ_AXIS_Y]);
    const int64_t column = tile_of(&g->w, f->low[VJ_AXIS_X], f->high[VJ_AXIS_X]);
    if (row >= 0 && column >= 0 && g->h.count * g->w.count > 1) {
        f->tile_row = row;
        f->tile_column = column;
    }
}

/* ---- telling ------------------------------------------------------------- */

typedef struct claims {
    char text[300];
    size_t used;
} claims;

static void claim(claims *c, const char *text)
{
    if (text[0] == '\0' || c->used >= sizeof c->text)
        return;
    c->used += (size_t)snprintf(c->text + c->used, sizeof c->text - c->used, "%s%s", c->used ? ", " : "", text);
}

/* Too many wrong elements for their r positions of m to be chance? */
static bool significant(int64_t wrong, int64_t r, int64_t m)
{
    return (double)(wrong - r) * log((double)m / (double)r) > 14.0;
}

/* Which residues of the flat index modulo m are hit; how many. */
static int64_t fold(const vj_fingerprint *f, int64_t m, bool hit[64])
{
    int64_t number = 0;
    memset(hit, 0, 64 * sizeof *hit);
    for (int64_t j = 0; j < 64; j++)
        hit[j % m] = hit[j % m] || f->fold_flat[j] > 0;
    for (int64_t j = 0; j < m; j++)
        number += hit[j];
    return number;
}

/* Lanes: the flat index modulo 8, 16, 32 or 64; the longest that needs no more
 * residues than a shorter one, since it says most. 0: none; *fewest: residues. */
static int64_t best_fold(const vj_fingerprint *f, int64_t *fewest)
{
    bool hit[64];
    int64_t best = 0;
    for (int64_t m = 8; m <= 64 && f->elements >= 2 * m; m *= 2) {
        const int64_t number = fold(f, m, hit);
        if (2 * number <= m && significant(f->wrong, number, m) && (best == 0 || number == *fewest)) {
            best = m;
            *fewest = number;
        }
    }
    return best;
}

static void claim_fold(const vj_fingerprint *f, claims *out)
{
    char text[120];
    bool hit[64], lanes[128];
    int64_t fewest, best = best_fold(f, &fewest);
    if (best == 0)
        return;
    fold(f, best, hit);
    for (int64_t j = 0; j < 128; j++)
        lanes[j] = hit[j % best];
    const vj_pattern p = vj_pattern_find(lanes, 128);
    claim(out, vj_pattern_text(&p, "element", "elements", false, text, sizeof text));
}

static void claim_axes(const vj_fingerprint *f, counts *c, bool skip_plane, claims *out)
{
    static const int order[VJ_AXES] = {VJ_AXIS_X, VJ_AXIS_Y, VJ_AXIS_C, VJ_AXIS_T, VJ_AXIS_N};
    char text[120];
    int64_t residues = 0;
    const int64_t lanes = best_fold(f, &residues);
    for (int i = 0; i < VJ_AXES; i++) {
        const int a = order[i];
        for (int64_t j = 0; j < f->extent[a]; j++)
            c->hit[j] = c->of[a][j] > 0;
        const vj_pattern p = vj_pattern_find(c->hit, f->extent[a]);
        if (f->extent[a] == 1 || (p.kind == VJ_PATTERN_FEW && !significant(f->wrong, p.number, f->extent[a])))
            continue;
        if (skip_plane && (a == VJ_AXIS_X || a == VJ_AXIS_Y) && p.kind != VJ_PATTERN_EVERY)
            continue; /* the tile says it */
        if (lanes && a == VJ_AXIS_X && p.kind == VJ_PATTERN_EVERY && 2 * residues * p.period <= p.number * lanes)
            continue; /* lanes across the rows are half as many or fewer */
        claim(out, vj_pattern_text(&p, nouns[a].one, nouns[a].many, nouns[a].edges, text, sizeof text));
    }
}

/* Most of the wrong elements along the axis where they are densest. */
static void claim_mostly(const vj_fingerprint *f, counts *c, claims *out)
{
    char text[120], sentence[160];
    double best = 0.0;
    for (int a = 0; a < VJ_AXES; a++) {
        int64_t most = 0, inside = 0, number = 0;
        for (int64_t j = 0; j < f->extent[a]; j++)
            most = c->of[a][j] > most ? c->of[a][j] : most;
        for (int64_t j = 0; j < f->extent[a]; j++) {
            c->hit[j] = 2 * c->of[a][j] >= most;
            inside += c->hit[j] ? c->of[a][j] : 0;
            number += c->hit[j];
        }
        const double share = (double)inside / (double)f->wrong;
        const double chance = (double)number / (double)f->extent[a];
        if (share < 0.5 || 5.0 * chance > share || share - chance <= best)
            continue;
        const vj_pattern p = vj_pattern_find(c->hit, f->extent[a]);
        vj_pattern_text(&p, nouns[a].one, nouns[a].many, nouns[a].edges, text, sizeof text);
        if (text[0] == '\0')
            continue;
        best = share - chance;
        snprintf(sentence, sizeof sentence, "mostly (%.0f %%) %s", 100.0 * share, text);
    }
    if (best > 0.0)
        claim(out, sentence);
}

static void claim_near(const vj_fingerprint *f, const vr_tile_grid *g, claims *out)
{
    char text[120];
    const int64_t side = least(f->extent[VJ_AXIS_Y], f->extent[VJ_AXIS_X]);
    if (f->wrong < 8)
        return;
    if (8 * f->frame_width <= side) {
        snprintf(text, sizeof text, "within %lld %s of the picture's border", (long long)f->frame_width,
                 f->frame_width == 1 ? "pixel" : "pixels");
        claim(out, text);
    }
    if (g && f->seam_width > 0 && 8 * f->seam_width * (g->h.count > g->w.count ? g->h.count : g->w.count) <= side) {
        snprintf(text, sizeof text, "within %lld %s of a tile border", (long long)f->seam_width,
                 f->seam_width == 1 ? "pixel" : "pixels");
        claim(out, text);
    }
}

static int64_t box_volume(const vj_fingerprint *f)
{
    int64_t v = 1;
    for (int a = 0; a < VJ_AXES; a++)
        v *= f->high[a] - f->low[a] + 1;
    return v;
}

static void claim_flat_run(const vj_fingerprint *f, claims *out)
{
    char text[120];
    if (f->last_flat - f->first_flat + 1 != f->wrong || box_volume(f) == f->wrong)
        return;
    if (f->last_flat == f->elements - 1)
        snprintf(text, sizeof text, "the last %lld elements", (long long)f->wrong);
    else if (f->first_flat == 0)
        snprintf(text, sizeof text, "the first %lld elements", (long long)f->wrong);
    else
        snprintf(text, sizeof text, "elements %lld to %lld", (long long)f->first_flat, (long long)f->last_flat);
    claim(out, text);
}

static void tell(const vr_tensor *shape, const vr_tile_grid *g, counts *c, vj_fingerprint *f)
{
    char head[120], place[VJ_PLACE];
    claims only = {.used = 0}, mostly = {.used = 0};
    if (f->wrong == 0) {
        snprintf(f->text, sizeof f->text, "none of %lld elements is wrong by itself", (long long)f->elements);
        return;
    }
    if (f->wrong == f->elements) {
        snprintf(f->text, sizeof f->text, "all %lld elements are wrong", (long long)f->elements);
        return;
    }
    if (f->wrong == 1) {
        snprintf(f->text, sizeof f->text, "1 of %lld elements is wrong, at %s", (long long)f->elements,
                 vj_place(shape, f->first_flat, place, sizeof place));
        return;
    }
    snprintf(head, sizeof head, "%lld of %lld elements (%.3g %%) are wrong", (long long)f->wrong,
             (long long)f->elements, 100.0 * f->share);
    claim_flat_run(f, &only);
    if (only.used == 0) {
        bool whole = false;
        if (f->tile_row >= 0) {
            const int64_t h = g->h.tile[f->tile_row].owned_length, w = g->w.tile[f->tile_column].owned_length;
            char text[80];
            whole = 2 * (f->high[VJ_AXIS_Y] - f->low[VJ_AXIS_Y] + 1) >= h &&
                    2 * (f->high[VJ_AXIS_X] - f->low[VJ_AXIS_X] + 1) >= w;
            snprintf(text, sizeof text, "tile (row %lld, column %lld)", (long long)f->tile_row,
                     (long long)f->tile_column);
            claim(&only, text);
        }
        claim_axes(f, c, whole, &only);
    }
    if (only.used == 0)
        claim_near(f, g, &only);
    if (only.used == 0)
        claim_fold(f, &only);
    if (only.used == 0 && f->wrong >= 16)
        claim_mostly(f, c, &mostly);
    if (only.used)
        snprintf(f->text, sizeof f->text, "%s: only %s", head, only.text);
    else
        snprintf(f->text, sizeof f->text, "%s: %s", head, mostly.used ? mostly.text : "spread over the whole output");
}

vr_status vj_fingerprint_make(const vr_tensor *got, const vr_tensor *truth, const vr_tensor *cap, double above,
                              const vr_tile_grid *grid, vj_fingerprint *out, vr_error *err)
{
    counts c = {.memory = NULL};
    *out = (vj_fingerprint){.first_flat = -1, .last_flat = -1, .tile_row = -1, .tile_column = -1};
    for (int a = 0; a < VJ_AXES; a++)
        out->low[a] = out->high[a] = -1;
    vr_status s = view(truth, out->extent, err);
    if (s == VR_OK)
        s = vj_check_shape("output", got, truth, err);
    if (s == VR_OK && cap)
        s = vj_check_f64("cap", cap, err);
    if (s == VR_OK && cap)
        s = vj_check_shape("cap", cap, truth, err);
    if (s == VR_OK && !cap && !(above >= 0.0))
        s = vr_fail(err, VR_E_RANGE, "error from which an element is wrong is %g; want 0 or more", above);
    if (s == VR_OK)
        s = vj_count("output", truth, &out->elements, err);
    if (s == VR_OK && grid)
        s = vj_check_grid(grid, out->extent[VJ_AXIS_Y], out->extent[VJ_AXIS_X], err);
    if (s == VR_OK)
        s = counts_make(out->extent, grid, &c, err);
    if (s == VR_OK)
        s = scan(got, truth, cap, above, out, &c, err);
    if (s == VR_OK) {
        out->share = (double)out->wrong / (double)out->elements;
        if (grid && out->wrong)
            locate_tile(grid, out);
        tell(truth, grid, &c, out);
    }
    free(c.memory);
    return s;
}
