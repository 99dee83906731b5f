/*
 * identity.h - the static identities of a handshake: our own, and a peer's with what must be
 * remembered about it from one handshake to the next.
 *
 * Threads: the control thread only; it alone runs handshakes.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "crypto/x25519.h"
#include "noise/profile.h"
#include "noise/tai64n.h"

/** Our own. */
struct noise_local {
    struct x25519_secret secret; /* clamped; all zeroes without a key */
    struct x25519_public public; /* derived; all zeroes without a key */
    bool has_key;                /* without one no handshake is made or answered */
};

/**
 * noise_local_set() - take on an identity
 * @secret:	copied and clamped; all zeroes means none
 *
 * Every noise_remote must then be told, with noise_remote_set_local(), and
 * every cookie_checker, with cookie_checker_set_key().
 */
void noise_local_set(struct noise_local *local, const struct x25519_secret *secret);

/** A preshared key of both sides, mixed into the handshake; all zeroes is "none" (5.4). */
struct noise_psk {
    uint8_t b[32];
};

struct noise_remote {
    const struct noise_profile *profile; /* pins: what we initiate with, and always answer to */
    bool takes_any;                      /* we answer to any other profile of its, too */
    struct x25519_public public;         /* its identity */
    struct noise_psk psk;                /* all zeroes without one; the next handshake has it */
    struct x25519_shared static_static;  /* DH of both static keys, computed once */
    bool has_static_static;              /* false: we have no key, or its point is refused */
    bool has_consumed;                   /* consumed_at is meaningful */
    struct tai64n sent;                  /* greatest timestamp that we sent */
    struct tai64n received;              /* greatest that it sent: older ones are replays (5.1) */
    nsec_t consumed_at;                  /* when its last initiation was taken in */
};

/** noise_remote_init() - @remote becomes the peer with key @public, as seen from @local. */
void noise_remote_init(struct noise_remote *remote, const struct noise_profile *profile,
    const struct noise_local *local, const struct x25519_public *public);

/** noise_remote_set_choice() - takes effect with the next handshake. */
void noise_remote_set_choice(struct noise_remote *remote, struct noise_choice choice);

/** noise_remote_choice() - as set. */
struct noise_choice noise_remote_choice(const struct noise_remote *remote);

/** noise_remote_set_local() - our own key has changed: compute the static-static secret anew. */
void noise_remote_set_local(struct noise_remote *remote, const struct noise_local *local);

/** noise_remote_set_public() - it goes on under another key: all that is remembered of it stays. */
void noise_remote_set_public(struct noise_remote *remote, const struct noise_local *local,
    const struct x25519_public *public);

/**
 * noise_remote_under() - @remote, for one handshake under other keys than its own
 * @local:	our identity in that handshake
 * @public:	its identity in that handshake
 *
 * For ends that change their keys, and answer under two for that time. Costs a Diffie-Hellman.
 * After the handshake: noise_remote_remember(), and wipe it.
 */
void noise_remote_under(struct noise_remote *ret, const struct noise_remote *remote,
    const struct noise_local *local, const struct x25519_public *public);

/** noise_remote_remember() - @used, of noise_remote_under(), has begun or answered a handshake: its
 * timestamps are those of @remote, whose clock is one, whatever key it speaks under. */
void noise_remote_remember(struct noise_remote *remote, const struct noise_remote *used);
