/*
 * etcd_updates.h - turns the revisions of the feed into commits: who wrote them, what they changed.
 *
 * Theory of operation. A revision of the feed holds the changes of one transaction. Each commit of
 * a hub writes the key of its session too (etcd_client.h), so its own commits are known by that. A
 * large commit is many transactions (etcd_commit.c): between "apply" in the key "i" and the removal
 * of that key nobody else writes, and everything in between is one commit, told at once at its end.
 * Its revision is that of "apply".
 *
 * Two more things are kept up to date with each commit. One is the set of keys that exist,
 * from which a deletion is known that fell into a gap of the feed. The other is the log of the last
 * changes, for watches that begin in the past. The log is in memory: it begins when the store is
 * opened.
 *
 * Pure: no call to etcd, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/etcd/etcd_codec.h"
#include "store/keys.h"
#include "store/store_backend.h"

/** Longest name of a session, bytes. */
#define ETCD_SESSION_MAX 32

/** Who made a commit. */
struct etcd_writer {
    char session[ETCD_SESSION_MAX + 1]; /* "": nobody that writes as a hub does */
    uint64_t seq;                       /* the number of the commit in its session */
};

/** The large commit that is being made: the value of the key "i". */
struct etcd_large_head {
    bool is_applied;           /* it will be done; else what it expects is being looked at */
    struct etcd_writer writer; /* whose it is */
    uint64_t n_parts;
};

/** Longest value of the key "i". */
#define ETCD_LARGE_HEAD_MAX (ETCD_SESSION_MAX + 64)

/** etcd_large_head_format() - as it is stored. Returns @buf. */
const char *etcd_large_head_format(
    const struct etcd_large_head *head, char buf[static ETCD_LARGE_HEAD_MAX]);

/** etcd_large_head_parse() - false: @text is none. */
bool etcd_large_head_parse(struct etcd_large_head *ret, const char *text);

/** A commit that the feed has shown whole. */
struct etcd_commit_seen {
    struct etcd_writer writer;
    uint64_t revision;       /* the store's */
    struct etcd_kvs changes; /* names begin with "k/"; owned by the updates until the next take */
};

struct etcd_updates {
    uint64_t base;                 /* etcd's revision that is the store's 0 */
    uint64_t position;             /* etcd's revision that was taken last */
    uint64_t revision;             /* the store's, of the commit that was seen last */
    struct keys known;             /* owns: the keys that there are */
    struct store_log log;          /* the last changes */
    bool is_large;                 /* inside of a large commit */
    struct etcd_large_head head;   /* is_large: which */
    uint64_t large_revision;       /* is_large: the store's */
    struct etcd_commit_seen large; /* is_large: what it has changed so far */
    struct etcd_commit_seen seen;  /* what was given out last */
};

/** etcd_updates_init() - of a store that is at etcd's revision @position. */
void etcd_updates_init(struct etcd_updates *n, uint64_t base, uint64_t position);

/** etcd_updates_deinit() - idempotent. */
void etcd_updates_deinit(struct etcd_updates *n);

/**
 * etcd_updates_take() - the next revision of the feed
 * @events:	taken; empty afterwards
 * @ret:	lent until the next call; NULL: no commit is whole by this
 *
 * Return: 0 or -ENOMEM.
 */
int etcd_updates_take(struct etcd_updates *n, uint64_t number, struct etcd_kvs *events,
    const struct etcd_commit_seen **ret);

/** etcd_updates_note() - a key of the store is there, or is there no more. 0 or -ENOMEM. */
int etcd_updates_note(struct etcd_updates *n, const char *key, bool is_there);

/**
 * etcd_updates_revision_of() - the store's revision that wrote @kv
 *
 * That of etcd, less the store's 0; or what a large commit has noted in the value.
 */
uint64_t etcd_updates_revision_of(const struct etcd_updates *n, const struct etcd_kv *kv);

/** etcd_updates_item() - @kv, whose name begins with "k/", as an item that borrows from it. */
struct store_item etcd_updates_item(const struct etcd_updates *n, const struct etcd_kv *kv);

/**
 * etcd_updates_job() - what @changes did, as a commit that nobody here has asked for
 *
 * Keys that are none of a store's are left out.
 *
 * Return: gives the job, done, but for its time; NULL: no memory.
 */
struct store_job *etcd_updates_job(const struct etcd_kvs *changes, uint64_t revision);

/** etcd_updates_done() - @job is a commit that is done: it goes into the log, and its keys are
 * noted.
 */
void etcd_updates_done(struct etcd_updates *n, const struct store_job *job);
