/*
 * zone.h - the names of a network, to be looked up: what the node's resolver answers by.
 *
 * It is made from the lines of the hosts file's block (hosts.h), so that a name means the same to a
 * program of the machine, which reads that file, and to one in a container, which asks the
 * resolver: one decision, two ways to it.
 *
 * Pure. Theory of operation: two sorted arrays over one copy of the text, by name and by address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/parse.h"
#include "mesh/names/hosts.h"
#include "wire/dns.h"

/** Room for the zone's own name, NETWORK.weft, with the zero. */
#define ZONE_NAME_MAX (NAME_MAX_LEN + sizeof(HOSTS_DOMAIN) + 1)

/** Immutable when it is made. */
struct zone {
    char name[ZONE_NAME_MAX];    /* NETWORK.weft; "": there is no zone yet */
    struct ip_prefix blocks[2];  /* of the network: who has an address of it is known here alone */
    char *text;                  /* owns: the lines, cut into words */
    struct zone_record *records; /* owns; by name */
    struct zone_record *reverse; /* owns; by address: the first name of each line */
    size_t n;
    size_t n_reverse;
};

#define ZONE_NULL {.n = 0}

/** zone_deinit() - idempotent. */
void zone_deinit(struct zone *z);

/**
 * zone_make() - the zone of a network
 * @network:	its name
 * @blocks:	its IPv4 and its IPv6 block
 * @lines:	as hosts_add_block() makes them; others are passed over
 *
 * Return: 0 or -ENOMEM.
 */
int zone_make(struct zone *ret, const char *network, const struct ip_prefix blocks[static 2],
    const char *lines);

/** What the zone says about a question. */
struct zone_answer {
    struct dns_answer dns;
    struct ip_addr addresses[DNS_ADDRESSES_MAX]; /* what @dns points to */
};

/**
 * zone_answer() - answer a question, if it is this zone's
 * @ret:	borrows from @z
 *
 * The zone's are all names below its own, each bare name that it has, and the addresses of its
 * blocks.
 *
 * Return: false if somebody else has to be asked.
 */
bool zone_answer(const struct zone *z, const struct dns_query *q, struct zone_answer *ret);
