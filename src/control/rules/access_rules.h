/*
 * access_rules.h - what the network's Rules (mesh/object/rule.h) allow, in the packet filter, at
 * both ends.
 *
 * Of what comes in on the interface that passes which a rule with this node as its destination, or
 * a subnet behind it, allows; of what goes out, from here or from containers, that which one with
 * this node as its source allows. Answers pass. The hubs' API is never shut, nor are pings between
 * a node and a hub. All else is counted, and refused where it is sent, with ICMP, so that a program
 * hears of it at once.
 *
 * Without a rule, in a network that is not isolated, there is no table. Where jobs alone have
 * rules, it refuses at the ports of those that run here (job_ports.h), and nothing else.
 *
 * Threads: the loop's, where nothing else is said.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "rules/access_counts.h"
#include "rules/job_ports.h"
#include "rules/kept_table.h"

struct snapshot;
struct str;

/** How often the table's counters are read. */
#define ACCESS_READ_EACH (10 * NSEC_PER_SEC)

struct access_rules {
    struct kept_table table;
    struct err fault; /* why they are not enforced; without words: they are, or there are none */
    struct access_counts counts;
    struct job_ports jobs; /* owns; where jobs that are isolated here listen */
    nsec_t read_at;        /* when the table's counters were read */
};

/** access_rules_format() - the table's contents, as nft(8) has them. Pure. */
void access_rules_format(struct str *out, const char *interface, const struct snapshot *s,
    const struct job_ports *jobs, nsec_t now);

/** access_rules_are_wanted() - has the network any, or is it isolated? Those of jobs count where
 * they close ports of this node. */
bool access_rules_are_wanted(const struct snapshot *s);

/** access_rules_apply() - put or remove them, as is due; to be called after every pass, and before
 * the first packet can pass. */
void access_rules_apply(
    struct access_rules *ar, const char *interface, const struct snapshot *s, nsec_t now);

/** access_rules_count() - read what the table has counted, where it is time. */
void access_rules_count(
    struct access_rules *ar, const char *interface, const struct snapshot *s, nsec_t now);

/** access_rules_forget() - as class_marks_forget(); what was counted stays. */
void access_rules_forget(struct access_rules *ar);

/** access_rules_deinit() - and that, too. */
void access_rules_deinit(struct access_rules *ar);

/** access_rules_remove() - remove the table, if there is one. */
void access_rules_remove(const char *interface);
