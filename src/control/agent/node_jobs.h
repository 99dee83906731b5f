/*
 * node_jobs.h - the jobs that run on this machine, and their calls to the hub.
 *
 * Threads: the loop's, where nothing else is said.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/containers.h"
#include "base/parse.h"

struct response;

/* ---- calls to the hub ------------------------------------------------------------------------ */

/*
 * The calls of a job to the hub, for commands of this machine.
 *
 * The hub takes them only with a proof of the node's key (docs/wire/member.md), which the agent
 * has. So `weft run` asks the agent and gets the hub's answer. Only some calls are sent at once and
 * the rest wait, because the hub bounds the connections of a member, and the agent's own need room.
 * The connections of the agent's socket bound how many wait.
 *
 * Of several hubs one serves the jobs. Any other one answers with that one's name and status 421,
 * and the call is sent once more, there.
 */

/** job_calls_find_fn - the link to the hub of that name; NULL: there is none. Pinned. */
typedef struct hub_link *(*job_calls_find_fn)(void *ctx, const char *name);

struct job_calls {
    struct hub_link *hub; /* pins; the hub that serves this node */
    job_calls_find_fn find;
    void *ctx;         /* pins */
    struct list calls; /* those without an answer yet, oldest first */
    bool is_ending;    /* no more calls are sent */
};

/** job_calls_init() - no hub is known yet. @find, @ctx: how other hubs are found. */
void job_calls_init(struct job_calls *jc, job_calls_find_fn find, void *ctx);

/** job_calls_set_hub() - another hub serves this node: calls without an answer go there. Pinned. */
void job_calls_set_hub(struct job_calls *jc, struct hub_link *hub);

/** job_calls_on_gone() - that link ends: calls that were sent through it are sent anew. NULL: all
 * links do. */
void job_calls_on_gone(struct job_calls *jc, const struct hub_link *hub);

/**
 * job_calls_begin() - send a call, or queue it; the answer is the hub's
 * @method:	a constant
 * @job:	the job's name; NULL: all jobs of the network
 * @what:	of the job: "rendezvous", "samples" or "nccl"; a constant
 * @body:	goes with it; gets a reference; NULL: none
 * @rs:		gets the deferred answer, or a refusal
 */
void job_calls_begin(struct job_calls *jc, const char *method, const char *job, const char *what,
    const json_t *body, struct response *rs);

/** job_calls_drain() - PUT /v1/drain, by the same way: how this node's health check is. */
void job_calls_drain(struct job_calls *jc, const json_t *body, struct response *rs);

/* ---- jobs that run here ---------------------------------------------------------------------- */

/*
 * Which jobs run on this machine, and who else is in their runs.
 *
 * `weft run` asks the agent where its job meets, and says when the job has ended. So the agent
 * knows of both; and it watches the process that asked, since one that is killed says nothing.
 * While a job runs, the hub is asked every few seconds who has come to its run: what moves between
 * these nodes is the job's (meter.h). Its answer says as well what is left of the job's budget, and
 * how fast its nodes may send each other when it is spent; the interface is made to keep to that.
 *
 * A process that cannot be seen from here, in a container say, counts until it says that it has
 * ended.
 */

/** Commands of jobs that run here at once and are known of. */
#define NODE_JOBS_MAX 32

/** A command. */
struct node_job {
    char job[NAME_MAX_LEN + 1];
    int32_t pid;          /* of `weft run`; 0: not known */
    int pid_fd;           /* owns; readable when the process has ended; -1: it cannot be watched */
    bool is_started;      /* it has asked how its run is, so what it was to run is there */
    nsec_t began_at;      /* monotonic */
    nsec_t ask_at;        /* when the hub is asked next */
    struct deferred *ask; /* owns; the answer to come; NULL: none */
    json_t *nccl;         /* owns; what the command has said of NCCL; NULL: nothing yet */
    json_t *budget;       /* owns; as the hub has said it last; NULL: the job has none */
};

struct node_jobs {
    struct job_calls *calls; /* pins */
    struct meter *meter;     /* pins */
    struct node_job items[NODE_JOBS_MAX];
    unsigned n;
    bool has_ended; /* one has ended since the owner has set this to false */
};

/** node_jobs_stop() - let go of all; before the hubs' links end. Idempotent. */
void node_jobs_stop(struct node_jobs *nj);

/** node_jobs_begin() - the process @pid (0: not known) begins a run of @job, or goes on with it. */
void node_jobs_begin(struct node_jobs *nj, const char *job, int32_t pid, nsec_t now);

/** node_jobs_start() - it asks how its run is, as `weft run` does once its command is there. Before
 * that it may still test the network, or have a plan made. */
void node_jobs_start(struct node_jobs *nj, const char *job, int32_t pid);

/** node_jobs_started() - how many have started. */
unsigned node_jobs_started(const struct node_jobs *nj);

/** node_jobs_end() - and it has ended. */
void node_jobs_end(struct node_jobs *nj, const char *job, int32_t pid);

/** node_jobs_set_nccl() - which network NCCL took in that command; @said: as
 * nccl_request_encode() gives it; taken. Nothing happens when the command is not known. */
void node_jobs_set_nccl(struct node_jobs *nj, const char *job, int32_t pid, json_t *said);

/** node_jobs_tell() - puts "nccl" and "budget" into the objects of @list, by their "job"; null:
 * there is none. */
void node_jobs_tell(const struct node_jobs *nj, json_t *list);

/** node_jobs_poll() - after each poll of the engine: who has ended, and who is in the runs. */
void node_jobs_poll(struct node_jobs *nj, nsec_t now);
