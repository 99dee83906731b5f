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
 *   - it is reserved (reserved_is()), a host name of no node but another
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

/*
 * May these lines be put into the machine's hosts file?
 *
 * Asked by the process that writes the file for the agent (agent/hosts_helper.h) and trusts it with
 * nothing else: lines as hosts_add_block() makes them, of addresses of the overlay, with names that
 * are nobody else's.
 *
 * Pure.
 */

/** What a helper was told at its start. */
struct hosts_rules {
    char network[NAME_MAX_LEN + 1]; /* owners begin with "NETWORK/NODE/" */
    char node[NAME_MAX_LEN + 1];    /* the same */
    struct ip_prefix cidr4;         /* of the overlay */
    struct ip_prefix cidr6;         /* the same */
};

/** hosts_check_owner() - is it this node's? 0 or -EINVAL with words. */
int hosts_check_owner(const struct hosts_rules *rules, const char *owner, struct err *e);

/**
 * hosts_check_block() - "ADDRESS<TAB>NAME [NAME...]" lines
 * @block:	@len bytes of anything
 *
 * Each address is of the overlay. Each name is one of letters, digits and "-", either below the
 * network's own domain, as "gpu-1.default.weft", or bare and not reserved (reserved_is());
 * so none is a name of the Internet. No line is longer than 1 KiB.
 *
 * Return: 0, or -EINVAL with words that name the line.
 */
int hosts_check_block(
    const struct hosts_rules *rules, const char *block, size_t len, struct err *e);

/*
 * Names that no node may have.
 *
 * The names of the nodes are put into the hosts file of every member, so who
 * may choose a name could take the place of what programs reach by that name.
 * A name is reserved when it has no domain and, on a machine that knows
 * nothing of Weft,
 *
 *   - a resolver or the usual hosts file gives it a meaning of its own
 *     (localhost, broadcasthost, ip6-..., the special-use domains of RFC 6761,
 *     and what inet_aton(3) reads as an address: 2130706433, 0x7f000001);
 *   - a cloud or an orchestrator answers to it (metadata, kubernetes);
 *   - programs are commonly told to reach a service by it (registry, minio).
 *
 * "hub" is the hub's. A number behind the name makes it a node's: minio-1.
 *
 * Pure. The list is in docs/NAMES.md; a test compares the two.
 */

/** reserved_is() - is @name, a name as parse_name() wants it, one of them? */
bool reserved_is(const char *name);

/** reserved_count() - names in the list; the rules for ip6-... and numbers come on top. */
size_t reserved_count(void);

/**
 * reserved_check() - may a new node be called that?
 * @name:	checked with node_check_name() already
 *
 * Nodes that have such a name from before keep it, and are known by their
 * qualified name only.
 *
 * Return: 0, or -EINVAL with words.
 */
int reserved_check(const char *name, struct err *e);
