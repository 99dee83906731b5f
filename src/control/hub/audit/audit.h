/*
 * audit.h - the audit log: who changed what, and who was not allowed to.
 *
 * Theory of operation. model_commit() hands every commit to audit_commit(), which finds in its
 * operations what somebody may want to know of later - networks, nodes, edges, join tokens and
 * admin tokens - and adds an entry for each to the very same commit. So whatever changes these
 * records has its entry, and a crash leaves both or neither. Who caused it is set around each
 * request (access.c); between requests it is the hub itself.
 *
 * Commits are on their way for a while. An entry's ID is a number that only grows, so the IDs are
 * in the order of the commits; which revision the commit became is that of the entry's own key.
 * Two hubs of one store may choose the same number at the same time. So the second part of the ID
 * has a few bits that are another hub's most likely not; if they are, the later commit conflicts,
 * and who made it does so once more, with the next number.
 *
 * What goes with something else has no entry of its own: the edges of a removed node, the hub's
 * own node of a network, a use of the token that a new node came with. Reports of nodes and what
 * jobs keep are no administration.
 *
 * Refused attempts change nothing, so their entries are written by themselves: like ones (same
 * source, caller, call and answer) are counted together for ten seconds, and there is a budget of
 * entries, so that a stranger fills neither the disk nor the log; they also have a bound of their
 * own, so that they push no change out.
 *
 * Entries are never changed. They go when they are too old; and when there are too many, the oldest
 * of the network that has the most (audit_rings_add()).
 *
 * An actor is "uid:0" (of the admin socket), "admin:NAME" (an admin token), "file:admin.token",
 * "node:NETWORK/NAME", "join:ID" (a join token), "hub" (of several: "hub:NAME") or "stranger".
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/rate.h"
#include "hub/record/record.h"
#include "store/keys.h"
#include "store/store.h"

/* ---- which entries of the audit log are whose, so that no network pushes out another's ------- */

/*
 * Theory of operation. The log has room for so many entries in all. When it is full the oldest
 * entry goes of that network which has the most. So a network may use all that nobody else uses,
 * and loses its own entries first when it fills the log; one that has less than its share loses
 * none. Kept in memory beside the store, 21 bytes an entry. Entries about no network are those of
 * one more, "".
 *
 * Pure. Threads: the caller's.
 */

/** audit_rings_deinit() - forget all; idempotent, safe on zeroes. */
void audit_rings_deinit(struct keys *r);

/**
 * audit_rings_add() - there is one more entry
 * @id:	newer than those before of that network. What is no ID is passed over
 *
 * Without memory it is not known, and goes when it is too old.
 */
void audit_rings_add(struct keys *r, const char *network, const char *id);

/** audit_rings_remove() - that entry has gone, and with it older ones of the same network. */
void audit_rings_remove(struct keys *r, const char *network, const char *id);

/**
 * audit_rings_take() - the oldest entry of the network that has the most; it is forgotten here
 *
 * Return: false when no entry is known.
 */
bool audit_rings_take(struct keys *r, char ret_id[static AUDIT_ID_MAX]);

/* ---- the log --------------------------------------------------------------------------------- */

/** Most entries of one commit; the last one counts what is left out. Room to leave in a commit. */
#define AUDIT_PER_COMMIT 64

/** Refusals that are told apart while they wait to be written. */
#define AUDIT_PENDING_MAX 32

/** Entries about refusals: so many at once, and then one each so often. */
#define AUDIT_REFUSALS_BURST 64
#define AUDIT_REFUSALS_EACH  (6 * NSEC_PER_SEC)

/** Who causes something. */
struct audit_by {
    char actor[AUDIT_ACTOR_MAX + 1]; /* see above */
    struct ip_addr from;             /* and from where; none: this machine */
};

/** What a record is before it is changed. Starts as zeroes: there is none. */
struct audit_before {
    uint64_t revision;
    char network[NAME_MAX_LEN + 1]; /* of a token, which only its value tells; "": not known */
};

struct audit {
    struct store *store; /* pins */
    /* What is the record of that key? Fills in @ret. Its ctx is @before_ctx, pinned. */
    void (*before)(void *ctx, const char *key, struct audit_before *ret);
    void *before_ctx;
    int64_t (*wall)(void);           /* seconds since 1970 */
    int64_t age_s;                   /* older entries go */
    size_t max[AUDIT_KIND_N];        /* more entries go */
    size_t n[AUDIT_KIND_N];          /* entries kept */
    struct keys rings[AUDIT_KIND_N]; /* owns: whose these are */
    struct audit_by by;              /* who causes what is committed now */
    const struct audit_by *each;     /* borrowed: who causes which operation of the
                                        next commit; NULL: @by causes all */
    const char *change;              /* borrowed: what the next commit's changes are called,
                                        where that is more than "change"; NULL: it is not */
    uint64_t last;                   /* number of the newest entries */
    const char *hub;                 /* pins: see audit_share(); NULL: no other hub */
    uint64_t salt;                   /* of the IDs, random; 0: no other hub has the
                                        store; set by the hub */
    uint64_t settled;                /* of the newest that are not on their way */
    struct audit_record pending[AUDIT_PENDING_MAX]; /* refusals to be written */
    unsigned n_pending;
    int64_t lost_since; /* s since 1970: the first of those that found no place */
    uint64_t n_lost;    /* refusals that found no place among them, to be told in one */
    nsec_t write_at;    /* when @pending is written */
    struct rate rate;   /* of the entries about them */
    nsec_t trimmed_at;  /* when old entries were looked for last */
    bool is_writing;    /* refusals are on their way to the store */
    unsigned n_trims;   /* kinds whose old entries are being looked for, or removed */
    struct err failure; /* of writing or trimming, until audit_tick() returns it */
    uint64_t n_written[AUDIT_KIND_N]; /* since the start */
};

/** audit_init() - @wall: the clock; @before: see there. Nothing is read yet. */
void audit_init(struct audit *a, struct store *store, int64_t (*wall)(void),
    void (*before)(void *ctx, const char *key, struct audit_before *ret), void *before_ctx);

/** audit_deinit() - idempotent. */
void audit_deinit(struct audit *a);

/** audit_open() - count what is kept; waits for it. 0 or negative errno with words. */
int audit_open(struct audit *a, struct err *e);

/** audit_act() - from now on this is who causes what is committed. */
void audit_act(struct audit *a, const char *actor, const struct ip_addr *from);

/**
 * audit_share() - several hubs write this log
 * @hub:	this one's name, by which entries say that it has acted; pinned
 * @salt:	a number of its own
 */
void audit_share(struct audit *a, const char *hub, uint64_t salt);

/** audit_act_hub() - from now on it is the hub itself. */
void audit_act_hub(struct audit *a);

/** audit_token_id() - what a join token is called: the start of its hash, in hex. Returns @buf. */
const char *audit_token_id(char buf[static AUDIT_TOKEN_ID_LEN + 1], const struct token_hash *hash);

/** audit_commit() - store_commit() of @ops, with the entries that tell of them. Return: as that. */
int audit_commit(struct audit *a, const struct store_op *ops, size_t n_ops, nsec_t now,
    store_done_fn done, void *ctx, struct err *e);

/**
 * audit_note() - an entry about something that is not in the store, by itself
 * @network:	that it is about; "": the hub
 *
 * Written before it is done: a crash in between leaves an entry too many, never one too few.
 *
 * Return: as store_commit(), which calls @done.
 */
int audit_note(struct audit *a, const char *operation, const char *network, const char *object,
    nsec_t now, store_done_fn done, void *ctx, struct err *e);

/**
 * audit_refused() - who acts now was refused
 * @operation:	the call: "DELETE /v1/networks/{network}"
 * @network:	that it was about; "": none, or it does not exist
 * @status:	HTTP's
 * @why:	the sentence
 */
void audit_refused(struct audit *a, const char *operation, const char *network, unsigned status,
    const char *why, nsec_t now);

/**
 * audit_tick() - write the refusals whose time has come, and let old entries go
 * @flush:	write all of them now, and nothing else
 *
 * Return: 0 or negative errno with words, perhaps of what an earlier call has begun; what is left
 * then is tried again by the next call.
 */
int audit_tick(struct audit *a, nsec_t now, bool flush, struct err *e);

/* ---- reading the log in pages, newest first or onward from a place --------------------------- */

/*
 * A page costs a bounded number of records, whatever is asked for: a reader that wants few of
 * many gets fewer than the page holds, and the place where to go on.
 */

/** Most entries of a page, and how many it has unless said otherwise. */
#define AUDIT_PAGE_MAX     1000
#define AUDIT_PAGE_DEFAULT 100

struct audit_query {
    char after[AUDIT_ID_MAX];       /* entries behind it, oldest first; "": the newest */
    char before[AUDIT_ID_MAX];      /* the newest of those before it; "": of all */
    char network[NAME_MAX_LEN + 1]; /* only what is about it; "": everything */
    int64_t since;                  /* s since 1970; only what is not older */
    unsigned limit;                 /* 1 to AUDIT_PAGE_MAX */
};

/** The page, which is given; or, when @r is not 0, negative errno with words. */
typedef void (*audit_read_done_fn)(void *ctx, int r, json_t *page, const struct err *e);

/**
 * audit_read() - a page: {"entries": [...], "next": ID, "previous": ID}
 *
 * The entries are in the order of events. "next" is where to go on with `after`; "previous" is
 * there when there may be older ones, and is where to go on with `before`.
 *
 * @done:	called once, later
 *
 * Return: 0: accepted; or negative errno with words, and @done is not called.
 */
int audit_read(const struct audit *audit, const struct audit_query *query, audit_read_done_fn done,
    void *ctx, struct err *e);
