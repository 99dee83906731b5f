/*
 * rdzv_members.h - the overlay addresses that may connect to a network's jobs.
 *
 * The hub says which they are.
 *
 * Threads: the process has one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/htab.h"

/** The addresses. */
struct rdzv_members {
    struct htab by_address; /* owns struct rdzv_member */
};

/** rdzv_members_init() - nobody; @seed: random, unknown to strangers. */
void rdzv_members_init(struct rdzv_members *m, uint64_t seed);

/** rdzv_members_deinit() - forget all of them. Idempotent. */
void rdzv_members_deinit(struct rdzv_members *m);

/** rdzv_members_add() - @address may connect. Without memory it may not; adding it twice is fine.
 */
void rdzv_members_add(struct rdzv_members *m, const struct ip_addr *address);

/** rdzv_members_remove() - @address may not connect any more. Fine if it is none. */
void rdzv_members_remove(struct rdzv_members *m, const struct ip_addr *address);

/** rdzv_members_has() - may @address connect? */
bool rdzv_members_has(const struct rdzv_members *m, const struct ip_addr *address);
