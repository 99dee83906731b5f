/*
 * doctor.h - all that is wrong with this node, from evidence that is taken on the spot: what its
 * agent finds; without an agent, what can be seen of the machine itself; and what the hub finds of
 * this node, where it runs on the same machine.
 *
 * Threads: any; waits for answers.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/parse.h"
#include "mesh/object/network.h"

struct str;

struct doctor_options {
    const char *socket;     /* of the agent */
    const char *state_dir;  /* of the node */
    const char *hub_socket; /* of a hub on this machine; NULL: it is not asked */
};

/** What stands for the name of a node that is not known, as a subject. */
#define DOCTOR_NODE_UNKNOWN "this-machine"

struct doctor_report {
    char node[NAME_MAX_LEN + 1];    /* "": not known, as on a machine that has not joined */
    char network[NAME_MAX_LEN + 1]; /* the same */
    json_t *status;                 /* owns: the agent's; NULL: none has answered */
    json_t *findings;               /* owns: as finding_encode() makes each, the gravest first */
};

#define DOCTOR_REPORT_NULL                                                                         \
    {                                                                                              \
        .status = NULL                                                                             \
    }

/** doctor_report_deinit() - idempotent. */
void doctor_report_deinit(struct doctor_report *r);

/** doctor_examine() - look at all of it. @ret: release it. 0 or -ENOMEM. */
int doctor_examine(const struct doctor_options *opt, struct doctor_report *ret);

/** doctor_worst() - 0: nothing or notes; 1: a warning; 2: something critical. */
int doctor_worst(const struct doctor_report *r);

/** doctor_encode() - as JSON; a new reference, NULL: no memory. */
json_t *doctor_encode(const struct doctor_report *r);

/** doctor_format() - for people; appends to @out. */
void doctor_format(const struct doctor_report *r, struct str *out);
