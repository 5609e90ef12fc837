/* Case files, waivers and frames: everything wrong is refused with the place and what
 * would be right.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/suite.h"
#include "runner/waiver.h"
#include "wire/wire.h"

typedef struct row {
    const char *text, *want;
} row;

#define CASES(inside) "{\"schema\": \"vaeproof-case/1\",\n \"cases\": [\n" inside "\n ]}"
#define OP(inside) CASES("{\"id\": \"op.x\", \"spec\": \"N4\", \"level\": \"L1\", \"contracts\": [\"f32\"], \"op\": \"silu\", " \
                         "\"channels\": [[4, 0]], \"sizes\": [[2, 2]]" inside "}")

Test(parsers, case_files)
{
    static const row rows[] = {
        {"{", "x.json:1:"}, {"[]", "schema"}, {"{\"schema\": \"vaeproof-case/2\", \"cases\": []}", "want vaeproof-case/1"},
        {"{\"schema\": \"vaeproof-case/1\"}", "an array"}, {"{\"schema\": \"vaeproof-case/1\", \"cases\": [], \"more\": 1}", "no such key"},
        {"{\"schema\": \"vaeproof-case/1\", \"schema\": \"vaeproof-case/1\", \"cases\": []}", "duplicate"},
        {CASES("1"), "objects"}, {CASES("{}"), "every entry to have an id"}, {CASES("{\"id\": \"a\"}"), "clause"},
        {CASES("{\"id\": 5}"), "a text"}, {OP(", \"colour\": 1"), "x.json:3: entry 'op.x', key 'colour': want no such key"},
        {OP(", \"level\": \"L9\""), "duplicate"}, {OP(", \"profile\": \"tiny\""), "one of core full embedded"},
        {OP(", \"fills\": [\"random\"]"), "normal integer positive"}, {OP(", \"fills\": []"), "some of normal"},
        {OP(", \"batch\": [0]"), "integers from 1 to 64"}, {OP(", \"batch\": [1.5]"), "integers from 1"},
        {OP(", \"kernel\": [3]"), "2 to 2 integers"}, {OP(", \"pad\": [1, 1, 1, -1]"), "from 0 to 30"},
        {OP(", \"bias\": 1"), "true or false"}, {OP(", \"groups\": 0"), "positive"}, {OP(", \"real\": []"), "1 or 2 numbers"},
        {OP(", \"tile\": {\"mode\": \"blend\"}"), "name of a tile mode"}, {OP(", \"tile\": {\"size\": 3}"), "no such key in tile"},
        {OP(", \"check\": \"x\""), "levels L0 and L7"},
        {CASES("{\"id\": \"a\", \"spec\": \"N4\", \"level\": \"L1\", \"op\": \"sigh\"}"), "name of an operation"},
        {CASES("{\"id\": \"a\", \"spec\": \"N4\", \"level\": \"L1\"}"), "on level L1"},
        {CASES("{\"id\": \"a\", \"spec\": \"N4\", \"level\": \"L1\", \"op\": \"silu\"}"), "pairs of channels"},
        {CASES("{\"id\": \"a\", \"spec\": \"N4\", \"level\": \"L1\", \"op\": \"silu\", \"channels\": [[4, 0]]}"), "sizes and contracts"},
        {CASES("{\"id\": \"a\", \"spec\": \"N4\", \"level\": \"L1\", \"op\": \"silu\", \"channels\": [[4, 0, 1]]}"), "2 to 2 integers"},
        {CASES("{\"id\": \"a\", \"spec\": \"N4\", \"level\": \"L3\"}"), "a model on levels"},
        {CASES("{\"id\": \"a\", \"spec\": \"N4\", \"level\": \"L2\", \"model\": \"synth:sd15\"}"), "two taps"},
        {CASES("{\"id\": \"a\", \"spec\": \"N4\", \"level\": \"L4\", \"model\": \"synth:sd15\"}"), "a tile mode on level L4"},
        {CASES("{\"id\": \"a\", \"spec\": \"N4\", \"level\": \"L0\"}"), "levels L0 and L7"},
        {CASES("{\"id\": \"a\", \"spec\": \"N4\", \"level\": \"L3\", \"model\": \"synth:sd15\", \"contracts\": [\"f8\"]}"), "f32, f16, bf16, f64"},
        {CASES("{\"id\": \"a\", \"spec\": \"A\", \"level\": \"L0\", \"check\": \"c\"}, {\"id\": \"a\", \"spec\": \"A\", \"level\": \"L0\", \"check\": \"c\"}"),
         "no other entry has"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        vc_suite s = {.entry = NULL};
        vr_error err = {VR_OK, ""};
        cr_assert_eq(vc_suite_parse("x.json", rows[i].text, strlen(rows[i].text), &s, &err), VR_E_FORMAT, "row %zu is accepted", i);
        cr_assert(strstr(err.text, rows[i].want) && strstr(err.text, "x.json"), "row %zu: want '%s' in '%s'", i, rows[i].want, err.text);
        vc_suite_free(&s);
    }
}

Test(parsers, good_cases_expand)
{
    vc_suite s = {.entry = NULL};
    vr_error err = {VR_OK, ""};
    const char *text = CASES("{\"id\": \"op.x\", \"spec\": \"N4\", \"level\": \"L1\", \"contracts\": [\"f32\", \"bf16\"], \"op\": \"silu\", "
                             "\"channels\": [[4, 0], [7, 0]], \"sizes\": [[2, 3], [1, 1]], \"batch\": [1, 2], \"fills\": [\"normal\", \"positive\"]}");
    cr_assert_eq(vc_suite_parse("x.json", text, strlen(text), &s, &err), VR_OK, "%s", err.text);
    cr_assert_eq(vc_suite_expand(&s, &err), VR_OK, "%s", err.text);
    cr_assert_eq(s.count, 32);
    cr_assert_str_eq(s.item[0].id, "op.x.f32.c4.2x3");
    cr_assert_str_eq(s.item[31].id, "op.x.bf16.c7.1x1.n2.positive");
    vc_suite_free(&s);
    const char *twice = OP(", \"batch\": [1, 1]");
    s = (vc_suite){.entry = NULL};
    cr_assert_eq(vc_suite_parse("x.json", twice, strlen(twice), &s, &err), VR_OK, "%s", err.text);
    cr_assert_eq(vc_suite_expand(&s, &err), VR_E_FORMAT);
    cr_assert(strstr(err.text, "is there twice"), "%s", err.text);
    vc_suite_free(&s);
}

#define WAIVER(suite, status, expires, more)                                                                             \
    "{\"schema\": \"vaeproof-waivers/1\", \"waivers\": [\n{\"case\": \"op.*\", \"backend\": \"b\", \"suite\": \"" suite          \
    "\", \"status\": \"" status "\", \"reason\": \"r\", \"issue\": \"http://x\", \"owner\": \"o\", \"expires\": \"" expires "\"" more "}]}"

Test(parsers, waivers)
{
    static const row rows[] = {
        {"", "w.json"}, {"[]", "schema"}, {"{\"schema\": \"vaeproof-waivers/9\", \"waivers\": []}", "want vaeproof-waivers/1"},
        {"{\"schema\": \"vaeproof-waivers/1\"}", "an array"}, {"{\"schema\": \"vaeproof-waivers/1\", \"waivers\": [], \"x\": 0}", "no such key"},
        {"{\"schema\": \"vaeproof-waivers/1\", \"waivers\": [3]}", "objects"},
        {"{\"schema\": \"vaeproof-waivers/1\", \"waivers\": [{}]}", "'case'"},
        {WAIVER("9.9", "fail", "2026-12-31", ""), "waiver for suite '9.9'; this is 0.1"},
        {WAIVER("0.1", "unsupported", "2026-12-31", ""), "fail, crash, timeout or mistrusted"},
        {WAIVER("0.1", "fail", "2026-11-30", ""), "expired on 2026-11-30"},
        {WAIVER("0.1", "fail", "2027-08-01", ""), "at most 180 days"},
        {WAIVER("0.1", "fail", "2026-02-30", ""), "a date"}, {WAIVER("0.1", "fail", "soon", ""), "a date"},
        {WAIVER("0.1", "fail", "2026-12-3", ""), "a date"}, {WAIVER("0.1", "fail", "2026-12-31", ", \"bound\": \"x\""), "a number"},
        {WAIVER("0.1", "fail", "2026-12-31", ", \"until\": \"x\""), "w.json:2: waiver, key 'until': want no such key"},
        {WAIVER("0.1", "fail", "2026-12-31", ", \"owner\": \"again\""), "duplicate"}, {WAIVER("0.1", "", "2026-12-31", ""), "neither empty"},
    };
    vc_waivers w;
    vr_error err = {VR_OK, ""};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_eq(vc_waivers_parse("w.json", rows[i].text, strlen(rows[i].text), "0.1", "2026-12-01", &w, &err), VR_E_FORMAT,
                     "row %zu is accepted", i);
        cr_assert(strstr(err.text, rows[i].want), "row %zu: want '%s' in '%s'", i, rows[i].want, err.text);
    }
    const char *good = WAIVER("0.1", "fail", "2026-12-01", ", \"bound\": 12.5");
    cr_assert_eq(vc_waivers_parse("w.json", good, strlen(good), "0.1", "2026-12-01", &w, &err), VR_OK, "%s", err.text);
    cr_assert_not_null(vc_waiver_find(&w, "op.silu.f32", "b"));
    cr_assert_null(vc_waiver_find(&w, "op.silu.f32", "c"));
    cr_assert_null(vc_waiver_find(&w, "decode.x", "b"));
    cr_assert_null(vc_waiver_find(&w, "abi.claims", "b"), "level L0 cannot be waived");
    vc_waivers_free(&w);
}

static int64_t parse(const char *bytes, size_t n, json_t **body)
{
    char kind;
    return wire_parse((const uint8_t *)bytes, n, &kind, body);
}

Test(parsers, frames)
{
    json_t *body;
    cr_assert_eq(parse("\2\0\0\0Q{}", 7, &body), 7);
    json_decref(body);
    cr_assert_eq(parse("\2\0\0\0Q{", 6, &body), 0, "half a frame is no fault");
    cr_assert_eq(parse("\2\0", 2, &body), 0);
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {{"\2\0\0\0X{}", 7}, {"\2\0\0\0Q[]", 7}, {"\2\0\0\0Q{x", 7}, {"\377\377\377\377Q", 5}, {"hello world", 11},
               {"\0\0\0\0Q", 5}, {"\15\0\0\0Q{\"a\":1,\"a\":2}", 18}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(parse(bad[i].bytes, bad[i].n, &body), -1, "row %zu", i);
        cr_assert_null(body);
    }
}

#define TENSOR(dim, stride, bytes) "{\"file\": \"t\", \"offset\": 0, \"bytes\": " bytes ", \"dtype\": 2, \"dim\": " dim ", \"stride\": " stride "}"

Test(parsers, tensors)
{
    vp_tensor t;
    const char *file;
    uint64_t offset;
    vr_error err = {VR_OK, ""};
    static const char *const bad[] = {
        "{}", TENSOR("[]", "[]", "4"), TENSOR("[2]", "[1]", "4"), TENSOR("[2]", "[1, 1]", "8"), TENSOR("[0]", "[1]", "4"),
        TENSOR("[2]", "[-1]", "8"), TENSOR("[1,1,1,1,1,1,1,1,1]", "[1,1,1,1,1,1,1,1,1]", "4"),
        TENSOR("[9223372036854775807, 9223372036854775807]", "[9223372036854775807, 1]", "8"), TENSOR("[2, 2]", "[100, 1]", "16"),
        "{\"file\": \"../t\", \"offset\": 0, \"bytes\": 4, \"dtype\": 2, \"dim\": [1], \"stride\": [1]}",
        "{\"file\": \"t\", \"offset\": -4, \"bytes\": 4, \"dtype\": 2, \"dim\": [1], \"stride\": [1]}",
        "{\"file\": \"t\", \"offset\": 0, \"bytes\": 4, \"dtype\": 77, \"dim\": [1], \"stride\": [1]}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *j = json_loads(bad[i], 0, NULL);
        cr_assert_not_null(j, "row %zu", i);
        cr_assert_eq(wire_tensor_read(j, &t, &file, &offset, &err), VR_E_FORMAT, "row %zu is accepted", i);
        json_decref(j);
    }
    json_t *j = json_loads(TENSOR("[2, 3]", "[5, 1]", "32"), 0, NULL);
    cr_assert_eq(wire_tensor_read(j, &t, &file, &offset, &err), VR_OK, "%s", err.text);
    json_decref(j);
}
