/* vaebench tiling: what dividing a decode costs. Work of every scheme as planned
 * for one picture, and `exact` within a third of the undivided decode's peak of
 * activations timed against the undivided decode, alternating, in one run.
 *
 * SPDX-License-Identifier: MIT */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "bench.h"
#include "vaeref/model.h"
#include "vaeref/tile.h"

typedef struct tiling_args {
    bool json;
    int rounds, size, plan_size, threads, share;
    const char *model, *spill;
} tiling_args;

typedef struct measured {
    double seconds;       /* best round */
    uint64_t peak, limit; /* bytes of activations in the pool */
    vr_tile_stats stats;  /* of the last round */
} measured;

enum { KEY_PLAN_SIZE = 0x100, KEY_SPILL };

static const struct argp_option options[] = {
    {"json", 'j', 0, 0, "print JSON instead of text", 0},
    {"rounds", 'r', "N", 0, "rounds of each side (default 3)", 0},
    {"size", 's', "PX", 0, "side of the picture that is decoded, pixels, a multiple of 16 (default 512)", 0},
    {"plan-size", KEY_PLAN_SIZE, "PX", 0, "side of the picture whose work is planned (default 1024)", 0},
    {"share", 'n', "N", 0, "exact may use 1/N of the undivided peak (default 3)", 0},
    {"threads", 't', "N", 0, "threads (default: all)", 0},
    {"model", 'm', "SPEC", 0, "model (default synth:sd15)", 0},
    {"spill-dir", KEY_SPILL, "DIR", 0, "host store in a file there (default: memory)", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    tiling_args *a = state->input;
    switch (key) {
    case 'j':
        a->json = true;
        return 0;
    case 'r':
        a->rounds = vb_number(state, arg, 1024);
        return 0;
    case 's':
    case KEY_PLAN_SIZE:
        *(key == 's' ? &a->size : &a->plan_size) = vb_number(state, arg, 16384);
        if (atoi(arg) % 16)
            argp_error(state, "'%s': want a multiple of 16 pixels", arg);
        return 0;
    case 'n':
        a->share = vb_number(state, arg, 1000);
        return 0;
    case 't':
        a->threads = vb_number(state, arg, 1024);
        return 0;
    case 'm':
        a->model = arg;
        return 0;
    case KEY_SPILL:
        a->spill = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- planned work ----------------------------------------------------------- */

static void plan_one(const tiling_args *a, const vr_model *m, vr_tile_mode mode, const char *sep)
{
    const int64_t cells = a->plan_size / m->spatial_scale;
    const vr_tile_options o = {.mode = mode, .overlap_h = -1, .overlap_w = -1};
    vr_tile_plan p;
    vr_error err = {VR_OK, ""};
    if (vr_tile_plan_make(m->program, (vr_shape){1, m->latent_channels, 1, cells, cells}, &o, &p, &err) != VR_OK) {
        if (a->json)
            printf("%s\n  {\"scheme\": \"%s\", \"work_ratio\": null}", sep, vr_tile_mode_name(mode));
        else
            printf("  %-18s refused: %s\n", vr_tile_mode_name(mode), err.text);
        return;
    }
    if (a->json)
        printf("%s\n  {\"scheme\": \"%s\", \"tiles\": %lld, \"work_ratio\": %.4f}", sep, vr_tile_mode_name(mode),
               (long long)p.tile_count, p.work_ratio);
    else
        printf("  %-18s %3lld tiles  work %.3f\n", vr_tile_mode_name(mode), (long long)p.tile_count, p.work_ratio);
    vr_tile_plan_free(&p);
}

static void plan_all(const tiling_args *a, const vr_model *m)
{
    if (a->json)
        printf("{\"plan_size\": %d, \"model\": \"%s\",\n \"plans\": [", a->plan_size, a->model);
    else
        printf("multiply-adds at %dx%d, %s, default tiles, over those of the undivided decode:\n", a->plan_size,
               a->plan_size, a->model);
    for (int mode = 0; mode < VR_TILE_AUTO; mode++)
        plan_one(a, m, (vr_tile_mode)mode, mode ? "," : "");
    if (a->json)
        printf("],\n");
}

/* ---- measured --------------------------------------------------------------- */

static vr_status decode(const tiling_args *a, const vr_model *m, const vr_tensor *z, vr_tile_mode mode,
                        vr_tensor *out, measured *r, vr_error *err)
{
    const vr_tile_options o = {.mode = mode, .tile_h = mode == VR_TILE_EXACT ? 1 << 20 : 0,
                               .tile_w = mode == VR_TILE_EXACT ? 1 << 20 : 0, .overlap_h = -1, .overlap_w = -1,
                               .memory_limit = r->limit, .spill_dir = a->spill};
    const vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .threads = a->threads, .memory_limit = r->limit};
    vr_tile_plan plan;
    vr_status s = vr_tile_plan_make(m->program, (vr_shape){z->dim[0], z->dim[1], 1, z->dim[2], z->dim[3]}, &o, &plan,
                                    err);
    if (s != VR_OK)
        return s;
    r->stats = (vr_tile_stats){.tiles_done = 0};
    s = vr_tile_decode(m->program, z, &plan, &opt, out, &r->stats, err);
    vr_tile_plan_free(&plan);
    if (s == VR_OK && (r->seconds == 0.0 || r->stats.exec.seconds < r->seconds))
        r->seconds = r->stats.exec.seconds;
    r->peak = r->stats.exec.pool.peak_bytes;
    return s;
}

static vr_status measure(const tiling_args *a, const vr_model *m, measured *none, measured *exact, vr_error *err)
{
    const int64_t cells = a->size / m->spatial_scale;
    vr_tensor z = {.data = NULL}, want = {.data = NULL}, got = {.data = NULL};
    vr_status s = vr_model_latents(m, 1, 1, cells, cells, &z, err);
    for (int i = 0; s == VR_OK && i < a->rounds; i++) {
        s = decode(a, m, &z, VR_TILE_NONE, &want, none, err);
        exact->limit = none->peak / (uint64_t)a->share;
        if (s == VR_OK)
            s = decode(a, m, &z, VR_TILE_EXACT, &got, exact, err);
        int64_t n = 0;
        if (s == VR_OK)
            s = vr_tensor_count(&got, &n, err);
        if (s == VR_OK && memcmp(got.data, want.data, (size_t)n * sizeof(float)) != 0)
            s = vr_fail(err, VR_E_INTERNAL, "exact is not the undivided decode bit for bit");
        vr_tensor_free(&want);
        vr_tensor_free(&got);
    }
    vr_tensor_free(&z);
    return s;
}

static void report(const tiling_args *a, const measured *none, const measured *exact)
{
    const double time = exact->seconds / none->seconds, memory = (double)exact->peak / (double)none->peak;
    const double mib = 1.0 / 1048576.0;
    if (a->json)
        printf(" \"size\": %d, \"rounds\": %d, \"threads\": %d,\n"
               " \"none\": {\"seconds\": %.4f, \"peak_bytes\": %llu},\n"
               " \"exact\": {\"seconds\": %.4f, \"peak_bytes\": %llu, \"limit_bytes\": %llu, \"spilled_bytes\": %llu},\n"
               " \"time_ratio\": %.4f, \"peak_ratio\": %.4f, \"identical\": true}\n",
               a->size, a->rounds, a->threads, none->seconds, (unsigned long long)none->peak, exact->seconds,
               (unsigned long long)exact->peak, (unsigned long long)exact->limit,
               (unsigned long long)exact->stats.spilled_bytes, time, memory);
    else
        printf("\ndecoded at %dx%d, %d threads, best of %d, alternating, same bits:\n"
               "  none   %8.2f s  peak %8.1f MiB of activations\n"
               "  exact  %8.2f s  peak %8.1f MiB (limit %.1f), %.1f MiB written to the host store\n"
               "  time ratio %.3f, peak ratio %.3f\n",
               a->size, a->size, a->threads, a->rounds, none->seconds, (double)none->peak * mib, exact->seconds,
               (double)exact->peak * mib, (double)exact->limit * mib, (double)exact->stats.spilled_bytes * mib, time,
               memory);
}

int vb_tiling(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL,
        "Prints the work of every tiling scheme, then times exact tiling within a part of the memory "
        "against the undivided decode.", NULL, NULL, NULL};
    tiling_args a = {.rounds = 3, .size = 512, .plan_size = 1024, .share = 3, .model = "synth:sd15"};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    if (!a.threads)
        a.threads = omp_get_num_procs();
    vr_error err = {VR_OK, ""};
    vr_model *m = NULL;
    measured none = {.seconds = 0.0}, exact = {.seconds = 0.0};
    vr_status s = vr_model_open(a.model, NULL, &m, &err);
    if (s == VR_OK) {
        plan_all(&a, m);
        fflush(stdout);
        s = measure(&a, m, &none, &exact, &err);
    }
    if (s == VR_OK)
        report(&a, &none, &exact);
    else
        fprintf(stderr, "vaebench: error: %s\n", err.text);
    vr_model_close(m);
    return s == VR_OK ? 0 : 1;
}
