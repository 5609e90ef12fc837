/* ref/cli/cli.h: what the sub-commands of vaeref share.
 *
 * Exit codes: 0 done, 1 failure (a file, a size, the machine), 2 usage (the
 * command line itself), 130 interrupted. Every error is one line on stderr
 * beginning "vaeref: error: ". The tool holds no global state but the flag its
 * interrupt handler needs (progress.c).
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_CLI_H
#define VAEREF_CLI_H

#include "vaeref/core.h"
#include "vaeref/exec.h"
#include "vaeref/io.h"
#include "vaeref/metrics.h"
#include "vaeref/model.h"
#include "vaeref/program.h"
#include "vaeref/tile.h"

#include <argp.h>
#include <jansson.h>

/* Another tool of this project that compiles files of this folder names itself. */
#ifndef CLI_TOOL
#define CLI_TOOL "vaeref"
#endif

#define CLI_OK 0
#define CLI_FAILURE 1
#define CLI_USAGE 2
#define CLI_INTERRUPTED 130
#define CLI_CONTINUE (-1) /* cli_parse: arguments are good, carry on */

/* ---- sub-commands: argv[0] is the command's own name ---------------------- */

int cli_decode(int argc, char **argv);
int cli_inspect(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_tune(int argc, char **argv);
int cli_synth(int argc, char **argv);
int cli_latents(int argc, char **argv);
int cli_convert(int argc, char **argv);
int cli_doctor(int argc, char **argv);

/* ---- messages and arguments (args.c) -------------------------------------- */

/* Prints "vaeref: error: TEXT" (or the tool's own name) on one line and returns `code`. */
int cli_error(int code, const char *fmt, ...) VR_PRINTF(2, 3);
int cli_fail(const vr_error *err); /* CLI_FAILURE with err's text */
void cli_warn(const char *fmt, ...) VR_PRINTF(1, 2);

/* One sub-command's options. `set` takes one option (key) or positional
 * argument (ARGP_KEY_ARG); anything but VR_OK is a usage error with its text. */
typedef struct cli_spec {
    const char *name;                  /* "decode" */
    const struct argp_option *options; /* ends with {0}; --help and --version are added */
    const char *doc;                   /* text before \v options \v text after */
    vr_status (*set)(void *ctx, int key, const char *arg, vr_error *err);
} cli_spec;

/* CLI_CONTINUE, or the exit code after --help, --version or a usage error. */
int cli_parse(const cli_spec *spec, int argc, char **argv, void *ctx);
/* The same for a command that takes positional arguments, worded "OLD NEW". */
int cli_parse_arguments(const cli_spec *spec, const char *args, int argc, char **argv, void *ctx);

/* Numbers as people type them; each refuses trailing text and says what it wants. */
vr_status cli_integer(const char *what, const char *s, int64_t lo, int64_t hi, int64_t *out,
                      vr_error *err);
vr_status cli_u64(const char *what, const char *s, uint64_t *out, vr_error *err);
vr_status cli_real(const char *what, const char *s, double *out, vr_error *err);
/* "512MiB", "2GiB", "64KiB" or plain bytes. */
vr_status cli_bytes(const char *what, const char *s, uint64_t *out, vr_error *err);
/* "AxB": two extents of 1..1000000. */
vr_status cli_pair(const char *what, const char *s, int64_t *a, int64_t *b, vr_error *err);
/* The architecture named, or a refusal that lists all. */
vr_status cli_arch(const char *s, const vr_arch_info **out, vr_error *err);
vr_status cli_latent_space(const char *s, vr_latent_space *out, vr_error *err);
vr_status cli_layout(const char *s, vr_key_layout *out, vr_error *err);
const char *cli_layout_name(vr_key_layout l);
/* A float type by its safetensors name, in any case. */
vr_status cli_float_dtype(const char *s, vr_dtype *out, vr_error *err);

/* ---- output files (output.c) ---------------------------------------------- */

typedef enum cli_format { CLI_PNG = 1, CLI_NPY = 2, CLI_SAFETENSORS = 4 } cli_format;

/* Format by extension; VR_E_ARGUMENT unless it is one of `allowed` (or-ed). */
vr_status cli_output_format(const char *path, unsigned allowed, cli_format *out, vr_error *err);
/* Tells before long work whether `path` can be written: its folder exists and
 * takes files, and it is no folder. Leaves nothing behind. */
vr_status cli_output_check(const char *path, vr_error *err);
void cli_output_remove(const char *path); /* if it is a regular file */
/* "dir/name.png", 7 -> "dir/name_00007.png". */
vr_status cli_numbered(const char *path, int64_t i, char *buf, size_t size, vr_error *err);
/* One tensor as .npy or .safetensors. */
vr_status cli_tensor_write(const char *path, cli_format f, const char *name, const vr_tensor *t,
                           const vr_metadata *meta, int64_t meta_count, vr_error *err);
/* JSON text, indented, atomically. `root` NULL (out of memory) is refused. */
vr_status cli_json_write(const char *path, const json_t *root, vr_error *err);
vr_status cli_json_print(const json_t *root, vr_error *err);
json_t *cli_json_dims(int32_t rank, const int64_t *dim);
json_t *cli_json_shape(vr_shape s); /* [n,c,h,w], or [n,c,t,h,w] when t > 1 */
/* "1x4x64x64" into buf. */
char *cli_shape_text(vr_shape s, char *buf, size_t size);
/* How latents are un-normalised: "scaling 0.18215, shift 0" into buf, and the
 * same as keys of `root`. */
char *cli_normalisation_text(const vr_model *m, char *buf, size_t size);
void cli_normalisation_json(const vr_model *m, json_t *root);
/* "1.5 GiB" into buf. */
char *cli_bytes_text(uint64_t bytes, char *buf, size_t size);

/* ---- --model and its companions (model_arg.c) ----------------------------- */

typedef struct cli_model_args {
    const char *model, *config, *arch;
    vr_latent_space space;
    bool has_scaling, has_shift;
    double scaling, shift;
} cli_model_args;

#define CLI_KEY_CONFIG 0x101
#define CLI_KEY_ARCH 0x102
#define CLI_KEY_SCALING 0x103
#define CLI_KEY_SHIFT 0x104
#define CLI_KEY_SPACE 0x105
#define CLI_KEY_TILE_MODE 0x106
#define CLI_KEY_TILE 0x107
#define CLI_KEY_OVERLAP 0x108
#define CLI_KEY_SPILL 0x109
#define CLI_KEY_COSTS 0x10a
#define CLI_KEY_COMMAND 0x200 /* first key a command may use for itself */

/* Rows for a command's option table. */
#define CLI_MODEL_OPTION                                                                   \
    {"model", 'm', "FILE|synth:ARCH[,seed=N][,div=D]", 0,                                  \
     "Weights: a .safetensors file, a sharded .safetensors.index.json, or seeded weights " \
     "made here (div divides the widths)", 0}
#define CLI_CONFIG_OPTION                                                                  \
    {"config", CLI_KEY_CONFIG, "FILE", 0,                                                  \
     "diffusers config.json (default: config.json beside the model, when there)", 0}
#define CLI_ARCH_OPTION                                                                    \
    {"arch", CLI_KEY_ARCH, "NAME", 0,                                                      \
     "Architecture, where the file alone cannot tell (sd15 or sdxl, ...)", 0}
#define CLI_SPACE_OPTION                                                                   \
    {"latent-space", CLI_KEY_SPACE, "diffusion|raw", 0,                                    \
     "diffusion (default): latents as a denoiser leaves them, un-normalised here; raw: "   \
     "as the encoder made them", 0}
#define CLI_SCALING_OPTION                                                                 \
    {"scaling-factor", CLI_KEY_SCALING, "X", 0, "Overrides the model's scaling factor", 0}
#define CLI_SHIFT_OPTION                                                                   \
    {"shift-factor", CLI_KEY_SHIFT, "X", 0, "Overrides the model's shift factor", 0}

/* Takes one of the keys above; VR_E_UNSUPPORTED when the key is another. */
vr_status cli_model_set(cli_model_args *a, int key, const char *arg, vr_error *err);
/* Opens as asked. */
vr_status cli_model_open(const cli_model_args *a, vr_model **out, vr_error *err);
/* The same for commands that do not decode: a file whose normalisation cannot
 * be told is opened without one. */
vr_status cli_model_open_any(const cli_model_args *a, vr_model **out, vr_error *err);

/* ---- --tile-mode and its sizes (tile_arg.c) -------------------------------- */

typedef struct cli_tile_args {
    vr_tile_options options;
    const char *costs; /* --tile-costs FILE, or NULL */
    const char *sized; /* "--tile" or "--overlap" when one was given, else NULL */
} cli_tile_args;

#define CLI_TILE_MODE_OPTION                                                               \
    {"tile-mode", CLI_KEY_TILE_MODE, "NAME", 0,                                            \
     "Tiling scheme: none (default), diffusers, diffusers-stride, diffusers-tiny, comfy, " \
     "comfy-3pass, sdcpp, two-pass, two-pass-fast, two-pass-fixed, exact, auto", 0}
#define CLI_TILE_OPTION                                                                    \
    {"tile", CLI_KEY_TILE, "W[xH]", 0, "Tile size in pixels (default: the scheme's)", 0}
#define CLI_OVERLAP_OPTION                                                                 \
    {"overlap", CLI_KEY_OVERLAP, "W[xH]", 0,                                               \
     "Overlap of neighbouring tiles in pixels (default: the scheme's)", 0}

#define CLI_SPILL_OPTION                                                                   \
    {"spill-dir", CLI_KEY_SPILL, "DIR", 0,                                                 \
     "exact: values that do not fit the memory limit go to a nameless file in this folder (default: memory)", 0}

#define CLI_COSTS_OPTION                                                                   \
    {"tile-costs", CLI_KEY_COSTS, "FILE.json", 0,                                          \
     "auto: cost table of vaeref tune (default: its cache; without one, multiply-adds)", 0}

void cli_tile_init(cli_tile_args *a);
/* Takes one of the five keys. */
vr_status cli_tile_set(cli_tile_args *a, int key, const char *arg, vr_error *err);
vr_status cli_tile_check(const cli_tile_args *a, vr_error *err); /* once all are set */
int cli_tile_fail(const vr_error *err); /* of planning: CLI_USAGE for refused numbers */
/* Gives the options of mode auto their cost table, when there is one (costs_arg.c). */
vr_status cli_costs_load(cli_tile_args *a, const vr_model *m, vr_error *err);
/* Where `vaeref tune` keeps the table of a model on this machine. */
vr_status cli_costs_path(const vr_model *m, bool make, char *path, size_t size, vr_error *err);
void cli_machine(char *buf, size_t size); /* what a cost table is tied to */
vr_status cli_auto_text(const vr_model *m, const vr_tile_plan *p, vr_error *err);
json_t *cli_auto_json(const vr_model *m, const vr_tile_plan *p);
json_t *cli_tile_json(const vr_tile_plan *p); /* sizes [w, h]; without the tiles */

/* ---- --latents (latents_arg.c) -------------------------------------------- */

typedef struct cli_latents_args {
    const char *spec; /* as typed */
    bool seeded;      /* "seed:N,HxW[,n=B]" */
    uint64_t seed;
    int64_t n, h, w;
} cli_latents_args;

/* what: how a message calls the argument, "--latents". */
vr_status cli_latents_set(cli_latents_args *a, const char *what, const char *arg, vr_error *err);
/* Reads a file and checks all that needs no model: float type, rank 4, no
 * empty axis, finite. Does nothing when seeded. Owned by the caller. */
vr_status cli_latents_load(const cli_latents_args *a, vr_tensor *t, vr_error *err);
/* Makes seeded latents, or checks the loaded ones' channels. */
vr_status cli_latents_fit(const cli_latents_args *a, const vr_model *m, vr_tensor *t,
                          vr_error *err);

/* ---- progress and interruption (progress.c) ------------------------------- */

typedef struct cli_progress {
    bool show;      /* a terminal is watching */
    bool drawn;     /* the bar is on the screen */
    double start, last;
} cli_progress;

void cli_progress_start(cli_progress *p, bool quiet);
bool cli_progress_update(cli_progress *p, int64_t done, int64_t total); /* false: interrupted */
void cli_progress_end(cli_progress *p); /* clears the bar; NULL-safe */
/* Between these two an interrupt (SIGINT, SIGTERM) is noted, not obeyed; a
 * second one ends the process at once. */
void cli_interrupt_catch(void);
bool cli_interrupted(void);
double cli_now(void); /* seconds, monotonic */

/* ---- taps (taps.c) --------------------------------------------------------- */

typedef struct cli_taps {
    const char *dir;
    bool made_dir;
    json_t *index;  /* array of entries */
    const vr_program *program;
} cli_taps;

/* Makes DIR if it is absent and proves that files can be written there. */
vr_status cli_taps_start(cli_taps *t, const char *dir, const vr_program *p, vr_error *err);
vr_status cli_taps_value(cli_taps *t, int32_t op, const char *tap, const vr_tensor *v,
                         vr_error *err);
vr_status cli_taps_finish(cli_taps *t, vr_error *err); /* writes index.json */
void cli_taps_discard(cli_taps *t);                    /* removes what was written */
void cli_taps_free(cli_taps *t);

/* ---- decode ---------------------------------------------------------------- */

typedef struct cli_decode_args {
    cli_model_args model;
    cli_latents_args latents;
    vr_policy policy;
    vr_order order;
    int32_t threads;
    uint64_t memory_limit;
    const char *output; /* NULL: nothing but the digest */
    cli_format format;
    cli_tile_args tile;
    const char *taps, *stats, *diff;
    double diff_gain; /* 0: chosen */
    bool compare; /* --compare-to-untiled, or --diff-png which needs it */
    bool allow_nonfinite, quiet;
} cli_decode_args;

typedef struct cli_decode_result {
    const vr_model *model;
    vr_shape latent, out_shape;
    vr_program_cost cost;
    vr_op_cost *op_cost; /* op_count */
    vr_shape *shape;     /* op_count */
    vr_exec_stats stats; /* op_seconds: op_count */
    vr_tile_plan plan;
    vr_tile_stats tile_stats;
    vr_tensor out;
    bool compared;
    vr_tensor untiled;   /* the undivided decode, when it was asked for */
    vr_comparison comparison;
    double untiled_seconds, diff_gain;
    uint64_t untiled_peak_bytes;
    char sha256[65];     /* of the output's raw float bytes */
    json_t *files;       /* paths written */
} cli_decode_result;

int cli_decode_run(const cli_decode_args *a); /* decode_run.c */

/* --compare-to-untiled and --diff-png (decode_compare.c): decodes undivided,
 * without the memory limit, and fills compared, untiled, comparison. */
vr_status cli_decode_compare(const vr_tensor *latents, const vr_exec_options *opt, cli_decode_result *r,
                             vr_error *err);
/* Writes a->diff, numbered for several pictures, and appends to r->files. */
vr_status cli_decode_diff(const cli_decode_args *a, cli_decode_result *r, vr_error *err);
void cli_comparison_text(const cli_decode_args *a, const cli_decode_result *r);
json_t *cli_comparison_json(const cli_decode_result *r); /* null when none was made */
vr_status cli_stats_write(const char *path, const cli_decode_args *a, const cli_decode_result *r,
                          vr_error *err); /* stats.c */

/* Pixels to latent cells; a remainder is refused with both neighbours
 * (inspect.c). */
vr_status cli_cells(const char *side, int64_t pixels, int64_t scale, int64_t *out, vr_error *err);

/* ---- inspect ----------------------------------------------------------------- */

typedef struct cli_inspection {
    const vr_model *model;
    vr_shape latent;
    vr_shape *shape;        /* op_count */
    vr_op_cost *op_cost;    /* op_count */
    vr_program_cost cost;
    vr_receptive_field field;
} cli_inspection;

void cli_inspect_text(const cli_inspection *x);
json_t *cli_inspect_json(const cli_inspection *x);
/* One operation's entry, shared by inspect --json and decode --stats. */
json_t *cli_op_json(const vr_program *p, int32_t i, vr_shape s, const vr_op_cost *cost);

/* ---- doctor ------------------------------------------------------------------ */

/* What the machine has (doctor_probe.c). Each writes text and returns whether
 * the thing is there. */
bool cli_probe_cpu(char *buf, size_t size);
bool cli_probe_cores(char *buf, size_t size);
bool cli_probe_memory(char *buf, size_t size);
void cli_probe_isas(char *buf, size_t size);
bool cli_probe_tool(const char *name, char *buf, size_t size);     /* in PATH: its path */
bool cli_probe_library(const char *stem, char *buf, size_t size);  /* in the library folders */
bool cli_probe_torch(char *buf, size_t size);
bool cli_probe_kfd(char *buf, size_t size);

#endif
