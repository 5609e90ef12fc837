/* Names of arithmetic policies and summation orders (clauses N1, N6).
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "vaeref/exec.h"

static const char *const policy_names[] = {
#define VR_X(name, text) text,
    VR_POLICY_MAP(VR_X)
#undef VR_X
};
static const char *const order_names[] = {
#define VR_X(name, text) text,
    VR_ORDER_MAP(VR_X)
#undef VR_X
};

const char *vr_policy_name(vr_policy p)
{
    return (unsigned)p < VR_POLICY_COUNT ? policy_names[p] : "?";
}

const char *vr_order_name(vr_order o)
{
    return (unsigned)o < VR_ORDER_COUNT ? order_names[o] : "?";
}

bool vr_policy_parse(const char *s, vr_policy *out)
{
    for (unsigned i = 0; i < VR_POLICY_COUNT; i++)
        if (strcmp(s, policy_names[i]) == 0) {
            *out = (vr_policy)i;
            return true;
        }
    return false;
}

bool vr_order_parse(const char *s, vr_order *out)
{
    for (unsigned i = 0; i < VR_ORDER_COUNT; i++)
        if (strcmp(s, order_names[i]) == 0) {
            *out = (vr_order)i;
            return true;
        }
    return false;
}
