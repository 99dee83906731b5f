/*
 * xchacha.h - XChaCha20-Poly1305, for cookie replies only.
 *
 * Composed: HChaCha20 turns the key and 16 bytes of nonce into a subkey, and
 * ChaCha20-Poly1305 with the other 8 does the rest. libcrypto has no HChaCha20,
 * but its ChaCha20 block is HChaCha20 plus a known addition, which is undone.
 *
 * Spec: draft-irtf-cfrg-xchacha-03 sections 2.2 and 2.3.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/aead.h"

#define XCHACHA_NONCE_SIZE 24

/** A nonce that is long enough to be drawn at random. */
struct xchacha_nonce {
    uint8_t b[XCHACHA_NONCE_SIZE];
};

/** hchacha20() - the subkey of @key and 16 bytes of nonce. False only without memory. */
bool hchacha20(const struct aead_key *key, const uint8_t nonce[static 16], struct aead_key *ret);

/**
 * xchacha_seal() - encrypt in place and append the tag
 * @ad:		@ad_len authenticated bytes
 * @buf:	@len bytes, with room for AEAD_TAG_SIZE more
 *
 * Return: false only when libcrypto has no memory.
 */
bool xchacha_seal(const struct aead_key *key, const struct xchacha_nonce *nonce, const void *ad,
    size_t ad_len, uint8_t *buf, size_t len);

/** xchacha_open() - verify and decrypt in place; @len with the tag. False when it is wrong. */
bool xchacha_open(const struct aead_key *key, const struct xchacha_nonce *nonce, const void *ad,
    size_t ad_len, uint8_t *buf, size_t len);
