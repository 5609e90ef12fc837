/* Every allocation fails once: each function returns VR_E_NOMEM, gives nothing
 * back, leaks nothing (a sanitizer build checks) and leaves no file behind. The
 * linker sends the library's allocations here (--wrap); Jansson's come through
 * its own hook. libpng allocates inside its shared library and is not reached.
 *
 * SPDX-License-Identifier: MIT */
#include "io_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long countdown = -1; /* allocations until one fails; < 0: never */
static bool fired, in_json;

static bool fails(void)
{
    if (countdown < 0 || countdown-- != 0)
        return false;
    fired = true;
    return true;
}

#define WRAP(type, name, params, args)                      \
    type __real_##name params;                              \
    type __wrap_##name params;                              \
    type __wrap_##name params                               \
    {                                                       \
        return fails() ? NULL : __real_##name args;         \
    }
WRAP(void *, malloc, (size_t n), (n))
WRAP(void *, calloc, (size_t n, size_t s), (n, s))
WRAP(void *, realloc, (void *p, size_t n), (p, n))
WRAP(void *, aligned_alloc, (size_t a, size_t n), (a, n))
WRAP(char *, strdup, (const char *s), (s))
WRAP(char *, strndup, (const char *s, size_t n), (s, n))

int __real_posix_memalign(void **p, size_t a, size_t n);
int __wrap_posix_memalign(void **p, size_t a, size_t n);
int __wrap_posix_memalign(void **p, size_t a, size_t n)
{
    return fails() ? ENOMEM : __real_posix_memalign(p, a, n);
}

static void *json_alloc(size_t n)
{
    if (!fails())
        return __real_malloc(n);
    in_json = true;
    return NULL;
}

static io_dir dir;
static float values[16];
static vr_error error;

static vr_status open_single(void)
{
    vr_safetensors *f;
    vr_status s = vr_safetensors_open(IO_FILE(&dir, "a.st"), &f, &error);
    vr_safetensors_close(f);
    return s;
}

static vr_status open_index(void)
{
    vr_safetensors *f;
    vr_status s = vr_safetensors_open(IO_FILE(&dir, "m.index.json"), &f, &error);
    vr_safetensors_close(f);
    return s;
}

static vr_status write_safetensors(void)
{
    static const char *const names[] = {"x", "y"};
    vr_tensor t[] = {{VR_F32, 2, {2, 4}, values}, {VR_U8, 0, {0}, values}};
    vr_metadata meta = {"k", "v"};
    return vr_safetensors_write(IO_FILE(&dir, "new"), names, t, 2, &meta, 1, &error);
}

static vr_status load_tensor(void)
{
    vr_tensor t;
    vr_status s = vr_tensor_load(IO_FILE(&dir, "a.st#x"), &t, &error);
    vr_tensor_free(&t);
    return s;
}

static vr_status read_npy(void)
{
    vr_tensor t;
    vr_status s = vr_npy_read(IO_FILE(&dir, "a.npy"), &t, &error);
    vr_tensor_free(&t);
    return s;
}

static vr_status write_npy(void)
{
    vr_tensor t = {VR_F32, 1, {4}, values};
    return vr_npy_write(IO_FILE(&dir, "new"), &t, &error);
}

static vr_status read_png(void)
{
    vr_image m;
    vr_status s = vr_png_read(IO_FILE(&dir, "a.png"), &m, &error);
    vr_image_free(&m);
    return s;
}

static vr_status write_png(void)
{
    vr_image m = {4, 4, 4, 8, values};
    return vr_png_write(IO_FILE(&dir, "new"), &m, &error);
}

static vr_status read_config(void)
{
    vr_vae_config c;
    return vr_vae_config_read(IO_FILE(&dir, "config.json"), &c, &error);
}

static const struct {
    const char *name;
    vr_status (*call)(void);
} calls[] = {
    {"open single", open_single},
    {"open index", open_index},
    {"write safetensors", write_safetensors},
    {"load tensor", load_tensor},
    {"read npy", read_npy},
    {"write npy", write_npy},
    {"read png", read_png},
    {"write png", write_png},
    {"read config", read_config},
};

static void prepare(void)
{
    static const char *const names[] = {"x", "y"};
    static const char index[] = "{\"weight_map\":{\"x\":\"a.st\",\"z\":\"b.st\"}}";
    static const char *const other[] = {"z"};
    static const char config[] = "{\"_class_name\":\"AutoencoderKL\",\"latent_channels\":4}";
    vr_tensor t[] = {{VR_F32, 2, {2, 4}, values}, {VR_U8, 0, {0}, values}};
    vr_image m = {4, 4, 4, 8, values};
    dir = io_dir_make();
    if (vr_safetensors_write(IO_FILE(&dir, "a.st"), names, t, 2, NULL, 0, NULL) ||
        vr_safetensors_write(IO_FILE(&dir, "b.st"), other, t, 1, NULL, 0, NULL) ||
        vr_npy_write(IO_FILE(&dir, "a.npy"), t, NULL) ||
        vr_png_write(IO_FILE(&dir, "a.png"), &m, NULL))
        abort();
    io_put(IO_FILE(&dir, "m.index.json"), index, sizeof index - 1);
    io_put(IO_FILE(&dir, "config.json"), config, sizeof config - 1);
}

/* Whether the file just written, if any, is the one written without a fault. */
static bool same_as(const char *good)
{
    size_t n, m;
    FILE *f = fopen(IO_FILE(&dir, "new"), "rb");
    if (!f)
        return true;
    fclose(f);
    uint8_t *a = io_get(IO_FILE(&dir, "new"), &n), *b = io_get(good, &m);
    bool same = n == m && memcmp(a, b, n) == 0;
    free(a);
    free(b);
    return same;
}

/* Returns the number of allocations tried, or -1 after a complaint. */
static long try_all(const char *name, vr_status (*call)(void), int files)
{
    if (call() != VR_OK) {
        printf("%s: fails without a fault: %s\n", name, error.text);
        return -1;
    }
    rename(IO_FILE(&dir, "new"), IO_FILE(&dir, "good"));
    for (long n = 0; n < 1000; n++) {
        memset(&error, 0, sizeof error);
        fired = in_json = false;
        countdown = n;
        vr_status s = call();
        countdown = -1;
        if (!fired && s == VR_OK)
            return n;
        /* Jansson 2.14 does not check every allocation of its lexer: one that
         * fails may shorten a token, which then is a bad token or another key.
         * Nothing above it can tell; all other failures are out of memory. */
        bool right = s == VR_E_NOMEM || (in_json && s == VR_E_FORMAT);
        if (s == VR_OK && !in_json) {
            printf("%s, allocation %ld: the failure went unseen\n", name, n);
            return -1;
        }
        if (s != VR_OK && (!right || error.text[0] == '\0')) {
            printf("%s, allocation %ld: status %d '%s'\n", name, n, (int)s, error.text);
            return -1;
        }
        if (s == VR_OK && !same_as(IO_FILE(&dir, "good"))) {
            printf("%s, allocation %ld: a wrong file was written\n", name, n);
            return -1;
        }
        if (s != VR_OK && io_dir_entries(&dir) != files) {
            printf("%s, allocation %ld: a file was left behind\n", name, n);
            return -1;
        }
        remove(IO_FILE(&dir, "new"));
    }
    printf("%s: never succeeds\n", name);
    return -1;
}

int main(void)
{
    int failed = 0;
    prepare();
    io_put(IO_FILE(&dir, "good"), "", 0);
    json_set_alloc_funcs(json_alloc, free);
    int files = io_dir_entries(&dir);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        long n = try_all(calls[i].name, calls[i].call, files);
        printf("%-18s %ld allocations\n", calls[i].name, n);
        failed += n < 1;
        remove(IO_FILE(&dir, "new"));
    }
    io_dir_remove(&dir);
    return failed != 0;
}
