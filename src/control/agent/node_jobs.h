/*
 * node_jobs.h - which jobs run on this machine, and who else is in their runs.
 *
 * `weft run` asks the agent where its job meets, and says when the job has ended. So the agent
 * knows of both; and it watches the process that asked, since one that is killed says nothing.
 * While a job runs, the hub is asked every few seconds who has come to its run: what moves between
 * these nodes is the job's (meter.h). Its answer says as well what is left of the job's budget, and
 * how fast its nodes may send each other when it is spent; the interface is made to keep to that.
 *
 * A process that cannot be seen from here, in a container say, counts until it says that it has
 * ended.
 *
 * Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/parse.h"

struct deferred;
struct job_calls;
struct meter;

/** Commands of jobs that run here at once and are known of. */
#define NODE_JOBS_MAX 32

/** A command. */
struct node_job {
    char job[NAME_MAX_LEN + 1];
    int32_t pid;          /* of `weft run`; 0: not known */
    int pid_fd;           /* owns; readable when the process has ended; -1: it cannot be watched */
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

/** node_jobs_init() - none runs. Both are pinned. */
void node_jobs_init(struct node_jobs *nj, struct job_calls *calls, struct meter *meter);

/** node_jobs_stop() - let go of all; before the hubs' links end. Idempotent. */
void node_jobs_stop(struct node_jobs *nj);

/** node_jobs_begin() - the process @pid (0: not known) begins a run of @job, or goes on with it. */
void node_jobs_begin(struct node_jobs *nj, const char *job, int32_t pid, nsec_t now);

/** node_jobs_end() - and it has ended. */
void node_jobs_end(struct node_jobs *nj, const char *job, int32_t pid);

/** node_jobs_set_nccl() - which network NCCL took in that command; @said: as
 * nccl_request_encode() gives it; taken. Nothing happens when the command is not known. */
void node_jobs_set_nccl(struct node_jobs *nj, const char *job, int32_t pid, json_t *said);

/** node_jobs_add_nccl() - puts "nccl" into the objects of @list, by their "job"; null: not said. */
void node_jobs_add_nccl(const struct node_jobs *nj, json_t *list);

/** node_jobs_add_budgets() - puts "budget" into the objects of @list, by their "job"; null: none.
 */
void node_jobs_add_budgets(const struct node_jobs *nj, json_t *list);

/** node_jobs_poll() - after each poll of the engine: who has ended, and who is in the runs. */
void node_jobs_poll(struct node_jobs *nj, nsec_t now);

/** node_jobs_within() - how soon to poll again, ns; NSEC_NEVER: no limit. */
nsec_t node_jobs_within(const struct node_jobs *nj);
