/*
 * forward_rules.h - when the packet filter's rules for what this machine forwards are put, and when
 * they are removed.
 *
 * Two sets of rules: the MSS clamp (mss_clamp.h), which every node has, and the guard
 * (route_guard.h), which a node has that is the way to a subnet. Both are put again each minute,
 * because other programs that load a packet filter often flush all rules. Rules that an earlier run
 * has left behind are removed.
 *
 * forward_rules_plan() and the functions that take a result are pure; forward_rules_apply() calls
 * them and does what they say.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "mesh/object/subnets.h"

/** Rules that are there are put again after this time. */
#define FORWARD_RULES_PERIOD (60 * NSEC_PER_SEC)

struct forward_rules {
    nsec_t clamped_at;      /* time of the last attempt to put the clamp; 0: none */
    bool cannot_clamp;      /* the clamp could not be put, which was logged once */
    nsec_t guarded_at;      /* time of the last attempt to put or remove the guard; 0: none */
    bool was_router;        /* that attempt was to put it */
    bool is_removed;        /* the guard is known to be absent */
    struct subnets routes;  /* the guard's, as of that attempt */
    struct err guard_fault; /* why the guard could not be put; without words: it could */
};

/** What the rules depend on. */
struct forward_rules_facts {
    const struct subnets *routes; /* the subnets that the hub has admitted; borrowed */
    bool is_router;               /* this node asks to be the way to a subnet, or is */
};

/** What is to be done with the guard. */
enum forward_rules_guard {
    FORWARD_RULES_GUARD_KEEP, /* nothing */
    FORWARD_RULES_GUARD_PUT,
    FORWARD_RULES_GUARD_REMOVE,
};

/** What is to be done. */
struct forward_rules_wish {
    bool clamp; /* put the clamp */
    enum forward_rules_guard guard;
};

/** forward_rules_plan() - which rules are to be put or removed at @now? */
struct forward_rules_wish forward_rules_plan(
    const struct forward_rules *fr, const struct forward_rules_facts *facts, nsec_t now);

/**
 * forward_rules_on_guard() - an attempt to put or remove the guard has ended at @now
 * @guard:	which attempt
 * @e:		why it failed; code 0: it did not; copied
 */
void forward_rules_on_guard(struct forward_rules *fr, const struct forward_rules_facts *facts,
    enum forward_rules_guard guard, const struct err *e, nsec_t now);

/** forward_rules_forget() - the interface is another one: all rules have to be put again. */
void forward_rules_forget(struct forward_rules *fr);

/**
 * forward_rules_apply() - put and remove what is due; to be called after every pass
 * @interface:		its name
 * @masquerades:	hosts of the subnets see this machine's address in the place of the sender's
 *
 * A node works without these rules, so what fails is logged and tried again after
 * FORWARD_RULES_PERIOD.
 */
void forward_rules_apply(struct forward_rules *fr, const char *interface,
    const struct forward_rules_facts *facts, bool masquerades, nsec_t now);
