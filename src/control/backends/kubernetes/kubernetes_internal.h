/*
 * kubernetes_internal.h - the store in a Kubernetes cluster, from which several hubs may serve one
 * network, and what its files share.
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
 *
 * kubernetes.c has the thread and the jobs, and removes what the journal does not need any more;
 * kube_log.c has the journal: following it, adding to it, and writing states.
 */
#pragma once

#include "backends/kubernetes/kube_client.h"
#include "backends/kubernetes/kube_journal.h"
#include "store/store_backend.h"

struct kubernetes {
    struct store base;

    /* The thread's, once it runs. */
    struct kube_client client;
    struct store *mirror;              /* owns: all keys after the entry @seq; in memory */
    uint64_t seq;                      /* the last entry that was done */
    struct kube_checkpoint checkpoint; /* as it was read last */
    uint64_t run;                      /* a random number: which run of which hub this is */
    uint64_t n_batches;                /* entries that this run wanted to make */
    char writer[KUBE_WRITER_MAX];      /* of the entry that is being made; "": none */
    struct list *own;                  /* borrows: its jobs; NULL: none */
    bool is_loading;                   /* while the store is loaded: changes are not told */
    uint64_t n_loads;                  /* how often it was */
    uint64_t trim_next;                /* entries from here on, */
    uint64_t trim_end;                 /* and before this one, are to be removed */
    bool is_clearing;                  /* orphans are being looked for, */
    char *clear_from;                  /* owns: on this page of names; NULL: the first one */
    struct kube_checkpoint old_state;  /* whose @parts are to be removed, from the last on */
    struct remote_http_stream *watch;  /* owns; NULL: to be opened */
    bool has_more;                     /* there may be entries behind @seq */
    bool is_watch_over;                /* the server has said so in the stream */
    nsec_t looked_at;                  /* when the journal was read last */
    nsec_t away_at;                    /* when the server did not answer; 0: it does */
    struct err away;                   /* the words */
};

/*
 * Return, of all below: 0; KUBE_E_AWAY, KUBE_E_LOST; negative errno; always with words.
 * @until: see kube_client.h.
 */

/** kube_log__load() - read the whole journal from its checkpoint on; nobody is told of it. */
int kube_log__load(struct kubernetes *q, nsec_t until, struct err *e);

/** kube_log__follow() - do the entries behind the last one that was done, and tell of them. */
int kube_log__follow(struct kubernetes *q, nsec_t until, struct err *e);

/**
 * kube_log__append() - make an entry of commits, and do it
 * @jobs:	those that were done are taken out and handed back
 *
 * KUBE_E_LOST: the entry may still be made; then it is told like an entry of another hub.
 */
int kube_log__append(struct kubernetes *q, struct list *jobs, nsec_t until, struct err *e);
