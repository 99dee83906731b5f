/*
 * access_sample.h - the rules of which bench-access and bench-access-own measure what they cost.
 */
#pragma once

struct snapshot;

/** access_sample_put() - rule number @i of a network of @n_nodes: one of them may reach that UDP
 * port of all members. */
void access_sample_put(struct snapshot *s, unsigned i, unsigned n_nodes, unsigned port);
