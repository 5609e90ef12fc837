/* Files that are no decoder, or not a whole one (clauses M1.3 to M1.5): each is
 * refused with one line that names the tensor and says what would be right.
 *
 * SPDX-License-Identifier: MIT */
#include "model_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KL "synth:sd15,div=32"
#define TINY "synth:taesd,div=16"
#define D VR_LAYOUT_DIFFUSERS
#define O VR_LAYOUT_ORIGINAL

static const int64_t two[4] = {2, 2, 1, 1};

/* ---- the changes -------------------------------------------------------------- */

static void nothing(bag *b) { bag_drop_start(b, ""); }
static void keep_one(bag *b, const char *name)
{
    bag_rename(b, name, "+");
    for (int64_t i = b->count - 1; i >= 0; i--)
        if (strcmp(b->name[i], "+") != 0)
            bag_drop(b, b->name[i]);
    bag_rename(b, "+", name);
}
static void one_of_n(bag *b) { keep_one(b, "decoder.mid_block.resnets.0.conv1.weight"); }
static void conv_in_only(bag *b) { keep_one(b, "decoder.conv_in.weight"); }
static void one_tiny(bag *b) { keep_one(b, "7.weight"); }
static void unrelated(bag *b)
{
    nothing(b);
    bag_add(b, "transformer.h.0.attn.weight", VR_F32, 2, two);
}
static void unet(bag *b)
{
    nothing(b);
    bag_add(b, "model.diffusion_model.input_blocks.0.0.weight", VR_F16, 4, two);
}
static void flux_transformer(bag *b)
{
    nothing(b);
    bag_add(b, "double_blocks.0.img_attn.qkv.weight", VR_F16, 2, two);
}
static void lora(bag *b)
{
    nothing(b);
    bag_add(b, "lora_unet_down_blocks_0.lora_up.weight", VR_F16, 2, two);
}
static void encoder_only(bag *b) { bag_drop_start(b, "post_quant"); bag_replace(b, "decoder.", "encoder."); }
static void tiny_encoder(bag *b)
{
    nothing(b);
    bag_add(b, "0.weight", VR_F32, 4, (const int64_t[]){4, 3, 3, 3});
    bag_add(b, "0.bias", VR_F32, 1, two);
    bag_add(b, "1.conv.0.weight", VR_F32, 4, (const int64_t[]){4, 4, 3, 3});
    bag_add(b, "14.weight", VR_F32, 4, (const int64_t[]){4, 4, 3, 3});
}
static void wan(bag *b)
{
    nothing(b);
    bag_add(b, "decoder.middle.0.residual.0.gamma", VR_F32, 4, two);
}
static void hunyuan(bag *b)
{
    bag_drop(b, "decoder.conv_in.weight");
    bag_add(b, "decoder.conv_in.weight", VR_F32, 5, (const int64_t[]){16, 4, 3, 3, 3});
}
static void dc_ae(bag *b) { bag_add(b, "decoder.up_blocks.0.0.conv.weight", VR_F32, 4, two); }
static void dc_ae_original(bag *b)
{
    nothing(b);
    bag_add(b, "decoder.stages.0.op_list.0.main.weight", VR_F32, 4, two);
}
static void vq(bag *b) { bag_add(b, "quantize.embedding.weight", VR_F32, 2, two); }
static void taehv(bag *b) { bag_add(b, "7.conv.weight", VR_F32, 4, two); }

static void no_conv_out_bias(bag *b) { bag_drop(b, "decoder.conv_out.bias"); }
static void no_conv_in(bag *b) { bag_drop(b, "decoder.conv_in.weight"); }
static void no_level(bag *b) { bag_drop_start(b, "decoder.up_blocks.1."); }
static void no_resnet(bag *b) { bag_drop_start(b, "decoder.up_blocks.2.resnets.1."); }
static void no_last_level(bag *b) { bag_drop_start(b, "decoder.up_blocks.3."); }
static void no_last_resnet(bag *b) { bag_drop_start(b, "decoder.up_blocks.1.resnets.2."); }
static void no_upsampler(bag *b) { bag_drop_start(b, "decoder.up_blocks.1.upsamplers."); }
static void half_attention(bag *b) { bag_drop(b, "decoder.mid_block.attentions.0.to_k.bias"); }
static void no_post_quant(bag *b) { bag_drop_start(b, "post_quant_conv."); }
static void half_post_quant(bag *b) { bag_drop(b, "post_quant_conv.bias"); }
static void original_names_missing(bag *b) { bag_drop(b, "decoder.up.3.block.0.norm1.weight"); }
static void no_shortcut(bag *b) { bag_drop_start(b, "decoder.up_blocks.3.resnets.0.conv_shortcut"); }

static void tiny_no_first(bag *b) { bag_drop(b, "1.weight"); }
static void tiny_no_block(bag *b) { bag_drop_start(b, "4."); }
static void tiny_no_stage_block(bag *b) { bag_drop_start(b, "3."); }
static void tiny_no_last_block(bag *b) { bag_drop_start(b, "18."); }
static void tiny_no_up_conv(bag *b) { bag_drop_start(b, "7."); }
static void tiny_no_last(bag *b) { bag_drop_start(b, "19."); }
static void tiny_no_tail(bag *b)
{
    bag_drop_start(b, "18.");
    bag_drop_start(b, "19.");
}
/* A stage that lost all its blocks, with the numbers closed up. */
static void tiny_empty_stage(bag *b)
{
    bag_drop_start(b, "8.");
    bag_drop_start(b, "9.");
    bag_drop_start(b, "10.");
    for (int64_t i = 0; i < b->count; i++) {
        char *rest, text[BAG_NAME];
        long k = strtol(b->name[i], &rest, 10);
        snprintf(text, sizeof text, "%ld%.200s", k >= 11 ? k - 3 : k, rest);
        memcpy(b->name[i], text, sizeof text);
    }
}
static void tiny_no_bias(bag *b) { bag_drop(b, "19.bias"); }
static void tiny_relu_has_weight(bag *b) { bag_add(b, "2.weight", VR_F32, 4, two); }
static void tiny_odd_layer(bag *b) { bag_rename(b, "7.weight", "7.kernel"); }

static void extra_resnet(bag *b) { bag_add(b, "decoder.mid_block.resnets.7.conv1.weight", VR_F32, 4, two); }
static void extra_attention(bag *b) { bag_add(b, "decoder.up_blocks.0.attentions.0.to_q.weight", VR_F32, 2, two); }
static void extra_shortcut(bag *b) { bag_add(b, "decoder.up_blocks.0.resnets.0.conv_shortcut.weight", VR_F32, 4, (const int64_t[]){16, 16, 1, 1}); }
static void extra_tiny(bag *b) { bag_add(b, "12.gate.weight", VR_F32, 4, two); }
static void extra_far(bag *b) { bag_add(b, "decoder.up_blocks.900.resnets.0.conv1.weight", VR_F32, 4, two); }

static void swap_axes(bag *b)
{
    vr_tensor *t = &b->tensor[bag_find(b, "decoder.conv_out.weight")];
    int64_t d = t->dim[0];
    t->dim[0] = t->dim[1];
    t->dim[1] = d;
}
static void replace(bag *b, const char *name, int32_t rank, const int64_t *dim)
{
    bag_drop(b, name);
    bag_add(b, name, VR_F32, rank, dim);
}
static void five_by_five(bag *b) { replace(b, "decoder.mid_block.resnets.1.conv2.weight", 4, (const int64_t[]){16, 16, 5, 5}); }
static void short_bias(bag *b) { replace(b, "decoder.conv_in.bias", 1, (const int64_t[]){15}); }
static void flat_norm(bag *b) { replace(b, "decoder.conv_norm_out.weight", 2, (const int64_t[]){1, 4}); }
static void empty_needed(bag *b) { replace(b, "decoder.conv_in.weight", 4, (const int64_t[]){16, 0, 3, 3}); }
static void empty_out(bag *b) { replace(b, "decoder.conv_in.weight", 4, (const int64_t[]){0, 4, 3, 3}); }
static void empty_bias(bag *b) { replace(b, "decoder.conv_out.bias", 1, (const int64_t[]){0}); }
static void scalar_conv_in(bag *b) { replace(b, "decoder.conv_in.weight", 0, NULL); }
static void many_channels(bag *b)
{
    bag_drop_start(b, "post_quant_conv.");
    replace(b, "decoder.conv_in.weight", 4, (const int64_t[]){16, 300, 3, 3});
}
static void post_quant_other(bag *b) { replace(b, "post_quant_conv.weight", 4, (const int64_t[]){5, 4, 1, 1}); }
static void tiny_width(bag *b) { replace(b, "3.conv.2.weight", 4, (const int64_t[]){4, 5, 3, 3}); }

static void integer(bag *b)
{
    bag_drop(b, "decoder.conv_in.bias");
    bag_add(b, "decoder.conv_in.bias", VR_I32, 1, (const int64_t[]){16});
}
static void f8_scale_weight(bag *b)
{
    bag_convert(b, "decoder.conv_in.weight", VR_F8_E4M3);
    bag_add(b, "decoder.conv_in.scale_weight", VR_F32, 0, NULL);
}
static void f8_weight_scale(bag *b)
{
    bag_convert(b, "decoder.conv_in.weight", VR_F8_E5M2);
    bag_add(b, "decoder.conv_in.weight_scale", VR_F32, 1, two);
}
static void f8_scale_inv(bag *b)
{
    bag_convert(b, "3.conv.0.weight", VR_F8_E4M3);
    bag_add(b, "3.conv.0.weight_scale_inv", VR_F32, 1, two);
}
static void f8_marker(bag *b)
{
    bag_convert(b, "decoder.conv_in.weight", VR_F8_E4M3);
    bag_add(b, "scaled_fp8", VR_F8_E4M3, 1, two);
}
static void f8_marker_prefixed(bag *b)
{
    bag_convert(b, "decoder.conv_in.weight", VR_F8_E4M3);
    bag_prefix(b, "vae.");
    bag_add(b, "vae.scaled_fp8", VR_F8_E4M3, 1, two);
}
static void nan_weight(bag *b) { ((float *)bag_edit(b, "decoder.mid_block.resnets.1.norm2.weight"))[3] = NAN; }
static void nan_first(bag *b) { ((float *)bag_edit(b, "3.conv.4.weight"))[0] = NAN; }
static void nan_in_a_later_part(bag *b) { ((float *)bag_edit(b, "decoder.mid.block_1.conv1.weight"))[2048] = NAN; }
static void inf_bias(bag *b) { ((float *)bag_edit(b, "decoder.conv_out.bias"))[2] = -INFINITY; }
static void nan_last(bag *b)
{
    int64_t n = 0, i = bag_find(b, "3.conv.4.weight");
    vr_tensor_count(&b->tensor[i], &n, NULL);
    ((float *)bag_edit(b, "3.conv.4.weight"))[n - 1] = NAN;
}
static void inf_f16(bag *b)
{
    bag_convert(b, "3.conv.4.bias", VR_F16);
    ((uint16_t *)bag_edit(b, "3.conv.4.bias"))[1] = 0x7c00;
}
static void nan_bf16(bag *b)
{
    bag_convert(b, "3.conv.4.bias", VR_BF16);
    ((uint16_t *)bag_edit(b, "3.conv.4.bias"))[1] = 0xffff;
}
static void nan_e4m3(bag *b)
{
    bag_convert(b, "3.conv.4.bias", VR_F8_E4M3);
    ((uint8_t *)bag_edit(b, "3.conv.4.bias"))[1] = 0x7f;
}
static void inf_e5m2(bag *b)
{
    bag_convert(b, "3.conv.4.bias", VR_F8_E5M2);
    ((uint8_t *)bag_edit(b, "3.conv.4.bias"))[1] = 0x7c;
}
static void bn_short(bag *b) { replace(b, "bn.running_var", 1, (const int64_t[]){32}); }
static void bn_negative(bag *b) { ((float *)bag_edit(b, "bn.running_var"))[9] = -1.0f; }
static void bn_nan(bag *b) { ((float *)bag_edit(b, "bn.running_mean"))[9] = NAN; }
static void bn_half(bag *b) { bag_drop(b, "bn.running_mean"); }

static void copies(bag *b, const char *prefix)
{
    int64_t n = b->count;
    char name[BAG_NAME + 32];
    for (int64_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, b->name[i]);
        bag_copy(b, b->name[i], name);
    }
}
static void two_copies(bag *b)
{
    copies(b, "first_stage_model.");
    ((float *)bag_edit(b, "decoder.conv_out.bias"))[0] += 1.0f;
}
static void copy_lacks_one(bag *b)
{
    copies(b, "vae.");
    bag_drop(b, "vae.decoder.conv_out.bias");
}
static void copy_has_more(bag *b)
{
    copies(b, "vae.");
    bag_drop(b, "post_quant_conv.bias");
}
static void both_layouts(bag *b) { bag_add(b, "decoder.up.0.block.0.norm1.weight", VR_F32, 1, (const int64_t[]){16}); }
static void both_attention_names(bag *b) { bag_copy(b, "decoder.mid_block.attentions.0.to_q.bias", "decoder.mid_block.attentions.0.query.bias"); }
static void both_post_quant(bag *b) { bag_copy(b, "post_quant_conv.bias", "decoder.post_quant_conv.bias"); }

/* ---- the table ----------------------------------------------------------------- */

typedef struct row {
    const char *what, *spec;
    vr_key_layout layout;
    void (*change)(bag *);
    vr_status status;
    const char *part[4];
} row;

static const row rows[] = {
    {"no tensors", KL, D, nothing, VR_E_MODEL, {"no tensors at all"}},
    {"1 of n", KL, D, one_of_n, VR_E_MODEL, {"missing tensor 'decoder.conv_in.weight'", "1 tensor"}},
    {"conv_in alone", KL, D, conv_in_only, VR_E_MODEL, {"no decoder found", "'decoder.conv_in.weight'", "without its mid and up blocks"}},
    {"1 of n, Tiny", TINY, O, one_tiny, VR_E_MODEL, {"missing tensor", "'1.weight'"}},
    {"unrelated", KL, D, unrelated, VR_E_MODEL, {"no decoder found among 1 tensors", "'transformer.h.0.attn.weight'", "want names such as"}},
    {"a UNet", KL, D, unet, VR_E_MODEL, {"no decoder found", "a denoiser without its autoencoder"}},
    {"a FLUX transformer", KL, D, flux_transformer, VR_E_MODEL, {"no decoder found", "a FLUX denoiser"}},
    {"a LoRA", KL, D, lora, VR_E_MODEL, {"no decoder found", "a LoRA"}},
    {"encoder only", KL, D, encoder_only, VR_E_MODEL, {"no decoder found", "an encoder only"}},
    {"encoder only, Tiny", TINY, O, tiny_encoder, VR_E_MODEL, {"no decoder found", "an encoder only, of the TAESD family"}},
    {"Wan", KL, D, wan, VR_E_MODEL, {"a Wan-style video decoder"}},
    {"3-D convolutions", KL, D, hunyuan, VR_E_MODEL, {"'decoder.conv_in.weight' has rank 5", "video"}},
    {"AutoencoderDC", KL, D, dc_ae, VR_E_MODEL, {"AutoencoderDC", "decoder.up_blocks.0.0.conv.weight"}},
    {"DC-AE", KL, D, dc_ae_original, VR_E_MODEL, {"no decoder found", "DC-AE"}},
    {"VQ model", KL, D, vq, VR_E_MODEL, {"quantize.embedding.weight", "codebook"}},
    {"TAEHV", TINY, O, taehv, VR_E_MODEL, {"decoder.layers.6", "TAEHV video decoder"}},
    {"one missing", KL, D, no_conv_out_bias, VR_E_MODEL, {"1 missing tensor: decoder.conv_out.bias"}},
    {"conv_in missing", KL, D, no_conv_in, VR_E_MODEL, {"missing tensor 'decoder.conv_in.weight'", "139 tensors"}},
    {"a level missing", KL, D, no_level, VR_E_MODEL, {"26 missing tensors", "decoder.up_blocks.1.resnets.0", ", ..."}},
    {"a block missing", KL, D, no_resnet, VR_E_MODEL, {"8 missing tensors", "decoder.up_blocks.2.resnets.1.norm1.weight"}},
    {"the last level missing", KL, D, no_last_level, VR_E_MODEL, {"24 missing tensors", "decoder.up_blocks.3.resnets.0", "; and tensor 'decoder.conv_norm_out.weight' is F32[4]"}},
    {"the last block of a level missing", KL, D, no_last_resnet, VR_E_MODEL, {"8 missing tensors: decoder.up_blocks.1.resnets.2.norm1.weight"}},
    {"an upsampler missing", KL, D, no_upsampler, VR_E_MODEL, {"2 missing tensors: decoder.up_blocks.1.upsamplers.0.conv.weight"}},
    {"a shortcut missing", KL, D, no_shortcut, VR_E_MODEL, {"2 missing tensors: decoder.up_blocks.3.resnets.0.conv_shortcut.weight"}},
    {"part of attention missing", KL, D, half_attention, VR_E_MODEL, {"1 missing tensor: decoder.mid_block.attentions.0.to_k.bias"}},
    {"post_quant_conv missing", KL, D, no_post_quant, VR_E_MODEL, {"missing tensor 'post_quant_conv.weight'", "'sd15'"}},
    {"post_quant_conv half", KL, D, half_post_quant, VR_E_MODEL, {"1 missing tensor: post_quant_conv.bias"}},
    {"missing, original names", KL, O, original_names_missing, VR_E_MODEL, {"1 missing tensor: decoder.up_blocks.0.resnets.0.norm1.weight"}},
    {"Tiny: first convolution missing", TINY, O, tiny_no_first, VR_E_MODEL, {"missing tensor", "'1.weight'"}},
    {"Tiny: a block missing", TINY, O, tiny_no_block, VR_E_MODEL, {"layer 'decoder.layers.3' ('4' in the original", "missing"}},
    {"Tiny: first block missing", TINY, O, tiny_no_stage_block, VR_E_MODEL, {"layer 'decoder.layers.2'", "missing"}},
    {"Tiny: last block missing", TINY, O, tiny_no_last_block, VR_E_MODEL, {"layer 'decoder.layers.1", "missing"}},
    {"Tiny: a convolution missing", TINY, O, tiny_no_up_conv, VR_E_MODEL, {"layer 'decoder.layers.5'", "missing"}},
    {"Tiny: output missing", TINY, O, tiny_no_last, VR_E_MODEL, {"layer 'decoder.layers.17'", "layers are missing"}},
    {"Tiny: tail missing", TINY, O, tiny_no_tail, VR_E_MODEL, {"layer 'decoder.layers.1", "missing"}},
    {"Tiny: a stage without blocks", TINY, O, tiny_empty_stage, VR_E_MODEL, {"layer 'decoder.layers.7'", "missing"}},
    {"Tiny: bias missing", TINY, O, tiny_no_bias, VR_E_MODEL, {"1 missing tensor: decoder.layers.18.bias"}},
    {"Tiny: a ReLU with weights", TINY, O, tiny_relu_has_weight, VR_E_MODEL, {"decoder.layers.1", "ReLU"}},
    {"Tiny: unknown layer", TINY, O, tiny_odd_layer, VR_E_MODEL, {"decoder.layers.6", "neither"}},
    {"extra block", KL, D, extra_resnet, VR_E_MODEL, {"extra tensor 'decoder.mid_block.resnets.7.conv1.weight'", "of 4 levels"}},
    {"extra attention", KL, D, extra_attention, VR_E_MODEL, {"extra tensor 'decoder.up_blocks.0.attentions.0.to_q.weight'"}},
    {"extra shortcut", KL, D, extra_shortcut, VR_E_MODEL, {"extra tensor 'decoder.up_blocks.0.resnets.0.conv_shortcut.weight'"}},
    {"extra, Tiny", TINY, O, extra_tiny, VR_E_MODEL, {"12.gate.weight"}},
    {"a level far away", KL, D, extra_far, VR_E_MODEL, {"extra tensor 'decoder.up_blocks.900"}},
    {"axes swapped", KL, D, swap_axes, VR_E_MODEL, {"'decoder.conv_out.weight' is F32[4,3,3,3]", "shape [4,4,3,3]"}},
    {"kernel of 5", KL, D, five_by_five, VR_E_MODEL, {"F32[16,16,5,5]", "shape [16,16,3,3]"}},
    {"short bias", KL, D, short_bias, VR_E_MODEL, {"'decoder.conv_in.bias' is F32[15]", "shape [16]"}},
    {"norm of rank 2", KL, D, flat_norm, VR_E_MODEL, {"'decoder.conv_norm_out.weight' is F32[1,4]", "shape [4]"}},
    {"no latent channels", KL, D, empty_needed, VR_E_MODEL, {"'decoder.conv_in.weight' is F32[16,0,3,3]"}},
    {"zero-size weight", KL, D, empty_out, VR_E_MODEL, {"'decoder.conv_in.weight' is F32[0,4,3,3]"}},
    {"zero-size bias", KL, D, empty_bias, VR_E_MODEL, {"'decoder.conv_out.bias' is F32[0]", "shape [3]"}},
    {"a single number", KL, D, scalar_conv_in, VR_E_MODEL, {"'decoder.conv_in.weight' is F32[]"}},
    {"300 channels", KL, D, many_channels, VR_E_MODEL, {"300 latent channels", "256"}},
    {"post_quant_conv of another width", KL, D, post_quant_other, VR_E_MODEL, {"'post_quant_conv.weight' is F32[5,4,1,1]", "shape [4,4,1,1]"}},
    {"Tiny: width", TINY, O, tiny_width, VR_E_MODEL, {"'3.conv.2.weight' is F32[4,5,3,3]", "shape [4,4,3,3]"}},
    {"integer weight", KL, D, integer, VR_E_DTYPE, {"'decoder.conv_in.bias'", "I32", "BF16"}},
    {"8-bit with .scale_weight", KL, D, f8_scale_weight, VR_E_UNSUPPORTED, {"decoder.conv_in.scale_weight", "scale"}},
    {"8-bit with weight_scale", KL, D, f8_weight_scale, VR_E_UNSUPPORTED, {"decoder.conv_in.weight_scale"}},
    {"8-bit with scale_inv", TINY, O, f8_scale_inv, VR_E_UNSUPPORTED, {"3.conv.0.weight_scale_inv"}},
    {"8-bit with a marker", KL, D, f8_marker, VR_E_UNSUPPORTED, {"'scaled_fp8'"}},
    {"8-bit with a marker under its prefix", KL, D, f8_marker_prefixed, VR_E_UNSUPPORTED, {"'vae.scaled_fp8'"}},
    {"NaN", KL, D, nan_weight, VR_E_NONFINITE, {"'decoder.mid_block.resnets.1.norm2.weight'", "element 3"}},
    {"infinity", KL, D, inf_bias, VR_E_NONFINITE, {"'decoder.conv_out.bias'", "element 2"}},
    {"NaN at the start", TINY, O, nan_first, VR_E_NONFINITE, {"'3.conv.4.weight'", "element 0;"}},
    {"NaN further on", KL, O, nan_in_a_later_part, VR_E_NONFINITE, {"'decoder.mid.block_1.conv1.weight'", "element 2048;"}},
    {"NaN at the end", TINY, O, nan_last, VR_E_NONFINITE, {"'3.conv.4.weight'", "element 143"}},
    {"infinity in F16", TINY, O, inf_f16, VR_E_NONFINITE, {"'3.conv.4.bias'", "element 1"}},
    {"NaN in BF16", TINY, O, nan_bf16, VR_E_NONFINITE, {"'3.conv.4.bias'", "element 1"}},
    {"NaN in E4M3", TINY, O, nan_e4m3, VR_E_NONFINITE, {"'3.conv.4.bias'", "element 1"}},
    {"infinity in E5M2", TINY, O, inf_e5m2, VR_E_NONFINITE, {"'3.conv.4.bias'", "element 1"}},
    {"statistics too short", "synth:flux2,div=32", D, bn_short, VR_E_MODEL, {"'bn.running_var'", "[128]"}},
    {"negative variance", "synth:flux2,div=32", D, bn_negative, VR_E_NONFINITE, {"bn.running_var", "channel 9"}},
    {"NaN mean", "synth:flux2,div=32", D, bn_nan, VR_E_NONFINITE, {"bn.running_mean", "channel 9"}},
    {"half the statistics", "synth:flux2,div=32", D, bn_half, VR_E_MODEL, {"no tensor 'bn.running_mean'", "raw"}},
    {"two copies that differ", KL, D, two_copies, VR_E_AMBIGUOUS, {"two different decoders", "'decoder.conv_out.bias'", "'first_stage_model.decoder.conv_out.bias'"}},
    {"a copy that lacks one", KL, D, copy_lacks_one, VR_E_AMBIGUOUS, {"two different decoders", "'decoder.conv_out.bias'"}},
    {"a copy that has one more", KL, D, copy_has_more, VR_E_AMBIGUOUS, {"two different decoders", "'vae."}},
    {"names of both layouts", KL, D, both_layouts, VR_E_AMBIGUOUS, {"are the same weight; keep one"}},
    {"old and new attention names", KL, D, both_attention_names, VR_E_AMBIGUOUS, {"query.bias", "to_q.bias", "same weight"}},
    {"post_quant_conv twice", KL, D, both_post_quant, VR_E_AMBIGUOUS, {"'decoder.post_quant_conv.bias'", "'post_quant_conv.bias'"}},
};

Test(model_wrong_files, each_is_refused_with_its_reason)
{
    cr_assert(sizeof rows / sizeof rows[0] >= 70);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const row *r = &rows[i];
        const char *parts[6] = {"m.safetensors: "};
        bag *b = bag_of(r->spec, r->layout);
        bag_meta(b, "vaeproof.arch", strstr(r->spec, "sd15") ? "sd15" : "none");
        r->change(b);
        for (int k = 0; k < 4; k++)
            parts[k + 1] = r->part[k];
        assert_refused(r->what, BAG_FILE(b), NULL, r->status, parts);
        bag_free(b);
    }
}

Test(model_wrong_files, a_needed_tensor_of_unknown_type_is_named)
{
    bag *b = bag_of(KL, D);
    const char *path = BAG_FILE(b);
    file_patch(path, "\"decoder.conv_out.bias\"", "F32", "F99");
    const vr_model_options opt = {.arch = "sd15"};
    assert_refused("F99", path, &opt, VR_E_DTYPE, PARTS("'decoder.conv_out.bias'", "F99", "BF16"));
    bag_free(b);
}

Test(model_wrong_files, plain_8_bit_weights_are_welcome)
{
    bag *b = bag_of(TINY, O);
    for (int64_t i = 0; i < b->count; i++)
        bag_convert(b, b->name[i], i % 2 ? VR_F8_E4M3 : VR_F8_E5M2);
    vr_model *m = must_open("8-bit", BAG_FILE(b), NULL);
    vr_tensor y = decode_small("8-bit", m);
    vr_tensor_free(&y);
    vr_model_close(m);
    bag_free(b);
}

Test(model_wrong_files, arch_that_does_not_fit_the_file)
{
    static const struct {
        const char *spec, *arch, *part;
        vr_status status;
    } cases[] = {
        {KL, "taesd", "the file holds an AutoencoderKL", VR_E_MODEL},
        {TINY, "sdxl", "the file holds a TAESD-family decoder", VR_E_MODEL},
        {KL, "sd3", "'sd3' has 16 latent channels, the file's decoder takes 4", VR_E_MODEL},
        {KL, "sd9", "arch 'sd9' is unknown; want one of sd15, sdxl, sd3", VR_E_ARGUMENT},
        {KL, "", "is unknown", VR_E_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bag *b = bag_of(cases[i].spec, D);
        const vr_model_options opt = {.arch = cases[i].arch};
        assert_refused(cases[i].arch, BAG_FILE(b), &opt, cases[i].status, PARTS(cases[i].part));
        bag_free(b);
    }
}

Test(model_wrong_files, a_very_long_path_leaves_room_for_the_reason)
{
    bag *b = bag_of(KL, D);
    nothing(b);
    char path[IO_PATH], long_name[700], slashes[300];
    memset(slashes, '/', sizeof slashes - 1);
    slashes[sizeof slashes - 1] = '\0';
    bag_write(b, "m.safetensors", path);
    snprintf(long_name, sizeof long_name, "%s%s%s", b->dir.path, slashes, "m.safetensors");
    assert_refused("long", long_name, NULL, VR_E_MODEL, PARTS("...", "no tensors at all", "want"));
    bag_free(b);
}
