/*
 * key_statement.h - "the key of NAME is this one from now on", signed by the key before it.
 *
 * A node, and a hub in each network, is known by its WireGuard key. When that key changes, the old
 * one signs the new one by XEdDSA (crypto/xeddsa.h), so whoever knows the old public key can check
 * it, and nobody has to be believed: not the hub, which carries statements. The new key signs as
 * well, which proves that it is held: nobody can have a peer's key changed to a third one's.
 * Likewise a hub's WireGuard key signs the digest of the TLS key of its public API.
 *
 * Statements form a chain, the newest last: each is signed by the key that the one before it has
 * made known. Who was away for several rotations checks the links from the key that it knows on.
 *
 * Spec: docs/wire/keys.md. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "crypto/hash.h"
#include "crypto/x25519.h"
#include "crypto/xeddsa.h"

struct err;
struct rng;

/** Most links of a chain. */
#define KEY_CHAIN_MAX 64

/** Most bytes of a statement, and its text in base64 with its zero. */
#define KEY_STATEMENT_MAX      357
#define KEY_STATEMENT_TEXT_MAX 477

/** What a statement is about. The numbers are those on the wire. */
enum key_kind {
    KEY_KIND_NODE = 1, /* a node's key; the subject is the node */
    KEY_KIND_HUB = 2,  /* a hub's key in a network; the subject is the hub's node */
    KEY_KIND_TLS = 3,  /* the TLS key of a hub's public API; the subject is the hub's node */
};

struct key_statement {
    enum key_kind kind;
    char network[NAME_MAX_LEN + 1];
    char subject[NAME_MAX_LEN + 1];
    struct x25519_public old_key; /* who signs; of KEY_KIND_TLS: the hub's key in the network */
    struct x25519_public new_key; /* not of KEY_KIND_TLS */
    struct tls_pin pin;           /* of KEY_KIND_TLS alone */
    uint64_t serial;              /* 1 for the first of a subject and kind, then one more each */
    uint64_t made_at; /* s since 1970, by the signer's clock; for people and schedules */
    struct xeddsa_signature by_old;
    struct xeddsa_signature by_new; /* not of KEY_KIND_TLS */
};

/**
 * key_statement_sign() - set both signatures
 * @s:		everything else is set; its keys are those of the secrets
 * @old_secret:	of old_key
 * @new_secret:	of new_key; NULL for KEY_KIND_TLS
 *
 * Return: 0; -EINVAL with words when a secret is not that of its key; -ENOMEM.
 */
int key_statement_sign(struct key_statement *s, const struct x25519_secret *old_secret,
    const struct x25519_secret *new_secret, const struct rng *rng, struct err *e);

/**
 * key_statement_verify() - did the keys that it names sign it?
 *
 * It says nothing of whether old_key is the subject's: key_chain_verify().
 *
 * Return: 0, or -EINVAL with words.
 */
int key_statement_verify(const struct key_statement *s, struct err *e);

/** key_statement_equal() - the same bytes, signatures included? */
bool key_statement_equal(const struct key_statement *a, const struct key_statement *b);

/** key_statement_encode() - into @buf; returns its bytes. */
size_t key_statement_encode(const struct key_statement *s, uint8_t buf[static KEY_STATEMENT_MAX]);

/**
 * key_statement_decode() - exactly what key_statement_encode() writes
 *
 * Names are names, keys can be keys, the serial is not 0; no signature is looked at.
 *
 * Return: 0, or -EINVAL with words; @ret is then untouched.
 */
int key_statement_decode(struct key_statement *ret, const void *p, size_t len, struct err *e);

/** key_statement_format() - base64 of the encoded bytes into @buf; returns @buf. */
const char *key_statement_format(
    const struct key_statement *s, char buf[static KEY_STATEMENT_TEXT_MAX]);

/** key_statement_parse() - from base64; as key_statement_decode(). */
int key_statement_parse(struct key_statement *ret, const char *text, struct err *e);

/** Whose keys a chain is about. */
struct key_subject {
    enum key_kind kind;  /* KEY_KIND_NODE or KEY_KIND_HUB */
    const char *network; /* borrowed, and the next */
    const char *name;
};

/**
 * key_chain_verify() - which key is it now, for one who trusts @trusted?
 * @trusted:	the subject's key as it was last believed
 * @chain:	@n statements, at most KEY_CHAIN_MAX, the newest last; links before the one that
 *		@trusted has signed are skipped, so all that the hub keeps can be given
 * @ret:	the key at the end; untouched on failure
 *
 * All links from that one on have to name the subject, follow each other by key and serial, and be
 * signed by both keys. A chain whose end is @trusted already is good, and changes nothing; an
 * empty one, or one in which @trusted signs nothing and is not the end, is refused.
 *
 * Return: 0, or -EINVAL with a sentence which names the subject and what is wrong.
 */
int key_chain_verify(const struct x25519_public *trusted, const struct key_statement *chain,
    size_t n, const struct key_subject *subject, struct x25519_public *ret, struct err *e);
