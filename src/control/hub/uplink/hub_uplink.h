/*
 * hub_uplink.h - finds what the line of a hub carries, where nobody has said it (`weft hub up
 * --line`): by trains to its nodes.
 *
 * Theory of operation. As a node does (uplink/uplink_plan.h, uplink/uplink.h), a hub sends trains
 * to one node after the other, each by a process of its own, `weft trains`
 * (measure/train_process.h), to the address from which the node's session comes. Not while a job
 * runs on the node, nor while much is relayed. What they say together is what the line
 * carries; it is known until the hub ends.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/text.h"
#include "uplink/uplink.h"
#include "uplink/uplink_plan.h"

struct model;
struct model_network;
struct model_node;
struct relay_line;

/** Where a node is reached. False: it is not known, or its session is old, or in TLS. */
typedef bool (*hub_uplink_place_fn)(const struct model_node *node, nsec_t now, struct ip_addr *ret);

struct hub_uplink {
    const char *program;       /* pins; is started with the word "trains"; NULL: this one */
    hub_uplink_place_fn place; /* where nodes are */
    struct uplink trains;
    struct uplink_plan plan; /* all zero: nothing is sent */
    uint64_t found;          /* what the line carries, bit/s; 0: it is not known */
    struct str said;         /* owns; what the process has said so far */
    int fd;                  /* owns; of the process; -1: it says no more */
    pid_t pid;               /* 0: none runs */
    nsec_t started_at;
    char peer[NAME_MAX_LEN + 1]; /* to whom it sends: its public key, which no two nodes share */
};

#define HUB_UPLINK_NULL                                                                            \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/** hub_uplink_init() - begin some minutes from @now. @random: any number. */
void hub_uplink_init(struct hub_uplink *hu, hub_uplink_place_fn place, uint32_t random, nsec_t now);

/**
 * hub_uplink_tick() - each second: start a process when it is time, and take what one has said
 * @line:	how the relay's is
 *
 * Never waits.
 *
 * Return: @found is another one.
 */
bool hub_uplink_tick(struct hub_uplink *hu, const struct model *model,
    const struct relay_line *line, nsec_t now, int64_t wall_s);

/** hub_uplink_deinit() - kill the process. Idempotent, safe on HUB_UPLINK_NULL. */
void hub_uplink_deinit(struct hub_uplink *hu);
