/* From the plug-in's program to the reference's, for backends that walk vr_program
 * (ref, mutants, hip). Weights are borrowed.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_PROGRAM_OF_H
#define VAEPROOF_PROGRAM_OF_H

#include "vaeproof/backend.h"
#include "vaeref/program.h"

/* Owned by the caller (vr_program_free). VR_E_UNSUPPORTED for a kind it does not
 * know, VR_E_ARGUMENT for a program that makes no sense. */
vr_status vp_program_of(const vp_program *p, vr_program **out, vr_error *err);
/* VR_F32 of VP_F32; false: none. */
bool vp_dtype_of(uint32_t dtype, vr_dtype *out);

#endif
