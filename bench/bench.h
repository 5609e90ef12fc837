/* What the files of bench/ share. SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_BENCH_H
#define VAEPROOF_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "vaeref/core.h"

/* Monotonic seconds. */
double vb_now(void);
/* Makes a computed value observable, so that computing it cannot be dropped. */
void vb_keep(double v);

/* Floating-point operations of `steps` rounds of the register-only loop. */
double vb_peak_portable(int64_t steps);
double vb_peak_v3(int64_t steps);
double vb_peak_v4(int64_t steps);

/* f64 multiply-add peak of this machine, GFLOP/s, over `threads` threads at
 * once, from the widest vectors it has: one measurement of about 20 ms. */
double vb_measure_peak(int32_t threads);

struct argp_state;
/* A whole number from 1 to `most`, or a usage error. */
int vb_number(struct argp_state *state, const char *text, long most);

/* Sub-commands; each returns the exit code (0, 1 failure, 2 usage). */
int vb_ops(int argc, char **argv);
int vb_decode(int argc, char **argv);
int vb_tiling(int argc, char **argv);

#endif
