/* Every byte changed, every length cut: parsers return cleanly on all of them.
 * They run on exact-size heap copies, so a sanitizer build sees any byte read
 * beyond the end. A cut file must also be refused, whatever its length.
 *
 * SPDX-License-Identifier: MIT */
#include "io_test.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef vr_status parse_fn(const void *data, size_t n, vr_error *err);

/* Reads each value once, so that a bad pointer shows. */
static uint8_t sum_of(const void *data, uint64_t n)
{
    uint8_t s = 0;
    for (uint64_t i = 0; i < n; i++)
        s = (uint8_t)(s + ((const uint8_t *)data)[i]);
    return s;
}

static vr_status parse_safetensors(const void *data, size_t n, vr_error *err)
{
    vr_io_shard shard;
    vr_status s = vr_io_shard_parse("f.safetensors", io_blob(data, n), &shard, err);
    if (s)
        return s;
    volatile uint8_t sum = 0;
    for (int64_t i = 0; i < shard.count; i++) {
        const vr_tensor *t = &shard.tensor[i].tensor;
        int64_t count;
        cr_assert(vr_tensor_count(t, &count, NULL) == VR_OK);
        sum = sum_of(t->data, (uint64_t)count * vr_dtype_size(t->dtype));
    }
    (void)sum;
    vr_io_shard_close(&shard);
    return VR_OK;
}

static vr_status parse_index(const void *data, size_t n, vr_error *err)
{
    vr_safetensors *f;
    vr_status s = vr_io_safetensors_from("none/f.index.json", io_blob(data, n), &f, err);
    if (!s)
        vr_safetensors_close(f);
    return s;
}

static vr_status parse_npy(const void *data, size_t n, vr_error *err)
{
    vr_io_blob b = io_blob(data, n);
    vr_tensor t;
    vr_status s = vr_io_npy_parse("f.npy", &b, &t, err);
    vr_io_blob_close(&b);
    vr_tensor_free(&t);
    return s;
}

static vr_status parse_png(const void *data, size_t n, vr_error *err)
{
    vr_io_blob b = io_blob(data, n);
    vr_image m;
    vr_status s = vr_io_png_decode("f.png", &b, &m, err);
    vr_io_blob_close(&b);
    vr_image_free(&m);
    return s;
}

static vr_status parse_config(const void *data, size_t n, vr_error *err)
{
    vr_io_blob b = io_blob(data, n);
    vr_vae_config c;
    vr_status s = vr_io_config_parse("f.json", &b, &c, err);
    vr_io_blob_close(&b);
    return s;
}

static void check_error(vr_status s, const vr_error *err, const char *what, size_t at)
{
    if (s == VR_OK)
        return;
    cr_assert(err->status == s, "%s %zu: status differs from the record", what, at);
    cr_assert(err->text[0] != '\0' && !strchr(err->text, '\n'), "%s %zu: %s", what, at, err->text);
}

/* Returns how many changed files were refused. */
static size_t flip_all(const io_bytes *good, parse_fn *parse)
{
    static const uint8_t masks[] = {0x01, 0x80, 0xff, 0x20, 0x10};
    size_t refused = 0;
    vr_error err = {0};
    cr_assert(parse(good->p, good->n, &err) == VR_OK, "%s", err.text);
    for (size_t i = 0; i < good->n; i++)
        for (size_t k = 0; k < sizeof masks; k++) {
            err = (vr_error){0};
            good->p[i] ^= masks[k];
            vr_status s = parse(good->p, good->n, &err);
            good->p[i] ^= masks[k];
            check_error(s, &err, "flip", i);
            refused += s != VR_OK;
        }
    return refused;
}

static void cut_all(const io_bytes *good, parse_fn *parse)
{
    for (size_t n = 0; n < good->n; n++) {
        vr_error err = {0};
        vr_status s = parse(good->p, n, &err);
        cr_assert(s != VR_OK, "a file of %zu of %zu bytes was accepted", n, good->n);
        check_error(s, &err, "cut", n);
    }
}

Test(flip, safetensors)
{
    io_bytes b = io_safetensors(
        "{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],"
        "\"data_offsets\":[3,11]},\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
        "\"z\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[11,11]}}",
        11);
    cr_assert(flip_all(&b, parse_safetensors) > 400);
    cut_all(&b, parse_safetensors);
    io_free(&b);
}

Test(flip, index)
{
    io_bytes b = {0};
    io_add(&b, "{\"weight_map\": {}}", 18);
    flip_all(&b, parse_index);
    cut_all(&b, parse_index);
    io_free(&b);
    io_add(&b, "{\"weight_map\": {\"a\": \"b.st\"}}", 29);
    cut_all(&b, parse_index);
    io_free(&b);
}

Test(flip, npy)
{
    io_bytes b = {0};
    static const char text[] = "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 3), }  \n";
    uint16_t n = sizeof text - 1;
    io_add(&b, "\x93NUMPY\1\0", 8);
    io_add(&b, &n, 2);
    io_add(&b, text, n);
    io_add(&b, "\0\1\2\3\4\5", 6);
    cr_assert(flip_all(&b, parse_npy) > 200);
    cut_all(&b, parse_npy);
    io_free(&b);
}

Test(flip, png)
{
    io_bytes b = {0};
    uint8_t raw[5 * 4] = {0};
    for (int i = 0; i < 20; i++)
        raw[i] = (uint8_t)(i % 4 == 0 ? i / 4 : i * 3);
    io_png_start(&b, 3, 5, 8, 3, 0);
    io_png_chunk(&b, "PLTE", "aaabbbcccdddeeefffggghhhiiijjjkkklllmmmnnnooopppqqqrrrsss", 57);
    io_png_chunk(&b, "tRNS", "\1\2\3", 3);
    for (int i = 0; i < 20; i++)
        raw[i] = (uint8_t)(i % 4 == 0 ? 0 : i % 19);
    io_png_idat(&b, raw, sizeof raw);
    io_png_end(&b);
    /* The signature, every length and every checksum: no change goes unseen. */
    cr_assert(flip_all(&b, parse_png) == b.n * 5);
    cut_all(&b, parse_png);
    io_free(&b);
}

/* Checksums would hide the decoder behind them: damage inside, sealed again. */
Test(flip, png_with_matching_checksums)
{
    for (int colour = 0; colour <= 6; colour++)
        for (int lace = 0; lace < 2; lace++) {
            if (colour == 1 || colour == 5)
                continue;
            uint8_t raw[200] = {0};
            io_bytes z = {0};
            io_png_idat(&z, raw, sizeof raw);
            for (size_t i = 0; i < z.n - 12; i++)
                for (int bit = 0; bit < 8; bit++) {
                    io_bytes b = {0};
                    z.p[8 + i] ^= (uint8_t)(1 << bit);
                    io_png_start(&b, 4, 4, 8, colour, lace);
                    if (colour == 3)
                        io_png_chunk(&b, "PLTE", "abc", 3);
                    io_png_chunk(&b, "IDAT", z.p + 8, z.n - 12);
                    io_png_end(&b);
                    vr_error err = {0};
                    check_error(parse_png(b.p, b.n, &err), &err, "sealed", i);
                    io_free(&b);
                    z.p[8 + i] ^= (uint8_t)(1 << bit);
                }
            io_free(&z);
        }
}

Test(flip, config)
{
    static const char text[] =
        "{\"_class_name\": \"AutoencoderKL\", \"block_out_channels\": [8, 16], "
        "\"latents_mean\": [0.5], \"latents_std\": [1.0], \"patch_size\": [2, 2], "
        "\"act_fn\": \"silu\", \"force_upcast\": true}";
    io_bytes b = {0};
    io_add(&b, text, sizeof text - 1);
    cr_assert(flip_all(&b, parse_config) > 200);
    cut_all(&b, parse_config);
    io_free(&b);
}
