/*
 * blake2s.h - BLAKE2s (RFC 7693): WireGuard's hash and its keyed MAC.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
