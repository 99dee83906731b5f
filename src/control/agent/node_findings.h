/*
 * node_findings.h - what a node finds wrong with itself, its hubs and its pairs, of what its agent
 * knows. health/self.h decides.
 *
 * Threads: the loop's.
 */
#pragma once

#include "agent/status.h"
#include "health/finding.h"

/** node_findings_look() - @f is what is found now, by what @in says; without memory it stays as it
 * was. */
void node_findings_look(struct findings *f, const struct status_input *in);
