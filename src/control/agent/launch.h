/*
 * launch.h - what commands do with the agent: start it, ask it, and leave the network without it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "agent/state/state.h"
#include "mesh/names/hosts.h"

struct err;

/** This variable is set for an agent that logs to a file of its own: each line has the time. */
#define LAUNCH_LOG_TIME "WEFT_LOG_TIME"

/** No agent answers on the socket. */
#define LAUNCH_E_NO_AGENT 1

/** How an agent was started. */
struct launch {
    bool by_systemd;
    pid_t pid;               /* of a detached one; else 0 */
    char log_path[PATH_MAX]; /* where a detached one writes; else "" */
};

/**
 * launch_agent() - start the agent: by systemd where it runs and has our unit, else as a detached
 * process
 *
 * Our unit is for the default paths; with other paths the agent is always a detached process.
 *
 * Return: 0; or non-zero with words.
 */
int launch_agent(const char *state_dir, const char *socket_path, struct launch *ret, struct err *e);

/**
 * launch_ask() - a request to the running agent
 * @ret:	gives a reference; may be NULL when the body is not wanted
 *
 * Return: 0; LAUNCH_E_NO_AGENT with words; or other non-zero with words.
 */
int launch_ask(const char *socket_path, const char *method, const char *path, unsigned timeout_ms,
    json_t **ret, struct err *e);

/**
 * launch_wait() - wait until the agent has had a handshake with the hub
 *
 * And for three seconds more, at most, until the hub has told it who the other nodes are.
 * @ret_status:	the agent's status then; gives a reference
 *
 * Return: 0; or non-zero with words about what is missing after @timeout_ms.
 */
int launch_wait(const struct launch *launch, const char *socket_path, unsigned timeout_ms,
    json_t **ret_status, struct err *e);

/** What has been done for a node whose agent does not run. */
struct launch_farewell {
    char network[NAME_MAX_LEN + 1];
    char interface[STATE_INTERFACE_MAX];
    bool told;     /* the hub has been told that the node leaves */
    char why[256]; /* why it has not; "" if it has */
    char hosts_owner[HOSTS_OWNER_MAX];
    char names_why[256]; /* why the names are still in the hosts file; "" if they are not */
};

/**
 * launch_take_down_alone() - remove the interface and the names where no agent runs
 *
 * What has been joined stays.
 *
 * @socket_path:	as for launch_leave_alone()
 * @ret:	its @told and @why are not set
 *
 * Return: as launch_leave_alone().
 */
int launch_take_down_alone(
    const char *state_dir, const char *socket_path, struct launch_farewell *ret, struct err *e);

/**
 * launch_leave_alone() - leave the network where no agent runs
 * @socket_path:	of the agent that was; a socket that it has left there is removed, too
 *
 * The hub is told if it can be reached; the node's files and its interface are removed in any case.
 *
 * Return: 0; STATE_E_ABSENT with words: there is nothing to leave; or negative
 * errno with words.
 */
int launch_leave_alone(
    const char *state_dir, const char *socket_path, struct launch_farewell *ret, struct err *e);
