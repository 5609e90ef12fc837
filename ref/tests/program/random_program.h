/* Random small programs with long-lived values, skips, forks and lopsided
 * kernels, for property tests. The same seed gives the same program.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_TESTS_RANDOM_PROGRAM_H
#define VAEREF_TESTS_RANDOM_PROGRAM_H

#include "vaeref/program.h"

/* Finished program of about 5 to 30 operations; NULL with *err on failure. */
vr_program *random_program(uint64_t seed, vr_error *err);

#endif
