/*
 * rdzv_child.h - a rendezvous process as the hub has it: a child process, and the socket to it.
 *
 * It is this program, started anew with nothing but one end of a socket pair
 * (rendezvous/process/rdzv_process.h). What it is told is kept here until it takes it, and what it
 * says is read in portions, one in a turn of the loop. What the messages mean is its owner's
 * affair.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "rendezvous/shared/rdzv_wire.h"

struct rdzv_child;
struct uv_loop_s;

/** Outcome of rdzv_child_receive(). */
#define RDZV_CHILD_E_ENDED 1 /* it will say nothing more */

/** With so many bytes that wait to be sent, no more blobs are read out of the store. */
#define RDZV_CHILD_UNSENT_LOAD (128u << 10)

/** Something can be done: rdzv_child_receive(), or more can be said. May free the child. */
typedef void (*rdzv_child_fn)(void *ctx, bool is_readable, bool is_writable);

/**
 * rdzv_child_start() - a process, and the socket to it
 * @loop:	pinned
 * @network:	its name, so that a person sees in a list of processes whose it is
 * @fn, @ctx:	pinned; called by the loop, for what rdzv_child_poll() asked for
 *
 * Return: 0 or negative errno with words.
 */
int rdzv_child_start(struct rdzv_child **ret, struct uv_loop_s *loop, const char *network,
    rdzv_child_fn fn, void *ctx, struct err *e);

/**
 * rdzv_child_free() - kill it, and forget it; @fn is not called any more
 *
 * Its pid is to be waited for. The socket is closed in a later turn of the loop.
 */
struct rdzv_child *rdzv_child_free(struct rdzv_child *child);

/** rdzv_child_pid() - the pid of the process. */
pid_t rdzv_child_pid(const struct rdzv_child *child);

/** rdzv_child_say() - queue a message for the process. */
void rdzv_child_say(struct rdzv_child *child, const struct rdzv_wire *m);

/** rdzv_child_say_bytes() - queue messages that are encoded already: @len bytes. */
void rdzv_child_say_bytes(struct rdzv_child *child, const char *bytes, size_t len);

/**
 * rdzv_child_say_socket() - "serve the job number @job at this socket", now or not at all
 * @fd:	stays the caller's; it gets a copy
 *
 * Return: false: not now; it has not taken all before.
 */
bool rdzv_child_say_socket(struct rdzv_child *child, uint32_t job, int fd);

/** rdzv_child_flush() - send as much of the queue as the process takes now. */
void rdzv_child_flush(struct rdzv_child *child);

/** rdzv_child_unsent() - bytes that are queued. */
size_t rdzv_child_unsent(const struct rdzv_child *child);

/** rdzv_child_kill() - end it; that it has ended is noticed as if it had by itself. */
void rdzv_child_kill(struct rdzv_child *child);

/**
 * rdzv_child_poll() - what is @fn to be called for, from now on?
 * @reads:	it says something, or has ended
 * @writes:	it takes more
 *
 * One that does not listen for long, or for which there was no memory, is killed here.
 */
void rdzv_child_poll(struct rdzv_child *child, bool reads, bool writes);

/** rdzv_child_receive() - read one portion of what it says. 0, also if there is none; or
 * RDZV_CHILD_E_ENDED. */
int rdzv_child_receive(struct rdzv_child *child);

/**
 * rdzv_child_next() - look at the first message that was received
 * @ret:	its bytes are valid until rdzv_child_drop() or rdzv_child_receive()
 *
 * Return: 0; RDZV_WIRE_E_SHORT: none is there whole; RDZV_WIRE_E_BAD: it is no message.
 */
int rdzv_child_next(struct rdzv_child *child, struct rdzv_wire *ret);

/** rdzv_child_drop() - the message that rdzv_child_next() gave is done with. */
void rdzv_child_drop(struct rdzv_child *child);

/** rdzv_child_has_unread() - has it said something that was not dropped yet? */
bool rdzv_child_has_unread(const struct rdzv_child *child);

/**
 * rdzv_child_wait() - without the loop: wait until it says something, at most until @deadline
 *
 * Hands it what it is to be told meanwhile. For the end of the hub.
 *
 * Return: false: the time is over.
 */
bool rdzv_child_wait(struct rdzv_child *child, nsec_t deadline);
