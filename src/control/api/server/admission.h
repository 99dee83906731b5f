/*
 * admission.h - bounds how many connections there are at once, in all and by address.
 *
 * An IPv6 site has 2^64 addresses, so there the first 64 bits count as one.
 * Clients of a unix socket have no address, and only the bound in all is for them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/htab.h"

/** Who is inside. */
struct admission {
    unsigned max;            /* at once */
    unsigned max_by_address; /* at once from one address */
    unsigned n;              /* now */
    struct htab sources;     /* owns struct source: those that hold at least one */
};

/** admission_init() - @seed: random, unknown to strangers. */
void admission_init(struct admission *a, unsigned max, unsigned max_by_address, uint64_t seed);

/** admission_deinit() - forget everybody. Idempotent. */
void admission_deinit(struct admission *a);

/** admission_enter() - one more from @from; false when that would be too many. */
bool admission_enter(struct admission *a, const struct ip_addr *from);

/** admission_leave() - one from @from has ended, for which admission_enter() was true. */
void admission_leave(struct admission *a, const struct ip_addr *from);

/** admission_block() - the block of addresses that counts as one: /32 of v4, /64 of v6. */
struct ip_addr admission_block(const struct ip_addr *from);
