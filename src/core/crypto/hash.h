/*
 * hash.h - BLAKE2s, keys derived with it, and the digest of a TLS key.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* BLAKE2s (RFC 7693): WireGuard's hash and its keyed MAC. */

#define BLAKE2S_SIZE 32

/** A hash, or a chaining key: wipe it where it is secret. */
struct blake2s_digest {
    uint8_t b[BLAKE2S_SIZE];
};

/** A MAC of 16 bytes, as mac1, mac2 and cookies are. */
struct blake2s_mac {
    uint8_t b[16];
};

/** blake2s_hash() - HASH(@a || @b); @b may be NULL with @b_len 0. Threads: any. */
void blake2s_hash(
    const void *a, size_t a_len, const void *b, size_t b_len, struct blake2s_digest *ret);

/**
 * blake2s_mac16() - MAC(@key, @a || @b) of 16 bytes
 * @key:	@key_len bytes, 1 to 32
 * @b:		may be NULL with @b_len 0
 *
 * Keyed BLAKE2s with an output of 16 bytes: not a truncation of the longer one.
 *
 * Threads: any.
 */
void blake2s_mac16(const void *key, size_t key_len, const void *a, size_t a_len, const void *b,
    size_t b_len, struct blake2s_mac *ret);

/** blake2s_mac32() - the same with an output of 32 bytes. */
void blake2s_mac32(const void *key, size_t key_len, const void *a, size_t a_len, const void *b,
    size_t b_len, struct blake2s_digest *ret);

/*
 * HMAC-BLAKE2s and the KDF1, KDF2 and KDF3 of the WireGuard whitepaper.
 *
 * Spec: whitepaper 5.4 (HMAC, KDFn); RFC 2104; RFC 5869 without salt and info.
 */

/**
 * hkdf() - KDFn(@key, @input), n by how many outputs are wanted
 * @key:	the chaining key
 * @input:	@len bytes of key material; may be NULL with @len 0
 * @ret1:	the first output; may be @key
 * @ret2:	the second, or NULL for KDF1
 * @ret3:	the third, or NULL for KDF1 and KDF2
 *
 * Threads: any.
 */
void hkdf(const struct blake2s_digest *key, const void *input, size_t len,
    struct blake2s_digest *ret1, struct blake2s_digest *ret2, struct blake2s_digest *ret3);

/*
 * The digest of a server's TLS key, by which clients know it without a certificate
 * authority.
 *
 * The same digest as in HTTP's public key pins (RFC 7469, section 2.4) and curl's "sha256//".
 */

/** Longest text of a pin that is looked at; a true one has 44 characters. */
#define TLS_PIN_TEXT_MAX 64

/** SHA-256 of a server's SubjectPublicKeyInfo. */
struct tls_pin {
    uint8_t b[32];
};
