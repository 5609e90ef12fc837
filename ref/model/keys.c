/* Tensor names (clause M6): canonical names are the diffusers ones.
 *
 * AutoencoderKL, original (LDM): up levels are counted from the other end, mid
 * blocks from 1, and attention has short names. Tiny, original: the index in
 * the Sequential counts the clamp, which the diffusers index does not.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

static const struct {
    const char *original, *canonical;
} kl_fixed[] = {
    {"decoder.mid.block_1.", "decoder.mid_block.resnets.0."},
    {"decoder.mid.block_2.", "decoder.mid_block.resnets.1."},
    {"decoder.mid.attn_1.norm.", "decoder.mid_block.attentions.0.group_norm."},
    {"decoder.mid.attn_1.q.", "decoder.mid_block.attentions.0.to_q."},
    {"decoder.mid.attn_1.k.", "decoder.mid_block.attentions.0.to_k."},
    {"decoder.mid.attn_1.v.", "decoder.mid_block.attentions.0.to_v."},
    {"decoder.mid.attn_1.proj_out.", "decoder.mid_block.attentions.0.to_out.0."},
    {"decoder.norm_out.", "decoder.conv_norm_out."},
};

/* Attention names of older diffusers files. */
static const struct {
    const char *old, *canonical;
} attention_old[] = {
    {"decoder.mid_block.attentions.0.query.", "decoder.mid_block.attentions.0.to_q."},
    {"decoder.mid_block.attentions.0.key.", "decoder.mid_block.attentions.0.to_k."},
    {"decoder.mid_block.attentions.0.value.", "decoder.mid_block.attentions.0.to_v."},
    {"decoder.mid_block.attentions.0.proj_attn.", "decoder.mid_block.attentions.0.to_out.0."},
};

static const char *after(const char *s, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

/* Reads a decimal index followed by '.'; NULL when there is none. */
static const char *index_of(const char *s, int32_t *out)
{
    if (*s < '0' || *s > '9')
        return NULL;
    char *end;
    long v = strtol(s, &end, 10);
    if (*end != '.' || v > 4096)
        return NULL;
    *out = (int32_t)v;
    return end + 1;
}

static bool put(char *dst, const char *a, const char *b)
{
    return snprintf(dst, VR_NAME_MAX, "%s%s", a, b) < VR_NAME_MAX;
}

static bool kl_original(int32_t levels, const char *key, char *dst)
{
    const char *rest;
    int32_t i, j;
    for (size_t k = 0; k < sizeof kl_fixed / sizeof kl_fixed[0]; k++)
        if ((rest = after(key, kl_fixed[k].original)))
            return put(dst, kl_fixed[k].canonical, rest);
    rest = after(key, "decoder.up.");
    if (!rest)
        return put(dst, key, "");
    rest = index_of(rest, &i);
    if (!rest || i >= levels)
        return put(dst, key, "");
    const char *block = after(rest, "block."), *up = after(rest, "upsample.");
    if (up)
        return snprintf(dst, VR_NAME_MAX, "decoder.up_blocks.%d.upsamplers.0.%s", levels - 1 - i, up) < VR_NAME_MAX;
    rest = block ? index_of(block, &j) : NULL;
    if (!rest)
        return put(dst, key, "");
    const char *shortcut = after(rest, "nin_shortcut.");
    return snprintf(dst, VR_NAME_MAX, "decoder.up_blocks.%d.resnets.%d.%s%s", levels - 1 - i, j,
                    shortcut ? "conv_shortcut." : "", shortcut ? shortcut : rest) < VR_NAME_MAX;
}

bool vr_key_canonical(vr_family f, vr_key_layout layout, int32_t levels, const char *key, char *dst)
{
    const char *rest;
    int32_t i;
    if (f == VR_FAMILY_TINY) {
        if (layout == VR_LAYOUT_DIFFUSERS)
            return after(key, "decoder.layers.") && put(dst, key, "");
        rest = index_of(key, &i);
        return rest && i > 0 &&
               snprintf(dst, VR_NAME_MAX, "decoder.layers.%d.%s", i - 1, rest) < VR_NAME_MAX;
    }
    if ((rest = after(key, "decoder.post_quant_conv.")))
        return put(dst, "post_quant_conv.", rest);
    if (after(key, "post_quant_conv.") || strcmp(key, "bn.running_mean") == 0 ||
        strcmp(key, "bn.running_var") == 0)
        return put(dst, key, "");
    if (!after(key, "decoder."))
        return false;
    if (layout == VR_LAYOUT_ORIGINAL)
        return kl_original(levels, key, dst);
    for (size_t k = 0; k < sizeof attention_old / sizeof attention_old[0]; k++)
        if ((rest = after(key, attention_old[k].old)))
            return put(dst, attention_old[k].canonical, rest);
    return put(dst, key, "");
}

void vr_key_original(vr_family f, int32_t levels, const char *canonical, char *dst)
{
    const char *rest;
    int32_t i, j;
    if (f == VR_FAMILY_TINY) {
        rest = after(canonical, "decoder.layers.");
        rest = rest ? index_of(rest, &i) : NULL;
        if (rest)
            snprintf(dst, VR_NAME_MAX, "%d.%s", i + 1, rest);
        else
            put(dst, canonical, "");
        return;
    }
    for (size_t k = 0; k < sizeof kl_fixed / sizeof kl_fixed[0]; k++)
        if ((rest = after(canonical, kl_fixed[k].canonical))) {
            put(dst, kl_fixed[k].original, rest);
            return;
        }
    rest = after(canonical, "decoder.up_blocks.");
    rest = rest ? index_of(rest, &i) : NULL;
    const char *up = rest ? after(rest, "upsamplers.0.") : NULL;
    const char *res = rest ? after(rest, "resnets.") : NULL;
    const char *tail = res ? index_of(res, &j) : NULL;
    if (up) {
        snprintf(dst, VR_NAME_MAX, "decoder.up.%d.upsample.%s", levels - 1 - i, up);
    } else if (tail) {
        const char *shortcut = after(tail, "conv_shortcut.");
        snprintf(dst, VR_NAME_MAX, "decoder.up.%d.block.%d.%s%s", levels - 1 - i, j,
                 shortcut ? "nin_shortcut." : "", shortcut ? shortcut : tail);
    } else {
        put(dst, canonical, "");
    }
}
