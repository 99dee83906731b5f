/*
 * rdzv_save.h - what a rendezvous has changed, on its way to the store.
 *
 * Theory of operation. A change is applied in memory first and put here, where
 * the last change of a key replaces the one before it; then all that has
 * gathered goes to the store as one commit, or as several, in the order of the
 * changes and none of which ends within a blob. Who must not answer before the
 * change is on the disk (etcd) waits with rdzv_save_wait(): the commit then
 * comes at the end of the loop's turn, with what all others did in that turn.
 * Who answers from memory (TCPStore) waits for nothing: the commit comes within
 * RDZV_SAVE_AFTER, or later on a disk that is so slow that committing would
 * take more than a tenth of the loop's time.
 *
 * A commit that fails is tried again; nothing is forgotten meanwhile.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "base/clock.h"
#include "base/htab.h"
#include "base/list.h"
#include "base/log.h"

struct err;
struct model;

/** After so long a change is on the disk, unless the disk is slow. */
#define RDZV_SAVE_AFTER (20 * NSEC_PER_MSEC)

struct rdzv_save {
    struct model *model;       /* pins */
    struct htab by_key;        /* of struct change: the same as in @order */
    struct list order;         /* owns them; what changed last is last */
    struct list waiting;       /* of struct rdzv_save_wait */
    void (*gather)(void *ctx); /* before a commit: put what has changed meanwhile; NULL: nothing */
    void *gather_ctx;          /* pinned: handed to it */
    uv_timer_t timer;          /* to the next commit */
    nsec_t cost;               /* of the last commit */
    uint64_t n_commits;        /* since the start */
    uint64_t n_failed;         /* of them */
    struct log_limit limit;    /* of the words about those */
};

/** One who waits for the disk. */
struct rdzv_save_wait {
    struct list link;                                  /* in rdzv_save.waiting */
    void (*done)(struct rdzv_save_wait *w, int error); /* 0, or negative errno: not on the disk */
};

/** rdzv_save_init() - @model: pinned; @seed: random, unknown to strangers. */
void rdzv_save_init(struct rdzv_save *s, struct model *model, uint64_t seed);

/** rdzv_save_start() - changes may come; @loop: pinned. */
void rdzv_save_start(struct rdzv_save *s, struct uv_loop_s *loop);

/** rdzv_save_stop() - commit what is left, and close the timer: run the loop until it is empty. */
void rdzv_save_stop(struct rdzv_save *s);

/** rdzv_save_deinit() - forget what could not be committed. Idempotent. */
void rdzv_save_deinit(struct rdzv_save *s);

/**
 * rdzv_save_put() - the key's value is now @text, which is taken; NULL deletes the key
 *
 * Return: 0 or -ENOMEM.
 */
int rdzv_save_put(struct rdzv_save *s, const char *key, char *text);

/**
 * rdzv_save_blob() - the blob at @key is now @len bytes
 * @before:	length of what was there; 0 if nothing was
 *
 * Return: 0 or -ENOMEM.
 */
int rdzv_save_blob(struct rdzv_save *s, const char *key, const void *p, size_t len, size_t before);

/** rdzv_save_drop_blob() - it is gone; @before: its length. 0 or -ENOMEM. */
int rdzv_save_drop_blob(struct rdzv_save *s, const char *key, size_t before);

/** rdzv_save_later() - there is something for @gather; it is called with the next commit. */
void rdzv_save_later(struct rdzv_save *s);

/** rdzv_save_wait() - call @w->done when all of the above is on the disk; never in this call. */
void rdzv_save_wait(struct rdzv_save *s, struct rdzv_save_wait *w);

/** rdzv_save_forget() - @w waits no more. Idempotent on one that was initialised. */
void rdzv_save_forget(struct rdzv_save_wait *w);

/** rdzv_save_now() - commit what there is. 0 or negative errno with words. */
int rdzv_save_now(struct rdzv_save *s, struct err *e);
