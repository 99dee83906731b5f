/* tunnel.c - see tunnel.h. */
#include "tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "fake.h"
#include "net/socket/socket.h"
#include "net/socket/udp_batch.h"
#include "net/tun/offload.h"
#include "noise/cookie.h"
#include "noise/handshake.h"
#include "noise/keypair.h"
#include "os/clock.h"
#include "packet/gro.h"
#include "wire/ip.h"
#include "wire/wg.h"

#define INNER_MAX      1420
#define FRAMES         64 /* read from the interface in one turn */
#define FRAME_ROOM     2048
#define LOOK_EACH      (500 * NSEC_PER_MSEC)
#define RECEIVE_BUFFER (256 << 20) /* of thousands of machines' sockets in one */

struct session {
    struct noise_local local;
    struct noise_remote remote; /* the hub */
    struct handshake handshake;
    struct cookie_maker maker;
    struct keypair *current;  /* owns */
    struct keypair *previous; /* owns; the hub may still send with it */
    uint32_t generation;      /* of handshakes: the high bits of its index */
    nsec_t asked_at;          /* the last initiation; 0: none is under way */
    nsec_t answer_due;        /* a keepalive, unless something is sent before; 0: none is */
    uint8_t staged[INNER_MAX];
    uint16_t staged_len; /* of a packet that waits for the session; 0: none */
};

struct tunnel {
    struct session **sessions; /* owns; by number; NULL: not added yet */
    uint32_t n;
    _Atomic uint32_t number_of[1 << 16]; /* and one, by the low half of the overlay address */
    struct x25519_public hub;
    struct endpoint at;
    int tun; /* owns */
    struct udp_sockets sockets;
    struct udp_inbox in;
    struct udp_outbox out;
    struct aead_lane *lane; /* owns */
    const struct aead_algorithm *alg;
    struct rng rng;
    struct gro gro;
    nsec_t looked_at;
    uint8_t frames[FRAMES][FRAME_ROOM];
    _Atomic uint64_t n_handshakes;
    _Atomic uint64_t n_cookies;
    _Atomic uint64_t n_again;
    _Atomic uint64_t n_asked;
    _Atomic uint64_t n_invalid;
};

struct ip_addr tunnel_outer(uint32_t number)
{
    uint8_t b[4] = {172, 20, (uint8_t)(number >> 8), (uint8_t)number};

    return ip_addr_v4(b);
}

static uint32_t index_of(uint32_t number, uint32_t generation)
{
    return generation * TUNNEL_NODES_MAX | number;
}

/* ---- sending -------------------------------------------------------------------------------- */

static void send_run(struct tunnel *t, uint32_t number, void *buf, size_t len)
{
    struct udp_run run = {.buf = buf,
        .len = (uint32_t)len,
        .seg = (uint16_t)len,
        .path = {.remote = t->at, .local = tunnel_outer(number)}};

    udp_outbox_add(&t->out, &t->sockets, &run);
}

static void begin_handshake(struct tunnel *t, uint32_t number, nsec_t now)
{
    struct session *s = t->sessions[number];
    struct wg_initiation msg;

    s->generation++;
    if (handshake_create_initiation(&s->handshake, &s->local, &s->remote,
            index_of(number, s->generation), clock_wall(), &t->rng, &msg) != 0)
        fake_die("an initiation cannot be made");
    cookie_add_macs(&s->maker, &t->hub, &msg, sizeof(msg), now);
    s->asked_at = now;
    send_run(t, number, &msg, sizeof(msg));
    udp_outbox_flush(&t->out, &t->sockets);
}

/* @msg: with the header's room before the packet of @len bytes, and room behind it. */
static void send_packet(struct tunnel *t, uint32_t number, uint8_t *msg, size_t len, nsec_t now)
{
    struct session *s = t->sessions[number];
    size_t padded = wg_padded(len, INNER_MAX);
    uint64_t counter;

    memset(msg + sizeof(struct wg_data) + len, 0, padded - len);
    if (!keypair_take_counters(s->current, 1, &counter) ||
        !keypair_seal(s->current, t->lane, counter, msg, padded))
        fake_die("a packet cannot be sealed");
    aead_lane_clear(t->lane);
    send_run(t, number, msg, padded + WG_DATA_OVERHEAD);
    s->answer_due = 0;
    if (s->asked_at == 0 && keypair_wants_rekey_after_send(s->current, now))
        begin_handshake(t, number, now);
}

static void take_frame(struct tunnel *t, uint8_t *frame, size_t len, nsec_t now)
{
    uint8_t *p = frame + sizeof(struct wg_data);
    struct session *s;
    struct ip_info ip;
    uint32_t number;

    if (len > INNER_MAX || ip_parse(p, len, &ip) != 0 || ip.version != 4)
        return;
    number = atomic_load(&t->number_of[ip.src.b[14] << 8 | ip.src.b[15]]);
    if (number-- == 0)
        return;
    s = t->sessions[number];
    if (s->current && keypair_can_send(s->current, now)) {
        send_packet(t, number, frame, ip.len, now);
        return;
    }
    memcpy(s->staged, p, len);
    s->staged_len = (uint16_t)len;
    if (s->asked_at == 0)
        begin_handshake(t, number, now);
}

/* What the nodes send. Returns whether there may be more. */
static bool read_frames(struct tunnel *t, nsec_t now)
{
    struct virtio_net_hdr note;
    unsigned i;

    for (i = 0; i < FRAMES; i++) {
        struct iovec iov[2] = {{&note, sizeof(note)},
            {t->frames[i] + sizeof(struct wg_data), FRAME_ROOM - WG_DATA_OVERHEAD}};
        ssize_t n = readv(t->tun, iov, 2);

        if (n <= (ssize_t)sizeof(note))
            break;
        take_frame(t, t->frames[i], (size_t)n - sizeof(note), now);
    }
    udp_outbox_flush(&t->out, &t->sockets);
    return i == FRAMES;
}

/* ---- receiving ------------------------------------------------------------------------------ */

static struct session *session_of(struct tunnel *t, uint32_t index, uint32_t *ret_number)
{
    uint32_t number = index % TUNNEL_NODES_MAX;

    *ret_number = number;
    return number < t->n ? t->sessions[number] : NULL;
}

/* The session begins: what waits goes, or a message without a packet, which confirms it as well. */
static void use_session(struct tunnel *t, uint32_t number, struct keypair *kp, nsec_t now)
{
    struct session *s = t->sessions[number];
    uint8_t msg[FRAME_ROOM];

    keypair_unref(s->previous);
    s->previous = s->current;
    s->current = kp;
    s->asked_at = 0;
    atomic_fetch_add(&t->n_handshakes, 1);
    memcpy(msg + sizeof(struct wg_data), s->staged, s->staged_len);
    send_packet(t, number, msg, s->staged_len, now);
    udp_outbox_flush(&t->out, &t->sockets);
    s->staged_len = 0;
}

static void take_response(struct tunnel *t, const struct wg_response *msg, nsec_t now)
{
    struct keypair *kp;
    uint32_t number;
    struct session *s = session_of(t, le32_get(msg->receiver), &number);

    if (!s || s->handshake.local_index != le32_get(msg->receiver) ||
        handshake_consume_response(&s->handshake, &s->local, &s->remote, msg) != 0 ||
        handshake_derive(&s->handshake, t->alg, s, now, &kp) != 0)
        atomic_fetch_add(&t->n_invalid, 1);
    else
        use_session(t, number, kp, now);
}

/* The cookie is for the next initiation, which goes when it is its time (whitepaper 6.6). */
static void take_cookie(struct tunnel *t, const struct wg_cookie_reply *msg, nsec_t now)
{
    uint32_t number;
    struct session *s = session_of(t, le32_get(msg->receiver), &number);

    if (s && cookie_consume_reply(&s->maker, &t->hub, msg, now))
        atomic_fetch_add(&t->n_cookies, 1);
}

static void write_frames(struct tunnel *t)
{
    gro_finish(&t->gro);
    for (uint32_t i = 0; i < t->gro.n; i++) {
        struct gro_frame *f = &t->gro.frames[i];

        if (writev(t->tun, f->iov, (int)f->n) < 0)
            atomic_fetch_add(&t->n_invalid, 1);
    }
    t->gro.n = 0;
}

static void take_data(struct tunnel *t, uint8_t *msg, size_t len, nsec_t now)
{
    uint32_t index = le32_get(((const struct wg_data *)(const void *)msg)->receiver);
    uint32_t number;
    struct session *s = session_of(t, index, &number);
    struct keypair *kp = s ? s->current : NULL;
    struct ip_info ip;
    uint64_t counter;
    bool is_fresh;

    if (kp && kp->local_index != index)
        kp = s->previous;
    if (!kp || kp->local_index != index || !keypair_open(kp, t->lane, msg, len, &counter)) {
        atomic_fetch_add(&t->n_invalid, 1);
        return;
    }
    keypair_check_counters(kp, &counter, 1, &is_fresh);
    if (!is_fresh || ip_parse(msg + sizeof(struct wg_data), len - WG_DATA_OVERHEAD, &ip) != 0)
        return;
    if (s->answer_due == 0)
        s->answer_due = now + WG_KEEPALIVE_TIMEOUT;
    if (t->gro.n == GRO_FRAMES_MAX)
        write_frames(t);
    gro_add(&t->gro, msg + sizeof(struct wg_data), &ip);
}

static void take_message(struct tunnel *t, uint8_t *msg, size_t len, nsec_t now)
{
    switch (wg_type_of(msg, len)) {
    case WG_TYPE_RESPONSE:
        take_response(t, (const void *)msg, now);
        break;
    case WG_TYPE_COOKIE_REPLY:
        take_cookie(t, (const void *)msg, now);
        break;
    case WG_TYPE_DATA:
        take_data(t, msg, len, now);
        break;
    case WG_TYPE_INITIATION:
        /* Not answered: the hub begins no session with nodes that keep theirs. */
        atomic_fetch_add(&t->n_asked, 1);
        break;
    }
}

/* What the hub sends. Returns whether there may be more. */
static bool receive(struct tunnel *t, nsec_t now)
{
    unsigned n = udp_receive(&t->in, t->sockets.fd[UDP_FAMILY_V4]);

    for (unsigned i = 0; i < n; i++) {
        const struct udp_run *run = &t->in.runs[i];

        for (uint32_t off = 0; off < run->len; off += run->seg)
            take_message(
                t, run->buf + off, run->len - off < run->seg ? run->len - off : run->seg, now);
    }
    aead_lane_clear(t->lane);
    write_frames(t);
    return n > 0;
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* What is due of one node: an initiation that was not answered, or an answer (whitepaper 6.5). */
static void look_at(struct tunnel *t, uint32_t number, nsec_t now)
{
    struct session *s = t->sessions[number];
    uint8_t msg[FRAME_ROOM];

    if (s->asked_at != 0 && now - s->asked_at >= WG_REKEY_TIMEOUT) {
        atomic_fetch_add(&t->n_again, 1);
        begin_handshake(t, number, now);
    }
    if (s->answer_due == 0 || now < s->answer_due)
        return;
    s->answer_due = 0;
    if (keypair_can_send(s->current, now)) {
        send_packet(t, number, msg, 0, now);
        udp_outbox_flush(&t->out, &t->sockets);
    }
}

static void look_at_all(struct tunnel *t, nsec_t now)
{
    if (now - t->looked_at < LOOK_EACH)
        return;
    t->looked_at = now;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->sessions[i])
            look_at(t, i, now);
}

static void *run(void *arg)
{
    struct tunnel *t = arg;
    struct pollfd pfds[2] = {
        {.fd = t->tun, .events = POLLIN}, {.fd = t->sockets.fd[UDP_FAMILY_V4], .events = POLLIN}};
    bool more = false;

    for (;;) {
        nsec_t now;

        (void)poll(pfds, 2, more ? 0 : (int)(LOOK_EACH / NSEC_PER_MSEC));
        now = clock_now();
        more = read_frames(t, now);
        more |= receive(t, now);
        look_at_all(t, now);
    }
    return NULL;
}

static int open_tun(const char *interface)
{
    struct ifreq ifr = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

    (void)snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr) < 0)
        fake_die("the TUN interface cannot be opened");
    return fd;
}

struct tunnel *tunnel_start(
    const char *interface, uint32_t n, const struct x25519_public *hub, const struct endpoint *at)
{
    struct tunnel *t = calloc(1, sizeof(*t));
    struct offloads offloads = offloads_all();
    struct err e = ERR_NULL;
    pthread_t thread;

    if (!t || n > TUNNEL_NODES_MAX || aead_lane_new(&t->lane) < 0 || udp_inbox_init(&t->in) < 0 ||
        udp_outbox_init(&t->out, true, true) < 0)
        fake_die("no memory");
    t->sessions = calloc(n, sizeof(struct session *));
    t->n = n;
    t->hub = *hub;
    t->at = *at;
    t->rng = rng_kernel();
    t->alg = aead_best(AEAD_CIPHER_CHACHA20POLY1305, NULL);
    t->sockets = (struct udp_sockets)UDP_SOCKETS_NULL;
    gro_init(&t->gro, true, false);
    t->tun = open_tun(interface);
    if (udp_open(&t->sockets, 0, 0, UDP_SHARE_NONE, &offloads, &e) < 0)
        fake_die(err_text(&e));
    socket_set_receive_buffer(t->sockets.fd[UDP_FAMILY_V4], RECEIVE_BUFFER);
    if (!t->sessions || pthread_create(&thread, NULL, run, t) != 0)
        fake_die("no memory");
    return t;
}

void tunnel_add(struct tunnel *t, uint32_t number, const struct x25519_secret *secret,
    const struct ip_addr *inner)
{
    struct session *s = calloc(1, sizeof(*s));

    if (!s)
        fake_die("no memory");
    noise_local_set(&s->local, secret);
    noise_remote_init(&s->remote, &noise_profile_wireguard, &s->local, &t->hub);
    s->maker = (struct cookie_maker){0};
    handshake_clear(&s->handshake);
    t->sessions[number] = s;
    /* The thread finds it by this, so it comes last. */
    atomic_store(&t->number_of[inner->b[14] << 8 | inner->b[15]], number + 1);
}

struct tunnel_counts tunnel_counts(const struct tunnel *t)
{
    return (struct tunnel_counts){.handshakes = atomic_load(&t->n_handshakes),
        .cookies = atomic_load(&t->n_cookies),
        .again = atomic_load(&t->n_again),
        .asked = atomic_load(&t->n_asked),
        .invalid = atomic_load(&t->n_invalid)};
}
