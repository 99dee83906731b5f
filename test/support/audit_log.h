/*
 * audit_log.h - an audit log beside a store of its own, for tests: commits as text, and what the
 * log tells of them.
 */
#pragma once

#include "hub/audit/audit.h"

/** What the log takes for the time: seconds since 1970. */
extern int64_t audit_log_wall;

struct audit_log {
    struct store *store;
    struct audit audit;
    nsec_t now;
    struct err e;
};

/** audit_log_setup(), audit_log_setup_late() - for cmocka: a log whose store answers at once, or is
 * that of sample_late.h. */
int audit_log_setup(void **state);
int audit_log_setup_late(void **state);

/** audit_log_teardown() - the end of both. */
int audit_log_teardown(void **state);

/** audit_log_commit_ops() - commit, and wait. Return: the answer; @failed: NULL: not asked for. */
int audit_log_commit_ops(struct audit_log *f, const struct store_op *ops, size_t n, size_t *failed);

/** audit_log_commit() - of what @text says: "+key" puts, "-key" deletes, "?key" checks; separated
 * by spaces. */
int audit_log_commit(struct audit_log *f, const char *text);

/** audit_log_read() - a page, a new reference. A limit of 0: as many as a page may have. */
json_t *audit_log_read(struct audit_log *f, struct audit_query query);

/** audit_log_text() - of an entry; "": it has none. */
const char *audit_log_text(const json_t *entry, const char *name);

/** audit_log_number() - of an entry; 0: it has none. */
int audit_log_number(const json_t *entry, const char *name);

/** audit_log_is() - the log is "actor operation object old>new; " of each change, and
 * "actor !status xcount; " of each refusal. */
void audit_log_is(struct audit_log *f, const char *expected);

/** audit_log_entry_is() - entry @i of the log is that JSON. */
void audit_log_entry_is(struct audit_log *f, size_t i, const char *expected);

/** audit_log_act() - @actor acts from now on, from 198.51.100.@last. */
void audit_log_act(struct audit_log *f, const char *actor, uint8_t last);

/** audit_log_tick() - let that much time pass, call audit_tick(), and wait. */
void audit_log_tick(struct audit_log *f, nsec_t passed);

/** A test on either store. */
#define AUDIT_LOG_CASE(test)                                                                       \
    {#test " (memory)", test, audit_log_setup, audit_log_teardown, NULL},                          \
    {                                                                                              \
#test " (late)", test, audit_log_setup_late, audit_log_teardown, NULL                      \
    }
