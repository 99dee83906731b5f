/*
 * enrol_internal.h - a machine that waits to be taken in.
 *
 *     enrol.c        who may enter, and is answered what
 *     enrol_batch.c  those who may, on their way to the store
 */
#pragma once

#include "hub/enrol.h"

/* A machine that waits. */
struct enrolment {
    struct list link;               /* in the enrol's waiting or coming */
    struct enrol_request rq;        /* without its secret; owns the labels */
    struct token_hash hash;         /* of the secret */
    struct audit_by by;             /* who asks */
    int64_t wall_s;                 /* when */
    bool has_proof;                 /* a proof was sent */
    bool is_proven;                 /* and it is right */
    bool is_added;                  /* by an administrator; without a token */
    unsigned n_tries;               /* that conflicted */
    uint32_t number;                /* in a batch: of the host */
    char name[NAME_MAX_LEN + 1];    /* in a batch: of the node */
    char network[NAME_MAX_LEN + 1]; /* of the token */
    struct model_network *net;      /* only while it is judged, and what is written is made */
    struct model_token *token;      /* likewise */
    enrol_done_fn done;
    void *ctx; /* pins */
};

/**
 * enrol__judge() - may it enter, and is it there already?
 * @ret:	the node that is there; NULL: none is
 *
 * Fills in what @x has for a batch. Return: as enrol_node().
 */
int enrol__judge(struct enrol *en, struct enrolment *x, struct model_node **ret, struct err *e);

/** enrol__make_node() - of one that was judged. 0, or as enrol_node(). */
int enrol__make_node(struct node *ret, const struct enrolment *x, struct err *e);

/** enrol__finish() - count it, tell who asks, free it. */
void enrol__finish(
    struct enrol *en, struct enrolment *x, int r, struct model_node *node, const struct err *e);

/** enrol__free() - it is not wanted any more. */
void enrol__free(struct enrolment *x);

/** enrol__token_ttl() - how long a token's record is kept. */
uint32_t enrol__token_ttl(const struct token_record *t, int64_t wall_s);

/** enrol__next_batch() - if none is on its way, make one of those who wait. */
void enrol__next_batch(struct enrol *en);
