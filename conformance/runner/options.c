/* vaecheck's command line. SPDX-License-Identifier: MIT */
#include "runner/options.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_PROFILE = 0x100, KEY_SEED, KEY_CASE, KEY_LEVEL, KEY_CONTRACT, KEY_LOG, KEY_REPORT, KEY_JUNIT, KEY_WAIVERS, KEY_SHARD,
       KEY_TIMEOUT, KEY_LIST, KEY_CASES, KEY_NO_LOCATE, KEY_LATENTS, KEY_MUSTPASS, KEY_CONFIG, KEY_ARCH };

static const struct argp_option options[] = {
    {"backend", 'b', "NAME|FILE.so|py:FILE", 0, "What is judged: ref or onednn, a library that exports vp_backend_get, or a "
     "Python adapter", 0},
    {"option", 'o', "TEXT", 0, "Given to the backend as it is, e.g. order=seq", 0},
    {"profile", KEY_PROFILE, "core|full|embedded", 0, "Which cases (default core: for every merge)", 0},
    {"level", KEY_LEVEL, "L0,L1,..", 0, "Only these levels", 0},
    {"contract", KEY_CONTRACT, "f32,f16,..", 0, "Only these contracts", 0},
    {"case", KEY_CASE, "GLOB", 0, "Only cases whose id matches", 0},
    {"seed", KEY_SEED, "N", 0, "Weights and inputs (default: fresh ones; printed, so that a run can be repeated)", 0},
    {"model", 'm', "FILE", 0, "Judge whole decodes of this model file instead of the suite; with --latents", 0},
    {"latents", KEY_LATENTS, "FILE[#NAME]", 0, "Latents for --model: .npy or .safetensors (all its tensors, or one)", 0},
    {"config", KEY_CONFIG, "FILE", 0, "config.json of that model", 0},
    {"arch", KEY_ARCH, "NAME", 0, "Its architecture, where the file cannot tell", 0},
    {"report", KEY_REPORT, "DIR", 0, "Write log, report.json, junit.xml, index.html and pictures there", 0},
    {"junit", KEY_JUNIT, "FILE", 0, "Write a JUnit file", 0},
    {"log", KEY_LOG, "FILE", 0, "Write the event log (JSONL); with --report: DIR/events.jsonl", 0},
    {"waivers", KEY_WAIVERS, "FILE", 0, "Known failures (docs/conformance.md)", 0},
    {"shard", KEY_SHARD, "I/N", 0, "Every N-th case, from the I-th; vaecheck merge joins the logs", 0},
    {"timeout", KEY_TIMEOUT, "SECONDS", 0, "For one run of a backend (default 30)", 0},
    {"threads", 't', "N", 0, "Threads of the reference (default: all)", 0},
    {"cases", KEY_CASES, "DIR", 0, "Case files (default: the suite's own)", 0},
    {"must-pass", KEY_MUSTPASS, "FILE", 0, "Required ids, one a line (default: the suite's list of the profile)", 0},
    {"list", KEY_LIST, NULL, 0, "Print the ids and do nothing", 0},
    {"no-locate", KEY_NO_LOCATE, NULL, 0, "Do not look for the operation that went wrong", 0},
    {"verbose", 'v', NULL, 0, "A line for every case, passes too", 0},
    {"quiet", 'q', NULL, 0, "The verdict only", 0},
    {0}};

static const char doc[] =
    "Judge a decoder backend against the reference.\n"
    "\v"
    "Examples:\n"
    "  vaecheck --backend onednn --profile core\n"
    "  vaecheck --backend ./libmine.so --report out/\n"
    "  vaecheck --backend py:conformance/adapters/torch_backend.py --level L1\n"
    "  vaecheck --backend onednn --model vae.safetensors --latents z.safetensors\n"
    "  vaecheck merge --report out/ shard1.jsonl shard2.jsonl\n"
    "\n"
    "Exit codes: 0 conformant, 1 not, 2 usage, 3 the suite itself is at fault, 4 the backend does not load, 5 incomplete, 6 "
    "conformant only with waivers, 77 no device.";

static double number(struct argp_state *state, const char *what, const char *text, double lo, double hi)
{
    char *end;
    errno = 0;
    const double v = strtod(text, &end);
    if (errno || end == text || *end || !(v >= lo && v <= hi))
        argp_error(state, "%s '%s': want a number from %g to %g", what, text, lo, hi);
    return v;
}

static void pick(struct argp_state *state, const char *what, const char *text, const char *const *names, int count, bool *set)
{
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, ",");
        int k = 0;
        while (k < count && !(strlen(names[k]) == n && strncmp(names[k], at, n) == 0))
            k++;
        if (k == count)
            argp_error(state, "%s '%s': '%.*s' is not one of %s to %s", what, text, (int)n, at, names[0], names[count - 1]);
        else
            set[k] = true;
        at += n + (at[n] == ',');
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    static const char *const contracts[] = {"f32", "f16", "bf16", "f64"};
    vc_options *o = state->input;
    char *end;
    switch (key) {
    case 'b':
        o->backend = arg;
        return 0;
    case 'o':
        o->option = arg;
        return 0;
    case 'm':
        o->model = arg;
        return 0;
    case 't':
        o->threads = (int)number(state, "--threads", arg, 1, 1024);
        return 0;
    case 'v':
        o->verbose = true;
        return 0;
    case 'q':
        o->quiet = true;
        return 0;
    case KEY_PROFILE:
        o->has_profile = false;
        for (int k = 0; k < VC_PROFILES; k++)
            if (strcmp(arg, vc_profile_name[k]) == 0) {
                o->profile = (vc_profile)k;
                o->has_profile = true;
            }
        if (!o->has_profile)
            argp_error(state, "--profile '%s': want core, full or embedded", arg);
        return 0;
    case KEY_LEVEL:
        o->any_level = true;
        pick(state, "--level", arg, vc_level_name, VC_LEVELS, o->level);
        return 0;
    case KEY_CONTRACT:
        o->any_contract = true;
        pick(state, "--contract", arg, contracts, 4, o->contract);
        return 0;
    case KEY_CASE:
        o->pattern = arg;
        return 0;
    case KEY_SEED:
        errno = 0;
        o->seed = strtoull(arg, &end, 0);
        o->has_seed = true;
        if (errno || end == arg || *end || *arg == '-')
            argp_error(state, "--seed '%s': want a whole number, decimal or 0x...", arg);
        return 0;
    case KEY_LATENTS:
        o->latents = arg;
        return 0;
    case KEY_CONFIG:
        o->config = arg;
        return 0;
    case KEY_ARCH:
        o->arch = arg;
        return 0;
    case KEY_REPORT:
        o->report = arg;
        return 0;
    case KEY_JUNIT:
        o->junit = arg;
        return 0;
    case KEY_LOG:
        o->log = arg;
        return 0;
    case KEY_WAIVERS:
        o->waivers = arg;
        return 0;
    case KEY_MUSTPASS:
        o->mustpass = arg;
        return 0;
    case KEY_SHARD: {
        char rest;
        if (sscanf(arg, "%d/%d%c", &o->shard, &o->shards, &rest) != 2 || o->shard < 1 || o->shards < o->shard || o->shards > 4096)
            argp_error(state, "--shard '%s': want I/N, such as 1/4", arg);
        return 0;
    }
    case KEY_TIMEOUT:
        o->timeout = number(state, "--timeout", arg, 0.1, 86400);
        return 0;
    case KEY_CASES:
        o->cases = arg;
        return 0;
    case KEY_LIST:
        o->list = true;
        return 0;
    case KEY_NO_LOCATE:
        o->no_locate = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int vc_options_parse(int argc, char **argv, vc_options *out)
{
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
    argp_err_exit_status = 2;
    *out = (vc_options){.shard = 1, .shards = 1, .timeout = 30, .profile = VC_CORE};
    argp_parse(&argp, argc, argv, 0, NULL, out);
    const char *wrong = NULL;
    if (!out->backend && !out->list)
        wrong = "want --backend NAME, such as onednn (vaecheck --help)";
    else if ((out->model == NULL) != (out->latents == NULL))
        wrong = "--model and --latents go together";
    else if (out->model && (out->any_level || out->pattern || out->has_profile || out->shards > 1))
        wrong = "--model judges that file alone: --level, --case, --profile and --shard have no meaning with it";
    if (wrong) {
        fprintf(stderr, "vaecheck: error: %s\n", wrong);
        return 2;
    }
    return VC_CONTINUE;
}
