/* exp, sigmoid, silu, tanh and rsqrt (clause N5) against the long double
 * functions of the C library, in units in the last place of the f64 result, and
 * at the values where the pieces of each function meet.
 *
 * SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "core/detmath.h"
#include "vaeref/core.h"

#if LDBL_MANT_DIG < 64
#error "these tests want a long double wider than double"
#endif

TestSuite(detmath, .timeout = 120);

typedef double (*function)(double);
typedef long double (*judge)(long double);

static long double true_sigmoid(long double x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

static long double true_silu(long double x)
{
    return x * true_sigmoid(x);
}

static long double true_rsqrt(long double x)
{
    return 1 / sqrtl(x);
}

/* |got - want| in units in the last place of the f64 nearest to want. */
static double ulps(double got, long double want)
{
    const double near = (double)want;
    if (isinf(near) || isinf(got)) /* one step beyond the largest is one unit */
        return isinf(near) && isinf(got) && signbit(near) == signbit(got) ? 0
               : fabs(got) == DBL_MAX                                     ? 1
                                                                          : HUGE_VAL;
    const double a = fabs(near);
    const long double unit = a < DBL_MIN ? 0x1p-1074L : ldexpl(1, ilogb(a) - 52);
    return (double)(fabsl((long double)got - want) / unit);
}

static double worst_of(function f, judge g, double from, double to, long steps, double *where)
{
    double worst = 0;
    for (long i = 0; i <= steps; i++) {
        /* The uneven part makes the low bits of the argument vary. */
        const double x =
            from + (to - from) * ((double)i / (double)steps) * (1 - 0x1.9p-30 * (double)(i % 7));
        const double e = ulps(f(x), g((long double)x));
        if (!(e <= worst)) {
            worst = e;
            *where = x;
        }
    }
    return worst;
}

/* Arguments of every magnitude and sign: sign, exponent and fraction at random. */
static double worst_of_magnitudes(function f, judge g, int low, int high, bool negative,
                                  double *where)
{
    double worst = 0;
    for (uint64_t i = 0; i < 200000; i++) {
        const int e = low + (int)(vr_random_u32(8, 0, i) % (uint32_t)(high - low));
        const double m =
            1 + (double)vr_random_u32(8, 1, i) * 0x1p-32 + (double)vr_random_u32(8, 2, i) * 0x1p-52;
        const double x = (negative && i % 2 ? -1 : 1) * ldexp(m, e);
        const double u = ulps(f(x), g((long double)x));
        if (!(u <= worst)) {
            worst = u;
            *where = x;
        }
    }
    return worst;
}

Test(detmath, errors_stay_within_the_stated_units)
{
    const struct {
        const char *name;
        function f;
        judge g;
        double bound, from, to;
    } sweeps[] = {
        {"exp", vr_exp, expl, 1, -746, 710},
        {"exp", vr_exp, expl, 1, -1, 1},
        {"exp", vr_exp, expl, 1, -0.36, -0.33},
        {"exp", vr_exp, expl, 1, -710, -707},
        {"sigmoid", vr_sigmoid, true_sigmoid, 3, -746, 746},
        {"sigmoid", vr_sigmoid, true_sigmoid, 3, -40, 40},
        {"sigmoid", vr_sigmoid, true_sigmoid, 3, -1, 1},
        {"silu", vr_silu, true_silu, 4, -707, 800},
        {"silu", vr_silu, true_silu, 4, -40, 40},
        {"silu", vr_silu, true_silu, 4, -1, 1},
        {"tanh", vr_tanh, tanhl, 3, -30, 30},
        {"tanh", vr_tanh, tanhl, 3, -2, 2},
        {"tanh", vr_tanh, tanhl, 3, -0.4, 0.4},
        {"tanh", vr_tanh, tanhl, 3, -0x1p-20, 0x1p-20},
        {"rsqrt", vr_rsqrt, true_rsqrt, 2, 1e-9, 10},
        {"rsqrt", vr_rsqrt, true_rsqrt, 2, 1, 4},
        {"rsqrt", vr_rsqrt, true_rsqrt, 2, 1, 1e6},
    };
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
        double where = 0;
        const double worst =
            worst_of(sweeps[i].f, sweeps[i].g, sweeps[i].from, sweeps[i].to, 300000, &where);
        cr_expect(worst <= sweeps[i].bound, "%s on [%g, %g]: %.3f units at %a, allowed %.1f",
                  sweeps[i].name, sweeps[i].from, sweeps[i].to, worst, where, sweeps[i].bound);
    }
}

Test(detmath, errors_stay_within_the_stated_units_at_every_magnitude)
{
    const struct {
        const char *name;
        function f;
        judge g;
        double bound;
        int low, high;
        bool negative;
    } sweeps[] = {
        {"exp", vr_exp, expl, 1, -1074, 11, true},
        {"sigmoid", vr_sigmoid, true_sigmoid, 3, -1074, 11, true},
        {"silu", vr_silu, true_silu, 4, -1022, 9, true},
        {"tanh", vr_tanh, tanhl, 3, -1074, 1024, true},
        {"tanh", vr_tanh, tanhl, 3, -30, 6, true},
        {"rsqrt", vr_rsqrt, true_rsqrt, 2, -1074, 1024, false},
    };
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
        double where = 0;
        const double worst = worst_of_magnitudes(sweeps[i].f, sweeps[i].g, sweeps[i].low,
                                                 sweeps[i].high, sweeps[i].negative, &where);
        cr_expect(worst <= sweeps[i].bound, "%s: %.3f units at %a, allowed %.1f", sweeps[i].name,
                  worst, where, sweeps[i].bound);
    }
}

Test(detmath, silu_fades_out_where_sigmoid_is_subnormal)
{
    /* There x * sigmoid(x) magnifies the last place of a subnormal by |x|. */
    for (int i = 0; i <= 40000; i++) {
        const double x = -708.4 - i * 0.001;
        const long double off = fabsl((long double)vr_silu(x) - true_silu(x));
        cr_assert(off <= 2250 * 0x1p-1074L, "silu(%a) is off by %La", x, off);
    }
}

#define SAME(expr, want)                                                 \
    do {                                                                 \
        const double got_ = (expr), want_ = (want);                      \
        cr_expect((isnan(got_) && isnan(want_)) ||                       \
                      vr_bits_from_f64(got_) == vr_bits_from_f64(want_), \
                  "%s is %a, expected %a", #expr, got_, want_);          \
    } while (0)

Test(detmath, special_values)
{
    const double inf = (double)INFINITY, nan = (double)NAN, tiny = 0x1p-1074;
    SAME(vr_exp(0.0), 1.0);
    SAME(vr_exp(-0.0), 1.0);
    SAME(vr_exp(tiny), 1.0);
    SAME(vr_exp(inf), inf);
    SAME(vr_exp(-inf), 0.0);
    SAME(vr_exp(DBL_MAX), inf);
    SAME(vr_exp(-DBL_MAX), 0.0);
    SAME(vr_exp(709.79), inf);
    SAME(vr_exp(-745.2), 0.0);
    SAME(vr_exp(-745.1), tiny);
    SAME(vr_exp(nan), nan);
    SAME(vr_exp(-nan), nan);
    SAME(vr_sigmoid(0.0), 0.5);
    SAME(vr_sigmoid(-0.0), 0.5);
    SAME(vr_sigmoid(tiny), 0.5);
    SAME(vr_sigmoid(inf), 1.0);
    SAME(vr_sigmoid(-inf), 0.0);
    SAME(vr_sigmoid(-746.0), 0.0);
    SAME(vr_sigmoid(40.0), 1.0);
    SAME(vr_sigmoid(nan), nan);
    SAME(vr_sigmoid(-nan), nan);
    SAME(vr_silu(0.0), 0.0);
    SAME(vr_silu(-0.0), -0.0);
    SAME(vr_silu(2 * tiny), tiny);
    SAME(vr_silu(inf), inf);
    SAME(vr_silu(-inf), nan); /* -inf times 0, as N4.4 multiplies */
    SAME(vr_silu(-DBL_MAX), -0.0);
    SAME(vr_silu(DBL_MAX), DBL_MAX);
    SAME(vr_silu(nan), nan);
    SAME(vr_tanh(0.0), 0.0);
    SAME(vr_tanh(-0.0), -0.0);
    SAME(vr_tanh(tiny), tiny);
    SAME(vr_tanh(-tiny), -tiny);
    SAME(vr_tanh(inf), 1.0);
    SAME(vr_tanh(-inf), -1.0);
    SAME(vr_tanh(22.5), 1.0);
    SAME(vr_tanh(-DBL_MAX), -1.0);
    SAME(vr_tanh(nan), nan);
    SAME(vr_tanh(-nan), nan);
    SAME(vr_rsqrt(0.0), inf);
    SAME(vr_rsqrt(-0.0), inf);
    SAME(vr_rsqrt(inf), 0.0);
    SAME(vr_rsqrt(-inf), nan);
    SAME(vr_rsqrt(-tiny), nan);
    SAME(vr_rsqrt(nan), nan);
    SAME(vr_rsqrt(1.0), 1.0);
    SAME(vr_rsqrt(4.0), 0.5);
    SAME(vr_rsqrt(tiny), 0x1p537);
    SAME(vr_rsqrt(0x1p1022), 0x1p-511);
}

Test(detmath, results_stay_in_range_and_keep_their_order)
{
    double e = 0, s = 0, t = -1, r = (double)INFINITY;
    for (int i = -800000; i <= 800000; i++) {
        const double x = i * 0x1p-12;
        const double e1 = vr_exp(x), s1 = vr_sigmoid(x), t1 = vr_tanh(x);
        /* Neighbours are far enough apart that an error of an ulp cannot turn them. */
        cr_assert(e1 >= e && s1 >= s - 0x1p-52 && t1 >= t - 0x1p-51, "order at %a", x);
        cr_assert(s1 >= 0 && s1 <= 1 && t1 >= -1 && t1 <= 1, "range at %a", x);
        cr_assert(vr_bits_from_f64(vr_tanh(-x)) == vr_bits_from_f64(-t1), "tanh is odd at %a", x);
        e = e1;
        s = s1;
        t = t1;
        if (i > 0) {
            const double r1 = vr_rsqrt(x);
            cr_assert(r1 < r, "rsqrt at %a", x);
            r = r1;
        }
    }
}
