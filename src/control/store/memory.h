/*
 * memory.h - a store that is gone with the process: for tests, and the model of what a store is.
 *
 * Each job is done at once, inside submit().
 */
#pragma once

#include "base/clock.h"

struct err;
struct store;
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

/** memory_run() - do @job on a store of memory_open(), without handing it back. For tests. */
void memory_run(struct store *s, struct store_job *job);
