/*
 * owners.h - says that this hub lives, hears of others, and takes over what a dead one served.
 *
 * It follows the store's records of hubs and owners (owner_record.h), writes this hub's beats, and
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
#include "hub/owner/twin.h"
#include "hub/record/owner_record.h"

struct model;
struct model_network;
struct store_watch;

/** Most hubs of one store that are told apart, and networks whose owners are. */
#define OWNERS_HUBS_MAX     64
#define OWNERS_NETWORKS_MAX 1024

/** A hub of the store, as its beats tell. */
struct owners_hub {
    char name[NAME_MAX_LEN + 1];
    uint64_t revision; /* of its last beat */
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
    struct store_watch *watches[2];  /* owns: beats, owners */
    struct owners_hub *hubs;         /* owns; OWNERS_HUBS_MAX */
    size_t n_hubs;                   /* how many */
    struct owners_network *networks; /* owns; OWNERS_NETWORKS_MAX */
    size_t n_networks;               /* how many */
    uint64_t beat;                   /* of the last beat */
    bool is_beating;                 /* one is on its way to the store */
    nsec_t begun_at;                 /* when the last one was begun */
    nsec_t stored_at;                /* when the last that was stored was begun; 0: none was */
    struct twin twin;                /* other processes that run as this hub */
    struct err failure;              /* why this hub has to end; nothing: it has not */
};

/** owners_init() - nothing is read, nothing is written. @clock: monotonic. */
void owners_init(struct owners *o, struct model *model, nsec_t (*clock)(void));

/** owners_load() - read who there is; waits for the store. 0 or negative errno with words. */
int owners_load(struct owners *o, struct err *e);

/** owners_tick() - each second: write a beat if it is time, and take over what is to be. */
void owners_tick(struct owners *o, nsec_t now);

/** owners_serves() - does this hub serve the jobs of that network now? */
bool owners_serves(const struct owners *o, const struct model_network *net, nsec_t now);

/** owners_find() - lends the owner's record; NULL: there is none, or the store is this hub's alone.
 */
const struct owners_network *owners_find(const struct owners *o, const char *network);

/** owners_is_of() - is that the owner of @net, and not of one of its name that was removed before?
 */
bool owners_is_of(const struct owners_network *n, const struct model_network *net);

/** owners_is_alive() - was a beat of that hub heard lately? This hub itself is always alive. */
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
