/*
 * test-traffic-read.c - what nodes have moved, read from the store: over pages, past records that
 * nobody understands, and where the store fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hub/traffic/traffic_book.h"
#include "hub/traffic/traffic_read.h"
#include "test/support/failing_store.h"
#include "test/support/store_now.h"
#include "test/support/tellers.h"

/* What was read. */
static char days[1024]; /* "+1:a>b=300 " of each row of each day */
static unsigned n_ends;
static int ended; /* with what */
static struct err why;

static struct traffic_book *book(void)
{
    return &tellers_hub.hub->traffic;
}

static struct store *store(void)
{
    return tellers_hub.hub->store;
}

static void on_day(void *ctx, int32_t day, const struct traffic_edges *edges)
{
    for (size_t i = 0; i < edges->n; i++) {
        const struct traffic_row *row = &edges->rows[i];
        size_t len = strlen(days);

        (void)snprintf(days + len, sizeof(days) - len, "%+d:%s>%s=%llu ", day - TELLERS_DAY,
            row->from, row->to, (unsigned long long)row->bytes);
    }
}

static void on_end(void *ctx, int r, const struct err *e)
{
    n_ends++;
    ended = r;
    why = *e;
}

static int ask(int32_t until, struct err *e)
{
    struct traffic_reader reader = {.network = "default",
        .since = TELLERS_DAY,
        .until = TELLERS_DAY + until,
        .on_day = on_day,
        .on_end = on_end};

    days[0] = '\0';
    n_ends = 0;
    return traffic_read(book(), &reader, tellers_hub.now, e);
}

static void expect(int32_t until, const char *expected)
{
    struct err e = ERR_NULL;

    store_wait(store());
    assert_int_equal(ask(until, &e), 0);
    assert_int_equal(n_ends, 0);
    store_wait(store());
    assert_int_equal(n_ends, 1);
    assert_int_equal(ended, 0);
    assert_int_equal(why.code, 0);
    assert_string_equal(days, expected);
}

/* Records of a day from @n hubs, of a meter each, which a has told of b, a byte each. */
static void put_many(int32_t day, unsigned n)
{
    struct store_op *ops = calloc(n, sizeof(*ops));
    char(*keys)[64] = calloc(n, sizeof(*keys));
    char(*values)[256] = calloc(n, sizeof(*values));
    char text[TRAFFIC_DAY_TEXT_MAX];

    assert_true(ops && keys && values);
    (void)traffic_day_format(TELLERS_DAY + day, text);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "traffic/default/%s/a/h%05u", text, i);
        (void)snprintf(values[i], sizeof(values[i]),
            "{\"day\":\"%s\",\"flows\":[{\"meter\":%u,\"peer\":\"b\",\"path\":\"lan\",\"sent\":1,"
            "\"received\":0}]}",
            text, i + 1);
        ops[i] = (struct store_op){
            .kind = STORE_OP_PUT, .key = keys[i], .value = values[i], .expect = STORE_EXPECT_ANY};
    }
    assert_int_equal(store_now_commit(store(), ops, n, tellers_hub.now, NULL, NULL, NULL), 0);
    free(ops);
    free(keys);
    free(values);
}

static void put(const char *key, const char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(store(), &op, 1, tellers_hub.now, NULL, NULL, NULL), 0);
}

/* A day goes on from one page to the next, and ends in the midst of one. */
static void test_pages(void **state)
{
    put_many(0, 1030);
    put_many(1, 3);
    put_many(2, 2000);
    put_many(4, 1);
    expect(0, "+0:a>b=1030 ");
    expect(1, "+0:a>b=1030 +1:a>b=3 ");
    expect(2, "+0:a>b=1030 +1:a>b=3 +2:a>b=2000 ");
    expect(9, "+0:a>b=1030 +1:a>b=3 +2:a>b=2000 +4:a>b=1 ");
    expect(-1, "");
}

/* What is none, or damaged, is passed over. */
static void test_records_that_nobody_understands(void **state)
{
    put("traffic/default/2026-11-23/a/hub-b", "{");
    put("traffic/default/2026-11-23/b/hub-b", TELLERS_B_300);
    put("traffic/default/2026-11-23x/a/hub-b", TELLERS_A_300);
    put("traffic/default/2026-11-24/a/hub-b", TELLERS_A_300);
    put("traffic/default/x", TELLERS_A_300);
    expect(1, "+0:a>b=300 +0:b>a=10 +1:a>b=300 +1:b>a=10 ");
}

/* What this hub was told is written first. */
static void test_what_is_not_written_yet(void **state)
{
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    expect(0, "+0:a>b=300 +0:b>a=10 ");
}

static void test_a_store_that_fails(void **state)
{
    struct err e = ERR_NULL;

    put_many(0, 1);
    failing_store_begin(store(), STORE_JOB_LIST);
    assert_int_equal(ask(0, &e), 0);
    store_wait(store());
    failing_store_end(store());
    assert_int_equal(n_ends, 1);
    assert_int_equal(ended, FAILING_STORE_R);
    assert_string_equal(err_text(&why), FAILING_STORE_WORDS);
    assert_string_equal(days, "");
    /* What was read until then is forgotten. */
    put_many(1, 1500);
    failing_store_begin(store(), STORE_JOB_LIST);
    failing_store_spare(1);
    assert_int_equal(ask(1, &e), 0);
    store_wait(store());
    failing_store_end(store());
    assert_int_equal(n_ends, 1);
    assert_int_equal(ended, FAILING_STORE_R);
    assert_string_equal(days, "+0:a>b=1 ");
    /* It accepts nothing: then there is no end either. */
    failing_store_set_full(store(), true);
    assert_int_equal(ask(0, &e), -EAGAIN);
    failing_store_set_full(store(), false);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    store_wait(store());
    failing_store_set_full(store(), true);
    assert_int_equal(ask(0, &e), -EAGAIN);
    failing_store_set_full(store(), false);
    store_wait(store());
    assert_int_equal(n_ends, 0);
    expect(0, "+0:a>b=1 +0:a>b=300 +0:b>a=10 ");
}

/* Where a node is, and which hubs there are; nothing of a network that is gone. */
static void test_what_prices_depend_on(void **state)
{
    json_t *is;
    json_t *should;

    (void)snprintf(tellers_node("a")->spec.island, sizeof(tellers_node("a")->spec.island), "east");
    (void)snprintf(tellers_node("hub")->spec.island, sizeof(tellers_node("a")->spec.island), "w");
    is = traffic_read_nodes(tellers_network());
    should = json_pack("{s:{s:s, s:s}, s:[s]}", "islands", "a", "east", "hub", "w", "hubs", "hub");
    assert_true(json_equal(is, should));
    json_decref(is);
    json_decref(should);
    is = traffic_read_nodes(NULL);
    should = json_pack("{s:{}, s:[]}", "islands", "hubs");
    assert_true(json_equal(is, should));
    json_decref(is);
    json_decref(should);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pages, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(
            test_records_that_nobody_understands, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_what_is_not_written_yet, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_a_store_that_fails, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_what_prices_depend_on, tellers_enter, tellers_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
