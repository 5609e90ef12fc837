/* The counting memory pool: what it counts, reuses, refuses, and that it may be
 * used from many threads.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "vaeref/core.h"

TestSuite(pool);

static vr_pool *pool_of(uint64_t limit)
{
    vr_pool *p = NULL;
    cr_assert(vr_pool_create(limit, &p, NULL) == VR_OK && p);
    return p;
}

static void *take(vr_pool *p, uint64_t bytes)
{
    void *b = NULL;
    cr_assert(vr_pool_alloc(p, bytes, &b, NULL) == VR_OK && b, "%llu bytes",
              (unsigned long long)bytes);
    cr_assert((uintptr_t)b % 64 == 0, "a block of %llu bytes is not aligned",
              (unsigned long long)bytes);
    memset(b, 0x5a, bytes);
    return b;
}

static vr_pool_stats stats_of(const vr_pool *p)
{
    vr_pool_stats s;
    vr_pool_get_stats(p, &s);
    return s;
}

Test(pool, counts_requested_bytes_and_the_peak)
{
    vr_pool *p = pool_of(0);
    vr_pool_stats s = stats_of(p);
    cr_assert(s.allocations == 0 && s.live_bytes == 0 && s.peak_bytes == 0 && s.held_bytes == 0);
    void *a = take(p, 1000), *b = take(p, 1);
    s = stats_of(p);
    cr_assert(s.allocations == 2 && s.hits == 0 && s.live_bytes == 1001 && s.peak_bytes == 1001);
    cr_assert(s.held_bytes == 1024 + 64 && s.peak_held_bytes == 1088, "held %llu",
              (unsigned long long)s.held_bytes);
    vr_pool_free(p, a);
    s = stats_of(p);
    cr_assert(s.live_bytes == 1 && s.peak_bytes == 1001 && s.held_bytes == 1088);
    vr_pool_free(p, b);
    vr_pool_trim(p);
    s = stats_of(p);
    cr_assert(s.live_bytes == 0 && s.peak_bytes == 1001 && s.held_bytes == 0 &&
              s.peak_held_bytes == 1088);
    vr_pool_free(p, NULL);
    vr_pool_destroy(p);
    vr_pool_destroy(NULL);
}

Test(pool, a_returned_block_is_reused_for_its_size_class)
{
    vr_pool *p = pool_of(0);
    void *a = take(p, 4096);
    vr_pool_free(p, a);
    void *b = take(p, 4033); /* the same size class */
    cr_assert(b == a && stats_of(p).hits == 1);
    cr_assert(stats_of(p).live_bytes == 4033, "a reused block counts what was asked for");
    vr_pool_free(p, b);
    void *c = take(p, 4032); /* would waste 64 bytes, which nothing would count */
    cr_assert(stats_of(p).hits == 1 && stats_of(p).allocations == 3);
    void *d = take(p, 4097); /* does not fit */
    cr_assert(stats_of(p).hits == 1);
    vr_pool_free(p, c);
    vr_pool_free(p, d);
    vr_pool_destroy(p);
}

Test(pool, the_fitting_block_is_found_among_several)
{
    vr_pool *p = pool_of(0);
    void *big = take(p, 12288), *fits = take(p, 10240), *small = take(p, 9216);
    vr_pool_free(p, fits);
    vr_pool_free(p, small);
    vr_pool_free(p, big);
    cr_assert(take(p, 10230) == fits);
    vr_pool_destroy(p); /* the live block goes with it: a leak would be reported */
}

Test(pool, held_passes_the_peak_by_rounding_only)
{
    vr_pool *p = pool_of(0);
    void *block[16] = {0};
    for (uint64_t i = 0; i < 4000; i++) {
        const uint32_t r = vr_random_u32(3, 0, i), k = r % 16;
        vr_pool_free(p, block[k]);
        block[k] = r & 0x10000 ? take(p, (r >> 17) % 32 * 613) : NULL;
        const vr_pool_stats s = stats_of(p);
        cr_assert(s.held_bytes <= s.peak_bytes + 64 * 16, "step %d: held %llu, peak %llu", (int)i,
                  (unsigned long long)s.held_bytes, (unsigned long long)s.peak_bytes);
        cr_assert(s.peak_held_bytes >= s.held_bytes && s.live_bytes <= s.peak_bytes &&
                  s.held_bytes >= s.live_bytes);
    }
    cr_assert(stats_of(p).hits > 100, "only %d hits", (int)stats_of(p).hits);
    vr_pool_destroy(p);
}

Test(pool, the_limit_is_exact_and_the_refusal_says_why)
{
    vr_pool *p = pool_of(1000);
    void *a = take(p, 600), *b = take(p, 400), *c = &c;
    vr_pool_free(p, b);
    vr_error err = {0};
    cr_assert(vr_pool_alloc(p, 401, &c, &err) == VR_E_BUDGET && err.status == VR_E_BUDGET);
    cr_assert(c == (void *)&c, "the output was written by a refusal");
    cr_assert(strstr(err.text, "1000") && strstr(err.text, "600 live") && strstr(err.text, "401"),
              "%s", err.text);
    cr_assert(stats_of(p).allocations == 2 && stats_of(p).live_bytes == 600);
    b = take(p, 400);
    cr_assert(vr_pool_alloc(p, 1, &c, NULL) == VR_E_BUDGET);
    void *none = take(p, 0);
    vr_pool_free(p, none);
    vr_pool_free(p, a);
    vr_pool_free(p, b);
    cr_assert(vr_pool_alloc(p, UINT64_MAX, &c, &err) == VR_E_NOMEM);
    vr_pool_destroy(p);
    p = pool_of(0);
    cr_assert(vr_pool_alloc(p, UINT64_MAX - 63, &c, &err) == VR_E_NOMEM && err.text[0]);
    cr_assert(!strstr(err.text, "limit of 0"), "names a limit that was never set: %s", err.text);
    cr_assert(stats_of(p).held_bytes == 0 && stats_of(p).allocations == 0);
    vr_pool_destroy(p);
}

Test(pool, nothing_is_a_block_of_its_own)
{
    vr_pool *p = pool_of(0);
    void *a = take(p, 0), *b = take(p, 0);
    cr_assert(a != b && stats_of(p).live_bytes == 0 && stats_of(p).allocations == 2);
    vr_pool_free(p, a);
    vr_pool_free(p, b);
    vr_pool_destroy(p);
}

Test(pool, the_chosen_allocation_fails_once)
{
    for (uint64_t n = 1; n < 6; n++) {
        vr_pool *p = pool_of(0);
        void *b;
        vr_pool_fail_at(p, n);
        for (uint64_t i = 1; i < 10; i++) {
            vr_error err = {0};
            const vr_status s = vr_pool_alloc(p, 100, &b, &err);
            cr_assert(s == (i == n ? VR_E_NOMEM : VR_OK), "call %d of fail_at %d gives %d", (int)i,
                      (int)n, (int)s);
            cr_assert((err.text[0] != '\0') == (i == n));
        }
        cr_assert(stats_of(p).allocations == 8);
        vr_pool_fail_at(p, 1);
        vr_pool_fail_at(p, 0); /* takes it back */
        cr_assert(vr_pool_alloc(p, 100, &b, NULL) == VR_OK);
        vr_pool_destroy(p);
    }
}

Test(pool, many_threads_never_share_a_block_or_lose_a_count)
{
    vr_pool *p = pool_of(0);
    enum { THREADS = 8, ROUNDS = 3000 };
    int wrong = 0;
#pragma omp parallel for num_threads(THREADS) schedule(static, 1) reduction(+ : wrong)
    for (int t = 0; t < THREADS; t++) {
        unsigned char *mine[4] = {0};
        uint64_t size[4] = {0};
        for (int i = 0; i < ROUNDS; i++) {
            const uint32_t r = vr_random_u32(5, (uint64_t)t, (uint64_t)i), k = r % 4;
            for (uint64_t j = 0; mine[k] && j < size[k]; j++)
                wrong += mine[k][j] != (unsigned char)(t + 1);
            vr_pool_free(p, mine[k]);
            void *b = NULL;
            size[k] = 1 + (r >> 8) % 700;
            wrong += vr_pool_alloc(p, size[k], &b, NULL) != VR_OK;
            mine[k] = b;
            if (b)
                memset(b, t + 1, size[k]);
        }
        for (int k = 0; k < 4; k++)
            vr_pool_free(p, mine[k]);
    }
    const vr_pool_stats s = stats_of(p);
    cr_assert(wrong == 0, "%d bytes or calls went wrong", wrong);
    cr_assert(s.allocations == THREADS * ROUNDS && s.live_bytes == 0 && s.hits > 0);
    cr_assert(s.peak_bytes <= THREADS * 4 * 700);
    vr_pool_trim(p);
    cr_assert(stats_of(p).held_bytes == 0);
    vr_pool_destroy(p);
}
