/*
 * kubernetes.h - the store in a Kubernetes cluster: several hubs may serve one network from it.
 *
 * Kubernetes' API changes one object at a time: it has no transactions, and its resourceVersions
 * are officially opaque, so they cannot be the store's revisions. So the store keeps a journal
 * there, made of Records (kube_journal.h), and each hub has all keys in memory, as they follow from
 * the journal. It speaks to the API server with libcurl, on a thread of its own (kube_client.h).
 *
 * How the promises of store.h are kept:
 *
 *   order      The thread does one job after the other. Commits that have gathered become one entry
 *              of the journal.
 *   durable    An entry is a Record called "entry-N". A commit is made when its Record is created:
 *              the API server creates a name only once, and answers when most members of its etcd
 *              have it on their disks. If another hub has created entry N, that one is read and
 *              done, and ours becomes N+1.
 *   compare    An entry holds what was asked, with the expected revisions. Each hub does the
 *              entries in the same order upon the same keys, and so comes to the same result:
 *              which commits conflict, and what revision the others have.
 *   unknown    An entry says who wrote it. When an answer was lost, the entry is created again
 *              under the same name; if it exists already, its writer says whether it is ours. The
 *              answer is STORE_E_UNKNOWN when that cannot be found out: the server has not answered
 *              for eight seconds, or does not let it be read, or the journal was cut meanwhile. It
 *              is another failure only if nothing can have been done.
 *   watches    A watch on the Records only says that there is something new; what that is, is read
 *              by its name. So the order of a watch's events, lost ones, and 410 (its
 *              resourceVersion is too old) do not matter: the watch is opened again, and entries
 *              are read on from the last one that was done.
 *   reads      are answered from memory, after the server has said that there is no further entry.
 *   leases     The length of a lease is kept with its key; each hub measures the time itself.
 *
 * The journal is kept short. The hub that writes each 512th entry also writes all keys into Records
 * (state-N-I), then replaces the checkpoint (the Record "floor") so that it points to them, and
 * then removes the entries before the previous checkpoint. A hub whose next entry was removed
 * begins anew from that state and tells its watches what is different. A hub that slept might
 * create an entry whose name was used and removed meanwhile. So the checkpoint is read after an
 * entry was created, and an entry before the checkpoint does not count. By the same rule pieces of
 * entries and of states are removed that a hub has left which died (kube_is_orphan()).
 */
#pragma once

#include "base/clock.h"

struct err;
struct store;

/**
 * kubernetes_open() - the store of "kubernetes:WHERE" (kube_client.h); waits ten seconds at most
 * @ret:	gives it; store_free()
 * @now:	monotonic time, from which the leases found inside count
 *
 * Return: 0; -EINVAL with words for a URL or a kubeconfig that is none; negative errno with words.
 */
int kubernetes_open(struct store **ret, const char *where, nsec_t now, struct err *e);
