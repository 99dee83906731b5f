/*
 * traffic_book.h - what nodes have moved, as they tell this hub, and in the store.
 *
 * Theory of operation. A report has sums of a day and not what was added to them, and of two copies
 * of a sum the greater one counts (mesh/object/traffic.h). So a report may come twice, late, or
 * while the record of before is still being read; and what this hub has told is taken, but not
 * written, when it crashes, nodes tell the next hub again, since they tell all of yesterday and
 * today to a hub that was started anew.
 *
 * A record is read when its node speaks of that day, is written within a minute of a change, and is
 * let go of when nothing was heard of it for some minutes. Records of days that are older than is
 * kept are removed.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "hub/record/record.h"
#include "mesh/object/traffic.h"
#include "store/keys.h"

struct model;
struct model_node;
struct store_item;

/** How many days are kept, with today, unless said otherwise: this month and the last one. */
#define TRAFFIC_BOOK_DAYS 62

/** How long what was told may be in memory only. */
#define TRAFFIC_BOOK_FLUSH (60 * NSEC_PER_SEC)

/** Most flows of one record, which has to fit a value of the store with the longest names: one
 * meter's, and a few of others that a node had on that day. */
#define TRAFFIC_BOOK_FLOWS_MAX (TRAFFIC_FLOWS_MAX + 12)

/** Most flows in memory: about 60 MB. They are shared out among the networks by their numbers of
 * nodes, so that none takes another one's part. */
#define TRAFFIC_BOOK_MEMORY_MAX 500000

struct traffic_book {
    struct model *model; /* pins */
    struct keys entries; /* of struct traffic_entry, by the record's key */
    struct keys shares;  /* of struct traffic_share, by the network's name */
    size_t max_flows;    /* TRAFFIC_BOOK_MEMORY_MAX, or less in a test */
    int32_t n_days;      /* that are kept, with today */
    uint64_t n_left_out; /* flows that had no room, or were of a day that is not taken */
    unsigned n_on_way;   /* requests to the store without an answer */
    size_t n_networks;   /* there were at the last flush */
    nsec_t ticked_at;
    nsec_t flushed_at;
    nsec_t trimmed_at;
    int32_t oldest;     /* day that is kept, at @ticked_at */
    struct err failure; /* of writing or trimming, until traffic_book_tick() returns it */
};

/** traffic_book_deinit() - forget what is in memory; the store has answered. */
void traffic_book_deinit(struct traffic_book *b);

/** traffic_book_take() - @node tells what it has moved, of a day that it may still have, with one
 * more for its clock: it cannot write what was moved before, nor fill all days that are kept.
 * @wall_s: s since 1970. */
void traffic_book_take(struct traffic_book *b, const struct model_node *node,
    const struct traffic *t, nsec_t now, int64_t wall_s);

/** traffic_book_write() - have what is not written yet written now; NULL: of all networks. 0 or
 * negative errno with words. */
int traffic_book_write(struct traffic_book *b, const char *network, nsec_t now, struct err *e);

/**
 * traffic_book_tick() - each second: write, let go, and remove what is too old, when it is time
 *
 * Return: 0 or negative errno with words, perhaps of what an earlier call has begun; it is tried
 * again.
 */
int traffic_book_tick(struct traffic_book *b, nsec_t now, int64_t wall_s, struct err *e);

/* ---- the keys of the records of what nodes have moved ---------------------------------------- */

/*
 *     traffic/NET/2026-11-23/NODE/HUB    the day's sums of that node (traffic.h), as it has told
 *                                        that hub
 *
 * Each hub writes its own records, so none overwrites another one's.
 *
 * Pure.
 */

#define TRAFFIC_KEY_PREFIX "traffic/"

/** What is read of a key. */
struct traffic_key {
    int32_t day;
    char node[NAME_MAX_LEN + 1];
};

/** traffic_key_format() - without a node and a hub ("") what all keys of a day begin with, and
 * without a day (below 0) those of a network. Returns @buf. */
const char *traffic_key_format(char buf[static RECORD_KEY_MAX], const char *network, int32_t day,
    const char *node, const char *hub);

/** traffic_key_parse() - false: it is none; @ret is untouched then. */
bool traffic_key_parse(struct traffic_key *ret, const char *text);

/** traffic_record_decode() - false: the record is damaged, or cannot be understood. A node writes
 * it anew when it speaks of that day. */
bool traffic_record_decode(struct traffic *ret, const struct store_item *item);
