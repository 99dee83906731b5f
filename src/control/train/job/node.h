/*
 * node.h - finds out what a training command needs to know of the node that it starts on.
 *
 * The agent says most of it on its socket; the rest is read from /sys.
 */
#pragma once

#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/parse.h"
#include "net/socket/socket.h"
#include "train/job/env.h"

/** This node, as its agent and its kernel describe it. */
struct train_node {
    char name[NAME_MAX_LEN + 1];
    char network[NAME_MAX_LEN + 1];  /* the network's name */
    char interface[IF_NAMESIZE];     /* name of the overlay's interface */
    char address4[IP_ADDR_TEXT_MAX]; /* IPv4, on the overlay */
    struct endpoint hub;             /* the hub's API on the overlay; port 0: there is no hub */
    bool has_hubs;                   /* the network has several hubs */
    bool hub_heard;                  /* the agent says that the hub is reachable */
    bool is_one_island;              /* every other node is in this node's island */
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

/** train_node_locals() - the addresses of an interface of this machine, @cap at most. Return: how
 * many. */
unsigned train_node_locals(const char *interface, struct ip_addr *ret, unsigned cap);

/*
 * The nodes of this node's island, as its private network reaches them.
 *
 * What `weft run --island-lan` gives a job: the nodes of the island with their addresses on the
 * private network, and a hosts file in which their names lead there instead of onto the overlay.
 *
 * Only a node counts whose packets the agent sends over the private network at present: its address
 * there is one from which the node has answered a sealed frame, so it is that node's. An island
 * that measurements contradict counts only with a label. The node's own name stays on the overlay,
 * since programs announce themselves by it to nodes of other islands, too.
 *
 * Pure: the agent's status and a text go in.
 */

/** A node of the island. */
struct island_mate {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr overlay4; /* its addresses on the overlay; none: not known */
    struct ip_addr overlay6;
    struct ip_addr lan; /* its address on the private network */
};

struct island_lan {
    struct island_mate *mates; /* owns */
    size_t n;
};

#define ISLAND_LAN_NULL                                                                            \
    {                                                                                              \
        0                                                                                          \
    }

/** The first line of a hosts file that island_lan_hosts() has made. */
#define ISLAND_LAN_MARK "# weft run --island-lan: nodes of this island at their private addresses\n"

/**
 * island_lan_of_status() - the nodes of the island, from an agent's status (GET /v1/status)
 * @ret:	untouched on failure; to be released with island_lan_deinit()
 *
 * Return: 0 or -ENOMEM.
 */
int island_lan_of_status(struct island_lan *ret, const json_t *status);

/** island_lan_deinit() - idempotent. */
void island_lan_deinit(struct island_lan *l);

/** island_lan_format() - append a line for each node, as in a hosts file: address and name. */
void island_lan_format(const struct island_lan *l, struct str *out);

/**
 * island_lan_hosts() - append a hosts file in which the nodes' names lead to the private addresses
 * @old:	@len bytes of a hosts file, whatever they are
 *
 * Lines with a node's overlay address get the private one; its line of the other family is left
 * out. All other lines stay as they are.
 */
void island_lan_hosts(const struct island_lan *l, struct str *out, const char *old, size_t len);
