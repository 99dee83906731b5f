/*
 * route_guard.h - rules that let a node forward, for others, only what is for its subnets.
 *
 * A machine that is the way to a subnet has forwarding switched on, and then
 * forwards every packet: a hostile member could send through it to everything
 * that it reaches. So packets from the interface are forwarded only to the
 * subnets that the hub has admitted. Exempt are answers to connections that
 * began elsewhere, and packets that a rule of this machine redirects (a
 * published port of a container).
 *
 * Hosts of the subnet do not know the overlay: unless they have a route back,
 * their answers get lost. So packets to them get this machine's address in that
 * subnet as their source (masquerade), unless the node was told otherwise.
 */
#pragma once

#include <stdbool.h>

struct err;
struct str;
struct subnets;

/**
 * route_guard_format() - the table's contents, as nft(8) has them
 * @interface:	a name that nft takes as it is
 * @routes:	subnets that the hub has admitted; none: nothing is forwarded
 *
 * Pure.
 */
void route_guard_format(
    struct str *out, const char *interface, const struct subnets *routes, bool masquerades);

/**
 * route_guard_put() - replace the rules; may be called any number of times
 * @interface, @routes, @masquerades:	as for route_guard_format()
 *
 * Return: 0, or negative errno with words.
 */
int route_guard_put(
    const char *interface, const struct subnets *routes, bool masquerades, struct err *e);

/** route_guard_remove() - remove the rules, if there are any. 0 or negative errno with words. */
int route_guard_remove(const char *interface, struct err *e);

/**
 * route_guard_is_forwarding() - does this machine forward what comes in by @interface?
 *
 * Return: 1: yes; 0: no; -1: that cannot be seen.
 */
int route_guard_is_forwarding(const char *interface, bool v4);
