/* Prints the SHA-256 of 100 000 results of each function of clause N5, one name
 * and digest a line. Built several ways by detmath_bits.sh.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/detmath.h"
#include "vaeref/core.h"

enum { COUNT = 100000 };

/* Half the arguments are evenly spaced, half have any exponent. NaN never occurs. */
static void arguments(double *x)
{
    uint64_t state = 1;
    for (int i = 0; i < COUNT; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t exponent = 1 + (state >> 52) % 2045;
        const uint64_t bits = (state << 63) | exponent << 52 | (state >> 12 & 0xfffffffffffffu);
        x[i] = i % 2 ? (i - COUNT / 2) * 0.0151234567 : vr_f64_from_bits(bits);
    }
}

#define DIGEST(name)                                         \
    do {                                                     \
        char hex[65];                                        \
        uint8_t digest[32];                                  \
        for (int i = 0; i < COUNT; i++)                      \
            y[i] = vr_##name(x[i]);                          \
        for (int i = 0; i < COUNT; i++)                      \
            y[i] = y[i] == y[i] ? y[i] : 12345.0; /* N7.4 */ \
        vr_sha256 s;                                         \
        vr_sha256_init(&s);                                  \
        vr_sha256_update(&s, y, sizeof y);                   \
        vr_sha256_final(&s, digest);                         \
        vr_sha256_hex(digest, hex);                          \
        printf("%s %s\n", #name, hex);                       \
    } while (0)

int main(void)
{
    static double x[COUNT], y[COUNT];
    arguments(x);
    DIGEST(exp);
    DIGEST(sigmoid);
    DIGEST(silu);
    DIGEST(tanh);
    DIGEST(rsqrt);
    return 0;
}
