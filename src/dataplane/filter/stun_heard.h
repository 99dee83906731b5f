/*
 * stun_heard.h - which STUN requests have arrived of late, by their transactions.
 *
 * A node whose request stays unanswered cannot know which way it was lost. So it
 * asks over the stream in TLS whether this transaction was heard
 * (GET /v1/heard/TRANSACTION): a random number of 96 bits that nobody else knows.
 * A flood of requests drives older ones out. A node that asks is then told that it
 * was not heard, which is what it would assume without asking.
 *
 * Threads: a worker writes, the loop asks.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/addr.h"
#include "base/clock.h"
#include "wire/stun.h"

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

/** stun_heard_deinit() - release. Idempotent. */
void stun_heard_deinit(struct stun_heard *h);

/** stun_heard_add() - a request has come from @from. */
void stun_heard_add(struct stun_heard *h, const struct stun_transaction *id,
    const struct endpoint *from, nsec_t now);

/** stun_heard_find() - has it? @ret is set when it has. */
bool stun_heard_find(
    struct stun_heard *h, const struct stun_transaction *id, struct stun_hearing *ret);
