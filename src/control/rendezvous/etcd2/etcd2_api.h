/*
 * etcd2_api.h - requests of etcd's v2 API, and their answers. Sans-I/O.
 *
 * A request is a method, a path and a form; an answer a status, some headers and a text. The
 * keys are in etcd2_tree.h; the few other paths that clients ask for are answered here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/content/body.h"
#include "rendezvous/etcd2/etcd2_tree.h"

/** What happens with a request. */
enum etcd2_api_way {
    ETCD2_API_ANSWER, /* the answer is there */
    ETCD2_API_SAVE,   /* the answer is there; send it once the change is on the disk */
    ETCD2_API_WAIT,   /* the watcher waits; etcd2_api_tell() makes the answer */
};

/** A request. */
struct etcd2_request {
    const char *method;      /* "GET"; borrowed */
    const char *path;        /* decoded; borrowed */
    const struct form *form; /* borrowed */
    const char *form_error;  /* what is wrong with it; NULL: nothing; borrowed */
    const char *machines;    /* what /v2/machines says: URLs with ", " between; borrowed */
    const char *id;          /* of the cluster and of its one member, in hex; never changes */
    struct etcd2_when when;  /* when it is handled */
    nsec_t started_at;       /* when this process began to serve, since 1970 */
};

/** An answer. It starts as zeroes. */
struct etcd2_answer {
    int status;                /* HTTP's */
    char *body;                /* owns; without a zero */
    size_t body_len;           /* bytes */
    struct etcd2_event *event; /* counted; NULL: none. Its text is the body */
    const char *type;          /* Content-Type; a constant */
    bool has_index;            /* X-Etcd-Index is sent */
    uint64_t index;            /* X-Etcd-Index */
    bool is_change;            /* of a change or a read of keys: X-Raft-Index is sent as well */
    bool is_keys;              /* X-Etcd-Cluster-Id is sent */
    const char *allow;         /* Allow; a constant; NULL: not sent */
};

/** etcd2_answer_deinit() - idempotent. */
void etcd2_answer_deinit(struct etcd2_answer *a);

/** etcd2_answer_text() - what is to be sent; borrowed. */
struct etcd2_text etcd2_answer_text(const struct etcd2_answer *a);

/**
 * etcd2_api_handle() - do what a request asks for
 * @w:		for a request that waits. Its @fire is set; its @path is set here, free() it
 * @a:		the answer; for a request that waits only its index is set
 */
enum etcd2_api_way etcd2_api_handle(struct etcd2_tree *t, const struct etcd2_request *rq,
    struct etcd2_watcher *w, struct etcd2_answer *a);

/** etcd2_api_refuse_length() - the answer is that the request was too long. */
void etcd2_api_refuse_length(struct etcd2_answer *a);

/** etcd2_api_tell() - the answer to a request that has waited: @ev; NULL: none came in time. */
void etcd2_api_tell(struct etcd2_answer *a, struct etcd2_event *ev);

/** etcd2_api_fail() - the answer is that the request could not be done, because of @cause. */
void etcd2_api_fail(struct etcd2_answer *a, uint64_t index, const char *cause);
