/* The counting memory pool (vaeref/core.h). A block carries a header in front
 * of it; free blocks wait in a list and are handed out again for the same size
 * rounded up to 64 bytes, so that live blocks hide no waste. One mutex: a decode allocates a few
 * hundred times, never inside a hot loop.
 *
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdlib.h>

#include "vaeref/core.h"

typedef struct pool_block {
    struct pool_block *next, *prev; /* in the live or the cached list */
    uint64_t requested, capacity;   /* bytes after the header */
    uint8_t pad[32];
} pool_block;

_Static_assert(sizeof(pool_block) == 64, "the header keeps blocks 64-byte aligned");

struct vr_pool {
    pthread_mutex_t lock;
    pool_block live, cached; /* heads of circular lists */
    vr_pool_stats stats;
    uint64_t limit, fail_in;
};

static void unlink_block(pool_block *b)
{
    b->prev->next = b->next;
    b->next->prev = b->prev;
}

static void push(pool_block *head, pool_block *b)
{
    b->next = head->next;
    b->prev = head;
    head->next->prev = b;
    head->next = b;
}

static void release(vr_pool *p, pool_block *b)
{
    unlink_block(b);
    p->stats.held_bytes -= b->capacity;
    free(b);
}

static void drain(vr_pool *p, pool_block *head)
{
    while (head->next != head)
        release(p, head->next);
}

vr_status vr_pool_create(uint64_t limit_bytes, vr_pool **out, vr_error *err)
{
    vr_pool *p = calloc(1, sizeof *p);
    if (!p)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate a memory pool");
    if (pthread_mutex_init(&p->lock, NULL) != 0) {
        free(p);
        return vr_fail(err, VR_E_NOMEM, "cannot create the lock of a memory pool");
    }
    p->live.next = p->live.prev = &p->live;
    p->cached.next = p->cached.prev = &p->cached;
    p->limit = limit_bytes;
    *out = p;
    return VR_OK;
}

void vr_pool_destroy(vr_pool *p)
{
    if (!p)
        return;
    drain(p, &p->live);
    drain(p, &p->cached);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static pool_block *cached_block(vr_pool *p, uint64_t capacity)
{
    for (pool_block *b = p->cached.next; b != &p->cached; b = b->next)
        if (b->capacity == capacity)
            return b;
    return NULL;
}

static vr_status take(vr_pool *p, uint64_t bytes, pool_block **out, vr_error *err)
{
    if (p->fail_in && --p->fail_in == 0)
        return vr_fail(err, VR_E_NOMEM, "out of memory (injected): %llu bytes", (unsigned long long)bytes);
    if (bytes > (UINT64_MAX >> 2))
        return vr_fail(err, VR_E_NOMEM, "cannot allocate %llu bytes", (unsigned long long)bytes);
    if (p->limit && bytes > p->limit - p->stats.live_bytes)
        return vr_fail(err, VR_E_BUDGET,
                       "memory limit of %llu bytes: %llu live, %llu more wanted",
                       (unsigned long long)p->limit, (unsigned long long)p->stats.live_bytes,
                       (unsigned long long)bytes);
    const uint64_t capacity = bytes ? (bytes + 63) / 64 * 64 : 64;
    pool_block *b = cached_block(p, capacity);
    if (b) {
        p->stats.hits++;
        unlink_block(b);
        *out = b;
        return VR_OK;
    }
    /* What is cached must not make the pool hold more than it ever had live. */
    uint64_t live = p->stats.live_bytes + bytes;
    uint64_t ceiling = live > p->stats.peak_bytes ? live : p->stats.peak_bytes;
    if (p->stats.held_bytes + capacity > ceiling)
        drain(p, &p->cached);
    b = aligned_alloc(64, sizeof *b + capacity);
    if (!b) {
        drain(p, &p->cached);
        b = aligned_alloc(64, sizeof *b + capacity);
    }
    if (!b)
        return vr_fail(err, VR_E_NOMEM, "cannot allocate %llu bytes", (unsigned long long)bytes);
    b->capacity = capacity;
    p->stats.held_bytes += capacity;
    *out = b;
    return VR_OK;
}

vr_status vr_pool_alloc(vr_pool *p, uint64_t bytes, void **out, vr_error *err)
{
    pool_block *b = NULL;
    pthread_mutex_lock(&p->lock);
    vr_status s = take(p, bytes, &b, err);
    if (s == VR_OK) {
        b->requested = bytes;
        push(&p->live, b);
        vr_pool_stats *t = &p->stats;
        t->allocations++;
        t->live_bytes += bytes;
        t->peak_bytes = t->live_bytes > t->peak_bytes ? t->live_bytes : t->peak_bytes;
        t->peak_held_bytes = t->held_bytes > t->peak_held_bytes ? t->held_bytes : t->peak_held_bytes;
        *out = b + 1;
    }
    pthread_mutex_unlock(&p->lock);
    return s;
}

void vr_pool_free(vr_pool *p, void *block)
{
    if (!block)
        return;
    pool_block *b = (pool_block *)block - 1;
    pthread_mutex_lock(&p->lock);
    unlink_block(b);
    p->stats.live_bytes -= b->requested;
    push(&p->cached, b);
    pthread_mutex_unlock(&p->lock);
}

void vr_pool_trim(vr_pool *p)
{
    pthread_mutex_lock(&p->lock);
    drain(p, &p->cached);
    pthread_mutex_unlock(&p->lock);
}

void vr_pool_get_stats(const vr_pool *p, vr_pool_stats *out)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&p->lock;
    pthread_mutex_lock(lock);
    *out = p->stats;
    pthread_mutex_unlock(lock);
}

void vr_pool_fail_at(vr_pool *p, uint64_t n)
{
    pthread_mutex_lock(&p->lock);
    p->fail_in = n;
    pthread_mutex_unlock(&p->lock);
}
