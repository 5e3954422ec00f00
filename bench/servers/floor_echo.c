/* The floor under any WebSocket echo: kernel TCP, epoll and RFC 6455 framing, nothing else.
 *
 * Sends every message back unchanged (unmasked), without parsing JSON or base64. What a gateway
 * costs above this is its own. Bounded by --ttl seconds. Build: cc -O3 -o floor_echo floor_echo.c
 *
 * The Sec-WebSocket-Accept value is fixed, so only a client that does not check it can connect.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 65536 };

struct connection {
    int fd, upgraded;
    size_t len;
    uint8_t in[BUFFER_BYTES];
};

static const char UPGRADE[] =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void send_all(int fd, const void *bytes, size_t n) {
    /* A full socket buffer loses the message: the generator counts it as lost. */
    if (send(fd, bytes, n, MSG_NOSIGNAL) < 0 && errno != EAGAIN && errno != EPIPE) fail("send");
}

/* Echoes the first complete frame; returns its length on the wire, or 0 when it is incomplete. */
static size_t echo_frame(struct connection *c, uint8_t *frame, size_t have) {
    static uint8_t out[BUFFER_BYTES];
    if (have < 2) return 0;
    size_t n = frame[1] & 127, head = 2;
    if (n == 127) { fprintf(stderr, "a message over 65535 bytes\n"); exit(1); }
    if (n == 126) {
        if (have < 4) return 0;
        n = (size_t)frame[2] << 8 | frame[3];
        head = 4;
    }
    if (have < head + 4 + n) return 0;
    const uint8_t *body = frame + head + 4;
    uint64_t mask;
    memcpy(&mask, frame + head, 4);
    mask = (mask & 0xffffffff) | mask << 32;
    memcpy(out, frame, head);
    out[1] &= 127;
    size_t i = 0;
    for (uint64_t word; i + 8 <= n; i += 8) {
        memcpy(&word, body + i, 8);
        word ^= mask;
        memcpy(out + head + i, &word, 8);
    }
    for (; i < n; i++) out[head + i] = body[i] ^ frame[head + (i & 3)];
    if ((frame[0] & 15) < 8) send_all(c->fd, out, head + n);
    return head + 4 + n;
}

static void drop(struct connection *c) {
    close(c->fd);
    free(c);
}

static void serve(struct connection *c) {
    ssize_t r = recv(c->fd, c->in + c->len, sizeof c->in - c->len, 0);
    if (r < 0 && errno == EAGAIN) return;
    if (r <= 0) { drop(c); return; }
    c->len += (size_t)r;
    size_t at = 0;
    if (!c->upgraded) {
        uint8_t *end = memmem(c->in, c->len, "\r\n\r\n", 4);
        if (!end) return;
        c->upgraded = 1;
        at = (size_t)(end + 4 - c->in);
        send_all(c->fd, UPGRADE, sizeof UPGRADE - 1);
    }
    for (size_t used; (used = echo_frame(c, c->in + at, c->len - at)); at += used) {}
    memmove(c->in, c->in + at, c->len - at);
    c->len -= at;
}

int main(int argc, char **argv) {
    int port = 0, ttl_s = 60, one = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--port")) port = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--ttl")) ttl_s = atoi(argv[i + 1]);
    }
    alarm((unsigned)ttl_s);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);

    int listener = socket(AF_INET, SOCK_STREAM, 0), ep = epoll_create1(0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (void *)&at, sizeof at) || listen(listener, 4096)) fail("bind");
    struct epoll_event event = {.events = EPOLLIN}, events[256];
    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(ep, events, 256, -1);
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (c) { serve(c); continue; }
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            if (!(c = calloc(1, sizeof *c))) fail("calloc");
            c->fd = fd;
            event.data.ptr = c;
            epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event);
        }
    }
}
