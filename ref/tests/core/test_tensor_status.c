/* Error records stay one line; tensors refuse shapes that no memory could hold.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "vaeref/core.h"

TestSuite(status);
TestSuite(tensor);

Test(status, a_failure_fills_one_line_and_returns_its_code)
{
    vr_error err;
    memset(&err, 'x', sizeof err);
    cr_assert(vr_fail(&err, VR_E_FORMAT, "tensor '%s' at %d", "a\nb\r\tc\x7f\x1b[31m", 7) ==
              VR_E_FORMAT);
    cr_assert(err.status == VR_E_FORMAT);
    cr_assert(strcmp(err.text, "tensor 'a?b??c??[31m' at 7") == 0, "%s", err.text);
    vr_fail(&err, VR_E_IO, "%s",
            "Stra\xc3\x9f"
            "e"); /* bytes of UTF-8 are no control characters */
    cr_assert(strcmp(err.text, "Stra\xc3\x9f"
                               "e") == 0,
              "%s", err.text);
    cr_assert(vr_fail(NULL, VR_E_SHAPE, "%d", 1) == VR_E_SHAPE);
}

Test(status, a_long_text_is_cut_and_terminated)
{
    char name[2000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    vr_error err;
    vr_fail(&err, VR_E_IO, "%s", name);
    cr_assert(strlen(err.text) == sizeof err.text - 1);
}

Test(status, a_prefix_names_the_place_and_keeps_the_code)
{
    vr_error err;
    vr_fail(&err, VR_E_RANGE, "offset 12 is beyond the end");
    cr_assert(vr_fail_prefix(&err, "file '%s'", "a\nb") == VR_E_RANGE && err.status == VR_E_RANGE);
    cr_assert(strcmp(err.text, "file 'a?b': offset 12 is beyond the end") == 0, "%s", err.text);
    vr_fail_prefix(NULL, "nobody wants the text");
}

Test(status, prefixes_keep_their_front_and_cut_the_old_text)
{
    char name[2000], text[700];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memset(text, 't', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    vr_error err;
    vr_fail(&err, VR_E_IO, "%s", text);
    vr_fail_prefix(&err, "where");
    cr_assert(strlen(err.text) == sizeof err.text - 1 && strncmp(err.text, "where: ttt", 10) == 0,
              "%s", err.text);
    for (int i = 0; i < 4; i++) {
        vr_fail_prefix(&err, "%d%s", i, name);
        cr_assert(strlen(err.text) <= sizeof err.text - 1 && err.text[0] == '0' + i &&
                  err.text[1] == 'n');
        cr_assert(strchr(err.text, ':'), "what was there is gone: %s", err.text);
        cr_assert(err.status == VR_E_IO);
    }
    vr_fail(&err, VR_E_IO, "short");
    vr_fail_prefix(&err, "%s", name);
    const size_t n = strlen(err.text);
    cr_assert(n > 7 && strcmp(err.text + n - 7, ": short") == 0,
              "a long prefix lost a short text: %s", err.text);
}

Test(status, every_code_has_its_text_and_number)
{
    const struct {
        int code;
        const char *text;
    } known[] = {{0, "ok"},
                 {10, "out of memory"},
                 {11, "memory limit exceeded"},
                 {20, "input/output error"},
                 {21, "not found"},
                 {30, "malformed file"},
                 {31, "unsupported"},
                 {40, "wrong element type"},
                 {41, "wrong shape"},
                 {42, "value out of range"},
                 {50, "model does not fit a known family"},
                 {51, "ambiguous model"},
                 {60, "non-finite value"},
                 {70, "cancelled"},
                 {80, "invalid argument"},
                 {90, "internal error"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        cr_assert(strcmp(vr_status_text((vr_status)known[i].code), known[i].text) == 0,
                  "%d is '%s'", known[i].code, vr_status_text((vr_status)known[i].code));
    cr_assert(strcmp(vr_status_text((vr_status)12), "unknown status") == 0);
}

Test(tensor, count_is_the_product_up_to_its_limit)
{
    const struct {
        int32_t rank;
        int64_t dim[VR_MAX_RANK];
        int64_t want; /* -1: refused */
    } cases[] = {
        {0, {0}, 1},
        {4, {1, 3, 384, 384}, 442368},
        {3, {5, 0, 7}, 0},
        {2, {(int64_t)1 << 31, (int64_t)1 << 31}, (int64_t)1 << 62},
        {2, {((int64_t)1 << 31) + 1, (int64_t)1 << 31}, -1},
        {1, {((int64_t)1 << 62) + 1}, -1},
        {1, {INT64_MAX}, -1},
        {4, {65536, 65536, 65536, 65536}, -1}, /* 2^64: wraps to 0 in 64 bits */
        {3, {INT64_MAX, INT64_MAX, INT64_MAX}, -1},
        {2, {3, -1}, -1},
        {2, {0, -1}, -1},
        {2, {-2, -3}, -1},
        {1, {INT64_MIN}, -1},
        {-1, {0}, -1},
        {VR_MAX_RANK + 1, {1, 1, 1, 1, 1, 1, 1, 1}, -1},
        {8, {2, 2, 2, 2, 2, 2, 2, 2}, 256},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        vr_tensor t = {.dtype = VR_F32, .rank = cases[i].rank};
        memcpy(t.dim, cases[i].dim, sizeof t.dim);
        vr_error err = {0};
        int64_t n = -7;
        const vr_status s = vr_tensor_count(&t, &n, &err);
        if (cases[i].want < 0)
            cr_assert(s == VR_E_SHAPE && n == -7 && err.text[0], "case %zu: %d, %lld", i, (int)s,
                      (long long)n);
        else
            cr_assert(s == VR_OK && n == cases[i].want, "case %zu: %d, %lld", i, (int)s,
                      (long long)n);
    }
}

Test(tensor, description_is_always_terminated)
{
    const vr_tensor t = {.dtype = VR_F32, .rank = 4, .dim = {1, 3, 384, 384}};
    const char *want = "F32[1,3,384,384]";
    for (size_t size = 1; size <= 24; size++) {
        char buf[32];
        memset(buf, '#', sizeof buf);
        cr_assert(vr_tensor_describe(&t, buf, size) == buf);
        cr_assert(strlen(buf) == (size <= strlen(want) ? size - 1 : strlen(want)), "size %zu: %s",
                  size, buf);
        cr_assert(strncmp(buf, want, strlen(buf)) == 0, "size %zu: %s", size, buf);
        cr_assert(buf[size] == '#', "size %zu was passed", size);
    }
    const vr_tensor scalar = {.dtype = VR_BF16}, unknown = {.rank = 1, .dim = {-2}};
    char buf[32];
    cr_assert(strcmp(vr_tensor_describe(&scalar, buf, sizeof buf), "BF16[]") == 0, "%s", buf);
    cr_assert(strcmp(vr_tensor_describe(&unknown, buf, sizeof buf), "?[-2]") == 0, "%s", buf);
}

Test(tensor, new_tensors_are_aligned_and_refusals_leave_the_struct_alone)
{
    const int64_t dim[] = {3, 5, 7}, none[] = {0}, huge[] = {(int64_t)1 << 61}, negative[] = {-1};
    vr_tensor t;
    cr_assert(vr_tensor_new(&t, VR_F16, 3, dim, NULL) == VR_OK);
    cr_assert((uintptr_t)t.data % 64 == 0 && t.rank == 3 && t.dim[2] == 7 && t.dtype == VR_F16);
    memset(t.data, 1, 3 * 5 * 7 * 2);
    vr_tensor_free(&t);
    cr_assert(t.data == NULL && t.rank == 0 && t.dtype == VR_DTYPE_NONE);
    vr_tensor_free(&t);
    vr_tensor_free(NULL);
    cr_assert(vr_tensor_new(&t, VR_F64, 1, none, NULL) == VR_OK && t.data);
    vr_tensor_free(&t);
    cr_assert(vr_tensor_new(&t, VR_F64, 0, NULL, NULL) == VR_OK && t.data);
    vr_tensor_free(&t);
    vr_error err = {0};
    t.rank = 99;
    cr_assert(vr_tensor_new(&t, VR_F64, 1, huge, &err) == VR_E_NOMEM && err.text[0]);
    cr_assert(vr_tensor_new(&t, VR_F64, 1, negative, &err) == VR_E_SHAPE);
    cr_assert(vr_tensor_new(&t, VR_F64, 9, dim, &err) == VR_E_SHAPE);
    cr_assert(vr_tensor_new(&t, VR_F64, -1, dim, &err) == VR_E_SHAPE);
    cr_assert(vr_tensor_new(&t, VR_DTYPE_NONE, 1, dim, &err) == VR_E_DTYPE);
    cr_assert(t.rank == 99 && t.data == NULL, "a refusal wrote the struct");
}
