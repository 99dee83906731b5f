/* resources.c - see resources.h. */
#include "resources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "api/content/body.h"
#include "api/server/server.h"
#include "base/err.h"
#include "hub/handlers/handlers.h"
#include "hub/model/model.h"
#include "hub/resources/resource.h"
#include "hub/resources/writer.h"
#include "hub/watch/edge_view.h"
#include "hub/watch/reports.h"
#include "os/clock.h"
#include "store/keys.h"

#define TICK_MS      1000
#define OBJECTS_MAX  1000 /* objects that are told in one tick */
#define STATUS_LOOKS 200  /* statuses that are looked at in one tick */
#define STATUS_AGAIN (5 * NSEC_PER_SEC)
#define OBSERVED_MAX 4000 /* parts of edges up to which edges that are only observed are shown */
#define ME_MAX       96

/** What was told of one object. */
struct sent {
    struct keyed keyed; /* "PLURAL/NAME" of the resource */
    const struct object_kind *kind;
    const char *name; /* of the resource; in the key */
    uint64_t revision;
    unsigned sweep;                      /* the last one that found the object */
    char status_hash[RESOURCE_HASH_MAX]; /* "": none was told */
    nsec_t status_at;                    /* when it was told */
};

/** A wish that the hub judges. */
struct judgement {
    struct list link; /* in the resources' */
    struct resources *s;
    struct deferred *deferred; /* pins, until it is closed; NULL: answered at once */
    struct mail *answer;       /* owns; its result is filled in when there is one */
    bool is_over;
};

struct resources {
    struct uv_loop_s *loop;        /* pins */
    struct handlers *h;            /* pins */
    struct writer *writer;         /* owns */
    struct resource_counts counts; /* for the metrics */
    uv_timer_t tick;
    uv_poll_t mail;    /* has come from the writer; is there while the writer is */
    uv_async_t judged; /* answers have come */
    bool has_handles;
    int term;         /* of the thread's last MAIL_TELL_ALL; 0: tell nothing */
    bool is_complete; /* everything was told since */
    bool has_damage;  /* the thread was told to keep all */
    struct keys sent; /* of struct sent */
    unsigned sweep;   /* number of the tick */
    size_t n_found;   /* objects that this tick has found */
    unsigned space;   /* objects that this tick may still tell */
    size_t cursor;    /* in @sent: whose status is next */
    struct list judgements;
};

/* ---- telling --------------------------------------------------------------------------------- */

static struct sent *sent_at(const struct resources *s, size_t i)
{
    return container_of(s->sent.items[i], struct sent, keyed);
}

/* The one of that name, made if there is none and @makes; NULL: there is none, or no memory. */
static struct sent *sent_of(
    struct resources *s, const struct object_kind *kind, const char *name, bool makes)
{
    char key[RESOURCE_NAME_MAX + 32];
    struct sent *t;

    (void)snprintf(key, sizeof(key), "%s/%s", kind->plural, name);
    t = makes ? keys_open(&s->sent, key, sizeof(*t)) : keys_find(&s->sent, key);
    if (!t)
        return NULL;
    t->kind = kind;
    t->name = t->keyed.key + strlen(kind->plural) + 1;
    return t;
}

static void forget_sent(struct resources *s)
{
    keys_free_all(&s->sent);
    s->is_complete = false;
    s->has_damage = false;
    s->cursor = 0;
}

/* As the API has it. Its status is told apart. */
static json_t *encode(const struct model_network *net, const struct object_kind *kind,
    const char *name, const struct edge_pair *pair)
{
    const struct model_object *object;
    const struct model_node *node;

    if (kind == &network_kind)
        return network_encode(&net->spec);
    if (kind == &mesh_edge_kind)
        return edge_view_object(pair, 0);
    if (kind == &node_kind)
        return (node = model_find_node(net, name)) ? node_encode(&node->spec) : NULL;
    return (object = model_find_object(net, kind, name)) ? object_encode(&object->object) : NULL;
}

/* The object is there, at that revision. */
static void find(struct resources *s, const struct model_network *net,
    const struct object_kind *kind, const struct object_meta *meta, const struct edge_pair *pair)
{
    const char *network = net->spec.meta.name;
    char name[RESOURCE_NAME_MAX + 1];
    struct sent *t;
    bool is_new;
    json_t *json;

    s->n_found++;
    t = sent_of(s, kind, resource_name(name, kind, network, meta->name), false);
    is_new = !t;
    if (t)
        t->sweep = s->sweep;
    if (t && t->revision == meta->resource_version)
        return;
    if (s->space == 0)
        return;
    json = encode(net, kind, meta->name, pair);
    if (json && is_new)
        t = sent_of(s, kind, name, true);
    if (!json || !t) {
        json_decref(json);
        return;
    }
    t->sweep = s->sweep;
    t->revision = meta->resource_version;
    s->space--;
    writer_put(s->writer, mail_new(MAIL_OBJECT, kind, t->name, 0, json));
}

static void find_pair(
    struct resources *s, const struct model_network *net, const struct edge_pair *pair)
{
    const struct node *a = &pair->nodes[0]->spec;
    const struct node *b = &pair->nodes[1]->spec;
    const struct model_edge *edge = model_find_edge(net, a->meta.name, b->meta.name);
    struct object_meta meta = {.resource_version = edge ? edge->spec.meta.resource_version : 0};

    (void)edge_name(a->meta.name, b->meta.name, meta.name);
    find(s, net, &mesh_edge_kind, &meta, pair);
}

/* Edges that somebody has said something about; in a small fleet also those that are observed. */
static void find_edges(struct resources *s, const struct model_network *net)
{
    struct edge_pairs pairs = EDGE_PAIRS_NULL;

    if (s->h->reports->n_parts <= OBSERVED_MAX) {
        (void)edge_pairs_known(&pairs, net, false);
        for (size_t i = 0; i < pairs.n; i++)
            find_pair(s, net, &pairs.items[i]);
        edge_pairs_deinit(&pairs);
        return;
    }
    for (size_t i = 0; i < net->edges.n; i++) {
        const struct model_edge *edge = model_edge_at(net, i);
        struct edge_pair pair = {.nodes = {edge->ends[0].node, edge->ends[1].node}};

        if (pair.nodes[0] && pair.nodes[1])
            find_pair(s, net, &pair);
    }
}

/* Does the model keep them as they are? */
static bool is_plain(const struct object_kind *kind)
{
    return kind != &network_kind && kind != &node_kind && kind != &mesh_edge_kind;
}

/* All of these kinds. */
static void find_plain(struct resources *s, const struct model_network *net)
{
    for (size_t k = 0; object_kinds[k]; k++) {
        const struct object *o;
        size_t i = 0;

        while (is_plain(object_kinds[k]) && (o = model_each_object(net, object_kinds[k], &i)))
            find(s, net, object_kinds[k], &o->meta, NULL);
    }
}

/* An object that is set aside because its record is damaged is not gone. */
static bool has_damage(const struct model *m)
{
    static const enum record_kind kinds[] = {RECORD_NETWORK, RECORD_NODE, RECORD_EDGE};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (damaged_find_below(&m->damaged, record_prefix(kinds[i])))
            return true;
    for (size_t i = 0; object_kinds[i]; i++)
        if (damaged_find_below(&m->damaged, object_kinds[i]->prefix))
            return true;
    return false;
}

/* What was told before and was not found by this sweep is gone. */
static void find_gone(struct resources *s)
{
    size_t i = 0;

    while (s->sent.n > s->n_found && i < s->sent.n) {
        struct sent *t = sent_at(s, i);

        if (t->sweep == s->sweep) {
            i++;
            continue;
        }
        writer_put(s->writer, mail_new(MAIL_OBJECT, t->kind, t->name, 0, NULL));
        keys_free(&s->sent, &t->keyed);
    }
}

static void sweep(struct resources *s)
{
    const struct model *m = s->h->model;

    if (has_damage(m) != s->has_damage) {
        s->has_damage = !s->has_damage;
        writer_put(s->writer, mail_new(MAIL_KEEP, NULL, NULL, s->has_damage, NULL));
    }
    s->sweep++;
    s->n_found = 0;
    s->space = OBJECTS_MAX;
    for (size_t i = 0; i < m->networks.n; i++) {
        const struct model_network *net = model_network_at(m, i);

        find(s, net, &network_kind, &net->spec.meta, NULL);
        for (size_t k = 0; k < net->nodes.n; k++)
            find(s, net, &node_kind, &model_node_at(net, k)->spec.meta, NULL);
        find_edges(s, net);
        find_plain(s, net);
    }
    find_gone(s);
    if (!s->is_complete && s->space > 0) {
        writer_put(s->writer, mail_new(MAIL_ALL, NULL, NULL, s->term, NULL));
        s->is_complete = true;
    }
}

/* ---- status ---------------------------------------------------------------------------------- */

static void look_at_status(struct resources *s, struct sent *t, nsec_t now)
{
    char hash[RESOURCE_HASH_MAX];
    json_t *status;

    if (t->status_hash[0] && now - t->status_at < STATUS_AGAIN)
        return;
    status = resource_status(s->h->model, t->kind, t->name);
    if (!status)
        return;
    kube_part_hash(hash, status);
    if (strcmp(hash, t->status_hash) == 0) {
        json_decref(status);
        return;
    }
    memcpy(t->status_hash, hash, sizeof(hash));
    t->status_at = now;
    writer_put(s->writer, mail_new(MAIL_STATUS, t->kind, t->name, 0, status));
}

static void on_tick(uv_timer_t *timer)
{
    struct resources *s = timer->data;
    nsec_t now = clock_now();

    if (s->term == 0)
        return;
    sweep(s);
    for (size_t n = s->sent.n < STATUS_LOOKS ? s->sent.n : STATUS_LOOKS; n > 0; n--) {
        if (s->cursor >= s->sent.n)
            s->cursor = 0;
        look_at_status(s, sent_at(s, s->cursor++), now);
    }
}

/* ---- judging --------------------------------------------------------------------------------- */

static void fill_in(struct mail *answer, const struct response *rs)
{
    const char *text = rs->body && rs->status > 299 ? body_refusal_text(rs->body) : NULL;

    answer->status = rs->status ? rs->status : 500;
    if (answer->status > 299)
        answer->text = strdup(text ? text : "the hub does not say why");
    else if (rs->body)
        answer->json = json_deep_copy(rs->body);
}

/* The answer is there. It is dealt with in another turn: now its owner is still at work on it. */
static void on_answer(struct deferred *d)
{
    struct judgement *j = d->server_ctx;

    fill_in(j->answer, &d->rs);
    j->is_over = true;
    (void)uv_async_send(&j->s->judged);
}

static void judgement_end(struct judgement *j)
{
    struct deferred *d = j->deferred;

    list_remove(&j->link);
    if (d) {
        d->wake = NULL;
        response_deinit(&d->rs);
        d->on_closed(d);
    }
    if (j->is_over)
        writer_put(j->s->writer, j->answer);
    else
        mail_free(j->answer);
    free(j);
}

static void assess(struct resources *s, const struct mail *m)
{
    struct judgement *j = calloc(1, sizeof(*j));
    struct request rq = {.access = API_ACCESS_ADMIN,
        .method = m->json ? "PUT" : "DELETE",
        .caller = {.role = ROLE_ADMIN, .verdict = CALLER_KNOWN},
        .body = m->json,
        .now = clock_now()};
    struct response rs = {0};

    if (!j)
        return;
    *j = (struct judgement){.s = s, .answer = mail_new(MAIL_ANSWER, m->kind, m->name, 0, NULL)};
    if (!j->answer || !resource_name_parse(m->kind, m->name, rq.params[0], rq.params[2])) {
        mail_free(j->answer);
        free(j);
        return;
    }
    (void)snprintf(rq.params[1], sizeof(rq.params[1]), "%s", m->kind->name);
    (void)snprintf(rq.caller.name, sizeof(rq.caller.name), "kubernetes%s%.60s",
        m->by[0] ? ":claimed:" : "", m->by);
    j->answer->is_remove = m->what == MAIL_REMOVE;
    list_add_tail(&s->judgements, &j->link);
    access_begin(s->h, &rq);
    if (rq.body)
        handlers_objects_put(s->h, &rq, &rs);
    else
        handlers_objects_remove(s->h, &rq, &rs);
    access_end(s->h, &rq, NULL, &rs);
    j->deferred = rs.deferred;
    if (!rs.deferred) {
        fill_in(j->answer, &rs);
        j->is_over = true;
        response_deinit(&rs);
        judgement_end(j);
        return;
    }
    rs.deferred->server_ctx = j;
    rs.deferred->wake = on_answer;
    if (rs.deferred->is_ready)
        on_answer(rs.deferred);
}

static void on_judged(uv_async_t *judged)
{
    struct resources *s = judged->data;
    struct judgement *j;
    struct judgement *tmp;

    list_foreach_safe(j, tmp, &s->judgements, link)
        if (j->is_over)
            judgement_end(j);
}

static void on_mail(uv_poll_t *mail, int status, int events)
{
    struct resources *s = mail->data;
    struct sent *t;
    struct mail *m;

    while ((m = writer_collect(s->writer))) {
        switch (m->what) {
        case MAIL_TELL_ALL:
        case MAIL_QUIET:
            forget_sent(s);
            s->term = m->what == MAIL_QUIET ? 0 : m->status;
            break;
        case MAIL_TELL:
            t = sent_of(s, m->kind, m->name, false);
            if (!t)
                break;
            t->revision = UINT64_MAX;
            t->status_hash[0] = '\0';
            look_at_status(s, t, clock_now());
            break;
        case MAIL_PUT:
        case MAIL_REMOVE:
            assess(s, m);
            break;
        case MAIL_OBJECT:
        case MAIL_STATUS:
        case MAIL_ALL:
        case MAIL_KEEP:
        case MAIL_ANSWER:
            break;
        }
        mail_free(m);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

int resources_start(struct resources **ret, struct uv_loop_s *loop, struct handlers *h,
    const char *where, struct err *e)
{
    struct resources *s = calloc(1, sizeof(*s));
    char host[64] = "hub";
    char me[ME_MAX];
    int r;

    if (!s)
        return err_set(e, -ENOMEM, "no memory for Kubernetes' resources");
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(me, sizeof(me), "%s_%016llx", host, (unsigned long long)rng_u64(&h->rng));
    s->loop = loop;
    s->h = h;
    list_init(&s->judgements);
    (void)uv_timer_init(loop, &s->tick);
    (void)uv_async_init(loop, &s->judged, on_judged);
    s->tick.data = s;
    s->judged.data = s;
    s->has_handles = true;
    *ret = s;
    r = writer_start(&s->writer, where, me, &s->counts, e);
    if (r != 0)
        return r;
    (void)uv_poll_init(loop, &s->mail, writer_fd(s->writer));
    s->mail.data = s;
    (void)uv_poll_start(&s->mail, UV_READABLE, on_mail);
    h->resources = &s->counts;
    (void)uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
    return 0;
}

void resources_stop(struct resources *s)
{
    struct judgement *j;

    if (!s || !s->has_handles)
        return;
    s->has_handles = false;
    uv_close((uv_handle_t *)&s->tick, NULL);
    while ((j = list_first(&s->judgements, struct judgement, link))) {
        j->is_over = false;
        judgement_end(j);
    }
    if (s->writer)
        uv_close((uv_handle_t *)&s->mail, NULL);
    s->writer = writer_stop(s->writer);
    uv_close((uv_handle_t *)&s->judged, NULL);
}

struct resources *resources_free(struct resources *s)
{
    if (!s)
        return NULL;
    s->h->resources = NULL;
    forget_sent(s);
    free(s);
    return NULL;
}
