/* cluster_watch.c - see cluster_watch.h. */
#include "agent/cluster/cluster_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "backends/kubernetes/kube_client.h"
#include "base/containers.h"
#include "base/err.h"
#include "os/clock.h"
#include "os/worker.h"

#define PAGE      500 /* resources of one answer */
#define ASK_NS    (2 * NSEC_PER_SEC)
#define WAIT_MS   1000
#define SETTLE_NS (1 * NSEC_PER_SEC) /* a watch that has been open for so long was taken */
#define TOKEN_MAX 512                /* bytes of what continues a list */
#define PATH_CAP  1024

/** What the thread has for the loop. */
struct message {
    struct list link;
    bool is_change;           /* else it is @event */
    bool is_heard;            /* of a change */
    struct err why;           /* likewise */
    struct watch_event event; /* owns */
    json_t *kept;             /* owns; NULL: none */
};

/** The watch of one kind; the thread's. */
struct follower {
    struct cluster_watch *cw; /* pins */
    const struct object_kind *kind;
    struct remote_http_stream *stream;     /* owns; NULL: to be opened */
    char version[CLUSTER_VERSION_MAX + 1]; /* from which to go on */
    bool has_failed;                       /* a line has said so, or could not be read */
    struct err why;
};

struct cluster_watch {
    /* Immutable after the start. */
    struct cluster_self self;
    struct cluster_listener listener;
    uv_poll_t arrived;     /* messages have; is there once the worker is */
    struct worker *worker; /* owns; its loop watches; NULL: it did not start */

    /* The thread's. */
    struct kube_client client;
    struct follower followers[CLUSTER_KINDS];
    json_t *network;   /* owns: the Network as it was taken last; NULL: never */
    bool has_to_list;  /* everything is to be listed */
    bool has_said;     /* the loop has been told whether the API answers: */
    bool is_heard;     /* this */
    nsec_t settles_at; /* when all watches have been open for long enough, if they are answered */
    struct remote_http_backoff backoff;
};

/* ---- to the loop ----------------------------------------------------------------------------- */

static void message_free(struct message *m)
{
    watch_event_deinit(&m->event);
    json_decref(m->kept);
    free(m);
}

static void message_drop(struct list *link)
{
    message_free(container_of(link, struct message, link));
}

/* @ev and @kept are taken. Without memory everything is listed again, later. */
static void tell_event(struct cluster_watch *cw, struct watch_event *ev, json_t *kept)
{
    struct message *m = calloc(1, sizeof(*m));

    if (m) {
        m->event = *ev;
        m->kept = kept;
        *ev = (struct watch_event)WATCH_EVENT_NULL;
        worker_finish(cw->worker, &m->link);
        return;
    }
    cw->has_to_list = true;
    watch_event_deinit(ev);
    json_decref(kept);
}

static void tell_change(struct cluster_watch *cw, bool is_heard, const struct err *why)
{
    struct message *m;

    if (cw->has_said && cw->is_heard == is_heard)
        return;
    m = calloc(1, sizeof(*m));
    if (!m)
        return;
    m->is_change = true;
    m->is_heard = is_heard;
    if (why)
        m->why = *why;
    cw->has_said = true;
    cw->is_heard = is_heard;
    worker_finish(cw->worker, &m->link);
}

static void on_arrived(uv_poll_t *arrived, int status, int events)
{
    struct cluster_watch *cw = arrived->data;
    const struct cluster_listener *to = &cw->listener;
    struct list *link;

    while ((link = worker_collect(cw->worker))) {
        struct message *m = container_of(link, struct message, link);

        if (m->is_change)
            to->on_change(to->ctx, m->is_heard, err_text(&m->why));
        else
            to->on_event(to->ctx, &m->event, m->kept);
        message_free(m);
    }
}

/* ---- lists ----------------------------------------------------------------------------------- */

/** Everything that was listed, as the members of a snapshot. */
struct listing {
    json_t *network;              /* owns; NULL: not seen */
    json_t *lists[CLUSTER_KINDS]; /* own: of objects */
    json_t *kept;                 /* owns: by kind, arrays of names */
};

static const char *path_of(const struct cluster_watch *cw, const struct object_kind *kind,
    const char *query, char buf[static PATH_CAP])
{
    (void)snprintf(buf, PATH_CAP, "/apis/" KUBE_API "/namespaces/%s/%s?%s",
        cw->client.config.namespace, kind->plural, query);
    return buf;
}

/* @object is taken. */
static void take_object(
    struct listing *l, size_t i, enum cluster_verdict verdict, const char *name, json_t *object)
{
    const struct object_kind *kind = cluster_kinds[i];

    if (verdict == CLUSTER_KEPT) {
        json_t *names = json_object_get(l->kept, kind->plural);

        if (!names && json_object_set_new(l->kept, kind->plural, json_array()) == 0)
            names = json_object_get(l->kept, kind->plural);
        (void)json_array_append_new(names, json_string(name));
    } else if (kind->is_network) {
        json_decref(l->network);
        l->network = object;
    } else {
        (void)json_array_append_new(l->lists[i], object);
    }
}

static void take_page(
    struct listing *l, size_t i, const struct cluster_self *self, const json_t *items)
{
    const json_t *item;
    size_t k;

    json_array_foreach(items, k, item) {
        char name[OBJECT_NAME_MAX + 1];
        json_t *object = NULL;
        enum cluster_verdict verdict = cluster_object(cluster_kinds[i], self, item, &object, name);

        if (verdict == CLUSTER_TAKEN || verdict == CLUSTER_KEPT)
            take_object(l, i, verdict, name, object);
    }
}

/* What continues a list goes into a URL. */
static int take_continue(char ret[static TOKEN_MAX], const json_t *page, struct err *e)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(page, "metadata"), "continue"));
    size_t len = text ? strlen(text) : 0;

    if (len >= TOKEN_MAX || (len > 0 && strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz"
                                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.=") != len))
        return err_set(e, -EINVAL, "the API server's list cannot be continued: \"%.40s\"", text);
    memcpy(ret, len > 0 ? text : "", len + 1);
    return 0;
}

static int list_kind(struct cluster_watch *cw, size_t i, struct listing *l, struct err *e)
{
    char token[TOKEN_MAX] = "";
    int r;

    do {
        char query[TOKEN_MAX + 64];
        char path[PATH_CAP];
        struct kube_request rq = {.method = "GET"};
        json_t *page = NULL;

        (void)snprintf(
            query, sizeof(query), "limit=%d%s%s", PAGE, token[0] ? "&continue=" : "", token);
        rq.path = path_of(cw, cluster_kinds[i], query, path);
        r = kube_client_ask(&cw->client, &rq, clock_now() + ASK_NS, &page, e);
        if (r == 0)
            r = cluster_version(cw->followers[i].version, page, e);
        if (r == 0)
            r = take_continue(token, page, e);
        if (r == 0)
            take_page(l, i, &cw->self, json_object_get(page, "items"));
        json_decref(page);
    } while (r == 0 && token[0] != '\0');
    return r;
}

/* Hands the snapshot on. */
static int take_listing(struct cluster_watch *cw, struct listing *l, struct err *e)
{
    struct watch_event ev = WATCH_EVENT_NULL;
    json_t *json;
    int r;

    if (l->network) {
        json_decref(cw->network);
        cw->network = json_incref(l->network);
    }
    if (!cw->network)
        return err_set(e, -ENOENT, "the namespace \"%s\" has no Network \"%s\" of a hub's",
            cw->client.config.namespace, cw->self.network);
    json =
        json_pack("{s:i, s:s, s:O}", "revision", 0, "self", cw->self.node, "network", cw->network);
    for (size_t i = 1; i < CLUSTER_KINDS; i++)
        if (json_object_set(json, cluster_kinds[i]->list, l->lists[i]) != 0) {
            json_decref(json);
            return err_set(e, -ENOMEM, "no memory for a list");
        }
    r = snapshot_decode(&ev.snapshot, json, &ev.skips, e);
    json_decref(json);
    if (r != 0)
        return err_prefix(e, "what the namespace \"%s\" has", cw->client.config.namespace);
    ev.kind = WATCH_EVENT_SNAPSHOT;
    for (size_t i = 0; i < ev.snapshot.nodes.n; i++)
        if (ev.snapshot.revision < ev.snapshot.nodes.items[i]->meta.resource_version)
            ev.snapshot.revision = ev.snapshot.nodes.items[i]->meta.resource_version;
    tell_event(cw, &ev, json_incref(l->kept));
    return 0;
}

static int list_all(struct cluster_watch *cw, struct err *e)
{
    struct listing l = {.kept = json_object()};
    int r = l.kept ? 0 : err_set(e, -ENOMEM, "no memory for a list");

    for (size_t i = 0; i < CLUSTER_KINDS && r == 0; i++) {
        l.lists[i] = json_array();
        r = l.lists[i] ? list_kind(cw, i, &l, e) : err_set(e, -ENOMEM, "no memory for a list");
    }
    if (r == 0)
        r = take_listing(cw, &l, e);
    json_decref(l.network);
    json_decref(l.kept);
    for (size_t i = 0; i < CLUSTER_KINDS; i++)
        json_decref(l.lists[i]);
    return r;
}

/* ---- watches --------------------------------------------------------------------------------- */

static void on_line(void *ctx, const char *line, size_t len)
{
    struct follower *f = ctx;
    struct cluster_line l = CLUSTER_LINE_NULL;

    if (f->has_failed || f->cw->has_to_list)
        return;
    if (cluster_line_decode(&l, f->kind, &f->cw->self, line, len, &f->why) != 0) {
        /* What it said is not known, so all is asked anew. */
        f->cw->has_to_list = true;
        return;
    }
    if (l.version[0] != '\0')
        memcpy(f->version, l.version, sizeof(f->version));
    f->has_failed = l.kind == CLUSTER_LINE_FAILED;
    f->cw->has_to_list |= l.kind == CLUSTER_LINE_OLD;
    if (l.kind == CLUSTER_LINE_EVENT)
        tell_event(f->cw, &l.event, NULL);
    cluster_line_deinit(&l);
}

static int open_watch(struct cluster_watch *cw, struct follower *f, struct err *e)
{
    char query[CLUSTER_VERSION_MAX + 64];
    char path[PATH_CAP];

    f->has_failed = false;
    cw->settles_at = clock_now() + SETTLE_NS;
    (void)snprintf(
        query, sizeof(query), "watch=true&allowWatchBookmarks=true&resourceVersion=%s", f->version);
    return kube_client_open(
        &cw->client, path_of(cw, f->kind, query, path), on_line, f, &f->stream, e);
}

/* Has the watch ended? Then it is closed. 0: it goes on, or is to be opened again; or non-zero with
 * words. */
static int look_at(struct cluster_watch *cw, struct follower *f, struct err *e)
{
    struct remote_http_end end;
    int r = 0;

    if (!f->stream)
        return 0;
    if (!remote_http_has_ended(f->stream, &end, e)) {
        if (!f->has_failed)
            return 0;
        *e = f->why;
        r = -EIO;
    } else if (end.r != 0) {
        r = -EIO;
    } else if (end.status == 410) {
        cw->has_to_list = true;
    } else if (end.status != 200) {
        r = err_set(
            e, -EIO, "the API server answers a watch with %d: %.200s", end.status, end.answer);
    }
    f->stream = remote_http_close(f->stream);
    return r;
}

static bool are_answered(const struct cluster_watch *cw)
{
    for (size_t i = 0; i < CLUSTER_KINDS; i++)
        if (!cw->followers[i].stream || !remote_http_is_answered(cw->followers[i].stream))
            return false;
    return true;
}

static void close_watches(struct cluster_watch *cw)
{
    for (size_t i = 0; i < CLUSTER_KINDS; i++)
        cw->followers[i].stream = remote_http_close(cw->followers[i].stream);
}

/* One round: list if that is due, and see that all watches are open. 0, or non-zero with words. */
static int follow(struct cluster_watch *cw, struct err *e)
{
    int r = 0;

    /* All of them: watches that end together are one failure. */
    for (size_t i = 0; i < CLUSTER_KINDS; i++)
        if (look_at(cw, &cw->followers[i], e) != 0)
            r = -EIO;
    if (r == 0 && cw->has_to_list) {
        close_watches(cw);
        r = list_all(cw, e);
        cw->has_to_list = r != 0;
        if (r == 0)
            tell_change(cw, true, NULL);
    }
    for (size_t i = 0; i < CLUSTER_KINDS && r == 0; i++)
        if (!cw->followers[i].stream)
            r = open_watch(cw, &cw->followers[i], e);
    return r;
}

static void run(struct worker *w, void *ctx)
{
    const struct rng rng = rng_kernel();
    struct cluster_watch *cw = ctx;

    while (!worker_is_ending(w)) {
        struct err e = ERR_NULL;
        unsigned wait_ms = WAIT_MS;

        if (follow(cw, &e) != 0) {
            tell_change(cw, false, &e);
            wait_ms = remote_http_backoff_next(&cw->backoff, &rng);
        } else if (clock_now() >= cw->settles_at && are_answered(cw)) {
            tell_change(cw, true, NULL);
            cw->backoff = (struct remote_http_backoff){0};
        }
        remote_http_wait(cw->client.http, worker_fd(w), wait_ms);
    }
    close_watches(cw);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void release(struct cluster_watch *cw)
{
    kube_client_deinit(&cw->client);
    json_decref(cw->network);
    free(cw);
}

static void on_closed(uv_handle_t *handle)
{
    release(handle->data);
}

int cluster_watch_new(struct cluster_watch **ret, struct uv_loop_s *loop, const char *where,
    const struct cluster_self *self, const struct cluster_listener *listener, struct err *e)
{
    struct cluster_watch *cw = calloc(1, sizeof(*cw));
    const struct worker_config config = {
        .name = "cluster", .loop = run, .drop = message_drop, .ctx = cw};
    int r;

    if (!cw)
        return err_set(e, -ENOMEM, "no memory for a watch");
    cw->self = *self;
    cw->listener = *listener;
    cw->client = (struct kube_client)KUBE_CLIENT_NULL;
    cw->has_to_list = true;
    for (size_t i = 0; i < CLUSTER_KINDS; i++)
        cw->followers[i] = (struct follower){.cw = cw, .kind = cluster_kinds[i]};
    r = kube_client_init(&cw->client, where, e);
    if (r == 0) {
        r = worker_start(&cw->worker, &config);
        if (r != 0)
            (void)err_set(e, r, "no thread for a watch: %s", strerror(-r));
    }
    if (r != 0) {
        release(cw);
        return r;
    }
    (void)uv_poll_init(loop, &cw->arrived, worker_done_fd(cw->worker));
    cw->arrived.data = cw;
    (void)uv_poll_start(&cw->arrived, UV_READABLE, on_arrived);
    *ret = cw;
    return 0;
}

struct cluster_watch *cluster_watch_free(struct cluster_watch *cw)
{
    if (!cw)
        return NULL;
    uv_close((uv_handle_t *)&cw->arrived, on_closed);
    cw->worker = worker_stop(cw->worker);
    return NULL;
}
