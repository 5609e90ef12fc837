/* SHA-256 against the system's sha256sum on a file of awkward length, and
 * updates that bring nothing.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vaeref/core.h"

TestSuite(sha256_file);

static void hex_of(vr_sha256 *s, char hex[65])
{
    uint8_t d[32];
    vr_sha256_final(s, d);
    vr_sha256_hex(d, hex);
}

Test(sha256_file, agrees_with_sha256sum)
{
    if (system("command -v sha256sum >/dev/null 2>&1") != 0)
        cr_skip_test("sha256sum is not installed");
    enum { BYTES = 1234567 };
    static uint32_t words[BYTES / 4 + 1];
    for (uint64_t i = 0; i < sizeof words / 4; i++)
        words[i] = vr_random_u32(4, 2, i);
    char path[] = "sha256_XXXXXX", command[64], want[65] = "", hex[65];
    const int fd = mkstemp(path);
    cr_assert(fd >= 0, "no temporary file");
    const bool written = write(fd, words, BYTES) == BYTES;
    close(fd);
    snprintf(command, sizeof command, "sha256sum %s", path);
    FILE *f = popen(command, "r");
    const bool got = f && fread(want, 1, 64, f) == 64;
    if (f)
        pclose(f);
    unlink(path);
    cr_assert(written && got, "sha256sum gave no digest");
    vr_sha256 s;
    vr_sha256_init(&s);
    vr_sha256_update(&s, words, 1000001);
    vr_sha256_update(&s, (const char *)words + 1000001, BYTES - 1000001);
    hex_of(&s, hex);
    cr_assert(strcmp(hex, want) == 0, "%s, expected %s", hex, want);
}

Test(sha256_file, an_empty_update_changes_nothing_and_may_bring_no_pointer)
{
    vr_sha256 a, b;
    char with[65], without[65];
    vr_sha256_init(&a);
    vr_sha256_init(&b);
    vr_sha256_update(&a, NULL, 0);
    vr_sha256_update(&a, "abc", 3); /* now the block is partly filled */
    vr_sha256_update(&b, "abc", 3);
    vr_sha256_update(&a, NULL, 0);
    hex_of(&a, with);
    hex_of(&b, without);
    cr_assert(strcmp(with, without) == 0, "%s, expected %s", with, without);
}
