/* Where the error lies (J12). SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "judgecase.h"

TestSuite(judge_fingerprint, .fini = release_tensors);

enum { C = 64, H = 36, W = 52, COUNT = C * H * W };
static vr_tensor got, truth;
static vj_fingerprint f;
static vr_error err;

static vr_axis_tile rows[2] = {{0, 0, 0, 20}, {0, 0, 20, 16}},
                    columns[3] = {{0, 0, 0, 20}, {0, 0, 20, 20}, {0, 0, 40, 12}};
static const vr_tile_grid grid = {.h = {0, 0, 2, rows, 0, 0}, .w = {0, 0, 3, columns, 0, 0}};

static void begin(void)
{
    got = make_tensor(VR_F32, 1, C, H, W, -1);
    truth = make_tensor(VR_F64, 1, C, H, W, -1);
    for (int i = 0; i < COUNT; i++)
        put(&got, i, 0.1 * (double)vr_random_uniform(1, 1, (uint64_t)i));
}

/* wrong(c, y, x, flat): which elements are broken. */
static const char *text_of(bool (*wrong)(int c, int y, int x, int i), const vr_tile_grid *g)
{
    begin();
    int64_t count = 0;
    for (int i = 0; i < COUNT; i++)
        if (wrong(i / W / H, i / W % H, i % W, i)) {
            put(&got, i, 1.0);
            count++;
        }
    cr_assert_eq(vj_fingerprint_make(&got, &truth, NULL, 0.5, g, &f, &err), VR_OK, "%s", err.text);
    cr_assert_eq(f.wrong, count);
    cr_assert(fabs(f.share - (double)count / (double)COUNT) < 1e-12 && f.elements == COUNT);
    const char *colon = strstr(f.text, ": ");
    return colon ? colon + 2 : f.text;
}

#define CASE(name, condition)                              \
    static bool name(int c, int y, int x, int i)           \
    {                                                      \
        (void)c, (void)y, (void)x, (void)i;                \
        return condition;                                  \
    }
CASE(last_columns, x >= W - 3)
CASE(first_row, y == 0)
CASE(channels, c % 16 == 7)
CASE(channel, c == 5)
CASE(channel_tail, c >= 60)
CASE(both, x >= W - 3 && c % 16 == 7)
CASE(sides, x == 0 || x == W - 1)
CASE(frame, x < 2 || y < 2 || x >= W - 2 || y >= H - 2)
CASE(tile, y >= 20 && x >= 20 && x < 40)
CASE(tile_edge, y >= 20 && x == 39)
CASE(seams, x == 19 || x == 20 || x == 39 || x == 40 || y == 19 || y == 20)
CASE(lane, i % 8 == 5)
CASE(half_wave, i % 64 >= 32)
CASE(tail, i >= COUNT - 100)
CASE(head, i < 100)
CASE(middle, i >= 5000 && i < 5100)
CASE(everywhere, vr_random_uniform(3, 1, (uint64_t)i) < 0.3f)
CASE(sparse, vr_random_uniform(3, 1, (uint64_t)i) < 0.0002f)
CASE(most_right, x >= W - 3 || vr_random_uniform(4, 1, (uint64_t)i) < 0.01f)
CASE(all, true)
CASE(none, false)
CASE(single, i == (5 * H + 6) * W + 7)
CASE(column_block, x % 8 >= 4 && x % 8 < 6)

Test(judge_fingerprint, one_sentence_says_where)
{
    cr_expect_str_eq(text_of(last_columns, NULL), "only the last 3 columns");
    cr_expect_str_eq(text_of(first_row, NULL), "only the first row");
    cr_expect_str_eq(text_of(channels, NULL), "only every 16th channel from 7");
    cr_expect_str_eq(text_of(channel, NULL), "only channel 5");
    cr_expect_str_eq(text_of(channel_tail, NULL), "only channels 60 to 63");
    cr_expect_str_eq(text_of(both, NULL), "only the last 3 columns, every 16th channel from 7");
    cr_expect_str_eq(text_of(sides, NULL), "only the first column and the last column");
    cr_expect_str_eq(text_of(frame, NULL), "only within 2 pixels of the picture's border");
    cr_expect_str_eq(text_of(column_block, NULL), "only columns 4 to 5 of every 8");
    cr_expect_str_eq(text_of(lane, NULL), "only every 8th element from 5");
    cr_expect_str_eq(text_of(half_wave, NULL), "only elements 32 to 63 of every 64");
    cr_expect_str_eq(text_of(tail, NULL), "only the last 100 elements");
    cr_expect_str_eq(text_of(head, NULL), "only the first 100 elements");
    cr_expect_str_eq(text_of(middle, NULL), "only elements 5000 to 5099");
    cr_expect_str_eq(text_of(everywhere, NULL), "spread over the whole output");
    cr_expect_str_eq(text_of(sparse, NULL), "spread over the whole output");
    cr_expect_str_eq(text_of(all, NULL), "all 119808 elements are wrong");
    cr_expect_str_eq(text_of(none, NULL), "none of 119808 elements is wrong by itself");
    cr_expect_str_eq(text_of(single, NULL), "1 of 119808 elements is wrong, at [0,5,6,7]");
    cr_expect(strstr(text_of(most_right, NULL), "mostly (86 %) the last 3 columns"), "%s", f.text);
}

Test(judge_fingerprint, tiles_are_named_with_a_grid)
{
    cr_expect_str_eq(text_of(tile, &grid), "only tile (row 1, column 1)");
    cr_assert(f.tile_row == 1 && f.tile_column == 1);
    cr_expect_str_eq(text_of(tile_edge, &grid), "only tile (row 1, column 1), column 39, the last 16 rows");
    cr_expect_str_eq(text_of(seams, &grid), "only within 1 pixel of a tile border");
    cr_assert(f.tile_row == -1 && f.seam_width == 1);
    cr_expect_str_eq(text_of(last_columns, &grid), "only the last 3 columns");
    cr_expect_str_eq(text_of(everywhere, &grid), "spread over the whole output");
}

Test(judge_fingerprint, numbers_are_exact)
{
    text_of(both, NULL);
    cr_assert(f.low[VJ_AXIS_X] == W - 3 && f.high[VJ_AXIS_X] == W - 1 && f.low[VJ_AXIS_Y] == 0 &&
              f.high[VJ_AXIS_Y] == H - 1);
    cr_assert(f.low[VJ_AXIS_C] == 7 && f.high[VJ_AXIS_C] == 55 && f.frame_width == 3 && f.seam_width == 0);
    cr_assert(f.fold_x[49] == 4 * H && f.fold_x[48] == 0 && f.fold_y[35] == 12 && f.first_flat == 7 * H * W + 49);
    text_of(none, NULL);
    cr_assert(f.low[VJ_AXIS_X] == -1 && f.first_flat == -1 && f.share == 0.0);
    cr_assert(strncmp((text_of(last_columns, NULL), f.text), "6912 of 119808 elements (5.77 %) are wrong", 42) == 0,
              "%s", f.text);
}

Test(judge_fingerprint, caps_non_finite_values_and_other_ranks)
{
    got = make_tensor(VR_F32, 2, 1, 5, 4, 8, -1);
    truth = make_tensor(VR_F64, 2, 1, 5, 4, 8, -1);
    vr_tensor cap = make_tensor(VR_F64, 2, 1, 5, 4, 8, -1);
    for (int i = 0; i < 320; i++) {
        put(&cap, i, i / 32 % 5 == 4 ? 0.0 : 1.0);
        put(&got, i, 0.5);
    }
    cr_assert_eq(vj_fingerprint_make(&got, &truth, &cap, NAN, NULL, &f, NULL), VR_OK);
    cr_assert(strstr(f.text, "64 of 320") && strstr(f.text, "only the last frame"), "%s", f.text);
    put(&got, 200, NAN);
    cr_assert_eq(vj_fingerprint_make(&got, &truth, NULL, 1.0, NULL, &f, NULL), VR_OK);
    cr_assert(f.wrong == 1 && strstr(f.text, "[1,0,1,1,0]"), "%s", f.text);
    vr_tensor line = make_tensor(VR_F32, 100, -1), zero = make_tensor(VR_F32, 100, -1);
    for (int i = 90; i < 100; i++)
        put(&line, i, 1.0);
    cr_assert_eq(vj_fingerprint_make(&line, &zero, NULL, 0.0, NULL, &f, NULL), VR_OK);
    cr_assert(strstr(f.text, "only the last 10 columns"), "%s", f.text);
    cr_assert_eq(vj_fingerprint_make(&line, &truth, NULL, 0.0, NULL, &f, &err), VR_E_SHAPE);
    cr_assert_eq(vj_fingerprint_make(&line, &zero, NULL, NAN, NULL, &f, &err), VR_E_RANGE);
    cr_assert_eq(vj_fingerprint_make(&line, &zero, NULL, 0.0, &grid, &f, &err), VR_E_RANGE);
}

Test(judge_fingerprint, a_fault_in_an_honest_picture_is_found_from_the_verdict)
{
    dots d = make_dots(288, 32, 32, false, VR_F16, 6);
    const vj_rules rules = rules_of(VR_F16, VR_F32, VJ_LEVEL_OP);
    vr_tensor bad = sum_dots(&d, SUM_LANES16, VR_F16), coarse = sum_dots(&d, SUM_ACC_F16, VR_F16);
    vj_result r;
    for (int i = 0; i < 1024; i++)
        if (i % 32 >= 24)
            put(&bad, i, get(&coarse, i)); /* eight columns accumulated in f16 */
    cr_assert_eq(vj_numeric(&bad, &d.truth, d.ideal, SUM_IDEALS, &rules, NULL, &r, NULL), VR_OK);
    cr_assert_eq(r.status, VJ_FAIL);
    cr_assert_eq(vj_fingerprint_make(&bad, &d.truth, NULL, r.wrong_above, NULL, &f, NULL), VR_OK);
    cr_assert(strstr(f.text, "only the last 8 columns"), "%s", f.text);
}
