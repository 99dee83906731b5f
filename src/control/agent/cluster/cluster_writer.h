/*
 * cluster_writer.h - writes this node's part of its edges to a cluster's API, as the only one who
 * may.
 *
 * For an agent or a probe whose pod has a ServiceAccount of its own (docs/KUBERNETES.md, "Agents
 * and probes that write their parts themselves"). The hub is told as ever; it leaves alone what is
 * written here (hub/resources/own_parts.h).
 *
 * Theory of operation. The owner says now and then how all parts are. A thread of its own writes
 * what is due by cluster_parts.h, one request after the other, by Server-Side Apply and without
 * force: fields that somebody else owns stay that one's. What keeps it from writing is said once,
 * and when that is over.
 *
 * Threads: the functions are the owner's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "mesh/object/edge_status.h"

struct cluster_writer;

/** Whose parts they are. */
struct cluster_writer_self {
    const char *network;
    const char *node;
    enum edge_owner owner;
};

/**
 * cluster_writer_new() - start the thread; nothing is written yet
 * @where:	what follows "kubernetes:", see kube_client.h
 *
 * Return: 0; -EINVAL with words for what is wrong in @where or the kubeconfig; negative errno with
 * words.
 */
int cluster_writer_new(struct cluster_writer **ret, const char *where,
    const struct cluster_writer_self *self, struct err *e);

/** cluster_writer_free() - end the thread; waits for a request, five seconds at most. NULL is fine.
 */
struct cluster_writer *cluster_writer_free(struct cluster_writer *cw);

/**
 * cluster_writer_is_due() - is it time for cluster_writer_tell()?
 * @n:		parts that there are; to say all of them costs time, and it is done less often
 */
bool cluster_writer_is_due(const struct cluster_writer *cw, size_t n, nsec_t now);

/**
 * cluster_writer_tell() - how all parts are now
 * @parts:	{"PEER": {...}}; taken
 * @asked_for:	as of cluster_parts_set(); taken
 * @n_members:	of the network
 */
void cluster_writer_tell(
    struct cluster_writer *cw, json_t *parts, json_t *asked_for, size_t n_members, nsec_t now);

/**
 * cluster_writer_fault() - why parts are not written
 * @ret_since:	set with it: since when, monotonic
 *
 * What has changed since the last call is logged.
 *
 * Return: a clause, borrowed until the next call; NULL: they are, or nothing was tried yet.
 */
const char *cluster_writer_fault(struct cluster_writer *cw, nsec_t *ret_since);
