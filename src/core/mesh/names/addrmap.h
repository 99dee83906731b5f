/*
 * addrmap.h - the address map without a tunnel: private addresses to public ones.
 *
 * Programs announce the private address of their machine. Between two VPCs that
 * trust each other's links, every node can translate the other nodes' private
 * addresses to their public ones as packets leave, and what was announced works,
 * unencrypted. This says which translations those are, from what the nodes
 * report of themselves; net/netlink/nft.h makes them happen. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/parse.h"

struct snapshot;
struct str;

/** Labels by which a node's owner says its addresses; they win over what it finds by itself. */
#define ADDRMAP_LABEL_PRIVATE "private-address"
#define ADDRMAP_LABEL_PUBLIC  "public-address"

/** One translation. */
struct addrmap_entry {
    char node[NAME_MAX_LEN + 1];
    struct ip_addr private; /* IPv4 */
    struct ip_addr public;  /* likewise */
};

/** A node that is not in the map, or not with all its addresses. */
struct addrmap_gap {
    char node[NAME_MAX_LEN + 1];
    char why[160]; /* a clause */
};

struct addrmap {
    struct addrmap_entry *entries; /* owns */
    size_t n;
    struct addrmap_gap *gaps; /* owns */
    size_t n_gaps;
};

#define ADDRMAP_NULL {0}

/** addrmap_deinit() - idempotent. */
void addrmap_deinit(struct addrmap *m);

/**
 * addrmap_make() - for the node whose view @s is
 * @ret:	to be released with addrmap_deinit(); entries in the order of the nodes' names
 *
 * A node's private addresses are its `host` candidates among RFC 1918's and RFC
 * 6598's; its public one is what was `given`, or how a hub sees it. Left out is
 * what could not work: a private address that two nodes have, or this node
 * itself; a node behind the same public address as this one, or as another,
 * since that is no translation of one to one.
 *
 * Return: 0 or -ENOMEM.
 */
int addrmap_make(struct addrmap *ret, const struct snapshot *s);

/** addrmap_equal() - the same translations? */
bool addrmap_equal(const struct addrmap *a, const struct addrmap *b);

/** addrmap_add_chain() - append the chain that does it, as nft(8) has it inside a table. */
void addrmap_add_chain(struct str *out, const struct addrmap *m);
