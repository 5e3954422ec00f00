/* The audio that is sent: a few distinct frames as finished WebSocket messages, and their tags. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "websocket.h"

enum {
    SAMPLE_RATE_HZ = 24000,
    DISTINCT_FRAMES = 16,
    MAX_FRAME_BYTES = 19200,
    TAG_BYTES = 6, /* 12 bits of magic, 12 of session, 24 of sequence: eight base64 letters */
    TAG_LETTERS = 8,
    TAG_MAGIC = 0xd1a,
};

static const char APPEND_HEAD[] = "{\"type\":\"input_audio_buffer.append\",\"audio\":\"";
static const char APPEND_TAIL[] = "\"}";
static const char BASE64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static int8_t base64_value[256];

static size_t frame_bytes;
static uint8_t pcm[DISTINCT_FRAMES][MAX_FRAME_BYTES];
static uint8_t *message[DISTINCT_FRAMES]; /* complete masked WebSocket messages */
static size_t message_len, tag_at;        /* tag_at: where the tag's letters stand */

static void tag_bytes(uint8_t out[TAG_BYTES], int session, uint32_t seq) {
    uint64_t tag = (uint64_t)TAG_MAGIC << 36 | (uint64_t)session << 24 | (seq & 0xffffff);
    for (int i = 0; i < TAG_BYTES; i++) out[i] = (uint8_t)(tag >> (40 - 8 * i));
}

static void base64_encode(uint8_t *out, const uint8_t *in, size_t n) {
    for (size_t i = 0; i < n; i += 3, out += 4) {
        uint32_t v = (uint32_t)in[i] << 16 | (uint32_t)in[i + 1] << 8 | in[i + 2];
        for (int k = 0; k < 4; k++) out[k] = (uint8_t)BASE64[v >> (18 - 6 * k) & 63];
    }
}

static void prepare_frames(uint64_t period_ns) {
    memset(base64_value, -1, sizeof base64_value);
    for (int i = 0; i < 64; i++) base64_value[(uint8_t)BASE64[i]] = (int8_t)i;
    frame_bytes = (size_t)(period_ns * SAMPLE_RATE_HZ / 1000000000ull) * 2;
    if (frame_bytes > MAX_FRAME_BYTES || frame_bytes % 3)
        die("a frame of %zu bytes does not work, choose a period of 20, 40 or 80 ms", frame_bytes);
    for (int f = 0; f < DISTINCT_FRAMES; f++) {
        for (size_t i = 0; i < frame_bytes / 2; i++) {
            double t = (double)(i + (size_t)f * frame_bytes / 2) / SAMPLE_RATE_HZ;
            double v = .3 * sin(2 * M_PI * 150 * t) + .2 * sin(2 * M_PI * 730 * t);
            int16_t sample = (int16_t)(v * 20000 + drand48() * 600 - 300);
            pcm[f][2 * i] = (uint8_t)sample;
            pcm[f][2 * i + 1] = (uint8_t)(sample >> 8);
        }
        size_t text_len = sizeof APPEND_HEAD - 1 + frame_bytes / 3 * 4 + sizeof APPEND_TAIL - 1;
        uint8_t *m = message[f] = malloc(text_len + 14);
        size_t head = websocket_header(m, TEXT, text_len), at = head;
        memcpy(m + at, APPEND_HEAD, sizeof APPEND_HEAD - 1);
        tag_at = at += sizeof APPEND_HEAD - 1;
        base64_encode(m + at, pcm[f], frame_bytes);
        memcpy(m + at + frame_bytes / 3 * 4, APPEND_TAIL, sizeof APPEND_TAIL - 1);
        apply_mask(m + head, m + head, text_len);
        message_len = head + text_len;
    }
}

/* The complete message for one append; valid until the next call for the same sound. */
static const uint8_t *tagged_message(int session, uint32_t seq) {
    uint8_t tag[TAG_BYTES], letters[TAG_LETTERS], *m = message[seq % DISTINCT_FRAMES];
    tag_bytes(tag, session, seq);
    base64_encode(letters, tag, TAG_BYTES);
    for (size_t i = 0; i < TAG_LETTERS; i++)
        m[tag_at + i] = letters[i] ^ MASK[(sizeof APPEND_HEAD - 1 + i) & 3];
    return m;
}

static size_t base64_decode(uint8_t *out, const uint8_t *in, size_t n) {
    size_t len = 0;
    uint32_t v = 0;
    int bits = 0;
    for (size_t i = 0; i < n && base64_value[in[i]] >= 0; i++) {
        v = v << 6 | (uint32_t)base64_value[in[i]];
        if ((bits += 6) >= 8) out[len++] = (uint8_t)(v >> (bits -= 8));
    }
    return len;
}
