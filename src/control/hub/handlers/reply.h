/*
 * reply.h - a request whose answer waits for the store.
 *
 * A handler checks, has something committed or read, and returns; the answer is
 * made when the store has answered. In between the request is a struct reply,
 * or a struct of the handler's own that begins with one. It keeps of the request
 * what the rest needs, and who makes it, for the audit log.
 *
 * What the handler has looked at may be another when the answer comes: nodes,
 * networks, tokens. So what is written names the revisions that were looked at,
 * and who sees STORE_E_CONFLICT begins again, with reply_again(); and what comes
 * after the commit looks everything up by name.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include "api/server/server.h"
#include "hub/audit/audit.h"

struct reply;

/** Begins the request, or begins it again after a conflict. @rq and @rs are as in a route_fn. */
typedef void (*reply_fn)(struct reply *l, const struct request *rq, struct response *rs);

/** Makes the answer when the store has done it. */
typedef void (*reply_done_fn)(struct reply *l, struct response *rs);

struct reply {
    struct handlers *h; /* pins */
    struct request rq;  /* what is kept: access, from, parameters, caller, body, time */
    reply_fn begin;     /* the handler's */
    reply_done_fn done; /* the handler's, for what is on its way now */
    void (*deinit)(struct reply *l);        /* of what the handler's struct owns; NULL: nothing */
    void (*failed)(struct reply *l, int r); /* the store has said @r, and @rs will; NULL: nothing */
    struct audit_by by;                     /* who makes the request */
    unsigned n_tries;                       /* how often a commit of it has conflicted */
    struct deferred deferred;               /* the server's */
    bool is_waiting; /* the answer comes later, by reply_end() or reply_store() */
    bool is_closed;  /* the server has forgotten it */
};

/**
 * reply_new() - keep what is needed of a request
 * @size:	of the handler's struct, which begins with a struct reply; the rest is zeroes
 * @begin:	says the answer at once, or calls reply_commit(), or sets @is_waiting, and leaves it
 * alone
 *
 * Return: the handler's struct, for reply_begin(); NULL: no memory, and @rs says so.
 */
void *reply_new(
    struct handlers *h, const struct request *rq, struct response *rs, size_t size, reply_fn begin);

/** reply_begin() - call the handler's begin, and answer or wait as that decides. @l is taken. */
void reply_begin(struct reply *l, const struct request *rq, struct response *rs);

/**
 * reply_commit() - model_commit(), and then @done with its answer, unless it conflicts
 *
 * A conflict begins the request again, a few times. When nothing is accepted, @rs says why.
 */
void reply_commit(struct reply *l, const struct store_op *ops, size_t n_ops, reply_done_fn done,
    struct response *rs);

/**
 * reply_wait() - what was asked has an answer later, if @r is 0
 * @r:		else why it was not accepted, as handlers_refuse() takes it
 */
void reply_wait(struct reply *l, int r, const struct err *e, struct response *rs);

/** reply_start() - reply_new() with @deinit, which may be NULL, and reply_begin(). */
void reply_start(struct handlers *h, const struct request *rq, struct response *rs, size_t size,
    reply_fn begin, void (*deinit)(struct reply *l));

/** reply_note() - an entry in the audit log about @object, and then @done, as by reply_commit(). */
void reply_note(struct reply *l, const char *operation, const char *object, reply_done_fn done,
    struct response *rs);

/**
 * reply_store() - a store_done_fn whose ctx is a struct reply that waits
 *
 * It begins again after a conflict, a few times; or what its done says is the answer, or that of
 * the store.
 */
void reply_store(void *ctx, const struct store_answer *answer);

/** reply_again() - begin a request that waits once more, with what is there now. */
void reply_again(struct reply *l);

/** reply_end() - it waits no more: this is the answer; what @rs owns is taken. */
void reply_end(struct reply *l, struct response *rs);

/** reply_act() - from now on what is committed is this request's doing; false: the hub's again. */
void reply_act(struct reply *l, bool is_it);
