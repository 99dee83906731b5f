/*
 * object_internal.h - what the kinds of object share: the frame around `spec`.
 */
#pragma once

#include "mesh/object.h"

/** Room for what a sentence calls an object: "MeshEdge \"a--b\"". */
#define OBJECT__WHERE_MAX (OBJECT_NAME_MAX + 24)

/** object__describe() - what a sentence calls the object; its own name has not been checked yet. */
void object__describe(
    const json_t *json, enum object_kind kind, char where[static OBJECT__WHERE_MAX]);

/**
 * object__decode_frame() - kind, metadata, spec and status
 * @ret_spec:	borrowed from @json
 * @ret_status:	borrowed from @json; NULL when there is none
 *
 * Which names are allowed is left to the kind.
 *
 * Return: 0 or -EINVAL with words.
 */
int object__decode_frame(struct object_meta *ret_meta, const json_t **ret_spec,
    const json_t **ret_status, const json_t *json, enum object_kind kind, enum object_mode mode,
    const char *where, struct err *e);

/**
 * object__encode_frame() - the object around a spec
 * @spec:	taken, also on failure; NULL when it could not be made
 * @status:	taken, also on failure; NULL: none
 */
json_t *object__encode_frame(
    const struct object_meta *m, enum object_kind kind, json_t *spec, json_t *status);
