/*
 * remote_queue.h - the thread of a back end whose store is elsewhere, and the jobs that wait for
 * it.
 *
 * The back ends for etcd and for Kubernetes have one each. A job comes from the owner's loop and is
 * never waited for there. The thread takes what is next: one job, or several commits that the
 * server is asked for at once. What it does with them, and what it does meanwhile, is the back
 * end's own.
 *
 * Threads: remote_queue_add() from the owner's loop; remote_queue_take() from the queue's thread;
 * the rest where there is no thread yet, or where it is ended.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/containers.h"

struct err;
struct store_job;

struct remote_queue {
    int wake_fd;      /* owns; readable: a job has come, or @is_ending is set; -1: none */
    pthread_t thread; /* joined by remote_queue_stop() */
    bool has_thread;  /* it was started */

    pthread_mutex_t lock; /* guards what follows */
    struct list jobs;     /* of struct store_job; the oldest first */
    bool is_ending;       /* no more jobs will come */
};

/** Which commits may be taken together. */
struct remote_queue_limits {
    size_t ops_max;   /* operations in all of them */
    size_t bytes_max; /* of their keys and values */
    bool is_apart;    /* no two of them name the same key */

    /* May this job, which is within the limits, be taken together with others? */
    bool (*can_share)(const struct store_job *job);
};

/** remote_queue_init() - nothing waits, and no thread runs. */
void remote_queue_init(struct remote_queue *q);

/** remote_queue_deinit() - after remote_queue_stop(). */
void remote_queue_deinit(struct remote_queue *q);

/**
 * remote_queue_start() - start the thread, called "store"
 * @run:	the thread; returns once remote_queue_take() says that no more jobs will come
 *
 * Return: 0; or negative errno with words.
 */
int remote_queue_start(struct remote_queue *q, void *(*run)(void *), void *ctx, struct err *e);

/** remote_queue_stop() - no more jobs come; wait until the thread has ended. Idempotent. */
void remote_queue_stop(struct remote_queue *q);

/** remote_queue_add() - @job, taken, is the last one; the thread is woken. */
void remote_queue_add(struct remote_queue *q, struct store_job *job);

/**
 * remote_queue_take() - the jobs that are done next: one, or several that may be taken together
 * @ret:	empty; gives them, in their order
 * @ret_ends:	no further job will come
 *
 * A job that is above the limits, or may not be taken together with others, is taken alone. Call
 * wakeup_clear() for the queue's descriptor before, so that a job that comes later wakes the
 * thread.
 *
 * Return: false: there are none.
 */
bool remote_queue_take(struct remote_queue *q, const struct remote_queue_limits *limits,
    struct list *ret, bool *ret_ends);
