/* Damaged safetensors files and indexes (clause F2): each is refused with its
 * status and a one-line message that names file, place and what was expected.
 *
 * SPDX-License-Identifier: MIT */
#include "io_test.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct header_row {
    const char *title, *header;
    size_t data;
    vr_status status;
    const char *needle;
} header_row;

#define T(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const header_row headers[] = {
    {"extra bytes", "{" T("a", "F32", "[2]", "[0,8]") "}", 12, VR_E_FORMAT,
     "has 4 extra bytes after the last tensor"},
    {"only extra bytes", "{}", 3, VR_E_FORMAT, "has 3 extra bytes"},
    {"short by 1", "{" T("a", "F32", "[2]", "[0,8]") "}", 7, VR_E_FORMAT,
     "truncated: tensor 'a' needs bytes 62..70, file has 69"},
    {"short by all", "{" T("a", "F32", "[2]", "[0,8]") "}", 0, VR_E_FORMAT, "truncated: tensor"},
    {"range longer than shape", "{" T("a", "F32", "[2]", "[0,12]") "}", 12, VR_E_FORMAT,
     "F32[2] needs 8 bytes, its data_offsets [0, 12] hold 12"},
    {"range shorter than shape", "{" T("a", "F32", "[1000,1000]", "[0,4]") "}", 4, VR_E_FORMAT,
     "needs 4000000 bytes"},
    {"size of another type", "{" T("a", "F16", "[2]", "[0,8]") "}", 8, VR_E_FORMAT,
     "F16[2] needs 4 bytes"},
    {"backwards", "{" T("a", "F32", "[2]", "[16,8]") "}", 16, VR_E_FORMAT,
     "data_offsets [16, 8] run backwards"},
    {"negative offsets", "{" T("a", "F32", "[2]", "[-8,8]") "}", 8, VR_E_FORMAT,
     "'data_offsets' are not both integers"},
    {"wild range", "{" T("a", "U8", "[8]", "[9223372036854775799,9223372036854775807]") "}", 8,
     VR_E_FORMAT, "truncated: tensor 'a' needs bytes 9223372036854775"},
    {"offset beyond 63 bits", "{" T("a", "U8", "[8]", "[0,18446744073709551608]") "}", 8,
     VR_E_FORMAT, "too big integer"},
    {"three offsets", "{" T("a", "F32", "[2]", "[0,8,8]") "}", 8, VR_E_FORMAT,
     "'data_offsets' is a list of 3"},
    {"one offset", "{" T("a", "F32", "[2]", "[8]") "}", 8, VR_E_FORMAT, "a list of 1"},
    {"offsets no list", "{" T("a", "F32", "[2]", "8") "}", 8, VR_E_FORMAT,
     "'data_offsets' is an integer"},
    {"offset real", "{" T("a", "F32", "[2]", "[0,8.0]") "}", 8, VR_E_FORMAT, "not both integers"},
    {"offset boolean", "{" T("a", "F32", "[2]", "[false,8]") "}", 8, VR_E_FORMAT,
     "not both integers"},
    {"unknown type, wild start", "{" T("a", "F4", "[2]", "[4000000000,4000000001]") "}", 8,
     VR_E_FORMAT, "truncated: tensor 'a'"},
    {"shape overflow", "{" T("a", "F32", "[4611686018427387904,4]", "[0,0]") "}", 0, VR_E_FORMAT,
     "more than 2^62 elements"},
    {"byte size overflow", "{" T("a", "F64", "[4611686018427387904]", "[0,0]") "}", 0,
     VR_E_FORMAT, "tensor 'a': F64[4611686018427387904]"},
    {"dimension -1", "{" T("a", "F32", "[-1]", "[0,8]") "}", 8, VR_E_FORMAT,
     "shape[0] is not an integer"},
    {"dimension 1.5", "{" T("a", "F32", "[1,1.5]", "[0,8]") "}", 8, VR_E_FORMAT,
     "shape[1] is not an integer"},
    {"dimension 1e3", "{" T("a", "F32", "[1e3]", "[0,8]") "}", 8, VR_E_FORMAT,
     "shape[0] is not an integer"},
    {"dimension true", "{" T("a", "F32", "[true,2]", "[0,8]") "}", 8, VR_E_FORMAT, "shape[0]"},
    {"dimension text", "{" T("a", "F32", "[\"2\"]", "[0,8]") "}", 8, VR_E_FORMAT, "shape[0]"},
    {"shape no list", "{" T("a", "F32", "2", "[0,8]") "}", 8, VR_E_FORMAT,
     "'shape' is an integer"},
    {"nine dimensions", "{" T("a", "F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]") "}", 8,
     VR_E_UNSUPPORTED, "has 9 dimensions; at most 8"},
    {"overlap", "{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[4,12]") "}", 12,
     VR_E_FORMAT, "tensors 'a' and 'b' overlap"},
    {"same range twice", "{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[0,8]") "}",
     8, VR_E_FORMAT, "overlap"},
    {"hole", "{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[12,20]") "}", 20,
     VR_E_FORMAT, "a hole of 4 bytes before tensor 'b'"},
    {"hole at the start", "{" T("a", "F32", "[2]", "[8,16]") "}", 16, VR_E_FORMAT,
     "a hole of 8 bytes before tensor 'a'"},
    {"no dtype", "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, VR_E_FORMAT,
     "'dtype' is absent"},
    {"no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, VR_E_FORMAT,
     "'shape' is absent"},
    {"no offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, VR_E_FORMAT,
     "'data_offsets' is absent"},
    {"dtype no text", "{\"a\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     VR_E_FORMAT, "'dtype' is an integer; a string is needed"},
    {"entry no object", "{\"a\":[]}", 0, VR_E_FORMAT, "tensor 'a' is a list"},
    {"duplicate tensor", "{" T("a", "U8", "[1]", "[0,1]") "," T("a", "U8", "[1]", "[1,2]") "}", 2,
     VR_E_FORMAT, "duplicate object key"},
    {"duplicate field", "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[1]}}", 1,
     VR_E_FORMAT, "duplicate object key"},
    {"NUL in a name", "{" T("a\\u0000b", "U8", "[1]", "[0,1]") "}", 1, VR_E_FORMAT,
     "not valid JSON at byte"},
    {"name not UTF-8", "{" T("a\xff", "U8", "[1]", "[0,1]") "}", 1, VR_E_FORMAT,
     "not valid JSON at byte"},
    {"control characters in a name", "{" T("evil\\n\\u001b[31m", "U8", "[2]", "[0,1]") "}", 1,
     VR_E_FORMAT, "tensor 'evil??[31m'"},
    {"metadata no object", "{\"__metadata__\":[]}", 0, VR_E_FORMAT, "'__metadata__' is a list"},
    {"metadata number", "{\"__metadata__\":{\"format\":1}}", 0, VR_E_FORMAT,
     "key 'format' is an integer; only strings"},
    {"cut header text", "{\"a\":{\"dtype\":", 0, VR_E_FORMAT, "not valid JSON at byte"},
    {"text after the object", "{} x", 0, VR_E_FORMAT, "not valid JSON at byte"},
    {"leading space", " {}", 0, VR_E_FORMAT, "does not start with '{'"},
    {"a list", "[]", 0, VR_E_FORMAT, "does not start with '{'"},
    {"no header", "", 4, VR_E_FORMAT, "header of 0 bytes"},
};

static void expect_refusal(const char *title, const char *path, vr_status status,
                           const char *needle)
{
    vr_error err = {0};
    vr_safetensors *f = (void *)&err;
    vr_status s = vr_safetensors_open(path, &f, &err);
    cr_assert(s == status, "%s: status %d (%s)", title, s, err.text);
    cr_assert(f == NULL && err.status == status, "%s", title);
    cr_assert(strstr(err.text, needle), "%s: %s", title, err.text);
    cr_assert(strstr(err.text, strrchr(path, '/') + 1), "%s: no file name: %s", title, err.text);
    cr_assert(vr_safetensors_open(path, &f, NULL) == status, "%s: without err", title);
}

Test(safetensors_damage, header_rules)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "bad.safetensors");
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        const header_row *r = &headers[i];
        io_bytes b = io_safetensors(r->header, r->data);
        io_put(path, b.p, b.n);
        expect_refusal(r->title, path, r->status, r->needle);
        io_free(&b);
    }
    io_dir_remove(&d);
}

typedef struct raw_row {
    const char *title, *bytes;
    size_t size;
    const char *needle;
} raw_row;

#define RAW(s) s, sizeof(s) - 1

static const raw_row raws[] = {
    {"empty", RAW(""), "is empty"},
    {"7 bytes", RAW("\1\0\0\0\0\0\0"), "has 7 bytes"},
    {"8 zero bytes", RAW("\0\0\0\0\0\0\0\0"), "header of 0 bytes"},
    {"9 bytes, length 2", RAW("\2\0\0\0\0\0\0\0{"), "truncated: header needs bytes 8..10"},
    {"9 bytes, length 1", RAW("\1\0\0\0\0\0\0\0{"), "not valid JSON at byte"},
    {"length 2^63", RAW("\0\0\0\0\0\0\0\x80{}"), "9223372036854775808 is over the limit"},
    {"length 2^64-1", RAW("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "18446744073709551615 is over"},
    {"length = size - 7", RAW("\3\0\0\0\0\0\0\0{}"), "truncated: header needs bytes 8..11"},
    {"length 100,000,000", RAW("\x00\xe1\xf5\x05\0\0\0\0{}"), "truncated: header needs"},
    {"length 100,000,001", RAW("\x01\xe1\xf5\x05\0\0\0\0{}"), "over the limit of 100000000"},
    {"git lfs", RAW("version https://git-lfs.github.com/spec/v1\noid"), "Git LFS pointer"},
    {"html", RAW("<!DOCTYPE html><html>"), "HTML page"},
    {"zip", RAW("PK\3\4\24\0\0\0\0\0abc"), "zip archive"},
    {"gguf", RAW("GGUF\3\0\0\0\0\0"), "GGUF"},
    {"pickle", RAW("\x80\2}q\0X\4\0\0\0"), "Python pickle"},
    {"gzip", RAW("\x1f\x8b\x08\0\0\0\0\0\0\3"), "gzip"},
    {"npy", RAW("\x93NUMPY\1\0v\0"), "NumPy"},
    {"png", RAW("\x89PNG\r\n\x1a\n\0\0"), "PNG picture"},
    {"json", RAW("{\"weight_map\": {}}"), "JSON text"},
    {"text", RAW("hello world, this is text"), "plain text"},
    {"short text", RAW("hello"), "plain text"},
};

Test(safetensors_damage, files_that_are_something_else)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "odd.safetensors");
    for (size_t i = 0; i < sizeof raws / sizeof raws[0]; i++) {
        io_put(path, raws[i].bytes, raws[i].size);
        expect_refusal(raws[i].title, path, VR_E_FORMAT, raws[i].needle);
    }
    expect_refusal("folder", d.path, VR_E_IO, "is a folder");
    expect_refusal("absent", IO_FILE(&d, "absent"), VR_E_NOTFOUND, "no such file");
    expect_refusal("file as folder", IO_FILE(&d, "odd.safetensors/x"), VR_E_NOTFOUND,
                   "no such file");
    io_dir_remove(&d);
}

Test(safetensors_damage, deep_nesting_is_refused)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "deep.safetensors");
    enum { DEEP = 200000 };
    char *text = malloc(DEEP + 1);
    memset(text, '[', DEEP);
    memcpy(text, "{\"a\":", 5);
    text[DEEP] = '\0';
    io_bytes b = io_safetensors(text, 0);
    io_put(path, b.p, b.n);
    expect_refusal("deep", path, VR_E_FORMAT, "not valid JSON at byte");
    io_free(&b);
    free(text);
    io_dir_remove(&d);
}

Test(safetensors_damage, header_at_the_cap_is_read_and_above_it_refused)
{
    size_t n = VR_SAFETENSORS_MAX_HEADER;
    uint8_t *p = malloc(8 + n + 1);
    uint64_t length = n;
    memcpy(p, &length, 8);
    memset(p + 8, ' ', n + 1);
    memcpy(p + 8, "{}", 2);
    vr_error err = {0};
    vr_io_shard shard;
    vr_status s = vr_io_shard_parse("cap", (vr_io_blob){p, 8 + n, false}, &shard, &err);
    cr_assert(s == VR_OK, "%s", err.text);
    vr_io_shard_close(&shard);
    p = malloc(8 + n + 1);
    length = n + 1;
    memcpy(p, &length, 8);
    memset(p + 8, ' ', n + 1);
    s = vr_io_shard_parse("cap", (vr_io_blob){p, 8 + n + 1, false}, &shard, &err);
    cr_assert(s == VR_E_FORMAT && strstr(err.text, "100000001 is over the limit"), "%s",
              err.text);
}

typedef struct index_row {
    const char *title, *text;
    vr_status status;
    const char *needle;
} index_row;

/* one.safetensors holds a and b, two.safetensors holds c and a */
static const index_row indexes[] = {
    {"missing shard", "{\"weight_map\":{\"x\":\"three.safetensors\"}}", VR_E_NOTFOUND,
     "three.safetensors: no such file"},
    {"absent from its shard", "{\"weight_map\":{\"c\":\"one.safetensors\"}}", VR_E_FORMAT,
     "puts tensor 'c' into shard 'one.safetensors', which does not hold it"},
    {"in two shards", "{\"weight_map\":{\"b\":\"one.safetensors\",\"c\":\"two.safetensors\"}}",
     VR_E_FORMAT, "tensor 'a' is in two shards"},
    {"absolute", "{\"weight_map\":{\"a\":\"/one.safetensors\"}}", VR_E_FORMAT,
     "sends tensor 'a' to '/one.safetensors'; a file inside"},
    {"parent", "{\"weight_map\":{\"a\":\"../one.safetensors\"}}", VR_E_FORMAT, "a file inside"},
    {"hidden parent", "{\"weight_map\":{\"a\":\"x/../../one.safetensors\"}}", VR_E_FORMAT,
     "a file inside"},
    {"only parent", "{\"weight_map\":{\"a\":\"..\"}}", VR_E_FORMAT, "a file inside"},
    {"empty name", "{\"weight_map\":{\"a\":\"\"}}", VR_E_FORMAT, "a file inside"},
    {"number", "{\"weight_map\":{\"a\":1}}", VR_E_FORMAT, "gives an integer for tensor 'a'"},
    {"no map", "{\"metadata\":{}}", VR_E_FORMAT, "'weight_map' is absent"},
    {"map a list", "{\"weight_map\":[]}", VR_E_FORMAT, "'weight_map' is a list"},
    {"duplicate name", "{\"weight_map\":{\"a\":\"one.safetensors\",\n\"a\":\"two.safetensors\"}}",
     VR_E_FORMAT, "duplicate object key"},
    {"damaged shard", "{\"weight_map\":{\"a\":\"bad.safetensors\"}}", VR_E_FORMAT,
     "shard 'bad.safetensors'"},
    {"folder as shard", "{\"weight_map\":{\"a\":\"folder\"}}", VR_E_IO, "is a folder"},
    {"not JSON", "{\n\"weight_map\": oops}", VR_E_FORMAT, ".json:2:"},
    {"empty", "", VR_E_FORMAT, "not valid JSON"},
    {"root a list", "[]", VR_E_FORMAT, "an object {...} is needed"},
};

Test(safetensors_damage, index_rules)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "model.safetensors.index.json");
    io_bytes one = io_safetensors("{" T("a", "U8", "[1]", "[0,1]") "," T("b", "U8", "[1]", "[1,2]")
                                  "}", 2);
    io_bytes two = io_safetensors("{" T("c", "U8", "[1]", "[0,1]") "," T("a", "U8", "[1]", "[1,2]")
                                  "}", 2);
    io_put(IO_FILE(&d, "one.safetensors"), one.p, one.n);
    io_put(IO_FILE(&d, "two.safetensors"), two.p, two.n);
    io_put(IO_FILE(&d, "bad.safetensors"), two.p, two.n - 1);
    cr_assert(mkdir(IO_FILE(&d, "folder"), 0777) == 0);
    for (size_t i = 0; i < sizeof indexes / sizeof indexes[0]; i++) {
        io_put(path, indexes[i].text, strlen(indexes[i].text));
        expect_refusal(indexes[i].title, path, indexes[i].status, indexes[i].needle);
    }
    io_free(&one);
    io_free(&two);
    io_dir_remove(&d);
}
