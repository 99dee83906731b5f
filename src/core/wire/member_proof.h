/*
 * member_proof.h - how a request to the hub shows that it comes from a node, not only from its
 * machine.
 *
 * Every program on a node's machine, and every container whose packets that machine translates,
 * sends from the node's overlay address. So a request carries a MAC under a key that only the node
 * and the hub have: from the Diffie-Hellman of both static keys. It covers the method, the path and
 * the body. A stamp in it makes it good for one time: the hub's boot, which is another one after
 * each start of the hub, and a sequence number that the hub takes once. No clock takes part. A node
 * that does not know the stamp yet asks with any; the refusal tells it.
 *
 * Spec: docs/wire/member.md. stream.h is the other proof of the same two keys, for a
 * connection that TLS protects.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/x25519.h"

/** Longest value of the request's header, with its zero. */
#define MEMBER_PROOF_TEXT_MAX 128

/** Longest method and path that can be proven, without their zeroes. */
#define MEMBER_PROOF_METHOD_MAX 15
#define MEMBER_PROOF_PATH_MAX   512

/** The highest sequence number: it has to fit into an integer of JSON. */
#define MEMBER_PROOF_SEQUENCE_MAX INT64_MAX

/** What both ends derive from their keys. As secret as those: wiped after use. */
struct member_proof_key {
    uint8_t b[32];
};

/** What a proof is about. Everything is borrowed. */
struct member_proof_request {
    const char *method;
    const char *path; /* decoded, without a query: as the server's routes see it */
    const void *body; /* @body_len bytes; may be NULL with 0 */
    size_t body_len;
};

/** What is sent. */
struct member_proof {
    uint64_t boot;     /* of the hub's run; 0: not known */
    uint64_t sequence; /* at most MEMBER_PROOF_SEQUENCE_MAX */
    uint8_t mac[32];   /* compared in constant time */
};

/**
 * member_proof_key_make() - at either end; one multiplication on the curve
 * @own:	this end's static secret
 * @other:	the other end's static public key
 * @node:	the public key of the end that is the node
 *
 * Return: false when @other is a key that nobody can have.
 */
bool member_proof_key_make(struct member_proof_key *ret, const struct x25519_secret *own,
    const struct x25519_public *other, const struct x25519_public *node);

/** member_proof_make() - @proof's MAC, from its stamp. False: method or path is too long. */
bool member_proof_make(struct member_proof *proof, const struct member_proof_key *key,
    const struct member_proof_request *rq);

/** member_proof_verify() - was @proof made with @key for @rq? Constant time in the MAC. */
bool member_proof_verify(const struct member_proof *proof, const struct member_proof_key *key,
    const struct member_proof_request *rq);

/** member_proof_format() - the header's value; into @buf; returns @buf. */
const char *member_proof_format(
    const struct member_proof *proof, char buf[static MEMBER_PROOF_TEXT_MAX]);

/** member_proof_parse() - takes exactly what member_proof_format() writes. False: it is not that.
 */
bool member_proof_parse(struct member_proof *ret, const char *text);

/* ---- the node's end ------------------------------------------------------------------------- */

/** Makes proofs, each with a stamp of its own. Wiped after use. */
struct member_proof_signer {
    struct member_proof_key key;
    uint64_t boot; /* as the hub has said; 0: not known */
    uint64_t next; /* sequence number of the next proof */
};

/** member_proof_signer_init() - @own: the node's secret. As member_proof_key_make(). */
bool member_proof_signer_init(struct member_proof_signer *s, const struct x25519_secret *own,
    const struct x25519_public *hub);

/** member_proof_sign() - the header's value for @rq; into @buf. False: as member_proof_make(). */
bool member_proof_sign(struct member_proof_signer *s, const struct member_proof_request *rq,
    char buf[static MEMBER_PROOF_TEXT_MAX]);

/** member_proof_signer_learn() - the hub has said which proofs it takes: @boot, beyond @after. */
void member_proof_signer_learn(struct member_proof_signer *s, uint64_t boot, uint64_t after);
