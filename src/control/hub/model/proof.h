/*
 * proof.h - does a request come from the node whose address it has, or only from its machine?
 *
 * The hub's end of wire/member_proof.h. Each node's key is derived once, on its first proof, and
 * kept with the node; while the node changes its key it may prove by either. So however many
 * requests come, there is one multiplication a node, and as many keys as nodes. Numbers that were
 * taken are kept with it, too; they begin at the hub's monotonic clock, so that a node that was
 * removed and enrolled again under the same key starts beyond all that it has used before.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/containers.h"
#include "wire/member_proof.h"

struct model_node;
struct request;
struct response;

/** What the hub keeps for it with each node. Zeroes at first; wiped with the node. */
struct proof_state {
    struct member_proof_key key;
    struct x25519_public of;       /* the node's public key that it is made of */
    struct member_proof_key other; /* of its other key, while it changes its key */
    struct x25519_public other_of; /* likewise; none: not made */
    struct seq_window window;      /* one for both: who proves by either is the same */
    bool has_key;                  /* @key, @of and @window are set */
};

/** proof_key() - the key of @node for proofs, derived on the first call, and again when the node
 * has another key; NULL: no private key can belong to its public key. */
const struct member_proof_key *proof_key(const struct model_node *node, nsec_t now);

/**
 * proof_take() - does @node itself ask, and for the first time?
 *
 * A proof is taken once. If it is not taken, @rs says 401, and which numbers would be.
 */
bool proof_take(const struct model_node *node, const struct request *rq, struct response *rs);
