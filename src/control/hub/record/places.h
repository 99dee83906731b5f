/*
 * places.h - where a hub is reached: addresses and names, as its nodes are told them.
 *
 * Pure but for looking at the text of an address: no name is looked up here (see publics.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "mesh/object/object.h"

struct err;

/** A place: "HOST:PORT". */
struct hub_public {
    char text[HOST_PORT_MAX + 1];
    bool is_name;                             /* else it is its one endpoint */
    struct endpoint at[OBJECT_ENDPOINTS_MAX]; /* UDP, in the resolver's order */
    unsigned n;                               /* 0: a name that was not found yet */
};

/** Places, best first. */
struct hub_places {
    struct hub_public items[OBJECT_ENDPOINTS_MAX];
    unsigned n;
};

/**
 * hub_public_parse() - "HOST", "HOST:PORT", "1.2.3.4", "[v6]:PORT" or "v6"; no name is looked up
 * @dflt_port:	when the text has none
 *
 * Return: 0, or -EINVAL with words; also for an address at which no other machine reaches this one.
 */
int hub_public_parse(struct hub_public *ret, const char *text, uint16_t dflt_port, struct err *e);

/**
 * hub_places_tell() - as nodes are told: endpoints, and names
 * @ret:	its other fields stay
 */
void hub_places_tell(
    struct node_hub *ret, const struct hub_places *here, const struct hub_places *next);

/** hub_places_encode() - their texts as an array; gives a reference, NULL: no memory. */
json_t *hub_places_encode(const struct hub_places *places);
