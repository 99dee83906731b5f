/*
 * burst_test.c - see link_test.h: what a way to a peer carries, in the tunnel and beside it.
 *
 * From the bottom up: the socket of an end, how two ends beside the tunnel find each other, the
 * member that measures, and its peer.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/secret.h"
#include "crypto/aead.h"
#include "measure/dial.h"
#include "measure/link_test.h"
#include "measure/order.h"
#include "net/address/sockaddr.h"
#include "net/socket/socket.h"
#include "os/clock.h"
#include "os/file.h"
#include "path/candidate.h"
#include "wire/stun.h"

#define DIAL_TIME  (3 * NSEC_PER_SEC) /* the peer asks a STUN server meanwhile */
#define STUN_TRIES 3
#define STUN_EACH  (250 * NSEC_PER_MSEC)
/* How long two ends look for each other, and how often each sends meanwhile. */
#define MEET_FOR  (2 * NSEC_PER_SEC)
#define MEET_EACH (50 * NSEC_PER_MSEC)
/* Round trips before the burst. */
#define PINGS    25
#define PING_GAP (4 * NSEC_PER_MSEC)
#define PONG_FOR (400 * NSEC_PER_MSEC)
/* Datagrams that the kernel cuts out of one piece, and that a packet of GRO may hold. */
#define SEGMENTS_MAX 32
#define PIECE_MAX    65000
#define RECEIVE_MAX  65535
/* Bytes that TLS encrypts together at most, here with the tag (RFC 8446, section 5.1). */
#define RECORD_MAX 16384
/* What waits for a processor that is busy is not lost by it; the kernel gives as much as it allows.
 */
#define WAITING_MAX (4 << 20)
/* A burst is over so long after its last datagram, or at the latest so long after its sender said
 * that it was. */
#define QUIET_FOR (150 * NSEC_PER_MSEC)
#define DRAIN_FOR (2 * NSEC_PER_SEC)
/* Fewer say nothing of a rate. */
#define DATAGRAMS_MIN  16
#define IP_UDP_HEADERS 28
/* The same of IPv6. */
#define IP6_UDP_HEADERS 48
/* What JSON holds of a rate (result.c). */
#define RATE_MAX (1ull << 50)

/* ---- the socket of an end ------------------------------------------------------------------- */

/* One end of a burst. */
struct burst_end {
    int fd; /* owns */
    struct session_id id;
    struct ip_addr peer; /* what comes from another address is left aside */
    struct endpoint at;  /* where the peer's datagrams come from; none: none has come */
    uint16_t port;       /* its own, on this machine */
};

#define BURST_END_NULL                                                                             \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Opens it on a port that the kernel chooses. @own: its address; none: any of the peer's family. */
static int open_end(
    struct burst_end *b, const struct ip_addr *own, const char *interface, struct err *e)
{
    struct endpoint any = {.addr = *own};
    struct endpoint bound;
    union sockaddr_inet sa;
    socklen_t len;
    int r = 0;

    if (ip_addr_is_none(own) && ip_addr_is_v4(&b->peer))
        any.addr = ip_addr_v4((const uint8_t[4]){0});
    len = sockaddr_from_endpoint(&sa, &any);
    b->fd = socket(sa.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (b->fd < 0)
        r = -errno;
    if (r == 0)
        r = dial_bind_device(b->fd, interface);
    if (r == 0 && bind(b->fd, &sa.any, len) < 0)
        r = -errno;
    if (r == 0)
        r = sockaddr_local(b->fd, &bound);
    if (r < 0)
        return err_set(e, r, "no socket for datagrams: %s", strerror(-r));
    b->port = bound.port;
    socket_set_receive_buffer(b->fd, WAITING_MAX);
    return 0;
}

static void send_frame(
    const struct burst_end *b, const struct endpoint *to, enum frame_kind kind, uint32_t seq)
{
    struct frame f = {.kind = kind, .id = b->id, .seq = seq};
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, to);
    uint8_t out[FRAME_LEN];

    frame_encode(&f, out);
    (void)sendto(b->fd, out, sizeof(out), MSG_DONTWAIT, &sa.any, len);
}

/* Waits until @deadline for a pong of the peer. */
static bool receive_pong(struct burst_end *b, nsec_t deadline, struct frame *ret)
{
    while (socket_wait(b->fd, POLLIN, deadline) == 0) {
        uint8_t in[FRAME_LEN];
        union sockaddr_inet sa;
        socklen_t sa_len = sizeof(sa);
        struct endpoint from;
        ssize_t n = recvfrom(b->fd, in, sizeof(in), MSG_DONTWAIT, &sa.any, &sa_len);

        if (n < 0 || !sockaddr_to_endpoint(&sa, &from) || !ip_addr_equal(&from.addr, &b->peer) ||
            !frame_decode(ret, in, (size_t)n) || ret->kind != FRAME_PONG ||
            !session_id_equal(&ret->id, &b->id))
            continue;
        b->at = from;
        return true;
    }
    return false;
}

/* ---- two ends beside the tunnel ------------------------------------------------------------- */

/* As which port the socket is seen from outside; 0: not known. */
static uint16_t ask_mapped(const struct burst_end *b, const struct endpoint *server)
{
    struct rng rng = rng_kernel();
    struct stun_transaction id;
    uint8_t request[STUN_REQUEST_SIZE];
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, server);

    if (endpoint_is_none(server) || ip_addr_is_v4(&server->addr) != ip_addr_is_v4(&b->peer))
        return 0;
    rng_fill(&rng, id.b, sizeof(id.b));
    stun_encode_request(&id, 0, request);
    for (unsigned i = 0; i < STUN_TRIES; i++) {
        nsec_t until = clock_now() + STUN_EACH;

        (void)sendto(b->fd, request, sizeof(request), MSG_DONTWAIT, &sa.any, len);
        while (socket_wait(b->fd, POLLIN, until) == 0) {
            uint8_t in[STUN_ANSWER_MAX];
            struct stun_response said;
            ssize_t n = recv(b->fd, in, sizeof(in), MSG_DONTWAIT);

            if (n > 0 && stun_decode_response(&said, in, (size_t)n) == 0 &&
                memcmp(said.id.b, id.b, sizeof(id.b)) == 0)
                return said.mapped.port;
        }
    }
    return 0;
}

/* Where to send to an end with these ports: a private address is reached without a NAT. */
static struct endpoint place_of(const struct ip_addr *peer, uint16_t port, uint16_t mapped)
{
    return (struct endpoint){
        .addr = *peer, .port = mapped == 0 || candidate_is_private(peer) ? port : mapped};
}

/* How far a datagram goes; 0: as usual. */
static void set_hops(const struct burst_end *b, int hops)
{
    bool is_v4 = ip_addr_is_v4(&b->peer);
    int value = hops == 0 ? -1 : hops;

    (void)setsockopt(b->fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_TTL : IPV6_UNICAST_HOPS,
        &value, sizeof(value));
}

/*
 * The peer's @i-th datagram to who measures, which opens its NAT for what comes from there. The
 * first ones end before they reach the other's NAT, which would take them for something of its own
 * and give the other's socket another port (docs/wire/path.md, "Openers").
 */
static void send_opener(const struct burst_end *b, const struct endpoint *to, unsigned i)
{
    static const int hops[] = {2, 2, 2, 3, 3, 4, 5, 6, 8};

    set_hops(b, i < sizeof(hops) / sizeof(*hops) ? hops[i] : 0);
    send_frame(b, to, FRAME_PING, i);
    set_hops(b, 0);
}

/* Sends to @to until the peer answers. */
static bool meet(struct burst_end *b, const struct endpoint *to)
{
    nsec_t until = clock_now() + MEET_FOR;
    uint32_t seq = 0;
    struct frame pong;

    while (clock_now() < until) {
        send_frame(b, to, FRAME_PING, seq++);
        if (receive_pong(b, clock_now() + MEET_EACH, &pong))
            return true;
    }
    return false;
}

/* ---- the member that measures --------------------------------------------------------------- */

struct burst_state {
    struct burst *result;
    struct burst_end end;
    int control;             /* owns; the connection to the peer, in the tunnel */
    struct train_marks sent; /* what was sent when */
    nsec_t waited;           /* for room in the socket */
};

/* Bytes of a datagram on the line. */
static uint32_t size_on_line(const struct burst_state *s)
{
    return s->result->size + (ip_addr_is_v4(&s->end.peer) ? IP_UDP_HEADERS : IP6_UDP_HEADERS);
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void measure_rtt(struct burst_state *s)
{
    struct burst *ret = s->result;
    uint32_t rtt_us[PINGS];
    nsec_t sent_at[PINGS];
    size_t n = 0;
    struct frame pong;

    /* Numbers above those of the pings by which the two have met. */
    for (uint32_t i = 0; i < PINGS; i++) {
        nsec_t until = clock_now() + (i + 1 < PINGS ? PING_GAP : PONG_FOR);

        sent_at[i] = clock_now();
        send_frame(&s->end, &s->end.at, FRAME_PING, UINT32_MAX - i);
        while (n <= i && receive_pong(&s->end, until, &pong)) {
            uint32_t which = UINT32_MAX - pong.seq;

            if (which > i || sent_at[which] == 0)
                continue;
            rtt_us[n++] = (uint32_t)((clock_now() - sent_at[which]) / NSEC_PER_USEC);
            sent_at[which] = 0;
        }
        if (clock_now() < until && i + 1 < PINGS)
            (void)poll(NULL, 0, (int)((until - clock_now()) / NSEC_PER_MSEC));
    }
    if (n == 0)
        return;
    qsort(rtt_us, n, sizeof(*rtt_us), compare_u32);
    ret->rtt_min_us = rtt_us[0] > 0 ? rtt_us[0] : 1;
    ret->rtt_median_us = rtt_us[(n - 1) / 2] > 0 ? rtt_us[(n - 1) / 2] : 1;
}

static bool set_segments(int fd, int size)
{
    return setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)) == 0;
}

/* What is sent at a time: datagrams, in each a frame and its part of the text. */
struct piece {
    struct frame head; /* of each datagram; its number is that of the first one */
    uint8_t frame[FRAME_LEN];
    uint8_t *text; /* owns */
    size_t each;   /* bytes of the text in a datagram */
    unsigned n;    /* datagrams */
    struct iovec parts[2 * SEGMENTS_MAX];
    const struct aead_algorithm *alg;
    void *cipher; /* owns; of @alg; NULL: the text is sent as it is */
    uint64_t n_records;
};

/* A key that nobody else has: the text is zeroes, and nobody decrypts it. */
static bool open_cipher(struct piece *p)
{
    struct rng rng = rng_kernel();
    struct aead_key key;
    bool is_set;

    p->alg = aead_reference(AEAD_CIPHER_AES256GCM);
    p->cipher = p->alg->ctx_new();
    rng_fill(&rng, key.b, sizeof(key.b));
    is_set = p->cipher && p->alg->ctx_set_key(p->cipher, &key);
    secret_wipe(&key, sizeof(key));
    return is_set;
}

static void close_piece(struct piece *p)
{
    if (p->cipher)
        p->alg->ctx_free(p->cipher);
    free(p->text);
}

static int open_piece(
    struct piece *p, const struct burst_state *s, const struct order *o, struct err *e)
{
    unsigned most = o->is_paced && o->at_once < SEGMENTS_MAX ? o->at_once : SEGMENTS_MAX;
    unsigned n = PIECE_MAX / s->result->size;

    *p = (struct piece){
        .head = {.kind = FRAME_PING, .counted = true, .is_silent = true, .id = s->end.id},
        .n = n < most ? n : most,
        .each = s->result->size - FRAME_LEN};
    p->text = calloc(p->n, p->each + 1);
    if (!p->text || (o->tls && !open_cipher(p)))
        return err_set(e, -ENOMEM, "no memory for a burst");
    for (unsigned i = 0; i < p->n; i++) {
        p->parts[2 * i] = (struct iovec){.iov_base = p->frame, .iov_len = FRAME_LEN};
        p->parts[2 * i + 1] = (struct iovec){.iov_base = p->text + i * p->each, .iov_len = p->each};
    }
    return 0;
}

/* Encrypts the text of the next @n datagrams, record by record. */
static bool encrypt(struct piece *p, unsigned n)
{
    size_t len = n * p->each;

    for (size_t at = 0; at + AEAD_TAG_SIZE < len; at += RECORD_MAX) {
        size_t record = len - at < RECORD_MAX ? len - at : RECORD_MAX;
        struct aead_nonce nonce = aead_nonce_make(p->n_records++);

        if (!p->alg->seal(p->cipher, &nonce, NULL, 0, p->text + at, record - AEAD_TAG_SIZE))
            return false;
    }
    return true;
}

/* Waits until the next datagrams of a train are to be sent. */
static void keep_pace(const struct burst_state *s, const struct order *o, nsec_t began)
{
    double bits = (double)s->result->sent * size_on_line(s) * 8;
    nsec_t due = began + (nsec_t)(bits * (double)NSEC_PER_SEC / (double)o->bits_per_s);
    nsec_t left = due - clock_now();
    struct timespec ts = {.tv_sec = left / NSEC_PER_SEC, .tv_nsec = left % NSEC_PER_SEC};

    if (left > 0)
        (void)ppoll(NULL, 0, &ts, NULL);
}

/* Numbers the datagrams that are sent next, and notes when that is. */
static void mark_piece(struct burst_state *s, struct piece *p)
{
    const struct train_mark mark = {
        .at = clock_now(), .sent = s->result->sent, .waited = s->waited};

    train_marks_add(&s->sent, &mark);
    p->head.seq = s->result->sent;
    frame_encode(&p->head, p->frame);
}

static void wait_for_room(struct burst_state *s, nsec_t until, nsec_t now)
{
    (void)socket_wait(s->end.fd, POLLOUT, nsec_min(until, now + NSEC_PER_MSEC));
    s->waited += clock_now() - now;
}

/* Sends @p again and again, as fast as the socket takes it, or as the order says. */
static void send_pieces(struct burst_state *s, const struct order *o, struct piece *p)
{
    struct burst *ret = s->result;
    nsec_t began = clock_now();
    nsec_t until = began + (nsec_t)o->ms * NSEC_PER_MSEC;
    union sockaddr_inet sa;
    struct msghdr mh = {.msg_name = &sa,
        .msg_namelen = sockaddr_from_endpoint(&sa, &s->end.at),
        .msg_iov = p->parts};
    bool is_cut = p->n > 1 && set_segments(s->end.fd, (int)ret->size);
    bool is_ready = !p->cipher;
    nsec_t now;

    while ((now = clock_now()) < until && (uint64_t)ret->sent * ret->size < o->bytes) {
        unsigned many = is_cut ? p->n : 1;

        if (!is_ready && !encrypt(p, many))
            break;
        is_ready = true;
        if (o->is_paced)
            keep_pace(s, o, began);
        mark_piece(s, p);
        mh.msg_iovlen = (size_t)2 * many;
        if (sendmsg(s->end.fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
            ret->sent += many;
            is_ready = !p->cipher;
        } else if (errno == EAGAIN || errno == ENOBUFS) {
            wait_for_room(s, until, now);
        } else if (is_cut) {
            /* The kernel, or the interface, cuts no datagrams. */
            is_cut = !set_segments(s->end.fd, 0);
        } else if (errno != EINTR && errno != ECONNREFUSED) {
            break;
        }
    }
    (void)set_segments(s->end.fd, 0);
}

static int send_burst(struct burst_state *s, const struct order *o, struct err *e)
{
    struct piece p;
    int r = open_piece(&p, s, o, e);

    if (r == 0)
        send_pieces(s, o, &p);
    close_piece(&p);
    return r;
}

/* What the train says of the line. */
static void evaluate(struct burst_state *s, const struct caught *caught)
{
    struct train_result r =
        train_evaluate(&s->sent, &caught->marks, size_on_line(s), caught->missed);

    if (r.sent_bits_per_s > RATE_MAX)
        r.sent_bits_per_s = RATE_MAX;
    if (r.bits_per_s > RATE_MAX)
        r = (struct train_result){.verdict = TRAIN_NOTHING};
    s->result->train = r;
}

/* Says that it is over, and reads what has come of it. */
static int collect(struct burst_state *s, struct err *e)
{
    _cleanup_(line_buffer_deinit) struct line_buffer lb = LINE_BUFFER_NULL;
    struct burst *ret = s->result;
    json_auto_t *said = NULL;
    struct caught caught;
    int r;

    (void)shutdown(s->control, SHUT_WR);
    r = line_read(&lb, s->control, clock_now() + DRAIN_FOR + DIAL_TIME, &said, e);
    if (r == 0)
        r = line_check_answer(said, e);
    if (r == 0)
        r = caught_decode(&caught, said, e);
    if (r < 0)
        return r;
    ret->heard = caught.heard < ret->sent ? caught.heard : ret->sent;
    ret->bits_per_s = caught.bits_per_s;
    evaluate(s, &caught);
    if (ret->bits_per_s == 0)
        return err_set(e, -ENODATA, "of %u datagrams %u arrived, too few to tell a rate",
            (unsigned)ret->sent, (unsigned)ret->heard);
    return 0;
}

/* Bytes of a datagram that is as long as the tunnel's packets are; beside it the same are sent. */
static int find_size(const struct dial_target *to, uint32_t *ret, struct err *e)
{
    _cleanup_(closep) int fd = -1;
    int mtu = 0;
    socklen_t len = sizeof(mtu);
    int r = dial_udp(to, &fd, e);

    if (r < 0)
        return r;
    if (getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len) < 0 || mtu < IP_UDP_HEADERS + FRAME_LEN)
        return err_set(e, -ENODATA, "the tunnel's MTU is not known");
    *ret = (uint32_t)(mtu - IP_UDP_HEADERS);
    if (*ret > ORDER_DATAGRAM_MAX)
        *ret = ORDER_DATAGRAM_MAX;
    return 0;
}

/* A port in an answer; 0: there is none. */
static uint16_t port_in(const json_t *json, const char *field)
{
    json_int_t v = json_integer_value(json_object_get(json, field));

    return v < 0 || v > UINT16_MAX ? 0 : (uint16_t)v;
}

/* Opens this end, has the peer open its own, and finds it there. */
static int begin(struct burst_state *s, const struct dial_target *to, const struct order *o,
    const struct burst_place *place, struct err *e)
{
    static const struct ip_addr any;
    struct order ask = {.kind = ORDER_CATCH, .ms = o->ms, .underlay = o->underlay};
    json_auto_t *said = NULL;
    struct endpoint there;
    int r;

    s->end.id = to->id;
    s->end.peer = o->underlay ? place->underlay : to->peer;
    if (o->underlay && !dial_is_fit_peer(&s->end.peer))
        return err_set(e, -EHOSTUNREACH, "there is no direct path to it beside the overlay");
    r = find_size(to, &s->result->size, e);
    if (r == 0)
        r = open_end(&s->end, &any, o->underlay ? NULL : to->interface, e);
    if (r < 0)
        return r;
    ask.size = s->result->size;
    ask.port = s->end.port;
    if (o->underlay && !candidate_is_private(&s->end.peer))
        ask.mapped = ask_mapped(&s->end, &place->stun);
    r = dial_open(to, &ask, clock_now() + DIAL_TIME, &s->control, &said, e);
    if (r < 0)
        return r;
    there = place_of(&s->end.peer, port_in(said, "port"), port_in(said, "mapped"));
    if (there.port == 0)
        return err_set(e, -EPROTO, "it names no port for datagrams");
    if (meet(&s->end, &there))
        return 0;
    return err_set(e, -ETIMEDOUT,
        o->underlay ? "no datagram passes beside the tunnel: a NAT shows each destination another "
                      "port, or a firewall keeps all other ports closed"
                    : "no datagram passes in the tunnel");
}

void burst_run(struct burst *ret, const struct dial_target *to, const struct order *o,
    const struct burst_place *place)
{
    struct burst_state s = {.result = ret, .end = BURST_END_NULL, .control = -1};
    struct err e = ERR_NULL;
    int r;

    *ret = (struct burst){.size = 0};
    r = begin(&s, to, o, place, &e);
    if (r == 0) {
        (void)ip_addr_format(&s.end.peer, ret->via);
        measure_rtt(&s);
        r = send_burst(&s, o, &e);
    }
    if (r == 0)
        r = collect(&s, &e);
    if (r < 0)
        (void)snprintf(ret->why, sizeof(ret->why), "%.*s", RESULT_WHY_MAX - 1, err_text(&e));
    closep(&s.end.fd);
    closep(&s.control);
}

/* ---- its peer ------------------------------------------------------------------------------- */

/* What has come. */
struct catching {
    struct burst_end end;
    struct endpoint sender; /* where it is said to be */
    uint64_t bytes;
    uint64_t first_bytes; /* that came at @first_at, and so in no time */
    nsec_t first_at;      /* when the kernel had it, wall clock; 0: nothing has come */
    nsec_t last_at;
    nsec_t heard_at; /* monotonic */
    uint32_t size;   /* bytes of each datagram */
    uint32_t missed; /* datagrams that were lost in the socket */
    struct train_marks marks;
    unsigned n_openers;
    nsec_t opener_at; /* of the next one; NSEC_NEVER: none is needed any more */
};

/* @seq: how many had been sent before it. */
static void count_burst(struct catching *c, size_t len, uint32_t seq, nsec_t at)
{
    struct train_mark mark;

    c->bytes += len;
    c->heard_at = clock_now();
    if (c->first_at == 0) {
        c->first_at = at;
        c->first_bytes = len;
    }
    c->last_at = at;
    mark = (struct train_mark){
        .at = at - c->first_at, .sent = seq, .heard = (uint32_t)(c->bytes / c->size)};
    /* Not where the clock was set back, or two have changed places. */
    if (mark.at >= 0)
        train_marks_add(&c->marks, &mark);
}

/* When the kernel had it, before it waited here; and how many it has had no room for so far. */
static nsec_t arrived_at(struct msghdr *mh, uint32_t *missed)
{
    nsec_t ret = 0;

    for (struct cmsghdr *cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
        struct timespec ts;

        if (cm->cmsg_level != SOL_SOCKET)
            continue;
        if (cm->cmsg_type == SO_RXQ_OVFL)
            memcpy(missed, CMSG_DATA(cm), sizeof(*missed));
        if (cm->cmsg_type != SCM_TIMESTAMPNS)
            continue;
        memcpy(&ts, CMSG_DATA(cm), sizeof(ts));
        ret = (nsec_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
    }
    return ret != 0 ? ret : clock_wall();
}

/* Takes one datagram, or several that the kernel has put together. False: there is none. */
static bool take_datagram(struct catching *c, uint8_t *buf)
{
    char control[256];
    union sockaddr_inet sa;
    struct iovec iov = {.iov_base = buf, .iov_len = RECEIVE_MAX};
    struct msghdr mh = {.msg_name = &sa,
        .msg_namelen = sizeof(sa),
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(c->end.fd, &mh, MSG_DONTWAIT);
    struct endpoint from;
    struct frame f;

    if (n < 0)
        return errno == EINTR || errno == ECONNREFUSED;
    if (!sockaddr_to_endpoint(&sa, &from) || !ip_addr_equal(&from.addr, &c->end.peer) ||
        !frame_decode(&f, buf, (size_t)n) || f.kind != FRAME_PING ||
        !session_id_equal(&f.id, &c->end.id))
        return true;
    c->end.at = from;
    c->opener_at = NSEC_NEVER;
    if (f.counted)
        count_burst(c, (size_t)n, f.seq, arrived_at(&mh, &c->missed));
    else if (!f.is_silent)
        send_frame(&c->end, &from, FRAME_PONG, f.seq);
    return true;
}

static void open_nat(struct catching *c, nsec_t now)
{
    send_opener(&c->end, &c->sender, c->n_openers++);
    c->opener_at = now + MEET_EACH;
}

/* Until the sender has said that it is over, and nothing comes any more. */
static void catch_all(struct catching *c, int control, nsec_t deadline)
{
    _cleanup_(freep) uint8_t *buf = malloc(RECEIVE_MAX);
    nsec_t ended_at = 0;
    nsec_t now = clock_now();

    while (buf && now < deadline) {
        struct pollfd fds[2] = {{.fd = c->end.fd, .events = POLLIN},
            {.fd = ended_at == 0 ? control : -1, .events = POLLIN}};
        nsec_t wait = nsec_min(deadline, c->opener_at) - now;

        if (ended_at != 0 && (now - c->heard_at >= QUIET_FOR || now - ended_at >= DRAIN_FOR))
            return;
        if (ended_at != 0)
            wait = nsec_min(wait, QUIET_FOR);
        (void)poll(fds, 2, (int)(nsec_max(wait, 0) / NSEC_PER_MSEC) + 1);
        for (unsigned i = 0; i < SEGMENTS_MAX && take_datagram(c, buf); i++)
            continue;
        now = clock_now();
        if (now >= c->opener_at)
            open_nat(c, now);
        /* It says nothing more, so there is only its end. */
        if (fds[1].revents && recv(control, buf, 1, MSG_DONTWAIT) <= 0) {
            ended_at = now;
            c->heard_at = now;
        }
    }
}

static struct caught result_of(const struct catching *c, uint32_t size)
{
    struct caught ret = {
        .heard = (uint32_t)(c->bytes / size), .missed = c->missed, .marks = c->marks};
    nsec_t took = c->last_at - c->first_at;

    if (ret.heard >= DATAGRAMS_MIN && took > 0 && took < DRAIN_FOR + NSEC_PER_SEC)
        ret.bits_per_s = (uint64_t)((double)(c->bytes - c->first_bytes) * 8e9 / (double)took);
    return ret;
}

void burst_serve(int fd, const struct order *o, const struct dial_target *from,
    const struct ip_addr *own, const struct burst_place *place)
{
    static const struct ip_addr any;
    struct catching c = {.end = BURST_END_NULL, .opener_at = NSEC_NEVER, .size = o->size};
    nsec_t deadline =
        clock_now() + DIAL_TIME + MEET_FOR + (nsec_t)o->ms * NSEC_PER_MSEC + DRAIN_FOR;
    struct err e = ERR_NULL;
    uint16_t mapped = 0;
    json_auto_t *said = NULL;
    json_auto_t *result = NULL;
    struct caught caught;
    int one = 1;

    c.end.id = from->id;
    c.end.peer = o->underlay ? place->underlay : from->peer;
    if (o->underlay && !dial_is_fit_peer(&c.end.peer))
        (void)err_set(&e, -EHOSTUNREACH, "it has no direct path to who measures");
    else if (open_end(&c.end, o->underlay ? &any : own, o->underlay ? NULL : from->interface, &e) ==
             0) {
        (void)setsockopt(c.end.fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one));
        (void)setsockopt(c.end.fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
        (void)setsockopt(c.end.fd, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof(one));
        c.sender = place_of(&c.end.peer, (uint16_t)o->port, (uint16_t)o->mapped);
        if (o->underlay && !candidate_is_private(&c.end.peer))
            mapped = ask_mapped(&c.end, &place->stun);
        if (o->underlay)
            open_nat(&c, clock_now());
    }
    said = c.end.fd < 0 ? json_pack("{s:s}", "error", err_text(&e))
                        : json_pack("{s:i, s:i}", "port", (int)c.end.port, "mapped", (int)mapped);
    if (line_write(fd, said, clock_now() + DIAL_TIME, NULL) == 0 && c.end.fd >= 0) {
        catch_all(&c, fd, deadline);
        caught = result_of(&c, o->size);
        result = caught_encode(&caught);
        (void)line_write(fd, result, clock_now() + DIAL_TIME, NULL);
    }
    closep(&c.end.fd);
}
