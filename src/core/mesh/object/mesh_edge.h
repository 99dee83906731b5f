/*
 * mesh_edge.h - the MeshEdge among the objects: what somebody said about a pair; see object.h.
 *
 * A network's topology implies its edges. There is an object only where somebody said something
 * about one, so that n nodes do not take n² of them.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/addr.h"
#include "crypto/x25519.h"
#include "mesh/object/object_meta.h"

/** What somebody said about one edge's path. */
enum edge_path {
    EDGE_PATH_AUTO,
    EDGE_PATH_DIRECT,
    EDGE_PATH_RELAY,
    EDGE_PATH_OFF, /* the two shall not talk */
    EDGE_PATH_N,
};

/** What somebody has fixed about one end of an edge. */
struct edge_pin {
    struct endpoint endpoint; /* the other end sends there, and nowhere else; none: not fixed */
    struct x25519_public key; /* with any other key the two do not talk; none: not fixed */
};

struct mesh_edge {
    struct object_meta meta;
    char nodes[2][NAME_MAX_LEN + 1]; /* in byte order, different */
    enum edge_path path;
    struct edge_pin pins[2]; /* in the order of @nodes */
    uint64_t rate;           /* of what either end sends to the other, bit/s; 0: none */
    json_t *status;          /* owns a reference; NULL or an object of objects by field owner */
};

#define MESH_EDGE_NULL                                                                             \
    {                                                                                              \
        0                                                                                          \
    }

/** The row of the kind; kinds.c lists it. */
extern const struct object_kind mesh_edge_kind;

/**
 * edge_name() - the name of the edge between two nodes, in either order
 *
 * Return: @buf.
 */
const char *edge_name(const char *a, const char *b, char buf[static OBJECT_NAME_MAX + 1]);

/** mesh_edge_pin() - lends what is fixed about the end @node; NULL: @edge is, or it is no end. */
const struct edge_pin *mesh_edge_pin(const struct mesh_edge *edge, const char *node);

/** mesh_edge_refuses_key() - is another key than @key fixed for the end number @i? */
bool mesh_edge_refuses_key(
    const struct mesh_edge *edge, unsigned i, const struct x25519_public *key);

/** mesh_edge_wants_direct() - are the two to talk directly where they can? @edge: NULL: there is
 * none; @wants_relay: the network sends every pair through the hub. */
bool mesh_edge_wants_direct(const struct mesh_edge *edge, bool wants_relay);

/** mesh_edge_encode() - a new reference, NULL for no memory. */
json_t *mesh_edge_encode(const struct mesh_edge *edge);

/** mesh_edge_deinit() - release what it owns; idempotent, safe on MESH_EDGE_NULL. */
void mesh_edge_deinit(struct mesh_edge *edge);
