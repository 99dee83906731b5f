/*
 * probe_report.h - what a probe reports to the hub of its node's edges, and when: PUT /v1/status.
 *
 * It says of each edge what differs from what the hub has; the protocol is the agents'
 * (docs/EDGES.md, "Reports as differences"). A round trip differs when it is another by half and by
 * 5 ms. A report is due five seconds after the last one when something differs, and after a failure
 * later and later, up to a minute; each time is scattered by a quarter, so that the probes of a
 * network do not report together. When nothing differs a report without edges is due once a round,
 * 10 s at least: it says that the probe runs, and each report says how often one comes at least.
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
#include "mesh/object/edge_status.h"
#include "monitor/edge_report.h"

/** What is known of one edge. */
struct probe_edge {
    struct edge_report_head head;
    struct edge_probed probed;
};

struct probe_report {
    struct edge_report edges;
    bool knows_hub; /* the hub is known to take reports of probes */
    bool is_on_its_way;
    unsigned n_failed; /* reports that were not taken, one after the other */
    nsec_t due_at;     /* monotonic; none before */
    nsec_t taken_at;   /* monotonic; when the last one was taken; 0: none was */
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
    struct probe_report *pr, enum edge_report_result result, uint32_t random, nsec_t now);
