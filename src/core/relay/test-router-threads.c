/*
 * test-router-threads.c - several workers route while nodes come, go and move.
 *
 * For the thread sanitizer above all; but it also asserts that a session which
 * nobody touches loses nothing, whatever happens to the others meanwhile.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/secret.h"
#include "relay/router.h"
#include "test/support/router_sample.h"

#define N_WORKERS 3
#define N_NODES   8     /* 0 and 1 are left alone */
#define N_ROUNDS  10000 /* at least; and until every worker has seen enough */
#define N_ENOUGH  100   /* handshakes of each worker that passed */

struct world {
    struct router *router;
    struct router_network *net;
    struct router_node *nodes[N_NODES];
    _Atomic bool is_over;
};

struct worker {
    struct world *world;
    unsigned i;
    uint64_t n_lost;               /* datagrams of the quiet session that did not pass */
    _Atomic unsigned n_handshakes; /* that passed */
};

static bool is_local(void *ctx, uint32_t index)
{
    return false;
}

static void place(struct world *w, unsigned node, unsigned at)
{
    struct endpoint ep = sample_endpoint(at);
    struct ip_addr local = {{0}};

    router_node_set_address(w->router, w->nodes[node], &ep, &local);
}

static void add_node(struct world *w, unsigned i)
{
    struct x25519_public key = router_sample_key(i);

    assert_int_equal(router_node_add(&w->nodes[i], w->router, w->net, &key), 0);
    place(w, i, i);
}

static enum router_action route(
    struct world *w, unsigned worker, unsigned at, nsec_t now, const void *msg, size_t len)
{
    struct router_arrival in = {.from = sample_endpoint(at),
        .now = now,
        .bytes = len,
        .worker = worker,
        .is_local = is_local};

    return router_route(w->router, &in, msg, len).action;
}

/* One handshake between two nodes that may be gone by now, and data in its session. */
static void busy_session(struct worker *w, struct rng *rng, nsec_t now)
{
    unsigned a = 2 + rng_u32(rng) % (N_NODES - 2);
    unsigned b = 2 + rng_u32(rng) % (N_NODES - 2);
    uint32_t index = rng_u32(rng);
    struct x25519_public key_a = router_sample_key(a);
    struct x25519_public key_b = router_sample_key(b);
    struct wg_initiation initiation = sample_initiation(&key_b, index);
    struct wg_response response = sample_response(&key_a, index + 1, index);
    struct sample_data data = sample_data(index + 1);

    (void)route(w->world, w->i, a, now, &initiation, sizeof(initiation));
    if (route(w->world, w->i, b, now, &response, sizeof(response)) == ROUTER_ACTION_FORWARD)
        w->n_handshakes++;
    (void)route(w->world, w->i, a, now, &data, sizeof(data));
}

static void *work(void *arg)
{
    struct worker *w = arg;
    uint64_t state = w->i;
    struct rng rng = rng_seeded(&state);
    struct sample_data there = sample_data(11);
    struct sample_data back = sample_data(10);

    for (nsec_t now = 0; !w->world->is_over; now += NSEC_PER_MSEC) {
        w->n_lost += route(w->world, w->i, 0, 0, &there, sizeof(there)) != ROUTER_ACTION_FORWARD;
        w->n_lost += route(w->world, w->i, 1, 0, &back, sizeof(back)) != ROUTER_ACTION_FORWARD;
        busy_session(w, &rng, now);
    }
    return NULL;
}

static void disturb(struct world *w, struct rng *rng, unsigned round)
{
    unsigned i = 2 + rng_u32(rng) % (N_NODES - 2);
    unsigned k = 2 + (i - 1) % (N_NODES - 2);
    struct relay_pair pairs[RELAY_LINE_PAIRS_MAX];

    if (round % 16 == 0) {
        router_node_remove(w->router, w->nodes[i]);
        add_node(w, i);
    } else if (round % 8 == 0) {
        assert_int_equal(
            router_edge_set_blocked(w->router, w->nodes[i], w->nodes[k], round % 3 == 0), 0);
    } else if (round % 64 == 1) {
        router_expire(w->router, 0);
        (void)router_sample_pairs(w->router, (nsec_t)round + 1, pairs);
    } else {
        place(w, i, 2 + rng_u32(rng) % N_NODES);
    }
}

static bool have_seen_enough(const struct worker *workers)
{
    for (unsigned i = 0; i < N_WORKERS; i++)
        if (workers[i].n_handshakes < N_ENOUGH)
            return false;
    return true;
}

static void test_threads(void **state)
{
    struct router_options opt = {.n_workers = N_WORKERS, .seed = 3};
    static struct world w;
    static struct worker workers[N_WORKERS];
    pthread_t threads[N_WORKERS];
    struct x25519_public hub = router_sample_key(100);
    struct x25519_public keys[2] = {router_sample_key(0), router_sample_key(1)};
    struct wg_initiation initiation = sample_initiation(&keys[1], 10);
    struct wg_response response = sample_response(&keys[0], 11, 10);
    uint64_t rng_state = 5;
    struct rng rng = rng_seeded(&rng_state);

    assert_int_equal(router_new(&w.router, &opt), 0);
    assert_int_equal(router_network_add(&w.net, w.router, &hub), 0);
    for (unsigned i = 0; i < N_NODES; i++)
        add_node(&w, i);
    assert_int_equal(route(&w, 0, 0, 0, &initiation, sizeof(initiation)), ROUTER_ACTION_FORWARD);
    assert_int_equal(route(&w, 0, 1, 0, &response, sizeof(response)), ROUTER_ACTION_FORWARD);
    for (unsigned i = 0; i < N_WORKERS; i++) {
        workers[i].world = &w;
        workers[i].i = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned round = 0; round < N_ROUNDS || !have_seen_enough(workers); round++)
        disturb(&w, &rng, round);
    w.is_over = true;
    for (unsigned i = 0; i < N_WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].n_lost, 0);
    }
    w.router = router_free(w.router);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
