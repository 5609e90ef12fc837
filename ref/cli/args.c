/* ref/cli/args.c: messages, and arguments as people type them.
 *
 * argp does the matching (abbreviations, --x=y, -xy) but is kept silent: its
 * own errors take two lines and carry no remedy. cli_parse words them instead,
 * in the same one-line form as every other error.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void message(const char *kind, const char *fmt, va_list ap) VR_PRINTF(2, 0);
static void message(const char *kind, const char *fmt, va_list ap)
{
    char text[1200];
    vsnprintf(text, sizeof text, fmt, ap);
    for (char *s = text; *s; s++)
        if (iscntrl((unsigned char)*s))
            *s = '?';
    fprintf(stderr, CLI_TOOL ": %s: %s\n", kind, text);
}

int cli_error(int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    message("error", fmt, ap);
    va_end(ap);
    return code;
}

int cli_fail(const vr_error *err)
{
    return cli_error(CLI_FAILURE, "%s", err->text[0] ? err->text : vr_status_text(err->status));
}

void cli_warn(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    message("warning", fmt, ap);
    va_end(ap);
}

/* ---- options ---------------------------------------------------------------- */

enum { KEY_HELP = 'h', KEY_VERSION = 'V', MAX_OPTIONS = 48 };

typedef struct parse {
    const cli_spec *spec;
    void *ctx;
    const struct argp *argp;
    int code; /* CLI_CONTINUE until something ends the command */
    int next; /* index after what getopt refused */
} parse;

static void print_help(const parse *p)
{
    char name[64];
    snprintf(name, sizeof name, CLI_TOOL " %s", p->spec->name);
    setenv("ARGP_HELP_FMT", "no-dup-args-note", 0); /* two lines that help nobody */
    argp_help(p->argp, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, name);
    putchar('\n');
}

static error_t take(int key, char *arg, struct argp_state *state)
{
    parse *p = state->input;
    vr_error err = {VR_OK, ""};
    switch (key) {
    case KEY_HELP:
        print_help(p);
        p->code = CLI_OK;
        return EINTR; /* ends the parse; p->code says how */
    case KEY_VERSION:
        puts(CLI_TOOL " " VAEREF_VERSION);
        p->code = CLI_OK;
        return EINTR;
    case ARGP_KEY_ERROR:
        p->next = state->next;
        return ARGP_ERR_UNKNOWN;
    case ARGP_KEY_INIT:
    case ARGP_KEY_SUCCESS:
    case ARGP_KEY_ARGS:
    case ARGP_KEY_NO_ARGS:
    case ARGP_KEY_END:
    case ARGP_KEY_FINI:
        return ARGP_ERR_UNKNOWN;
    case ARGP_KEY_ARG:
        if (p->argp->args_doc)
            break;
        p->code = cli_error(CLI_USAGE, "unexpected argument '%s' (" CLI_TOOL " %s --help)", arg,
                            p->spec->name);
        return EINVAL;
    default:
        break;
    }
    if (p->spec->set(p->ctx, key, arg, &err)) {
        p->code = cli_error(CLI_USAGE, "%s", err.text);
        return EINVAL;
    }
    return 0;
}

/* What getopt refused: argv[at]. Unknown, ambiguous, or a value missing? */
static int refused(const cli_spec *spec, const struct argp_option *opt, const char *at)
{
    size_t n = at ? strcspn(at, "=") : 0;
    int fits = 0;
    const struct argp_option *exact = NULL, *fit = NULL;
    for (const struct argp_option *o = opt; o->name; o++) {
        if (n > 2 && !strncmp(at, "--", 2) && !strncmp(o->name, at + 2, n - 2)) {
            fits++;
            fit = o;
            if (strlen(o->name) == n - 2)
                exact = o;
        } else if (n == 2 && at[0] == '-' && o->key == at[1]) {
            exact = o;
        }
    }
    if (!exact && fits == 1)
        exact = fit;
    if (exact && exact->arg && !strchr(at, '='))
        return cli_error(CLI_USAGE, "option '%s' needs a value: %s (" CLI_TOOL " %s --help)", at,
                         exact->arg, spec->name);
    if (exact && !exact->arg)
        return cli_error(CLI_USAGE, "option '--%s' takes no value (" CLI_TOOL " %s --help)",
                         exact->name, spec->name);
    if (fits > 1)
        return cli_error(CLI_USAGE, "option '%s' is ambiguous (" CLI_TOOL " %s --help)", at, spec->name);
    return cli_error(CLI_USAGE, "unknown option '%s' (" CLI_TOOL " %s --help lists all)",
                     at ? at : "", spec->name);
}

int cli_parse(const cli_spec *spec, int argc, char **argv, void *ctx)
{
    return cli_parse_arguments(spec, NULL, argc, argv, ctx);
}

int cli_parse_arguments(const cli_spec *spec, const char *args, int argc, char **argv, void *ctx)
{
    struct argp_option opt[MAX_OPTIONS + 3];
    int n = 0;
    for (; spec->options[n].name && n < MAX_OPTIONS; n++) {
        opt[n] = spec->options[n];
        opt[n].group = n + 1; /* argp sorts within a group; keep the order given */
    }
    opt[n++] = (struct argp_option){"help", KEY_HELP, NULL, 0, "Show this text", -1};
    opt[n++] = (struct argp_option){"version", KEY_VERSION, NULL, 0, "Show the version", -1};
    opt[n] = (struct argp_option){0};
    struct argp argp = {opt, take, args, spec->doc, NULL, NULL, NULL};
    parse p = {spec, ctx, &argp, CLI_CONTINUE, 0};
    int end = argc;
    argp_err_exit_status = CLI_USAGE;
    error_t e = argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP, &end, &p);
    if (p.code != CLI_CONTINUE)
        return p.code;
    if (e == ENOMEM)
        return cli_error(CLI_FAILURE, "out of memory while reading the arguments");
    if (!e)
        return CLI_CONTINUE;
    /* In "-zq" getopt stops at z without going on to the next argument. */
    int at = p.next - 1;
    if ((at < 1 || argv[at][0] != '-') && p.next < argc)
        at = p.next;
    return refused(spec, opt, at > 0 ? argv[at] : NULL);
}

/* ---- numbers ------------------------------------------------------------------ */

vr_status cli_integer(const char *what, const char *s, int64_t lo, int64_t hi, int64_t *out,
                      vr_error *err)
{
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno || end == s || *end || isspace((unsigned char)*s) || v < lo || v > hi)
        return vr_fail(err, VR_E_ARGUMENT, "%s '%s': want an integer from %lld to %lld", what, s,
                       (long long)lo, (long long)hi);
    *out = v;
    return VR_OK;
}

vr_status cli_u64(const char *what, const char *s, uint64_t *out, vr_error *err)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(s, &end, 10);
    if (errno || end == s || *end || !isdigit((unsigned char)*s))
        return vr_fail(err, VR_E_ARGUMENT, "%s '%s': want an integer from 0 to 2^64-1", what, s);
    *out = v;
    return VR_OK;
}

vr_status cli_real(const char *what, const char *s, double *out, vr_error *err)
{
    char *end;
    double v = strtod(s, &end);
    if (end == s || *end || !isfinite(v) || isspace((unsigned char)*s))
        return vr_fail(err, VR_E_ARGUMENT, "%s '%s': want a finite number such as 0.18215", what,
                       s);
    *out = v;
    return VR_OK;
}

vr_status cli_bytes(const char *what, const char *s, uint64_t *out, vr_error *err)
{
    static const struct {
        const char *unit;
        int shift;
    } units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    char *end;
    errno = 0;
    unsigned long long v = strtoull(s, &end, 10);
    if (!errno && end != s && isdigit((unsigned char)*s) && v)
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (!strcmp(end, units[i].unit) && v <= (UINT64_MAX >> units[i].shift)) {
                *out = (uint64_t)v << units[i].shift;
                return VR_OK;
            }
    return vr_fail(err, VR_E_ARGUMENT,
                   "%s '%s': want a size such as 512MiB or 2GiB (B, KiB, MiB, GiB, TiB; not 0)",
                   what, s);
}

vr_status cli_pair(const char *what, const char *s, int64_t *a, int64_t *b, vr_error *err)
{
    char *end;
    int64_t v[2] = {0, 0};
    const char *at = s;
    for (int i = 0; i < 2; i++) {
        errno = 0;
        v[i] = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : 0;
        if (v[i] < 1 || v[i] > 1000000 || *end != (i ? '\0' : 'x'))
            return vr_fail(err, VR_E_ARGUMENT,
                           "%s '%s': want two integers from 1 to 1000000 such as 512x512", what, s);
        at = end + 1;
    }
    *a = v[0];
    *b = v[1];
    return VR_OK;
}

/* ---- names --------------------------------------------------------------------- */

vr_status cli_arch(const char *s, const vr_arch_info **out, vr_error *err)
{
    char list[300] = "";
    for (const vr_arch_info *a = vr_arch_list(); a->name; a++) {
        if (!strcmp(a->name, s)) {
            *out = a;
            return VR_OK;
        }
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", a->name);
    }
    return vr_fail(err, VR_E_ARGUMENT, "--arch '%s': unknown architecture; known: %s", s, list);
}

vr_status cli_latent_space(const char *s, vr_latent_space *out, vr_error *err)
{
    bool raw = !strcmp(s, "raw");
    if (!raw && strcmp(s, "diffusion"))
        return vr_fail(err, VR_E_ARGUMENT, "--latent-space '%s': want diffusion or raw", s);
    *out = raw ? VR_LATENT_RAW : VR_LATENT_DIFFUSION;
    return VR_OK;
}

const char *cli_layout_name(vr_key_layout l)
{
    return l == VR_LAYOUT_ORIGINAL ? "original" : "diffusers";
}

vr_status cli_layout(const char *s, vr_key_layout *out, vr_error *err)
{
    for (int l = 0; l < 2; l++) {
        vr_key_layout v = l ? VR_LAYOUT_ORIGINAL : VR_LAYOUT_DIFFUSERS;
        if (!strcmp(s, cli_layout_name(v))) {
            *out = v;
            return VR_OK;
        }
    }
    return vr_fail(err, VR_E_ARGUMENT, "--layout '%s': want diffusers or original", s);
}

vr_status cli_float_dtype(const char *s, vr_dtype *out, vr_error *err)
{
    static const vr_dtype all[] = {VR_F64, VR_F32, VR_F16, VR_BF16, VR_F8_E4M3, VR_F8_E5M2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcasecmp(s, vr_dtype_name(all[i]))) {
            *out = all[i];
            return VR_OK;
        }
    return vr_fail(err, VR_E_ARGUMENT,
                   "--dtype '%s': want F64, F32, F16, BF16, F8_E4M3 or F8_E5M2", s);
}
