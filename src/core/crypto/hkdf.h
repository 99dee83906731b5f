/*
 * hkdf.h - HMAC-BLAKE2s and the KDF1, KDF2 and KDF3 of the WireGuard whitepaper.
 *
 * Spec: whitepaper 5.4 (HMAC, KDFn); RFC 2104; RFC 5869 without salt and info.
 */
#pragma once

#include <stddef.h>

#include "crypto/blake2s.h"

/** hmac_blake2s() - HMAC(@key, @data), @len bytes of it. Threads: any. */
void hmac_blake2s(
    const struct blake2s_digest *key, const void *data, size_t len, struct blake2s_digest *ret);

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
