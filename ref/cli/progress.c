/* ref/cli/progress.c: a bar with the time left on a terminal, and Ctrl-C.
 *
 * The flag below is the tool's only mutable global: a signal handler is given
 * no context. Nothing is drawn when stderr is not a terminal.
 *
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WIDTH 32 /* of the bar */

static volatile sig_atomic_t interrupted;

static void note_interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

void cli_interrupt_catch(void)
{
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = note_interrupt;
    sa.sa_flags = SA_RESTART | (int)SA_RESETHAND; /* a second one is obeyed at once */
    sigemptyset(&sa.sa_mask);
    static const int signals[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        struct sigaction old;
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_IGN)
            continue; /* started in the background: stays deaf to Ctrl-C */
        sigaction(signals[i], &sa, NULL);
    }
}

bool cli_interrupted(void)
{
    return interrupted != 0;
}

double cli_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void cli_progress_start(cli_progress *p, bool quiet)
{
    p->show = !quiet && isatty(STDERR_FILENO);
    p->drawn = false;
    p->start = p->last = cli_now();
}

static void time_text(double s, char *buf, size_t size)
{
    long t = (long)(s + 0.5);
    if (t < 60)
        snprintf(buf, size, "%ld s left", t);
    else if (t < 3600)
        snprintf(buf, size, "%ld min %02ld s left", t / 60, t % 60);
    else
        snprintf(buf, size, "%ld h %02ld min left", t / 3600, t / 60 % 60);
}

bool cli_progress_update(cli_progress *p, int64_t done, int64_t total)
{
    if (interrupted)
        return false;
    double now = cli_now();
    if (!p->show || total <= 0 || now - p->last < 0.1)
        return true;
    p->last = now;
    double part = (double)done / (double)total;
    int full = (int)(part * WIDTH);
    char bar[WIDTH + 1], left[40] = "";
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < full ? '#' : '.';
    bar[WIDTH] = '\0';
    if (part > 0.01) /* before that an estimate is a guess */
        time_text((now - p->start) * (1 - part) / part, left, sizeof left);
    fprintf(stderr, "\r[%s] %3d %%  %s\033[K", bar, (int)(part * 100), left);
    fflush(stderr);
    p->drawn = true;
    return true;
}

void cli_progress_end(cli_progress *p)
{
    if (p && p->drawn)
        fputs("\r\033[K", stderr);
    if (p)
        p->drawn = false;
}
