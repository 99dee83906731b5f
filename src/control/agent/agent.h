/*
 * agent.h - keeps one node as its network wants it.
 *
 * Theory of operation. All runs on one libuv loop. The hub's events change the
 * snapshot; soon after, one pass of reconcile makes the interface follow. Once
 * a second the agent polls: what the engine sees of the peers, whether the hub
 * answers, what there is to report. A working tunnel is taken down only when the
 * hub says that this node has been removed, by `weft leave`, and by
 * `weft agent --take-down`.
 *
 * The interface and its engine outlive the agent. Calls to the engine and to
 * the kernel block, with a deadline of a few seconds.
 */
#pragma once

#include <sys/resource.h>

#include <stdbool.h>

#include "agent/node_metrics.h"

struct err;

/** The path of the measuring service's socket is that of the agent's socket with this suffix. */
#define AGENT_MEASURE_SUFFIX ".measure"

struct agent_config {
    const char *state_dir;
    const char *socket_path;
    const char *cluster;  /* what follows "kubernetes:" (kube_client.h): the cluster whose API
                             says who is in the network; NULL: the hub does */
    const char *edges_to; /* likewise: where this node's parts of edges are written; NULL: the hub
                             writes them, where it shows them */
    nsec_t trust_after;   /* how long a peer's key has to be silent before another is believed; 0:
                             as usual */
    bool no_measure;      /* offer no measuring service */
    bool asks_gpus;       /* ask NVIDIA's driver how the GPUs are; this program knows "gpus" */
    struct metrics_place metrics; /* where Prometheus asks; nowhere: only at the socket */
    struct hosts_helper *hosts;   /* borrowed: writes the hosts file; NULL: the agent does */
    struct echo_socket *pings;    /* borrowed: for stock peers; NULL: they are not measured */
    struct rlimit memlock; /* RLIMIT_MEMLOCK as it was before the agent lifted it for its keys:
                              what a program of this machine may lock */
};

/** How an agent has ended. After the first two the machine is still a node. */
enum agent_end {
    AGENT_END_STOPPED, /* by a signal: the interface stays */
    AGENT_END_DOWN,    /* by `weft agent --take-down`: the interface and the names are gone */
    AGENT_END_LEFT,    /* by `weft leave`: nothing is left */
    AGENT_END_REMOVED, /* by the hub: nothing is left */
};

/** This machine has not joined a network. */
#define AGENT_E_NOT_JOINED 1

/**
 * agent_run() - run the agent until it is told to end
 * @ret:	set on success: how it has ended
 *
 * Return: 0; AGENT_E_NOT_JOINED with words; or negative errno with words.
 */
int agent_run(const struct agent_config *config, enum agent_end *ret, struct err *e);
