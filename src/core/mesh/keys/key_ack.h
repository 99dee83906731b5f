/*
 * key_ack.h - a member tells another one, by way of a hub, that it has taken its next key.
 *
 * The hub carries it and cannot make it: it is a MAC by the Diffie-Hellman of the member's key and
 * the next key that is acknowledged. Only the two ends have that.
 *
 * Spec: docs/wire/keys.md. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "crypto/x25519.h"

/** What is acknowledged, when it is on the member's disk. The numbers are those on the wire. */
enum key_ack_level {
    KEY_ACK_NONE,         /* nothing */
    KEY_ACK_KNOWN = 1,    /* it takes handshakes under the key */
    KEY_ACK_BELIEVED = 2, /* it calls by the key, and has dropped the one before */
};

struct key_ack {
    uint8_t mac[32]; /* compared in constant time */
};

/**
 * key_ack_make() - by the member
 * @own:	its secret
 * @acknowledged:	the other one's next key
 *
 * Return: false when @acknowledged is a key that nobody can have, or there is no memory.
 */
bool key_ack_make(struct key_ack *ret, enum key_ack_level level, const struct x25519_secret *own,
    const struct x25519_public *acknowledged);

/**
 * key_ack_verify() - what has the member acknowledged?
 * @next:	the secret of the key in question
 * @member:	the member's key; while it changes its own, the caller tries both
 */
enum key_ack_level key_ack_verify(const struct key_ack *ack, const struct x25519_secret *next,
    const struct x25519_public *member);
