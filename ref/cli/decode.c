/* ref/cli/decode.c: options of `vaeref decode`. The work is in decode_run.c.
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <string.h>

enum {
    KEY_POLICY = CLI_KEY_COMMAND,
    KEY_ORDER,
    KEY_LIMIT,
    KEY_TAPS,
    KEY_STATS,
    KEY_NONFINITE,
    KEY_COMPARE,
    KEY_DIFF,
    KEY_GAIN
};

static const struct argp_option options[] = {
    CLI_MODEL_OPTION,
    {"latents", 'l', "FILE[#tensor]|seed:N,HxW[,n=B]", 0,
     "Latents [N,C,H,W]: .npy, or .safetensors (name the tensor when it holds several), or "
     "seeded ones of HxW latent cells made here", 0},
    {"output", 'o', "OUT.png|.npy|.safetensors", 0,
     "Where to. PNG: 8 bit, one file per latent (name_00000.png, ... for several). .npy and "
     ".safetensors: the decoder's raw float output, whole batch, never clamped. Without it only "
     "the output's digest is printed", 0},
    CLI_CONFIG_OPTION,
    CLI_ARCH_OPTION,
    CLI_SPACE_OPTION,
    CLI_SCALING_OPTION,
    CLI_SHIFT_OPTION,
    {"policy", KEY_POLICY, "NAME", 0,
     "Arithmetic: golden (default; defines the correct output, bit for bit), truth (float64 "
     "throughout), f32, f16, bf16 (what an honest backend of that precision does)", 0},
    {"order", KEY_ORDER, "NAME", 0,
     "Summation order of f32, f16, bf16: seq (default), lanes8, lanes32, pairwise, kblock64", 0},
    {"threads", 't', "N", 0, "CPU threads (default: OMP_NUM_THREADS, or all CPUs allowed)", 0},
    CLI_TILE_MODE_OPTION,
    CLI_TILE_OPTION,
    CLI_OVERLAP_OPTION,
    {"memory-limit", KEY_LIMIT, "SIZE", 0,
     "Refuse to use more activation memory, e.g. 2GiB; exact divides the work to fit", 0},
    CLI_SPILL_OPTION,
    CLI_COSTS_OPTION,
    {"compare-to-untiled", KEY_COMPARE, NULL, 0,
     "Decode undivided as well, without the memory limit, and say how the two differ: errors, PSNR, SSIM, seam scores",
     0},
    {"diff-png", KEY_DIFF, "FILE.png", 0,
     "Write that difference as a picture, amplified, tile borders in red; implies the option above", 0},
    {"diff-gain", KEY_GAIN, "X", 0, "Amplify the difference X times (default: its largest is white)", 0},
    {"taps", KEY_TAPS, "DIR", 0, "Write every intermediate value as .npy, with index.json", 0},
    {"stats", KEY_STATS, "FILE.json", 0, "Write what was done and what each operation cost", 0},
    {"allow-nonfinite", KEY_NONFINITE, NULL, 0,
     "Write the output even when NaN or infinity turned up (PNG: NaN 0, infinity clamped)", 0},
    {"quiet", 'q', NULL, 0, "No summary, no progress bar", 0},
    {0}};

static const char doc[] =
    "Decode latents with a VAE decoder.\n"
    "\v"
    "Examples:\n"
    "  A picture with nothing downloaded:\n"
    "    vaeref decode -m synth:sd15,div=4 -l seed:1,32x32 -o first.png\n"
    "  Latents as a pipeline's denoiser left them, batch of 4: name_00000.png...\n"
    "    vaeref decode -m vae.safetensors -l latents.npy -o name.png\n"
    "  The exact reference output, for comparing a backend against:\n"
    "    vaeref decode -m vae.safetensors -l z.safetensors#coffee -o ref.npy\n"
    "  Does half precision overflow, and where first?\n"
    "    vaeref decode -m vae.safetensors -l z.npy --policy f16 --stats s.json\n"
    "  As a tiled peer would decode it (vaeref plan shows the tiles):\n"
    "    vaeref decode -m vae.safetensors -l z.npy --tile-mode comfy --tile 512 -o t.png\n"
    "\n"
    "A file with 4 latent channels may be sd15 or sdxl, which scale latents "
    "differently: where nothing else tells, say --arch or --scaling-factor.";

static vr_status list_policies(const char *arg, vr_error *err)
{
    return vr_fail(err, VR_E_ARGUMENT, "--policy '%s': want golden, truth, f32, f16 or bf16", arg);
}

static vr_status list_orders(const char *arg, vr_error *err)
{
    return vr_fail(err, VR_E_ARGUMENT,
                   "--order '%s': want seq, lanes8, lanes32, pairwise or kblock64", arg);
}

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    cli_decode_args *a = ctx;
    int64_t n = 0;
    vr_status s = VR_OK;
    switch (key) {
    case 'l':
        return cli_latents_set(&a->latents, "--latents", arg, err);
    case 'o':
        a->output = arg;
        return cli_output_format(arg, CLI_PNG | CLI_NPY | CLI_SAFETENSORS, &a->format, err);
    case KEY_POLICY:
        return vr_policy_parse(arg, &a->policy) ? VR_OK : list_policies(arg, err);
    case KEY_ORDER:
        return vr_order_parse(arg, &a->order) ? VR_OK : list_orders(arg, err);
    case 't':
        s = cli_integer("--threads", arg, 1, 4096, &n, err);
        a->threads = (int32_t)n;
        return s;
    case KEY_LIMIT:
        return cli_bytes("--memory-limit", arg, &a->memory_limit, err);
    case CLI_KEY_TILE_MODE:
    case CLI_KEY_TILE:
    case CLI_KEY_OVERLAP:
    case CLI_KEY_SPILL:
    case CLI_KEY_COSTS:
        return cli_tile_set(&a->tile, key, arg, err);
    case KEY_TAPS:
        a->taps = arg;
        return *arg ? VR_OK : vr_fail(err, VR_E_ARGUMENT, "--taps '': want a folder name");
    case KEY_STATS:
        a->stats = arg;
        return *arg ? VR_OK : vr_fail(err, VR_E_ARGUMENT, "--stats '': want a file name");
    case KEY_DIFF: {
        cli_format format;
        a->diff = arg;
        a->compare = true;
        return cli_output_format(arg, CLI_PNG, &format, err);
    }
    case KEY_GAIN:
        s = cli_real("--diff-gain", arg, &a->diff_gain, err);
        if (!s && !(a->diff_gain > 0))
            return vr_fail(err, VR_E_ARGUMENT, "--diff-gain '%s': want a number above 0", arg);
        return s;
    case KEY_COMPARE:
        a->compare = true;
        return VR_OK;
    case KEY_NONFINITE:
        a->allow_nonfinite = true;
        return VR_OK;
    case 'q':
        a->quiet = true;
        return VR_OK;
    default:
        return cli_model_set(&a->model, key, arg, err);
    }
}

int cli_decode(int argc, char **argv)
{
    cli_decode_args a;
    memset(&a, 0, sizeof a);
    cli_tile_init(&a.tile);
    const cli_spec spec = {"decode", options, doc, set};
    int code = cli_parse(&spec, argc, argv, &a);
    if (code != CLI_CONTINUE)
        return code;
    if (!a.model.model)
        return cli_error(CLI_USAGE, "decode needs --model FILE or synth:ARCH (vaeref decode --help)");
    if (!a.latents.spec)
        return cli_error(CLI_USAGE,
                         "decode needs --latents FILE or seed:N,HxW (vaeref decode --help)");
    vr_error err = {VR_OK, ""};
    if (cli_tile_check(&a.tile, &err))
        return cli_error(CLI_USAGE, "%s", err.text);
    if (a.taps && a.tile.options.mode != VR_TILE_NONE)
        return cli_error(CLI_USAGE, "--taps with --tile-mode %s: a tiled decode has no whole values to "
                         "write; want one of the two", vr_tile_mode_name(a.tile.options.mode));
    if (a.compare && a.tile.options.mode == VR_TILE_NONE)
        return cli_error(CLI_USAGE, "%s has nothing to compare without tiling; want --tile-mode with it",
                         a.diff ? "--diff-png" : "--compare-to-untiled");
    if (a.compare && a.policy == VR_POLICY_TRUTH)
        return cli_error(CLI_USAGE, "--compare-to-untiled with --policy truth: pictures are compared as float32; want "
                         "golden or another policy");
    if (a.diff_gain > 0 && !a.diff)
        return cli_error(CLI_USAGE, "--diff-gain has no meaning without --diff-png FILE.png");
    if (a.diff && a.output && !strcmp(a.output, a.diff))
        return cli_error(CLI_USAGE, "--output and --diff-png name the same file: %s", a.output);
    if (a.output && a.stats && !strcmp(a.output, a.stats))
        return cli_error(CLI_USAGE, "--output and --stats name the same file: %s", a.output);
    return cli_decode_run(&a);
}
