/* tcpstore.c - see tcpstore.h; the bytes are drawn in docs/wire/rendezvous.md. */
#include "tcpstore.h"

/* What a validated connection begins with, behind a zero byte. */
#define TCPSTORE_MAGIC 0x3c85f7ceu

/* What follows an operation's byte. */
enum layout {
    LAYOUT_EMPTY,           /* nothing */
    LAYOUT_KEY,             /* a key */
    LAYOUT_KEY_VALUE,       /* a key and a value */
    LAYOUT_KEY_VALUE_VALUE, /* a key and two values */
    LAYOUT_KEY_NUMBER,      /* a key and a number of 8 bytes */
    LAYOUT_NONCE,           /* a number of 4 bytes */
    LAYOUT_KEYS,            /* how many, and so many keys */
    LAYOUT_PAIRS,           /* how many, and so many keys with their values */
};

static const enum layout layouts[TCPSTORE_OP_N] = {
    [TCPSTORE_SET] = LAYOUT_KEY_VALUE,
    [TCPSTORE_COMPARE_SET] = LAYOUT_KEY_VALUE_VALUE,
    [TCPSTORE_GET] = LAYOUT_KEY,
    [TCPSTORE_ADD] = LAYOUT_KEY_NUMBER,
    [TCPSTORE_CHECK] = LAYOUT_KEYS,
    [TCPSTORE_WAIT] = LAYOUT_KEYS,
    [TCPSTORE_NUM_KEYS] = LAYOUT_EMPTY,
    [TCPSTORE_WATCH_KEY] = LAYOUT_KEY,
    [TCPSTORE_DELETE_KEY] = LAYOUT_KEY,
    [TCPSTORE_APPEND] = LAYOUT_KEY_VALUE,
    [TCPSTORE_MULTI_GET] = LAYOUT_KEYS,
    [TCPSTORE_MULTI_SET] = LAYOUT_PAIRS,
    [TCPSTORE_CANCEL_WAIT] = LAYOUT_EMPTY,
    [TCPSTORE_PING] = LAYOUT_NONCE,
    [TCPSTORE_QUEUE_PUSH] = LAYOUT_KEY_VALUE,
    [TCPSTORE_QUEUE_POP] = LAYOUT_KEY,
    [TCPSTORE_QUEUE_LEN] = LAYOUT_KEY,
    [TCPSTORE_LIST] = LAYOUT_EMPTY,
    [TCPSTORE_BARRIER] = LAYOUT_KEY_NUMBER,
};

/* A code minus one is the validated dialect's operation. */
static const enum tcpstore_op validated[] = {TCPSTORE_SET, TCPSTORE_COMPARE_SET, TCPSTORE_GET,
    TCPSTORE_ADD, TCPSTORE_CHECK, TCPSTORE_WAIT, TCPSTORE_NUM_KEYS, TCPSTORE_DELETE_KEY,
    TCPSTORE_APPEND, TCPSTORE_MULTI_GET, TCPSTORE_MULTI_SET, TCPSTORE_CANCEL_WAIT, TCPSTORE_PING,
    TCPSTORE_QUEUE_PUSH, TCPSTORE_QUEUE_POP, TCPSTORE_QUEUE_LEN, TCPSTORE_LIST, TCPSTORE_BARRIER};

#define N_VALIDATED (sizeof(validated) / sizeof(*validated))

enum tcpstore_dialect tcpstore_dialect(const void *p, size_t len)
{
    struct reader r = reader_make(p, len);
    struct le32 magic;

    if (len == 0)
        return TCPSTORE_UNKNOWN;
    if (reader_u8(&r) != 0)
        return TCPSTORE_CLASSIC;
    if (len < TCPSTORE_HELLO_SIZE)
        return TCPSTORE_UNKNOWN;
    reader_copy(&r, &magic, sizeof(magic));
    return le32_get(magic) == TCPSTORE_MAGIC ? TCPSTORE_VALIDATED : TCPSTORE_CLASSIC;
}

/* TCPSTORE_OP_N when the byte is none. */
static enum tcpstore_op op_of(enum tcpstore_dialect dialect, uint8_t code)
{
    if (dialect == TCPSTORE_VALIDATED)
        return code >= 1 && code <= N_VALIDATED ? validated[code - 1] : TCPSTORE_OP_N;
    /* The classic numbers are those of the enum. */
    return code < TCPSTORE_CANCEL_WAIT ? (enum tcpstore_op)code : TCPSTORE_OP_N;
}

/* How it went. */
struct outcome {
    bool is_bad;    /* a number is over its bound, whatever may still come */
    size_t missing; /* bytes of the field that has not come in whole; 0: not known */
};

/* A length and so many bytes. */
static struct tcpstore_bytes take_bytes(struct reader *r, size_t max, struct outcome *o)
{
    struct tcpstore_bytes b = {.p = NULL};
    struct le64 len = {{0}};

    reader_copy(r, &len, sizeof(len));
    if (le64_get(len) > max) {
        o->is_bad = true;
        return b;
    }
    b.p = reader_take(r, le64_get(len));
    if (b.p)
        b.len = le64_get(len);
    else if (o->missing == 0)
        o->missing = le64_get(len);
    return b;
}

static void take_items(
    struct tcpstore_request *ret, struct reader *r, bool has_values, struct outcome *o)
{
    struct reader start;
    struct le64 count = {{0}};

    reader_copy(r, &count, sizeof(count));
    ret->count = le64_get(count);
    if (ret->count > TCPSTORE_COUNT_MAX)
        o->is_bad = true;
    start = *r;
    for (uint64_t i = 0; i < ret->count && !r->failed && !o->is_bad; i++) {
        (void)take_bytes(r, TCPSTORE_KEY_MAX, o);
        if (has_values)
            (void)take_bytes(r, TCPSTORE_VALUE_MAX, o);
    }
    ret->items = (struct reader){.p = start.p, .end = r->p};
}

static void take_fields(struct tcpstore_request *ret, struct reader *r, struct outcome *o)
{
    enum layout layout = layouts[ret->op];
    struct le32 nonce = {{0}};
    struct le64 amount = {{0}};

    switch (layout) {
    case LAYOUT_EMPTY:
        return;
    case LAYOUT_NONCE:
        reader_copy(r, &nonce, sizeof(nonce));
        ret->nonce = le32_get(nonce);
        return;
    case LAYOUT_KEYS:
    case LAYOUT_PAIRS:
        take_items(ret, r, layout == LAYOUT_PAIRS, o);
        return;
    case LAYOUT_KEY:
    case LAYOUT_KEY_NUMBER:
    case LAYOUT_KEY_VALUE:
    case LAYOUT_KEY_VALUE_VALUE:
        break;
    }
    ret->key = take_bytes(r, TCPSTORE_KEY_MAX, o);
    if (layout == LAYOUT_KEY_NUMBER) {
        reader_copy(r, &amount, sizeof(amount));
        ret->amount = (int64_t)le64_get(amount);
    }
    if (layout == LAYOUT_KEY_VALUE || layout == LAYOUT_KEY_VALUE_VALUE)
        ret->value = take_bytes(r, TCPSTORE_VALUE_MAX, o);
    if (layout == LAYOUT_KEY_VALUE_VALUE)
        ret->desired = take_bytes(r, TCPSTORE_VALUE_MAX, o);
}

int tcpstore_decode(struct tcpstore_request *ret, enum tcpstore_dialect dialect, const void *p,
    size_t len, size_t *ret_used)
{
    struct tcpstore_request rq = {.op = TCPSTORE_OP_N};
    struct reader r = reader_make(p, len);
    struct outcome o = {.is_bad = false};
    size_t read;

    *ret_used = 1;
    if (len == 0)
        return TCPSTORE_E_MORE;
    rq.op = op_of(dialect, reader_u8(&r));
    if (rq.op == TCPSTORE_OP_N)
        return TCPSTORE_E_BAD;
    take_fields(&rq, &r, &o);
    read = len - reader_left(&r);
    if (o.is_bad || read + o.missing > TCPSTORE_REQUEST_MAX)
        return TCPSTORE_E_BAD;
    if (r.failed) {
        *ret_used = read + o.missing > len ? read + o.missing : len + 1;
        return *ret_used > TCPSTORE_REQUEST_MAX ? TCPSTORE_E_BAD : TCPSTORE_E_MORE;
    }
    *ret = rq;
    *ret_used = read;
    return 0;
}

struct tcpstore_bytes tcpstore_next(struct reader *items)
{
    struct outcome o = {.is_bad = false};

    return take_bytes(items, TCPSTORE_VALUE_MAX, &o);
}
