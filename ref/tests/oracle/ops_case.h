/* One row of ops_cases.json as a program of one operation.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_TESTS_ORACLE_OPS_CASE_H
#define VAEREF_TESTS_ORACLE_OPS_CASE_H

#include "fixture.h"
#include "vaeref/program.h"

typedef struct oracle_case {
    const char *name;     /* owned by the list */
    vr_op_kind kind;
    vr_program *program;
    vr_tensor x;          /* F32 [n][c][h][w]; q, k, v or two addends along channels */
    vr_tensor y;          /* F64, expected */
    int64_t count;        /* elements of y */
    double terms, magnitude_rms, magnitude_max; /* see make_ops.py */
    float *selector[3];   /* 1x1 weights that take x apart */
} oracle_case;

/* Value of the operation under test is always tap "tested". */
vr_status oracle_case_make(const oracle_fixture *o, size_t i, oracle_case *out, vr_error *err);
void oracle_case_free(oracle_case *c);

#endif
