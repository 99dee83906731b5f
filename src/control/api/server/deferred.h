/*
 * deferred.h - an answer that is not there yet when the handler returns.
 *
 * Life: a handler hands a struct deferred to the server in its response. Later its owner calls
 * deferred_answer(), once; the server calls on_closed once, when the answer has been handed over
 * or the connection has ended without it, and the struct may go then. Without an answer the server
 * ends the connection after half a minute.
 *
 * Threads: the server's loop only.
 */
#pragma once

#include <stdbool.h>

#include "api/content/route.h"

struct deferred {
    void (*on_closed)(struct deferred *d); /* the owner's; not from inside deferred_answer() */
    struct response rs;                    /* the answer, once it is there */
    bool is_ready;                         /* it is */
    void (*wake)(struct deferred *d); /* the server's: it has become ready; NULL: not its yet */
    void *server_ctx;                 /* the server's, pinned */
};

/** deferred_answer() - @rs: what it owns is taken. */
void deferred_answer(struct deferred *d, struct response *rs);
