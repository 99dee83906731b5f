/*
 * catch_up.h - what is told first to watches that go on, kept while it is the same for all of them.
 *
 * When a network was cut, thousands of watches go on at once, most of them from the same revision,
 * and most of what they are told is the same. So its lines are made, and packed, once.
 *
 * Theory of operation. There is an entry for each of the last revisions from which watches went on.
 * All entries are forgotten as soon as anything else is told in the network. Who makes the lines is
 * hub/watch/resume.h.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct line;

/** Revisions that are kept at a time. */
#define CATCH_UP_MAX 4

struct catch_up_entry {
    struct line **lines; /* owns the array and a reference each; NULL: this entry is empty */
    size_t n;            /* lines */
    size_t n_first;      /* of them, those that come before what is not the same for all */
    uint64_t revision;   /* from which they go on */
};

struct catch_up {
    struct catch_up_entry entries[CATCH_UP_MAX];
    unsigned next; /* the one that is given up for a new one */
};

/** catch_up_find() - lends the entry of @revision, until anything is put or forgotten; NULL: there
 * is none. */
const struct catch_up_entry *catch_up_find(const struct catch_up *c, uint64_t revision);

/** catch_up_put() - keep @entry, whose lines are taken; lends it, as above. */
const struct catch_up_entry *catch_up_put(struct catch_up *c, const struct catch_up_entry *entry);

/** catch_up_forget() - nothing of it holds any more. Idempotent; also the end of it. */
void catch_up_forget(struct catch_up *c);
