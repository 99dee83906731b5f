/*
 * subnets.h - blocks of addresses behind a node, which all others reach through it.
 *
 * A node asks for them (`weft join --route`), the hub admits them (`spec.routes`
 * of a Node), and render.h makes them allowed-ips of that node's peer. One
 * block belongs to one node: what overlaps is refused, where it is written and
 * where it is read.
 *
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/addr.h"

struct fields;
struct network;

/** Most of one node, and of one token. */
#define SUBNETS_MAX 16

/** Some blocks, host bits zero; sorted by ip_prefix_compare(), and no two overlap. */
struct subnets {
    struct ip_prefix items[SUBNETS_MAX];
    unsigned n;
};

#define SUBNETS_NULL                                                                               \
    {                                                                                              \
        0                                                                                          \
    }

/**
 * subnet_parse() - "10.9.0.0/24" or "fd09::/64"; without a length the one address
 *
 * Return: 0, or -EINVAL with words that name @text and what is allowed; for host bits that are set
 * the block that was meant.
 */
int subnet_parse(struct ip_prefix *ret, const char *text, struct err *e);

/**
 * subnets_add() - one more
 * @p:		as from subnet_parse()
 *
 * Return: 0, also for one that is there already; or -EINVAL with words: it overlaps another one,
 * or there are too many.
 */
int subnets_add(struct subnets *s, const struct ip_prefix *p, struct err *e);

/** subnets_parse() - several, with commas between; they are added to @s. As subnets_add(). */
int subnets_parse(struct subnets *s, const char *text, struct err *e);

/** subnets_find() - lends the block of @s that overlaps @p, one way or the other; NULL: none. */
const struct ip_prefix *subnets_find(const struct subnets *s, const struct ip_prefix *p);

/** subnets_has() - is @p one of them? */
bool subnets_has(const struct subnets *s, const struct ip_prefix *p);

/** subnets_without() - those of @s that are none of @others'. */
struct subnets subnets_without(const struct subnets *s, const struct subnets *others);

/** subnets_covers() - does @p lie inside one of them? */
bool subnets_covers(const struct subnets *s, const struct ip_prefix *p);

/** subnets_equal() - the same blocks? */
bool subnets_equal(const struct subnets *a, const struct subnets *b);

/** Which of the subnets that a hub names a node sends into the overlay. */
enum subnets_accept {
    SUBNETS_ACCEPT_PRIVATE, /* those of private addresses: nothing else leaves its way for them */
    SUBNETS_ACCEPT_ALL,
    SUBNETS_ACCEPT_NONE,
    SUBNETS_ACCEPT_N,
};

/** subnets_accept_names - "private", "all", "none". */
extern const char *const subnets_accept_names[];

/** subnets_accept_parse() - 0, or -EINVAL with words. */
int subnets_accept_parse(enum subnets_accept *ret, const char *text, struct err *e);

/** subnets_accepts() - is @p among them? Private are RFC 1918's, RFC 6598's and RFC 4193's. */
bool subnets_accepts(enum subnets_accept a, const struct ip_prefix *p);

/**
 * subnets_check_network() - is @p free of the network's own blocks?
 *
 * Return: 0, or -EINVAL with words.
 */
int subnets_check_network(const struct ip_prefix *p, const struct network *n, struct err *e);

/** subnets_decode() - an optional field: a list of texts; @ret stays as it is when it is absent. */
void subnets_decode(struct fields *f, const char *name, struct subnets *ret);

/** subnets_encode() - the list; a new reference, NULL for no memory. */
json_t *subnets_encode(const struct subnets *s);

/** Room for subnets_format(). */
#define SUBNETS_TEXT_MAX (SUBNETS_MAX * (IP_PREFIX_TEXT_MAX + 2))

/** subnets_format() - "10.9.0.0/24, fd09::/64", "" for none. Returns @buf. */
const char *subnets_format(const struct subnets *s, char buf[static SUBNETS_TEXT_MAX]);
