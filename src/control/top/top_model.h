/*
 * top_model.h - what `weft top` shows: a network's nodes, pairs, jobs and findings as rows of text,
 * from what a hub or an agent answers.
 *
 * It decides nothing: states, findings and reasons are the hub's, or the agent's. What is said by
 * somebody who is not heard any more has no figure.
 *
 * All texts are made such that a terminal obeys none, and that each byte of them takes one column:
 * control characters and what is no UTF-8 are escaped as \xNN, and other letters become '?'.
 *
 * Pure: JSON in, rows out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "health/finding.h"

struct top_rates;

enum top_pane {
    TOP_NODES,
    TOP_PAIRS,
    TOP_JOBS,
    TOP_FINDINGS,
    TOP_PANE_N,
};

#define TOP_COLUMNS_MAX 9

/** Longest name of a row, with its zero; what is longer is cut. */
#define TOP_KEY_MAX 192

/** A column of a pane. */
struct top_column {
    const char *head;
    bool is_number; /* stands to the right, and is sorted by the number, the greatest first */
};

/** What a pane looks like. */
struct top_pane_kind {
    const char *name;
    char key;          /* that leads to it */
    const char *empty; /* what is said where it has no rows */
    struct top_column columns[TOP_COLUMNS_MAX];
    unsigned n_columns; /* the last one takes what is left of a line, or goes */
};

extern const struct top_pane_kind top_panes[TOP_PANE_N];

/** How a row stands out. */
enum top_mark {
    TOP_MARK_NONE,
    TOP_MARK_WARNING,
    TOP_MARK_CRITICAL,
};

struct top_row {
    char key[TOP_KEY_MAX];           /* names it from frame to frame */
    char *cells[TOP_COLUMNS_MAX];    /* owns; one for each column */
    double numbers[TOP_COLUMNS_MAX]; /* of the columns that have one; NAN: not known */
    char *note;                      /* owns; lines about it that have no column; "": none */
    enum top_mark mark;
};

struct top_rows {
    struct top_row *items; /* owns */
    size_t n;
    size_t cap;
};

struct top_model {
    char *title; /* owns; the network, and who says all this */
    struct top_rows panes[TOP_PANE_N];
    size_t n_up;
    size_t n_down;
    size_t severities[FINDING_SEVERITY_N]; /* findings, by how grave they are */
    size_t n_left_out;                     /* pairs that had no room in the answer */
    double rate;                           /* of all, bytes/s; NAN: not known */
    bool is_silent;                        /* who is asked does not answer any more */
    bool is_unknown[TOP_PANE_N];           /* who is asked says nothing of these */
    bool failed;                           /* there was no memory for some of it */
};

#define TOP_MODEL_NULL {0}

/** top_model_deinit() - idempotent. */
void top_model_deinit(struct top_model *m);

/** What was answered. Borrowed; NULL: nothing was, or it was not asked for. */
struct top_answers {
    const char *network;
    const json_t *nodes;    /* GET /v1/networks/{network}/nodes */
    const json_t *edges;    /* .../edges */
    const json_t *jobs;     /* .../jobs; of an agent: GET /v1/jobs */
    const json_t *findings; /* .../findings */
    const json_t *status;   /* of an agent: GET /v1/status; the others but jobs are NULL then */
    const struct top_rates *rates;
};

/** top_model_make() - all that is shown of it; @ret: to be deinitialised. */
void top_model_make(struct top_model *ret, const struct top_answers *a);

/** top_plain() - @text such that each byte of it is one column, see above; gives it; NULL: no
 * memory. */
char *top_plain(const char *text);

/* Figures for people, into @buf, which is returned; "-": @v is not known. */

#define TOP_CELL_MAX 24

/** top_format_rate() - bytes/s: "12.3 MB/s". */
const char *top_format_rate(double v, char buf[static TOP_CELL_MAX]);

/** top_format_span() - seconds: "5 min". */
const char *top_format_span(double v, char buf[static TOP_CELL_MAX]);
