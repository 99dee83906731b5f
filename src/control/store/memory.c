/* memory.c - see store_backend.h. */
#include "store/store_backend.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"
#include "store/keys.h"

struct memory_item {
    struct keyed keyed; /* owns the key */
    char *value;        /* owns */
    uint64_t revision;  /* that wrote it */
    uint32_t ttl_seconds;
};

struct memory {
    struct store base;
    struct keys items; /* owns struct memory_item */
    struct store_log log;
    uint64_t revision; /* of the last commit that changed something */
};

static struct memory *memory_of(struct store *s)
{
    return container_of(s, struct memory, base);
}

static void memory_free(struct store *s)
{
    struct memory *m = memory_of(s);

    for (size_t i = 0; i < m->items.n; i++)
        free(container_of(m->items.items[i], struct memory_item, keyed)->value);
    keys_free_all(&m->items);
    store_log_forget(&m->log, 0);
    store__deinit(s);
    free(m);
}

static struct memory_item *find(struct memory *m, const char *key)
{
    return keys_find(&m->items, key);
}

static struct store_item item_of(const struct keyed *k)
{
    const struct memory_item *it = container_of(k, const struct memory_item, keyed);

    return (struct store_item){.key = k->key,
        .value = it->value,
        .value_len = strlen(it->value),
        .revision = it->revision,
        .ttl_seconds = it->ttl_seconds};
}

static int get(struct memory *m, struct store_job *job)
{
    struct keyed *k = keys_find(&m->items, job->key);
    struct store_item item;

    if (!k)
        return STORE_E_ABSENT;
    item = item_of(k);
    return store_job_add(job, &item);
}

static int list(struct memory *m, struct store_job *job)
{
    size_t len = strlen(job->key);
    bool is_up = !job->is_down;
    int r = 0;

    /* The walk also steps over items outside of the range, which is fine for a small store. */
    for (size_t i = 0; r == 0 && i < m->items.n; i++) {
        const struct keyed *k = m->items.items[is_up ? i : m->items.n - 1 - i];
        int side = job->from ? strcmp(k->key, job->from) : 0;
        struct store_item item;

        if (strncmp(k->key, job->key, len) != 0 || (job->from && (is_up ? side <= 0 : side >= 0)))
            continue;
        item = item_of(k);
        r = store_job_add(job, &item);
    }
    return r < 0 ? r : 0;
}

static int put(struct memory *m, const struct store_op *op, uint64_t revision)
{
    char *value = strdup(op->value);
    struct memory_item *it = value ? keys_open(&m->items, op->key, sizeof(*it)) : NULL;

    if (!it) {
        free(value);
        return -ENOMEM;
    }
    free(it->value);
    it->value = value;
    it->revision = revision;
    it->ttl_seconds = op->ttl_seconds;
    return 0;
}

/* A test store may break in the middle when memory ends; the SQLite one does not. */
static int apply(struct memory *m, const struct store_op *op, uint64_t revision, bool *changed)
{
    struct memory_item *it = find(m, op->key);
    int r = 0;

    if (op->kind == STORE_OP_CHECK || (op->kind == STORE_OP_DELETE && !it))
        return 0;
    if (op->kind == STORE_OP_PUT) {
        r = put(m, op, revision);
    } else {
        free(it->value);
        keys_free(&m->items, &it->keyed);
    }
    *changed = true;
    return r == 0 && !op->is_unwatched ? store_log_add(&m->log, op, revision) : r;
}

static int commit(struct memory *m, struct store_job *job)
{
    bool any = false;

    for (size_t i = 0; i < job->n_ops; i++) {
        const struct memory_item *it = find(m, job->ops[i].key);
        uint64_t expect = job->ops[i].expect;

        if (expect != STORE_EXPECT_ANY && expect != (it ? it->revision : 0)) {
            job->failed = i;
            return STORE_E_CONFLICT;
        }
    }
    for (size_t i = 0; i < job->n_ops; i++) {
        int r = apply(m, &job->ops[i], m->revision + 1, &job->took_effect[i]);

        if (r != 0)
            return r;
        any |= job->took_effect[i];
    }
    if (any)
        m->revision++;
    store_log_trim(&m->log, m->revision, SIZE_MAX);
    return 0;
}

static int changes(struct memory *m, struct store_job *job)
{
    if (job->kind == STORE_JOB_DELETED)
        job->first = m->log.first;
    return store_log_read(&m->log, job);
}

static int copy(struct memory *m, struct store_job *job)
{
    return err_set(&job->e, STORE_E_NO_FILES, "this store is in memory: there is no copy of it");
}

void memory_run(struct store *s, struct store_job *job)
{
    static int (*const runs[])(struct memory *, struct store_job *) = {
        [STORE_JOB_COMMIT] = commit,
        [STORE_JOB_GET] = get,
        [STORE_JOB_LIST] = list,
        [STORE_JOB_CHANGES] = changes,
        [STORE_JOB_DELETED] = changes,
        [STORE_JOB_COPY] = copy,
    };
    struct memory *m = memory_of(s);

    job->r = runs[job->kind](m, job);
    job->revision = m->revision;
    if (job->r == -ENOMEM)
        (void)err_set(&job->e, job->r, "no memory for the store");
}

uint64_t memory_revision(const struct store *s)
{
    return container_of(s, const struct memory, base)->revision;
}

uint64_t memory_revision_of(struct store *s, const char *key)
{
    const struct memory_item *it = find(memory_of(s), key);

    return it ? it->revision : 0;
}

int memory_walk(struct store *s, store_item_fn fn, void *ctx)
{
    struct memory *m = memory_of(s);
    int r = 0;

    for (size_t i = 0; r == 0 && i < m->items.n; i++) {
        struct store_item item = item_of(m->items.items[i]);

        r = fn(ctx, &item);
    }
    return r;
}

int memory_restore(struct store *s, const struct store_item *item)
{
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = item->key,
        .value = item->value,
        .ttl_seconds = item->ttl_seconds};

    return put(memory_of(s), &op, item->revision);
}

void memory_set_revision(struct store *s, uint64_t revision)
{
    struct memory *m = memory_of(s);

    m->revision = revision;
    m->log.first = revision + 1;
}

static void memory_submit(struct store *s, struct store_job *job)
{
    memory_run(s, job);
    store__finish(s, job);
}

static const struct store_ops memory_ops = {
    .free = memory_free,
    .submit = memory_submit,
};

int memory_open(struct store **ret, const char *where, nsec_t now, struct err *e)
{
    struct memory *m;
    int r;

    if (where[0] != '\0')
        return err_set(e, -EINVAL, "store \"memory:%.200s\": nothing may follow the colon", where);
    m = calloc(1, sizeof(*m));
    if (!m)
        return err_set(e, -ENOMEM, "no memory for a store");
    store_log_init(&m->log, 1);
    r = store__init(&m->base, &memory_ops, e);
    if (r != 0) {
        memory_free(&m->base);
        return r;
    }
    *ret = &m->base;
    return 0;
}
