/* tcpstore_entry.c - see tcpstore_server.h. */
#include "rendezvous/tcpstore/tcpstore_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "rendezvous/shared/rdzv_quota.h"

/* A plain blob is: its kind (1 byte), a number (8 bytes; an item's), the length of the key (8
 * bytes), the key, and the value up to the end. */
enum blob_kind {
    BLOB_VALUE = 1,
    BLOB_ITEM = 2,
};
#define BLOB_HEAD 17

/* ---- finding -------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct tcpstore_server *ts, struct tcpstore_bytes key)
{
    return hash_bytes(ts->entries.seed, key.p, key.len);
}

static struct tcpstore_entry *find(
    const struct tcpstore_server *ts, struct tcpstore_bytes key, uint64_t hash)
{
    for (struct htab_link *l = htab_first(&ts->entries, hash); l; l = htab_next(l, hash)) {
        struct tcpstore_entry *en = container_of(l, struct tcpstore_entry, link);

        if (tcpstore_bytes_equal((struct tcpstore_bytes){en->key, en->key_len}, key))
            return en;
    }
    return NULL;
}

struct tcpstore_entry *tcpstore_entry_find(
    const struct tcpstore_server *ts, struct tcpstore_bytes key)
{
    return find(ts, key, hash_of(ts, key));
}

static struct tcpstore_entry *entry_new(
    struct tcpstore_server *ts, struct tcpstore_bytes key, uint64_t hash)
{
    struct tcpstore_entry *en = calloc(1, sizeof(*en));

    if (!en)
        return NULL;
    en->key = malloc(key.len + 1);
    if (!en->key || htab_add(&ts->entries, &en->link, hash) != 0) {
        free(en->key);
        free(en);
        return NULL;
    }
    memcpy(en->key, key.p, key.len);
    en->key_len = key.len;
    en->is_sorted = true;
    list_init(&en->queue);
    list_init(&en->waits);
    list_init(&en->watches);
    list_init(&en->unsaved);
    rdzv_quota_take(ts->quota, en->key_len + RDZV_COST_ENTRY, 1);
    return en;
}

struct tcpstore_entry *tcpstore_entry_acquire(struct tcpstore_server *ts, struct tcpstore_bytes key)
{
    uint64_t hash = hash_of(ts, key);
    struct tcpstore_entry *en = find(ts, key, hash);

    if (en || !rdzv_quota_has(ts->quota, key.len + RDZV_COST_ENTRY, 1))
        return en;
    return entry_new(ts, key, hash);
}

void tcpstore_entry_release(struct tcpstore_server *ts, struct tcpstore_entry *en)
{
    if (en->has_value || en->n_queue > 0 || !list_is_empty(&en->waits) ||
        !list_is_empty(&en->watches))
        return;
    rdzv_quota_give(ts->quota, en->key_len + RDZV_COST_ENTRY, 1);
    htab_remove(&ts->entries, &en->link);
    free(en->key);
    free(en);
}

/* ---- blobs ---------------------------------------------------------------------------------- */

/* The name of the blob of a value or an item. No other in the job has the same. */
static void put_name(
    struct writer *w, enum blob_kind kind, uint64_t number, const struct tcpstore_entry *en)
{
    struct le64 n = le64_make(number);
    struct le64 len = le64_make(en->key_len);

    writer_u8(w, (uint8_t)kind);
    writer_put(w, &n, sizeof(n));
    writer_put(w, &len, sizeof(len));
    writer_put(w, en->key, en->key_len);
}

/* Saves a value or an item. The length of its blob; 0: there was no memory, and the disk keeps what
 * it had before. */
static size_t save_put(struct tcpstore_server *ts, enum blob_kind kind, uint64_t number,
    const struct tcpstore_entry *en, struct tcpstore_bytes value, size_t before)
{
    size_t name_len = BLOB_HEAD + en->key_len;
    size_t len = RDZV_BLOB_HEAD + name_len + value.len;
    struct writer w;
    uint8_t *blob = rdzv_blob_new(name_len + value.len, &w);

    if (!blob)
        return 0;
    put_name(&w, kind, number, en);
    if (value.len > 0)
        writer_put(&w, value.p, value.len);
    rdzv_blob_seal(RDZV_BLOB_OF_STORE, blob, len);
    ts->saver.put(
        ts->saver.ctx, RDZV_KEY_ENTRY, blob + RDZV_BLOB_HEAD, name_len, blob, len, before);
    free(blob);
    return len;
}

static void save_drop(struct tcpstore_server *ts, enum blob_kind kind, uint64_t number,
    const struct tcpstore_entry *en, size_t before)
{
    uint8_t name[BLOB_HEAD + TCPSTORE_KEY_MAX];
    struct writer w = writer_make(name, sizeof(name));

    put_name(&w, kind, number, en);
    ts->saver.drop(ts->saver.ctx, RDZV_KEY_ENTRY, name, writer_len(&w), before);
}

/* Notes that the value has to be saved. */
static void note_unsaved(struct tcpstore_server *ts, struct tcpstore_entry *en)
{
    if (!list_is_empty(&en->unsaved))
        return;
    list_add_tail(&ts->unsaved, &en->unsaved);
    if (ts->n_unsaved++ == 0)
        ts->saver.unsaved(ts->saver.ctx);
}

/* Notes that the value need not be saved any more. */
static void note_saved(struct tcpstore_server *ts, struct tcpstore_entry *en)
{
    if (list_is_empty(&en->unsaved))
        return;
    list_remove(&en->unsaved);
    ts->n_unsaved--;
}

bool tcpstore_server_flush(struct tcpstore_server *ts, size_t max)
{
    struct tcpstore_entry *en;
    size_t reported = 0;

    while (reported < max && (en = list_first(&ts->unsaved, struct tcpstore_entry, unsaved))) {
        size_t len = save_put(ts, BLOB_VALUE, 0, en, tcpstore_entry_value(en), en->saved);

        /* If there was no memory for the blob, the next change of the value tries again. */
        note_saved(ts, en);
        en->saved = len > 0 ? len : en->saved;
        reported += RDZV_BLOB_HEAD + BLOB_HEAD + en->key_len + tcpstore_entry_value(en).len;
    }
    return ts->n_unsaved == 0;
}

/* ---- values --------------------------------------------------------------------------------- */

struct tcpstore_bytes tcpstore_entry_value(const struct tcpstore_entry *en)
{
    return en && en->value ? (struct tcpstore_bytes){en->value->b, en->value->len}
                           : (struct tcpstore_bytes){.p = NULL};
}

/* Sets the value; @value is taken. */
static void set_value(struct tcpstore_server *ts, struct tcpstore_entry *en, struct rdzv_buf *value)
{
    rdzv_buf_unref(en->value);
    en->value = value;
    if (en->has_value)
        return;
    en->has_value = true;
    ts->n_keys++;
    ts->keys_len += en->key_len;
    ts->listed = rdzv_buf_unref(ts->listed);
}

int tcpstore_entry_put(
    struct tcpstore_server *ts, struct tcpstore_entry *en, struct tcpstore_bytes value)
{
    struct rdzv_buf *s = NULL;

    if (value.len > TCPSTORE_VALUE_MAX)
        return TCPSTORE_SERVER_E_LONG;
    if (value.len > 0) {
        s = rdzv_buf_new(ts->quota, value.len);
        if (!s)
            return TCPSTORE_SERVER_E_FULL;
        rdzv_buf_add(s, value.p, value.len);
    }
    set_value(ts, en, s);
    note_unsaved(ts, en);
    return 0;
}

/*
 * Make room for @len bytes more
 * @s:	the caller's reference, which passes to the result; may be NULL
 * @max:	most room that is made
 *
 * The room is doubled, so that n appends of one byte copy about n bytes in all.
 *
 * Return: @s or another; NULL: no room or no memory, and @s is as it was.
 */
static struct rdzv_buf *grow(struct rdzv_buf *s, struct rdzv_quota *quota, size_t len, size_t max)
{
    size_t need = (s ? s->len : 0) + len;
    size_t cap = s && 2 * s->cap > need ? 2 * s->cap : need;
    struct rdzv_buf *bigger;

    if (s && need <= s->cap)
        return s;
    if (cap > max)
        cap = max;
    bigger = rdzv_buf_new(quota, cap);
    if (!bigger && cap > need)
        bigger = rdzv_buf_new(quota, need);
    if (!bigger)
        return NULL;
    if (s)
        rdzv_buf_add(bigger, s->b, s->len);
    rdzv_buf_unref(s);
    return bigger;
}

int tcpstore_entry_append(
    struct tcpstore_server *ts, struct tcpstore_entry *en, struct tcpstore_bytes value)
{
    struct rdzv_buf *s;

    if (value.len == 0)
        return en->has_value ? 0 : tcpstore_entry_put(ts, en, value);
    if (tcpstore_entry_value(en).len + value.len > TCPSTORE_VALUE_MAX)
        return TCPSTORE_SERVER_E_LONG;
    s = grow(en->value, ts->quota, value.len, TCPSTORE_VALUE_MAX);
    if (!s)
        return TCPSTORE_SERVER_E_FULL;
    rdzv_buf_add(s, value.p, value.len);
    /* grow() has taken the entry's reference. */
    en->value = NULL;
    set_value(ts, en, s);
    note_unsaved(ts, en);
    return 0;
}

void tcpstore_entry_remove(struct tcpstore_server *ts, struct tcpstore_entry *en)
{
    if (!en->has_value)
        return;
    note_saved(ts, en);
    if (en->saved > 0)
        save_drop(ts, BLOB_VALUE, 0, en, en->saved);
    en->saved = 0;
    en->value = rdzv_buf_unref(en->value);
    en->has_value = false;
    ts->n_keys--;
    ts->keys_len -= en->key_len;
    ts->listed = rdzv_buf_unref(ts->listed);
}

/* ---- queues --------------------------------------------------------------------------------- */

/* An item of a queue. */
struct tcpstore_item {
    struct list link;       /* in its entry's queue */
    uint64_t number;        /* in the order of pushing, over all queues */
    struct rdzv_buf *value; /* counted */
    size_t saved;           /* length of its blob */
};

/* Appends an item to a queue; @value is taken. NULL: no memory. */
static struct tcpstore_item *add_item(
    struct tcpstore_server *ts, struct tcpstore_entry *en, uint64_t number, struct rdzv_buf *value)
{
    struct tcpstore_item *item = value ? malloc(sizeof(*item)) : NULL;

    if (!item) {
        rdzv_buf_unref(value);
        return NULL;
    }
    *item = (struct tcpstore_item){.number = number, .value = value};
    list_add_tail(&en->queue, &item->link);
    en->n_queue++;
    rdzv_quota_take(ts->quota, RDZV_COST_ITEM, 1);
    return item;
}

int tcpstore_entry_push(
    struct tcpstore_server *ts, struct tcpstore_entry *en, struct tcpstore_bytes value)
{
    struct rdzv_buf *s = NULL;
    struct tcpstore_item *item;

    if (rdzv_quota_has(ts->quota, RDZV_COST_ITEM, 1))
        s = rdzv_buf_new(ts->quota, value.len);
    if (s)
        rdzv_buf_add(s, value.p, value.len);
    item = add_item(ts, en, ts->next_item, s);
    if (!item)
        return TCPSTORE_SERVER_E_FULL;
    ts->next_item++;
    item->saved = save_put(ts, BLOB_ITEM, item->number, en, value, 0);
    return 0;
}

static int by_number(const void *a, const void *b)
{
    uint64_t na = (*(struct tcpstore_item *const *)a)->number;
    uint64_t nb = (*(struct tcpstore_item *const *)b)->number;

    return (na > nb) - (na < nb);
}

/* Items are loaded in any order: puts them in that of their numbers. False: no memory. */
static bool sort(struct tcpstore_entry *en)
{
    struct tcpstore_item **all = malloc(en->n_queue * sizeof(*all));
    struct tcpstore_item *item;
    size_t n = 0;

    if (!all)
        return false;
    list_foreach(item, &en->queue, link)
        all[n++] = item;
    qsort(all, n, sizeof(*all), by_number);
    list_init(&en->queue);
    for (size_t i = 0; i < n; i++)
        list_add_tail(&en->queue, &all[i]->link);
    free(all);
    en->is_sorted = true;
    return true;
}

struct rdzv_buf *tcpstore_entry_pop(struct tcpstore_server *ts, struct tcpstore_entry *en)
{
    struct tcpstore_item *item;
    struct rdzv_buf *value;

    if (en->n_queue == 0 || (!en->is_sorted && !sort(en)))
        return NULL;
    item = list_first(&en->queue, struct tcpstore_item, link);
    list_remove(&item->link);
    en->n_queue--;
    rdzv_quota_give(ts->quota, RDZV_COST_ITEM, 1);
    if (item->saved > 0)
        save_drop(ts, BLOB_ITEM, item->number, en, item->saved);
    value = item->value;
    free(item);
    return value;
}

/* ---- loading -------------------------------------------------------------------------------- */

/** The parts of a plain blob, borrowed from it. */
struct parts {
    enum blob_kind kind;
    uint64_t number; /* of an item */
    struct tcpstore_bytes key;
    struct tcpstore_bytes value;
};

static int decode(
    struct parts *ret, const void *p, size_t len, const struct rdzv_hash *hash, struct err *e)
{
    const uint8_t *plain;
    size_t plain_len;
    struct reader r;
    struct le64 number;
    struct le64 key_len;
    int result = rdzv_blob_open(RDZV_BLOB_OF_STORE, p, len, &plain, &plain_len, e);

    if (result != 0)
        return result;
    r = reader_make(plain, plain_len);
    ret->kind = (enum blob_kind)reader_u8(&r);
    reader_copy(&r, &number, sizeof(number));
    reader_copy(&r, &key_len, sizeof(key_len));
    ret->number = le64_get(number);
    ret->key.len = le64_get(key_len);
    if (r.failed || ret->key.len > reader_left(&r) || ret->key.len > TCPSTORE_KEY_MAX ||
        (ret->kind != BLOB_VALUE && ret->kind != BLOB_ITEM) || ret->number == UINT64_MAX)
        return err_set(e, -EINVAL, "not an entry of a TCPStore");
    ret->key.p = reader_take(&r, ret->key.len);
    ret->value = (struct tcpstore_bytes){.p = r.p, .len = reader_left(&r)};
    if (ret->value.len > TCPSTORE_VALUE_MAX)
        return err_set(
            e, -EINVAL, "a value of %zu bytes, over %u", ret->value.len, TCPSTORE_VALUE_MAX);
    return rdzv_hash_check(hash, plain, BLOB_HEAD + ret->key.len, e);
}

static int load_item(struct tcpstore_server *ts, struct tcpstore_entry *en, uint64_t number,
    size_t saved, struct rdzv_buf *value)
{
    struct tcpstore_item *item = add_item(ts, en, number, value);

    if (!item)
        return -ENOMEM;
    item->saved = saved;
    en->is_sorted = false;
    if (number >= ts->next_item)
        ts->next_item = number + 1;
    return 0;
}

int tcpstore_server_load(struct tcpstore_server *ts, const void *p, size_t len,
    const struct rdzv_hash *hash, struct err *e)
{
    struct parts parts = {.number = 0};
    struct tcpstore_entry *en;
    struct rdzv_buf *value;
    int r = decode(&parts, p, len, hash, e);

    if (r != 0)
        return r;
    en = tcpstore_entry_find(ts, parts.key);
    if (!en)
        en = entry_new(ts, parts.key, hash_of(ts, parts.key));
    value = en ? rdzv_buf_load(ts->quota, parts.value.len) : NULL;
    if (value)
        rdzv_buf_add(value, parts.value.p, parts.value.len);
    if (value && parts.kind == BLOB_VALUE) {
        set_value(ts, en, value);
        en->saved = len;
    } else if (!value || load_item(ts, en, parts.number, len, value) != 0) {
        r = err_set(e, -ENOMEM, "no memory for a TCPStore");
    }
    if (en)
        tcpstore_entry_release(ts, en);
    return r;
}

/* ---- all of them ---------------------------------------------------------------------------- */

void tcpstore_server_clear(struct tcpstore_server *ts)
{
    struct htab_link *next;
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&ts->entries, &cursor, NULL); l; l = next) {
        struct tcpstore_entry *en = container_of(l, struct tcpstore_entry, link);

        next = htab_each(&ts->entries, &cursor, l);
        tcpstore_entry_remove(ts, en);
        /* The order does not matter here, and sorting would take memory. */
        en->is_sorted = true;
        while (en->n_queue > 0)
            rdzv_buf_unref(tcpstore_entry_pop(ts, en));
        tcpstore_entry_release(ts, en);
    }
}

void tcpstore_server_deinit(struct tcpstore_server *ts)
{
    tcpstore_server_clear(ts);
    ts->listed = rdzv_buf_unref(ts->listed);
    htab_deinit(&ts->entries);
}
