/*
 * test-tcpstore.c - a TCPStore without sockets: who is woken, what is bounded, what is saved.
 *
 * What each request answers is compared with PyTorch's own server in test/hub.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rendezvous/shared/rdzv_record.h"
#include "rendezvous/tcpstore/tcpstore_server.h"

/* ---- a disk: the blobs by name -------------------------------------------------------------- */

#define BLOBS_MAX 64

static struct {
    uint8_t name[64];
    size_t name_len;
    uint8_t *p;
    size_t len; /* 0: free */
} disk[BLOBS_MAX];

static size_t slot_of(const void *name, size_t len)
{
    size_t i = 0;

    while (i < BLOBS_MAX &&
           !(disk[i].len > 0 && disk[i].name_len == len && memcmp(disk[i].name, name, len) == 0))
        i++;
    return i;
}

static void drop(
    void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len, size_t before)
{
    size_t i = slot_of(name, name_len);

    assert_true(i < BLOBS_MAX);
    assert_int_equal(disk[i].len, before);
    free(disk[i].p);
    disk[i].p = NULL;
    disk[i].len = 0;
}

static void put(void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len,
    const void *p, size_t len, size_t before)
{
    size_t i = 0;

    if (before > 0)
        drop(ctx, kind, name, name_len, before);
    assert_int_equal(slot_of(name, name_len), BLOBS_MAX);
    while (disk[i].len > 0)
        i++;
    assert_true(i < BLOBS_MAX && name_len <= sizeof(disk[i].name));
    memcpy(disk[i].name, name, name_len);
    disk[i].name_len = name_len;
    disk[i].p = malloc(len);
    memcpy(disk[i].p, p, len);
    disk[i].len = len;
}

static size_t n_blobs(void)
{
    size_t n = 0;

    for (size_t i = 0; i < BLOBS_MAX; i++)
        n += disk[i].len > 0;
    return n;
}

static void ignore(
    void *ctx, enum rdzv_key_kind kind, const void *name, size_t name_len, size_t before)
{
}

static int n_unsaved; /* times that the store has said so */

static void unsaved(void *ctx)
{
    n_unsaved++;
}

/* ---- a store with three clients ------------------------------------------------------------- */

struct fixture {
    struct rdzv_quota quota;
    struct tcpstore_server ts;
    struct tcpstore_client clients[3];
    uint8_t buf[1024];
    struct writer w;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct rdzv_saver saver = {.unsaved = unsaved, .put = put, .drop = drop};

    f->quota = (struct rdzv_quota){.bytes_max = 1u << 20, .entries_max = 32};
    tcpstore_server_init(&f->ts, &saver, &f->quota, 1);
    for (int i = 0; i < 3; i++)
        tcpstore_client_init(&f->clients[i], TCPSTORE_VALIDATED);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 3; i++)
        tcpstore_client_deinit(&f->ts, &f->clients[i]);
    tcpstore_server_clear(&f->ts);
    assert_int_equal(n_blobs(), 0);
    assert_int_equal(f->quota.bytes, 0);
    assert_int_equal(f->quota.entries, 0);
    tcpstore_server_deinit(&f->ts);
    free(f);
    return 0;
}

static struct tcpstore_bytes bytes(const char *text)
{
    return (struct tcpstore_bytes){(const uint8_t *)text, strlen(text)};
}

static void put_text(struct fixture *f, const char *text)
{
    struct le64 len = le64_make(strlen(text));

    writer_put(&f->w, &len, sizeof(len));
    writer_put(&f->w, text, strlen(text));
}

/* A request with a key, a value, and what is desired; NULL: none. */
static int ask(struct fixture *f, int client, enum tcpstore_op op, const char *key,
    const char *value, const char *desired)
{
    struct tcpstore_request rq = {.op = op, .key = bytes(key)};

    rq.value = value ? bytes(value) : rq.value;
    rq.desired = desired ? bytes(desired) : rq.desired;
    return tcpstore_server_handle(&f->ts, &f->clients[client], &rq);
}

static int set(struct fixture *f, const char *key, const char *value)
{
    return ask(f, 2, TCPSTORE_SET, key, value, NULL);
}

static int wait_for(struct fixture *f, int client, const char *a, const char *b)
{
    struct tcpstore_request rq = {.op = TCPSTORE_WAIT, .count = b ? 2 : 1};

    f->w = writer_make(f->buf, sizeof(f->buf));
    put_text(f, a);
    if (b)
        put_text(f, b);
    rq.items = reader_make(f->buf, writer_len(&f->w));
    return tcpstore_server_handle(&f->ts, &f->clients[client], &rq);
}

/* What a client was answered, as it would be sent; its length. */
static size_t take_out(struct tcpstore_client *c, uint8_t *buf, size_t cap)
{
    struct iovec iov[16];
    size_t len = 0;
    size_t n;

    while ((n = tcpstore_out_peek(&c->out, iov, 16)) > 0) {
        size_t sent = 0;

        for (size_t i = 0; i < n; i++) {
            assert_true(len + iov[i].iov_len <= cap);
            memcpy(buf + len, iov[i].iov_base, iov[i].iov_len);
            len += iov[i].iov_len;
            sent += iov[i].iov_len;
        }
        tcpstore_client_sent(c, sent);
    }
    return len;
}

/* The client was answered with these bytes, and with nothing since. */
#define assert_out(f, client, text) assert_out_(f, client, text, sizeof(text) - 1)
static void assert_out_(struct fixture *f, int client, const char *text, size_t len)
{
    struct tcpstore_client *c = &f->clients[client];
    uint8_t out[1024];

    assert_int_equal(c->out.len, len);
    assert_int_equal(take_out(c, out, sizeof(out)), len);
    if (len > 0)
        assert_memory_equal(out, text, len);
    assert_int_equal(list_is_empty(&c->ready), len == 0);
    list_remove(&c->ready);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_waiting(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(wait_for(f, 0, "a", "b"), 0);
    assert_int_equal(wait_for(f, 1, "b", NULL), 0);
    assert_int_equal(set(f, "b", "1"), 0);
    assert_out(f, 0, "");
    assert_out(f, 1, "\0");
    assert_int_equal(set(f, "a", ""), 0);
    assert_out(f, 0, "\0");
    assert_int_equal(wait_for(f, 0, "a", "a"), 0);
    assert_out(f, 0, "\0");
}

/* Who asks for something else has given up: no byte may come that is taken for the next answer. */
static void test_giving_up(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(wait_for(f, 0, "a", NULL), 0);
    assert_int_equal(ask(f, 0, TCPSTORE_NUM_KEYS, "", NULL, NULL), 0);
    assert_out(f, 0, "\0\0\0\0\0\0\0\0");
    assert_int_equal(set(f, "a", "1"), 0);
    assert_out(f, 0, "");
    assert_int_equal(wait_for(f, 0, "c", NULL), 0);
    assert_int_equal(ask(f, 0, TCPSTORE_CANCEL_WAIT, "", NULL, NULL), 0);
    assert_out(f, 0, "\1");
    assert_int_equal(set(f, "c", "1"), 0);
    assert_out(f, 0, "");
}

static void test_queues(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(wait_for(f, 0, "q", NULL), 0);
    assert_int_equal(wait_for(f, 1, "q", NULL), 0);
    assert_int_equal(ask(f, 2, TCPSTORE_QUEUE_PUSH, "q", "x", NULL), 0);
    assert_out(f, 0, "\0");
    assert_out(f, 1, "");
    assert_int_equal(ask(f, 0, TCPSTORE_QUEUE_POP, "q", NULL, NULL), 0);
    assert_out(f, 0, "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0x");
    assert_int_equal(ask(f, 0, TCPSTORE_QUEUE_POP, "q", NULL, NULL), 0);
    assert_out(f, 0, "\0\0\0\0\0\0\0\0");
    assert_int_equal(ask(f, 2, TCPSTORE_QUEUE_PUSH, "q", "y", NULL), 0);
    assert_out(f, 1, "\0");
    assert_int_equal(ask(f, 1, TCPSTORE_QUEUE_LEN, "q", NULL, NULL), 0);
    assert_out(f, 1, "\1\0\0\0\0\0\0\0");
}

static int barrier(struct fixture *f, int client, const char *key, int64_t n)
{
    struct tcpstore_request rq = {.op = TCPSTORE_BARRIER, .key = bytes(key), .amount = n};

    return tcpstore_server_handle(&f->ts, &f->clients[client], &rq);
}

/* All wait for the last; the key counts them, and counting alone wakes nobody. */
static void test_barrier(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(barrier(f, 0, "b", 3), 0);
    assert_int_equal(barrier(f, 1, "b", 3), 0);
    assert_out(f, 0, "");
    assert_out(f, 1, "");
    assert_int_equal(ask(f, 2, TCPSTORE_GET, "b", NULL, NULL), 0);
    assert_out(f, 2,
        "\1\0\0\0\0\0\0\0"
        "2");
    assert_int_equal(barrier(f, 2, "b", 3), 0);
    assert_out(f, 0, "\0");
    assert_out(f, 1, "\0");
    assert_out(f, 2, "\0");
    /* It stays open. Who has given up is not told, and has been counted. */
    assert_int_equal(barrier(f, 0, "b", 3), 0);
    assert_out(f, 0, "\0");
    assert_int_equal(barrier(f, 0, "c", 2), 0);
    assert_int_equal(ask(f, 0, TCPSTORE_CANCEL_WAIT, "", NULL, NULL), 0);
    assert_out(f, 0, "\1");
    assert_int_equal(barrier(f, 1, "c", 2), 0);
    assert_out(f, 0, "");
    assert_out(f, 1, "\0");
    assert_int_equal(set(f, "word", "x"), 0);
    assert_int_equal(barrier(f, 0, "word", 1), TCPSTORE_SERVER_E_REFUSED);
}

/* The newer server answers with nothing for a key that is not there, the older one hangs up. */
static void test_nothing(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, 0, TCPSTORE_GET, "no", NULL, NULL), 0);
    assert_out(f, 0, "\0\0\0\0\0\0\0\0");
    f->clients[0].dialect = TCPSTORE_CLASSIC;
    assert_int_equal(ask(f, 0, TCPSTORE_GET, "no", NULL, NULL), TCPSTORE_SERVER_E_REFUSED);
}

static void test_limits(void **state)
{
    struct fixture *f = *state;
    struct tcpstore_request rq = {.op = TCPSTORE_ADD, .key = bytes("n"), .amount = INT64_MAX};
    char key[2] = "A";
    size_t n = 0;

    assert_int_equal(tcpstore_server_handle(&f->ts, &f->clients[0], &rq), 0);
    assert_int_equal(
        tcpstore_server_handle(&f->ts, &f->clients[0], &rq), TCPSTORE_SERVER_E_REFUSED);
    assert_int_equal(ask(f, 1, TCPSTORE_SET, "word", "1x2", NULL), 0);
    rq = (struct tcpstore_request){.op = TCPSTORE_ADD, .key = bytes("word"), .amount = 1};
    assert_int_equal(tcpstore_server_handle(&f->ts, &f->clients[1], &rq), 0);
    assert_out(f, 1, "\2\0\0\0\0\0\0\0");
    while (set(f, key, "1") == 0) {
        key[0]++;
        n++;
    }
    assert_int_equal(n, 30);
    assert_int_equal(wait_for(f, 1, "other", NULL), TCPSTORE_SERVER_E_FULL);
    assert_int_equal(set(f, "A", "one that is there may change"), 0);
    f->quota.bytes_max = f->quota.bytes;
    assert_int_equal(
        set(f, "A", "but not grow when there is no room left"), TCPSTORE_SERVER_E_FULL);
}

static void test_saving(void **state)
{
    struct fixture *f = *state;
    struct rdzv_saver saver = {.unsaved = unsaved, .put = put, .drop = drop};
    struct rdzv_quota quota = {.bytes_max = 1u << 20, .entries_max = 32};
    struct tcpstore_client c;
    struct err e = ERR_NULL;
    struct tcpstore_server again;

    assert_int_equal(set(f, "a", "1"), 0);
    assert_int_equal(set(f, "a", "22"), 0);
    assert_int_equal(ask(f, 2, TCPSTORE_APPEND, "a", "3", NULL), 0);
    assert_int_equal(set(f, "b", ""), 0);
    assert_int_equal(set(f, "gone", "x"), 0);
    assert_int_equal(ask(f, 2, TCPSTORE_DELETE_KEY, "gone", NULL, NULL), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(
            ask(f, 2, TCPSTORE_QUEUE_PUSH, "a", (char[]){(char)('0' + i), 0}, NULL), 0);
    assert_true(tcpstore_server_flush(&f->ts, SIZE_MAX));
    assert_int_equal(n_blobs(), 7);
    tcpstore_server_init(&again, &saver, &quota, 2);
    /* The store lists them in no order that matters. */
    for (size_t i = BLOBS_MAX; i-- > 0;)
        if (disk[i].len > 0) {
            struct rdzv_hash hash = rdzv_hash_of(disk[i].name, disk[i].name_len);

            assert_int_equal(tcpstore_server_load(&again, disk[i].p, disk[i].len, &hash, &e), 0);
            hash.b[0] ^= 1;
            assert_int_equal(
                tcpstore_server_load(&again, disk[i].p, disk[i].len, &hash, &e), -EINVAL);
        }
    assert_int_equal(again.n_keys, 2);
    assert_int_equal(again.next_item, f->ts.next_item);
    tcpstore_client_init(&c, TCPSTORE_VALIDATED);
    for (int i = 0; i < 5; i++) {
        struct tcpstore_request rq = {.op = TCPSTORE_QUEUE_POP, .key = bytes("a")};
        uint8_t out[32];

        assert_int_equal(tcpstore_server_handle(&again, &c, &rq), 0);
        assert_int_equal(out[take_out(&c, out, sizeof(out)) - 1], '0' + i);
    }
    tcpstore_client_deinit(&again, &c);
    tcpstore_server_clear(&again);
    assert_int_equal(n_blobs(), 0);
    tcpstore_server_deinit(&again);
    /* The disk is empty now: the first store must not drop from it again. */
    f->ts.saver.drop = ignore;
    tcpstore_server_deinit(&f->ts);
    tcpstore_server_init(&f->ts, &saver, &f->quota, 1);
}

/* Where the bytes of a key are that a client is sent. */
static const void *place_of(struct fixture *f, const char *key, size_t *ret_len)
{
    struct iovec iov[2];

    assert_int_equal(ask(f, 0, TCPSTORE_GET, key, NULL, NULL), 0);
    list_remove(&f->clients[0].ready);
    assert_int_equal(tcpstore_out_peek(&f->clients[0].out, iov, 2), 2);
    *ret_len = iov[1].iov_len;
    tcpstore_client_sent(&f->clients[0], f->clients[0].out.len);
    return iov[1].iov_base;
}

/* Appending costs what is appended: the value is moved a few times only, and told to the saver once
 * however often it has changed. What a reader was given before stays as it was. */
static void test_append(void **state)
{
    struct fixture *f = *state;
    const void *place = NULL;
    char many[301];
    size_t moved = 0;
    size_t len;

    memset(many, 'x', sizeof(many) - 1);
    many[sizeof(many) - 1] = '\0';
    n_unsaved = 0;
    assert_int_equal(ask(f, 2, TCPSTORE_APPEND, "a", many, NULL), 0);
    assert_int_equal(ask(f, 1, TCPSTORE_GET, "a", NULL, NULL), 0);
    for (size_t i = 0; i < 100000; i++) {
        const void *now;

        assert_int_equal(ask(f, 2, TCPSTORE_APPEND, "a", i % 2 ? "y" : "", NULL), 0);
        now = place_of(f, "a", &len);
        moved += now != place;
        place = now;
    }
    assert_int_equal(len, 300 + 50000);
    assert_in_range(moved, 2, 12);
    assert_in_range(f->quota.bytes, len, 3 * len);
    assert_int_equal(f->clients[1].out.len, 308);
    assert_int_equal(n_unsaved, 1);
    assert_int_equal(n_blobs(), 0);
    assert_true(tcpstore_server_flush(&f->ts, SIZE_MAX));
    assert_int_equal(n_blobs(), 1);
    assert_int_equal(ask(f, 2, TCPSTORE_APPEND, "a", "", NULL), 0);
    assert_int_equal(f->ts.n_unsaved, 0);
}

/* What many are sent costs once, until the last has read it; each alone is bounded. */
static void test_unread(void **state)
{
    struct fixture *f = *state;
    char *many = malloc(900001);
    size_t before;

    memset(many, 'x', 900000);
    many[900000] = '\0';
    f->quota.bytes_max = 2u << 20;
    assert_int_equal(set(f, "a", many), 0);
    before = f->quota.bytes;
    for (int i = 0; i < 3; i++)
        for (int n = 0; n < 16; n++)
            assert_int_equal(ask(f, i, TCPSTORE_GET, "a", NULL, NULL), 0);
    assert_in_range(f->quota.bytes, before, before + 3 * 16 * 512);
    assert_int_equal(f->clients[0].out.len, 16 * 900008);
    /* It is the job's as long as somebody is to be sent it. */
    assert_int_equal(ask(f, 2, TCPSTORE_DELETE_KEY, "a", NULL, NULL), 0);
    assert_in_range(f->quota.bytes, 900000, SIZE_MAX);
    for (int i = 0; i < 3; i++)
        tcpstore_client_sent(&f->clients[i], f->clients[i].out.len);
    assert_in_range(f->quota.bytes, 0, 1000);
    /* One who reads nothing is given up, and counted. */
    assert_int_equal(set(f, "b", many), 0);
    for (size_t n = 0; n < RDZV_UNREAD_BYTES_MAX / 900000; n++)
        assert_int_equal(ask(f, 0, TCPSTORE_GET, "b", NULL, NULL), 0);
    assert_int_equal(ask(f, 0, TCPSTORE_GET, "b", NULL, NULL), TCPSTORE_SERVER_E_FULL);
    assert_int_equal(f->quota.n_refused, 1);
    assert_true(f->clients[0].failed);
    free(many);
}

static void test_job_records(void **state)
{
    const struct rdzv_job_record jobs[] = {{.port = 1, .run = 1},
        {.port = 65535, .run = UINT32_MAX, .ended = true, .members = "a gpu-2", .ended_on = "a"}};
    struct rdzv_job_record again;
    struct err e = ERR_NULL;

    for (unsigned i = 0; i < 2; i++) {
        char *text = rdzv_job_encode(&jobs[i]);

        assert_int_equal(rdzv_job_decode(&again, text, &e), 0);
        assert_int_equal(again.port, jobs[i].port);
        assert_int_equal(again.run, jobs[i].run);
        assert_int_equal(again.ended, jobs[i].ended);
        assert_string_equal(again.members, jobs[i].members);
        assert_string_equal(again.ended_on, jobs[i].ended_on);
        free(text);
    }
    /* As an older hub has written it. */
    assert_int_equal(rdzv_job_decode(&again, "{\"port\":29600,\"run\":3}", &e), 0);
    assert_false(again.ended);
    assert_string_equal(again.members, "");
    assert_int_equal(rdzv_job_decode(&again, "{\"port\":0,\"run\":3}", &e), -EINVAL);
    assert_int_equal(
        rdzv_job_decode(&again, "{\"port\":1,\"run\":3,\"members\":\"a B\"}", &e), -EINVAL);
    assert_int_equal(
        rdzv_job_decode(&again, "{\"port\":1,\"run\":3,\"members\":\"a  b\"}", &e), -EINVAL);
    assert_int_equal(
        rdzv_job_decode(&again, "{\"port\":1,\"run\":3,\"endedOn\":\"a b\"}", &e), -EINVAL);
}

static void test_keys(void **state)
{
    struct rdzv_hash hash = rdzv_hash_of("/a", 2);
    char buf[RDZV_KEY_MAX];
    char piece[RDZV_KEY_MAX + 8];
    struct rdzv_key k;

    k = rdzv_key_parse(rdzv_key_of_job(buf, "net", "job-1"));
    assert_int_equal(k.kind, RDZV_KEY_JOB);
    assert_string_equal(k.network, "net");
    assert_string_equal(k.job, "job-1");
    (void)rdzv_key_of_blob(buf, RDZV_KEY_NODE, "net", "job-1", &hash);
    k = rdzv_key_parse(rdzv_key_of_piece(piece, buf, RDZV_SLOT_B, 117));
    assert_int_equal(k.kind, RDZV_KEY_NODE);
    assert_memory_equal(&k.hash, &hash, sizeof(hash));
    assert_int_equal(k.slot, RDZV_SLOT_B);
    assert_int_equal(k.piece, 117);
    assert_true(strcmp(buf, piece) < 0);
    k = rdzv_key_parse(rdzv_key_of_piece(piece, buf, RDZV_SLOT_OLD, 7));
    assert_int_equal(k.slot, RDZV_SLOT_OLD);
    assert_int_equal(k.piece, 7);
    assert_int_equal(rdzv_key_parse("rdzv/net").kind, RDZV_KEY_NONE);
    assert_int_equal(rdzv_key_parse("rdzv/net/job/x/00").kind, RDZV_KEY_NONE);
    assert_int_equal(rdzv_key_parse("node/net/a").kind, RDZV_KEY_NONE);
    (void)snprintf(piece, sizeof(piece), "%s/a999", buf);
    assert_int_equal(rdzv_key_parse(piece).kind, RDZV_KEY_NONE);
    (void)snprintf(piece, sizeof(piece), "%s/a000", buf);
    assert_int_equal(rdzv_key_parse(piece).kind, RDZV_KEY_NONE);
}

static void test_pieces(void **state)
{
    struct rdzv_head head = {.run = 7, .slot = RDZV_SLOT_A, .n_pieces = 3};
    static uint8_t bytes[RDZV_CHUNK];
    struct err e = ERR_NULL;
    struct rdzv_head again;
    size_t len;
    char *text = rdzv_piece_encode(NULL, "\0\xff", 2);

    assert_int_equal(rdzv_piece_decode(NULL, bytes, &len, text, &e), 0);
    assert_int_equal(len, 2);
    assert_memory_equal(bytes, "\0\xff", 2);
    assert_int_equal(rdzv_piece_decode(NULL, bytes, &len, "\"?\"", &e), -EINVAL);
    /* As a hub from before the runs wrote it. */
    assert_int_equal(rdzv_piece_decode(&again, bytes, &len, text, &e), 0);
    assert_int_equal(again.run, 0);
    assert_int_equal(again.slot, RDZV_SLOT_OLD);
    free(text);
    text = rdzv_piece_encode(&head, "xyz", 3);
    assert_int_equal(rdzv_piece_decode(&again, bytes, &len, text, &e), 0);
    assert_int_equal(again.run, 7);
    assert_int_equal(again.slot, RDZV_SLOT_A);
    assert_int_equal(again.n_pieces, 3);
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "xyz", 3);
    free(text);
    assert_int_equal(rdzv_piece_decode(&again, bytes, &len, "\"1.-.3.AA\"", &e), -EINVAL);
    assert_int_equal(rdzv_piece_decode(&again, bytes, &len, "\"1.a.1.AA\"", &e), -EINVAL);
    assert_int_equal(rdzv_piece_decode(&again, bytes, &len, "\"0.-.1.AA\"", &e), -EINVAL);
    assert_int_equal(rdzv_piece_decode(&again, bytes, &len, "\"1.-.1AA\"", &e), -EINVAL);
    assert_int_equal(rdzv_piece_decode(&again, bytes, &len, "\"1.-.1.AA", &e), -EINVAL);
    assert_int_equal(rdzv_piece_decode(&again, bytes, &len, "", &e), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_giving_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_queues, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_barrier, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_saving, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_append, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unread, set_up, tear_down),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_job_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
