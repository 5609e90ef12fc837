/* SHA-256 (FIPS 180-4): published digests, any chunking, and the stream number
 * of a name (clause N3.4).
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "vaeref/core.h"

TestSuite(sha256);

static const char *digest_in_chunks(const unsigned char *p, size_t n, size_t chunk, char hex[65])
{
    vr_sha256 s;
    uint8_t d[32];
    vr_sha256_init(&s);
    for (size_t i = 0; i < n; i += chunk)
        vr_sha256_update(&s, p + i, n - i < chunk ? n - i : chunk);
    vr_sha256_final(&s, d);
    vr_sha256_hex(d, hex);
    return hex;
}

Test(sha256, published_digests)
{
    const struct {
        const char *text, *want;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
         "mnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char hex[65];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        digest_in_chunks((const unsigned char *)known[i].text, strlen(known[i].text), 1000, hex);
        cr_assert(strcmp(hex, known[i].want) == 0, "'%s' gives %s", known[i].text, hex);
    }
}

Test(sha256, a_million_times_a_in_odd_chunks)
{
    static unsigned char a[1000000];
    memset(a, 'a', sizeof a);
    const size_t chunks[] = {1, 3, 63, 64, 65, 127, 4099, 1000000};
    char hex[65];
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        digest_in_chunks(a, sizeof a, chunks[i], hex);
        cr_assert(strcmp(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") ==
                      0,
                  "chunks of %zu give %s", chunks[i], hex);
    }
}

Test(sha256, chunking_never_matters_around_the_block_length)
{
    unsigned char data[300];
    for (int i = 0; i < 300; i++)
        data[i] = (unsigned char)(i * 37 + 11);
    for (size_t n = 0; n <= 200; n++) {
        char whole[65], parts[65];
        digest_in_chunks(data, n, 300, whole);
        for (size_t chunk = 1; chunk < 70; chunk += 4) {
            digest_in_chunks(data, n, chunk, parts);
            cr_assert(strcmp(whole, parts) == 0, "%zu bytes in chunks of %zu", n, chunk);
        }
    }
    /* Lengths whose padding fills the block, needs one more, or starts one. */
    char hex[65];
    memset(data, 'a', sizeof data);
    const struct {
        size_t n;
        const char *want;
    } known[] = {{55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
                 {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
                 {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"}};
    for (int i = 0; i < 3; i++) {
        digest_in_chunks(data, known[i].n, 7, hex);
        cr_assert(strcmp(hex, known[i].want) == 0, "%zu times a: %s", known[i].n, hex);
    }
}

Test(sha256, stream_of_a_name_is_the_first_eight_bytes)
{
    cr_assert(vr_random_stream("") == 0x141cfc9842c4b0e3u, "%llx",
              (unsigned long long)vr_random_stream(""));
    cr_assert(vr_random_stream("abc") == 0xeacf018fbf1678bau, "%llx",
              (unsigned long long)vr_random_stream("abc"));
    cr_assert(vr_random_stream("latent") != vr_random_stream("latent "));
}
