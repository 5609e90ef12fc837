/* The exact executor's state, shared by exact.c (what is stored, when, where),
 * exact_part.c (computing one part of a value) and store.c (the host store).
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_TILE_EXACT_H
#define VAEREF_TILE_EXACT_H

#include "ops/ops.h"
#include "tile/internal.h"

/* Rows [y0, y1), columns [x0, x1) of a value. */
typedef struct ex_region {
    int64_t y0, y1, x0, x1;
} ex_region;

typedef enum ex_place { EX_NOWHERE, EX_CALLER, EX_POOL, EX_STORE } ex_place;

typedef struct ex_value {
    bool stored;         /* kept whole until `last`; else computed on demand, part by part */
    int32_t last;        /* last operation whose work reads it */
    ex_place place;
    void *data;          /* whole value, dense; NULL in a dry run */
    uint64_t bytes;
    vr_moments *moments; /* of a group norm's input, kept at the norm */
    vr_conv_weights weights; /* while parts are computed */
    bool packed;
} ex_value;

typedef struct ex_state {
    const vr_program *p;
    const vr_exec_options *opt;
    vr_arith arith;
    vr_shape *shape;
    ex_value *value;
    int32_t threads;     /* asked for; arith.threads follows the work at hand */
    int64_t elem;        /* bytes per element */
    int64_t tile_h, tile_w;  /* pixels; 0: no bound */
    int64_t out_h, out_w;
    const char *spill_dir; /* NULL: memory */
    bool dry;            /* account, do not compute */
    uint64_t live, peak; /* pool bytes, counted alike in dry and real runs */
    vr_pool *pool;
    uint64_t store_live, store_peak, store_written;
    int64_t recomputed, done_macs, total_macs;
    vr_nonfinite nonfinite;
    bool counting;       /* recomputed elements are counted */
} ex_state;

/* A part of a value: `data` belongs to the pool when `owned`, else borrowed. */
typedef struct ex_part {
    ex_region r;
    vr_shape shape;
    void *data;
    uint64_t bytes;
    bool owned;
} ex_part;

/* Pool memory under the limit; in a dry run only counted. */
vr_status ex_alloc(ex_state *s, uint64_t bytes, void **out, vr_error *err);
void ex_free(ex_state *s, uint64_t bytes, void *p);

/* Computes region r of value v. writable: the caller will write over it. */
vr_status ex_eval(ex_state *s, int32_t v, ex_region r, bool writable, ex_part *out, vr_error *err);
void ex_release(ex_state *s, ex_part *part);
/* Pool bytes that evaluating r of v needs at its peak. */
vr_status ex_need(ex_state *s, int32_t v, ex_region r, uint64_t *bytes, vr_error *err);
void ex_copy_in(const ex_state *s, int32_t v, const ex_part *part); /* part -> whole value */

typedef struct ex_choice {
    ex_place place;
    int64_t th, tw; /* cells of a part */
} ex_choice;

/* Fills value[].stored and value[].last; heavy: op_count flags of scratch. */
void ex_choose_stored(ex_state *s, bool *heavy);
/* Place and part size for value v; may move values to the host store. */
vr_status ex_choose(ex_state *s, int32_t v, ex_choice *c, vr_error *err);
uint64_t ex_limit(const ex_state *s);

/* Host store: memory, or an unlinked temporary file in spill_dir, mapped. */
vr_status ex_store_get(ex_state *s, uint64_t bytes, void **out, vr_error *err);
void ex_store_put(ex_state *s, uint64_t bytes, void *p);

#endif
