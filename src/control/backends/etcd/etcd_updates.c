/* etcd_updates.c - see etcd_updates.h. */
#include "etcd_updates.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "store/store_backend.h"

/* A change in the log. */
struct change {
    struct list link;
    struct store_item item; /* owns key and value */
};

/* ---- the head of a large commit -------------------------------------------------------------- */

const char *etcd_large_head_format(
    const struct etcd_large_head *head, char buf[static ETCD_LARGE_HEAD_MAX])
{
    (void)snprintf(buf, ETCD_LARGE_HEAD_MAX, "%s %s %" PRIu64 " %" PRIu64,
        head->is_applied ? "apply" : "check", head->writer.session, head->writer.seq,
        head->n_parts);
    return buf;
}

bool etcd_large_head_parse(struct etcd_large_head *ret, const char *text)
{
    char buf[ETCD_LARGE_HEAD_MAX];
    struct etcd_large_head head = {.is_applied = strncmp(text, "apply ", 6) == 0};
    char *session = buf + 6;
    char *seq;
    char *parts;

    if ((!head.is_applied && strncmp(text, "check ", 6) != 0) ||
        strnlen(text, sizeof(buf)) == sizeof(buf))
        return false;
    (void)snprintf(buf, sizeof(buf), "%s", text);
    seq = strchr(session, ' ');
    parts = seq ? strchr(seq + 1, ' ') : NULL;
    if (!parts || seq == session || seq - session > ETCD_SESSION_MAX)
        return false;
    *seq++ = '\0';
    *parts++ = '\0';
    memcpy(head.writer.session, session, strlen(session) + 1);
    if (parse_u64(&head.writer.seq, seq, 1, INT64_MAX, "", NULL) != 0 ||
        parse_u64(&head.n_parts, parts, 1, ETCD_LARGE_PARTS_MAX, "", NULL) != 0)
        return false;
    *ret = head;
    return true;
}

/* ---- life ----------------------------------------------------------------------------------- */

void etcd_updates_init(struct etcd_updates *n, uint64_t base, uint64_t position)
{
    *n = (struct etcd_updates){.base = base,
        .position = position,
        .revision = position - base,
        .log_first = position - base + 1};
    list_init(&n->log);
}

static void change_free(struct change *c)
{
    free((char *)c->item.key);
    free((char *)c->item.value);
    free(c);
}

static void drop_first(struct etcd_updates *n)
{
    struct change *c = list_first(&n->log, struct change, link);

    n->n_log--;
    n->bytes_log -= c->item.value_len;
    list_remove(&c->link);
    change_free(c);
}

void etcd_updates_forget(struct etcd_updates *n, uint64_t first)
{
    while (n->n_log > 0)
        drop_first(n);
    n->log_first = first;
}

static void known_free(struct keyed *k)
{
    free(k->key);
    free(k);
}

void etcd_updates_deinit(struct etcd_updates *n)
{
    for (size_t i = 0; i < n->known.n; i++)
        known_free(n->known.items[i]);
    keys_deinit(&n->known);
    etcd_updates_forget(n, 0);
    etcd_kvs_deinit(&n->large.changes);
    etcd_kvs_deinit(&n->seen.changes);
}

/* ---- revisions ------------------------------------------------------------------------------ */

/* Move the changes of keys in @events behind those of @to. 0 or -ENOMEM. */
static int move_changes(struct etcd_kvs *to, struct etcd_kvs *events)
{
    struct etcd_kv *items = realloc(to->items, (to->n + events->n + 1) * sizeof(*items));

    if (!items)
        return -ENOMEM;
    to->items = items;
    for (size_t i = 0; i < events->n; i++) {
        if (strncmp(events->items[i].name, "k/", 2) != 0)
            continue;
        to->items[to->n++] = events->items[i];
        events->items[i] = (struct etcd_kv){0};
    }
    return 0;
}

/* The session that has written, if one did. */
static struct etcd_writer find_writer(const struct etcd_kvs *events)
{
    struct etcd_writer w = {.seq = 0};

    for (size_t i = 0; i < events->n; i++) {
        const struct etcd_kv *kv = &events->items[i];
        size_t len = strlen(kv->name);
        uint64_t seq;

        if (strncmp(kv->name, "s/", 2) != 0 || !kv->value || len - 2 > ETCD_SESSION_MAX ||
            parse_u64(&seq, kv->value, 0, INT64_MAX, "", NULL) != 0)
            continue;
        memcpy(w.session, kv->name + 2, len - 1);
        w.seq = seq;
    }
    return w;
}

/* A large commit begins, or ends. */
static void take_head(
    struct etcd_updates *n, uint64_t number, const struct etcd_kv *kv, bool *is_end)
{
    struct etcd_large_head head;

    *is_end = n->is_large && !kv->value;
    if (!kv->value || !etcd_large_head_parse(&head, kv->value) || !head.is_applied)
        return;
    n->is_large = true;
    n->head = head;
    n->large_revision = number - n->base;
}

int etcd_updates_take(struct etcd_updates *n, uint64_t number, struct etcd_kvs *events,
    const struct etcd_commit_seen **ret)
{
    const struct etcd_kv *head = etcd_kvs_find(events, "i");
    bool is_end = false;
    int r;

    *ret = NULL;
    etcd_kvs_deinit(&n->seen.changes);
    if (head)
        take_head(n, number, head, &is_end);
    n->seen.writer = find_writer(events);
    n->seen.revision = number - n->base;
    r = move_changes(n->is_large ? &n->large.changes : &n->seen.changes, events);
    etcd_kvs_deinit(events);
    if (r != 0)
        return r;
    n->position = number;
    if (is_end) {
        n->seen.writer = n->head.writer;
        n->seen.revision = n->large_revision;
        n->seen.changes = n->large.changes;
        n->large.changes = (struct etcd_kvs)ETCD_KVS_NULL;
        n->is_large = false;
    }
    if (is_end || n->seen.changes.n > 0) {
        n->revision = n->seen.revision;
        *ret = &n->seen;
    }
    return 0;
}

/* ---- what there is -------------------------------------------------------------------------- */

bool etcd_updates_has(const struct etcd_updates *n, const char *key)
{
    return keys_find(&n->known, key) != NULL;
}

int etcd_updates_note(struct etcd_updates *n, const char *key, bool is_there)
{
    struct keyed *k = keys_find(&n->known, key);

    if (k && !is_there) {
        keys_remove(&n->known, k);
        known_free(k);
    }
    if (k || !is_there)
        return 0;
    k = calloc(1, sizeof(*k));
    if (k)
        k->key = strdup(key);
    if (k && k->key && keys_add(&n->known, k) == 0)
        return 0;
    if (k)
        known_free(k);
    return -ENOMEM;
}

uint64_t etcd_updates_revision_of(const struct etcd_updates *n, const struct etcd_kv *kv)
{
    struct etcd_value v = {.revision = 0};

    if (kv->value)
        etcd_value_decode(kv->value, kv->len, &v);
    if (v.revision)
        return v.revision;
    /* A key that is older than the store was copied in from elsewhere. */
    return kv->mod > n->base ? kv->mod - n->base : 1;
}

struct store_item etcd_updates_item(const struct etcd_updates *n, const struct etcd_kv *kv)
{
    struct etcd_value v;

    etcd_value_decode(kv->value, kv->len, &v);
    return (struct store_item){.key = kv->name + 2,
        .value = v.text,
        .value_len = v.len,
        .revision = etcd_updates_revision_of(n, kv),
        .ttl_seconds = v.ttl_seconds};
}

struct store_job *etcd_updates_job(const struct etcd_kvs *changes, uint64_t revision)
{
    struct store_op *ops = calloc(changes->n + 1, sizeof(*ops));
    struct store_job *job = store_job_new(STORE_JOB_COMMIT);
    size_t n = 0;

    for (size_t i = 0; ops && i < changes->n; i++) {
        const struct etcd_kv *kv = &changes->items[i];
        struct etcd_value v = {.text = NULL};

        if (store__check_key(kv->name + 2, 1, NULL) != 0)
            continue;
        if (kv->value)
            etcd_value_decode(kv->value, kv->len, &v);
        ops[n++] = (struct store_op){.kind = kv->value ? STORE_OP_PUT : STORE_OP_DELETE,
            .key = kv->name + 2,
            .value = v.text,
            .ttl_seconds = v.ttl_seconds,
            .is_unwatched = v.is_unwatched};
    }
    if (!ops || !job || store_job_set_ops(job, ops, n) != 0) {
        free(ops);
        return store_job_free(job);
    }
    free(ops);
    for (size_t i = 0; i < n; i++)
        job->took_effect[i] = true;
    job->revision = revision;
    return job;
}

/* ---- the log -------------------------------------------------------------------------------- */

static bool log_add(struct etcd_updates *n, const struct store_op *op, uint64_t revision)
{
    struct change *c = calloc(1, sizeof(*c));
    const char *value = op->kind == STORE_OP_PUT ? op->value : NULL;

    if (!c)
        return false;
    c->item = (struct store_item){.key = strdup(op->key),
        .value = value ? strdup(value) : NULL,
        .value_len = value ? strlen(value) : 0,
        .revision = revision,
        .ttl_seconds = value ? op->ttl_seconds : 0};
    if (!c->item.key || (value && !c->item.value)) {
        change_free(c);
        return false;
    }
    list_add_tail(&n->log, &c->link);
    n->n_log++;
    n->bytes_log += c->item.value_len;
    return true;
}

/* Forget whole revisions from the front until the log fits; the last one always stays. */
static void log_trim(struct etcd_updates *n, uint64_t newest)
{
    while (n->n_log > STORE_LOG_MAX || n->bytes_log > ETCD_LOG_BYTES_MAX) {
        uint64_t revision = list_first(&n->log, struct change, link)->item.revision;

        if (revision == newest)
            return;
        n->log_first = revision + 1;
        while (n->n_log > 0 && list_first(&n->log, struct change, link)->item.revision == revision)
            drop_first(n);
    }
}

void etcd_updates_done(struct etcd_updates *n, const struct store_job *job)
{
    bool ok = true;

    for (size_t i = 0; ok && i < job->n_ops; i++) {
        const struct store_op *op = &job->ops[i];

        if (op->kind == STORE_OP_CHECK || !job->took_effect[i])
            continue;
        ok = etcd_updates_note(n, op->key, op->kind == STORE_OP_PUT) == 0;
        if (ok && !op->is_unwatched)
            ok = log_add(n, op, job->revision);
    }
    /* Without memory for a part of it the log holds nothing that can be relied upon. */
    if (!ok)
        etcd_updates_forget(n, job->revision + 1);
    log_trim(n, job->revision);
}

int etcd_updates_changes(const struct etcd_updates *n, struct store_job *job)
{
    size_t len = strlen(job->key);
    struct change *c;
    int r = 0;

    if (job->first < n->log_first)
        return err_set(&job->e, STORE_E_COMPACTED,
            "the changes from revision %" PRIu64 " on are no longer kept, only those from %" PRIu64,
            job->first, n->log_first);
    list_foreach(c, &n->log, link) {
        if (c->item.revision < job->first || strncmp(c->item.key, job->key, len) != 0)
            continue;
        r = store_job_add(job, &c->item);
        if (r != 0)
            return err_set(&job->e, r, "no memory for changes");
    }
    return 0;
}
