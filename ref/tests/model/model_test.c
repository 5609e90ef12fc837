/* See model_test.h.
 *
 * SPDX-License-Identifier: MIT */
#include "model_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void need(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "model_test: %s\n", what);
        abort();
    }
}

bag *bag_of(const char *spec, vr_key_layout layout)
{
    vr_error err = {VR_OK, ""};
    bag *b = calloc(1, sizeof *b);
    need(b != NULL, "memory");
    b->dir = io_dir_make();
    const char *path = IO_FILE(&b->dir, "source.safetensors");
    vr_model *m = NULL;
    need(vr_model_open(spec, NULL, &m, &err) == VR_OK, err.text);
    need(vr_model_write(m, path, layout, VR_DTYPE_NONE, &err) == VR_OK, err.text);
    vr_model_close(m);
    need(vr_safetensors_open(path, &b->file, &err) == VR_OK, err.text);
    unlink(path); /* the mapping stays */
    b->count = vr_safetensors_count(b->file);
    need(b->count <= BAG_MOST, "too many tensors");
    for (int64_t i = 0; i < b->count; i++) {
        const vr_named_tensor *t = vr_safetensors_at(b->file, i);
        snprintf(b->name[i], BAG_NAME, "%s", t->name);
        b->tensor[i] = t->tensor;
    }
    bag_meta(b, "vaeproof.norm_num_groups",
             vr_safetensors_metadata(b->file, "vaeproof.norm_num_groups"));
    return b;
}

void bag_free(bag *b)
{
    for (int64_t i = 0; i < b->count; i++)
        free(b->own[i]);
    vr_safetensors_close(b->file);
    io_dir_remove(&b->dir);
    free(b);
}

int64_t bag_find(const bag *b, const char *name)
{
    for (int64_t i = 0; i < b->count; i++)
        if (strcmp(b->name[i], name) == 0)
            return i;
    fprintf(stderr, "model_test: no tensor '%s'\n", name);
    abort();
}

static void drop_at(bag *b, int64_t i)
{
    free(b->own[i]);
    int64_t last = --b->count;
    memmove(b->name[i], b->name[last], BAG_NAME);
    b->tensor[i] = b->tensor[last];
    b->own[i] = b->own[last];
    b->own[last] = NULL;
}

void bag_drop(bag *b, const char *name)
{
    drop_at(b, bag_find(b, name));
}

int64_t bag_drop_start(bag *b, const char *start)
{
    int64_t n = 0;
    for (int64_t i = b->count - 1; i >= 0; i--)
        if (strncmp(b->name[i], start, strlen(start)) == 0) {
            drop_at(b, i);
            n++;
        }
    need(n > 0, start);
    return n;
}

void bag_rename(bag *b, const char *name, const char *to)
{
    snprintf(b->name[bag_find(b, name)], BAG_NAME, "%s", to);
}

int64_t bag_replace(bag *b, const char *from, const char *to)
{
    int64_t n = 0;
    for (int64_t i = 0; i < b->count; i++) {
        char *at = strstr(b->name[i], from), text[BAG_NAME];
        if (!at)
            continue;
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - b->name[i]), b->name[i], to,
                 at + strlen(from));
        memcpy(b->name[i], text, sizeof text);
        n++;
    }
    need(n > 0, from);
    return n;
}

void bag_prefix(bag *b, const char *prefix)
{
    for (int64_t i = 0; i < b->count; i++) {
        char text[BAG_NAME];
        need(snprintf(text, sizeof text, "%s%s", prefix, b->name[i]) < BAG_NAME, "long name");
        memcpy(b->name[i], text, sizeof text);
    }
}

static int64_t new_entry(bag *b, const char *name)
{
    need(b->count < BAG_MOST, "too many tensors");
    snprintf(b->name[b->count], BAG_NAME, "%s", name);
    b->own[b->count] = NULL;
    return b->count++;
}

void bag_add(bag *b, const char *name, vr_dtype t, int32_t rank, const int64_t *dim)
{
    int64_t i = new_entry(b, name), n = 1;
    b->tensor[i] = (vr_tensor){.dtype = t, .rank = rank};
    for (int32_t d = 0; d < rank; d++)
        n *= b->tensor[i].dim[d] = dim[d];
    size_t bytes = (size_t)n * vr_dtype_size(t);
    uint8_t *data = b->own[i] = malloc(bytes + 1);
    need(data != NULL, "memory");
    memset(data, 0x30, bytes); /* a small number in every type */
    b->tensor[i].data = data;
}

void bag_copy(bag *b, const char *name, const char *to)
{
    int64_t from = bag_find(b, name), i = new_entry(b, to);
    need(b->own[from] == NULL, "copy of an edited tensor");
    b->tensor[i] = b->tensor[from];
}

void *bag_edit(bag *b, const char *name)
{
    int64_t i = bag_find(b, name), n = 0;
    need(vr_tensor_count(&b->tensor[i], &n, NULL) == VR_OK, name);
    if (!b->own[i]) {
        size_t bytes = (size_t)n * vr_dtype_size(b->tensor[i].dtype);
        b->own[i] = malloc(bytes);
        need(b->own[i] != NULL, "memory");
        memcpy(b->own[i], b->tensor[i].data, bytes);
        b->tensor[i].data = b->own[i];
    }
    return b->own[i];
}

void bag_convert(bag *b, const char *name, vr_dtype t)
{
    int64_t i = bag_find(b, name), n = 0;
    need(vr_tensor_count(&b->tensor[i], &n, NULL) == VR_OK, name);
    void *data = malloc((size_t)n * vr_dtype_size(t));
    need(data != NULL, "memory");
    need(vr_convert(t, data, b->tensor[i].dtype, b->tensor[i].data, (uint64_t)n, NULL) == VR_OK,
         "conversion");
    free(b->own[i]);
    b->tensor[i].data = b->own[i] = data;
    b->tensor[i].dtype = t;
}

void bag_meta(bag *b, const char *key, const char *value)
{
    for (int64_t i = 0; i < b->metas; i++)
        if (strcmp(b->meta[i].key, key) == 0) {
            b->meta[i].value = value;
            return;
        }
    need(b->metas < 8, "too much metadata");
    b->meta[b->metas++] = (vr_metadata){key, value};
}

const char *bag_write(const bag *b, const char *name, char buf[IO_PATH])
{
    const char **names = calloc((size_t)b->count + 1, sizeof *names);
    vr_error err = {VR_OK, ""};
    need(names != NULL, "memory");
    for (int64_t i = 0; i < b->count; i++)
        names[i] = b->name[i];
    io_join(buf, &b->dir, name);
    need(vr_safetensors_write(buf, names, b->tensor, b->count, b->meta, b->metas, &err) == VR_OK,
         err.text);
    free(names);
    return buf;
}

static uint8_t *find(uint8_t *p, size_t n, const char *text)
{
    uint8_t *at = memmem(p, n, text, strlen(text));
    need(at != NULL, text);
    return at;
}

void file_patch(const char *path, const char *after, const char *from, const char *to)
{
    size_t n;
    uint8_t *p = io_get(path, &n);
    uint8_t *start = find(p, n, after);
    need(strlen(from) == strlen(to), "patch of another length");
    memcpy(find(start, n - (size_t)(start - p), from), to, strlen(to));
    io_put(path, p, n);
    free(p);
}

vr_model *must_open(const char *what, const char *spec, const vr_model_options *opt)
{
    vr_error err = {VR_OK, ""};
    vr_model *m = NULL;
    vr_status s = vr_model_open(spec, opt, &m, &err);
    cr_assert(s == VR_OK && m, "%s: %s", what, err.text);
    return m;
}

vr_tensor decode_small(const char *what, const vr_model *m)
{
    vr_error err = {VR_OK, ""};
    vr_tensor z, y;
    const vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .threads = 1};
    cr_assert_eq(vr_model_latents(m, 7, 1, 2, 3, &z, &err), VR_OK, "%s: %s", what, err.text);
    cr_assert_eq(vr_exec_run(m->program, &z, &opt, &y, NULL, &err), VR_OK, "%s: %s", what,
                 err.text);
    vr_tensor_free(&z);
    return y;
}

static void assert_same_op(const char *what, const vr_op *x, const vr_op *y)
{
    cr_assert(strcmp(x->tap, y->tap) == 0 && x->kind == y->kind, "%s: tap %s is %s, the other %s %s",
              what, x->tap, vr_op_name(x->kind), y->tap, vr_op_name(y->kind));
    cr_assert(memcmp(x->in, y->in, sizeof x->in) == 0, "%s: inputs of %s", what, x->tap);
    cr_assert_eq(x->channels, y->channels, "%s: channels of %s", what, x->tap);
    if (x->kind == VR_OP_SCALE_SHIFT) {
        size_t n = (size_t)x->channels * sizeof(double);
        cr_assert(memcmp(x->p.scale_shift.scale, y->p.scale_shift.scale, n) == 0 &&
                      memcmp(x->p.scale_shift.shift, y->p.scale_shift.shift, n) == 0,
                  "%s: numbers of %s", what, x->tap);
    } else if (x->kind == VR_OP_GROUP_NORM) {
        cr_assert(x->p.group_norm.groups == y->p.group_norm.groups &&
                      x->p.group_norm.eps == y->p.group_norm.eps, "%s: %s", what, x->tap);
    }
}

void assert_same_model(const char *what, const vr_model *a, const vr_model *b)
{
    cr_assert_eq(a->program->op_count, b->program->op_count, "%s: %d and %d operations", what,
                 a->program->op_count, b->program->op_count);
    for (int32_t i = 0; i < a->program->op_count; i++)
        assert_same_op(what, &a->program->op[i], &b->program->op[i]);
    cr_assert_str_eq(a->weights_sha256, b->weights_sha256, "%s: other weights", what);
    vr_tensor x = decode_small(what, a), y = decode_small(what, b);
    int64_t n = 0, k = 0;
    cr_assert(vr_tensor_count(&x, &n, NULL) == VR_OK && vr_tensor_count(&y, &k, NULL) == VR_OK);
    cr_assert_eq(n, k, "%s: other size", what);
    cr_assert(memcmp(x.data, y.data, (size_t)n * sizeof(float)) == 0, "%s: other picture", what);
    vr_tensor_free(&x);
    vr_tensor_free(&y);
}

void assert_refused(const char *what, const char *spec, const vr_model_options *opt,
                    vr_status status, const char *const *parts)
{
    vr_error err = {VR_OK, ""};
    vr_model *m = (vr_model *)&err; /* must be set to NULL */
    vr_status s = vr_model_open(spec, opt, &m, &err);
    cr_assert(s != VR_OK, "%s: opened", what);
    cr_assert_eq(s, status, "%s: %s, want %s: %s", what, vr_status_text(s), vr_status_text(status),
                 err.text);
    cr_assert_null(m, "%s: a model is left", what);
    cr_assert_eq(err.status, s, "%s: status in the error", what);
    cr_assert(!strchr(err.text, '\n'), "%s: more than one line", what);
    for (; *parts; parts++)
        cr_assert(strstr(err.text, *parts), "%s: want '%s' in: %s", what, *parts, err.text);
}

const char *shared_file(const char *name, char buf[IO_PATH])
{
    const char *root = getenv("VAEPROOF_SHARED");
    snprintf(buf, IO_PATH, "%s/%s", root ? root : "", name);
    if (root && access(buf, R_OK) == 0)
        return buf;
    cr_skip_test("no %s beside the project (VAEPROOF_SHARED)", name);
    return NULL;
}
