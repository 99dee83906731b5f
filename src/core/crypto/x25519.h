/*
 * x25519.h - Diffie-Hellman over Curve25519 (RFC 7748), and keys as text.
 *
 * Public keys, secrets and shared secrets are different types: one cannot be
 * passed for another. Only public keys have a formatter that a log may use.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct rng;

#define X25519_SIZE 32

/** A public key. It also names its owner. */
struct x25519_public {
    uint8_t b[X25519_SIZE]; /* little-endian u coordinate */
};

/** A private scalar; secret_wipe() after use. */
struct x25519_secret {
    uint8_t b[X25519_SIZE]; /* clamped when it is used */
};

/** DH(secret, public): key material, never a key by itself; wipe after use. */
struct x25519_shared {
    uint8_t b[X25519_SIZE];
};

#define X25519_BASE64_MAX 45 /* 44 characters and a zero */
#define X25519_HEX_MAX    65 /* 64 characters and a zero */

/** x25519_secret_make() - a new secret, clamped as RFC 7748 section 5 says. */
void x25519_secret_make(struct x25519_secret *ret, const struct rng *rng);

/** x25519_secret_clamp() - clear and set the bits that RFC 7748 section 5 fixes. */
void x25519_secret_clamp(struct x25519_secret *secret);

/** x25519_secret_is_none() - all zeroes: WireGuard's way to say "no key". Constant time. */
bool x25519_secret_is_none(const struct x25519_secret *secret);

/** x25519_public_is_none() - all zeroes. */
bool x25519_public_is_none(const struct x25519_public *public);

/**
 * x25519_public_can_be() - can a private key have it?
 *
 * Not a point of small order, with which everybody has the same secret; nor another spelling of a
 * key: bit 255 is ignored and the coordinate is taken modulo 2^255 - 19 (RFC 7748 section 5), so
 * that one secret would have two names.
 */
bool x25519_public_can_be(const struct x25519_public *public);

/** x25519_public_equal() - of public keys, so not in constant time. */
bool x25519_public_equal(const struct x25519_public *a, const struct x25519_public *b);

/** x25519_public_compare() - an order for sorting, as memcmp(): public keys are no secret. */
int x25519_public_compare(const struct x25519_public *a, const struct x25519_public *b);

/**
 * x25519_derive_public() - the public key of a secret
 *
 * Threads: any.
 *
 * Return: false only when libcrypto has no memory.
 */
bool x25519_derive_public(const struct x25519_secret *secret, struct x25519_public *ret);

/**
 * x25519_dh() - the shared secret of @secret and the other side's @public
 *
 * Spec: RFC 7748 section 6.1, with its check for an all-zero result.
 * Threads: any.
 *
 * Return: false when @public is a point of small order, so that the result would be all zeroes
 * whatever the secret; @ret is then untouched.
 */
bool x25519_dh(const struct x25519_secret *secret, const struct x25519_public *public,
    struct x25519_shared *ret);

/** x25519_public_parse() - 44 characters of base64. 0 or -EINVAL with words. */
int x25519_public_parse(struct x25519_public *ret, const char *base64, struct err *e);

/** x25519_public_format() - base64 into @buf; returns @buf. */
const char *x25519_public_format(
    const struct x25519_public *public, char buf[static X25519_BASE64_MAX]);

/** x25519_public_parse_hex() - 64 hex digits, as in the UAPI; false if they are not. */
bool x25519_public_parse_hex(struct x25519_public *ret, const char *hex);

/** x25519_public_format_hex() - 64 hex digits into @buf; returns @buf. */
const char *x25519_public_format_hex(
    const struct x25519_public *public, char buf[static X25519_HEX_MAX]);

/** x25519_secret_parse() - base64, as in configuration files; the words never hold the value. */
int x25519_secret_parse(struct x25519_secret *ret, const char *base64, struct err *e);

/** x25519_secret_parse_hex() - 64 hex digits, as in the UAPI; false if they are not. */
bool x25519_secret_parse_hex(struct x25519_secret *ret, const char *hex);

/** x25519_secret_write() - base64 for a 0600 file or a root-only socket; wipe @buf after use. */
void x25519_secret_write(const struct x25519_secret *secret, char buf[static X25519_BASE64_MAX]);

/** x25519_secret_write_hex() - the same in hex, for the UAPI. */
void x25519_secret_write_hex(const struct x25519_secret *secret, char buf[static X25519_HEX_MAX]);

/* Who multiplies; for x25519.c and its test only. */

/** x25519__ladder() - x25519_derive_public() by OpenSSL's ladder: always there, and the judge. */
bool x25519__ladder(const struct x25519_secret *secret, struct x25519_public *ret);

/** x25519__has_table() - is libsodium installed? Any thread. */
bool x25519__has_table(void);

/** x25519__table() - x25519_derive_public() by libsodium's table of the base point's multiples. */
void x25519__table(const struct x25519_secret *secret, struct x25519_public *ret);
