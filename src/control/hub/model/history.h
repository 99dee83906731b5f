/*
 * history.h - what of a network has changed lately, so that a watch may go on where another
 * one broke off.
 *
 * Theory of operation. Each object whose change was told has one entry, with the store's revision
 * at that time; when it changes again the entry moves to the end. What is told to a watch that goes
 * on is what these objects are now, or that they are gone; so no texts are kept. A watch that knows
 * everything up to a revision lacks at most what has an entry at that revision or a later one: at
 * the same one as well, because several changes may have it. There are at most HISTORY_MAX
 * entries. The oldest is forgotten for a new one, and then nobody may go on from its revision, or
 * from one before it.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/containers.h"
#include "mesh/object/object.h"

/** Most objects of a network that are remembered as changed: about half a MiB. */
#define HISTORY_MAX 4096

/** An object that has changed. */
struct history_change {
    struct list link;         /* the oldest first */
    struct htab_link by_name; /* in the history's table */
    const struct object_kind *kind;
    uint64_t revision; /* when it was told */
    char name[];
};

struct history {
    struct list changes; /* of struct history_change */
    struct htab by_name; /* the same */
    size_t n;            /* entries */
    uint64_t forgotten;  /* the last revision of which something may be missing; 0: nothing is */
};

/** history_init() - nothing has changed. @seed: random, unknown to strangers. */
void history_init(struct history *h, uint64_t seed);

/** history_deinit() - idempotent. */
void history_deinit(struct history *h);

/** history_add() - the object was told of, at @revision, which never decreases. */
void history_add(
    struct history *h, const struct object_kind *kind, const char *name, uint64_t revision);

/** history_holds() - is everything known that has changed at @revision and since? */
bool history_holds(const struct history *h, uint64_t revision);

/** history_since() - lends the first change at @revision or a later one; NULL: there is none. */
const struct history_change *history_since(const struct history *h, uint64_t revision);

/** history_next() - lends the one after it; NULL: it was the last. */
const struct history_change *history_next(const struct history *h, const struct history_change *c);
