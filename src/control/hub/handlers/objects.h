/*
 * objects.h - objects as an administrator reads and writes them: one row a kind of object.
 *
 * The handlers and the table of rows are in objects.c. A kind of object that has no row
 * there is handled by objects_plain, which goes by the kind's row in mesh/object/object.h.
 */
#pragma once

#include "hub/handlers/later.h"
#include "hub/record/record.h"
#include "mesh/object/object.h"

struct model_network;
struct model_node;
struct store_op;

/** An object that is being written. */
struct object_call {
    struct later later;
    const struct objects_row *row; /* of its kind */
    struct object object;          /* owns; as it was given */
};

/** What is done with objects of a kind. */
struct objects_row {
    const struct object_kind *kind; /* NULL: any that has no row of its own */

    /** list() - append all of them to @items, as JSON. */
    void (*list)(const struct model_network *net, const struct object_kind *kind, json_t *items);

    /** get() - the one of that name as JSON, a new reference; NULL: there is none. */
    json_t *(*get)(
        const struct model_network *net, const struct object_kind *kind, const char *name);

    /**
     * put() - check what is written against what there is, and have it written
     * @call:	its name and network are those of the path
     * @net:	NULL, but only for a Network: it is not there yet
     * @rs:	the answer, unless it comes later (hub/handlers/later.h)
     *
     * Called again when others have changed what it looked at.
     */
    void (*put)(struct object_call *call, struct model_network *net, struct response *rs);

    /**
     * remove() - answer a request by removing the object of the path
     * @rs:	204, 404 if there is none, or another refusal; or that the answer comes later
     */
    void (*remove)(struct handlers *h, struct model_network *net, const struct request *rq,
        struct response *rs);
};

extern const struct objects_row objects_network;
extern const struct objects_row objects_node;
extern const struct objects_row objects_edge;

extern const struct objects_row objects_plain; /* objects.c */
