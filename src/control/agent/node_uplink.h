/*
 * node_uplink.h - finds what this node's uplink carries, so that the interface has a rate that
 * nobody has typed.
 *
 * Trains to peers (uplink/train.h) are sent by `weft bench PEER --uplink`, which this agent starts,
 * one after the other (uplink/uplink_plan.h), and not while a job runs here. What they say together
 * (uplink/uplink.h) is kept in the state directory, so that a new agent goes on where this one
 * ends, and is followed while it is used (uplink/uplink_follow.h). Where the node has a rate of its
 * object, or is to have none, or its engine keeps none, nothing is sent.
 *
 * Only peers with a path of their own count: what a relay passes on shows the relay's line.
 *
 * Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"
#include "base/clock.h"
#include "mesh/object/node_status.h"
#include "uplink/uplink.h"
#include "uplink/uplink_follow.h"
#include "uplink/uplink_plan.h"

struct err;
struct node;
struct observe;
struct reach;
struct snapshot;

struct node_uplink {
    char path[PATH_MAX]; /* of the file; "": nothing is kept */
    struct uplink trains;
    struct uplink_follow follow;
    struct uplink_plan plan; /* all zero: node_uplink_init() was not called, and nothing is sent */
    pid_t pid;               /* of the command; 0: none runs */
    nsec_t started_at;       /* of it */
    struct ip_addr outside;  /* this node's address as the hub sees it; none: not known */
    enum uplink_state state; /* as of the last look */
    bool may_have_rate;      /* as of the last look: it has no rate of its object, may have one, and
                                its engine keeps it */
};

/** What a look is made of. Borrowed. */
struct node_uplink_facts {
    const struct snapshot *snapshot;
    const struct reach *reach;  /* how each peer is reached */
    const struct observe *seen; /* what the engine has sent to each */
    struct ip_addr outside;     /* this node's address as the hub sees it; none: not known */
    bool keeps_rates;           /* the engine does */
    bool is_busy;               /* a job runs here */
    nsec_t now;
    int64_t wall_s; /* since 1970 */
};

/**
 * node_uplink_init() - read what is kept, and begin to look at a random time
 * @state_dir:	of the node; NULL: nothing is kept
 * @random:	any number
 */
void node_uplink_init(
    struct node_uplink *nu, const char *state_dir, uint32_t random, nsec_t now, int64_t wall_s);

/** node_uplink_next() - to whom to send a train now; call it when nothing runs. Return: the name,
 * borrowed until the next call; NULL: to nobody, or it is not time yet. */
const char *node_uplink_next(struct node_uplink *nu, const struct node_uplink_facts *facts);

/**
 * node_uplink_poll() - have the command measure whoever is due, and follow what is found
 * @socket_path:	the agent's
 *
 * Return: node_uplink_rate() is another one.
 */
bool node_uplink_poll(
    struct node_uplink *nu, const struct node_uplink_facts *facts, const char *socket_path);

/** node_uplink_rate() - at which the interface is to send, bit/s; 0: nothing was found, or it has a
 * rate of its object, or is to have none. */
uint64_t node_uplink_rate(const struct node_uplink *nu);

/**
 * node_uplink_take() - what a train has come to
 * @body:	{"peer": NAME, "bitsPerSecond": N, "isLine": BOOL}
 *
 * Return: 0; or -EINVAL with words.
 */
int node_uplink_take(struct node_uplink *nu, const struct snapshot *s, const json_t *body,
    nsec_t now, int64_t wall_s, struct err *e);

/**
 * node_uplink_report() - what hubs are told
 * @node:	this node, as the snapshot has it
 * @rate:	at which the interface sends now, bit/s; 0: as fast as it can
 */
struct uplink_report node_uplink_report(
    const struct node_uplink *nu, const struct node *node, uint64_t rate, int64_t wall_s);

/** node_uplink_encode() - the same for the node's status, with how many trains agree, and why there
 * is no rate. A new reference; NULL: no memory. */
json_t *node_uplink_encode(
    const struct node_uplink *nu, const struct node *node, uint64_t rate, int64_t wall_s);

/** node_uplink_decode() - what is kept: {"trains": [{"peer", "bitsPerSecond", "isLine", "at"}]}. 0;
 * or -EINVAL with words, and @ret is untouched. */
int node_uplink_decode(struct uplink *ret, const json_t *json, const char *where, struct err *e);

/** node_uplink_encode_kept() - the same as text to be kept; a new reference; NULL: no memory. */
json_t *node_uplink_encode_kept(const struct uplink *u);
