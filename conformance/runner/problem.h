/* A case made concrete: program, fresh weights, inputs, and what the reference says.
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_PROBLEM_H
#define VAEPROOF_PROBLEM_H

#include "judge/judge.h"
#include "runner/suite.h"
#include "vaeref/exec.h"
#include "vaeref/model.h"

enum { VC_FEEDS = 16, VC_IDEALS = VR_ORDER_COUNT };

typedef enum vc_method { VC_BY_RATIO, VC_BY_INTEGER, VC_BY_ULP, VC_BY_BYTES } vc_method;

typedef struct vc_problem {
    const vc_case *c;
    uint64_t seed;
    vr_model *model;          /* NULL for single operations */
    const vr_program *program;
    vr_program *own_program;  /* of single operations */
    void *own_weights[8];
    int32_t own_count;
    vr_shape latent;
    vr_shape *shape;          /* of every value */
    int32_t first, last;      /* range that is run; the value wanted is `last` */
    int32_t feeds;
    int32_t feed_value[VC_FEEDS];
    vc_method method;
    vj_level depth;
    vr_tile_plan plan;        /* of tiled cases */
    bool tiled;
} vc_problem;

/* Builds it with weights of that seed. */
vr_status vc_problem_make(const vc_case *c, uint64_t seed, vc_problem *out, vr_error *err);
void vc_problem_free(vc_problem *p);

/* Inputs of run number `run`: feeds[p->feeds], storage dtype, [n][c][t][h][w]. */
vr_status vc_problem_inputs(const vc_problem *p, int64_t run, vr_tensor *feed, vr_error *err);

typedef struct vc_expected {
    vr_tensor truth;             /* F64 */
    vr_tensor ideal[VC_IDEALS];  /* F32, one for each legitimate order */
    int32_t ideals;
} vc_expected;

/* What the reference makes of those inputs under the case's contract. */
vr_status vc_problem_expect(const vc_problem *p, const vr_tensor *feed, vc_expected *out, vr_error *err);
void vc_expected_free(vc_expected *e);

/* The same for operation i alone of the same program (localisation). */
vr_status vc_range_expect(const vc_problem *p, int32_t first, int32_t last, const vr_exec_feed *feed, int32_t feeds,
                          vc_expected *out, vr_error *err);
/* Values operation range first..last reads and does not make; at most VC_FEEDS. */
int32_t vc_range_reads(const vr_program *p, int32_t first, int32_t last, int32_t *value);

/* Rank 5 view of a value's shape. */
void vc_dims(vr_shape s, int64_t dim[5]);
vr_status vc_round_to_storage(vr_tensor *t, vr_dtype storage, vr_error *err); /* F32 to the storage dtype, in place */

#endif
