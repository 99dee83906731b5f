/*
 * live_rows.h - what the page shows of a network, in rows that change one by one.
 *
 * A row has a key, "n/gpu-1", and a text of JSON. Whoever makes the rows makes all of them each
 * time; those that are as before stay as they are. The others get the number of that time, and go
 * to the end of a list in the order of their last changes. So who knows all up to a number reads
 * the end of the list, however often a row has changed meanwhile (as hub/watch/watch.h does). Rows
 * that are gone stay in the list for a while, without a text.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/containers.h"
#include "store/keys.h"

struct str;

/** Rows that are kept; more are passed over. And of those that are gone, the latest. */
#define LIVE_ROWS_MAX 16384
#define LIVE_GONE_MAX 4096

struct live_row {
    struct keyed keyed;
    struct list link;  /* in the rows' order */
    char *text;        /* owns; NULL: it is gone */
    uint64_t revision; /* when it changed last */
    bool is_seen;      /* made since live_rows_begin() */
};

struct live_rows {
    struct keys rows;   /* owns struct live_row */
    struct list order;  /* the same, by their last changes */
    uint64_t revision;  /* of the last change */
    uint64_t next;      /* of the changes that are being made */
    uint64_t forgotten; /* what had gone up to then is not known any more */
    size_t n_gone;
};

/** live_rows_init() - none; who knows something from before @revision has to be told all. */
void live_rows_init(struct live_rows *r, uint64_t revision);

/** live_rows_deinit() - release. */
void live_rows_deinit(struct live_rows *r);

/** live_rows_begin() - all rows are made anew; what changes gets @revision, above all before. */
void live_rows_begin(struct live_rows *r, uint64_t revision);

/**
 * live_rows_put() - a row, as it is now
 * @key:	without quotes, backslashes and control characters; one with them is passed over
 * @text:	taken; JSON of one line. NULL (no memory): the row is as if it were not there
 */
void live_rows_put(struct live_rows *r, const char *key, char *text);

/** live_rows_end() - all are made: the others are gone. True: something has changed. */
bool live_rows_end(struct live_rows *r);

/**
 * live_rows_read() - append {"all": true, "rows": {...}}, or what has changed after @since, where a
 *		      row that is gone is null
 * @since:	0, or what is forgotten: all
 */
void live_rows_read(const struct live_rows *r, uint64_t since, struct str *out);
