/* watch.c - see watch.h. */
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/content/body.h"
#include "base/err.h"
#include "hub/record/record.h"
#include "hub/watch/view.h"
#include "os/clock.h"
#include "os/log.h"
#include "store/store.h"

/* Watches of one node at a time: the present one, and one before it that may be dead. */
#define WATCH_BY_NODE_MAX 2

struct watch {
    struct stream stream;          /* what the server takes from */
    struct watcher *w;             /* pins */
    const struct model_node *node; /* pins; NULL once it has been told that it is removed */
    struct list of_net;            /* in the network's watches */
    struct list of_node;           /* in the node's watches, oldest first */
    struct list waiting;           /* in the watcher's list of the same name */
    struct list sending;           /* likewise: its snapshot is on its way */
    struct list woken;             /* likewise */
    struct list due;               /* in one of the watcher's heartbeats */
    struct list asked;             /* in the watcher's list of the same name */
    nsec_t asked_at;               /* when the heartbeat was sent for which it is there */
    bool is_replaced;              /* its node has a newer one, which is asked */
    struct watch_known known;
    bool has_begun;      /* it reads on from the cursor; else it needs a snapshot */
    bool is_resuming;    /* it has not been told yet that what it has missed was all */
    uint64_t cursor;     /* the last change that it was told of */
    nsec_t began_at;     /* when its snapshot began to be sent */
    bool accepts_slow;   /* heartbeats may come each WATCH_HEARTBEAT_SLOW */
    nsec_t heartbeat_at; /* when its next heartbeat is due */
};

void watcher_init(struct watcher *w, struct model *model)
{
    *w = (struct watcher){.model = model};
    list_init(&w->sending);
    list_init(&w->waiting);
    list_init(&w->woken);
    list_init(&w->heartbeats[0]);
    list_init(&w->heartbeats[1]);
    list_init(&w->asked);
}

static struct watched_network *watched_of(const struct watch *wt)
{
    return wt->node->net->watched;
}

/* ---- snapshots ------------------------------------------------------------------------------ */

static bool can_send_snapshot(const struct watcher *w)
{
    return w->n_sending < WATCH_SNAPSHOTS_MAX;
}

static void send_snapshot(struct watch *wt, nsec_t now)
{
    struct watcher *w = wt->w;
    struct view_parts parts;

    /* Without memory: the node connects again later. */
    if (!view_snapshot(wt->node, &parts)) {
        stream_abort(&wt->stream);
        return;
    }
    if (!stream_push_whole(&wt->stream, parts.items, parts.n, now))
        stream_abort(&wt->stream);
    view_parts_deinit(&parts);
    wt->cursor = watched_of(wt)->ready;
    wt->has_begun = true;
    wt->began_at = now;
    list_add_tail(&w->sending, &wt->sending);
    w->n_sending++;
}

/* Its snapshot is out: another one may be sent. */
static void release_place(struct watch *wt, nsec_t now)
{
    struct watcher *w = wt->w;
    struct watch *next;

    if (list_is_empty(&wt->sending))
        return;
    list_remove(&wt->sending);
    w->n_sending--;
    while (can_send_snapshot(w) && (next = list_first(&w->waiting, struct watch, waiting))) {
        list_remove(&next->waiting);
        send_snapshot(next, now);
    }
}

/* ---- pulling -------------------------------------------------------------------------------- */

/* Queue a line, whose reference is taken; without memory for it the connection ends. */
static void push(struct watch *wt, struct line *l, nsec_t now)
{
    if (!l || !stream_push(&wt->stream, l, now))
        stream_abort(&wt->stream);
    (void)line_unref(l);
}

/* Find the watch's place among the changes: where it broke off, or behind a snapshot. */
static void begin(struct watch *wt, nsec_t now)
{
    struct watcher *w = wt->w;
    const struct model *m = w->model;
    const struct watch_known *known = &wt->known;
    struct heartbeat heartbeat = {.revision = known->revision, .boot = m->boot};

    /* May it go on where another one broke off? */
    if (known->boot != 0 && known->revision <= store_revision(m->store) &&
        (known->boot == m->boot || known->takes_any_run) &&
        runs_hold(&w->runs, known->boot, known->revision) &&
        watched_find(watched_of(wt), known->revision, &wt->cursor)) {
        wt->has_begun = true;
        wt->is_resuming = true;
        w->n_resumed++;
        /* First of all, since what follows is this run's. */
        if (known->boot != m->boot)
            push(wt, view_heartbeat(&heartbeat), now);
    } else if (can_send_snapshot(w)) {
        send_snapshot(wt, now);
    } else {
        list_add_tail(&w->waiting, &wt->waiting);
    }
    wt->known = (struct watch_known){.boot = 0};
}

/* The changes as all are told of them who see all nodes: kept, or made in the place of another
 * text. They are those between the two cursors. Once the first of them has changed again, whoever
 * comes may have been told a later revision than that of the text's lines. False: no memory. */
static bool shared_text(
    const struct view_changes *changes, uint64_t cursor, uint64_t end_cursor, struct line **ret)
{
    struct watched_network *net = changes->net->watched;
    uint64_t revision = changes->items[0]->revision;
    struct watched_text *text = NULL;

    for (unsigned i = 0; i < WATCHED_TEXTS; i++)
        if (net->texts[i].cursor == cursor && net->texts[i].end_cursor == end_cursor &&
            net->texts[i].revision == revision)
            text = &net->texts[i];
    if (!text) {
        text = &net->texts[net->next_text++ % WATCHED_TEXTS];
        (void)line_unref(text->line);
        *text = (struct watched_text){.cursor = cursor, .revision = revision};
        if (!view_tell(changes, NULL, &text->line))
            return false;
        text->end_cursor = end_cursor;
    }
    text->is_used = true;
    *ret = text->line ? line_ref(text->line) : NULL;
    return true;
}

/* Does @self see all nodes of its network, those that are yet to come included?
 * False only if one of its edges is off. */
static bool sees_all(const struct model_node *self)
{
    const struct model_edge_end *end;

    if (self->spec.hub)
        return true;
    list_foreach(end, &self->edges, link) {
        if (end->edge->spec.path == EDGE_PATH_OFF)
            return false;
    }
    return true;
}

/* Tell the watch of the next changes, as all others or in its own way. */
static void pull_once(struct watch *wt, nsec_t now)
{
    const struct model_node *node = wt->node;
    const struct watched_change *items[WATCHED_READ_MAX];
    struct view_changes changes = {.net = node->net, .items = items};
    uint64_t before = wt->cursor;
    struct line *l = NULL;
    bool ok;

    changes.n = watched_read(node->net->watched, &wt->cursor, items, &changes.end);
    if (changes.n == 0)
        return;
    if (changes.end == 0)
        changes.end = view_revision(node->net);
    if (sees_all(node) && !view_are_special(&changes, node))
        ok = shared_text(&changes, before, wt->cursor, &l);
    else
        ok = view_tell(&changes, node, &l);
    if (!ok)
        stream_abort(&wt->stream);
    else if (l)
        push(wt, l, now);
}

static bool can_take(const struct watch *wt)
{
    return wt->stream.n_free == 0 && wt->stream.bytes < WATCH_AHEAD && !wt->stream.aborted;
}

/* Tell the watch all that its connection can take. */
static void pull(struct watch *wt, nsec_t now)
{
    const struct watched_network *net;
    struct heartbeat heartbeat;

    list_remove(&wt->woken);
    if (wt->stream.n_free > 0)
        return;
    release_place(wt, now);
    if (!wt->node || !list_is_empty(&wt->waiting))
        return;
    net = watched_of(wt);
    if (wt->has_begun && wt->cursor < net->forgotten_serial) {
        wt->has_begun = false;
        wt->w->n_overrun++;
    }
    if (!wt->has_begun && wt->stream.n == 0)
        begin(wt, now);
    while (wt->has_begun && can_take(wt) && wt->cursor != net->ready)
        pull_once(wt, now);
    if (!wt->is_resuming || wt->cursor != net->ready || !can_take(wt))
        return;
    heartbeat = (struct heartbeat){.revision = view_revision(wt->node->net)};
    push(wt, view_heartbeat(&heartbeat), now);
    wt->is_resuming = false;
}

static void on_drained(struct stream *st, nsec_t now)
{
    pull(container_of(st, struct watch, stream), now);
}

/* ---- the life of a watch -------------------------------------------------------------------- */

static void detach(struct watch *wt)
{
    list_remove(&wt->of_net);
    list_remove(&wt->of_node);
    list_remove(&wt->waiting);
    list_remove(&wt->woken);
    list_remove(&wt->due);
    list_remove(&wt->asked);
    wt->node = NULL;
}

static void on_closed(struct stream *st)
{
    struct watch *wt = container_of(st, struct watch, stream);

    detach(wt);
    release_place(wt, clock_now());
    wt->w->n--;
    stream_deinit(st);
    free(wt);
}

/* The next heartbeat of the watch. In each list all are sent after the same time, so they are in
 * the order in which they are due. */
static void plan_heartbeat(struct watch *wt, bool is_slow, nsec_t now)
{
    wt->heartbeat_at = now + (is_slow ? WATCH_HEARTBEAT_SLOW : WATCH_HEARTBEAT);
    list_remove(&wt->due);
    list_add_tail(&wt->w->heartbeats[is_slow], &wt->due);
}

/* End the oldest watches of @node until there is room for a new one. When a network was cut, all
 * nodes begin a new one at once, and those before them are mostly closed by then. */
static void end_oldest(struct watched_node *node)
{
    struct watch *wt;
    struct watch *tmp;
    unsigned n = 0;

    list_foreach(wt, &node->watches, of_node) {
        stream_check(&wt->stream);
        wt->is_replaced = true;
        list_remove(&wt->asked);
        n++;
    }
    list_foreach_safe(wt, tmp, &node->watches, of_node) {
        if (n-- < WATCH_BY_NODE_MAX)
            return;
        detach(wt);
        stream_abort(&wt->stream);
    }
}

struct stream *watch_open(struct watcher *w, const struct model_node *node, nsec_t silence_max,
    const struct watch_known *known, nsec_t now)
{
    struct watch *wt = calloc(1, sizeof(*wt));

    if (!wt)
        return NULL;
    end_oldest(node->watched);
    stream_init(&wt->stream, on_drained, on_closed);
    wt->w = w;
    wt->node = node;
    wt->known = *known;
    wt->accepts_slow = silence_max >= WATCH_HEARTBEAT_SLOW;
    list_init(&wt->waiting);
    list_init(&wt->sending);
    list_init(&wt->woken);
    list_init(&wt->due);
    list_init(&wt->asked);
    node->watched->lost_at = 0;
    /* It does not know yet that they may come slower. */
    plan_heartbeat(wt, false, now);
    list_add_tail(&node->net->watched->watches, &wt->of_net);
    list_add_tail(&node->watched->watches, &wt->of_node);
    w->n++;
    return &wt->stream;
}

nsec_t watch_lost_for(const struct model_node *node, nsec_t now)
{
    nsec_t lost_at = node->watched->lost_at;

    return lost_at != 0 && node->reported->seen_at <= lost_at ? now - lost_at : 0;
}

bool watch_is_open(const struct model_node *node)
{
    return !list_is_empty(&node->watched->watches);
}

/* ---- changes -------------------------------------------------------------------------------- */

static void wake(struct watch *wt)
{
    if (list_is_empty(&wt->woken))
        list_add_tail(&wt->w->woken, &wt->woken);
}

/* Have all that has changed told. */
static void tell_all(struct watcher *w, nsec_t now)
{
    struct watch *wt;

    for (size_t i = 0; i < w->model->networks.n; i++) {
        struct watched_network *net = model_network_at(w->model, i)->watched;

        if (net->ready == net->serial)
            continue;
        net->ready = net->serial;
        list_foreach(wt, &net->watches, of_net)
            wake(wt);
    }
    if (w->n_pending > 0) {
        w->pace.sent_at = now;
        w->pace.n_sent = w->n_pending;
    }
    w->n_pending = 0;
}

static void add_node(struct watcher *w, const struct model_node *node)
{
    struct watched_network *net = node->net->watched;
    uint64_t revision = store_revision(w->model->store);

    if (net->ready == net->serial)
        net->waits_from = revision;
    if (node->watched->change.serial <= net->ready)
        w->n_pending++;
    watched_add(net, &node->watched->change, &node_kind, node->spec.meta.name, revision);
}

nsec_t watch_due(const struct watcher *w, nsec_t now)
{
    const struct watch_pace *p = &w->pace;
    unsigned times = p->n_sent < WATCH_PATIENCE ? p->n_sent : WATCH_PATIENCE;
    nsec_t cost = w->n * (WATCH_COST + p->n_sent * WATCH_COST_NODE);
    nsec_t least = WATCH_PATIENCE * w->n * WATCH_COST;

    if (w->n_pending == 0)
        return NSEC_NEVER;
    if (w->held_until != 0)
        return w->held_until;
    if (w->n <= WATCH_FEW || p->sent_at == 0)
        return 0;
    if (p->is_rush && now - p->newcomer_at <= WATCH_RUSH_GAP)
        return p->sent_at + nsec_min(nsec_max(least, WATCH_RUSH_SHARE * cost), WATCH_RUSH_MAX);
    return p->sent_at + times * w->n * WATCH_COST;
}

void watch_turn(struct watcher *w, nsec_t now)
{
    struct watch *wt;

    if (now >= watch_due(w, now))
        tell_all(w, now);
    while ((wt = list_first(&w->woken, struct watch, woken)))
        pull(wt, now);
}

void watch_tell_node(struct watcher *w, const struct model_node *node)
{
    add_node(w, node);
    w->held_until = 0;
}

void watch_tell_newcomer(struct watcher *w, const struct model_node *node, nsec_t now)
{
    struct watch_pace *p = &w->pace;

    p->is_rush = p->newcomer_at != 0 && now - p->newcomer_at <= WATCH_RUSH_GAP;
    p->newcomer_at = now;
    watch_tell_node(w, node);
}

void watch_tell_rekeyed(struct watcher *w, const struct model_node *node, nsec_t now)
{
    add_node(w, node);
    tell_all(w, now);
}

void watch_tell_status(struct watcher *w, const struct model_node *node, nsec_t now)
{
    watched_node_changed(node->watched);
    if (rate_take(&node->watched->status_rate, now, WATCH_STATUS_EACH, WATCH_STATUS_BURST)) {
        watch_tell_node(w, node);
        return;
    }
    if (w->n_pending == 0)
        w->held_until = now + WATCH_STATUS_EACH;
    add_node(w, node);
}

/* @c: the change of an object; NULL: it is gone. */
static void add_change(const struct model_network *net, struct watched_change *c,
    const struct object_kind *kind, const char *name)
{
    uint64_t revision = store_revision(net->model->store);

    if (c)
        watched_add(net->watched, c, kind, name, revision);
    else
        watched_add_gone(net->watched, kind, name, revision);
}

void watch_tell_edge(struct watcher *w, struct model_edge *edge, nsec_t now)
{
    struct watched_network *net = edge->net->watched;
    struct watch *wt;
    const char *name = edge->spec.meta.name;
    bool is_there = keys_find(&edge->net->edges, name) == &edge->keyed;
    bool do_others_wait = net->ready != net->serial;

    add_change(edge->net, is_there ? &edge->change : NULL, &mesh_edge_kind, name);
    /* Of the edge alone only its two nodes are told. */
    if (do_others_wait)
        tell_all(w, now);
    net->ready = net->serial;
    for (unsigned i = 0; i < 2; i++)
        if (edge->ends[i].node)
            list_foreach(wt, &edge->ends[i].node->watched->watches, of_node)
                wake(wt);
}

void watch_tell_object(struct watcher *w, const struct model_network *net, struct watched_change *c,
    const struct object_kind *kind, const char *name, nsec_t now)
{
    add_change(net, c, kind, name);
    tell_all(w, now);
}

void watch_tell_node_removed(
    struct watcher *w, const struct model_node *node, const char *reason, nsec_t now)
{
    struct line *removed = view_removed(reason);
    struct watch *wt;
    struct watch *tmp;

    list_foreach_safe(wt, tmp, &node->watched->watches, of_node) {
        detach(wt);
        stream_clear(&wt->stream);
        if (removed)
            (void)stream_push(&wt->stream, removed, now);
        stream_end(&wt->stream);
    }
    line_unref(removed);
    watch_tell_object(w, node->net, NULL, &node_kind, node->spec.meta.name, now);
}

/* ---- heartbeats ----------------------------------------------------------------------------- */

/* A heartbeat that many watches are sent. */
struct shared_heartbeat {
    struct heartbeat heartbeat; /* what it says */
    struct line *line;          /* owns; NULL: to be made */
};

/* It has been sent a heartbeat. While it has not answered an earlier one that is the one that
 * counts. */
static void ask(struct watch *wt, nsec_t now)
{
    if (wt->is_replaced || !list_is_empty(&wt->asked))
        return;
    wt->asked_at = now;
    list_add_tail(&wt->w->asked, &wt->asked);
}

/* Who does not answer? Those that were asked a moment ago are not looked at yet, so each watch is
 * looked at once a heartbeat; and each second one that is lost. */
static void tick_asked(struct watcher *w, nsec_t now)
{
    struct watch *wt;
    struct watch *tmp;

    list_foreach_safe(wt, tmp, &w->asked, asked) {
        struct watched_node *node = wt->node->watched;

        if (now - wt->asked_at < WATCH_ANSWER)
            return;
        if (stream_is_answered(&wt->stream, WATCH_ANSWER)) {
            node->answered_at = wt->asked_at;
            node->lost_at = 0;
            list_remove(&wt->asked);
        } else if (node->lost_at == 0) {
            node->lost_at = now;
        }
    }
}

/* Send a heartbeat if nothing else waits to be taken, which proves as much. */
static void send_heartbeat(
    struct watch *wt, bool is_slow, struct shared_heartbeat *shared, nsec_t now)
{
    uint64_t revision;

    /* Of changes that concern others only it was told nothing. */
    pull(wt, now);
    if (!wt->has_begun || wt->stream.n > 0)
        return;
    revision = view_revision(wt->node->net);
    if (shared->heartbeat.revision != revision)
        shared->line = line_unref(shared->line);
    shared->heartbeat.revision = revision;
    if (!shared->line)
        shared->line = view_heartbeat(&shared->heartbeat);
    if (!shared->line)
        return;
    push(wt, line_ref(shared->line), now);
    plan_heartbeat(wt, is_slow, now);
    ask(wt, now);
}

/* The watches whose heartbeat is due by now; the others, which may be thousands, are not looked at.
 * Those that have something else to take are looked at again each second. */
static void tick_heartbeats(struct watcher *w, nsec_t now)
{
    struct shared_heartbeat shared[2] = {{.line = NULL}, {.line = NULL}};
    struct watch *wt;
    struct watch *tmp;

    for (unsigned i = 0; i < 2; i++)
        shared[i].heartbeat.behind_for = store_lag(w->model->store, now).behind_for;
    shared[1].heartbeat.next_s = WATCH_HEARTBEAT_SLOW / NSEC_PER_SEC;
    for (unsigned i = 0; i < 2; i++) {
        list_foreach_safe(wt, tmp, &w->heartbeats[i], due) {
            bool is_slow = wt->accepts_slow && w->n > WATCH_MANY;

            if (wt->heartbeat_at > now)
                break;
            send_heartbeat(wt, is_slow, &shared[is_slow], now);
        }
    }
    for (unsigned i = 0; i < 2; i++)
        (void)line_unref(shared[i].line);
}

/* ---- each second ---------------------------------------------------------------------------- */

void watch_tick(struct watcher *w, nsec_t now)
{
    struct watch *wt;

    /* Texts that nobody has read since the last tick go. */
    for (size_t i = 0; i < w->model->networks.n; i++)
        for (unsigned k = 0; k < WATCHED_TEXTS; k++) {
            struct watched_text *text = &model_network_at(w->model, i)->watched->texts[k];

            if (!text->is_used) {
                (void)line_unref(text->line);
                *text = (struct watched_text){.line = NULL};
            }
            text->is_used = false;
        }
    /* A rush that has ended makes what is pending due before its timer. */
    watch_turn(w, now);
    list_foreach(wt, &w->sending, sending) {
        if (now - wt->began_at > WATCH_SNAPSHOT_WITHIN)
            stream_abort(&wt->stream);
    }
    tick_asked(w, now);
    tick_heartbeats(w, now);
}

/* ---- the hub's runs on its store ------------------------------------------------------------- */

/* What is not understood is as good as none. */
static int take_list(void *ctx, const struct store_item *item)
{
    json_t **list = ctx;

    *list = json_loads(item->value, 0, NULL);
    return 0;
}

void runs_begin(struct runs *r, struct store *store, const char *name, uint64_t boot, nsec_t now)
{
    struct err e = ERR_NULL;
    char key[RECORD_KEY_MAX];
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .expect = STORE_EXPECT_ANY, .is_unwatched = true};
    char *value;

    runs_deinit(r);
    (void)snprintf(key, sizeof(key), "runs/%s", name);
    (void)store_now_get(store, key, take_list, &r->list, &e);
    if (!json_is_array(r->list)) {
        runs_deinit(r);
        r->list = json_array();
    }
    (void)json_array_append_new(
        r->list, json_pack("[I, I]", (json_int_t)boot, (json_int_t)store_revision(store)));
    while (json_array_size(r->list) > RUNS_MAX)
        (void)json_array_remove(r->list, 0);
    value = r->list ? body_format(r->list) : NULL;
    op.value = value;
    if (!value || store_commit(store, &op, 1, now, NULL, NULL, &e) != 0)
        log_info("after the next start all watches begin with a snapshot");
    free(value);
}

void runs_deinit(struct runs *r)
{
    json_decref(r->list);
    r->list = NULL;
}

bool runs_hold(const struct runs *r, uint64_t boot, uint64_t revision)
{
    bool is_found = false;
    const json_t *one;
    size_t i;

    json_array_foreach(r->list, i, one) {
        json_int_t its_boot;
        json_int_t from;

        if (json_unpack((json_t *)one, "[I, I]", &its_boot, &from) != 0)
            continue;
        if (is_found)
            return from >= 0 && revision <= (uint64_t)from;
        is_found = (uint64_t)its_boot == boot;
    }
    return is_found;
}
