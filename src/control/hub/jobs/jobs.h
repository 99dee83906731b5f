/*
 * jobs.h - rendezvous: where the processes of a training job find each other.
 *
 * A *job* of a network has a name, a TCP port on the hub's overlay addresses,
 * and behind it two things that PyTorch knows how to talk to: a TCPStore
 * (`c10d`) and the v2 keys API of etcd (`etcd-v2`). Both are kept in the hub's
 * store, so they outlive every node and the hub itself. What they look like on
 * the wire, and what is promised, is in docs/wire/rendezvous.md.
 *
 * Theory of operation. Whoever serves those ports reads what strangers send,
 * so each network has a process for it that has neither keys nor privileges
 * (rendezvous/process/rdzv_process.h). The hub opens the ports and hands them over,
 * keeps what the process tells it, and tells all of that to the next process
 * when one dies. The hub alone knows which jobs there are, and which run is
 * the current one; what a process says of another run is ignored.
 *
 * Jobs are separate: nothing of one is seen in another. A network's jobs are
 * served on that network's interface only, so the source address of a
 * connection is the member. The job called "default" is always there, on the
 * two well-known ports, for torchrun without `weft run`; others are made by
 * POST /v1/jobs/NAME/rendezvous.
 *
 * A job's life is made of *runs*. PyTorch leaves its state behind when a run
 * ends, marked closed, and would refuse to start over it. So each run has a
 * name of its own (NAME.1, NAME.2), to be used as rendezvous id, and begins
 * with nothing in the stores. A run ends when nobody has been heard for
 * JOBS_QUIET, or when somebody says so while nobody else is connected, or when a member says that
 * it cannot go on: a job of a fixed size has broken as soon as one of its nodes has. Only a member
 * that has come to the run may say so; a hub that was started since does not know who has.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

struct findings;
struct job;
struct job_sample;
struct job_slow_line;
struct jobs;
struct jobs_env;
struct keys;
struct list;
struct store;
struct str;
struct uv_loop_s;

/** A run has ended when nobody was heard in it for so long. Who comes later begins a new run. */
#define JOBS_QUIET (60 * NSEC_PER_SEC)

/** A job is forgotten when nobody was heard in it for so long. */
#define JOBS_IDLE (7200 * NSEC_PER_SEC)

/** Jobs of a network, and the ports that they are given. */
#define JOBS_JOBS_MAX   256
#define JOBS_PORT_FIRST 29600

/** The job that is always there, and its ports: etcd's, and torchrun's for c10d. */
#define JOBS_DEFAULT      "default"
#define JOBS_DEFAULT_ETCD 2379
#define JOBS_DEFAULT_C10D 29400

/* Outcomes. */
#define JOBS_E_FULL     1 /* the network has JOBS_JOBS_MAX jobs */
#define JOBS_E_BUSY     2 /* others are connected */
#define JOBS_E_PACE     3 /* runs of the network begin and end too fast */
#define JOBS_E_AGAIN    4 /* it is on its way to the disk; ask again when done is called */
#define JOBS_E_STRANGER 5 /* who says that a run is broken has not come to it */
#define JOBS_E_OVER     6 /* a run that is broken has ended on a member: it is not begun again */

/** Room for the name of an interface, with the terminating zero. */
#define JOBS_INTERFACE_MAX 16

/**
 * The outcome that JOBS_E_AGAIN promised. @r: 0: it is on the disk, and the call is to be made once
 * more; or negative errno: it is not, and @e has words.
 */
typedef void (*jobs_done_fn)(void *ctx, int r, const struct err *e);

/** Who keeps the list of the store's records that cannot be understood. No member may be NULL. */
struct jobs_records {
    void *ctx; /* pins */

    /* The record with @key cannot be understood, and @why. It is left as it is. */
    void (*damaged)(void *ctx, const char *key, const char *why);

    /* The record with @key was written, or deleted. */
    void (*written)(void *ctx, const char *key);
};

/** Where a network's jobs are served. */
struct jobs_place {
    const char *network;     /* its name */
    const char *interface;   /* which must already have both addresses */
    struct ip_addr address4; /* the hub's own in the network */
    struct ip_addr address6; /* likewise */
    const char *fence;       /* key of a record of the store; NULL: none */
    uint64_t fence_revision; /* nothing is written unless that record has this revision */
    uint64_t epoch;          /* how often the jobs have changed their hub; 0: never */
};

/**
 * The hub's handle of a network whose jobs are served. It lies in the hub's memory, and is zeroes
 * while the network is not served.
 *
 * When another network of the same name is served, the handle of the former one is closed by that.
 */
struct jobs_service {
    struct jobs_served *served; /* pins; NULL: it is not served */
};

/** What rendezvous processes have counted. */
struct job_counts {
    uint64_t n_store_requests;   /* of TCPStore */
    uint64_t n_etcd_requests;    /* of etcd */
    uint64_t n_hung_up;          /* connections that were ended or refused */
    uint64_t n_accepts_deferred; /* for want of descriptors */
};

/** What there is, and what has been done since the start: for metrics. */
struct jobs_counts {
    uint64_t n_jobs;        /* the default ones included */
    uint64_t n_connections; /* to jobs */
    struct job_counts processes;
    uint64_t n_unsaved;  /* changes that are not on the disk */
    uint64_t n_commits;  /* of changes in jobs */
    uint64_t n_failed;   /* of them, those that the disk refused */
    uint64_t n_restarts; /* processes that ended by themselves */
};

/**
 * jobs_new() - read the jobs out of the store, and wait for it; nothing is served yet
 * @loop, @store:	pinned
 * @records:		copied; its functions are called from here on
 * @seed:		random, unknown to strangers
 * @epoch:		random; by it members tell this life of the hub from another
 *
 * Return: 0 or negative errno with words that name the record.
 */
int jobs_new(struct jobs **ret, struct uv_loop_s *loop, struct store *store,
    const struct jobs_records *records, uint64_t seed, uint64_t epoch, struct err *e);

/**
 * jobs_start() - from now on what changes is committed; before any network is opened
 * @networks:	borrowed: all that there are, by name; jobs of others are forgotten
 *
 * Such jobs are left when a hub ends just after it has removed a network. A later network of the
 * same name would have them.
 */
void jobs_start(struct jobs *jobs, const struct keys *networks);

/**
 * jobs_stop() - end all processes, commit; then run the loop until it is empty
 *
 * Waits for the processes to say what is left, JOBS_END_MAX at most, and for the store. Idempotent.
 */
void jobs_stop(struct jobs *jobs);

/** jobs_free() - after jobs_stop() and the loop's end. */
struct jobs *jobs_free(struct jobs *jobs);

/**
 * jobs_load() - read a network's jobs, before they are served here
 *
 * A store of several hubs has the jobs that another hub has served; what was read before is
 * forgotten. With a store of its own a hub has read everything at its start.
 *
 * Return: true: they are read, jobs_open() may be called; false: not yet, call it again later.
 */
bool jobs_load(struct jobs *jobs, const char *network, nsec_t now);

/**
 * jobs_drop() - another hub serves the network's jobs, or may be about to: end all connections, and
 * write nothing any more. Idempotent.
 */
void jobs_drop(struct jobs_service *s);

/** jobs_fence() - the fence_revision with which the network is served. */
uint64_t jobs_fence(const struct jobs_service *s);

/**
 * jobs_open() - serve a network's jobs
 * @s:		the network's, and not served; written
 * @place:	borrowed
 *
 * Its members are to be told with jobs_add_member() in the same turn of the loop. A port that
 * somebody else has is named in a warning, and goes without.
 *
 * Return: 0 or negative errno with words.
 */
int jobs_open(
    struct jobs_service *s, struct jobs *jobs, const struct jobs_place *place, struct err *e);

/** jobs_close() - end the connections of a network; @is_removed: its jobs go with it. Idempotent.
 */
void jobs_close(struct jobs_service *s, bool is_removed);

/** jobs_add_member() - who has this address is a member of the network from now on. */
void jobs_add_member(struct jobs_service *s, const struct ip_addr *address);

/** jobs_set_own_member() - the hub's own machine is the member with this address; none: it is none.
 * Asked again, it is kept up to date. While it is one, who connects from the hub's own addresses,
 * which are any program of the machine, may come to jobs, and else nobody from there. */
void jobs_set_own_member(struct jobs_service *s, const struct ip_addr *address);

/** jobs_end_member() - hang up on who has, or had, the address: it is no member any more. */
void jobs_end_member(struct jobs_service *s, const struct ip_addr *address);

/**
 * jobs_join() - a member is about to start: find the job, make it, or begin a new run of it
 * @name:	checked with parse_name()
 * @member:	who it is
 * @broken:	the name of a run that cannot go on: if it is the present one, a new one begins
 *		though members are connected to it; NULL: none
 * @done:	called later, once, when the outcome is JOBS_E_AGAIN
 * @ret:	lent until the loop's turn ends
 *
 * When it returns 0 all of that is on the disk.
 *
 * Return: 0; JOBS_E_AGAIN; JOBS_E_FULL, JOBS_E_PACE, JOBS_E_STRANGER or JOBS_E_OVER with words; or
 * negative errno with words (-ENOENT: the network is not served).
 */
int jobs_join(struct jobs_service *s, const char *name, const char *member, const char *broken,
    nsec_t now, jobs_done_fn done, void *ctx, struct job **ret, struct err *e);

/**
 * jobs_look() - where a member that came to the job now would meet; nothing is made or begun
 * @ret:	gives a reference: as jobs_json() in brief, with "begins": a run would begin
 *
 * Return: 0; JOBS_E_FULL with words; or negative errno with words, as of jobs_join().
 */
int jobs_look(
    const struct jobs_service *s, const char *name, nsec_t now, json_t **ret, struct err *e);

/** jobs_find() - lends until the loop's turn ends; NULL if the network has no job of that name. */
struct job *jobs_find(const struct jobs_service *s, const char *name);

/** jobs_json() - a job as the API shows it; gives a reference. NULL: no memory. @is_brief: without
 * what NCCL took on its nodes, which is long. */
json_t *jobs_json(const struct job *job, bool is_brief);

/**
 * jobs_has_others() - is anybody else in the present run: a connection, or a command that is heard?
 * @member, @address:	who asks, and does not count
 */
bool jobs_has_others(
    const struct job *job, const char *member, const struct ip_addr *address, nsec_t now);

/**
 * jobs_is_full() - has the present run all its @n_nodes nodes, without @member?
 * @broken:	as for jobs_join(): with it, or if who comes now begins a new run, it is not full
 * @ret_names:	as of job_members_is_full()
 */
bool jobs_is_full(const struct job *job, const char *member, const char *broken, unsigned n_nodes,
    nsec_t now, struct str *ret_names);

/**
 * jobs_take_sample() - how the job goes on a member, in its present run
 * @s:	the names of its peers are filled in
 */
void jobs_take_sample(struct job *job, const char *member, const struct job_sample *s, nsec_t now);

/** jobs_end_samples() - the member's command has ended, so no more samples will come of it. */
void jobs_end_samples(struct job *job, const char *member);

/** jobs_findings() - lends what holds up the network's jobs now; NULL: they are not served. */
const struct findings *jobs_findings(const struct jobs_service *s);

/** jobs_each_rate() - what the network's jobs carry from node to node, as job_health_each_rate();
 * of several jobs each apart. */
void jobs_each_rate(const struct jobs_service *s,
    void (*fn)(void *arg, const char *from, const char *to, uint64_t rate), void *arg);

/** jobs_each() - all jobs of a network that are there for members; none where they are not served.
 */
void jobs_each(
    const struct jobs_service *s, void (*fn)(void *arg, const struct job *job), void *arg);

/** jobs_each_slow() - the lines that hold up the network's jobs, as job_health_each_slow(). */
void jobs_each_slow(const struct jobs_service *s,
    void (*fn)(void *arg, const char *job, const struct job_slow_line *line), void *arg);

/** jobs_list() - all of a network, by name, as JSON text; free(). NULL: no memory. */
char *jobs_list(const struct jobs_service *s);

/** jobs_tick() - forget idle jobs, and what else is done by the clock; each second. */
void jobs_tick(struct jobs *jobs, nsec_t now);

/** jobs_count() - over all networks. */
struct jobs_counts jobs_count(const struct jobs *jobs);

/* ---- which jobs there are, and which blobs, out of the hub's store --------------------------- */

/*
 * A record that cannot be understood is set aside: it is named in the log, counted, and left where
 * it is. It never keeps a hub from starting. What is in the blobs only a rendezvous process reads.
 */

/**
 * job_loader_run() - read all of it; waits for the store
 * @networks:	of struct job_network; empty
 *
 * Return: 0 or negative errno with words.
 */
int job_loader_run(struct list *networks, struct jobs_env *env, struct err *e);
