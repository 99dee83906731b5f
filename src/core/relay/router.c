/* router.c - making a router, and the verdict on what goes by lease; see router.h. */
#include "router.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "relay/router_internal.h"

#define LEASES_MAX      (1u << 20)
#define LEASES_PER_NODE (1u << 14)

/* Most leases given back in one turn: some milliseconds, in which the workers wait. */
#define EXPIRE_MAX 8192

int router_new(struct router **ret, const struct router_options *opt)
{
    struct router *r = calloc(1, sizeof(*r));

    if (!r)
        return -ENOMEM;
    r->workers = calloc(opt->n_workers, sizeof(*r->workers));
    if (!r->workers) {
        free(r);
        return -ENOMEM;
    }
    r->n_workers = opt->n_workers;
    r->leases_per_node = opt->leases_per_node > 0 ? opt->leases_per_node : LEASES_PER_NODE;
    for (unsigned i = 0; i < r->n_workers; i++)
        (void)pthread_mutex_init(&r->workers[i].lock, NULL);
    (void)pthread_mutex_init(&r->changing, NULL);
    lease_table_init(
        &r->leases, hash_u64(opt->seed, 0), opt->leases_max > 0 ? opt->leases_max : LEASES_MAX);
    htab_init(&r->by_remote, hash_u64(opt->seed, 1));
    htab_init(&r->blocks, hash_u64(opt->seed, 2));
    list_init(&r->networks);
    *ret = r;
    return 0;
}

struct router *router_free(struct router *r)
{
    if (!r)
        return NULL;
    while (!list_is_empty(&r->networks))
        router_network_remove(r, list_first(&r->networks, struct router_network, in_router));
    lease_table_deinit(&r->leases);
    htab_deinit(&r->by_remote);
    htab_deinit(&r->blocks);
    for (unsigned i = 0; i < r->n_workers; i++)
        (void)pthread_mutex_destroy(&r->workers[i].lock);
    (void)pthread_mutex_destroy(&r->changing);
    free(r->workers);
    free(r);
    return NULL;
}

void router_expire(struct router *r, nsec_t now)
{
    (void)pthread_mutex_lock(&r->changing);
    router__begin_write(r);
    lease_expire(&r->leases, now, EXPIRE_MAX);
    router__end_write(r);
    (void)pthread_mutex_unlock(&r->changing);
}

unsigned router_n_leases(struct router *r)
{
    unsigned n;

    (void)pthread_mutex_lock(&r->changing);
    n = r->leases.n;
    (void)pthread_mutex_unlock(&r->changing);
    return n;
}

/* ---- which pairs send most ---- */

/* Rates of pairs are smoothed over this time. */
#define SMOOTH (4 * NSEC_PER_SEC)

static void take_rate(struct lease_pair *pair, nsec_t passed)
{
    uint64_t bytes = atomic_load_explicit(&pair->bytes, memory_order_relaxed);
    double now = (double)(bytes - pair->sampled) * 8 * (double)NSEC_PER_SEC / (double)passed;
    double weight = (double)passed / (double)(passed + SMOOTH);
    double rate = (double)pair->rate + (now - (double)pair->rate) * weight;

    pair->sampled = bytes;
    pair->rate = rate > 0 ? (uint64_t)rate : 0;
}

/* Among the heaviest, if it is one of them. Return: how many these are now. */
static unsigned insert_pair(
    struct relay_pair ret[static RELAY_LINE_PAIRS_MAX], unsigned n, const struct lease_pair *pair)
{
    const struct x25519_public *a = &router__node_of(pair->parties[0])->public;
    const struct x25519_public *b = &router__node_of(pair->parties[1])->public;
    bool in_order = x25519_public_compare(a, b) < 0;
    unsigned at = n;

    while (at > 0 && ret[at - 1].rate < pair->rate)
        at--;
    if (at == RELAY_LINE_PAIRS_MAX)
        return n;
    if (n < RELAY_LINE_PAIRS_MAX)
        n++;
    memmove(&ret[at + 1], &ret[at], (n - at - 1) * sizeof(*ret));
    ret[at] =
        (struct relay_pair){.keys = {in_order ? *a : *b, in_order ? *b : *a}, .rate = pair->rate};
    return n;
}

unsigned router_sample_pairs(
    struct router *r, nsec_t now, struct relay_pair ret[static RELAY_LINE_PAIRS_MAX])
{
    struct htab_link *link = NULL;
    size_t cursor = 0;
    unsigned n = 0;
    nsec_t passed;

    (void)pthread_mutex_lock(&r->changing);
    passed = r->sampled_at == 0 ? NSEC_PER_SEC : nsec_max(now - r->sampled_at, 1);
    r->sampled_at = now;
    while ((link = htab_each(&r->leases.pairs, &cursor, link))) {
        struct lease_pair *pair = container_of(link, struct lease_pair, by_ids);

        take_rate(pair, passed);
        if (pair->rate > 0)
            n = insert_pair(ret, n, pair);
    }
    (void)pthread_mutex_unlock(&r->changing);
    return n;
}

bool router_is_leased(struct router *r, const struct router_node *node, uint32_t index, nsec_t now)
{
    bool is_leased;

    (void)pthread_mutex_lock(&r->changing);
    is_leased = lease_find(&r->leases, &node->leases, index, now) != NULL;
    (void)pthread_mutex_unlock(&r->changing);
    return is_leased;
}

/* The lease that some node at @in's source holds for @index. Under the worker's lock. */
static const struct lease *find_lease(
    const struct router *r, const struct router_arrival *in, uint32_t index, bool is_data)
{
    struct router_node *sender = router__sender(r, &in->from, UINT64_MAX);

    for (; sender; sender = router__sender(r, &in->from, sender->claimed)) {
        const struct lease *l = lease_find(&r->leases, &sender->leases, index, in->now);

        if (l && (!is_data || l->state == LEASE_STATE_ESTABLISHED))
            return l;
    }
    return NULL;
}

/* Data and cookie replies: by lease alone. */
static struct router_verdict route_by_lease(
    struct router *r, const struct router_arrival *in, uint32_t index, bool is_data)
{
    struct router_worker *worker = &r->workers[in->worker];
    struct router_verdict verdict = router__pass();
    const struct lease *l;
    bool is_sender_known = true;

    (void)pthread_mutex_lock(&worker->lock);
    l = find_lease(r, in, index, is_data);
    if (l) {
        verdict = router__forward(router__node_of(l->to));
        (void)atomic_fetch_add_explicit(&l->pair->bytes, in->bytes, memory_order_relaxed);
    } else {
        is_sender_known = router__sender(r, &in->from, UINT64_MAX) != NULL;
    }
    (void)pthread_mutex_unlock(&worker->lock);
    return l ? verdict : router__unclaimed(in, is_sender_known, index);
}

struct router_verdict router_route(
    struct router *r, const struct router_arrival *in, const uint8_t *msg, size_t len)
{
    union {
        struct wg_initiation initiation;
        struct wg_response response;
        struct wg_cookie_reply cookie;
        struct wg_data data;
    } m;

    switch (wg_type_of(msg, len)) {
    case WG_TYPE_INITIATION:
        memcpy(&m.initiation, msg, sizeof(m.initiation));
        return router__on_initiation(r, in, &m.initiation);
    case WG_TYPE_RESPONSE:
        memcpy(&m.response, msg, sizeof(m.response));
        return router__on_response(r, in, &m.response);
    case WG_TYPE_COOKIE_REPLY:
        memcpy(&m.cookie, msg, sizeof(m.cookie));
        return route_by_lease(r, in, le32_get(m.cookie.receiver), false);
    case WG_TYPE_DATA:
        memcpy(&m.data, msg, sizeof(m.data));
        return route_by_lease(r, in, le32_get(m.data.receiver), true);
    }
    return router__pass();
}
