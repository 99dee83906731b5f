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

#include "base/containers.h"
#include "base/text.h"
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
    bool failed;         /* the hub is gone, or what it sent is no message: end the process */
    struct list waiting; /* of struct rdzv_save_wait; the one that has waited longest is first */
    uint64_t seq;        /* of the last SYNC */
    bool is_asked;       /* the next flush has to send a SYNC */
    void *ctx;           /* pinned: handed to @on_message */
    /* Called for each message. @fd: the socket of RDZV_WIRE_LISTENER, given; else -1. */
    void (*on_message)(void *ctx, const struct rdzv_wire *m, int fd);
};

/** rdzv_link_init() - @fd: the socket. 0 or -ENOMEM. */
int rdzv_link_init(struct rdzv_link *l, int fd);

/** rdzv_link_deinit() - idempotent; the socket stays open. */
void rdzv_link_deinit(struct rdzv_link *l);

/** rdzv_link_say() - append a message, which rdzv_link_flush() writes. */
void rdzv_link_say(struct rdzv_link *l, const struct rdzv_wire *m);

/** rdzv_link_flush() - write all messages: before an answer, and at the end of each turn. Blocks
 * while the hub reads nothing. */
void rdzv_link_flush(struct rdzv_link *l);

/** rdzv_link_read() - read what the hub has sent until now, and call @on_message. Not to be called
 * from it. */
void rdzv_link_read(struct rdzv_link *l);

/*
 * Sends the changes of a rendezvous to the hub, which keeps them on its disk.
 *
 * Theory of operation. A change is made in memory first, and told here. It has been sent to the hub
 * before a client is answered. A TCPStore's answer waits for nothing more: the hub
 * commits within 20 ms, or later on a slow disk. An etcd's answer has to wait until the change is
 * on the disk, with rdzv_save_wait(). At the end of the loop's turn the hub is asked once, with a
 * SYNC, for all that have begun to wait in that turn, and answers when all before the SYNC is on
 * the disk.
 */

/** An answer that waits for the disk. */
struct rdzv_save_wait {
    struct list link; /* in rdzv_link.waiting; who does not wait any more removes it there */
    uint64_t seq;     /* of the SYNC that it waits for */
    void (*done)(struct rdzv_save_wait *w, int error); /* 0, or negative errno: not on the disk */
};

/** rdzv_save_blob() - the blob called @name (@name_len bytes) in the job is now the @len bytes at
 * @p. */
void rdzv_save_blob(struct rdzv_link *l, uint32_t job, uint32_t run, enum rdzv_key_kind kind,
    const void *name, size_t name_len, const void *p, size_t len);

/** rdzv_save_drop_blob() - the blob called @name is gone. */
void rdzv_save_drop_blob(struct rdzv_link *l, uint32_t job, uint32_t run, enum rdzv_key_kind kind,
    const void *name, size_t name_len);

/** rdzv_save_wait() - have @w->done called once all changes until now are on the disk; never in
 * this call. */
void rdzv_save_wait(struct rdzv_link *l, struct rdzv_save_wait *w);

/** rdzv_save_on_saved() - the hub answers the SYNC of @seq. @error: 0; or negative errno: not
 * saved. */
void rdzv_save_on_saved(struct rdzv_link *l, uint64_t seq, int error);
