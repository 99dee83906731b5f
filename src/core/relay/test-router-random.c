/*
 * test-router-random.c - random interleavings of everything that can happen to a router.
 *
 * Each step is checked twice. Against the reference: the same verdict. And against
 * the keys alone, without a word about leases: a handshake message is forwarded
 * only to the node whose public key made its mac1; and anything else only to a
 * node that has itself announced that receiver index to the sender, in a
 * handshake message which only the sender's public key could have made, in the
 * last three minutes and a quarter, and neither of them was removed or blocked since.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "relay/router.h"
#include "test/support/router_sample.h"

/* Few of everything, so that things meet. */
#define N_NODES     REFERENCE_NODES_MAX
#define N_ADDRESSES 10
#define N_INDICES   12
#define LOCAL_INDEX 11 /* and above: the hub's own */
#define HUB_KEYS    100
#define UNKNOWN_KEY 99
#define N_STEPS     40000

struct world {
    struct router *router;
    struct router_network *nets[REFERENCE_NETWORKS_MAX];
    struct router_node *nodes[N_NODES];
    struct reference reference;
    nsec_t now;
    struct rng rng;
    uint64_t rng_state;
    nsec_t announced[N_NODES][N_NODES][N_INDICES + 1]; /* by, to, index: when last; 0: never */
    unsigned n_forwarded[5];                           /* by message type */
    unsigned n_dropped[DROP_REASON_N];
};

static unsigned below(struct world *w, unsigned n)
{
    return rng_u32(&w->rng) % n;
}

static bool is_local(void *ctx, uint32_t index)
{
    return index >= LOCAL_INDEX;
}

/* ---- changes ---- */

static void forget_announcements(struct world *w, unsigned a, unsigned b)
{
    memset(w->announced[a][b], 0, sizeof(w->announced[a][b]));
    memset(w->announced[b][a], 0, sizeof(w->announced[b][a]));
}

static void add_network(struct world *w, unsigned i)
{
    struct x25519_public hub = router_sample_key(HUB_KEYS + i);

    assert_int_equal(router_network_add(&w->nets[i], w->router, &hub), 0);
    w->reference.networks[i] = (struct reference_network){.is_there = true, .hub = hub};
}

static void add_node(struct world *w, unsigned i)
{
    struct x25519_public key = router_sample_key(i);
    unsigned net = below(w, REFERENCE_NETWORKS_MAX);

    assert_int_equal(router_node_add(&w->nodes[i], w->router, w->nets[net], &key), 0);
    reference_node_add(&w->reference, i, net, &key);
}

static void forget_node(struct world *w, unsigned i)
{
    reference_node_remove(&w->reference, i);
    for (unsigned k = 0; k < N_NODES; k++)
        forget_announcements(w, i, k);
    w->nodes[i] = NULL;
}

static void replace_node(struct world *w, unsigned i)
{
    if (!w->nodes[i]) {
        add_node(w, i);
        return;
    }
    router_node_remove(w->router, w->nodes[i]);
    forget_node(w, i);
}

static void replace_network(struct world *w, unsigned i)
{
    router_network_remove(w->router, w->nets[i]);
    for (unsigned k = 0; k < N_NODES; k++)
        if (w->nodes[k] && w->reference.nodes[k].network == i)
            forget_node(w, k);
    add_network(w, i);
}

static void move_node(struct world *w, unsigned i)
{
    struct endpoint ep = sample_endpoint(below(w, N_ADDRESSES));
    struct endpoint none = {.port = 0};
    struct ip_addr local = {{0}};
    const struct endpoint *to = below(w, 20) == 0 ? &none : &ep;

    if (!w->nodes[i])
        return;
    router_node_set_address(w->router, w->nodes[i], to, &local);
    reference_node_set_address(&w->reference, i, to);
}

static void block_edge(struct world *w, unsigned a, unsigned b)
{
    bool blocked = below(w, 3) == 0;

    if (a == b || !w->nodes[a] || !w->nodes[b] ||
        w->reference.nodes[a].network != w->reference.nodes[b].network)
        return;
    assert_int_equal(router_edge_set_blocked(w->router, w->nodes[a], w->nodes[b], blocked), 0);
    reference_edge_set_blocked(&w->reference, a, b, blocked);
    if (blocked)
        forget_announcements(w, a, b);
}

/* ---- messages ---- */

struct message {
    union {
        struct wg_initiation initiation;
        struct wg_response response;
        struct wg_cookie_reply cookie;
        struct sample_data data;
        uint8_t b[1];
    };
    size_t len;
    unsigned type;
    unsigned key;       /* whose made mac1: number of router_sample_key(); in a handshake message */
    uint32_t announced; /* sender index of a handshake message */
    uint32_t receiver;  /* of the others, and of a response */
};

static struct message random_message(struct world *w)
{
    struct message m = {.type = 1 + below(w, 4),
        .key = below(w, N_NODES + 2),
        .announced = 1 + below(w, N_INDICES),
        .receiver = 1 + below(w, N_INDICES)};
    struct x25519_public key;

    if (m.key >= N_NODES)
        m.key = m.key == N_NODES ? UNKNOWN_KEY : HUB_KEYS + below(w, REFERENCE_NETWORKS_MAX);
    key = router_sample_key(m.key);
    if (m.type == WG_TYPE_INITIATION) {
        m.initiation = sample_initiation(&key, m.announced);
        m.len = sizeof(m.initiation);
    } else if (m.type == WG_TYPE_RESPONSE) {
        m.response = sample_response(&key, m.announced, m.receiver);
        m.len = sizeof(m.response);
    } else if (m.type == WG_TYPE_COOKIE_REPLY) {
        m.cookie = sample_cookie(m.receiver);
        m.len = sizeof(m.cookie);
    } else {
        m.data = sample_data(m.receiver);
        m.len = sizeof(m.data);
    }
    return m;
}

/* A response that fits some lease, since a random one hardly ever does. */
static void make_fitting(struct world *w, struct message *m, struct endpoint *from)
{
    const struct reference_lease *l = &w->reference.leases[0];
    struct x25519_public key;

    for (unsigned i = 0; i < REFERENCE_LEASES_MAX && (i == 0 || !l->is_there); i++)
        l = &w->reference.leases[below(w, REFERENCE_LEASES_MAX)];
    key = router_sample_key(l->to);
    if (!l->is_there || endpoint_is_none(&w->reference.nodes[l->from].remote))
        return;
    *from = w->reference.nodes[l->from].remote;
    m->receiver = l->index;
    if (m->type == WG_TYPE_RESPONSE) {
        m->key = l->to;
        m->response = sample_response(&key, m->announced, m->receiver);
    } else if (m->type == WG_TYPE_COOKIE_REPLY) {
        m->cookie = sample_cookie(m->receiver);
    } else if (m->type == WG_TYPE_DATA) {
        m->data = sample_data(m->receiver);
    }
}

static bool is_at(const struct world *w, unsigned node, const struct endpoint *ep)
{
    return w->reference.nodes[node].is_there &&
           endpoint_equal(&w->reference.nodes[node].remote, ep);
}

/* Was what the reference says it is sent on to someone who may have it? By keys alone. */
static void check_addressee(
    struct world *w, const struct message *m, const struct router_arrival *in, unsigned to)
{
    bool is_known = false;

    if (m->type == WG_TYPE_INITIATION || m->type == WG_TYPE_RESPONSE) {
        assert_int_equal(m->key, to);
        return;
    }
    for (unsigned i = 0; i < N_NODES; i++) {
        nsec_t when = w->announced[to][i][m->receiver];

        is_known |= is_at(w, i, &in->from) && when > 0 &&
                    in->now < when + ROUTER_PENDING_LIFE + ROUTER_LEASE_LIFE;
    }
    assert_true(is_known);
}

/* Who sent it, as far as anybody can tell, has announced the index to the owner of the key. */
static void note_announcement(
    struct world *w, const struct message *m, const struct router_arrival *in)
{
    if (m->type > WG_TYPE_RESPONSE || m->key >= N_NODES)
        return;
    for (unsigned i = 0; i < N_NODES; i++)
        if (is_at(w, i, &in->from))
            w->announced[i][m->key][m->announced] = in->now;
}

static void send_message(struct world *w)
{
    struct router_arrival in = {
        .from = sample_endpoint(below(w, N_ADDRESSES)), .now = w->now, .is_local = is_local};
    struct message m = random_message(w);
    struct router_verdict v;
    struct reference_verdict t;

    if (below(w, 2) == 0)
        make_fitting(w, &m, &in.from);
    v = router_route(w->router, &in, m.b, m.len);
    t = reference_route(&w->reference, &in, m.b, m.len);
    assert_int_equal(v.action, t.action);
    if (v.action == ROUTER_ACTION_DROP) {
        assert_string_equal(drop_reason_names[v.reason], drop_reason_names[t.reason]);
        w->n_dropped[v.reason]++;
    }
    note_announcement(w, &m, &in);
    if (v.action != ROUTER_ACTION_FORWARD)
        return;
    w->n_forwarded[m.type]++;
    assert_true(endpoint_equal(&v.to, &w->reference.nodes[t.to].remote));
    check_addressee(w, &m, &in, t.to);
}

static void step(struct world *w)
{
    unsigned what = below(w, 1000);

    w->now += (nsec_t)below(w, 200) * NSEC_PER_MSEC;
    if (what < 20)
        replace_node(w, below(w, N_NODES));
    else if (what < 21)
        replace_network(w, below(w, REFERENCE_NETWORKS_MAX));
    else if (what < 120)
        move_node(w, below(w, N_NODES));
    else if (what < 150)
        block_edge(w, below(w, N_NODES), below(w, N_NODES));
    else if (what < 153)
        w->now += (nsec_t)below(w, 120) * NSEC_PER_SEC;
    else if (what < 160) {
        router_expire(w->router, w->now);
        reference_expire(&w->reference, w->now);
    } else
        send_message(w);
}

/* The test has seen every way that it is about; or a change here has made it blind. */
static void check_coverage(const struct world *w)
{
    static const enum drop_reason reasons[] = {DROP_RELAY_UNKNOWN_SENDER, DROP_RELAY_NO_MATCH,
        DROP_RELAY_NO_LEASE, DROP_RELAY_NO_ADDRESS, DROP_RELAY_TABLE_FULL, DROP_RELAY_INDEX_CLASH};

    for (unsigned type = 1; type <= 4; type++)
        assert_in_range(w->n_forwarded[type], 100, UINT32_MAX);
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        assert_in_range(w->n_dropped[reasons[i]], 5, UINT32_MAX);
    assert_int_equal(w->n_dropped[DROP_RELAY_RATE_LIMITED], 0); /* the reference does not know it */
}

static void run(uint64_t seed)
{
    static struct world w;
    struct router_options opt = {
        .n_workers = 1, .seed = seed, .leases_max = 16, .leases_per_node = 4};

    w = (struct world){.now = NSEC_PER_SEC, .rng_state = seed};
    w.rng = rng_seeded(&w.rng_state);
    w.reference.leases_max = opt.leases_max;
    w.reference.leases_per_node = opt.leases_per_node;
    assert_int_equal(router_new(&w.router, &opt), 0);
    for (unsigned i = 0; i < REFERENCE_NETWORKS_MAX; i++)
        add_network(&w, i);
    for (unsigned i = 0; i < N_NODES; i++) {
        add_node(&w, i);
        move_node(&w, i);
    }
    for (unsigned i = 0; i < N_STEPS; i++)
        step(&w);
    check_coverage(&w);
    w.router = router_free(w.router);
}

static void test_random(void **state)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        print_message("seed %u\n", (unsigned)seed);
        run(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
