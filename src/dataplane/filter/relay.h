/*
 * relay.h - the blind relay and STUN on a UDP port: a hub's, or that of a node that relays.
 *
 * Between port_tx.h, which hands over what arrives, and relay/router.h,
 * which decides. What is forwarded leaves from the buffer that it arrived in, as
 * many datagrams at once as arrived together, with the outer DSCP and ECN that
 * it had: the relay is one more router on the way.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct port_tx;
struct relay;
struct rng;
struct router;
struct stun_hearing;
struct stun_transaction;
struct udp_run;

/** What has been done so far, by all workers. */
struct relay_counts {
    uint64_t packets;      /* forwarded */
    uint64_t bytes;        /* of them, without UDP and IP headers */
    uint64_t stun_answers; /* sent */
};

/** relay_new() - @n_workers: of the port that relay_filter() is set on. 0 or -ENOMEM. */
int relay_new(struct relay **ret, unsigned n_workers, const struct rng *rng);

/** relay_free() - after the port has stopped. NULL is fine. Returns NULL. */
struct relay *relay_free(struct relay *r);

/** relay_router() - for telling it about networks and nodes; lent. */
struct router *relay_router(struct relay *r);

/** relay_filter() - a port_filter_fn; @ctx: the relay. */
bool relay_filter(void *ctx, struct port_tx *tx, const struct udp_run *run);

/** relay_read_counts() - any thread; may lag by what is under way. */
void relay_read_counts(const struct relay *r, struct relay_counts *ret);

/** relay_find_heard() - has a STUN request of that id come of late? Any thread. */
bool relay_find_heard(struct relay *r, const struct stun_transaction *id, struct stun_hearing *ret);
