/*
 * access_counts.h - what the packet filter has let in and refused here by the network's rules.
 *
 * Theory of operation. The filter counts in its table: in a counter for each rule, and in sets that
 * have an element with a counter for each sender, receiver, protocol and port of what was refused.
 * Both are read now and then, and only what they have grown by is added here, so nothing is lost
 * when the table changes: who changes it reads it first, and who replaces it whole says so
 * (access_counts_restart()). The counter of a rule that comes back begins at 0.
 *
 * Each number and each refusal carries a sequence number, which grows with each change. What a hub
 * knows goes up to one of these. A refusal is reported when it is new, and then at most each ten
 * minutes.
 *
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "mesh/object/access.h"

struct metrics;
struct snapshot;

/** Elements of one set of the filter, and most kinds of refused packets that are kept apart: those
 * of all its sets. */
#define ACCESS_SET_MAX   512
#define ACCESS_KINDS_MAX (4 * ACCESS_SET_MAX)

/** How often one kind is reported. */
#define ACCESS_REPORT_EACH (600 * NSEC_PER_SEC)

struct access_total {
    struct access_count count;
    uint64_t seen; /* what the filter's counter of it had at the last reading */
    uint64_t seq;
    bool is_listed; /* that one had counted something at the last reading */
};

/** Packets of one kind that were refused. */
struct access_kind {
    struct ip_addr from;
    struct ip_addr to;
    uint8_t protocol;  /* of IP */
    uint16_t port;     /* with TCP and UDP */
    uint64_t seen;     /* likewise */
    uint64_t pending;  /* packets that are not reported yet */
    uint64_t reported; /* those of the last report about it */
    uint64_t seq;      /* of that; 0: none was yet */
    nsec_t reported_at;
    nsec_t at; /* the last packet's, as far as is known */
};

struct access_counts {
    struct access_total *totals; /* owns; in the order of their rules' names */
    size_t n_totals;
    size_t cap_totals;
    struct access_kind *kinds; /* owns */
    size_t n_kinds;
    uint64_t seen; /* of all refused packets, at the last reading */
    int64_t
        unsorted; /* refused packets that were counted and seen in no set; < 0: not counted yet */
    uint64_t seq;
    uint64_t refusals; /* the last sequence number of a refusal */
};

/** access_counts_deinit() - forget all. Idempotent. */
void access_counts_deinit(struct access_counts *c);

/** access_counts_restart() - the filter's counters begin at 0 again. */
void access_counts_restart(struct access_counts *c);

/*
 * A reading: begin, what the filter has of each, end. One of the rules' counters alone is a whole
 * one as well.
 */

/** access_counts_begin() - a reading begins. */
void access_counts_begin(struct access_counts *c);

/** access_counts_take_passed() - the counter of @rule has @packets. */
void access_counts_take_passed(struct access_counts *c, const char *rule, uint64_t packets);

/** access_counts_take_refused() - that of all that was refused has @packets; before the kinds. */
void access_counts_take_refused(struct access_counts *c, uint64_t packets);

/** access_counts_take_kind() - of one kind @packets were refused. @like: its ends, protocol, port.
 */
void access_counts_take_kind(struct access_counts *c, const struct access_kind *like,
    uint64_t packets, const struct snapshot *s, nsec_t now);

/** access_counts_take_sets() - the same, of all elements of sets. @list: what nft_list() has of
 * those of the table that access_table_format() makes. */
void access_counts_take_sets(
    struct access_counts *c, const json_t *list, const struct snapshot *s, nsec_t now);

/** access_counts_end() - it ends: a rule of which nothing was read begins at 0. */
void access_counts_end(struct access_counts *c);

/**
 * access_counts_report() - what has changed behind @known
 * @known:	sequence number up to which the hub knows it
 * @ret_seq:	up to which it knows it with @ret
 *
 * Return: false: nothing has.
 */
bool access_counts_report(const struct access_counts *c, const struct snapshot *s, uint64_t known,
    nsec_t now, struct access_report *ret, uint64_t *ret_seq);

/** access_counts_add_metrics() - add the METRIC_AGENT_RULE... to @m. */
void access_counts_add_metrics(const struct access_counts *c, struct metrics *m);
