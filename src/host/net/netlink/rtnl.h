/*
 * rtnl.h - links, addresses and routes of this network namespace.
 *
 * It has only what a node needs for its own interface, and to find out whether a
 * network's addresses are in use already. All calls ask the kernel and wait for its
 * answer. Adding what exists and removing what does not are no errors, except for links.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct netlink;

/** There is no such link, address or route. */
#define RTNL_E_ABSENT 1

/** A network interface. */
struct rtnl_link {
    unsigned ifindex;
    unsigned mtu;
    unsigned master; /* the bridge or bond that it is a port of; 0: none */
    bool up;         /* administratively */
    bool is_loopback;
    uint64_t n_packets;  /* that went in or out so far; may start again with the interface */
    char name[IFNAMSIZ]; /* now; it may be renamed */
    char kind[16];       /* "wireguard", "tun", ...; "" for hardware */
};

/** rtnl_find_link() - by name. 0, RTNL_E_ABSENT or negative errno. */
int rtnl_find_link(struct netlink *nl, const char *name, struct rtnl_link *ret);

/** rtnl_link_fn - takes one; negative errno ends the walk. */
typedef int (*rtnl_link_fn)(const struct rtnl_link *link, void *ctx);

/** rtnl_each_link() - the ports of that bridge; @bridge 0: all links. 0 or negative errno. */
int rtnl_each_link(struct netlink *nl, unsigned bridge, rtnl_link_fn fn, void *ctx);

/** rtnl_add_link() - @kind: "wireguard", "bridge". 0 or negative errno: -EOPNOTSUPP, -EEXIST. */
int rtnl_add_link(struct netlink *nl, const char *name, const char *kind);

/** rtnl_remove_link() - 0 or negative errno. */
int rtnl_remove_link(struct netlink *nl, unsigned ifindex);

/** rtnl_set_link() - @mtu: 0 leaves it. 0 or negative errno. */
int rtnl_set_link(struct netlink *nl, unsigned ifindex, bool up, unsigned mtu);

/** rtnl_rename_link() - also of a link that is up, where the kernel allows that. 0 or negative
 * errno: -EBUSY where it has to be down, -EEXIST where another has the name. */
int rtnl_rename_link(struct netlink *nl, unsigned ifindex, const char *name);

/**
 * rtnl_set_segments() - the most segments that one superpacket for the interface may have
 *
 * Return: 0 or negative errno.
 */
int rtnl_set_segments(struct netlink *nl, unsigned ifindex, unsigned n_segments);

/**
 * rtnl_accept_own() - take packets that come in by this interface from an address of this machine
 *
 * A hub and a member on one machine speak through their tunnels, as with everybody else. Without
 * this the kernel takes such a packet for a forged one. Sets the reverse-path filter (RFC 3704)
 * from strict to loose as well, where it is on. It is set by netlink, because /proc/sys may be
 * read-only for a service, and is for IPv4; IPv6 has neither check. 0 or negative errno.
 */
int rtnl_accept_own(struct netlink *nl, unsigned ifindex);

/**
 * rtnl_find_address() - which interface has that address?
 *
 * Return: 0; RTNL_E_ABSENT: none; or negative errno.
 */
int rtnl_find_address(struct netlink *nl, const struct ip_addr *a, unsigned *ret_ifindex);

/**
 * rtnl_largest_mtu() - the largest MTU of the links that lead out of this machine
 * @own:	an interface that does not count
 * @ret:	the MTU, bytes; 0 when there is no such link
 *
 * Links that are down, the loopback and tunnels do not count either. 0 or negative errno.
 */
int rtnl_largest_mtu(struct netlink *nl, unsigned own, unsigned *ret);

/** rtnl_add_address(), rtnl_remove_address() - @a: with the length of its block; @is_bare: the
 * kernel makes no route to that block. */
int rtnl_add_address(struct netlink *nl, unsigned ifindex, const struct ip_prefix *a, bool is_bare);
int rtnl_remove_address(struct netlink *nl, unsigned ifindex, const struct ip_prefix *a);

/** Protocol number of our routes to single peers and in tables of their own, to recognise them. */
#define RTNL_PEER_ROUTES 87

/** What a route says of the packets that take it; 0: nothing. */
struct rtnl_metrics {
    uint32_t mtu;
    uint32_t advmss; /* the MSS that this end's TCP announces */
};

/** What is said of a route beside where it leads; zero: nothing. */
struct rtnl_route {
    uint32_t table;  /* 0: the main one */
    uint32_t metric; /* a route of the same block with a lower one comes first */
    struct rtnl_metrics metrics;
    uint8_t protocol; /* who made it; 0: static, or to remove, whoever */
};

/**
 * rtnl_add_route(), rtnl_set_route(), rtnl_remove_route() - @dst through the interface
 * @route:	NULL: nothing is said of it
 *
 * To set it replaces a route to the same @dst, to add it does not. Sockets that are bound to the
 * interface use it whatever its metric. One is removed whatever its metrics are.
 *
 * Return: 0 or negative errno.
 */
int rtnl_add_route(struct netlink *nl, unsigned ifindex, const struct ip_prefix *dst,
    const struct rtnl_route *route);
int rtnl_set_route(struct netlink *nl, unsigned ifindex, const struct ip_prefix *dst,
    const struct rtnl_route *route);
int rtnl_remove_route(struct netlink *nl, unsigned ifindex, const struct ip_prefix *dst,
    const struct rtnl_route *route);

/** The mark of what WireGuard itself sends, while there are routes that it must not take. */
#define RTNL_OUTER_MARK 0x57460087u

/** A routing rule of ours: some packets look into a table before the main one. */
struct rtnl_rule {
    uint32_t table;
    uint32_t mark;       /* packets with this mark skip the rule; 0: @from says whose it is for */
    struct ip_addr from; /* packets that this machine sends from there; none: all without @mark */
    uint32_t priority;   /* less than that of the main table's rule, 32766 */
};

/** rtnl_table_of() - the number of the table of our own that belongs to an interface's name. */
uint32_t rtnl_table_of(const char *interface);

/** Is it the number of such a table? */
bool rtnl_is_own_table(uint32_t table);

/** rtnl_find_rule() - is it there? 0, RTNL_E_ABSENT, or negative errno as of rtnl_add_rule(). */
int rtnl_find_rule(struct netlink *nl, bool v4, const struct rtnl_rule *rule);

/**
 * rtnl_add_rule(), rtnl_remove_rule() - for one family
 *
 * Return: 0, also when it is there already, or is not; or negative errno: -EOPNOTSUPP or
 * -EAFNOSUPPORT where the kernel has no such rules.
 */
int rtnl_add_rule(struct netlink *nl, bool v4, const struct rtnl_rule *rule);
int rtnl_remove_rule(struct netlink *nl, bool v4, const struct rtnl_rule *rule);

/** What takes up a block of addresses: an address of an interface, or a route. */
struct rtnl_entry {
    bool is_address;
    struct ip_prefix prefix;     /* an address with the length of its block, or a destination */
    unsigned ifindex;            /* 0: a route without an interface */
    uint32_t table;              /* of a route */
    bool is_on_link;             /* of a route: no other router is on its way */
    uint8_t protocol;            /* of a route: who made it */
    struct rtnl_metrics metrics; /* of a route */
};

/** rtnl_entry_fn - takes one; negative errno ends the walk. */
typedef int (*rtnl_entry_fn)(const struct rtnl_entry *entry, void *ctx);

/** rtnl_each_address() - of one interface; @ifindex 0: of all. 0 or negative errno. */
int rtnl_each_address(struct netlink *nl, unsigned ifindex, rtnl_entry_fn fn, void *ctx);

/** rtnl_each_route() - both families; of one interface; @ifindex 0: of all. @all_tables: not of the
 * main table alone but of all, with the kernel's "local". 0 or negative errno. */
int rtnl_each_route(
    struct netlink *nl, unsigned ifindex, bool all_tables, rtnl_entry_fn fn, void *ctx);

/**
 * rtnl_check_free() - is no part of a block in use on this machine?
 * @own:	our own interfaces, whose entries do not count
 *
 * A route that covers half of all addresses or more is a way out to the world,
 * not a use of the block.
 *
 * Return: 0; -EADDRINUSE with words that name the block, and the address or
 * route with its interface; or another negative errno.
 */
int rtnl_check_free(struct netlink *nl, const struct ip_prefix *block, const unsigned *own,
    size_t n_own, struct err *e);

/**
 * rtnl_source_for() - the address from which packets to @dst leave
 *
 * Return: 0, RTNL_E_ABSENT when there is no way to it, or negative errno.
 */
int rtnl_source_for(struct netlink *nl, const struct ip_addr *dst, struct ip_addr *ret);

/** UDP packets, as rules and routes tell them apart. */
struct rtnl_flow {
    struct endpoint to;
    struct ip_addr from;
    uint16_t from_port;
    uint32_t fwmark; /* 0: none */
};

/**
 * rtnl_way_out() - the interface by which they leave
 * @ret:	its number
 *
 * Return: 0; RTNL_E_ABSENT when there is no way, from @flow->from, too; or negative errno.
 */
int rtnl_way_out(struct netlink *nl, const struct rtnl_flow *flow, unsigned *ret);
