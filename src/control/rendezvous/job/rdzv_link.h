/*
 * rdzv_link.h - the pipe between a hub and a rendezvous process, at the process' end.
 *
 * Theory of operation. What the process has to say gathers here and is written when the owner says
 * so: before anybody is answered, so that what was acknowledged is in the hub's hands even if this
 * process dies at once, and at the end of each turn of the loop. The hub takes only as much as it
 * can commit; then writing blocks, and with it the whole process, so its clients wait and its
 * memory does not grow. What the hub says is read before each connection is accepted, so that
 * whoever was sent here by the hub finds what the hub has said before.
 *
 * Threads: the process has one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "rendezvous/shared/rdzv_wire.h"

/** Descriptors that may come with one read. */
#define RDZV_LINK_FDS_MAX 16

struct rdzv_link {
    int fd;                     /* borrowed; does not block */
    struct str out;             /* to be written */
    uint8_t *in;                /* owns; RDZV_WIRE_MAX + 4 bytes: what has come */
    size_t in_len;              /* bytes in it */
    int fds[RDZV_LINK_FDS_MAX]; /* owns; descriptors that no message has named yet, in order */
    size_t n_fds;               /* of them */
    bool failed;                /* the hub is gone, or says what is no message: end */
    void *ctx;                  /* pinned: handed to @told */
    /* A message; @fd: a LISTENER's, given, else -1. */
    void (*told)(void *ctx, const struct rdzv_wire *m, int fd);
};

/** rdzv_link_init() - @fd: the socket. 0 or -ENOMEM. */
int rdzv_link_init(struct rdzv_link *l, int fd);

/** rdzv_link_deinit() - idempotent; the socket stays open. */
void rdzv_link_deinit(struct rdzv_link *l);

/** rdzv_link_say() - to be written with the next rdzv_link_flush(). */
void rdzv_link_say(struct rdzv_link *l, const struct rdzv_wire *m);

/** rdzv_link_flush() - write all of it; blocks while the hub takes nothing. */
void rdzv_link_flush(struct rdzv_link *l);

/** rdzv_link_read() - hear what the hub has said until now. Not to be called from @told. */
void rdzv_link_read(struct rdzv_link *l);
