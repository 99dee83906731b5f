/*
 * objects.h - objects as an administrator reads and writes them: one row a kind of object.
 *
 * The handlers and the table of rows are in handlers_objects.c. A kind of object that has no row
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

extern const struct objects_row objects_network; /* objects_network.c */
extern const struct objects_row objects_node;    /* objects_node.c */
extern const struct objects_row objects_edge;    /* objects_edge.c */
extern const struct objects_row objects_plain;   /* objects_plain.c */

/** objects_given_version() - the version at which the object has to be; 0: at any. */
uint64_t objects_given_version(const struct object_call *call);

/** objects_refuse_version() - it is not at that version: @rs says 409. */
void objects_refuse_version(const struct object_call *call, struct response *rs);

/**
 * objects_hold_node() - a node that the object speaks of has to be there when it is written
 * @ret:	the operation that checks it, for objects_write(); with @key
 *
 * Return: the node, lent; NULL: there is none, and @rs says 404.
 */
struct model_node *objects_hold_node(const struct object_call *call,
    const struct model_network *net, const char *name, struct store_op *ret,
    char key[static RECORD_KEY_MAX], struct response *rs);

/** objects_refuse_missing() - there is no such object: @rs says 404. */
void objects_refuse_missing(const struct request *rq, struct response *rs);

/** objects_remove() - the remove of a kind whose object is one record, and nothing else. */
void objects_remove(
    struct handlers *h, struct model_network *net, const struct request *rq, struct response *rs);

/**
 * objects_write() - have one record written
 * @op:		its key, and the lease
 * @value:	taken; NULL: there was no memory for it
 * @held:	the record's version now, at which it has to be; 0: there is none
 * @checks:	@n_checks operations that go with it, at most OBJECT_ABOUT_MAX
 *
 * The answer is the object as it is then, or why it was not written.
 */
void objects_write(struct object_call *call, struct response *rs, struct store_op op, char *value,
    uint64_t held, const struct store_op *checks, size_t n_checks);
