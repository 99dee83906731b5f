/*
 * node.h - finds out what a training command needs to know of the node that it starts on.
 *
 * The agent says most of it on its socket; the rest is read from /sys.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>

#include "base/addr.h"
#include "base/parse.h"
#include "net/socket/local_ports.h"
#include "train/job/env.h"

struct err;

/** This node, as its agent and its kernel describe it. */
struct train_node {
    char name[NAME_MAX_LEN + 1];
    char network[NAME_MAX_LEN + 1];  /* the network's name */
    char interface[IF_NAMESIZE];     /* name of the overlay's interface */
    char address4[IP_ADDR_TEXT_MAX]; /* IPv4, on the overlay */
    struct endpoint hub;             /* the hub's API on the overlay; port 0: there is no hub */
    bool has_hubs;                   /* the network has several hubs */
    bool hub_heard;                  /* the agent says that the hub is reachable */
    enum env_islands islands;
    unsigned n_others; /* nodes outside this node's island; all others when it is in none */
    char far[NAME_MAX_LEN + 1]; /* the farthest of them by its round trip; "": not measured */
    double far_rtt_ms;
    bool has_infiniband;      /* the machine has a verbs device: InfiniBand, RoCE or EFA */
    struct local_ports ports; /* that the kernel chooses */
    long speed_mbit;          /* the interface's speed in Mbit/s, from the kernel; -1: not known */
};

/**
 * train_node_read() - ask the agent of this machine for what a job has to know of the node
 * @ret:	untouched on failure
 * @socket_path:	the agent's socket
 *
 * Return: 0; AGENT_ASK_E_NONE with words; or negative errno with words.
 */
int train_node_read(struct train_node *ret, const char *socket_path, struct err *e);
