/*
 * nccl_watch.h - reads the logs that NCCL writes for a job, and says what NCCL took, and what goes
 * wrong.
 *
 * Theory of operation. NCCL writes its log (NCCL_DEBUG=INFO) to the file that NCCL_DEBUG_FILE
 * names, one for each process. `weft run` makes a directory for these files, or reads those that
 * the person has named. It looks every now and then for new files and new lines, and judges each
 * file as soon as it says which network NCCL uses (nccl_log.h). All processes of a machine say the
 * same as a rule, so a sentence that was said already is not said again. It goes on to read to the
 * end of the job, for what goes wrong (health/nccl_faults.h). The files are only read: who wants
 * NCCL's lines finds them there unchanged.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "health/nccl_faults.h"
#include "train/profile/nccl_log.h"

/** Processes whose logs are read; those of others are passed over. */
#define NCCL_WATCH_FILES_MAX 64

/** What NCCL_DEBUG_FILE is called in the directory; NCCL writes the process's number for %p. */
#define NCCL_WATCH_FILE "nccl.%p"

/** The log of one process. */
struct nccl_watch_file {
    char *path;      /* owns */
    uint64_t offset; /* bytes that were read */
    bool is_done;    /* the network is known, or there were too many lines */
    struct nccl_log log;
};

/** The logs of a job on this machine. */
struct nccl_watch {
    bool is_ours;                 /* the files are in a directory of ours, and may be emptied */
    char pattern[PATH_MAX];       /* of the files, for glob() */
    const struct profile *wanted; /* borrowed */
    size_t n_devices;             /* of the fabric */
    const char *interface;        /* borrowed; of the sockets, NULL: any */
    int64_t since;                /* older files are of other jobs */
    struct nccl_watch_file files[NCCL_WATCH_FILES_MAX];
    size_t n_files;
    bool is_other; /* some process uses another network than the one that was wanted */
    enum nccl_log_verdict verdict;          /* of the last sentence */
    char network[NCCL_LOG_TEXT_MAX];        /* likewise; "": NCCL has not said it */
    char said[2 * NCCL_LOG_TEXT_MAX + 256]; /* the last sentence */
    struct nccl_faults faults;              /* what has gone wrong, by all logs */
    unsigned said_faults;                   /* kinds of them that were said: a bit each */
    char fault[NCCL_FAULT_TEXT_MAX];        /* the one that was said last */
};

/**
 * nccl_watch_init() - begin to watch
 * @w:		all zero, but for @is_ours, @wanted, @n_devices and @interface, which the caller has
 * set
 * @file:	NCCL_DEBUG_FILE of the job, with its %h and %p
 */
void nccl_watch_init(struct nccl_watch *w, const char *file);

/** nccl_watch_deinit() - release what it owns; the files stay. Idempotent, safe on all zero. */
void nccl_watch_deinit(struct nccl_watch *w);

/** What nccl_watch_look() has found. */
enum nccl_watch_event {
    NCCL_WATCH_NOTHING, /* nothing new */
    NCCL_WATCH_WANTED,  /* NCCL took what was wanted; the sentence is in @said */
    NCCL_WATCH_OTHER,   /* it did not; likewise */
    NCCL_WATCH_FAULT,   /* something has gone wrong, for the first time of its kind: @fault */
};

/**
 * nccl_watch_look() - read what is new in the logs
 *
 * Call it again until it finds nothing: one sentence is found at a time.
 */
enum nccl_watch_event nccl_watch_look(struct nccl_watch *w);

/** nccl_watch_has_verdict() - has some process said which network it uses? */
bool nccl_watch_has_verdict(const struct nccl_watch *w);

/**
 * nccl_watch_explain_failure() - the job has failed before NCCL said which network it uses: what
 * was its last word?
 *
 * Return: true with the sentence in @said; false: some process had said it, or there is no word.
 */
bool nccl_watch_explain_failure(struct nccl_watch *w);
