/* vaebench ops: golden convolution (and attention) at the layer shapes of an SD
 * decode, as a fraction of the f64 multiply-add peak measured in the same run.
 * Peak and operation alternate; the best of each is compared, since anything
 * else on the machine can only slow either down.
 *
 * SPDX-License-Identifier: MIT */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <omp.h>

#include "bench.h"
#include "vaeref/exec.h"
#include "vaeref/program.h"

typedef struct op_case {
    const char *op;
    int64_t channels, side, kernel; /* kernel 0: attention */
    bool quick;
} op_case;

static const op_case cases[] = {
    {"conv2d", 512, 64, 3, true},   {"conv2d", 256, 256, 3, false}, {"conv2d", 128, 512, 3, false},
    {"conv2d", 512, 64, 1, false},  {"attention", 512, 64, 0, false},
};

typedef struct ops_args {
    bool json, quick;
    int rounds, threads;
} ops_args;

static const struct argp_option options[] = {
    {"json", 'j', 0, 0, "print JSON instead of a table", 0},
    {"rounds", 'r', "N", 0, "measurements of each shape (default 5)", 0},
    {"threads", 't', "N", 0, "threads (default: all this process may use)", 0},
    {"quick", 'q', 0, 0, "first shape only", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    ops_args *a = state->input;
    switch (key) {
    case 'j':
        a->json = true;
        return 0;
    case 'q':
        a->quick = true;
        return 0;
    case 'r':
        a->rounds = vb_number(state, arg, 1024);
        return 0;
    case 't':
        a->threads = vb_number(state, arg, 1024);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static vr_program *build(const op_case *c, float *weights, vr_error *err)
{
    vr_program *p = vr_program_new("bench", c->channels);
    if (!p)
        return NULL;
    int32_t y;
    if (c->kernel) {
        int64_t dim[4] = {c->channels, c->channels, c->kernel, c->kernel};
        int32_t w = vr_program_weight(p, "w", "w", VR_F32, 4, dim, weights);
        y = vr_program_conv2d(p, "conv", 0, w, -1, c->kernel / 2);
    } else {
        y = vr_program_attention(p, "attention", 0, 0, 0, 0.044194173824159216);
    }
    if (vr_program_finish(p, y, -1.0, 1.0, err) == VR_OK)
        return p;
    vr_program_free(p);
    return NULL;
}

typedef struct op_result {
    double gflops, peak;
} op_result;

static vr_status measure(const op_case *c, const ops_args *a, op_result *out, vr_error *err)
{
    int64_t nw = c->channels * c->channels * (c->kernel ? c->kernel * c->kernel : 1);
    int64_t nx = c->channels * c->side * c->side;
    float *w = malloc((size_t)nw * 4), *x = malloc((size_t)nx * 4);
    vr_program *p = NULL;
    vr_status s = VR_E_NOMEM;
    double op_seconds[2];
    if (!w || !x)
        goto done;
    for (int64_t i = 0; i < nw; i++)
        w[i] = vr_random_uniform(1, 1, (uint64_t)i) - 0.5f;
    for (int64_t i = 0; i < nx; i++)
        x[i] = vr_random_uniform(1, 2, (uint64_t)i) - 0.5f;
    p = build(c, w, err);
    if (!p)
        goto done;
    vr_program_cost cost;
    s = vr_program_cost_of(p, (vr_shape){1, c->channels, 1, c->side, c->side}, 4, &cost, NULL, err);
    const vr_tensor latent = {VR_F32, 4, {1, c->channels, c->side, c->side}, x};
    const vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .threads = a->threads};
    *out = (op_result){0.0, 0.0};
    for (int r = 0; s == VR_OK && r < a->rounds; r++) {
        double peak = vb_measure_peak(a->threads);
        vr_exec_stats stats = {.op_seconds = op_seconds};
        vr_tensor y;
        s = vr_exec_run(p, &latent, &opt, &y, &stats, err);
        vr_tensor_free(&y);
        double gflops = 2e-9 * (double)cost.macs / op_seconds[1];
        out->peak = peak > out->peak ? peak : out->peak;
        out->gflops = gflops > out->gflops ? gflops : out->gflops;
    }
done:
    vr_program_free(p);
    free(w);
    free(x);
    return s;
}

int vb_ops(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL,
        "Measures golden operations at the layer shapes of an SD decode and this machine's f64 "
        "multiply-add peak in the same run.\vfraction = gflops / peak_gflops, each the best of "
        "the rounds. A convolution counts two operations per multiply-add; attention does more "
        "work than its count (exponentials, packing).", NULL, NULL, NULL};
    ops_args a = {.rounds = 5, .threads = omp_get_max_threads()};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    vr_error err = {VR_OK, ""};
    const char *isa = "?";
    if (vr_exec_isa(&isa, &err) != VR_OK) {
        fprintf(stderr, "vaebench: error: %s\n", err.text);
        return 1;
    }
    json_t *rows = json_array();
    if (!a.json)
        printf("# isa %s, %d threads, best of %d rounds\n%-10s %-18s %-8s %8s %12s %9s\n", isa,
               a.threads, a.rounds, "op", "shape", "policy", "gflops", "peak_gflops", "fraction");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const op_case *c = &cases[i];
        if (a.quick && !c->quick)
            continue;
        op_result r;
        if (measure(c, &a, &r, &err) != VR_OK) {
            fprintf(stderr, "vaebench: error: %s\n", err.text);
            json_decref(rows);
            return 1;
        }
        char shape[48];
        snprintf(shape, sizeof shape, "%lldx%lld@%lld^2 k%lld", (long long)c->channels,
                 (long long)c->channels, (long long)c->side, (long long)c->kernel);
        if (!a.json) {
            printf("%-10s %-18s %-8s %8.1f %12.1f %9.3f\n", c->op, shape, "golden", r.gflops, r.peak,
                   r.gflops / r.peak);
            fflush(stdout);
        }
        json_array_append_new(rows, json_pack("{s:s,s:s,s:s,s:f,s:f,s:f}", "op", c->op, "shape", shape,
                                              "policy", "golden", "gflops", r.gflops, "peak_gflops",
                                              r.peak, "fraction", r.gflops / r.peak));
    }
    if (a.json) {
        json_t *doc = json_pack("{s:s,s:i,s:i,s:O}", "isa", isa, "threads", a.threads, "rounds",
                                a.rounds, "rows", rows);
        json_dumpf(doc, stdout, JSON_INDENT(1));
        printf("\n");
        json_decref(doc);
    }
    json_decref(rows);
    return 0;
}
