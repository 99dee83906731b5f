/*
 * kept_table.h - a table of the packet filter that is about one interface, and is kept there.
 *
 * What it is for has one for each interface, WHAT_INTERFACE of the family inet. What differs is
 * changed, in one transaction; now and then it is put again whole: other programs that load a
 * packet filter often flush all rules.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

struct err;
struct str;

/** The family of all these tables, and room for the name of one. */
#define KEPT_TABLE_FAMILY "inet"
#define KEPT_TABLE_MAX    64

/** A table is put again after this time. */
#define KEPT_TABLE_PERIOD (60 * NSEC_PER_SEC)

/** A table whose contents follow from facts. All zero: nothing is known of it. */
struct kept_table {
    char *body;      /* owns; what was put last; NULL: nothing */
    nsec_t put_at;   /* time of that */
    bool is_in;      /* the kernel has taken it */
    bool is_removed; /* there is none, as far as is known */
};

/** kept_table_name() - "weft_access_weft0". */
void kept_table_name(const char *what, const char *interface, char ret[static KEPT_TABLE_MAX]);

/**
 * kept_table_replace() - have exactly these contents in a table
 * @what:	"weft_" and a short word
 * @body:	its chains, as for nft_replace_table(); NULL: removes it
 *
 * An interface with characters that have a meaning in nft's syntax is refused.
 *
 * Return: 0 or negative errno with words.
 */
int kept_table_replace(
    const char *what, const char *interface, const struct str *body, struct err *e);

/** kept_table_forget() - nothing is known of it any more. Releases what is owned, and leaves the
 * table where it is. */
void kept_table_forget(struct kept_table *t);

/** Which counters go, and sets with what they have counted. */
enum kept_table_loss {
    KEPT_TABLE_LOSES_NONE,
    KEPT_TABLE_LOSES_SOME, /* single ones, and no set */
    KEPT_TABLE_LOSES_ALL,  /* it is put whole */
};

/** kept_table_loses() - what would kept_table_put() remove? It is to be read before. */
enum kept_table_loss kept_table_loses(const struct kept_table *t, const char *what,
    const char *interface, const struct str *body, nsec_t now);

/**
 * kept_table_changes() - the commands of nft(8) that make @after of a table that has @before
 *
 * Both are objects one after the other: each begins with a line "KIND NAME {", and ends with a line
 * "}" or in its own. What is the same in both is in no command, so counters go on.
 *
 * Return: false: the table is to be put whole, since the commands would not notice that somebody
 * has removed it. Pure.
 */
bool kept_table_changes(const char *table, const char *before, const char *after, struct str *ret);

/**
 * kept_table_put() - have it in the kernel what it should have
 * @body:	NULL: no table
 *
 * Return: 2: what differs was changed; 1: nothing was due; 0: it was put, or removed; or negative
 * errno with words.
 */
int kept_table_put(struct kept_table *t, const char *what, const char *interface,
    const struct str *body, nsec_t now, struct err *e);
