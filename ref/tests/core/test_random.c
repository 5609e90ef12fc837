/* Counter-based random numbers (clause N3): published answers of Philox, the
 * documented formulas recomputed from it, and independence of chunking.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "vaeref/core.h"

TestSuite(random);

Test(random, philox_gives_the_published_answers)
{
    const struct {
        uint32_t counter[4], key[2], want[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t out[4], in_place[4];
        vr_philox4x32(known[i].counter, known[i].key, out);
        cr_assert(memcmp(out, known[i].want, 16) == 0, "vector %zu: %08x %08x %08x %08x", i, out[0],
                  out[1], out[2], out[3]);
        memcpy(in_place, known[i].counter, 16);
        vr_philox4x32(in_place, known[i].key, in_place);
        cr_assert(memcmp(in_place, out, 16) == 0, "vector %zu in place", i);
    }
}

/* Seeds, streams and indices whose high halves matter. */
static const uint64_t places[][3] = {{0, 0, 0},
                                     {1, 2, 3},
                                     {0x0123456789abcdefu, 0xfedcba9876543210u, 5},
                                     {7, 0x100000000u, 0x3fffffffdu},
                                     {0x8000000000000000u, 1, 0x7fffffff00000001u}};
enum { PLACES = sizeof places / sizeof places[0] };

static void block_of(const uint64_t p[3], uint64_t b, uint32_t tag, uint32_t out[4])
{
    const uint32_t counter[4] = {(uint32_t)b, (uint32_t)(b >> 32), (uint32_t)p[1],
                                 (uint32_t)(p[1] >> 32)};
    const uint32_t key[2] = {(uint32_t)p[0], (uint32_t)(p[0] >> 32) ^ tag};
    vr_philox4x32(counter, key, out);
}

Test(random, values_follow_the_documented_formulas)
{
    for (int i = 0; i < PLACES; i++)
        for (uint64_t k = 0; k < 9; k++) {
            const uint64_t index = places[i][2] + k;
            uint32_t w[4], v[4];
            block_of(places[i], index / 4, 0, w);
            const uint32_t word = w[index % 4];
            cr_assert(vr_random_u32(places[i][0], places[i][1], index) == word, "place %d + %d", i,
                      (int)k);
            const double u = (2.0 * (word >> 9) + 1.0) / 16777216.0;
            cr_assert((double)vr_random_uniform(places[i][0], places[i][1], index) == u,
                      "place %d + %d", i, (int)k);
            block_of(places[i], 2 * index, 0x4e4f524d, w);
            block_of(places[i], 2 * index + 1, 0x4e4f524d, v);
            const uint32_t six[6] = {w[0], w[1], w[2], w[3], v[0], v[1]};
            double sum = 0;
            for (int j = 0; j < 6; j++)
                sum += (six[j] & 0xffff) + (six[j] >> 16);
            cr_assert((double)vr_random_normal(places[i][0], places[i][1], index) ==
                          (sum - 393210) / 65536,
                      "place %d + %d", i, (int)k);
        }
}

Test(random, fill_equals_element_by_element)
{
    float buf[70];
    for (int i = 0; i < PLACES; i++)
        for (int d = VR_UNIFORM; d <= VR_NORMAL; d++)
            for (uint64_t start = 0; start < 6; start++)
                for (int n = 0; n < 67; n++) {
                    const uint64_t first = places[i][2] + start;
                    for (int k = 0; k < 70; k++)
                        buf[k] = -99.0f;
                    vr_random_fill(buf + 1, n, (vr_distribution)d, places[i][0], places[i][1],
                                   first);
                    for (int k = 0; k < n; k++) {
                        const uint64_t at = first + (uint64_t)k;
                        const float want = d == VR_UNIFORM
                                               ? vr_random_uniform(places[i][0], places[i][1], at)
                                               : vr_random_normal(places[i][0], places[i][1], at);
                        cr_assert(buf[1 + k] == want, "place %d kind %d start %d element %d of %d",
                                  i, d, (int)start, k, n);
                    }
                    cr_assert(buf[0] == -99.0f && buf[1 + n] == -99.0f, "wrote outside %d elements",
                              n);
                }
}

Test(random, moments_are_those_of_the_distributions)
{
    const double N = 200000;
    for (uint64_t seed = 0; seed < 3; seed++) {
        double su = 0, su2 = 0, sn = 0, sn2 = 0, lag = 0, last = 0;
        for (uint64_t i = 0; i < (uint64_t)N; i++) {
            const double u = (double)vr_random_uniform(seed, 9, i),
                         x = (double)vr_random_normal(seed, 9, i);
            cr_assert(u > 0 && u < 1, "uniform %a", u);
            cr_assert(x > -6 && x < 6, "normal %a", x);
            su += u;
            su2 += u * u;
            sn += x;
            sn2 += x * x;
            lag += x * last;
            last = x;
        }
        /* Five standard errors of each. */
        const double m = su / N, v = su2 / N - m * m, root = sqrt(N);
        cr_assert(fabs(m - 0.5) < 5 * 0.2887 / root, "uniform mean %f", m);
        cr_assert(fabs(v - 1.0 / 12) < 5 * 0.0745 / root, "uniform variance %f", v);
        cr_assert(fabs(sn / N) < 5 / root, "normal mean %f", sn / N);
        cr_assert(fabs(sn2 / N - 1) < 5 * 1.4142 / root, "normal variance %f", sn2 / N);
        cr_assert(fabs(lag / N) < 5 / root, "correlation of neighbours %f", lag / N);
    }
}

Test(random, seeds_streams_and_kinds_differ)
{
    const uint64_t keys[][2] = {
        {1, 0}, {0, 1}, {0x100000000u, 0}, {0, 0x100000000u}, {0, 0}, {0x4e4f524d00000000u, 0}};
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < a; b++) {
            int equal = 0;
            for (uint64_t i = 0; i < 64; i++)
                equal += vr_random_u32(keys[a][0], keys[a][1], i) ==
                         vr_random_u32(keys[b][0], keys[b][1], i);
            cr_assert(equal == 0, "keys %d and %d share %d of 64 words", a, b, equal);
        }
}
