/*
 * names.h - do names lead where they should, as a program of this machine would find out?
 *
 * The C library's resolver blocks for as long as its servers let it, so it runs
 * in a thread of its own, which is left alone when it takes too long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/clock.h"
#include "measure/order.h"

/** Where a name leads; an address of none: nowhere, or it was not found out in time. */
struct names_answer {
    struct ip_addr address; /* the first IPv4 address */
    bool known;             /* the resolver has answered */
};

/**
 * names_resolve() - ask for all of them
 * @names:	@n of them; copied; only their names are looked at
 * @deadline:	monotonic
 * @ret:	room for @n
 *
 * Return: 0 or negative errno.
 */
int names_resolve(
    const struct order_name *names, size_t n, nsec_t deadline, struct names_answer *ret);
