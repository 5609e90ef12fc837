/* vaehost: the child that holds a C backend and speaks the protocol for it
 * (clause A4). It knows nothing of cases or expected values; it maps what it is
 * told to map and calls what it is told to call.
 *
 * Everything the library prints to stdout goes to stderr, so that it cannot be
 * taken for an answer.
 *
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/host.h"

typedef struct mapping {
    void *at;
    uint64_t bytes;
} mapping;

static json_t *failure(int32_t code, const char *text)
{
    return json_pack("{s:i, s:s}", "code", (int)code, "text", text);
}

static const char *trouble(const host_state *h)
{
    const char *t = h->backend.last_error ? h->backend.last_error(h->device) : NULL;
    return t && *t ? t : "no text";
}

/* ---- memory handed to the backend ------------------------------------------- */

static void *host_alloc(void *ctx, uint64_t bytes, uint64_t align)
{
    host_state *h = ctx;
    const int64_t n = __atomic_add_fetch(&h->allocations, 1, __ATOMIC_RELAXED);
    if (h->fail_at && n >= h->fail_at && n < h->fail_at + h->fail_count)
        return NULL;
    void *p = NULL;
    if (posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, bytes ? bytes : 1) != 0)
        return NULL;
    __atomic_add_fetch(&h->live, 1, __ATOMIC_RELAXED);
    return p;
}

static void host_free(void *ctx, void *p)
{
    host_state *h = ctx;
    if (p)
        __atomic_sub_fetch(&h->live, 1, __ATOMIC_RELAXED);
    free(p);
}

static void host_log(void *ctx, int32_t level, const char *message)
{
    static const char *const name[] = {"error", "warning", "info", "debug"};
    (void)ctx;
    fprintf(stderr, "backend %s: %s\n", name[level < 0 ? 0 : level > 3 ? 3 : level], message ? message : "");
}

static int32_t host_cancelled(void *ctx)
{
    return __atomic_load_n(&((host_state *)ctx)->cancel, __ATOMIC_RELAXED);
}

/* ---- files --------------------------------------------------------------------- */

static bool map_file(const host_state *h, const char *name, mapping *m)
{
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", h->dir, name);
    *m = (mapping){MAP_FAILED, 0};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        m->bytes = (uint64_t)st.st_size;
        m->at = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    return m->at != MAP_FAILED;
}

static void unmap(mapping *m)
{
    if (m->at && m->at != MAP_FAILED)
        munmap(m->at, m->bytes);
    m->at = NULL;
}

/* ---- verbs ---------------------------------------------------------------------- */

static json_t *do_hello(host_state *h, json_t *q, char *kind)
{
    vp_info i = {.size = sizeof i};
    (void)q;
    const int32_t code = h->backend.info ? h->backend.info(&i) : VP_E_INTERNAL;
    if (code != VP_OK) {
        *kind = 'E';
        return failure(code, "the backend gives no information about itself");
    }
    i.name[sizeof i.name - 1] = i.version[sizeof i.version - 1] = i.vendor[sizeof i.vendor - 1] =
        i.device[sizeof i.device - 1] = '\0';
    return json_pack("{s:i, s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "abi_major", (int)i.abi_major, "abi_minor",
                     (int)i.abi_minor, "name", i.name, "version", i.version, "vendor", i.vendor, "device", i.device,
                     "caps", (json_int_t)i.caps, "storage", (json_int_t)i.storage_mask, "tiles", (json_int_t)i.tile_mask,
                     "ops", (json_int_t)i.op_mask, "half_sums", (json_int_t)i.half_sums_mask);
}

static json_t *do_open(host_state *h, json_t *q, char *kind)
{
    const char *options = json_string_value(json_object_get(q, "options"));
    if (h->device)
        return json_pack("{s:b}", "open", 1);
    const int32_t code = h->backend.open(options, &h->device);
    if (code != VP_OK) {
        h->device = NULL;
        *kind = 'E';
        return failure(code, trouble(h));
    }
    return json_pack("{s:b}", "open", 1);
}

static json_t *do_close(host_state *h, json_t *q, char *kind)
{
    (void)q;
    (void)kind;
    host_drop_job(h);
    if (h->device)
        h->backend.close(h->device);
    h->device = NULL;
    return json_pack("{s:I, s:I}", "live", (json_int_t)h->live, "allocations", (json_int_t)h->allocations);
}

/* Allocation number `at` from now on fails, and `count` - 1 after it. */
static json_t *do_inject(host_state *h, json_t *q, char *kind)
{
    (void)kind;
    const int64_t before = h->allocations;
    const json_int_t at = json_integer_value(json_object_get(q, "at"));
    h->allocations = 0;
    h->fail_at = at;
    h->fail_count = json_integer_value(json_object_get(q, "count"));
    return json_pack("{s:I, s:I}", "allocations", (json_int_t)before, "live", (json_int_t)h->live);
}

void host_drop_job(host_state *h)
{
    if (h->job)
        h->backend.release(h->job);
    h->job = NULL;
    wire_program_free(&h->program);
    mapping m = {h->weights, h->weight_bytes};
    unmap(&m);
    h->weights = NULL;
}

static bool load_program(host_state *h, json_t *q, vr_error *err)
{
    json_t *program = json_object_get(q, "program");
    const char *file = json_string_value(json_object_get(q, "weights"));
    mapping m = {NULL, 0};
    if (!program)
        return true;
    if (file && !map_file(h, file, &m)) {
        vr_fail(err, VR_E_IO, "cannot map the weights in %s", file);
        return false;
    }
    h->weights = m.at;
    h->weight_bytes = m.bytes;
    return wire_program_read(program, m.at, m.bytes, &h->program, err) == VR_OK;
}

static json_t *do_prepare(host_state *h, json_t *q, char *kind)
{
    vr_error err = {VR_OK, ""};
    vp_job_desc d = {.size = sizeof d};
    host_drop_job(h);
    *kind = 'E';
    if (!h->device)
        return failure(VP_E_ARGUMENT, "prepare before open");
    if (!load_program(h, q, &err))
        return failure(VP_E_ARGUMENT, err.text);
    json_t *tile = json_object_get(q, "tile"), *latent = json_object_get(q, "latent");
    d.storage = (uint32_t)json_integer_value(json_object_get(q, "storage"));
    d.accumulate = (uint32_t)json_integer_value(json_object_get(q, "accumulate"));
    d.threads = (int32_t)json_integer_value(json_object_get(q, "threads"));
    d.program = h->program.op ? &h->program.program : NULL;
    d.model_path = json_string_value(json_object_get(q, "model"));
    d.config_path = json_string_value(json_object_get(q, "config"));
    d.options = json_string_value(json_object_get(q, "options"));
    d.memory_limit = (uint64_t)json_integer_value(json_object_get(q, "memory_limit"));
    for (size_t k = 0; k < 5; k++)
        d.latent[k] = json_integer_value(json_array_get(latent, k));
    d.tiling = (vp_tiling){.size = sizeof d.tiling, .mode = (uint32_t)json_integer_value(json_object_get(tile, "mode")),
                           .tile_h = json_integer_value(json_object_get(tile, "tile_h")),
                           .tile_w = json_integer_value(json_object_get(tile, "tile_w")),
                           .overlap_h = json_integer_value(json_object_get(tile, "overlap_h")),
                           .overlap_w = json_integer_value(json_object_get(tile, "overlap_w"))};
    d.temporal.size = sizeof d.temporal;
    d.offload.size = sizeof d.offload;
    const int32_t code = h->backend.prepare(h->device, &d, &h->job);
    if (code != VP_OK) {
        h->job = NULL;
        json_t *e = failure(code, trouble(h));
        host_drop_job(h);
        return e;
    }
    *kind = 'A';
    return json_pack("{s:b}", "ready", 1);
}

static bool take_values(const host_state *h, json_t *list, vp_value *v, mapping *m, vr_error *err)
{
    size_t k;
    json_t *j;
    json_array_foreach(list, k, j) {
        const char *file;
        uint64_t offset;
        v[k].size = sizeof v[k];
        v[k].value = (int32_t)json_integer_value(json_object_get(j, "value"));
        if (wire_tensor_read(json_object_get(j, "tensor"), &v[k].tensor, &file, &offset, err) != VR_OK)
            return false;
        if (!map_file(h, file, &m[k]) || offset > m[k].bytes || v[k].tensor.bytes > m[k].bytes - offset) {
            vr_fail(err, VR_E_IO, "cannot map %llu bytes of %s", (unsigned long long)v[k].tensor.bytes, file);
            return false;
        }
        v[k].tensor.data = (char *)m[k].at + offset;
    }
    return true;
}

static json_t *do_run(host_state *h, json_t *q, char *kind)
{
    enum { MOST = 64 };
    vp_value feed[MOST], want[MOST];
    mapping fm[MOST], wm[MOST];
    vr_error err = {VR_OK, ""};
    json_t *feeds = json_object_get(q, "feed"), *wants = json_object_get(q, "want"), *a = NULL;
    memset(feed, 0, sizeof feed);
    memset(want, 0, sizeof want);
    memset(fm, 0, sizeof fm);
    memset(wm, 0, sizeof wm);
    *kind = 'E';
    if (!h->job)
        return failure(VP_E_ARGUMENT, "run before prepare");
    if (json_array_size(feeds) > MOST || json_array_size(wants) > MOST)
        return failure(VP_E_ARGUMENT, "more than 64 values in one run");
    if (!take_values(h, feeds, feed, fm, &err) || !take_values(h, wants, want, wm, &err)) {
        a = failure(VP_E_ARGUMENT, err.text);
    } else {
        const vp_run_args args = {.size = sizeof args, .first = (int32_t)json_integer_value(json_object_get(q, "first")),
                                  .last = (int32_t)json_integer_value(json_object_get(q, "last")),
                                  .feed_count = (uint32_t)json_array_size(feeds), .value_stride = sizeof(vp_value),
                                  .want_count = (uint32_t)json_array_size(wants), .feed = feed, .want = want};
        const int32_t code = h->backend.run(h->job, &args);
        if (code == VP_OK)
            *kind = 'A';
        a = code == VP_OK ? json_pack("{s:b}", "done", 1) : failure(code, trouble(h));
    }
    for (int k = 0; k < MOST; k++) {
        unmap(&fm[k]);
        unmap(&wm[k]);
    }
    return a;
}

static json_t *do_stats(host_state *h, json_t *q, char *kind)
{
    vp_stats s = {.size = sizeof s};
    (void)q;
    if (!h->backend.stats || !h->job || h->backend.stats(h->job, &s) != VP_OK) {
        *kind = 'E';
        return failure(VP_E_UNSUPPORTED, "no statistics");
    }
    return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I}", "seconds", s.seconds, "total_seconds", s.total_seconds,
                     "peak_bytes", (json_int_t)s.peak_bytes, "executions", (json_int_t)s.executions, "pool_allocations",
                     (json_int_t)s.pool_allocations, "pool_hits", (json_int_t)s.pool_hits, "fallback_ops",
                     (json_int_t)s.fallback_ops, "spilled_bytes", (json_int_t)s.spilled_bytes);
}

static json_t *do_plan(host_state *h, json_t *q, char *kind)
{
    enum { ROOM = 4096 };
    uint32_t n = 0;
    (void)q;
    vp_tile *t = calloc(ROOM, sizeof *t);
    if (!t || !h->backend.plan || !h->job || h->backend.plan(h->job, t, ROOM, &n) != VP_OK || n > ROOM) {
        free(t);
        *kind = 'E';
        return failure(VP_E_UNSUPPORTED, "no plan");
    }
    json_t *tiles = json_array();
    for (uint32_t k = 0; k < n; k++)
        json_array_append_new(tiles, json_pack("[I, I, I, I, I, I, I, I, I]", (json_int_t)t[k].pass, (json_int_t)t[k].y,
                                               (json_int_t)t[k].x, (json_int_t)t[k].h, (json_int_t)t[k].w,
                                               (json_int_t)t[k].owned_y, (json_int_t)t[k].owned_x,
                                               (json_int_t)t[k].owned_h, (json_int_t)t[k].owned_w));
    free(t);
    return json_pack("{s:o}", "tiles", tiles);
}

static json_t *do_release(host_state *h, json_t *q, char *kind)
{
    (void)q;
    (void)kind;
    host_drop_job(h);
    return json_pack("{s:I}", "live", (json_int_t)h->live);
}

static json_t *do_ping(host_state *h, json_t *q, char *kind)
{
    (void)h;
    (void)q;
    (void)kind;
    return json_pack("{s:b}", "pong", 1);
}

json_t *host_answer(host_state *h, json_t *request, char *kind)
{
    static const struct {
        const char *verb;
        json_t *(*run)(host_state *, json_t *, char *);
    } verb[] = {{"hello", do_hello}, {"open", do_open}, {"prepare", do_prepare}, {"run", do_run}, {"stats", do_stats},
                {"plan", do_plan}, {"release", do_release}, {"close", do_close}, {"inject", do_inject}, {"ping", do_ping}};
    const char *name = json_string_value(json_object_get(request, "verb"));
    *kind = 'A';
    for (size_t i = 0; name && i < sizeof verb / sizeof *verb; i++)
        if (strcmp(name, verb[i].verb) == 0)
            return verb[i].run(h, request, kind);
    *kind = 'E';
    return failure(VP_E_ARGUMENT, "unknown verb");
}

/* ---- start ---------------------------------------------------------------------- */

bool host_load(host_state *h, const char *library, char *text, size_t size)
{
    static vp_host host;
    host = (vp_host){.size = sizeof host, .abi_major = VP_ABI_MAJOR, .ctx = h, .log = host_log, .alloc = host_alloc,
                     .free = host_free, .cancelled = host_cancelled};
    h->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!h->library) {
        snprintf(text, size, "%s", dlerror());
        return false;
    }
    int32_t (*get)(const vp_host *, vp_backend *);
    void *symbol = dlsym(h->library, "vp_backend_get");
    if (!symbol) {
        snprintf(text, size, "%s exports no vp_backend_get", library);
        return false;
    }
    memcpy(&get, &symbol, sizeof get);
    h->backend = (vp_backend){.size = sizeof h->backend, .abi_major = VP_ABI_MAJOR};
    const int32_t code = get(&host, &h->backend);
    const vp_backend *b = &h->backend;
    if (code != VP_OK || b->abi_major != VP_ABI_MAJOR)
        snprintf(text, size, "%s answers %d and speaks ABI %u; this is ABI %u", library, (int)code, b->abi_major,
                 VP_ABI_MAJOR);
    else if (!b->info || !b->open || !b->close || !b->prepare || !b->run || !b->release || !b->last_error)
        snprintf(text, size, "%s leaves a required function empty (info, open, close, prepare, run, release, last_error)",
                 library);
    else
        return true;
    return false;
}
