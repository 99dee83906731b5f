/*
 * ping_monitor_text.h - what a lookout has seen: a table for people, JSON, and metrics for Prometheus.
 *
 * The JSON is a contract: fields are added, not renamed; what is not known is null.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "monitor/ping_monitor.h"

struct str;

/** lookout_family_name() - "ipv4" or "ipv6". */
const char *lookout_family_name(enum lookout_family f);

/** lookout_format() - a line for each member; appended to @out. */
void lookout_format(const struct lookout *l, nsec_t now, struct str *out);

/** lookout_encode() - a new reference, NULL for no memory. */
json_t *lookout_encode(const struct lookout *l, nsec_t now);

/** lookout_format_metrics() - in Prometheus' text format; appended to @out. */
void lookout_format_metrics(const struct lookout *l, struct str *out);
