/*
 * route_guard.h - what a node forwards for others: what is for its subnets, and nothing else.
 *
 * A machine that is the way to a subnet has forwarding switched on, and then
 * forwards whatever comes: a member that attacks could send through it to
 * everything that it reaches. So what comes out of the interface goes on only
 * to the subnets that the hub has admitted, but for answers to connections that
 * began elsewhere, and those that a rule of this machine redirects (a published
 * port of a container).
 *
 * Hosts of the subnet know nothing of the overlay: unless they have a route
 * back, their answers get lost. So what goes to them has this machine's address
 * there (masquerade), if the node does not say otherwise.
 */
#pragma once

#include <stdbool.h>

struct err;
struct str;
struct subnets;

/**
 * route_guard_format() - the table's contents, as nft(8) has them
 * @interface:	a name that nft takes as it is
 * @routes:	that are admitted; none: nothing goes on
 *
 * Pure.
 */
void route_guard_format(
    struct str *out, const char *interface, const struct subnets *routes, bool masquerades);

/** route_guard_put() - have the rules; as often as one likes. 0, or negative errno with words. */
int route_guard_put(
    const char *interface, const struct subnets *routes, bool masquerades, struct err *e);

/** route_guard_remove() - rules that are not there are fine. 0 or negative errno with words. */
int route_guard_remove(const char *interface, struct err *e);

/**
 * route_guard_is_forwarding() - does this machine forward what comes in by @interface?
 *
 * Return: 1: yes; 0: no; -1: that cannot be seen.
 */
int route_guard_is_forwarding(const char *interface, bool v4);
