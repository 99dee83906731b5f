/* rdzv_tree_node.c - nodes of an etcd tree: in memory, in the quota, as blobs, and as JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "rendezvous/rdzv_record.h"
#include "rendezvous/rdzv_tree_internal.h"

/* What a node costs beside its path and value, about. */
#define OVERHEAD 320

/* A blob: what it is, indices, time to live and what it has, then for a node its path behind its
 * length, and the value up to the end. */
enum blob_kind {
    BLOB_INDEX = 1, /* the tree's index, where a node's creation is */
    BLOB_FILE = 2,
    BLOB_DIR = 3,
};
#define HAS_TTL 0x100000000u /* beside the seconds */

/* What the index's blob is called; no path is empty. */
#define INDEX_NAME ""

/* ---- making and ending ---------------------------------------------------------------------- */

static size_t cost_of(const struct rdzv_node *n)
{
    return OVERHEAD + strlen(n->keyed.key) + (n->value ? strlen(n->value) : 0);
}

struct rdzv_node *rdzv_tree__add(
    struct rdzv_tree *t, struct rdzv_node *parent, const char *path, bool is_dir, uint64_t index)
{
    struct rdzv_node *n;

    if (!rdzv_quota_has(t->quota, OVERHEAD + strlen(path), 1))
        return NULL;
    n = calloc(1, sizeof(*n));
    if (!n)
        return NULL;
    n->keyed.key = strdup(path);
    if (!n->keyed.key || (parent && keys_add(&parent->children, &n->keyed) != 0)) {
        free(n->keyed.key);
        free(n);
        return NULL;
    }
    n->parent = parent;
    n->is_dir = is_dir;
    n->created = index;
    n->modified = index;
    rdzv_quota_take(t->quota, cost_of(n), 1);
    return n;
}

int rdzv_tree__set_value(struct rdzv_tree *t, struct rdzv_node *n, const char *value)
{
    size_t had = n->value ? strlen(n->value) : 0;
    size_t len = strlen(value);
    char *copy = NULL;

    if (len <= had || rdzv_quota_has(t->quota, len - had, 0))
        copy = strdup(value);
    if (!copy)
        return -ENOMEM;
    rdzv_quota_give(t->quota, had, 0);
    rdzv_quota_take(t->quota, len, 0);
    free(n->value);
    n->value = copy;
    return 0;
}

void rdzv_tree__drop_value(struct rdzv_tree *t, struct rdzv_node *n)
{
    rdzv_quota_give(t->quota, n->value ? strlen(n->value) : 0, 0);
    free(n->value);
    n->value = NULL;
}

void rdzv_tree__set_ttl(
    struct rdzv_tree *t, struct rdzv_node *n, bool has_ttl, uint32_t seconds, struct rdzv_when when)
{
    nsec_t ttl = (nsec_t)seconds * NSEC_PER_SEC;

    n->ttl_seconds = seconds;
    n->ends_wall = when.wall + ttl;
    /* Without memory for it the node stays too long, which is the lesser evil. */
    (void)heap_set(&t->ttls, &n->ttl, has_ttl ? when.now + ttl : NSEC_NEVER);
}

void rdzv_tree__free(struct rdzv_tree *t, struct rdzv_node *n)
{
    if (n->saved > 0)
        t->saver.drop(t->saver.ctx, n->keyed.key, strlen(n->keyed.key), n->saved);
    heap_remove(&t->ttls, &n->ttl);
    if (n->parent)
        keys_remove(&n->parent->children, &n->keyed);
    rdzv_quota_give(t->quota, cost_of(n), 1);
    keys_deinit(&n->children);
    free(n->keyed.key);
    free(n->value);
    free(n);
}

/* ---- blobs ---------------------------------------------------------------------------------- */

static void build(struct rdzv_tree *t, enum blob_kind kind, const uint64_t numbers[static 3])
{
    t->scratch.len = 0;
    str_add_bytes(&t->scratch, (const char[]){(char)kind}, 1);
    for (int i = 0; i < 3; i++) {
        struct le64 le = le64_make(numbers[i]);

        str_add_bytes(&t->scratch, (const char *)&le, sizeof(le));
    }
}

void rdzv_tree__save(struct rdzv_tree *t, struct rdzv_node *n)
{
    const char *path = n->keyed.key;
    struct le64 path_len = le64_make(strlen(path));
    uint64_t ttl = n->ttl.pos ? HAS_TTL | n->ttl_seconds : 0;

    /* What ends at once need not be kept. */
    if (n->parent == NULL || ttl == HAS_TTL)
        return;
    build(t, n->is_dir ? BLOB_DIR : BLOB_FILE, (uint64_t[]){n->created, n->modified, ttl});
    str_add_bytes(&t->scratch, (const char *)&path_len, sizeof(path_len));
    str_add(&t->scratch, path);
    str_add(&t->scratch, n->value ? n->value : "");
    if (t->scratch.failed)
        return;
    t->saver.put(t->saver.ctx, path, strlen(path), t->scratch.text, t->scratch.len, n->saved);
    n->saved = t->scratch.len;
}

void rdzv_tree__save_index(struct rdzv_tree *t)
{
    build(t, BLOB_INDEX, (uint64_t[]){t->index, 0, 0});
    if (!t->scratch.failed)
        t->saver.put(t->saver.ctx, INDEX_NAME, 0, t->scratch.text, t->scratch.len, 0);
}

void rdzv_tree_forget_index(struct rdzv_tree *t)
{
    if (t->index > 0)
        t->saver.drop(t->saver.ctx, INDEX_NAME, 0, 1);
}

/* The directories above a path, made if missing: each comes with a blob of its own, sooner or
 * later, that says the rest about it. */
static struct rdzv_node *load_parents(struct rdzv_tree *t, const char *path)
{
    char part[RDZV_TREE_PATH_MAX + 1];
    struct rdzv_node *n = t->root;

    for (const char *slash = strchr(path + 1, '/'); n && slash; slash = strchr(slash + 1, '/')) {
        struct keyed *k;

        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = '\0';
        k = keys_find(&n->children, part);
        n = k ? rdzv_node_of(k) : rdzv_tree__add(t, n, part, true, 0);
    }
    return n;
}

static int load_node(struct rdzv_tree *t, bool is_dir, const uint64_t numbers[static 3],
    const char *path, const char *value, size_t saved, struct rdzv_when when)
{
    struct rdzv_node *parent = load_parents(t, path);
    struct keyed *k = parent ? keys_find(&parent->children, path) : NULL;
    struct rdzv_node *n = k ? rdzv_node_of(k) : NULL;

    if (parent && !n)
        n = rdzv_tree__add(t, parent, path, is_dir, 0);
    if (!n || (!is_dir && rdzv_tree__set_value(t, n, value) != 0))
        return -ENOMEM;
    n->created = numbers[0];
    n->modified = numbers[1];
    n->saved = saved;
    if (numbers[2] & HAS_TTL)
        rdzv_tree__set_ttl(t, n, true, (uint32_t)numbers[2], when);
    return 0;
}

int rdzv_tree_load(
    struct rdzv_tree *t, const void *p, size_t len, struct rdzv_when when, struct err *e)
{
    struct reader r = reader_make(p, len);
    _cleanup_(freep) char *value = NULL;
    char path[RDZV_TREE_PATH_MAX + 1];
    char clean[RDZV_TREE_PATH_MAX + 1];
    uint8_t kind = reader_u8(&r);
    uint64_t numbers[3];
    struct le64 le;
    size_t path_len;
    int result;

    for (int i = 0; i < 3; i++) {
        reader_copy(&r, &le, sizeof(le));
        numbers[i] = le64_get(le);
    }
    if (kind == BLOB_INDEX && !r.failed) {
        t->index = numbers[0];
        rdzv_tree__forget_history(t);
        return 0;
    }
    reader_copy(&r, &le, sizeof(le));
    path_len = le64_get(le);
    if (r.failed || (kind != BLOB_FILE && kind != BLOB_DIR) || path_len > RDZV_TREE_PATH_MAX ||
        path_len > reader_left(&r) || reader_left(&r) - path_len > RDZV_TREE_VALUE_MAX)
        return err_set(e, -EINVAL, "not a node of an etcd tree");
    reader_copy(&r, path, path_len);
    path[path_len] = '\0';
    value = strndup((const char *)r.p, reader_left(&r));
    if (strlen(path) != path_len || !rdzv_tree_clean(path, clean) || strcmp(path, clean) != 0 ||
        path_len < 2)
        return err_set(e, -EINVAL, "a node of an etcd tree without a path");
    result = value ? load_node(t, kind == BLOB_DIR, numbers, path, value, len, when) : -ENOMEM;
    return result == 0 ? 0 : err_set(e, result, "no memory for an etcd tree");
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* As Go prints a time: RFC 3339, in UTC, the fraction without trailing zeroes. */
static void format_time(nsec_t wall, char buf[static 48])
{
    time_t seconds = (time_t)(wall / NSEC_PER_SEC);
    struct tm tm;
    size_t n;

    (void)gmtime_r(&seconds, &tm);
    n = strftime(buf, 24, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(buf + n, 48 - n, ".%09lld", (long long)(wall % NSEC_PER_SEC));
    while (buf[n - 1] == '0')
        n--;
    if (buf[n - 1] == '.')
        n--;
    memcpy(buf + n, "Z", 2);
}

static void add_ttl(json_t *json, const struct rdzv_node *n, struct rdzv_when when)
{
    nsec_t left = n->ttl.due - when.now;
    char text[48];

    if (!n->ttl.pos)
        return;
    format_time(n->ends_wall, text);
    json_object_set_new(json, "expiration", json_string(text));
    if (left > 0)
        json_object_set_new(
            json, "ttl", json_integer((json_int_t)((left + NSEC_PER_SEC - 1) / NSEC_PER_SEC)));
}

/* What is called _ANYTHING is not listed. */
static bool is_hidden(const char *path)
{
    return strrchr(path, '/')[1] == '_';
}

static void add_children(
    json_t *json, const struct rdzv_node *n, unsigned depth, struct rdzv_when when)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n->children.n; i++)
        if (!is_hidden(n->children.items[i]->key))
            json_array_append_new(
                list, rdzv_tree__json(rdzv_node_of(n->children.items[i]), depth - 1, when));
    if (json_array_size(list) > 0)
        json_object_set_new(json, "nodes", list);
    else
        json_decref(list);
}

json_t *rdzv_tree__json(const struct rdzv_node *n, unsigned depth, struct rdzv_when when)
{
    json_t *json = json_object();

    if (n->parent)
        json_object_set_new(json, "key", json_string(n->keyed.key));
    if (n->is_dir)
        json_object_set_new(json, "dir", json_true());
    else
        json_object_set_new(json, "value", json_string(n->value));
    add_ttl(json, n, when);
    if (n->is_dir && depth > 0)
        add_children(json, n, depth, when);
    if (n->modified > 0)
        json_object_set_new(json, "modifiedIndex", json_integer((json_int_t)n->modified));
    if (n->created > 0)
        json_object_set_new(json, "createdIndex", json_integer((json_int_t)n->created));
    return json;
}
