/*
 * lock_entry.h - one entry of a network's lock: its place in the chain, what it says, signatures.
 *
 * The lock of a network is a chain of entries, which only grows. Each names the hash of the one
 * before it, so who has the same last hash has the same entries. The hash is that of what an entry
 * says; signatures are not in it, so that signers may sign several entries one after the other.
 *
 * An operator's entry is signed with its place in the chain, so it stands there and nowhere else.
 * The entry of a node that joins (LOCK_JOIN) is put into its place by a hub: the token's key signs
 * everything but the place, so many may join at once without waiting for each other.
 *
 * Who may sign which entry is lock_chain.h's matter.
 *
 * Spec: docs/wire/lock.md. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/parse.h"
#include "crypto/ed25519.h"
#include "mesh/lock/lock_body.h"

struct err;

/** Most bytes of an entry. */
#define LOCK_ENTRY_MAX (LOCK_BODY_MAX + 0x1000)

/** Most signatures of an entry. */
#define LOCK_SIGNATURES_MAX LOCK_SIGNERS_MAX

/** SHA-256 of an entry, without its signatures. */
struct lock_hash {
    uint8_t b[32];
};

struct lock_signature {
    struct ed25519_public key;
    struct ed25519_signature signature;
};

struct lock_entry {
    char network[NAME_MAX_LEN + 1];
    uint64_t seq;          /* its place: 0 for the first, then one more each */
    struct lock_hash prev; /* of the entry before it; zeroes for the first */
    uint64_t made_at;      /* s since 1970, by the clock of who made it */
    struct lock_body body;
    struct lock_signature signatures[LOCK_SIGNATURES_MAX]; /* sorted by key, which are different */
    unsigned n_signatures;
};

#define LOCK_ENTRY_NULL                                                                            \
    {                                                                                              \
        .network = ""                                                                              \
    }

/** lock_entry_deinit() - release what it owns; idempotent, safe on LOCK_ENTRY_NULL. */
void lock_entry_deinit(struct lock_entry *entry);

/** lock_entry_encode() - as bytes; at most LOCK_ENTRY_MAX. */
void lock_entry_encode(struct writer *w, const struct lock_entry *entry);

/**
 * lock_entry_decode() - exactly what lock_entry_encode() writes
 * @ret:	untouched on failure, else to be released with lock_entry_deinit()
 * @in:		is behind the entry afterwards, where another one may begin; on failure it is
 * anywhere
 *
 * No signature is looked at.
 *
 * Return: 0; -EINVAL with words; -ENOMEM.
 */
int lock_entry_decode(struct lock_entry *ret, struct reader *in, struct err *e);

/** lock_entry_hash() - what the next entry names as the one before it. 0 or -ENOMEM. */
int lock_entry_hash(const struct lock_entry *entry, struct lock_hash *ret);

/**
 * lock_entry_sign() - one signature more
 *
 * What lock_entry_decode() would not take is not signed. A signature of the same key that is there
 * already is replaced.
 *
 * Return: 0; -EINVAL with words, also when there are LOCK_SIGNATURES_MAX others; -ENOMEM.
 */
int lock_entry_sign(struct lock_entry *entry, const struct ed25519_secret *secret, struct err *e);

/** lock_entry_signature() - lends the one by @key; NULL: there is none. */
const struct lock_signature *lock_entry_signature(
    const struct lock_entry *entry, const struct ed25519_public *key);

/** As ed25519_verify(), which is the one to be given. */
typedef bool (*lock_verify_fn)(const struct ed25519_signature *signature,
    const struct ed25519_public *public, const void *message, size_t len);

/** lock_entry_verify() - is each signature good? 0; -EINVAL with words that name the key of the one
 * that is not; -ENOMEM. */
int lock_entry_verify(const struct lock_entry *entry, lock_verify_fn verify, struct err *e);

/** lock_hash_equal() - the same? */
bool lock_hash_equal(const struct lock_hash *a, const struct lock_hash *b);
