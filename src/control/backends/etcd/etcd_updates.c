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

/* Bytes of values in the log, about. */
#define ETCD_LOG_BYTES_MAX (16u << 20)

/* Most parts of a large commit. */
#define ETCD_LARGE_PARTS_MAX 4096

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
    *n = (struct etcd_updates){.base = base, .position = position, .revision = position - base};
    store_log_init(&n->log, position - base + 1);
}

void etcd_updates_deinit(struct etcd_updates *n)
{
    keys_free_all(&n->known);
    store_log_forget(&n->log, 0);
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

int etcd_updates_note(struct etcd_updates *n, const char *key, bool is_there)
{
    struct keyed *k = keys_find(&n->known, key);

    if (is_there)
        return keys_open(&n->known, key, sizeof(*k)) ? 0 : -ENOMEM;
    if (k)
        keys_free(&n->known, k);
    return 0;
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

void etcd_updates_done(struct etcd_updates *n, const struct store_job *job)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < job->n_ops; i++) {
        const struct store_op *op = &job->ops[i];

        if (op->kind == STORE_OP_CHECK || !job->took_effect[i])
            continue;
        r = etcd_updates_note(n, op->key, op->kind == STORE_OP_PUT);
        if (r == 0 && !op->is_unwatched)
            r = store_log_add(&n->log, op, job->revision);
    }
    /* Without memory for a part of it the log holds nothing that can be relied upon. */
    if (r != 0)
        store_log_forget(&n->log, job->revision + 1);
    store_log_trim(&n->log, job->revision, ETCD_LOG_BYTES_MAX);
}
