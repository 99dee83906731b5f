/*
 * audit_rings.h - which entries of the audit log are whose, so that no network pushes out
 * another's.
 *
 * Theory of operation. The log has room for so many entries in all. When it is full the oldest
 * entry goes of that network which has the most. So a network may use all that nobody else uses,
 * and loses its own entries first when it fills the log; one that has less than its share loses
 * none. Kept in memory beside the store, 16 bytes an entry. Entries about no network are those of
 * one more, "".
 *
 * Pure. Threads: the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hub/record/audit_record.h"

/** An entry's ID as numbers. */
struct audit_rings_id {
    uint64_t number; /* of its commit */
    unsigned n;      /* among the entries of that */
};

/** The entries of one network, oldest first. */
struct audit_ring {
    char network[NAME_MAX_LEN + 1];
    struct audit_rings_id *ids; /* owns; a ring of @cap places, a power of two */
    size_t cap;
    size_t first; /* place of the oldest */
    size_t n;
};

struct audit_rings {
    struct audit_ring *items; /* owns; sorted by network */
    size_t n;
    size_t cap;
};

/** audit_rings_deinit() - forget all; idempotent, safe on zeroes. */
void audit_rings_deinit(struct audit_rings *r);

/**
 * audit_rings_add() - there is one more entry
 * @id:	newer than those before of that network. What is no ID is passed over
 *
 * Without memory it is not known, and goes when it is too old.
 */
void audit_rings_add(struct audit_rings *r, const char *network, const char *id);

/** audit_rings_remove() - that entry has gone, and with it older ones of the same network. */
void audit_rings_remove(struct audit_rings *r, const char *network, const char *id);

/**
 * audit_rings_take() - the oldest entry of the network that has the most; it is forgotten here
 *
 * Return: false when no entry is known.
 */
bool audit_rings_take(struct audit_rings *r, char ret_id[static AUDIT_ID_MAX]);
