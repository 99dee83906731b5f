/*
 * object.h - the objects of a network, of any kind, and the table of kinds.
 *
 * The same JSON in every store, at every entrance of the hub and in every
 * snapshot (docs/API.md). A decoder checks every field against its bounds, once;
 * whoever holds one of these structs may rely on them. `status` is what owners
 * observed; it is carried as JSON and not interpreted here.
 *
 * Theory of operation. A kind is a row, struct object_kind, in the file of that
 * kind (network.c, node.c, mesh_edge.c); kinds.c lists the rows. Whoever handles
 * objects of any kind goes by the row and knows no kind: decoding, snapshots, the
 * events of a watch, `weft get` and `weft apply`, the hub's store and its API.
 * How a kind is added is in docs/HACKING.md, "A new object kind".
 *
 * A Network, a Node and a MeshEdge mean something to much of the program, so each
 * has a struct of its own in struct object. Any other kind keeps its spec behind a
 * pointer (struct object_plain), and so needs no line here.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "mesh/object/mesh_edge.h"
#include "mesh/object/network.h"
#include "mesh/object/node.h"
#include "mesh/object/object_meta.h"

struct object;

/** All that there is to know of a kind of object; a row is constant and lives for ever. */
struct object_kind {
    const char *name;   /* as JSON's "kind" and the command line have it: "MeshEdge" */
    const char *list;   /* what a snapshot calls its list of them: "edges"; NULL: it has the one */
    const char *prefix; /* what their keys in the hub's store begin with: "edge/" */
    const char *plural; /* what Kubernetes' API calls many of them: "meshedges" */
    const char *short_name; /* and what kubectl takes for it besides: "wedge" */
    bool is_network;        /* it is a network itself, and so belongs to none */

    /**
     * decode() - check an object of this kind and take it in
     * @ret:	all zeroes; on success all but @ret->kind is set
     * @json:	borrowed; a reference to its status may be kept
     *
     * Return: 0; -EINVAL with words that name the object, the value and what is
     * allowed; -ENOMEM. After a failure @ret owns nothing.
     */
    int (*decode)(struct object *ret, const json_t *json, enum object_mode mode, struct err *e);

    /** encode() - a new reference, NULL for no memory; what decode() takes in OBJECT_STRICT. */
    json_t *(*encode)(const struct object *o);

    /** deinit() - release what the object owns; NULL: it owns nothing. */
    void (*deinit)(struct object *o);

    /**
     * node() - the name of the node number @i that the object is about, NULL: there are no more
     *
     * They have to be there when it is written, and see it if @can_see says so. At most
     * OBJECT_ABOUT_MAX. NULL: it is about no node in particular.
     */
    const char *(*node)(const struct object *o, unsigned i);

    /**
     * can_see() - is the object in the view of the node @self?
     *
     * By the object alone. NULL: the hub decides by more than that (hub/watch/view.h).
     */
    bool (*can_see)(const struct object *o, const struct node *self);
};

/** All rows, in the order in which sentences name them; the last one is NULL. */
extern const struct object_kind *const object_kinds[];

#define OBJECT_KINDS_MAX 16 /* rows */
#define OBJECT_ABOUT_MAX 16 /* nodes that one object is about */

/** An object of a kind that has no struct of its own in struct object. */
struct object_plain {
    struct object_meta meta;
    void *spec; /* owns; the kind's own struct */
};

/** An object of any kind. */
struct object {
    const struct object_kind *kind; /* NULL: nothing inside */
    union {
        struct object_meta meta; /* each of the others begins with one */
        struct network network;
        struct node node;
        struct mesh_edge edge;
        struct object_plain plain;
    };
};

#define OBJECT_NULL                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

/** object_kind_find() - the row of that name, NULL if there is none. */
const struct object_kind *object_kind_find(const char *name);

/** object_kind_index() - where the row is in object_kinds; below OBJECT_KINDS_MAX. */
unsigned object_kind_index(const struct object_kind *kind);

/** Room for object_kinds_text(). */
#define OBJECT_KINDS_TEXT_MAX 256

/** object_kinds_text() - "Network, Node, MeshEdge": all there are, for sentences. Returns @buf. */
const char *object_kinds_text(char buf[static OBJECT_KINDS_TEXT_MAX]);

/**
 * object_decode() - check an object of any kind, by its "kind" field, and take it in
 * @ret:	untouched on failure, else to be released with object_deinit()
 * @json:	borrowed; a reference to its status may be kept
 *
 * Return: 0; -EINVAL with words that name the object, the value and what is
 * allowed; -ENOMEM.
 */
int object_decode(struct object *ret, const json_t *json, enum object_mode mode, struct err *e);

/** object_encode() - a new reference; NULL for no memory, and for OBJECT_NULL. */
json_t *object_encode(const struct object *o);

/** object_deinit() - release what @o owns; idempotent, safe on OBJECT_NULL. */
void object_deinit(struct object *o);
