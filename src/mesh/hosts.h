/*
 * hosts.h - the nodes of a network by name, as a block of the hosts file.
 *
 *     # weft begin default/gpu-1
 *     10.42.0.2	gpu-1.default.weft gpu-1
 *     fd5a:1::2	gpu-1.default.weft gpu-1
 *     # weft end default/gpu-1
 *
 * Pure: text in, text out. The block belongs to one owner, NETWORK/NODE, so that
 * several nodes can share a file; all other lines stay byte for byte.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/parse.h"

struct snapshot;
struct str;

/** Room for an owner, with the zero. */
#define HOSTS_OWNER_MAX (2 * NAME_MAX_LEN + 2)

/** The domain below which every node has a name: NODE.NETWORK.weft. */
#define HOSTS_DOMAIN "weft"

/** hosts_owner() - "NETWORK/NODE" of the node whose view @s is. Returns @buf. */
const char *hosts_owner(const struct snapshot *s, char buf[static HOSTS_OWNER_MAX]);

/**
 * hosts_add_block() - append a line for each address of each node, hubs among them
 * @with_v6:	false on a machine that takes no IPv6 address
 *
 * A short name comes after the long one, so that the long one is canonical.
 */
void hosts_add_block(struct str *out, const struct snapshot *s, bool with_v6);

/**
 * hosts_replace() - put @block in the place of @owner's, or at the end
 * @old:	@len bytes of a hosts file, whatever they are
 * @block:	as hosts_add_block() made it; NULL: the owner leaves
 * @out:	appended to
 *
 * Lines in the block that others have written are moved behind it. A block that
 * has lost its last line ends before the first line that it could not have held.
 */
void hosts_replace(
    struct str *out, const char *old, size_t len, const char *owner, const char *block);
