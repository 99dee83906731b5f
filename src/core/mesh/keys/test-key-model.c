/*
 * test-key-model.c - every state that rotating nodes can come to, with a hub that lies.
 *
 * Three nodes and two hubs; nodes 0 and 1 rotate, twice in all; node 2 may be revoked. What runs is
 * key_rotation.c, key_peer.c and key_statement.c. Each event is done by itself, in any order: so a
 * message that is late, lost or overtaken is one whose event comes at another time, or never.
 *
 *   a node     begins a rotation; does the step that it has decided on, after which the message of
 *              that step arrives or is lost; is away for so long that nobody waits for it, and
 * comes back; calls another one, of which each of both may fail to take note hub 0      keeps what
 * it is given, and shows it; revokes node 2 hub 1      lies: it shows any statement that was ever
 * sent, old or out of order, of another node, or forged; it claims any key; it withholds the rest
 *
 * A state is what is on disks alone, and each event is a whole write: so a node that ends between
 * two of them, and starts again, is in one of these states.
 *
 * In no state is a key believed that its node has not signed for, and two nodes of which neither is
 * away can always call each other in one direction at least: the caller is taken under the key that
 * it uses, and the called one answers under the key that it is called by. Who was away is back when
 * hub 0 has shown it what there is. And from each state, if nothing is lost any more, all rotations
 * end, and everybody can call everybody.
 *
 * WEFT_MODEL_DEEP=1 allows more rotations and absences: a million states, in ten seconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/containers.h"
#include "base/secret.h"
#include "mesh/keys/key_peer.h"
#include "mesh/keys/key_rotation.h"
#include "mesh/keys/key_statement.h"

#define N_NODES 3
#define N_KEYS  4 /* of a node: the first one, and those of three rotations at most */
#define REVOKED 2 /* the node that may be */

/* ---- a state, as it is compared: bytes without holes ---- */

struct entry {
    uint8_t present : 1;
    uint8_t key : 2;
    uint8_t has_next : 1; /* the next is key + 1 */
    uint8_t calls_next : 1;
};

struct member {
    uint8_t up : 1;
    uint8_t stale : 1; /* it was away, and hub 0 has not shown it what there is */
    uint8_t state : 2; /* enum key_rotation_state */
    uint8_t key : 2;
    struct entry peers[N_NODES];
};

struct world {
    struct member nodes[N_NODES];
    uint8_t sent[N_NODES];    /* statements that have left the node */
    uint8_t kept[N_NODES];    /* of which hub 0 keeps so many */
    uint8_t hub_key[N_NODES]; /* which hub 0 says is the node's */
    uint8_t revoked;
    uint8_t rotations; /* that may yet begin */
    uint8_t absences;
};

/* ---- keys and statements, which are real ones ---- */

enum chain {
    CHAIN_PREFIX,               /* and N_KEYS - 1 more: so many statements, from the first on */
    CHAIN_FORGED = N_KEYS,      /* and N_KEYS - 2 more: one that the key has not signed */
    CHAIN_GAP = 2 * N_KEYS - 1, /* the second statement alone */
    CHAIN_OTHER,                /* another node's */
    CHAIN_N,
};

static struct {
    struct x25519_public keys[N_NODES][N_KEYS];
    struct x25519_public stranger;
    struct key_statement statements[N_NODES][N_KEYS - 1];
    struct key_statement forged[N_NODES][N_KEYS - 1];
    /* key_chain_verify()'s answers by subject, chain and trusted key: it is asked once each. */
    struct {
        bool is_known;
        int r;
        struct x25519_public key;
    } answers[N_NODES][CHAIN_N][N_KEYS];
    int subject; /* of the question that is being asked, and its chain */
    int chain;
} given;

static const char *const names[N_NODES] = {"a", "b", "c"};

static void make_statement(struct key_statement *s, int node, int from,
    const struct x25519_secret *secret, const struct x25519_secret *next, const struct rng *rng)
{
    *s = (struct key_statement){
        .kind = KEY_KIND_NODE, .network = "lab", .serial = (uint64_t)from + 1};
    memcpy(s->subject, names[node], 2);
    assert_true(x25519_derive_public(secret, &s->old_key));
    assert_true(x25519_derive_public(next, &s->new_key));
    assert_int_equal(key_statement_sign(s, secret, next, rng, NULL), 0);
}

static void make_keys(void)
{
    uint64_t seed = 30;
    struct rng rng = rng_seeded(&seed);
    struct x25519_secret secrets[N_NODES][N_KEYS], stranger;

    memset(&given, 0, sizeof(given));
    x25519_secret_make(&stranger, &rng);
    assert_true(x25519_derive_public(&stranger, &given.stranger));
    for (int i = 0; i < N_NODES; i++)
        for (int k = 0; k < N_KEYS; k++) {
            x25519_secret_make(&secrets[i][k], &rng);
            assert_true(x25519_derive_public(&secrets[i][k], &given.keys[i][k]));
        }
    for (int i = 0; i < N_NODES; i++)
        for (int k = 0; k + 1 < N_KEYS; k++) {
            make_statement(&given.statements[i][k], i, k, &secrets[i][k], &secrets[i][k + 1], &rng);
            make_statement(&given.forged[i][k], i, k, &stranger, &secrets[REVOKED][0], &rng);
            given.forged[i][k].old_key = given.keys[i][k];
        }
}

/* Which key of @node; N_KEYS: none of them. */
static uint8_t key_index(int node, const struct x25519_public *key)
{
    uint8_t k = 0;

    while (k < N_KEYS && !x25519_public_equal(key, &given.keys[node][k]))
        k++;
    return k;
}

static int verify(const struct x25519_public *trusted, const struct key_statement *chain, size_t n,
    const struct key_subject *subject, struct x25519_public *ret, struct err *e)
{
    uint8_t k = key_index(given.subject, trusted);
    __typeof__(&given.answers[0][0][0]) a = &given.answers[given.subject][given.chain][k];

    assert_true(k < N_KEYS);
    if (!a->is_known) {
        a->r = key_chain_verify(trusted, chain, n, subject, &a->key, e);
        a->is_known = true;
    }
    if (a->r >= 0)
        *ret = a->key;
    return a->r;
}

/* ---- between a state's bytes and the structs of what is explored ---- */

static struct key_peer peer_of(const struct world *w, int i, int j)
{
    struct entry e = w->nodes[i].peers[j];
    struct key_peer p = {.key = given.keys[j][e.key], .calls_next = e.calls_next};

    if (e.has_next)
        p.next = given.keys[j][e.key + 1];
    return p;
}

static void set_peer(struct world *w, int i, int j, const struct key_peer *p)
{
    uint8_t key = key_index(j, &p->key);
    bool has_next = !x25519_public_is_none(&p->next);

    /* What is believed are keys of that node which it has signed for, one behind the other. */
    assert_true(key + has_next < N_KEYS && key + has_next <= w->sent[j]);
    assert_true(!has_next || x25519_public_equal(&p->next, &given.keys[j][key + 1]));
    w->nodes[i].peers[j] = (struct entry){.present = 1,
        .key = key & 3,
        .has_next = has_next,
        .calls_next = p->calls_next && has_next};
}

static struct key_rotation rotation_of(const struct world *w, int i)
{
    const struct member *m = &w->nodes[i];
    struct key_rotation r = {
        .state = (enum key_rotation_state)m->state, .key = given.keys[i][m->key]};

    if (m->state != KEY_ROTATION_IDLE)
        r.next = given.keys[i][m->key + 1];
    return r;
}

static void set_rotation(struct world *w, int i, const struct key_rotation *r)
{
    struct member *m = &w->nodes[i];
    uint8_t key = key_index(i, &r->key);

    assert_true(key < N_KEYS);
    m->state = (uint8_t)r->state & 3;
    m->key = key & 3;
}

static bool is_member(const struct world *w, int i)
{
    return i != REVOKED || !w->revoked;
}

/* ---- calls ---- */

/* @i's key of the handshake, and @j's. False: @i does not know @j, or @j does not take part. */
static bool can_call(const struct world *w, int i, int j, struct x25519_public *ret_caller,
    struct x25519_public *ret_called)
{
    static const struct key_rotation_peer agent = {.is_stock = false};
    struct key_rotation caller = rotation_of(w, i);
    struct key_rotation called = rotation_of(w, j);
    struct key_peer at_caller, at_called;

    if (!w->nodes[i].peers[j].present || !w->nodes[j].peers[i].present)
        return false;
    at_caller = peer_of(w, i, j);
    at_called = peer_of(w, j, i);
    *ret_caller = *key_rotation_initiates_with(&caller, &agent);
    *ret_called = *key_peer_calls(&at_caller);
    return key_peer_takes(&at_called, ret_caller) &&
           (x25519_public_equal(ret_called, &called.key) ||
               (called.state != KEY_ROTATION_IDLE &&
                   x25519_public_equal(ret_called, &called.next)));
}

static void note_handshake(
    struct world *w, int i, int j, const struct x25519_public *other, bool is_initiator)
{
    struct key_peer p = peer_of(w, i, j);

    (void)key_peer_on_handshake(&p, other, is_initiator);
    set_peer(w, i, j, &p);
}

/* ---- what hubs show ---- */

static size_t make_chain(const struct world *w, int j, int chain, struct key_statement *ret)
{
    int other = (j + 1) % N_NODES;

    if (chain < CHAIN_FORGED) {
        memcpy(ret, given.statements[j], (size_t)chain * sizeof(*ret));
        return chain <= w->sent[j] ? (size_t)chain : SIZE_MAX;
    }
    if (chain < CHAIN_GAP) {
        ret[0] = given.forged[j][chain - CHAIN_FORGED];
        return 1;
    }
    ret[0] = chain == CHAIN_GAP ? given.statements[j][1] : given.statements[other][0];
    if (chain == CHAIN_GAP)
        return w->sent[j] >= 2 ? 1 : SIZE_MAX;
    return w->sent[other] >= 1 ? 1 : SIZE_MAX;
}

/* False: nobody could send that chain. */
static bool show_chain(struct world *w, int i, int j, int chain)
{
    struct key_statement statements[N_KEYS];
    struct key_subject subject = {.kind = KEY_KIND_NODE, .network = "lab", .name = names[j]};
    size_t n = make_chain(w, j, chain, statements);
    struct key_peer p = peer_of(w, i, j);
    struct err *no_words = NULL;

    if (n == SIZE_MAX)
        return false;
    given.subject = j;
    given.chain = chain;
    (void)key_peer_on_chain(&p, statements, n, &subject, verify, no_words);
    set_peer(w, i, j, &p);
    return true;
}

static void show_key(struct world *w, int i, int j, const struct x25519_public *key, bool is_silent)
{
    struct key_peer p = peer_of(w, i, j);

    (void)key_peer_on_hub_key(&p, key, is_silent);
    set_peer(w, i, j, &p);
}

/* Hub 0 shows @i all that there is. */
static void show_all(struct world *w, int i)
{
    for (int j = 0; j < N_NODES; j++) {
        if (j == i || !w->nodes[i].peers[j].present)
            continue;
        if (!is_member(w, j)) {
            w->nodes[i].peers[j] = (struct entry){0};
            continue;
        }
        (void)show_chain(w, i, j, w->kept[j]);
        show_key(w, i, j, &given.keys[j][w->hub_key[j]], !w->nodes[j].up || w->nodes[i].stale);
    }
    w->nodes[i].stale = 0;
}

/* ---- a node's step ---- */

/* What lets @i go on soonest, if it is true: in key_rotation_decide() less only holds up. */
static enum key_rotation_step decide(const struct world *w, int i, bool hub_withholds)
{
    struct key_rotation r = rotation_of(w, i);
    struct key_rotation_peer peers[N_NODES];
    struct key_rotation_facts facts = {.peers = peers,
        .hubs_keep_statement = !hub_withholds && w->kept[i] > w->nodes[i].key,
        .hubs_have_moved = !hub_withholds && w->hub_key[i] > w->nodes[i].key,
        .is_long_moved = true,
        .has_two_keys = true};

    for (int j = 0; j < N_NODES; j++) {
        struct key_peer at = peer_of(w, j, i);

        if (j == i || !w->nodes[i].peers[j].present)
            continue;
        peers[facts.n_peers++] = (struct key_rotation_peer){
            .is_reachable = w->nodes[j].up && !w->nodes[j].stale && is_member(w, j),
            .knows_next =
                w->nodes[j].peers[i].present && x25519_public_equal(key_peer_newest(&at), &r.next),
            .calls_next = w->nodes[j].peers[i].present && x25519_public_equal(&at.key, &r.next)};
    }
    return key_rotation_decide(&r, &facts);
}

/* Hub 0 is given the node's newest statement; with @moved the node asks for that key as its own. */
static void give(struct world *w, int i, bool moved)
{
    uint8_t next = w->nodes[i].key + 1;

    if (!is_member(w, i) || w->kept[i] + 1 < next)
        return;
    w->kept[i] = next;
    if (moved)
        w->hub_key[i] = next;
}

/* The step's message is sent; it arrives, or it does not. */
static void do_step(struct world *w, int i, enum key_rotation_step step, bool arrives)
{
    struct key_rotation r = rotation_of(w, i);

    key_rotation_take(&r, step);
    if (step == KEY_ROTATION_ANNOUNCE || step == KEY_ROTATION_FINISH) {
        w->sent[i] = w->nodes[i].key + 1;
        if (arrives)
            give(w, i, step == KEY_ROTATION_FINISH);
    }
    set_rotation(w, i, &r);
}

static bool begin(struct world *w, int i)
{
    struct key_rotation r = rotation_of(w, i);

    if (w->rotations == 0 || i == REVOKED || w->nodes[i].key + 1 >= N_KEYS ||
        !key_rotation_begin(&r, &given.keys[i][w->nodes[i].key + 1]))
        return false;
    set_rotation(w, i, &r);
    w->rotations--;
    return true;
}

/* ---- what has to hold ---- */

static bool calls(const struct world *w, int i, int j)
{
    struct x25519_public a, b;

    return can_call(w, i, j, &a, &b);
}

static bool is_here(const struct world *w, int i)
{
    return is_member(w, i) && w->nodes[i].up && !w->nodes[i].stale;
}

static void print_world(const struct world *w)
{
    for (int i = 0; i < N_NODES; i++) {
        const struct member *m = &w->nodes[i];

        (void)fprintf(stderr, "%s: %s%s %s key %d; sent %d kept %d hub key %d;", names[i],
            m->up ? "up" : "down", m->stale ? " stale" : "", key_rotation_state_names[m->state],
            m->key, w->sent[i], w->kept[i], w->hub_key[i]);
        for (int j = 0; j < N_NODES; j++)
            if (m->peers[j].present && j != i)
                (void)fprintf(stderr, " %s=%d%s%s", names[j], m->peers[j].key,
                    m->peers[j].has_next ? "+" : "", m->peers[j].calls_next ? "!" : "");
        (void)fprintf(stderr, "\n");
    }
    (void)fprintf(
        stderr, "revoked %d, rotations %d, absences %d\n\n", w->revoked, w->rotations, w->absences);
}

/* ---- every state ---- */

struct search {
    struct world *worlds; /* owns; in the order in which they were found */
    uint32_t *from;       /* owns; from which */
    size_t n;
    size_t cap;
    uint32_t *table; /* owns; index + 1 by hash; a power of two */
    size_t mask;
    size_t at; /* the one that is being left */
};

static void fail_at(const struct search *s, size_t at, const char *what)
{
    size_t path[64];
    size_t n = 0;

    for (; n < 64; at = s->from[at]) {
        path[n++] = at;
        if (at == 0)
            break;
    }
    while (n-- > 0)
        print_world(&s->worlds[path[n]]);
    fail_msg("%s", what);
}

static void grow(struct search *s)
{
    size_t size = 4 * s->cap;

    s->cap *= 2;
    s->worlds = realloc(s->worlds, s->cap * sizeof(*s->worlds));
    s->from = realloc(s->from, s->cap * sizeof(*s->from));
    free(s->table);
    s->table = calloc(size, sizeof(*s->table));
    assert_true(s->worlds && s->from && s->table);
    s->mask = size - 1;
    for (size_t i = 0; i < s->n; i++) {
        size_t at = hash_bytes(1, &s->worlds[i], sizeof(*s->worlds)) & s->mask;

        while (s->table[at] > 0)
            at = (at + 1) & s->mask;
        s->table[at] = (uint32_t)i + 1;
    }
}

static void check(const struct search *s, size_t at)
{
    const struct world *w = &s->worlds[at];

    for (int i = 0; i < N_NODES; i++)
        for (int j = 0; j < i; j++)
            if (is_here(w, i) && is_here(w, j) && !calls(w, i, j) && !calls(w, j, i))
                fail_at(s, at, "a pair has no key in common");
}

static void found(struct search *s, const struct world *w)
{
    size_t at = hash_bytes(1, w, sizeof(*w)) & s->mask;

    while (s->table[at] > 0) {
        if (memcmp(&s->worlds[s->table[at] - 1], w, sizeof(*w)) == 0)
            return;
        at = (at + 1) & s->mask;
    }
    if (s->n == s->cap) {
        grow(s);
        found(s, w);
        return;
    }
    s->table[at] = (uint32_t)s->n + 1;
    s->worlds[s->n] = *w;
    s->from[s->n++] = (uint32_t)s->at;
    check(s, s->n - 1);
}

static void try_steps(struct search *s, const struct world *w, int i)
{
    for (int withholds = 0; withholds < 2; withholds++) {
        enum key_rotation_step step = decide(w, i, withholds);

        for (int arrives = 0; arrives < 2; arrives++) {
            struct world t = *w;

            do_step(&t, i, step, arrives);
            found(s, &t);
        }
    }
}

static void try_calls(struct search *s, const struct world *w, int i)
{
    struct x25519_public caller, called;

    for (int j = 0; j < N_NODES; j++) {
        if (j == i || !w->nodes[j].up || !can_call(w, i, j, &caller, &called))
            continue;
        /* One of the two may end before it has taken note, or the answer is lost. */
        for (int who = 1; who < 4; who++) {
            struct world t = *w;

            if (who & 1)
                note_handshake(&t, j, i, &caller, true);
            if (who & 2)
                note_handshake(&t, i, j, &called, false);
            found(s, &t);
        }
    }
}

static void try_lies(struct search *s, const struct world *w, int i)
{
    for (int j = 0; j < N_NODES; j++) {
        if (j == i || !w->nodes[i].peers[j].present)
            continue;
        for (int chain = 1; chain < CHAIN_N; chain++) {
            struct world t = *w;

            if (show_chain(&t, i, j, chain))
                found(s, &t);
        }
        for (int k = 0; k <= N_KEYS; k++) {
            struct world t = *w;

            show_key(&t, i, j, k < N_KEYS ? &given.keys[j][k] : &given.stranger, !w->nodes[j].up);
            found(s, &t);
        }
    }
}

static void try_absence(struct search *s, const struct world *w, int i)
{
    struct world t = *w;

    if (w->nodes[i].up) {
        if (w->absences == 0)
            return;
        t.absences--;
        t.nodes[i].stale = 1;
    }
    t.nodes[i].up ^= 1;
    found(s, &t);
}

static void leave(struct search *s, const struct world *w)
{
    struct world t = *w;

    t.revoked = 1;
    found(s, &t);
    for (int i = 0; i < N_NODES; i++) {
        if (!is_member(w, i))
            continue;
        try_absence(s, w, i);
        if (!w->nodes[i].up)
            continue;
        t = *w;
        if (begin(&t, i))
            found(s, &t);
        t = *w;
        show_all(&t, i);
        found(s, &t);
        try_steps(s, w, i);
        try_calls(s, w, i);
        try_lies(s, w, i);
    }
}

/* From there, with nothing lost and nobody lying, all comes to rest. */
static void settle(const struct search *s, size_t at)
{
    struct world w = s->worlds[at];
    struct x25519_public a, b;

    for (int i = 0; i < N_NODES; i++)
        w.nodes[i].up = 1;
    for (int turn = 0; turn < 6; turn++)
        for (int i = 0; i < N_NODES; i++) {
            if (!is_member(&w, i))
                continue;
            show_all(&w, i);
            do_step(&w, i, decide(&w, i, false), true);
            for (int j = 0; j < N_NODES; j++)
                if (j != i && is_member(&w, j) && can_call(&w, i, j, &a, &b)) {
                    note_handshake(&w, j, i, &a, true);
                    note_handshake(&w, i, j, &b, false);
                }
        }
    for (int i = 0; i < N_NODES; i++)
        for (int j = 0; j < N_NODES; j++)
            if (i != j && is_member(&w, i) && is_member(&w, j) &&
                (!calls(&w, i, j) || w.nodes[i].state != KEY_ROTATION_IDLE)) {
                print_world(&w);
                fail_at(s, at, "does not come to rest");
            }
}

static void explore(uint8_t rotations, uint8_t absences, size_t least)
{
    struct search s = {.cap = 1 << 12};
    struct world first;

    memset(&first, 0, sizeof(first));
    first.rotations = rotations;
    first.absences = absences;
    for (int i = 0; i < N_NODES; i++) {
        first.nodes[i].up = 1;
        for (int j = 0; j < N_NODES; j++)
            first.nodes[i].peers[j].present = i != j;
    }
    grow(&s);
    found(&s, &first);
    for (; s.at < s.n; s.at++) {
        struct world w = s.worlds[s.at];

        leave(&s, &w);
        settle(&s, s.at);
    }
    print_message("%zu states with %u rotations and %u absences\n", s.n, rotations, absences);
    assert_true(s.n > least);
    free(s.worlds);
    free(s.from);
    free(s.table);
}

static void test_every_state(void **state)
{
    (void)state;
    make_keys();
    explore(2, 0, 1000);
    explore(2, 1, 10000);
    if (getenv("WEFT_MODEL_DEEP")) {
        explore(2, 3, 100000);
        explore(3, 1, 100000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
