/* The pool under threads of their own (no OpenMP, no Criterion), so that
 * ThreadSanitizer can watch it: blocks are never shared, counts never lost, and
 * blocks may be returned by another thread than took them.
 *
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "vaeref/core.h"

enum { THREADS = 6, ROUNDS = 2000, SLOTS = 4 };

typedef struct worker {
    pthread_t thread;
    vr_pool *pool;
    unsigned char tag;
    long faults;
    void *handed_over; /* left for the main thread to return */
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    unsigned char *mine[SLOTS] = {0};
    size_t size[SLOTS] = {0};
    for (uint64_t i = 0; i < ROUNDS; i++) {
        const uint32_t r = vr_random_u32(6, w->tag, i), k = r % SLOTS;
        for (size_t j = 0; mine[k] && j < size[k]; j++)
            w->faults += mine[k][j] != w->tag;
        vr_pool_free(w->pool, mine[k]);
        void *b = NULL;
        size[k] = 1 + (r >> 8) % 500;
        w->faults += vr_pool_alloc(w->pool, size[k], &b, NULL) != VR_OK;
        mine[k] = b;
        if (b)
            memset(b, w->tag, size[k]);
        vr_pool_stats s;
        vr_pool_get_stats(w->pool, &s);
        w->faults += s.live_bytes > s.peak_bytes || s.live_bytes > s.held_bytes;
        if (r % 97 == 0)
            vr_pool_trim(w->pool);
    }
    for (int k = 1; k < SLOTS; k++)
        vr_pool_free(w->pool, mine[k]);
    w->handed_over = mine[0];
    return NULL;
}

int main(void)
{
    vr_pool *pool;
    static worker w[THREADS];
    if (vr_pool_create(0, &pool, NULL) != VR_OK)
        return 1;
    int started = 0;
    for (; started < THREADS; started++) {
        w[started] = (worker){.pool = pool, .tag = (unsigned char)(started + 1)};
        if (pthread_create(&w[started].thread, NULL, work, &w[started]) != 0)
            break;
    }
    long faults = started == THREADS ? 0 : 1;
    for (int i = 0; i < started; i++) {
        pthread_join(w[i].thread, NULL);
        vr_pool_free(pool, w[i].handed_over);
        faults += w[i].faults;
    }
    vr_pool_trim(pool);
    vr_pool_stats s;
    vr_pool_get_stats(pool, &s);
    faults += s.allocations != (uint64_t)THREADS * ROUNDS || s.live_bytes != 0 || s.held_bytes != 0;
    printf("%d threads, %llu allocations, %llu reused, %ld faults\n", started,
           (unsigned long long)s.allocations, (unsigned long long)s.hits, faults);
    vr_pool_destroy(pool);
    return faults ? 1 : 0;
}
