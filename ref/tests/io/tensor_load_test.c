/* "FILE[#name]" (clause F3.6).
 *
 * SPDX-License-Identifier: MIT */
#include "io_test.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static vr_status load(const io_dir *d, const char *spec, vr_tensor *t, vr_error *err)
{
    return vr_tensor_load(IO_FILE(d, spec), t, err);
}

/* Files: many.st (a..h), one.st ("only"), x.npy, we#ird.npy, m#1.st ("p#q", "r"), empty.st */
static io_dir prepare(void)
{
    io_dir d = io_dir_make();
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    static const char *const hash[] = {"p#q", "r"};
    static const char *const only[] = {"only"};
    float v[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    vr_tensor t[8];
    for (int i = 0; i < 8; i++)
        t[i] = (vr_tensor){VR_F32, 1, {1}, v + i};
    cr_assert(!vr_safetensors_write(IO_FILE(&d, "many.st"), names, t, 8, NULL, 0, NULL));
    cr_assert(!vr_safetensors_write(IO_FILE(&d, "one.st"), only, t, 1, NULL, 0, NULL));
    cr_assert(!vr_safetensors_write(IO_FILE(&d, "m#1.st"), hash, t + 2, 2, NULL, 0, NULL));
    cr_assert(!vr_safetensors_write(IO_FILE(&d, "empty.st"), NULL, NULL, 0, NULL, 0, NULL));
    cr_assert(!vr_npy_write(IO_FILE(&d, "x.npy"), &t[4], NULL));
    cr_assert(!vr_npy_write(IO_FILE(&d, "we#ird.npy"), &t[5], NULL));
    io_put(IO_FILE(&d, "text.npy"), "hello", 5);
    static const char index[] = "{\"weight_map\":{\"b\":\"many.st\"}}";
    io_put(IO_FILE(&d, "s.index.json"), index, sizeof index - 1);
    return d;
}

Test(tensor_load, file_and_name_are_told_apart)
{
    io_dir d = prepare();
    static const struct {
        const char *spec;
        float value;
    } rows[] = {
        {"many.st#a", 1},  {"many.st#h", 8},     {"one.st", 1},        {"one.st#only", 1},
        {"x.npy", 5},      {"we#ird.npy", 6},    {"m#1.st#p#q", 3},    {"m#1.st#r", 4},
        {"s.index.json#b", 2}, {"s.index.json#h", 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        vr_tensor t;
        vr_error err = {0};
        cr_assert(!load(&d, rows[i].spec, &t, &err), "%s: %s", rows[i].spec, err.text);
        cr_assert(*(float *)t.data == rows[i].value, "%s", rows[i].spec);
        vr_tensor_free(&t);
    }
    io_dir_remove(&d);
}

Test(tensor_load, refusals_say_what_there_is_to_choose)
{
    io_dir d = prepare();
    static const struct {
        const char *spec;
        vr_status status;
        const char *needle;
    } rows[] = {
        {"many.st", VR_E_ARGUMENT,
         "holds 8 tensors; choose one as FILE#name: a F32[1], b F32[1], c F32[1], d F32[1], e "
         "F32[1], f F32[1], ... (8 in all)"},
        {"many.st#zz", VR_E_NOTFOUND, "no tensor 'zz'; there are: a F32[1], b F32[1]"},
        {"many.st#", VR_E_NOTFOUND, "no tensor ''"},
        {"one.st#a", VR_E_NOTFOUND, "no tensor 'a'; there are: only F32[1]"},
        {"empty.st", VR_E_NOTFOUND, "holds no tensors"},
        {"empty.st#a", VR_E_NOTFOUND, "holds no tensors"},
        {"x.npy#a", VR_E_ARGUMENT, "one unnamed tensor; drop '#a'"},
        {"none.st#a", VR_E_NOTFOUND, "none.st: no such file"},
        {"none.st", VR_E_NOTFOUND, "none.st: no such file"},
        {"text.npy", VR_E_FORMAT, "is not a .npy file"},
        {"m#1.st", VR_E_ARGUMENT, "p#q F32[1], r F32[1]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        vr_tensor t = {.rank = 3};
        vr_error err = {0};
        vr_status s = load(&d, rows[i].spec, &t, &err);
        cr_assert(s == rows[i].status && !t.data && !t.rank, "%s: %d", rows[i].spec, s);
        cr_assert(strstr(err.text, rows[i].needle), "%s: %s", rows[i].spec, err.text);
    }
    vr_tensor t;
    cr_assert(vr_tensor_load("", &t, NULL) == VR_E_ARGUMENT);
    cr_assert(vr_tensor_load(d.path, &t, NULL) == VR_E_IO);
    io_dir_remove(&d);
}

Test(tensor_load, a_pipe_is_read_to_its_end)
{
    io_dir d = prepare();
    const char *pipe_path = IO_FILE(&d, "pipe");
    static const char *const sources[] = {"x.npy", "one.st"};
    cr_assert(mkfifo(pipe_path, 0600) == 0);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            size_t n;
            uint8_t *p = io_get(IO_FILE(&d, sources[i]), &n);
            io_put(pipe_path, p, n);
            _exit(0);
        }
        vr_tensor t;
        vr_error err = {0};
        cr_assert(!vr_tensor_load(pipe_path, &t, &err), "%s", err.text);
        cr_assert(*(float *)t.data == (i ? 1.0f : 5.0f));
        vr_tensor_free(&t);
        waitpid(child, NULL, 0);
    }
    io_dir_remove(&d);
}
