/* tcpstore_server.c - see tcpstore_server.h: what each request does, and who is told. */
#include "tcpstore_server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "rendezvous/tcpstore_entry.h"

static struct tcpstore_bytes bytes_of(const char *text)
{
    return (struct tcpstore_bytes){(const uint8_t *)text, strlen(text)};
}

/* ---- answers -------------------------------------------------------------------------------- */

/* Something was added to its output; or it could not be. */
static void answered(struct rdzv_kv *kv, struct rdzv_client *c, bool worked)
{
    if (!worked)
        c->failed = true;
    if (list_is_empty(&c->ready))
        list_add_tail(&kv->ready, &c->ready);
}

static void answer(struct rdzv_kv *kv, struct rdzv_client *c, const void *p, size_t len)
{
    answered(kv, c, !c->failed && rdzv_out_add(&c->out, kv->quota, p, len));
}

static void answer_word(struct rdzv_kv *kv, struct rdzv_client *c, enum tcpstore_word word)
{
    uint8_t byte = (uint8_t)word;

    answer(kv, c, &byte, 1);
}

static void answer_number(struct rdzv_kv *kv, struct rdzv_client *c, uint64_t v)
{
    struct le64 le = le64_make(v);

    answer(kv, c, &le, sizeof(le));
}

static void answer_bytes(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_bytes b)
{
    answer_number(kv, c, b.len);
    answer(kv, c, b.p, b.len);
}

/* The first @len bytes of @s, which may be NULL when that is 0. */
static void answer_shared(
    struct rdzv_kv *kv, struct rdzv_client *c, struct rdzv_shared *s, size_t len)
{
    answer_number(kv, c, len);
    answered(kv, c, !c->failed && rdzv_out_share(&c->out, kv->quota, s, len));
}

static void answer_value(struct rdzv_kv *kv, struct rdzv_client *c, const struct rdzv_entry *en)
{
    answer_shared(kv, c, en ? en->value : NULL, rdzv_kv__value(en).len);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* It is in no list any more; what is known of its key stays. */
static void wait_unlink(struct rdzv_kv *kv, struct rdzv_wait *w)
{
    list_remove(&w->of_client);
    list_remove(&w->of_entry);
    rdzv_quota_give(kv->quota, RDZV_COST_WAIT, 0);
    free(w);
}

static void wait_free(struct rdzv_kv *kv, struct rdzv_wait *w)
{
    struct rdzv_entry *en = w->entry;

    wait_unlink(kv, w);
    rdzv_kv__release(kv, en);
}

static void stop_waiting(struct rdzv_kv *kv, struct rdzv_client *c)
{
    struct rdzv_wait *w;
    struct rdzv_wait *tmp;

    list_foreach_safe(w, tmp, &c->waits, of_client)
        wait_free(kv, w);
    c->n_awaited = 0;
}

/* @in_client, @in_entry: the lists that it goes into. */
static int add_wait(struct rdzv_kv *kv, struct rdzv_entry *en, struct rdzv_client *c,
    struct list *in_client, struct list *in_entry)
{
    struct rdzv_wait *w =
        rdzv_quota_has(kv->quota, RDZV_COST_WAIT, 0) ? calloc(1, sizeof(*w)) : NULL;

    if (!w)
        return RDZV_KV_E_FULL;
    rdzv_quota_take(kv->quota, RDZV_COST_WAIT, 0);
    w->client = c;
    w->entry = en;
    list_add_tail(in_client, &w->of_client);
    list_add_tail(in_entry, &w->of_entry);
    return 0;
}

/* One key that it waited for is there; true if that was the last. */
static bool came(struct rdzv_kv *kv, struct rdzv_wait *w)
{
    struct rdzv_client *c = w->client;

    wait_unlink(kv, w);
    if (--c->n_awaited > 0)
        return false;
    answer_word(kv, c, TCPSTORE_STOP_WAITING);
    return true;
}

static void wake_all(struct rdzv_kv *kv, struct rdzv_entry *en)
{
    struct rdzv_wait *w;
    struct rdzv_wait *tmp;

    list_foreach_safe(w, tmp, &en->waits, of_entry)
        (void)came(kv, w);
}

/* An item is for one only: for the first that waits for nothing else. */
static void wake_one(struct rdzv_kv *kv, struct rdzv_entry *en)
{
    struct rdzv_wait *w;
    struct rdzv_wait *tmp;

    list_foreach_safe(w, tmp, &en->waits, of_entry) {
        if (came(kv, w))
            return;
    }
}

/* A value as it was: it only grows at its end. */
struct before {
    struct rdzv_shared *value; /* counted */
    size_t len;
};

static void tell_watching(
    struct rdzv_kv *kv, struct rdzv_entry *en, enum tcpstore_word what, const struct before *before)
{
    struct rdzv_wait *w;

    list_foreach(w, &en->watches, of_entry) {
        struct rdzv_client *c = w->client;

        answered(kv, c, c->out.cost <= RDZV_UNREAD_WATCH_MAX);
        answer_word(kv, c, what);
        answer_bytes(kv, c, (struct tcpstore_bytes){en->key, en->key_len});
        answer_shared(kv, c, before->value, before->len);
        answer_value(kv, c, en);
    }
}

/* ---- changes -------------------------------------------------------------------------------- */

typedef int (*change_fn)(struct rdzv_kv *kv, struct rdzv_entry *en, struct tcpstore_bytes value);

/* The value is put, or appended to; whoever waits or watches is told. */
static int change(
    struct rdzv_kv *kv, struct tcpstore_bytes key, struct tcpstore_bytes value, change_fn do_change)
{
    struct rdzv_entry *en = rdzv_kv__acquire(kv, key);
    enum tcpstore_word what;
    struct before before;
    int r;

    if (!en)
        return RDZV_KV_E_FULL;
    what = en->has_value ? TCPSTORE_KEY_UPDATED : TCPSTORE_KEY_CREATED;
    before = (struct before){rdzv_shared_ref(en->value), rdzv_kv__value(en).len};
    /* Held by nobody else, what is appended to need not be kept. */
    if (list_is_empty(&en->watches))
        before.value = rdzv_shared_unref(before.value);
    r = do_change(kv, en, value);
    if (r == 0) {
        tell_watching(kv, en, what, &before);
        wake_all(kv, en);
    }
    rdzv_shared_unref(before.value);
    rdzv_kv__release(kv, en);
    return r;
}

static int set(struct rdzv_kv *kv, struct tcpstore_bytes key, struct tcpstore_bytes value)
{
    return change(kv, key, value, rdzv_kv__put);
}

/* A value of the request is the answer. */
static int give_back(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_bytes value)
{
    struct rdzv_shared *s = rdzv_shared_new(kv->quota, value.len);

    if (!s)
        return RDZV_KV_E_FULL;
    rdzv_shared_add(s, value.p, value.len);
    answer_shared(kv, c, s, s->len);
    rdzv_shared_unref(s);
    return 0;
}

static int compare_set(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq)
{
    struct rdzv_entry *en = rdzv_kv__find(kv, rq->key);
    bool has_value = en && en->has_value;
    int r = 0;

    /* Without a key nothing is as expected but the empty value; any other is given back. */
    if (!has_value && rq->value.len > 0)
        return give_back(kv, c, rq->value);
    if (!has_value || tcpstore_bytes_equal(rdzv_kv__value(en), rq->value))
        r = set(kv, rq->key, rq->desired);
    if (r == 0)
        answer_value(kv, c, rdzv_kv__find(kv, rq->key));
    return r;
}

/* The value as a decimal number, as C's strtoll() reads it; no value is 0. */
static bool number_of(const struct rdzv_entry *en, int64_t *ret)
{
    struct tcpstore_bytes v = rdzv_kv__value(en);
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

static int add(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq)
{
    char text[32];
    int64_t sum;
    int r;

    if (!number_of(rdzv_kv__find(kv, rq->key), &sum) ||
        __builtin_add_overflow(sum, rq->amount, &sum))
        return RDZV_KV_E_REFUSED;
    (void)snprintf(text, sizeof(text), "%" PRId64, sum);
    r = set(kv, rq->key, bytes_of(text));
    if (r == 0)
        answer_number(kv, c, (uint64_t)sum);
    return r;
}

static int delete_key(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq)
{
    struct rdzv_entry *en = rdzv_kv__find(kv, rq->key);
    bool was_there = en && en->has_value;
    struct before before;

    answer_number(kv, c, was_there);
    if (!was_there)
        return 0;
    before = (struct before){rdzv_shared_ref(en->value), rdzv_kv__value(en).len};
    rdzv_kv__remove(kv, en);
    tell_watching(kv, en, TCPSTORE_KEY_DELETED, &before);
    rdzv_shared_unref(before.value);
    rdzv_kv__release(kv, en);
    return 0;
}

/* ---- questions ------------------------------------------------------------------------------ */

/* The classic server hangs up on a key that is not there, the other answers with nothing. */
static int get(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_bytes key)
{
    struct rdzv_entry *en = rdzv_kv__find(kv, key);

    if ((!en || !en->has_value) && c->dialect == TCPSTORE_CLASSIC)
        return RDZV_KV_E_REFUSED;
    answer_value(kv, c, en);
    return 0;
}

/* All keys must be there before any is sent. */
static int multi_get(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq)
{
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < rq->count; i++)
        r = get(kv, c, tcpstore_next(&rq->items));
    return r;
}

static int multi_set(struct rdzv_kv *kv, struct tcpstore_request *rq)
{
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < rq->count; i++) {
        struct tcpstore_bytes key = tcpstore_next(&rq->items);

        r = set(kv, key, tcpstore_next(&rq->items));
    }
    return r;
}

static bool is_there(const struct rdzv_kv *kv, struct tcpstore_bytes key)
{
    const struct rdzv_entry *en = rdzv_kv__find(kv, key);

    return en && (en->has_value || en->n_queue > 0);
}

static void check(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq)
{
    bool all = true;

    for (uint64_t i = 0; i < rq->count; i++)
        all &= is_there(kv, tcpstore_next(&rq->items));
    answer_word(kv, c, all ? TCPSTORE_READY : TCPSTORE_NOT_READY);
}

static int wait(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq)
{
    int r = 0;

    if (rq->count > RDZV_KV_WAITS_MAX)
        return RDZV_KV_E_FULL;
    for (uint64_t i = 0; r == 0 && i < rq->count; i++) {
        struct tcpstore_bytes key = tcpstore_next(&rq->items);
        struct rdzv_entry *en;

        if (is_there(kv, key))
            continue;
        en = rdzv_kv__acquire(kv, key);
        r = en ? add_wait(kv, en, c, &c->waits, &en->waits) : RDZV_KV_E_FULL;
        if (r == 0)
            c->n_awaited++;
        else if (en)
            rdzv_kv__release(kv, en);
    }
    if (r == 0 && c->n_awaited == 0)
        answer_word(kv, c, TCPSTORE_STOP_WAITING);
    return r;
}

static int watch(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq)
{
    struct rdzv_entry *en = c->n_watches < RDZV_KV_WAITS_MAX ? rdzv_kv__acquire(kv, rq->key) : NULL;
    int r = en ? add_wait(kv, en, c, &c->watches, &en->watches) : RDZV_KV_E_FULL;

    if (r == 0) {
        c->n_watches++;
        answer_word(kv, c, TCPSTORE_KEY_WATCHED);
    } else if (en) {
        rdzv_kv__release(kv, en);
    }
    return r;
}

/* All keys with values, each behind its length. NULL: no room, no memory. */
static struct rdzv_shared *build_listed(struct rdzv_kv *kv)
{
    struct rdzv_shared *s =
        rdzv_shared_new(kv->quota, kv->keys_len + kv->n_keys * sizeof(struct le64));
    size_t cursor = 0;

    if (!s)
        return NULL;
    for (struct htab_link *l = htab_each(&kv->entries, &cursor, NULL); l;
         l = htab_each(&kv->entries, &cursor, l)) {
        const struct rdzv_entry *en = container_of(l, struct rdzv_entry, link);
        struct le64 len = le64_make(en->key_len);

        if (!en->has_value)
            continue;
        rdzv_shared_add(s, &len, sizeof(len));
        rdzv_shared_add(s, en->key, en->key_len);
    }
    return s;
}

/* Whoever asks before the keys change shares one list. */
static int list_keys(struct rdzv_kv *kv, struct rdzv_client *c)
{
    if (!kv->listed)
        kv->listed = build_listed(kv);
    if (!kv->listed)
        return RDZV_KV_E_FULL;
    answer_number(kv, c, kv->n_keys);
    answered(kv, c, !c->failed && rdzv_out_share(&c->out, kv->quota, kv->listed, kv->listed->len));
    return 0;
}

/* ---- queues --------------------------------------------------------------------------------- */

static int queue_push(struct rdzv_kv *kv, struct tcpstore_request *rq)
{
    struct rdzv_entry *en = rdzv_kv__acquire(kv, rq->key);
    int r = en ? rdzv_kv__push(kv, en, rq->value) : RDZV_KV_E_FULL;

    if (r == 0)
        wake_one(kv, en);
    else if (en)
        rdzv_kv__release(kv, en);
    return r;
}

static int queue_pop(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq)
{
    struct rdzv_entry *en = rdzv_kv__find(kv, rq->key);
    size_t n = en ? en->n_queue : 0;
    struct rdzv_shared *value = en ? rdzv_kv__pop(kv, en) : NULL;

    if (n > 0 && !value)
        return RDZV_KV_E_FULL;
    answer_number(kv, c, n);
    if (!value)
        return 0;
    answer_shared(kv, c, value, value->len);
    rdzv_shared_unref(value);
    rdzv_kv__release(kv, en);
    return 0;
}

/* ---- barriers ------------------------------------------------------------------------------- */

/* The key counts who has come, and wakes nobody until all have: then whoever waits for the key.
 * Who comes later than that, finds the barrier open. */
static int barrier(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq)
{
    struct rdzv_entry *en;
    char text[32];
    int64_t count;
    int r;

    if (!number_of(rdzv_kv__find(kv, rq->key), &count) || __builtin_add_overflow(count, 1, &count))
        return RDZV_KV_E_REFUSED;
    en = rdzv_kv__acquire(kv, rq->key);
    if (!en)
        return RDZV_KV_E_FULL;
    (void)snprintf(text, sizeof(text), "%" PRId64, count);
    r = rdzv_kv__put(kv, en, bytes_of(text));
    if (r == 0 && count < rq->amount) {
        r = add_wait(kv, en, c, &c->waits, &en->waits);
        c->n_awaited = r == 0;
    } else if (r == 0) {
        wake_all(kv, en);
        answer_word(kv, c, TCPSTORE_STOP_WAITING);
    }
    rdzv_kv__release(kv, en);
    return r;
}

/* ---- requests ------------------------------------------------------------------------------- */

static int dispatch(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq)
{
    struct rdzv_entry *en;
    struct le32 nonce;

    switch (rq->op) {
    case TCPSTORE_SET:
        return set(kv, rq->key, rq->value);
    case TCPSTORE_COMPARE_SET:
        return compare_set(kv, c, rq);
    case TCPSTORE_GET:
        return get(kv, c, rq->key);
    case TCPSTORE_ADD:
        return add(kv, c, rq);
    case TCPSTORE_CHECK:
        check(kv, c, rq);
        return 0;
    case TCPSTORE_WAIT:
        return wait(kv, c, rq);
    case TCPSTORE_NUM_KEYS:
        answer_number(kv, c, kv->n_keys);
        return 0;
    case TCPSTORE_WATCH_KEY:
        return watch(kv, c, rq);
    case TCPSTORE_DELETE_KEY:
        return delete_key(kv, c, rq);
    case TCPSTORE_APPEND:
        return change(kv, rq->key, rq->value, rdzv_kv__append);
    case TCPSTORE_MULTI_GET:
        return multi_get(kv, c, rq);
    case TCPSTORE_MULTI_SET:
        return multi_set(kv, rq);
    case TCPSTORE_CANCEL_WAIT:
        answer_word(kv, c, TCPSTORE_WAIT_CANCELED);
        return 0;
    case TCPSTORE_PING:
        nonce = le32_make(rq->nonce);
        answer(kv, c, &nonce, sizeof(nonce));
        return 0;
    case TCPSTORE_QUEUE_PUSH:
        return queue_push(kv, rq);
    case TCPSTORE_QUEUE_POP:
        return queue_pop(kv, c, rq);
    case TCPSTORE_QUEUE_LEN:
        en = rdzv_kv__find(kv, rq->key);
        answer_number(kv, c, en ? en->n_queue : 0);
        return 0;
    case TCPSTORE_LIST:
        return list_keys(kv, c);
    case TCPSTORE_BARRIER:
        return barrier(kv, c, rq);
    case TCPSTORE_OP_N:
        break;
    }
    return RDZV_KV_E_REFUSED;
}

int rdzv_kv_handle(struct rdzv_kv *kv, struct rdzv_client *c, struct tcpstore_request *rq)
{
    int r;

    stop_waiting(kv, c);
    r = dispatch(kv, c, rq);
    if (r == 0 && c->failed)
        r = RDZV_KV_E_FULL;
    if (r == RDZV_KV_E_FULL)
        rdzv_quota_refuse(kv->quota, "the job or its network is full");
    if (r == RDZV_KV_E_LONG)
        rdzv_quota_refuse(kv->quota, "a value was too long");
    return r;
}

/* ---- life ----------------------------------------------------------------------------------- */

void rdzv_kv_init(
    struct rdzv_kv *kv, const struct rdzv_kv_saver *saver, struct rdzv_quota *quota, uint64_t seed)
{
    *kv = (struct rdzv_kv){.saver = *saver, .quota = quota};
    htab_init(&kv->entries, seed);
    list_init(&kv->ready);
    list_init(&kv->unsaved);
}

void rdzv_client_init(struct rdzv_client *c, enum tcpstore_dialect dialect)
{
    *c = (struct rdzv_client){.dialect = dialect};
    list_init(&c->ready);
    list_init(&c->waits);
    list_init(&c->watches);
    rdzv_out_init(&c->out);
}

void rdzv_client_sent(struct rdzv_client *c, size_t len)
{
    rdzv_out_sent(&c->out, len);
}

void rdzv_client_deinit(struct rdzv_kv *kv, struct rdzv_client *c)
{
    struct rdzv_wait *w;
    struct rdzv_wait *tmp;

    stop_waiting(kv, c);
    list_foreach_safe(w, tmp, &c->watches, of_client)
        wait_free(kv, w);
    c->n_watches = 0;
    list_remove(&c->ready);
    rdzv_out_clear(&c->out);
}
