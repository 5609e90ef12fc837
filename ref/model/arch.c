/* Known architectures and their published numbers (clauses M1.7, M2).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "model/internal.h"

#define KL_WIDTHS .stages = 4, .width = {512, 512, 256, 128}, .blocks = {3, 3, 3, 3}
#define TINY_WIDTHS .stages = 4, .width = {64, 64, 64, 64}, .blocks = {3, 3, 3, 1}

static const vr_arch_info infos[] = {
    {"sd15", "AutoencoderKL of Stable Diffusion 1.x and 2.x", 4, 4, 8},
    {"sdxl", "AutoencoderKL of SDXL", 4, 4, 8},
    {"sd3", "AutoencoderKL of Stable Diffusion 3", 16, 16, 8},
    {"flux1", "AutoencoderKL of FLUX.1", 16, 16, 8},
    {"flux2", "AutoencoderKL of FLUX.2, 2x2-packed and batch-normalised latents", 32, 128, 8},
    {"taesd", "TAESD, tiny autoencoder for Stable Diffusion 1.x and 2.x", 4, 4, 8},
    {"taesdxl", "TAESDXL, tiny autoencoder for SDXL", 4, 4, 8},
    {"taesd3", "TAESD3, tiny autoencoder for Stable Diffusion 3", 16, 16, 8},
    {"taef1", "TAEF1, tiny autoencoder for FLUX.1", 16, 16, 8},
    {"taef2", "TAEF2, tiny autoencoder for FLUX.2 (group-norm pool)", 32, 32, 8},
    {"taesana", "TAESANA, tiny autoencoder for Sana (32x)", 32, 32, 32},
    {NULL, NULL, 0, 0, 0},
};

/* Same order as above. */
static const vr_arch archs[] = {
    {&infos[0], VR_FAMILY_KL, true, 0.18215, 0.0, .post_quant = true, KL_WIDTHS},
    {&infos[1], VR_FAMILY_KL, true, 0.13025, 0.0, .post_quant = true, KL_WIDTHS},
    {&infos[2], VR_FAMILY_KL, true, 1.5305, 0.0609, KL_WIDTHS},
    {&infos[3], VR_FAMILY_KL, true, 0.3611, 0.1159, KL_WIDTHS},
    {&infos[4], VR_FAMILY_KL, false, 0.0, 0.0, .post_quant = true, .batch_norm = true, KL_WIDTHS},
    {&infos[5], VR_FAMILY_TINY, true, 0.18215, 0.0, TINY_WIDTHS},
    {&infos[6], VR_FAMILY_TINY, true, 0.13025, 0.0, TINY_WIDTHS},
    {&infos[7], VR_FAMILY_TINY, true, 1.5305, 0.0609, TINY_WIDTHS},
    {&infos[8], VR_FAMILY_TINY, true, 0.3611, 0.1159, TINY_WIDTHS},
    {&infos[9], VR_FAMILY_TINY, false, 0.0, 0.0, .pool = true, TINY_WIDTHS},
    {&infos[10], VR_FAMILY_TINY, false, 0.0, 0.0, .stages = 6,
     .width = {256, 128, 64, 64, 64, 64}, .blocks = {3, 3, 3, 3, 3, 1}},
};

enum { ARCH_COUNT = sizeof archs / sizeof archs[0] };
_Static_assert(sizeof infos / sizeof infos[0] == ARCH_COUNT + 1, "one row each");

const vr_arch *vr_arch_at(int i)
{
    return i >= 0 && i < ARCH_COUNT ? &archs[i] : NULL;
}

const vr_arch *vr_arch_find(const char *name)
{
    for (int i = 0; i < ARCH_COUNT; i++)
        if (strcmp(infos[i].name, name) == 0)
            return &archs[i];
    return NULL;
}

char *vr_arch_names(char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = '\0';
    for (int i = 0; i < ARCH_COUNT && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? ", " : "", infos[i].name);
    return buf;
}

const vr_arch_info *vr_arch_list(void)
{
    return infos;
}
