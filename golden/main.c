/* vaegolden: golden digests, made and checked.
 *
 * Only dispatch lives here, as in ref/cli/main.c. SPDX-License-Identifier: MIT */
#include "golden.h"

#include <string.h>

static const struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"regen", "compute every digest and noise level anew", vg_regen},
    {"verify", "compare a version with what this build computes", vg_verify},
    {"diff", "what differs between two versions", vg_diff},
    {"show", "what a case is, its numbers, its picture", vg_show},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void help(void)
{
    puts("vaegolden: frozen digests of the reference's decodes.\n"
         "\n"
         "usage: vaegolden COMMAND [OPTION...]     (vaegolden COMMAND --help says more)\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-7s %s\n", commands[i].name, commands[i].summary);
    puts("\n"
         "Does this build decode as frozen?\n"
         "  vaegolden verify\n"
         "Is what is committed what comes out?\n"
         "  vaegolden regen && git diff --exit-code golden/\n"
         "\n"
         "Exit codes: 0 done, 1 failure or difference, 2 wrong usage, 130 interrupted.");
}

static int list_commands(const char *said)
{
    char list[100] = "";
    for (int i = 0; i < COMMANDS; i++) {
        const size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", commands[i].name);
    }
    if (said)
        return cli_error(CLI_USAGE, "unknown command '%s'; commands: %s", said, list);
    return cli_error(CLI_USAGE, "no command given; commands: %s (vaegolden --help says more)", list);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return list_commands(NULL);
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        help();
        return CLI_OK;
    }
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        puts(CLI_TOOL " " VAEREF_VERSION);
        return CLI_OK;
    }
    if (name[0] == '-')
        return cli_error(CLI_USAGE, "unknown option '%s' before the command (vaegolden --help)", name);
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(name, commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    return list_commands(name);
}

int main(int argc, char **argv)
{
    int code = dispatch(argc, argv);
    if ((fflush(stdout) || ferror(stdout)) && code == CLI_OK)
        code = cli_error(CLI_FAILURE, "cannot write to standard output: the text is incomplete");
    return code;
}
