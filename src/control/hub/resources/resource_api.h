/*
 * resource_api.h - the requests to the API server that are about the hub's resources, with their
 * Lease and Events: paths, bodies and the words of a conflict, and nothing of when to ask.
 *
 * All of them wait for the answer, up to three seconds, and give out lines of open watches
 * meanwhile (remote_http.h). Each returns 0; KUBE_E_...; or negative errno, with words; a *ret that
 * is given is a new reference, and is NULL after a failure if it was before.
 *
 * Threads: the writer's (writer.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "backends/kubernetes/kube_client.h"
#include "base/clock.h"

struct resource_part;

/** Room for a time. */
#define RESOURCE_API_TIME_MAX 64

/** resource_api_time() - now, RFC 3339; @with_micros: with microseconds. Returns @buf. */
const char *resource_api_time(char buf[static RESOURCE_API_TIME_MAX], bool with_micros);

/** resource_api_read_lease() - KUBE_E_ABSENT: there is none. */
int resource_api_read_lease(struct kube_client *c, json_t **ret, struct err *e);

/** resource_api_write_lease() - @is_new: there is none yet. KUBE_E_EXISTS: another was quicker. */
int resource_api_write_lease(
    struct kube_client *c, const json_t *lease, bool is_new, json_t **ret, struct err *e);

/** Room for the place at which a list goes on. */
#define RESOURCE_API_MORE_MAX 901

/** resource_api_list() - a page of the kind's resources. @more: where to go on; "": the first. */
int resource_api_list(struct kube_client *c, const struct object_kind *kind, const char *more,
    json_t **ret, struct err *e);

/** resource_api_more() - where to go on behind that page. False: it is the last one, and @ret "".
 */
bool resource_api_more(const json_t *page, char ret[static RESOURCE_API_MORE_MAX]);

/** resource_api_watch() - from that resourceVersion on, with bookmarks; as remote_http_open(). */
int resource_api_watch(struct kube_client *c, const struct object_kind *kind, const char *version,
    remote_http_line_fn fn, void *ctx, struct remote_http_stream **ret, struct err *e);

/** resource_api_apply() - server-side, as the hub. @by_force: take fields that others own. */
int resource_api_apply(struct kube_client *c, const struct object_kind *kind, const char *name,
    const json_t *body, bool by_force, json_t **ret, struct err *e);

/** resource_api_clash() - the words, in @e, when an apply failed since others own fields; else
 * NULL.
 */
const char *resource_api_clash(int r, const struct err *e);

/** resource_api_apply_status() - a part of the status, as its field manager, by force. */
int resource_api_apply_status(struct kube_client *c, const struct object_kind *kind,
    const char *name, const struct resource_part *part, json_t **ret, struct err *e);

/** resource_api_release() - a merge patch that takes the hub's finalizer away. */
int resource_api_release(struct kube_client *c, const struct object_kind *kind, const char *name,
    const json_t *body, json_t **ret, struct err *e);

/** resource_api_remove() - delete it, if it is at that version. */
int resource_api_remove(struct kube_client *c, const struct object_kind *kind, const char *name,
    const char *version, json_t **ret, struct err *e);

/** A warning that people see with "kubectl describe". Borrowed. */
struct resource_event {
    const struct object_kind *kind; /* of the resource that it is about */
    const char *name;
    const char *uid;
    const char *reason; /* one word */
    const char *text;
};

/** resource_api_add_event() - with the time that it is now. */
int resource_api_add_event(
    struct kube_client *c, const struct resource_event *event, struct err *e);

/* ---- which of several hubs writes the resources: a Lease of coordination.k8s.io -------------- */

/*
 * The Lease is kept as client-go's leader election keeps it. Whoever holds it renews it every five
 * seconds. A hub that sees it unchanged for fifteen seconds, by its own clock, takes it over, with
 * the resourceVersion that it saw; so of several that try one succeeds. A holder that could not
 * renew it for ten seconds stops before that. The times inside are for people; nobody compares
 * them.
 *
 * The hubs choose who serves a network's jobs in another way (owner/owners.h), and this does not
 * use that one. There each network has an owner, which is found on the hub's loop from records of
 * the store, and an epoch, without which nothing of its jobs is stored. Here one hub of a namespace
 * is found on a thread that reads nothing of the store; each write is safe by the version that it
 * expects; and administrators of a cluster look for the Lease, as every controller has one.
 *
 * Pure.
 */

#define LEADER_LEASE       "weft-hub"
#define LEADER_EVERY       (5 * NSEC_PER_SEC)
#define LEADER_LEADS       (10 * NSEC_PER_SEC)
#define LEADER_EXPIRY      (15 * NSEC_PER_SEC)
#define LEADER_NAME_MAX    128
#define LEADER_VERSION_MAX 128

struct leader {
    char me[LEADER_NAME_MAX];
    char version[LEADER_VERSION_MAX]; /* of the Lease as it was seen last; "": there is none */
    char holder[LEADER_NAME_MAX];     /* likewise; "": nobody */
    json_int_t n_changes;             /* how often it went to another holder */
    nsec_t changed_at;                /* when it was first seen like that */
    nsec_t renewed_at; /* when this hub began the last renewal that succeeded; 0: none */
    nsec_t looked_at;  /* when it was looked at last; 0: never */
};

/** leader_init() - @me: this hub, like nobody else. */
void leader_init(struct leader *l, const char *me);

/** leader_saw() - the Lease was read; NULL: there is none. */
void leader_saw(struct leader *l, const json_t *lease, nsec_t now);

/** leader_may_write() - may this hub renew the Lease, or take it, as it was seen? */
bool leader_may_write(const struct leader *l, nsec_t now);

/**
 * leader_lease() - what to write then; a new reference, NULL: no memory
 * @wall:	the time, RFC 3339 with microseconds
 * @is_end:	this hub ends: give it back
 */
json_t *leader_lease(const struct leader *l, const char *wall, bool is_end);

/** leader_wrote() - it was written, as the server answers; @began_at: when that was asked. */
void leader_wrote(struct leader *l, const json_t *lease, nsec_t began_at);

/** leader_is_leading() - is this hub the one that writes? */
bool leader_is_leading(const struct leader *l, nsec_t now);
