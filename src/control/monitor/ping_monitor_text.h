/*
 * ping_monitor_text.h - the results of a ping monitor as text for people, as JSON, and as metrics.
 *
 * Programs rely on the JSON (docs/schema): fields may be added, but none is renamed. A value that
 * is not known is null.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "monitor/ping_monitor.h"

struct metrics;
struct str;

/** ping_monitor_family_name() - "ipv4" or "ipv6". */
const char *ping_monitor_family_name(enum ping_monitor_family f);

/**
 * ping_monitor_format() - a table with a line for each member
 * @now:	monotonic
 * @out:	appended to; remembers a failure
 */
void ping_monitor_format(const struct ping_monitor *p, nsec_t now, struct str *out);

/**
 * ping_monitor_encode() - the results as JSON
 * @now:	monotonic
 *
 * Return: a new reference; NULL for no memory.
 */
json_t *ping_monitor_encode(const struct ping_monitor *p, nsec_t now);

/** ping_monitor_add_metrics() - add the METRIC_PROBE_... of each member to @m. */
void ping_monitor_add_metrics(const struct ping_monitor *p, struct metrics *m);
