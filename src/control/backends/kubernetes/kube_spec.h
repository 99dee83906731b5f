/*
 * kube_spec.h - what the hub says of a resource's spec in annotations, for all who read them. Pure.
 *
 * The hub writes them in the same request as the spec that they are about. A person may edit the
 * spec at any time after that; the annotations then still say what they said, and so they tell a
 * spec that the hub has from one that it has not judged yet, or has refused.
 */
#pragma once

#include <jansson.h>

#include "mesh/object/object.h"

/** Hash of the spec that the hub's own object has; absent while it has no such object. */
#define KUBE_SPEC_ACCEPTED "weft.dev/accepted"

/** Revision of the hub's object; KUBE_SPEC_NO_REVISION: it has none. */
#define KUBE_SPEC_REVISION    "weft.dev/revision"
#define KUBE_SPEC_NO_REVISION "none"

/** Room for a hash. */
#define KUBE_SPEC_HASH_MAX 17

/**
 * kube_spec_hash() - of a spec in the normal form that its kind's decoder and encoder make
 * @network, @name:	of the object
 *
 * So a field that is absent equals one that has its default. A spec that is none of this kind, as
 * this version knows it, is hashed as it stands.
 */
void kube_spec_hash(char ret[static KUBE_SPEC_HASH_MAX], const struct object_kind *kind,
    const char *network, const char *name, const json_t *spec);

/** kube_spec_hash_json() - of any JSON, whatever the order of its fields. */
void kube_spec_hash_json(char ret[static KUBE_SPEC_HASH_MAX], const json_t *json);
