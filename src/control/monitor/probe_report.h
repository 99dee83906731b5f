/*
 * probe_report.h - what a probe reports to the hub of its node's edges, and when: PUT /v1/status.
 *
 * It says of each edge what differs from what the hub has; the protocol is the agents'
 * (docs/EDGES.md, "Reports as differences"). A round trip differs when it is another by half and by
 * 5 ms. A report is due five seconds after the last one when something differs, and after a failure
 * later and later, up to a minute; each time is scattered by a quarter, so that the probes of a
 * network do not report together.
 *
 * The first report has no edges: a hub of before probes would take them for the agent's. It answers
 * without a number, and then it is asked again after an hour.
 *
 * Pure: facts, times and random numbers in, JSON out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/parse.h"
#include "mesh/object/edge_status.h"

/** What is known of one edge. */
struct probe_edge {
    char peer[NAME_MAX_LEN + 1];
    struct edge_probed probed;
};

/** What becomes of a report. */
enum probe_report_result {
    PROBE_REPORT_TAKEN,
    PROBE_REPORT_OLD,   /* the hub is an older one, which does not know probes */
    PROBE_REPORT_AGAIN, /* the hub lacks an earlier one: everything anew */
    PROBE_REPORT_LOST,  /* it is not known whether the hub has it, or it did not take it */
};

struct probe_report {
    uint64_t run;    /* random, not 0: of this run of the probe */
    uint64_t number; /* of the last report that the hub took */
    bool knows_hub;  /* the hub is known to take reports of probes */
    bool begins;     /* the next one begins anew */
    bool is_anew;    /* everything is being reported anew, and the hub has not taken all of it */
    bool ends;       /* the one that is on its way is the last of those */
    bool has_more;   /* the last one could not hold everything */
    bool is_on_its_way;
    unsigned n_failed;               /* reports that were not taken, one after the other */
    nsec_t due_at;                   /* monotonic; none before */
    struct probe_reported *reported; /* owns; sorted by peer; what was reported last */
    size_t n_reported;
};

/** probe_report_init() - nothing was reported yet. @run: random, not 0, at most INT64_MAX. */
void probe_report_init(struct probe_report *pr, uint64_t run);

/** probe_report_deinit() - idempotent. */
void probe_report_deinit(struct probe_report *pr);

/**
 * probe_report_make() - the next report
 * @self:	this node's name
 * @edges:	@n, all that there are, sorted by peer
 * @now:	monotonic
 *
 * It counts as being on its way until probe_report_on_result().
 *
 * Return: a new reference; NULL: none is due, or no memory.
 */
json_t *probe_report_make(struct probe_report *pr, const char *self, const struct probe_edge *edges,
    size_t n, nsec_t now);

/** probe_report_on_result() - the report has an answer, or none. @random: any number. */
void probe_report_on_result(
    struct probe_report *pr, enum probe_report_result result, uint32_t random, nsec_t now);
