/* Helpers of the tests of ref/model: a bag of tensors taken from a seeded model,
 * changed one way or another, and written to a file. A helper that cannot do its
 * work aborts the test.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_MODEL_TEST_H
#define VAEREF_MODEL_TEST_H

#include "../io/io_test.h"
#include "model/internal.h"
#include "vaeref/exec.h"

#include <criterion/criterion.h>

enum { BAG_MOST = 700, BAG_NAME = 260 };

typedef struct bag {
    io_dir dir;
    vr_safetensors *file;        /* holds the data that was not changed */
    int64_t count;
    char name[BAG_MOST][BAG_NAME];
    vr_tensor tensor[BAG_MOST];
    void *own[BAG_MOST];         /* data that was; NULL: the file's */
    vr_metadata meta[8];
    int64_t metas;
} bag;

/* The tensors of `spec` ("synth:...") as written in `layout`. Metadata: only
 * vaeproof.norm_num_groups. Free with bag_free. */
bag *bag_of(const char *spec, vr_key_layout layout);
void bag_free(bag *b);

int64_t bag_find(const bag *b, const char *name); /* aborts when absent */
void bag_drop(bag *b, const char *name);
int64_t bag_drop_start(bag *b, const char *start); /* all that start so; how many */
void bag_rename(bag *b, const char *name, const char *to);
/* Replaces `from` by `to` in every name that has it; how many. */
int64_t bag_replace(bag *b, const char *from, const char *to);
void bag_prefix(bag *b, const char *prefix); /* every name */
/* A tensor of a small repeated pattern. dims end at the first 0 unless `rank` says. */
void bag_add(bag *b, const char *name, vr_dtype t, int32_t rank, const int64_t *dim);
/* The same tensor once more under another name. */
void bag_copy(bag *b, const char *name, const char *to);
/* Own, writable copy of a tensor's data. */
void *bag_edit(bag *b, const char *name);
void bag_convert(bag *b, const char *name, vr_dtype t);
void bag_meta(bag *b, const char *key, const char *value); /* strings that live on */

/* Writes b into its folder under `name`; the path lies in buf. */
const char *bag_write(const bag *b, const char *name, char buf[IO_PATH]);
#define BAG_FILE(b) bag_write((b), "m.safetensors", (char[IO_PATH]){0})

/* Replaces the first `from` after the first `after` in a file by `to` (same length). */
void file_patch(const char *path, const char *after, const char *from, const char *to);

/* Opens or fails the test, which names the case. */
vr_model *must_open(const char *what, const char *spec, const vr_model_options *opt);

/* Golden decode of seeded latents [1][c][2][3]; F32, free with vr_tensor_free. */
vr_tensor decode_small(const char *what, const vr_model *m);
/* Same operations with the same taps and parameters, same weights, same picture. */
void assert_same_model(const char *what, const vr_model *a, const vr_model *b);
/* Fails the test unless opening gives `status` and one line that holds every
 * string of `parts` (ends with NULL). */
void assert_refused(const char *what, const char *spec, const vr_model_options *opt,
                    vr_status status, const char *const *parts);
#define PARTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What lies beside the project, or NULL after saying why the test is skipped. */
const char *shared_file(const char *name, char buf[IO_PATH]);

#endif
