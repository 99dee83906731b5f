/*
 * store_queue.h - what the worker of a back end does next.
 *
 * A back end that has to wait, for a disk or a server, has a worker (os/worker.h). A job comes from
 * the owner's loop and is never waited for there. The worker takes what is next: one job, or
 * several commits that are made at once. What it does with them, and what it does meanwhile, is the
 * back end's own. It goes on until no job is left, however long that takes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "os/worker.h"

struct err;
struct store;
struct store_job;

/** Which commits may be taken together. */
struct store_queue_limits {
    size_t ops_max;   /* operations in all of them */
    size_t bytes_max; /* of their keys and values */
    bool is_apart;    /* no two of them name the same key */

    /* May this commit, which is within the limits, be taken together with others? NULL: all may. */
    bool (*can_share)(const struct store_job *job);
};

/**
 * store_queue_start() - start the worker, called "store"
 * @loop:	returns once store_queue_take() says that no more jobs will come
 *
 * Return: 0; or negative errno with words.
 */
int store_queue_start(
    struct worker **ret, void (*loop)(struct worker *w, void *ctx), void *ctx, struct err *e);

/** store_queue_submit() - the submit() of a back end with such a worker: s->worker. */
void store_queue_submit(struct store *s, struct store_job *job);

/**
 * store_queue_take() - the jobs that are done next: one, or several that may be taken together
 * @ret:	empty; gives them, in their order
 * @ret_ends:	no further job will come
 *
 * A job that is above the limits, or may not be taken together with others, is taken alone.
 *
 * Return: false: there are none.
 */
bool store_queue_take(
    struct worker *w, const struct store_queue_limits *limits, struct list *ret, bool *ret_ends);
