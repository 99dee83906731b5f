/*
 * node_measure.h - the node's measuring service: its process, and who may ask it.
 *
 * The service is a process of its own. It is told the members of the network, how each is reached,
 * and the key that checks each one's orders (wire/measure_proof.h). The agent derives these keys, a
 * few at a time, since that takes the node's own secret. It also proves the orders that a command
 * of this machine gives to others. A node works without it.
 *
 * Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <sys/resource.h>
#include <uv.h>

struct err;
struct reach;
struct service_member;
struct snapshot;

struct node_measure {
    struct measure_host *host;          /* owns; NULL: no service is offered */
    const struct x25519_secret *secret; /* pins: the node's; NULL: no keys are told */
    struct node_measure_key *keys;      /* owns; in the order of the members' names */
    size_t n_keys;
};

/**
 * node_measure_start() - offer the service; one that cannot be had is logged
 * @loop:		pinned
 * @secret:		the node's, pinned
 * @interface:		the overlay's
 * @socket_path:	the agent's own socket; the service's has AGENT_MEASURE_SUFFIX behind it
 * @memlock:		RLIMIT_MEMLOCK that the service tells of
 */
void node_measure_start(struct node_measure *nm, uv_loop_t *loop,
    const struct x25519_secret *secret, const char *interface, const char *socket_path,
    const struct rlimit *memlock);

/** node_measure_on_key() - this node has another key: what checks orders is derived anew. */
void node_measure_on_key(struct node_measure *nm);

/**
 * node_measure_list() - who the members are, how each is reached, and the keys that are known
 * @reach:	as of the last poll
 * @ret:	@cap of them at most; set from the start
 *
 * Return: how many were set.
 */
size_t node_measure_list(struct node_measure *nm, const struct snapshot *s,
    const struct reach *reach, struct service_member *ret, size_t cap);

/**
 * node_measure_prove() - prove an order of this node to other members
 * @asked:	{"id": hex, "purpose": TEXT, "seconds": N, "challenges": {ADDRESS: hex, ...}}
 * @ret:	{"proofs": {ADDRESS: hex, ...}}, without addresses of no member
 *
 * Return: 0; -EINVAL with words that name the field; -ENOMEM.
 */
int node_measure_prove(const struct x25519_secret *secret, const struct snapshot *s,
    const json_t *asked, json_t **ret, struct err *e);

/** node_measure_tell() - tell the service that list; without a service nothing happens. */
void node_measure_tell(
    struct node_measure *nm, const struct snapshot *s, const struct reach *reach);

/** node_measure_tell_jobs() - tell the service how many commands of jobs run here; often is fine.
 */
void node_measure_tell_jobs(struct node_measure *nm, unsigned n);

/** node_measure_stop() - the process ends; waits for it, 2 s at most. Keys are wiped. Idempotent.
 */
void node_measure_stop(struct node_measure *nm);
