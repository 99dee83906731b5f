/*
 * publics.h - where nodes reach this hub: what it was started with, and where it is about to move.
 *
 * Theory of operation. Each place is an address or a name. Names are looked up again while the hub
 * runs, so that what it tells its members is true for longer than a lease of its provider; a name
 * that has no answer for a while stays where it was. A hub that is about to move tells the places
 * of its next machine, too: they come last in the list, so that nodes try them when this machine
 * is silent. They are kept in STATE/move.json.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "hub/record/request.h"
#include "os/log.h"

struct err;
struct resolve_task;

/** The places of a hub. */
struct publics {
    struct hub_places here;    /* what it was started with */
    struct hub_places next;    /* announced: where the hub will be */
    struct resolve_task *task; /* owns; NULL: nothing is being looked up */
    nsec_t look_up_at;         /* when to look up next */
    struct log_limit limit;    /* of what is said about failures */
};

/**
 * publics_load() - read which place was announced before the hub was started
 * @path:	of move.json; one that is damaged is named in the log, and left as it is
 */
void publics_load(struct publics *p, const char *path, uint16_t dflt_port);

/**
 * publics_check() - do all names among @next lead somewhere? Waits for the resolver, on any thread
 *
 * Return: 0; or -EINVAL with words about the first that does not.
 */
int publics_check(const struct hub_places *next, struct err *e);

/**
 * publics_write() - write to the disk where the hub will be; waits for it, on any thread
 * @next:	borrowed; none: the hub stays, and the file goes
 * @path:	of move.json
 *
 * Return: 0; or negative errno with words, and then the file is as it was.
 */
int publics_write(const struct hub_places *next, const char *path, struct err *e);

/**
 * publics_set_next() - from now on nodes are told that the hub will be there
 * @next:	copied; what publics_write() has written
 *
 * Names are looked up with the next publics_tick().
 */
void publics_set_next(struct publics *p, const struct hub_places *next);

/** publics_deinit() - does not wait for a name server. Idempotent. */
void publics_deinit(struct publics *p);

/** publics_tick() - each second. Return: what nodes are told is different now. */
bool publics_tick(struct publics *p, nsec_t now);
