/*
 * upgrade.h - a connection that stops being HTTP and becomes bytes both ways (RFC 9110
 * section 7.8).
 *
 * Life: a handler hands a struct upgrade to the server in its response, for a
 * request that asks for that protocol. Then, in this order: on_open once, as
 * soon as the answer is out; then either the owner calls upgrade_end(), or the
 * server calls on_closed, and neither uses the struct any more. Without an
 * on_open only the latter can happen.
 *
 * From on_open on the connection has left the listener's limits: its owner bounds
 * how many there are, how long they may be idle and what they may queue.
 *
 * Threads: the server's loop only.
 */
#pragma once

#include <stddef.h>

struct upgrade {
    const char *protocol; /* what the request has to ask for; a constant */

    /*
     * It is open. @fd: lent, never blocks, until upgrade_end() or on_closed; reading 0 bytes means
     * that the other end is gone. @early: @len bytes that have been read already; borrowed. May
     * not call upgrade_end().
     */
    void (*on_open)(struct upgrade *u, int fd, const void *early, size_t len);

    /* The server ends it, or it was never opened. @fd is gone after the call; @u may be freed. */
    void (*on_closed)(struct upgrade *u);

    void *server_ctx; /* the server's, pinned */
};

/** upgrade_end() - close the connection; @fd must not be polled any more. */
void upgrade_end(struct upgrade *u);
