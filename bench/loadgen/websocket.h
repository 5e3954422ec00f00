/* The client's side of one WebSocket connection (RFC 6455), no more of it than a load needs. */
#ifndef WEBSOCKET_H
#define WEBSOCKET_H
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MAX_MESSAGE_BYTES = 4 << 20, READ_BYTES = 65536 };

enum opcode { TEXT = 1, CLOSE = 8, PING = 9, PONG = 10 };

static const uint8_t MASK[4] = {0x5a, 0x13, 0xc7, 0x98};

struct connection {
    int fd, closed, close_code;
    uint64_t received_bytes;
    uint8_t *in; /* what was received and not yet taken apart */
    size_t in_len, in_cap;
};

static void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("loadgen: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(3);
}

static size_t websocket_header(uint8_t *out, int opcode, size_t n) {
    out[0] = (uint8_t)(0x80 | opcode);
    size_t at = 2;
    if (n < 126) out[1] = (uint8_t)(0x80 | n);
    else { out[1] = 0x80 | 126; out[2] = (uint8_t)(n >> 8); out[3] = (uint8_t)n; at = 4; }
    memcpy(out + at, MASK, 4);
    return at + 4;
}

static void apply_mask(uint8_t *out, const uint8_t *in, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = in[i] ^ MASK[i & 3];
}

static void send_control(struct connection *c, int opcode, const uint8_t *body, size_t n) {
    uint8_t m[140];
    size_t head = websocket_header(m, opcode, n);
    apply_mask(m + head, body, n);
    if (send(c->fd, m, head + n, MSG_NOSIGNAL) < 0) c->closed = 1;
}

/* Takes one message off what was received, from *at on; returns 0 when none is complete.
 * The message stays valid until the next call that reads from the socket. */
static int take_message(struct connection *c, size_t *at, int *opcode, const uint8_t **body,
                        size_t *len) {
    const uint8_t *b = c->in + *at;
    size_t have = c->in_len - *at, head = 2;
    if (have < head) return 0;
    size_t n = b[1] & 127;
    if (n == 126) {
        if (have < (head = 4)) return 0;
        n = (size_t)b[2] << 8 | b[3];
    } else if (n == 127) {
        if (have < (head = 10)) return 0;
        n = 0;
        for (int i = 2; i < 10; i++) n = n << 8 | b[i];
    }
    if (n > MAX_MESSAGE_BYTES) die("a message of %zu bytes, the limit is %d", n, MAX_MESSAGE_BYTES);
    if (head + n > c->in_cap) c->in = realloc(c->in, c->in_cap = head + n + READ_BYTES);
    if (have < head + n) return 0;
    b = c->in + *at;
    if (!(b[0] & 0x80)) die("a fragmented message: not supported");
    if (b[1] & 0x80 || b[0] & 0x70) die("a frame with a mask or a reserved bit: %02x", b[0]);
    *opcode = b[0] & 15, *body = b + head, *len = n;
    *at += head + n;
    return 1;
}

/* Reads what is there: 1 something came, 0 nothing is there now, -1 the other side closed. */
static int receive(struct connection *c) {
    if (c->in_cap - c->in_len < READ_BYTES) c->in = realloc(c->in, c->in_cap += READ_BYTES);
    ssize_t r = recv(c->fd, c->in + c->in_len, c->in_cap - c->in_len, 0);
    if (r > 0) { c->in_len += (size_t)r; c->received_bytes += (uint64_t)r; }
    return r > 0 ? 1 : r < 0 && errno == EAGAIN ? 0 : -1;
}

static void send_text(struct connection *c, const char *text) {
    size_t n = strlen(text);
    if (n > 65535) die("a script line of %zu bytes, the limit is 65535", n);
    uint8_t *m = malloc(n + 14);
    size_t head = websocket_header(m, TEXT, n);
    apply_mask(m + head, (const uint8_t *)text, n);
    ssize_t sent = send(c->fd, m, head + n, MSG_NOSIGNAL);
    if (sent != (ssize_t)(head + n)) die("send: %s", strerror(errno));
    free(m);
}

static void upgrade(struct connection *c, const char *path, int port) {
    char request[1024];
    int n = snprintf(request, sizeof request,
                     "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Key: ZHVvbG9ndWUtbG9hZC1nZQ==\r\n"
                     "Sec-WebSocket-Version: 13\r\n\r\n", path, port);
    if (send(c->fd, request, (size_t)n, MSG_NOSIGNAL) != n) die("send: %s", strerror(errno));
    uint8_t *end = NULL;
    while (!end) {
        if (receive(c) < 1) die("the server closed during the upgrade");
        end = memmem(c->in, c->in_len, "\r\n\r\n", 4);
    }
    if (memcmp(c->in, "HTTP/1.1 101", 12)) die("no upgrade: %.*s", (int)c->in_len, c->in);
    size_t used = (size_t)(end + 4 - c->in);
    memmove(c->in, c->in + used, c->in_len - used);
    c->in_len -= used;
}

#endif
