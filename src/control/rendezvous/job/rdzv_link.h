/*
 * rdzv_link.h - the pipe between a hub and a rendezvous process, at the process' end.
 *
 * Theory of operation. Messages to the hub gather here and are written when the owner flushes them:
 * before a client is answered, so that the hub has every change that was acknowledged even if this
 * process dies next; and at the end of each turn of the loop. The hub reads only as much as it can
 * commit. Writing blocks then, and with it the whole process: its clients wait, and its memory does
 * not grow. The hub's messages are read before each connection is accepted, so that a client which
 * the hub has sent here finds what the hub told before that.
 *
 * Threads: the process has one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "rendezvous/shared/rdzv_wire.h"

/** Most descriptors that come with one read. */
#define RDZV_LINK_FDS_MAX 16

/** The pipe. */
struct rdzv_link {
    int fd;                     /* borrowed; does not block */
    struct str out;             /* to be written */
    uint8_t *in;                /* owns; RDZV_WIRE_MAX + 4 bytes: what has come */
    size_t in_len;              /* bytes in it */
    int fds[RDZV_LINK_FDS_MAX]; /* owns; descriptors that no message has named yet, in order */
    size_t n_fds;               /* of them */
    bool failed; /* the hub is gone, or what it sent is no message: end the process */
    void *ctx;   /* pinned: handed to @told */
    /* Called for each message. @fd: the socket of RDZV_WIRE_LISTENER, given; else -1. */
    void (*told)(void *ctx, const struct rdzv_wire *m, int fd);
};

/** rdzv_link_init() - @fd: the socket. 0 or -ENOMEM. */
int rdzv_link_init(struct rdzv_link *l, int fd);

/** rdzv_link_deinit() - idempotent; the socket stays open. */
void rdzv_link_deinit(struct rdzv_link *l);

/** rdzv_link_say() - append a message, which rdzv_link_flush() writes. */
void rdzv_link_say(struct rdzv_link *l, const struct rdzv_wire *m);

/** rdzv_link_flush() - write all messages; blocks while the hub reads nothing. */
void rdzv_link_flush(struct rdzv_link *l);

/** rdzv_link_read() - read what the hub has sent until now, and call @told. Not to be called from
 * it. */
void rdzv_link_read(struct rdzv_link *l);
