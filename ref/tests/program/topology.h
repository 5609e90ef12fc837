/* Decoder topologies for tests of programs: shapes only, no numbers.
 *
 * Every weight points at one small static buffer that nobody reads. The
 * layers are those of the published decoders, so parameter and work counts
 * must come out as theirs.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEREF_TESTS_TOPOLOGY_H
#define VAEREF_TESTS_TOPOLOGY_H

#include "vaeref/program.h"

extern const float topology_data[1];

/* Weights [co][ci][kh][kw] and [c] named "<name>" and their operations. */
int32_t topo_weight4(vr_program *p, const char *name, int64_t co, int64_t ci, int64_t kh,
                     int64_t kw);
int32_t topo_weight1(vr_program *p, const char *name, int64_t c);
/* conv with weight "<tap>.weight", bias "<tap>.bias" unless !bias, k odd, same extent */
int32_t topo_conv(vr_program *p, const char *tap, int32_t x, int64_t co, int64_t k, bool bias);
int32_t topo_norm(vr_program *p, const char *tap, int32_t x, int64_t groups);

typedef struct topo_kl {
    int64_t latent_channels;
    bool post_quant_conv;
    bool shortcut_first; /* emit the 1x1 shortcut before the block's first norm */
} topo_kl;

/* AutoencoderKL decoder: 512,512,256,128 channels, 3 residual blocks a level,
 * one attention; finished. NULL on failure. */
vr_program *topo_kl_decoder(topo_kl o, vr_error *err);

/* Tiny decoder (64 channels, no norm, no attention); finished. */
vr_program *topo_tiny_decoder(int64_t latent_channels, vr_error *err);

#endif
