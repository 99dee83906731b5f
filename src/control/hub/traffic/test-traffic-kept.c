/*
 * test-traffic-kept.c - what a hub keeps of what nodes have moved, in memory and in the store: when
 * it writes, lets go and removes, and what becomes of that where the store fails.
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
#include "test/support/failing_store.h"
#include "test/support/store_now.h"
#include "test/support/tellers.h"

#define NOON   (INT64_C(86400) * TELLERS_DAY + 43200)
#define SECOND NSEC_PER_SEC
#define IDLE   (600 * SECOND)
#define TRIM   (600 * SECOND)

static nsec_t now;

static int enter(void **state)
{
    int r = tellers_enter(state);

    now = 1000 * SECOND;
    return r;
}

static struct traffic_book *book(void)
{
    return &tellers_hub.hub->traffic;
}

static struct store *store(void)
{
    return tellers_hub.hub->store;
}

/* What @node tells of @day: sums from @from on of @n meters, each of one byte, to the hub. */
static void tell(const struct model_node *node, int32_t day, unsigned from, unsigned n)
{
    struct traffic t = {.day = day};

    for (unsigned i = 0; i < n; i++)
        traffic_add(traffic_at(&t, 1 + from + i, "hub", "", PATH_KIND_LAN), 1, 0);
    traffic_book_take(book(), node, &t, now, NOON);
    traffic_deinit(&t);
}

static void tick(void)
{
    struct err e = ERR_NULL;

    if (traffic_book_tick(book(), now, NOON, &e) != 0)
        fail_msg("%s", err_text(&e));
    store_wait(store());
}

static void expect_failure(void)
{
    struct err e = ERR_NULL;

    store_wait(store());
    assert_int_equal(book()->n_on_way, 0);
    failing_store_end(store());
    assert_int_equal(traffic_book_tick(book(), now, NOON, &e), -EIO);
    assert_string_equal(err_text(&e), FAILING_STORE_WORDS);
}

static void write_all(const char *network)
{
    struct err e = ERR_NULL;

    assert_int_equal(traffic_book_write(book(), network, now, &e), 0);
}

static int add_key(void *ctx, const struct store_item *item)
{
    char *text = ctx;
    size_t n = strlen(text);

    (void)snprintf(text + n, 4096 - n, "%s ", item->key + strlen(TRAFFIC_KEY_PREFIX));
    return 0;
}

/* The keys of all records that there are. */
static void expect_keys(const char *expected)
{
    char text[4096] = "";

    assert_int_equal(store_now_list(store(), TRAFFIC_KEY_PREFIX, add_key, text, NULL, NULL), 0);
    assert_string_equal(text, expected);
}

static int count_one(void *ctx, const struct store_item *item)
{
    ++*(unsigned *)ctx;
    return 0;
}

static void expect_records(unsigned expected)
{
    unsigned n = 0;

    assert_int_equal(store_now_list(store(), TRAFFIC_KEY_PREFIX, count_one, &n, NULL, NULL), 0);
    assert_int_equal(n, expected);
}

static void put(const char *key, const char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(store(), &op, 1, now, NULL, NULL, NULL), 0);
}

static const struct model_node *other_network(void)
{
    assert_int_equal(sample_hub_ask(&tellers_hub, API_ACCESS_ADMIN, NULL, "POST", "/v1/networks",
                         "{\"name\":\"other\",\"cidr4\":\"10.99.0.0/16\"}", NULL),
        201);
    return model_find_node(model_find_network(&tellers_hub.hub->model, "other"), "hub");
}

/* ---- records --------------------------------------------------------------------------------- */

static int check_record(void *ctx, const struct store_item *item)
{
    struct traffic t;

    assert_true(traffic_record_decode(&t, item));
    assert_int_equal(t.day, TELLERS_DAY);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.flows[0].sent, 300);
    traffic_deinit(&t);
    return 0;
}

static void on_change(void *ctx, const struct store_item *item)
{
    fail_msg("watches are told of it");
}

/* Nobody watches a record; and of several networks one may be written alone. */
static void test_what_is_written(void **state)
{
    const struct model_node *other = other_network();
    struct store_watch *watch = NULL;

    assert_int_equal(store_watch(store(), TRAFFIC_KEY_PREFIX, store_revision(store()) + 1,
                         on_change, NULL, &watch, NULL),
        0);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tell(other, TELLERS_DAY, 0, 1);
    /* What the store has is not known yet. */
    write_all(NULL);
    assert_int_equal(book()->n_on_way, 2);
    store_wait(store());
    expect_keys("");
    write_all("other");
    store_wait(store());
    expect_keys("other/2026-11-23/hub/hub ");
    /* Nothing is written about what is being removed. */
    tellers_network()->leaving = "it leaves";
    write_all(NULL);
    assert_int_equal(book()->n_on_way, 0);
    tellers_network()->leaving = NULL;
    write_all("default");
    assert_int_equal(book()->n_on_way, 1);
    store_wait(store());
    expect_keys("default/2026-11-23/a/hub other/2026-11-23/hub/hub ");
    assert_int_equal(
        store_now_get(store(), "traffic/default/2026-11-23/a/hub", check_record, NULL, NULL), 0);
    /* It is written once. */
    write_all(NULL);
    assert_int_equal(book()->n_on_way, 0);
    store_watch_close(watch);
}

/* As many as a commit takes, and then another one. */
static void test_many_records(void **state)
{
    char name[8];

    for (unsigned i = 0; i < 24; i++) {
        (void)snprintf(name, sizeof(name), "c%c", (int)('a' + i));
        sample_hub_add_node(&tellers_hub, name);
    }
    for (unsigned i = 0; i < 257; i++)
        tell(model_node_at(tellers_network(), i / 10), TELLERS_DAY + 1 - (int32_t)(i % 10), 0, 1);
    assert_int_equal(book()->n_left_out, 0);
    store_wait(store());
    write_all(NULL);
    assert_int_equal(book()->n_on_way, 2);
    store_wait(store());
    assert_int_equal(book()->n_on_way, 0);
    expect_records(257);
}

/* One that is damaged, or cannot be understood, is as none: it is written anew. */
static void test_damaged_records(void **state)
{
    static const char *const values[] = {"{", "[]", "{\"day\":\"2026-11-23\"}",
        "{\"day\":\"2026-11-23\",\"flows\":[],\"flows\":[]}",
        "{\"day\":\"2026-11-23\",\"flows\":[],\"sum\":\"0123456789abcdef\"}"};
    struct store_item item = {.key = "traffic/default/2026-11-23/a/hub"};
    struct traffic t;

    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        item.value = values[i];
        if (traffic_record_decode(&t, &item))
            fail_msg("%s", values[i]);
    }
    put(item.key, values[4]);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    store_wait(store());
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_DIRECT], 300);
    write_all(NULL);
    store_wait(store());
    assert_int_equal(store_now_get(store(), item.key, check_record, NULL, NULL), 0);
}

/* ---- what is taken --------------------------------------------------------------------------- */

/* A day that the node may still have, and one more for its clock. */
static void test_days_that_are_taken(void **state)
{
    const struct model_node *a = tellers_node("a");

    tell(a, TELLERS_DAY + 1, 0, 1);
    assert_int_equal(book()->n_left_out, 0);
    tell(a, TELLERS_DAY + 2, 0, 1);
    assert_int_equal(book()->n_left_out, 1);
    tell(a, TELLERS_DAY - TRAFFIC_DAYS_KEPT, 0, 1);
    assert_int_equal(book()->n_left_out, 1);
    tell(a, TELLERS_DAY - TRAFFIC_DAYS_KEPT - 1, 0, 3);
    assert_int_equal(book()->n_left_out, 4);
    /* Or one that this hub keeps. */
    book()->n_days = 3;
    tell(a, TELLERS_DAY - 2, 0, 1);
    assert_int_equal(book()->n_left_out, 4);
    tell(a, TELLERS_DAY - 3, 0, 1);
    assert_int_equal(book()->n_left_out, 5);
    assert_int_equal(book()->entries.n, 3);
}

/* Of one that was a member, more may be told while it is in the record. */
static void test_members_that_were(void **state)
{
    struct traffic t = {.day = TELLERS_DAY};

    tellers_tell("a", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":[{\"peer\":\"hub\",\"path\":\"direct\","
        "\"sent\":1,\"received\":1}]}");
    tellers_tell("a", TELLERS_DAY, TELLERS_A_100);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    assert_int_equal(sample_hub_ask(&tellers_hub, API_ACCESS_ADMIN, NULL, "DELETE",
                         "/v1/networks/default/nodes/b", NULL, NULL),
        204);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    assert_int_equal(book()->n_left_out, 0);
    traffic_add(traffic_at(&t, 7, "c", "", PATH_KIND_LAN), 1, 1);
    traffic_add(traffic_at(&t, 7, "", "", PATH_KIND_LAN), 1, 1);
    traffic_book_take(book(), tellers_node("a"), &t, now, NOON);
    traffic_deinit(&t);
    assert_int_equal(book()->n_left_out, 1);
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_DIRECT], 311);
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_LAN], 1);
}

/* All records of a network share its part, with what was read of them; and give it back. */
static void test_shares_of_memory(void **state)
{
    const struct model_node *a = tellers_node("a");
    const struct model_node *b = tellers_node("b");

    book()->max_flows = 8;
    tell(a, TELLERS_DAY, 0, 6);
    tell(b, TELLERS_DAY, 0, 4);
    assert_int_equal(book()->n_left_out, 2);
    tick();
    now += TRAFFIC_BOOK_FLUSH;
    tick();
    expect_keys("default/2026-11-23/a/hub default/2026-11-23/b/hub ");
    /* What was told of already has its place. */
    tell(b, TELLERS_DAY, 0, 3);
    assert_int_equal(book()->n_left_out, 3);
    now += IDLE - TRAFFIC_BOOK_FLUSH;
    tell(b, TELLERS_DAY, 0, 1);
    tick();
    assert_int_equal(book()->entries.n, 1);
    tell(b, TELLERS_DAY, 2, 5);
    assert_int_equal(book()->n_left_out, 3);
    /* Seven of b, and one of a, with which five more are read. */
    tell(a, TELLERS_DAY, 0, 1);
    assert_int_equal(book()->n_left_out, 3);
    store_wait(store());
    tell(b, TELLERS_DAY, 7, 1);
    assert_int_equal(book()->n_left_out, 4);
    book()->max_flows = 14;
    tell(b, TELLERS_DAY, 7, 2);
    assert_int_equal(book()->n_left_out, 5);
}

/* ---- counters -------------------------------------------------------------------------------- */

/* Of what is read, what was told since, by each path. */
static void test_counters(void **state)
{
    static const char two_paths[] =
        "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":["
        "{\"peer\":\"b\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":200,\"received\":9},"
        "{\"peer\":\"b\",\"path\":\"lan\",\"sent\":50,\"received\":9},"
        "{\"peer\":\"hub\",\"path\":\"lan\",\"sent\":7,\"received\":9}]}";

    put("traffic/default/2026-11-23/a/hub", TELLERS_A_100);
    tellers_tell("a", TELLERS_DAY, two_paths);
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_LAN], 0);
    store_wait(store());
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_LAN], 57);
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_DIRECT], 100);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_100);
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_LAN], 57);
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_DIRECT], 200);
}

/* ---- a store that fails ---------------------------------------------------------------------- */

/* It is told once, and written the next time. */
static void test_a_write_that_fails(void **state)
{
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    store_wait(store());
    failing_store_begin(store(), STORE_JOB_COMMIT);
    write_all(NULL);
    assert_int_equal(book()->n_on_way, 1);
    expect_failure();
    tick();
    expect_records(1);
    tick();
}

/* What the store has is asked for again; until it is known nothing is written or counted. */
static void test_a_read_that_fails(void **state)
{
    failing_store_begin(store(), STORE_JOB_GET);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    expect_failure();
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_DIRECT], 0);
    tick();
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_DIRECT], 300);
    expect_records(0);
    now += TRAFFIC_BOOK_FLUSH;
    tick();
    expect_records(1);
}

/* It accepts nothing for a while. */
static void test_a_store_that_is_full(void **state)
{
    struct err e = ERR_NULL;

    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    store_wait(store());
    failing_store_set_full(store(), true);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    assert_int_equal(book()->n_on_way, 0);
    assert_int_equal(traffic_book_tick(book(), now, NOON, &e), -EAGAIN);
    assert_int_equal(book()->n_on_way, 0);
    book()->n_networks = 0;
    assert_int_equal(traffic_book_tick(book(), now, NOON, &e), -EAGAIN);
    failing_store_set_full(store(), false);
    now += TRAFFIC_BOOK_FLUSH;
    tick();
    expect_keys("default/2026-11-23/a/hub ");
    now += TRAFFIC_BOOK_FLUSH;
    tick();
    expect_keys("default/2026-11-23/a/hub default/2026-11-23/b/hub ");
    /* Nor a list of what is too old. */
    now += TRIM;
    book()->flushed_at = now;
    failing_store_set_full(store(), true);
    assert_int_equal(traffic_book_tick(book(), now, NOON, &e), -EAGAIN);
    assert_int_equal(book()->n_on_way, 0);
    failing_store_set_full(store(), false);
}

/* A network that goes while its record is read has no counter any more, and no record. */
static void test_a_network_that_goes_while_it_is_read(void **state)
{
    struct store_op op = {
        .kind = STORE_OP_DELETE, .key = "network/default", .expect = STORE_EXPECT_ANY};
    const struct model_node *a = tellers_node("a");

    tick();
    assert_int_equal(store_commit(store(), &op, 1, now, NULL, NULL, NULL), 0);
    tell(a, TELLERS_DAY, 0, 1);
    store_wait(store());
    assert_null(tellers_network());
    write_all(NULL);
    assert_int_equal(book()->n_on_way, 0);
    assert_int_equal(book()->entries.n, 1);
    tick();
    assert_int_equal(book()->entries.n, 0);
    assert_int_equal(book()->shares.n, 0);
    expect_records(0);
}

/* ---- by the clock ---------------------------------------------------------------------------- */

static void expect_flush(nsec_t at, bool is_it)
{
    now = at;
    tick();
    assert_int_equal(book()->ticked_at, now);
    assert_int_equal(book()->flushed_at == now, is_it);
}

/* Each minute, or when there are other networks than before; but not while an answer is due. */
static void test_when_it_is_flushed(void **state)
{
    nsec_t at = now;

    expect_flush(at, true);
    assert_int_equal(book()->n_networks, 1);
    expect_flush(at + TRAFFIC_BOOK_FLUSH - 1, false);
    expect_flush(at + TRAFFIC_BOOK_FLUSH, true);
    (void)other_network();
    expect_flush(at + TRAFFIC_BOOK_FLUSH + 1, true);
    assert_int_equal(book()->n_networks, 2);
    expect_flush(at + TRAFFIC_BOOK_FLUSH + 2, false);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    assert_int_equal(book()->n_on_way, 1);
    expect_flush(at + 9 * TRAFFIC_BOOK_FLUSH, false);
    expect_flush(at + 9 * TRAFFIC_BOOK_FLUSH, true);
}

/* So long after it was told last, and once it is written. */
static void test_when_it_is_let_go(void **state)
{
    tick();
    tell(tellers_node("a"), TELLERS_DAY, 0, 1);
    store_wait(store());
    write_all(NULL);
    store_wait(store());
    now += IDLE - 1;
    tick();
    assert_int_equal(book()->entries.n, 1);
    tell(tellers_node("a"), TELLERS_DAY, 1, 1);
    now += IDLE;
    tick();
    assert_int_equal(book()->entries.n, 1);
    now += TRAFFIC_BOOK_FLUSH;
    tick();
    assert_int_equal(book()->entries.n, 0);
    tell(tellers_node("a"), TELLERS_DAY, 1, 1);
    store_wait(store());
    write_all(NULL);
    store_wait(store());
    now += IDLE;
    tick();
    assert_int_equal(book()->entries.n, 0);
}

static void put_old(unsigned n)
{
    struct store_op ops[600];
    char keys[600][64];

    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "traffic/default/2026-01-02/n%03u/hub", i);
        ops[i] = (struct store_op){.kind = STORE_OP_PUT,
            .key = keys[i],
            .value = TELLERS_A_100,
            .expect = STORE_EXPECT_ANY};
    }
    assert_int_equal(store_now_commit(store(), ops, n, now, NULL, NULL, NULL), 0);
}

/* Of each network, each ten minutes; and what is no record of a day goes too. */
static void test_what_is_too_old(void **state)
{
    (void)other_network();
    book()->n_days = 2;
    tick();
    assert_int_equal(book()->oldest, TELLERS_DAY - 1);
    assert_int_equal(book()->trimmed_at, now);
    put("traffic/default/2026-11-21/a/hub", TELLERS_A_100);
    put("traffic/default/2026-11-22/a/hub", TELLERS_A_100);
    put("traffic/default/garbage", TELLERS_A_100);
    put("traffic/other/2026-11-21/a/hub", TELLERS_A_100);
    put("traffic/unknown/2026-11-21/a/hub", TELLERS_A_100);
    now += TRIM - 1;
    tick();
    expect_records(5);
    now++;
    tick();
    expect_keys("default/2026-11-22/a/hub unknown/2026-11-21/a/hub ");
    assert_int_equal(book()->n_on_way, 0);
}

/* A part at a time, the next one at once. */
static void test_much_that_is_too_old(void **state)
{
    struct err e = ERR_NULL;

    put_old(600);
    assert_int_equal(traffic_book_tick(book(), now, NOON, &e), 0);
    assert_int_equal(book()->n_on_way, 1);
    store_wait(store());
    expect_records(344);
    now++;
    tick();
    expect_records(88);
    now++;
    tick();
    expect_records(0);
    now++;
    tick();
    assert_int_equal(book()->trimmed_at, now);
    put_old(1);
    now++;
    tick();
    expect_records(1);
}

static void test_a_trim_that_fails(void **state)
{
    struct err e = ERR_NULL;

    put_old(1);
    failing_store_begin(store(), STORE_JOB_LIST);
    assert_int_equal(traffic_book_tick(book(), now, NOON, &e), 0);
    expect_failure();
    now += TRIM;
    failing_store_begin(store(), STORE_JOB_COMMIT);
    assert_int_equal(traffic_book_tick(book(), now, NOON, &e), 0);
    expect_failure();
    expect_records(1);
    now += TRIM;
    tick();
    expect_records(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_written, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_many_records, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_damaged_records, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_days_that_are_taken, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_members_that_were, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_shares_of_memory, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_counters, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_a_write_that_fails, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_a_read_that_fails, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_a_store_that_is_full, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(
            test_a_network_that_goes_while_it_is_read, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_when_it_is_flushed, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_when_it_is_let_go, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_what_is_too_old, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_much_that_is_too_old, enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_a_trim_that_fails, enter, tellers_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
