/* What vaecheck asks: entries of conformance/cases/, expanded to cases.
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_SUITE_H
#define VAEPROOF_SUITE_H

#include <jansson.h>

#include "vaeref/program.h"
#include "vaeref/tile.h"

typedef enum vc_level { VC_L0, VC_L1, VC_L2, VC_L3, VC_L4, VC_L5, VC_L6, VC_L7, VC_LEVELS } vc_level;
typedef enum vc_fill { VC_NORMAL, VC_INTEGER, VC_POSITIVE, VC_FILLS } vc_fill;
typedef enum vc_profile { VC_CORE, VC_FULL, VC_EMBEDDED, VC_PROFILES } vc_profile; /* each contains those before */

extern const char *const vc_level_name[VC_LEVELS];
extern const char *const vc_fill_name[VC_FILLS];
extern const char *const vc_profile_name[VC_PROFILES];

enum { VC_LIST = 16 }; /* longest list of an entry */

typedef struct vc_pair {
    int64_t a, b;
} vc_pair;

/* One object of a case file: many cases that differ in contract and sizes. */
typedef struct vc_entry {
    char id[80];            /* "op.conv2d.k3" */
    char spec[32];          /* clause it enforces */
    vc_level level;
    vc_profile profile;     /* the smallest that contains it */
    char check[40];         /* L0, L7: name of a check in code; else "" */
    vr_op_kind op;          /* L1; VR_OP_KIND_COUNT: none */
    int64_t kernel[2], pad[4];
    bool bias;
    int64_t groups, factor[3];
    double real[2];         /* eps, limit, or lo and hi */
    char model[512];         /* L2..L4, L7: "synth:sd15,div=8" */
    char from[96], to[96];  /* L2: taps of the first and last operation */
    vr_tile_options tile;   /* L4 */
    int32_t contracts;
    vr_dtype contract[4];
    int32_t channel_count, size_count, batch_count, fill_count;
    vc_pair channels[VC_LIST]; /* in, out; out 0: as in */
    vc_pair size[VC_LIST];     /* rows, columns of the operation's input or the latent */
    int64_t batch[VC_LIST];
    vc_fill fill[VC_FILLS];
} vc_entry;

typedef struct vc_case {
    char id[160];
    const vc_entry *entry;
    vr_dtype storage;
    int64_t ci, co, h, w, n;
    vc_fill fill;
} vc_case;

typedef struct vc_suite {
    vc_entry *entry;
    int64_t entries;
    vc_case *item;
    int64_t count;
    char digest[65];        /* SHA-256 over names and bytes of the case files, sorted */
} vc_suite;

/* Reads every *.json of a folder, strictly: unknown keys, doubled ids, wrong types
 * are VR_E_FORMAT with file and line. */
vr_status vc_suite_load(const char *dir, vc_suite *out, vr_error *err);
void vc_suite_free(vc_suite *s);
/* One file's text; what a fuzzer feeds. Appends to *s. */
vr_status vc_suite_parse(const char *name, const char *text, size_t size, vc_suite *s, vr_error *err);
/* Entries to cases. */
vr_status vc_suite_expand(vc_suite *s, vr_error *err);

const char *vc_contract_name(vr_dtype d); /* "f32" */
bool vc_contract_parse(const char *s, vr_dtype *out);

#endif
