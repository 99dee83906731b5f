/* idle_test.c - see idle_test.h. */
#include "measure/idle_test.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "measure/facts.h"
#include "measure/frame.h"
#include "measure/line.h"
#include "measure/transfer.h"
#include "net/address/sockaddr.h"
#include "net/socket/socket.h"
#include "os/clock.h"
#include "os/fd_cleanup.h"

#define WARM_PERIOD   (200 * NSEC_PER_MSEC)
#define WARM_TRIES    4
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

/* ---- steps --------------------------------------------------------------------------------- */

/* The first packet may have to wait for a WireGuard handshake, so its round trip is not part of the
 * result. */
static bool warm_up(struct idle_test_state *s)
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

/* ---- TCP ----------------------------------------------------------------------------------- */

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

    if (dial_data(s->to, &sink, deadline, &fd, &e) == 0) {
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

/* ---- tunnels ------------------------------------------------------------------------------- */

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

/* ---- all of it ----------------------------------------------------------------------------- */

static void run_steps(struct idle_test_state *s, uint32_t pings)
{
    struct idle_test *l = s->result;
    int mtu = 0;
    socklen_t len = sizeof(mtu);

    if (getsockopt(s->fd, IPPROTO_IP, IP_MTU, &mtu, &len) == 0 && mtu > OVERHEAD + FRAME_LEN &&
        mtu <= PACKET_MAX)
        l->route_mtu = (uint32_t)mtu;
    s->quiet_for = QUIET_FOR_MIN;
    if (!warm_up(s)) {
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
