/*
 * limiter.h - how often one source may fail.
 *
 * A token bucket for each source, in a table of bounded size: when it is full,
 * the source that failed longest ago is forgotten. Pure: time is an argument.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/htab.h"
#include "base/list.h"

/** How many failures are allowed at once, and how long it takes until one more is allowed. */
#define LIMITER_BURST 10
#define LIMITER_EACH  (6 * NSEC_PER_SEC)

/** How many sources are remembered. */
#define LIMITER_SOURCES_MAX 4096

struct limiter {
    struct htab sources; /* owns struct limited, by block of addresses */
    struct list by_age;  /* the same; who failed longest ago is first */
};

/** limiter_init() - @seed: random, unknown to strangers. */
void limiter_init(struct limiter *l, uint64_t seed);

/** limiter_deinit() - forget everybody. Idempotent. */
void limiter_deinit(struct limiter *l);

/** limiter_allows() - may @from try? An address of none always may. */
bool limiter_allows(const struct limiter *l, const struct ip_addr *from, nsec_t now);

/** limiter_failed() - @from tried and failed. */
void limiter_failed(struct limiter *l, const struct ip_addr *from, nsec_t now);
