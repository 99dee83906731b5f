/*
 * ifname.h - says which interfaces NCCL and Gloo would use on a machine.
 *
 * The rules are those of their documents and sources (NCCL 2.28,
 * NCCL_SOCKET_IFNAME; PyTorch 2.9, GLOO_SOCKET_IFNAME). They are applied to the
 * facts of the machine. Pure.
 *
 * NCCL takes a list of prefixes. With "^" before it, the list says what to leave
 * out. With "=" before it, the items are whole names instead of prefixes. "^="
 * does both. A part ":port" of an item is not part of the name. Without a list
 * NCCL uses the first of these that matches any interface: the prefix ib; all
 * but the prefixes docker, lo and virbr; the prefix docker; lo; virbr. Only
 * running interfaces with an address of the family count, each once, at most 16.
 *
 * Gloo takes a list of whole names and uses all of them. Without a list it uses
 * the interface that has the address of the machine's own name, or else the
 * loopback.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "measure/facts.h"

/** NCCL uses at most so many interfaces. */
#define IFNAME_MAX 16

/** The interfaces that would be used. */
struct ifname_choice {
    char names[IFNAME_MAX][IFNAMSIZ];
    size_t n; /* number of names; 0: there is no such interface, and the job fails */
};

/**
 * ifname_nccl() - which interfaces NCCL would use for its sockets
 * @f:		facts of the machine
 * @list:	value of NCCL_SOCKET_IFNAME; "" or NULL: not set
 * @family:	value of NCCL_SOCKET_FAMILY; "" or NULL: not set
 */
struct ifname_choice ifname_nccl(const struct facts *f, const char *list, const char *family);

/**
 * ifname_gloo() - which interfaces Gloo would use
 * @f:		facts of the machine
 * @list:	value of GLOO_SOCKET_IFNAME; "" or NULL: not set
 */
struct ifname_choice ifname_gloo(const struct facts *f, const char *list);

/** ifname_is_only() - is @name the only interface of the choice? */
bool ifname_is_only(const struct ifname_choice *c, const char *name);

/** ifname_format() - write the choice as "eth0, weft0", or "none". Return: @buf. */
const char *ifname_format(const struct ifname_choice *c, char buf[static 128]);
