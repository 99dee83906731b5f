/*
 * members.h - the members of this node's network, as its agent tells of them.
 */
#pragma once

#include <jansson.h>
#include <net/if.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/parse.h"

struct err;

struct roster_member {
    char name[NAME_MAX_LEN + 1];
    struct ip_addr address; /* IPv4, on the overlay */
};

struct roster {
    struct roster_member *items; /* owns; this node first, then as the agent orders them */
    size_t n;
    char network[NAME_MAX_LEN + 1];
    char interface[IFNAMSIZ];
};

#define ROSTER_NULL                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

void roster_deinit(struct roster *r);

/**
 * roster_decode() - from the agent's status
 * @status:	as GET /v1/status answers
 * @only:	"a,b,c": these alone; NULL: all
 * @max:	most members there may be
 *
 * The hub is none: it runs no jobs.
 *
 * Return: 0; -EINVAL with words: a name that is no member, too many, or fewer than two; -ENOMEM.
 */
int roster_decode(
    struct roster *ret, const json_t *status, const char *only, size_t max, struct err *e);

/** roster_find() - the place of that name, or SIZE_MAX. */
size_t roster_find(const struct roster *r, const char *name);
