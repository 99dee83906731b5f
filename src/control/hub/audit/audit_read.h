/*
 * audit_read.h - reads the audit log in pages, newest first or onward from a place.
 *
 * A page costs a bounded number of records, whatever is asked for: a reader that wants few of
 * many gets fewer than the page holds, and the place where to go on.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/parse.h"
#include "hub/audit/audit.h"

struct err;

/** Most entries of a page, and how many it has unless said otherwise. */
#define AUDIT_PAGE_MAX     1000
#define AUDIT_PAGE_DEFAULT 100

struct audit_query {
    char after[AUDIT_ID_MAX];       /* entries behind it, oldest first; "": the newest */
    char before[AUDIT_ID_MAX];      /* the newest of those before it; "": of all */
    char network[NAME_MAX_LEN + 1]; /* only what is about it; "": everything */
    int64_t since;                  /* s since 1970; only what is not older */
    unsigned limit;                 /* 1 to AUDIT_PAGE_MAX */
};

/** The page, which is given; or, when @r is not 0, negative errno with words. */
typedef void (*audit_read_done_fn)(void *ctx, int r, json_t *page, const struct err *e);

/**
 * audit_read() - a page: {"entries": [...], "next": ID, "previous": ID}
 *
 * The entries are in the order of events. "next" is where to go on with `after`; "previous" is
 * there when there may be older ones, and is where to go on with `before`.
 *
 * @done:	called once, later
 *
 * Return: 0: accepted; or negative errno with words, and @done is not called.
 */
int audit_read(const struct audit *audit, const struct audit_query *query, audit_read_done_fn done,
    void *ctx, struct err *e);
