/* link_test.c - see link_test.h. */
#include "measure/link_test.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "measure/dial.h"
#include "measure/facts.h"
#include "measure/order.h"
#include "net/address/sockaddr.h"
#include "net/socket/socket.h"
#include "os/clock.h"
#include "os/file.h"

#define WARM_PERIOD   (200 * NSEC_PER_MSEC)
#define WARM_TRIES    15                 /* so that a busy machine has 3 s to answer one of them */
#define TUNNEL_TIME   (7 * NSEC_PER_SEC) /* WireGuard repeats a lost handshake after 5 s */
#define TUNNEL_PERIOD (500 * NSEC_PER_MSEC)
#define PING_GAP      (4 * NSEC_PER_MSEC)
#define SIZE_GAP      NSEC_PER_MSEC
#define SIZE_COPIES   3
#define QUIET_FOR_MIN (400 * NSEC_PER_MSEC) /* a busy machine may need this long to answer */
#define SIZE_TRIES    3 /* pings of the largest size before the smaller ones are tried */
#define TCP_MIN       (1200 * NSEC_PER_MSEC)
#define TCP_BYTES     (256u << 10)
#define PACKET_MAX    65535
#define OVERHEAD      28 /* IPv4 and UDP headers */
#define MSS_TIMESTAMP 12 /* bytes of each segment that the timestamp option takes */

#define CHUNK      (256u << 10)
#define FIRST_STEP NSEC_PER_MSEC

#define DIAL_TIME     (1500 * NSEC_PER_MSEC)
#define UNDERLAY_TIME (800 * NSEC_PER_MSEC)
#define DRAIN_TIME    (1500 * NSEC_PER_MSEC) /* after the end, for data that is still in flight */

/* ---- transfers: the meter -------------------------------------------------------------------- */

void transfer_meter_add(struct transfer_meter *m, nsec_t now, uint64_t total)
{
    if (m->step == 0)
        m->step = FIRST_STEP;
    if (m->n > 1 && now - m->at[m->n - 2] < m->step) {
        /* The last sample always has the newest value, even if the one before is closer than a
         * step. */
        m->at[m->n - 1] = now;
        m->bytes[m->n - 1] = total;
        return;
    }
    if (m->n == TRANSFER_SAMPLES) {
        for (unsigned i = 0; i < TRANSFER_SAMPLES / 2; i++) {
            m->at[i] = m->at[2 * i];
            m->bytes[i] = m->bytes[2 * i];
        }
        m->n = TRANSFER_SAMPLES / 2;
        m->step *= 2;
    }
    m->at[m->n] = now;
    m->bytes[m->n] = total;
    m->n++;
}

uint64_t transfer_meter_rate(const struct transfer_meter *m)
{
    unsigned last = m->n - 1;
    unsigned i = 0;
    nsec_t half;

    if (m->n < 2)
        return 0;
    half = m->at[0] + (m->at[last] - m->at[0]) / 2;
    while (i + 2 < m->n && m->at[i + 1] <= half)
        i++;
    if (m->at[last] <= m->at[i])
        return 0;
    return (
        uint64_t)((double)(m->bytes[last] - m->bytes[i]) * 8e9 / (double)(m->at[last] - m->at[i]));
}

/* ---- transfers: the loop --------------------------------------------------------------------- */

struct transfer_pump {
    struct transfer *t;
    struct transfer_meter meter;
    char *buffer;   /* owns; CHUNK bytes; their contents do not matter */
    nsec_t stop_at; /* monotonic; senders stop then */
};

static void end_sender(struct transfer_stream *s)
{
    (void)shutdown(s->fd, SHUT_WR);
    s->is_done = true;
}

static void send_some(struct transfer_pump *p, struct transfer_stream *s)
{
    uint64_t left = p->t->bytes_max - p->t->sent;
    ssize_t n =
        send(s->fd, p->buffer, left < CHUNK ? (size_t)left : CHUNK, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n > 0)
        p->t->sent += (uint64_t)n;
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || p->t->sent >= p->t->bytes_max)
        end_sender(s);
}

static void receive_some(struct transfer_pump *p, struct transfer_stream *s)
{
    ssize_t n = recv(s->fd, p->buffer, CHUNK, MSG_DONTWAIT);

    if (n > 0) {
        p->t->received.bytes += (uint64_t)n;
        transfer_meter_add(&p->meter, clock_now(), p->t->received.bytes);
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
        p->t->received.bytes >= p->t->bytes_max)
        s->is_done = true;
}

/* Fills in @fds for the streams that have not ended. Return: how many have not. */
static size_t arm_streams(const struct transfer *t, struct pollfd *fds)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_streams; i++) {
        const struct transfer_stream *s = &t->streams[i];

        fds[i] =
            (struct pollfd){.fd = s->is_done ? -1 : s->fd, .events = s->sends ? POLLOUT : POLLIN};
        n += !s->is_done;
    }
    return n;
}

static void transfer_turn(struct transfer_pump *p, struct pollfd *fds, nsec_t now)
{
    for (size_t i = 0; i < p->t->n_streams; i++) {
        struct transfer_stream *s = &p->t->streams[i];

        if (s->is_done)
            continue;
        if (s->sends && now >= p->stop_at)
            end_sender(s);
        else if (fds[i].revents && s->sends)
            send_some(p, s);
        else if (fds[i].revents)
            receive_some(p, s);
    }
}

int transfer_run(struct transfer *t)
{
    struct pollfd fds[2 * ORDER_STREAMS_MAX];
    struct transfer_pump p = {.t = t, .buffer = calloc(1, CHUNK)};
    nsec_t now = clock_now();

    if (!p.buffer)
        return -ENOMEM;
    p.stop_at = now + t->duration;
    while (now < t->deadline && arm_streams(t, fds) > 0) {
        nsec_t next = now < p.stop_at ? nsec_min(p.stop_at, t->deadline) : t->deadline;

        (void)poll(fds, t->n_streams, (int)((next - now) / NSEC_PER_MSEC + 1));
        now = clock_now();
        transfer_turn(&p, fds, now);
    }
    t->received.bits_per_s = transfer_meter_rate(&p.meter);
    free(p.buffer);
    return 0;
}

/* A test in progress. */
struct idle_test_state {
    const struct dial_target *to;
    struct idle_test *result;
    int fd;                /* UDP */
    nsec_t *sent_at;       /* owns; when each ping of the train was sent, monotonic; 0: answered */
    uint32_t *rtt_us;      /* owns; round trip time of each pong of the train */
    uint32_t heard_before; /* pings that the peer had counted before the train */
    nsec_t quiet_for;      /* how long an answer is waited for */
    uint8_t packet[PACKET_MAX];
};

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static bool send_ping(struct idle_test_state *s, uint32_t seq, bool counted, size_t len)
{
    struct frame f = {.kind = FRAME_PING,
        .counted = counted,
        .id = s->to->id,
        .seq = seq,
        .sent_at = clock_wall()};

    memset(s->packet, 0, len);
    frame_encode(&f, s->packet);
    return send(s->fd, s->packet, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

/* Waits for a pong of this session until @deadline. */
static bool receive_pong(struct idle_test_state *s, nsec_t deadline, struct frame *ret)
{
    while (socket_wait(s->fd, POLLIN, deadline) == 0) {
        uint8_t in[FRAME_LEN];
        /* recv() also reports an ICMP error about an earlier ping, which is not an answer. */
        ssize_t n = recv(s->fd, in, sizeof(in), MSG_DONTWAIT);

        if (n > 0 && frame_decode(ret, in, (size_t)n) && ret->kind == FRAME_PONG &&
            session_id_equal(&ret->id, &s->to->id))
            return true;
    }
    return false;
}

/* ---- without load: steps --------------------------------------------------------------------- */

/* The first packet may have to wait for a WireGuard handshake, so its round trip is not part of the
 * result. */
static bool warm_up_peer(struct idle_test_state *s)
{
    struct frame pong;

    for (unsigned i = 0; i < WARM_TRIES; i++) {
        nsec_t start = clock_now();

        (void)send_ping(s, UINT32_MAX, true, FRAME_LEN);
        if (receive_pong(s, start + WARM_PERIOD, &pong)) {
            s->heard_before = pong.heard;
            s->quiet_for = nsec_max(QUIET_FOR_MIN, 3 * (clock_now() - start));
            return true;
        }
    }
    return false;
}

/* Computes the difference of the clocks from the exchange with the shortest round trip, because in
 * that one the times of the two directions can differ least. @wall: now, by our wall clock. */
static void take_clock(struct idle_test *l, const struct frame *pong, uint32_t rtt_us, nsec_t wall)
{
    if (l->back > 0 && rtt_us >= l->rtt_min_us)
        return;
    l->rtt_min_us = rtt_us;
    l->clock_us = (pong->arrived_at - (pong->sent_at + wall) / 2) / NSEC_PER_USEC;
    l->clock_error_us = rtt_us / 2 + 1;
}

static void take_pong(struct idle_test_state *s, const struct frame *pong)
{
    struct idle_test *l = s->result;
    nsec_t now = clock_now();
    uint32_t rtt_us;

    /* Duplicates are not counted, nor are answers to pings of the warm-up. */
    if (pong->seq >= l->sent || s->sent_at[pong->seq] == 0)
        return;
    rtt_us = (uint32_t)((now - s->sent_at[pong->seq]) / NSEC_PER_USEC);
    s->sent_at[pong->seq] = 0;
    take_clock(l, pong, rtt_us, clock_wall());
    s->rtt_us[l->back++] = rtt_us;
    if (pong->heard > s->heard_before && pong->heard - s->heard_before > l->heard)
        l->heard = pong->heard - s->heard_before;
}

/* Asks once more how many pings the peer has heard. Each pong says so, but the last ones may be
 * lost. */
static void ask_heard(struct idle_test_state *s)
{
    struct frame pong;

    for (unsigned i = 0; i < 3; i++) {
        (void)send_ping(s, UINT32_MAX, false, FRAME_LEN);
        if (!receive_pong(s, clock_now() + s->quiet_for, &pong))
            continue;
        if (pong.heard > s->heard_before && pong.heard - s->heard_before > s->result->heard)
            s->result->heard = pong.heard - s->heard_before;
        break;
    }
    if (s->result->heard > s->result->sent)
        s->result->heard = s->result->sent;
    if (s->result->heard < s->result->back)
        s->result->heard = s->result->back;
}

static void run_train(struct idle_test_state *s, uint32_t pings)
{
    struct idle_test *l = s->result;
    nsec_t next = clock_now();
    struct frame pong;

    while (l->sent < pings) {
        s->sent_at[l->sent] = clock_now();
        l->sent++;
        (void)send_ping(s, l->sent - 1, true, FRAME_LEN);
        next += PING_GAP;
        while (receive_pong(s, next, &pong))
            take_pong(s, &pong);
    }
    next = clock_now() + s->quiet_for;
    while (l->back < l->sent && receive_pong(s, next, &pong))
        take_pong(s, &pong);
    ask_heard(s);
    if (l->back == 0)
        return;
    qsort(s->rtt_us, l->back, sizeof(*s->rtt_us), compare_u32);
    l->rtt_median_us = s->rtt_us[l->back / 2];
    l->rtt_p99_us = s->rtt_us[(l->back - 1) * 99 / 100];
    s->quiet_for = nsec_max(QUIET_FOR_MIN, 3 * (nsec_t)l->rtt_median_us * NSEC_PER_USEC);
}

/* Lists the packet sizes to try, largest first: the route's MTU, the same less the headers of usual
 * tunnels, and other common sizes. */
static size_t list_sizes(uint32_t route_mtu, uint16_t sizes[static 32])
{
    static const uint16_t usual[] = {8921, 8500, 4000, 1500, 1480, 1460, 1440, 1420, 1400, 1380,
        1360, 1340, 1320, 1300, 1280, 1240, 1200, 1100, 1000, 800, 576, 300};
    size_t n = 0;

    sizes[n++] = (uint16_t)route_mtu;
    for (unsigned less = 8; less <= 80; less += 24)
        if (route_mtu > 576 + less)
            sizes[n++] = (uint16_t)(route_mtu - less);
    for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
        if (usual[i] < sizes[n - 1])
            sizes[n++] = usual[i];
    return n;
}

static void take_sizes(struct idle_test_state *s, nsec_t deadline)
{
    struct idle_test *l = s->result;
    struct frame pong;

    while (l->packet_max < l->route_mtu && receive_pong(s, deadline, &pong))
        if (pong.size > l->packet_max)
            l->packet_max = pong.size;
}

/* Tries the largest size first, several times. The other sizes are tried only if it does not pass,
 * because that takes longer. */
static void find_packet_max(struct idle_test_state *s)
{
    struct idle_test *l = s->result;
    uint16_t sizes[32];
    size_t n = list_sizes(l->route_mtu, sizes);

    for (unsigned i = 0; i < SIZE_TRIES && l->packet_max < l->route_mtu; i++) {
        (void)send_ping(s, UINT32_MAX, false, (size_t)l->route_mtu - OVERHEAD);
        take_sizes(s, clock_now() + s->quiet_for / 2);
    }
    for (unsigned i = 0; i < n * SIZE_COPIES && l->packet_max < l->route_mtu; i++) {
        (void)send_ping(s, UINT32_MAX, false, (size_t)sizes[i / SIZE_COPIES] - OVERHEAD);
        take_sizes(s, clock_now() + SIZE_GAP);
    }
    take_sizes(s, clock_now() + s->quiet_for);
}

/* ---- without load: TCP ----------------------------------------------------------------------- */

static uint32_t agreed_mss(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
        return 0;
    return info.tcpi_snd_mss + (info.tcpi_options & TCPI_OPT_TIMESTAMPS ? MSS_TIMESTAMP : 0);
}

/* Which congestion control the connection has, and what it does after a pause. A route may name
 * another one than the machine does (ip-route(8), congctl), so the connection itself is asked. */
static void take_congestion(struct idle_test *l, int fd)
{
    char name[RESULT_TCP_MAX] = "";
    socklen_t len = sizeof(name) - 1;

    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) < 0)
        return;
    memcpy(l->congestion, name, sizeof(name));
    l->restarts = facts_tcp_restarts(name);
}

/* Has the peer confirmed that all @sent bytes arrived? */
static bool confirm(int fd, uint64_t sent, nsec_t deadline, struct err *e)
{
    _cleanup_(line_buffer_deinit) struct line_buffer lb = LINE_BUFFER_NULL;
    json_t *json;
    uint64_t came = 0;

    if (line_read(&lb, fd, deadline, &json, e) < 0)
        return false;
    if (line_check_answer(json, e) == 0) {
        came = (uint64_t)json_integer_value(json_object_get(json, "bytes"));
        if (came < sent)
            (void)err_set(e, -EIO, "of %llu bytes %llu arrived", (unsigned long long)sent,
                (unsigned long long)came);
    }
    json_decref(json);
    return sent > 0 && came >= sent;
}

static void run_tcp(struct idle_test_state *s)
{
    struct idle_test *l = s->result;
    nsec_t budget = nsec_max(TCP_MIN, 4 * s->quiet_for);
    struct order sink = {.kind = ORDER_SINK, .ms = (uint32_t)(budget / NSEC_PER_MSEC)};
    nsec_t deadline = clock_now() + budget;
    _cleanup_(closep) int fd = -1;
    struct err e = ERR_NULL;

    if (dial_all(s->to, &sink, 1, deadline, &fd, &e) == 0) {
        struct transfer_stream stream = {.fd = fd, .sends = true};
        struct transfer t = {.streams = &stream,
            .n_streams = 1,
            .bytes_max = TCP_BYTES,
            .duration = budget,
            .deadline = deadline};

        l->connected = true;
        l->mss = agreed_mss(fd);
        take_congestion(l, fd);
        if (transfer_run(&t) == 0)
            l->transferred = confirm(fd, TCP_BYTES, deadline, &e);
    }
    if (!l->transferred)
        (void)snprintf(l->why, sizeof(l->why), "%.*s", RESULT_WHY_MAX - 1, err_text(&e));
}

/* ---- without load: tunnels ------------------------------------------------------------------- */

/* A warm-up in progress. A peer's index in @peers is the sequence number of the pings to it. */
struct warming {
    const struct dial_target *to;
    const struct ip_addr *peers;
    size_t n;
    bool *is_up; /* owns; for each peer: it has answered */
    size_t n_up; /* peers that have answered */
    int fd;
};

static void ping_the_rest(struct warming *w)
{
    for (size_t i = 0; i < w->n; i++) {
        struct frame f = {.kind = FRAME_PING, .id = w->to->id, .seq = (uint32_t)i};
        struct endpoint ep = {.addr = w->peers[i], .port = w->to->port};
        uint8_t out[FRAME_LEN];
        union sockaddr_inet sa;
        socklen_t len = sockaddr_from_endpoint(&sa, &ep);

        if (w->is_up[i])
            continue;
        frame_encode(&f, out);
        (void)sendto(w->fd, out, sizeof(out), MSG_DONTWAIT, &sa.any, len);
    }
}

static void take_answers(struct warming *w, nsec_t deadline)
{
    while (w->n_up < w->n && socket_wait(w->fd, POLLIN, deadline) == 0) {
        uint8_t in[FRAME_LEN];
        struct frame pong;
        ssize_t n = recv(w->fd, in, sizeof(in), MSG_DONTWAIT);

        if (n < 0 || !frame_decode(&pong, in, (size_t)n) || pong.kind != FRAME_PONG ||
            !session_id_equal(&pong.id, &w->to->id) || pong.seq >= w->n || w->is_up[pong.seq])
            continue;
        w->is_up[pong.seq] = true;
        w->n_up++;
    }
}

void idle_test_warm_up(const struct dial_target *to, const struct ip_addr *peers, size_t n)
{
    struct warming w = {.to = to, .peers = peers, .n = n, .is_up = calloc(n, sizeof(bool))};
    nsec_t until = clock_now() + TUNNEL_TIME;

    w.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (w.is_up && w.fd >= 0 && dial_bind_device(w.fd, to->interface) == 0)
        while (w.n_up < n && clock_now() < until) {
            ping_the_rest(&w);
            take_answers(&w, nsec_min(until, clock_now() + TUNNEL_PERIOD));
        }
    closep(&w.fd);
    free(w.is_up);
}

/* ---- without load: all of it ----------------------------------------------------------------- */

static void run_steps(struct idle_test_state *s, uint32_t pings)
{
    struct idle_test *l = s->result;
    int mtu = 0;
    socklen_t len = sizeof(mtu);

    if (getsockopt(s->fd, IPPROTO_IP, IP_MTU, &mtu, &len) == 0 && mtu > OVERHEAD + FRAME_LEN &&
        mtu <= PACKET_MAX)
        l->route_mtu = (uint32_t)mtu;
    s->quiet_for = QUIET_FOR_MIN;
    if (!warm_up_peer(s)) {
        l->sent = WARM_TRIES;
        (void)snprintf(l->why, sizeof(l->why), "nothing that was sent is answered");
        return;
    }
    run_train(s, pings);
    if (l->route_mtu > 0)
        find_packet_max(s);
    run_tcp(s);
}

void idle_test_run(struct idle_test *ret, const struct dial_target *to, uint32_t pings)
{
    struct idle_test_state *s = calloc(1, sizeof(*s));
    struct err e = ERR_NULL;

    *ret = (struct idle_test){.restarts = true};
    if (s) {
        s->to = to;
        s->result = ret;
        s->sent_at = calloc(pings, sizeof(*s->sent_at));
        s->rtt_us = calloc(pings, sizeof(*s->rtt_us));
        if (s->sent_at && s->rtt_us && dial_udp(to, &s->fd, &e) == 0) {
            run_steps(s, pings);
            (void)close(s->fd);
        } else {
            (void)snprintf(ret->why, sizeof(ret->why), "%.*s", RESULT_WHY_MAX - 1,
                e.code ? err_text(&e) : "no memory");
        }
        free(s->sent_at);
        free(s->rtt_us);
    }
    free(s);
}

/* ---- throughput: the peer's side ------------------------------------------------------------- */

void bulk_serve(int fd, const struct order *o)
{
    nsec_t duration = (nsec_t)o->ms * NSEC_PER_MSEC;
    nsec_t now = clock_now();
    struct transfer_stream stream = {.fd = fd, .sends = o->kind == ORDER_SOURCE};
    struct transfer t = {.streams = &stream,
        .n_streams = 1,
        .bytes_max = stream.sends ? o->bytes : ORDER_BYTES_MAX,
        .duration = duration,
        .deadline = now + duration + DRAIN_TIME / 2};
    json_t *json;

    if (transfer_run(&t) < 0 || stream.sends)
        return;
    json = json_pack("{s:I, s:I}", "bytes", (json_int_t)t.received.bytes, "bitsPerSecond",
        (json_int_t)t.received.bits_per_s);
    (void)line_write(fd, json, clock_now() + NSEC_PER_SEC, NULL);
    json_decref(json);
}

/* ---- throughput: the measuring member's side ------------------------------------------------- */

/* The connections of one transfer. When both directions are measured, we send on the first half of
 * them and receive on the second half. */
struct lanes {
    struct transfer_stream streams[2 * ORDER_STREAMS_MAX];
    size_t n;
};

static int open_lanes(
    struct lanes *l, const struct dial_target *to, const struct order *o, bool sends, struct err *e)
{
    struct order data = {
        .kind = sends ? ORDER_SINK : ORDER_SOURCE, .ms = o->ms, .bytes = o->bytes / o->streams};
    int fds[ORDER_STREAMS_MAX];
    int r;

    if (data.bytes == 0)
        data.bytes = 1;
    r = dial_all(to, &data, o->streams, clock_now() + DIAL_TIME, fds, e);
    for (uint32_t i = 0; r == 0 && i < o->streams; i++)
        l->streams[l->n++] = (struct transfer_stream){.fd = fds[i], .sends = sends};
    return r;
}

static uint32_t count_retransmits(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ? 0 : info.tcpi_total_retrans;
}

/* A count in a peer's answer; 0 when it is negative or impossibly large. */
static uint64_t count_of(const json_t *json, const char *field)
{
    json_int_t v = json_integer_value(json_object_get(json, field));

    return v < 0 || (uint64_t)v > ORDER_BYTES_MAX * 1024 ? 0 : (uint64_t)v;
}

/* Reads how much the peer has received on the connections on which we sent, and adds it up. */
static int collect_counts(const struct lanes *l, struct flow *out, struct err *e)
{
    nsec_t deadline = clock_now() + DRAIN_TIME;

    for (size_t i = 0; i < l->n; i++) {
        _cleanup_(line_buffer_deinit) struct line_buffer lb = LINE_BUFFER_NULL;
        json_t *json;
        int r;

        if (!l->streams[i].sends)
            continue;
        r = line_read(&lb, l->streams[i].fd, deadline, &json, e);
        if (r < 0)
            return r;
        out->bytes += count_of(json, "bytes");
        out->bits_per_s += count_of(json, "bitsPerSecond");
        out->retransmits += count_retransmits(l->streams[i].fd);
        json_decref(json);
    }
    return 0;
}

static int transfer_all(struct bulk *ret, struct lanes *lanes, const struct order *o, struct err *e)
{
    nsec_t duration = (nsec_t)o->ms * NSEC_PER_MSEC;
    struct transfer t = {.streams = lanes->streams,
        .n_streams = lanes->n,
        .bytes_max = o->bytes,
        .duration = duration,
        .deadline = clock_now() + duration + DRAIN_TIME / 2};
    int r = transfer_run(&t);

    if (r < 0)
        return err_set(e, r, "no memory for a transfer");
    ret->in = t.received;
    return collect_counts(lanes, &ret->out, e);
}

/* Changes @to to the peer's address outside the overlay, and to the port that the peer has opened
 * there for this session. */
static int find_underlay(struct dial_target *to, const struct ip_addr *underlay, struct err *e)
{
    static const struct order ask = {.kind = ORDER_PORT};
    json_t *answer = NULL;
    json_int_t port;
    int r;

    if (!dial_is_fit_peer(underlay))
        return err_set(e, -EHOSTUNREACH, "there is no direct path to it beside the overlay");
    r = dial_ask(to, &ask, clock_now() + DIAL_TIME, &answer, e);
    if (r < 0)
        return r;
    port = json_integer_value(json_object_get(answer, "port"));
    json_decref(answer);
    if (port < 1 || port > UINT16_MAX)
        return err_set(e, -EPROTO, "it names no port beside the overlay");
    to->interface = NULL;
    to->peer = *underlay;
    to->port = (uint16_t)port;
    return 0;
}

/* Connects once before anything is measured, to check that TCP passes there and that it is the peer
 * who answers. */
static int try_underlay(const struct dial_target *to, struct err *e)
{
    struct order sink = {.kind = ORDER_SINK, .ms = 1};
    int fd;
    int r = dial_all(to, &sink, 1, clock_now() + UNDERLAY_TIME, &fd, NULL);

    if (r < 0)
        return err_set(e, r, "no TCP connection to it came about beside the overlay within 0.8 s");
    (void)close(fd);
    return 0;
}

void bulk_run(struct bulk *ret, const struct dial_target *to, const struct order *o,
    const struct ip_addr *underlay)
{
    struct dial_target end = *to;
    struct lanes lanes = {.n = 0};
    struct err e = ERR_NULL;
    int r = 0;

    *ret = (struct bulk){0};
    if (o->underlay)
        r = find_underlay(&end, underlay, &e);
    if (r == 0 && o->underlay)
        r = try_underlay(&end, &e);
    if (r == 0 && o->way != ORDER_IN)
        r = open_lanes(&lanes, &end, o, true, &e);
    if (r == 0 && o->way != ORDER_OUT)
        r = open_lanes(&lanes, &end, o, false, &e);
    if (r == 0)
        r = transfer_all(ret, &lanes, o, &e);
    for (size_t i = 0; i < lanes.n; i++)
        (void)close(lanes.streams[i].fd);
    if (r < 0)
        (void)snprintf(ret->why, sizeof(ret->why), "%.*s", RESULT_WHY_MAX - 1, err_text(&e));
    else
        (void)ip_addr_format(&end.peer, ret->via);
}
