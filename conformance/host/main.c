/* vaehost LIBRARY: started by vaecheck, of no use by hand.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/host.h"

int main(int argc, char **argv)
{
    const char *fd_text = getenv("VAEPROOF_FD");
    static host_state h;
    char text[512], kind;
    h.dir = getenv("VAEPROOF_DIR");
    if (argc != 2 || !fd_text || !h.dir) {
        fprintf(stderr, "vaehost: error: this is started by vaecheck; want vaecheck --backend LIBRARY\n");
        return 2;
    }
    const int fd = atoi(fd_text);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* what a library prints is no answer */
    if (!host_load(&h, argv[1], text, sizeof text)) {
        json_t *e = json_pack("{s:i, s:s}", "code", (int)VP_E_INTERNAL, "text", text);
        wire_send(fd, 'E', e);
        json_decref(e);
        return 4;
    }
    json_t *hello = json_pack("{s:b}", "loaded", 1);
    wire_send(fd, 'A', hello);
    json_decref(hello);
    for (;;) {
        json_t *q;
        const wire_result r = wire_receive(fd, -1, &kind, &q);
        if (r == WIRE_CLOSED)
            break;
        if (r != WIRE_OK) {
            fprintf(stderr, "vaehost: error: %s\n", wire_result_text(r));
            return 1;
        }
        json_t *a = host_answer(&h, q, &kind);
        if (!a || wire_send(fd, kind, a) != WIRE_OK)
            break;
        json_decref(a);
        json_decref(q);
    }
    return 0;
}
