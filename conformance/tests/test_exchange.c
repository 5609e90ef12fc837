/* Guards and poison see what is written and what is not (clause A5).
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/exchange.h"

static const uint32_t types[] = {VP_F64, VP_F32, VP_F16, VP_BF16};

Test(exchange, sees_every_byte)
{
    char dir[] = "/tmp/exchange-XXXXXX", path[64];
    vr_error err = {VR_OK, ""};
    const int64_t dim[5] = {2, 3, 1, 4, 5};
    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/t", dir);
    for (int k = 0; k < 4; k++)
        for (int64_t pad = 0; pad < 4; pad += 3) {
            vc_slot s;
            int64_t first;
            const size_t e = (size_t)wire_dtype_size(types[k]);
            unsigned char dense[2 * 3 * 4 * 5 * 8], back[sizeof dense];
            cr_assert_eq(vc_slot_make(&s, dir, "t", types[k], dim, pad, &err), VR_OK, "%s", err.text);
            vc_slot_poison(&s, 1);
            cr_assert_eq(vc_slot_untouched(&s), 120);
            cr_assert_eq(vc_slot_trespass(&s, &first), 0);
            for (size_t i = 0; i < 120 * e; i++)
                dense[i] = (unsigned char)(i * 7 + 1);
            vc_slot_put(&s, dense);
            vc_slot_get(&s, back);
            cr_assert(memcmp(dense, back, 120 * e) == 0);
            cr_assert_eq(vc_slot_untouched(&s), 0);
            cr_assert_eq(vc_slot_trespass(&s, &first), 0, "writing elements is no trespass");
            unsigned char *data = s.tensor.data;
            const size_t after = (size_t)s.tensor.bytes;
            const int64_t at[] = {-1, -4096, (int64_t)after, (int64_t)(after + 4000), (int64_t)(5 * e)};
            for (int i = 0; i < (pad ? 5 : 4); i++) { /* the last: the gap after the first row */
                data[at[i]] ^= 0x55;
                cr_assert_eq(vc_slot_trespass(&s, &first), 1, "byte %lld", (long long)at[i]);
                cr_assert_eq(first, at[i]);
                data[at[i]] ^= 0x55;
            }
            vc_slot_free(&s);
        }
    unlink(path);
    rmdir(dir);
}
