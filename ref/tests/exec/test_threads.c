/* The golden bytes do not depend on threads, instruction set or repetition, and
 * two decodes may run at once. A plain program, so that it also runs under
 * ThreadSanitizer.
 *
 * SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nets.h"

static int failures;

static void expect_same(const char *what, const char *a, const char *b)
{
    if (*a && strcmp(a, b) == 0)
        return;
    printf("FAIL %s: %s, expected %s\n", what, *a ? a : "(run failed)", b);
    failures++;
}

typedef struct job {
    const test_net *net;
    char hex[65];
} job;

static void *decode(void *arg)
{
    job *j = arg;
    const vr_exec_options opt = {.policy = VR_POLICY_GOLDEN, .threads = 2};
    test_net_digest(j->net, &opt, j->hex);
    return NULL;
}

int main(void)
{
    const int threads[] = {2, 3, 16};
    const char *const isas[] = {"portable", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    const struct {
        int64_t n, h, w;
    } sizes[] = {{1, 1, 1}, {2, 5, 7}, {1, 1, 40}, {1, 9, 33}};
    int checked = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        test_net net = test_net_make(7, sizes[s].n, sizes[s].h, sizes[s].w);
        for (int p = 0; p < VR_POLICY_COUNT; p++)
            for (int o = 0; o < VR_ORDER_COUNT; o++) {
                if (o > 0 && p <= VR_POLICY_TRUTH)
                    continue;
                char want[65], got[65], what[96];
                vr_exec_options opt = {.policy = (vr_policy)p, .order = (vr_order)o, .threads = 1};
                unsetenv("VAEREF_ISA");
                test_net_digest(&net, &opt, want);
                for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++, checked++) {
                    opt.threads = threads[t];
                    test_net_digest(&net, &opt, got);
                    snprintf(what, sizeof what, "size %zu %s %s threads %d", s,
                             vr_policy_name(opt.policy), vr_order_name(opt.order), threads[t]);
                    expect_same(what, got, want);
                }
                for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
                    const char *name;
                    setenv("VAEREF_ISA", isas[i], 1);
                    if (vr_exec_isa(&name, NULL) != VR_OK)
                        continue;
                    test_net_digest(&net, &opt, got);
                    snprintf(what, sizeof what, "size %zu %s %s isa %s", s,
                             vr_policy_name(opt.policy), vr_order_name(opt.order), isas[i]);
                    expect_same(what, got, want);
                    checked++;
                }
                unsetenv("VAEREF_ISA");
            }
        job a = {.net = &net}, b = {.net = &net};
        pthread_t ta, tb;
        char want[65];
        const vr_exec_options one = {.policy = VR_POLICY_GOLDEN, .threads = 1};
        test_net_digest(&net, &one, want);
        if (pthread_create(&ta, NULL, decode, &a) == 0 && pthread_create(&tb, NULL, decode, &b) == 0) {
            pthread_join(ta, NULL);
            pthread_join(tb, NULL);
            expect_same("concurrent decode a", a.hex, want);
            expect_same("concurrent decode b", b.hex, want);
        }
        test_net_free(&net);
    }
    printf("%d digests compared, %d differ\n", checked, failures);
    return failures || checked < 100;
}
