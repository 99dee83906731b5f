/*
 * access_table.h - a network's rules as a table of the kernel's packet filter.
 *
 * Pure.
 */
#pragma once

#include "base/clock.h"

struct job_ports;
struct snapshot;
struct str;

/** access_table_format() - the table's contents, as nft(8) has them; what access_rules.h says. */
void access_table_format(struct str *out, const char *interface, const struct snapshot *s,
    const struct job_ports *jobs, nsec_t now);
