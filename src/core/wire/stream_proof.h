/*
 * stream_proof.h - how a member shows at the hub's public API who it is, to open a stream.
 *
 * A MAC under the Diffie-Hellman of both static keys, so only the node and the
 * hub can make it, and the hub needs one multiplication to check it. It is sent
 * inside TLS to a server whose key was pinned, so nobody else ever sees it.
 *
 * Spec: docs/wire/stream.md, "Who may open one".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "crypto/x25519.h"

/** Longest value of the request's header, with its zero. */
#define STREAM_PROOF_TEXT_MAX 128

/** As secret as the keys that it is made from: wiped after use, compared in constant time. */
struct stream_proof {
    uint8_t b[32];
};

/** Who claims to be the node, and with what. */
struct stream_claim {
    struct x25519_public node;
    struct stream_proof proof;
};

/**
 * stream_proof_make() - at either end
 * @own:	this end's static secret
 * @other:	the other end's static public key
 * @node:	the public key of the end that is the node
 *
 * Return: false when @other is a key that nobody can have.
 */
bool stream_proof_make(struct stream_proof *ret, const struct x25519_secret *own,
    const struct x25519_public *other, const struct x25519_public *node);

/** stream_claim_format() - the header's value; into @buf, which the caller wipes; returns @buf. */
const char *stream_claim_format(
    const struct stream_claim *claim, char buf[static STREAM_PROOF_TEXT_MAX]);

/** stream_claim_parse() - false when it is not one. @ret: wiped by the caller. */
bool stream_claim_parse(struct stream_claim *ret, const char *text);
