/*
 * resource.h - one object of the hub and the Kubernetes resource that shows it: what is to be done
 * about the two. Pure.
 *
 * The hub's store is the truth. A resource (networks, nodes and meshedges.weft.dev) is a projection
 * of an object, and at the same time a place where people write what they wish: a wish is handed to
 * the hub as the change that `weft apply` would ask for, and the hub takes or refuses it.
 *
 * Theory of operation. A projection and a wish are told apart by two annotations, which the hub
 * writes in the same request as the fields that they are about:
 *
 *     weft.dev/spec      hash of the spec that the hub has dealt with
 *     weft.dev/revision  revision of the hub's object then; "none": the hub has no such object
 *
 * and a third one, weft.dev/accepted, has the hash of that object's own spec: agents that read the
 * resource take its spec when it has that hash (backends/kubernetes/kube_client.h).
 *
 * A resource whose spec has that hash is no wish, whoever reads it and however late. Any other spec
 * is a wish, made upon the revision that stands there. It is handed on with that revision, and so
 * the hub refuses it if the object has changed since; what another hub did with it already is
 * never done again. A hash is of the spec in its normal form, as the kind's own decoder and encoder
 * make it, so that a field which is absent equals one that has its default.
 *
 * Fields of the spec that another field manager owns are never taken from it. They are left out of
 * what the hub applies; so the hub owns what only it says. If such a field differs from what the
 * hub has, that is a conflict: it is shown, and stays until a person changes either.
 *
 * A resource that shows an object has a finalizer. So `kubectl delete` is a wish too, even if no
 * hub runs at that moment.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/kubernetes/kube_client.h"
#include "hub/resources/own_parts.h"
#include "mesh/object/object.h"

struct model;

/** Field managers: of what the hub writes into metadata and spec, and of its parts of a status. */
#define RESOURCE_MANAGER        "weft-hub"
#define RESOURCE_MANAGER_STATUS "weft-hub-status"
#define RESOURCE_FINALIZER      "weft.dev/hub"
#define RESOURCE_SPEC           "weft.dev/spec" /* others: kube_client.h */

/** Longest name of a resource: "NETWORK.NAME". */
#define RESOURCE_NAME_MAX (NAME_MAX_LEN + 1 + OBJECT_NAME_MAX)

/** Longest name of a field manager, as Kubernetes has it. */
#define RESOURCE_BY_MAX KUBE_PART_MANAGER_MAX

/** Room for a hash, and for a revision as text. */
#define RESOURCE_HASH_MAX     KUBE_SPEC_HASH_MAX
#define RESOURCE_REVISION_MAX 24

/** resource_name() - what Kubernetes calls the object. Returns @buf. */
const char *resource_name(char buf[static RESOURCE_NAME_MAX + 1], const struct object_kind *kind,
    const char *network, const char *name);

/**
 * resource_name_parse() - the other way
 *
 * Return: false: no object of the kind has that name.
 */
bool resource_name_parse(const struct object_kind *kind, const char *text,
    char ret_network[static NAME_MAX_LEN + 1], char ret_name[static OBJECT_NAME_MAX + 1]);

/** What the hub has. */
struct resource_want {
    json_t *spec;                 /* owns; NULL: it has no such object */
    uint64_t revision;            /* of the object; 0: nobody has written it, it is only observed */
    char hash[RESOURCE_HASH_MAX]; /* of the spec */
};

/** resource_want_set() - @object: as the hub's API has it; NULL: there is none. 0 or -ENOMEM. */
int resource_want_set(
    struct resource_want *w, const struct object_kind *kind, const json_t *object);

/** resource_want_deinit() - idempotent. */
void resource_want_deinit(struct resource_want *w);

/** What the API server has. */
struct resource_seen {
    bool is_there;                        /* false: nothing, and the rest is empty */
    bool is_deleting;                     /* somebody has deleted it, and a finalizer holds it */
    bool has_finalizer;                   /* the hub's */
    json_int_t generation;                /* grows with each change of the spec */
    char *version;                        /* owns: resourceVersion; opaque */
    char *uid;                            /* owns */
    char hash[RESOURCE_HASH_MAX];         /* of the spec */
    char done[RESOURCE_HASH_MAX];         /* annotation weft.dev/spec; "": none */
    char revision[RESOURCE_REVISION_MAX]; /* annotation weft.dev/revision; "": none */
    char accepted[RESOURCE_HASH_MAX];     /* annotation weft.dev/accepted; "": none */
    char by[RESOURCE_BY_MAX + 1];         /* the other manager who wrote the spec last; "": none */
    json_t *spec;       /* owns; kept where it is a wish or others own fields; else NULL */
    json_t *others;     /* owns; fields of the spec that others own, as FieldsV1; NULL: none */
    json_t *finalizers; /* owns; without the hub's; only while it is being deleted */
    json_t *status;     /* owns; its conditions, and of all else the hashes; NULL: none */
    struct own_parts own_parts; /* of an edge: what its writers write themselves */
};

/**
 * resource_seen_set() - take in a resource as the API server sent it
 *
 * Return: 0; -EINVAL: it has no resourceVersion; -ENOMEM. After a failure @s is empty.
 */
int resource_seen_set(
    struct resource_seen *s, const struct object_kind *kind, const json_t *resource);

/** resource_seen_deinit() - empty it. */
void resource_seen_deinit(struct resource_seen *s);

/** What is to be done next about a resource. */
enum resource_step {
    RESOURCE_NOTHING,
    RESOURCE_APPLY,      /* resource_apply(): make it show what the hub has */
    RESOURCE_ASK_PUT,    /* it is a wish: ask the hub for resource_request() */
    RESOURCE_ASK_REMOVE, /* somebody deletes it: ask the hub to remove the object */
    RESOURCE_DELETE,     /* the hub has removed the object */
    RESOURCE_RELEASE,    /* take the finalizer away */
};

/**
 * resource_decide() - what to do next
 * @is_kept:	the hub has refused to remove the object
 */
enum resource_step resource_decide(
    const struct resource_want *w, const struct resource_seen *s, bool is_kept);

/** resource_request() - the object to PUT to the hub; a new reference, NULL: no memory. */
json_t *resource_request(const struct object_kind *kind, const char *network, const char *name,
    const struct resource_seen *s);

/** How far fields of others are left out of what is applied. */
enum resource_yield {
    RESOURCE_YIELD_SAME, /* those that say the same: the API server refuses the others, in words */
    RESOURCE_YIELD_ALL,  /* all: nothing of the spec can be refused */
};

/**
 * resource_apply() - the body of a Server-Side Apply of the resource, without its status
 * @name:	of the resource
 * @s:		as it was seen last
 * @ret_clash:	set: fields of others differ from what the hub has
 *
 * It names the version that was seen, so it is refused if somebody has written meanwhile; a new
 * resource has none. It also says that the spec which there will be then has been dealt with. So it
 * is also how a refused wish is marked as such.
 *
 * Return: a new reference, NULL: no memory.
 */
json_t *resource_apply(const struct object_kind *kind, const char *name,
    const struct resource_want *w, const struct resource_seen *s, enum resource_yield yield,
    bool *ret_clash);

/** What the hub says of a resource besides its object. */
struct resource_verdict {
    const char *refused;   /* why the hub does not do what the spec says; NULL: it does */
    const char *reason;    /* "Refused" or "Conflict"; with @refused */
    json_int_t generation; /* of the spec that this is about */
    const char *now;       /* the time, RFC 3339 */
    const struct own_parts *own_parts; /* which writers write themselves; NULL: none */
};

/** One writer's part of a status. */
struct resource_part {
    char manager[RESOURCE_BY_MAX + 1]; /* the field manager to apply it as */
    json_t *status;                    /* owns; its fields alone */
    char hash[RESOURCE_HASH_MAX];      /* of what is worth a write: no ages and round trips */
};

/** Most parts: an edge's, of two agents, two probes and the hub. */
#define RESOURCE_PARTS_MAX 5

/** resource_condition() - lends the condition of that type out of a status; NULL: there is none. */
const json_t *resource_condition(const json_t *status, const char *type);

/**
 * resource_parts() - cut a status into parts, by who has observed them
 * @status:	as the hub's API has it, and for a Node its "conditions", without times
 * @seen:	of struct resource_seen; a condition that stays keeps its time
 *
 * A MeshEdge's "agent/A", "probe/A" and so on have the field managers of those names; a Node's
 * status has "agent/NAME". The conditions, an edge's "hub" and all of a Network are the hub's own.
 * What its writer writes itself, in time, is left out.
 *
 * Return: how many there are in @ret, for resource_part_deinit().
 */
size_t resource_parts(struct resource_part ret[static RESOURCE_PARTS_MAX],
    const struct object_kind *kind, const char *name, const json_t *status, const json_t *seen,
    const struct resource_verdict *verdict);

/** resource_part_deinit() - idempotent. */
void resource_part_deinit(struct resource_part *p);

/**
 * resource_part_is_shown() - is it there already, as far as it is worth a write?
 * @seen:	status of struct resource_seen
 */
bool resource_part_is_shown(const struct resource_part *p, const json_t *seen);

/* ---- the status of a network, node or edge, as its resource of Kubernetes shows it ----------- */

/*
 * It is what the hub's API answers of the object, and of a node the condition "Ready" besides,
 * which "kubectl wait" can wait for; of an edge "Stale", which is made of what is old.
 *
 * Threads: the hub's loop only.
 */

/**
 * resource_status() - what is known of the object now
 * @of:	the name of its resource
 *
 * Return: a new reference; NULL: there is no such object any more, or no memory.
 */
json_t *resource_status(const struct model *m, const struct object_kind *kind, const char *of);
