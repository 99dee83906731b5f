/* writer.c - see writer.h. */
#include "writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/handlers/handlers.h"
#include "hub/resources/projection.h"
#include "hub/resources/resource_api.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/worker.h"

/* ---- mail ------------------------------------------------------------------------------------ */

struct mail *mail_new(
    enum mail_what what, const struct object_kind *kind, const char *name, int status, json_t *json)
{
    struct mail *m = calloc(1, sizeof(*m));

    if (!m) {
        json_decref(json);
        return NULL;
    }
    *m = (struct mail){.what = what, .kind = kind, .status = status, .json = json};
    (void)snprintf(m->name, sizeof(m->name), "%s", name ? name : "");
    list_init(&m->link);
    return m;
}

void mail_free(struct mail *m)
{
    if (!m)
        return;
    json_decref(m->json);
    free(m->text);
    free(m);
}

static void mail_drop(struct list *link)
{
    mail_free(container_of(link, struct mail, link));
}

/* ---- reading the resources of one kind ------------------------------------------------------- */

void kind_watch_forget(struct kind_watch *k)
{
    k->stream = remote_http_close(k->stream);
    k->version[0] = '\0';
    k->is_over = false;
}

static void note_version(struct kind_watch *k, const json_t *meta)
{
    const char *version = json_string_value(json_object_get(meta, "resourceVersion"));

    if (version)
        (void)snprintf(k->version, sizeof(k->version), "%s", version);
}

/* An event of a watch. */
static void on_line(void *ctx, const char *line, size_t len)
{
    struct kind_watch *k = ctx;
    json_t *json = json_loadb(line, len, 0, NULL);
    const json_t *object = json_object_get(json, "object");
    const json_t *meta = json_object_get(object, "metadata");
    const char *type = json_string_value(json_object_get(json, "type"));
    const char *name = json_string_value(json_object_get(meta, "name"));

    if (!type || strcmp(type, "ERROR") == 0) {
        /* 410, or anything else: what the watch began from cannot be gone on from. */
        k->is_over = true;
        k->version[0] = '\0';
    } else {
        note_version(k, meta);
        if (strcmp(type, "DELETED") == 0 && name)
            projection_gone(k->projection, k->kind, name);
        else if (strcmp(type, "BOOKMARK") != 0)
            (void)projection_saw(k->projection, k->kind, object);
    }
    json_decref(json);
}

/* All resources of the kind, in pages. */
static int read_list(struct kind_watch *k, struct err *e)
{
    char more[RESOURCE_API_MORE_MAX] = "";
    json_t *page = NULL;
    json_t *one;
    size_t i;
    int r;

    projection_list_begin(k->projection, k->kind);
    do {
        r = resource_api_list(k->api, k->kind, more, &page, e);
        if (r != 0)
            return r;
        json_array_foreach(json_object_get(page, "items"), i, one)
            (void)projection_saw(k->projection, k->kind, one);
        if (!resource_api_more(page, more))
            note_version(k, json_object_get(page, "metadata"));
        json_decref(page);
        page = NULL;
    } while (more[0]);
    projection_list_end(k->projection, k->kind);
    return 0;
}

int kind_watch_tend(struct kind_watch *k, nsec_t now, struct err *e)
{
    struct remote_http_end end = {.status = 0};
    int r = 0;

    if (k->stream && !k->is_over && !remote_http_has_ended(k->stream, &end, e))
        return 0;
    /* A watch that never began, or that the server refused, is not opened again at once. */
    if (k->stream && (end.r != 0 || (end.status != 0 && end.status != 200)))
        k->failed_at = now;
    if (end.status == 410)
        k->version[0] = '\0';
    k->stream = remote_http_close(k->stream);
    k->is_over = false;
    if (k->failed_at && now - k->failed_at < KIND_WATCH_PAUSE)
        return 0;
    k->failed_at = 0;
    if (k->version[0] == '\0')
        r = read_list(k, e);
    if (r == 0)
        r = resource_api_watch(k->api, k->kind, k->version, on_line, k, &k->stream, e);
    if (r != 0) {
        k->version[0] = '\0';
        k->failed_at = now;
    }
    return r;
}

/* ---- the thread that writes ------------------------------------------------------------------ */

#define AWAY_NS    (1 * NSEC_PER_SEC)  /* pause when the server does not answer */
#define REFUSED_NS (30 * NSEC_PER_SEC) /* and when it refuses all of it */
#define WAIT_MS    500

struct writer {
    struct resource_counts *counts; /* pins */
    struct worker *worker;          /* owns; takes mail and writes; NULL: it did not start */

    /* The thread's. */
    struct kube_client api;
    struct leader leader;
    struct projection projection;
    struct kind_watch kinds[OBJECT_KINDS_MAX];
    bool was_leading;
    unsigned n_terms;       /* how often that has changed */
    nsec_t pause_until;     /* nothing is asked before */
    bool has_complained;    /* the log has the reason for the pause */
    struct log_limit limit; /* of what the log says about single resources */
};

/* ---- pausing and telling -------------------------------------------------------------------- */

/* Nothing works: pause, and say why, once. */
static void pause_for(struct writer *w, int r, const struct err *e)
{
    bool is_away = r == KUBE_E_AWAY || r == KUBE_E_LOST;

    w->pause_until = clock_now() + (is_away ? AWAY_NS : REFUSED_NS);
    if (!is_away && !w->has_complained) {
        log_warning(
            "networks, nodes and edges are not shown as resources of Kubernetes: %s", err_text(e));
        w->has_complained = true;
    }
}

static void tell_loop(struct writer *w, struct mail *m)
{
    if (m)
        worker_finish(w->worker, &m->link);
}

/* ---- the Lease ------------------------------------------------------------------------------- */

static int write_lease(struct writer *w, bool is_end, struct err *e)
{
    bool is_new = w->leader.version[0] == '\0';
    nsec_t began_at = clock_now();
    char wall[RESOURCE_API_TIME_MAX];
    json_t *body = leader_lease(&w->leader, resource_api_time(wall, true), is_end);
    json_t *answer = NULL;
    int r = resource_api_write_lease(&w->api, body, is_new, &answer, e);

    json_decref(body);
    if (r == 0)
        leader_wrote(&w->leader, answer, began_at);
    json_decref(answer);
    return r;
}

static void tend_lease(struct writer *w, nsec_t now)
{
    struct err e = ERR_NULL;
    json_t *lease = NULL;
    int r;

    if (w->leader.looked_at && now < w->leader.looked_at + LEADER_EVERY)
        return;
    r = resource_api_read_lease(&w->api, &lease, &e);
    if (r == 0 || r == KUBE_E_ABSENT) {
        leader_saw(&w->leader, lease, now);
        r = leader_may_write(&w->leader, now) ? write_lease(w, false, &e) : 0;
    }
    json_decref(lease);
    /* Another hub was quicker. */
    if (r != 0 && r != KUBE_E_EXISTS)
        pause_for(w, r, &e);
}

static void forget_all(struct writer *w)
{
    for (unsigned i = 0; object_kinds[i]; i++)
        kind_watch_forget(&w->kinds[i]);
    projection_reset(&w->projection);
}

/* Is this hub the one that writes? What changes with that is done here. */
static bool lead(struct writer *w, nsec_t now)
{
    bool is_leading = leader_is_leading(&w->leader, now);

    if (is_leading == w->was_leading)
        return is_leading;
    forget_all(w);
    w->was_leading = is_leading;
    atomic_store(&w->counts->is_leading, is_leading);
    if (is_leading)
        log_info("this hub shows networks, nodes and edges as resources of Kubernetes");
    else
        log_info("another hub shows networks, nodes and edges as resources of Kubernetes");
    w->n_terms++;
    tell_loop(
        w, mail_new(is_leading ? MAIL_TELL_ALL : MAIL_QUIET, NULL, NULL, (int)w->n_terms, NULL));
    return is_leading;
}

/* ---- what people are shown ------------------------------------------------------------------- */

/* An Event of the resource; without the right to make one it is only in the log. */
static void show(
    struct writer *w, const struct projection_item *item, const char *reason, const char *text)
{
    const struct resource_event event = {.kind = item->kind,
        .name = item->name,
        .uid = item->seen.uid,
        .reason = reason,
        .text = text};
    struct err e = ERR_NULL;

    log_limited(&w->limit, clock_now(), LOG_LEVEL_WARNING, "Kubernetes' %s \"%s\", by \"%s\": %s",
        item->kind->name, item->name, item->seen.by[0] ? item->seen.by : "somebody", text);
    if (resource_api_add_event(&w->api, &event, &e) != 0)
        log_limited(&w->limit, clock_now(), LOG_LEVEL_INFO, "an event is not in Kubernetes: %s",
            err_text(&e));
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *version_of(const json_t *answer)
{
    const json_t *meta = json_object_get(answer, "metadata");

    return json_string_value(json_object_get(meta, "resourceVersion"));
}

static void fail(struct writer *w, struct projection_item *item, const struct err *e)
{
    atomic_fetch_add(&w->counts->n_failed, 1);
    log_limited(&w->limit, clock_now(), LOG_LEVEL_WARNING,
        "Kubernetes' %s \"%s\" is not written: %s", item->kind->name, item->name, err_text(e));
    projection_failed(&w->projection, item, clock_now());
}

/* Apply the item. @ret_clash: fields of others stay as they are. */
static int apply_once(struct writer *w, const struct projection_item *item,
    enum resource_yield yield, bool by_force, bool *ret_clash, json_t **ret, struct err *e)
{
    json_t *body =
        resource_apply(item->kind, item->name, &item->want, &item->seen, yield, ret_clash);
    int r;

    if (!body)
        return err_set(e, -ENOMEM, "no memory for a resource");
    r = resource_api_apply(&w->api, item->kind, item->name, body, by_force, ret, e);
    json_decref(body);
    return r;
}

static void apply(struct writer *w, struct projection_item *item, enum resource_yield yield)
{
    struct err clash = ERR_NULL;
    struct err e = ERR_NULL;
    json_t *answer = NULL;
    bool is_left = false;
    int r;

    /* What is made anew has no status, and the hub may have told it long ago. */
    if (!item->seen.is_there && item->want.spec && !item->status)
        tell_loop(w, mail_new(MAIL_TELL, item->kind, item->name, 0, NULL));
    r = apply_once(w, item, yield, false, &is_left, &answer, &e);
    if (resource_api_clash(r, &e)) {
        (void)err_set(&clash, 0, "%s", resource_api_clash(r, &e));
        r = apply_once(w, item, RESOURCE_YIELD_ALL, false, &is_left, &answer, &e);
    }
    /* Now nothing of the spec is applied that others own: it is about the hub's annotations. */
    if (resource_api_clash(r, &e))
        r = apply_once(w, item, RESOURCE_YIELD_ALL, true, &is_left, &answer, &e);
    if (r != 0) {
        fail(w, item, &e);
        return;
    }
    if (!err_text(&clash)[0])
        (void)err_set(&clash, 0, "\"%s\" owns a field that is not as the hub has it",
            item->seen.by[0] ? item->seen.by : "somebody");
    if (is_left && projection_clash(item, err_text(&clash))) {
        atomic_fetch_add(&w->counts->n_conflicts, 1);
        show(w, item, "Conflict", err_text(&clash));
    }
    atomic_fetch_add(&w->counts->n_applied, 1);
    projection_wrote(&w->projection, item, version_of(answer), clock_now());
    json_decref(answer);
}

static void remove_resource(struct writer *w, struct projection_item *item, bool is_release)
{
    struct err e = ERR_NULL;
    json_auto_t *body = is_release
                            ? json_pack("{s:{s:O, s:s}}", "metadata", "finalizers",
                                  item->seen.finalizers, "resourceVersion", item->seen.version)
                            : NULL;
    json_t *answer = NULL;
    const char *version;
    int r = is_release ? resource_api_release(&w->api, item->kind, item->name, body, &answer, &e)
                       : resource_api_remove(
                             &w->api, item->kind, item->name, item->seen.version, &answer, &e);

    version = version_of(answer);
    /* If it is gone there is no version to wait for: the watch will tell, or has told meanwhile. */
    if (r == 0 || r == KUBE_E_ABSENT)
        projection_wrote(&w->projection, item,
            !item->seen.is_there ? NULL
            : version            ? version
                                 : "",
            clock_now());
    else
        fail(w, item, &e);
    json_decref(answer);
}

/* Parts that their writers write themselves, and that do not count: say why, and let the loop tell
 * what the hub has in their place. */
static void tell_set_aside(struct writer *w, struct projection_item *item)
{
    const struct own_parts *own = &item->seen.own_parts;
    char why[OWN_PART_WHY_MAX];

    item->is_to_tell = false;
    for (size_t i = 0; i < own->n; i++)
        if (own->items[i].is_aside)
            show(w, item, "SetAside", own_part_explain(&own->items[i], why));
    if (!item->status)
        tell_loop(w, mail_new(MAIL_TELL, item->kind, item->name, 0, NULL));
}

/* Each writer's part as that writer. No person owns a status, so it is forced. */
static void write_status(struct writer *w, struct projection_item *item)
{
    struct resource_part parts[RESOURCE_PARTS_MAX];
    json_t *answer = NULL;
    char wall[RESOURCE_API_TIME_MAX];
    struct err e = ERR_NULL;
    size_t n;
    int r = 0;

    if (item->is_to_tell)
        tell_set_aside(w, item);
    n = projection_parts(parts, item, resource_api_time(wall, false));
    for (size_t i = 0; i < n; i++) {
        if (r == 0) {
            json_decref(answer);
            answer = NULL;
            r = resource_api_apply_status(&w->api, item->kind, item->name, &parts[i], &answer, &e);
            atomic_fetch_add(&w->counts->n_status, r == 0);
        }
        resource_part_deinit(&parts[i]);
    }
    if (r == 0) {
        projection_wrote_status(item);
        projection_wrote(&w->projection, item, version_of(answer), clock_now());
    } else {
        fail(w, item, &e);
    }
    json_decref(answer);
}

/* Hand a wish to the hub. */
static void ask_hub(struct writer *w, struct projection_item *item, bool is_remove)
{
    struct mail *m = mail_new(is_remove ? MAIL_REMOVE : MAIL_PUT, item->kind, item->name, 0, NULL);
    char network[NAME_MAX_LEN + 1];
    char name[OBJECT_NAME_MAX + 1];

    if (!m || !resource_name_parse(item->kind, item->name, network, name)) {
        mail_free(m);
        projection_failed(&w->projection, item, clock_now());
        return;
    }
    /* Kubernetes does not tell who has deleted something. */
    if (!is_remove) {
        json_t *wanted = resource_request(item->kind, network, name, &item->seen);

        memcpy(m->by, item->seen.by, sizeof(m->by));
        m->json = json_deep_copy(wanted);
        json_decref(wanted);
    }
    atomic_fetch_add(&w->counts->n_requests, 1);
    projection_asked(&w->projection, item);
    tell_loop(w, m);
}

static void take_step(struct writer *w, const struct projection_step *step)
{
    switch (step->what) {
    case RESOURCE_NOTHING:
        write_status(w, step->item);
        return;
    case RESOURCE_APPLY:
        apply(w, step->item, step->yield);
        return;
    case RESOURCE_ASK_PUT:
    case RESOURCE_ASK_REMOVE:
        ask_hub(w, step->item, step->what == RESOURCE_ASK_REMOVE);
        return;
    case RESOURCE_DELETE:
    case RESOURCE_RELEASE:
        remove_resource(w, step->item, step->what == RESOURCE_RELEASE);
        return;
    }
}

/* ---- mail from the hub's loop ---------------------------------------------------------------- */

static void take_mail(struct writer *w)
{
    struct projection_item *item;
    struct list *link;

    while ((link = worker_take(w->worker))) {
        struct mail *m = container_of(link, struct mail, link);

        switch (m->what) {
        case MAIL_OBJECT:
            (void)projection_want(&w->projection, m->kind, m->name, m->json);
            break;
        case MAIL_STATUS:
            (void)projection_status(&w->projection, m->kind, m->name, m->json);
            break;
        case MAIL_ALL:
            /* Not what was on its way from a former term. */
            w->projection.is_complete |= m->status == (int)w->n_terms;
            break;
        case MAIL_KEEP:
            projection_keep_all(&w->projection, m->status != 0);
            break;
        case MAIL_ANSWER:
            item = projection_find(&w->projection, m->kind, m->name);
            if (!item || !item->is_asked ||
                !projection_judged(&w->projection, item, m->is_remove, m->status,
                    m->text ? m->text : "", m->json, clock_now()))
                break;
            atomic_fetch_add(&w->counts->n_refused, 1);
            show(w, item, item->reason, item->refused);
            break;
        case MAIL_TELL_ALL:
        case MAIL_TELL:
        case MAIL_QUIET:
        case MAIL_PUT:
        case MAIL_REMOVE:
            break;
        }
        mail_free(m);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* True: there may be more to do at once. */
static bool turn(struct writer *w, nsec_t now)
{
    struct projection_step step;
    struct err e = ERR_NULL;

    if (now < w->pause_until)
        return false;
    tend_lease(w, now);
    if (!lead(w, clock_now()))
        return false;
    for (unsigned i = 0; object_kinds[i] && clock_now() >= w->pause_until; i++) {
        int r = kind_watch_tend(&w->kinds[i], clock_now(), &e);

        if (r != 0)
            pause_for(w, r, &e);
    }
    (void)clock_text(w->projection.now, clock_wall_s());
    if (clock_now() < w->pause_until || !projection_next(&w->projection, clock_now(), &step))
        return false;
    w->has_complained = false;
    take_step(w, &step);
    return true;
}

static void run(struct worker *worker, void *ctx)
{
    struct writer *w = ctx;
    struct err e = ERR_NULL;

    while (!worker_is_ending(worker)) {
        take_mail(w);
        /* Also while there is more to do: it takes in what the watches tell. */
        remote_http_wait(w->api.http, worker_fd(worker), turn(w, clock_now()) ? 0 : WAIT_MS);
    }
    if (leader_is_leading(&w->leader, clock_now()))
        (void)write_lease(w, true, &e);
    forget_all(w);
}

int writer_start(struct writer **ret, const char *where, const char *me,
    struct resource_counts *counts, struct err *e)
{
    struct writer *w = calloc(1, sizeof(*w));
    int r;

    if (!w)
        return err_set(e, -ENOMEM, "no memory for Kubernetes' resources");
    w->counts = counts;
    projection_init(&w->projection);
    leader_init(&w->leader, me);
    for (unsigned i = 0; object_kinds[i]; i++)
        w->kinds[i] = (struct kind_watch){
            .api = &w->api, .projection = &w->projection, .kind = object_kinds[i]};
    r = kube_client_init(&w->api, where, e);
    if (r == 0) {
        r = worker_start(&w->worker,
            &(struct worker_config){.name = "resources", .loop = run, .drop = mail_drop, .ctx = w});
        if (r != 0)
            (void)err_set(e, r, "no thread for Kubernetes' resources");
    }
    if (r != 0)
        writer_stop(w);
    else
        *ret = w;
    return r;
}

void writer_put(struct writer *w, struct mail *m)
{
    if (m)
        (void)worker_put(w->worker, &m->link);
}

struct mail *writer_collect(struct writer *w)
{
    struct list *link = worker_collect(w->worker);

    return link ? container_of(link, struct mail, link) : NULL;
}

int writer_fd(const struct writer *w)
{
    return worker_done_fd(w->worker);
}

struct writer *writer_stop(struct writer *w)
{
    if (!w)
        return NULL;
    w->worker = worker_stop(w->worker);
    kube_client_deinit(&w->api);
    free(w);
    return NULL;
}
