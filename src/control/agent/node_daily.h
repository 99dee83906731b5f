/*
 * node_daily.h - a sample a day of what the tunnel and the bare line to each peer carry.
 *
 * Of each pair the node whose name comes first measures, by `weft bench PEER --sample`, which this
 * agent starts: one pair after the other, at a random time, some minutes apart, and not while a job
 * runs here. The command tells the agent what it has measured, the agent its hubs, and a hub keeps
 * it by day (mesh/object/daily.h). Only pairs with a path of their own are measured: of what a
 * relay passes on there is no bare line.
 *
 * Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "mesh/object/daily.h"

struct reach;
struct snapshot;

/** What is known of one peer. */
struct node_daily_peer {
    char name[NAME_MAX_LEN + 1];
    struct daily_sample sample; /* the last one; day DAILY_NONE: none */
    uint64_t seq;               /* the later it came, the greater; 0: none has come */
    nsec_t tried_at;            /* when it was to be measured last; 0: never */
};

#define DAILY_NONE (-1)

struct node_daily {
    struct node_daily_peer peers[DAILY_PEERS_MAX];
    size_t n;
    uint64_t seq;      /* of the last sample that came */
    nsec_t due_at;     /* of the next look; 0: node_daily_init() was not called, and nothing is */
    pid_t pid;         /* of the command; 0: none runs */
    nsec_t started_at; /* of it */
};

/** What a look is made of. Borrowed. */
struct node_daily_facts {
    const struct snapshot *snapshot;
    const struct reach *reach; /* how each peer is reached */
    bool is_busy;              /* a job runs here */
    nsec_t now;
    int32_t day; /* since 1970 */
};

/** node_daily_init() - begin to look at a random time. @random: any number. */
void node_daily_init(struct node_daily *nd, uint64_t random, nsec_t now);

/**
 * node_daily_next() - whom to measure now
 *
 * The one that is given counts as tried. Call it when nothing runs.
 *
 * Return: the name, borrowed until the next call; NULL: nobody, or it is not time yet.
 */
const char *node_daily_next(struct node_daily *nd, const struct node_daily_facts *facts);

/** node_daily_poll() - have the command measure whoever is due, and end one that hangs.
 * @socket_path: the agent's. */
void node_daily_poll(
    struct node_daily *nd, const struct node_daily_facts *facts, const char *socket_path);

/**
 * node_daily_take() - what was measured
 * @body:	{"peer": NAME, "sample": as daily_sample_decode() takes it}
 *
 * Return: 0; -EINVAL with words; -ENOSPC with words: there is no room for that peer.
 */
int node_daily_take(
    struct node_daily *nd, const struct snapshot *s, const json_t *body, struct err *e);

/**
 * node_daily_encode() - what has come since, as a report has it
 * @seq:	of the last sample that the hub took
 * @ret_seq:	of the last one in it
 *
 * Return: a new reference; NULL: nothing, or no memory.
 */
json_t *node_daily_encode(const struct node_daily *nd, uint64_t seq, uint64_t *ret_seq);
