/* Reading NumPy .npy files (clause F3).
 *
 * Magic, version 1..3, header length, a Python dictionary literal with exactly
 * the keys descr, fortran_order and shape, then the data. The literal is parsed
 * by hand and only in the forms numpy.save writes: no code is ever evaluated.
 * The data must be as long as the shape says, no more and no less.
 *
 * SPDX-License-Identifier: MIT */
#include "io/io_internal.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

typedef struct cursor {
    const char *path;
    const uint8_t *start; /* of the file, for offsets in messages */
    const uint8_t *p, *end;
} cursor;

typedef struct npy_header {
    bool has_descr, has_order, has_shape;
    char descr[32];
    bool fortran;
    vr_tensor t; /* rank, dim */
} npy_header;

static vr_status fail_at(const cursor *c, const char *what, vr_error *err)
{
    return vr_fail(err, VR_E_FORMAT, "%s: header byte %zu: %s", SHOW_PATH(c->path),
                   (size_t)(c->p - c->start), what);
}

static void skip_space(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
}

static bool take(cursor *c, char ch)
{
    skip_space(c);
    if (c->p == c->end || *c->p != (uint8_t)ch)
        return false;
    c->p++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* A quoted string without escapes, as all that numpy writes here are. */
static vr_status take_string(cursor *c, char *buf, size_t size, vr_error *err)
{
    skip_space(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"'))
        return fail_at(c, "a quoted string is needed", err);
    uint8_t quote = *c->p++;
    size_t n = 0;
    while (c->p < c->end && *c->p != quote && *c->p != '\\' && *c->p >= 0x20 && n + 1 < size)
        buf[n++] = (char)*c->p++;
    buf[n] = '\0';
    if (c->p == c->end || *c->p != quote)
        return fail_at(c, "this string does not end, is too long or has escapes", err);
    c->p++;
    return VR_OK;
}

static vr_status take_extent(cursor *c, int64_t *out, vr_error *err)
{
    skip_space(c);
    const uint8_t *first = c->p;
    int64_t v = 0;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *c->p - '0', &v))
            return fail_at(c, "this extent in 'shape' is beyond 2^63", err);
    if (c->p == first)
        return fail_at(c, "'shape' needs integers >= 0", err);
    *out = v;
    return VR_OK;
}

/* (), (3,), (1, 2) or (1, 2,); a single number needs its comma. */
static vr_status take_shape(cursor *c, vr_tensor *t, vr_error *err)
{
    if (!take(c, '('))
        return fail_at(c, "'shape' must be a tuple such as (1, 4, 64, 64)", err);
    t->rank = 0;
    bool comma = true;
    while (!take(c, ')')) {
        if (!comma)
            return fail_at(c, "'shape' lacks a comma or ')'", err);
        if (t->rank == VR_MAX_RANK)
            return vr_fail(err, VR_E_UNSUPPORTED, "%s: shape has more than %d dimensions",
                           SHOW_PATH(c->path), VR_MAX_RANK);
        vr_status s = take_extent(c, &t->dim[t->rank], err);
        if (s)
            return s;
        t->rank++;
        comma = take(c, ',');
    }
    if (t->rank == 1 && !comma)
        return fail_at(c, "'shape' of one dimension is written (N,)", err);
    return VR_OK;
}

static vr_status take_descr(cursor *c, npy_header *h, vr_error *err)
{
    skip_space(c);
    if (c->p < c->end && (*c->p == '[' || *c->p == '('))
        return vr_fail(err, VR_E_UNSUPPORTED,
                       "%s: holds records (a structured dtype); one of f2 f4 f8 u1 is needed",
                       SHOW_PATH(c->path));
    return take_string(c, h->descr, sizeof h->descr, err);
}

static vr_status take_item(cursor *c, npy_header *h, vr_error *err)
{
    char key[32];
    vr_status s = take_string(c, key, sizeof key, err);
    if (s)
        return s;
    if (!take(c, ':'))
        return fail_at(c, "':' is needed after a key", err);
    bool *seen;
    if (strcmp(key, "descr") == 0) {
        seen = &h->has_descr;
        s = take_descr(c, h, err);
    } else if (strcmp(key, "fortran_order") == 0) {
        seen = &h->has_order;
        h->fortran = take_word(c, "True");
        if (!h->fortran && !take_word(c, "False"))
            s = fail_at(c, "'fortran_order' must be True or False", err);
    } else if (strcmp(key, "shape") == 0) {
        seen = &h->has_shape;
        s = take_shape(c, &h->t, err);
    } else {
        return vr_fail(err, VR_E_FORMAT,
                       "%s: unknown header key '%s'; descr, fortran_order and shape are needed",
                       SHOW_PATH(c->path), key);
    }
    if (!s && *seen)
        s = vr_fail(err, VR_E_FORMAT, "%s: header key '%s' is there twice", SHOW_PATH(c->path),
                    key);
    *seen = true;
    return s;
}

static vr_status take_header(cursor *c, npy_header *h, vr_error *err)
{
    if (!take(c, '{'))
        return fail_at(c, "the header must be a dictionary starting with '{'", err);
    bool comma = true;
    while (!take(c, '}')) {
        if (!comma)
            return fail_at(c, "',' or '}' is needed", err);
        vr_status s = take_item(c, h, err);
        if (s)
            return s;
        comma = take(c, ',');
    }
    skip_space(c);
    if (c->p != c->end)
        return fail_at(c, "there is text after the dictionary", err);
    const char *lacks = !h->has_descr   ? "descr"
                        : !h->has_order ? "fortran_order"
                        : !h->has_shape ? "shape"
                                        : NULL;
    if (lacks)
        return vr_fail(err, VR_E_FORMAT, "%s: the header has no '%s'", SHOW_PATH(c->path), lacks);
    return VR_OK;
}

static vr_status dtype_of(const char *path, const char *descr, vr_dtype *out, vr_error *err)
{
    const char *t = descr;
    if (*t == '>')
        return vr_fail(err, VR_E_UNSUPPORTED,
                       "%s: dtype '%s' is big endian; save it as little endian ('<')",
                       SHOW_PATH(path), descr);
    t += *t == '<' || *t == '|' || *t == '=';
    *out = strcmp(t, "f4") == 0   ? VR_F32
           : strcmp(t, "f2") == 0 ? VR_F16
           : strcmp(t, "f8") == 0 ? VR_F64
           : strcmp(t, "u1") == 0 ? VR_U8
                                  : VR_DTYPE_NONE;
    if (*out != VR_DTYPE_NONE)
        return VR_OK;
    if (*t == 'O')
        return vr_fail(err, VR_E_UNSUPPORTED,
                       "%s: dtype '%s' holds pickled Python objects; one of f2 f4 f8 u1 is "
                       "needed",
                       SHOW_PATH(path), descr);
    return vr_fail(err, VR_E_UNSUPPORTED, "%s: dtype '%s' is not one of f2 f4 f8 u1",
                   SHOW_PATH(path), descr);
}

/* Magic, version and length; leaves c on the header text. */
static vr_status find_header(cursor *c, const vr_io_blob *b, vr_error *err)
{
    if (b->size == 0)
        return vr_fail(err, VR_E_FORMAT, "%s: is empty; a .npy file was expected",
                       SHOW_PATH(c->path));
    if (!vr_io_is_npy(b))
        return vr_fail(err, VR_E_FORMAT, "%s: is not a .npy file: no \\x93NUMPY at its start%s",
                       SHOW_PATH(c->path), vr_io_kind_note(b->data, b->size));
    int major = b->size > 6 ? b->data[6] : 0;
    size_t fixed = major == 1 ? 10 : 12, n = 0;
    if (b->size > 6 && (major < 1 || major > 3))
        return vr_fail(err, VR_E_UNSUPPORTED, "%s: .npy version %d; 1, 2 or 3 is needed",
                       SHOW_PATH(c->path), major);
    if (b->size < fixed)
        return vr_fail(err, VR_E_FORMAT, "%s: truncated: %zu bytes, the start alone has %zu",
                       SHOW_PATH(c->path), b->size, fixed);
    memcpy(&n, b->data + 8, fixed - 8);
    if (n > b->size - fixed)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: truncated: header needs bytes %zu..%zu, file has %zu",
                       SHOW_PATH(c->path), fixed, fixed + n, b->size);
    c->p = b->data + fixed;
    c->end = c->p + n;
    return VR_OK;
}

static vr_status check_data(const char *path, const npy_header *h, const vr_io_blob *b,
                            const uint8_t *data, uint64_t *bytes, vr_error *err)
{
    int64_t count;
    char shape[160];
    vr_tensor_describe(&h->t, shape, sizeof shape);
    if (vr_tensor_count(&h->t, &count, NULL) ||
        __builtin_mul_overflow((uint64_t)count, (uint64_t)vr_dtype_size(h->t.dtype), bytes))
        return vr_fail(err, VR_E_FORMAT, "%s: shape %s has more than 2^62 elements",
                       SHOW_PATH(path), shape);
    size_t start = (size_t)(data - b->data), have = b->size - start;
    if (*bytes > have)
        return vr_fail(err, VR_E_FORMAT,
                       "%s: truncated: %s needs %llu bytes from byte %zu, file has %zu",
                       SHOW_PATH(path), shape, (ull)*bytes, start, have);
    if (*bytes < have)
        return vr_fail(err, VR_E_FORMAT, "%s: has %llu extra bytes after the data of %s",
                       SHOW_PATH(path), (ull)(have - *bytes), shape);
    return VR_OK;
}

bool vr_io_is_npy(const vr_io_blob *b)
{
    return b->size >= 6 && memcmp(b->data, "\x93NUMPY", 6) == 0;
}

vr_status vr_io_npy_parse(const char *path, const vr_io_blob *b, vr_tensor *out, vr_error *err)
{
    *out = (vr_tensor){0};
    cursor c = {.path = path, .start = b->data};
    npy_header h = {0};
    vr_status s = find_header(&c, b, err);
    if (!s)
        s = take_header(&c, &h, err);
    if (!s)
        s = dtype_of(path, h.descr, &h.t.dtype, err);
    if (s)
        return s;
    if (h.fortran)
        return vr_fail(err, VR_E_UNSUPPORTED,
                       "%s: fortran_order is True; save a C-ordered array "
                       "(numpy.ascontiguousarray)",
                       SHOW_PATH(path));
    uint64_t bytes = 0;
    s = check_data(path, &h, b, c.end, &bytes, err);
    if (!s)
        s = vr_tensor_new(out, h.t.dtype, h.t.rank, h.t.dim, err);
    if (!s && bytes)
        memcpy(out->data, c.end, (size_t)bytes);
    return s;
}

vr_status vr_npy_read(const char *path, vr_tensor *out, vr_error *err)
{
    *out = (vr_tensor){0};
    vr_io_blob blob;
    vr_status s = vr_io_blob_open(path, &blob, err);
    if (s)
        return s;
    s = vr_io_npy_parse(path, &blob, out, err);
    vr_io_blob_close(&blob);
    return s;
}
