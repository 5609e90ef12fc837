/* Atomic writing (clause F1): a failure leaves what was there before.
 *
 * SPDX-License-Identifier: MIT */
#include "io_test.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static vr_status write_text(const char *path, const char *text, vr_error *err)
{
    vr_file_writer *w;
    vr_status s = vr_file_create(path, &w, err);
    if (s)
        return s;
    s = vr_file_write(w, text, strlen(text), err);
    if (!s)
        return vr_file_commit(w, err);
    vr_file_abandon(w);
    return s;
}

static void expect_text(const char *path, const char *text)
{
    size_t n;
    uint8_t *p = io_get(path, &n);
    cr_assert(n == strlen(text) && memcmp(p, text, n) == 0, "%s: wrong content", path);
    free(p);
}

Test(files, new_and_replaced_files_hold_the_bytes_and_nothing_else_stays)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "out.bin");
    vr_error err = {0};
    cr_assert(write_text(path, "one", &err) == VR_OK, "%s", err.text);
    expect_text(path, "one");
    cr_assert(write_text(path, "second", &err) == VR_OK, "%s", err.text);
    expect_text(path, "second");
    cr_assert(io_dir_entries(&d) == 1);
    io_dir_remove(&d);
}

Test(files, old_content_is_visible_until_commit_and_after_abandon)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "out.bin");
    io_put(path, "old", 3);
    vr_file_writer *w;
    cr_assert(vr_file_create(path, &w, NULL) == VR_OK);
    cr_assert(vr_file_write(w, "new", 3, NULL) == VR_OK);
    expect_text(path, "old");
    cr_assert(io_dir_entries(&d) == 2);
    vr_file_abandon(w);
    vr_file_abandon(NULL);
    expect_text(path, "old");
    cr_assert(io_dir_entries(&d) == 1);
    io_dir_remove(&d);
}

Test(files, large_and_small_writes_keep_their_order)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "out.bin");
    enum { N = 200000 };
    uint8_t *data = malloc(N);
    for (int i = 0; i < N; i++)
        data[i] = (uint8_t)(i * 7 + i / 251);
    vr_file_writer *w;
    cr_assert(vr_file_create(path, &w, NULL) == VR_OK);
    size_t at = 0;
    for (size_t step = 1; at < N; step = step * 3 + 1) {
        size_t n = step < N - at ? step : N - at;
        cr_assert(vr_file_write(w, data + at, n, NULL) == VR_OK);
        at += n;
    }
    cr_assert(vr_file_commit(w, NULL) == VR_OK);
    size_t n;
    uint8_t *got = io_get(path, &n);
    cr_assert(n == N && memcmp(got, data, N) == 0);
    free(got);
    free(data);
    io_dir_remove(&d);
}

Test(files, bad_targets_are_refused_at_once)
{
    io_dir d = io_dir_make();
    io_put(IO_FILE(&d, "file"), "x", 1);
    cr_assert(mkdir(IO_FILE(&d, "folder"), 0777) == 0);
    cr_assert(symlink("nowhere", IO_FILE(&d, "dangling")) == 0);
    static const struct {
        const char *name;
        vr_status status;
        const char *needle;
    } rows[] = {
        {"folder", VR_E_IO, "is a folder"},
        {"folder/", VR_E_IO, "is a folder"},
        {"missing/out.png", VR_E_NOTFOUND, "folder it should go into does not exist"},
        {"file/out.png", VR_E_NOTFOUND, "does not exist"},
        {"missing/", VR_E_ARGUMENT, "no file name"},
        {"dangling", VR_E_NOTFOUND, "symbolic link to nothing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        vr_error err = {0};
        vr_file_writer *w = (void *)&d;
        vr_status s = vr_file_create(IO_FILE(&d, rows[i].name), &w, &err);
        cr_assert(s == rows[i].status && w == NULL, "%s: status %d", rows[i].name, s);
        cr_assert(strstr(err.text, rows[i].needle), "%s: %s", rows[i].name, err.text);
        cr_assert(strstr(err.text, rows[i].name), "%s: %s", rows[i].name, err.text);
    }
    vr_file_writer *w;
    cr_assert(vr_file_create("", &w, NULL) == VR_E_ARGUMENT);
    cr_assert(io_dir_entries(&d) == 3);
    io_dir_remove(&d);
}

Test(files, a_full_disk_names_path_and_reason_and_keeps_the_old_file)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "picture.png");
    io_put(path, "old", 3);
    /* A file size limit behaves as a disk that is full after 100 kB. */
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {100000, RLIM_INFINITY};
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    uint8_t *big = calloc(1, 300000);
    for (int small = 0; small < 2; small++) { /* one large write; many small ones */
        vr_error err = {0};
        vr_file_writer *w;
        cr_assert(vr_file_create(path, &w, &err) == VR_OK, "%s", err.text);
        size_t step = small ? 1000 : 300000;
        vr_status s = VR_OK;
        for (size_t at = 0; !s && at < 300000; at += step)
            s = vr_file_write(w, big, step, &err);
        cr_assert(s == VR_E_IO);
        cr_assert(strstr(err.text, "picture.png") && strstr(err.text, strerror(EFBIG)), "%s",
                  err.text);
        /* A caller that overlooks the failure must not put the stump in place. */
        cr_assert(vr_file_commit(w, &err) == VR_E_IO);
        expect_text(path, "old");
        cr_assert(io_dir_entries(&d) == 1);
    }
    /* A failure seen only when the last buffer goes out. */
    limit.rlim_cur = 1000;
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    vr_file_writer *w;
    vr_error err = {0};
    cr_assert(vr_file_create(path, &w, &err) == VR_OK);
    cr_assert(vr_file_write(w, big, 2000, &err) == VR_OK);
    cr_assert(vr_file_commit(w, &err) == VR_E_IO);
    cr_assert(strstr(err.text, strerror(EFBIG)), "%s", err.text);
    expect_text(path, "old");
    cr_assert(io_dir_entries(&d) == 1);
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    free(big);
    io_dir_remove(&d);
}

Test(files, whole_file_writers_leave_nothing_behind_on_a_full_disk)
{
    io_dir d = io_dir_make();
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {50, RLIM_INFINITY};
    cr_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    float v[64] = {0};
    vr_tensor t = {VR_F32, 1, {64}, v};
    const char *name = "t";
    vr_image m = {8, 8, 4, 8, v};
    vr_error err = {0};
    cr_assert(vr_npy_write(IO_FILE(&d, "a.npy"), &t, &err) == VR_E_IO, "%s", err.text);
    cr_assert(vr_safetensors_write(IO_FILE(&d, "a.st"), &name, &t, 1, NULL, 0, &err) == VR_E_IO);
    cr_assert(vr_png_write(IO_FILE(&d, "a.png"), &m, &err) == VR_E_IO);
    cr_assert(strstr(err.text, "a.png") && strstr(err.text, strerror(EFBIG)), "%s", err.text);
    cr_assert(io_dir_entries(&d) == 0);
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    io_dir_remove(&d);
}

Test(files, pipes_and_devices_are_written_through_not_replaced)
{
    io_dir d = io_dir_make();
    const char *pipe_path = IO_FILE(&d, "pipe");
    cr_assert(mkfifo(pipe_path, 0600) == 0);
    int fd = open(pipe_path, O_RDONLY | O_NONBLOCK);
    vr_error err = {0};
    cr_assert(write_text(pipe_path, "through", &err) == VR_OK, "%s", err.text);
    char got[16] = {0};
    cr_assert(read(fd, got, sizeof got) == 7 && strcmp(got, "through") == 0);
    close(fd);
    struct stat st;
    cr_assert(stat(pipe_path, &st) == 0 && S_ISFIFO(st.st_mode), "the pipe was replaced");
    cr_assert(io_dir_entries(&d) == 1);
    /* Through a link, so that a mistake could at most replace the link. */
    const char *null = IO_FILE(&d, "null"), *full = IO_FILE(&d, "full");
    cr_assert(symlink("/dev/null", null) == 0 && symlink("/dev/full", full) == 0);
    cr_assert(write_text(null, "x", &err) == VR_OK, "%s", err.text);
    cr_assert(stat(null, &st) == 0 && S_ISCHR(st.st_mode));
    if (access("/dev/full", W_OK) == 0) {
        cr_assert(write_text(full, "x", &err) == VR_E_IO);
        cr_assert(strstr(err.text, strerror(ENOSPC)) && strstr(err.text, "full"), "%s", err.text);
    }
    io_dir_remove(&d);
}

Test(files, own_descriptors_keep_their_position)
{
    io_dir d = io_dir_make();
    const char *path = IO_FILE(&d, "log");
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert(write(fd, "head ", 5) == 5);
    char name[64];
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    vr_error err = {0};
    cr_assert(write_text(name, "tail", &err) == VR_OK, "%s", err.text);
    close(fd);
    expect_text(path, "head tail");
    cr_assert(write_text(name, "x", &err) == VR_E_IO, "a closed descriptor was accepted");
    io_dir_remove(&d);
}

Test(files, links_and_permissions_survive)
{
    io_dir d = io_dir_make();
    const char *real = IO_FILE(&d, "real"), *link = IO_FILE(&d, "link");
    io_put(real, "old", 3);
    cr_assert(chmod(real, 0640) == 0 && symlink("real", link) == 0);
    cr_assert(write_text(link, "new", NULL) == VR_OK);
    struct stat st;
    cr_assert(lstat(link, &st) == 0 && S_ISLNK(st.st_mode), "the link was replaced");
    cr_assert(stat(real, &st) == 0 && (st.st_mode & 0777) == 0640);
    expect_text(real, "new");
    umask(027);
    cr_assert(write_text(IO_FILE(&d, "fresh"), "x", NULL) == VR_OK);
    cr_assert(stat(IO_FILE(&d, "fresh"), &st) == 0 && (st.st_mode & 0777) == 0640);
    io_dir_remove(&d);
}

Test(files, long_names_and_names_without_folder_work)
{
    io_dir d = io_dir_make();
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    vr_error err = {0};
    cr_assert(write_text(IO_FILE(&d, name), "x", &err) == VR_OK, "%s", err.text);
    cr_assert(chdir(d.path) == 0);
    cr_assert(write_text("plain", "x", &err) == VR_OK, "%s", err.text);
    expect_text(IO_FILE(&d, "plain"), "x");
    cr_assert(chdir("/") == 0);
    io_dir_remove(&d);
}
