/* ref/cli/synth.c: `vaeref synth`, a model file with seeded weights.
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <stdio.h>
#include <string.h>

typedef struct synth_args {
    const char *arch, *output;
    uint64_t seed;
    int64_t div;
    vr_key_layout layout;
    vr_dtype dtype;
} synth_args;

enum { KEY_SEED = CLI_KEY_COMMAND, KEY_DIV, KEY_LAYOUT, KEY_DTYPE };

static const struct argp_option options[] = {
    {"arch", CLI_KEY_ARCH, "NAME", 0,
     "sd15, sdxl, sd3, flux1, flux2, taesd, taesdxl, taesd3, taef1, taef2, taesana", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of the weights (default 0)", 0},
    {"div", KEY_DIV, "D", 0, "Divide all widths by D, for a small model (default 1)", 0},
    {"layout", KEY_LAYOUT, "diffusers|original", 0, "Key layout (default diffusers)", 0},
    {"dtype", KEY_DTYPE, "T", 0, "F32 (default), F64, F16, BF16, F8_E4M3 or F8_E5M2", 0},
    {"output", 'o', "FILE.safetensors", 0, "Where to", 0},
    {0}};

static const char doc[] =
    "Write a model file with seeded weights. The same seed gives the same bytes on "
    "every machine.\n"
    "\v"
    "Examples:\n"
    "  vaeref synth --arch sd15 --div 8 -o small.safetensors\n"
    "  vaeref synth --arch flux1 --seed 3 --layout original --dtype BF16 \\\n"
    "      -o ae.safetensors";

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    synth_args *a = ctx;
    const vr_arch_info *info;
    cli_format f;
    switch (key) {
    case CLI_KEY_ARCH:
        a->arch = arg;
        return cli_arch(arg, &info, err);
    case KEY_SEED:
        return cli_u64("--seed", arg, &a->seed, err);
    case KEY_DIV:
        return cli_integer("--div", arg, 1, 64, &a->div, err);
    case KEY_LAYOUT:
        return cli_layout(arg, &a->layout, err);
    case KEY_DTYPE:
        return cli_float_dtype(arg, &a->dtype, err);
    default:
        a->output = arg;
        return cli_output_format(arg, CLI_SAFETENSORS, &f, err);
    }
}

int cli_synth(int argc, char **argv)
{
    synth_args a;
    memset(&a, 0, sizeof a);
    a.div = 1;
    a.dtype = VR_F32;
    const cli_spec spec = {"synth", options, doc, set};
    int code = cli_parse(&spec, argc, argv, &a);
    if (code != CLI_CONTINUE)
        return code;
    if (!a.arch)
        return cli_error(CLI_USAGE, "synth needs --arch NAME (vaeref synth --help lists them)");
    if (!a.output)
        return cli_error(CLI_USAGE, "synth needs -o FILE.safetensors (vaeref synth --help)");
    char text[200];
    snprintf(text, sizeof text, "synth:%s,seed=%llu,div=%lld", a.arch, (unsigned long long)a.seed,
             (long long)a.div);
    vr_error err = {VR_OK, ""};
    vr_model *m = NULL;
    vr_status s = cli_output_check(a.output, &err);
    if (!s)
        s = vr_model_open(text, NULL, &m, &err);
    if (!s)
        s = vr_model_write(m, a.output, a.layout, a.dtype, &err);
    if (!s)
        printf("wrote %s: %s, seed %llu, widths divided by %lld, %d tensors, %s keys, %s\n",
               a.output, m->arch, (unsigned long long)a.seed, (long long)a.div,
               (int)m->program->weight_count, cli_layout_name(a.layout), vr_dtype_name(a.dtype));
    vr_model_close(m);
    return s ? cli_fail(&err) : CLI_OK;
}
