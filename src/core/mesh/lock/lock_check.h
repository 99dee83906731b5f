/*
 * lock_check.h - is what a hub says what operators have signed?
 *
 * For a member whose network has a lock: each object of its snapshot is held against the state of
 * the chain, and what is not signed, or signed otherwise, is refused with a sentence that names the
 * field. What a lock does not sign (status, candidates, rates, the reason of a drain) may be
 * anything.
 *
 * A node that changes its key itself is the same node: its new key is as good as the signed one, if
 * statements lead from that to it (mesh/keys/key_statement.h), and no key on the way was revoked.
 * So it is with a hub's key, and with the TLS key that a hub's key has signed. That is good for
 * twice the key rotation from when operators have signed the first key: who has stolen an old key
 * cannot speak for the node for ever. Name, addresses and all else stay what is signed.
 *
 * When the lock has expired, nothing is accepted that was not accepted before; and when it has been
 * for as long as the operators trust peers, nothing is.
 *
 * Rules of a job (rule.h) are the hub's own and signed by nobody, so they are refused as rules that
 * allow something. Who wants what they refuse asks for that without this.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/keys/key_statement.h"
#include "mesh/lock/lock_chain.h"

struct err;

/** What is known of the object beside what the hub says of it. */
struct lock_facts {
    uint64_t now;  /* s since 1970; the last operators' entry counts where it is ahead */
    bool is_known; /* the same was accepted before the lock expired */

    /* Of a node: statements of its key, the newest last, as key_chain_verify() takes them. */
    const struct key_statement *statements;
    size_t n_statements;
    const struct key_statement *tls; /* of a hub: of its TLS key; NULL: there is none */
};

/**
 * lock_check_object() - is it signed as it is?
 *
 * A kind of which a lock says nothing is accepted.
 *
 * Return: 0; or -EINVAL with a sentence which names the object, the field, and what is signed.
 */
int lock_check_object(const struct lock_chain *c, const struct object *o,
    const struct lock_facts *facts, struct err *e);

/** lock_check_node() - the same of a node. */
int lock_check_node(const struct lock_chain *c, const struct node *node,
    const struct lock_facts *facts, struct err *e);

/** lock_check_edge() - the same of what is said about an edge: whether it is off, and its pins. */
int lock_check_edge(const struct lock_chain *c, const struct mesh_edge *edge,
    const struct lock_facts *facts, struct err *e);

/** lock_check_rule() - the same of a rule. */
int lock_check_rule(const struct lock_chain *c, const struct object *rule,
    const struct lock_facts *facts, struct err *e);

/** lock_check_network() - the same of the network: its blocks, and what is in lock_settings. */
int lock_check_network(const struct lock_chain *c, const struct network *network,
    const struct lock_facts *facts, struct err *e);

/**
 * lock_check_gone() - the hub says that an object is removed: is it?
 * @name:	of a node, an edge or a rule
 *
 * An ephemeral node goes without a signature.
 *
 * Return: 0; or -EINVAL with words: it is signed, and that it is gone nobody has signed.
 */
int lock_check_gone(
    const struct lock_chain *c, const struct object_kind *kind, const char *name, struct err *e);
