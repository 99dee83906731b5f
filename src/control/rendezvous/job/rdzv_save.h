/*
 * rdzv_save.h - what a rendezvous has changed, on its way to the hub, which keeps it.
 *
 * Theory of operation. A change is applied in memory first and told here; it is in the hub's hands
 * before anybody is answered (rdzv_link.h). Who answers from memory (TCPStore) waits for nothing
 * more: the hub commits within 20 ms, or later on a slow disk. Who must not answer before the
 * change is on the disk (etcd) waits with rdzv_save_wait(): at the end of the loop's turn the hub
 * is asked once for all who began to wait in it, and says when it is done.
 */
#pragma once

#include <stdint.h>

#include "base/list.h"
#include "rendezvous/job/rdzv_link.h"

struct rdzv_save {
    struct rdzv_link *link; /* pins */
    struct list waiting;    /* of struct rdzv_save_wait; who waits longest is first */
    uint64_t seq;           /* of the last SYNC */
    bool is_asked;          /* somebody waits for the next one */
};

/** One who waits for the disk. */
struct rdzv_save_wait {
    struct list link;                                  /* in rdzv_save.waiting */
    uint64_t seq;                                      /* of the SYNC that it waits for */
    void (*done)(struct rdzv_save_wait *w, int error); /* 0, or negative errno: not on the disk */
};

/** rdzv_save_init() - @link: pinned. */
void rdzv_save_init(struct rdzv_save *s, struct rdzv_link *link);

/** rdzv_save_blob() - what is called @name (@name_len bytes) in the job is now @len bytes. */
void rdzv_save_blob(struct rdzv_save *s, uint32_t job, uint32_t run, enum rdzv_key_kind kind,
    const void *name, size_t name_len, const void *p, size_t len);

/** rdzv_save_drop_blob() - it is gone. */
void rdzv_save_drop_blob(struct rdzv_save *s, uint32_t job, uint32_t run, enum rdzv_key_kind kind,
    const void *name, size_t name_len);

/** rdzv_save_wait() - call @w->done when all of the above is on the disk; never in this call. */
void rdzv_save_wait(struct rdzv_save *s, struct rdzv_save_wait *w);

/** rdzv_save_forget() - @w waits no more. Idempotent on one that was initialised. */
void rdzv_save_forget(struct rdzv_save_wait *w);

/** rdzv_save_flush() - all of the above goes to the hub; before an answer, and each turn. */
void rdzv_save_flush(struct rdzv_save *s);

/** rdzv_save_on_saved() - the hub says so of the SYNC; @error: 0 or negative errno. */
void rdzv_save_on_saved(struct rdzv_save *s, uint64_t seq, int error);
