/*
 * measure_proof.h - how an order to a member's measuring service shows that it comes from a node,
 * not only from its machine.
 *
 * Every program on a node's machine, and every container whose packets that machine translates,
 * sends from the node's overlay address. So a session is begun with a MAC under a key that only the
 * two nodes have: from the Diffie-Hellman of both static keys. It covers a challenge that the
 * service has made for this one connection, so it is good once, and no clock takes part.
 *
 * The key is of one direction: with it the node that is asked can check orders, and not give any in
 * the other's name. So the process that serves measurements may have it, and no secret of the node.
 *
 * Spec: docs/wire/measure.md. member_proof.h is the same towards a hub.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "crypto/x25519.h"

/** Lengths, in bytes, of what is in a proof. */
#define MEASURE_PROOF_CHALLENGE 16
#define MEASURE_PROOF_ID        16
#define MEASURE_PROOF_PURPOSE   16
#define MEASURE_PROOF_MAC       16

/** Checks the orders of one node to one other. The other end's as secret as the static keys. */
struct measure_proof_key {
    uint8_t b[32];
};

/** What a proof is about. */
struct measure_proof {
    uint8_t challenge[MEASURE_PROOF_CHALLENGE]; /* of the service, for this connection */
    uint8_t id[MEASURE_PROOF_ID];               /* of the session */
    char purpose[MEASURE_PROOF_PURPOSE];        /* zeroes behind its end */
    uint32_t seconds;                           /* that it may last */
};

/**
 * measure_proof_key_make() - at either end; one multiplication on the curve
 * @own:	this end's static secret
 * @other:	the other end's static public key
 * @orderer:	the public key of the end that gives orders
 * @measured:	that of the end that is asked
 *
 * Return: false when @other is a key that nobody can have.
 */
bool measure_proof_key_make(struct measure_proof_key *ret, const struct x25519_secret *own,
    const struct x25519_public *other, const struct x25519_public *orderer,
    const struct x25519_public *measured);

/** measure_proof_make() - the MAC of @p. */
void measure_proof_make(uint8_t mac[static MEASURE_PROOF_MAC], const struct measure_proof_key *key,
    const struct measure_proof *p);

/** measure_proof_verify() - was @mac made with @key for @p? Constant time in the MAC. */
bool measure_proof_verify(const uint8_t mac[static MEASURE_PROOF_MAC],
    const struct measure_proof_key *key, const struct measure_proof *p);
