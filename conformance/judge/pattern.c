/* Runs, edges and periods in a list of positions (J12).
 * SPDX-License-Identifier: MIT */
#include "judge/pattern.h"

#include <stdio.h>

/* Smallest period up to half the axis (64 at most) under which the hits repeat; 0. */
static int64_t period_of(const bool *hit, int64_t extent)
{
    const int64_t most = extent / 2 < 64 ? extent / 2 : 64;
    for (int64_t m = 2; m <= most; m++) {
        int64_t j = m;
        while (j < extent && hit[j] == hit[j - m])
            j++;
        if (j == extent)
            return m;
    }
    return 0;
}

/* from..to of the hits among the first n when they are one run, else 1..0. */
static void run_of(const bool *hit, int64_t n, vj_pattern *p)
{
    int64_t first = -1, last = -1;
    p->number = 0;
    for (int64_t j = 0; j < n; j++)
        if (hit[j]) {
            first = first < 0 ? j : first;
            last = j;
            p->number++;
        }
    const bool run = p->number > 0 && last - first + 1 == p->number;
    p->from = run ? first : 1;
    p->to = run ? last : 0;
}

static bool edges_of(const bool *hit, int64_t extent, vj_pattern *p)
{
    int64_t head = 0, tail = 0;
    while (head < extent && hit[head])
        head++;
    while (tail < extent && hit[extent - 1 - tail])
        tail++;
    if (head == 0 || tail == 0 || head + tail != p->number)
        return false;
    p->from = head;
    p->to = tail;
    return true;
}

vj_pattern vj_pattern_find(const bool *hit, int64_t extent)
{
    vj_pattern p = {0};
    run_of(hit, extent, &p);
    if (p.number == 0)
        return p;
    if (p.from <= p.to) { /* one run */
        p.kind = 4 * p.number > 3 * extent    ? VJ_PATTERN_ALL
                 : p.from == 0                ? VJ_PATTERN_FIRST
                 : p.to == extent - 1         ? VJ_PATTERN_LAST
                                              : VJ_PATTERN_RANGE;
        return p;
    }
    const int64_t period = period_of(hit, extent), number = p.number;
    if (period > 0) {
        p.kind = VJ_PATTERN_EVERY;
        p.period = period;
        run_of(hit, period, &p);
    } else if (edges_of(hit, extent, &p)) {
        p.kind = 4 * number > 3 * extent ? VJ_PATTERN_ALL : VJ_PATTERN_EDGES;
    } else if (number <= 4 && 2 * number < extent) {
        p.kind = VJ_PATTERN_FEW;
        for (int64_t j = 0, k = 0; j < extent; j++)
            if (hit[j])
                p.at[k++] = j;
    } else {
        p.kind = VJ_PATTERN_ALL;
    }
    return p;
}

static const char *ordinal(int64_t n)
{
    const int64_t ten = n / 10 % 10, unit = n % 10;
    return ten == 1 ? "th" : unit == 1 ? "st" : unit == 2 ? "nd" : unit == 3 ? "rd" : "th";
}

/* "the last column", "the last 3 columns" */
static int end_text(const char *end, int64_t n, const char *one, const char *many, char *buf, size_t size)
{
    if (n == 1)
        return snprintf(buf, size, "the %s %s", end, one);
    return snprintf(buf, size, "the %s %lld %s", end, (long long)n, many);
}

static void few_text(const vj_pattern *p, const char *many, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "%s ", many);
    for (int64_t i = 0; i < p->number && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%lld", i == 0 ? "" : i + 1 == p->number ? " and " : ", ",
                                 (long long)p->at[i]);
}

char *vj_pattern_text(const vj_pattern *p, const char *one, const char *many, bool edges, char *buf, size_t size)
{
    const long long from = (long long)p->from, to = (long long)p->to, period = (long long)p->period;
    buf[0] = '\0';
    switch (p->kind) {
    case VJ_PATTERN_NONE:
    case VJ_PATTERN_ALL:
        break;
    case VJ_PATTERN_FIRST:
    case VJ_PATTERN_LAST:
        if (edges) {
            end_text(p->kind == VJ_PATTERN_FIRST ? "first" : "last", p->number, one, many, buf, size);
            break;
        }
        /* fall through */
    case VJ_PATTERN_RANGE:
        if (p->number == 1)
            snprintf(buf, size, "%s %lld", one, from);
        else
            snprintf(buf, size, "%s %lld to %lld", many, from, to);
        break;
    case VJ_PATTERN_EDGES: {
        int used = end_text("first", p->from, one, many, buf, size);
        used += snprintf(buf + used, size - (size_t)used, " and ");
        end_text("last", p->to, one, many, buf + used, size - (size_t)used);
        break;
    }
    case VJ_PATTERN_EVERY:
        if (p->number == 1)
            snprintf(buf, size, "every %lld%s %s from %lld", period, ordinal(p->period), one, from);
        else if (from <= to)
            snprintf(buf, size, "%s %lld to %lld of every %lld", many, from, to, period);
        else
            snprintf(buf, size, "%lld of every %lld %s", (long long)p->number, period, many);
        break;
    case VJ_PATTERN_FEW:
        few_text(p, many, buf, size);
        break;
    }
    return buf;
}
