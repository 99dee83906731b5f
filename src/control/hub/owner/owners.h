/*
 * owners.h - says that this hub lives, hears of others, and takes over what a dead one served.
 *
 * It follows the store's records of hubs and owners (record.h), writes this hub's heartbeats, and
 * does what owner_decide() wants for each network. Whether the jobs of a network are served here is
 * asked each second, with owners_serves(). The owner also writes its epoch into its own Node, by
 * which the members know it.
 *
 * With a store that is this hub's alone it does nothing: the hub serves all jobs.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "hub/record/record.h"

struct model_network;

/* ---- does another process run as this hub, on the same store, with its name and key? --------- */

/*
 * Theory of operation. A state directory that was copied, or a machine that was cloned, makes two
 * hubs of one: both would serve the same jobs, and nodes would be told now of the one place, now of
 * the other. Each run of a hub writes its own number with its heartbeats (record.h), so both hear
 * of each other, in the same order. Who was heard before this run's first heartbeat is the former
 * one, which has ended in most cases; if its heartbeats go on, it lives, and this one, which was
 * started later, ends. A run that stood still (a frozen machine) hears that another one has beaten
 * meanwhile, and ends.
 *
 * Pure: no clock, no store.
 */

/** What is known of other runs. Zeroes with @own set: nothing. */
struct duplicate {
    uint64_t own;     /* the number of this run */
    bool has_begun;   /* a heartbeat of this run was heard */
    uint64_t former;  /* of the run that has beaten before this one did; 0: none */
    uint64_t other;   /* of the last other run that has beaten since; 0: none */
    unsigned n_heard; /* its heartbeats in a row */
    nsec_t heard_at;  /* when the last of them was heard */
};

enum duplicate_verdict {
    DUPLICATE_NONE,     /* it says nothing new */
    DUPLICATE_NEW,      /* the heartbeats of another run have begun; it is to end by itself */
    DUPLICATE_IS_OLDER, /* this run has to end: the former one lives */
    DUPLICATE_REPLACED, /* this run has to end: it stood still, and another one was started */
};

/**
 * duplicate_hear() - a heartbeat of this hub's name was heard, in the order of the store
 * @run:	the number of the run that wrote it
 * @stored_at:	when this run began its last heartbeat that was stored; 0: none was yet
 */
enum duplicate_verdict duplicate_hear(
    struct duplicate *t, uint64_t run, nsec_t stored_at, nsec_t now);

/**
 * duplicate_has_left() - was there another run, which is not heard any more?
 *
 * Return: true once after each: what it wrote of this hub has to be written anew.
 */
bool duplicate_has_left(struct duplicate *t, nsec_t now);

/* ---- the hubs of the store, and the owners of its networks ----------------------------------- */

/** Most hubs of one store that are told apart, and networks whose owners are. */
#define OWNERS_HUBS_MAX     64
#define OWNERS_NETWORKS_MAX 1024

/** A hub of the store, as its heartbeats tell. */
struct owners_hub {
    char name[NAME_MAX_LEN + 1];
    uint64_t revision; /* of its last heartbeat */
    nsec_t heard_at;   /* when this hub heard of it */
};

/** The owner of a network's jobs, as the store has it. */
struct owners_network {
    char name[NAME_MAX_LEN + 1];
    struct owner_record record; /* epoch 0: there is none */
    uint64_t revision;          /* of it; 0: there is none */
    nsec_t known_at;            /* when this hub heard of the network */
    bool is_asking;             /* a commit that takes it over, or gives it up, is on its way */
};

struct owners {
    struct model *model;             /* pins */
    nsec_t (*clock)(void);           /* monotonic */
    struct store_watch *watches[2];  /* owns: heartbeats, owners */
    struct owners_hub *hubs;         /* owns; OWNERS_HUBS_MAX */
    size_t n_hubs;                   /* how many */
    struct owners_network *networks; /* owns; OWNERS_NETWORKS_MAX */
    size_t n_networks;               /* how many */
    uint64_t heartbeat;              /* of the last heartbeat */
    bool is_beating;                 /* one is on its way to the store */
    nsec_t begun_at;                 /* when the last one was begun */
    nsec_t stored_at;                /* when the last that was stored was begun; 0: none was */
    struct duplicate duplicate;      /* other processes that run as this hub */
    struct err failure;              /* why this hub has to end; nothing: it has not */
};

/** owners_init() - nothing is read, nothing is written. @clock: monotonic. */
void owners_init(struct owners *o, struct model *model, nsec_t (*clock)(void));

/** owners_load() - read who there is; waits for the store. 0 or negative errno with words. */
int owners_load(struct owners *o, struct err *e);

/** owners_tick() - each second: write a heartbeat if it is time, and take over what is to be. */
void owners_tick(struct owners *o, nsec_t now);

/** owners_serves() - does this hub serve the jobs of that network now? */
bool owners_serves(const struct owners *o, const struct model_network *net, nsec_t now);

/** owners_find() - lends the owner's record; NULL: there is none, or the store is this hub's alone.
 */
const struct owners_network *owners_find(const struct owners *o, const char *network);

/** owners_is_of() - is that the owner of @net, and not of one of its name that was removed before?
 */
bool owners_is_of(const struct owners_network *n, const struct model_network *net);

/** owners_is_alive() - was a heartbeat of that hub heard lately? This hub itself is always alive.
 */
bool owners_is_alive(const struct owners *o, const char *hub, nsec_t now);

/** owners_failure() - why this hub has to end: another process is it; NULL: it has not. Lends. */
const struct err *owners_failure(const struct owners *o);

/**
 * owners_give_up() - this hub ends: others shall take over at once. The store is to be waited for.
 *
 * Nothing is given up when another process runs as this hub: what is its own is the other's, too.
 */
void owners_give_up(struct owners *o, nsec_t now);

/** owners_deinit() - idempotent. */
void owners_deinit(struct owners *o);

/* ---- which of several hubs serves the jobs of a network: what one of them decides ------------ */

/*
 * Theory of operation. The record owner/NET names the owner and an epoch, which counts the owners.
 * Each hub writes a record of its own every OWNER_HEARTBEAT_EACH (its heartbeat). A hub that has
 * heard no heartbeat of the owner for OWNER_TAKE_AFTER of its own clock takes the network over: in
 * one commit it checks that the owner's heartbeat is still the one that it has heard, and writes
 * the owner's record with the next epoch. So of several hubs one succeeds, and none if the owner
 * was only slow. An owner whose own heartbeats have not been stored for OWNER_SERVE_FOR stops
 * serving: that is sooner, since it counts from when it began to write the heartbeat, and the
 * others from when they heard of it. What the owner writes about jobs names the revision of its
 * owner's record, so nothing that it still writes after it was replaced is stored.
 *
 * A network that had no owner yet is taken by the hub that has made it, or by another if that one
 * does not come.
 *
 * Pure: no clock, no store.
 */

/** For how long after the beginning of a heartbeat that was stored its hub serves jobs. The hub
 * looks each second, so it may be one second more. */
#define OWNER_SERVE_FOR (4 * NSEC_PER_SEC)

/** How long after an owner's last heartbeat another hub takes over. */
#define OWNER_TAKE_AFTER (6 * NSEC_PER_SEC)

/** What a hub knows when it decides. Times are monotonic, of its own clock. */
struct owner_facts {
    bool has_record;  /* there is a record of the owner */
    bool is_nobodys;  /* it names no hub: the last owner has given the jobs up */
    bool is_own;      /* it names this hub */
    bool is_maker;    /* this hub has made the network */
    nsec_t heard_at;  /* when the owner's heartbeat was heard last; without a record, when the
                         network  was */
    nsec_t stored_at; /* when this hub began its last heartbeat that was stored; 0: none was */
    nsec_t now;
};

enum owner_decision {
    OWNER_WAIT,  /* it does not serve the jobs */
    OWNER_TAKE,  /* it tries to become the owner */
    OWNER_SERVE, /* it is the owner, and serves them */
};

/** owner_decide() - see the theory above. */
enum owner_decision owner_decide(const struct owner_facts *f);

/* ---- what a network has left that was removed while its owner was dead ----------------------- */

/*
 * The owner of a network's jobs deletes them when the network is removed. When it has died before,
 * or dies meanwhile, the jobs (rdzv/NET/) and the owner's record (owner/NET) stay. Every hub looks
 * for records of owners whose network is not there any more. The owner, or any other hub if it is
 * not heard, deletes the jobs, a page at a time, and then the record. Each of these commits expects
 * that nobody has taken the record over, and that the network is still absent; so what a new
 * network of the same name writes is safe, and several hubs may do this at once.
 *
 * A network may be made again while the former one's jobs are still there. Its hubs see that the
 * owner's record is of the other one, and take it over only when it is gone; so jobs are not
 * inherited. Then they are deleted at once, since nobody who lives is deleting them.
 *
 * Threads: the hub's loop only.
 */

struct orphans {
    struct owners *owners;          /* pins */
    char network[NAME_MAX_LEN + 1]; /* the one that is looked at; "": none */
    nsec_t since;                   /* when it was seen to be absent */
    uint64_t revision;              /* of its owner's record, while is_busy */
    bool is_last;                   /* it is the one that deletes the owner's record */
    bool is_busy;                   /* a request is on its way to the store */
};

/** orphans_tick() - each second. */
void orphans_tick(struct orphans *l, nsec_t now);
