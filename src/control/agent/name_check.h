/*
 * name_check.h - which names of the network mean something else on this machine already?
 *
 * Theory of operation. A thread of its own asks for one name after the other
 * (net/address/name_lookup.h blocks): new names first, and each name again every minute, or less
 * often where there are so many that it would ask for more than ten a second. A name is PENDING
 * until the first answer. While the resolver does not answer at all, every name counts as FREE.
 *
 * Threads: name_check_*() are the loop's; what is shared is guarded by a lock
 * that is held for moments. A question that is under way when name_check_free() is called is not
 * waited for; its thread ends later.
 */
#pragma once

#include <stddef.h>

#include "base/clock.h"
#include "net/address/name_lookup.h"

struct err;
struct name_check;

enum name_verdict {
    NAME_VERDICT_PENDING,   /* being asked, or to be asked */
    NAME_VERDICT_FREE,      /* nothing else answers to it */
    NAME_VERDICT_ELSEWHERE, /* something does */
};

/** As name_lookup(). */
typedef enum name_found (*name_lookup_fn)(const struct name_query *q, struct ip_addr *ret_where);

/** name_check_new() - asks for nothing yet. 0 or negative errno with words. */
int name_check_new(struct name_check **ret, name_lookup_fn lookup, struct err *e);

/**
 * name_check_want() - replace the names that are asked for
 * @queries:	@n of them, with different names; copied
 *
 * What is known of names that were there before is kept.
 *
 * Return: false for no memory; then nothing has changed.
 */
bool name_check_want(struct name_check *c, const struct name_query *queries, size_t n);

/**
 * name_check_ask() - the verdict about one of the names
 * @ret_where:	set for ELSEWHERE: where the name leads; none: not known
 */
enum name_verdict name_check_ask(
    struct name_check *c, const char *name, nsec_t now, struct ip_addr *ret_where);

/** name_check_free() - NULL is fine. Always NULL. */
struct name_check *name_check_free(struct name_check *c);
