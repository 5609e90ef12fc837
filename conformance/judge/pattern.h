/* Which positions along one axis are hit, in words (J12).
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_JUDGE_PATTERN_H
#define VAEPROOF_JUDGE_PATTERN_H

#include "vaeref/core.h"

typedef enum vj_pattern_kind {
    VJ_PATTERN_NONE,   /* no position */
    VJ_PATTERN_ALL,    /* all, or more than three quarters in one run: nothing to say */
    VJ_PATTERN_FIRST,  /* the first `number` */
    VJ_PATTERN_LAST,
    VJ_PATTERN_EDGES,  /* the first `from` and the last `to` */
    VJ_PATTERN_RANGE,  /* from..to */
    VJ_PATTERN_EVERY,  /* from..to of every `period`; from > to: `number` of every `period` */
    VJ_PATTERN_FEW     /* at most four: at[] */
} vj_pattern_kind;

typedef struct vj_pattern {
    vj_pattern_kind kind;
    int64_t number, from, to, period, at[4];
} vj_pattern;

vj_pattern vj_pattern_find(const bool *hit, int64_t extent);
/* "the last 3 columns" for nouns "column", "columns". edges: the ends of the axis
 * mean something (rows, not channels). Returns buf. */
char *vj_pattern_text(const vj_pattern *p, const char *one, const char *many, bool edges, char *buf, size_t size);

#endif
