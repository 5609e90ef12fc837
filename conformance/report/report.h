/* report.h: from event logs to a verdict and to reports people and machines read. The log
 * format is in conformance/README.md. Same logs, same bytes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_REPORT_H
#define VAEPROOF_REPORT_H

#include <jansson.h>

#include "vaeref/core.h"

typedef struct vc_report {
    json_t *run;      /* the `run` event; of the first shard */
    json_t *cases;    /* array of `case` events, in the order of the ids */
    json_t *end;      /* the last `end` event, or NULL */
    char folder[4096];/* of the first log: pictures are beside it */
    char missing[400];/* why the run is incomplete; "" when it is complete */
    bool cut;         /* the last line of a log is half a line */
} vc_report;

/* Reads one log, or all shards of one run. VR_E_FORMAT with file and line for what is
 * no log; VR_E_ARGUMENT when logs are not shards of one run. */
vr_status vc_report_read(const char *const *paths, int count, vc_report *out, vr_error *err);
void vc_report_free(vc_report *r);

/* Cases with a status. */
int64_t vc_report_count(const vc_report *r, const char *status);
/* Exit code of the whole (conformance/README.md): 0, 1, 3, 5 or 6. */
int vc_report_verdict(const vc_report *r);
const char *vc_report_verdict_text(int code);
/* "" or " as far as asked", when the run left cases of its profile out by choice. */
const char *vc_report_scope(const vc_report *r);

/* report.json, junit.xml, index.html and badge.txt into an existing folder. */
vr_status vc_report_write(const vc_report *r, const char *dir, vr_error *err);
vr_status vc_report_junit(const vc_report *r, const char *path, vr_error *err);
vr_status vc_report_html(const vc_report *r, const char *path, vr_error *err);

/* ---- text being built ---------------------------------------------------------------- */

typedef struct vc_text {
    char *at;
    size_t size, room;
    bool failed;
} vc_text;

void vc_text_add(vc_text *t, const char *fmt, ...) VR_PRINTF(2, 3);
void vc_text_escaped(vc_text *t, const char *s); /* & < > " and control characters */
vr_status vc_text_save(vc_text *t, const char *path, vr_error *err); /* atomic; frees */

#endif
