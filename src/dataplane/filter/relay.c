/* relay.c - see relay.h. */
#include "filter/relay.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "filter/stun_server.h"
#include "relay/router.h"
#include "shared/port_tx.h"

/** What a worker has to itself; no two share a cache line. */
struct relay_worker {
    _Alignas(64) struct stun_server stun;
    _Atomic uint64_t packets; /* forwarded; written by the worker only */
    _Atomic uint64_t bytes;   /* likewise */
};

struct relay {
    struct router *router;        /* owns */
    struct relay_worker *workers; /* owns n_workers */
    unsigned n_workers;
};

int relay_new(struct relay **ret, unsigned n_workers, const struct rng *rng)
{
    struct router_options opt = {.n_workers = n_workers, .seed = rng_u64(rng)};
    struct relay *r = calloc(1, sizeof(*r));

    if (!r)
        return -ENOMEM;
    r->workers = aligned_alloc(_Alignof(struct relay_worker), n_workers * sizeof(*r->workers));
    if (!r->workers || router_new(&r->router, &opt) != 0) {
        free(r->workers);
        free(r);
        return -ENOMEM;
    }
    memset(r->workers, 0, n_workers * sizeof(*r->workers));
    for (unsigned i = 0; i < n_workers; i++) {
        if (stun_server_init(&r->workers[i].stun, rng_u64(rng)) != 0) {
            (void)relay_free(r);
            return -ENOMEM;
        }
        r->n_workers++;
        atomic_init(&r->workers[i].packets, 0);
        atomic_init(&r->workers[i].bytes, 0);
    }
    *ret = r;
    return 0;
}

struct relay *relay_free(struct relay *r)
{
    if (!r)
        return NULL;
    for (unsigned i = 0; i < r->n_workers; i++)
        stun_server_deinit(&r->workers[i].stun);
    r->router = router_free(r->router);
    free(r->workers);
    free(r);
    return NULL;
}

struct router *relay_router(struct relay *r)
{
    return r->router;
}

/* Only its worker writes, hence no read-modify-write. */
static void count(_Atomic uint64_t *n, uint64_t more)
{
    atomic_store_explicit(
        n, atomic_load_explicit(n, memory_order_relaxed) + more, memory_order_relaxed);
}

static bool is_local_index(void *ctx, uint32_t index)
{
    return port_tx_has_index(ctx, index);
}

static void forward(struct relay_worker *w, struct port_tx *tx, const struct udp_run *run,
    const struct router_verdict *v)
{
    struct udp_run out = *run;

    out.path = (struct udp_path){.remote = v->to, .local = v->local, .ifindex = v->to.scope};
    port_tx_send(tx, &out);
    count(&w->packets, udp_run_count(run));
    count(&w->bytes, run->len);
}

bool relay_filter(void *ctx, struct port_tx *tx, const struct udp_run *run)
{
    struct relay *r = ctx;
    struct router_arrival in = {.from = run->path.remote,
        .now = port_tx_now(tx),
        .worker = port_tx_worker(tx),
        .is_local = is_local_index,
        .ctx = tx};
    struct relay_worker *w = &r->workers[in.worker];
    struct router_verdict v;

    if (stun_server_take(&w->stun, tx, run))
        return true;
    v = router_route(r->router, &in, run->buf, run->seg < run->len ? run->seg : run->len);
    switch (v.action) {
    case ROUTER_ACTION_PASS:
        return false;
    case ROUTER_ACTION_FORWARD:
        forward(w, tx, run, &v);
        return true;
    case ROUTER_ACTION_DROP:
        port_tx_drop(tx, v.reason, udp_run_count(run));
        return true;
    }
    return false;
}

void relay_read_counts(const struct relay *r, struct relay_counts *ret)
{
    struct relay_counts sum = {0};

    for (unsigned i = 0; i < r->n_workers; i++) {
        const struct relay_worker *w = &r->workers[i];

        sum.packets += atomic_load_explicit(&w->packets, memory_order_relaxed);
        sum.bytes += atomic_load_explicit(&w->bytes, memory_order_relaxed);
        sum.stun_answers += atomic_load_explicit(&w->stun.n_answers, memory_order_relaxed);
    }
    *ret = sum;
}

bool relay_find_heard(struct relay *r, const struct stun_transaction *id, struct stun_hearing *ret)
{
    for (unsigned i = 0; i < r->n_workers; i++)
        if (stun_heard_find(&r->workers[i].stun.heard, id, ret))
            return true;
    return false;
}
