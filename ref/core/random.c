/* Counter-based random numbers (clause N3): Philox 4x32-10 of Salmon, Moraes,
 * Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 *
 * SPDX-License-Identifier: MIT */
#include "vaeref/core.h"

#include <string.h>

enum { NORMAL_TAG = 0x4e4f524d };

static inline void philox(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b,
                            (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a};
        memcpy(c, next, sizeof next);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

void vr_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    philox(c, key[0], key[1]);
    memcpy(out, c, sizeof c);
}

static inline void block(uint64_t seed, uint32_t tag, uint64_t stream, uint64_t b, uint32_t out[4])
{
    out[0] = (uint32_t)b;
    out[1] = (uint32_t)(b >> 32);
    out[2] = (uint32_t)stream;
    out[3] = (uint32_t)(stream >> 32);
    philox(out, (uint32_t)seed, (uint32_t)(seed >> 32) ^ tag);
}

static inline float uniform_of(uint32_t word)
{
    return (float)((word >> 9) * 2u + 1u) * 0x1p-24f;
}

static inline float normal_of(const uint32_t low[4], const uint32_t high[4])
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (low[i] & 0xffffu) + (low[i] >> 16);
    for (int i = 0; i < 2; i++)
        sum += (high[i] & 0xffffu) + (high[i] >> 16);
    return (float)((int32_t)sum - 393210) * 0x1p-16f;
}

uint32_t vr_random_u32(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t w[4];
    block(seed, 0, stream, index / 4, w);
    return w[index % 4];
}

float vr_random_uniform(uint64_t seed, uint64_t stream, uint64_t index)
{
    return uniform_of(vr_random_u32(seed, stream, index));
}

float vr_random_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t low[4], high[4];
    block(seed, NORMAL_TAG, stream, 2 * index, low);
    block(seed, NORMAL_TAG, stream, 2 * index + 1, high);
    return normal_of(low, high);
}

void vr_random_fill(float *dst, int64_t n, vr_distribution d, uint64_t seed, uint64_t stream,
                    uint64_t first)
{
    int64_t i = 0;
    if (d == VR_NORMAL) {
        for (; i < n; i++)
            dst[i] = vr_random_normal(seed, stream, first + (uint64_t)i);
        return;
    }
    for (; i < n && (first + (uint64_t)i) % 4 != 0; i++)
        dst[i] = vr_random_uniform(seed, stream, first + (uint64_t)i);
    for (; i + 4 <= n; i += 4) {
        uint32_t w[4];
        block(seed, 0, stream, (first + (uint64_t)i) / 4, w);
        for (int j = 0; j < 4; j++)
            dst[i + j] = uniform_of(w[j]);
    }
    for (; i < n; i++)
        dst[i] = vr_random_uniform(seed, stream, first + (uint64_t)i);
}

uint64_t vr_random_stream(const char *name)
{
    vr_sha256 s;
    uint8_t digest[32];
    vr_sha256_init(&s);
    vr_sha256_update(&s, name, strlen(name));
    vr_sha256_final(&s, digest);
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | digest[i];
    return v;
}
