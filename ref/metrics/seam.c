/* Does an error follow the tile grid? (clause Q3)
 *
 * A border at column b, seen by one row of tiles, has the step
 *     |mean over that tile row's rows y of E(y, b) - E(y, b-1)|
 * averaged over samples and channels; the same for rows. Placebo lines are the
 * columns (rows) of the same phase that are no border. A corner has the mixed
 * difference |E(y,b) - E(y,b-1) - E(y-1,b) + E(y-1,b-1)|. Scores are the mean over
 * borders over the 99th percentile of placebos: above 1 the grid is visible.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "metrics/internal.h"

typedef struct errors {
    const float *got, *want;
    int64_t planes, h, w;
} errors;

static double at(const errors *e, int64_t plane, int64_t y, int64_t x)
{
    int64_t i = (plane * e->h + y) * e->w + x;
    return (double)e->got[i] - (double)e->want[i];
}

/* Step across line `b` (a column, or a row when `rows`) over [from, to). */
static double step(const errors *e, bool rows, int64_t b, int64_t from, int64_t to)
{
    double sum = 0.0;
    for (int64_t p = 0; p < e->planes; p++) {
        double s = 0.0;
        for (int64_t i = from; i < to; i++)
            s += rows ? at(e, p, b, i) - at(e, p, b - 1, i) : at(e, p, i, b) - at(e, p, i, b - 1);
        sum += fabs(s / (double)(to - from));
    }
    return sum / (double)e->planes;
}

static double mixed(const errors *e, int64_t y, int64_t x)
{
    double sum = 0.0;
    for (int64_t p = 0; p < e->planes; p++)
        sum += fabs(at(e, p, y, x) - at(e, p, y, x - 1) - at(e, p, y - 1, x) + at(e, p, y - 1, x - 1));
    return sum / (double)e->planes;
}

static bool is_border(const vr_tile_axis *a, int64_t at_pixel)
{
    for (int64_t i = 1; i < a->count; i++)
        if (a->tile[i].owned == at_pixel)
            return true;
    return false;
}

typedef struct sample {
    double border;  /* sum over borders */
    int64_t borders;
    double *placebo;
    int64_t placebos, room;
} sample;

static bool add_placebo(sample *s, double v)
{
    if (s->placebos == s->room) {
        int64_t room = s->room ? 2 * s->room : 1024;
        double *grown = realloc(s->placebo, (size_t)room * sizeof *grown);
        if (!grown)
            return false;
        s->placebo = grown;
        s->room = room;
    }
    s->placebo[s->placebos++] = v;
    return true;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Mean border over p99 of placebos; NaN with fewer than 8 placebos. A border that
 * is exactly flat scores 0, whatever the placebos. */
static double score(sample *s)
{
    double r = NAN;
    if (s->borders && s->border == 0.0) {
        r = 0.0;
    } else if (s->borders && s->placebos >= 8) {
        qsort(s->placebo, (size_t)s->placebos, sizeof *s->placebo, ascending);
        double p99 = s->placebo[(int64_t)ceil(0.99 * (double)s->placebos) - 1];
        r = s->border / (double)s->borders / p99;
    }
    free(s->placebo);
    return r;
}

/* Lines across axis `a`, seen per tile of the other axis. */
static bool collect_lines(const errors *e, const vr_tile_axis *a, const vr_tile_axis *other, bool rows,
                          int64_t phase, sample *s)
{
    const int64_t length = rows ? e->h : e->w;
    for (int64_t k = 0; k < other->count; k++) {
        const vr_axis_tile *t = &other->tile[k];
        for (int64_t b = phase; b < length; b += phase) {
            double v = step(e, rows, b, t->owned, t->owned + t->owned_length);
            if (is_border(a, b)) {
                s->border += v;
                s->borders++;
            } else if (!add_placebo(s, v)) {
                return false;
            }
        }
    }
    return true;
}

static bool collect_corners(const errors *e, const vr_tile_grid *g, int64_t phase, sample *s)
{
    for (int64_t y = phase; y < e->h; y += phase)
        for (int64_t x = phase; x < e->w; x += phase) {
            double v = mixed(e, y, x);
            if (is_border(&g->h, y) && is_border(&g->w, x)) {
                s->border += v;
                s->borders++;
            } else if (!is_border(&g->h, y) && !is_border(&g->w, x) && !add_placebo(s, v)) {
                return false;
            }
        }
    return true;
}

static double tile_mean(const errors *e, const vr_axis_tile *h, const vr_axis_tile *w, int64_t plane)
{
    double s = 0.0;
    for (int64_t y = h->owned; y < h->owned + h->owned_length; y++)
        for (int64_t x = w->owned; x < w->owned + w->owned_length; x++)
            s += at(e, plane, y, x);
    return s / (double)(h->owned_length * w->owned_length);
}

static double largest_tone_step(const errors *e, const vr_tile_grid *g)
{
    double most = 0.0;
    for (int64_t p = 0; p < e->planes; p++)
        for (int64_t i = 0; i < g->h.count; i++)
            for (int64_t j = 0; j < g->w.count; j++) {
                double here = tile_mean(e, &g->h.tile[i], &g->w.tile[j], p);
                if (i > 0)
                    most = fmax(most, fabs(here - tile_mean(e, &g->h.tile[i - 1], &g->w.tile[j], p)));
                if (j > 0)
                    most = fmax(most, fabs(here - tile_mean(e, &g->h.tile[i], &g->w.tile[j - 1], p)));
            }
    return most;
}

vr_status vr_seam_scores(const vr_tensor *got, const vr_tensor *want, const vr_tile_grid *grid,
                         int64_t phase, vr_comparison *out, vr_error *err)
{
    const errors e = {got->data, want->data, got->dim[0] * got->dim[1], got->dim[2], got->dim[3]};
    if (phase < 1)
        return vr_fail(err, VR_E_RANGE, "phase %lld; want pixels per latent cell, 1 or more", (long long)phase);
    sample lines = {0}, corners = {0};
    bool ok = collect_lines(&e, &grid->w, &grid->h, false, phase, &lines) &&
              collect_lines(&e, &grid->h, &grid->w, true, phase, &lines) &&
              collect_corners(&e, grid, phase, &corners);
    out->border_score = score(&lines);
    out->corner_score = score(&corners);
    out->tone_step = largest_tone_step(&e, grid);
    return ok ? VR_OK : vr_fail(err, VR_E_NOMEM, "cannot allocate placebo lines");
}
