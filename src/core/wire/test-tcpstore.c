/* test-tcpstore.c - requests of both dialects, whole, in pieces, and over the bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "wire/tcpstore.h"

/* A request being written down. */
static uint8_t buf[4096];
static struct writer w;

static void begin(uint8_t code)
{
    w = writer_make(buf, sizeof(buf));
    writer_u8(&w, code);
}

static void put_u64(uint64_t v)
{
    struct le64 le = le64_make(v);

    writer_put(&w, &le, sizeof(le));
}

static void put_text(const char *text)
{
    put_u64(strlen(text));
    writer_put(&w, text, strlen(text));
}

static void assert_bytes(struct tcpstore_bytes b, const char *text)
{
    assert_int_equal(b.len, strlen(text));
    assert_memory_equal(b.p, text, b.len);
}

/* Decodes what was written; nothing shorter may be a request. */
static struct tcpstore_request decode(enum tcpstore_dialect dialect)
{
    struct tcpstore_request rq;
    size_t len = writer_len(&w);
    size_t used = 0;

    for (size_t n = 0; n < len; n++) {
        assert_int_equal(tcpstore_decode(&rq, dialect, buf, n, &used), TCPSTORE_E_MORE);
        assert_in_range(used, n + 1, len);
    }
    assert_int_equal(tcpstore_decode(&rq, dialect, buf, sizeof(buf), &used), 0);
    assert_int_equal(used, len);
    return rq;
}

static void test_dialects(void **state)
{
    static const uint8_t hello[] = {0, 0xce, 0xf7, 0x85, 0x3c};
    static const uint8_t set[] = {0, 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'};
    static const uint8_t add[] = {3};

    assert_int_equal(tcpstore_dialect(hello, 0), TCPSTORE_UNKNOWN);
    assert_int_equal(tcpstore_dialect(hello, 4), TCPSTORE_UNKNOWN);
    assert_int_equal(tcpstore_dialect(hello, 5), TCPSTORE_VALIDATED);
    assert_int_equal(tcpstore_dialect(set, 4), TCPSTORE_UNKNOWN);
    assert_int_equal(tcpstore_dialect(set, 5), TCPSTORE_CLASSIC);
    assert_int_equal(tcpstore_dialect(add, 1), TCPSTORE_CLASSIC);
    assert_int_equal(tcpstore_dialect(add, 0), TCPSTORE_UNKNOWN);
}

static void test_fields(void **state)
{
    struct tcpstore_request rq;

    begin(1);
    put_text("key");
    put_text("old");
    put_text("");
    rq = decode(TCPSTORE_CLASSIC);
    assert_int_equal(rq.op, TCPSTORE_COMPARE_SET);
    assert_bytes(rq.key, "key");
    assert_bytes(rq.value, "old");
    assert_bytes(rq.desired, "");
    begin(4);
    put_text("n");
    put_u64((uint64_t)-7);
    rq = decode(TCPSTORE_VALIDATED);
    assert_int_equal(rq.op, TCPSTORE_ADD);
    assert_bytes(rq.key, "n");
    assert_int_equal(rq.amount, -7);
    assert_null(rq.value.p);
    begin(13);
    writer_put(&w, "\x78\x56\x34\x12", 4);
    rq = decode(TCPSTORE_VALIDATED);
    assert_int_equal(rq.op, TCPSTORE_PING);
    assert_int_equal(rq.nonce, 0x12345678);
    begin(0);
    put_text("key");
    put_text("value");
    rq = decode(TCPSTORE_CLASSIC);
    assert_int_equal(rq.op, TCPSTORE_SET);
    assert_bytes(rq.key, "key");
    assert_bytes(rq.value, "value");
    assert_null(rq.desired.p);
}

/* What has to come before it is of use to ask again: a field whose length is known, in whole. */
static void test_pieces(void **state)
{
    static const struct {
        size_t len;
        size_t wanted;
    } rows[] = {{0, 1}, {1, 2}, {8, 9}, {9, 12}, {11, 12}, {12, 13}, {19, 20}, {20, 25}, {24, 25}};
    struct tcpstore_request rq;
    size_t used;

    begin(0);
    put_text("key");
    put_text("value");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(
            tcpstore_decode(&rq, TCPSTORE_CLASSIC, buf, rows[i].len, &used), TCPSTORE_E_MORE);
        assert_int_equal(used, rows[i].wanted);
    }
}

static void test_numbers(void **state)
{
    /* The same operation has another number in the other dialect. */
    begin(1);
    put_text("k");
    put_text("v");
    assert_int_equal(decode(TCPSTORE_VALIDATED).op, TCPSTORE_SET);
    begin(7);
    put_text("k");
    assert_int_equal(decode(TCPSTORE_CLASSIC).op, TCPSTORE_WATCH_KEY);
    begin(7);
    assert_int_equal(decode(TCPSTORE_VALIDATED).op, TCPSTORE_NUM_KEYS);
    begin(8);
    put_text("k");
    assert_int_equal(decode(TCPSTORE_CLASSIC).op, TCPSTORE_DELETE_KEY);
    assert_int_equal(decode(TCPSTORE_VALIDATED).op, TCPSTORE_DELETE_KEY);
    begin(17);
    assert_int_equal(decode(TCPSTORE_VALIDATED).op, TCPSTORE_LIST);
    begin(18);
    put_text("k");
    put_u64(512);
    assert_int_equal(decode(TCPSTORE_VALIDATED).op, TCPSTORE_BARRIER);
    assert_int_equal(decode(TCPSTORE_VALIDATED).amount, 512);
}

static void test_items(void **state)
{
    struct tcpstore_request rq;

    begin(11);
    put_u64(2);
    put_text("a");
    put_text("1");
    put_text("b");
    put_text("22");
    rq = decode(TCPSTORE_CLASSIC);
    assert_int_equal(rq.op, TCPSTORE_MULTI_SET);
    assert_int_equal(rq.count, 2);
    assert_bytes(tcpstore_next(&rq.items), "a");
    assert_bytes(tcpstore_next(&rq.items), "1");
    assert_bytes(tcpstore_next(&rq.items), "b");
    assert_bytes(tcpstore_next(&rq.items), "22");
    assert_int_equal(reader_left(&rq.items), 0);
    assert_null(tcpstore_next(&rq.items).p);
    /* Keys alone. */
    begin(5);
    put_u64(2);
    put_text("a");
    put_text("bb");
    rq = decode(TCPSTORE_CLASSIC);
    assert_int_equal(rq.op, TCPSTORE_WAIT);
    assert_int_equal(rq.count, 2);
    assert_bytes(tcpstore_next(&rq.items), "a");
    assert_bytes(tcpstore_next(&rq.items), "bb");
    assert_int_equal(reader_left(&rq.items), 0);
}

static void test_bounds(void **state)
{
    static const struct {
        enum tcpstore_dialect dialect;
        uint8_t code;
        uint64_t number;
    } bad[] = {
        {TCPSTORE_CLASSIC, 2, TCPSTORE_KEY_MAX + 1},
        {TCPSTORE_CLASSIC, 2, UINT64_MAX},
        {TCPSTORE_CLASSIC, 5, TCPSTORE_COUNT_MAX + 1},
        {TCPSTORE_CLASSIC, 12, 0},
        {TCPSTORE_CLASSIC, 'G', 0},
        {TCPSTORE_VALIDATED, 0, 0},
        {TCPSTORE_CLASSIC, 17, 0},
        {TCPSTORE_VALIDATED, 19, 0},
    };
    static const struct {
        uint8_t code;
        uint64_t number;
        size_t wanted;
    } good[] = {
        {2, TCPSTORE_KEY_MAX, 9 + TCPSTORE_KEY_MAX},
        {5, TCPSTORE_COUNT_MAX, 10},
        {11, TCPSTORE_COUNT_MAX, 10},
    };
    struct tcpstore_request rq;
    size_t used;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        begin(bad[i].code);
        put_u64(bad[i].number);
        assert_int_equal(
            tcpstore_decode(&rq, bad[i].dialect, buf, writer_len(&w), &used), TCPSTORE_E_BAD);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        begin(good[i].code);
        put_u64(good[i].number);
        assert_int_equal(
            tcpstore_decode(&rq, TCPSTORE_CLASSIC, buf, writer_len(&w), &used), TCPSTORE_E_MORE);
        assert_int_equal(used, good[i].wanted);
    }
    begin(0);
    put_text("k");
    put_u64(TCPSTORE_VALUE_MAX);
    assert_int_equal(
        tcpstore_decode(&rq, TCPSTORE_CLASSIC, buf, writer_len(&w), &used), TCPSTORE_E_MORE);
    assert_int_equal(used, 18 + TCPSTORE_VALUE_MAX);
    begin(0);
    put_text("k");
    put_u64(TCPSTORE_VALUE_MAX + 1);
    assert_int_equal(
        tcpstore_decode(&rq, TCPSTORE_CLASSIC, buf, writer_len(&w), &used), TCPSTORE_E_BAD);
}

/* Many values that are each allowed may not make a request that is not. */
static void test_whole(void **state)
{
    size_t cap = TCPSTORE_REQUEST_MAX + (1u << 20);
    uint8_t *big = calloc(1, cap);
    struct tcpstore_request rq;
    struct le64 n = le64_make(3);
    struct le64 len = le64_make(TCPSTORE_VALUE_MAX);
    size_t used;

    assert_non_null(big);
    big[0] = 11;
    memcpy(big + 1, &n, sizeof(n));
    for (size_t i = 0; i < 3; i++)
        memcpy(big + 9 + i * (16 + TCPSTORE_VALUE_MAX) + 8, &len, sizeof(len));
    assert_int_equal(tcpstore_decode(&rq, TCPSTORE_CLASSIC, big, cap, &used), TCPSTORE_E_BAD);
    assert_int_equal(tcpstore_decode(&rq, TCPSTORE_CLASSIC, big, TCPSTORE_REQUEST_MAX + 1, &used),
        TCPSTORE_E_BAD);
    free(big);
}

/* The bytes of a MULTI_SET of @n keys without a name, the last with a value of @last bytes. */
static void put_values(uint8_t *big, uint64_t n, uint64_t last)
{
    struct le64 count = le64_make(n);
    size_t at = 9;

    big[0] = 11;
    memcpy(big + 1, &count, sizeof(count));
    for (uint64_t i = 0; i < n; i++) {
        uint64_t size = i + 1 < n ? TCPSTORE_VALUE_MAX : last;
        struct le64 len = le64_make(size);

        memset(big + at, 0, 8);
        memcpy(big + at + 8, &len, sizeof(len));
        at += 16 + size;
    }
}

/* A request may be as long as the bound says, and not a byte longer. */
static void test_longest(void **state)
{
    const size_t most = TCPSTORE_REQUEST_MAX;
    const uint64_t fits = most - 9 - 3 * 16 - 2 * TCPSTORE_VALUE_MAX;
    uint8_t *big = calloc(1, most + 64);
    struct tcpstore_request rq;
    size_t used;

    assert_non_null(big);
    put_values(big, 3, fits);
    assert_int_equal(tcpstore_decode(&rq, TCPSTORE_CLASSIC, big, most, &used), 0);
    assert_int_equal(used, most);
    assert_int_equal(tcpstore_decode(&rq, TCPSTORE_CLASSIC, big, most - 1, &used), TCPSTORE_E_MORE);
    assert_int_equal(used, most);
    put_values(big, 3, fits + 1);
    assert_int_equal(tcpstore_decode(&rq, TCPSTORE_CLASSIC, big, most - 1, &used), TCPSTORE_E_BAD);
    assert_int_equal(tcpstore_decode(&rq, TCPSTORE_CLASSIC, big, most + 1, &used), TCPSTORE_E_BAD);
    /* Another key follows, whose length would end behind the bound. */
    put_values(big, 3, fits - 4);
    big[1] = 4;
    assert_int_equal(tcpstore_decode(&rq, TCPSTORE_CLASSIC, big, most - 1, &used), TCPSTORE_E_MORE);
    assert_int_equal(used, most);
    assert_int_equal(tcpstore_decode(&rq, TCPSTORE_CLASSIC, big, most, &used), TCPSTORE_E_BAD);
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dialects),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_longest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
