/* The conversion loops that vectorise give the bits of the scalar functions
 * (clauses N2.3 to N2.5), and what cannot be converted is refused even when there
 * is nothing to convert.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "small_model.h"

TestSuite(convert_loops, .timeout = 120);

Test(convert_loops, every_16_bit_code_widens_as_alone)
{
    static uint16_t codes[65536];
    static float wide[65536];
    for (uint32_t i = 0; i < 65536; i++)
        codes[i] = (uint16_t)i;
    for (int m = 0; m < 2; m++) {
        const small_model *model = &small_models[m];
        cr_assert(vr_convert(VR_F32, wide, model->dtype, codes, 65536, NULL) == VR_OK);
        for (uint32_t i = 0; i < 65536; i++) {
            const float alone = small_to_f32(model, i);
            cr_assert(memcmp(&alone, &wide[i], 4) == 0, "%s %#x widens to %a, alone to %a",
                      model->name, i, (double)wide[i], (double)alone); /* a NaN to the same NaN, too */
        }
    }
}

static void narrow_and_compare(const small_model *model, const uint32_t *words, uint32_t n)
{
    static uint16_t got[65536];
    cr_assert(vr_convert(model->dtype, got, VR_F32, words, n, NULL) == VR_OK);
    for (uint32_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, &words[i], 4);
        if (isnan(x))
            cr_assert(small_is_nan(model, got[i]), "%s of %#x lost its NaN", model->name, words[i]);
        else
            cr_assert(got[i] == small_nearest(model, (double)x), "%s of %a is %#x, expected %#x",
                      model->name, (double)x, got[i], small_nearest(model, (double)x));
    }
}

/* A rounding decision depends on the upper half of the word and on how its lower
 * bits compare with a half: every upper half meets the lower halves that matter. */
Test(convert_loops, narrowing_is_to_the_nearest_for_every_upper_half)
{
    static uint32_t words[65536];
    const uint32_t lower[] = {0,      1,      0x0fff, 0x1000, 0x1001, 0x2fff,
                              0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0xffff};
    for (int m = 0; m < 2; m++)
        for (size_t k = 0; k < sizeof lower / sizeof lower[0]; k++) {
            for (uint32_t i = 0; i < 65536; i++)
                words[i] = i << 16 | lower[k];
            narrow_and_compare(&small_models[m], words, 65536);
        }
}

/* Subnormal targets of F16, where more than 13 bits are dropped. */
Test(convert_loops, subnormal_f16_ties_go_to_even)
{
    static uint32_t words[3 * 1024];
    for (uint32_t c = 0; c < 1024; c++) {
        const float tie = (float)ldexp(c + 0.5, -24);
        memcpy(&words[3 * c], &tie, 4);
        words[3 * c + 1] = words[3 * c] - 1;
        words[3 * c + 2] = words[3 * c] + 1;
    }
    narrow_and_compare(&small_models[0], words, 3 * 1024);
}

Test(convert_loops, what_cannot_be_converted_is_refused_whatever_the_count)
{
    const struct {
        vr_dtype to, from;
    } pairs[] = {{VR_DTYPE_NONE, VR_DTYPE_NONE}, {VR_DTYPE_NONE, VR_F32},
                 {VR_F32, VR_DTYPE_NONE},        {VR_I32, VR_F32},
                 {VR_I64, VR_I32},               {(vr_dtype)99, (vr_dtype)99}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (uint64_t n = 0; n < 2; n++) {
            unsigned char in[8] = {0}, out[8];
            memset(out, 0xa5, sizeof out);
            vr_error err = {0};
            const vr_status s = vr_convert(pairs[i].to, out, pairs[i].from, in, n, &err);
            cr_assert(s == VR_E_DTYPE && err.text[0], "pair %zu, %d elements", i, (int)n);
            cr_assert(out[0] == 0xa5, "pair %zu wrote", i);
        }
    cr_assert(vr_convert(VR_F32, NULL, VR_F16, NULL, 0, NULL) == VR_OK);
    cr_assert(vr_convert(VR_I64, NULL, VR_I64, NULL, 0, NULL) == VR_OK);
}
