/* What backends built on the reference's types share (ref, mutants, onednn, hip): the
 * plug-in's program as a vr_program, tensors across the boundary, options, codes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef VAEPROOF_BACKEND_COMMON_H
#define VAEPROOF_BACKEND_COMMON_H

#include "vaeproof/backend.h"
#include "vaeref/program.h"
#include "vaeref/tile.h"

/* Weights are borrowed. Owned by the caller (vr_program_free). VR_E_UNSUPPORTED for a kind it does not
 * know, VR_E_ARGUMENT for a program that makes no sense. */
vr_status vp_program_of(const vp_program *p, vr_program **out, vr_error *err);
/* VR_F32 of VP_F32; false: none. */
bool vp_dtype_of(uint32_t dtype, vr_dtype *out);

/* A value given by the host as a dense tensor of the same type, [n][c][h][w] or
 * [n][c][t][h][w]; owned by the caller (vr_tensor_free). */
vr_status vp_take_in(const vp_tensor *t, vr_tensor *out, vr_error *err);
/* A dense tensor into the host's, converted and strided as it asks. */
vr_status vp_give_out(const vp_host *host, const vr_tensor *from, vp_tensor *t, vr_error *err);

/* The tiles of a plan, as many as there is room for; *count: all of them. */
void vp_fill_plan(const vr_tile_plan *p, vp_tile *tiles, uint32_t room, uint32_t *count);
int32_t vp_code_of(vr_status s);
/* Value of "name=" in a comma-separated list. */
bool vp_option(const char *list, const char *name, char *value, size_t size);

#endif
