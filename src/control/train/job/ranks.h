/*
 * ranks.h - the rank of each node of a job, by order of arrival, and where its rank 0 is reached.
 *
 * For commands that are no launcher that is known here: a plain script calls
 * init_process_group("env://"), or "tcp://ADDRESS:PORT" with the address and the port of rank 0,
 * and has to know its rank. Each node of a run adds one key to the job's store at the hub, below
 * one directory, whose keys the store numbers (the v2 keys API of etcd, "in-order keys"). A node's
 * rank is the place of its first key, so it is the same when the command is started again on that
 * node. The key also has the node's overlay address and a port that was free there, so that those
 * of rank 0 are known before any command starts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

struct env_meeting;
struct err;

/** Who asks. Texts are borrowed. */
struct ranks_wish {
    const struct env_meeting *meeting; /* with an id, and an etcd at the hub */
    const char *node;                  /* this node's name */
    const char *address4;              /* its address on the overlay */
    unsigned first_port;               /* of those that the kernel chooses; 0: not known */
    bool starts; /* the command is about to start; false: nothing is written, and the rank is that
                    which the node would get now */
};

/** What a command is told. */
struct ranks {
    bool is_known; /* the other fields are set */
    unsigned rank;
    char address[IP_ADDR_TEXT_MAX]; /* of rank 0 */
    uint16_t port;                  /* free on rank 0 when it came; 0: not known before it starts */
};

/**
 * ranks_find() - find this node's rank, and rank 0's address and port
 * @ret:	untouched on failure
 *
 * Blocks while the store is asked, some seconds at most.
 *
 * Return: 0; or non-zero with words: the store does not answer, or no port is free.
 */
int ranks_find(const struct ranks_wish *wish, struct ranks *ret, struct err *e);
