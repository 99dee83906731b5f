/*
 * names.h - resolves names the way that programs on this machine do.
 *
 * The C library's resolver may block for a long time when name servers do not answer. So it runs in
 * a thread of its own, and the caller stops waiting for that thread at a deadline.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/clock.h"
#include "measure/order.h"

/** What a name resolves to. The address is none if there is none or the answer was late. */
struct names_answer {
    struct ip_addr address; /* the first IPv4 address */
    bool known;             /* the resolver has answered */
};

/**
 * names_resolve() - resolve several names
 * @names:	@n of them; copied; their addresses are ignored
 * @deadline:	monotonic
 * @ret:	room for @n
 *
 * Return: 0 or negative errno.
 */
int names_resolve(
    const struct order_name *names, size_t n, nsec_t deadline, struct names_answer *ret);
