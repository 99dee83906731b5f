/*
 * access_lines.h - a network's rules as lines for the data plane's own filter
 * (access/access_set.h), on a machine whose kernel has no packet filter.
 *
 * They say what the table of access_table.h says.
 *
 * Pure.
 */
#pragma once

#include "base/clock.h"

struct job_ports;
struct snapshot;
struct str;

/** access_lines_format() - all lines, each with its newline. */
void access_lines_format(
    struct str *out, const struct snapshot *s, const struct job_ports *jobs, nsec_t now);
