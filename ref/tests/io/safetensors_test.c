/* safetensors round trips and readings (clause F2).
 *
 * SPDX-License-Identifier: MIT */
#include "io_test.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const vr_dtype all_types[] = {
#define VR_X(name, code, text, bytes) name,
    VR_DTYPE_MAP(VR_X)
#undef VR_X
};
#define TYPES (sizeof all_types / sizeof all_types[0])

Test(safetensors, every_type_comes_back_byte_for_byte_in_one_file)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "all.safetensors");
    uint8_t data[TYPES][48];
    vr_tensor t[TYPES];
    char name[TYPES][32];
    const char *names[TYPES];
    for (size_t i = 0; i < TYPES; i++) {
        for (size_t k = 0; k < 48; k++)
            data[i][k] = (uint8_t)(i * 48 + k * 11);
        t[i] = (vr_tensor){all_types[i], 2, {2, 3}, data[i]};
        snprintf(name[i], sizeof name[i], "t.%s", vr_dtype_name(all_types[i]));
        names[i] = name[i];
    }
    vr_error err = {0};
    vr_safetensors *f = NULL;
    cr_assert(!vr_safetensors_write(path, names, t, TYPES, NULL, 0, &err), "%s", err.text);
    cr_assert(!vr_safetensors_open(path, &f, &err), "%s", err.text);
    cr_assert(vr_safetensors_count(f) == (int64_t)TYPES);
    for (size_t i = 0; i < TYPES; i++) {
        const vr_named_tensor *n = vr_safetensors_find(f, names[i]);
        cr_assert(n && n->tensor.dtype == all_types[i] && n->tensor.rank == 2, "%s", names[i]);
        cr_assert(n->tensor.dim[0] == 2 && n->tensor.dim[1] == 3, "%s", names[i]);
        cr_assert(!strcmp(n->dtype_text, vr_dtype_name(all_types[i])) && !strcmp(n->file, path));
        cr_assert(!memcmp(n->tensor.data, data[i], 6 * vr_dtype_size(all_types[i])), "%s",
                  names[i]);
    }
    cr_assert(vr_safetensors_find(f, "t.F3") == NULL && vr_safetensors_find(f, "") == NULL);
    cr_assert(!vr_safetensors_at(f, -1) && !vr_safetensors_at(f, (int64_t)TYPES));
    for (int64_t i = 1; i < vr_safetensors_count(f); i++)
        cr_assert(strcmp(vr_safetensors_at(f, i - 1)->name, vr_safetensors_at(f, i)->name) < 0);
    vr_safetensors_close(f);
    io_dir_remove(&d);
}

/* Written by the format's own Python library (numpy tensors b, a, h). */
static const char foreign[] =
    "\xc8\0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"np\"},\"a\":{\"dtype\":\"F32\","
    "\"shape\":[1,2],\"data_offsets\":[0,8]},\"h\":{\"dtype\":\"F16\",\"shape\":[2],"
    "\"data_offsets\":[8,12]},\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[12,15]}}"
    "     \0\0\xc0?\0\0\0\xc0\0<\0008\1\2\3";

Test(safetensors, a_file_of_the_reference_library_reads_and_is_written_again_alike)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "np.safetensors"), *copy = IO_FILE(&d, "copy.safetensors");
    io_put(path, foreign, sizeof foreign - 1);
    vr_error err = {0};
    vr_safetensors *f = NULL;
    cr_assert(!vr_safetensors_open(path, &f, &err), "%s", err.text);
    float a[2];
    memcpy(a, vr_safetensors_find(f, "a")->tensor.data, 8);
    cr_assert(a[0] == 1.5f && a[1] == -2.0f);
    cr_assert(vr_safetensors_find(f, "b")->offset == 208 + 12);
    cr_assert(!strcmp(vr_safetensors_metadata(f, "format"), "np"));
    cr_assert(vr_safetensors_metadata(f, "author") == NULL);
    const char *names[] = {"a", "h", "b"};
    vr_tensor t[3];
    for (int i = 0; i < 3; i++)
        t[i] = vr_safetensors_find(f, names[i])->tensor;
    vr_metadata meta = {"format", "np"};
    cr_assert(!vr_safetensors_write(copy, names, t, 3, &meta, 1, &err), "%s", err.text);
    size_t n;
    uint8_t *p = io_get(copy, &n);
    cr_assert(n == sizeof foreign - 1 && !memcmp(p, foreign, n), "not the same bytes");
    free(p);
    vr_safetensors_close(f);
    io_dir_remove(&d);
}

/* U8[3], F16[2], F32[2], BF16[1] from data byte 0: all but the first misaligned. */
static const char mixed[] =
    "\"u\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
    "\"h\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[3,7]},"
    "\"f\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[7,15]},"
    "\"z\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[15,17]}";

Test(safetensors, data_starts_exactly_behind_the_header_whatever_its_length)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "odd.safetensors");
    static const struct {
        const char *spec;
        int first, bytes;
    } rows[] = {{"u", 0, 3}, {"h", 3, 4}, {"f", 7, 8}, {"z", 15, 2}};
    for (size_t phase = 0; phase < 8; phase++) { /* 8 + N = phase (mod 8) */
        char header[512];
        int n = snprintf(header, sizeof header, "{%s}", mixed);
        while ((size_t)n % 8 != phase)
            header[n++] = ' ';
        header[n] = '\0';
        io_bytes b = io_safetensors(header, 17);
        io_put(path, b.p, b.n);
        io_free(&b);
        for (size_t i = 0; i < 4; i++) {
            char spec[IO_PATH + 8];
            snprintf(spec, sizeof spec, "%s#%s", path, rows[i].spec);
            vr_tensor t;
            vr_error err = {0};
            cr_assert(!vr_tensor_load(spec, &t, &err), "%s", err.text);
            cr_assert((uintptr_t)t.data % 64 == 0);
            for (int k = 0; k < rows[i].bytes; k++)
                cr_assert(((uint8_t *)t.data)[k] == rows[i].first + k, "phase %zu %s", phase,
                          rows[i].spec);
            vr_tensor_free(&t);
        }
    }
    io_dir_remove(&d);
}

Test(safetensors, an_unknown_type_does_not_stop_the_others)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "mixed.safetensors");
    io_bytes b = io_safetensors("{\"x\":{\"dtype\":\"F4_WILD\",\"shape\":[7],\"data_offsets\":"
                                "[0,4]},\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":"
                                "[4,6],\"more\":null}}", 6);
    io_put(path, b.p, b.n);
    vr_error err = {0};
    vr_safetensors *f = NULL;
    cr_assert(!vr_safetensors_open(path, &f, &err), "%s", err.text);
    const vr_named_tensor *x = vr_safetensors_find(f, "x");
    cr_assert(x->tensor.dtype == VR_DTYPE_NONE && !strcmp(x->dtype_text, "F4_WILD"));
    cr_assert(x->tensor.dim[0] == 7);
    cr_assert(((uint8_t *)vr_safetensors_find(f, "a")->tensor.data)[0] == 4);
    vr_safetensors_close(f);
    char spec[IO_PATH + 8];
    snprintf(spec, sizeof spec, "%s#x", path);
    vr_tensor t;
    cr_assert(vr_tensor_load(spec, &t, &err) == VR_E_DTYPE && strstr(err.text, "'F4_WILD'"), "%s",
              err.text);
    io_free(&b);
    io_dir_remove(&d);
}

Test(safetensors, empty_files_scalars_zero_size_and_odd_names_are_legal)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "edge.safetensors");
    vr_error err = {0};
    vr_safetensors *f = NULL;
    cr_assert(!vr_safetensors_write(path, NULL, NULL, 0, NULL, 0, &err), "%s", err.text);
    cr_assert(!vr_safetensors_open(path, &f, &err), "%s", err.text);
    cr_assert(vr_safetensors_count(f) == 0 && !vr_safetensors_find(f, "a"));
    vr_safetensors_close(f);

    float one = 1;
    const char *names[] = {"", "a b\n\"\\", "z\xc3\xa9\xf0\x9f\x8e\xa8", "\xe6\x97\xa5"};
    vr_tensor t[] = {{VR_F32, 0, {0}, &one},
                     {VR_F32, 3, {4, 0, 2}, NULL},
                     {VR_F32, 8, {1, 1, 1, 1, 1, 1, 1, 1}, &one},
                     {VR_U8, 1, {1}, &one}};
    cr_assert(!vr_safetensors_write(path, names, t, 4, NULL, 0, &err), "%s", err.text);
    cr_assert(!vr_safetensors_open(path, &f, &err), "%s", err.text);
    for (int i = 0; i < 4; i++) {
        const vr_named_tensor *n = vr_safetensors_find(f, names[i]);
        cr_assert(n && n->tensor.rank == t[i].rank, "name %d", i);
        cr_assert(!memcmp(n->tensor.dim, t[i].dim, sizeof t[i].dim), "name %d", i);
    }
    vr_safetensors_close(f);
    io_dir_remove(&d);
}

Test(safetensors, headers_are_padded_to_eight_bytes_and_no_more)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "pad.safetensors");
    int unpadded = 0;
    for (int length = 0; length < 16; length++) {
        char name[16];
        memset(name, 'n', sizeof name);
        name[length] = '\0';
        const char *names[] = {name};
        uint8_t v = 7;
        vr_tensor t = {VR_U8, 1, {1}, &v};
        cr_assert(!vr_safetensors_write(path, names, &t, 1, NULL, 0, NULL));
        size_t size;
        uint8_t *p = io_get(path, &size);
        uint64_t n;
        memcpy(&n, p, 8);
        cr_assert(n % 8 == 0 && size == 8 + n + 1 && p[size - 1] == 7, "name of %d", length);
        size_t pad = 0;
        while (p[8 + n - 1 - pad] == ' ')
            pad++;
        cr_assert(pad < 8, "name of %d: %zu spaces", length, pad);
        unpadded += pad == 0;
        free(p);
    }
    cr_assert(unpadded == 2);
    io_dir_remove(&d);
}

Test(safetensors, the_writer_refuses_what_a_reader_would)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "no.safetensors");
    float v[4] = {0};
    static const struct {
        const char *title, *first, *second;
        vr_dtype dtype;
        int32_t rank;
        int64_t dim;
        bool data;
        vr_status status;
        const char *needle;
    } rows[] = {
        {"twice", "a", "a", VR_F32, 1, 4, true, VR_E_ARGUMENT, "two tensors are named 'a'"},
        {"reserved", "__metadata__", "b", VR_F32, 1, 4, true, VR_E_ARGUMENT, "__metadata__"},
        {"not UTF-8", "a\xff", "b", VR_F32, 1, 4, true, VR_E_ARGUMENT, "not valid UTF-8"},
        {"no type", "a", "b", VR_DTYPE_NONE, 1, 4, true, VR_E_DTYPE, "no element type"},
        {"negative", "a", "b", VR_F32, 1, -1, true, VR_E_SHAPE, "no valid shape"},
        {"rank", "a", "b", VR_F32, 9, 1, true, VR_E_SHAPE, "no valid shape"},
        {"no data", "a", "b", VR_F32, 1, 4, false, VR_E_ARGUMENT, "no data"},
        {"2^65 bytes", "a", "b", VR_F64, 1, INT64_C(1) << 62, true, VR_E_SHAPE, "'a'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *names[] = {rows[i].first, rows[i].second};
        vr_tensor t = {rows[i].dtype, rows[i].rank, {rows[i].dim}, rows[i].data ? v : NULL};
        vr_tensor both[] = {t, t};
        vr_error err = {0};
        vr_status s = vr_safetensors_write(path, names, both, 2, NULL, 0, &err);
        cr_assert(s == rows[i].status, "%s: %d %s", rows[i].title, s, err.text);
        cr_assert(strstr(err.text, rows[i].needle) && strstr(err.text, "no.safetensors"), "%s: %s",
                  rows[i].title, err.text);
    }
    vr_metadata meta = {"k", "\xff"};
    cr_assert(vr_safetensors_write(path, NULL, NULL, 0, &meta, 1, NULL) == VR_E_ARGUMENT);
    cr_assert(io_dir_entries(&d) == 0);
    io_dir_remove(&d);
}

Test(safetensors, only_well_formed_utf8_is_a_name)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"", true},           {"plain", true},          {"\xc2\x80", true},
        {"\xdf\xbf", true},   {"\xe0\xa0\x80", true},  {"\xed\x9f\xbf", true},
        {"\xee\x80\x80", true}, {"\xf0\x90\x80\x80", true}, {"\xf4\x8f\xbf\xbf", true},
        {"\x80", false},      {"\xc1\xbf", false},      {"\xc2", false},
        {"\xc2 ", false},     {"\xe0\x9f\xbf", false},  {"\xed\xa0\x80", false},
        {"\xe2\x82", false},  {"\xf0\x8f\xbf\xbf", false}, {"\xf4\x90\x80\x80", false},
        {"\xf5\x80\x80\x80", false}, {"\xff", false}, {"a\xe2\x82\xacz", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_assert(vr_io_is_utf8(rows[i].text) == rows[i].good, "row %zu", i);
}

Test(safetensors, the_writer_obeys_the_header_limit_of_the_reader)
{
    io_dir d = io_dir_make();
    size_t n = VR_SAFETENSORS_MAX_HEADER;
    char *value = malloc(n + 1);
    memset(value, 'x', n);
    value[n] = '\0';
    vr_metadata meta = {"k", value};
    vr_error err = {0};
    vr_status s = vr_safetensors_write(IO_FILE(&d, "huge.st"), NULL, NULL, 0, &meta, 1, &err);
    cr_assert(s == VR_E_UNSUPPORTED && strstr(err.text, "at most 100000000"), "%s", err.text);
    cr_assert(io_dir_entries(&d) == 0);
    free(value);
    io_dir_remove(&d);
}

Test(safetensors, shards_act_as_one_file)
{
    io_dir d = io_dir_make();
    cr_assert(mkdir(IO_FILE(&d, "sub"), 0777) == 0);
    uint8_t v[3] = {10, 20, 30};
    const char *first[] = {"c", "a"}, *second[] = {"b"};
    vr_tensor t[] = {{VR_U8, 1, {1}, v}, {VR_U8, 1, {1}, v + 1}, {VR_U8, 1, {1}, v + 2}};
    vr_metadata meta = {"format", "pt"};
    cr_assert(!vr_safetensors_write(IO_FILE(&d, "m-1.st"), first, t, 2, NULL, 0, NULL));
    cr_assert(!vr_safetensors_write(IO_FILE(&d, "sub/m-2.st"), second, t + 2, 1, &meta, 1, NULL));
    const char *index = IO_FILE(&d, "m.safetensors.index.json");
    /* 'a' is not mapped, but it is in a shard that is opened. */
    static const char text[] = "{\"metadata\": {\"total_size\": 3}, \"weight_map\": {"
                               "\"c\": \"m-1.st\", \"b\": \"sub/m-2.st\"}}";
    io_put(index, text, sizeof text - 1);
    vr_error err = {0};
    vr_safetensors *f = NULL;
    cr_assert(!vr_safetensors_open(index, &f, &err), "%s", err.text);
    cr_assert(vr_safetensors_count(f) == 3);
    static const char *const order[] = {"a", "b", "c"};
    static const uint8_t value[] = {20, 30, 10};
    for (int i = 0; i < 3; i++) {
        const vr_named_tensor *n = vr_safetensors_at(f, i);
        cr_assert(!strcmp(n->name, order[i]) && *(uint8_t *)n->tensor.data == value[i]);
        cr_assert(strstr(n->file, i == 1 ? "sub/m-2.st" : "m-1.st") != NULL);
    }
    cr_assert(!strcmp(vr_safetensors_metadata(f, "format"), "pt"));
    vr_safetensors_close(f);
    cr_assert(chdir(d.path) == 0); /* an index without a folder in its name */
    cr_assert(!vr_safetensors_open("m.safetensors.index.json", &f, &err), "%s", err.text);
    vr_safetensors_close(f);
    cr_assert(chdir("/") == 0);
    io_dir_remove(&d);
}

Test(safetensors, a_growing_file_is_read_as_it_was_when_opened)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "grow.safetensors");
    io_put(path, foreign, sizeof foreign - 1);
    vr_safetensors *f = NULL;
    cr_assert(!vr_safetensors_open(path, &f, NULL));
    int fd = open(path, O_WRONLY | O_APPEND);
    cr_assert(write(fd, "more", 4) == 4);
    close(fd);
    cr_assert(((uint8_t *)vr_safetensors_find(f, "b")->tensor.data)[2] == 3);
    vr_safetensors_close(f);
    vr_safetensors_close(NULL);
    io_dir_remove(&d);
}

Test(safetensors, messages_stay_on_one_line_and_keep_their_end_for_long_names)
{
    char header[4096], name[3000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]}}", name);
    io_bytes b = io_safetensors(header, 9);
    vr_io_shard shard;
    vr_error err = {0};
    char path[3000];
    memset(path, 'p', sizeof path);
    memcpy(path + 2980, "/end.safetensors", 17);
    vr_status s = vr_io_shard_parse(path, io_blob(b.p, b.n), &shard, &err);
    cr_assert(s == VR_E_FORMAT && strstr(err.text, "hold 9"), "%s", err.text);
    cr_assert(strstr(err.text, "/end.safetensors: tensor 'nnn"), "%s", err.text);
    io_free(&b);
}
