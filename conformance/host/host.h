/* What vaehost holds. SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_HOST_H
#define VAEPROOF_HOST_H

#include "vaeproof/backend.h"
#include "wire/wire.h"

typedef struct host_state {
    const char *dir;
    void *library;
    vp_backend backend;
    vp_device *device;
    vp_job *job;
    wire_program_copy program;
    void *weights;
    uint64_t weight_bytes;
    int64_t allocations, live; /* of vp_host.alloc */
    int64_t fail_at, fail_count;
    int32_t cancel;
} host_state;

/* Loads a library and checks its table; text says what is wrong. */
bool host_load(host_state *h, const char *library, char *text, size_t size);
/* Answers one request; a new reference, and the frame's kind. */
json_t *host_answer(host_state *h, json_t *request, char *kind);
void host_drop_job(host_state *h);

#endif
