/*
 * stun_server.h - when a STUN request is answered: docs/wire/stun.md.
 *
 * The encoding is wire/stun.h's. Somebody who forges source addresses must gain nothing by the
 * answers: so one that is longer than its request, or goes to another port (RFC 5780 section 7.5),
 * is rate-limited by source.
 *
 * Threads: each worker has a server of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "filter/stun_heard.h"
#include "noise/ratelimit.h"

struct port_tx;
struct udp_run;

struct stun_server {
    struct ratelimit limited; /* of answers that are longer than their requests, or go elsewhere */
    struct stun_heard heard;  /* requests that could be read, answered or not */
    _Atomic uint64_t n_answers; /* for metrics */
};

/** stun_server_init() - @seed: random, unknown to strangers. 0 or -ENOMEM. */
int stun_server_init(struct stun_server *s, uint64_t seed);

/** stun_server_deinit() - release. Idempotent. */
void stun_server_deinit(struct stun_server *s);

/**
 * stun_server_take() - answer a STUN request, or drop it with a reason
 *
 * Threads: the server's worker, in the port's filter.
 *
 * Return: false when @run is no STUN request.
 */
bool stun_server_take(struct stun_server *s, struct port_tx *tx, const struct udp_run *run);
