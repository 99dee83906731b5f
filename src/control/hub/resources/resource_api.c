/* resource_api.c - see resource_api.h. */
#include "resource_api.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backends/kubernetes/kube_part.h"
#include "base/err.h"
#include "hub/resources/resource.h"
#include "os/clock.h"

/* ---- who holds the Lease --------------------------------------------------------------------- */

void leader_init(struct leader *l, const char *me)
{
    *l = (struct leader){.n_changes = 0};
    (void)snprintf(l->me, sizeof(l->me), "%s", me);
}

static const char *text_of(const json_t *json, const char *part, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(json, part), key));

    return text ? text : "";
}

static void take_in(struct leader *l, const json_t *lease, nsec_t now)
{
    const char *version = text_of(lease, "metadata", "resourceVersion");

    if (strcmp(version, l->version) != 0 || !l->changed_at)
        l->changed_at = now;
    (void)snprintf(l->version, sizeof(l->version), "%s", version);
    (void)snprintf(l->holder, sizeof(l->holder), "%s", text_of(lease, "spec", "holderIdentity"));
    l->n_changes =
        json_integer_value(json_object_get(json_object_get(lease, "spec"), "leaseTransitions"));
}

void leader_saw(struct leader *l, const json_t *lease, nsec_t now)
{
    l->looked_at = now;
    take_in(l, lease, now);
    if (strcmp(l->holder, l->me) != 0)
        l->renewed_at = 0;
}

bool leader_may_write(const struct leader *l, nsec_t now)
{
    return l->holder[0] == '\0' || strcmp(l->holder, l->me) == 0 ||
           now - l->changed_at >= LEADER_EXPIRY;
}

json_t *leader_lease(const struct leader *l, const char *wall, bool is_end)
{
    bool is_new = strcmp(l->holder, l->me) != 0;
    json_t *json = json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:i, s:I, s:s}}", "apiVersion",
        "coordination.k8s.io/v1", "kind", "Lease", "metadata", "name", LEADER_LEASE, "spec",
        "holderIdentity", is_end ? "" : l->me, "leaseDurationSeconds",
        (int)(LEADER_EXPIRY / NSEC_PER_SEC), "leaseTransitions",
        l->n_changes + (is_new && l->version[0]), "renewTime", wall);

    if (l->version[0])
        (void)json_object_set_new(
            json_object_get(json, "metadata"), "resourceVersion", json_string(l->version));
    if (is_new)
        (void)json_object_set_new(json_object_get(json, "spec"), "acquireTime", json_string(wall));
    return json;
}

void leader_wrote(struct leader *l, const json_t *lease, nsec_t began_at)
{
    take_in(l, lease, began_at);
    l->renewed_at = strcmp(l->holder, l->me) == 0 ? began_at : 0;
}

bool leader_is_leading(const struct leader *l, nsec_t now)
{
    return l->renewed_at && now - l->renewed_at < LEADER_LEADS;
}

/* ---- requests -------------------------------------------------------------------------------- */

#define REQUEST_NS (3 * NSEC_PER_SEC) /* how long one request is tried */
#define PAGE       200                /* resources that are read at once */
#define PATH_SIZE  1500

/* What the server's sentence about a conflict of field managers begins with. */
#define CLASH "Apply failed"

const char *resource_api_time(char buf[static RESOURCE_API_TIME_MAX], bool with_micros)
{
    nsec_t wall = clock_wall();
    time_t seconds = (time_t)(wall / NSEC_PER_SEC);
    struct tm tm;
    size_t n;

    (void)gmtime_r(&seconds, &tm);
    n = strftime(buf, RESOURCE_API_TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    if (with_micros)
        (void)snprintf(buf + n, RESOURCE_API_TIME_MAX - n, ".%06lldZ",
            (long long)(wall % NSEC_PER_SEC / 1000));
    else
        (void)snprintf(buf + n, RESOURCE_API_TIME_MAX - n, "Z");
    return buf;
}

static int ask(struct kube_client *c, const char *method, const char *path, const char *type,
    const json_t *body, json_t **ret, struct err *e)
{
    struct kube_request rq = {.method = method, .path = path, .content_type = type, .body = body};

    return kube_client_ask(c, &rq, clock_now() + REQUEST_NS, ret, e);
}

/* The path of an item, or of all of its kind (@name is ""). */
static const char *path_of(const struct kube_client *c, char buf[static PATH_SIZE],
    const struct object_kind *kind, const char *name, const char *rest)
{
    (void)snprintf(buf, PATH_SIZE, "/apis/" KUBE_API "/namespaces/%s/%s%s%s%s", c->config.namespace,
        kind->plural, name[0] ? "/" : "", name, rest);
    return buf;
}

/* ---- the Lease ------------------------------------------------------------------------------- */

static const char *lease_path(
    const struct kube_client *c, char buf[static PATH_SIZE], const char *name)
{
    (void)snprintf(buf, PATH_SIZE, "/apis/coordination.k8s.io/v1/namespaces/%s/leases%s%s",
        c->config.namespace, name[0] ? "/" : "", name);
    return buf;
}

int resource_api_read_lease(struct kube_client *c, json_t **ret, struct err *e)
{
    char path[PATH_SIZE];

    return ask(c, "GET", lease_path(c, path, LEADER_LEASE), NULL, NULL, ret, e);
}

int resource_api_write_lease(
    struct kube_client *c, const json_t *lease, bool is_new, json_t **ret, struct err *e)
{
    char path[PATH_SIZE];

    return ask(c, is_new ? "POST" : "PUT", lease_path(c, path, is_new ? "" : LEADER_LEASE), NULL,
        lease, ret, e);
}

/* ---- reading --------------------------------------------------------------------------------- */

int resource_api_list(struct kube_client *c, const struct object_kind *kind, const char *more,
    json_t **ret, struct err *e)
{
    char path[PATH_SIZE];
    char query[RESOURCE_API_MORE_MAX + 40];

    (void)snprintf(
        query, sizeof(query), "?limit=%d%s%.900s", PAGE, more[0] ? "&continue=" : "", more);
    return ask(c, "GET", path_of(c, path, kind, "", query), NULL, NULL, ret, e);
}

bool resource_api_more(const json_t *page, char ret[static RESOURCE_API_MORE_MAX])
{
    const char *more =
        json_string_value(json_object_get(json_object_get(page, "metadata"), "continue"));

    (void)snprintf(ret, RESOURCE_API_MORE_MAX, "%s", more ? more : "");
    return ret[0] != '\0';
}

int resource_api_watch(struct kube_client *c, const struct object_kind *kind, const char *version,
    remote_http_line_fn fn, void *ctx, struct remote_http_stream **ret, struct err *e)
{
    char path[PATH_SIZE];
    char query[256];

    (void)snprintf(query, sizeof(query),
        "?watch=true&allowWatchBookmarks=true&resourceVersion=%.128s", version);
    return kube_client_open(c, path_of(c, path, kind, "", query), fn, ctx, ret, e);
}

/* ---- writing --------------------------------------------------------------------------------- */

int resource_api_apply(struct kube_client *c, const struct object_kind *kind, const char *name,
    const json_t *body, bool by_force, json_t **ret, struct err *e)
{
    char path[PATH_SIZE];

    return ask(c, "PATCH",
        path_of(c, path, kind, name,
            by_force ? "?fieldManager=" RESOURCE_MANAGER "&force=true"
                     : "?fieldManager=" RESOURCE_MANAGER),
        "application/apply-patch+yaml", body, ret, e);
}

const char *resource_api_clash(int r, const struct err *e)
{
    return r == KUBE_E_EXISTS ? strstr(err_text(e), CLASH) : NULL;
}

int resource_api_apply_status(struct kube_client *c, const struct object_kind *kind,
    const char *name, const struct resource_part *part, json_t **ret, struct err *e)
{
    return kube_part_apply(
        c, kind, name, part->manager, part->status, true, clock_now() + REQUEST_NS, ret, e);
}

int resource_api_release(struct kube_client *c, const struct object_kind *kind, const char *name,
    const json_t *body, json_t **ret, struct err *e)
{
    char path[PATH_SIZE];

    return ask(c, "PATCH", path_of(c, path, kind, name, "?fieldManager=" RESOURCE_MANAGER),
        "application/merge-patch+json", body, ret, e);
}

int resource_api_remove(struct kube_client *c, const struct object_kind *kind, const char *name,
    const char *version, json_t **ret, struct err *e)
{
    char path[PATH_SIZE];
    json_t *body = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "DeleteOptions",
        "preconditions", "resourceVersion", version);
    int r = ask(c, "DELETE", path_of(c, path, kind, name, ""), NULL, body, ret, e);

    json_decref(body);
    return r;
}

int resource_api_add_event(struct kube_client *c, const struct resource_event *event, struct err *e)
{
    const char *namespace = c->config.namespace;
    char wall[RESOURCE_API_TIME_MAX];
    char path[PATH_SIZE];
    json_t *body;
    int r;

    (void)resource_api_time(wall, false);
    body = json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:s, s:s, s:s*}, s:s, s:s, s:s, "
                     "s:{s:s}, s:s, s:s, s:i}",
        "apiVersion", "v1", "kind", "Event", "metadata", "generateName", "weft-hub-", "namespace",
        namespace, "involvedObject", "apiVersion", KUBE_API, "kind", event->kind->name, "name",
        event->name, "namespace", namespace, "uid", event->uid, "type", "Warning", "reason",
        event->reason, "message", event->text, "source", "component", RESOURCE_MANAGER,
        "firstTimestamp", wall, "lastTimestamp", wall, "count", 1);
    if (!body)
        return 0;
    (void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events", namespace);
    r = ask(c, "POST", path, NULL, body, NULL, e);
    json_decref(body);
    return r;
}
