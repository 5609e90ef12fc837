/* Parsers of the suite as fuzz targets: FUZZ_TARGET is one of cases, waivers, frames.
 * With libFuzzer, or (FUZZ_REPLAY) a main that replays a folder of inputs.
 *
 * SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/suite.h"
#include "runner/waiver.h"
#include "wire/wire.h"

enum { cases, waivers, frames };

static void fuzz_cases(const char *text, size_t size)
{
    vc_suite s = {.entry = NULL};
    vr_error err = {VR_OK, ""};
    if (vc_suite_parse("fuzz", text, size, &s, &err) == VR_OK && s.entries < 1000)
        (void)vc_suite_expand(&s, &err);
    vc_suite_free(&s);
}

static void fuzz_waivers(const char *text, size_t size)
{
    vc_waivers w;
    vr_error err = {VR_OK, ""};
    if (vc_waivers_parse("fuzz", text, size, "0.1.0", "2026-12-01", &w, &err) == VR_OK) {
        (void)vc_waiver_find(&w, "op.conv2d.k3.f32", "ref");
        vc_waivers_free(&w);
    }
}

static void fuzz_frames(const uint8_t *data, size_t size)
{
    static char weights[4096];
    char kind;
    json_t *body;
    vr_error err = {VR_OK, ""};
    if (wire_parse(data, size, &kind, &body) <= 0)
        return;
    wire_program_copy p;
    json_t *program = json_object_get(body, "program");
    if (program) {
        (void)wire_program_read(program, weights, sizeof weights, &p, &err);
        wire_program_free(&p);
    }
    vp_tensor t;
    const char *file;
    uint64_t offset;
    (void)wire_tensor_read(json_object_get(body, "tensor"), &t, &file, &offset, &err);
    json_decref(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* exactly so large: reading past the end shows */
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (FUZZ_TARGET == cases)
        fuzz_cases(text, size);
    else if (FUZZ_TARGET == waivers)
        fuzz_waivers(text, size);
    else
        fuzz_frames(data, size);
    free(text);
    return 0;
}

#ifdef FUZZ_REPLAY
#include <dirent.h>

int main(int argc, char **argv)
{
    int n = 0;
    DIR *d = argc == 2 ? opendir(argv[1]) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[4096];
        static uint8_t data[1 << 20];
        snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (!f)
            continue;
        const size_t size = fread(data, 1, sizeof data, f);
        fclose(f);
        for (size_t cut = size;; cut = cut * 3 / 4) { /* whole, and cut short */
            LLVMFuzzerTestOneInput(data, cut);
            n++;
            if (!cut)
                break;
        }
    }
    if (d)
        closedir(d);
    printf("%d inputs replayed\n", n);
    return n < 10;
}
#endif
