/*
 * finding.h - what is wrong with a network, in words: the one table of all that Weft may find, and
 * the set of what it finds now.
 *
 * A finding has a code that stays from version to version, a subject, a severity, since when it
 * holds, one sentence with the figures that it rests on, and what to do. Whoever judges looks at a
 * subject at a time: findings_look() begins, findings_add() says what is found, and findings_done()
 * forgets what was not found again. So a finding's @since is kept from look to look, and what has
 * begun and what is over is told once.
 *
 * All that shows whether something is well shows findings, and judges nothing itself.
 * docs/HEALTH.md is made from the table.
 *
 * Pure: no I/O, no clock.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "health/finding_jobs.h"
#include "health/finding_machines.h"
#include "health/finding_network.h"

/** What a finding is about, and so how its subject is written. */
enum finding_subject {
    FINDING_OF_HUB,    /* "hub": the hub that says it, or, at a node, the one that serves it */
    FINDING_OF_NODE,   /* "a" */
    FINDING_OF_PAIR,   /* "a--b", both ways */
    FINDING_OF_WAY,    /* "a>b": the packets from a to b */
    FINDING_OF_JOB,    /* "train" */
    FINDING_OF_RANK,   /* "train/a": the part of job train that runs on node a */
    FINDING_OF_BUDGET, /* "train", a job's, or the network's name */
    FINDING_SUBJECT_N,
};

/** How grave. Sorted: the gravest is the greatest. */
enum finding_severity {
    FINDING_NOTE,     /* worth knowing; nothing is worse for it now */
    FINDING_WARNING,  /* something is worse than it should be */
    FINDING_CRITICAL, /* something does not work */
    FINDING_SEVERITY_N,
};

/** finding_severity_names - "note", "warning", "critical". */
extern const char *const finding_severity_names[];

/*
 * X(ID, code, SUBJECT, SEVERITY, title, means, fix, provoke): texts are of one line; @fix is what
 * is said beside a finding if whoever judges has nothing better, and @provoke how to see it in a
 * test network.
 */
#define FINDING_CODES(X) FINDINGS_OF_MACHINES(X) FINDINGS_OF_NETWORK(X) FINDINGS_OF_JOBS(X)

/* clang-format off */
enum finding_code {
#define X(id, ...) FINDING_##id,
    FINDING_CODES(X)
#undef X
    FINDING_CODE_N,
};
/* clang-format on */

/** A row of the table. */
struct finding_kind {
    const char *code; /* "WEFT-NODE-001" */
    enum finding_subject subject;
    enum finding_severity severity;
    const char *title;   /* a clause of a few words */
    const char *means;   /* a sentence */
    const char *fix;     /* a sentence */
    const char *provoke; /* a sentence */
};

/** finding_kinds - by enum finding_code. */
extern const struct finding_kind finding_kinds[];

/** Longest code. */
#define FINDING_CODE_TEXT_MAX 31
/** The subject of what is found of a hub. */
#define FINDING_HUB "hub"
/** Longest subject: two names and "--", or a job's and a node's; with the zero. */
#define FINDING_SUBJECT_MAX 136
/** Longest sentence and longest fix, with the zero. */
#define FINDING_TEXT_MAX 480
#define FINDING_FIX_MAX  320
/** Most findings that a set keeps; more are counted. */
#define FINDINGS_MAX 10000

/** What is found now. On the heap. */
struct finding {
    enum finding_code code;
    int64_t since; /* s since 1970 */
    bool is_old;   /* not found again since the last findings_look() */
    bool is_new;   /* found since then for the first time */
    char subject[FINDING_SUBJECT_MAX];
    char text[FINDING_TEXT_MAX]; /* a sentence */
    char fix[FINDING_FIX_MAX];   /* a sentence */
};

/** All that is found now. All zero: nothing. */
struct findings {
    struct finding **items; /* owns, also what they point to; sorted by subject, then code */
    size_t n;
    size_t cap;
    uint64_t n_left_out; /* had no room, since the start */
};

/** finding_name_pair() - the subject of a pair of nodes, whichever is named first. Returns @buf. */
const char *finding_name_pair(char buf[static FINDING_SUBJECT_MAX], const char *a, const char *b);

/** findings_deinit() - forget all. */
void findings_deinit(struct findings *f);

/** findings_find() - lends that one; NULL: it is not found now. */
const struct finding *findings_find(
    const struct findings *f, enum finding_code code, const char *subject);

/** findings_has() - is anything at least that grave found about @subject? */
bool findings_has(const struct findings *f, const char *subject, enum finding_severity least);

/** findings_are_alike() - do both have the same codes about the same subjects? */
bool findings_are_alike(const struct findings *a, const struct findings *b);

/** findings_look() - @subject, NULL: all, is looked at anew: what is not found again ends at
 * findings_done(). */
void findings_look(struct findings *f, const char *subject);

/** findings_look_as() - the same, of what is found about a @subject of that kind: a job may be
 * called like a node, and somebody else looks at it. */
void findings_look_as(struct findings *f, enum finding_subject about, const char *subject);

/**
 * findings_add() - it is found, by the clock @at, s since 1970
 * @subject:	as its code's kind of subject is written
 * @fmt:	the sentence
 *
 * Return: lends it, so that a better fix can be put into it; NULL: no room or no memory, and
 * @n_left_out counts it.
 */
struct finding *findings_add(struct findings *f, enum finding_code code, const char *subject,
    int64_t at, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/** finding_set_fix() - a better fix than the code's own; @f may be NULL. */
void finding_set_fix(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** What has changed with a finding. */
typedef void (*finding_changed_fn)(void *arg, const struct finding *f, bool is_over);

/** findings_done() - @subject, NULL: all, was looked at: tell @changed (NULL: nobody) of what has
 * begun and of what is over, which is forgotten. @changed must not change @f, and @subject is not a
 * finding's.
 */
void findings_done(struct findings *f, const char *subject, finding_changed_fn changed, void *arg);

/**
 * findings_take() - of some kinds of subject, what is found is what somebody else has found
 * @from:	theirs; NULL: nothing
 * @kinds:	a bit each: 1 << FINDING_OF_JOB. All of @f that is about such a subject is theirs
 * @changed:	as of findings_done()
 */
void findings_take(struct findings *f, const struct findings *from, unsigned kinds,
    finding_changed_fn changed, void *arg);

/** finding_encode() - as JSON, by the clock @at; a new reference, NULL: no memory. */
json_t *finding_encode(const struct finding *f, int64_t at);

/** findings_sorted() - lends all @f->n of them, the gravest first, then the oldest; free() the
 * array. NULL: no memory. */
const struct finding **findings_sorted(const struct findings *f);

/** findings_encode() - {"findings": [...], "leftOut": n}, the gravest first, then the oldest; a new
 * reference, NULL: no memory. */
json_t *findings_encode(const struct findings *f, int64_t at);

/** findings_worst() - the gravest severity of all, as an exit status: 0 none or notes, 1 a warning,
 * 2 critical. */
int findings_worst(const struct findings *f);
