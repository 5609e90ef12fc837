/* ref/cli/inspect.c: `vaeref inspect`, what a model is and what it would cost.
 *
 * Nothing is executed: every number follows from the program and a size.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct inspect_args {
    cli_model_args model;
    int64_t width, height, frames;
    bool json;
} inspect_args;

enum { KEY_SIZE = CLI_KEY_COMMAND, KEY_FRAMES, KEY_JSON };

static const struct argp_option options[] = {
    CLI_MODEL_OPTION,
    {"size", KEY_SIZE, "WxH", 0, "Output size in pixels that costs are for (default 512x512)", 0},
    {"frames", KEY_FRAMES, "T", 0, "Latent frames that costs are for (default 1)", 0},
    {"json", KEY_JSON, NULL, 0, "The same as JSON on stdout", 0},
    CLI_CONFIG_OPTION,
    CLI_ARCH_OPTION,
    CLI_SPACE_OPTION,
    {0}};

static const char doc[] =
    "Show what a model file is, its decoder as a program, and what one decode costs.\n"
    "\v"
    "Examples:\n"
    "  vaeref inspect --model vae.safetensors\n"
    "  vaeref inspect --model synth:flux1 --size 1024x768\n"
    "  vaeref inspect --model vae.safetensors --json | jq .gmacs\n"
    "\n"
    "macs counts multiply-adds of convolutions and attention. peak_bytes is the "
    "largest sum of values alive at once, at 4 bytes an element.";

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    inspect_args *a = ctx;
    switch (key) {
    case KEY_SIZE:
        return cli_pair("--size", arg, &a->width, &a->height, err);
    case KEY_FRAMES:
        return cli_integer("--frames", arg, 1, 100000, &a->frames, err);
    case KEY_JSON:
        a->json = true;
        return VR_OK;
    default:
        return cli_model_set(&a->model, key, arg, err);
    }
}

vr_status cli_cells(const char *side, int64_t pixels, int64_t scale, int64_t *out, vr_error *err)
{
    *out = pixels / scale;
    if (pixels % scale == 0)
        return VR_OK;
    int64_t low = *out * scale;
    if (low == 0)
        return vr_fail(err, VR_E_ARGUMENT,
                       "--size: %s %lld is not a multiple of this model's scale %lld; nearest is "
                       "%lld", side, (long long)pixels, (long long)scale, (long long)scale);
    return vr_fail(err, VR_E_ARGUMENT,
                   "--size: %s %lld is not a multiple of this model's scale %lld; nearest are "
                   "%lld and %lld", side, (long long)pixels, (long long)scale, (long long)low,
                   (long long)(low + scale));
}

static int show(const inspect_args *a, cli_inspection *x, vr_error *err)
{
    const vr_model *m = x->model;
    const vr_program *p = m->program;
    size_t n = (size_t)p->op_count;
    int64_t h, w;
    if (cli_cells("width", a->width, m->spatial_scale, &w, err) ||
        cli_cells("height", a->height, m->spatial_scale, &h, err))
        return cli_error(CLI_USAGE, "%s", err->text);
    x->latent = (vr_shape){1, m->latent_channels, a->frames, h, w};
    x->shape = calloc(n, sizeof *x->shape);
    x->op_cost = calloc(n, sizeof *x->op_cost);
    if (!x->shape || !x->op_cost)
        return cli_error(CLI_FAILURE, "out of memory");
    if (vr_program_shapes(p, x->latent, x->shape, err) ||
        vr_program_cost_of(p, x->latent, 4, &x->cost, x->op_cost, err) ||
        vr_program_receptive_field(p, &x->field, err))
        return cli_fail(err);
    if (!a->json) {
        cli_inspect_text(x);
        return CLI_OK;
    }
    json_t *root = cli_inspect_json(x);
    vr_status s = cli_json_print(root, err);
    json_decref(root);
    return s ? cli_fail(err) : CLI_OK;
}

int cli_inspect(int argc, char **argv)
{
    inspect_args a;
    memset(&a, 0, sizeof a);
    a.width = a.height = 512;
    a.frames = 1;
    const cli_spec spec = {"inspect", options, doc, set};
    int code = cli_parse(&spec, argc, argv, &a);
    if (code != CLI_CONTINUE)
        return code;
    if (!a.model.model)
        return cli_error(CLI_USAGE,
                         "inspect needs --model FILE or synth:ARCH (vaeref inspect --help)");
    vr_error err = {VR_OK, ""};
    vr_model *m = NULL;
    if (cli_model_open_any(&a.model, &m, &err))
        return cli_fail(&err);
    cli_inspection x;
    memset(&x, 0, sizeof x);
    x.model = m;
    code = show(&a, &x, &err);
    free(x.op_cost);
    free(x.shape);
    vr_model_close(m);
    return code;
}
