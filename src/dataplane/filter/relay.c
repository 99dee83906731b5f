/* relay.c - see relay.h. */
#include "filter/relay.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/drop.h"
#include "base/rate.h"
#include "base/secret.h"
#include "relay/router.h"
#include "shared/index.h"
#include "shared/port_tx.h"
#include "wire/stun.h"

/* ---- requests that were heard ---- */

int stun_heard_init(struct stun_heard *h)
{
    *h = (struct stun_heard){.items = calloc(STUN_HEARD_MAX, sizeof(*h->items))};
    if (!h->items)
        return -ENOMEM;
    (void)pthread_mutex_init(&h->lock, NULL);
    return 0;
}

void stun_heard_deinit(struct stun_heard *h)
{
    if (!h->items)
        return;
    (void)pthread_mutex_destroy(&h->lock);
    free(h->items);
    h->items = NULL;
}

void stun_heard_add(struct stun_heard *h, const struct stun_transaction *id,
    const struct endpoint *from, nsec_t now)
{
    (void)pthread_mutex_lock(&h->lock);
    h->items[h->next] = (struct stun_hearing){.id = *id, .from = *from, .at = now};
    h->next = (h->next + 1) % STUN_HEARD_MAX;
    (void)pthread_mutex_unlock(&h->lock);
}

/* A walk over all of them, some microseconds, for a question that is seldom asked. */
bool stun_heard_find(
    struct stun_heard *h, const struct stun_transaction *id, struct stun_hearing *ret)
{
    bool found = false;

    (void)pthread_mutex_lock(&h->lock);
    for (unsigned i = 0; i < STUN_HEARD_MAX && !found; i++) {
        found = h->items[i].at != 0 && memcmp(&h->items[i].id, id, sizeof(*id)) == 0;
        if (found)
            *ret = h->items[i];
    }
    (void)pthread_mutex_unlock(&h->lock);
    return found;
}

/* ---- answers to STUN ---- */

/*
 * When a STUN request is answered: docs/wire/stun.md.
 *
 * Somebody who forges source addresses must gain nothing by the answers: so one that is longer than
 * its request, or goes to another port (RFC 5780 section 7.5), is rate-limited by source. Each
 * worker has a server of its own.
 */
struct stun_server {
    struct ratelimit limited; /* of answers that are longer than their requests, or go elsewhere */
    struct stun_heard heard;  /* requests that could be read, answered or not */
    _Atomic uint64_t n_answers; /* for metrics */
};

/* An answer to another port than the one that asked is always limited, and never longer than its
 * request. */
static bool stun_may_answer(struct stun_server *s, const struct stun_request *req,
    const struct udp_run *reply, const struct udp_run *run, nsec_t now)
{
    if (reply->len <= run->len && req->response_port == 0)
        return true;
    if (reply->len > run->len && req->response_port != 0)
        return false;
    return ratelimit_allow(&s->limited, &run->path.remote.addr, now);
}

static void stun_answer(struct stun_server *s, struct port_tx *tx, const struct udp_run *run,
    const struct stun_request *req)
{
    uint8_t *out = tx->space + tx->space_used;
    struct udp_run reply = {.buf = out, .path = run->path};

    stun_heard_add(&s->heard, &req->id, &run->path.remote, tx->now);
    if (STUN_ANSWER_MAX > PORT_TX_SPACE - tx->space_used) {
        drop_count(tx->drops, DROP_NO_BUFFER, 1);
        return;
    }
    tx->space_used += STUN_ANSWER_MAX;
    reply.len = (uint32_t)stun_encode_answer(req, &run->path.remote, out);
    reply.seg = (uint16_t)reply.len;
    if (!stun_may_answer(s, req, &reply, run, tx->now)) {
        drop_count(tx->drops, DROP_STUN_RATE_LIMITED, 1);
        return;
    }
    if (req->response_port != 0 && req->n_unknown == 0)
        reply.path.remote.port = req->response_port;
    udp_outbox_add(&tx->out, tx->sockets, &reply);
    atomic_fetch_add_explicit(&s->n_answers, 1, memory_order_relaxed);
}

/* Answers a STUN request, or drops it with a reason; false when @run is none. On the server's
 * worker, in the port's filter. */
static bool stun_server_take(struct stun_server *s, struct port_tx *tx, const struct udp_run *run)
{
    struct stun_request req;

    if (!stun_is_request(run->buf, run->len))
        return false;
    if (stun_decode_request(&req, run->buf, run->len) == 0)
        stun_answer(s, tx, run, &req);
    else
        drop_count(tx->drops, DROP_STUN_INVALID, 1);
    return true;
}

/* ---- the relay ---- */

/** What a worker has to itself; no two share a cache line. */
struct relay_worker {
    _Alignas(64) struct stun_server stun;
    _Atomic uint64_t packets; /* forwarded; written by the worker only */
    _Atomic uint64_t bytes;   /* likewise */
    _Atomic uint64_t refused; /* likewise: that the kernel had no space for */
};

struct relay {
    struct router *router;        /* owns */
    struct relay_worker *workers; /* owns n_workers */
    unsigned n_workers;
    struct relay_line line; /* the owner's */
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
        struct relay_worker *w = &r->workers[i];

        ratelimit_init(&w->stun.limited, STUN_LIMIT_EACH, STUN_LIMIT_BURST, rng_u64(rng));
        atomic_init(&w->stun.n_answers, 0);
        if (stun_heard_init(&w->stun.heard) != 0) {
            (void)relay_free(r);
            return -ENOMEM;
        }
        r->n_workers++;
        atomic_init(&w->packets, 0);
        atomic_init(&w->bytes, 0);
        atomic_init(&w->refused, 0);
    }
    *ret = r;
    return 0;
}

struct relay *relay_free(struct relay *r)
{
    if (!r)
        return NULL;
    for (unsigned i = 0; i < r->n_workers; i++) {
        ratelimit_deinit(&r->workers[i].stun.limited);
        stun_heard_deinit(&r->workers[i].stun.heard);
    }
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
    const struct port_tx *tx = ctx;

    return index_is_used(tx->index, index);
}

bool relay_filter(void *ctx, struct port_tx *tx, const struct udp_run *run)
{
    struct relay *r = ctx;
    unsigned n = run->seg > 0 ? udp_run_count(run) : 1;
    struct router_arrival in = {.from = run->path.remote,
        .now = tx->now,
        .bytes = run->len + n * RELAY_LINE_HEADERS,
        .worker = tx->worker,
        .is_local = is_local_index,
        .ctx = tx};
    struct relay_worker *w = &r->workers[in.worker];
    struct udp_run out;
    struct router_verdict v;

    if (stun_server_take(&w->stun, tx, run))
        return true;
    v = router_route(r->router, &in, run->buf, run->seg < run->len ? run->seg : run->len);
    switch (v.action) {
    case ROUTER_ACTION_PASS:
        return false;
    case ROUTER_ACTION_FORWARD:
        out = *run;
        out.path = (struct udp_path){.remote = v.to, .local = v.local, .ifindex = v.to.scope};
        udp_outbox_add(&tx->out, tx->sockets, &out);
        count(&w->packets, n);
        count(&w->bytes, run->len);
        /* What was refused up to the batch before this one. */
        atomic_store_explicit(&w->refused, tx->out.n_full, memory_order_relaxed);
        return true;
    case ROUTER_ACTION_DROP:
        drop_count(tx->drops, v.reason, n);
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
        sum.refused += atomic_load_explicit(&w->refused, memory_order_relaxed);
        sum.stun_answers += atomic_load_explicit(&w->stun.n_answers, memory_order_relaxed);
    }
    *ret = sum;
}

/* ---- its line ---- */

void relay_set_line(struct relay *r, uint64_t rate, bool is_measured)
{
    r->line.capacity = rate;
    r->line.is_measured = is_measured;
}

const struct relay_line *relay_line(const struct relay *r)
{
    return &r->line;
}

/* Which pairs use it most is only asked where that may matter. */
static bool is_half_full(const struct relay_line *l)
{
    return l->capacity != 0 && l->rate >= l->capacity / 2;
}

void relay_tick(struct relay *r, nsec_t now)
{
    struct relay_sample sample = {.now = now};
    struct relay_counts counts;

    router_expire(r->router, now);
    relay_read_counts(r, &counts);
    sample.bytes = counts.bytes + counts.packets * RELAY_LINE_HEADERS;
    if (is_half_full(&r->line))
        sample.n_pairs = router_sample_pairs(r->router, now, sample.pairs);
    relay_line_take(&r->line, &sample);
}

bool relay_find_heard(struct relay *r, const struct stun_transaction *id, struct stun_hearing *ret)
{
    for (unsigned i = 0; i < r->n_workers; i++)
        if (stun_heard_find(&r->workers[i].stun.heard, id, ret))
            return true;
    return false;
}
