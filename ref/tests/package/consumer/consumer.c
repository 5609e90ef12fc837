/* The smallest program that uses an installed vaeproof: prints a status text.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <vaeref/core.h>

int main(void)
{
    printf("status %d: %s\n", (int)VR_E_SHAPE, vr_status_text(VR_E_SHAPE));
    return 0;
}
