/* watch.c - see watch.h. */
#include "watch.h"

#include <stdlib.h>

#include "hub/watch/resume.h"
#include "hub/watch/view.h"
#include "os/clock.h"

struct watch {
    struct stream stream;    /* what the server takes from */
    struct watcher *w;       /* pins */
    struct model_node *node; /* pins; NULL once it has been told that it is removed */
    struct list of_net;      /* in the network's watches */
    struct list of_node;     /* in the node's watches, oldest first */
    struct list waiting;     /* in the watcher's list of the same name */
    struct list sending;     /* likewise */
    struct list due;         /* in one of the watcher's beats */
    bool wants_snapshot;     /* it has to get a snapshot before anything else */
    bool may_resume;         /* until then: what has changed since @known may do instead */
    uint64_t known;          /* the revision of the last line that its node had */
    bool is_sending;         /* what it lacked is on its way, and counts in n_sending */
    nsec_t began_at;         /* since when */
    bool accepts_slow;       /* heartbeats may come each WATCH_HEARTBEAT_SLOW */
    nsec_t beat_at;          /* when its next heartbeat is due */
};

void watcher_init(struct watcher *w, struct model *model)
{
    *w = (struct watcher){.model = model};
    for (unsigned i = 0; i < WATCH_BEAT_LISTS; i++)
        list_init(&w->beats[i]);
    list_init(&w->sending);
    list_init(&w->waiting);
    list_init(&w->untold);
    list_init(&w->news);
}

static bool can_send(const struct watcher *w)
{
    return w->n_sending < WATCH_SNAPSHOTS_MAX;
}

/* Queue what the watch has to have before anything else; @is_large: it takes a place among those
 * that are sent at a time. */
static void send_whole(struct watch *wt, const struct view_parts *parts, bool is_large, nsec_t now)
{
    wt->wants_snapshot = false;
    wt->may_resume = false;
    if (is_large) {
        wt->is_sending = true;
        wt->began_at = now;
        list_add_tail(&wt->w->sending, &wt->sending);
        wt->w->n_sending++;
    }
    if (!stream_push_whole(&wt->stream, parts->items, parts->n, now))
        stream_abort(&wt->stream);
}

static size_t size_of(const struct view_parts *parts)
{
    size_t size = 0;

    for (size_t i = 0; i < parts->n; i++)
        size += parts->items[i]->len;
    return size;
}

/* Tell the watch what has changed since its node was told last. False: it has to wait for a place;
 * or it needs a snapshot, and may_resume says so. */
static bool send_changes(struct watch *wt, nsec_t now)
{
    struct view_parts parts;
    bool is_large;

    wt->may_resume = wt->may_resume && resume_make(wt->node, wt->known, &parts) == 0;
    if (!wt->may_resume)
        return false;
    is_large = size_of(&parts) > WATCH_SMALL;
    if (is_large && !can_send(wt->w)) {
        view_parts_deinit(&parts);
        return false;
    }
    send_whole(wt, &parts, is_large, now);
    view_parts_deinit(&parts);
    wt->w->n_resumed++;
    return true;
}

/* Send the watch what it lacks: the changes, or a snapshot. False: it has to wait for a place. */
static bool begin(struct watch *wt, nsec_t now)
{
    struct view_parts parts;

    if (send_changes(wt, now))
        return true;
    if (!can_send(wt->w))
        return false;
    if (!view_snapshot(wt->node, &parts)) {
        /* Without memory: the node connects again later. */
        stream_abort(&wt->stream);
        return true;
    }
    send_whole(wt, &parts, true, now);
    view_parts_deinit(&parts);
    return true;
}

/* A place is free: begin with those that wait. One that needs none leaves it to the next. */
static void send_next(struct watcher *w, nsec_t now)
{
    struct watch *wt;

    while (can_send(w) && (wt = list_first(&w->waiting, struct watch, waiting))) {
        list_remove(&wt->waiting);
        (void)begin(wt, now);
    }
}

static void release_place(struct watch *wt, nsec_t now)
{
    if (!wt->is_sending)
        return;
    wt->is_sending = false;
    list_remove(&wt->sending);
    wt->w->n_sending--;
    send_next(wt->w, now);
}

/* All lines that were queued have been sent. */
static void on_drained(struct stream *st)
{
    struct watch *wt = container_of(st, struct watch, stream);
    nsec_t now = clock_now();

    release_place(wt, now);
    if (wt->wants_snapshot && wt->node && list_is_empty(&wt->waiting) && !begin(wt, now))
        list_add_tail(&wt->w->waiting, &wt->waiting);
}

static void detach(struct watch *wt)
{
    list_remove(&wt->of_net);
    list_remove(&wt->of_node);
    list_remove(&wt->waiting);
    list_remove(&wt->due);
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

/* Look at the watch again when its heartbeat is due, or at @least. */
static void plan_beat(struct watch *wt, nsec_t least)
{
    uint64_t second = (uint64_t)(nsec_max(wt->beat_at, least) / NSEC_PER_SEC);

    list_remove(&wt->due);
    list_add_tail(&wt->w->beats[second % WATCH_BEAT_LISTS], &wt->due);
}

/* End the oldest watches of @node until there is room for a new one. When a network was cut, all
 * nodes begin a new one at once, and those before them are mostly closed by then. */
static void make_room(struct model_node *node)
{
    struct watch *wt;
    struct watch *tmp;
    unsigned n = 0;

    list_foreach(wt, &node->watches, of_node) {
        stream_check(&wt->stream);
        n++;
    }
    list_foreach_safe(wt, tmp, &node->watches, of_node) {
        if (n-- < WATCH_BY_NODE_MAX)
            return;
        detach(wt);
        stream_abort(&wt->stream);
    }
}

struct stream *watch_open(struct watcher *w, struct model_node *node, nsec_t silence_max,
    const struct watch_known *known, nsec_t now)
{
    struct watch *wt = calloc(1, sizeof(*wt));

    if (!wt)
        return NULL;
    make_room(node);
    stream_init(&wt->stream, on_drained, on_closed);
    wt->w = w;
    wt->node = node;
    wt->wants_snapshot = true;
    wt->may_resume = known->boot != 0 && known->boot == w->model->boot;
    wt->known = known->revision;
    wt->accepts_slow = silence_max >= WATCH_HEARTBEAT_SLOW;
    /* It does not know yet that they may come slower. */
    wt->beat_at = now + WATCH_HEARTBEAT;
    list_init(&wt->waiting);
    list_init(&wt->sending);
    list_init(&wt->due);
    plan_beat(wt, now);
    list_add_tail(&node->net->watches, &wt->of_net);
    list_add_tail(&node->watches, &wt->of_node);
    w->n++;
    return &wt->stream;
}

bool watch_is_open(const struct model_node *node)
{
    return !list_is_empty(&node->watches);
}

/* Queue a line, unless the snapshot that is still to come will hold it. */
static void tell(struct watch *wt, struct line *l, nsec_t now)
{
    if (wt->wants_snapshot)
        return;
    if (l && stream_push(&wt->stream, l, now))
        return;
    stream_clear(&wt->stream);
    wt->wants_snapshot = true;
    wt->w->n_overrun++;
    /* With an empty queue on_drained() would not be called. */
    if (wt->stream.n == 0)
        on_drained(&wt->stream);
}

static void tell_node(struct model_node *to, struct line *l, nsec_t now)
{
    struct watch *wt;

    list_foreach(wt, &to->watches, of_node)
        tell(wt, l, now);
}

/* Tell everybody in the network who may see @about. */
static void tell_those_who_see(struct model_node *about, struct line *l, nsec_t now)
{
    struct watch *wt;

    list_foreach(wt, &about->net->watches, of_net) {
        if (view_can_see(wt->node, about))
            tell(wt, l, now);
    }
}

/* Watches that come later will have to be told of it as well. */
static void remember(struct model_network *net, const struct object_kind *kind, const char *name)
{
    history_add(&net->history, kind, name, store_revision(net->model->store));
    catch_up_forget(&net->catch_up);
}

/* ---- news of nodes -------------------------------------------------------------------------- */

/* Nodes of one network that are told of together. */
struct news {
    struct model_node *nodes[WATCH_NEWS_MAX];
    struct line *lines[WATCH_NEWS_MAX]; /* owns; of each alone; NULL: nobody has needed it */
    unsigned n;
};

/* Take from the watcher's news those of the same network as the first one. */
static void take_news(struct watcher *w, struct news *ret)
{
    struct model_node *node;
    struct model_node *tmp;

    ret->n = 0;
    list_foreach_safe(node, tmp, &w->news, news) {
        if (ret->n == WATCH_NEWS_MAX || (ret->n > 0 && node->net != ret->nodes[0]->net))
            continue;
        list_remove(&node->news);
        list_remove(&node->untold);
        ret->lines[ret->n] = NULL;
        ret->nodes[ret->n++] = node;
    }
}

/* Tell a node that does not see all others of those that it sees. */
static void tell_one_by_one(struct watch *wt, struct news *news, nsec_t now)
{
    for (unsigned i = 0; i < news->n; i++) {
        if (!view_can_see(wt->node, news->nodes[i]))
            continue;
        if (!news->lines[i])
            news->lines[i] = view_put_nodes(&news->nodes[i], 1);
        tell(wt, news->lines[i], now);
    }
}

static void tell_of_nodes(struct watcher *w, struct news *news, nsec_t now)
{
    struct line *all = view_put_nodes(news->nodes, news->n);
    struct watch *wt;

    list_foreach(wt, &news->nodes[0]->net->watches, of_net) {
        if (view_sees_all(wt->node))
            tell(wt, all, now);
        else
            tell_one_by_one(wt, news, now);
    }
    line_unref(all);
    for (unsigned i = 0; i < news->n; i++) {
        line_unref(news->lines[i]);
        remember(news->nodes[i]->net, &node_kind, news->nodes[i]->pub.spec.meta.name);
    }
}

void watch_tell_news(struct watcher *w, nsec_t now)
{
    struct news news;
    unsigned n_told = 0;

    if (list_is_empty(&w->news))
        return;
    while (!list_is_empty(&w->news)) {
        take_news(w, &news);
        tell_of_nodes(w, &news, now);
        n_told += news.n;
    }
    news_pace_on_told(&w->pace, n_told, now);
}

nsec_t watch_news_due(const struct watcher *w, nsec_t now)
{
    return list_is_empty(&w->news) ? NSEC_NEVER : news_pace_due(&w->pace, w->n, now);
}

static void tell_if_due(struct watcher *w, nsec_t now)
{
    if (now >= watch_news_due(w, now))
        watch_tell_news(w, now);
}

void watch_tell_node(struct watcher *w, struct model_node *node, nsec_t now)
{
    if (list_is_empty(&node->news)) {
        list_remove(&node->untold);
        list_add_tail(&w->news, &node->news);
    }
    tell_if_due(w, now);
}

void watch_tell_newcomer(struct watcher *w, struct model_node *node, nsec_t now)
{
    news_pace_on_newcomer(&w->pace, now);
    watch_tell_node(w, node, now);
}

void watch_tell_rekeyed(struct watcher *w, struct model_node *node, nsec_t now)
{
    struct news news = {.nodes = {node}, .n = 1};

    list_remove(&node->news);
    list_remove(&node->untold);
    tell_of_nodes(w, &news, now);
}

/* ---- other changes -------------------------------------------------------------------------- */

void watch_tell_network(struct watcher *w, struct model_network *net, nsec_t now)
{
    struct line *l = view_put_network(net);
    struct watch *wt;

    watch_tell_news(w, now);
    remember(net, &network_kind, net->pub.spec.meta.name);
    list_foreach(wt, &net->watches, of_net)
        tell(wt, l, now);
    line_unref(l);
}

void watch_tell_status(struct watcher *w, struct model_node *node, nsec_t now)
{
    model_forget_text(node);
    if (rate_take(&node->told, now, WATCH_STATUS_EACH, WATCH_STATUS_BURST))
        watch_tell_node(w, node, now);
    else if (list_is_empty(&node->untold) && list_is_empty(&node->news))
        list_add_tail(&w->untold, &node->untold);
}

static void tell_untold(struct watcher *w, nsec_t now)
{
    struct model_node *node;
    struct model_node *tmp;

    list_foreach_safe(node, tmp, &w->untold, untold) {
        if (rate_take(&node->told, now, WATCH_STATUS_EACH, WATCH_STATUS_BURST))
            watch_tell_node(w, node, now);
    }
}

/* @to may see @about now, or not any more. */
static void tell_visibility(
    struct watcher *w, struct model_node *to, struct model_node *about, bool can, nsec_t now)
{
    struct line *l = can ? view_put_nodes(&about, 1)
                         : view_delete(w->model, &node_kind, about->pub.spec.meta.name);

    tell_node(to, l, now);
    line_unref(l);
}

void watch_tell_edge(struct watcher *w, struct model_edge *edge, enum edge_path before, nsec_t now)
{
    struct model_node *a = edge->ends[0].node;
    struct model_node *b = edge->ends[1].node;
    bool could = before != EDGE_PATH_OFF;
    bool can = edge->spec.path != EDGE_PATH_OFF;
    struct model_network *net = edge->net;
    bool exists = model_find_edge(net, edge->spec.nodes[0], edge->spec.nodes[1]) == edge;
    struct line *l = exists ? view_put_edge(net, edge)
                            : view_delete(w->model, &mesh_edge_kind, edge->spec.meta.name);

    /* A watch has to know both nodes before it is told of their edge. */
    watch_tell_news(w, now);
    remember(net, &mesh_edge_kind, edge->spec.meta.name);
    /* One of the two nodes is gone, and now its edge is removed; or both are. A node of that name
     * may come again, and go on with its watch. */
    if (!a || !b) {
        if (a || b)
            tell_node(a ? a : b, l, now);
        line_unref(l);
        return;
    }
    if (can && !could) {
        tell_visibility(w, a, b, true, now);
        tell_visibility(w, b, a, true, now);
    }
    tell_node(a, l, now);
    tell_node(b, l, now);
    if (could && !can) {
        tell_visibility(w, a, b, view_can_see(a, b), now);
        tell_visibility(w, b, a, view_can_see(b, a), now);
    }
    line_unref(l);
}

void watch_tell_object(struct watcher *w, struct model_network *net, const struct object *before,
    const struct object *now, nsec_t at)
{
    struct line *put = now ? view_put_object(w->model, now) : NULL;
    struct line *gone = before ? view_delete(w->model, before->kind, before->meta.name) : NULL;
    struct watch *wt;

    watch_tell_news(w, at);
    remember(net, now ? now->kind : before->kind, now ? now->meta.name : before->meta.name);
    list_foreach(wt, &net->watches, of_net) {
        if (now && view_can_see_object(wt->node, now))
            tell(wt, put, at);
        else if (before && view_can_see_object(wt->node, before))
            tell(wt, gone, at);
    }
    line_unref(put);
    line_unref(gone);
}

void watch_tell_node_removed(
    struct watcher *w, struct model_node *node, const char *reason, nsec_t now)
{
    struct line *gone = view_delete(w->model, &node_kind, node->pub.spec.meta.name);
    struct line *removed = view_removed(reason);
    struct watch *wt;
    struct watch *tmp;

    list_foreach_safe(wt, tmp, &node->watches, of_node) {
        detach(wt);
        stream_clear(&wt->stream);
        if (removed)
            (void)stream_push(&wt->stream, removed, now);
        stream_end(&wt->stream);
    }
    remember(node->net, &node_kind, node->pub.spec.meta.name);
    tell_those_who_see(node, gone, now);
    line_unref(gone);
    line_unref(removed);
}

/* ---- heartbeats ----------------------------------------------------------------------------- */

/* The lines of one tick, each made when the first watch needs it. */
struct beats {
    struct line *usual; /* owns */
    struct line *slow;  /* owns; it says when the next one comes */
};

static struct line *beat_line(const struct model *m, struct beats *beats, bool is_slow, nsec_t now)
{
    struct line **l = is_slow ? &beats->slow : &beats->usual;

    if (!*l)
        *l = view_heartbeat(m, is_slow ? WATCH_HEARTBEAT_SLOW / NSEC_PER_SEC : 0, now);
    return *l;
}

/* A heartbeat if one is due, and nothing else waits to be taken, which proves as much. */
static void beat(struct watch *wt, struct beats *beats, nsec_t now)
{
    bool is_slow = wt->accepts_slow && wt->w->n > WATCH_MANY;
    nsec_t each = is_slow ? WATCH_HEARTBEAT_SLOW : WATCH_HEARTBEAT;
    struct line *l;

    if (now < wt->beat_at || wt->wants_snapshot || wt->stream.n > 0)
        return;
    l = beat_line(wt->w->model, beats, is_slow, now);
    if (!l)
        return;
    tell(wt, l, now);
    /* From the time when it was due, or a tick that is a little late would make all others late. */
    wt->beat_at = nsec_max(wt->beat_at + each, now + WATCH_HEARTBEAT / 2);
}

/* Those whose heartbeat is due by now. Each is in a list of its own second, so the others, which
 * may be thousands, are not looked at. */
static void tick_beats(struct watcher *w, struct beats *beats, nsec_t now)
{
    int64_t end = now / NSEC_PER_SEC;
    int64_t at = end - w->beats_at < WATCH_BEAT_LISTS ? w->beats_at : end - WATCH_BEAT_LISTS + 1;
    struct watch *wt;
    struct watch *tmp;

    /* The last one again: some of its second were not due yet. */
    for (; at <= end; at++) {
        struct list *second = &w->beats[(uint64_t)at % WATCH_BEAT_LISTS];
        struct list turn;

        list_init(&turn);
        list_foreach_safe(wt, tmp, second, due) {
            list_remove(&wt->due);
            list_add_tail(&turn, &wt->due);
        }
        list_foreach_safe(wt, tmp, &turn, due) {
            bool is_due = now >= wt->beat_at;

            beat(wt, beats, now);
            /* What has something else to take is looked at again a second later. */
            plan_beat(wt, is_due && now >= wt->beat_at ? now + NSEC_PER_SEC : 0);
        }
    }
    w->beats_at = end;
}

void watch_tick(struct watcher *w, nsec_t now)
{
    struct beats beats = {.usual = NULL};
    struct watch *wt;

    tell_untold(w, now);
    /* A rush that has ended makes it due before its timer. */
    tell_if_due(w, now);
    list_foreach(wt, &w->sending, sending) {
        if (now - wt->began_at > WATCH_SNAPSHOT_WITHIN)
            stream_abort(&wt->stream);
    }
    tick_beats(w, &beats, now);
    line_unref(beats.usual);
    line_unref(beats.slow);
}
