/* job_calls.c - see job_calls.h. */
#include "agent/hublink/job_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/hublink/hub_ask.h"
#include "agent/hublink/hub_link.h"
#include "api/server/server.h"
#include "base/err.h"
#include "base/parse.h"

/*
 * Calls that are sent at once. The hub takes eight connections of a member, and the agent itself
 * needs four: the watch, a report, a question about UDP, and one of weft leave.
 */
#define AT_ONCE 4

#define TIMEOUT_MS 5000

#define STATUS_OTHER_HUB 421

/** A call. Freed when the server needs its answer no more. */
struct job_call {
    struct deferred deferred;
    struct list link;        /* of its owner's list */
    struct job_calls *owner; /* pins */
    struct hub_ask *ask;     /* on its way; NULL: not sent yet, or answered */
    struct hub_link *at; /* pins; the hub that it goes to; NULL: the one that serves this node */
    bool is_sent_on;     /* a hub has named another one */
    const char *method;
    json_t *body; /* owned; NULL: none */
    char path[HUB_ASK_PATH_MAX + 1];
};

static void send_more(struct job_calls *jc);

static void on_closed(struct deferred *d)
{
    struct job_call *call = container_of(d, struct job_call, deferred);
    struct job_calls *jc = call->owner;

    call->ask = hub_ask_cancel(call->ask);
    list_remove(&call->link);
    json_decref(call->body);
    free(call);
    if (!jc->is_ending)
        send_more(jc);
}

/* @said: NULL, or without a status, if the hub has not answered; @e says why. */
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

/* Does the hub say that another one serves the jobs? Then the call is to be sent there. */
static bool is_sent_on(struct job_call *call, const struct client_answer *said)
{
    const char *name = json_string_value(json_object_get(said->body, "hub"));

    if (said->status != STATUS_OTHER_HUB || !name || call->is_sent_on)
        return false;
    call->at = call->owner->find(call->owner->ctx, name);
    call->is_sent_on = call->at != NULL;
    return call->is_sent_on;
}

static void on_done(void *ctx, int result, const struct client_answer *said, const struct err *e)
{
    struct job_call *call = ctx;

    call->ask = NULL;
    if (is_sent_on(call, said))
        send_more(call->owner);
    else
        answer(call, said, e);
}

static void send_more(struct job_calls *jc)
{
    struct job_call *call;
    unsigned n = 0;

    list_foreach(call, &jc->calls, link) {
        struct err e = ERR_NULL;

        if (call->deferred.is_ready)
            continue;
        if (n++ >= AT_ONCE)
            return;
        if (!call->ask && hub_link_ask(call->at ? call->at : jc->hub, call->method, call->path,
                              call->body, TIMEOUT_MS, on_done, call, &call->ask, &e) != 0)
            answer(call, NULL, &e);
    }
}

void job_calls_init(struct job_calls *jc, job_calls_find_fn find, void *ctx)
{
    *jc = (struct job_calls){.find = find, .ctx = ctx};
    list_init(&jc->calls);
}

/* Sends anew what was sent to @hub; NULL: to any. */
static void send_anew(struct job_calls *jc, const struct hub_link *hub)
{
    struct job_call *call;

    list_foreach(call, &jc->calls, link) {
        if (hub && call->at != hub)
            continue;
        call->ask = hub_ask_cancel(call->ask);
        call->at = NULL;
        call->is_sent_on = false;
    }
    if (!jc->is_ending)
        send_more(jc);
}

void job_calls_set_hub(struct job_calls *jc, struct hub_link *hub)
{
    if (jc->hub == hub)
        return;
    jc->hub = hub;
    send_anew(jc, NULL);
}

void job_calls_on_gone(struct job_calls *jc, const struct hub_link *hub)
{
    send_anew(jc, hub);
}

void job_calls_end(struct job_calls *jc)
{
    jc->is_ending = true;
}

void job_calls_begin(struct job_calls *jc, const char *method, const char *job, const char *what,
    const json_t *body, struct response *rs)
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
    call->owner = jc;
    call->method = method;
    call->body = json_incref((json_t *)body);
    (void)snprintf(call->path, sizeof(call->path), "/v1/jobs%s%s%s%s", job ? "/" : "",
        job ? job : "", job ? "/" : "", job ? what : "");
    list_add_tail(&jc->calls, &call->link);
    rs->deferred = &call->deferred;
    send_more(jc);
}
