/* The limits, as data in this one place (J2).
 * SPDX-License-Identifier: MIT */
#include "judge/internal.h"

/* Largest-error limits of blocks and decodes grow as the rms limits do. */
static const vj_limits rows[] = {
    /* storage, accumulate      rms: op, block, decode   max: op, block, decode   ulp  lsb */
    {{VR_F32, VR_F32},          {2.0, 2.0, 3.0},         {4.0, 4.0, 6.0},         4.0, 1},
    {{VR_F16, VR_F32},          {1.25, 2.0, 3.0},        {2.0, 3.2, 4.8},         1.0, 1},
    {{VR_BF16, VR_F32},         {1.25, 2.0, 3.0},        {2.0, 3.2, 4.8},         1.0, 2},
    {{VR_F16, VR_F16},          {2.0, 3.0, 4.0},         {4.0, 6.0, 8.0},         4.0, 1}, /* embedded profile */
    {{VR_F64, VR_F64},          {4.0, 4.0, 4.0},         {8.0, 8.0, 8.0},         8.0, 1}, /* truth is no finer */
};
enum { ROWS = sizeof rows / sizeof rows[0] };

const vj_limits *vj_limits_find(vj_contract c)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].contract.storage == c.storage && rows[i].contract.accumulate == c.accumulate)
            return &rows[i];
    return NULL;
}

int32_t vj_limits_all(const vj_limits **out)
{
    *out = rows;
    return ROWS;
}

static const vj_type types[] = {
    {VR_F64, 53, -1022, 0x1p-53, 0x1p-1022, 0x1p-1074},
    {VR_F32, 24, -126, 0x1p-24, 0x1p-126, 0x1p-149},
    {VR_F16, 11, -14, 0x1p-11, 0x1p-14, 0x1p-24},
    {VR_BF16, 8, -126, 0x1p-8, 0x1p-126, 0x1p-133},
};

const vj_type *vj_type_of(vr_dtype t)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].dtype == t)
            return &types[i];
    return NULL;
}

double vj_round(vr_dtype t, double x)
{
    switch (t) {
    case VR_F32:
        return (double)(float)x;
    case VR_F16:
        return (double)vr_f32_from_f16(vr_f16_from_f64(x));
    case VR_BF16:
        return (double)vr_f32_from_bf16(vr_bf16_from_f64(x));
    default:
        return x;
    }
}
