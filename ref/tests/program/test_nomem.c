/* Every allocation of building and reading a program fails once. Nothing may
 * leak or crash, and the failure must say what it is.
 * SPDX-License-Identifier: MIT */
#include "topology.h"

#include <criterion/criterion.h>
#include <stdlib.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static int fail_at; /* the n-th allocation from now fails; 0: none */
static int calls;

static bool fails(void)
{
    calls++;
    return fail_at && calls == fail_at;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

static vr_status build_and_read(vr_error *err)
{
    static const double one[4] = {1, 1, 1, 1};
    vr_program *p = vr_program_new("t", 4);
    int32_t x = vr_program_scale_shift(p, "pre", 0, one, one);
    x = topo_conv(p, "conv", x, 4, 3, true);
    for (char tap[2] = "A"; tap[0] <= 'Z' + 14; tap[0]++) /* 40: the list grows */
        x = vr_program_unary(p, tap, VR_OP_SILU, x);
    vr_status s = vr_program_finish(p, x, 0, 1, err);
    vr_program_cost c;
    vr_receptive_field r;
    if (s == VR_OK)
        s = vr_program_cost_of(p, (vr_shape){1, 4, 1, 4, 4}, 4, &c, NULL, err);
    if (s == VR_OK)
        s = vr_program_receptive_field(p, &r, err);
    vr_program_free(p);
    return s;
}

Test(program_nomem, every_allocation_may_fail)
{
    vr_error err = {0};
    fail_at = calls = 0;
    cr_assert(build_and_read(&err) == VR_OK, "%s", err.text);
    int n = calls;
    cr_assert(n > 50, "only %d allocations were seen", n);
    for (int i = 1; i <= n; i++) {
        err = (vr_error){0};
        calls = 0;
        fail_at = i;
        vr_status s = build_and_read(&err);
        fail_at = 0;
        cr_assert(s == VR_E_NOMEM, "allocation %d of %d: status %d", i, n, (int)s);
        cr_assert(err.status == VR_E_NOMEM && err.text[0], "allocation %d", i);
    }
}
