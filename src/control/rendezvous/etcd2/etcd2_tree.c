/* etcd2_tree.c - see etcd2_tree.h: what each operation does to the tree. */
#include "rendezvous/etcd2/etcd2_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

/* Most bytes of a value that a refusal shows. */
#define CAUSE_VALUE_MAX 900

_Static_assert(RDZV_ANSWER_MAX == 16u << 20, "a refusal says it in words");

/* Makes a text of a number in a macro. */
#define STRING_(x) #x
#define STRING(x)  STRING_(x)

/* ==== events, and who waits for them ========================================================= */

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

/*
 * An event for a change; has_space() was true
 * @node:	as it is now
 * @prev:	as it was; NULL: nothing was there
 *
 * Return: gives it; NULL: no memory.
 */
static struct etcd2_event *etcd2_event_new(struct etcd2_events *evs, enum etcd2_action action,
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

/* Drop the history; from now on it begins at the index @start. */
static void etcd2_events_forget(struct etcd2_events *evs, uint64_t start)
{
    while (evs->n_history > 0)
        forget_oldest(evs);
    evs->history_start = start;
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

/* Add it to the history, and tell the watchers of its path and those above. */
static void etcd2_events_tell(struct etcd2_events *evs, struct etcd2_event *ev)
{
    struct etcd2_watcher *w;
    struct etcd2_watcher *tmp;

    while (evs->n_history > 0 && (evs->n_history == ETCD2_EVENTS_MAX ||
                                     evs->history_bytes + size_of(ev) > ETCD2_EVENT_BYTES_MAX))
        forget_oldest(evs);
    evs->history[(evs->first + evs->n_history) % ETCD2_EVENTS_MAX] = etcd2_event_ref(ev);
    evs->n_history++;
    evs->history_bytes += size_of(ev);
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

/* ==== the tree =============================================================================== */

/* ---- refusals ------------------------------------------------------------------------------- */

int etcd2_refusal_set(struct etcd2_refusal *why, int code, const char *fmt, const char *name)
{
    int n = snprintf(why->cause, sizeof(why->cause), fmt, name);

    why->cause_len = n < (int)sizeof(why->cause) ? (size_t)n : sizeof(why->cause) - 1;
    return why->code = code;
}

static int refuse(struct etcd2_refusal *why, int code, const char *cause)
{
    return etcd2_refusal_set(why, code, "%s", cause);
}

static int refuse_full(struct etcd2_refusal *why)
{
    return refuse(why, ETCD2_E_INTERNAL, "the job or its network is full");
}

/* The beginning of a value: at most CAUSE_VALUE_MAX bytes, ending with a whole UTF-8 character. */
static struct etcd2_text shown(struct etcd2_text value)
{
    return (struct etcd2_text){value.p, text_cut(value.p, value.len, CAUSE_VALUE_MAX)};
}

/* ---- finding ------------------------------------------------------------------------------- */

static int find(
    struct etcd2_tree *t, const char *path, struct etcd2_node **ret, struct etcd2_refusal *why)
{
    char part[ETCD2_PATH_MAX + 1];
    struct etcd2_node *n = t->nodes.root;
    size_t len = 0;

    while (!etcd2_path_is_root(path) && path[len] == '/') {
        if (!n->is_dir)
            return refuse(why, ETCD2_E_NOT_DIR, n->keyed.key);
        len = etcd2_path_next(path, len, part);
        n = keys_find(&n->children, part);
        if (!n)
            return refuse(why, ETCD2_E_NOT_FOUND, part);
    }
    *ret = n;
    return 0;
}

/* The same for a change. The root cannot be changed. */
static int find_changeable(
    struct etcd2_tree *t, const char *path, struct etcd2_node **ret, struct etcd2_refusal *why)
{
    return etcd2_path_is_root(path) ? refuse(why, ETCD2_E_ROOT, "/") : find(t, path, ret, why);
}

/* Finds the directory that holds @path, or makes it with all above it, at the next index. */
static int make_parents(
    struct etcd2_tree *t, const char *path, struct etcd2_node **ret, struct etcd2_refusal *why)
{
    const char *last = strrchr(path, '/');
    char part[ETCD2_PATH_MAX + 1];
    struct etcd2_node *n = t->nodes.root;
    size_t len = 0;

    while (path + len < last) {
        struct etcd2_node *child;

        len = etcd2_path_next(path, len, part);
        child = keys_find(&n->children, part);
        if (child) {
            n = child;
        } else {
            n = etcd2_node_add(&t->nodes, n, part, true, t->index + 1);
            if (!n)
                return refuse_full(why);
            etcd2_node_save(&t->nodes, n);
        }
        if (!n->is_dir)
            return refuse(why, ETCD2_E_NOT_DIR, n->keyed.key);
    }
    *ret = n;
    return 0;
}

/* ---- events --------------------------------------------------------------------------------- */

/*
 * Is there room for the event of a change?
 * @n:		the node as it is now; NULL: there is none
 * @len:	of its new value
 *
 * Drops the oldest events of the history if that makes room. A byte of a value is at most six of
 * JSON. Besides values an event has its path twice, and less than one KiB.
 */
static bool has_space(
    struct etcd2_tree *t, const char *path, const struct etcd2_node *n, size_t len)
{
    size_t most = 6 * (len + (n ? etcd2_node_value(n).len : 0)) + 13 * strlen(path) + 1024;

    while (t->events.n_history > 0 && !rdzv_quota_has(t->events.quota, most, 0))
        forget_oldest(&t->events);
    return rdzv_quota_has(t->events.quota, most, 0);
}

/* A change has been made: saves the node as it is now, and makes an event at the next index. @prev:
 * the node before; NULL: it was not there. */
static int conclude(struct etcd2_tree *t, enum etcd2_action action, struct etcd2_node *n,
    const struct etcd2_shown *prev, const struct etcd2_change *change, struct etcd2_event **ret,
    struct etcd2_refusal *why)
{
    struct etcd2_shown shown_now = etcd2_node_show(n, change->when);
    struct etcd2_event *ev;

    t->index++;
    /* The event of an updated directory shows the new index, but the directory does not keep it. */
    shown_now.modified = t->index;
    etcd2_node_save(&t->nodes, n);
    etcd2_index_save(&t->nodes, t->index);
    ev = etcd2_event_new(&t->events, action, t->index, &shown_now, prev);
    rdzv_buf_unref(shown_now.value);
    if (!ev) {
        etcd2_events_forget(&t->events, t->index + 1);
        return refuse(why, ETCD2_E_INTERNAL, "no memory for an event");
    }
    ev->is_refresh = change->is_refresh;
    etcd2_events_tell(&t->events, ev);
    *ret = ev;
    return 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

static void write_get(
    struct etcd2_json *j, const struct etcd2_node *n, bool is_recursive, struct etcd2_when when)
{
    etcd2_json_raw(j, "{\"action\":\"get\",\"node\":");
    etcd2_node_write(j, n, is_recursive ? ETCD2_DEPTH_MAX + 1 : 1, when);
    etcd2_json_raw(j, "}\n");
}

int etcd2_tree_get(struct etcd2_tree *t, const char *path, bool is_recursive,
    struct etcd2_when when, char **ret, size_t *ret_len, struct etcd2_refusal *why)
{
    struct etcd2_json j = {.max = RDZV_ANSWER_MAX};
    struct etcd2_node *n;
    int r = find(t, path, &n, why);

    if (r != 0)
        return r;
    write_get(&j, n, is_recursive, when);
    if (j.len > RDZV_ANSWER_MAX)
        return refuse(
            why, ETCD2_E_INTERNAL, "the answer would be over 16 MiB: ask for a part of it");
    if (!rdzv_quota_has(t->nodes.quota, j.len, 0))
        return refuse_full(why);
    j = (struct etcd2_json){.text = malloc(j.len), .max = RDZV_ANSWER_MAX};
    if (!j.text)
        return refuse(why, ETCD2_E_INTERNAL, "no memory for an answer");
    write_get(&j, n, is_recursive, when);
    *ret = j.text;
    *ret_len = j.len;
    return 0;
}

/* ---- creating and setting ------------------------------------------------------------------- */

/* Puts a node with @value at @path: a new one, or in place of the file @old. */
static int place(struct etcd2_tree *t, enum etcd2_action action, const char *path,
    struct etcd2_text value, const struct etcd2_change *change, struct etcd2_node *old,
    struct etcd2_event **ret, struct etcd2_refusal *why)
{
    struct etcd2_text kept = change->is_dir ? (struct etcd2_text){.p = ""} : value;
    struct rdzv_buf *copy = NULL;
    struct etcd2_shown prev;
    struct etcd2_node *parent;
    struct etcd2_node *n = old;
    int r = 0;

    if (!has_space(t, path, old, kept.len) || !etcd2_value_new(&t->nodes, kept, &copy))
        return refuse_full(why);
    if (!old && (r = make_parents(t, path, &parent, why)) == 0) {
        n = etcd2_node_add(&t->nodes, parent, path, change->is_dir, t->index + 1);
        r = n ? 0 : refuse_full(why);
    }
    if (r != 0) {
        rdzv_buf_unref(copy);
        return r;
    }
    prev = etcd2_node_show(n, change->when);
    n->is_dir = change->is_dir;
    n->created = t->index + 1;
    n->modified = t->index + 1;
    etcd2_node_set_value(n, copy);
    etcd2_node_set_ttl(&t->nodes, n, change);
    r = conclude(t, action, n, old ? &prev : NULL, change, ret, why);
    rdzv_buf_unref(prev.value);
    return r;
}

int etcd2_tree_create(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why)
{
    struct etcd2_refusal absent;
    struct etcd2_node *n;

    if (etcd2_path_is_root(path))
        return refuse(why, ETCD2_E_ROOT, "/");
    if (find(t, path, &n, &absent) == 0)
        return refuse(why, ETCD2_E_EXISTS, path);
    return place(t, ETCD2_ACTION_CREATE, path, change->value, change, NULL, ret, why);
}

int etcd2_tree_create_in_order(struct etcd2_tree *t, const char *path,
    const struct etcd2_change *change, struct etcd2_event **ret, struct etcd2_refusal *why)
{
    char below[ETCD2_PATH_MAX + 1];
    char clean[ETCD2_PATH_MAX + 1];
    int n = snprintf(below, sizeof(below), "%s/%020llu", etcd2_path_is_root(path) ? "" : path,
        (unsigned long long)(t->index + 1));

    if (n < 0 || (size_t)n >= sizeof(below))
        return refuse(why, ETCD2_E_FORM, "the key is too long");
    /* The new name is one more part, and @path may have as many as are allowed. */
    if (!etcd2_path_clean(below, clean))
        return refuse(why, ETCD2_E_FORM, "the key has more than " STRING(ETCD2_DEPTH_MAX) " parts");
    return etcd2_tree_create(t, clean, change, ret, why);
}

int etcd2_tree_set(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why)
{
    struct etcd2_text value = change->value;
    struct etcd2_node *n = NULL;
    int r = find(t, path, &n, why);

    if (r != 0 && (r != ETCD2_E_NOT_FOUND || change->is_refresh))
        return r;
    why->code = 0;
    if (etcd2_path_is_root(path))
        return refuse(why, ETCD2_E_ROOT, "/");
    if (r == 0 && n->is_dir)
        return refuse(why, ETCD2_E_NOT_FILE, path);
    if (r == 0 && change->is_refresh)
        value = etcd2_node_value(n);
    return place(t, ETCD2_ACTION_SET, path, value, change, r == 0 ? n : NULL, ret, why);
}

/* ---- changing ------------------------------------------------------------------------------- */

/* Changes a node that is there: its time to live, and for a file its value, unless it is a refresh.
 */
static int change_node(struct etcd2_tree *t, enum etcd2_action action, struct etcd2_node *n,
    const struct etcd2_change *change, struct etcd2_event **ret, struct etcd2_refusal *why)
{
    bool is_written = !n->is_dir && !change->is_refresh;
    struct rdzv_buf *copy = NULL;
    struct etcd2_shown prev;
    int r;

    if (!has_space(t, n->keyed.key, n, is_written ? change->value.len : etcd2_node_value(n).len) ||
        (is_written && !etcd2_value_new(&t->nodes, change->value, &copy)))
        return refuse_full(why);
    prev = etcd2_node_show(n, change->when);
    if (is_written)
        etcd2_node_set_value(n, copy);
    if (!n->is_dir)
        n->modified = t->index + 1;
    etcd2_node_set_ttl(&t->nodes, n, change);
    r = conclude(t, action, n, &prev, change, ret, why);
    rdzv_buf_unref(prev.value);
    return r;
}

int etcd2_tree_update(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why)
{
    struct etcd2_node *n;
    int r = find_changeable(t, path, &n, why);

    if (r != 0)
        return r;
    if (n->is_dir && change->value.len > 0)
        return refuse(why, ETCD2_E_NOT_FILE, path);
    return change_node(t, ETCD2_ACTION_UPDATE, n, change, ret, why);
}

/* Sets the cause to "[EXPECTED != THERE]MORE". */
static void say_values(struct etcd2_refusal *why, struct etcd2_text expected,
    struct etcd2_text there, const char *more)
{
    size_t len = 0;
    const struct etcd2_text parts[] = {etcd2_text_of("["), shown(expected), etcd2_text_of(" != "),
        shown(there), etcd2_text_of("]"), etcd2_text_of(more)};

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        memcpy(why->cause + len, parts[i].p, parts[i].len);
        len += parts[i].len;
    }
    why->cause[len] = '\0';
    why->cause_len = len;
}

/* Is the file as @change expects it? */
static int compare(
    const struct etcd2_node *n, const struct etcd2_change *change, struct etcd2_refusal *why)
{
    struct etcd2_text there = etcd2_node_value(n);
    struct etcd2_text expected =
        change->has_prev_value ? change->prev_value : (struct etcd2_text){.p = ""};
    bool value_fits = !change->has_prev_value ||
                      (there.len == expected.len && memcmp(there.p, expected.p, there.len) == 0);
    bool index_fits = change->prev_index == 0 || n->modified == change->prev_index;
    char indices[64];

    if (value_fits && index_fits)
        return 0;
    (void)snprintf(indices, sizeof(indices), "%s[%llu != %llu]", value_fits ? "" : " ",
        (unsigned long long)change->prev_index, (unsigned long long)n->modified);
    if (value_fits)
        return refuse(why, ETCD2_E_TEST_FAILED, indices);
    say_values(why, expected, there, index_fits ? "" : indices);
    return why->code = ETCD2_E_TEST_FAILED;
}

/* Finds the file at @path, if it is as @change expects. */
static int find_expected(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_node **ret, struct etcd2_refusal *why)
{
    int r = find(t, path, ret, why);

    if (r != 0)
        return r;
    if ((*ret)->is_dir)
        return refuse(why, ETCD2_E_NOT_FILE, path);
    return compare(*ret, change, why);
}

int etcd2_tree_swap(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why)
{
    struct etcd2_node *n;
    int r;

    if (etcd2_path_is_root(path))
        return refuse(why, ETCD2_E_ROOT, "/");
    r = find_expected(t, path, change, &n, why);
    if (r != 0)
        return r;
    return change_node(t, ETCD2_ACTION_COMPARE_AND_SWAP, n, change, ret, why);
}

/* ---- removing ------------------------------------------------------------------------------- */

/* Removes a node with all below it. The root stays, only what is below it goes. */
static void remove_all(struct etcd2_tree *t, struct etcd2_node *n)
{
    while (n->children.n > 0)
        remove_all(t, etcd2_node_of(n->children.items[n->children.n - 1]));
    if (n->parent)
        etcd2_node_free(&t->nodes, n);
}

/* Tells the watchers of nodes below the path of @ev, which is being removed. */
static void tell_below(struct etcd2_tree *t, struct etcd2_event *ev)
{
    struct etcd2_watcher *w;
    struct etcd2_watcher *tmp;
    struct etcd2_node *unused;
    struct etcd2_refusal absent;

    list_foreach_safe(w, tmp, &t->events.watchers, link) {
        if (ev->index >= w->from_index && etcd2_path_is_below(w->path, ev->path) &&
            find(t, w->path, &unused, &absent) == 0)
            fire(w, ev);
    }
}

static int remove_node(struct etcd2_tree *t, enum etcd2_action action, struct etcd2_node *n,
    struct etcd2_when when, struct etcd2_event **ret, struct etcd2_refusal *why)
{
    struct etcd2_shown prev = etcd2_node_show(n, when);
    struct etcd2_shown gone = prev;
    struct etcd2_event *ev;

    gone.has_nothing = true;
    gone.modified = t->index + 1;
    /* A node can be removed even when the job is full. Then the event does not show its former
     * value. */
    if (!has_space(t, n->keyed.key, n, 0))
        prev.has_nothing = true;
    ev = etcd2_event_new(&t->events, action, t->index + 1, &gone, &prev);
    rdzv_buf_unref(prev.value);
    if (!ev)
        return refuse(why, ETCD2_E_INTERNAL, "no memory for an event");
    ev->removes_dir = n->is_dir;
    tell_below(t, ev);
    remove_all(t, n);
    t->index++;
    etcd2_index_save(&t->nodes, t->index);
    etcd2_events_tell(&t->events, ev);
    *ret = ev;
    return 0;
}

int etcd2_tree_delete(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why)
{
    struct etcd2_node *n;
    int r = find_changeable(t, path, &n, why);

    if (r != 0)
        return r;
    if (n->is_dir && !change->is_dir && !change->is_recursive)
        return refuse(why, ETCD2_E_NOT_FILE, path);
    if (n->children.n > 0 && !change->is_recursive)
        return refuse(why, ETCD2_E_NOT_EMPTY, path);
    return remove_node(t, ETCD2_ACTION_DELETE, n, change->when, ret, why);
}

int etcd2_tree_compare_delete(struct etcd2_tree *t, const char *path,
    const struct etcd2_change *change, struct etcd2_event **ret, struct etcd2_refusal *why)
{
    struct etcd2_node *n;
    int r = find_expected(t, path, change, &n, why);

    return r == 0 ? remove_node(t, ETCD2_ACTION_COMPARE_AND_DELETE, n, change->when, ret, why) : r;
}

void etcd2_tree_expire(struct etcd2_tree *t, struct etcd2_when when)
{
    while (heap_due(&t->nodes.ttls) <= when.now) {
        struct etcd2_node *n = container_of(heap_first(&t->nodes.ttls), struct etcd2_node, ttl);
        struct etcd2_event *ev = NULL;
        struct etcd2_refusal why;

        /* Without memory for an event the node stays until there is some. */
        if (remove_node(t, ETCD2_ACTION_EXPIRE, n, when, &ev, &why) != 0)
            return;
        etcd2_event_unref(ev);
        t->counts[ETCD2_COUNT_EXPIRE]++;
    }
}

/* ---- watching ------------------------------------------------------------------------------- */

int etcd2_tree_watch(struct etcd2_tree *t, struct etcd2_watcher *w, uint64_t from_index,
    struct etcd2_event **ret, struct etcd2_refusal *why)
{
    struct etcd2_events *evs = &t->events;

    list_init(&w->link);
    w->from_index = from_index > 0 ? from_index : t->index + 1;
    if (w->from_index < evs->history_start) {
        why->cause_len = (size_t)snprintf(why->cause, sizeof(why->cause),
            "the requested history has been cleared [%llu/%llu]",
            (unsigned long long)evs->history_start, (unsigned long long)w->from_index);
        return why->code = ETCD2_E_CLEARED;
    }
    *ret = NULL;
    for (size_t i = 0; i < evs->n_history && !*ret; i++) {
        struct etcd2_event *ev = evs->history[(evs->first + i) % ETCD2_EVENTS_MAX];

        if (ev->index >= w->from_index && matches(w, ev))
            *ret = etcd2_event_ref(ev);
    }
    if (!*ret)
        list_add_tail(&evs->watchers, &w->link);
    return 0;
}

/* ---- saving and loading --------------------------------------------------------------------- */

int etcd2_tree_load(struct etcd2_tree *t, const void *p, size_t len, const struct rdzv_hash *hash,
    struct etcd2_when when, struct err *e)
{
    uint64_t index;
    int r = etcd2_node_load(&t->nodes, p, len, hash, when, &index, e);

    if (r == 0 && index > 0) {
        t->index = index;
        etcd2_events_forget(&t->events, t->index + 1);
    }
    return r;
}

/* ---- life ----------------------------------------------------------------------------------- */

int etcd2_tree_init(struct etcd2_tree *t, const struct rdzv_saver *saver, struct rdzv_quota *quota)
{
    *t =
        (struct etcd2_tree){.nodes = {.saver = *saver, .quota = quota}, .events = {.quota = quota}};
    list_init(&t->events.watchers);
    t->nodes.root = etcd2_node_add(&t->nodes, NULL, "/", true, 0);
    return t->nodes.root ? 0 : -ENOMEM;
}

void etcd2_tree_clear(struct etcd2_tree *t)
{
    remove_all(t, t->nodes.root);
    etcd2_events_forget(&t->events, t->index + 1);
}

void etcd2_tree_deinit(struct etcd2_tree *t)
{
    if (!t->nodes.root)
        return;
    etcd2_tree_clear(t);
    etcd2_node_free(&t->nodes, t->nodes.root);
    t->nodes.root = NULL;
    heap_deinit(&t->nodes.ttls);
}
