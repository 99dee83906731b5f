/*
 * aead.h - authenticated encryption: a table of algorithms and their back ends.
 *
 * A back end is one cipher from one library. OpenSSL's are always there; our own
 * ChaCha20-Poly1305 needs a CPU with AVX2, and the faster BoringSSL and intel-ipsec-mb are looked
 * for at run time. Which one is used is asked once, at start-up, with aead_best(), and the answer
 * goes down as a pointer.
 *
 * Theory of operation. A key is 32 plain bytes, so that 60,000 idle sessions
 * cost 60,000 times 64 bytes; what a library derives from it (round keys,
 * tables, a context of a kilobyte) lives in a *lane*. A lane belongs to one
 * thread, holds the contexts of the few keys of the batch at hand, and is
 * cleared at the batch's end: so the set-up is paid per batch and key, not per
 * packet, threads share a key without a lock, and no copy of a key survives
 * its session.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"

#define AEAD_KEY_SIZE   32 /* of every algorithm in the table */
#define AEAD_NONCE_SIZE 12
#define AEAD_TAG_SIZE   16

/** A secret key of any of the algorithms; wipe it after use. */
struct aead_key {
    uint8_t b[AEAD_KEY_SIZE];
};

/** A nonce as RFC 8439 has it; never twice with one key. */
struct aead_nonce {
    uint8_t b[AEAD_NONCE_SIZE];
};

/** aead_nonce_make() - 32 zero bits, then the counter little-endian (whitepaper 5.4.6). */
static inline struct aead_nonce aead_nonce_make(uint64_t counter)
{
    struct aead_nonce n = {{0}};

    memcpy(n.b + 4, &counter, sizeof(counter));
    return n;
}

enum aead_cipher {
    AEAD_CIPHER_CHACHA20POLY1305, /* RFC 8439: every WireGuard speaks it */
    AEAD_CIPHER_AES256GCM,        /* NIST SP 800-38D: weft's own profile */
    AEAD_CIPHER_N,
};

/** One cipher from one library. The table holds constants; find one with aead_best(). */
struct aead_algorithm {
    const char *name;        /* "chacha20poly1305", "aes256gcm" */
    const char *backend;     /* "openssl", "boringssl", "ipsec-mb", "avx2", "avx512" */
    enum aead_cipher cipher; /* what it computes; two back ends of one cipher agree bit for bit */

    /* Is the library there? Loads it the first time. Any thread. */
    bool (*is_available)(void);
    /* A context without a key; NULL when there is no memory. One thread at a time. */
    void *(*ctx_new)(void);
    /* Expand @key into the context, over any earlier one. */
    bool (*ctx_set_key)(void *ctx, const struct aead_key *key);
    /* Overwrite the key; the context can be given another. */
    void (*ctx_clear_key)(void *ctx);
    /* As aead_seal() and aead_open(), under the context's key. */
    bool (*seal)(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
        uint8_t *buf, size_t len);
    bool (*open)(void *ctx, const struct aead_nonce *nonce, const void *ad, size_t ad_len,
        uint8_t *buf, size_t len);
    /* Wipes and releases; NULL is fine. */
    void (*ctx_free)(void *ctx);
};

/** aead_each() - the table's entry number @i, whether available or not; NULL at the end. */
const struct aead_algorithm *aead_each(size_t i);

/** aead_cipher_names - "chacha20poly1305". */
extern const char *const aead_cipher_names[];

/** aead_cipher_parse() - the cipher whose name is the @len bytes at @text; AEAD_CIPHER_N: none. */
enum aead_cipher aead_cipher_parse(const char *text, size_t len);

/**
 * aead_best() - the fastest back end that is there and computes correctly
 * @cipher:	what to compute
 * @backend:	the name of the only one to consider, or NULL for any
 *
 * Every candidate must reproduce a published vector and, over the lengths
 * where vector code changes its stride, OpenSSL's output. Takes well under a
 * millisecond; ask once.
 *
 * Threads: any.
 *
 * Return: an entry of the table; NULL when @backend is unknown, absent or wrong. Never NULL for
 * a NULL @backend with a working libcrypto.
 */
const struct aead_algorithm *aead_best(enum aead_cipher cipher, const char *backend);

/** aead_reference() - OpenSSL's back end of @cipher: always there; handshakes use it. */
const struct aead_algorithm *aead_reference(enum aead_cipher cipher);

/** One thread's expanded keys; see the theory of operation. Opaque. */
struct aead_lane;

/** aead_lane_new() - an empty lane; gives it. 0 or -ENOMEM. */
int aead_lane_new(struct aead_lane **ret);

/** aead_lane_free() - wipe and release. */
struct aead_lane *aead_lane_free(struct aead_lane *lane);

/**
 * aead_lane_clear() - forget every key
 *
 * Call at the end of each batch, before references to keys are let go: until
 * then the lane borrows every key that was used on it, by address.
 */
void aead_lane_clear(struct aead_lane *lane);

/**
 * aead_seal() - encrypt in place and append the tag
 * @lane:	the calling thread's
 * @alg:	from aead_best(); always the same one for one @key
 * @key:	borrowed until aead_lane_clear(): may not move or change before
 * @nonce:	never used before with this key
 * @ad:		@ad_len authenticated bytes; may be NULL when @ad_len is 0
 * @buf:	@len bytes of plain text, with room for AEAD_TAG_SIZE more
 *
 * Return: false only when the library has no memory; @buf is then garbage.
 */
bool aead_seal(struct aead_lane *lane, const struct aead_algorithm *alg, const struct aead_key *key,
    const struct aead_nonce *nonce, const void *ad, size_t ad_len, uint8_t *buf, size_t len);

/**
 * aead_open() - verify and decrypt in place
 * @buf:	@len bytes, the tag last; on success @len - AEAD_TAG_SIZE bytes of plain text
 *
 * The other parameters are those of aead_seal().
 *
 * Return: false when @len is shorter than a tag or the tag is wrong; @buf is then garbage.
 */
bool aead_open(struct aead_lane *lane, const struct aead_algorithm *alg, const struct aead_key *key,
    const struct aead_nonce *nonce, const void *ad, size_t ad_len, uint8_t *buf, size_t len);

/** aead_seal_once() - aead_seal() for a key that is used once, as in handshakes; no lane. */
bool aead_seal_once(const struct aead_algorithm *alg, const struct aead_key *key,
    const struct aead_nonce *nonce, const void *ad, size_t ad_len, uint8_t *buf, size_t len);

/** aead_open_once() - aead_open() for a key that is used once, as in handshakes; no lane. */
bool aead_open_once(const struct aead_algorithm *alg, const struct aead_key *key,
    const struct aead_nonce *nonce, const void *ad, size_t ad_len, uint8_t *buf, size_t len);

/*
 * How fast is a cipher on this machine?
 *
 * Measured, not looked up from the CPU's features: it is the machine, with the
 * libraries that it has, that a choice between ciphers is about. Nodes announce
 * the figures, and the AES profile is taken where both ends gain (mesh/render/render.h).
 */

/** Where the measurement takes the time from, as clock_now(). */
typedef nsec_t (*aead_clock_fn)(void);

/**
 * aead_speed() - megabytes (10^6) that one core seals and opens in a second
 * @alg:	from aead_best()
 * @budget:	how long to measure; a few milliseconds are enough
 * @clock:	monotonic
 *
 * Of many short runs the fastest counts, so that a busy machine is not taken
 * for a slow one. Packets lie in the cache, as those of a batch do.
 *
 * Return: MB/s, the mean of sealing and opening; 0 when there is no memory or
 * the clock does not move.
 */
uint32_t aead_speed(const struct aead_algorithm *alg, nsec_t budget, aead_clock_fn clock);

/*
 * XChaCha20-Poly1305, for cookie replies only.
 *
 * Composed: HChaCha20 turns the key and 16 bytes of nonce into a subkey, and
 * ChaCha20-Poly1305 with the other 8 does the rest. libcrypto has no HChaCha20,
 * but its ChaCha20 block is HChaCha20 plus a known addition, which is undone.
 *
 * Spec: draft-irtf-cfrg-xchacha-03 sections 2.2 and 2.3.
 */

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
