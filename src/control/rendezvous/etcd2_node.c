/* etcd2_node.c - nodes of an etcd tree: in memory, in the quota, as blobs, and as JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/err.h"
#include "rendezvous/rdzv_blob.h"
#include "rendezvous/etcd2_tree_internal.h"

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
    return RDZV_COST_NODE + strlen(n->keyed.key);
}

/* Without asking for room. */
static struct rdzv_node *node_new(
    struct rdzv_tree *t, struct rdzv_node *parent, const char *path, bool is_dir, uint64_t index)
{
    struct rdzv_node *n = calloc(1, sizeof(*n));

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

struct rdzv_node *rdzv_tree__add(
    struct rdzv_tree *t, struct rdzv_node *parent, const char *path, bool is_dir, uint64_t index)
{
    return rdzv_quota_has(t->quota, RDZV_COST_NODE + strlen(path), 1)
               ? node_new(t, parent, path, is_dir, index)
               : NULL;
}

struct rdzv_text rdzv_tree__value(const struct rdzv_node *n)
{
    return n->value ? (struct rdzv_text){(const char *)n->value->b, n->value->len}
                    : (struct rdzv_text){.p = ""};
}

bool rdzv_tree__new_value(struct rdzv_tree *t, struct rdzv_text value, struct rdzv_shared **ret)
{
    *ret = value.len > 0 ? rdzv_shared_new(t->quota, value.len) : NULL;
    if (*ret)
        rdzv_shared_add(*ret, value.p, value.len);
    return *ret || value.len == 0;
}

void rdzv_tree__set_value(struct rdzv_node *n, struct rdzv_shared *value)
{
    rdzv_shared_unref(n->value);
    n->value = value;
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
    rdzv_shared_unref(n->value);
    free(n);
}

/* ---- blobs ---------------------------------------------------------------------------------- */

/* Kind and numbers of a plain blob. */
#define HEAD (1 + 3 * sizeof(struct le64))

static void put_head(struct writer *w, enum blob_kind kind, const uint64_t numbers[static 3])
{
    writer_u8(w, (uint8_t)kind);
    for (int i = 0; i < 3; i++) {
        struct le64 le = le64_make(numbers[i]);

        writer_put(w, &le, sizeof(le));
    }
}

void rdzv_tree__save(struct rdzv_tree *t, struct rdzv_node *n)
{
    struct rdzv_text path = rdzv_tree_text(n->keyed.key);
    struct rdzv_text value = rdzv_tree__value(n);
    struct le64 path_len = le64_make(path.len);
    size_t len = HEAD + sizeof(path_len) + path.len + value.len;
    uint64_t ttl = n->ttl.pos ? HAS_TTL | n->ttl_seconds : 0;
    struct writer w;
    uint8_t *blob;

    if (n->parent == NULL)
        return;
    /* What ends at once need not be kept; nor may it come back as it was before. */
    if (ttl == HAS_TTL) {
        if (n->saved > 0)
            t->saver.drop(t->saver.ctx, path.p, path.len, n->saved);
        n->saved = 0;
        return;
    }
    blob = rdzv_blob_new(len, &w);
    if (!blob)
        return;
    put_head(&w, n->is_dir ? BLOB_DIR : BLOB_FILE, (uint64_t[]){n->created, n->modified, ttl});
    writer_put(&w, &path_len, sizeof(path_len));
    writer_put(&w, path.p, path.len);
    writer_put(&w, value.p, value.len);
    len += RDZV_BLOB_HEAD;
    rdzv_blob_seal(RDZV_BLOB_OF_TREE, blob, len);
    t->saver.put(t->saver.ctx, path.p, path.len, blob, len, n->saved);
    n->saved = len;
    free(blob);
}

void rdzv_tree__save_index(struct rdzv_tree *t)
{
    struct writer w;
    uint8_t *blob = rdzv_blob_new(HEAD, &w);

    if (!blob)
        return;
    put_head(&w, BLOB_INDEX, (uint64_t[]){t->index, 0, 0});
    rdzv_blob_seal(RDZV_BLOB_OF_TREE, blob, RDZV_BLOB_HEAD + HEAD);
    t->saver.put(t->saver.ctx, INDEX_NAME, 0, blob, RDZV_BLOB_HEAD + HEAD, 0);
    free(blob);
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

    for (const char *slash = strchr(path + 1, '/'); n && n->is_dir && slash;
         slash = strchr(slash + 1, '/')) {
        struct keyed *k;

        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = '\0';
        k = keys_find(&n->children, part);
        n = k ? rdzv_node_of(k) : node_new(t, n, part, true, 0);
    }
    return n;
}

/* A blob's parts. */
struct parts {
    enum blob_kind kind;
    uint64_t numbers[3];
    struct rdzv_text path; /* in the blob; empty for the index */
    struct rdzv_text value;
};

static int decode(struct parts *ret, const void *p, size_t len, struct err *e)
{
    const uint8_t *plain;
    size_t plain_len;
    struct reader r;
    struct le64 le;
    int result = rdzv_blob_open(RDZV_BLOB_OF_TREE, p, len, &plain, &plain_len, e);

    if (result != 0)
        return result;
    r = reader_make(plain, plain_len);
    *ret = (struct parts){.kind = (enum blob_kind)reader_u8(&r), .path = {.p = ""}};
    for (int i = 0; i < 3; i++) {
        reader_copy(&r, &le, sizeof(le));
        ret->numbers[i] = le64_get(le);
    }
    if (ret->kind == BLOB_INDEX && !r.failed && reader_left(&r) == 0)
        return 0;
    reader_copy(&r, &le, sizeof(le));
    ret->path.len = le64_get(le);
    if (r.failed || (ret->kind != BLOB_FILE && ret->kind != BLOB_DIR) ||
        ret->path.len > RDZV_TREE_PATH_MAX || ret->path.len > reader_left(&r) ||
        reader_left(&r) - ret->path.len > RDZV_TREE_VALUE_MAX)
        return err_set(e, -EINVAL, "not a node of an etcd tree");
    ret->path.p = (const char *)reader_take(&r, ret->path.len);
    ret->value = (struct rdzv_text){(const char *)r.p, reader_left(&r)};
    return 0;
}

int rdzv_tree_name(const void *p, size_t len, const uint8_t **ret, size_t *ret_len, struct err *e)
{
    struct parts parts;
    int r = decode(&parts, p, len, e);

    if (r != 0)
        return r;
    *ret = (const uint8_t *)parts.path.p;
    *ret_len = parts.path.len;
    return 0;
}

static int load_node(struct rdzv_tree *t, const struct parts *parts, const char *path, size_t saved,
    struct rdzv_when when, struct err *e)
{
    struct rdzv_node *parent = load_parents(t, path);
    struct keyed *k = parent ? keys_find(&parent->children, path) : NULL;
    struct rdzv_node *n = k ? rdzv_node_of(k) : NULL;
    bool is_dir = parts->kind == BLOB_DIR;
    struct rdzv_shared *value = NULL;

    if (n && n->is_dir != is_dir)
        return err_set(e, -EINVAL, "\"%s\" is a file, and lies above another node", path);
    if (parent && !parent->is_dir)
        return err_set(e, -EINVAL, "\"%s\" lies below a file", path);
    if (!is_dir && parts->value.len > 0)
        value = rdzv_shared_load(t->quota, parts->value.len);
    if (parent && !n)
        n = node_new(t, parent, path, is_dir, 0);
    if (!n || (!is_dir && parts->value.len > 0 && !value)) {
        rdzv_shared_unref(value);
        return err_set(e, -ENOMEM, "no memory for an etcd tree");
    }
    if (value)
        rdzv_shared_add(value, parts->value.p, parts->value.len);
    rdzv_tree__set_value(n, value);
    n->created = parts->numbers[0];
    n->modified = parts->numbers[1];
    n->saved = saved;
    if (parts->numbers[2] & HAS_TTL)
        rdzv_tree__set_ttl(t, n, true, (uint32_t)parts->numbers[2], when);
    return 0;
}

int rdzv_tree_load(
    struct rdzv_tree *t, const void *p, size_t len, struct rdzv_when when, struct err *e)
{
    char path[RDZV_TREE_PATH_MAX + 1];
    char clean[RDZV_TREE_PATH_MAX + 1];
    struct parts parts;
    int r = decode(&parts, p, len, e);

    if (r != 0)
        return r;
    if (parts.kind == BLOB_INDEX) {
        t->index = parts.numbers[0];
        rdzv_tree__forget_history(t);
        return 0;
    }
    memcpy(path, parts.path.p, parts.path.len);
    path[parts.path.len] = '\0';
    if (strlen(path) != parts.path.len || !rdzv_tree_clean(path, clean) ||
        strcmp(path, clean) != 0 || parts.path.len < 2)
        return err_set(e, -EINVAL, "a node of an etcd tree without a path");
    return load_node(t, &parts, path, len, when, e);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* The fraction is without trailing zeroes. */
void rdzv_tree_format_time(nsec_t wall, char buf[static RDZV_TREE_TIME_MAX])
{
    time_t seconds = (time_t)(wall / NSEC_PER_SEC);
    struct tm tm;
    size_t n;

    (void)gmtime_r(&seconds, &tm);
    n = strftime(buf, 24, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(
        buf + n, RDZV_TREE_TIME_MAX - n, ".%09lld", (long long)(wall % NSEC_PER_SEC));
    while (buf[n - 1] == '0')
        n--;
    if (buf[n - 1] == '.')
        n--;
    memcpy(buf + n, "Z", 2);
}

struct rdzv_shown rdzv_tree__show(const struct rdzv_node *n, struct rdzv_when when)
{
    return (struct rdzv_shown){
        .path = n->keyed.key,
        .is_dir = n->is_dir,
        .value = rdzv_shared_ref(n->value),
        .value_len = rdzv_tree__value(n).len,
        .has_ttl = n->ttl.pos != 0,
        .left = n->ttl.due - when.now,
        .ends_wall = n->ends_wall,
        .created = n->created,
        .modified = n->modified,
    };
}

void rdzv_tree__show_end(struct rdzv_shown *s)
{
    s->value = rdzv_shared_unref(s->value);
}

static void write_number(struct rdzv_json *j, const char *name, uint64_t v)
{
    rdzv_json_raw(j, ",\"");
    rdzv_json_raw(j, name);
    rdzv_json_raw(j, "\":");
    rdzv_json_number(j, v);
}

static void write_ttl(struct rdzv_json *j, const struct rdzv_shown *s)
{
    char text[RDZV_TREE_TIME_MAX];

    if (!s->has_ttl || s->has_nothing)
        return;
    rdzv_tree_format_time(s->ends_wall, text);
    rdzv_json_raw(j, ",\"expiration\":");
    rdzv_json_string(j, text, strlen(text));
    if (s->left > 0)
        write_number(j, "ttl", (uint64_t)((s->left + NSEC_PER_SEC - 1) / NSEC_PER_SEC));
}

/* Up to where the nodes below it come. The root, which is a directory, shows no path. */
static void write_begin(struct rdzv_json *j, const struct rdzv_shown *s)
{
    bool is_root = s->path[1] == '\0';

    rdzv_json_raw(j, "{");
    if (!is_root) {
        rdzv_json_raw(j, "\"key\":");
        rdzv_json_string(j, s->path, strlen(s->path));
    }
    if (s->is_dir) {
        rdzv_json_raw(j, is_root ? "\"dir\":true" : ",\"dir\":true");
    } else if (!s->has_nothing) {
        rdzv_json_raw(j, ",\"value\":");
        rdzv_json_string(j, s->value ? (const char *)s->value->b : "", s->value_len);
    }
    write_ttl(j, s);
}

static void write_end(struct rdzv_json *j, const struct rdzv_shown *s)
{
    if (s->modified > 0)
        write_number(j, "modifiedIndex", s->modified);
    if (s->created > 0)
        write_number(j, "createdIndex", s->created);
    rdzv_json_raw(j, "}");
}

void rdzv_tree__write_shown(struct rdzv_json *j, const struct rdzv_shown *s)
{
    write_begin(j, s);
    write_end(j, s);
}

/* What is called _ANYTHING is not listed. */
static bool is_hidden(const char *path)
{
    return strrchr(path, '/')[1] == '_';
}

static void write_children(
    struct rdzv_json *j, const struct rdzv_node *n, unsigned depth, struct rdzv_when when)
{
    bool has_some = false;

    for (size_t i = 0; i < n->children.n && j->len <= j->max; i++) {
        if (is_hidden(n->children.items[i]->key))
            continue;
        rdzv_json_raw(j, has_some ? "," : ",\"nodes\":[");
        rdzv_tree__write(j, rdzv_node_of(n->children.items[i]), depth - 1, when);
        has_some = true;
    }
    if (has_some)
        rdzv_json_raw(j, "]");
}

void rdzv_tree__write(
    struct rdzv_json *j, const struct rdzv_node *n, unsigned depth, struct rdzv_when when)
{
    struct rdzv_shown s = rdzv_tree__show(n, when);

    write_begin(j, &s);
    if (n->is_dir && depth > 0)
        write_children(j, n, depth, when);
    write_end(j, &s);
    rdzv_tree__show_end(&s);
}
