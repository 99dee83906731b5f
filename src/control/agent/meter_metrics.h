/*
 * meter_metrics.h - what a node has exchanged today (meter.h), for Prometheus.
 *
 * Pure: sums in, text out.
 */
#pragma once

struct meter;
struct str;

/** meter_metrics_format() - appends a sample for each flow and direction of the last day, so at
 * most two for each of TRAFFIC_FLOWS_MAX. */
void meter_metrics_format(const struct meter *m, struct str *out);
