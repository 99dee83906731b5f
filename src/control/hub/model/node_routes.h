/*
 * node_routes.h - may a node have that subnet behind it?
 *
 * Whoever says so, an administrator or a join token, it goes through here: two
 * nodes with overlapping routes would take each other's traffic, and one around
 * the hub's endpoint would keep everybody from the hub.
 *
 * Threads: the hub's loop only.
 */
#pragma once

struct err;
struct ip_prefix;
struct model_network;
struct subnets;

/** Outcome: another node has a part of the route. */
#define NODE_ROUTES_E_TAKEN 1

/**
 * node_routes_check_block() - could any node of @net have that route?
 *
 * Return: 0, or -EINVAL with words: it overlaps the network's own blocks, or holds an endpoint of
 * the hub.
 */
int node_routes_check_block(
    const struct model_network *net, const struct ip_prefix *route, struct err *e);

/**
 * node_routes_check() - may the routes of node @name be exactly these?
 * @routes:	NULL: none
 *
 * Return: 0; NODE_ROUTES_E_TAKEN with words that name the other node and its route; or as
 * node_routes_check_block().
 */
int node_routes_check(
    const struct model_network *net, const char *name, const struct subnets *routes, struct err *e);
