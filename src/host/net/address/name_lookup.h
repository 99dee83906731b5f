/*
 * name_lookup.h - does anything on this machine lead a name somewhere, besides our own hosts block?
 *
 * The C library's resolver is asked as programs ask it, with all of
 * nsswitch.conf. Once our block of the hosts file has the name, that answers
 * first; so then the name servers of resolv.conf are asked directly.
 */
#pragma once

#include "base/addr.h"

/** A name, and what it leads to by our own doing. */
struct name_query {
    const char *name;         /* borrowed */
    struct ip_addr address4;  /* of the node */
    struct ip_addr address6;  /* likewise */
    struct ip_prefix ours[2]; /* the network's blocks: what leads into them is of our own doing */
};

enum name_found {
    NAME_FOUND_NOBODY,   /* no such name */
    NAME_FOUND_SILENT,   /* the resolver, or its servers, do not answer */
    NAME_FOUND_SOMEBODY, /* it resolves to an address that is not ours */
};

/**
 * name_lookup() - ask, and wait for as long as the resolver does
 * @ret_where:	SOMEBODY: the address; none when it is not known. Else untouched
 *
 * Threads: any; blocks, perhaps for many seconds.
 */
enum name_found name_lookup(const struct name_query *q, struct ip_addr *ret_where);
