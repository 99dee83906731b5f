/*
 * farewell.h - tells the hub that this node leaves, by whichever way there is.
 *
 * Through the tunnel first; where that is broken, by the public API of each hub in turn, where the
 * proof of the node's key (wire/member_proof.h) says who asks. Waits for the answer, because a node
 * that leaves has nothing else to do.
 *
 * Threads: any.
 */
#pragma once

struct endpoint;
struct err;
struct member_proof_signer;
struct snapshot;
struct state;
struct token;
struct x25519_secret;

/**
 * farewell_tell() - have the hub remove this node
 * @st:		the node's key, interface and network; what the join token said of a hub's public
 * API
 * @s:		where the hubs are
 * @api:	the hub's API on the overlay
 *
 * Takes 3 s for a way that does not answer; no other is tried after ten.
 *
 * Return: 0, or non-zero with words about the last way that was tried.
 */
int farewell_tell(const struct state *st, const struct snapshot *s, const struct endpoint *api,
    struct member_proof_signer *signer, struct err *e);

/**
 * farewell_by_token() - have the hub remove a machine that it has just taken in, and that cannot be
 * a node all the same
 * @secret:	of the machine
 * @token:	with which it came
 * @proxy:	NULL: none
 *
 * As it has done nothing but enrol, the hub lets the token admit once more. Waits as
 * farewell_tell().
 *
 * Return: 0, or non-zero with words.
 */
int farewell_by_token(const struct x25519_secret *secret, const struct token *token,
    const char *proxy, struct err *e);
