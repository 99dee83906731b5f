/*
 * block.h - a network's block of addresses, from text: which may be one.
 *
 * Nodes get addresses out of it, and a route to it, so it has to be unicast and
 * nobody else's by its nature: not loopback, link-local or multicast.
 */
#pragma once

#include <stdbool.h>

#include "base/addr.h"

struct err;

/* Shortest and longest prefix: room for millions, and for the hub and one node. */
#define BLOCK_LEN4_MIN 8
#define BLOCK_LEN4_MAX 30
#define BLOCK_LEN6_MIN 32
#define BLOCK_LEN6_MAX 124

/**
 * block_parse() - "10.77.0.0/16" or "fd5a::/64", host bits zero
 * @v4:		which family it has to be of
 * @what:	its name for the sentence ("--cidr4")
 *
 * Return: 0, or -EINVAL with words that name @text and what is allowed.
 */
int block_parse(struct ip_prefix *ret, const char *text, bool v4, const char *what, struct err *e);

/**
 * block_find_reserved() - is @a an address at which no other machine reaches this one?
 *
 * Return: the block that holds it, as loopback or link-local; NULL: it may be reached.
 */
const char *block_find_reserved(const struct ip_addr *a);

/** block_find_reserved_part() - the same for any address of @p. */
const char *block_find_reserved_part(const struct ip_prefix *p);
