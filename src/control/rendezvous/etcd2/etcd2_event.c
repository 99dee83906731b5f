/* etcd2_event.c - see etcd2_event.h. */
#include "etcd2_event.h"

#include <stdlib.h>
#include <string.h>

#include "rendezvous/etcd2/etcd2_path.h"

static const char *const action_names[] = {
    [ETCD2_ACTION_CREATE] = "create",
    [ETCD2_ACTION_SET] = "set",
    [ETCD2_ACTION_UPDATE] = "update",
    [ETCD2_ACTION_COMPARE_AND_SWAP] = "compareAndSwap",
    [ETCD2_ACTION_DELETE] = "delete",
    [ETCD2_ACTION_COMPARE_AND_DELETE] = "compareAndDelete",
    [ETCD2_ACTION_EXPIRE] = "expire",
};
_Static_assert(sizeof(action_names) / sizeof(*action_names) == ETCD2_ACTION_N, "a name for each");

void etcd2_events_init(struct etcd2_events *evs, struct rdzv_quota *quota)
{
    *evs = (struct etcd2_events){.quota = quota};
    list_init(&evs->watchers);
}

/* ---- events --------------------------------------------------------------------------------- */

static void write_event(struct etcd2_json *j, enum etcd2_action action,
    const struct etcd2_shown *node, const struct etcd2_shown *prev)
{
    etcd2_json_raw(j, "{\"action\":\"");
    etcd2_json_raw(j, action_names[action]);
    etcd2_json_raw(j, "\",\"node\":");
    etcd2_shown_write(j, node);
    if (prev) {
        etcd2_json_raw(j, ",\"prevNode\":");
        etcd2_shown_write(j, prev);
    }
    etcd2_json_raw(j, "}\n");
}

static size_t size_of(const struct etcd2_event *ev)
{
    return RDZV_COST_EVENT + strlen(ev->path) + ev->json_len;
}

struct etcd2_event *etcd2_event_new(struct etcd2_events *evs, enum etcd2_action action,
    uint64_t index, const struct etcd2_shown *node, const struct etcd2_shown *prev)
{
    struct etcd2_event *ev = calloc(1, sizeof(*ev));
    struct etcd2_json j = {.max = SIZE_MAX};

    write_event(&j, action, node, prev);
    if (ev) {
        ev->path = strdup(node->path);
        ev->json = malloc(j.len);
    }
    if (!ev || !ev->path || !ev->json) {
        free(ev ? ev->path : NULL);
        free(ev ? ev->json : NULL);
        free(ev);
        return NULL;
    }
    j = (struct etcd2_json){.text = ev->json, .max = SIZE_MAX};
    write_event(&j, action, node, prev);
    ev->json_len = j.len;
    ev->refs = 1;
    ev->quota = evs->quota;
    ev->action = action;
    ev->index = index;
    ev->is_created = action == ETCD2_ACTION_CREATE || (action == ETCD2_ACTION_SET && !prev);
    rdzv_quota_take(evs->quota, size_of(ev), 0);
    return ev;
}

struct etcd2_event *etcd2_event_ref(struct etcd2_event *ev)
{
    ev->refs++;
    return ev;
}

struct etcd2_event *etcd2_event_unref(struct etcd2_event *ev)
{
    if (ev && --ev->refs == 0) {
        rdzv_quota_give(ev->quota, size_of(ev), 0);
        free(ev->path);
        free(ev->json);
        free(ev);
    }
    return NULL;
}

/* ---- history -------------------------------------------------------------------------------- */

static void forget_oldest(struct etcd2_events *evs)
{
    struct etcd2_event *ev = evs->history[evs->first];

    evs->history[evs->first] = NULL;
    evs->first = (evs->first + 1) % ETCD2_EVENTS_MAX;
    evs->n_history--;
    evs->history_bytes -= size_of(ev);
    evs->history_start = ev->index + 1;
    etcd2_event_unref(ev);
}

void etcd2_events_forget(struct etcd2_events *evs, uint64_t start)
{
    while (evs->n_history > 0)
        forget_oldest(evs);
    evs->history_start = start;
}

static void remember(struct etcd2_events *evs, struct etcd2_event *ev)
{
    while (evs->n_history > 0 && (evs->n_history == ETCD2_EVENTS_MAX ||
                                     evs->history_bytes + size_of(ev) > ETCD2_EVENT_BYTES_MAX))
        forget_oldest(evs);
    evs->history[(evs->first + evs->n_history) % ETCD2_EVENTS_MAX] = etcd2_event_ref(ev);
    evs->n_history++;
    evs->history_bytes += size_of(ev);
}

/* A byte of a value is at most six of JSON. Besides values an event has its path twice, and less
 * than one KiB. */
bool etcd2_events_has_room(struct etcd2_events *evs, const char *path, size_t values_len)
{
    size_t most = 6 * values_len + 13 * strlen(path) + 1024;

    while (evs->n_history > 0 && !rdzv_quota_has(evs->quota, most, 0))
        forget_oldest(evs);
    return rdzv_quota_has(evs->quota, most, 0);
}

/* ---- watchers ------------------------------------------------------------------------------- */

/* Is some part of @path below @dir called _ANYTHING? */
static bool is_hidden_below(const char *path, const char *dir)
{
    return strstr(path + (strcmp(dir, "/") == 0 ? 0 : strlen(dir)), "/_") != NULL;
}

static void fire(struct etcd2_watcher *w, struct etcd2_event *ev)
{
    list_remove(&w->link);
    w->fire(w, ev);
}

void etcd2_events_tell_below(
    struct etcd2_events *evs, const struct etcd2_nodes *nodes, struct etcd2_event *ev)
{
    struct etcd2_watcher *w;
    struct etcd2_watcher *tmp;

    list_foreach_safe(w, tmp, &evs->watchers, link) {
        if (ev->index >= w->from_index && etcd2_path_is_below(w->path, ev->path) &&
            etcd2_node_find(nodes, w->path))
            fire(w, ev);
    }
}

void etcd2_events_tell(struct etcd2_events *evs, struct etcd2_event *ev)
{
    struct etcd2_watcher *w;
    struct etcd2_watcher *tmp;

    remember(evs, ev);
    if (ev->is_refresh)
        return;
    list_foreach_safe(w, tmp, &evs->watchers, link) {
        bool is_it = strcmp(w->path, ev->path) == 0;
        bool is_above = w->is_recursive && etcd2_path_is_below(ev->path, w->path) &&
                        !is_hidden_below(ev->path, w->path);

        if ((is_it || is_above) && ev->index >= w->from_index)
            fire(w, ev);
    }
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Does @w wait for an event such as @ev in the history? etcd decides that in another way than for a
 * new event: hidden keys are told as well, and so is a directory's removal to a watcher below it
 * whose key never existed. */
static bool matches(const struct etcd2_watcher *w, const struct etcd2_event *ev)
{
    if (ev->is_refresh)
        return false;
    return strcmp(w->path, ev->path) == 0 ||
           (w->is_recursive && etcd2_path_is_below(ev->path, w->path)) ||
           (ev->removes_dir && strncmp(w->path, ev->path, strlen(ev->path)) == 0);
}

bool etcd2_events_watch(struct etcd2_events *evs, struct etcd2_watcher *w, struct etcd2_event **ret)
{
    list_init(&w->link);
    if (w->from_index < evs->history_start)
        return false;
    *ret = NULL;
    for (size_t i = 0; i < evs->n_history && !*ret; i++) {
        struct etcd2_event *ev = evs->history[(evs->first + i) % ETCD2_EVENTS_MAX];

        if (ev->index >= w->from_index && matches(w, ev))
            *ret = etcd2_event_ref(ev);
    }
    if (!*ret)
        list_add_tail(&evs->watchers, &w->link);
    return true;
}
