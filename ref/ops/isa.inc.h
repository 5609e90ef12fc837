/* Names and tile sizes of the instruction set this unit is compiled for.
 * VR_ISA is one of portable, v2, v3, v4 (set by ref/ops/CMakeLists.txt).
 *
 * SPDX-License-Identifier: MIT */
#define VR_CAT2(a, b) a##_##b
#define VR_CAT(a, b) VR_CAT2(a, b)
#define VR_NAME(f) VR_CAT(f, VR_ISA)

/* MR x NV accumulators plus NV inputs plus one broadcast fill the register file
 * (32 registers of 64 bytes; 16 otherwise). */
#if VR_VEC_BYTES == 64
#define MR 6
#define NV 4
#elif VR_VEC_BYTES == 32
#define MR 6
#define NV 2
#else
#define MR 4
#define NV 2
#endif
