/*
 * later.h - a request whose answer waits for the store.
 *
 * A handler checks, has something committed or read, and returns; the answer is
 * made when the store has answered. In between the request is a struct later,
 * or a struct of the handler's own that begins with one. It keeps of the request
 * what the rest needs, and who makes it, for the audit log.
 *
 * What the handler has looked at may be another when the answer comes: nodes,
 * networks, tokens. So what is written names the revisions that were looked at,
 * and who sees STORE_E_CONFLICT begins again, with later_again(); and what comes
 * after the commit looks everything up by name.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include "api/server/server.h"
#include "hub/audit/audit.h"

struct handlers;
struct later;
struct store_answer;

/** Begins the request, or begins it again after a conflict. @rq and @rs are as in a route_fn. */
typedef void (*later_fn)(struct later *l, const struct request *rq, struct response *rs);

/** Makes the answer when the store has answered. Not called when the request begins again. */
typedef void (*later_done_fn)(
    struct later *l, const struct store_answer *answer, struct response *rs);

struct later {
    struct handlers *h; /* pins */
    struct request rq;  /* what is kept: access, from, parameters, caller, body, time */
    later_fn begin;     /* the handler's */
    later_done_fn done; /* the handler's, for what is on its way now */
    void (*deinit)(struct later *l); /* of what the handler's struct owns; NULL: nothing */
    struct audit_by by;              /* who makes the request */
    unsigned n_tries;                /* how often a commit of it has conflicted */
    struct deferred deferred;        /* the server's */
    bool is_waiting;                 /* the answer comes later */
    bool is_closed;                  /* the server has forgotten it */
};

/**
 * later_new() - keep what is needed of a request
 * @size:	of the handler's struct, which begins with a struct later; the rest is zeroes
 * @begin:	says the answer at once, or calls later_commit() or later_wait() and leaves it alone
 *
 * Return: the handler's struct, for later_begin(); NULL: no memory, and @rs says so.
 */
void *later_new(
    struct handlers *h, const struct request *rq, struct response *rs, size_t size, later_fn begin);

/** later_begin() - call the handler's begin, and answer or wait as that decides. @l is taken. */
void later_begin(struct later *l, const struct request *rq, struct response *rs);

/**
 * later_commit() - model_commit(), and then @done with its answer, unless it conflicts
 *
 * A conflict begins the request again, a few times. When nothing is accepted, @rs says why.
 */
void later_commit(struct later *l, const struct store_op *ops, size_t n_ops, later_done_fn done,
    struct response *rs);

/** later_wait() - the answer will come by later_end(), or later_store(). */
void later_wait(struct later *l);

/** later_store() - a store_done_fn whose ctx is a struct later that waits: what its done says. */
void later_store(void *ctx, const struct store_answer *answer);

/** later_again() - begin a request that waits once more, with what is there now. */
void later_again(struct later *l);

/** later_end() - it waits no more: this is the answer; what @rs owns is taken. */
void later_end(struct later *l, struct response *rs);

/** later_act() - from now on what is committed is this request's doing; false: the hub's again. */
void later_act(struct later *l, bool is_it);

/** later_fail() - what a commit's answer means for who asked; @answer's r is not 0. */
void later_fail(struct response *rs, const struct store_answer *answer);
