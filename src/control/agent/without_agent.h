/*
 * without_agent.h - what an agent does when its node leaves the network or is taken down, done by a
 * command where no agent runs.
 *
 * Both take the lock of the node's state, so no agent starts meanwhile.
 */
#pragma once

#include <stdbool.h>

#include "agent/state/state.h"
#include "mesh/names/hosts.h"

struct err;

/** The hub has removed this node, and nothing of it is here. */
#define WITHOUT_AGENT_E_REMOVED 2

/** What has been done for a node whose agent does not run. */
struct without_agent_done {
    char network[NAME_MAX_LEN + 1];
    char interface[STATE_INTERFACE_MAX];
    bool told;     /* the hub has been told that the node leaves */
    char why[256]; /* why it has not; "" if it has */
    char hosts_owner[HOSTS_OWNER_MAX];
    char names_why[256]; /* why the names are still in the hosts file; "" if they are not */
};

/**
 * without_agent_take_down() - remove the interface and the names
 *
 * What has been joined stays.
 *
 * @socket_path:	as for without_agent_leave()
 * @ret:	its @told and @why are not set
 *
 * Return: as without_agent_leave().
 */
int without_agent_take_down(
    const char *state_dir, const char *socket_path, struct without_agent_done *ret, struct err *e);

/**
 * without_agent_leave() - leave the network
 * @socket_path:	of the agent that was; a socket that it has left there is removed, too
 *
 * The hub is told if it can be reached; the node's files and its interface are removed in any case.
 *
 * Return: 0; STATE_E_ABSENT with words: there is nothing to leave; WITHOUT_AGENT_E_REMOVED with
 * words; or negative errno with words.
 */
int without_agent_leave(
    const char *state_dir, const char *socket_path, struct without_agent_done *ret, struct err *e);
