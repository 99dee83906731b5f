/*
 * disk_work.h - what waits for the disk, and is no affair of the store: key files, copies.
 *
 * It is done on a thread of the loop's pool, and ends on the loop. A hub that ends waits for it
 * with disk_works_wait(), which may be called from a callback of the loop, where the loop itself
 * cannot be run.
 *
 * Threads: the hub's loop, but for what `run` does.
 */
#pragma once

#include <uv.h>

#include "base/containers.h"

/** The works of a hub whose end has not been told. */
struct disk_works {
    uv_loop_t *loop;  /* pins */
    struct list list; /* owns the works */
    uv_mutex_t lock;  /* guards each work's is_run */
    uv_cond_t run;    /* signalled when a work has run */
};

/** disk_works_init() - none. @loop: pinned. 0 or -ENOMEM. */
int disk_works_init(struct disk_works *works, uv_loop_t *loop);

/** disk_works_deinit() - after disk_works_wait(), and the loop's end. Once. */
void disk_works_deinit(struct disk_works *works);

/**
 * disk_work() - have @run called on another thread, and then @done on the loop's
 * @arg:	pinned: for both
 *
 * Return: 0 or -ENOMEM.
 */
int disk_work(struct disk_works *works, void (*run)(void *arg), void (*done)(void *arg), void *arg);

/**
 * disk_works_wait() - wait for the disk, and call the @done of each
 *
 * Also of those that such a @done begins. Afterwards there is none.
 */
void disk_works_wait(struct disk_works *works);
