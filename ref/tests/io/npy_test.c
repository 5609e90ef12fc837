/* .npy files (clause F3): bytes of NumPy's own writer both ways, and damage.
 *
 * SPDX-License-Identifier: MIT */
#include "io_test.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S10 "          "
#define S50 S10 S10 S10 S10 S10

typedef struct fixture {
    const char *title, *bytes;
    size_t size;
    vr_dtype dtype;
    int32_t rank;
    int64_t dim[3];
    const char *data;
    size_t data_size;
    bool same_written; /* version 1: the writer gives these very bytes */
} fixture;

#define RAW(s) s, sizeof(s) - 1

/* Written by numpy.save / numpy.lib.format.write_array. */
static const fixture fixtures[] = {
    {"f4, version 1",
     RAW("\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }" S50
         "        \n\0\0\xc0?\0\0\0\xc0\0\0\x80>"),
     VR_F32, 2, {1, 3}, RAW("\0\0\xc0?\0\0\0\xc0\0\0\x80>"), true},
    {"u1, version 2",
     RAW("\x93NUMPY\2\0t\0\0\0{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }" S50
         "        \n\1\2\xff"),
     VR_U8, 1, {3}, RAW("\1\2\xff"), false},
    {"u1, version 3",
     RAW("\x93NUMPY\3\0t\0\0\0{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }" S50
         "        \n\1\2\xff"),
     VR_U8, 1, {3}, RAW("\1\2\xff"), false},
    {"f8, no dimensions",
     RAW("\x93NUMPY\1\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (), }" S50 S10
         "  \n\0\0\0\0\0\0\xe0\xbf"),
     VR_F64, 0, {0}, RAW("\0\0\0\0\0\0\xe0\xbf"), true},
};

Test(npy, files_of_numpy_read_and_are_written_alike)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "a.npy"), *copy = IO_FILE(&d, "b.npy");
    for (size_t i = 0; i < sizeof fixtures / sizeof fixtures[0]; i++) {
        const fixture *x = &fixtures[i];
        io_put(path, x->bytes, x->size);
        vr_tensor t;
        vr_error err = {0};
        cr_assert(!vr_npy_read(path, &t, &err), "%s: %s", x->title, err.text);
        cr_assert(t.dtype == x->dtype && t.rank == x->rank, "%s", x->title);
        cr_assert(!memcmp(t.dim, x->dim, sizeof x->dim), "%s", x->title);
        cr_assert(!memcmp(t.data, x->data, x->data_size), "%s", x->title);
        cr_assert(!vr_npy_write(copy, &t, &err), "%s: %s", x->title, err.text);
        size_t n;
        uint8_t *p = io_get(copy, &n);
        cr_assert(!x->same_written || (n == x->size && !memcmp(p, x->bytes, n)), "%s", x->title);
        cr_assert((n - x->data_size) % 64 == 0 && p[6] == 1, "%s", x->title);
        free(p);
        vr_tensor_free(&t);
    }
    io_dir_remove(&d);
}

Test(npy, every_type_rank_and_extent_comes_back)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "a.npy");
    static const vr_dtype types[] = {VR_F16, VR_F32, VR_F64, VR_U8};
    uint8_t data[8 * 256];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 13 + i / 256);
    for (size_t k = 0; k < 4; k++)
        for (int32_t rank = 0; rank <= VR_MAX_RANK; rank++)
            for (int zero = 0; zero < 2; zero++) {
                vr_tensor t = {types[k], rank, {0}, data}, r;
                for (int32_t i = 0; i < rank; i++)
                    t.dim[i] = zero && i == rank - 1 ? 0 : 2;
                vr_error err = {0};
                int64_t n;
                cr_assert(!vr_npy_write(path, &t, &err), "%s", err.text);
                cr_assert(!vr_npy_read(path, &r, &err), "%s", err.text);
                cr_assert(r.dtype == t.dtype && r.rank == rank);
                cr_assert(!memcmp(r.dim, t.dim, sizeof t.dim));
                cr_assert(!vr_tensor_count(&r, &n, NULL));
                cr_assert(!memcmp(r.data, data, (size_t)n * vr_dtype_size(r.dtype)));
                vr_tensor_free(&r);
            }
    /* The longest header there can be. */
    vr_tensor t = {VR_U8, 8, {0}, NULL};
    for (int i = 1; i < 8; i++)
        t.dim[i] = INT64_MAX;
    vr_error err = {0};
    vr_status s = vr_npy_write(path, &t, &err);
    cr_assert(s == VR_OK || s == VR_E_SHAPE, "%s", err.text);
    io_dir_remove(&d);
}

Test(npy, spellings_numpy_accepts_are_accepted)
{
    static const char *const rows[] = {
        "{'descr': '=f4', 'fortran_order': False, 'shape': (2,), }\n",
        "{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': 'f4', 'fortran_order': False, 'shape': (2,), }    \n",
        "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (2,)}\n",
        "{'shape':(1,2),'fortran_order':False,'descr':'<f4'}\n",
        "{'shape': (1, 2,), 'fortran_order' : False ,\n 'descr': '<f4' , }\n",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        io_bytes b = {0};
        uint16_t n = (uint16_t)strlen(rows[i]);
        float v[2] = {3, 4};
        io_add(&b, "\x93NUMPY\1\0", 8);
        io_add(&b, &n, 2);
        io_add(&b, rows[i], n);
        io_add(&b, v, 8);
        vr_io_blob blob = io_blob(b.p, b.n);
        vr_tensor t;
        vr_error err = {0};
        cr_assert(!vr_io_npy_parse("x.npy", &blob, &t, &err), "%s: %s", rows[i], err.text);
        cr_assert(t.dtype == VR_F32 && !memcmp(t.data, v, 8));
        vr_tensor_free(&t);
        vr_io_blob_close(&blob);
        io_free(&b);
    }
}

typedef struct damage {
    const char *header;
    size_t data;
    vr_status status;
    const char *needle;
} damage;

#define D(descr, order, shape) \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static const damage damages[] = {
    {D("'<f4'", "True", "(2, 2)"), 16, VR_E_UNSUPPORTED, "fortran_order is True"},
    {D("'>f4'", "False", "(2,)"), 8, VR_E_UNSUPPORTED, "'>f4' is big endian"},
    {D("'|O'", "False", "(2,)"), 16, VR_E_UNSUPPORTED, "pickled Python objects"},
    {D("'O'", "False", "(2,)"), 16, VR_E_UNSUPPORTED, "pickled Python objects"},
    {D("'<i8'", "False", "(2,)"), 16, VR_E_UNSUPPORTED, "'<i8' is not one of f2 f4 f8 u1"},
    {D("'|V2'", "False", "(2,)"), 4, VR_E_UNSUPPORTED, "'|V2' is not one of"},
    {D("'<c8'", "False", "(2,)"), 16, VR_E_UNSUPPORTED, "'<c8' is not one of"},
    {D("[('x', '<f4')]", "False", "(2,)"), 8, VR_E_UNSUPPORTED, "structured dtype"},
    {D("'<f4'", "False", "(2,)"), 7, VR_E_FORMAT, "truncated: F32[2] needs 8 bytes"},
    {D("'<f4'", "False", "(2,)"), 0, VR_E_FORMAT, "truncated: F32[2] needs 8 bytes"},
    {D("'<f4'", "False", "(2,)"), 12, VR_E_FORMAT, "has 4 extra bytes"},
    {D("'<f4'", "False", "()"), 8, VR_E_FORMAT, "has 4 extra bytes"},
    {D("'<f4'", "False", "(4611686018427387904, 4)"), 8, VR_E_FORMAT, "more than 2^62"},
    {D("'<f4'", "False", "(9223372036854775808,)"), 8, VR_E_FORMAT, "beyond 2^63"},
    {D("'<f4'", "False", "(-2,)"), 8, VR_E_FORMAT, "integers >= 0"},
    {D("'<f4'", "False", "(2.0,)"), 8, VR_E_FORMAT, "lacks a comma"},
    {D("'<f4'", "False", "(2)"), 8, VR_E_FORMAT, "(N,)"},
    {D("'<f4'", "False", "(,)"), 4, VR_E_FORMAT, "integers >= 0"},
    {D("'<f4'", "False", "(1,,2)"), 8, VR_E_FORMAT, "integers >= 0"},
    {D("'<f4'", "False", "[2]"), 8, VR_E_FORMAT, "must be a tuple"},
    {D("'<f4'", "False", "2"), 8, VR_E_FORMAT, "must be a tuple"},
    {D("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 2)"), 8, VR_E_UNSUPPORTED,
     "more than 8 dimensions"},
    {D("'<f4'", "0", "(2,)"), 8, VR_E_FORMAT, "must be True or False"},
    {D("<f4", "False", "(2,)"), 8, VR_E_FORMAT, "a quoted string"},
    {D("'<f4\\x41'", "False", "(2,)"), 8, VR_E_FORMAT, "has escapes"},
    {"{'descr': '<f4', 'fortran_order': False}", 8, VR_E_FORMAT, "has no 'shape'"},
    {"{'fortran_order': False, 'shape': (2,)}", 8, VR_E_FORMAT, "has no 'descr'"},
    {"{'descr': '<f4', 'shape': (2,)}", 8, VR_E_FORMAT, "has no 'fortran_order'"},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8, VR_E_FORMAT,
     "'descr' is there twice"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", 8, VR_E_FORMAT,
     "unknown header key 'x'"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} + {}", 8, VR_E_FORMAT,
     "text after the dictionary"},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}", 8, VR_E_FORMAT, "',' or '}'"},
    {"{'descr' '<f4'}", 8, VR_E_FORMAT, "':' is needed"},
    {"{'descr': '<f4", 0, VR_E_FORMAT, "does not end"},
    {"__import__('os').system('true')", 0, VR_E_FORMAT, "dictionary"},
    {"", 0, VR_E_FORMAT, "dictionary"},
};

Test(npy, damaged_headers_and_sizes_are_refused_by_name)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "bad.npy");
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        const damage *r = &damages[i];
        uint8_t zero[16] = {0};
        uint16_t n = (uint16_t)strlen(r->header);
        io_bytes b = {0};
        io_add(&b, "\x93NUMPY\1\0", 8);
        io_add(&b, &n, 2);
        io_add(&b, r->header, n);
        io_add(&b, zero, r->data);
        io_put(path, b.p, b.n);
        io_free(&b);
        vr_tensor t = {.data = zero};
        vr_error err = {0};
        vr_status s = vr_npy_read(path, &t, &err);
        cr_assert(s == r->status, "%s: status %d %s", r->header, s, err.text);
        cr_assert(t.data == NULL, "%s", r->header);
        cr_assert(strstr(err.text, r->needle), "%s: %s", r->header, err.text);
        cr_assert(strstr(err.text, "bad.npy"), "%s: %s", r->header, err.text);
    }
    io_dir_remove(&d);
}

static const struct {
    const char *bytes;
    size_t size;
    vr_status status;
    const char *needle;
} starts[] = {
    {RAW(""), VR_E_FORMAT, "is empty"},
    {RAW("\x93NUM"), VR_E_FORMAT, "not a .npy file"},
    {RAW("\x93NUMPY"), VR_E_FORMAT, "truncated: 6 bytes"},
    {RAW("\x93NUMPY\1\0v"), VR_E_FORMAT, "truncated: 9 bytes"},
    {RAW("\x93NUMPY\2\0v\0\0"), VR_E_FORMAT, "truncated: 11 bytes"},
    {RAW("\x93NUMPY\1\0v\0{}"), VR_E_FORMAT, "truncated: header needs bytes 10..128"},
    {RAW("\x93NUMPY\1\0\3\0{}"), VR_E_FORMAT, "truncated: header needs bytes 10..13"},
    {RAW("\x93NUMPY\2\0\xff\xff\xff\xff{}"), VR_E_FORMAT, "truncated: header needs"},
    {RAW("\x93NUMPY\4\0v\0{}"), VR_E_UNSUPPORTED, ".npy version 4; 1, 2 or 3"},
    {RAW("\x93NUMPY\0\0v\0{}"), VR_E_UNSUPPORTED, ".npy version 0"},
    {RAW("PK\3\4data"), VR_E_FORMAT, "zip archive"},
    {RAW("\2\0\0\0\0\0\0\0{}"), VR_E_FORMAT, "looks like a safetensors file"},
    {RAW("1 2 3\n"), VR_E_FORMAT, "plain text"},
};

Test(npy, files_that_are_no_array_are_refused)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "odd.npy");
    vr_tensor t;
    vr_error err = {0};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        io_put(path, starts[i].bytes, starts[i].size);
        cr_assert(vr_npy_read(path, &t, &err) == starts[i].status, "row %zu: %s", i, err.text);
        cr_assert(strstr(err.text, starts[i].needle), "row %zu: %s", i, err.text);
    }
    cr_assert(vr_npy_read(d.path, &t, &err) == VR_E_IO);
    cr_assert(vr_npy_read(IO_FILE(&d, "none.npy"), &t, &err) == VR_E_NOTFOUND);
    vr_tensor b = {VR_BF16, 1, {1}, &err};
    cr_assert(vr_npy_write(path, &b, &err) == VR_E_DTYPE && strstr(err.text, "BF16"), "%s",
              err.text);
    b = (vr_tensor){VR_F32, 1, {1}, NULL};
    cr_assert(vr_npy_write(path, &b, &err) == VR_E_ARGUMENT);
    b = (vr_tensor){VR_F32, 1, {-1}, &err};
    cr_assert(vr_npy_write(path, &b, &err) == VR_E_SHAPE);
    io_dir_remove(&d);
}
