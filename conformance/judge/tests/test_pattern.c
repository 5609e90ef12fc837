/* Patterns of positions in words (J12). SPDX-License-Identifier: MIT */
#include "judge/pattern.h"

#include <criterion/criterion.h>
#include <string.h>

/* '#' is a hit */
static const char *text_of(const char *line, bool edges)
{
    static char text[200];
    bool hit[300];
    const int64_t n = (int64_t)strlen(line);
    for (int64_t i = 0; i < n; i++)
        hit[i] = line[i] == '#';
    const vj_pattern p = vj_pattern_find(hit, n);
    return vj_pattern_text(&p, "column", "columns", edges, text, sizeof text);
}

Test(judge_pattern, every_shape_has_its_words)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"................", ""},
        {"################", ""},
        {"#############...", ""}, /* more than three quarters */
        {"###.............", "the first 3 columns"},
        {"#...............", "the first column"},
        {".............###", "the last 3 columns"},
        {"...............#", "the last column"},
        {"....#...........", "column 4"},
        {"....####........", "columns 4 to 7"},
        {"#..............#", "the first column and the last column"},
        {"##.............#", "the first 2 columns and the last column"},
        {".......#.......#", "every 8th column from 7"},
        {".#..#..#..#..#..", "every 3rd column from 1"},
        {"#.#.#.#.#.#.#.#.", "every 2nd column from 0"},
        {"..##....##....##", "columns 2 to 3 of every 6"},
        {"#.##....#.##....", "3 of every 8 columns"},
        {".#.#.#.........#", "columns 1, 3, 5 and 15"},
        {"#.#..#.#.##..#.#", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect_str_eq(text_of(cases[i].line, true), cases[i].text, "%s: %s", cases[i].line,
                         text_of(cases[i].line, true));
    cr_expect_str_eq(text_of("...............#", false), "column 15");
    cr_expect_str_eq(text_of("##..............", false), "columns 0 to 1");
}

Test(judge_pattern, ordinals)
{
    static const struct {
        int period;
        const char *text;
    } cases[] = {{11, "every 11th column from 0"}, {13, "every 13th column from 0"}, {21, "every 21st column from 0"},
                 {22, "every 22nd column from 0"}, {43, "every 43rd column from 0"}, {64, "every 64th column from 0"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[200] = "";
        for (int j = 0; j < 3 * cases[i].period; j++)
            line[j] = j % cases[i].period ? '.' : '#';
        cr_expect_str_eq(text_of(line, true), cases[i].text);
    }
}
