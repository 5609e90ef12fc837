/* Tensors and dot products for the judge's tests.
 * SPDX-License-Identifier: MIT */
#include "judgecase.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "ops/ordered_sum.h"

enum { ROOM = 4096 };
static vr_tensor made[ROOM];
static int made_count;

vr_tensor keep(vr_tensor t)
{
    cr_assert(made_count < ROOM, "too many tensors");
    return made[made_count++] = t;
}

void release_tensors(void)
{
    for (int i = 0; i < made_count; i++)
        vr_tensor_free(&made[i]);
    made_count = 0;
}

vr_tensor make_tensor(vr_dtype type, ...)
{
    int64_t dim[VR_MAX_RANK], count = 0;
    int32_t rank = 0;
    va_list ap;
    va_start(ap, type);
    for (int d = va_arg(ap, int); d >= 0; d = va_arg(ap, int))
        dim[rank++] = d;
    va_end(ap);
    vr_tensor t;
    cr_assert_eq(vr_tensor_new(&t, type, rank, dim, NULL), VR_OK);
    vr_tensor_count(&t, &count, NULL);
    memset(t.data, 0, (size_t)count * vr_dtype_size(type));
    return keep(t);
}

vr_tensor copy_as(vr_dtype type, const vr_tensor *x)
{
    int64_t count = 0;
    vr_tensor t;
    cr_assert_eq(vr_tensor_new(&t, type, x->rank, x->dim, NULL), VR_OK);
    vr_tensor_count(&t, &count, NULL);
    cr_assert_eq(vr_convert(type, t.data, x->dtype, x->data, (uint64_t)count, NULL), VR_OK);
    return keep(t);
}

double get(const vr_tensor *t, int64_t i)
{
    double x;
    const char *src = (const char *)t->data + (size_t)i * vr_dtype_size(t->dtype);
    cr_assert_eq(vr_convert(VR_F64, &x, t->dtype, src, 1, NULL), VR_OK);
    return x;
}

void put(vr_tensor *t, int64_t i, double x)
{
    char *dst = (char *)t->data + (size_t)i * vr_dtype_size(t->dtype);
    cr_assert_eq(vr_convert(t->dtype, dst, VR_F64, &x, 1, NULL), VR_OK);
}

vj_rules rules_of(vr_dtype storage, vr_dtype accumulate, vj_level level)
{
    const vj_rules r = {.limits = vj_limits_find((vj_contract){storage, accumulate}), .level = level};
    cr_assert(r.limits != NULL);
    return r;
}

/* ---- dot products -------------------------------------------------------- */

const char *const sum_name[SUM_WAYS] = {"sequential", "8 lanes", "32 lanes", "pairwise", "blocks of 64", "reversed",
                                        "16 lanes", "blocks of 128", "fused", "f16 accumulation", "bf16 accumulation",
                                        "tf32 inputs", "bf16 inputs", "a missing term"};

dots make_dots(int64_t terms, int64_t rows, int64_t columns, bool positive, vr_dtype storage, uint64_t seed)
{
    dots d = {.terms = terms, .rows = rows, .columns = columns};
    d.a = make_tensor(VR_F32, (int)rows, (int)terms, -1).data;
    d.b = make_tensor(VR_F32, (int)columns, (int)terms, -1).data;
    vr_random_fill(d.a, rows * terms, VR_NORMAL, seed, 1, 0);
    vr_random_fill(d.b, columns * terms, VR_NORMAL, seed, 2, 0);
    for (int64_t i = 0; i < rows * terms; i++)
        d.a[i] = vr_round_to(VR_F16, positive ? fabsf(d.a[i]) : d.a[i]);
    for (int64_t i = 0; i < columns * terms; i++)
        d.b[i] = vr_round_to(VR_F16, positive ? fabsf(d.b[i]) : d.b[i]);
    d.truth = make_tensor(VR_F64, (int)rows, (int)columns, -1);
    d.magnitude = make_tensor(VR_F64, (int)rows, (int)columns, -1);
    for (int64_t i = 0; i < rows * columns; i++) {
        const float *a = d.a + i / columns * terms, *b = d.b + i % columns * terms;
        double sum = 0.0, size = 0.0;
        for (int64_t k = 0; k < terms; k++) {
            sum += (double)a[k] * (double)b[k];
            size += fabs((double)a[k] * (double)b[k]);
        }
        ((double *)d.truth.data)[i] = sum;
        ((double *)d.magnitude.data)[i] = size;
    }
    for (int k = 0; k < SUM_IDEALS; k++)
        d.ideal[k] = sum_dots(&d, (sum_way)k, storage);
    return d;
}

static float narrow(float x, uint32_t drop) /* round to nearest even after dropping bits of an f32 */
{
    uint32_t u;
    memcpy(&u, &x, 4);
    u += (1u << (drop - 1)) - 1u + ((u >> drop) & 1u);
    u &= ~((1u << drop) - 1u);
    memcpy(&x, &u, 4);
    return x;
}

static float lanes16(const float *p, int64_t n)
{
    float lane[16] = {0};
    for (int64_t k = 0; k < n; k++)
        lane[k % 16] += p[k];
    for (int half = 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static float blocks128(const float *p, int64_t n)
{
    float sum = 0.0f;
    for (int64_t k = 0; k < n; k += 128) {
        float part = 0.0f;
        for (int64_t j = k; j < n && j < k + 128; j++)
            part += p[j];
        sum += part;
    }
    return sum;
}

static float sum_one(const float *a, const float *b, int64_t n, float *p, sum_way way)
{
    static const vr_order orders[SUM_IDEALS] = {VR_ORDER_SEQ, VR_ORDER_LANES8, VR_ORDER_LANES32, VR_ORDER_PAIRWISE,
                                                VR_ORDER_KBLOCK64};
    float sum = 0.0f;
    for (int64_t k = 0; k < n; k++)
        p[k] = way == SUM_IN_TF32 ? narrow(a[k], 13) * narrow(b[k], 13)
               : way == SUM_IN_BF16 ? narrow(a[k], 16) * narrow(b[k], 16)
                                    : a[k] * b[k];
    if (way < SUM_IDEALS)
        return vr_sum_ordered(orders[way], p, n);
    switch (way) {
    case SUM_REVERSED:
        for (int64_t k = n; k-- > 0;)
            sum += p[k];
        return sum;
    case SUM_FUSED:
        for (int64_t k = 0; k < n; k++)
            sum = fmaf(a[k], b[k], sum);
        return sum;
    case SUM_KBLOCK128:
        return blocks128(p, n);
    case SUM_ACC_F16:
    case SUM_ACC_BF16:
        for (int64_t k = 0; k < n; k++)
            sum = vr_round_to(way == SUM_ACC_F16 ? VR_F16 : VR_BF16, sum + p[k]);
        return sum;
    case SUM_MISSING:
        p[n / 2] = 0.0f;
        return lanes16(p, n);
    default:
        return lanes16(p, n);
    }
}

vr_tensor sum_dots(const dots *d, sum_way way, vr_dtype storage)
{
    vr_tensor out = make_tensor(storage, (int)d->rows, (int)d->columns, -1);
    float *p = malloc((size_t)d->terms * sizeof *p);
    cr_assert(p != NULL);
    for (int64_t i = 0; i < d->rows * d->columns; i++)
        put(&out, i,
            (double)sum_one(d->a + i / d->columns * d->terms, d->b + i % d->columns * d->terms, d->terms, p, way));
    free(p);
    return out;
}
