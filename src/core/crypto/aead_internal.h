/*
 * aead_internal.h - the back ends for the table in aead.c, and our own cipher behind two of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/aead.h"

/* The back ends, each in a file aead_*.c. */
extern const struct aead_algorithm aead__openssl_chacha20poly1305;
extern const struct aead_algorithm aead__openssl_aes256gcm;
extern const struct aead_algorithm aead__boringssl_chacha20poly1305;
extern const struct aead_algorithm aead__boringssl_aes256gcm;
extern const struct aead_algorithm aead__ipsecmb_aes256gcm;

#if defined(__x86_64__)
extern const struct aead_algorithm aead__avx512_chacha20poly1305;
extern const struct aead_algorithm aead__avx2_chacha20poly1305;
#endif

/** aead__is_correct() - does it compute what it should? For aead.c and its test only. */
bool aead__is_correct(const struct aead_algorithm *alg);

/*
 * Our own ChaCha20-Poly1305 (RFC 8439), made for packets.
 *
 * Blocks of one packet go side by side through vectors: sixteen at a time with
 * AVX-512, eight with AVX2, and a few as rows. The libraries' code is made for
 * long messages, or needs a queue of packets to fill its vectors; a packet
 * alone fills them here. No branch and no address depends on a secret.
 *
 * What either width gains beside the libraries, and where it is used, is in
 * docs/PERFORMANCE.md, "The ciphers".
 *
 * One source, chachapoly.c, is compiled once for each of the two. The caller
 * makes sure that the CPU has it: aead_vector.c.
 */

/**
 * chachapoly_seal_avx2() - encrypt @len bytes at @buf in place, and append the tag
 *
 * The parameters are those of aead_seal(). @len is below 2^32. The CPU has AVX2 and BMI2.
 */
void chachapoly_seal_avx2(const struct aead_key *key, const struct aead_nonce *nonce,
    const void *ad, size_t ad_len, uint8_t *buf, size_t len);

/** chachapoly_seal_avx512() - the same, for a CPU with AVX-512 F, BW, DQ and VL, and BMI2. */
void chachapoly_seal_avx512(const struct aead_key *key, const struct aead_nonce *nonce,
    const void *ad, size_t ad_len, uint8_t *buf, size_t len);

/**
 * chachapoly_open_avx2() - verify, and then decrypt in place
 * @buf:	@len bytes, at least a tag's, which comes last
 *
 * Return: false when the tag is wrong; @buf is then as it was.
 */
bool chachapoly_open_avx2(const struct aead_key *key, const struct aead_nonce *nonce,
    const void *ad, size_t ad_len, uint8_t *buf, size_t len);

/** chachapoly_open_avx512() - the same, for a CPU with AVX-512 F, BW, DQ and VL, and BMI2. */
bool chachapoly_open_avx512(const struct aead_key *key, const struct aead_nonce *nonce,
    const void *ad, size_t ad_len, uint8_t *buf, size_t len);
