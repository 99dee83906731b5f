/*
 * hub_ask.h - one call to the hub's members' API, proven to come from this node.
 *
 * Each request is signed (wire/member_proof.h). A hub that refuses a signature's stamp says which
 * one it takes. So the first request of an agent, and the first after the hub was started anew, is
 * sent twice.
 *
 * Threads: hub_ask_start() the loop's; hub_ask_wait() any.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "api/client/client.h"

struct err;
struct hub_ask;
struct member_proof_signer;

/** What is asked. */
struct hub_ask_call {
    struct client_target target; /* with its signer, which is pinned; the texts are copied */
    const char *method;          /* a constant */
    const char *path;            /* borrowed; at most HUB_ASK_PATH_MAX */
    json_t *body;                /* borrowed; NULL: none */
    unsigned timeout_ms;         /* for each of the two tries */
};

/** Longest path. */
#define HUB_ASK_PATH_MAX 159

/**
 * hub_ask_start() - ask
 * @done, @ctx:	as client_start() has them
 * @ret:	the call, until @done; may not be NULL
 *
 * Return: 0, or negative errno with words, and then @done is not called.
 */
int hub_ask_start(struct client_loop *cl, const struct hub_ask_call *call, client_done_fn done,
    void *ctx, struct hub_ask **ret, struct err *e);

/** hub_ask_cancel() - end the call without @done. NULL is fine. Always NULL. */
struct hub_ask *hub_ask_cancel(struct hub_ask *ask);

/** hub_ask_wait() - ask, and wait; returns as client_call() does. */
int hub_ask_wait(const struct hub_ask_call *call, struct client_answer *ret, struct err *e);

/**
 * hub_ask_learn() - was the request refused only for its stamp?
 * @result, @answer:	as client_done_fn has them
 *
 * Return: true if it was; then @signer knows the stamp that the hub takes.
 */
bool hub_ask_learn(
    struct member_proof_signer *signer, int result, const struct client_answer *answer);
