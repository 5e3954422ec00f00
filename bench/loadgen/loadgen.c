/* Load generator for realtime voice servers: N WebSocket sessions on loopback, one thread, epoll.
 *
 * Every session appends one frame of PCM16 audio per period on a schedule fixed before the run
 * starts (open loop: a slow server does not slow the sender down, so queueing shows up as latency).
 * Each frame carries a tag of session and sequence number in its first six bytes. An echoed delta
 * is matched to its append by that tag, and its latency counts from the *scheduled* send time.
 * The generator's own lateness is reported beside the latencies: a run whose generator was late
 * says nothing about the server.
 *
 * It shares no code with any server that it measures. Build: cc -O2 -o loadgen loadgen.c -lm
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"
#include "histogram.h"
#include "websocket.h"

enum {
    MAX_SESSIONS = 4096,
    MAX_SECONDS = 180,
    MAX_SCRIPT_STEPS = 16,
    DRAIN_MS = 500,
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

struct session {
    struct connection c;
    int index, answered;
    uint64_t phase_ns;
    uint32_t next_seq;     /* sequence of the next append */
    uint32_t expected_seq; /* sequence of the next echo */
    uint64_t echoed_bytes; /* place in the audio that came back */
    uint8_t *out;          /* rest of a frame that the socket did not take at once */
    size_t out_len;
};

struct script_step {
    char what; /* '>' send this text, '<' wait for a message that contains it */
    char *text;
};

static struct options {
    int port, sessions, seconds, warm_seconds, settle_ms, connect_gap_us, verify, hold, raw, ack;
    uint64_t period_ns;
    const char *path, *script;
} opt = {.sessions = 10, .seconds = 3, .warm_seconds = 1, .connect_gap_us = 500,
         .period_ns = 40000000, .path = "/"};

/* An answer that comes later than this is late: the frame of a lockstep model. */
enum { LATE_NS = 80000000 };

static struct session *sessions;
static struct script_step script[MAX_SCRIPT_STEPS];
static int script_len, epoll_fd;

static uint64_t schedule_start_ns, record_from_ns, record_to_ns;
static struct histogram latency, lateness;
static struct {
    uint64_t appends, deltas, audio_bytes, other_messages;
    uint64_t lost, unanswered_at_start, out_of_order, coalesced, untagged, late, blocked,
        mismatched, errors;
} counts;

static int recording(uint64_t t) { return t >= record_from_ns && t < record_to_ns; }

static uint64_t scheduled_ns(const struct session *s, uint64_t seq) {
    return schedule_start_ns + seq * opt.period_ns + s->phase_ns;
}

/* Reads the tag at the start of a delta; 0 when there is none of this session's. */
static int read_tag(const struct session *s, const uint8_t *letters, size_t n, uint32_t *seq) {
    uint8_t tag[TAG_BYTES];
    if (n < TAG_LETTERS || base64_decode(tag, letters, TAG_LETTERS) != TAG_BYTES) return 0;
    if ((tag[0] << 4 | tag[1] >> 4) != TAG_MAGIC) return 0;
    if (((tag[1] & 15) << 8 | tag[2]) != s->index) return 0;
    *seq = (uint32_t)tag[3] << 16 | (uint32_t)tag[4] << 8 | tag[5];
    return 1;
}

static void check_content(struct session *s, const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint64_t at = s->echoed_bytes + i;
        uint32_t seq = (uint32_t)(at / frame_bytes);
        size_t offset = at % frame_bytes;
        uint8_t tag[TAG_BYTES];
        tag_bytes(tag, s->index, seq);
        uint8_t want = offset < TAG_BYTES ? tag[offset] : pcm[seq % DISTINCT_FRAMES][offset];
        if (bytes[i] == want) continue;
        if (!counts.mismatched)
            fprintf(stderr, "loadgen: session %d: byte %zu of frame %u came back as %d, not %d\n",
                    s->index, offset, seq, bytes[i], want);
        counts.mismatched++;
        return;
    }
}

static void on_delta(struct session *s, const uint8_t *letters, size_t n, uint64_t t) {
    static uint8_t audio[MAX_MESSAGE_BYTES];
    size_t padding = n && letters[n - 1] == '=' ? (letters[n - 2] == '=' ? 2 : 1) : 0;
    size_t bytes = n / 4 * 3 - padding;
    uint32_t seq = 0;
    int tagged = read_tag(s, letters, n, &seq);
    if (!s->answered && tagged) { /* a server may need a first frame before it can answer */
        s->expected_seq = seq;
        s->echoed_bytes = (uint64_t)seq * frame_bytes;
        counts.unanswered_at_start += seq;
    }
    s->answered = 1;
    if (opt.verify) check_content(s, audio, base64_decode(audio, letters, n));
    s->echoed_bytes += bytes;
    if (recording(t)) { counts.deltas++; counts.audio_bytes += bytes; }
    if (bytes != frame_bytes) {
        counts.coalesced++;
        s->expected_seq = (uint32_t)(s->echoed_bytes / frame_bytes);
        return;
    }
    if (!tagged) { counts.untagged++; return; }
    if (seq < s->expected_seq) { counts.out_of_order++; return; }
    if (recording(scheduled_ns(s, seq))) {
        counts.lost += seq - s->expected_seq;
        histogram_add(&latency, t - scheduled_ns(s, seq));
        counts.late += t > scheduled_ns(s, seq) + LATE_NS;
    }
    s->expected_seq = seq + 1;
}

/* Acknowledges an event of the duplex dialect, whose number stands near its beginning. */
static void acknowledge(struct session *s, const uint8_t *text, size_t n) {
    static const char NAME[] = "\"server_event_seq\":";
    char ack[96];
    const uint8_t *at = memmem(text, n < 96 ? n : 96, NAME, sizeof NAME - 1);
    if (!at || s->c.closed || s->out_len) return;
    snprintf(ack, sizeof ack, "{\"type\":\"session.event_ack\",\"server_event_seq\":%llu}",
             strtoull((const char *)at + sizeof NAME - 1, NULL, 10));
    send_text(&s->c, ack);
}

static void on_text(struct session *s, const uint8_t *text, size_t n, uint64_t t) {
    if (opt.ack) acknowledge(s, text, n);
    static const char ERROR[] = "\"type\":\"error\"";
    const char *type = opt.raw ? "audio_buffer.append\"" : "audio.delta\"";
    const char *name = opt.raw ? "\"audio\"" : "\"delta\"";
    const uint8_t *key = NULL, *end = text + n;
    if (memmem(text, n, type, strlen(type))) key = memmem(text, n, name, strlen(name));
    if (!key) {
        if (memmem(text, n, ERROR, sizeof ERROR - 1)) {
            if (!counts.errors) fprintf(stderr, "loadgen: server said %.*s\n", (int)n, text);
            counts.errors++;
        }
        if (recording(t)) counts.other_messages++;
        return;
    }
    const uint8_t *p = key + strlen(name);
    while (p < end && (*p == ' ' || *p == ':')) p++;
    const uint8_t *close = ++p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;
    if (!close) die("an audio delta without a closing quote: %.*s", (int)(n < 200 ? n : 200), text);
    on_delta(s, p, (size_t)(close - p), t);
}

static void on_message(struct session *s, int opcode, const uint8_t *body, size_t n, uint64_t t) {
    if (opcode == TEXT) on_text(s, body, n, t);
    else if (opcode == PING) send_control(&s->c, PONG, body, n < 125 ? n : 125);
    else if (opcode == CLOSE) {
        s->c.closed = 1;
        s->c.close_code = n >= 2 ? body[0] << 8 | body[1] : 1005;
    }
}

static void take_all(struct session *s, uint64_t t) {
    size_t at = 0, n;
    int opcode;
    const uint8_t *body;
    while (take_message(&s->c, &at, &opcode, &body, &n)) on_message(s, opcode, body, n, t);
    memmove(s->c.in, s->c.in + at, s->c.in_len - at);
    s->c.in_len -= at;
}

static void wait_for(struct session *s, const char *needle) {
    for (;;) {
        size_t at = 0, n;
        int opcode, found = 0;
        const uint8_t *body;
        while (!found && take_message(&s->c, &at, &opcode, &body, &n)) {
            if (opcode == TEXT) found = memmem(body, n, needle, strlen(needle)) != NULL;
            else on_message(s, opcode, body, n, now_ns());
            if (opcode == TEXT && !found && memmem(body, n, "\"error\"", 7))
                die("session %d: server said %.*s", s->index, (int)n, body);
        }
        memmove(s->c.in, s->c.in + at, s->c.in_len - at);
        s->c.in_len -= at;
        if (found) return;
        if (s->c.closed || receive(&s->c) < 1)
            die("session %d: no message with '%s' came (closed %d, code %d)", s->index, needle,
                s->c.closed, s->c.close_code);
    }
}

static void open_session(struct session *s) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)opt.port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct timeval timeout = {20, 0};
    int one = 1;
    s->c.fd = socket(AF_INET, SOCK_STREAM, 0);
    if (s->c.fd < 0 || connect(s->c.fd, (void *)&to, sizeof to))
        die("connect: %s", strerror(errno));
    setsockopt(s->c.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(s->c.fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    upgrade(&s->c, opt.path, opt.port);
    for (int i = 0; i < script_len; i++) {
        if (script[i].what == '>') send_text(&s->c, script[i].text);
        else wait_for(s, script[i].text);
    }
    fcntl(s->c.fd, F_SETFL, O_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, s->c.fd, &e);
    take_all(s, now_ns());
}

static void read_script(const char *path) {
    FILE *f = fopen(path, "r");
    if (!f) die("%s: %s", path, strerror(errno));
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, f)) > 0) {
        while (n && (line[n - 1] == '\n' || line[n - 1] == '\r')) line[--n] = 0;
        if (!n) continue;
        if (script_len == MAX_SCRIPT_STEPS) die("%s: more than %d steps", path, MAX_SCRIPT_STEPS);
        if ((line[0] != '>' && line[0] != '<') || line[1] != ' ')
            die("%s: '%s' is neither '> text to send' nor '< text to wait for'", path, line);
        script[script_len++] = (struct script_step){line[0], strdup(line + 2)};
    }
    free(line);
    fclose(f);
}

static void watch(struct session *s, uint32_t events) {
    struct epoll_event e = {.events = events, .data.ptr = s};
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, s->c.fd, &e);
}

static void send_append(struct session *s, uint64_t due, uint64_t t) {
    uint32_t seq = s->next_seq++;
    if (s->c.closed) return;
    if (recording(due)) { counts.appends++; histogram_add(&lateness, t - due); }
    if (s->out_len) { counts.blocked++; return; } /* lost: it will show as a gap in the tags */
    const uint8_t *m = tagged_message(s->index, seq);
    ssize_t r = send(s->c.fd, m, message_len, MSG_NOSIGNAL);
    if (r == (ssize_t)message_len) return;
    if (r < 0 && errno != EAGAIN) { s->c.closed = 1; return; }
    size_t sent = r < 0 ? 0 : (size_t)r;
    s->out_len = message_len - sent;
    if (!s->out) s->out = malloc(message_len);
    memcpy(s->out, m + sent, s->out_len);
    watch(s, EPOLLIN | EPOLLOUT);
}

static void send_rest(struct session *s) {
    ssize_t r = send(s->c.fd, s->out, s->out_len, MSG_NOSIGNAL);
    if (r <= 0) return;
    s->out_len -= (size_t)r;
    memmove(s->out, s->out + r, s->out_len);
    if (!s->out_len) watch(s, EPOLLIN);
}

static void mark(const char *what) {
    printf("%s\n", what);
    fflush(stdout);
}

static int by_phase(const void *a, const void *b) {
    uint64_t x = sessions[*(const int *)a].phase_ns, y = sessions[*(const int *)b].phase_ns;
    return x < y ? -1 : x > y;
}

static double run(void) {
    int *order = malloc((size_t)opt.sessions * sizeof *order);
    for (int i = 0; i < opt.sessions; i++) {
        order[i] = i;
        sessions[i].phase_ns = (uint64_t)(drand48() * (double)opt.period_ns);
    }
    qsort(order, (size_t)opt.sessions, sizeof *order, by_phase);
    schedule_start_ns = now_ns() + 20000000;
    record_from_ns = schedule_start_ns + (uint64_t)opt.warm_seconds * 1000000000ull;
    record_to_ns = record_from_ns + (uint64_t)opt.seconds * 1000000000ull;
    uint64_t end_ns = record_to_ns + DRAIN_MS * 1000000ull;

    struct rusage from, to;
    struct epoll_event events[256];
    enum { WARMING, RECORDING, DRAINING } state = WARMING;
    int next = 0;
    for (;;) {
        uint64_t t = now_ns();
        if (state == WARMING && t >= record_from_ns) {
            state = RECORDING;
            getrusage(RUSAGE_SELF, &from);
            mark("START");
        }
        if (state == RECORDING && t >= record_to_ns) {
            state = DRAINING;
            getrusage(RUSAGE_SELF, &to);
            mark("END");
        }
        if (t >= end_ns) break;

        uint64_t due = end_ns;
        while (!opt.hold && state != DRAINING) {
            struct session *s = sessions + order[next];
            due = scheduled_ns(s, s->next_seq);
            if (due > (t = now_ns())) break;
            send_append(s, due, t);
            next = (next + 1) % opt.sessions;
        }
        uint64_t wait = due > t ? due - t : 0;
        if (wait > 20000000) wait = 20000000;
        struct timespec timeout = {0, (long)wait};
        int n = (int)syscall(SYS_epoll_pwait2, epoll_fd, events, 256, &timeout, NULL, 0);
        for (int i = 0; i < n; i++) {
            struct session *s = events[i].data.ptr;
            if (events[i].events & EPOLLOUT && s->out_len) send_rest(s);
            if (!(events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))) continue;
            if (receive(&s->c) < 0) {
                s->c.closed = 1;
                epoll_ctl(epoll_fd, EPOLL_CTL_DEL, s->c.fd, NULL);
            } else take_all(s, now_ns());
        }
    }
    free(order);
    return (double)(to.ru_utime.tv_sec - from.ru_utime.tv_sec + to.ru_stime.tv_sec -
                    from.ru_stime.tv_sec) +
           1e-6 * (double)(to.ru_utime.tv_usec - from.ru_utime.tv_usec + to.ru_stime.tv_usec -
                           from.ru_stime.tv_usec);
}

static void print_result(double cpu_s) {
    int closed = 0, close_code = 0, silent = 0;
    for (int i = 0; i < opt.sessions; i++) {
        closed += sessions[i].c.closed;
        if (sessions[i].c.close_code) close_code = sessions[i].c.close_code;
        silent += !sessions[i].answered;
    }
    printf("LOADGEN {\"sessions\":%d,\"seconds\":%d,\"period_us\":%llu,\"frame_bytes\":%zu,",
           opt.sessions, opt.seconds, (unsigned long long)opt.period_ns / 1000, frame_bytes);
#define COUNT(name) printf("\"" #name "\":%llu,", (unsigned long long)counts.name)
    COUNT(appends); COUNT(deltas); COUNT(audio_bytes); COUNT(other_messages);
    COUNT(lost); COUNT(unanswered_at_start); COUNT(out_of_order); COUNT(coalesced); COUNT(untagged);
    COUNT(late); COUNT(blocked); COUNT(mismatched); COUNT(errors);
    histogram_print("latency_us", &latency);
    histogram_print("lateness_us", &lateness);
    printf("\"closed\":%d,\"close_code\":%d,\"silent\":%d,\"cpu_s\":%.4f}\n", closed, close_code,
           silent, cpu_s);
}

static int number(const char *name, const char *text, long low, long high) {
    char *end;
    long v = strtol(text, &end, 10);
    if (*end || v < low || v > high) die("%s is %s, allowed are %ld to %ld", name, text, low, high);
    return (int)v;
}

static void read_options(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (!strcmp(name, "--verify")) { opt.verify = 1; continue; }
        if (!strcmp(name, "--hold")) { opt.hold = 1; continue; }
        if (!strcmp(name, "--raw")) { opt.raw = 1; continue; }
        if (!strcmp(name, "--ack")) { opt.ack = 1; continue; }
        if (i + 1 == argc) die("%s: unknown option, or its value is missing", name);
        const char *value = argv[++i];
        if (!strcmp(name, "--port")) opt.port = number(name, value, 1, 65535);
        else if (!strcmp(name, "--sessions")) opt.sessions = number(name, value, 1, MAX_SESSIONS);
        else if (!strcmp(name, "--seconds")) opt.seconds = number(name, value, 1, MAX_SECONDS);
        else if (!strcmp(name, "--warm-seconds")) opt.warm_seconds = number(name, value, 0, 60);
        else if (!strcmp(name, "--period-ms"))
            opt.period_ns = (uint64_t)number(name, value, 20, 200) * 1000000;
        else if (!strcmp(name, "--settle-ms")) opt.settle_ms = number(name, value, 0, 10000);
        else if (!strcmp(name, "--connect-gap-us"))
            opt.connect_gap_us = number(name, value, 0, 1000000);
        else if (!strcmp(name, "--path")) opt.path = value;
        else if (!strcmp(name, "--script")) opt.script = value;
        else die("unknown option %s", name);
    }
    if (!opt.port) die("--port is required");
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    alarm((unsigned)(opt.seconds + opt.warm_seconds + 120));
    prctl(PR_SET_TIMERSLACK, 1); /* the default of 50 us would be lateness of our own making */
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    srand48(12345);
    prepare_frames(opt.period_ns);
    if (opt.script) read_script(opt.script);
    if ((epoll_fd = epoll_create1(0)) < 0) die("epoll: %s", strerror(errno));

    sessions = calloc((size_t)opt.sessions, sizeof *sessions);
    for (int i = 0; i < opt.sessions; i++) {
        sessions[i].index = i;
        open_session(sessions + i);
        if (opt.connect_gap_us) usleep((useconds_t)opt.connect_gap_us);
    }
    if (opt.settle_ms) usleep((useconds_t)opt.settle_ms * 1000);
    mark("CONNECTED");
    print_result(run());
    return counts.mismatched || counts.errors ? 4 : 0;
}
