/* vaebench decode: a whole golden decode of an SD1.5-shaped picture against
 * PyTorch float32 on this machine, in one run. Each side runs in a child of its
 * own, alternating, so that both see the same machine and each child's peak
 * resident memory is its own. The fastest round of each is compared.
 *
 * SPDX-License-Identifier: MIT */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>
#include <omp.h>

#include "bench.h"
#include "vaeref/exec.h"
#include "vaeref/model.h"

typedef struct decode_args {
    bool json;
    int rounds, size, threads;
    const char *model, *peer, *python;
} decode_args;

typedef struct side {
    double seconds;      /* best round */
    int64_t peak_bytes;  /* resident set of the child, largest round */
    int64_t activation_bytes;
} side;

static const struct argp_option options[] = {
    {"json", 'j', 0, 0, "print JSON instead of text", 0},
    {"rounds", 'r', "N", 0, "rounds of each side (default 2)", 0},
    {"size", 's', "PX", 0, "picture side in pixels, a multiple of 8 (default 512)", 0},
    {"threads", 't', "N", 0, "threads of each side (default: all)", 0},
    {"model", 'm', "SPEC", 0, "our model (default synth:sd15)", 0},
    {"peer", 'p', "SCRIPT", 0, "PyTorch script (default bench/peers/torch_decode.py)", 0},
    {"python", 'P', "PROGRAM", 0, "Python with torch (default /usr/bin/python3)", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    decode_args *a = state->input;
    switch (key) {
    case 'j':
        a->json = true;
        return 0;
    case 'r':
        a->rounds = vb_number(state, arg, 1024);
        return 0;
    case 't':
        a->threads = vb_number(state, arg, 1024);
        return 0;
    case 's':
        a->size = vb_number(state, arg, 8192);
        if (a->size % 8)
            argp_error(state, "--size %d: want a multiple of 8", a->size);
        return 0;
    case 'm':
        a->model = arg;
        return 0;
    case 'p':
        a->peer = arg;
        return 0;
    case 'P':
        a->python = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int fail(const char *text)
{
    fprintf(stderr, "vaebench: error: %s\n", text);
    return 1;
}

/* In the child: one decode; prints {"seconds": s, "activation_bytes": b}. */
static int our_decode(const decode_args *a)
{
    vr_error err = {VR_OK, ""};
    vr_model *m = NULL;
    vr_tensor latent = {.data = NULL}, out = {.data = NULL};
    vr_exec_stats stats = {.op_seconds = NULL};
    const vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .threads = a->threads};
    vr_status s = vr_model_open(a->model, NULL, &m, &err);
    if (s == VR_OK)
        s = vr_model_latents(m, 1, 1, a->size / m->spatial_scale, a->size / m->spatial_scale, &latent, &err);
    if (s == VR_OK)
        s = vr_exec_run(m->program, &latent, &opt, &out, &stats, &err);
    if (s == VR_OK)
        printf("{\"seconds\": %.6f, \"activation_bytes\": %llu}\n", stats.seconds,
               (unsigned long long)stats.pool.peak_bytes);
    vr_tensor_free(&out);
    vr_tensor_free(&latent);
    vr_model_close(m);
    return s == VR_OK ? 0 : fail(err.text);
}

static int peer_decode(const decode_args *a)
{
    char size[16], threads[16];
    snprintf(size, sizeof size, "%d", a->size);
    snprintf(threads, sizeof threads, "%d", a->threads);
    execl(a->python, a->python, a->peer, "--size", size, "--repeats", "1", "--threads", threads,
          "--json", (char *)NULL);
    perror(a->python);
    return 1;
}

/* Runs one side in a child and reads the JSON it prints. */
static bool run_child(const decode_args *a, int (*body)(const decode_args *), side *result)
{
    int fd[2], status = 0;
    if (pipe(fd) != 0)
        return false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return false;
    if (pid == 0) {
        close(fd[0]);
        dup2(fd[1], STDOUT_FILENO);
        close(fd[1]);
        int code = body(a);
        fflush(NULL);
        _exit(code);
    }
    close(fd[1]);
    char text[16384];
    size_t length = 0;
    for (ssize_t n; length < sizeof text && (n = read(fd[0], text + length, sizeof text - length)) > 0;)
        length += (size_t)n;
    close(fd[0]);
    json_t *doc = json_loadb(text, length, 0, NULL);
    struct rusage usage;
    wait4(pid, &status, 0, &usage);
    double seconds = json_number_value(json_object_get(doc, "seconds"));
    int64_t peak = (int64_t)usage.ru_maxrss * 1024;
    result->activation_bytes = json_integer_value(json_object_get(doc, "activation_bytes"));
    json_decref(doc);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !(seconds > 0.0))
        return false;
    if (result->seconds == 0.0 || seconds < result->seconds)
        result->seconds = seconds;
    if (peak > result->peak_bytes)
        result->peak_bytes = peak;
    return true;
}

int vb_decode(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL,
        "Decodes an SD1.5-shaped picture under the golden policy and with PyTorch float32, each "
        "in children of its own, alternating, and prints the ratios.", NULL, NULL, NULL};
    decode_args a = {.rounds = 2, .size = 512, .threads = 0, .model = "synth:sd15",
                     .peer = "bench/peers/torch_decode.py", .python = "/usr/bin/python3"};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    if (access(a.peer, R_OK) != 0)
        return fail("no PyTorch script: run from the project's folder or give --peer SCRIPT");
    if (!a.threads)
        a.threads = omp_get_num_procs();
    side ours = {0}, peer = {0};
    for (int r = 0; r < a.rounds; r++) {
        if (!run_child(&a, our_decode, &ours))
            return fail("our decode failed");
        if (!run_child(&a, peer_decode, &peer))
            return fail("the PyTorch decode failed; is python3-torch installed? (apt-get install python3-torch)");
    }
    double time_ratio = ours.seconds / peer.seconds;
    double memory_ratio = (double)ours.peak_bytes / (double)peer.peak_bytes;
    if (a.json)
        printf("{\"model\": \"%s\", \"size\": %d, \"threads\": %d, \"rounds\": %d,\n"
               " \"golden\": {\"seconds\": %.3f, \"peak_rss_bytes\": %lld, \"activation_bytes\": %lld},\n"
               " \"torch\": {\"seconds\": %.3f, \"peak_rss_bytes\": %lld},\n"
               " \"time_ratio\": %.3f, \"memory_ratio\": %.3f}\n",
               a.model, a.size, a.threads, a.rounds, ours.seconds, (long long)ours.peak_bytes,
               (long long)ours.activation_bytes, peer.seconds, (long long)peer.peak_bytes, time_ratio,
               memory_ratio);
    else
        printf("%s %dx%d, %d threads, best of %d\n  golden  %8.2f s  peak %7.1f MiB resident (%.1f MiB activations)\n"
               "  torch   %8.2f s  peak %7.1f MiB resident (float32)\n  time ratio %.3f, memory ratio %.3f\n",
               a.model, a.size, a.size, a.threads, a.rounds, ours.seconds,
               (double)ours.peak_bytes / 1048576.0, (double)ours.activation_bytes / 1048576.0,
               peer.seconds, (double)peer.peak_bytes / 1048576.0, time_ratio, memory_ratio);
    return 0;
}
