/* The reference behind the plug-in boundary, with places where a variant of it can
 * be made wrong or honestly different: `ref` has none of them, conformance/mutants
 * uses them all.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_REF_BACKEND_H
#define VAEPROOF_REF_BACKEND_H

#include "vaeproof/backend.h"
#include "vaeref/exec.h"
#include "vaeref/program.h"
#include "vaeref/tile.h"

typedef struct ref_job ref_job;

/* Every member may be NULL or 0. */
typedef struct ref_variant {
    const char *name;
    uint64_t without_caps;                    /* capability bits not claimed */
    uint32_t extra_storage;                   /* storage bits claimed beside the true ones */
    bool fixed_order;                         /* `order` below instead of the default */
    vr_order order;
    int32_t threads;                          /* instead of what the job asks */
    void (*change_program)(vr_program *p);    /* after it was built and checked */
    void (*change_plan)(vr_tile_plan *plan);
    /* After operation i of a range (then every operation runs by itself). in: the
     * values it read. May write out. */
    void (*after_op)(ref_job *j, const vr_program *p, int32_t i, const vr_tensor *in[3], vr_tensor *out);
    /* Before and after a run; a code other than VP_OK is returned as it is. */
    int32_t (*before_run)(ref_job *j, const vp_run_args *a);
    int32_t (*after_run)(ref_job *j, const vp_run_args *a);
    int32_t (*on_prepare)(ref_job *j, const vp_job_desc *d);
} ref_variant;

struct ref_job {
    const ref_variant *variant;
    vp_device *device;
    vr_program *program;
    vr_shape latent;
    vr_dtype storage;
    vr_exec_options exec;
    vr_tile_plan plan;
    bool tiled;
    vp_stats stats;
    void *own;         /* of the variant; freed with free() */
};

/* The table for a choice of variants, picked by the open option "variant=NAME";
 * the first is the default. */
int32_t ref_backend_get(const vp_host *host, vp_backend *out, const ref_variant *variants, int32_t count);

#endif
