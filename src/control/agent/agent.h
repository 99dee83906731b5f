/*
 * agent.h - keeps one node as its network wants it.
 *
 * Theory of operation. All runs on one libuv loop. The hub's events change the
 * snapshot; soon after, one pass of reconcile makes the interface follow. Once
 * a second the agent looks around: what the engine sees of the peers, whether
 * the hub answers, what there is to report. Nothing that is heard, or not
 * heard, ever takes a working tunnel down, but for the hub's own word that this
 * node has been removed, and `weft leave`.
 *
 * The interface and its engine outlive the agent. Calls to the engine and to
 * the kernel block, with a deadline of a few seconds.
 */
#pragma once

#include <sys/resource.h>

#include <stdbool.h>

struct err;
struct hosts_helper;

/** The measuring service's socket is the agent's with this behind it. */
#define AGENT_MEASURE_SUFFIX ".measure"

struct agent_config {
    const char *state_dir;
    const char *socket_path;
    bool no_measure;            /* offer no measuring service */
    struct hosts_helper *hosts; /* borrowed: writes the hosts file; NULL: the agent does */
    struct rlimit memlock;      /* RLIMIT_MEMLOCK as it was before the agent lifted it for its keys:
                                   what a program of this machine may lock */
};

/** How an agent has ended; this node is one still after the first two. */
enum agent_end {
    AGENT_END_STOPPED, /* by a signal: the interface stays */
    AGENT_END_DOWN,    /* by `weft agent --take-down`: the interface and the names are gone */
    AGENT_END_LEFT,    /* by `weft leave`: nothing is left */
    AGENT_END_REMOVED, /* by the hub: nothing is left */
};

/** This machine has not joined a network. */
#define AGENT_E_NOT_JOINED 1

/**
 * agent_run() - until it is told to end
 * @ret:	set on success
 *
 * Return: 0; AGENT_E_NOT_JOINED with words; or negative errno with words.
 */
int agent_run(const struct agent_config *config, enum agent_end *ret, struct err *e);
