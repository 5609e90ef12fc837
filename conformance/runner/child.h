/* A backend in a process of its own (clause A4): started, asked, timed, killed.
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_CHILD_H
#define VAEPROOF_CHILD_H

#include <sys/types.h>

#include "wire/wire.h"

/* What `--backend` names. */
typedef struct vc_backend_spec {
    const char *text;        /* as given: onednn, ./libfoo.so, py:adapter.py */
    const char *options;     /* --option text, or NULL */
    char program[4096];      /* what is executed */
    char argument[4096];
    uint64_t memory_bytes;   /* RLIMIT_AS of the child; 0: none */
} vc_backend_spec;

/* Finds the library or script; VR_E_IO when there is none. bin_dir: where this
 * tool lies (vaehost beside it, backends in ../lib). */
vr_status vc_backend_find(const char *text, const char *bin_dir, vc_backend_spec *out, vr_error *err);

typedef enum vc_outcome {
    VC_ANSWER,  /* the verb was done */
    VC_REFUSED, /* the backend answered an error code */
    VC_CRASH,   /* it ended, or sent what is no answer */
    VC_TIMEOUT  /* it was killed */
} vc_outcome;

typedef struct vc_child {
    const vc_backend_spec *spec;
    char dir[64];   /* exchange folder, removed at the end */
    pid_t pid;      /* 0: not running */
    int fd, log_fd;
    char log[2001]; /* tail of stderr */
    size_t log_size;
    int32_t code;   /* of the last VC_REFUSED */
    char text[512]; /* what went wrong last */
} vc_child;

vr_status vc_child_init(vc_child *c, const vc_backend_spec *spec, vr_error *err); /* makes the folder */
/* Starts the process and waits until the library is loaded. */
vc_outcome vc_child_start(vc_child *c, double seconds);
/* One verb; takes the reference of `request` (may be NULL: no arguments). The
 * answer goes to *answer (a new reference; NULL when not wanted). After VC_CRASH
 * and VC_TIMEOUT the process is gone. */
vc_outcome vc_child_call(vc_child *c, const char *verb, json_t *request, double seconds, json_t **answer);
void vc_child_stop(vc_child *c);  /* kills; the folder stays */
void vc_child_free(vc_child *c);  /* and removes the folder */
const char *vc_outcome_text(vc_outcome o);

#endif
