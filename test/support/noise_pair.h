/*
 * noise_pair.h - two sides that shake hands, for the tests of noise/.
 *
 * The calls of handshake.h with fixed indices, and assertions where nothing else can come out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/secret.h"
#include "noise/cookie.h"
#include "noise/handshake.h"
#include "noise/keypair.h"

#define WALL (1790000000 * NSEC_PER_SEC)

/* One side. */
struct side {
    struct noise_local local;
    struct noise_remote remote; /* the other side */
    struct handshake hs;
    struct cookie_maker maker;
};

/* Two sides that know each other, and a random source. */
struct pair {
    struct side i; /* initiator */
    struct side r; /* responder */
    uint64_t seed;
    struct rng rng;
};

/** pair_init() - new keys, drawn from @seed; both sides choose plain WireGuard. */
void pair_init(struct pair *p, uint64_t seed);

/** The steps of a handshake, in order; each returns what handshake.h's function does. */
int create_initiation(struct pair *p, nsec_t wall, struct wg_initiation *ret);
int take_initiation(struct pair *p, const struct wg_initiation *msg, nsec_t now);
int create_response(struct pair *p, struct wg_response *ret);
int take_response(struct pair *p, const struct wg_response *msg);

/** chacha() - the back end that is always there. */
const struct aead_algorithm *chacha(void);

/** talks() - does a data message of @from open under @to? */
bool talks(struct keypair *from, struct keypair *to);
