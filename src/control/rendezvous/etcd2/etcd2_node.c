/* etcd2_node.c - see etcd2_node.h. */
#include "rendezvous/etcd2/etcd2_node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/text.h"

/* A plain blob is: its kind (1 byte); created index, modified index and time to live (8 bytes
 * each); and for a node the length of its path (8 bytes), the path, and the value up to the end. */
enum blob_kind {
    BLOB_INDEX = 1, /* the tree's index, in the place of a created index */
    BLOB_FILE = 2,
    BLOB_DIR = 3,
};
#define HAS_TTL 0x100000000u /* set in the time to live beside its seconds, when there is one */

/* The name of the index's blob. No node has it, since no path is empty. */
#define INDEX_NAME ""

/* ---- making and ending ---------------------------------------------------------------------- */

static size_t cost_of(const struct etcd2_node *n)
{
    return RDZV_COST_NODE + strlen(n->keyed.key);
}

/* Makes a node without asking the quota for room. */
static struct etcd2_node *node_new(
    struct etcd2_nodes *t, struct etcd2_node *parent, const char *path, bool is_dir, uint64_t index)
{
    struct etcd2_node *n = calloc(1, sizeof(*n));

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

struct etcd2_node *etcd2_node_add(
    struct etcd2_nodes *t, struct etcd2_node *parent, const char *path, bool is_dir, uint64_t index)
{
    return rdzv_quota_has(t->quota, RDZV_COST_NODE + strlen(path), 1)
               ? node_new(t, parent, path, is_dir, index)
               : NULL;
}

struct etcd2_text etcd2_node_value(const struct etcd2_node *n)
{
    return n->value ? (struct etcd2_text){(const char *)n->value->b, n->value->len}
                    : (struct etcd2_text){.p = ""};
}

bool etcd2_value_new(struct etcd2_nodes *t, struct etcd2_text value, struct rdzv_buf **ret)
{
    *ret = value.len > 0 ? rdzv_buf_new(t->quota, value.len) : NULL;
    if (*ret)
        rdzv_buf_add(*ret, value.p, value.len);
    return *ret || value.len == 0;
}

void etcd2_node_set_value(struct etcd2_node *n, struct rdzv_buf *value)
{
    rdzv_buf_unref(n->value);
    n->value = value;
}

void etcd2_node_set_ttl(
    struct etcd2_nodes *t, struct etcd2_node *n, const struct etcd2_change *change)
{
    nsec_t ttl = (nsec_t)change->ttl_seconds * NSEC_PER_SEC;

    n->ttl_seconds = change->ttl_seconds;
    n->expires_at = change->when.wall + ttl;
    /* If there is no memory for the timer, the node stays too long; refusing the change would be
     * worse. */
    (void)heap_set(&t->ttls, &n->ttl, change->has_ttl ? change->when.now + ttl : NSEC_NEVER);
}

void etcd2_node_free(struct etcd2_nodes *t, struct etcd2_node *n)
{
    if (n->saved > 0)
        t->saver.drop(t->saver.ctx, RDZV_KEY_NODE, n->keyed.key, strlen(n->keyed.key), n->saved);
    heap_remove(&t->ttls, &n->ttl);
    if (n->parent)
        keys_remove(&n->parent->children, &n->keyed);
    rdzv_quota_give(t->quota, cost_of(n), 1);
    keys_deinit(&n->children);
    free(n->keyed.key);
    rdzv_buf_unref(n->value);
    free(n);
}

/* ---- blobs ---------------------------------------------------------------------------------- */

/* Length of the kind and the numbers of a plain blob. */
#define HEAD (1 + 3 * sizeof(struct le64))

static void put_head(struct writer *w, enum blob_kind kind, const uint64_t numbers[static 3])
{
    writer_u8(w, (uint8_t)kind);
    for (int i = 0; i < 3; i++) {
        struct le64 le = le64_make(numbers[i]);

        writer_put(w, &le, sizeof(le));
    }
}

void etcd2_node_save(struct etcd2_nodes *t, struct etcd2_node *n)
{
    struct etcd2_text path = etcd2_text_of(n->keyed.key);
    struct etcd2_text value = etcd2_node_value(n);
    struct le64 path_len = le64_make(path.len);
    size_t len = HEAD + sizeof(path_len) + path.len + value.len;
    uint64_t ttl = n->ttl.pos ? HAS_TTL | n->ttl_seconds : 0;
    struct writer w;
    uint8_t *blob;

    if (n->parent == NULL)
        return;
    /* A node whose time to live is 0 ends at once: it is not saved, and what was saved of it is
     * dropped. */
    if (ttl == HAS_TTL) {
        if (n->saved > 0)
            t->saver.drop(t->saver.ctx, RDZV_KEY_NODE, path.p, path.len, n->saved);
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
    t->saver.put(t->saver.ctx, RDZV_KEY_NODE, path.p, path.len, blob, len, n->saved);
    n->saved = len;
    free(blob);
}

void etcd2_index_save(struct etcd2_nodes *t, uint64_t index)
{
    struct writer w;
    uint8_t *blob = rdzv_blob_new(HEAD, &w);

    if (!blob)
        return;
    put_head(&w, BLOB_INDEX, (uint64_t[]){index, 0, 0});
    rdzv_blob_seal(RDZV_BLOB_OF_TREE, blob, RDZV_BLOB_HEAD + HEAD);
    t->saver.put(t->saver.ctx, RDZV_KEY_NODE, INDEX_NAME, 0, blob, RDZV_BLOB_HEAD + HEAD, 0);
    free(blob);
}

/* The directory that holds @path. Directories that are missing are made without numbers: the blob
 * of each is loaded sooner or later, and has them. */
static struct etcd2_node *load_parents(struct etcd2_nodes *t, const char *path)
{
    char part[ETCD2_PATH_MAX + 1];
    struct etcd2_node *n = t->root;

    for (const char *slash = strchr(path + 1, '/'); n && n->is_dir && slash;
         slash = strchr(slash + 1, '/')) {
        struct etcd2_node *child;

        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = '\0';
        child = keys_find(&n->children, part);
        n = child ? child : node_new(t, n, part, true, 0);
    }
    return n;
}

/* What a blob says: a node, or the index of the tree. The texts are borrowed from the blob. */
struct record {
    bool is_index;          /* it is the tree's, in @numbers[0]; else a node */
    bool is_dir;            /* of a node */
    uint64_t numbers[3];    /* of a node: created, modified, time to live; of the index: it, 0, 0 */
    struct etcd2_text path; /* of a node; empty for the index */
    struct etcd2_text value; /* of a file */
};

static int decode(struct record *ret, const void *p, size_t len, struct err *e)
{
    const uint8_t *plain;
    size_t plain_len;
    struct reader r;
    struct le64 le;
    uint8_t kind;
    int result = rdzv_blob_open(RDZV_BLOB_OF_TREE, p, len, &plain, &plain_len, e);

    if (result != 0)
        return result;
    r = reader_make(plain, plain_len);
    kind = reader_u8(&r);
    *ret = (struct record){
        .is_index = kind == BLOB_INDEX, .is_dir = kind == BLOB_DIR, .path = {.p = ""}};
    for (int i = 0; i < 3; i++) {
        reader_copy(&r, &le, sizeof(le));
        ret->numbers[i] = le64_get(le);
    }
    if (ret->is_index && !r.failed && reader_left(&r) == 0)
        return 0;
    reader_copy(&r, &le, sizeof(le));
    ret->path.len = le64_get(le);
    if (r.failed || (kind != BLOB_FILE && kind != BLOB_DIR) || ret->path.len > ETCD2_PATH_MAX ||
        ret->path.len > reader_left(&r) || reader_left(&r) - ret->path.len > ETCD2_VALUE_MAX)
        return err_set(e, -EINVAL, "not a node of an etcd tree");
    ret->path.p = (const char *)reader_take(&r, ret->path.len);
    ret->value = (struct etcd2_text){(const char *)r.p, reader_left(&r)};
    return 0;
}

static int load_node(struct etcd2_nodes *t, const struct record *rec, const char *path,
    size_t saved, struct etcd2_when when, struct err *e)
{
    struct etcd2_node *parent = load_parents(t, path);
    struct etcd2_node *n = parent ? keys_find(&parent->children, path) : NULL;
    struct rdzv_buf *value = NULL;

    if (n && n->is_dir != rec->is_dir)
        return err_set(e, -EINVAL, "\"%s\" is a file, and lies above another node", path);
    if (parent && !parent->is_dir)
        return err_set(e, -EINVAL, "\"%s\" lies below a file", path);
    if (!rec->is_dir && rec->value.len > 0)
        value = rdzv_buf_load(t->quota, rec->value.len);
    if (parent && !n)
        n = node_new(t, parent, path, rec->is_dir, 0);
    if (!n || (!rec->is_dir && rec->value.len > 0 && !value)) {
        rdzv_buf_unref(value);
        return err_set(e, -ENOMEM, "no memory for an etcd tree");
    }
    if (value)
        rdzv_buf_add(value, rec->value.p, rec->value.len);
    etcd2_node_set_value(n, value);
    n->created = rec->numbers[0];
    n->modified = rec->numbers[1];
    n->saved = saved;
    if (rec->numbers[2] & HAS_TTL)
        etcd2_node_set_ttl(t, n,
            &(struct etcd2_change){.has_ttl = true,
                .ttl_seconds = (uint32_t)rec->numbers[2],
                .when = {when.now + ETCD2_RELOAD_GRACE, when.wall + ETCD2_RELOAD_GRACE}});
    return 0;
}

int etcd2_node_load(struct etcd2_nodes *t, const void *p, size_t len, const struct rdzv_hash *hash,
    struct etcd2_when when, uint64_t *ret_index, struct err *e)
{
    char path[ETCD2_PATH_MAX + 1];
    char clean[ETCD2_PATH_MAX + 1];
    struct record rec;
    int r = decode(&rec, p, len, e);

    if (r == 0)
        r = rdzv_hash_check(hash, rec.path.p, rec.path.len, e);
    if (r != 0)
        return r;
    *ret_index = rec.is_index ? rec.numbers[0] : 0;
    if (rec.is_index)
        return 0;
    memcpy(path, rec.path.p, rec.path.len);
    path[rec.path.len] = '\0';
    if (strlen(path) != rec.path.len || !etcd2_path_clean(path, clean) ||
        strcmp(path, clean) != 0 || rec.path.len < 2)
        return err_set(e, -EINVAL, "a node of an etcd tree without a path");
    return load_node(t, &rec, path, len, when, e);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* The fraction is without trailing zeroes. */
void etcd2_time_format(nsec_t wall, char buf[static ETCD2_TIME_MAX])
{
    time_t seconds = (time_t)(wall / NSEC_PER_SEC);
    struct tm tm;
    size_t n;

    (void)gmtime_r(&seconds, &tm);
    n = strftime(buf, 24, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(buf + n, ETCD2_TIME_MAX - n, ".%09lld", (long long)(wall % NSEC_PER_SEC));
    while (buf[n - 1] == '0')
        n--;
    if (buf[n - 1] == '.')
        n--;
    memcpy(buf + n, "Z", 2);
}

struct etcd2_shown etcd2_node_show(const struct etcd2_node *n, struct etcd2_when when)
{
    return (struct etcd2_shown){
        .path = n->keyed.key,
        .is_dir = n->is_dir,
        .value = rdzv_buf_ref(n->value),
        .value_len = etcd2_node_value(n).len,
        .has_ttl = n->ttl.pos != 0,
        .left = n->ttl.due - when.now,
        .expires_at = n->expires_at,
        .created = n->created,
        .modified = n->modified,
    };
}

static void write_number(struct etcd2_json *j, const char *name, uint64_t v)
{
    etcd2_json_raw(j, ",\"");
    etcd2_json_raw(j, name);
    etcd2_json_raw(j, "\":");
    etcd2_json_number(j, v);
}

/* Writes a node up to where its children come. The root, which is a directory, has no key in etcd.
 */
static void write_begin(struct etcd2_json *j, const struct etcd2_shown *s)
{
    bool is_root = s->path[1] == '\0';
    char text[ETCD2_TIME_MAX];

    etcd2_json_raw(j, "{");
    if (!is_root) {
        etcd2_json_raw(j, "\"key\":");
        etcd2_json_string(j, s->path, strlen(s->path));
    }
    if (s->is_dir) {
        etcd2_json_raw(j, is_root ? "\"dir\":true" : ",\"dir\":true");
    } else if (!s->has_nothing) {
        etcd2_json_raw(j, ",\"value\":");
        etcd2_json_string(j, s->value ? (const char *)s->value->b : "", s->value_len);
    }
    if (!s->has_ttl || s->has_nothing)
        return;
    etcd2_time_format(s->expires_at, text);
    etcd2_json_raw(j, ",\"expiration\":");
    etcd2_json_string(j, text, strlen(text));
    if (s->left > 0)
        write_number(j, "ttl", (uint64_t)((s->left + NSEC_PER_SEC - 1) / NSEC_PER_SEC));
}

static void write_end(struct etcd2_json *j, const struct etcd2_shown *s)
{
    if (s->modified > 0)
        write_number(j, "modifiedIndex", s->modified);
    if (s->created > 0)
        write_number(j, "createdIndex", s->created);
    etcd2_json_raw(j, "}");
}

void etcd2_shown_write(struct etcd2_json *j, const struct etcd2_shown *s)
{
    write_begin(j, s);
    write_end(j, s);
}

static void write_children(
    struct etcd2_json *j, const struct etcd2_node *n, unsigned depth, struct etcd2_when when)
{
    bool has_some = false;

    for (size_t i = 0; i < n->children.n && j->len <= j->max; i++) {
        /* etcd does not list keys whose last part begins with an underscore. */
        if (strrchr(n->children.items[i]->key, '/')[1] == '_')
            continue;
        etcd2_json_raw(j, has_some ? "," : ",\"nodes\":[");
        etcd2_node_write(j, etcd2_node_of(n->children.items[i]), depth - 1, when);
        has_some = true;
    }
    if (has_some)
        etcd2_json_raw(j, "]");
}

void etcd2_node_write(
    struct etcd2_json *j, const struct etcd2_node *n, unsigned depth, struct etcd2_when when)
{
    struct etcd2_shown s = etcd2_node_show(n, when);

    write_begin(j, &s);
    if (n->is_dir && depth > 0)
        write_children(j, n, depth, when);
    write_end(j, &s);
    rdzv_buf_unref(s.value);
}

/* ==== JSON that is written in two passes ===================================================== */

static void add_bytes(struct etcd2_json *j, const void *p, size_t len)
{
    if (j->text && len > 0)
        memcpy(j->text + j->len, p, len);
    j->len += len;
}

void etcd2_json_raw(struct etcd2_json *j, const char *text)
{
    add_bytes(j, text, strlen(text));
}

void etcd2_json_number(struct etcd2_json *j, uint64_t v)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu64, v);
    etcd2_json_raw(j, text);
}

static void add_escaped(struct etcd2_json *j, uint8_t c)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *at = c ? strchr(from, c) : NULL;
    char text[8];

    if (at)
        (void)snprintf(text, sizeof(text), "\\%c", to[at - from]);
    else
        (void)snprintf(text, sizeof(text), "\\u%04x", c);
    etcd2_json_raw(j, text);
}

void etcd2_json_string(struct etcd2_json *j, const char *p, size_t len)
{
    const uint8_t *at = (const uint8_t *)p;
    const uint8_t *end = at + len;
    const uint8_t *plain = at; /* from here to @at the bytes need no escape */

    etcd2_json_raw(j, "\"");
    while (at < end && j->len <= j->max) {
        enum text_kind kind;
        size_t n;

        if (*at >= ' ' && *at < 0x80 && *at != '"' && *at != '\\') {
            at++;
            continue;
        }
        n = text_next((const char *)at, (size_t)(end - at), &kind);
        if (n > 1) {
            at += n;
            continue;
        }
        add_bytes(j, plain, (size_t)(at - plain));
        if (kind == TEXT_KIND_INVALID)
            etcd2_json_raw(j, "\\ufffd");
        else
            add_escaped(j, *at);
        plain = ++at;
    }
    add_bytes(j, plain, (size_t)(at - plain));
    etcd2_json_raw(j, "\"");
}

/* ==== paths ================================================================================== */

bool etcd2_path_clean(const char *path, char *ret)
{
    size_t starts[ETCD2_DEPTH_MAX];
    size_t depth = 0;
    size_t len = 0;

    while (*path) {
        size_t part = strcspn(path, "/");

        if (part == 2 && path[0] == '.' && path[1] == '.') {
            len = depth > 0 ? starts[--depth] : 0;
        } else if (part > 0 && !(part == 1 && path[0] == '.')) {
            if (depth == ETCD2_DEPTH_MAX || len + 1 + part > ETCD2_PATH_MAX)
                return false;
            starts[depth++] = len;
            ret[len++] = '/';
            memcpy(ret + len, path, part);
            len += part;
        }
        path += part + (path[part] == '/');
    }
    if (len == 0)
        ret[len++] = '/';
    ret[len] = '\0';
    return true;
}

bool etcd2_path_is_root(const char *path)
{
    return path[1] == '\0';
}

size_t etcd2_path_next(const char *path, size_t len, char part[static ETCD2_PATH_MAX + 1])
{
    size_t n = len + 1 + strcspn(path + len + 1, "/");

    memcpy(part, path, n);
    part[n] = '\0';
    return n;
}

bool etcd2_path_is_below(const char *path, const char *dir)
{
    size_t len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

    return strncmp(path, dir, len) == 0 && path[len] == '/' && path[len + 1] != '\0';
}
