/* store_job.c - see store_job.h. */
#include "store_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct store_job *store_job_new(enum store_job_kind kind)
{
    struct store_job *job = calloc(1, sizeof(*job));

    if (job) {
        job->kind = kind;
        list_init(&job->link);
    }
    return job;
}

static void items_deinit(struct store_items *it)
{
    for (size_t i = 0; i < it->n; i++) {
        free((char *)it->items[i].key);
        free((char *)it->items[i].value);
    }
    free(it->items);
    *it = (struct store_items){.n = 0};
}

struct store_job *store_job_free(struct store_job *job)
{
    if (!job)
        return NULL;
    for (size_t i = 0; i < job->n_ops; i++) {
        free((char *)job->ops[i].key);
        free((char *)job->ops[i].value);
    }
    free(job->ops);
    free(job->key);
    free(job->from);
    free(job->took_effect);
    items_deinit(&job->items);
    free(job);
    return NULL;
}

int store_job_set_ops(struct store_job *job, const struct store_op *ops, size_t n_ops)
{
    job->ops = calloc(n_ops, sizeof(*ops));
    job->took_effect = calloc(n_ops, sizeof(*job->took_effect));
    if (!job->ops || !job->took_effect)
        return -ENOMEM;
    for (job->n_ops = 0; job->n_ops < n_ops; job->n_ops++) {
        struct store_op *op = &job->ops[job->n_ops];
        bool is_put = ops[job->n_ops].kind == STORE_OP_PUT;

        *op = ops[job->n_ops];
        op->key = strdup(op->key);
        op->value = is_put ? strdup(op->value) : NULL;
        if (!op->key || (is_put && !op->value)) {
            free((char *)op->key);
            return -ENOMEM;
        }
        job->bytes += strlen(op->key) + (is_put ? strlen(op->value) : 0);
    }
    return 0;
}

static int make_room(struct store_items *it)
{
    size_t cap = it->cap ? 2 * it->cap : 4;
    struct store_item *items;

    if (it->n < it->cap)
        return 0;
    items = realloc(it->items, cap * sizeof(*items));
    if (!items)
        return -ENOMEM;
    it->items = items;
    it->cap = cap;
    return 0;
}

int store_job_add(struct store_job *job, const struct store_item *item)
{
    struct store_items *it = &job->items;
    struct store_item copy = *item;

    if (job->kind == STORE_JOB_LIST && it->n > 0 &&
        (it->n == job->limit || it->bytes + item->value_len > STORE_PAGE_BYTES_MAX)) {
        job->has_more = true;
        return 1;
    }
    copy.key = strdup(item->key);
    /* A damaged value may hold zero bytes, so copy by length, and add a zero behind it. */
    copy.value = item->value ? calloc(1, item->value_len + 1) : NULL;
    if (!copy.key || (item->value && !copy.value) || make_room(it) != 0) {
        free((char *)copy.key);
        free((char *)copy.value);
        return -ENOMEM;
    }
    if (item->value)
        memcpy((char *)copy.value, item->value, item->value_len);
    it->items[it->n++] = copy;
    it->bytes += item->value_len;
    return 0;
}

void store_job_undo(struct store_job *job)
{
    items_deinit(&job->items);
    if (job->n_ops > 0)
        memset(job->took_effect, 0, job->n_ops * sizeof(*job->took_effect));
    job->r = 0;
    job->has_more = false;
    job->failed = 0;
    job->e = (struct err)ERR_NULL;
}
