/*
 * node.h - what a training command needs to know of the node that it starts on.
 *
 * Asked of the agent's own socket, and read from /sys.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>

#include "base/addr.h"
#include "base/parse.h"
#include "train/job/env.h"

struct err;

struct train_node {
    char name[NAME_MAX_LEN + 1];
    char network[NAME_MAX_LEN + 1];
    char interface[IF_NAMESIZE];
    char address4[IP_ADDR_TEXT_MAX];
    struct endpoint hub; /* its API, on the overlay; port 0: there is no hub */
    bool hub_heard;
    enum env_islands islands;
    unsigned n_others;   /* nodes of other islands, and of none */
    bool has_infiniband; /* a verbs device: InfiniBand, RoCE, EFA */
    long speed_mbit;     /* as the kernel says of the interface; -1: it does not */
};

/**
 * train_node_read() - ask the agent of this machine for what a job has to know of the node
 * @ret:	untouched on failure
 * @socket_path: the agent's
 *
 * Return: 0; LAUNCH_E_NO_AGENT with words; or negative errno with words.
 */
int train_node_read(struct train_node *ret, const char *socket_path, struct err *e);
