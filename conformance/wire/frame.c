/* Frames (clause A4.1). SPDX-License-Identifier: MIT */
#include "wire/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const char *wire_result_text(wire_result r)
{
    static const char *const text[] = {"ok", "the connection closed", "no answer in time", "bytes that are no frame",
                                       "a read or write error"};
    return text[r];
}

double wire_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static wire_result write_all(int fd, const void *data, size_t n)
{
    const char *at = data;
    while (n) {
        ssize_t k = send(fd, at, n, MSG_NOSIGNAL);
        if (k < 0 && errno == ENOTSOCK)
            k = write(fd, at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return errno == EPIPE || errno == ECONNRESET ? WIRE_CLOSED : WIRE_IO;
        at += k;
        n -= (size_t)k;
    }
    return WIRE_OK;
}

wire_result wire_send(int fd, char kind, const json_t *body)
{
    char *text = body ? json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    if (!text)
        return WIRE_IO;
    const size_t n = strlen(text);
    unsigned char head[5] = {(unsigned char)n, (unsigned char)(n >> 8), (unsigned char)(n >> 16),
                             (unsigned char)(n >> 24), (unsigned char)kind};
    wire_result r = n > WIRE_LIMIT ? WIRE_GARBAGE : write_all(fd, head, sizeof head);
    if (r == WIRE_OK)
        r = write_all(fd, text, n);
    free(text);
    return r;
}

static wire_result read_all(int fd, void *data, size_t n, double until)
{
    char *at = data;
    while (n) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const double left = until - wire_now();
        if (until >= 0 && left <= 0)
            return WIRE_TIMEOUT;
        int ready = poll(&p, 1, until < 0 ? -1 : (int)(left * 1000.0) + 1);
        if (ready < 0 && errno != EINTR)
            return WIRE_IO;
        if (ready <= 0)
            continue;
        ssize_t k = read(fd, at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k == 0 || errno == ECONNRESET ? WIRE_CLOSED : WIRE_IO;
        at += k;
        n -= (size_t)k;
    }
    return WIRE_OK;
}

static bool head_ok(const unsigned char h[5], size_t *n)
{
    *n = (size_t)h[0] | (size_t)h[1] << 8 | (size_t)h[2] << 16 | (size_t)h[3] << 24;
    return *n <= WIRE_LIMIT && (h[4] == 'Q' || h[4] == 'A' || h[4] == 'E');
}

static json_t *parse_body(const char *text, size_t n)
{
    json_t *j = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    if (j && !json_is_object(j)) {
        json_decref(j);
        j = NULL;
    }
    return j;
}

wire_result wire_receive(int fd, double seconds, char *kind, json_t **body)
{
    const double until = seconds < 0 ? -1 : wire_now() + seconds;
    unsigned char head[5];
    size_t n;
    *body = NULL;
    wire_result r = read_all(fd, head, sizeof head, until);
    if (r != WIRE_OK)
        return r;
    if (!head_ok(head, &n))
        return WIRE_GARBAGE;
    char *text = malloc(n + 1);
    if (!text)
        return WIRE_IO;
    r = read_all(fd, text, n, until);
    if (r == WIRE_OK) {
        *kind = (char)head[4];
        *body = parse_body(text, n);
        r = *body ? WIRE_OK : WIRE_GARBAGE;
    }
    free(text);
    return r;
}

int64_t wire_parse(const uint8_t *data, uint64_t size, char *kind, json_t **body)
{
    size_t n;
    *body = NULL;
    if (size < 5)
        return 0;
    if (!head_ok(data, &n))
        return -1;
    if (size - 5 < n)
        return 0;
    *kind = (char)data[4];
    *body = parse_body((const char *)data + 5, n);
    return *body ? (int64_t)n + 5 : -1;
}
