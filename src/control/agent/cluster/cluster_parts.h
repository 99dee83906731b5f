/*
 * cluster_parts.h - this node's part of each of its edges, and which of them is to be written to a
 * cluster's API next.
 *
 * An agent or a probe that writes its own parts of MeshEdges (cluster_writer.h) says from time to
 * time how all of them are now. A part is written when it says something new, and again each
 * everySeconds, so that readers see from observedAt that its writer runs. No figure that changes
 * all the time is a reason to write (kube_part.h).
 *
 * Theory of operation. An API server is one for all nodes, so the writers hold back by the size of
 * their network, without knowing of each other. All of them together make at most a hundred writes
 * a second: each has a pace of 20 ms for each member, 200 ms at least, since a member has two
 * writers. Half of that is for parts that are only repeated: one is repeated each five minutes, or
 * later where a writer has so many that their number times twice its pace is longer. With 142
 * nodes, all pairs of which are shown, there are 10,000 edges and 40,000 parts: each is repeated
 * each 13 minutes, which makes 50 writes a second, and when all change at once the last one is
 * written after 7 minutes.
 *
 * An edge that the API server does not have is tried again later and later: the hub shows some
 * alone where there are many. While the API server does not answer, or refuses everything,
 * everything waits.
 *
 * Pure: times and random numbers in, JSON out. Threads: one at a time.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/kubernetes/kube_client.h"
#include "base/clock.h"
#include "base/parse.h"
#include "store/keys.h"

/** What a member of the network adds to the pace, and the shortest pace. */
#define CLUSTER_PARTS_PACE_EACH (20 * NSEC_PER_MSEC)
#define CLUSTER_PARTS_PACE_MIN  (200 * NSEC_PER_MSEC)

/** A part is repeated each so many seconds, if there are not too many. */
#define CLUSTER_PARTS_EVERY_S 300

/** One part is written at most each so often. */
#define CLUSTER_PARTS_GAP (5 * NSEC_PER_SEC)

struct cluster_part {
    struct keyed keyed;            /* the other end's name */
    json_t *part;                  /* owns; as it is now; NULL: there is none any more */
    char hash[KUBE_SPEC_HASH_MAX]; /* of it, without what alone is not worth a write */
    char
        written[KUBE_SPEC_HASH_MAX]; /* of what was written last; "": nothing, as far as is known */
    int64_t observed_at;             /* of what was written last, s since 1970 */
    int64_t every_s;                 /* as it said then */
    nsec_t written_at;               /* monotonic */
    nsec_t retry_at;                 /* not before; monotonic */
    unsigned n_absent;               /* tries in a row that have found no such edge */
    bool is_asked_for;               /* a MeshEdge says something about it: it is there */
    bool is_contested;               /* somebody else owns its fields */
    bool is_seen;                    /* in what was told last */
};

struct cluster_parts {
    char name[sizeof("agent/") + NAME_MAX_LEN]; /* of each part: "agent/gpu-1" */
    struct keys items;
    size_t n_members;    /* of the network */
    int64_t observed_at; /* when they were as they are, s since 1970; 0: nothing was told yet */
    nsec_t next_at;      /* no write before; monotonic */
    unsigned n_failed;   /* writes in a row that the server has not answered or has refused */
};

/** cluster_parts_init() - of the writer of that part; nothing was told yet. */
void cluster_parts_init(struct cluster_parts *cp, const char *name);

/** cluster_parts_deinit() - idempotent. */
void cluster_parts_deinit(struct cluster_parts *cp);

/**
 * cluster_parts_set() - how all parts are now
 * @parts:	{"PEER": {...}}
 * @asked_for:	{"PEER": true}, of whom a MeshEdge of the network says something; NULL: of none
 * @n_members:	of the network
 * @wall_s:	s since 1970
 *
 * Return: 0 or -ENOMEM.
 */
int cluster_parts_set(struct cluster_parts *cp, const json_t *parts, const json_t *asked_for,
    size_t n_members, int64_t wall_s);

/** cluster_parts_pace() - the time between two writes. */
nsec_t cluster_parts_pace(const struct cluster_parts *cp);

/** cluster_parts_every_s() - how often each part is written at least. */
int64_t cluster_parts_every_s(const struct cluster_parts *cp);

/** A write. */
struct cluster_parts_write {
    const char *peer; /* borrowed until the next call */
    json_t *status;   /* owns: {"agent/gpu-1": {...}}; empty: the part is to be taken away */
};

/** cluster_parts_next() - what to write at @now. False: nothing, and @ret is untouched. */
bool cluster_parts_next(
    const struct cluster_parts *cp, nsec_t now, struct cluster_parts_write *ret);

/** cluster_parts_due() - when to ask for the next one; NSEC_NEVER: there is none. */
nsec_t cluster_parts_due(const struct cluster_parts *cp);

/** What became of a write. */
enum cluster_parts_result {
    CLUSTER_PARTS_WRITTEN,
    CLUSTER_PARTS_ABSENT,    /* the API server has no such edge */
    CLUSTER_PARTS_CONTESTED, /* somebody else owns its fields */
    CLUSTER_PARTS_FAILED,    /* it does not answer, or refuses this writer */
};

/** cluster_parts_on_result() - of the write that cluster_parts_next() has given last. */
void cluster_parts_on_result(struct cluster_parts *cp, const char *peer,
    enum cluster_parts_result result, uint32_t random, nsec_t now);

/** cluster_parts_is_contested() - does somebody own a part's fields now? */
bool cluster_parts_is_contested(const struct cluster_parts *cp);
