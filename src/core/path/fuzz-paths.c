/*
 * fuzz-paths.c - the input is a script of events for one node and two peers.
 *
 * A byte that chooses what happens, then its operands: frames that the peers seal
 * with whatever fields, raw ones, candidates, traffic, sockets, time. Nothing may
 * crash, every tick must get on, and the queue must end.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "path/paths.h"
#include "wire/path.h"

#define N_PEERS 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/** Who they are, made once: the keys cost more than the rest of a short script. */
struct people {
    struct x25519_secret self;
    struct x25519_public keys[N_PEERS];
    struct path_keys sealing[N_PEERS]; /* of frames from a peer to the node, and back */
};

struct world {
    const struct people *people;
    uint64_t seed;
    nsec_t now;
    struct paths *paths;
    uint64_t session; /* of the node, learned from what it sends */
    uint64_t clock;   /* of its last frame */
    uint64_t transaction;
    uint32_t socket; /* that was asked for last */
    uint64_t generation;
};

static struct endpoint read_endpoint(struct reader *r)
{
    uint8_t b[4] = {reader_u8(r), 0, 113, 1};

    return (struct endpoint){.addr = ip_addr_v4(b), .port = (uint16_t)(reader_u8(r) + 1)};
}

/** The last frame to a peer. */
struct sent {
    size_t len; /* 0: none */
    uint8_t frame[PATH_FRAME_MAX];
};

/* What the peer reads in it is what its next answer may fit. */
static void read_sent(struct world *w, unsigned peer, struct sent *sent)
{
    struct path_frame f;

    assert(path_frame_open(&w->people->sealing[peer], sent->frame, sent->len, &f));
    w->session = f.session;
    w->clock = f.clock;
    w->transaction = f.transaction;
}

static void take_actions(struct world *w)
{
    struct sent sent[N_PEERS] = {{0}};
    struct path_action a;

    for (unsigned n = 0; paths_next(w->paths, &a); n++) {
        assert(n < 20000);
        if (a.kind == PATH_ACTION_OPEN)
            w->socket = a.socket;
        if (a.kind != PATH_ACTION_SEND)
            continue;
        for (unsigned i = 0; i < N_PEERS; i++)
            if (x25519_public_equal(&a.peer, &w->people->keys[i])) {
                sent[i].len = a.len;
                memcpy(sent[i].frame, a.frame, a.len);
            }
    }
    for (unsigned i = 0; i < N_PEERS; i++)
        if (sent[i].len > 0)
            read_sent(w, i, &sent[i]);
}

/* What peers say fits what they were asked, or not: a byte for each field decides. */
static void peer_frame(struct world *w, struct reader *r)
{
    unsigned i = reader_u8(r) % N_PEERS;
    struct path_frame f = {.kind = (enum path_frame_kind)(1 + reader_u8(r) % (PATH_FRAME_N - 1)),
        .flags = reader_u8(r),
        .session = 1 + reader_u8(r) % 2,
        .sequence = reader_u8(r),
        .echo = reader_u8(r) % 4 ? w->session : 0,
        .transaction = w->transaction - reader_u8(r) % 4,
        .clock = w->clock,
        .held_us = reader_u8(r)};
    struct path_arrival in = {.from = read_endpoint(r), .at = w->now};
    struct xchacha_nonce nonce = {{1}};
    uint8_t msg[PATH_FRAME_MIN];

    in.socket = reader_u8(r) % 4 ? PATH_SOCKET_MAIN : w->socket;
    f.observed = read_endpoint(r);
    assert(path_frame_seal(&w->people->sealing[i], &f, &nonce, sizeof(msg), msg));
    paths_on_frame(w->paths, &in, msg, sizeof(msg), w->now);
}

static void raw_frame(struct world *w, struct reader *r)
{
    struct path_arrival in = {.from = read_endpoint(r), .at = w->now};
    size_t len = reader_u8(r);
    const uint8_t *p = reader_take(r, len);
    uint8_t msg[256];

    if (!p)
        return;
    memcpy(msg, p, len);
    paths_on_frame(w->paths, &in, msg, len, w->now);
}

static void side(struct world *w, struct reader *r)
{
    struct path_side s = {.generation = ++w->generation};
    unsigned who = reader_u8(r) % (N_PEERS + 1);
    unsigned n = reader_u8(r) % 40;

    for (unsigned i = 0; i < n; i++) {
        struct endpoint ep = read_endpoint(r);

        (void)candidates_add(
            &s.candidates, (enum candidate_kind)(1 + reader_u8(r) % CANDIDATE_REFLEXIVE), &ep);
    }
    s.nat.mapping = (enum behavior_rule)(reader_u8(r) % BEHAVIOR_RULE_N);
    s.nat.port_step = (int16_t)(reader_u8(r) - 128);
    s.nat.last_port = reader_be16(r);
    s.keepalive = reader_u8(r) * NSEC_PER_SEC;
    if (who == N_PEERS)
        paths_set_self(w->paths, &s, w->now);
    else
        paths_set_peer_side(w->paths, &w->people->keys[who], &s, w->now);
}

static void pass_time(struct world *w, nsec_t time)
{
    w->now += time;
    paths_tick(w->paths, w->now);
    assert(paths_due(w->paths) > w->now);
}

static void put_peer(struct world *w, unsigned i, unsigned policy)
{
    struct path_peer peer = {.key = w->people->keys[i], .name = "peer"};

    peer.policy = (enum path_policy)(policy % PATH_POLICY_N);
    assert(paths_put_peer(w->paths, &peer, w->now) == 0);
}

/* A peer that is new, with the path that an earlier run has left: where the next step's bytes say,
 * which that step reads as well. */
static void keep(struct world *w, const struct reader *r)
{
    struct reader ahead = *r;
    struct endpoint at = read_endpoint(&ahead);

    if (!ahead.failed)
        paths_keep(w->paths, &w->people->keys[1], &at, w->now);
}

static void step(struct world *w, struct reader *r)
{
    uint64_t probe;

    switch (reader_u8(r) % 12) {
    case 0:
        side(w, r);
        break;
    case 1:
        raw_frame(w, r);
        break;
    case 2:
        pass_time(w, reader_u8(r) * NSEC_PER_SEC);
        break;
    case 3:
        paths_on_traffic(w->paths, &w->people->keys[0], reader_u8(r), reader_u8(r), w->now);
        paths_on_received(
            w->paths, &w->people->keys[0], w->now - reader_u8(r) * NSEC_PER_MSEC, w->now);
        break;
    case 4:
        paths_on_socket(w->paths, w->socket, reader_u8(r) % 2);
        break;
    case 5:
        put_peer(w, reader_u8(r) % N_PEERS, reader_u8(r));
        break;
    case 6:
        paths_remove_peer(w->paths, &w->people->keys[reader_u8(r) % N_PEERS], w->now);
        put_peer(w, 0, PATH_POLICY_AUTO);
        put_peer(w, 1, PATH_POLICY_DIRECT);
        keep(w, r);
        break;
    case 7:
        paths_on_relay(w->paths, reader_u8(r) % 2, w->now);
        paths_on_network_change(w->paths, w->now);
        break;
    case 8:
        (void)paths_probe(w->paths, &w->people->keys[0], reader_be16(r), &probe, w->now);
        break;
    case 9:
        pass_time(w, reader_u8(r) * NSEC_PER_MSEC);
        break;
    default:
        peer_frame(w, r);
        break;
    }
    take_actions(w);
}

static const struct people *the_people(void)
{
    static struct people p = {.self = {{8}}};
    static bool is_made;
    struct x25519_public own;

    if (is_made)
        return &p;
    assert(x25519_derive_public(&p.self, &own));
    for (unsigned i = 0; i < N_PEERS; i++) {
        struct x25519_secret secret = {{(uint8_t)(16 * (i + 1))}};

        assert(x25519_derive_public(&secret, &p.keys[i]));
        assert(path_keys_derive(&p.sealing[i], &secret, &p.keys[i], &own));
    }
    is_made = true;
    return &p;
}

static void start(struct world *w)
{
    struct paths_options opt = {.secret = w->people->self, .name = "self", .guess_sockets = 32};

    opt.rng = rng_seeded(&w->seed);
    assert(paths_new(&w->paths, &opt, w->now) == 0);
    for (unsigned i = 0; i < N_PEERS; i++)
        put_peer(w, i, PATH_POLICY_AUTO);
    take_actions(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct world w = {.people = the_people(), .seed = 1, .now = 1000 * NSEC_PER_SEC};
    struct reader r = reader_make(data, len);

    start(&w);
    for (unsigned n = 0; reader_left(&r) > 0 && !r.failed && n < 2000; n++)
        step(&w, &r);
    pass_time(&w, 3600 * NSEC_PER_SEC);
    take_actions(&w);
    w.paths = paths_free(w.paths);
    return 0;
}
