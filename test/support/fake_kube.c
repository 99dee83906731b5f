/* fake_kube.c - see fake_kube.h. */
#include "test/support/fake_kube.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 32
#define REQUEST_MAX     65536
#define GROUP           "/apis/weft.dev/v1alpha1/namespaces/weft/"
#define LEASES          "/apis/coordination.k8s.io/v1/namespaces/weft/leases"

/* A connection: it asks, or it watches a kind. */
struct connection {
    int fd;           /* -1: free */
    char watched[64]; /* plural; "": it has not asked yet */
    size_t len;
    char *space; /* of REQUEST_MAX bytes */
};

struct fake_kube {
    int listener;
    uint16_t port;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    bool is_ending;
    long version; /* of what was changed last */
    json_t *all;  /* path: resource */
    json_t *lease;
    json_t *events;
    struct connection connections[CONNECTIONS_MAX];
};

/* What is asked. */
struct asked {
    char method[8];
    char path[1024]; /* without the query */
    char query[1024];
    json_t *body; /* owns */
};

/* ---- what there is ----------------------------------------------------------------------------
 */

static json_t *meta_of(const json_t *resource)
{
    return json_object_get(resource, "metadata");
}

static void set_version(struct fake_kube *f, json_t *resource)
{
    json_object_set_new(meta_of(resource), "resourceVersion", json_sprintf("%ld", ++f->version));
}

/* All who watch the kind are told. */
static void tell(struct fake_kube *f, const char *path, const char *type, const json_t *resource)
{
    json_t *event = json_pack("{s:s, s:O}", "type", type, "object", resource);
    char *line = json_dumps(event, JSON_COMPACT);
    size_t plural = strcspn(path, "/");

    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *c = &f->connections[i];

        if (c->fd >= 0 && strlen(c->watched) == plural && strncmp(c->watched, path, plural) == 0)
            (void)!(write(c->fd, line, strlen(line)) < 0 || write(c->fd, "\n", 1) < 0);
    }
    free(line);
    json_decref(event);
}

static json_t *make(struct fake_kube *f, const char *path)
{
    json_t *resource = json_pack("{s:{s:s, s:s, s:i}, s:{}}", "metadata", "name",
        strchr(path, '/') + 1, "uid", "u-1", "generation", 1, "spec");

    json_object_set_new(f->all, path, resource);
    return resource;
}

/* It is gone when nobody holds it. */
static void remove_if_free(struct fake_kube *f, const char *path, json_t *resource)
{
    bool is_held = json_array_size(json_object_get(meta_of(resource), "finalizers")) > 0;

    set_version(f, resource);
    tell(f, path, is_held ? "MODIFIED" : "DELETED", resource);
    if (!is_held)
        json_object_del(f->all, path);
}

/* Who owns that field of the spec, if it is a person; else NULL. */
static const char *owner_of(const json_t *resource, const char *field)
{
    const json_t *managers = json_object_get(meta_of(resource), "managedFields");
    const json_t *entry;
    char key[64];
    size_t i;

    (void)snprintf(key, sizeof(key), "f:%s", field);
    json_array_foreach(managers, i, entry) {
        const json_t *spec = json_object_get(json_object_get(entry, "fieldsV1"), "f:spec");

        if (json_object_get(spec, key))
            return json_string_value(json_object_get(entry, "manager"));
    }
    return NULL;
}

/* ---- answers ----------------------------------------------------------------------------------
 */

static void send_answer(int fd, int status, const json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    char head[128];

    (void)snprintf(head, sizeof(head),
        "HTTP/1.1 %d Answer\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", status,
        strlen(text));
    (void)!(write(fd, head, strlen(head)) < 0 || write(fd, text, strlen(text)) < 0);
    free(text);
}

static void refuse(int fd, int status, const char *message)
{
    json_t *body = json_pack("{s:s, s:s, s:i, s:s, s:{s:s}}", "kind", "Status", "message", message,
        "code", status, "reason", status == 404 ? "NotFound" : "Conflict", "details", "name", "x");

    send_answer(fd, status, body);
    json_decref(body);
}

static void send_list(struct fake_kube *f, int fd, const char *plural)
{
    json_t *list = json_pack(
        "{s:{s:o}, s:[]}", "metadata", "resourceVersion", json_sprintf("%ld", f->version), "items");
    const char *path;
    json_t *resource;

    json_object_foreach(f->all, path, resource)
        if (strncmp(path, plural, strlen(plural)) == 0 && path[strlen(plural)] == '/')
            json_array_append(json_object_get(list, "items"), resource);
    send_answer(fd, 200, list);
    json_decref(list);
}

static void answer_lease(struct fake_kube *f, int fd, const struct asked *a)
{
    const char *held = json_string_value(json_object_get(meta_of(f->lease), "resourceVersion"));
    const char *given = json_string_value(json_object_get(meta_of(a->body), "resourceVersion"));

    if (strcmp(a->method, "GET") == 0) {
        if (f->lease)
            send_answer(fd, 200, f->lease);
        else
            refuse(fd, 404, "there is no lease");
        return;
    }
    if (f->lease && (!given || strcmp(given, held) != 0)) {
        refuse(fd, 409, "the lease has changed");
        return;
    }
    json_decref(f->lease);
    f->lease = json_incref(a->body);
    set_version(f, f->lease);
    send_answer(fd, 200, f->lease);
}

/* Server-side apply of a spec, with its metadata. */
static void apply(struct fake_kube *f, int fd, const char *path, const struct asked *a)
{
    bool is_forced = strstr(a->query, "force=true") != NULL;
    json_t *resource = json_object_get(f->all, path);
    const json_t *meta = meta_of(a->body);
    bool is_new = !resource;
    const char *field;
    json_t *value;

    json_object_foreach(json_object_get(a->body, "spec"), field, value) {
        const char *owner = resource ? owner_of(resource, field) : NULL;
        char text[256];

        if (!owner || is_forced ||
            json_equal(json_object_get(json_object_get(resource, "spec"), field), value))
            continue;
        (void)snprintf(text, sizeof(text),
            "Apply failed with 1 conflict: conflict with \"%s\": .spec.%s", owner, field);
        refuse(fd, 409, text);
        return;
    }
    if (is_new)
        resource = make(f, path);
    json_object_update(json_object_get(resource, "spec"), json_object_get(a->body, "spec"));
    if (!json_object_get(meta_of(resource), "annotations"))
        json_object_set_new(meta_of(resource), "annotations", json_object());
    json_object_update(
        json_object_get(meta_of(resource), "annotations"), json_object_get(meta, "annotations"));
    if (json_object_get(meta, "finalizers"))
        json_object_set(meta_of(resource), "finalizers", json_object_get(meta, "finalizers"));
    set_version(f, resource);
    tell(f, path, is_new ? "ADDED" : "MODIFIED", resource);
    send_answer(fd, 200, resource);
}

static void apply_status(struct fake_kube *f, int fd, const char *path, const struct asked *a)
{
    json_t *resource = json_object_get(f->all, path);

    if (!resource) {
        refuse(fd, 404, "there is no such resource");
        return;
    }
    if (!json_object_get(resource, "status"))
        json_object_set_new(resource, "status", json_object());
    json_object_update(json_object_get(resource, "status"), json_object_get(a->body, "status"));
    set_version(f, resource);
    tell(f, path, "MODIFIED", resource);
    send_answer(fd, 200, resource);
}

/* Finalizers are given back. */
static void release(struct fake_kube *f, int fd, const char *path, const struct asked *a)
{
    json_t *resource = json_incref(json_object_get(f->all, path));

    if (!resource) {
        refuse(fd, 404, "there is no such resource");
        return;
    }
    json_object_set(
        meta_of(resource), "finalizers", json_object_get(meta_of(a->body), "finalizers"));
    remove_if_free(f, path, resource);
    send_answer(fd, 200, resource);
    json_decref(resource);
}

static void remove_resource(struct fake_kube *f, int fd, const char *path)
{
    json_t *resource = json_incref(json_object_get(f->all, path));

    if (!resource) {
        refuse(fd, 404, "there is no such resource");
        return;
    }
    json_object_set_new(meta_of(resource), "deletionTimestamp", json_string("now"));
    remove_if_free(f, path, resource);
    send_answer(fd, 200, resource);
    json_decref(resource);
}

static void begin_watch(struct connection *c, const char *plural)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";

    (void)snprintf(c->watched, sizeof(c->watched), "%s", plural);
    (void)!write(c->fd, head, strlen(head));
}

/* True: the connection stays. */
static bool answer(struct fake_kube *f, struct connection *c, struct asked *a)
{
    char *path = a->path + strlen(GROUP);
    char *rest;

    if (strncmp(a->path, LEASES, strlen(LEASES)) == 0) {
        answer_lease(f, c->fd, a);
    } else if (strcmp(a->path, "/api/v1/namespaces/weft/events") == 0) {
        json_array_append(f->events, a->body);
        send_answer(c->fd, 201, a->body);
    } else if (strncmp(a->path, GROUP, strlen(GROUP)) != 0) {
        refuse(c->fd, 404, "nobody knows that path");
    } else if (!strchr(path, '/') && strstr(a->query, "watch=true")) {
        begin_watch(c, path);
        return true;
    } else if (!strchr(path, '/')) {
        send_list(f, c->fd, path);
    } else if (strcmp(a->method, "DELETE") == 0) {
        remove_resource(f, c->fd, path);
    } else if ((rest = strstr(path, "/status"))) {
        *rest = '\0';
        apply_status(f, c->fd, path, a);
    } else if (json_object_get(a->body, "spec") || json_object_get(a->body, "kind")) {
        apply(f, c->fd, path, a);
    } else {
        release(f, c->fd, path, a);
    }
    return false;
}

/* ---- the thread -------------------------------------------------------------------------------
 */

/* Is a whole request there? */
static bool parse(const struct connection *c, struct asked *a)
{
    const char *end = strstr(c->space, "\r\n\r\n");
    const char *length = strstr(c->space, "Content-Length: ");
    size_t n = length && length < end ? strtoul(length + 16, NULL, 10) : 0;
    const char *target = c->space + strcspn(c->space, " ") + 1;
    size_t path_len = strcspn(target, "? ");
    const char *query = target[path_len] == '?' ? target + path_len + 1 : "";

    if (!end || c->len < (size_t)(end + 4 - c->space) + n)
        return false;
    *a = (struct asked){.body = NULL};
    (void)snprintf(a->method, sizeof(a->method), "%.*s", (int)(strcspn(c->space, " ")), c->space);
    (void)snprintf(a->query, sizeof(a->query), "%.*s", (int)strcspn(query, " "), query);
    (void)snprintf(a->path, sizeof(a->path), "%.*s", (int)path_len, target);
    a->body = n > 0 ? json_loadb(end + 4, n, 0, NULL) : NULL;
    return true;
}

static void end_connection(struct connection *c)
{
    (void)close(c->fd);
    free(c->space);
    *c = (struct connection){.fd = -1};
}

static void take(struct fake_kube *f, struct connection *c)
{
    ssize_t n = read(c->fd, c->space + c->len, REQUEST_MAX - 1 - c->len);
    struct asked a;

    if (n <= 0) {
        end_connection(c);
        return;
    }
    c->len += (size_t)n;
    c->space[c->len] = '\0';
    if (c->watched[0] || !parse(c, &a))
        return;
    if (!answer(f, c, &a))
        end_connection(c);
    json_decref(a.body);
}

static void accept_one(struct fake_kube *f)
{
    int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);

    for (unsigned i = 0; fd >= 0 && i < CONNECTIONS_MAX; i++)
        if (f->connections[i].fd < 0) {
            f->connections[i].fd = fd;
            f->connections[i].space = malloc(REQUEST_MAX);
            return;
        }
    (void)close(fd);
}

static void *serve(void *arg)
{
    struct fake_kube *f = arg;
    bool is_ending = false;

    while (!is_ending) {
        struct pollfd all[CONNECTIONS_MAX + 1];

        for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
            all[i] = (struct pollfd){.fd = f->connections[i].fd, .events = POLLIN};
        all[CONNECTIONS_MAX] = (struct pollfd){.fd = f->listener, .events = POLLIN};
        (void)poll(all, CONNECTIONS_MAX + 1, 20);
        (void)pthread_mutex_lock(&f->lock);
        for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
            if (all[i].fd >= 0 && all[i].revents)
                take(f, &f->connections[i]);
        if (all[CONNECTIONS_MAX].revents)
            accept_one(f);
        is_ending = f->is_ending;
        (void)pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

struct fake_kube *fake_kube_start(void)
{
    struct fake_kube *f = calloc(1, sizeof(*f));
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    assert_non_null(f);
    f->all = json_object();
    f->events = json_array();
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
        f->connections[i].fd = -1;
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(f->listener, 16), 0);
    assert_int_equal(getsockname(f->listener, (struct sockaddr *)&at, &len), 0);
    f->port = ntohs(at.sin_port);
    (void)pthread_mutex_init(&f->lock, NULL);
    assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
    return f;
}

void fake_kube_stop(struct fake_kube *f)
{
    (void)pthread_mutex_lock(&f->lock);
    f->is_ending = true;
    (void)pthread_mutex_unlock(&f->lock);
    assert_int_equal(pthread_join(f->thread, NULL), 0);
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
        if (f->connections[i].fd >= 0)
            end_connection(&f->connections[i]);
    (void)close(f->listener);
    (void)pthread_mutex_destroy(&f->lock);
    json_decref(f->all);
    json_decref(f->lease);
    json_decref(f->events);
    free(f);
}

/* ---- for tests --------------------------------------------------------------------------------
 */

void fake_kube_write_config(const struct fake_kube *f, const char *path)
{
    FILE *out = fopen(path, "we");

    assert_non_null(out);
    (void)fprintf(out,
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
        "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
        "users: [{name: u, user: {token: t}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u, namespace: weft}}]\n",
        f->port);
    (void)fclose(out);
}

json_t *fake_kube_get(struct fake_kube *f, const char *path)
{
    json_t *copy;

    (void)pthread_mutex_lock(&f->lock);
    copy = json_deep_copy(json_object_get(f->all, path));
    (void)pthread_mutex_unlock(&f->lock);
    return copy;
}

void fake_kube_put(struct fake_kube *f, const char *path, const char *manager, json_t *spec)
{
    json_t *fields = json_object();
    const char *field;
    json_t *resource;
    json_t *value;
    char key[64];
    bool is_new;

    (void)pthread_mutex_lock(&f->lock);
    resource = json_object_get(f->all, path);
    is_new = !resource;
    if (is_new)
        resource = make(f, path);
    json_object_foreach(spec, field, value) {
        (void)snprintf(key, sizeof(key), "f:%s", field);
        json_object_set_new(fields, key, json_object());
    }
    json_object_update(json_object_get(resource, "spec"), spec);
    json_object_set_new(meta_of(resource), "managedFields",
        json_pack("[{s:s, s:s, s:{s:o}}]", "manager", manager, "time", "2026-01-01T00:00:00Z",
            "fieldsV1", "f:spec", fields));
    set_version(f, resource);
    tell(f, path, is_new ? "ADDED" : "MODIFIED", resource);
    (void)pthread_mutex_unlock(&f->lock);
    json_decref(spec);
}

void fake_kube_delete(struct fake_kube *f, const char *path)
{
    json_t *resource;

    (void)pthread_mutex_lock(&f->lock);
    resource = json_incref(json_object_get(f->all, path));
    assert_non_null(resource);
    json_object_set_new(meta_of(resource), "deletionTimestamp", json_string("now"));
    remove_if_free(f, path, resource);
    json_decref(resource);
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_kube_drop(struct fake_kube *f, const char *path)
{
    json_t *resource;

    (void)pthread_mutex_lock(&f->lock);
    resource = json_incref(json_object_get(f->all, path));
    assert_non_null(resource);
    json_object_del(meta_of(resource), "finalizers");
    remove_if_free(f, path, resource);
    json_decref(resource);
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_kube_hold(struct fake_kube *f, const char *holder)
{
    (void)pthread_mutex_lock(&f->lock);
    json_decref(f->lease);
    f->lease = json_pack("{s:{}, s:{s:s, s:i}}", "metadata", "spec", "holderIdentity", holder,
        "leaseTransitions", 3);
    set_version(f, f->lease);
    (void)pthread_mutex_unlock(&f->lock);
}

const char *fake_kube_holder(struct fake_kube *f)
{
    static char holder[256];
    const char *text;

    (void)pthread_mutex_lock(&f->lock);
    text = json_string_value(json_object_get(json_object_get(f->lease, "spec"), "holderIdentity"));
    (void)snprintf(holder, sizeof(holder), "%s", text ? text : "");
    (void)pthread_mutex_unlock(&f->lock);
    return holder;
}

bool fake_kube_has_event(struct fake_kube *f, const char *reason, const char *words)
{
    const json_t *event;
    bool is_it = false;
    size_t i;

    (void)pthread_mutex_lock(&f->lock);
    json_array_foreach(f->events, i, event)
        is_it |= strcmp(json_string_value(json_object_get(event, "reason")), reason) == 0 &&
                 strstr(json_string_value(json_object_get(event, "message")), words);
    (void)pthread_mutex_unlock(&f->lock);
    return is_it;
}
