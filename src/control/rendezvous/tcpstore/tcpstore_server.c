/* tcpstore_server.c - see tcpstore_server.h: what each request does, and who is told. */
#include "rendezvous/tcpstore/tcpstore_server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* Most keys that a client may wait for, or watch, at once. */
#define TCPSTORE_SERVER_WAITS_MAX 16384

static struct tcpstore_bytes bytes_of(const char *text)
{
    return (struct tcpstore_bytes){(const uint8_t *)text, strlen(text)};
}

/* ==== output that has not been sent ========================================================== */

/* Fewer bytes than this are copied, since a piece that refers to them takes as much memory. */
#define SHARE_FROM 256

/* Room of a piece for copied bytes: of the first one, and of one that follows a full one. */
#define FIRST_SIZE 176
#define NEXT_SIZE  4016

struct tcpstore_out_piece {
    struct list link;        /* in its output */
    struct rdzv_buf *shared; /* counted; NULL: the bytes are its own */
    size_t at;               /* how many bytes have been sent */
    size_t len;              /* bytes, with those that have been sent */
    size_t cap;              /* room of @own */
    uint8_t own[];           /* copied bytes */
};

static struct tcpstore_out_piece *piece_new(
    struct tcpstore_out *out, struct rdzv_quota *quota, struct rdzv_buf *shared, size_t cap)
{
    size_t cost = RDZV_COST_PIECE + cap;
    struct tcpstore_out_piece *p;

    if (out->cost + cost > RDZV_UNREAD_COST_MAX || !rdzv_quota_has(quota, cost, 0))
        return NULL;
    p = malloc(sizeof(*p) + cap);
    if (!p)
        return NULL;
    *p = (struct tcpstore_out_piece){.shared = rdzv_buf_ref(shared), .cap = cap};
    rdzv_quota_take(quota, cost, 0);
    out->quota = quota;
    out->cost += cost;
    list_add_tail(&out->pieces, &p->link);
    return p;
}

static void piece_free(struct tcpstore_out *out, struct tcpstore_out_piece *p)
{
    rdzv_quota_give(out->quota, RDZV_COST_PIECE + p->cap, 0);
    out->cost -= RDZV_COST_PIECE + p->cap;
    out->len -= p->len - p->at;
    list_remove(&p->link);
    rdzv_buf_unref(p->shared);
    free(p);
}

/* A piece with room for some of @len bytes. A new one is large when they are many or follow a piece
 * that is full, and small for the few bytes between shared values. */
static struct tcpstore_out_piece *piece_for(
    struct tcpstore_out *out, struct rdzv_quota *quota, size_t len)
{
    struct tcpstore_out_piece *last =
        list_is_empty(&out->pieces)
            ? NULL
            : container_of(out->pieces.prev, struct tcpstore_out_piece, link);

    if (last && last->len < last->cap)
        return last;
    return piece_new(
        out, quota, NULL, len > FIRST_SIZE || (last && !last->shared) ? NEXT_SIZE : FIRST_SIZE);
}

/*
 * Append a copy of @len bytes
 * @quota:	of the job: pinned, always the same
 *
 * Return: false: over a limit, or no memory; a part of the bytes may have been appended.
 */
static bool tcpstore_out_add(
    struct tcpstore_out *out, struct rdzv_quota *quota, const void *from, size_t len)
{
    const uint8_t *at = from;

    while (len > 0) {
        struct tcpstore_out_piece *p = piece_for(out, quota, len);
        size_t n;

        if (!p)
            return false;
        n = p->cap - p->len < len ? p->cap - p->len : len;
        memcpy(p->own + p->len, at, n);
        p->len += n;
        out->len += n;
        at += n;
        len -= n;
    }
    return true;
}

/* Append the first @len bytes of @s, by reference unless they are few. The
 * same. */
static bool tcpstore_out_share(
    struct tcpstore_out *out, struct rdzv_quota *quota, struct rdzv_buf *s, size_t len)
{
    struct tcpstore_out_piece *p;

    if (len < SHARE_FROM)
        return len == 0 || tcpstore_out_add(out, quota, s->b, len);
    p = out->len + len <= RDZV_UNREAD_BYTES_MAX ? piece_new(out, quota, s, 0) : NULL;
    if (!p)
        return false;
    p->len = len;
    out->len += len;
    return true;
}

size_t tcpstore_out_peek(const struct tcpstore_out *out, struct iovec *iov, size_t max)
{
    const struct tcpstore_out_piece *p;
    size_t n = 0;

    list_foreach(p, &out->pieces, link) {
        const uint8_t *bytes = p->shared ? p->shared->b : p->own;

        if (n == max)
            break;
        /* struct iovec is for reading as well, so its pointer is not const. */
        iov[n].iov_base = (void *)(uintptr_t)(bytes + p->at);
        iov[n++].iov_len = p->len - p->at;
    }
    return n;
}

void tcpstore_client_sent(struct tcpstore_client *c, size_t len)
{
    struct tcpstore_out *out = &c->out;

    while (len > 0) {
        struct tcpstore_out_piece *p = list_first(&out->pieces, struct tcpstore_out_piece, link);
        size_t n = p->len - p->at < len ? p->len - p->at : len;

        p->at += n;
        out->len -= n;
        len -= n;
        if (p->at == p->len)
            piece_free(out, p);
    }
}

/* ==== requests and their answers ============================================================= */

/* ---- answers -------------------------------------------------------------------------------- */

/* Notes that the client has output; when adding to it has failed, that it cannot be answered. */
static void answered(struct tcpstore_server *ts, struct tcpstore_client *c, bool worked)
{
    if (!worked)
        c->failed = true;
    if (list_is_empty(&c->ready))
        list_add_tail(&ts->ready, &c->ready);
}

static void answer(struct tcpstore_server *ts, struct tcpstore_client *c, const void *p, size_t len)
{
    answered(ts, c, !c->failed && tcpstore_out_add(&c->out, ts->quota, p, len));
}

static void answer_word(
    struct tcpstore_server *ts, struct tcpstore_client *c, enum tcpstore_word word)
{
    uint8_t byte = (uint8_t)word;

    answer(ts, c, &byte, 1);
}

static void answer_number(struct tcpstore_server *ts, struct tcpstore_client *c, uint64_t v)
{
    struct le64 le = le64_make(v);

    answer(ts, c, &le, sizeof(le));
}

/* The first @len bytes of @s, which may be NULL when that is 0. */
static void answer_shared(
    struct tcpstore_server *ts, struct tcpstore_client *c, struct rdzv_buf *s, size_t len)
{
    answer_number(ts, c, len);
    answered(ts, c, !c->failed && tcpstore_out_share(&c->out, ts->quota, s, len));
}

static void answer_value(
    struct tcpstore_server *ts, struct tcpstore_client *c, const struct tcpstore_entry *en)
{
    answer_shared(ts, c, en ? en->value : NULL, tcpstore_entry_value(en).len);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* A client that waits for a key, or watches it. */
struct tcpstore_wait {
    struct list of_client;          /* in the client's list */
    struct list of_entry;           /* in the entry's list */
    struct tcpstore_client *client; /* pins */
    struct tcpstore_entry *entry;   /* pins */
};

/* Takes it out of its lists and frees it. Its entry stays. */
static void wait_unlink(struct tcpstore_server *ts, struct tcpstore_wait *w)
{
    list_remove(&w->of_client);
    list_remove(&w->of_entry);
    rdzv_quota_give(ts->quota, RDZV_COST_WAIT, 0);
    free(w);
}

static void free_waits(struct tcpstore_server *ts, struct list *of_client)
{
    struct tcpstore_wait *w;

    while ((w = list_first(of_client, struct tcpstore_wait, of_client))) {
        struct tcpstore_entry *en = w->entry;

        wait_unlink(ts, w);
        tcpstore_entry_release(ts, en);
    }
}

/* Makes a client wait for an entry. @in_client, @in_entry: the lists that the wait is added to. */
static int add_wait(struct tcpstore_server *ts, struct tcpstore_entry *en,
    struct tcpstore_client *c, struct list *in_client, struct list *in_entry)
{
    struct tcpstore_wait *w =
        rdzv_quota_has(ts->quota, RDZV_COST_WAIT, 0) ? calloc(1, sizeof(*w)) : NULL;

    if (!w)
        return TCPSTORE_SERVER_E_FULL;
    rdzv_quota_take(ts->quota, RDZV_COST_WAIT, 0);
    w->client = c;
    w->entry = en;
    list_add_tail(in_client, &w->of_client);
    list_add_tail(in_entry, &w->of_entry);
    return 0;
}

/* A key that the client waited for is there. True: it was the last one, and the client is answered.
 */
static bool end_wait(struct tcpstore_server *ts, struct tcpstore_wait *w)
{
    struct tcpstore_client *c = w->client;

    wait_unlink(ts, w);
    if (--c->n_awaited > 0)
        return false;
    answer_word(ts, c, TCPSTORE_STOP_WAITING);
    return true;
}

/* @is_item: what is there is an item, for one client: for the first that waits for nothing else. */
static void wake(struct tcpstore_server *ts, struct tcpstore_entry *en, bool is_item)
{
    struct tcpstore_wait *w;
    struct tcpstore_wait *tmp;

    list_foreach_safe(w, tmp, &en->waits, of_entry) {
        if (end_wait(ts, w) && is_item)
            return;
    }
}

/** A value as it was before a change. Its buffer may grow, but only behind @len. */
struct before {
    struct rdzv_buf *value; /* counted */
    size_t len;
};

static void tell_watching(struct tcpstore_server *ts, struct tcpstore_entry *en,
    enum tcpstore_word what, const struct before *before)
{
    struct tcpstore_wait *w;

    list_foreach(w, &en->watches, of_entry) {
        struct tcpstore_client *c = w->client;

        answered(ts, c, c->out.cost <= RDZV_UNREAD_WATCH_MAX);
        answer_word(ts, c, what);
        answer_number(ts, c, en->key_len);
        answer(ts, c, en->key, en->key_len);
        answer_shared(ts, c, before->value, before->len);
        answer_value(ts, c, en);
    }
}

/* ---- changes -------------------------------------------------------------------------------- */

typedef int (*change_fn)(
    struct tcpstore_server *ts, struct tcpstore_entry *en, struct tcpstore_bytes value);

/* Sets or appends to a value with @do_change, and tells the clients that wait for the key or watch
 * it. */
static int change(struct tcpstore_server *ts, struct tcpstore_bytes key,
    struct tcpstore_bytes value, change_fn do_change)
{
    struct tcpstore_entry *en = tcpstore_entry_acquire(ts, key);
    enum tcpstore_word what;
    struct before before;
    int r;

    if (!en)
        return TCPSTORE_SERVER_E_FULL;
    what = en->has_value ? TCPSTORE_KEY_UPDATED : TCPSTORE_KEY_CREATED;
    before = (struct before){rdzv_buf_ref(en->value), tcpstore_entry_value(en).len};
    /* Without a client that watches, nobody needs the value as it was. */
    if (list_is_empty(&en->watches))
        before.value = rdzv_buf_unref(before.value);
    r = do_change(ts, en, value);
    if (r == 0) {
        tell_watching(ts, en, what, &before);
        wake(ts, en, false);
    }
    rdzv_buf_unref(before.value);
    tcpstore_entry_release(ts, en);
    return r;
}

static int set(struct tcpstore_server *ts, struct tcpstore_bytes key, struct tcpstore_bytes value)
{
    return change(ts, key, value, tcpstore_entry_put);
}

/* Answers with a value of the request. */
static int give_back(
    struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_bytes value)
{
    struct rdzv_buf *s = rdzv_buf_new(ts->quota, value.len);

    if (!s)
        return TCPSTORE_SERVER_E_FULL;
    rdzv_buf_add(s, value.p, value.len);
    answer_shared(ts, c, s, s->len);
    rdzv_buf_unref(s);
    return 0;
}

static int compare_set(
    struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq)
{
    struct tcpstore_entry *en = tcpstore_entry_find(ts, rq->key);
    bool has_value = en && en->has_value;
    int r = 0;

    /* Where there is no key, the expected value has to be empty; any other is the answer itself. */
    if (!has_value && rq->value.len > 0)
        return give_back(ts, c, rq->value);
    if (!has_value || tcpstore_bytes_equal(tcpstore_entry_value(en), rq->value))
        r = set(ts, rq->key, rq->desired);
    if (r == 0)
        answer_value(ts, c, tcpstore_entry_find(ts, rq->key));
    return r;
}

/* The value as a decimal number, as C's strtoll() reads it; no value is 0. */
static bool number_of(const struct tcpstore_entry *en, int64_t *ret)
{
    struct tcpstore_bytes v = tcpstore_entry_value(en);
    char text[64];
    char *end;

    *ret = 0;
    if (!en || !en->has_value)
        return true;
    if (v.len >= sizeof(text))
        return false;
    if (v.len > 0)
        memcpy(text, v.p, v.len);
    text[v.len] = '\0';
    errno = 0;
    *ret = strtoll(text, &end, 10);
    return end != text && errno == 0;
}

static int add(struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq)
{
    char text[32];
    int64_t sum;
    int r;

    if (!number_of(tcpstore_entry_find(ts, rq->key), &sum) ||
        __builtin_add_overflow(sum, rq->amount, &sum))
        return TCPSTORE_SERVER_E_REFUSED;
    (void)snprintf(text, sizeof(text), "%" PRId64, sum);
    r = set(ts, rq->key, bytes_of(text));
    if (r == 0)
        answer_number(ts, c, (uint64_t)sum);
    return r;
}

static int delete_key(
    struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq)
{
    struct tcpstore_entry *en = tcpstore_entry_find(ts, rq->key);
    bool was_there = en && en->has_value;
    struct before before;

    answer_number(ts, c, was_there);
    if (!was_there)
        return 0;
    before = (struct before){rdzv_buf_ref(en->value), tcpstore_entry_value(en).len};
    tcpstore_entry_remove(ts, en);
    tell_watching(ts, en, TCPSTORE_KEY_DELETED, &before);
    rdzv_buf_unref(before.value);
    tcpstore_entry_release(ts, en);
    return 0;
}

/* ---- questions ------------------------------------------------------------------------------ */

/* For a key that is not there, torch's classic server ends the connection, and its libuv server
 * answers with an empty value. */
static int get(struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_bytes key)
{
    struct tcpstore_entry *en = tcpstore_entry_find(ts, key);

    if ((!en || !en->has_value) && c->dialect == TCPSTORE_CLASSIC)
        return TCPSTORE_SERVER_E_REFUSED;
    answer_value(ts, c, en);
    return 0;
}

/* The classic dialect needs all keys; if one is missing, the connection ends: see get(). */
static int multi_get(
    struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq)
{
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < rq->count; i++)
        r = get(ts, c, tcpstore_next(&rq->items));
    return r;
}

static int multi_set(struct tcpstore_server *ts, struct tcpstore_request *rq)
{
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < rq->count; i++) {
        struct tcpstore_bytes key = tcpstore_next(&rq->items);

        r = set(ts, key, tcpstore_next(&rq->items));
    }
    return r;
}

static bool is_there(const struct tcpstore_server *ts, struct tcpstore_bytes key)
{
    const struct tcpstore_entry *en = tcpstore_entry_find(ts, key);

    return en && (en->has_value || en->n_queue > 0);
}

static void check(
    struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq)
{
    bool all = true;

    for (uint64_t i = 0; i < rq->count; i++)
        all &= is_there(ts, tcpstore_next(&rq->items));
    answer_word(ts, c, all ? TCPSTORE_READY : TCPSTORE_NOT_READY);
}

static int wait(struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq)
{
    int r = 0;

    if (rq->count > TCPSTORE_SERVER_WAITS_MAX)
        return TCPSTORE_SERVER_E_FULL;
    for (uint64_t i = 0; r == 0 && i < rq->count; i++) {
        struct tcpstore_bytes key = tcpstore_next(&rq->items);
        struct tcpstore_entry *en;

        if (is_there(ts, key))
            continue;
        en = tcpstore_entry_acquire(ts, key);
        r = en ? add_wait(ts, en, c, &c->waits, &en->waits) : TCPSTORE_SERVER_E_FULL;
        if (r == 0)
            c->n_awaited++;
        else if (en)
            tcpstore_entry_release(ts, en);
    }
    if (r == 0 && c->n_awaited == 0)
        answer_word(ts, c, TCPSTORE_STOP_WAITING);
    return r;
}

static int watch(struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq)
{
    struct tcpstore_entry *en =
        c->n_watches < TCPSTORE_SERVER_WAITS_MAX ? tcpstore_entry_acquire(ts, rq->key) : NULL;
    int r = en ? add_wait(ts, en, c, &c->watches, &en->watches) : TCPSTORE_SERVER_E_FULL;

    if (r == 0) {
        c->n_watches++;
        answer_word(ts, c, TCPSTORE_KEY_WATCHED);
    } else if (en) {
        tcpstore_entry_release(ts, en);
    }
    return r;
}

/* All keys that have values, each behind its length. NULL: no room, or no memory. */
static struct rdzv_buf *build_listed(struct tcpstore_server *ts)
{
    struct rdzv_buf *s = rdzv_buf_new(ts->quota, ts->keys_len + ts->n_keys * sizeof(struct le64));
    size_t cursor = 0;

    if (!s)
        return NULL;
    for (struct htab_link *l = htab_each(&ts->entries, &cursor, NULL); l;
         l = htab_each(&ts->entries, &cursor, l)) {
        const struct tcpstore_entry *en = container_of(l, struct tcpstore_entry, link);
        struct le64 len = le64_make(en->key_len);

        if (!en->has_value)
            continue;
        rdzv_buf_add(s, &len, sizeof(len));
        rdzv_buf_add(s, en->key, en->key_len);
    }
    return s;
}

/* All clients that ask before the keys change share one buffer. */
static int list_keys(struct tcpstore_server *ts, struct tcpstore_client *c)
{
    if (!ts->listed)
        ts->listed = build_listed(ts);
    if (!ts->listed)
        return TCPSTORE_SERVER_E_FULL;
    answer_number(ts, c, ts->n_keys);
    answered(
        ts, c, !c->failed && tcpstore_out_share(&c->out, ts->quota, ts->listed, ts->listed->len));
    return 0;
}

/* ---- queues --------------------------------------------------------------------------------- */

static int queue_push(struct tcpstore_server *ts, struct tcpstore_request *rq)
{
    struct tcpstore_entry *en = tcpstore_entry_acquire(ts, rq->key);
    int r = en ? tcpstore_entry_push(ts, en, rq->value) : TCPSTORE_SERVER_E_FULL;

    if (r == 0)
        wake(ts, en, true);
    else if (en)
        tcpstore_entry_release(ts, en);
    return r;
}

static int queue_pop(
    struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq)
{
    struct tcpstore_entry *en = tcpstore_entry_find(ts, rq->key);
    size_t n = en ? en->n_queue : 0;
    struct rdzv_buf *value = en ? tcpstore_entry_pop(ts, en) : NULL;

    if (n > 0 && !value)
        return TCPSTORE_SERVER_E_FULL;
    answer_number(ts, c, n);
    if (!value)
        return 0;
    answer_shared(ts, c, value, value->len);
    rdzv_buf_unref(value);
    tcpstore_entry_release(ts, en);
    return 0;
}

/* ---- barriers ------------------------------------------------------------------------------- */

/* The key's value counts the clients that have reached the barrier. When all have, the clients that
 * wait for the key are answered. A client that comes later is answered at once. */
static int barrier(
    struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq)
{
    struct tcpstore_entry *en;
    char text[32];
    int64_t count;
    int r;

    if (!number_of(tcpstore_entry_find(ts, rq->key), &count) ||
        __builtin_add_overflow(count, 1, &count))
        return TCPSTORE_SERVER_E_REFUSED;
    en = tcpstore_entry_acquire(ts, rq->key);
    if (!en)
        return TCPSTORE_SERVER_E_FULL;
    (void)snprintf(text, sizeof(text), "%" PRId64, count);
    r = tcpstore_entry_put(ts, en, bytes_of(text));
    if (r == 0 && count < rq->amount) {
        r = add_wait(ts, en, c, &c->waits, &en->waits);
        c->n_awaited = r == 0;
    } else if (r == 0) {
        wake(ts, en, false);
        answer_word(ts, c, TCPSTORE_STOP_WAITING);
    }
    tcpstore_entry_release(ts, en);
    return r;
}

/* ---- requests ------------------------------------------------------------------------------- */

static int dispatch(
    struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq)
{
    struct tcpstore_entry *en;
    struct le32 nonce;

    switch (rq->op) {
    case TCPSTORE_SET:
        return set(ts, rq->key, rq->value);
    case TCPSTORE_COMPARE_SET:
        return compare_set(ts, c, rq);
    case TCPSTORE_GET:
        return get(ts, c, rq->key);
    case TCPSTORE_ADD:
        return add(ts, c, rq);
    case TCPSTORE_CHECK:
        check(ts, c, rq);
        return 0;
    case TCPSTORE_WAIT:
        return wait(ts, c, rq);
    case TCPSTORE_NUM_KEYS:
        answer_number(ts, c, ts->n_keys);
        return 0;
    case TCPSTORE_WATCH_KEY:
        return watch(ts, c, rq);
    case TCPSTORE_DELETE_KEY:
        return delete_key(ts, c, rq);
    case TCPSTORE_APPEND:
        return change(ts, rq->key, rq->value, tcpstore_entry_append);
    case TCPSTORE_MULTI_GET:
        return multi_get(ts, c, rq);
    case TCPSTORE_MULTI_SET:
        return multi_set(ts, rq);
    case TCPSTORE_CANCEL_WAIT:
        answer_word(ts, c, TCPSTORE_WAIT_CANCELED);
        return 0;
    case TCPSTORE_PING:
        nonce = le32_make(rq->nonce);
        answer(ts, c, &nonce, sizeof(nonce));
        return 0;
    case TCPSTORE_QUEUE_PUSH:
        return queue_push(ts, rq);
    case TCPSTORE_QUEUE_POP:
        return queue_pop(ts, c, rq);
    case TCPSTORE_QUEUE_LEN:
        en = tcpstore_entry_find(ts, rq->key);
        answer_number(ts, c, en ? en->n_queue : 0);
        return 0;
    case TCPSTORE_LIST:
        return list_keys(ts, c);
    case TCPSTORE_BARRIER:
        return barrier(ts, c, rq);
    case TCPSTORE_OP_N:
        break;
    }
    return TCPSTORE_SERVER_E_REFUSED;
}

int tcpstore_server_handle(
    struct tcpstore_server *ts, struct tcpstore_client *c, struct tcpstore_request *rq)
{
    int r;

    free_waits(ts, &c->waits);
    c->n_awaited = 0;
    r = dispatch(ts, c, rq);
    if (r == 0 && c->failed)
        r = TCPSTORE_SERVER_E_FULL;
    if (r == TCPSTORE_SERVER_E_FULL)
        rdzv_quota_refuse(ts->quota, "the job or its network is full");
    if (r == TCPSTORE_SERVER_E_LONG)
        rdzv_quota_refuse(ts->quota, "a value was too long");
    return r;
}

/* ---- life ----------------------------------------------------------------------------------- */

void tcpstore_server_init(struct tcpstore_server *ts, const struct rdzv_saver *saver,
    struct rdzv_quota *quota, uint64_t seed)
{
    *ts = (struct tcpstore_server){.saver = *saver, .quota = quota};
    htab_init(&ts->entries, seed);
    list_init(&ts->ready);
    list_init(&ts->unsaved);
}

void tcpstore_client_init(struct tcpstore_client *c, enum tcpstore_dialect dialect)
{
    *c = (struct tcpstore_client){.dialect = dialect};
    list_init(&c->ready);
    list_init(&c->waits);
    list_init(&c->watches);
    list_init(&c->out.pieces);
}

void tcpstore_client_deinit(struct tcpstore_server *ts, struct tcpstore_client *c)
{
    struct tcpstore_out_piece *p;

    free_waits(ts, &c->waits);
    free_waits(ts, &c->watches);
    list_remove(&c->ready);
    while ((p = list_first(&c->out.pieces, struct tcpstore_out_piece, link)))
        piece_free(&c->out, p);
}
