/*
 * ras_status.h - what NCCL's RAS says of the ranks of a job: which of them has not started a
 * collective operation in which the others wait, and which does not answer any more.
 *
 * Theory of operation. From version 2.24 on NCCL has a thread in each process of a job that answers
 * questions on a TCP port of the machine, localhost:28028, for the whole job; from 2.28.7 on in
 * JSON. Commands and answers are lines, but for the last answer, after which NCCL closes:
 *
 *	CLIENT PROTOCOL 2	SERVER PROTOCOL n
 *	TIMEOUT s		OK
 *	SET FORMAT json		OK
 *	VERBOSE STATUS		the object
 *
 * For each rank it has how many operations of each kind were started there. They are counted when a
 * process asks for one, which may be long before it runs, so ranks differ while all is well. Where
 * no count grows, one that is lower than those of all others names the operation that this rank has
 * not come to. Sending and receiving between two ranks differ by their nature and do not count.
 *
 * Pure: bytes in, facts out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/parse.h"

struct fields;

/** What is sent: all at once. */
#define RAS_QUESTION "CLIENT PROTOCOL 2\nTIMEOUT 3\nSET FORMAT json\nVERBOSE STATUS\n"

/** Longest answer, bytes: some thousand ranks in several communicators. */
#define RAS_ANSWER_MAX (4u << 20)

/** Ranks that are told of; more are passed over. */
#define RAS_RANKS_MAX 4

/** More is as long as this, ms: a day. */
#define RAS_STILL_MAX 86400000

/** Longest name of an operation, with its zero. */
#define RAS_OPERATION_MAX 24

/** A rank that is missed. */
struct ras_rank {
    uint32_t rank;                     /* in its communicator, ... */
    uint32_t n_ranks;                  /* ... which has so many */
    uint32_t pid;                      /* of its process; 0: not known */
    uint32_t n_waiting;                /* ranks that have started more than it */
    uint64_t n_started;                /* operations of that kind that it has started */
    struct ip_addr address;            /* of its machine, as NCCL knows it; none: it does not */
    char node[NAME_MAX_LEN + 1];       /* whose that is; the hub fills it in; "": nobody's */
    char operation[RAS_OPERATION_MAX]; /* "AllReduce"; "": it does not answer */
};

/** Those of the greatest communicator that has any. */
struct ras_ranks {
    bool is_known; /* the RAS has answered lately */
    struct ras_rank items[RAS_RANKS_MAX];
    unsigned n;
    uint32_t still_ms; /* for so long no rank of the job has started anything; 0: not known */
};

/** What one answer says. */
struct ras_status {
    uint64_t n_started;     /* operations of all ranks together: while it stays, nothing starts */
    bool is_ours;           /* a process of the command is in it ... */
    bool is_first;          /* ... that has the lowest rank of the greatest communicator */
    struct ras_ranks ranks; /* without @is_known and @still_ms */
};

/** Is that a process of the command that is looked at? */
typedef bool (*ras_own_fn)(const void *arg, uint32_t pid);

/**
 * ras_status_decode() - all that NCCL has sent until it has closed
 * @ret:	untouched on failure
 *
 * Return: 0; -EINVAL with words; -ENOMEM with words.
 */
int ras_status_decode(struct ras_status *ret, const char *bytes, size_t len, ras_own_fn is_own,
    const void *arg, struct err *e);

/** ras_ranks_encode() - {"stillMilliseconds", "ranks"}; a new reference, NULL: nothing is known. */
json_t *ras_ranks_encode(const struct ras_ranks *r);

/** ras_ranks_read() - take them from the field @name of @fields, which need not be there. @ret: all
 * zero. */
void ras_ranks_read(struct ras_ranks *ret, struct fields *fields, const char *name);
