/*
 * kubernetes.h - the store in a Kubernetes cluster: several hubs may serve one network from it.
 *
 * Kubernetes' API changes one object at a time: it has no transactions, and its resourceVersions
 * are opaque, officially, and no numbers of ours. So what is kept there is a journal, of Records
 * (kube_journal.h), and each hub has all keys in memory, as the journal makes them. It speaks to
 * the API server with libcurl, on a thread of its own (kube_client.h).
 *
 * How the promises of store.h are kept:
 *
 *   order      The thread does one job after the other. Commits that have gathered become one entry
 *              of the journal.
 *   durable    An entry is a Record called "entry-N". Making it is the moment of the commit: the
 *              API server makes a name once, and answers when most members of its etcd have it on
 *              their disks. If another hub has made entry N, that one is read and done, and ours
 *              becomes N+1.
 *   compare    An entry holds what was asked, with the expected revisions. Each hub does the
 *              entries in the same order upon the same keys, and so comes to the same result:
 *              which commits conflict, and what revision the others have.
 *   unknown    An entry says who wrote it. Where an answer was lost it is made again under the same
 *              name: then it is there already, and is ours. Only when the server has not answered
 *              for eight seconds is the answer STORE_E_UNKNOWN, or -EIO where nothing can have been
 *              done.
 *   watches    A watch on the Records only says that there is something new; what that is, is read
 *              by its name. So the order of a watch's events, lost ones, and 410 (its
 *              resourceVersion is too old) do not matter: the watch is opened again, and entries
 *              are read on from the last one that was done.
 *   reads      are answered from memory, after the server has said that there is no further entry.
 *   leases     How long a key's lease is, is kept with it; each hub counts for itself.
 *
 * The journal does not grow for ever. Whoever writes each 512th entry writes all keys into Records
 * (state-N-I), then lets the Record "floor" point to them, by its resourceVersion, and then removes
 * the entries before the floor before. A hub that was away for so long begins anew from that state
 * and tells its watches what is different. A hub that slept might make an entry whose name was used
 * and removed meanwhile; so the floor is read after an entry was made, and above it, it does not
 * count.
 */
#pragma once

#include "base/clock.h"

struct err;
struct store;

/**
 * kubernetes_open() - the store of "kubernetes:WHERE" (kube_config.h); waits ten seconds at most
 * @ret:	gives it; store_free()
 * @now:	monotonic time, from which the leases found inside count
 *
 * Return: 0; -EINVAL with words for a URL or a kubeconfig that is none; negative errno with words.
 */
int kubernetes_open(struct store **ret, const char *where, nsec_t now, struct err *e);
