/* vaebench: timing of the reference and, in time, of backends and claims.
 * SPDX-License-Identifier: MIT */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

int vb_number(struct argp_state *state, const char *text, long most)
{
    char *end;
    long v = strtol(text, &end, 10);
    if (*end || end == text || v < 1 || v > most)
        argp_error(state, "'%s' is not a number from 1 to %ld", text, most);
    return (int)v;
}

static const struct {
    const char *name, *text;
    int (*run)(int, char **);
} commands[] = {
    {"ops", "golden operations at real layer shapes against this machine's f64 multiply-add peak", vb_ops},
    {"decode", "whole golden decode against PyTorch float32, in one run", vb_decode},
    {"tiling", "work of every tiling scheme, and exact tiling in less memory against the undivided decode", vb_tiling},
};

static int usage(FILE *f, int code)
{
    fprintf(f, "Usage: vaebench COMMAND [OPTION...]\n\nCommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        fprintf(f, "  %-8s %s\n", commands[i].name, commands[i].text);
    fprintf(f, "\n`vaebench COMMAND --help` explains each. Exit codes: 0, 1 failure, 2 usage.\n");
    return code;
}

int main(int argc, char **argv)
{
    argp_err_exit_status = 2;
    if (argc < 2)
        return usage(stderr, 2);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return usage(stdout, 0);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(argv[1], commands[i].name) == 0) {
            char name[32]; /* what argp's messages begin with */
            snprintf(name, sizeof name, "vaebench %s", commands[i].name);
            argv[1] = name;
            return commands[i].run(argc - 1, argv + 1);
        }
    fprintf(stderr, "vaebench: error: unknown command '%s'\n", argv[1]);
    return usage(stderr, 2);
}
