/* A library to preload: kills the process at its n-th change of the file system
 * (VAEGOLDEN_KILL_AT=n), just before the change or, with VAEGOLDEN_KILL_AFTER
 * set, just after it. So every state a kill can leave is tried, once each.
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Whether this change is the one. */
static int is_last(void)
{
    static long seen;
    const char *at = getenv("VAEGOLDEN_KILL_AT");
    pthread_mutex_lock(&lock);
    const int hit = at && ++seen == atol(at);
    pthread_mutex_unlock(&lock);
    return hit;
}

#define CHANGE(name, parameters, arguments)                                     \
    int name parameters;                                                        \
    int name parameters                                                         \
    {                                                                           \
        int(*real) parameters;                                                  \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                              \
        const int last = is_last(), after = getenv("VAEGOLDEN_KILL_AFTER") != NULL; \
        if (last && !after)                                                     \
            raise(SIGKILL);                                                     \
        const int result = real arguments;                                      \
        if (last)                                                               \
            raise(SIGKILL);                                                     \
        return result;                                                          \
    }

CHANGE(rename, (const char *from, const char *to), (from, to))
CHANGE(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
CHANGE(unlink, (const char *path), (path))
CHANGE(rmdir, (const char *path), (path))
CHANGE(mkdir, (const char *path, mode_t mode), (path, mode))
CHANGE(fsync, (int fd), (fd))
