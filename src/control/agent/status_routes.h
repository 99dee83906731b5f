/*
 * status_routes.h - the subnets in a node's status: those that it reaches, and those behind it.
 *
 * Parts of status.h's JSON and table.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct node;
struct str;
struct subnet_routes;
struct subnets;

/** What these parts tell of. Borrowed. */
struct status_routes {
    const struct subnet_routes *others; /* behind other nodes */
    const struct node *self;            /* with what the hub admits */
    const struct subnets *asked;        /* what this node asks for */
    int forwards4;                      /* IPv4; as route_guard_is_forwarding() says */
    int forwards6;
    bool masquerades;
    const char *guard_fault; /* why the rules of route_guard.h are not there; "": they are */
};

/** status_routes_encode() - subnets behind others: [{"route", "node", "used", "why"}]; NULL for no
 * memory. */
json_t *status_routes_encode(const struct status_routes *in);

/** status_routes_encode_own() - those behind this node: [{"route", "admitted", "masquerade",
 * "why"}]; NULL for no memory. */
json_t *status_routes_encode_own(const struct status_routes *in);

/** status_routes_format() - both for people. @status: the whole status. Appends to @out. */
void status_routes_format(const json_t *status, struct str *out);
