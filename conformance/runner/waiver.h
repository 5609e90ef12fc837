/* Waivers: failures that are known, bounded and run out (clause A7).
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_WAIVER_H
#define VAEPROOF_WAIVER_H

#include "vaeref/core.h"

typedef struct vc_waiver {
    char pattern[160];   /* glob over case ids */
    char backend[64];    /* name it reports */
    char status[16];     /* expected: fail, crash, timeout, mistrusted */
    double bound;        /* the judged ratio must not pass it; < 0: none */
    char reason[300], issue[200], owner[80], expires[11]; /* YYYY-MM-DD */
    int64_t used;        /* cases it was needed for */
} vc_waiver;

typedef struct vc_waivers {
    vc_waiver *item;
    int64_t count;
    int64_t applied;     /* results turned into `waived` */
} vc_waivers;

/* Strict; today: "YYYY-MM-DD", an expired waiver or one that runs longer than 180 days
 * is VR_E_FORMAT. suite: version that waivers must name. */
vr_status vc_waivers_load(const char *path, const char *suite, const char *today, vc_waivers *out, vr_error *err);
/* The same from text; what a fuzzer feeds. */
vr_status vc_waivers_parse(const char *name, const char *text, size_t size, const char *suite, const char *today,
                           vc_waivers *out, vr_error *err);
void vc_waivers_free(vc_waivers *w);
/* The waiver for a case of a backend, or NULL. Level L0 is never waived. */
vc_waiver *vc_waiver_find(vc_waivers *w, const char *id, const char *backend);

#endif
