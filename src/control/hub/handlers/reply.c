/* reply.c - see reply.h. */
#include "reply.h"

#include <stdlib.h>

#include "base/err.h"
#include "hub/handlers/handlers.h"
#include "hub/model/model.h"
#include "os/clock.h"

/* Times that a request begins when others change what it has looked at. */
#define TRIES_MAX 8

static void reply_free(struct reply *l)
{
    if (l->deinit)
        l->deinit(l);
    json_decref((json_t *)l->rq.body);
    free(l);
}

static void on_closed(struct deferred *d)
{
    struct reply *l = container_of(d, struct reply, deferred);

    l->is_closed = true;
    if (!l->is_waiting)
        reply_free(l);
}

void *reply_new(
    struct handlers *h, const struct request *rq, struct response *rs, size_t size, reply_fn begin)
{
    struct reply *l = calloc(1, size);

    if (!l) {
        response_refuse(rs, 500, "no memory for the request");
        return NULL;
    }
    l->h = h;
    l->begin = begin;
    l->by = h->audit->by;
    l->deferred.on_closed = on_closed;
    l->rq = *rq;
    l->rq.query = NULL;
    l->rq.bytes = NULL;
    l->rq.n_bytes = 0;
    l->rq.authorization = NULL;
    l->rq.path = NULL;
    l->rq.method = NULL;
    l->rq.body = json_incref((json_t *)rq->body);
    return l;
}

void reply_begin(struct reply *l, const struct request *rq, struct response *rs)
{
    l->begin(l, rq, rs);
    if (l->is_waiting || l->deferred.is_ready)
        rs->deferred = &l->deferred;
    else
        reply_free(l);
}

void reply_end(struct reply *l, struct response *rs)
{
    l->is_waiting = false;
    if (!l->is_closed) {
        deferred_answer(&l->deferred, rs);
        return;
    }
    response_deinit(rs);
    reply_free(l);
}

void reply_act(struct reply *l, bool is_it)
{
    if (is_it)
        audit_act(l->h->audit, l->by.actor, &l->by.from);
    else
        audit_act_hub(l->h->audit);
}

void reply_again(struct reply *l)
{
    struct response rs = {0};

    l->n_tries++;
    l->is_waiting = false;
    l->rq.now = clock_now();
    reply_act(l, true);
    l->begin(l, &l->rq, &rs);
    reply_act(l, false);
    if (!l->is_waiting)
        reply_end(l, &rs);
}

void reply_store(void *ctx, const struct store_answer *answer)
{
    struct reply *l = ctx;
    struct response rs = {0};

    if (answer->r == STORE_E_CONFLICT && l->n_tries + 1 < TRIES_MAX && !l->is_closed) {
        reply_again(l);
        return;
    }
    l->is_waiting = false;
    reply_act(l, true);
    if (answer->r == 0) {
        l->done(l, &rs);
    } else {
        if (l->failed)
            l->failed(l, answer->r);
        if (answer->r == STORE_E_CONFLICT)
            response_refuse(&rs, 503, "others change the same all the time: try again");
        else if (answer->r == STORE_E_UNKNOWN)
            response_refuse(&rs, 503,
                "whether this was done is not known: look, and try again (%s)",
                err_text(answer->e));
        else
            response_fail(&rs, answer->e);
    }
    reply_act(l, false);
    if (!l->is_waiting)
        reply_end(l, &rs);
}

void reply_wait(struct reply *l, int r, const struct err *e, struct response *rs)
{
    if (r == 0)
        l->is_waiting = true;
    else
        handlers_refuse(rs, r, e, NULL);
}

void reply_commit(struct reply *l, const struct store_op *ops, size_t n_ops, reply_done_fn done,
    struct response *rs)
{
    struct err e = ERR_NULL;

    l->done = done;
    reply_wait(l, model_commit(l->h->model, ops, n_ops, l->rq.now, reply_store, l, &e), &e, rs);
}

void reply_note(struct reply *l, const char *operation, const char *object, reply_done_fn done,
    struct response *rs)
{
    struct err e = ERR_NULL;

    l->done = done;
    reply_wait(
        l, audit_note(l->h->audit, operation, "", object, l->rq.now, reply_store, l, &e), &e, rs);
}

void reply_start(struct handlers *h, const struct request *rq, struct response *rs, size_t size,
    reply_fn begin, void (*deinit)(struct reply *l))
{
    struct reply *l = reply_new(h, rq, rs, size, begin);

    if (!l)
        return;
    l->deinit = deinit;
    reply_begin(l, rq, rs);
}
