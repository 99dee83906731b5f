/*
 * cluster_watch.h - the network as a Kubernetes cluster's API tells it, list and watch.
 *
 * Theory of operation. A thread of its own lists the Networks, Nodes, MeshEdges and Rules of the
 * namespace and hands on what is of this node's network as one snapshot. Then it watches these
 * kinds, each from the version of its list, and hands on each change. Bookmarks keep the versions
 * young. A watch that ends is opened again where it was; one whose version is too old (410) has
 * everything listed again. While the API does not answer, the thread tries again, later and later,
 * and tells that once; nothing is taken away from anybody then.
 *
 * The loop is told by callbacks. What they are given is theirs.
 *
 * Threads: the functions are the loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "agent/cluster/cluster_resource.h"

struct cluster_watch;
struct uv_loop_s;

/** Who is told, from the loop. */
struct cluster_listener {
    /* A snapshot, or a change. @kept: of a snapshot, see cluster_resource.h; borrowed. */
    void (*on_event)(void *ctx, struct watch_event *ev, const json_t *kept);

    /* The API answers now, or does not; @why is a sentence for the second, else "". */
    void (*on_change)(void *ctx, bool heard, const char *why);

    void *ctx; /* pinned */
};

/**
 * cluster_watch_new() - begin; nothing is waited for
 * @where:	what follows "kubernetes:", see kube_client.h
 * @listener:	copied
 *
 * Return: 0; -EINVAL with words for what is wrong in @where or the kubeconfig; negative errno with
 * words.
 */
int cluster_watch_new(struct cluster_watch **ret, struct uv_loop_s *loop, const char *where,
    const struct cluster_self *self, const struct cluster_listener *listener, struct err *e);

/**
 * cluster_watch_free() - end the thread, silently
 *
 * Waits for a request that is being answered, two seconds at most. Its handle closes in the loop's
 * next turns. Not from a callback.
 */
struct cluster_watch *cluster_watch_free(struct cluster_watch *cw);
