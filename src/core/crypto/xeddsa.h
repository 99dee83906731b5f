/*
 * xeddsa.h - signatures with X25519 keys: XEdDSA on Curve25519.
 *
 * A WireGuard key signs, and whoever knows the public key can verify. A signature is one of Ed25519
 * (RFC 8032) under the Edwards form of the public key with the sign bit zero.
 *
 * Spec: "The XEdDSA and VXEdDSA Signature Schemes", revision 1, sections 2.3 to 2.5;
 * docs/wire/keys.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/x25519.h"

struct rng;

#define XEDDSA_SIZE 64

/** A signature: not a secret. */
struct xeddsa_signature {
    uint8_t b[XEDDSA_SIZE]; /* R, then s, as in RFC 8032 section 5.1.6 */
};

/**
 * xeddsa_sign() - sign @len bytes at @message
 * @secret:	clamped when it is used
 * @rng:	64 bytes are drawn; the nonce depends on the secret and the message as well, so that
 *		a generator which repeats itself gives nothing away
 *
 * What is returned has been verified, against faults. Not for a path in which its time can be
 * measured often: libcrypto's big numbers take part.
 *
 * Return: false when libcrypto has no memory, or no Ed25519.
 */
bool xeddsa_sign(struct xeddsa_signature *ret, const struct x25519_secret *secret,
    const void *message, size_t len, const struct rng *rng);

/**
 * xeddsa_verify() - has @public's secret signed this?
 *
 * False for a key that no secret has (x25519_public_can_be()): a point of small order, u = -1, a
 * coordinate that is not reduced; for a point of the curve's twist; and for an s that is not below
 * the order of the base point.
 */
bool xeddsa_verify(const struct xeddsa_signature *signature, const struct x25519_public *public,
    const void *message, size_t len);
