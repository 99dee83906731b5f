/*
 * handshake.h - Noise_IKpsk2 as WireGuard uses it: two messages, then a keypair.
 *
 * Theory of operation. A `struct handshake` holds what must survive between the
 * two messages, and nothing in between handshakes. Each peer has one, for those
 * that we begin. One that we answer is over with the answer, so it gets one of its
 * own for that moment: had it the peer's, two ends that begin at the same time
 * would each forget what the other is about to answer.
 *
 *   initiator                                responder
 *   create_initiation    ── initiation ──>   open_initiation: whose is it?
 *   (INITIATION_CREATED)                     consume_initiation
 *                                            (INITIATION_CONSUMED)
 *                                            create_response
 *   consume_response     <── response ───    (RESPONSE_CREATED)
 *   (RESPONSE_CONSUMED)                      derive: the keypair, waiting for data
 *   derive: the keypair, in use              (NONE)
 *   (NONE)
 *
 * create_initiation and consume_initiation may come in any state and begin
 * anew; every other call is refused outside its state. A failed call leaves the
 * handshake as it was. The MACs at the end of both messages are cookie.h's.
 *
 * Spec: whitepaper 5.4.2, 5.4.3, 5.4.5.
 * Threads: control thread only, all of it.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "crypto/aead.h"
#include "crypto/hash.h"
#include "crypto/x25519.h"
#include "noise/identity.h"
#include "noise/profile.h"
#include "wire/wg.h"

struct keypair;

enum handshake_state {
    HANDSHAKE_STATE_NONE,
    HANDSHAKE_STATE_INITIATION_CREATED,
    HANDSHAKE_STATE_INITIATION_CONSUMED,
    HANDSHAKE_STATE_RESPONSE_CREATED,
    HANDSHAKE_STATE_RESPONSE_CONSUMED,
};

struct handshake {
    enum handshake_state state;
    const struct noise_profile *profile;   /* pins: of this handshake */
    uint32_t local_index;                  /* ours, drawn by the caller; valid unless NONE */
    uint32_t remote_index;                 /* theirs; valid once a message was consumed */
    struct x25519_secret ephemeral;        /* ours; from creating a message until derive */
    struct x25519_public remote_ephemeral; /* theirs; from consuming an initiation on */
    struct blake2s_digest chaining_key;    /* C of the whitepaper */
    struct blake2s_digest hash;            /* H of the whitepaper */
};

/* Outcomes; none of them says more to a stranger than silence. */
#define HANDSHAKE_E_NO_KEY  1 /* we have no private key, or the peer's key is refused */
#define HANDSHAKE_E_INVALID 2 /* does not decrypt, a refused point, or no memory */
#define HANDSHAKE_E_REPLAY  3 /* an initiation whose timestamp is not newer than the last one */
#define HANDSHAKE_E_FLOOD   4 /* initiations of this peer come too fast */
#define HANDSHAKE_E_STATE   5 /* not expected now: a response to nothing, or a second one */
#define HANDSHAKE_E_PROFILE 6 /* authentic, but under a profile that this peer may not use */

/** An initiation whose sender is known, but that is not yet taken in; wipe after use. */
struct handshake_incoming {
    const struct noise_profile *profile;   /* pins: that it was made under */
    struct x25519_public public;           /* the initiator's static key: look the peer up by it */
    struct x25519_public remote_ephemeral; /* of this message */
    uint32_t remote_index;                 /* of this message */
    struct blake2s_digest chaining_key;    /* after the static key was opened */
    struct blake2s_digest hash;            /* after the static key was opened */
    uint8_t encrypted_timestamp[WG_TIMESTAMP_SIZE + WG_TAG_SIZE];
};

/** handshake_clear() - wipe; as new. Also the initialiser. */
void handshake_clear(struct handshake *hs);

/**
 * handshake_create_initiation() - begin a handshake, whatever there was before
 * @hs:		its old local_index, if any, is no longer in use
 * @remote:	its profile is used; its last sent timestamp advances
 * @index:	our index for it, random, not in use by any keypair or handshake
 * @wall:	time since 1970
 * @ret:	complete but for the macs: see cookie_add_macs()
 *
 * Return: 0, HANDSHAKE_E_NO_KEY or HANDSHAKE_E_INVALID (no memory).
 */
int handshake_create_initiation(struct handshake *hs, const struct noise_local *local,
    struct noise_remote *remote, uint32_t index, nsec_t wall, const struct rng *rng,
    struct wg_initiation *ret);

/**
 * handshake_open_initiation() - find out who sent an initiation
 * @profiles:	those that it may be made under, @n of them; none is told by the message itself
 * @msg:	of the right size, mac1 verified
 *
 * Costs one Diffie-Hellman, and a decryption for each profile that does not fit. The sender has not
 * proved yet that the key is its own: that is handshake_consume_initiation().
 *
 * Return: 0, HANDSHAKE_E_NO_KEY or HANDSHAKE_E_INVALID.
 */
int handshake_open_initiation(const struct noise_local *local,
    const struct noise_profile *const *profiles, size_t n, const struct wg_initiation *msg,
    struct handshake_incoming *ret);

/**
 * handshake_consume_initiation() - authenticate an opened initiation and take it in
 * @hs:		of the peer that @in->public names; its old local_index, if any, is no longer in use
 * @remote:	of the same peer; remembers the timestamp
 * @in:		from handshake_open_initiation()
 * @now:	monotonic, for the limit of WG_INITIATIONS_PER_SECOND
 *
 * An initiation under a profile that @remote may not use is not taken in, but
 * its timestamp is remembered: whoever sends it again gets HANDSHAKE_E_REPLAY.
 *
 * Return: 0, HANDSHAKE_E_NO_KEY, HANDSHAKE_E_INVALID, HANDSHAKE_E_REPLAY, HANDSHAKE_E_FLOOD or
 * HANDSHAKE_E_PROFILE.
 */
int handshake_consume_initiation(struct handshake *hs, struct noise_remote *remote,
    const struct handshake_incoming *in, nsec_t now);

/**
 * handshake_create_response() - answer the initiation that was consumed last
 * @index:	our index for the keypair to come, as for handshake_create_initiation()
 * @ret:	complete but for the macs
 *
 * Return: 0, HANDSHAKE_E_STATE or HANDSHAKE_E_INVALID.
 */
int handshake_create_response(struct handshake *hs, const struct noise_remote *remote,
    uint32_t index, const struct rng *rng, struct wg_response *ret);

/**
 * handshake_consume_response() - authenticate the answer to our initiation and take it in
 * @hs:		the one whose local_index the message names as its receiver
 *
 * Return: 0, HANDSHAKE_E_STATE or HANDSHAKE_E_INVALID.
 */
int handshake_consume_response(struct handshake *hs, const struct noise_local *local,
    const struct noise_remote *remote, const struct wg_response *msg);

/**
 * handshake_derive() - turn a finished handshake into a keypair
 * @alg:	a back end of the profile's transport cipher
 * @owner:	for the keypair's field of that name
 * @ret:	gives a keypair with one reference, for keypairs_add(); it inherits local_index
 *
 * Wipes @hs on success.
 *
 * Return: 0, HANDSHAKE_E_STATE or -ENOMEM.
 */
int handshake_derive(struct handshake *hs, const struct aead_algorithm *alg, void *owner,
    nsec_t now, struct keypair **ret);
