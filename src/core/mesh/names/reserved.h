/*
 * reserved.h - names that no node may have.
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
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;

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
