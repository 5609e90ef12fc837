/* vaecheck's command line. SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_OPTIONS_H
#define VAEPROOF_OPTIONS_H

#include "runner/suite.h"

typedef struct vc_options {
    const char *backend, *option, *cases, *pattern, *log, *report, *junit, *waivers, *mustpass;
    const char *model, *latents, *config, *arch;
    vc_profile profile;
    bool has_profile, has_seed, list, verbose, quiet, no_locate;
    uint64_t seed;
    bool level[VC_LEVELS], any_level;
    bool contract[4], any_contract; /* f32, f16, bf16, f64 */
    int shard, shards, threads;
    double timeout;
} vc_options;

/* VC_CONTINUE, or the exit code after --help or a usage error. */
enum { VC_CONTINUE = -1 };
int vc_options_parse(int argc, char **argv, vc_options *out);

#endif
