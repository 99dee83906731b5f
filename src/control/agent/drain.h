/*
 * drain.h - a health check of this node, and what follows from it: a node that has failed three of
 * them asks the hub whether it may be drained, and has a hook, a plain executable, tell its
 * scheduler; one that has passed three is given back by the same hook.
 *
 * What is looked at is what weft doctor finds; health/fitness.h says what of it counts. How many
 * checks have failed is kept in a file beside the agent's socket, since a check is a process of its
 * own: in memory, for the disk that has the state may be what is full. While no hub answers nobody
 * is drained.
 *
 * The hook is called with an action, "drain" or "undrain", the node, its network, a reason and the
 * codes of what has failed. It is called again until it has said that it has done it, by its exit
 * status 0, so it has to be fit for being called twice.
 *
 * Threads: any; waits for answers, and for the hook.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/doctor.h"
#include "health/fitness.h"

struct str;

/** Where the hook lies. */
#define DRAIN_HOOK_DEFAULT "/etc/weft/drain-hook"

/** A hook that takes longer is killed, ms. */
#define DRAIN_HOOK_MS 60000

/** How often checks are made where nobody says otherwise, s. */
#define DRAIN_EVERY_S 300

struct drain_options {
    const char *socket;    /* of the agent */
    const char *state_dir; /* of the node */
    const char *hook;      /* its path */
    uint32_t every_s;      /* the next check is made after so long */
    bool acts;             /* count this check, and do what follows; else only say how it is */
};

/** Longest sentence about what was done, with its zero. */
#define DRAIN_DONE_MAX 1024

struct drain_report {
    struct doctor_report seen; /* owns */
    struct fitness fitness;
    struct fitness_count count; /* with this check, if it was counted */
    bool is_drained;            /* the network says so, now */
    bool is_dry_run;            /* the network drains nobody; only set where it was asked */
    bool has_failed;            /* something that follows from the check could not be done */
    char done[DRAIN_DONE_MAX];  /* what was done, would be, or could not, a sentence; "": nothing */
};

/** drain_report_deinit() - idempotent. */
void drain_report_deinit(struct drain_report *r);

/** drain_check() - make a check. @ret: release it. 0 or -ENOMEM. */
int drain_check(const struct drain_options *opt, struct drain_report *ret);

/** drain_encode() - as JSON; a new reference, NULL: no memory. */
json_t *drain_encode(const struct drain_report *r);

/** drain_format() - for people; appends to @out. */
void drain_format(const struct drain_report *r, struct str *out);
