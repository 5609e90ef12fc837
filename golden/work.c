/* golden/work.c: many cases on all cores, with one progress bar.
 *
 * One case per thread, the dearest first, so that no core waits long for the
 * last; with fewer cases than threads each gets several. How cases meet threads
 * changes no bit (clause N7.1).
 *
 * SPDX-License-Identifier: MIT */
#include "golden.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct pool {
    vg_job *job;
    int64_t *order;          /* job numbers, dearest first */
    int64_t count, next;     /* guarded by lock, as all below */
    int32_t threads;         /* of each decode */
    vg_done *done;
    void *ctx;
    vr_status status;
    vr_error *err;
    bool stop;
    double total, finished, *part; /* multiply-adds; part: of job i, so far */
    cli_progress bar;
    pthread_mutex_t lock;
} pool;

typedef struct unit {
    pool *p;
    int64_t i;
} unit;

static bool on_progress(void *ctx, int64_t done, int64_t total)
{
    unit *u = ctx;
    pool *p = u->p;
    pthread_mutex_lock(&p->lock);
    const double now = (double)p->job[u->i].cost * ((double)done / (double)total);
    p->finished += now - p->part[u->i];
    p->part[u->i] = now;
    if (!cli_progress_update(&p->bar, (int64_t)(1e6 * p->finished / p->total), 1000000))
        p->stop = true; /* interrupted */
    const bool go = !p->stop;
    pthread_mutex_unlock(&p->lock);
    return go;
}

static void *worker(void *arg)
{
    pool *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stop && p->next < p->count) {
        unit u = {p, p->order[p->next++]};
        vr_error e = {VR_OK, ""};
        pthread_mutex_unlock(&p->lock);
        const vr_status s = vg_job_run(&p->job[u.i], p->threads, on_progress, &u, &e);
        pthread_mutex_lock(&p->lock);
        if (s == VR_E_CANCELLED || p->stop)
            break;
        p->status = p->done(p->ctx, u.i, s, &e, p->err);
        p->stop = p->status != VR_OK;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static vr_status prepare(pool *p)
{
    p->order = malloc((size_t)p->count * sizeof *p->order);
    p->part = calloc((size_t)p->count, sizeof *p->part);
    if (!p->order || !p->part)
        return vr_fail(p->err, VR_E_NOMEM, "out of memory for a list of cases");
    for (int64_t i = 0; i < p->count; i++) { /* sorted by insertion */
        int64_t at = i;
        for (; at > 0 && p->job[p->order[at - 1]].cost < p->job[i].cost; at--)
            p->order[at] = p->order[at - 1];
        p->order[at] = i;
        p->total += (double)p->job[i].cost;
    }
    return VR_OK;
}

vr_status vg_work(vg_job *job, int64_t count, int32_t jobs, vg_done *done, void *ctx, vr_error *err)
{
    pool p = {.job = job, .count = count, .done = done, .ctx = ctx, .err = err};
    pthread_t thread[VG_MAX_JOBS];
    if (count == 0)
        return VR_OK;
    int32_t n = jobs < count ? jobs : (int32_t)count, started = 0;
    p.threads = jobs / n;
    vr_status s = prepare(&p);
    if (!s) {
        pthread_mutex_init(&p.lock, NULL);
        cli_interrupt_catch();
        cli_progress_start(&p.bar, false);
        for (; started < n - 1; started++)
            if (pthread_create(&thread[started], NULL, worker, &p))
                break; /* fewer threads do the same work */
        worker(&p);
        for (int32_t i = 0; i < started; i++)
            pthread_join(thread[i], NULL);
        cli_progress_end(&p.bar);
        pthread_mutex_destroy(&p.lock);
        s = p.status ? p.status : cli_interrupted() ? VR_E_CANCELLED : VR_OK;
    }
    free(p.order);
    free(p.part);
    return s;
}

int32_t vg_default_jobs(void)
{
    const int n = omp_get_max_threads(); /* OMP_NUM_THREADS, or the CPUs this process may use */
    return n < 1 ? 1 : n > VG_MAX_JOBS ? VG_MAX_JOBS : n;
}
