/*
 * members.h - the members of this node's network that take part in a measurement.
 */
#pragma once

#include <jansson.h>
#include <net/if.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/parse.h"

struct err;

/** A member of the network. */
struct member {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address; /* IPv4, on the overlay */
};

struct members {
    struct member *items; /* owns; this node first, then as the agent orders them */
    size_t n;
    char network[NAME_MAX_LEN + 1];
    char interface[IFNAMSIZ];
};

#define MEMBERS_NULL                                                                               \
    {                                                                                              \
        0                                                                                          \
    }

/** members_deinit() - idempotent, safe on MEMBERS_NULL. */
void members_deinit(struct members *m);

/**
 * members_decode() - read them from the agent's status
 * @ret:	untouched on failure; otherwise to be released with members_deinit()
 * @status:	as the agent answers GET /v1/status
 * @only:	"a,b,c": these members and no others; NULL: all
 * @max:	the most that there may be
 *
 * The hub is left out: it runs no jobs.
 *
 * Return: 0; -EINVAL with words: a name that is no member, too many, or fewer than two; -ENOMEM.
 */
int members_decode(
    struct members *ret, const json_t *status, const char *only, size_t max, struct err *e);
