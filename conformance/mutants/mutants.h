/* Backends that are wrong in one way each, and honest ones that are right in another way
 * than the reference (clause A8). SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_MUTANTS_H
#define VAEPROOF_MUTANTS_H

#include "backends/ref_backend.h"

typedef struct mutant {
    ref_variant variant;
    const char *status;  /* what the run must say: "fail", "crash", "timeout"; "pass" for honest variants */
    const char *level;   /* level of a case that must catch it */
    const char *cases;   /* glob of cases that are enough to catch it */
    const char *culprit; /* operation kind that localisation must name in a whole decode, or NULL */
    const char *what;    /* which real fault it stands for */
} mutant;

extern const mutant vm_ops[], vm_tiles[], vm_process[], vm_honest[];
extern const int32_t vm_ops_count, vm_tiles_count, vm_process_count, vm_honest_count;

/* ---- what the files share (values.c) --------------------------------------------------- */

/* Element i of a float tensor, whatever its type. */
double vm_get(const vr_tensor *t, int64_t i);
void vm_set(vr_tensor *t, int64_t i, double v);
int64_t vm_count(const vr_tensor *t);
/* [n][c][h][w] of a value, rank 4 or 5. */
void vm_dims(const vr_tensor *t, int64_t dim[4]);
/* Weight k of an operation as doubles; owned by the caller (free). NULL: absent. */
double *vm_weight(const vr_program *p, const vr_op *op, int k);
vr_dtype vm_storage(const ref_job *j);
double vm_round(const ref_job *j, double v); /* to the job's storage */

#endif
