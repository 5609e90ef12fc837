/* A user's own model file and latents as a suite (--model, --latents).
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_OWN_MODEL_H
#define VAEPROOF_OWN_MODEL_H

#include "runner/options.h"
#include "vaeref/core.h"

/* One decode case for each latent tensor and contract. */
vr_status vc_own_model_suite(const vc_options *o, vc_suite *out, vr_error *err);
/* The latents a case of such a suite is about, or NULL. */
const vr_tensor *vc_own_latents(const vc_case *c);
/* How its file is to be opened, or NULL. */
const struct vr_model_options *vc_own_options(const vc_case *c);
void vc_own_model_free(void);

#endif
