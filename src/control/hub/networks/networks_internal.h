/* networks_internal.h - what making a network and joining one have in common: this hub's key and
 * node in it. For networks.c and networks_join.c only. */
#pragma once

#include "hub/networks/networks.h"

#define NETWORKS__PATH_ROOM 512

/** networks__key_path() - of this hub's key in that network. Returns @buf. */
const char *networks__key_path(
    const struct networks *n, char buf[static NETWORKS__PATH_ROOM], const char *name);

/** networks__make_key() - make a key and write its file, which waits for the disk. */
int networks__make_key(
    const struct networks *n, const char *name, struct x25519_public *ret_public, struct err *e);

/** networks__fill_hub() - what this hub's own nodes say of it. */
void networks__fill_hub(const struct networks *n, struct node_hub *nh);

/** networks__own_node() - this hub's own node with host number @number; @nh is borrowed. */
struct node networks__own_node(const struct networks *n, const struct network *net,
    const struct x25519_public *key, uint32_t number, struct node_hub *nh);
