/*
 * store_open.h - which back end a URL names.
 *
 * A new back end is one row of the table in store_open.c; docs/HACKING.md, "A new store", says what
 * else it needs.
 */
#pragma once

#include "base/clock.h"

struct err;
struct store;

/** store_open_check() - could store_open() know @url? 0, or -EINVAL with words. Opens nothing. */
int store_open_check(const char *url, struct err *e);

/**
 * store_open() - open the store of a URL: "sqlite:PATH", "memory:", "etcd://...", "etcds://..." or
 * "kubernetes:..."; waits for the disk or for the server
 * @ret:	gives it; store_free()
 * @now:	monotonic time, from which the leases found inside count
 *
 * Return: 0; -EINVAL with words for a URL of no known kind; else as the back end's open.
 */
int store_open(struct store **ret, const char *url, nsec_t now, struct err *e);
