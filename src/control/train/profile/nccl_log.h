/*
 * nccl_log.h - what NCCL says in its log (NCCL_DEBUG=INFO) of the network that it took, and why it
 * is not the one that was wanted.
 *
 * Pure: lines in, a verdict out. A log is text from outside: lines are cut, and after a bounded
 * number of them nothing more is taken in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct profile;
struct str;

#define NCCL_LOG_LINES_MAX 20000
#define NCCL_LOG_TEXT_MAX  200 /* bytes of a text, with its zero; longer ones are cut */

struct nccl_log {
    char network[NCCL_LOG_TEXT_MAX]; /* what NCCL uses, as it calls it; "": not said yet */
    char version[32];                /* "2.21.5"; "": not said */
    char cause[NCCL_LOG_TEXT_MAX];   /* the last line that says why a network was passed over */
    unsigned cause_weight;           /* lines that say more take the place of those that say less */
    char provider[NCCL_LOG_TEXT_MAX]; /* libfabric's, as aws-ofi-nccl says; "": not said */
    unsigned n_nics;                  /* as aws-ofi-nccl says; 0: not said */
    char sockets[NCCL_LOG_TEXT_MAX];  /* interfaces of its sockets, between commas; "": not said */
    size_t n_lines;                   /* taken in */
};

/**
 * nccl_log_take() - take in a line, without its newline
 *
 * Return: false when enough has been read: the network is known, or there are too many lines.
 */
bool nccl_log_take(struct nccl_log *log, const char *line, size_t len);

/** What becomes of the profile that was wanted. */
enum nccl_log_verdict {
    NCCL_LOG_UNKNOWN, /* NCCL has not said which network it uses */
    NCCL_LOG_WANTED,  /* the profile's */
    NCCL_LOG_OTHER,   /* another one */
};

/**
 * nccl_log_assess() - compare what NCCL took with the profile that was wanted
 * @n_devices:	how many devices the fabric has here; 0: not known
 * @interface:	the one that its sockets must use, where sockets are wanted; NULL: any
 * @out:	a sentence is appended, without a newline
 */
enum nccl_log_verdict nccl_log_assess(const struct nccl_log *log, const struct profile *wanted,
    size_t n_devices, const char *interface, struct str *out);

/*
 * Which variables NCCL knows, and from which version to which.
 *
 * A variable that NCCL does not know does nothing, and nobody says so: old guides are full of them.
 */

#define NCCL_NOTE_MAX 256 /* bytes of a note, with its zero */

/** What is to be said of a variable that a person has set. */
enum nccl_verdict {
    NCCL_VERDICT_FINE,    /* nothing */
    NCCL_VERDICT_REMARK,  /* it works, and the note says what to know */
    NCCL_VERDICT_NOTHING, /* it does nothing, or it breaks the job, as the note says */
};

/**
 * nccl_var_assess() - judge a variable by its name and value
 * @name:	of NCCL's or libfabric's; others are fine
 * @nccl:	minor of the NCCL 2 that the command uses; 0: not known, the newest is assumed
 * @note:	set unless it is fine
 */
enum nccl_verdict nccl_var_assess(
    const char *name, const char *value, unsigned nccl, char note[static NCCL_NOTE_MAX]);
