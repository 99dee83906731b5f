/*
 * ifname.h - which interfaces would NCCL and Gloo take on a machine?
 *
 * By their own rules, as their documents and their sources have them (NCCL
 * 2.28, NCCL_SOCKET_IFNAME; PyTorch 2.9, GLOO_SOCKET_IFNAME), on the machine's
 * facts. Pure.
 *
 * NCCL: a list of prefixes; "^" turns it into those to leave out, "=" into whole
 * names ("^=" is both); a part ":port" of an item is not part of the name.
 * Without a list, in this order: all that begin with "ib"; all but docker, lo
 * and virbr; docker; lo; virbr. Only running interfaces with an address of the
 * family count, each once, at most 16. Gloo: the first of a list of whole
 * names, or the interface that has the address of the machine's own name, or
 * the loopback.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "measure/facts.h"

/** As many interfaces as NCCL looks at. */
#define IFNAME_MAX 16

/** What would be taken. */
struct ifname_choice {
    char names[IFNAME_MAX][IFNAMSIZ];
    size_t n; /* 0: none, and the job fails */
};

/**
 * ifname_nccl() - which interfaces NCCL would take for its sockets
 * @f:		facts of the machine
 * @list:	value of NCCL_SOCKET_IFNAME; "" or NULL: not set
 * @family:	value of NCCL_SOCKET_FAMILY; "" or NULL: not set
 */
struct ifname_choice ifname_nccl(const struct facts *f, const char *list, const char *family);

/**
 * ifname_gloo() - which interface Gloo would take
 * @f:		facts of the machine
 * @list:	value of GLOO_SOCKET_IFNAME; "" or NULL: not set
 */
struct ifname_choice ifname_gloo(const struct facts *f, const char *list);

/** ifname_is_only() - is the choice this interface alone? */
bool ifname_is_only(const struct ifname_choice *c, const char *name);

/** ifname_format() - "eth0, weft0", or "none"; returns @buf. */
const char *ifname_format(const struct ifname_choice *c, char buf[static 128]);
