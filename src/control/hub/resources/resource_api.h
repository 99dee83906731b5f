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

struct err;
struct object_kind;

struct resource_api {
    struct kube_client client; /* owns; the caller's to init and deinit */
};

/** Room for a time. */
#define RESOURCE_API_TIME_MAX 64

/** resource_api_time() - now, RFC 3339; @with_micros: with microseconds. Returns @buf. */
const char *resource_api_time(char buf[static RESOURCE_API_TIME_MAX], bool with_micros);

/** resource_api_read_lease() - KUBE_E_ABSENT: there is none. */
int resource_api_read_lease(struct resource_api *a, json_t **ret, struct err *e);

/** resource_api_write_lease() - @is_new: there is none yet. KUBE_E_EXISTS: another was quicker. */
int resource_api_write_lease(
    struct resource_api *a, const json_t *lease, bool is_new, json_t **ret, struct err *e);

/** Room for the place at which a list goes on. */
#define RESOURCE_API_MORE_MAX 901

/** resource_api_list() - a page of the kind's resources. @more: where to go on; "": the first. */
int resource_api_list(struct resource_api *a, const struct object_kind *kind, const char *more,
    json_t **ret, struct err *e);

/** resource_api_more() - where to go on behind that page. False: it is the last one, and @ret "".
 */
bool resource_api_more(const json_t *page, char ret[static RESOURCE_API_MORE_MAX]);

/** resource_api_watch() - from that resourceVersion on, with bookmarks; as remote_http_open(). */
int resource_api_watch(struct resource_api *a, const struct object_kind *kind, const char *version,
    remote_http_line_fn fn, void *ctx, struct remote_http_stream **ret, struct err *e);

/** resource_api_apply() - server-side, as the hub. @by_force: take fields that others own. */
int resource_api_apply(struct resource_api *a, const struct object_kind *kind, const char *name,
    const json_t *body, bool by_force, json_t **ret, struct err *e);

/** resource_api_clash() - the words, in @e, when an apply failed since others own fields; else
 * NULL.
 */
const char *resource_api_clash(int r, const struct err *e);

/** resource_api_apply_status() - a part of the status, as the field manager @by, by force. */
int resource_api_apply_status(struct resource_api *a, const struct object_kind *kind,
    const char *name, const char *by, const json_t *body, json_t **ret, struct err *e);

/** resource_api_release() - a merge patch that takes the hub's finalizer away. */
int resource_api_release(struct resource_api *a, const struct object_kind *kind, const char *name,
    const json_t *body, json_t **ret, struct err *e);

/** resource_api_remove() - delete it, if it is at that version. */
int resource_api_remove(struct resource_api *a, const struct object_kind *kind, const char *name,
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
    struct resource_api *a, const struct resource_event *event, struct err *e);
