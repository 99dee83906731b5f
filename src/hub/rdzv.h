/*
 * rdzv.h - rendezvous: where the processes of a training job find each other.
 *
 * A *job* of a network has a name, a TCP port on the hub's overlay addresses,
 * and behind it two things that PyTorch knows how to talk to: a TCPStore
 * (`c10d`) and the v2 keys API of etcd (`etcd-v2`). Both are kept in the hub's
 * store, so they outlive every node and the hub itself. What they look like on
 * the wire, and what is promised, is in docs/wire/rendezvous.md.
 *
 * Theory of operation. Jobs are separate: nothing of one is seen in another. A
 * network's jobs are served on that network's interface only, so the source
 * address of a connection is the member. The job called "default" is always
 * there, on the two well-known ports, for torchrun without `weft run`; others
 * are made by POST /v1/jobs/NAME/rendezvous.
 *
 * A job's life is made of *runs*. PyTorch leaves its state behind when a run
 * ends, marked closed, and would refuse to start over it. So each run has a
 * name of its own (NAME.1, NAME.2), to be used as rendezvous id, and begins
 * with nothing in the stores. A run ends when nobody has been heard for
 * RDZV_QUIET, or when somebody says so while nobody else is connected.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

struct err;
struct hub_metrics;
struct model;
struct model_network;
struct rdzv;
struct rdzv_job;
struct uv_loop_s;

/** A run that nobody has been heard in for so long has ended: who comes then begins a new one. */
#define RDZV_QUIET (60 * NSEC_PER_SEC)

/** A job that nobody has been heard in for so long is forgotten. */
#define RDZV_IDLE (7200 * NSEC_PER_SEC)

/** Jobs of a network, and the ports that they are given. */
#define RDZV_JOBS_MAX   256
#define RDZV_PORT_FIRST 29600

/** The job that is always there, and its ports: etcd's, and torchrun's for c10d. */
#define RDZV_DEFAULT      "default"
#define RDZV_DEFAULT_ETCD 2379
#define RDZV_DEFAULT_C10D 29400

/* Outcomes. */
#define RDZV_E_FULL 1 /* the network has RDZV_JOBS_MAX jobs */
#define RDZV_E_BUSY 2 /* others are connected */

/**
 * rdzv_new() - read the jobs out of the store; nothing is served yet
 * @loop, @model:	pinned
 * @seed:		random, unknown to strangers
 * @epoch:		random; by it members tell this life of the hub from another
 *
 * Return: 0 or negative errno with words that name the record.
 */
int rdzv_new(struct rdzv **ret, struct uv_loop_s *loop, struct model *model, uint64_t seed,
    uint64_t epoch, struct err *e);

/**
 * rdzv_start() - from now on what changes is committed; before any network is opened
 *
 * Jobs whose network was removed while they were not served are forgotten.
 *
 * Return: 0 or negative errno with words.
 */
int rdzv_start(struct rdzv *rz, struct err *e);

/** rdzv_stop() - end all connections, commit; then run the loop until it is empty. Idempotent. */
void rdzv_stop(struct rdzv *rz);

/** rdzv_free() - after rdzv_stop() and the loop's end. NULL is fine. Always NULL. */
struct rdzv *rdzv_free(struct rdzv *rz);

/**
 * rdzv_open() - serve a network's jobs
 * @interface:	its name; must already have the hub's two addresses
 *
 * A port that somebody else has is named in a warning, and goes without.
 *
 * Return: 0 or negative errno with words.
 */
int rdzv_open(struct rdzv *rz, struct model_network *net, const char *interface, struct err *e);

/** rdzv_close() - end the connections of a network; @is_removed: its jobs go with it. */
void rdzv_close(struct rdzv *rz, struct model_network *net, bool is_removed);

/** rdzv_end_member() - hang up on who has, or had, the node's address: it is no member any more. */
void rdzv_end_member(
    struct rdzv *rz, const struct model_network *net, const struct ip_addr *address);

/**
 * rdzv_join() - a member is about to start: find the job, make it, or begin a new run of it
 * @name:	checked with parse_name()
 * @ret:	lent until the loop's turn ends
 *
 * When it returns 0 all of that is on the disk.
 *
 * Return: 0; RDZV_E_FULL; or negative errno with words.
 */
int rdzv_join(struct rdzv *rz, struct model_network *net, const char *name, nsec_t now,
    struct rdzv_job **ret, struct err *e);

/** rdzv_find() - lends; NULL if the network has no job of that name. */
struct rdzv_job *rdzv_find(struct rdzv *rz, const struct model_network *net, const char *name);

/**
 * rdzv_end() - the run is over; who comes next begins a new one
 * @who:	says so; that it is connected itself does not matter
 *
 * When it returns 0 that is on the disk.
 *
 * Return: 0; RDZV_E_BUSY with words; or negative errno with words.
 */
int rdzv_end(struct rdzv_job *job, const struct ip_addr *who, struct err *e);

/** rdzv_job_json() - as the API shows it; gives a reference. NULL: no memory. */
json_t *rdzv_job_json(const struct rdzv_job *job);

/** rdzv_list_json() - all of a network, by name; gives a reference. NULL: no memory. */
json_t *rdzv_list_json(struct rdzv *rz, const struct model_network *net);

/** rdzv_tick() - forget idle jobs; each second. */
void rdzv_tick(struct rdzv *rz, nsec_t now);

/** rdzv_metrics() - add to GET /v1/metrics. */
void rdzv_metrics(const struct rdzv *rz, struct hub_metrics *m);
