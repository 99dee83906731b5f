/*
 * ed25519.h - signatures with Ed25519 (RFC 8032), for keys that only sign.
 *
 * Keys and signatures are types of their own: an X25519 key, which signs by xeddsa.h, cannot be
 * passed for one of these.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct rng;

#define ED25519_SIZE           32
#define ED25519_SIGNATURE_SIZE 64
#define ED25519_BASE64_MAX     45 /* 44 characters and a zero */

/** A public key: a point of the curve, packed as in RFC 8032 section 5.1.2. */
struct ed25519_public {
    uint8_t b[ED25519_SIZE];
};

/** A private key: the seed of RFC 8032 section 5.1.5; secret_wipe() after use. */
struct ed25519_secret {
    uint8_t b[ED25519_SIZE];
};

/** A signature: not a secret. */
struct ed25519_signature {
    uint8_t b[ED25519_SIGNATURE_SIZE]; /* R, then s, as in RFC 8032 section 5.1.6 */
};

/** ed25519_secret_make() - a new private key. */
void ed25519_secret_make(struct ed25519_secret *ret, const struct rng *rng);

/** ed25519_derive_public() - its public key; false only when libcrypto has no memory, or no
 * Ed25519. */
bool ed25519_derive_public(const struct ed25519_secret *secret, struct ed25519_public *ret);

/**
 * ed25519_public_can_be() - can a private key have it?
 *
 * Not a point of small order, under which everybody can sign, nor a second spelling of a key: y is
 * below 2^255 - 19. That it is a point of the curve at all is not looked at: under what is none
 * nothing verifies.
 */
bool ed25519_public_can_be(const struct ed25519_public *public);

/** ed25519_public_compare() - an order for sorting, as memcmp(): public keys are no secret. */
int ed25519_public_compare(const struct ed25519_public *a, const struct ed25519_public *b);

/** ed25519_public_parse() - 44 characters of base64. 0 or -EINVAL with words. */
int ed25519_public_parse(struct ed25519_public *ret, const char *base64, struct err *e);

/** ed25519_public_format() - base64 into @buf; returns @buf. */
const char *ed25519_public_format(
    const struct ed25519_public *public, char buf[static ED25519_BASE64_MAX]);

/**
 * ed25519_sign() - sign @len bytes at @message
 *
 * Nothing random takes part.
 *
 * Return: false only when libcrypto has no memory, or no Ed25519.
 */
bool ed25519_sign(struct ed25519_signature *ret, const struct ed25519_secret *secret,
    const void *message, size_t len);

/**
 * ed25519_verify() - has @public's private key signed this?
 *
 * By the equation without the cofactor, of RFC 8032 section 5.1.7. False for a key for which
 * ed25519_public_can_be() is, and for an s that is not below the order of the base point.
 *
 * Threads: any.
 */
bool ed25519_verify(const struct ed25519_signature *signature, const struct ed25519_public *public,
    const void *message, size_t len);
