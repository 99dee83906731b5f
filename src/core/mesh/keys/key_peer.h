/*
 * key_peer.h - the keys under which a member takes another one, while that one changes its key.
 *
 * A peer has the key that is believed, and perhaps the next one, of which a statement was signed by
 * the first (key_statement.h). A handshake under either is taken. Only statements and what the
 * peer itself does under a key change them; the word of a hub alone never does, so that a hub which
 * lies can neither put a key in nor take the one away that a peer still uses.
 *
 * The old key goes when the peer has *initiated* under the next one: it has that on its disk then,
 * and never initiates under the old one again. An answer under the next key shows less: the peer
 * answers under both for a while. And it goes when there is a statement by the next key, since one
 * rotation only begins when that before it has ended.
 *
 * Who owns this writes it to disk after each change, and only then acknowledges the next key.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "crypto/x25519.h"
#include "mesh/keys/key_statement.h"

struct key_peer {
    struct x25519_public key;  /* believed */
    struct x25519_public next; /* by a statement; zeroes: none is known */
    bool calls_next;           /* handshakes to it go to the next key */
};

/** As key_chain_verify(), which is the one to be given. */
typedef int (*key_chain_verify_fn)(const struct x25519_public *trusted,
    const struct key_statement *chain, size_t n, const struct key_subject *subject,
    struct x25519_public *ret, struct err *e);

/**
 * key_peer_on_chain() - a hub shows statements of that peer
 * @chain:	@n of them, the newest last; as key_chain_verify() takes them
 *
 * What is known already changes nothing. The first statement of a key counts: another one by the
 * same key for another next one is refused, and shows that the key is in two hands.
 *
 * Return: 1: changed, write it; 0: nothing is new; -EINVAL with words: refused, nothing changed.
 */
int key_peer_on_chain(struct key_peer *p, const struct key_statement *chain, size_t n,
    const struct key_subject *subject, key_chain_verify_fn verify, struct err *e);

/**
 * key_peer_on_hub_key() - a hub shows a key as that peer's
 * @is_silent:	nothing authenticated came under the key believed for 3 min
 *
 * A peer that is silent is called under the next key from now on, if it is that. Nothing else
 * changes.
 *
 * Return: true: changed, write it.
 */
bool key_peer_on_hub_key(struct key_peer *p, const struct x25519_public *key, bool is_silent);

/**
 * key_peer_on_handshake() - one with that peer has succeeded
 * @key:	the peer's, under which
 * @is_initiator:	the peer has initiated it
 *
 * Return: true: changed, write it.
 */
bool key_peer_on_handshake(struct key_peer *p, const struct x25519_public *key, bool is_initiator);

/** key_peer_takes() - is a handshake under @key one of that peer? */
bool key_peer_takes(const struct key_peer *p, const struct x25519_public *key);

/** key_peer_calls() - the key that handshakes to it are addressed to. */
const struct x25519_public *key_peer_calls(const struct key_peer *p);

/** key_peer_newest() - the newest key that is known of it: which is to be acknowledged. */
const struct x25519_public *key_peer_newest(const struct key_peer *p);
