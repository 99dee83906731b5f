/*
 * agent_jobs.c - a job's calls to the hub, for commands of this machine.
 *
 * The hub takes them only with a proof of the node's key (docs/wire/member.md), which the agent
 * has; so `weft run` asks here, and gets what the hub answers. Some are on their way at once and
 * the rest wait, so that the hub, which bounds a member's connections, always has room for the
 * agent's own. How many wait is bounded by the socket's connections.
 */
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_internal.h"
#include "agent/hub_ask.h"
#include "api/deferred.h"
#include "base/err.h"
#include "base/parse.h"

/* The hub takes eight connections of a member: the watch, a report and two more are our own. */
#define AT_ONCE 4

#define TIMEOUT_MS 5000

/* One of them. Freed when the server has done with it. */
struct job_call {
    struct deferred deferred;
    struct list link; /* in the agent's */
    struct agent *agent;
    struct hub_ask *ask; /* on its way; NULL: not yet, or not any more */
    const char *method;
    char path[HUB_ASK_PATH_MAX + 1];
};

static void send_more(struct agent *a);

static void on_closed(struct deferred *d)
{
    struct job_call *call = container_of(d, struct job_call, deferred);
    struct agent *a = call->agent;

    call->ask = hub_ask_cancel(call->ask);
    list_remove(&call->link);
    free(call);
    if (!a->is_ending)
        send_more(a);
}

/* What the hub has said, or why it has not. */
static void answer(struct job_call *call, const struct client_answer *said, const struct err *e)
{
    struct response rs = {0};

    if (said && said->status == 204)
        response_empty(&rs);
    else if (said && said->status != 0)
        response_json(&rs, said->status, json_incref(said->body));
    else
        response_refuse(&rs, 502, "%s", err_text(e));
    deferred_answer(&call->deferred, &rs);
}

static void on_done(void *ctx, int result, const struct client_answer *said, const struct err *e)
{
    struct job_call *call = ctx;

    call->ask = NULL;
    answer(call, said, e);
}

static void send_more(struct agent *a)
{
    struct job_call *call;
    unsigned n = 0;

    list_foreach(call, &a->job_calls, link) {
        struct err e = ERR_NULL;

        if (call->deferred.is_ready)
            continue;
        if (n++ >= AT_ONCE)
            return;
        if (!call->ask && hub_link_ask(a->hub, call->method, call->path, TIMEOUT_MS, on_done, call,
                              &call->ask, &e) != 0)
            answer(call, NULL, &e);
    }
}

/* @job: NULL for all of them. */
static void begin(struct agent *a, const char *method, const char *job, struct response *rs)
{
    struct job_call *call;
    struct err e = ERR_NULL;

    if (job && parse_name(job, "job", &e) != 0) {
        response_fail(rs, &e);
        return;
    }
    call = calloc(1, sizeof(*call));
    if (!call) {
        response_refuse(rs, 500, "no memory for a call to the hub");
        return;
    }
    call->deferred.on_closed = on_closed;
    call->agent = a;
    call->method = method;
    (void)snprintf(call->path, sizeof(call->path), "/v1/jobs%s%s%s", job ? "/" : "", job ? job : "",
        job ? "/rendezvous" : "");
    list_add_tail(&a->job_calls, &call->link);
    rs->deferred = &call->deferred;
    send_more(a);
}

void agent__jobs(void *ctx, const struct request *rq, struct response *rs)
{
    begin(ctx, "GET", NULL, rs);
}

void agent__job_get(void *ctx, const struct request *rq, struct response *rs)
{
    begin(ctx, "GET", rq->params[0], rs);
}

void agent__job_join(void *ctx, const struct request *rq, struct response *rs)
{
    begin(ctx, "POST", rq->params[0], rs);
}

void agent__job_end(void *ctx, const struct request *rq, struct response *rs)
{
    begin(ctx, "DELETE", rq->params[0], rs);
}
