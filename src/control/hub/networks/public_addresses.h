/*
 * public_addresses.h - where nodes reach this hub: what it was started with, and where it is to
 * move.
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

/** The places of a hub. */
struct public_addresses {
    struct hub_places here;    /* what it was started with */
    struct hub_places next;    /* announced: where the hub will be */
    struct resolve_task *task; /* owns; NULL: nothing is being looked up */
    nsec_t look_up_at;         /* when to look up next */
    struct log_limit limit;    /* of what is said about failures */
};

/**
 * public_addresses_load() - read which place was announced before the hub was started
 * @path:	of move.json; one that is damaged is named in the log, and left as it is
 */
void public_addresses_load(struct public_addresses *p, const char *path, uint16_t dflt_port);

/**
 * public_addresses_check() - do all names among @next lead somewhere? Waits for the resolver, on
 * any thread
 *
 * Return: 0; or -EINVAL with words about the first that does not.
 */
int public_addresses_check(const struct hub_places *next, struct err *e);

/**
 * public_addresses_write() - write to the disk where the hub will be; waits for it, on any thread
 * @next:	borrowed; none: the hub stays, and the file goes
 * @path:	of move.json
 *
 * Return: 0; or negative errno with words, and then the file is as it was.
 */
int public_addresses_write(const struct hub_places *next, const char *path, struct err *e);

/**
 * public_addresses_set_next() - from now on nodes are told that the hub will be there
 * @next:	copied; what public_addresses_write() has written
 *
 * Names are looked up with the next public_addresses_tick().
 */
void public_addresses_set_next(struct public_addresses *p, const struct hub_places *next);

/** public_addresses_tick() - each second. Return: what nodes are told is different now. */
bool public_addresses_tick(struct public_addresses *p, nsec_t now);
