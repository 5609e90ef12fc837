/* golden/golden.h: what the files of vaegolden share.
 *
 * A golden version is a folder: cases/ID.json (one record per case: its input,
 * the digests of its output, the noise an honest backend makes), pictures/ID.png
 * for the eye, provenance.json, and MANIFEST.sha256 over all of them, written
 * last. golden/cases.json says which cases there are. Specification:
 * docs/spec/goldens.md (clauses G1..).
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_GOLDEN_H
#define VAEPROOF_GOLDEN_H

#include <limits.h>
#include <stdio.h>

#include "cli.h" /* ref/cli: messages, arguments, progress, latents */

enum {
    VG_ID = 64,     /* bytes of an id, terminator included */
    VG_TEXT = 160,  /* of a model or latents spec */
    VG_WHY = 300,
    VG_CONTRACTS = 3,
    VG_MAX_JOBS = 256,
};

#define VG_MANIFEST "MANIFEST.sha256"
#define VG_PROVENANCE "provenance.json"
#define VG_PART ".part" /* where regen works; no part of a version */

/* ---- sub-commands: argv[0] is the command's own name ---------------------- */

int vg_regen(int argc, char **argv);
int vg_verify(int argc, char **argv);
int vg_diff(int argc, char **argv);
int vg_show(int argc, char **argv);

/* ---- JSON with file and line in every error (json.c) ---------------------- */

typedef struct vg_doc {
    char *path, *text;
    size_t size;
    json_t *root;
} vg_doc;

/* Parses a file (an object, duplicate keys refused). Close with vg_doc_close. */
vr_status vg_doc_open(const char *path, vg_doc *out, vr_error *err);
void vg_doc_close(vg_doc *d);

/* One object being read. Sticky: after the first failure every read does
 * nothing, and vg_read_end returns it. Keys never asked for are refused there. */
typedef struct vg_reader {
    const vg_doc *doc;
    const json_t *object;
    size_t at;            /* byte offset of its '{' */
    char what[VG_ID + 8]; /* "case 'x'" or "" */
    const char *key[16];  /* asked for so far */
    int keys;
    vr_status status;
    vr_error *err;
} vg_reader;

void vg_read_root(vg_reader *r, const vg_doc *d, vr_error *err);
/* An object of a list: element i of the list whose value is at list_at. */
void vg_read_element(vg_reader *r, const vg_doc *d, const json_t *list, size_t list_at, size_t i, vr_error *err);
/* Each returns whether the key was there; absent is a failure only if required.
 * buf and out are untouched when it was not. */
bool vg_read_text(vg_reader *r, const char *key, bool required, char *buf, size_t size);
bool vg_read_digest(vg_reader *r, const char *key, char hex[65]);
bool vg_read_int(vg_reader *r, const char *key, bool required, int64_t lo, int64_t hi, int64_t *out);
bool vg_read_real(vg_reader *r, const char *key, double lo, double hi, double *out);
bool vg_read_bool(vg_reader *r, const char *key, bool *out);
/* N numbers, or one number that stands for all of them when `one` is allowed. */
bool vg_read_ints(vg_reader *r, const char *key, bool required, bool one, int n, int64_t lo, int64_t hi,
                  int64_t *out);
bool vg_read_object(vg_reader *r, const char *key, bool required, vg_reader *child);
/* A list of at least one element: its value and where it is. */
bool vg_read_list(vg_reader *r, const char *key, const json_t **list, size_t *at);
/* Fails with "PATH:LINE: WHAT: key 'KEY' TEXT"; key NULL: about the object. */
vr_status vg_read_fail(vg_reader *r, const char *key, const char *fmt, ...) VR_PRINTF(3, 4);
int vg_read_line(const vg_reader *r); /* line of the object's '{' */
vr_status vg_read_end(vg_reader *r);

/* ---- cases (cases.c) -------------------------------------------------------- */

typedef struct vg_case {
    char id[VG_ID];
    char model[VG_TEXT];      /* "synth:..." or a file below models/ */
    char latents[VG_TEXT];    /* "seed:N,HxW[,n=B]" or FILE[#name] below models/ */
    vr_latent_space space;
    vr_tile_options tile;     /* as written: 0 and -1 are the scheme's defaults */
    bool picture;
    char why[VG_WHY];         /* the bug that would slip through without it; "" if not said */
    int line;                 /* in its file */
} vg_case;

typedef struct vg_case_list {
    char path[PATH_MAX];      /* golden/cases.json */
    char suite[16], spec[16]; /* versions, "1.0" */
    char sha256[65];          /* of the file */
    vg_case *item;            /* ascending by id */
    int64_t count;
} vg_case_list;

/* Reads GOLDEN/cases.json. Ids are unique, and so are inputs. */
vr_status vg_cases_open(const char *golden, vg_case_list *out, vr_error *err);
void vg_cases_close(vg_case_list *l);
const vg_case *vg_cases_find(const vg_case_list *l, const char *id);
bool vg_id_valid(const char *id);
/* The keys model, latents, latent_space, tile of r into c, fully checked. */
void vg_case_read_input(vg_reader *r, vg_case *c);
/* Where FILE or FILE#name of a spec lies: GOLDEN/models/SPEC. */
vr_status vg_model_path(const char *golden, const char *spec, char path[PATH_MAX], vr_error *err);

/* ---- records (record.c) ----------------------------------------------------- */

typedef struct vg_deviation {
    double rms, max;          /* of a difference from `truth`, in output units */
} vg_deviation;

typedef struct vg_noise {
    vg_deviation d;           /* each the largest over the orders of clause N6 */
    vr_order rms_order, max_order;
} vg_noise;

typedef struct vg_record {
    vg_case input;            /* picture, why and line are not part of a record */
    char weights_sha256[65], latents_sha256[65], input_sha256[65];
    char arch[32];
    int64_t shape[4];         /* output, NCHW */
    double range[2];          /* black, white */
    int64_t tiles;
    char output_sha256[65];   /* of the golden output's f32 bytes, NCHW */
    char pixels_sha256[65];   /* of its 8-bit samples, NHWC */
    bool no_truth;            /* the scheme has no form under `truth`: golden stands in for it */
    double truth_rms;
    vg_deviation golden;      /* of the golden output */
    vg_noise noise[VG_CONTRACTS]; /* f32, f16, bf16 */
} vg_record;

/* Contract k: its policy. */
vr_policy vg_contract(int k);
/* JSON text of a record; the same record gives the same bytes everywhere. NULL:
 * out of memory. Free it. Fills r->input_sha256. */
char *vg_record_text(vg_record *r);
vr_status vg_record_read(const char *path, vg_record *out, vr_error *err);
bool vg_input_equal(const vg_case *a, const vg_case *b);
/* What differs, as text for people: "output 2ac1b7be26da -> 93..; noise ..".
 * Returns an or of the bits below; 0 and "" when nothing does. */
enum { VG_DIFF_INPUT = 1, VG_DIFF_SHAPE = 2, VG_DIFF_OUTPUT = 4, VG_DIFF_PIXELS = 8, VG_DIFF_NOISE = 16 };
unsigned vg_record_compare(const vg_record *old, const vg_record *now, char *buf, size_t size);

/* ---- computing (compute.c, deviate.c) ---------------------------------------- */

typedef struct vg_job {
    const vg_case *c;
    const vr_model *model;    /* shared; owned by the set */
    vr_tensor latents;
    vr_tile_plan plan;
    vg_record record;         /* input part filled; the rest by vg_job_run */
    uint8_t *pixels;          /* [h][w][c] of sample 0, after vg_job_run, when wanted */
    int64_t cost;             /* multiply-adds of one run */
} vg_job;

typedef struct vg_models {    /* each (spec, space) opened once */
    struct vg_model_entry {
        char spec[VG_TEXT];
        vr_latent_space space;
        vr_model *model;
    } *entry;
    int64_t count;
} vg_models;

void vg_models_close(vg_models *m);
/* Opens model and latents, makes the plan, fills the input part of the record. */
vr_status vg_job_open(const char *golden, const vg_case *c, vg_models *models, vg_job *out, vr_error *err);
void vg_job_close(vg_job *j);
typedef bool vg_progress(void *ctx, int64_t done, int64_t total); /* false: stop */
/* All runs of a case: golden, truth and every order of every contract. */
vr_status vg_job_run(vg_job *j, int32_t threads, vg_progress *progress, void *ctx, vr_error *err);

/* ---- all cores (work.c) ------------------------------------------------------- */

/* Runs the jobs with `jobs` threads, dearest first; done() is called for each
 * right after it, one at a time. When done() returns anything but VR_OK, or on an
 * interrupt, the rest is dropped. s, e: of the run itself. */
typedef vr_status vg_done(void *ctx, int64_t i, vr_status s, const vr_error *e, vr_error *err);
vr_status vg_work(vg_job *job, int64_t count, int32_t jobs, vg_done *done, void *ctx, vr_error *err);
int32_t vg_default_jobs(void);

/* ---- files (files.c) ------------------------------------------------------------ */

/* Whole file, terminated; VR_E_NOTFOUND when there is none. Free it. */
vr_status vg_file_read(const char *path, char **text, size_t *size, vr_error *err);
vr_status vg_file_digest(const char *path, char hex[65], vr_error *err);
vr_status vg_file_write(const char *path, const void *data, size_t n, vr_error *err); /* atomic */
bool vg_close(FILE *f); /* closes it; false when anything written to it was lost */
void vg_digest(const void *data, size_t n, char hex[65]);
/* "DIR/NAME" */
vr_status vg_join(char path[PATH_MAX], const char *dir, const char *name, vr_error *err);
vr_status vg_record_path(char path[PATH_MAX], const char *dir, const char *id, vr_error *err);
vr_status vg_picture_path(char path[PATH_MAX], const char *dir, const char *id, vr_error *err);
vr_status vg_mkdir(const char *path, vr_error *err); /* fine if it is there */
vr_status vg_sync_dir(const char *path, vr_error *err);
void vg_remove_tree(const char *path);
bool vg_exists(const char *path);

typedef struct vg_names {
    char **item;
    int64_t count;
} vg_names;
vr_status vg_names_add(vg_names *n, const char *name, vr_error *err);
void vg_names_sort(vg_names *n);
bool vg_names_has(const vg_names *n, const char *name); /* sorted */
void vg_names_free(vg_names *n);
/* Relative paths of all files below dir but .part, ascending. */
vr_status vg_list(const char *dir, vg_names *out, vr_error *err);
/* Ids of DIR/cases/ID.json, ascending; VR_E_NOTFOUND when DIR is no version. */
vr_status vg_list_ids(const char *dir, vg_names *out, vr_error *err);

/* GOLDEN/vN with the largest N, or `n` = 0 and path GOLDEN/v1 when there is none. */
vr_status vg_current(const char *golden, char path[PATH_MAX], int *n, vr_error *err);

/* PNG whose bytes depend on the pixels alone (png.c): 8-bit RGB or grey. */
vr_status vg_png_write(const char *path, int64_t w, int64_t h, int64_t c, const uint8_t *pixels, vr_error *err);

/* ---- manifest and provenance (manifest.c, provenance.c) -------------------------- */

typedef struct vg_manifest {
    struct vg_manifest_line {
        char digest[65];
        char *path;
    } *line;                  /* ascending by path; entry i is on line i + 1 */
    int64_t count;
} vg_manifest;

vr_status vg_manifest_read(const char *dir, vg_manifest *out, vr_error *err);
const struct vg_manifest_line *vg_manifest_find(const vg_manifest *m, const char *path);
void vg_manifest_free(vg_manifest *m);

/* Text of provenance.json; free it. records: ascending by id. */
char *vg_provenance_text(const vg_case_list *l, const vg_record *records, int64_t count);

/* ---- the change rule, and installing what regen computed (install.c) --------------- */

/* DIR holds nothing but files of a version. */
vr_status vg_check_folder(const char *dir, vr_error *err);
/* Every record of DIR is still a case of the list, with the same input (clause
 * G5). Fine when DIR holds none yet. */
vr_status vg_check_frozen(const vg_case_list *l, const char *dir, vr_error *err);

typedef struct vg_installed {
    int64_t changed;              /* files made or replaced */
    int64_t missing;              /* cases of the list that the version lacks; then no manifest */
    char first_missing[VG_ID];
} vg_installed;

/* Moves DIR/.part into DIR, the manifest last; a record that would change is
 * refused and DIR stays as it was. */
vr_status vg_install(const vg_case_list *l, const char *dir, vg_installed *out, vr_error *err);

#endif
