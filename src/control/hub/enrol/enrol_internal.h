/*
 * enrol_internal.h - a machine that waits to be taken in.
 *
 *     enrol_judge.c  who may enter, and as which node
 *     enrol_batch.c  those who may, on their way to the store
 *     enrol.c        what is asked, and what is answered at once
 *
 * Each calls only those above it.
 */
#pragma once

#include "hub/enrol/enrol.h"

/** A machine that waits. */
struct enrolment {
    struct list link;               /* in the enrol's waiting or coming */
    struct enrol_request rq;        /* without its secret; owns the labels */
    struct token_hash hash;         /* of the secret */
    struct audit_by by;             /* who asks */
    int64_t wall_s;                 /* when it asked: seconds since 1970 */
    bool has_proof;                 /* a proof was sent */
    bool is_proven;                 /* the proof is right */
    bool is_added;                  /* an administrator adds it; it has no token */
    unsigned n_tries;               /* batches with it that have conflicted */
    uint32_t number;                /* once judged: the host number that it gets */
    char name[NAME_MAX_LEN + 1];    /* once judged: the node's name */
    char network[NAME_MAX_LEN + 1]; /* that it enters: the token's, or the administrator's choice */
    struct model_network *net;      /* lent while it is judged, and while its batch is made */
    struct model_token *token;      /* likewise; NULL: an administrator adds it */
    enrol_done_fn done;             /* see enrol_node() */
    void *ctx;                      /* pins: of @done */
};

/**
 * enrol__check_proof() - note whether @proof was made with the secret of the key that @x names
 * @proof:	NULL: none was sent
 *
 * Once for all batches: whether the node is there already makes no difference, for the hub's key
 * and the machine's are the same in both cases.
 */
void enrol__check_proof(struct enrol *en, struct enrolment *x, const struct enrol_proof *proof);

/**
 * enrol__judge() - may it enter, and is it there already?
 * @ret:	lends the node that is there; NULL: none is
 *
 * Fills in what @x has for a batch: number, name, network, and what is lent.
 *
 * Return: as enrol_node().
 */
int enrol__judge(struct enrol *en, struct enrolment *x, struct model_node **ret, struct err *e);

/**
 * enrol__make_node() - the node that a judged @x becomes
 * @ret:	for node_deinit(); untouched on failure
 *
 * Return: 0, or as enrol_node().
 */
int enrol__make_node(struct node *ret, const struct enrolment *x, struct err *e);

/** enrol__free() - take @x out of its list and free it. */
void enrol__free(struct enrolment *x);

/** enrol__count() - count the outcome @r (as enrol_node() returns it): metrics, and the limiter. */
void enrol__count(struct enrol *en, const struct enrolment *x, int r, nsec_t now);

/** enrol__token_ttl() - for how many seconds a token's record is kept, from @wall_s on. */
uint32_t enrol__token_ttl(const struct token_record *t, int64_t wall_s);

/** enrol__next_batch() - if no batch is on its way to the store, make one of those who wait. */
void enrol__next_batch(struct enrol *en);
