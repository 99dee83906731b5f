/*
 * object_meta.h - what every object has besides its spec, and how strictly it is read.
 *
 * Below the kinds (network.h, node.h, mesh_edge.h), which object.h puts together.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/parse.h"

struct fields;
struct object_kind;

#define OBJECT_NAME_MAX (2 * NAME_MAX_LEN + 2) /* bytes; the longest is an edge's, "a--b" */

/** The first member of each kind's struct. */
struct object_meta {
    char name[OBJECT_NAME_MAX + 1];
    char network[NAME_MAX_LEN + 1]; /* "" for a Network */
    uint64_t resource_version;      /* 0: none given */
};

/** How strict a decoder is with fields that it does not know. */
enum object_mode {
    OBJECT_LENIENT, /* from a hub that may be newer: ignored */
    OBJECT_STRICT,  /* from a person: refused, since it may be a typing error */
};

/** object_fields_end() - all fields were asked for: fields_end(), where @mode refuses the others.
 */
int object_fields_end(struct fields *f, enum object_mode mode);

/* The JSON around `spec` that all kinds of object share; for the kinds' own files. */

/** Room for what a sentence calls an object: "MeshEdge \"a--b\"". */
#define OBJECT_FRAME_WHERE_MAX (OBJECT_NAME_MAX + 24)

/** An object of which `spec` and `status` have not been read yet. */
struct object_frame {
    struct object_meta meta;            /* which names the kind allows is still to be checked */
    const json_t *spec;                 /* borrows: an object */
    const json_t *status;               /* borrows: an object; NULL: there is none */
    char where[OBJECT_FRAME_WHERE_MAX]; /* what it is, for the words of fields.h */
};

/**
 * object_frame_decode() - kind, metadata, and where spec and status are
 * @ret:	untouched on failure; borrows from @json
 *
 * Return: 0 or -EINVAL with words.
 */
int object_frame_decode(struct object_frame *ret, const json_t *json,
    const struct object_kind *kind, enum object_mode mode, struct err *e);

/**
 * object_frame_encode() - the object around a spec
 * @spec:	taken, also on failure; NULL when it could not be made
 * @status:	taken, also on failure; NULL: none
 *
 * Return: a new reference, NULL for no memory.
 */
json_t *object_frame_encode(
    const struct object_meta *m, const struct object_kind *kind, json_t *spec, json_t *status);
