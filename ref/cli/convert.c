/* ref/cli/convert.c: `vaeref convert`, the same weights under other names or in
 * another element type. A weight that the type cannot hold is refused, never
 * written as infinity.
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct convert_args {
    cli_model_args model;
    bool has_layout;
    vr_key_layout layout;
    vr_dtype dtype; /* NONE: keep each */
    const char *output;
} convert_args;

enum { KEY_LAYOUT = CLI_KEY_COMMAND, KEY_DTYPE };

static const struct argp_option options[] = {
    {"model", 'm', "FILE", 0, "Model to read: .safetensors or .safetensors.index.json", 0},
    CLI_CONFIG_OPTION,
    CLI_ARCH_OPTION,
    {"layout", KEY_LAYOUT, "diffusers|original", 0, "Key layout (default: as in the file)", 0},
    {"dtype", KEY_DTYPE, "T", 0,
     "F64, F32, F16, BF16, F8_E4M3 or F8_E5M2 (default: each tensor keeps its own)", 0},
    {"output", 'o', "FILE.safetensors", 0, "Where to", 0},
    {0}};

static const char doc[] =
    "Rewrite the decoder part of a model file in another key layout or element type.\n"
    "\v"
    "Examples:\n"
    "  vaeref convert --model sd-v1-5.safetensors --layout diffusers -o vae.safetensors\n"
    "  vaeref convert --model vae.safetensors --dtype BF16 -o vae-bf16.safetensors\n"
    "\n"
    "Only what a decoder needs is written: an encoder, a denoiser or a text "
    "encoder in the same file is left out.";

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    convert_args *a = ctx;
    cli_format f;
    switch (key) {
    case KEY_LAYOUT:
        a->has_layout = true;
        return cli_layout(arg, &a->layout, err);
    case KEY_DTYPE:
        return cli_float_dtype(arg, &a->dtype, err);
    case 'o':
        a->output = arg;
        return cli_output_format(arg, CLI_SAFETENSORS, &f, err);
    default:
        return cli_model_set(&a->model, key, arg, err);
    }
}

/* Every weight must stay finite in the new type. */
static vr_status check_fits(const vr_model *m, vr_dtype to, vr_error *err)
{
    enum { CHUNK = 1024 };
    double wide[CHUNK];
    uint64_t narrow[CHUNK]; /* room for any type */
    if (to == VR_DTYPE_NONE || to == VR_F64)
        return VR_OK;
    for (int32_t k = 0; k < m->program->weight_count; k++) {
        const vr_weight *w = &m->program->weight[k];
        for (int64_t i = 0; i < w->count; i += CHUNK) {
            uint64_t n = (uint64_t)(w->count - i < CHUNK ? w->count - i : CHUNK);
            const char *src = (const char *)w->data + (size_t)i * vr_dtype_size(w->dtype);
            vr_status s = vr_convert(to, narrow, w->dtype, src, n, err);
            if (!s)
                s = vr_convert(VR_F64, wide, to, narrow, n, err);
            if (s)
                return s;
            for (uint64_t j = 0; j < n; j++)
                if (!isfinite(wide[j]))
                    return vr_fail(err, VR_E_RANGE,
                                   "%s: element %llu of '%s' is beyond the range of %s; want a "
                                   "type with more range, such as BF16 or F32", m->arch,
                                   (unsigned long long)i + j, w->source_name, vr_dtype_name(to));
        }
    }
    return VR_OK;
}

int cli_convert(int argc, char **argv)
{
    convert_args a;
    memset(&a, 0, sizeof a);
    const cli_spec spec = {"convert", options, doc, set};
    int code = cli_parse(&spec, argc, argv, &a);
    if (code != CLI_CONTINUE)
        return code;
    if (!a.model.model)
        return cli_error(CLI_USAGE, "convert needs --model FILE (vaeref convert --help)");
    if (!a.output)
        return cli_error(CLI_USAGE, "convert needs -o FILE.safetensors (vaeref convert --help)");
    if (!a.has_layout && !a.dtype)
        return cli_error(CLI_USAGE,
                         "convert needs --layout, --dtype or both: else there is nothing to change");
    vr_error err = {VR_OK, ""};
    vr_model *m = NULL;
    vr_status s = cli_output_check(a.output, &err);
    if (!s)
        s = cli_model_open_any(&a.model, &m, &err);
    if (!s)
        s = check_fits(m, a.dtype, &err);
    vr_key_layout layout = m && !a.has_layout ? m->layout : a.layout;
    if (!s)
        s = vr_model_write(m, a.output, layout, a.dtype, &err);
    if (!s)
        printf("wrote %s: %s, %d tensors, %s keys, %s\n", a.output, m->arch,
               (int)m->program->weight_count, cli_layout_name(layout),
               a.dtype ? vr_dtype_name(a.dtype) : "element types kept");
    vr_model_close(m);
    return s ? cli_fail(&err) : CLI_OK;
}
