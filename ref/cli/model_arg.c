/* ref/cli/model_arg.c: --model and the options that say how to read it.
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <stdio.h>
#include <string.h>

vr_status cli_model_set(cli_model_args *a, int key, const char *arg, vr_error *err)
{
    const vr_arch_info *info;
    switch (key) {
    case 'm':
        a->model = arg;
        return VR_OK;
    case CLI_KEY_CONFIG:
        a->config = arg;
        return VR_OK;
    case CLI_KEY_ARCH:
        a->arch = arg;
        return cli_arch(arg, &info, err);
    case CLI_KEY_SPACE:
        return cli_latent_space(arg, &a->space, err);
    case CLI_KEY_SCALING:
        a->has_scaling = true;
        if (cli_real("--scaling-factor", arg, &a->scaling, err))
            return VR_E_ARGUMENT;
        if (a->scaling == 0)
            return vr_fail(err, VR_E_ARGUMENT,
                           "--scaling-factor 0: latents are divided by it; want another number");
        return VR_OK;
    case CLI_KEY_SHIFT:
        a->has_shift = true;
        return cli_real("--shift-factor", arg, &a->shift, err);
    default:
        return VR_E_UNSUPPORTED;
    }
}

static vr_status open_in(const cli_model_args *a, vr_latent_space space, vr_model **out,
                         vr_error *err)
{
    vr_vae_config config;
    vr_model_options opt = {0};
    opt.latent_space = space;
    opt.arch = a->arch;
    opt.has_scaling_factor = a->has_scaling;
    opt.scaling_factor = a->scaling;
    opt.has_shift_factor = a->has_shift;
    opt.shift_factor = a->shift;
    if (a->config) {
        vr_status s = vr_vae_config_read(a->config, &config, err);
        if (s)
            return s;
        opt.config = &config;
    }
    return vr_model_open(a->model, &opt, out, err);
}

vr_status cli_model_open(const cli_model_args *a, vr_model **out, vr_error *err)
{
    vr_status s = open_in(a, a->space, out, err);
    /* The library says what is missing; here it has an option's name. */
    if (s == VR_E_AMBIGUOUS && strstr(err->text, "scaling factor")) {
        size_t n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n,
                 " (--arch, --config, --scaling-factor, --latent-space)");
    }
    return s;
}

vr_status cli_model_open_any(const cli_model_args *a, vr_model **out, vr_error *err)
{
    vr_status s = open_in(a, a->space, out, err);
    if (s != VR_E_AMBIGUOUS)
        return s;
    /* Only the normalisation in doubt? Then the raw space has no doubt left. */
    return open_in(a, VR_LATENT_RAW, out, NULL) ? s : VR_OK;
}
