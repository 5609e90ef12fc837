/* vaeref: decode latents with a reference VAE decoder, and look at models.
 *
 * Only dispatch lives here: the first argument names the sub-command, each of
 * which has its own file, options and --help. Everything printed on stdout is
 * checked at the end, so a full disk behind a redirection is a failure too.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"decode", "turn latents into pictures or raw float tensors", cli_decode},
    {"inspect", "what a model file is, and what decoding would cost", cli_inspect},
    {"plan", "how a tiling scheme would cut a picture, and what that costs", cli_plan},
    {"tune", "time tiles of every shape on this machine, for --tile-mode auto", cli_tune},
    {"synth", "write a model file with seeded weights", cli_synth},
    {"latents", "write seeded latents for a model", cli_latents},
    {"convert", "rewrite a model file in another key layout or element type", cli_convert},
    {"doctor", "what this machine has, what is missing, how to get it", cli_doctor},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void help(void)
{
    puts("vaeref: reference decoder of the VAEs of diffusion models.\n"
         "\n"
         "usage: vaeref COMMAND [OPTION...]     (vaeref COMMAND --help says more)\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].summary);
    puts("\n"
         "A first picture, with nothing downloaded:\n"
         "  vaeref decode --model synth:sd15,div=4 --latents seed:1,32x32 -o first.png\n"
         "Real latents through real weights:\n"
         "  vaeref decode --model vae.safetensors --latents latents.npy -o picture.png\n"
         "What is this file, and what would 1024x1024 cost?\n"
         "  vaeref inspect --model vae.safetensors --size 1024x1024\n"
         "\n"
         "Exit codes: 0 done, 1 failure, 2 wrong usage, 130 interrupted.");
}

static int list_commands(const char *said)
{
    char list[200] = "";
    for (int i = 0; i < COMMANDS; i++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", commands[i].name);
    }
    if (said)
        return cli_error(CLI_USAGE, "unknown command '%s'; commands: %s", said, list);
    return cli_error(CLI_USAGE, "no command given; commands: %s (vaeref --help says more)", list);
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
        puts("vaeref " VAEREF_VERSION);
        return CLI_OK;
    }
    if (name[0] == '-')
        return cli_error(CLI_USAGE, "unknown option '%s' before the command (vaeref --help)", name);
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
