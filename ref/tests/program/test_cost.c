/* Work, memory and reach of the published decoders, against counts made
 * independently of this library from the layer lists alone.
 * SPDX-License-Identifier: MIT */
#include "topology.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static vr_program *kl(int64_t z, bool post_quant, bool shortcut_first)
{
    vr_error err = {0};
    vr_program *p = topo_kl_decoder((topo_kl){z, post_quant, shortcut_first}, &err);
    cr_assert_not_null(p, "%s", err.text);
    return p;
}

static vr_program *tiny(int64_t z)
{
    vr_error err = {0};
    vr_program *p = topo_tiny_decoder(z, &err);
    cr_assert_not_null(p, "%s", err.text);
    return p;
}

static vr_program_cost cost_at(const vr_program *p, int64_t pixels, int64_t element_bytes,
                               vr_op_cost *per_op)
{
    vr_error err = {0};
    vr_program_cost c;
    vr_shape latent = {1, p->op[0].channels, 1, pixels / 8, pixels / 8};
    vr_status s = vr_program_cost_of(p, latent, element_bytes, &c, per_op, &err);
    cr_assert(s == VR_OK, "%s", err.text);
    return c;
}

/* Units of 10 million, rounded to nearest: the two decimals of a GMAC table. */
static int64_t centigiga(int64_t macs)
{
    return (macs + 5000000) / 10000000;
}

Test(program_cost, kl_decoders_have_the_published_parameter_counts)
{
    static const struct {
        int64_t z;
        bool post_quant;
        int64_t parameters;
    } row[] = {{4, true, 49490199}, {16, false, 49545475}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        vr_program *p = kl(row[i].z, row[i].post_quant, false);
        vr_program_cost c = cost_at(p, 256, 4, NULL);
        cr_assert(c.parameters == row[i].parameters, "z=%lld: %lld", (long long)row[i].z,
                  (long long)c.parameters);
        cr_assert(c.weight_bytes == 4 * row[i].parameters);
        vr_program_free(p);
    }
}

Test(program_cost, kl_multiply_adds_are_those_of_the_layer_list)
{
    static const struct {
        int64_t pixels, conv, projection, attention, total; /* 0.01 GMAC */
    } row[] = {
        {256, 30895, 107, 107, 31109},
        {512, 123578, 429, 1718, 125726},
        {1024, 494314, 1718, 27488, 523520},
    };
    vr_program *p = kl(4, true, false);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        vr_program_cost c = cost_at(p, row[i].pixels, 4, NULL);
        cr_assert(centigiga(c.conv_macs) == row[i].conv, "%lld: conv %lld",
                  (long long)row[i].pixels, (long long)c.conv_macs);
        cr_assert(centigiga(c.attention_projection_macs) == row[i].projection,
                  "%lld: projections %lld", (long long)row[i].pixels,
                  (long long)c.attention_projection_macs);
        cr_assert(centigiga(c.attention_macs) == row[i].attention, "%lld: attention %lld",
                  (long long)row[i].pixels, (long long)c.attention_macs);
        cr_assert(centigiga(c.macs) == row[i].total, "%lld: total %lld", (long long)row[i].pixels,
                  (long long)c.macs);
        cr_assert(c.macs == c.conv_macs + c.attention_projection_macs + c.attention_macs);
    }
    vr_program_free(p);
}

Test(program_cost, tiny_decoders_have_the_published_counts)
{
    static const struct {
        int64_t z, parameters;
    } row[] = {{4, 1222531}, {16, 1229443}};
    static const struct {
        int64_t pixels, decigiga; /* 0.1 GMAC */
    } size[] = {{256, 177}, {512, 707}, {1024, 2827}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        vr_program *p = tiny(row[i].z);
        vr_program_cost c = cost_at(p, 256, 4, NULL);
        cr_assert(c.parameters == row[i].parameters, "z=%lld: %lld", (long long)row[i].z,
                  (long long)c.parameters);
        for (size_t k = 0; k < 3 && row[i].z == 4; k++) {
            c = cost_at(p, size[k].pixels, 4, NULL);
            cr_assert((c.macs + 50000000) / 100000000 == size[k].decigiga, "%lld: %lld",
                      (long long)size[k].pixels, (long long)c.macs);
            cr_assert(c.conv_macs == c.macs && c.attention_macs == 0);
        }
        vr_program_free(p);
    }
}

/* The peak of a KL decode is the first block at full size that narrows from
 * 256 to 128 channels: x is kept for the shortcut (256), norm1 needs a block of
 * its own (256), conv1 makes 128. With the shortcut taken first, x dies at
 * norm1, and the peak is the last upsampling's convolution (256 + 256). */
Test(program_cost, kl_peak_is_640_channels_and_512_when_the_shortcut_is_taken_first)
{
    static const struct {
        bool shortcut_first;
        int64_t channels;
        const char *tap;
    } row[] = {
        {false, 640, "decoder.up_blocks.3.resnets.0.conv1"},
        {true, 512, "decoder.up_blocks.2.upsamplers.0.conv"},
    };
    for (size_t i = 0; i < 2; i++) {
        vr_program *p = kl(4, true, row[i].shortcut_first);
        for (int64_t pixels = 256; pixels <= 1024; pixels *= 2)
            for (int64_t bytes = 2; bytes <= 8; bytes *= 2) {
                vr_program_cost c = cost_at(p, pixels, bytes, NULL);
                cr_assert(c.peak_bytes == row[i].channels * pixels * pixels * bytes,
                          "%lld px: %lld", (long long)pixels, (long long)c.peak_bytes);
                cr_assert_str_eq(p->op[c.peak_op].tap, row[i].tap);
            }
        vr_program_free(p);
    }
}

Test(program_cost, tiny_peak_is_three_values_of_64_channels)
{
    vr_program *p = tiny(4);
    vr_program_cost c = cost_at(p, 512, 4, NULL);
    cr_assert(c.peak_bytes == INT64_C(192) * 512 * 512 * 4, "%lld", (long long)c.peak_bytes);
    vr_program_free(p);
}

Test(program_cost, rows_of_operations_add_up_to_the_total)
{
    vr_program *p = kl(4, true, false);
    vr_op_cost *row = calloc((size_t)p->op_count, sizeof *row);
    vr_program_cost c = cost_at(p, 256, 4, row);
    int64_t macs = 0, weights = 0, peak = 0;
    for (int32_t i = 0; i < p->op_count; i++) {
        macs += row[i].macs;
        weights += row[i].weight_bytes; /* no weight is shared in this decoder */
        if (row[i].live_bytes > peak)
            peak = row[i].live_bytes;
    }
    cr_assert(macs == c.macs && weights == c.weight_bytes && peak == c.peak_bytes);
    cr_assert(row[c.peak_op].live_bytes == peak);
    free(row);
    vr_program_free(p);
}

/* A program small enough to count by hand: 2 samples, 3 frames. */
Test(program_cost, one_operation_costs_what_it_reads_writes_and_multiplies)
{
    vr_program *p = vr_program_new("hand", 2);
    int32_t a = topo_conv(p, "a", 0, 5, 3, true);
    int32_t q = topo_conv(p, "q", a, 5, 1, false);
    int32_t o = vr_program_attention(p, "o", q, q, a, 1.0);
    int32_t s = vr_program_add(p, "s", o, o);
    vr_error err = {0};
    cr_assert(vr_program_finish(p, s, 0, 1, &err) == VR_OK, "%s", err.text);
    vr_program_cost c;
    vr_op_cost row[5];
    vr_shape latent = {2, 2, 3, 4, 7};
    cr_assert(vr_program_cost_of(p, latent, 4, &c, row, &err) == VR_OK, "%s", err.text);
    const int64_t in = 2 * 2 * 3 * 4 * 7 * 4, v = 2 * 5 * 3 * 4 * 7 * 4;
    static const char *const what[5] = {"latent", "conv", "projection", "attention", "add"};
    const vr_op_cost want[5] = {
        {0, 0, 0, 0, 0},
        {5 * 2 * 9 * 2 * 3 * 28, (90 + 5) * 4, in, v, v}, /* the latent is not live */
        {5 * 5 * 2 * 3 * 28, 25 * 4, v, v, 2 * v},
        {2 * 2 * 3 * 28 * 28 * 5, 0, 2 * v, v, 3 * v}, /* q is read twice, counted once */
        {0, 0, v, v, v},                               /* in place */
    };
    for (int i = 0; i < 5; i++)
        cr_assert(memcmp(&row[i], &want[i], sizeof want[i]) == 0,
                  "%s: macs %lld weights %lld read %lld written %lld live %lld", what[i],
                  (long long)row[i].macs, (long long)row[i].weight_bytes,
                  (long long)row[i].read_bytes, (long long)row[i].written_bytes,
                  (long long)row[i].live_bytes);
    cr_assert(c.peak_op == 3 && c.peak_bytes == 3 * v);
    cr_assert(c.attention_projection_macs == want[2].macs && c.conv_macs == want[1].macs);
    cr_assert(c.attention_macs == want[3].macs);
    vr_program_free(p);
}

Test(program_cost, only_1x1_convolutions_beside_attention_are_projections)
{
    static const int64_t kernel[][2] = {{3, 3}, {3, 1}, {1, 3}};
    for (int i = 0; i < 3; i++) {
        const int64_t kh = kernel[i][0], kw = kernel[i][1];
        vr_program *p = vr_program_new("hand", 2);
        int32_t w = topo_weight4(p, "w", 2, 2, kh, kw);
        int32_t q = vr_program_conv2d_pads(p, "q", 0, w, -1, kh / 2, kh / 2, kw / 2, kw / 2);
        int32_t o = vr_program_attention(p, "o", q, q, q, 1.0);
        int32_t y = vr_program_conv2d_pads(p, "y", o, w, -1, kh / 2, kh / 2, kw / 2, kw / 2);
        cr_assert(vr_program_finish(p, y, 0, 1, NULL) == VR_OK);
        vr_program_cost c;
        cr_assert(vr_program_cost_of(p, (vr_shape){1, 2, 1, 4, 4}, 4, &c, NULL, NULL) == VR_OK);
        cr_assert(c.attention_projection_macs == 0, "%d", i);
        cr_assert(c.conv_macs == 2 * 4 * kh * kw * 16, "%d", i);
        vr_program_free(p);
    }
}

Test(program_cost, weights_are_counted_once_and_in_their_stored_type)
{
    static const struct {
        vr_dtype type;
        int64_t bytes;
    } row[] = {{VR_F64, 8}, {VR_F32, 4}, {VR_F16, 2}, {VR_BF16, 2}, {VR_F8_E4M3, 1}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const int64_t dim[4] = {3, 3, 1, 1};
        vr_program *p = vr_program_new("shared", 3);
        int32_t w = vr_program_weight(p, "w", "old.w", row[i].type, 4, dim, topology_data);
        int32_t x = vr_program_conv2d(p, "a", 0, w, -1, 0);
        x = vr_program_conv2d(p, "b", x, w, -1, 0);
        cr_assert(vr_program_finish(p, x, 0, 1, NULL) == VR_OK);
        vr_program_cost c;
        vr_op_cost op[3];
        vr_status s = vr_program_cost_of(p, (vr_shape){1, 3, 1, 2, 2}, 4, &c, op, NULL);
        cr_assert(s == VR_OK && c.parameters == 9);
        cr_assert(c.weight_bytes == 9 * row[i].bytes, "%d: %lld", (int)row[i].type,
                  (long long)c.weight_bytes);
        cr_assert(op[1].weight_bytes == c.weight_bytes && op[2].weight_bytes == c.weight_bytes);
        vr_program_free(p);
    }
}

Test(program_cost, work_beyond_63_bits_is_an_error_not_a_negative_number)
{
    vr_error err = {0};
    vr_program_cost c;
    vr_program *p = kl(4, true, false);
    const int64_t side = 1 << 15; /* attention: 2 * 512 * 2^60 multiply-adds */
    vr_status s = vr_program_cost_of(p, (vr_shape){1, 4, 1, side, side}, 4, &c, NULL, &err);
    cr_assert(s == VR_E_RANGE, "%s", err.text);
    cr_assert(strstr(err.text, "attention 'decoder.mid_block.attentions.0.attention'"), "%s",
              err.text);
    cr_assert(vr_program_cost_of(p, (vr_shape){1, 4, 1, 8, 8}, 0, &c, NULL, &err) ==
              VR_E_ARGUMENT);
    vr_program_free(p);
}

Test(program_cost, halo_is_18_latent_cells_for_kl_and_19_for_tiny)
{
    vr_program *p[2] = {kl(4, true, false), tiny(4)};
    static const int64_t halo[2] = {18, 19};
    static const int32_t global[2] = {31, 0}; /* 30 group norms, 1 attention */
    for (int i = 0; i < 2; i++) {
        vr_receptive_field r;
        cr_assert(vr_program_receptive_field(p[i], &r, NULL) == VR_OK);
        cr_assert(r.halo_low == halo[i] && r.halo_high == halo[i], "%lld %lld",
                  (long long)r.halo_low, (long long)r.halo_high);
        cr_assert(r.halo_low_w == halo[i] && r.halo_high_w == halo[i]);
        cr_assert(r.global_ops == global[i], "%d", (int)r.global_ops);
        vr_program_free(p[i]);
    }
}
