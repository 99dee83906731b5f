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
