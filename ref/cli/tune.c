/* ref/cli/tune.c: `vaeref tune`, what tiles of each shape cost on this machine, for
 * --tile-mode auto.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vaeref/costs.h"

typedef struct tune_args {
    cli_model_args model;
    const char *output, *sizes;
    int64_t rounds, threads;
    bool quiet;
} tune_args;

enum { KEY_SIZES = CLI_KEY_COMMAND, KEY_ROUNDS };

static const struct argp_option options[] = {
    CLI_MODEL_OPTION,
    {"sizes", KEY_SIZES, "A,B,..", 0, "Tile sides in pixels, ascending, every pair of which is timed (default 128,192,256,384,512)", 0},
    {"rounds", KEY_ROUNDS, "N", 0, "Decodes of each shape; the fastest counts (default 2)", 0},
    {"threads", 't', "N", 0, "CPU threads (default: OMP_NUM_THREADS, or all CPUs allowed)", 0},
    {"output", 'o', "FILE.json", 0, "Where to (default: the cache that --tile-mode auto looks into)", 0},
    {"quiet", 'q', NULL, 0, "No summary, no progress bar", 0},
    CLI_CONFIG_OPTION,
    CLI_ARCH_OPTION,
    CLI_SPACE_OPTION,
    {0}};

static const char doc[] =
    "Time the decode of tiles of every shape on this machine and keep the table.\n"
    "\v"
    "Examples:\n"
    "  vaeref tune --model vae.safetensors\n"
    "  vaeref plan --model vae.safetensors --tile-mode auto --memory-limit 1GiB --explain\n"
    "\n"
    "One table for each model and machine, in $XDG_CACHE_HOME/vaeproof or ~/.cache/vaeproof.";

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    tune_args *a = ctx;
    switch (key) {
    case KEY_SIZES:
        a->sizes = arg;
        return VR_OK;
    case KEY_ROUNDS:
        return cli_integer("--rounds", arg, 1, 1000, &a->rounds, err);
    case 't':
        return cli_integer("--threads", arg, 1, 4096, &a->threads, err);
    case 'o':
        a->output = arg;
        return *arg ? VR_OK : vr_fail(err, VR_E_ARGUMENT, "--output '': want a file name");
    case 'q':
        a->quiet = true;
        return VR_OK;
    default:
        return cli_model_set(&a->model, key, arg, err);
    }
}

static vr_status take_sizes(const char *text, int64_t scale, vr_tile_costs *c, vr_error *err)
{
    for (const char *at = text; *at;) {
        char *end;
        errno = 0;
        const long long px = strtoll(at, &end, 10);
        if (errno || end == at || (*end && *end != ',') || px < 8 || px > 16384 || px % scale || c->count == VR_COST_SIZES ||
            (c->count && px / scale <= c->size[c->count - 1]))
            return vr_fail(err, VR_E_ARGUMENT, "--sizes '%s': want 1 to 16 ascending sides in pixels, multiples of %lld from 8 to "
                           "16384, such as 128,256,512", text, (long long)scale);
        c->size[c->count++] = px / scale;
        at = *end ? end + 1 : end;
    }
    return c->count ? VR_OK : vr_fail(err, VR_E_ARGUMENT, "--sizes '': want sides in pixels, such as 128,256,512");
}

static vr_status time_shape(const vr_model *m, int64_t h, int64_t w, const tune_args *a, double *seconds, vr_exec_stats *stats,
                            vr_error *err)
{
    const vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .threads = (int32_t)a->threads};
    vr_tensor z = {.data = NULL};
    *seconds = 0;
    vr_status s = vr_model_latents(m, 1, 1, h, w, &z, err);
    for (int64_t k = 0; s == VR_OK && k < a->rounds; k++) {
        vr_tensor out = {.data = NULL};
        s = vr_exec_run(m->program, &z, &opt, &out, stats, err);
        if (s == VR_OK && (*seconds == 0 || stats->seconds < *seconds))
            *seconds = stats->seconds;
        vr_tensor_free(&out);
    }
    vr_tensor_free(&z);
    return s;
}

static vr_status measure(const vr_model *m, const tune_args *a, vr_tile_costs *c, vr_error *err)
{
    cli_progress bar;
    vr_exec_stats stats = {.op_seconds = NULL};
    int64_t done = 0, total = 0;
    for (int32_t i = 0; i < c->count; i++)
        for (int32_t j = 0; j < c->count; j++)
            total += c->size[i] * c->size[j];
    cli_interrupt_catch();
    cli_progress_start(&bar, a->quiet);
    vr_status s = VR_OK;
    for (int32_t i = 0; s == VR_OK && i < c->count; i++)
        for (int32_t j = 0; s == VR_OK && j < c->count; j++) {
            s = time_shape(m, c->size[i], c->size[j], a, &c->cost[i][j], &stats, err);
            done += c->size[i] * c->size[j];
            if (s == VR_OK && !cli_progress_update(&bar, done, total))
                s = VR_E_CANCELLED;
        }
    cli_progress_end(&bar);
    c->measured = true;
    c->threads = stats.threads;
    c->rounds = (int32_t)a->rounds;
    snprintf(c->isa, sizeof c->isa, "%s", stats.isa ? stats.isa : "");
    snprintf(c->policy, sizeof c->policy, "golden");
    snprintf(c->arch, sizeof c->arch, "%s", m->arch);
    snprintf(c->weights_sha256, sizeof c->weights_sha256, "%s", m->weights_sha256);
    cli_machine(c->machine, sizeof c->machine);
    return s;
}

static int tune(const tune_args *a, const vr_model *m, vr_error *err)
{
    static vr_tile_costs c;
    char path[PATH_MAX];
    c = (vr_tile_costs){.count = 0};
    if (take_sizes(a->sizes ? a->sizes : "128,192,256,384,512", m->spatial_scale, &c, err))
        return cli_error(CLI_USAGE, "%s", err->text);
    snprintf(path, sizeof path, "%s", a->output ? a->output : "");
    if (!a->output && cli_costs_path(m, true, path, sizeof path, err))
        return cli_fail(err);
    if (cli_output_check(path, err))
        return cli_fail(err);
    const vr_status s = measure(m, a, &c, err);
    if (s == VR_E_CANCELLED || cli_interrupted())
        return cli_error(CLI_INTERRUPTED, "interrupted; nothing was written");
    if (s || vr_tile_costs_write(path, &c, err))
        return cli_fail(err);
    if (!a->quiet)
        printf("%d shapes of %s timed on %s, %d threads -> %s\n", (int)(c.count * c.count), m->arch, c.machine, (int)c.threads, path);
    return CLI_OK;
}

int cli_tune(int argc, char **argv)
{
    tune_args a;
    vr_error err = {VR_OK, ""};
    memset(&a, 0, sizeof a);
    a.rounds = 2;
    const cli_spec spec = {"tune", options, doc, set};
    int code = cli_parse(&spec, argc, argv, &a);
    if (code != CLI_CONTINUE)
        return code;
    if (!a.model.model)
        return cli_error(CLI_USAGE, "tune needs --model FILE or synth:ARCH (vaeref tune --help)");
    vr_model *m = NULL;
    if (cli_model_open_any(&a.model, &m, &err))
        return cli_fail(&err);
    code = tune(&a, m, &err);
    vr_model_close(m);
    return code;
}
