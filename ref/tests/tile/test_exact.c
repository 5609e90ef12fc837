/* Exact tiling equals the undivided decode bit for bit, whatever the parts, the
 * threads and the budget, down to the smallest budget there is (clause T10).
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tile/internal.h"
#include "vaeref/io.h"
#include "vaeref/model.h"

static int failures, checked;

typedef struct decoder {
    vr_model *model;
    vr_tensor latent, want;
    uint64_t peak; /* of the undivided decode */
} decoder;

static void fail(const char *what, const char *why)
{
    printf("FAIL %s: %s\n", what, why);
    failures++;
}

static vr_status decode(const decoder *d, const vr_tile_options *o, uint64_t limit, int threads,
                        vr_tensor *out, vr_tile_stats *stats, vr_error *err)
{
    const vr_tensor *z = &d->latent;
    vr_tile_plan plan;
    *out = (vr_tensor){.data = NULL};
    vr_status s = vr_tile_plan_make(d->model->program, (vr_shape){z->dim[0], z->dim[1], 1, z->dim[2], z->dim[3]},
                                    o, &plan, err);
    if (s != VR_OK)
        return s;
    const vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .threads = threads, .memory_limit = limit};
    s = vr_tile_decode(d->model->program, z, &plan, &opt, out, stats, err);
    vr_tile_plan_free(&plan);
    return s;
}

static void expect_same(const decoder *d, const char *name, int64_t tile, uint64_t limit, int threads, const char *spill)
{
    char what[160];
    snprintf(what, sizeof what, "%s %lldx%lld cells, tile %lld, limit %llu, %d threads", name,
             (long long)d->latent.dim[2], (long long)d->latent.dim[3], (long long)tile, (unsigned long long)limit, threads);
    const vr_tile_options o = {.mode = VR_TILE_EXACT, .tile_h = tile, .tile_w = tile, .overlap_h = -1,
                               .overlap_w = -1, .spill_dir = spill};
    vr_tensor out;
    vr_tile_stats stats = {.tiles_done = 0};
    vr_error err = {VR_OK, ""};
    checked++;
    if (decode(d, &o, limit, threads, &out, &stats, &err) != VR_OK) {
        fail(what, err.text);
        return;
    }
    int64_t n = 0;
    vr_tensor_count(&out, &n, NULL);
    if (memcmp(out.dim, d->want.dim, sizeof out.dim) != 0 || memcmp(out.data, d->want.data, (size_t)n * 4) != 0)
        fail(what, "not the undivided bits");
    if (limit && stats.exec.pool.peak_bytes > limit)
        fail(what, "the pool passed its limit");
    vr_tensor_free(&out);
}

/* The smallest budget that a dry run accepts works; one byte less is refused. */
static void at_the_smallest_budget(const decoder *d, const char *name)
{
    const vr_tile_options o = {.mode = VR_TILE_EXACT, .tile_h = 1 << 20, .tile_w = 1 << 20};
    const vr_shape l = {d->latent.dim[0], d->latent.dim[1], 1, d->latent.dim[2], d->latent.dim[3]};
    uint64_t lo = 0, hi = d->peak * 2 + 4096;
    int64_t peak;
    while (hi - lo > 1) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (vr_exact_predict(d->model->program, l, &o, mid, 4, &peak, NULL) == VR_OK)
            hi = mid;
        else
            lo = mid;
    }
    printf("%s %lldx%lld cells: undivided peak %llu bytes, smallest budget %llu\n", name, (long long)l.h,
           (long long)l.w, (unsigned long long)d->peak, (unsigned long long)hi);
    expect_same(d, name, 1 << 20, hi, 2, NULL);
    vr_tensor out;
    vr_error err = {VR_OK, ""};
    const vr_tile_options whole = {.mode = VR_TILE_EXACT, .overlap_h = -1, .overlap_w = -1};
    checked++;
    if (decode(d, &whole, hi - 1, 1, &out, NULL, &err) != VR_E_BUDGET || !strstr(err.text, "needs at least"))
        fail(name, "a budget below the smallest must be refused with the number needed");
    vr_tensor_free(&out);
}

static void check(const char *name, const char *spec, int64_t h, int64_t w)
{
    decoder d = {.model = NULL};
    vr_error err = {VR_OK, ""};
    vr_exec_stats stats = {.op_seconds = NULL};
    if (vr_model_open(spec, NULL, &d.model, &err) != VR_OK) {
        fail(name, err.text);
        return;
    }
    const int64_t per = d.model->latent_channels == 128 ? 16 : 8; /* pixels per cell */
    if (vr_model_latents(d.model, 3, 1, (h + per - 1) / per, (w + per - 1) / per, &d.latent, &err) != VR_OK ||
        vr_exec_run(d.model->program, &d.latent, NULL, &d.want, &stats, &err) != VR_OK) {
        fail(name, err.text);
    } else {
        d.peak = stats.pool.peak_bytes;
        const int64_t tiles[] = {64, 96, 128, 200, 512};
        for (int i = 0; i < 5; i++)
            for (int threads = 1; threads <= 2; threads++)
                expect_same(&d, name, tiles[i], (i + threads) % 2 ? d.peak / 3 : 0, threads, NULL);
        expect_same(&d, name, 512, d.peak / 3, 2, "/tmp");
        if (d.peak < 30000000)
            at_the_smallest_budget(&d, name);
        else /* the smallest would take minutes: every part is one cell */
            expect_same(&d, name, 1 << 20, d.peak / 256, 2, NULL);
    }
    vr_tensor_free(&d.latent);
    vr_tensor_free(&d.want);
    vr_model_close(d.model);
}

/* `short`: the smaller sizes only, for sanitizer builds. */
int main(int argc, char **argv)
{
    const int count = argc > 1 && strcmp(argv[1], "short") == 0 ? 2 : 4;
    static const int64_t sizes[][2] = {{8, 8}, {8, 512}, {136, 1000}, {520, 384}}; /* pixels, rows x columns */
    char real[4096];
    const char *shared = getenv("VAEPROOF_SHARED");
    snprintf(real, sizeof real, "%s/real/taef2_decoder.safetensors", shared ? shared : "");
    FILE *f = fopen(real, "rb");
    if (!f)
        printf("note: no %s; TAEF2 with real weights left out\n", real);
    for (int i = 0; i < count; i++) {
        check("kl sd15/16", "synth:sd15,div=16", sizes[i][0], sizes[i][1]);
        check("kl flux2/16", "synth:flux2,div=16", sizes[i][0], sizes[i][1]);
        check("taesd/4", "synth:taesd,div=4", sizes[i][0], sizes[i][1]);
        if (f)
            check("taef2 real", real, sizes[i][0], sizes[i][1]);
    }
    if (f)
        fclose(f);
    printf("%d exact decodes compared, %d failures\n", checked, failures);
    return failures || checked < (count == 2 ? 70 : 140);
}
