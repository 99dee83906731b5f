/* rdzv_kv_entry.c - the entries of a TCPStore: in memory, in the quota, and as blobs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "rendezvous/rdzv_kv_internal.h"
#include "rendezvous/rdzv_record.h"

/* What an entry costs beside its bytes, about. */
#define OVERHEAD 160

/* A blob: what it is, a number, a key behind its length, and the value up to the end. */
enum blob_kind {
    BLOB_VALUE = 1,
    BLOB_ITEM = 2,
};
#define BLOB_HEAD 17

/* ---- finding -------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct rdzv_kv *kv, struct tcpstore_bytes key)
{
    return hash_bytes(kv->entries.seed, key.p, key.len);
}

static struct rdzv_entry *find(const struct rdzv_kv *kv, struct tcpstore_bytes key, uint64_t hash)
{
    for (struct htab_link *l = htab_first(&kv->entries, hash); l; l = htab_next(l, hash)) {
        struct rdzv_entry *en = container_of(l, struct rdzv_entry, link);

        if (tcpstore_bytes_equal((struct tcpstore_bytes){en->key, en->key_len}, key))
            return en;
    }
    return NULL;
}

struct rdzv_entry *rdzv_kv__find(const struct rdzv_kv *kv, struct tcpstore_bytes key)
{
    return find(kv, key, hash_of(kv, key));
}

struct rdzv_entry *rdzv_kv__acquire(struct rdzv_kv *kv, struct tcpstore_bytes key)
{
    uint64_t hash = hash_of(kv, key);
    struct rdzv_entry *en = find(kv, key, hash);

    if (en || !rdzv_quota_has(kv->quota, key.len + OVERHEAD, 1))
        return en;
    en = calloc(1, sizeof(*en));
    if (!en)
        return NULL;
    en->key = malloc(key.len + 1);
    if (!en->key || htab_add(&kv->entries, &en->link, hash) != 0) {
        free(en->key);
        free(en);
        return NULL;
    }
    memcpy(en->key, key.p, key.len);
    en->key_len = key.len;
    list_init(&en->queue);
    list_init(&en->waits);
    list_init(&en->watches);
    rdzv_quota_take(kv->quota, en->key_len + OVERHEAD, 1);
    return en;
}

void rdzv_kv__release(struct rdzv_kv *kv, struct rdzv_entry *en)
{
    if (en->has_value || en->n_queue > 0 || !list_is_empty(&en->waits) ||
        !list_is_empty(&en->watches))
        return;
    rdzv_quota_give(kv->quota, en->key_len + OVERHEAD, 1);
    htab_remove(&kv->entries, &en->link);
    free(en->key);
    free(en);
}

/* ---- blobs ---------------------------------------------------------------------------------- */

/* What the blob of a value or an item is called: unlike any other in the job. Into the scratch. */
static void build_head(
    struct rdzv_kv *kv, enum blob_kind kind, uint64_t number, const struct rdzv_entry *en)
{
    struct le64 n = le64_make(number);
    struct le64 len = le64_make(en->key_len);

    kv->scratch.len = 0;
    str_add_bytes(&kv->scratch, (const char[]){(char)kind}, 1);
    str_add_bytes(&kv->scratch, (const char *)&n, sizeof(n));
    str_add_bytes(&kv->scratch, (const char *)&len, sizeof(len));
    str_add_bytes(&kv->scratch, (const char *)en->key, en->key_len);
}

static void save_put(struct rdzv_kv *kv, enum blob_kind kind, uint64_t number,
    const struct rdzv_entry *en, struct tcpstore_bytes value, size_t before)
{
    size_t head;

    build_head(kv, kind, number, en);
    head = kv->scratch.len;
    str_add_bytes(&kv->scratch, (const char *)value.p, value.len);
    /* Without memory the last state on the disk stays the one before. */
    if (!kv->scratch.failed)
        kv->saver.put(
            kv->saver.ctx, kv->scratch.text, head, kv->scratch.text, kv->scratch.len, before);
}

static void save_drop(struct rdzv_kv *kv, enum blob_kind kind, uint64_t number,
    const struct rdzv_entry *en, size_t before)
{
    build_head(kv, kind, number, en);
    if (!kv->scratch.failed)
        kv->saver.drop(kv->saver.ctx, kv->scratch.text, kv->scratch.len, before);
}

static size_t blob_len(const struct rdzv_entry *en, size_t value_len)
{
    return BLOB_HEAD + en->key_len + value_len;
}

/* ---- values --------------------------------------------------------------------------------- */

/* Takes @value. */
static void set_value(struct rdzv_kv *kv, struct rdzv_entry *en, uint8_t *value, size_t len)
{
    rdzv_quota_give(kv->quota, en->value_len, 0);
    rdzv_quota_take(kv->quota, len, 0);
    free(en->value);
    en->value = value;
    en->value_len = len;
    if (!en->has_value)
        kv->n_keys++;
    en->has_value = true;
}

int rdzv_kv__put(
    struct rdzv_kv *kv, struct rdzv_entry *en, struct tcpstore_bytes a, struct tcpstore_bytes b)
{
    size_t before = en->has_value ? blob_len(en, en->value_len) : 0;
    size_t len = a.len + b.len;
    uint8_t *value;

    if (len > TCPSTORE_VALUE_MAX ||
        (len > en->value_len && !rdzv_quota_has(kv->quota, len - en->value_len, 0)))
        return RDZV_KV_E_FULL;
    value = malloc(len + 1);
    if (!value)
        return RDZV_KV_E_FULL;
    if (a.len > 0)
        memcpy(value, a.p, a.len);
    if (b.len > 0)
        memcpy(value + a.len, b.p, b.len);
    set_value(kv, en, value, len);
    save_put(kv, BLOB_VALUE, 0, en, (struct tcpstore_bytes){value, len}, before);
    return 0;
}

void rdzv_kv__remove(struct rdzv_kv *kv, struct rdzv_entry *en)
{
    if (!en->has_value)
        return;
    save_drop(kv, BLOB_VALUE, 0, en, blob_len(en, en->value_len));
    rdzv_quota_give(kv->quota, en->value_len, 0);
    free(en->value);
    en->value = NULL;
    en->value_len = 0;
    en->has_value = false;
    kv->n_keys--;
}

/* ---- queues --------------------------------------------------------------------------------- */

static struct rdzv_item *add_item(
    struct rdzv_kv *kv, struct rdzv_entry *en, uint64_t number, struct tcpstore_bytes value)
{
    struct rdzv_item *item = malloc(sizeof(*item) + value.len);

    if (!item)
        return NULL;
    item->number = number;
    item->len = value.len;
    memcpy(item->value, value.p, value.len);
    list_add_tail(&en->queue, &item->link);
    en->n_queue++;
    rdzv_quota_take(kv->quota, value.len + OVERHEAD, 1);
    return item;
}

int rdzv_kv__push(struct rdzv_kv *kv, struct rdzv_entry *en, struct tcpstore_bytes value)
{
    uint64_t number = kv->next_item;

    if (!rdzv_quota_has(kv->quota, value.len + OVERHEAD, 1) || !add_item(kv, en, number, value))
        return RDZV_KV_E_FULL;
    kv->next_item++;
    save_put(kv, BLOB_ITEM, number, en, value, 0);
    return 0;
}

struct rdzv_item *rdzv_kv__pop(struct rdzv_kv *kv, struct rdzv_entry *en)
{
    struct rdzv_item *item = list_first(&en->queue, struct rdzv_item, link);

    if (!item)
        return NULL;
    list_remove(&item->link);
    en->n_queue--;
    rdzv_quota_give(kv->quota, item->len + OVERHEAD, 1);
    save_drop(kv, BLOB_ITEM, item->number, en, blob_len(en, item->len));
    return item;
}

/* ---- loading -------------------------------------------------------------------------------- */

/* The hash in the items' names does not keep their order; their numbers do. */
static void sort_in(struct rdzv_entry *en, struct rdzv_item *item)
{
    struct rdzv_item *at;

    list_remove(&item->link);
    list_foreach(at, &en->queue, link) {
        if (at->number > item->number)
            break;
    }
    list_add_tail(&at->link, &item->link);
}

static int load_item(
    struct rdzv_kv *kv, struct rdzv_entry *en, uint64_t number, struct tcpstore_bytes value)
{
    struct rdzv_item *item = add_item(kv, en, number, value);

    if (!item)
        return -ENOMEM;
    sort_in(en, item);
    if (number >= kv->next_item)
        kv->next_item = number + 1;
    return 0;
}

static int load_value(struct rdzv_kv *kv, struct rdzv_entry *en, struct tcpstore_bytes value)
{
    uint8_t *copy = malloc(value.len + 1);

    if (!copy)
        return -ENOMEM;
    memcpy(copy, value.p, value.len);
    set_value(kv, en, copy, value.len);
    return 0;
}

int rdzv_kv_load(struct rdzv_kv *kv, const void *p, size_t len, struct err *e)
{
    struct reader r = reader_make(p, len);
    uint8_t kind = reader_u8(&r);
    struct le64 number;
    struct tcpstore_bytes key;
    struct tcpstore_bytes value;
    struct le64 key_len;
    struct rdzv_entry *en;
    int result;

    reader_copy(&r, &number, sizeof(number));
    reader_copy(&r, &key_len, sizeof(key_len));
    if (r.failed || le64_get(key_len) > reader_left(&r) || le64_get(key_len) > TCPSTORE_KEY_MAX ||
        (kind != BLOB_VALUE && kind != BLOB_ITEM) || le64_get(number) == UINT64_MAX)
        return err_set(e, -EINVAL, "not an entry of a TCPStore");
    key.len = le64_get(key_len);
    key.p = reader_take(&r, key.len);
    value = (struct tcpstore_bytes){.p = r.p, .len = reader_left(&r)};
    if (value.len > TCPSTORE_VALUE_MAX)
        return err_set(e, -EINVAL, "a value of %zu bytes, over %u", value.len, TCPSTORE_VALUE_MAX);
    en = rdzv_kv__acquire(kv, key);
    if (!en)
        return err_set(e, -ENOMEM, "no room for a TCPStore");
    result =
        kind == BLOB_VALUE ? load_value(kv, en, value) : load_item(kv, en, le64_get(number), value);
    if (result != 0)
        (void)err_set(e, result, "no memory for a TCPStore");
    rdzv_kv__release(kv, en);
    return result;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void empty(struct rdzv_kv *kv, struct rdzv_entry *en)
{
    rdzv_kv__remove(kv, en);
    while (en->n_queue > 0)
        free(rdzv_kv__pop(kv, en));
    rdzv_kv__release(kv, en);
}

static void empty_all(struct rdzv_kv *kv)
{
    struct htab_link *next;
    size_t cursor = 0;

    for (struct htab_link *l = htab_each(&kv->entries, &cursor, NULL); l; l = next) {
        next = htab_each(&kv->entries, &cursor, l);
        empty(kv, container_of(l, struct rdzv_entry, link));
    }
}

void rdzv_kv_clear(struct rdzv_kv *kv)
{
    empty_all(kv);
}

static void put_nowhere(
    void *ctx, const void *name, size_t name_len, const void *p, size_t len, size_t before)
{
}

static void drop_nowhere(void *ctx, const void *name, size_t name_len, size_t before)
{
}

void rdzv_kv_deinit(struct rdzv_kv *kv)
{
    kv->saver = (struct rdzv_kv_saver){.put = put_nowhere, .drop = drop_nowhere};
    empty_all(kv);
    htab_deinit(&kv->entries);
    str_deinit(&kv->scratch);
}
