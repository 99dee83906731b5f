/*
 * object_frame.h - the JSON around `spec` that all kinds of object share; for the kinds' own files.
 */
#pragma once

#include <jansson.h>

#include "mesh/object/object_meta.h"

struct err;
struct object_kind;

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
