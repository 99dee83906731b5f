/*
 * probe_link.h - takes a probe's reports to the hub: PUT /v1/status on the overlay.
 *
 * A probe must not wait for the hub, or its pings would be late: so each report is sent by a worker
 * (os/worker.h), one at a time.
 *
 * Agent and probe of a node prove their requests with the same key, and so with numbers out of one
 * row (wire/member_proof.h), without knowing of each other. A number that the other one has used is
 * refused, and then the hub says which is free. To leave the agent the next ones, the probe goes on
 * some numbers further.
 *
 * Threads: the caller's, and within a report the worker "report".
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "monitor/probe_report.h"

struct probe_link;
struct state;

/**
 * probe_link_new() - nothing is sent yet
 * @st:		with the node's secret and the hub's key; not used afterwards
 *
 * Return: 0 or negative errno with words.
 */
int probe_link_new(struct probe_link **ret, const struct state *st, struct err *e);

/** probe_link_free() - waits for the report that is on its way, some seconds. */
struct probe_link *probe_link_free(struct probe_link *pl);

/** probe_link_fd() - readable when a report has its answer. -1: none was sent yet. */
int probe_link_fd(const struct probe_link *pl);

/** probe_link_send() - send @body, which is taken; none may be on its way. 0 or negative errno. */
int probe_link_send(struct probe_link *pl, json_t *body);

/**
 * probe_link_take() - the answer to the report
 * @ret:	what has become of it
 * @why:	in words, when it was not taken
 *
 * Return: false: none has come.
 */
bool probe_link_take(struct probe_link *pl, enum edge_report_result *ret, struct err *why);
