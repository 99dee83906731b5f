/*
 * change_queue.h - changes of a network's jobs, on their way to the hub's store.
 *
 * Theory of operation. The last change of a key replaces the one before it, in its place. All that
 * has gathered goes to the store in commits of a bounded size, of each network one at a time. The
 * disk is shared by all networks and with everybody who changes something, so each commit is
 * followed by a pause. For all networks in which nobody waits for the disk it is as long as the
 * commit took (struct change_pace). For the network whose commit it was it is twice as long if
 * somebody waits for the disk (etcd's clients do), else six times (TCPStore's do not). How large a
 * commit is follows from what the last ones cost.
 *
 * A commit that failed, or whose answer was lost, is tried again; nothing is forgotten. A newer
 * change of a key takes the place of the one that failed: the rendezvous process relies on it that
 * changes are stored in their order.
 *
 * The queue does not talk to the store: its owner takes a commit out with change_queue_send(), and
 * tells what has become of it with change_queue_settle().
 *
 * Pure: @now is monotonic time, above 0. Threads: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/containers.h"

struct store_op;

/** With so many changes, or so many bytes, that wait for the disk, nothing more should be put in.
 */
#define CHANGE_QUEUE_MAX       4096u
#define CHANGE_QUEUE_BYTES_MAX (2u << 20)

/** How many calls of change_queue_sync() that have no answer yet are told apart. */
#define CHANGE_QUEUE_SYNCS_MAX 64u

/** Changes in one commit, at most. */
#define CHANGE_QUEUE_BATCH_MAX 512

/** What the queues of all networks of a hub share. */
struct change_pace {
    nsec_t free_at; /* until then only commits that somebody waits for are begun */
    size_t batch;   /* changes in one commit, by what the last ones cost */
};

#define CHANGE_PACE_INIT {.batch = 64}

/** A change of a key that is not on the disk yet. */
struct change {
    struct list link;      /* in the queue's waiting or sent */
    struct htab_link hash; /* in the queue's by_key, while it waits */
    uint64_t number;       /* in the order in which changes were put in */
    bool is_sent;          /* it is in a commit on its way */
    bool is_void;          /* if that commit fails, it is not tried again */
    char *text;            /* owns; NULL: the key is deleted */
    char key[];            /* with the zero */
};

struct change_queue {
    struct htab by_key;  /* of struct change: those that wait */
    struct list waiting; /* owns the same; the oldest is first */
    struct list sent;    /* owns struct change: those of the commit that is on its way */
    size_t n_sent;       /* of them */
    size_t bytes;        /* of the texts of all of them */
    uint64_t next;       /* number of the next change */
    nsec_t due_at;       /* when the next commit may begin; NSEC_NEVER: there is nothing */
    nsec_t sent_at;      /* when the one on its way was begun; 0: none is on its way */
    nsec_t ended_at;     /* when the last one was answered; 0: there was none */
    nsec_t cost;         /* how long the last commit took */
    bool is_failing;     /* the last commit failed */
    uint64_t n_commits;  /* that were answered, since the start */
    uint64_t n_failed;   /* of them */
    struct {
        uint64_t seq;    /* the number that the asker gave it */
        uint64_t before; /* it is answered when all changes below this number are stored */
    } syncs[CHANGE_QUEUE_SYNCS_MAX];
    unsigned n_syncs; /* 0: nobody waits */
};

/** change_queue_init() - empty. @seed: random, unknown to strangers. */
void change_queue_init(struct change_queue *q, uint64_t seed);

/** change_queue_deinit() - forget what is not on the disk. Once. */
void change_queue_deinit(struct change_queue *q);

/**
 * change_queue_put() - the key's value is to be @text
 * @key:	borrowed; less than RDZV_KEY_MAX bytes
 * @text:	taken, also on failure; NULL: the key is to be deleted
 *
 * Return: 0 or -ENOMEM.
 */
int change_queue_put(struct change_queue *q, const char *key, char *text, nsec_t now);

/**
 * change_queue_forget() - what was put in for @key is not to be done: somebody else writes the key
 *
 * What is on its way is done, before whatever is committed from now on; but if it fails it is not
 * tried again.
 */
void change_queue_forget(struct change_queue *q, const char *key);

/**
 * change_queue_sync() - somebody waits until all changes so far are on the disk
 * @seq:	what change_queue_take_saved() is to say then; rises from call to call
 *
 * Above CHANGE_QUEUE_SYNCS_MAX the last question stands for the one before it, too.
 */
void change_queue_sync(struct change_queue *q, uint64_t seq, nsec_t now);

/**
 * change_queue_take_saved() - which questions have their answer?
 * @error:	of the last commit; when it is not 0, that is the answer to all of them
 * @ret_seq:	the last of those that have; set if true
 *
 * Return: false: none has.
 */
bool change_queue_take_saved(struct change_queue *q, int error, uint64_t *ret_seq);

/** change_queue_due() - when change_queue_send() is to be called; NSEC_NEVER: not now. */
nsec_t change_queue_due(const struct change_queue *q, const struct change_pace *pace);

/**
 * change_queue_send() - the oldest changes, as one commit that begins now; none may be on its way
 * @ops:	room for CHANGE_QUEUE_BATCH_MAX; the texts are lent until change_queue_settle()
 *
 * Return: how many; 0: nothing waits, and no commit begins.
 */
size_t change_queue_send(
    struct change_queue *q, const struct change_pace *pace, struct store_op *ops, nsec_t now);

/** change_queue_settle() - the commit on its way was stored (@r 0), or not, or nobody knows. */
void change_queue_settle(struct change_queue *q, struct change_pace *pace, int r, nsec_t now);

/** change_queue_resume() - after a commit and change_queue_take_saved(): plan the next one. */
void change_queue_resume(struct change_queue *q, nsec_t now);

/** change_queue_is_empty() - are all changes on the disk? */
bool change_queue_is_empty(const struct change_queue *q);

/** change_queue_count() - changes that are not on the disk. */
size_t change_queue_count(const struct change_queue *q);

/** change_queue_has_space() - is there room for more changes? */
bool change_queue_has_space(const struct change_queue *q);
