/* A backend in a process of its own. SPDX-License-Identifier: MIT */
#include "runner/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *vc_outcome_text(vc_outcome o)
{
    static const char *const text[] = {"answered", "refused", "crashed", "timed out"};
    return text[o];
}

/* ---- which backend -------------------------------------------------------------- */

vr_status vc_backend_find(const char *text, const char *bin_dir, vc_backend_spec *out, vr_error *err)
{
    *out = (vc_backend_spec){.text = text, .memory_bytes = (uint64_t)4 << 30};
    if (strncmp(text, "py:", 3) == 0) {
        const char *python = getenv("VAEPROOF_PYTHON"); /* a virtual environment's, for one */
        snprintf(out->program, sizeof out->program, "%s", python && *python ? python : access("/usr/bin/python3", X_OK) ? "python3" : "/usr/bin/python3");
        snprintf(out->argument, sizeof out->argument, "%s", text + 3);
        out->memory_bytes = 0; /* Python's libraries reserve far more than they use */
    } else {
        snprintf(out->program, sizeof out->program, "%s/vaehost", bin_dir);
        if (strchr(text, '/') || strstr(text, ".so"))
            snprintf(out->argument, sizeof out->argument, "%s%s", strchr(text, '/') ? "" : "./", text);
        else
            snprintf(out->argument, sizeof out->argument, "%s/../lib/libvaebackend_%s.so", bin_dir, text);
        if (!strchr(text, '/') && access(out->argument, R_OK) != 0) /* where it is installed */
            snprintf(out->argument, sizeof out->argument, "%s/../lib/vaeproof/libvaebackend_%s.so", bin_dir, text);
    }
    if (access(out->argument, R_OK) != 0)
        return vr_fail(err, VR_E_IO, "--backend '%s': no %s; want ref, onednn, another library in ../lib beside this tool, "
                       "PATH/library.so or py:ADAPTER.py", text, out->argument);
    return VR_OK;
}

/* ---- life ------------------------------------------------------------------------ */

vr_status vc_child_init(vc_child *c, const vc_backend_spec *spec, vr_error *err)
{
    *c = (vc_child){.spec = spec, .fd = -1, .log_fd = -1};
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(c->dir, sizeof c->dir, "%s/vaecheck-XXXXXX", base);
    if (!mkdtemp(c->dir))
        return vr_fail(err, VR_E_IO, "cannot make a folder like %s: %s", c->dir, strerror(errno));
    return VR_OK;
}

static void in_the_child(const vc_child *c, int fd, int log)
{
    char number[16];
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* the runner decides */
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    const struct rlimit core = {0, 0}, memory = {c->spec->memory_bytes, c->spec->memory_bytes};
    setrlimit(RLIMIT_CORE, &core);
    if (c->spec->memory_bytes && !getenv("VAEPROOF_NO_MEMORY_LIMIT")) /* sanitizers reserve terabytes */
        setrlimit(RLIMIT_AS, &memory);
    const int flags = fcntl(fd, F_GETFD);
    fcntl(fd, F_SETFD, flags & ~FD_CLOEXEC);
    snprintf(number, sizeof number, "%d", fd);
    setenv("VAEPROOF_FD", number, 1);
    setenv("VAEPROOF_DIR", c->dir, 1);
    setenv("OMP_WAIT_POLICY", "passive", 0); /* it waits most of the time */
    execlp(c->spec->program, c->spec->program, c->spec->argument, (char *)NULL);
    fprintf(stderr, "cannot run %s: %s\n", c->spec->program, strerror(errno));
    _exit(127);
}

static void drain_log(vc_child *c)
{
    char buf[4096];
    ssize_t n;
    while (c->log_fd >= 0 && (n = read(c->log_fd, buf, sizeof buf)) > 0) {
        const size_t room = sizeof c->log - 1, add = (size_t)n < room ? (size_t)n : room;
        const char *from = buf + ((size_t)n - add);
        if (c->log_size + add > room) {
            const size_t drop = c->log_size + add - room;
            memmove(c->log, c->log + drop, c->log_size - drop);
            c->log_size -= drop;
        }
        memcpy(c->log + c->log_size, from, add);
        c->log_size += add;
    }
    c->log[c->log_size] = '\0';
}

/* Ends the process and all it started; says how it ended. */
static void reap(vc_child *c, char *how, size_t size)
{
    int status = 0;
    if (how)
        *how = '\0';
    if (!c->pid)
        return;
    struct timespec brief = {0, 20000000};
    pid_t done = waitpid(c->pid, &status, WNOHANG);
    if (done == 0) {
        nanosleep(&brief, NULL); /* it may be ending just now */
        done = waitpid(c->pid, &status, WNOHANG);
    }
    kill(-c->pid, SIGKILL);
    if (done == 0) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, &status, 0);
    } else if (how && WIFSIGNALED(status)) {
        snprintf(how, size, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (how && WIFEXITED(status)) {
        snprintf(how, size, "ended with exit code %d", WEXITSTATUS(status));
    }
    drain_log(c);
    close(c->fd);
    if (c->log_fd >= 0)
        close(c->log_fd);
    c->fd = c->log_fd = -1;
    c->pid = 0;
}

static vc_outcome broken(vc_child *c, wire_result r, const char *verb, double seconds)
{
    char how[128];
    if (r == WIRE_TIMEOUT) {
        reap(c, NULL, 0);
        snprintf(c->text, sizeof c->text, "no answer to '%s' within %.0f s; it was killed", verb, seconds);
        return VC_TIMEOUT;
    }
    reap(c, how, sizeof how);
    snprintf(c->text, sizeof c->text, "during '%s': %s%s%s", verb, wire_result_text(r), *how ? "; it was " : "", how);
    return VC_CRASH;
}

/* The process itself has ended, though something of it still answers. */
static bool gone(vc_child *c, const char *verb)
{
    int status;
    if (waitpid(c->pid, &status, WNOHANG) != c->pid)
        return false;
    kill(-c->pid, SIGKILL);
    snprintf(c->text, sizeof c->text, "during '%s' the process ended (%s %d) and left another to answer", verb,
             WIFEXITED(status) ? "exit code" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    drain_log(c);
    close(c->fd);
    close(c->log_fd);
    c->fd = c->log_fd = -1;
    c->pid = 0;
    return true;
}

static vc_outcome receive(vc_child *c, const char *verb, double seconds, json_t **answer)
{
    char kind;
    json_t *body;
    const wire_result r = wire_receive(c->fd, seconds, &kind, &body);
    drain_log(c);
    if (r != WIRE_OK)
        return broken(c, r, verb, seconds);
    if (gone(c, verb)) {
        json_decref(body);
        return VC_CRASH;
    }
    if (kind != 'A' && kind != 'E') {
        json_decref(body);
        return broken(c, WIRE_GARBAGE, verb, seconds);
    }
    if (kind == 'E') {
        const char *text = json_string_value(json_object_get(body, "text"));
        c->code = (int32_t)json_integer_value(json_object_get(body, "code"));
        snprintf(c->text, sizeof c->text, "%s (code %d)", text && *text ? text : "no text", (int)c->code);
    }
    if (answer)
        *answer = body;
    else
        json_decref(body);
    return kind == 'A' ? VC_ANSWER : VC_REFUSED;
}

vc_outcome vc_child_start(vc_child *c, double seconds)
{
    int pair[2], log[2];
    vc_child_stop(c);
    c->log_size = 0;
    c->log[0] = '\0';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 || pipe2(log, O_CLOEXEC) != 0) {
        snprintf(c->text, sizeof c->text, "cannot make a socket: %s", strerror(errno));
        return VC_CRASH;
    }
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0)
        in_the_child(c, pair[1], log[1]);
    close(pair[1]);
    close(log[1]);
    c->fd = pair[0];
    c->log_fd = log[0];
    fcntl(c->log_fd, F_SETFL, O_NONBLOCK);
    if (c->pid < 0) {
        c->pid = 0;
        snprintf(c->text, sizeof c->text, "cannot fork: %s", strerror(errno));
        return VC_CRASH;
    }
    setpgid(c->pid, c->pid);
    return receive(c, "load", seconds, NULL);
}

vc_outcome vc_child_call(vc_child *c, const char *verb, json_t *request, double seconds, json_t **answer)
{
    if (answer)
        *answer = NULL;
    if (!request)
        request = json_object();
    json_object_set_new(request, "verb", json_string(verb));
    if (!c->pid) {
        json_decref(request);
        snprintf(c->text, sizeof c->text, "the process is not running");
        return VC_CRASH;
    }
    const wire_result r = wire_send(c->fd, 'Q', request);
    json_decref(request);
    if (r != WIRE_OK)
        return broken(c, r, verb, seconds);
    return receive(c, verb, seconds, answer);
}

void vc_child_stop(vc_child *c)
{
    if (c->pid) {
        shutdown(c->fd, SHUT_RDWR);
        reap(c, NULL, 0);
    }
}

void vc_child_free(vc_child *c)
{
    vc_child_stop(c);
    DIR *d = c->dir[0] ? opendir(c->dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[sizeof c->dir + 300];
        snprintf(path, sizeof path, "%s/%s", c->dir, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    if (d)
        closedir(d);
    if (c->dir[0])
        rmdir(c->dir);
    c->dir[0] = '\0';
}
