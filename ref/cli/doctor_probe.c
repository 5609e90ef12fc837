/* ref/cli/doctor_probe.c: looking at the machine without changing it.
 * SPDX-License-Identifier: MIT */
#include "cli.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Value of the first "key...: value" line of a /proc file. */
static bool proc_value(const char *file, const char *key, char *buf, size_t size)
{
    FILE *f = fopen(file, "r");
    char line[512];
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)))
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(buf, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        found = true;
    }
    if (f)
        fclose(f);
    return found;
}

bool cli_probe_cpu(char *buf, size_t size)
{
    struct utsname u;
    char name[200] = "unnamed CPU";
    proc_value("/proc/cpuinfo", "model name", name, sizeof name);
    snprintf(buf, size, "%s (%s)", name, uname(&u) ? "?" : u.machine);
    return true;
}

bool cli_probe_cores(char *buf, size_t size)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof set, &set))
        snprintf(buf, size, "%ld online", online);
    else
        snprintf(buf, size, "%ld online, %d usable by this process", online, CPU_COUNT(&set));
    return true;
}

bool cli_probe_memory(char *buf, size_t size)
{
    char total[80] = "", free_now[80] = "", a[40], b[40], limit[80] = "";
    if (!proc_value("/proc/meminfo", "MemTotal", total, sizeof total) ||
        !proc_value("/proc/meminfo", "MemAvailable", free_now, sizeof free_now)) {
        snprintf(buf, size, "/proc/meminfo cannot be read");
        return false;
    }
    FILE *f = fopen("/sys/fs/cgroup/memory.max", "r"); /* a container's limit */
    char line[80];
    if (f && fgets(line, sizeof line, f) && line[0] >= '0' && line[0] <= '9')
        snprintf(limit, sizeof limit, ", limited to %s",
                 cli_bytes_text(strtoull(line, NULL, 10), a, sizeof a));
    if (f)
        fclose(f);
    snprintf(buf, size, "%s, %s available%s",
             cli_bytes_text(strtoull(total, NULL, 10) << 10, a, sizeof a),
             cli_bytes_text(strtoull(free_now, NULL, 10) << 10, b, sizeof b), limit);
    return true;
}

void cli_probe_isas(char *buf, size_t size)
{
    bool v2 = false, v3 = false, v4 = false;
#if defined(__x86_64__)
    __builtin_cpu_init();
    v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
    v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#endif
    snprintf(buf, size, "portable%s%s%s", v2 ? ", x86-64-v2" : "", v3 ? ", x86-64-v3" : "",
             v4 ? ", x86-64-v4" : "");
}

bool cli_probe_tool(const char *name, char *buf, size_t size)
{
    const char *at = getenv("PATH");
    if (!at)
        at = "/usr/local/bin:/usr/bin:/bin";
    while (*at) {
        size_t n = strcspn(at, ":");
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%.*s/%s", (int)n, at, name);
        if (n && !access(path, X_OK)) {
            snprintf(buf, size, "%s", path);
            return true;
        }
        at += n + (at[n] == ':');
    }
    buf[0] = '\0';
    return false;
}

static bool library_in(const char *dir, size_t n, const char *stem, char *buf, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s", (int)n, dir);
    DIR *d = opendir(path);
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));)
        if (!strncmp(e->d_name, stem, strlen(stem))) {
            snprintf(buf, size, "%s/%s", path, e->d_name);
            found = true;
        }
    if (d)
        closedir(d);
    return found;
}

bool cli_probe_library(const char *stem, char *buf, size_t size)
{
    static const char *const usual[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                        "/opt/rocm/lib", "/usr/local/lib", "/usr/lib64",
                                        "/usr/lib"};
    const char *at = getenv("LD_LIBRARY_PATH");
    while (at && *at) {
        size_t n = strcspn(at, ":");
        if (n && library_in(at, n, stem, buf, size))
            return true;
        at += n + (at[n] == ':');
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (library_in(usual[i], strlen(usual[i]), stem, buf, size))
            return true;
    buf[0] = '\0';
    return false;
}

/* Debian's torch belongs to Debian's python3, whatever else is first in PATH. */
bool cli_probe_torch(char *buf, size_t size)
{
    char python[PATH_MAX] = "/usr/bin/python3";
    if (access(python, X_OK) && !cli_probe_tool("python3", python, sizeof python)) {
        snprintf(buf, size, "no python3");
        return false;
    }
    char code[] = "import importlib.util,sys;sys.exit(importlib.util.find_spec('torch') is None)";
    char dash_c[] = "-c";
    char *const argv[] = {python, dash_c, code, NULL};
    pid_t pid;
    int status = 1;
    if (posix_spawn(&pid, python, NULL, NULL, argv, environ) || waitpid(pid, &status, 0) != pid ||
        status != 0) {
        snprintf(buf, size, "%s has no torch", python);
        return false;
    }
    snprintf(buf, size, "in %s", python);
    return true;
}

bool cli_probe_kfd(char *buf, size_t size)
{
    if (access("/dev/kfd", F_OK)) {
        snprintf(buf, size, "no AMD GPU compute device; it needs such a GPU and the amdgpu driver");
        return false;
    }
    if (access("/dev/kfd", R_OK | W_OK)) {
        snprintf(buf, size, "no access; adduser your-name render, then log in again");
        return false;
    }
    snprintf(buf, size, "/dev/kfd");
    return true;
}
