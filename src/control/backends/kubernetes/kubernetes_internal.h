/*
 * kubernetes_internal.h - what the files of the store in Kubernetes share; see kubernetes.h.
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
    struct store *mirror;              /* owns: all keys after the entry @seq; memory.h */
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
