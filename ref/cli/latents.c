/* ref/cli/latents.c: `vaeref latents`, seeded latents for a model.
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <stdio.h>
#include <string.h>

typedef struct latents_args {
    cli_model_args model;
    int64_t width, height;     /* pixels, 0 = not given */
    int64_t rows, columns;     /* latent cells, 0 = not given */
    int64_t n;
    uint64_t seed;
    const char *output;
    cli_format format;
} latents_args;

enum { KEY_SIZE = CLI_KEY_COMMAND, KEY_CELLS, KEY_SEED };

static const struct argp_option options[] = {
    CLI_MODEL_OPTION,
    CLI_ARCH_OPTION,
    CLI_CONFIG_OPTION,
    CLI_SPACE_OPTION,
    {"size", KEY_SIZE, "WxH", 0, "Size in pixels of the picture they decode to", 0},
    {"latent-size", KEY_CELLS, "HxW", 0, "Size in latent cells (rows x columns)", 0},
    {"seed", KEY_SEED, "N", 0, "Seed (default 0)", 0},
    {"n", 'n', "B", 0, "Batch (default 1)", 0},
    {"output", 'o', "FILE.npy|.safetensors", 0, "Where to; the tensor is named latents", 0},
    {0}};

static const char doc[] =
    "Write seeded latents [B,C,H,W], float32, for a model file or an architecture.\n"
    "\v"
    "Examples:\n"
    "  vaeref latents --arch sd15 --size 512x512 -o z.npy\n"
    "  vaeref latents --model vae.safetensors --latent-size 64x96 --n 4 \\\n"
    "      --seed 7 -o z.safetensors";

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    latents_args *a = ctx;
    switch (key) {
    case KEY_SIZE:
        return cli_pair("--size", arg, &a->width, &a->height, err);
    case KEY_CELLS:
        return cli_pair("--latent-size", arg, &a->rows, &a->columns, err);
    case KEY_SEED:
        return cli_u64("--seed", arg, &a->seed, err);
    case 'n':
        return cli_integer("--n", arg, 1, 100000, &a->n, err);
    case 'o':
        a->output = arg;
        return cli_output_format(arg, CLI_NPY | CLI_SAFETENSORS, &a->format, err);
    default:
        return cli_model_set(&a->model, key, arg, err);
    }
}

static const char *missing(const latents_args *a)
{
    if (!a->model.model && !a->model.arch)
        return "latents needs --model FILE or --arch NAME";
    if (!a->width == !a->rows)
        return "latents needs one of --size WxH (pixels) and --latent-size HxW (cells)";
    if (!a->output)
        return "latents needs -o FILE.npy or FILE.safetensors";
    return NULL;
}

/* Latent cells from pixels, or a usage error that says what would be right. */
static vr_status size_of(latents_args *a, int64_t scale, vr_error *err)
{
    if (a->rows)
        return VR_OK;
    if (a->width % scale || a->height % scale)
        return vr_fail(err, VR_E_ARGUMENT,
                       "--size %lldx%lld: want multiples of %lld, such as %lldx%lld",
                       (long long)a->width, (long long)a->height, (long long)scale,
                       (long long)((a->width + scale - 1) / scale * scale),
                       (long long)((a->height + scale - 1) / scale * scale));
    a->columns = a->width / scale;
    a->rows = a->height / scale;
    return VR_OK;
}

static int write_latents(latents_args *a, const vr_model *m, vr_error *err)
{
    if (size_of(a, m->spatial_scale, err))
        return cli_error(CLI_USAGE, "%s", err->text);
    vr_tensor t;
    memset(&t, 0, sizeof t);
    char seed[32], is[120];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)a->seed);
    const vr_metadata meta[] = {
        {"vaeproof.arch", m->arch},
        {"vaeproof.seed", seed},
        {"vaeproof.latent_space", m->latent_space == VR_LATENT_RAW ? "raw" : "diffusion"}};
    vr_status s = vr_model_latents(m, a->seed, a->n, a->rows, a->columns, &t, err);
    if (!s)
        s = cli_tensor_write(a->output, a->format, "latents", &t, meta, 3, err);
    if (!s)
        printf("wrote %s: %s, %s latents for %s, seed %s\n", a->output,
               vr_tensor_describe(&t, is, sizeof is), meta[2].value, m->arch, seed);
    vr_tensor_free(&t);
    return s ? cli_fail(err) : CLI_OK;
}

int cli_latents(int argc, char **argv)
{
    latents_args a;
    memset(&a, 0, sizeof a);
    a.n = 1;
    const cli_spec spec = {"latents", options, doc, set};
    int code = cli_parse(&spec, argc, argv, &a);
    if (code != CLI_CONTINUE)
        return code;
    const char *want = missing(&a);
    if (want)
        return cli_error(CLI_USAGE, "%s (vaeref latents --help)", want);
    char tiny[80]; /* the channel count needs no full-width weights */
    if (!a.model.model) {
        snprintf(tiny, sizeof tiny, "synth:%s,div=16", a.model.arch);
        a.model.model = tiny;
    }
    vr_error err = {VR_OK, ""};
    vr_model *m = NULL;
    if (cli_output_check(a.output, &err) || cli_model_open(&a.model, &m, &err))
        return cli_fail(&err);
    code = write_latents(&a, m, &err);
    vr_model_close(m);
    return code;
}
