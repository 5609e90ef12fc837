/* Which table of hot loops to use (clause N7): the widest this machine has, or
 * the one VAEREF_ISA names.
 *
 * SPDX-License-Identifier: MIT */
#include "ops/kernels.h"

#include <stdlib.h>
#include <string.h>

extern const vr_kernels vr_kernels_table_portable;
#if defined(__x86_64__)
extern const vr_kernels vr_kernels_table_v2, vr_kernels_table_v3, vr_kernels_table_v4;

static bool have_v2(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
}
static bool have_v3(void)
{
    return have_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
static bool have_v4(void)
{
    return have_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif
static bool have_portable(void)
{
    return true;
}

static const struct {
    const vr_kernels *table;
    bool (*available)(void);
} candidates[] = {
#if defined(__x86_64__)
    {&vr_kernels_table_v4, have_v4},
    {&vr_kernels_table_v3, have_v3},
    {&vr_kernels_table_v2, have_v2},
#endif
    {&vr_kernels_table_portable, have_portable},
};

vr_status vr_kernels_get(const vr_kernels **out, vr_error *err)
{
    const char *want = getenv("VAEREF_ISA");
    const size_t count = sizeof candidates / sizeof candidates[0];
    if (want && *want) {
        for (size_t i = 0; i < count; i++) {
            if (strcmp(candidates[i].table->name, want) != 0)
                continue;
            if (!candidates[i].available())
                return vr_fail(err, VR_E_ARGUMENT, "VAEREF_ISA=%s: this machine lacks that instruction set",
                               want);
            *out = candidates[i].table;
            return VR_OK;
        }
        return vr_fail(err, VR_E_ARGUMENT,
                       "VAEREF_ISA=%s: unknown; use portable%s", want,
                       count > 1 ? ", x86-64-v2, x86-64-v3 or x86-64-v4" : "");
    }
    for (size_t i = 0; i < count; i++)
        if (candidates[i].available()) {
            *out = candidates[i].table;
            return VR_OK;
        }
    return vr_fail(err, VR_E_INTERNAL, "no kernel table");
}

vr_status vr_exec_isa(const char **name, vr_error *err)
{
    const vr_kernels *k;
    vr_status s = vr_kernels_get(&k, err);
    if (s == VR_OK)
        *name = k->name;
    return s;
}
