/*
 * job_calls.h - the calls of a job to the hub, for commands of this machine.
 *
 * The hub takes them only with a proof of the node's key (docs/wire/member.md), which the agent
 * has. So `weft run` asks the agent and gets the hub's answer. Only some calls are sent at once and
 * the rest wait, because the hub bounds the connections of a member, and the agent's own need room.
 * The connections of the agent's socket bound how many wait.
 *
 * Of several hubs one serves the jobs. Any other one answers with that one's name and status 421,
 * and the call is sent once more, there.
 *
 * Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/list.h"

struct hub_link;
struct response;

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

/** job_calls_on_gone() - that link ends: calls that were sent through it are sent anew. */
void job_calls_on_gone(struct job_calls *jc, const struct hub_link *hub);

/** job_calls_end() - send none of the calls that wait. The server's end frees all of them. */
void job_calls_end(struct job_calls *jc);

/**
 * job_calls_begin() - send a call, or queue it; the answer is the hub's
 * @method:	a constant
 * @job:	the job's name; NULL: all jobs of the network
 * @what:	of the job: "rendezvous" or "nccl"; a constant
 * @body:	goes with it; gets a reference; NULL: none
 * @rs:		gets the deferred answer, or a refusal
 */
void job_calls_begin(struct job_calls *jc, const char *method, const char *job, const char *what,
    const json_t *body, struct response *rs);
