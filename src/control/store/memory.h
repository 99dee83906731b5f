/*
 * memory.h - a store that is gone with the process: for tests, and the model of what a store is.
 *
 * Each job is done at once, inside submit().
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

struct err;
struct store;
struct store_item;
struct store_job;

/**
 * memory_open() - an empty store
 * @ret:	gives it; store_free()
 * @where:	must be ""
 * @now:	not looked at: nothing in it has a lease
 *
 * Return: 0 or negative errno with words.
 */
int memory_open(struct store **ret, const char *where, nsec_t now, struct err *e);

/*
 * For a back end that keeps what it knows in one, and for tests: without store.h, and so without
 * watches and leases.
 */

/** memory_run() - do @job on a store of memory_open(), without handing it back. */
void memory_run(struct store *s, struct store_job *job);

/** memory_revision() - of the last commit that changed something. */
uint64_t memory_revision(const struct store *s);

/** memory_restore() - put one item in as it is, into no log. 0 or -ENOMEM. */
int memory_restore(struct store *s, const struct store_item *item);

/** memory_set_revision() - it is at @revision, and knows no change before. */
void memory_set_revision(struct store *s, uint64_t revision);
