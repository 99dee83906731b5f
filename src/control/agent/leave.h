/*
 * leave.h - a node leaves its network, or is taken down: the hub is told, and where no agent runs a
 * command does what the agent would.
 */
#pragma once

#include <stdbool.h>

#include "agent/state/state.h"
#include "mesh/names/hosts.h"

/* ---- the hub is told ------------------------------------------------------------------------- */

/*
 * Tells the hub that this node leaves, by whichever way there is.
 *
 * Through the tunnel first; where that is broken, by the public API of each hub in turn, where the
 * proof of the node's key (wire/member_proof.h) says who asks. Waits for the answer, because a node
 * that leaves has nothing else to do.
 *
 * Threads: any.
 */

/**
 * leave_tell_hub() - have the hub remove this node
 * @st:		the node's key, interface and network; what the join token said of a hub's public
 * API
 * @s:		where the hubs are
 * @api:	the hub's API on the overlay
 *
 * Takes 3 s for a way that does not answer; no other is tried after ten.
 *
 * Return: 0, or non-zero with words about the last way that was tried.
 */
int leave_tell_hub(const struct state *st, const struct snapshot *s, const struct endpoint *api,
    struct member_proof_signer *signer, struct err *e);

/**
 * leave_by_token() - have the hub remove a machine that it has just taken in, and that cannot be
 * a node all the same
 * @secret:	of the machine
 * @token:	with which it came
 * @proxy:	NULL: none
 *
 * As it has done nothing but enrol, the hub lets the token admit once more. Waits as
 * leave_tell_hub().
 *
 * Return: 0, or non-zero with words.
 */
int leave_by_token(const struct x25519_secret *secret, const struct token *token, const char *proxy,
    struct err *e);

/* ---- without an agent ------------------------------------------------------------------------ */

/** The hub has removed this node, and nothing of it is here. */
#define LEAVE_E_REMOVED 2

/** What has been done for a node whose agent does not run. */
struct leave_result {
    char network[NAME_MAX_LEN + 1];
    char node[NAME_MAX_LEN + 1]; /* what it was called there */
    char interface[STATE_INTERFACE_MAX];
    bool has_reported_hub; /* the hub has been told that the node leaves */
    char why[256];         /* why it has not; "" if it has */
    char hosts_owner[HOSTS_OWNER_MAX];
    char names_why[256]; /* why the names are still in the hosts file; "" if they are not */
};

/**
 * leave_without_agent() - leave the network, or only take this node's part of it down
 * @socket_path:	of the agent that was; a socket that it has left there is removed, too
 * @stays_joined:	the interface and the names are removed, and nothing else
 * @ret:	with @stays_joined its @has_reported_hub and @why are not set
 *
 * What an agent does, done by a command where no agent runs. It takes the lock of the node's state,
 * so no agent starts meanwhile. The hub is told if it can be reached; the node's files and its
 * interface are removed in any case.
 *
 * Return: 0; STATE_E_ABSENT with words: there is nothing to leave; LEAVE_E_REMOVED with
 * words; or negative errno with words.
 */
int leave_without_agent(const char *state_dir, const char *socket_path, bool stays_joined,
    struct leave_result *ret, struct err *e);
