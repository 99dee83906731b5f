/*
 * nccl_faults.h - what has gone wrong in a job, as NCCL's log says it: connections that were closed
 * or never made, completions with an error, time-outs.
 *
 * Of each kind the first sentence is kept, which is nearest to the cause, and how many there were.
 * A log is text from outside: lines are cut, and what is kept of them is bounded.
 *
 * Pure: lines in, faults out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fields;

/** Bytes of a sentence, with its zero; longer ones are cut. */
#define NCCL_FAULT_TEXT_MAX 256
/** More of a kind are counted as so many. */
#define NCCL_FAULT_COUNT_MAX 1000000

/** Kinds. But for the first they are in the order of causes: the one that says most is first. */
enum nccl_fault_kind {
    NCCL_FAULT_NETWORK,    /* NCCL uses another network, or provider, than was wanted */
    NCCL_FAULT_POLL,       /* the device cannot be asked: ibv_poll_cq fails */
    NCCL_FAULT_COMPLETION, /* a transfer has ended with an error */
    NCCL_FAULT_UNREACHED,  /* no connection to a peer is made */
    NCCL_FAULT_CLOSED,     /* a peer has closed a connection, or has died */
    NCCL_FAULT_TIMEOUT,    /* a transfer, or a collective operation, has timed out */
    NCCL_FAULT_N,
};

struct nccl_fault {
    uint32_t n;                     /* lines that say so; 0: none does */
    char text[NCCL_FAULT_TEXT_MAX]; /* of the first, without what stands before its sentence */
};

/** What the log has said since its beginning. All zero: nothing. */
struct nccl_faults {
    struct nccl_fault kinds[NCCL_FAULT_N];
};

/**
 * nccl_faults_take() - take in a line, without its newline
 * @ret:	the kind, if it is the first line of it; untouched otherwise
 *
 * Return: true: it is the first line of its kind.
 */
bool nccl_faults_take(
    struct nccl_faults *f, const char *line, size_t len, enum nccl_fault_kind *ret);

/** nccl_faults_note() - something was found that is of that kind; control characters of @text
 * become blanks. */
void nccl_faults_note(struct nccl_faults *f, enum nccl_fault_kind kind, const char *text);

/** nccl_faults_encode() - [{"kind", "count", "text"}]; a new reference, NULL: there are none. */
json_t *nccl_faults_encode(const struct nccl_faults *f);

/** nccl_faults_read() - take it from the field @name of @fields, which need not be there. @ret: all
 * zero. */
void nccl_faults_read(struct nccl_faults *ret, struct fields *fields, const char *name);
