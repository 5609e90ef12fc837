/* Small decoders with seeded weights for the executor's tests.
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_EXEC_NETS_H
#define TESTS_EXEC_NETS_H

#include "vaeref/exec.h"
#include "vaeref/program.h"

typedef struct test_net {
    vr_program *program;
    float *weights;
    vr_tensor latent; /* [n][channels][h][w], F32 */
} test_net;

/* conv_in, residual block with group norm and SiLU, attention, upsample x2,
 * conv, tanh-clamp branch, add, relu, clamp, conv_out: every image operation
 * but unpack and scale_shift. */
test_net test_net_make(uint64_t seed, int64_t n, int64_t h, int64_t w);
void test_net_free(test_net *t);

/* SHA-256 of a run's output, hex; empty string on failure. */
void test_net_digest(const test_net *t, const vr_exec_options *opt, char hex[65]);

#endif
