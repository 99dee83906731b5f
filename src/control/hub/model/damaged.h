/*
 * damaged.h - the records of the store that did not load, and why.
 *
 * A record that cannot be understood is set aside: it stays in the store as it
 * is, nothing is made of it, and it is listed here until a later write of its
 * key can be understood or deletes it. What is not done meanwhile for its sake,
 * so that nobody gains by the damage, is described in weft-hub(8).
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>

#include <stdint.h>

#include "base/err.h"
#include "store/keys.h"

struct damaged_record {
    struct keyed keyed; /* its key in the store; in the model's damaged */
    struct err why;     /* in words */
    uint64_t revision;  /* of it; 0: not known */
};

/**
 * damaged_add() - the record with @key cannot be understood
 *
 * Return: true when it was not in the list before. Without memory it is not in
 * the list, and true.
 */
bool damaged_add(struct keys *damaged, const char *key, uint64_t revision, const struct err *why);

/** damaged_remove() - it can be understood now, or is gone. True when it was in the list. */
bool damaged_remove(struct keys *damaged, const char *key);

/** damaged_find() - lends; NULL: it is not in the list. */
const struct damaged_record *damaged_find(const struct keys *damaged, const char *key);

/** damaged_find_below() - lends the first one whose key starts with @prefix, NULL if none. */
const struct damaged_record *damaged_find_below(const struct keys *damaged, const char *prefix);
