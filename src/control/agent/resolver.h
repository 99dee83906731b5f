/*
 * resolver.h - the name server of a node: on its own overlay addresses, port 53, and nowhere else.
 *
 * For programs that do not read this machine's hosts file: those in containers and pods on it, to
 * which the address is given with --dns or as their DNS configuration (docs/NAMES.md).
 *
 * Theory of operation. Each address has two pairs of sockets, UDP and TCP. One pair gets what comes
 * in by the overlay's interface, which is what other members ask. It answers by the network's names
 * alone, so that no member asks this machine's own name servers through it. The other pair gets all
 * else: this machine and its containers, for whom what is no name of the network's is taken to the
 * machine's name servers (resolver_upstream.h), and strangers, who are refused
 * (resolver_asker_find()).
 *
 * What is asked by whom is bounded: queries of DNS_QUERY_MAX bytes, RESOLVER_UPSTREAM_MAX questions
 * under way, RESOLVER_QUESTIONS_MAX of them of one asker and as many kept for this machine, and TCP
 * connections: RESOLVER_CONNECTIONS_MAX of members and as many of others, and of them
 * RESOLVER_ASKER_CONNECTIONS_MAX of one asker, each with one answer under way, and ended after ten
 * seconds without a whole query, or when another needs its place. An asker is an address; all that
 * this machine has are one, since any local user may ask from any of them. Nobody has an answer
 * over UDP sent to somebody else: the overlay proves who sends, the kernel takes no packet from
 * outside with an address of this machine, and to strangers nothing is answered that is longer than
 * what they ask.
 *
 * Threads: resolver_*() are the agent loop's; what is asked is answered by the thread "resolver".
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/addr.h"

struct netlink;
struct resolver;

/* ---- who asks -------------------------------------------------------------------------------- */

/*
 * Is who asks the node's name server this machine, or a container of it?
 *
 * An overlay address is taken from whatever interface a packet comes in by, so a neighbour of this
 * machine, or a member of another overlay on it, may ask as well. Both are strangers here.
 */

enum resolver_asker {
    RESOLVER_ASKER_STRANGER,
    RESOLVER_ASKER_MACHINE, /* by whichever of its addresses: any of its users has them all */
    RESOLVER_ASKER_CONTAINER,
};

/**
 * resolver_asker_find() - does the answer stay on this machine?
 * @asker:	who asks
 * @asked:	this machine's own address that was asked
 *
 * It does if it leaves by the loopback, or by a link of a kind that containers are reached by (a
 * bridge, one end of a pair) and the default route does not lead out by. Hardware and tunnels lead
 * elsewhere, and so does a bridge that has one of them for a port (hardware, a VLAN, a bond, a
 * VXLAN). Asks the kernel, a few times.
 *
 * Return: a stranger also when the kernel does not say.
 */
enum resolver_asker resolver_asker_find(
    struct netlink *nl, const struct endpoint *asker, const struct ip_addr *asked);

/** resolver_asker_is_port_inside() - does a bridge's port of that kind stay on this machine? */
bool resolver_asker_is_port_inside(const char *kind);

/* ---- the name server ------------------------------------------------------------------------- */

#define RESOLVER_CONNECTIONS_MAX 64
/** Of one asker. */
#define RESOLVER_ASKER_CONNECTIONS_MAX 8
/** Questions of one asker that are under way at the machine's name servers. */
#define RESOLVER_QUESTIONS_MAX 64

/** Where it answers, and for which network. */
struct resolver_place {
    const char *network;        /* borrowed */
    struct ip_prefix blocks[2]; /* of the network, IPv4 and IPv6 */
    struct ip_addr address4;    /* of this node */
    struct ip_addr address6;    /* the same; none: this machine takes no IPv6 address */
};

/**
 * resolver_new() - start the thread; it answers nothing yet
 * @interface:	pinned: the overlay's
 * @resolv_conf: pinned: the path of the file that names the machine's name servers
 *
 * Return: 0 or negative errno with words.
 */
int resolver_new(
    struct resolver **ret, const char *interface, const char *resolv_conf, struct err *e);

/**
 * resolver_set() - answer there, with these names
 * @lines:	as hosts_add_block() makes them
 *
 * Cheap when nothing has changed. Sockets that could not be opened are tried again, so this is
 * called each few seconds.
 *
 * Return: false for no memory; then the former names stay.
 */
bool resolver_set(struct resolver *r, const struct resolver_place *place, const char *lines);

/** resolver_is_listening() - where it was told to by the last resolver_set()? */
bool resolver_is_listening(struct resolver *r);

/** resolver_encode() - for `weft status`: {"listening", "why"}. NULL for no memory. */
json_t *resolver_encode(struct resolver *r);

/** resolver_free() - waits for the thread, for moments. */
struct resolver *resolver_free(struct resolver *r);
