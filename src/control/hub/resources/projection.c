/* projection.c - see projection.h. */
#include "projection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for an item's key. */
#define PROJECTION_KEY_MAX (RESOURCE_NAME_MAX + 32)

/* How long the watch may take to show a write. */
#define SHOWN_WITHIN (5 * NSEC_PER_SEC)

/* How long something stays refused that the hub does not have: what it lacks may have come. */
#define ASK_AGAIN (30 * NSEC_PER_SEC)

/* The first pause after a failure, and how often it is doubled. */
#define RETRY_FIRST     (1 * NSEC_PER_SEC)
#define RETRY_DOUBLINGS 6

/* How many items each projection_next() looks at for what has become old. */
#define LOOKS 100

void projection_init(struct projection *p)
{
    *p = (struct projection){.items = KEYS_NULL};
    list_init(&p->due);
    list_init(&p->waiting);
    list_init(&p->status_due);
}

static void item_free(struct projection *p, struct projection_item *item)
{
    list_remove(&item->due);
    list_remove(&item->status_due);
    resource_want_deinit(&item->want);
    resource_seen_deinit(&item->seen);
    json_decref(item->status);
    json_decref(item->own);
    json_decref(item->heard);
    free(item->refused);
    free(item->awaited);
    keys_free(&p->items, &item->keyed);
}

static struct projection_item *item_at(const struct projection *p, size_t i)
{
    return container_of(p->items.items[i], struct projection_item, keyed);
}

void projection_reset(struct projection *p)
{
    while (p->items.n > 0)
        item_free(p, item_at(p, p->items.n - 1));
    keys_deinit(&p->items);
    projection_init(p);
}

/* ---- items ----------------------------------------------------------------------------------- */

static const char *key_of(
    char buf[static PROJECTION_KEY_MAX], const struct object_kind *kind, const char *name)
{
    (void)snprintf(buf, PROJECTION_KEY_MAX, "%s/%.*s", kind->plural, RESOURCE_NAME_MAX, name);
    return buf;
}

struct projection_item *projection_find(
    const struct projection *p, const struct object_kind *kind, const char *name)
{
    char key[PROJECTION_KEY_MAX];

    return keys_find(&p->items, key_of(key, kind, name));
}

/* The item of that name, made if there is none. NULL: no memory. */
static struct projection_item *item_of(
    struct projection *p, const struct object_kind *kind, const char *name)
{
    char key[PROJECTION_KEY_MAX];
    struct projection_item *item = keys_open(&p->items, key_of(key, kind, name), sizeof(*item));

    if (!item || item->name)
        return item;
    item->kind = kind;
    item->name = item->keyed.key + strlen(kind->plural) + 1;
    list_init(&item->due);
    list_init(&item->status_due);
    return item;
}

static void make_due(struct projection *p, struct projection_item *item)
{
    if (item->is_asked || item->awaited)
        return;
    list_remove(&item->due);
    list_add_tail(&p->due, &item->due);
}

static void stop_waiting(struct projection *p, struct projection_item *item)
{
    free(item->awaited);
    item->awaited = NULL;
    make_due(p, item);
}

static void wait_until(struct projection *p, struct projection_item *item, nsec_t at)
{
    list_remove(&item->due);
    item->wait_until = at;
    list_add_tail(&p->waiting, &item->due);
}

/* ---- what is told ---------------------------------------------------------------------------- */

int projection_want(
    struct projection *p, const struct object_kind *kind, const char *name, const json_t *object)
{
    struct projection_item *item = object ? item_of(p, kind, name) : projection_find(p, kind, name);
    int r;

    if (!item)
        return object ? -ENOMEM : 0;
    r = resource_want_set(&item->want, kind, object);
    make_due(p, item);
    return r;
}

int projection_status(
    struct projection *p, const struct object_kind *kind, const char *name, const json_t *status)
{
    struct projection_item *item = item_of(p, kind, name);
    static const char *const own[] = {"conditions", "hub"};

    if (!item)
        return -ENOMEM;
    json_decref(item->status);
    json_decref(item->own);
    item->status = json_deep_copy(status);
    item->own = json_object();
    for (size_t i = 0; i < 2; i++)
        if (json_object_get(status, own[i]))
            (void)json_object_set(item->own, own[i], json_object_get(status, own[i]));
    if (kind == &mesh_edge_kind && !item->heard)
        item->heard = json_object();
    if (item->heard)
        own_parts_hear(item->heard, status);
    make_due(p, item);
    return item->status && item->own ? 0 : -ENOMEM;
}

int projection_saw(struct projection *p, const struct object_kind *kind, const json_t *resource)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(resource, "metadata"), "name"));
    struct projection_item *item = name ? item_of(p, kind, name) : NULL;
    int r;

    if (!item)
        return name ? -ENOMEM : 0;
    r = resource_seen_set(&item->seen, kind, resource);
    item->is_listed = true;
    if (r == 0 && item->awaited && strcmp(item->awaited, item->seen.version) == 0)
        stop_waiting(p, item);
    make_due(p, item);
    return r == -ENOMEM ? r : 0;
}

static void forget_seen(struct projection *p, struct projection_item *item)
{
    resource_seen_deinit(&item->seen);
    item->is_kept = false;
    item->has_to_mark = false;
    stop_waiting(p, item);
}

void projection_gone(struct projection *p, const struct object_kind *kind, const char *name)
{
    struct projection_item *item = projection_find(p, kind, name);

    if (item)
        forget_seen(p, item);
}

void projection_keep_all(struct projection *p, bool is_it)
{
    p->keeps_all = is_it;
    for (size_t i = 0; !is_it && i < p->items.n; i++)
        make_due(p, item_at(p, i));
}

void projection_list_begin(struct projection *p, const struct object_kind *kind)
{
    p->has_list[object_kind_index(kind)] = false;
    for (size_t i = 0; i < p->items.n; i++)
        if (item_at(p, i)->kind == kind)
            item_at(p, i)->is_listed = false;
}

void projection_list_end(struct projection *p, const struct object_kind *kind)
{
    p->has_list[object_kind_index(kind)] = true;
    for (size_t i = 0; i < p->items.n; i++) {
        struct projection_item *item = item_at(p, i);

        if (item->kind != kind)
            continue;
        if (!item->is_listed)
            forget_seen(p, item);
        else
            stop_waiting(p, item);
    }
}

/* ---- status ---------------------------------------------------------------------------------- */

static bool is_in_step(const struct projection_item *item)
{
    return item->want.spec && strcmp(item->seen.hash, item->want.hash) == 0;
}

/* The sentence that the resource shows already; NULL: it says that it is accepted. */
static const char *shown_refusal(const struct projection_item *item, const char **ret_reason)
{
    const json_t *one = resource_condition(item->seen.status, "Accepted");
    const char *status = json_string_value(json_object_get(one, "status"));

    if (!status || strcmp(status, "False") != 0)
        return NULL;
    *ret_reason = json_string_value(json_object_get(one, "reason"));
    return json_string_value(json_object_get(one, "message"));
}

struct resource_verdict projection_verdict(const struct projection_item *item, const char *now)
{
    struct resource_verdict v = {
        .generation = item->seen.generation, .now = now, .own_parts = &item->seen.own_parts};
    const char *reason = NULL;

    if (is_in_step(item) || !item->seen.is_there)
        return v;
    v.refused = item->refused;
    v.reason = item->reason;
    if (v.refused)
        return v;
    v.refused = shown_refusal(item, &reason);
    v.reason = reason && strcmp(reason, "Refused") == 0 ? "Refused" : "Conflict";
    if (!v.refused)
        v.refused = "the hub has another spec";
    return v;
}

size_t projection_parts(struct resource_part ret[static RESOURCE_PARTS_MAX],
    const struct projection_item *item, const char *now)
{
    struct resource_verdict v = projection_verdict(item, now);
    json_auto_t *status = item->status ? json_copy(item->status) : json_object();
    size_t n_due = 0;
    size_t n;

    (void)json_object_update(status, item->own);
    n = resource_parts(ret, item->kind, item->name, status, item->seen.status, &v);
    for (size_t i = 0; i < n; i++) {
        bool is_own = strcmp(ret[i].manager, RESOURCE_MANAGER_STATUS) == 0;

        if ((item->status || is_own) && !resource_part_is_shown(&ret[i], item->seen.status))
            ret[n_due++] = ret[i];
        else
            resource_part_deinit(&ret[i]);
    }
    return n_due;
}

/* Is there anything to write into its status? */
static bool needs_status(const struct projection *p, const struct projection_item *item)
{
    struct resource_part parts[RESOURCE_PARTS_MAX];
    size_t n;

    /* What the hub has not told the status of is left as it is. */
    if (item->want.spec && !item->own)
        return false;
    n = projection_parts(parts, item, p->now);
    for (size_t i = 0; i < n; i++)
        resource_part_deinit(&parts[i]);
    return n > 0;
}

/* How many of the parts that their writers write do not count, since they are old or set aside? */
static size_t count_off(const struct projection *p, struct projection_item *item)
{
    int64_t now = 0;

    (void)clock_text_parse(p->now, &now);
    return own_parts_assess(&item->seen.own_parts, item->heard, now);
}

static void look_at_own(const struct projection *p, struct projection_item *item)
{
    size_t n = count_off(p, item);

    item->is_to_tell |= n > item->n_off;
    item->n_off = n;
}

/* Some of the items: is there one of which a part has become old, or is to be set aside? */
static void look_for_old(struct projection *p)
{
    for (size_t i = 0; i < LOOKS && i < p->items.n; i++) {
        struct projection_item *item = item_at(p, p->cursor++ % p->items.n);

        if (item->seen.own_parts.n > 0 && count_off(p, item) != item->n_off)
            make_due(p, item);
    }
}

/* ---- what is next ---------------------------------------------------------------------------- */

/* What to do about the item's spec; RESOURCE_NOTHING: nothing. */
static enum resource_step decide(struct projection_item *item, enum resource_yield *ret_yield)
{
    enum resource_step what;

    *ret_yield = RESOURCE_YIELD_SAME;
    if (is_in_step(item)) {
        free(item->refused);
        item->refused = NULL;
    }
    if (item->has_to_mark && !item->seen.is_deleting && strcmp(item->seen.hash, item->asked) == 0 &&
        strcmp(item->seen.done, item->asked) != 0) {
        *ret_yield = RESOURCE_YIELD_ALL;
        return RESOURCE_APPLY;
    }
    item->has_to_mark = false;
    what = resource_decide(&item->want, &item->seen, item->is_kept);
    if (what == RESOURCE_NOTHING && item->has_waited && item->seen.is_there && !item->want.spec &&
        !item->seen.is_deleting)
        what = RESOURCE_ASK_PUT;
    item->has_waited = false;
    return what;
}

bool projection_next(struct projection *p, nsec_t now, struct projection_step *ret)
{
    struct projection_item *item;
    struct projection_item *tmp;

    for (unsigned i = 0; object_kinds[i]; i++)
        if (!p->has_list[i])
            return false;
    if (!p->is_complete)
        return false;
    list_foreach_safe(item, tmp, &p->waiting, due)
        if (item->wait_until <= now) {
            item->has_waited = !item->awaited;
            stop_waiting(p, item);
        }
    look_for_old(p);
    while ((item = list_first(&p->due, struct projection_item, due))) {
        enum resource_yield yield;
        enum resource_step what = decide(item, &yield);

        list_remove(&item->due);
        if (what == RESOURCE_DELETE && p->keeps_all)
            continue;
        if (what != RESOURCE_NOTHING) {
            *ret = (struct projection_step){.item = item, .what = what, .yield = yield};
            return true;
        }
        if (!item->want.spec && !item->seen.is_there) {
            item_free(p, item);
            continue;
        }
        list_remove(&item->status_due);
        if (!item->seen.is_there || item->seen.is_deleting)
            continue;
        if (!item->want.spec)
            wait_until(p, item, now + ASK_AGAIN);
        look_at_own(p, item);
        if (needs_status(p, item) || (item->is_to_tell && item->own))
            list_add_tail(&p->status_due, &item->status_due);
        else
            projection_wrote_status(item);
    }
    item = list_first(&p->status_due, struct projection_item, status_due);
    if (!item || !rate_take(&p->status_rate, now, PROJECTION_STATUS_EACH, PROJECTION_STATUS_BURST))
        return false;
    list_remove(&item->status_due);
    *ret = (struct projection_step){.item = item, .what = RESOURCE_NOTHING};
    return true;
}

/* ---- what became of it ----------------------------------------------------------------------- */

void projection_asked(struct projection *p, struct projection_item *item)
{
    list_remove(&item->due);
    item->is_asked = true;
    memcpy(item->asked, item->seen.hash, sizeof(item->asked));
}

static void set_refused(struct projection_item *item, const char *reason, const char *text)
{
    free(item->refused);
    item->refused = strdup(text);
    item->reason = reason;
}

bool projection_judged(struct projection *p, struct projection_item *item, bool is_remove,
    int status, const char *text, const json_t *object, nsec_t now)
{
    bool is_new;
    bool is_done = (status >= 200 && status <= 299) || (is_remove && status == 404);

    item->is_asked = false;
    if (is_done) {
        (void)resource_want_set(&item->want, item->kind, is_remove ? NULL : object);
        make_due(p, item);
        return false;
    }
    /* The hub is busy, or its store is away. */
    if (status >= 500 || status == 429) {
        projection_failed(p, item, now);
        return false;
    }
    is_new = !item->refused || strcmp(item->refused, text) != 0;
    item->is_kept = is_remove;
    item->has_to_mark = !is_remove;
    set_refused(item, status == 409 ? "Conflict" : "Refused", text);
    make_due(p, item);
    return is_new || is_remove;
}

bool projection_clash(struct projection_item *item, const char *text)
{
    bool is_new = !item->refused || strcmp(item->refused, text) != 0;

    /* A refused wish stays one: its own sentence says more. */
    if (item->has_to_mark)
        return false;
    set_refused(item, "Conflict", text);
    return is_new;
}

void projection_wrote(
    struct projection *p, struct projection_item *item, const char *version, nsec_t now)
{
    item->n_failed = 0;
    item->has_to_mark = false;
    free(item->awaited);
    item->awaited = NULL;
    if (version && (!item->seen.version || strcmp(version, item->seen.version) != 0)) {
        item->awaited = strdup(version);
        wait_until(p, item, now + SHOWN_WITHIN);
    } else {
        make_due(p, item);
    }
}

void projection_wrote_status(struct projection_item *item)
{
    json_decref(item->status);
    item->status = NULL;
}

void projection_failed(struct projection *p, struct projection_item *item, nsec_t now)
{
    unsigned n = item->n_failed < RETRY_DOUBLINGS ? item->n_failed++ : RETRY_DOUBLINGS;

    wait_until(p, item, now + (RETRY_FIRST << n));
}
