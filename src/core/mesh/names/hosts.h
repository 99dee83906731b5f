/*
 * hosts.h - the nodes of a network by name, as a block of the hosts file.
 *
 *     # weft begin default/gpu-1/5f02a1b3
 *     10.42.0.2	gpu-1.default.weft gpu-1
 *     fd5a:1::2	gpu-1.default.weft gpu-1
 *     # weft end default/gpu-1/5f02a1b3
 *
 * Pure: text in, text out. The block belongs to one owner, NETWORK/NODE/HUB,
 * so that several nodes, and the networks of several hubs, can share a file;
 * all other lines stay byte for byte.
 *
 * Theory of operation. A node always has its qualified name, below a domain
 * that nobody else uses. Its bare name, and the host name of its machine where
 * that is another one, are extras: a node chose them itself, and whoever has a
 * join token can choose any, so an extra must never take the place of what
 * programs reach by it without us. An extra is left out when
 *
 *   - it is reserved (mesh/names/reserved.h), a host name of no node but another
 *     node's name, or claimed by two nodes: hosts_list_extras() sees that;
 *   - the rest of the hosts file has it: hosts_mark_taken() sees that, and
 *     hosts_replace() again, under the lock of who writes the file;
 *   - the machine's own resolver knows it: the agent finds that out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/parse.h"

struct snapshot;
struct str;

/** Room for an owner, with the zero. */
#define HOSTS_OWNER_MAX (2 * NAME_MAX_LEN + 12)

/** The domain below which every node has a name: NODE.NETWORK.weft. */
#define HOSTS_DOMAIN "weft"

/** The name of whichever hub serves the rendezvous, where a network has several hubs:
 * rendezvous.NETWORK.weft. */
#define HOSTS_RENDEZVOUS "rendezvous"

/** Networks with more nodes have qualified names only: each extra costs the resolver a question. */
#define HOSTS_EXTRAS_MAX 2048

/** May an extra be in the file? */
enum hosts_verdict {
    HOSTS_KEPT,      /* nothing speaks against it */
    HOSTS_RESERVED,  /* see reserved_is() */
    HOSTS_CLAIMED,   /* the host name of one node, and a name of another */
    HOSTS_IN_FILE,   /* another line of the file has it */
    HOSTS_ELSEWHERE, /* the machine's resolver knows it */
    HOSTS_PENDING,   /* the resolver is being asked */
    HOSTS_VERDICT_N,
};

/** A name besides a node's qualified one. */
struct hosts_extra {
    const char *name; /* borrowed from the snapshot */
    size_t node;      /* index in the snapshot's nodes */
    bool is_hostname; /* of its machine; false: the node's bare name */
    enum hosts_verdict verdict;
    struct ip_addr elsewhere; /* ELSEWHERE: where it leads; none: not known */
};

/** hosts_owner() - "NETWORK/NODE/HUB" of the node whose view @s is. Returns @buf. */
const char *hosts_owner(const struct snapshot *s, char buf[static HOSTS_OWNER_MAX]);

/**
 * hosts_list_extras() - all of a network, with what the network itself says against them
 * @ret_n:	how many; 0 where the network has more than HOSTS_EXTRAS_MAX nodes
 *
 * Return: gives them, by node, to be freed; NULL for no memory or none.
 */
struct hosts_extra *hosts_list_extras(const struct snapshot *s, size_t *ret_n);

/**
 * hosts_mark_taken() - IN_FILE for those that another line of the file has
 * @file:	@len bytes of a hosts file, whatever they are
 * @owner:	whose block does not count; nor does a block of the older form NETWORK/NODE
 *
 * Return: false for no memory; then nothing was marked.
 */
bool hosts_mark_taken(
    struct hosts_extra *extras, size_t n_extras, const char *file, size_t len, const char *owner);

/**
 * hosts_add_block() - append a line for each address of each node, hubs among them
 * @extras:	those that are KEPT follow the qualified name, so that that is the canonical one
 * @with_v6:	false on a machine that takes no IPv6 address
 */
void hosts_add_block(struct str *out, const struct snapshot *s, const struct hosts_extra *extras,
    size_t n_extras, bool with_v6);

/** hosts_describe() - why it is left out, in words; "" when it is not. Returns @buf. */
const char *hosts_describe(const struct hosts_extra *x, char buf[static 128]);

/**
 * hosts_replace() - put @block in the place of @owner's, or at the end
 * @old:	@len bytes of a hosts file, whatever they are
 * @block:	as hosts_add_block() made it; NULL: the owner leaves
 * @out:	appended to
 *
 * An extra of @block that another line has is left out. Lines in the block that
 * others have written are moved behind it. A block that has lost its last line
 * ends before the first line that it could not have held. A block of the older
 * form NETWORK/NODE is taken out.
 */
void hosts_replace(
    struct str *out, const char *old, size_t len, const char *owner, const char *block);
