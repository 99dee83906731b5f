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

void members_deinit(struct members *r);

/**
 * members_decode() - from the agent's status
 * @status:	as GET /v1/status answers
 * @only:	"a,b,c": these alone; NULL: all
 * @max:	most members there may be
 *
 * The hub is none: it runs no jobs.
 *
 * Return: 0; -EINVAL with words: a name that is no member, too many, or fewer than two; -ENOMEM.
 */
int members_decode(
    struct members *ret, const json_t *status, const char *only, size_t max, struct err *e);

/** members_find() - the place of that name, or SIZE_MAX. */
size_t members_find(const struct members *r, const char *name);
