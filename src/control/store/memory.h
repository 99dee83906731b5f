/*
 * memory.h - a store that keeps everything in memory and loses it when the process ends. It is for
 * tests, and it is the reference for what a store does.
 *
 * Each job is done at once, inside submit().
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "store/store.h"

struct store_job;

/**
 * memory_open() - an empty store
 * @ret:	gives it; store_free()
 * @where:	must be ""
 * @now:	not used: a new store has no leases
 *
 * Return: 0 or negative errno with words.
 */
int memory_open(struct store **ret, const char *where, nsec_t now, struct err *e);

/*
 * For a back end that keeps its items in a store of this kind, and for tests. These calls bypass
 * store.h, and so they tell no watch and begin no lease.
 */

/** memory_run() - do @job on a store of memory_open(), without store__finish(). */
void memory_run(struct store *s, struct store_job *job);

/** memory_revision() - of the last commit that changed something. */
uint64_t memory_revision(const struct store *s);

/** memory_revision_of() - that has written @key; 0: it is not there. */
uint64_t memory_revision_of(struct store *s, const char *key);

/** memory_walk() - all items, which stay as they are meanwhile. 0; or what @fn returned. */
int memory_walk(struct store *s, store_item_fn fn, void *ctx);

/** memory_restore() - add one item with its own revision, and do not log it. 0 or -ENOMEM. */
int memory_restore(struct store *s, const struct store_item *item);

/** memory_set_revision() - set the store's revision; its log begins behind it. */
void memory_set_revision(struct store *s, uint64_t revision);
