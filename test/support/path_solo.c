/* path_solo.c - see path_solo.h. */
#include "test/support/path_solo.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct solo solo;

struct endpoint solo_endpoint(const char *text)
{
    struct endpoint e;

    assert_int_equal(endpoint_parse(&e, text, NULL), 0);
    return e;
}

static void note_frame(struct solo *w, const struct path_action *a)
{
    struct solo_sent *s = &w->sent[w->n_sent++];
    uint8_t copy[PATH_FRAME_MAX];

    assert_true(w->n_sent < SOLO_SENT_MAX);
    memcpy(copy, a->frame, a->len);
    *s = (struct solo_sent){.at = w->now,
        .to = a->remote,
        .local = a->local,
        .socket = a->socket,
        .len = a->len,
        .hops = a->hops,
        .dont_fragment = a->dont_fragment};
    assert_true(path_frame_open(&w->keys, copy, a->len, &s->f));
    w->echo = s->f.session;
}

void solo_take_actions(struct solo *w)
{
    struct path_action a;

    while (paths_next(w->paths, &a)) {
        if (a.kind == PATH_ACTION_SEND)
            note_frame(w, &a);
        if (a.kind == PATH_ACTION_OPEN) {
            w->opened_at[w->n_opened] = w->now;
            w->opened[w->n_opened++] = a.socket;
        }
        if (a.kind == PATH_ACTION_CLOSE) {
            w->n_closed[a.socket]++;
            w->n_all_closed++;
        }
        if (a.kind == PATH_ACTION_FRESH)
            w->n_fresh++;
        if (a.kind == PATH_ACTION_USE) {
            w->use = a;
            w->n_uses++;
        }
    }
}

void solo_run(struct solo *w, nsec_t time)
{
    nsec_t end = w->now + time;

    solo_take_actions(w);
    while (paths_due(w->paths) <= end) {
        w->now = nsec_max(w->now, paths_due(w->paths));
        paths_tick(w->paths, w->now);
        solo_take_actions(w);
    }
    w->now = end;
}

/* A node and a peer that it knows by its key alone; @nominates: the node chooses the path. */
struct solo *solo_start(bool nominates)
{
    struct solo *w = &solo;
    struct paths_options opt = {.name = "a"};
    struct path_peer peer = {.name = "b"};
    struct x25519_secret secrets[2];
    struct x25519_public keys[2];
    unsigned mine;

    memset(w, 0, sizeof(*w));
    w->seed = 7;
    w->now = SOLO_T0;
    w->session = 77;
    w->host = solo_endpoint("203.0.113.2:51820");
    w->local = solo_endpoint("198.51.100.1:1").addr;
    opt.rng = rng_seeded(&w->seed);
    for (unsigned i = 0; i < 2; i++) {
        x25519_secret_make(&secrets[i], &opt.rng);
        assert_true(x25519_derive_public(&secrets[i], &keys[i]));
    }
    mine = (x25519_public_compare(&keys[0], &keys[1]) < 0) == nominates ? 0 : 1;
    opt.secret = secrets[mine];
    w->key = peer.key = keys[1 - mine];
    assert_true(path_keys_derive(&w->keys, &secrets[1 - mine], &keys[1 - mine], &keys[mine]));
    assert_int_equal(paths_new(&w->paths, &opt, w->now), 0);
    assert_int_equal(paths_put_peer(w->paths, &peer, w->now), 0);
    solo_take_actions(w);
    assert_int_equal(w->use.path, PATH_KIND_RELAY);
    return w;
}

void solo_stop(struct solo *w)
{
    w->paths = paths_free(w->paths);
}

/* The peer reports one candidate, and its NAT. */
void solo_tell_side(struct solo *w, enum candidate_kind kind, const struct behavior *nat)
{
    struct path_side side = {.generation = 1, .can_guess = true};

    if (nat)
        side.nat = *nat;
    assert_true(candidates_add(&side.candidates, kind, &w->host));
    paths_set_peer_side(w->paths, &w->key, &side, w->now);
}

/* What the node reports of itself. */
void solo_tell_self(struct solo *w, const struct behavior *nat)
{
    struct path_side side = {.generation = 1};
    struct endpoint own = solo_endpoint("198.51.100.1:51820");

    if (nat)
        side.nat = *nat;
    assert_true(candidates_add(&side.candidates, CANDIDATE_HOST, &own));
    paths_set_self(w->paths, &side, w->now);
}

struct path_view solo_view(const struct solo *w)
{
    struct path_view v;

    assert_true(paths_view(w->paths, &w->key, &v, w->now));
    return v;
}

/* A frame of the peer, as it would be the next. */
struct path_frame solo_next_frame(struct solo *w, enum path_frame_kind kind)
{
    return (struct path_frame){
        .kind = kind, .session = w->session, .echo = w->echo, .sequence = ++w->sequence};
}

/* It comes in @held before now. */
void solo_deliver_held(struct solo *w, const struct path_frame *f, const struct endpoint *from,
    uint32_t socket, size_t len, nsec_t held)
{
    struct path_arrival in = {
        .from = *from, .local = w->local, .socket = socket, .at = w->now - held};
    struct xchacha_nonce nonce = {{(uint8_t)w->sequence}};
    uint8_t bytes[PATH_FRAME_MAX];

    assert_true(path_frame_seal(&w->keys, f, &nonce, len, bytes));
    paths_on_frame(w->paths, &in, bytes, len, w->now);
    solo_take_actions(w);
}

void solo_deliver(struct solo *w, const struct path_frame *f)
{
    solo_deliver_held(w, f, &w->host, PATH_SOCKET_MAIN, PATH_FRAME_MIN, 0);
}

const struct solo_sent *solo_last_of(const struct solo *w, enum path_frame_kind kind)
{
    for (unsigned i = w->n_sent; i-- > 0;)
        if (w->sent[i].f.kind == kind)
            return &w->sent[i];
    fail_msg("no frame of kind %d was sent", (int)kind);
    return NULL;
}

unsigned solo_count_of(const struct solo *w, enum path_frame_kind kind)
{
    unsigned n = 0;

    for (unsigned i = 0; i < w->n_sent; i++)
        n += w->sent[i].f.kind == kind;
    return n;
}

/* The peer answers a ping of the node's, where that went to. */
void solo_answer(struct solo *w, const struct solo_sent *ping, uint8_t flags)
{
    struct path_frame pong = solo_next_frame(w, PATH_FRAME_PONG);

    pong.flags = flags;
    pong.transaction = ping->f.transaction;
    pong.clock = ping->f.clock;
    pong.observed = solo_endpoint("198.51.100.1:51820");
    solo_deliver_held(w, &pong, &ping->to, ping->socket, PATH_FRAME_MIN, 0);
}

/* The peer answers the last ping @rtt after it was sent. */
void solo_answer_after(struct solo *w, nsec_t rtt)
{
    const struct solo_sent *ping = solo_last_of(w, PATH_FRAME_PING);

    solo_run(w, ping->at + rtt - w->now);
    solo_answer(w, solo_last_of(w, PATH_FRAME_PING), 0);
}

/* The peer's run is proven: it has answered a ping. */
struct solo *solo_start_proven(bool nominates)
{
    struct solo *w = solo_start(nominates);

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    solo_run(w, 0);
    solo_answer_after(w, 20 * NSEC_PER_MSEC);
    return w;
}
