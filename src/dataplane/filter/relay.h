/*
 * relay.h - the blind relay and STUN on a UDP port: a hub's, or that of a node that relays.
 *
 * Between port_tx.h, which hands over what arrives, and relay/router.h,
 * which decides. What is forwarded leaves from the buffer that it arrived in, as
 * many datagrams at once as arrived together, with the outer DSCP and ECN that
 * it had: the relay is one more router on the way.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "relay/line.h"
#include "wire/stun.h"

struct port_tx;
struct relay;
struct rng;
struct udp_run;

/*
 * Which STUN requests have arrived of late, by their transactions.
 *
 * A node whose request stays unanswered cannot know which way it was lost. So it
 * asks over the stream in TLS whether this transaction was heard
 * (GET /v1/heard/TRANSACTION): a random number of 96 bits that nobody else knows.
 * A flood of requests drives older ones out. A node that asks is then told that it
 * was not heard, which is what it would assume without asking.
 *
 * Threads: a worker writes, the loop asks.
 */

/** Requests that are remembered: at 10,000 nodes that ask every 30 s, for half a minute. */
#define STUN_HEARD_MAX 8192

/** One that has come. */
struct stun_hearing {
    struct stun_transaction id;
    struct endpoint from;
    nsec_t at; /* monotonic; 0: the place is free */
};

struct stun_heard {
    pthread_mutex_t lock;       /* of all of it; nothing else is taken inside */
    struct stun_hearing *items; /* owns STUN_HEARD_MAX; the oldest gives way */
    unsigned next;              /* place */
};

/** stun_heard_init() - 0 or -ENOMEM. */
int stun_heard_init(struct stun_heard *h);

/** stun_heard_deinit() - release. */
void stun_heard_deinit(struct stun_heard *h);

/** stun_heard_add() - a request has come from @from. */
void stun_heard_add(struct stun_heard *h, const struct stun_transaction *id,
    const struct endpoint *from, nsec_t now);

/** stun_heard_find() - has it? @ret is set when it has. */
bool stun_heard_find(
    struct stun_heard *h, const struct stun_transaction *id, struct stun_hearing *ret);

/* The relay. */

/** What has been done so far, by all workers. */
struct relay_counts {
    uint64_t packets;      /* forwarded */
    uint64_t bytes;        /* of them, without UDP and IP headers */
    uint64_t refused;      /* that were to be forwarded, and had no space in the send queue */
    uint64_t stun_answers; /* sent */
};

/** relay_new() - @n_workers: of the port that relay_filter() is set on. 0 or -ENOMEM. */
int relay_new(struct relay **ret, unsigned n_workers, const struct rng *rng);

/** relay_free() - after the port has stopped. */
struct relay *relay_free(struct relay *r);

/** relay_router() - for telling it about networks and nodes; lent. */
struct router *relay_router(struct relay *r);

/** relay_filter() - a port_filter_fn; @ctx: the relay. */
bool relay_filter(void *ctx, struct port_tx *tx, const struct udp_run *run);

/** relay_read_counts() - any thread; may lag by what is under way. */
void relay_read_counts(const struct relay *r, struct relay_counts *ret);

/*
 * Its line (relay/line.h). Threads: the owner's, one at a time.
 */

/** relay_set_line() - what it can carry in each direction, bit/s; 0: it is not known. @is_measured:
 * that was measured, and not said. */
void relay_set_line(struct relay *r, uint64_t rate, bool is_measured);

/** relay_tick() - each second: give back leases that are over, and take a sample of the line. */
void relay_tick(struct relay *r, nsec_t now);

/** relay_line() - how the line is, as of the last relay_tick(); lent. */
const struct relay_line *relay_line(const struct relay *r);

/** relay_find_heard() - has a STUN request of that id come of late? Any thread. */
bool relay_find_heard(struct relay *r, const struct stun_transaction *id, struct stun_hearing *ret);
