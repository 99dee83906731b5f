/*
 * stun.h - STUN Binding: "from where do my packets come?" (RFC 8489).
 *
 * Just what a public server without authentication needs, and what a client
 * needs to read its answer. A STUN message is told from WireGuard's by its
 * first bytes: a Binding request begins 00 01 and carries the magic cookie,
 * while WireGuard's types begin 01 to 04 and three zeroes. docs/wire/stun.md
 * has the bytes, and why there is no SOFTWARE attribute in an answer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

/** Random bytes of the client, which its answer repeats (RFC 8489 section 5). */
struct stun_transaction {
    uint8_t b[12];
};

/** Most unknown attributes that an error answer lists. */
#define STUN_UNKNOWN_MAX 6

/** What we need of a Binding request. */
struct stun_request {
    struct stun_transaction id;
    uint16_t
        response_port;    /* the answer is wanted at this port of its sender; 0: where it is from */
    bool has_fingerprint; /* it carried a valid one, so the answer does too */
    unsigned n_unknown;   /* attributes that we would have to understand, but do not */
    uint16_t unknown[STUN_UNKNOWN_MAX]; /* the first of them, host order */
};

/** What we need of a Binding success response. */
struct stun_response {
    struct stun_transaction id;
    struct endpoint mapped; /* where the request came from, as the server saw it */
};

/** What we need of a Binding error response. */
struct stun_refusal {
    struct stun_transaction id;
    uint16_t code; /* 300 to 699 (RFC 8489 section 14.8) */
};

/** The code of a request with an attribute that the server had to understand, and does not. */
#define STUN_UNKNOWN_ATTRIBUTE 420

#define STUN_HEADER_SIZE 20
/** Bytes of the request that stun_encode_request() makes: as long as its longest answer. */
#define STUN_REQUEST_SIZE (STUN_HEADER_SIZE + 24)
/** Longest answer that stun_encode_answer() makes: an IPv6 address and a fingerprint. */
#define STUN_ANSWER_MAX (STUN_HEADER_SIZE + 24 + 8)

/** For one source: answers that forged requests could misuse, which are longer than these or go to
 * another port (docs/wire/stun.md). */
#define STUN_LIMIT_EACH  (NSEC_PER_SEC / 20)
#define STUN_LIMIT_BURST 5

#define STUN_E_OTHER     1 /* not STUN, or not the message that was asked for */
#define STUN_E_MALFORMED 2 /* the right kind of message, but its bytes contradict each other */

/** stun_is_request() - do the first bytes name a Binding request? @len bytes; any content. */
bool stun_is_request(const uint8_t *msg, size_t len);

/** stun_is_answer() - do the first bytes name the answer to one? @len bytes; any content. */
bool stun_is_answer(const uint8_t *msg, size_t len);

/**
 * stun_encode_request() - ask "where do I come from?"
 * @id:		random, unknown to strangers
 * @port:	of ours, as the server sees it, to be answered at; 0: the one it comes from
 *
 * Padded, so that no server has a reason to limit its answers (docs/wire/stun.md).
 *
 * Spec: RFC 5780 section 7.5, of @port.
 */
void stun_encode_request(
    const struct stun_transaction *id, uint16_t port, uint8_t out[static STUN_REQUEST_SIZE]);

/**
 * stun_decode_request() - take a Binding request apart
 * @msg:	@len bytes, one whole datagram
 *
 * Credentials are skipped over, not checked: a public server has none.
 *
 * Spec: RFC 8489 sections 5, 6.3.1, 14.7.
 *
 * Return: 0, STUN_E_OTHER or STUN_E_MALFORMED (a wrong fingerprint, too).
 */
int stun_decode_request(struct stun_request *ret, const uint8_t *msg, size_t len);

/**
 * stun_refuse_port() - here no answer goes to another port than where the request came from
 *
 * So RESPONSE-PORT is an attribute that is not understood, and one that must be
 * (its type is under 8000): the answer is error 420 with its name.
 *
 * Spec: RFC 5780 section 7.5, RFC 8489 section 6.3.1.
 */
void stun_refuse_port(struct stun_request *req);

/**
 * stun_encode_answer() - the answer to @req
 * @mapped:	where the request came from
 * @out:	room for STUN_ANSWER_MAX bytes
 *
 * A success response with XOR-MAPPED-ADDRESS; or, when there were unknown
 * attributes, error 420 with their list (RFC 8489 section 6.3.1).
 *
 * Return: bytes written.
 */
size_t stun_encode_answer(const struct stun_request *req, const struct endpoint *mapped,
    uint8_t out[static STUN_ANSWER_MAX]);

/**
 * stun_decode_response() - what a server told
 * @msg:	@len bytes, one whole datagram
 *
 * The caller compares the transaction with the one that it sent.
 *
 * Return: 0; STUN_E_OTHER (also an error response); STUN_E_MALFORMED, also without an address.
 */
int stun_decode_response(struct stun_response *ret, const uint8_t *msg, size_t len);

/**
 * stun_decode_refusal() - that a server refused, and why
 * @msg:	@len bytes, one whole datagram
 *
 * The caller compares the transaction with the one that it sent.
 *
 * Return: 0; STUN_E_OTHER; STUN_E_MALFORMED, also without a code.
 */
int stun_decode_refusal(struct stun_refusal *ret, const uint8_t *msg, size_t len);
