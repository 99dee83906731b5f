/*
 * access_rules.h - what the network's Rules (mesh/object/rule.h) allow, enforced at both ends: in
 * the kernel's packet filter, or by the data plane itself where there is none.
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
 * The packet filter comes first. Where the kernel does not take the table, the engine is asked
 * (engine/engine_access.h), and the kernel is tried again each minute. Who opens an engine tells it
 * the rules before its interface comes up, so that no packet passes without them.
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

struct engine;
struct snapshot;

/** How often counters are read. */
#define ACCESS_READ_EACH (10 * NSEC_PER_SEC)

/** The rules in the data plane's own filter. */
struct access_own {
    char *lines;  /* owns; what it is to go by; NULL: the packet filter enforces them, or nobody */
    uint64_t tag; /* what they are called there */
    bool is_in;   /* it goes by them, as far as is known */
    bool is_logged; /* the log has it */
};

struct access_rules {
    struct kept_table table;
    struct access_own own;
    struct err lacks; /* why the packet filter does not take them; without words: it does, or there
                         are none */
    struct err fault; /* why nobody enforces them; the same */
    struct access_counts counts;
    struct job_ports jobs; /* owns; where jobs that are isolated here listen */
    nsec_t read_at;        /* when counters were read */
};

/** access_rules_are_wanted() - has the network any, or is it isolated? Those of jobs count where
 * they close ports of this node. */
bool access_rules_are_wanted(const struct snapshot *s);

/**
 * access_rules_apply() - put or remove them, as is due
 * @engine:	of the interface; NULL: it is not open yet
 *
 * To be called before an engine is opened, and after every pass.
 */
void access_rules_apply(struct access_rules *ar, const char *interface, struct engine *engine,
    const struct snapshot *s, nsec_t now);

/** access_rules_are_enforced() - by whomever; also while there are none. */
bool access_rules_are_enforced(const struct access_rules *ar);

/** access_rules_tell() - tell an engine that was just opened, and whose interface may not be up,
 * what it is to go by. One that was told something by an earlier process, and is to go by nothing,
 * ends it. */
void access_rules_tell(const struct access_rules *ar, struct engine *engine);

/** access_rules_count() - read what was counted, where it is time. @engine: as above. */
void access_rules_count(struct access_rules *ar, const char *interface, struct engine *engine,
    const struct snapshot *s, nsec_t now);

/** access_rules_forget() - as class_marks_forget(), and the engine may be another one; what was
 * counted stays. */
void access_rules_forget(struct access_rules *ar);

/** access_rules_deinit() - and that, too. */
void access_rules_deinit(struct access_rules *ar);

/** access_rules_remove() - remove the table, if there is one. */
void access_rules_remove(const char *interface);
