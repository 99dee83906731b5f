/*
 * name_check.h - which names of the network mean something else on this machine already?
 *
 * Theory of operation. A thread of its own asks for one name after the other
 * (net/address/name_lookup.h blocks), the new ones first, and again every minute, or
 * more slowly where there are so many that it would ask more than ten a second.
 * What it has not found out yet is PENDING. A resolver that does not answer
 * knows no name: while it is silent, every name is FREE, and it is asked again.
 *
 * Threads: name_check_*() are the loop's; what is shared is guarded by a lock
 * that is held for moments. A question that is under way when it is freed is
 * left to itself.
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
 * name_check_want() - these names, and no others
 * @queries:	@n of them, different names; copied. What is known of names that stay is kept
 *
 * Return: false for no memory; then those of before stay.
 */
bool name_check_want(struct name_check *c, const struct name_query *queries, size_t n);

/** name_check_ask() - of one of them. @ret_where: ELSEWHERE: the address, or none; else untouched.
 */
enum name_verdict name_check_ask(
    struct name_check *c, const char *name, nsec_t now, struct ip_addr *ret_where);

/** name_check_free() - NULL is fine. Always NULL. */
struct name_check *name_check_free(struct name_check *c);
