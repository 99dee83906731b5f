/*
 * bench-swarm.c - many WireGuard peers in one process, to load the one under test.
 *
 *   bench-swarm config PEERS                       what the one under test is to know, for wg(8)
 *   bench-swarm run PEERS KEY ENDPOINT SECONDS ACTIVE...
 *
 * Every peer has a source address of its own (10.64.0.0 + number, which the
 * machine must call local), so that no limit of one address is met, and one
 * inner address (10.128.0.0 + number). Keys follow from the numbers.
 *
 * `run` makes all initiations, tells so, sends them as fast as they are answered,
 * takes the answers in, and then, for each ACTIVE, sends SECONDS of data from so
 * many of the peers in turn, a burst each, as fast as the socket takes it. Each
 * step is one line of JSON, and one of its name and a pause before it begins, so
 * that whoever reads along can take the other end's counters.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/parse.h"
#include "net/socket/udp_batch.h"
#include "net/tun/offload.h"
#include "noise/cookie.h"
#include "noise/handshake.h"
#include "noise/keypair.h"
#include "os/clock.h"
#include "wire/ip.h"
#include "wire/wg.h"

#define PEERS_MAX   65536
#define WINDOW      256 /* initiations under way */
#define PATIENCE    (1 * NSEC_PER_SEC)
#define GREET_MAX   (90 * NSEC_PER_SEC)
#define BURST       16   /* datagrams that a peer sends in its turn */
#define INNER_BYTES 1408 /* a multiple of the padding */
#define DATAGRAM    (INNER_BYTES + WG_DATA_OVERHEAD)
#define PROTOCOL    253 /* for experiments, RFC 3692 */
#define PAUSE_MS    300 /* before a step, for whoever reads along to take counters */

struct member {
    struct noise_local local;
    struct noise_remote remote; /* the one under test */
    struct handshake handshake;
    struct cookie_maker maker;
    struct wg_initiation initiation;
    struct wg_response response;
    struct keypair *keypair; /* owns */
    nsec_t sent;             /* 0: not yet */
    bool is_answered;
};

struct swarm {
    struct member *members; /* owns; @n of them */
    uint32_t n;
    struct endpoint target;
    struct udp_sockets sockets;
    struct udp_inbox in;
    struct udp_outbox out;
    struct aead_lane *lane; /* owns */
    struct rng rng;
    uint64_t cookies; /* replies */
    uint64_t again;   /* initiations that were sent once more */
};

static _Noreturn void die(const char *what)
{
    (void)fprintf(stderr, "bench-swarm: %s\n", what);
    exit(1);
}

static struct ip_addr address_of(uint8_t second, uint32_t number)
{
    uint8_t b[4] = {10, second, (uint8_t)(number >> 8), (uint8_t)number};

    return ip_addr_v4(b);
}

static void secret_of(uint32_t number, struct x25519_secret *ret)
{
    struct blake2s_digest digest;

    blake2s_hash("bench-swarm", 11, &number, sizeof(number), &digest);
    memcpy(ret->b, digest.b, sizeof(ret->b));
    x25519_secret_clamp(ret);
}

static void print_config(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct ip_addr inner = address_of(128, i);
        struct x25519_secret secret;
        struct x25519_public public;
        char key[X25519_BASE64_MAX];
        char addr[IP_ADDR_TEXT_MAX];

        secret_of(i, &secret);
        if (!x25519_derive_public(&secret, &public))
            die("no memory");
        (void)printf("[Peer]\nPublicKey = %s\nAllowedIPs = %s/32\n",
            x25519_public_format(&public, key), ip_addr_format(&inner, addr));
    }
}

/* ---- handshakes ----------------------------------------------------------------------------- */

static void make_initiation(struct swarm *s, uint32_t number)
{
    struct member *m = &s->members[number];

    if (handshake_create_initiation(&m->handshake, &m->local, &m->remote, number, clock_wall(),
            &s->rng, &m->initiation) != 0)
        die("an initiation cannot be made");
    cookie_add_macs(
        &m->maker, &m->remote.public, &m->initiation, sizeof(m->initiation), clock_now());
}

static void make_members(struct swarm *s, const struct x25519_public *target)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct member *m = &s->members[i];
        struct x25519_secret secret;

        secret_of(i, &secret);
        noise_local_set(&m->local, &secret);
        noise_remote_init(&m->remote, &noise_profile_wireguard, &m->local, target);
        m->maker = (struct cookie_maker){0};
        handshake_clear(&m->handshake);
        make_initiation(s, i);
    }
}

static struct udp_run run_from(
    const struct swarm *s, uint32_t number, void *buf, size_t len, size_t seg)
{
    return (struct udp_run){
        .buf = buf,
        .len = (uint32_t)len,
        .seg = (uint16_t)seg,
        .path = {.remote = s->target, .local = address_of(64, number)},
    };
}

static void send_initiation(struct swarm *s, uint32_t number, nsec_t now)
{
    struct member *m = &s->members[number];
    struct udp_run run =
        run_from(s, number, &m->initiation, sizeof(m->initiation), sizeof(m->initiation));

    m->sent = now;
    udp_outbox_add(&s->out, &s->sockets, &run);
}

/* The same initiation with the cookie: only its macs change. */
static void take_cookie(struct swarm *s, const struct wg_cookie_reply *msg, nsec_t now)
{
    uint32_t number = le32_get(msg->receiver);
    struct member *m = number < s->n ? &s->members[number] : NULL;

    if (!m || m->is_answered || !cookie_consume_reply(&m->maker, &m->remote.public, msg, now))
        return;
    s->cookies++;
    cookie_add_macs(&m->maker, &m->remote.public, &m->initiation, sizeof(m->initiation), now);
    send_initiation(s, number, now);
}

/* Returns whether it is the first answer to that member. */
static bool take_response(struct swarm *s, const struct wg_response *msg)
{
    uint32_t number = le32_get(msg->receiver);
    struct member *m = number < s->n ? &s->members[number] : NULL;

    if (!m || m->is_answered)
        return false;
    m->response = *msg;
    m->is_answered = true;
    return true;
}

static uint32_t receive_answers(struct swarm *s, nsec_t now)
{
    unsigned n = udp_receive(&s->in, s->sockets.fd[UDP_FAMILY_V4]);
    uint32_t answered = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct udp_run *run = &s->in.runs[i];

        for (uint32_t off = 0; off < run->len; off += run->seg) {
            size_t len = run->len - off < run->seg ? run->len - off : run->seg;
            unsigned type = wg_type_of(run->buf + off, len);

            if (type == WG_TYPE_RESPONSE)
                answered += take_response(s, (const void *)(run->buf + off));
            else if (type == WG_TYPE_COOKIE_REPLY)
                take_cookie(s, (const void *)(run->buf + off), now);
        }
    }
    return answered;
}

/* A new initiation to each of those under way that waited too long; they may have been lost. */
static void send_again(struct swarm *s, uint32_t first, uint32_t end, nsec_t now)
{
    for (uint32_t i = first; i < end; i++) {
        struct member *m = &s->members[i];

        if (m->is_answered || now - m->sent < PATIENCE)
            continue;
        make_initiation(s, i);
        send_initiation(s, i, now);
        s->again++;
    }
}

static void wait_for_answers(const struct swarm *s)
{
    struct pollfd pfd = {.fd = s->sockets.fd[UDP_FAMILY_V4], .events = POLLIN};

    (void)poll(&pfd, 1, 10);
}

/* All members, WINDOW at a time; a member in the window's tail may be waited for on the way. */
static void greet(struct swarm *s)
{
    nsec_t start = clock_now();
    nsec_t now = start;
    uint32_t first = 0; /* all before it are answered */
    uint32_t next = 0;
    uint32_t answered = 0;

    while (answered < s->n && now - start < GREET_MAX) {
        for (; next < s->n && next - answered < WINDOW; next++)
            send_initiation(s, next, now);
        udp_outbox_flush(&s->out, &s->sockets);
        wait_for_answers(s);
        now = clock_now();
        answered += receive_answers(s, now);
        while (first < next && s->members[first].is_answered)
            first++;
        send_again(s, first, next, now);
    }
    (void)printf("{\"step\": \"greet\", \"peers\": %u, \"answered\": %u, \"seconds\": %.3f, "
                 "\"cookies\": %llu, \"again\": %llu}\n",
        s->n, answered, (double)(now - start) / (double)NSEC_PER_SEC,
        (unsigned long long)s->cookies, (unsigned long long)s->again);
}

static void derive_sessions(struct swarm *s)
{
    const struct aead_algorithm *alg = aead_best(AEAD_CIPHER_CHACHA20POLY1305, NULL);

    for (uint32_t i = 0; i < s->n; i++) {
        struct member *m = &s->members[i];

        if (!m->is_answered ||
            handshake_consume_response(&m->handshake, &m->local, &m->remote, &m->response) != 0)
            continue;
        if (handshake_derive(&m->handshake, alg, m, clock_now(), &m->keypair) < 0)
            die("no memory");
    }
}

/* ---- data ----------------------------------------------------------------------------------- */

/* An inner packet from member @number to an address that nobody has. */
static void write_inner(uint8_t *p, uint32_t number)
{
    struct ip_addr src = address_of(128, number);
    const uint8_t dst[4] = {10, 200, 0, 1};

    memset(p, 0, INNER_BYTES);
    p[0] = 0x45;
    p[2] = INNER_BYTES >> 8;
    p[3] = INNER_BYTES & 0xff;
    p[8] = 64;
    p[9] = PROTOCOL;
    memcpy(p + 12, src.b + 12, 4);
    memcpy(p + 16, dst, 4);
    ip_v4_set_checksum(p, 20);
}

/* Returns the datagrams that were given to the kernel. */
static unsigned send_burst(struct swarm *s, uint32_t number, unsigned burst, uint8_t *buf)
{
    const struct member *m = &s->members[number];
    struct udp_run run = run_from(s, number, buf, (size_t)burst * DATAGRAM, DATAGRAM);
    uint64_t counter;

    if (!m->keypair || !keypair_take_counters(m->keypair, burst, &counter))
        return 0;
    for (unsigned i = 0; i < burst; i++) {
        uint8_t *msg = buf + (size_t)i * DATAGRAM;

        write_inner(msg + sizeof(struct wg_data), number);
        if (!keypair_seal(m->keypair, s->lane, counter + i, msg, INNER_BYTES))
            die("no memory");
    }
    aead_lane_clear(s->lane);
    udp_outbox_add(&s->out, &s->sockets, &run);
    udp_outbox_flush(&s->out, &s->sockets);
    return burst;
}

static void send_data(struct swarm *s, uint32_t active, double seconds)
{
    static uint8_t buf[BURST * DATAGRAM];
    nsec_t start = clock_now();
    nsec_t end = start + (nsec_t)(seconds * (double)NSEC_PER_SEC);
    uint64_t sent = 0;

    /* A session that was never used is confirmed by its first packet. */
    for (uint32_t i = 0; i < active; i++)
        sent += send_burst(s, i, 1, buf);
    for (uint32_t i = 0; clock_now() < end; i = (i + 1) % active)
        sent += send_burst(s, i, BURST, buf);
    (void)printf("{\"step\": \"data\", \"active\": %u, \"sent\": %llu, \"refused\": %llu, "
                 "\"bytes\": %u, \"seconds\": %.3f}\n",
        active, (unsigned long long)sent, (unsigned long long)s->out.n_failed, INNER_BYTES,
        (double)(clock_now() - start) / (double)NSEC_PER_SEC);
}

/* ---- the program ---------------------------------------------------------------------------- */

static void open_swarm(struct swarm *s, uint32_t n)
{
    struct offloads offloads = offloads_all();
    struct err e = ERR_NULL;

    s->n = n;
    s->rng = rng_kernel();
    s->members = calloc(n, sizeof(*s->members));
    if (!s->members || aead_lane_new(&s->lane) < 0 || udp_inbox_init(&s->in) < 0 ||
        udp_outbox_init(&s->out, true, true) < 0)
        die("no memory");
    if (udp_open(&s->sockets, 0, 0, UDP_SHARE_NONE, &offloads, &e) < 0)
        die(err_text(&e));
}

static void close_swarm(struct swarm *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        s->members[i].keypair = keypair_unref(s->members[i].keypair);
    udp_close(&s->sockets);
    udp_outbox_deinit(&s->out);
    udp_inbox_deinit(&s->in);
    s->lane = aead_lane_free(s->lane);
    free(s->members);
}

static void say(const char *step)
{
    (void)printf("%s\n", step);
    (void)fflush(stdout);
    (void)poll(NULL, 0, PAUSE_MS);
}

static uint64_t number_of(const char *text, uint64_t min, uint64_t max, const char *name)
{
    struct err e = ERR_NULL;
    uint64_t value;

    if (parse_u64(&value, text, min, max, name, &e) == 0)
        return value;
    die(err_text(&e));
}

static void run(char **words, unsigned n_words)
{
    struct swarm s = {.sockets = UDP_SOCKETS_NULL};
    struct x25519_public key;
    struct err e = ERR_NULL;
    uint64_t seconds = number_of(words[3], 1, 60, "SECONDS");

    if (x25519_public_parse(&key, words[1], &e) < 0 || endpoint_parse(&s.target, words[2], &e) < 0)
        die(err_text(&e));
    open_swarm(&s, (uint32_t)number_of(words[0], 1, PEERS_MAX, "PEERS"));
    make_members(&s, &key);
    say("greet");
    greet(&s);
    derive_sessions(&s);
    for (unsigned i = 4; i < n_words; i++) {
        uint32_t active = (uint32_t)number_of(words[i], 1, s.n, "ACTIVE");

        say("data");
        send_data(&s, active, (double)seconds);
    }
    say("end");
    close_swarm(&s);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "config") == 0)
        print_config((uint32_t)number_of(argv[2], 1, PEERS_MAX, "PEERS"));
    else if (argc >= 6 && strcmp(argv[1], "run") == 0)
        run(argv + 2, (unsigned)argc - 2);
    else
        die("config PEERS, or run PEERS KEY ENDPOINT SECONDS [ACTIVE...]");
    return 0;
}
