/*
 * fuzz-rdzv-stored.c - what is stored loads.
 *
 * The input is a list of operations on a TCPStore and an etcd tree. What they have told their
 * savers is loaded into fresh ones, in another order, and those must be equal. Then records are
 * damaged, one by one: each must be refused with words, or be known by its name to lie in a wrong
 * place, and all others must load.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "rendezvous/etcd2/etcd2_tree.h"
#include "rendezvous/tcpstore/tcpstore_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* ---- a disk --------------------------------------------------------------------------------- */

#define RECORDS_MAX 512
#define NAME_MAX_   2100

struct record {
    bool is_node; /* of the tree; else an entry of the store */
    uint8_t name[NAME_MAX_];
    size_t name_len;
    uint8_t *p; /* owns; NULL: the record is free */
    size_t len;
};

static struct record disk[RECORDS_MAX];

static struct record *find_record(bool is_node, const void *name, size_t len)
{
    for (size_t i = 0; i < RECORDS_MAX; i++)
        if (disk[i].p && disk[i].is_node == is_node && disk[i].name_len == len &&
            memcmp(disk[i].name, name, len) == 0)
            return &disk[i];
    return NULL;
}

static void forget(struct record *rec)
{
    free(rec->p);
    rec->p = NULL;
}

static void put(void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len,
    const void *p, size_t len, size_t before)
{
    bool is_node = kind == RDZV_KEY_NODE;
    struct record *rec = find_record(is_node, name, name_len);
    size_t i = 0;

    /* The index of a tree is put without saying what was there. */
    assert(name_len == 0 || before == (rec ? rec->len : 0));
    if (rec)
        forget(rec);
    while (disk[i].p)
        i++;
    assert(i < RECORDS_MAX && name_len <= NAME_MAX_);
    disk[i] =
        (struct record){.is_node = is_node, .name_len = name_len, .p = malloc(len), .len = len};
    assert(disk[i].p);
    memcpy(disk[i].name, name, name_len);
    memcpy(disk[i].p, p, len);
}

static void drop(
    void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len, size_t before)
{
    struct record *rec = find_record(kind == RDZV_KEY_NODE, name, name_len);

    assert(rec && rec->len == before);
    forget(rec);
}

static void unsaved(void *ctx)
{
}

/* ---- both kinds of a job -------------------------------------------------------------------- */

struct job {
    struct rdzv_quota quota;
    struct tcpstore_server ts;
    struct etcd2_tree tree;
};

static void job_init(struct job *job)
{
    struct rdzv_saver saver = {.unsaved = unsaved, .put = put, .drop = drop};

    job->quota = (struct rdzv_quota){.bytes_max = 256u << 10, .entries_max = 200};
    tcpstore_server_init(&job->ts, &saver, &job->quota, 1);
    assert(etcd2_tree_init(&job->tree, &saver, &job->quota) == 0);
}

static void ignore(
    void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len, size_t before)
{
}

/* The disk stays as it is. */
static void job_deinit(struct job *job)
{
    job->ts.saver.drop = ignore;
    job->tree.nodes.saver.drop = ignore;
    tcpstore_server_deinit(&job->ts);
    etcd2_tree_deinit(&job->tree);
    assert(job->quota.bytes == 0 && job->quota.entries == 0);
}

/* ---- operations ----------------------------------------------------------------------------- */

static struct tcpstore_bytes take_bytes(struct reader *r)
{
    size_t len = reader_u8(r);

    if (len > reader_left(r))
        len = reader_left(r);
    return (struct tcpstore_bytes){.p = reader_take(r, len), .len = len};
}

static void change_tcpstore(struct tcpstore_server *ts, struct tcpstore_client *c, struct reader *r)
{
    static const enum tcpstore_op ops[] = {TCPSTORE_SET, TCPSTORE_APPEND, TCPSTORE_APPEND,
        TCPSTORE_ADD, TCPSTORE_COMPARE_SET, TCPSTORE_DELETE_KEY, TCPSTORE_QUEUE_PUSH,
        TCPSTORE_QUEUE_POP, TCPSTORE_BARRIER, TCPSTORE_GET, TCPSTORE_LIST, TCPSTORE_WATCH_KEY};
    struct tcpstore_request rq = {.op = ops[reader_u8(r) % (sizeof(ops) / sizeof(*ops))]};
    uint8_t key = reader_u8(r) % 8;

    rq.key = (struct tcpstore_bytes){&key, key > 0};
    rq.value = take_bytes(r);
    if (rq.op == TCPSTORE_COMPARE_SET)
        rq.desired = take_bytes(r);
    rq.amount = (int8_t)reader_u8(r);
    (void)tcpstore_server_handle(ts, c, &rq);
    if (reader_u8(r) % 4 == 0)
        (void)tcpstore_server_flush(ts, reader_u8(r));
    tcpstore_client_sent(c, c->out.len);
}

/* Of a few short paths, and one that is as deep as is allowed, about. */
static void take_path(struct reader *r, char path[static ETCD2_PATH_MAX + 1])
{
    unsigned n = reader_u8(r) % 4;
    char text[2 * ETCD2_DEPTH_MAX + 8];
    size_t len = 0;

    if (reader_u8(r) % 16 == 0)
        n = ETCD2_DEPTH_MAX - 2 + reader_u8(r) % 4;
    for (unsigned i = 0; i < n; i++) {
        text[len++] = '/';
        text[len++] = (char)("abc_"[i < 3 ? reader_u8(r) % 4 : 0]);
    }
    text[len] = '\0';
    if (!etcd2_path_clean(text, path))
        memcpy(path, "/", 2);
}

typedef int (*tree_fn)(struct etcd2_tree *t, const char *path, const struct etcd2_change *change,
    struct etcd2_event **ret, struct etcd2_refusal *why);

static void change_tree(struct etcd2_tree *t, struct etcd2_when *when, struct reader *r)
{
    static const tree_fn fns[] = {etcd2_tree_set, etcd2_tree_create, etcd2_tree_create_in_order,
        etcd2_tree_update, etcd2_tree_swap, etcd2_tree_delete, etcd2_tree_compare_delete};
    uint8_t op = reader_u8(r) % 8;
    uint8_t flags = reader_u8(r);
    struct etcd2_change change = {.is_dir = flags & 1,
        .has_ttl = flags & 2,
        .is_refresh = flags & 4,
        .is_recursive = flags & 2,
        .when = *when};
    struct etcd2_event *ev = NULL;
    struct etcd2_refusal why;
    char path[ETCD2_PATH_MAX + 1];
    struct tcpstore_bytes b;

    take_path(r, path);
    change.ttl_seconds = reader_u8(r) % 8;
    change.prev_index = flags & 8 ? t->index : 0;
    b = take_bytes(r);
    change.value = (struct etcd2_text){b.len ? (const char *)b.p : "", b.len};
    if (op < 7)
        (void)fns[op](t, path, &change, &ev, &why);
    else
        when->now += reader_u8(r) % 4 * NSEC_PER_SEC;
    etcd2_event_unref(ev);
    etcd2_tree_expire(t, *when);
}

/* ---- comparing ------------------------------------------------------------------------------ */

static void check_queues(struct tcpstore_server *a, struct tcpstore_entry *in_a,
    struct tcpstore_server *b, struct tcpstore_entry *in_b)
{
    assert(in_a->n_queue == in_b->n_queue);
    while (in_a->n_queue > 0) {
        struct rdzv_buf *x = tcpstore_entry_pop(a, in_a);
        struct rdzv_buf *y = tcpstore_entry_pop(b, in_b);

        assert(x && y && x->len == y->len && memcmp(x->b, y->b, x->len) == 0);
        rdzv_buf_unref(x);
        rdzv_buf_unref(y);
    }
}

static void check_kv(struct job *a, struct job *b)
{
    size_t cursor = 0;

    assert(a->ts.n_keys == b->ts.n_keys && a->ts.keys_len == b->ts.keys_len);
    for (struct htab_link *l = htab_each(&a->ts.entries, &cursor, NULL); l;
         l = htab_each(&a->ts.entries, &cursor, l)) {
        struct tcpstore_entry *x = container_of(l, struct tcpstore_entry, link);
        struct tcpstore_entry *y =
            tcpstore_entry_find(&b->ts, (struct tcpstore_bytes){x->key, x->key_len});

        if (!x->has_value && x->n_queue == 0)
            continue;
        assert(y && y->has_value == x->has_value && y->saved == x->saved);
        assert(tcpstore_bytes_equal(tcpstore_entry_value(x), tcpstore_entry_value(y)));
        check_queues(&a->ts, x, &b->ts, y);
    }
}

static void check_node(const struct etcd2_node *a, const struct etcd2_node *b)
{
    struct etcd2_text x = etcd2_node_value(a);
    struct etcd2_text y = etcd2_node_value(b);

    assert(strcmp(a->keyed.key, b->keyed.key) == 0 && a->is_dir == b->is_dir);
    assert(a->created == b->created && a->modified == b->modified && a->saved == b->saved);
    assert((a->ttl.pos != 0) == (b->ttl.pos != 0));
    assert(a->ttl.pos == 0 || a->ttl_seconds == b->ttl_seconds);
    assert(x.len == y.len && memcmp(x.p, y.p, x.len) == 0);
    assert(a->children.n == b->children.n);
    for (size_t i = 0; i < a->children.n; i++)
        check_node(etcd2_node_of(a->children.items[i]), etcd2_node_of(b->children.items[i]));
}

/* ---- loading -------------------------------------------------------------------------------- */

/* False: refused, with words, as when it lies in a wrong place. */
static bool load(struct job *job, const struct record *rec, struct etcd2_when when)
{
    struct rdzv_hash hash = rdzv_hash_of(rec->name, rec->name_len);
    struct err e = ERR_NULL;
    int r = rec->is_node ? etcd2_tree_load(&job->tree, rec->p, rec->len, &hash, when, &e)
                         : tcpstore_server_load(&job->ts, rec->p, rec->len, &hash, &e);

    assert(r == 0 || err_text(&e)[0] != '\0');
    return r == 0;
}

/* All records, from one in the middle on; @victim need not load. */
static void load_all(
    struct job *job, const struct record *victim, uint8_t from, struct etcd2_when when)
{
    for (size_t i = 0; i < RECORDS_MAX; i++) {
        const struct record *rec = &disk[(i * 7 + from) % RECORDS_MAX];

        if (rec->p && rec != victim)
            assert(load(job, rec, when));
    }
}

/* A record is shortened, changed in a bit, or lies where another belongs; the others load. */
static void damage_one(struct record *rec, struct reader *r, struct etcd2_when when)
{
    const struct record *other = &disk[reader_u8(r) % RECORDS_MAX];
    uint8_t how = reader_u8(r) % 3;
    size_t at = reader_u8(r) * 256u + reader_u8(r);
    struct record damaged = *rec;
    struct job job;

    if (how == 2 && (!other->p || other == rec))
        return;
    damaged.len = how == 2 ? other->len : rec->len;
    damaged.p = malloc(damaged.len);
    assert(damaged.p);
    memcpy(damaged.p, how == 2 ? other->p : rec->p, damaged.len);
    if (how == 0)
        damaged.len = at % rec->len;
    if (how == 1)
        damaged.p[at / 8 % rec->len] ^= (uint8_t)(1u << at % 8);
    job_init(&job);
    assert(!load(&job, &damaged, when));
    load_all(&job, rec, (uint8_t)at, when);
    job_deinit(&job);
    free(damaged.p);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void check_stored(struct job *job, uint8_t from, struct etcd2_when when)
{
    struct job again;

    job_init(&again);
    load_all(&again, NULL, from, when);
    assert(again.ts.next_item <= job->ts.next_item && again.tree.index == job->tree.index);
    check_node(job->tree.nodes.root, again.tree.nodes.root);
    /* To compare queues empties them, and the disk is the first one's. */
    again.ts.saver.drop = ignore;
    check_kv(job, &again);
    job_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct etcd2_when when = {.now = 1000 * NSEC_PER_SEC, .wall = 2000 * NSEC_PER_SEC};
    struct reader r = reader_make(data, len);
    struct tcpstore_client c;
    struct job job;
    uint8_t from = reader_u8(&r);
    unsigned n_damaged = 0;

    job_init(&job);
    tcpstore_client_init(&c, TCPSTORE_VALIDATED);
    while (reader_left(&r) > 0) {
        if (reader_u8(&r) % 2)
            change_tcpstore(&job.ts, &c, &r);
        else
            change_tree(&job.tree, &when, &r);
    }
    tcpstore_client_deinit(&job.ts, &c);
    assert(tcpstore_server_flush(&job.ts, SIZE_MAX));
    r = reader_make(data, len);
    for (size_t i = 0; i < RECORDS_MAX && n_damaged < 8; i++)
        if (disk[i].p && ++n_damaged)
            damage_one(&disk[i], &r, when);
    check_stored(&job, from, when);
    job_deinit(&job);
    for (size_t i = 0; i < RECORDS_MAX; i++)
        if (disk[i].p)
            forget(&disk[i]);
    return 0;
}
