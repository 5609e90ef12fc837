/* ref/cli/doctor.c: `vaeref doctor`, what this machine has and what is missing.
 *
 * Exit 0 unless something the decoder itself needs is broken; optional tools
 * that are absent are listed with the command that gets them.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <limits.h>
#include <omp.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct doctor {
    bool json;
    json_t *checks;
    int broken, missing;
} doctor;

enum { KEY_JSON = CLI_KEY_COMMAND };

static const struct argp_option options[] = {{"json", KEY_JSON, NULL, 0, "The same as JSON", 0},
                                             {0}};
static const char doc[] =
    "Show what this machine has, what is missing, and how to get it.\n"
    "\v"
    "Lines marked 'missing' are optional: they are needed by some tests, for the "
    "second witness, or for GPU code. 'broken' is what decoding itself needs.";

static vr_status set(void *ctx, int key, const char *arg, vr_error *err)
{
    (void)key;
    (void)arg;
    (void)err;
    ((doctor *)ctx)->json = true;
    return VR_OK;
}

/* One line: state is "ok", "missing" or "broken"; `fix` how to get it, or "". */
static void line(doctor *d, const char *what, const char *state, const char *text, const char *fix)
{
    d->broken += !strcmp(state, "broken");
    d->missing += !strcmp(state, "missing");
    json_array_append_new(d->checks, json_pack("{s:s, s:s, s:s, s:s}", "name", what, "state",
                                               state, "text", text, "fix", fix));
    if (d->json)
        return;
    if (*fix)
        printf("%-16s %s: %s%s%s\n", what, state, fix, *text ? "   # " : "", text);
    else
        printf("%-16s %-7s  %s\n", what, state, text);
}

static void required(doctor *d)
{
    char text[700], isas[120];
    const char *isa;
    vr_error err = {VR_OK, ""};
    cli_probe_cpu(text, sizeof text);
    line(d, "cpu", "ok", text, "");
    cli_probe_cores(text, sizeof text);
    line(d, "cores", "ok", text, "");
    line(d, "memory", cli_probe_memory(text, sizeof text) ? "ok" : "missing", text, "");
    if (vr_exec_isa(&isa, &err)) {
        line(d, "kernels", "broken", err.text, "");
    } else {
        cli_probe_isas(isas, sizeof isas);
        const char *forced = getenv("VAEREF_ISA");
        snprintf(text, sizeof text, "%s chosen%s; this CPU can run: %s", isa,
                 forced && *forced ? " by VAEREF_ISA" : "", isas);
        line(d, "kernels", "ok", text, "");
    }
    snprintf(text, sizeof text, "OpenMP %d, %d threads by default", _OPENMP, omp_get_max_threads());
    line(d, "threads", "ok", text, "");
}

static void built_with(doctor *d)
{
    char text[300];
#if defined(__clang__)
    snprintf(text, sizeof text, "built by clang %s", __clang_version__);
#else
    snprintf(text, sizeof text, "built by gcc %s", __VERSION__);
#endif
    line(d, "compiler", "ok", text, "");
    snprintf(text, sizeof text, "%s (built against %s)", png_get_libpng_ver(NULL),
             PNG_LIBPNG_VER_STRING);
    line(d, "libpng", "ok", text, "");
    snprintf(text, sizeof text, "%s (built against %s)", jansson_version_str(), JANSSON_VERSION);
    line(d, "jansson", "ok", text, "");
}

static void optional(doctor *d)
{
    static const struct {
        const char *tool, *package, *use;
    } tools[] = {
        {"cmake", "cmake", "building"},
        {"ninja", "ninja-build", "building"},
        {"clang-19", "clang-19", "second compiler; GPU code objects"},
        {"ld.lld-19", "lld-19", "GPU code objects"},
        {"llvm-objdump-19", "llvm-19", "GPU code objects"},
        {"qemu-aarch64", "qemu-user", "the same bits on another CPU architecture"},
    };
    char text[PATH_MAX + 64], fix[120];
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        bool have = cli_probe_tool(tools[i].tool, text, sizeof text);
        snprintf(fix, sizeof fix, "apt-get install %s", tools[i].package);
        line(d, tools[i].tool, have ? "ok" : "missing", have ? text : tools[i].use,
             have ? "" : fix);
    }
    bool have = cli_probe_torch(text, sizeof text);
    line(d, "torch", have ? "ok" : "missing", text, have ? "" : "apt-get install python3-torch");
    have = cli_probe_library("libamdhip64.so", text, sizeof text);
    line(d, "hip runtime", have ? "ok" : "missing", have ? text : "running GPU code",
         have ? "" : "apt-get install libamdhip64-dev");
    have = cli_probe_kfd(text, sizeof text);
    line(d, "gpu", have ? "ok" : "missing", text, "");
}

int cli_doctor(int argc, char **argv)
{
    doctor d;
    memset(&d, 0, sizeof d);
    const cli_spec spec = {"doctor", options, doc, set};
    int code = cli_parse(&spec, argc, argv, &d);
    if (code != CLI_CONTINUE)
        return code;
    d.checks = json_array();
    required(&d);
    built_with(&d);
    optional(&d);
    vr_error err = {VR_OK, ""};
    if (d.json) {
        json_t *root = json_pack("{s:s, s:b, s:O}", "version", VAEREF_VERSION, "works",
                                 d.broken == 0, "checks", d.checks);
        cli_json_print(root, &err);
        json_decref(root);
    } else {
        printf("\n%s; %d optional things missing\n",
               d.broken ? "vaeref cannot decode here" : "vaeref can decode here", d.missing);
    }
    json_decref(d.checks);
    return d.broken ? cli_error(CLI_FAILURE, "something required is broken; see the list") : CLI_OK;
}
