/*
 * metrics.h - the hub's counters, as Prometheus scrapes them.
 */
#pragma once

struct handlers;

/** metrics_text() - all of them in Prometheus' text format; free(). NULL: no memory. */
char *metrics_text(const struct handlers *h);
