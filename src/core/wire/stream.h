/*
 * stream.h - streams of datagrams in TLS: docs/wire/stream.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "crypto/x25519.h"

/*
 * Datagrams inside a stream of bytes: docs/wire/stream.md.
 *
 * Each datagram follows its length, 16 bits in network order. Length 0 is a
 * heartbeat: it says "still here" and carries nothing. A length beyond what UDP can
 * carry cannot be meant, and a stream that says it has lost its frame.
 *
 * Decoding works in place: whoever reads bytes hands them over in pieces, gets
 * whole frames back, and keeps what is left of the last one.
 */

/** Bytes before each datagram. */
#define STREAM_FRAME_HEADER 2

/** Longest datagram: what UDP over IPv4 can carry. */
#define STREAM_FRAME_MAX 65507

#define STREAM_FRAME_E_MORE    1 /* the rest of the frame has not come yet */
#define STREAM_FRAME_E_INVALID 2 /* its length is none */

/**
 * stream_frame_next() - the next whole frame
 * @in:		moved behind it; stays where it is unless 0 is returned
 * @ret:	its datagram; borrowed from @in's bytes
 * @ret_len:	its length; 0: a heartbeat
 *
 * Return: 0; STREAM_FRAME_E_MORE; STREAM_FRAME_E_INVALID, and then the stream is lost.
 */
int stream_frame_next(struct reader *in, const uint8_t **ret, size_t *ret_len);

/** stream_frame_size() - bytes that @len bytes of datagrams of @seg take (the last is shorter). */
size_t stream_frame_size(size_t len, size_t seg);

/**
 * stream_frame_put() - datagrams of one size, each behind its length
 * @out:	has room for stream_frame_size() bytes
 * @datagrams:	@len bytes, at least 1: datagrams of @seg bytes back to back, the last may be
 *		shorter; none is longer than STREAM_FRAME_MAX
 */
void stream_frame_put(struct writer *out, const uint8_t *datagrams, size_t len, size_t seg);

/*
 * How a member shows at the hub's public API who it is, to open a stream.
 *
 * A MAC under the Diffie-Hellman of both static keys, so only the node and the
 * hub can make it, and the hub needs one multiplication to check it. It is sent
 * inside TLS to a server whose key was pinned, so nobody else ever sees it.
 *
 * Spec: docs/wire/stream.md, "Who may open one".
 */

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
