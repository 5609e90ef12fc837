/* One run of vaecheck: a backend, a suite, a log. SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_RUN_H
#define VAEPROOF_RUN_H

#include <stdio.h>

#include "runner/child.h"
#include "runner/exchange.h"
#include "runner/problem.h"
#include "runner/waiver.h"
#include "vaeref/io.h"

#define VC_STATUS_MAP(X)                  \
    X(VC_PASS, "pass")                     \
    X(VC_FAIL, "fail")                     \
    X(VC_STATUS_CRASH, "crash")            \
    X(VC_STATUS_TIMEOUT, "timeout")        \
    X(VC_UNSUPPORTED, "unsupported")       \
    X(VC_SKIPPED, "skipped")               \
    X(VC_MISTRUSTED, "mistrusted")         \
    X(VC_WAIVED, "waived")                 \
    X(VC_XPASS, "xpass")                   \
    X(VC_NOT_RUN, "not_run")               \
    X(VC_HARNESS_ERROR, "harness_error")
typedef enum vc_status {
#define VC_X(name, text) name,
    VC_STATUS_MAP(VC_X)
#undef VC_X
    VC_STATUS_COUNT
} vc_status;
const char *vc_status_name(vc_status s);

/* Exit codes (conformance/README.md). */
enum { VC_EXIT_OK, VC_EXIT_NO, VC_EXIT_USAGE, VC_EXIT_HARNESS, VC_EXIT_LOAD, VC_EXIT_INCOMPLETE, VC_EXIT_WAIVED,
       VC_EXIT_NO_DEVICE = 77 };

typedef struct vc_caps {
    char name[64], version[64], vendor[64], device[128];
    uint64_t caps, ops;
    uint32_t storage, tiles;
} vc_caps;

typedef struct vc_result {
    vc_status status;
    char reason[900];
    bool judged;
    const char *judge_name;
    vj_result judge;
    char fingerprint[400];
    int64_t index_dims[5];   /* shape the worst elements' indices count in */
    int32_t culprit;         /* operation found wrong first; -1: not looked for, -2: looked for, none */
    char culprit_tap[96];
    const char *culprit_kind;
    double culprit_ratio;
    double seconds;
    vr_tensor got, want;     /* pictures of a failed decode; may be empty */
    double range_lo, range_hi; /* of them */
    vr_image heat;           /* their difference with the tile grid; of tiled decodes */
    char log_tail[1200];     /* of the child, when it failed */
} vc_result;

typedef struct vc_run {
    const vc_suite *suite;
    vc_backend_spec spec;
    vc_child child;
    vc_caps caps;
    bool opened;             /* the child is running and has a device */
    uint64_t seed;
    vc_profile profile;
    int32_t threads;         /* of the reference */
    double timeout;          /* seconds of one run verb */
    bool locate, verbose;
    bool partial;            /* some cases of the profile were not asked for */
    bool deterministic, order_free; /* badges D1, D2: no case showed otherwise */
    bool d1_tried, d2_tried;
    FILE *log;
    char log_dir[4096];      /* pictures go beside the log; "": nowhere */
    vc_waivers waivers;
    int64_t counts[VC_STATUS_COUNT];
} vc_run;

/* Child running, hello said, device open; else what went wrong in run->child.text. */
vc_outcome vc_run_open(vc_run *r);
vr_status vc_read_caps(json_t *hello, vc_caps *out, vr_error *err);

/* ---- doing and judging one case ------------------------------------------------------ */

void vc_case_run(vc_run *r, const vc_case *c, vc_result *out);  /* any level */
void vc_result_free(vc_result *res);
void vc_say(vc_result *res, vc_status s, const char *fmt, ...) VR_PRINTF(3, 4);
/* Turns what the child did into a status. */
void vc_from_outcome(const vc_run *r, vc_outcome o, const char *verb, vc_result *res);

/* Sends the program of a problem and prepares a job; extra keys of the request may be
 * given (taken). options: NULL. */
vc_outcome vc_prepare(vc_run *r, const vc_problem *p, int32_t threads, json_t *extra, vr_error *err);
/* One run of operations first..last of the prepared job: feeds in the storage dtype, the
 * value `last` back as a tensor of `want_dtype` [n][c][t][h][w]. pad: gap between rows.
 * On VC_ANSWER, *res says FAIL when the output was not all written or the guards were
 * touched. */
vc_outcome vc_perform(vc_run *r, const vc_problem *p, int32_t first, int32_t last, const int32_t *feed_value,
                      const vr_tensor *feed, int32_t feeds, vr_dtype want_dtype, int64_t pad, vr_tensor *got,
                      vc_result *res, vr_error *err);

void vc_numeric_case(vc_run *r, const vc_case *c, vc_result *res); /* L1 to L4 */
void vc_abi_case(vc_run *r, const vc_case *c, vc_result *res);     /* L0 */
void vc_stress_case(vc_run *r, const vc_case *c, vc_result *res);  /* L7 */
/* Finds the first operation of the problem's range that is wrong by itself. */
void vc_locate(vc_run *r, const vc_problem *p, vc_result *res);

/* ---- the log ---------------------------------------------------------------------------- */

void vc_log_run(vc_run *r, int argc, char **argv, const vc_case *const *cases, int64_t count, int shard, int shards);
void vc_log_case(vc_run *r, const vc_case *c, vc_result *res, bool required);
void vc_log_end(vc_run *r, int code, double seconds);

#endif
