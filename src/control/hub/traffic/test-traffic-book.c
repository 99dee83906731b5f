/*
 * test-traffic-book.c - what nodes have moved, as a whole hub keeps it: over reports that come
 * twice, restarts, other hubs, and days that are too old.
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
#include "store/store.h"
#include "test/support/store_now.h"
#include "test/support/tellers.h"

static struct traffic_book *book(void)
{
    return &tellers_hub.hub->traffic;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct found {
    char text[4096]; /* "a>b/job/path=bytes " of each row */
    bool has_ended;
};

static void on_day(void *ctx, int32_t day, const struct traffic_edges *edges)
{
    struct found *f = ctx;

    for (size_t i = 0; i < edges->n; i++) {
        const struct traffic_row *row = &edges->rows[i];
        size_t len = strlen(f->text);

        (void)snprintf(f->text + len, sizeof(f->text) - len, "%+d:%s>%s/%s/%s=%llu ",
            day - TELLERS_DAY, row->from, row->to, row->job, path_kind_names[row->path],
            (unsigned long long)row->bytes);
    }
}

static void on_end(void *ctx, int r, const struct err *e)
{
    assert_int_equal(r, 0);
    ((struct found *)ctx)->has_ended = true;
}

static void expect_between(int32_t since, int32_t until, const char *text)
{
    struct found found = {.text = ""};
    struct traffic_reader reader = {.network = "default",
        .since = since,
        .until = until,
        .on_day = on_day,
        .on_end = on_end,
        .ctx = &found};
    struct err e = ERR_NULL;

    /* Records that are being read are not written yet. */
    store_wait(tellers_hub.hub->store);
    assert_int_equal(traffic_read(book(), &reader, tellers_hub.now, &e), 0);
    store_wait(tellers_hub.hub->store);
    assert_true(found.has_ended);
    assert_string_equal(found.text, text);
}

static void expect(const char *text)
{
    expect_between(TELLERS_DAY, TELLERS_DAY, text);
}

/* ---- the tests ------------------------------------------------------------------------------ */

static void test_twice_and_late(void **state)
{
    assert_int_equal(traffic_day(INT64_C(1795392000)), TELLERS_DAY);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_100);
    expect("+0:a>b/llama/direct=300 +0:b>a/llama/direct=10 ");
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_DIRECT], 300);
}

/* A hub that restarts has what it had; what it is told again counts once, and so does what comes
 * while the record is still being read. */
static void test_restart(void **state)
{
    tellers_tell("a", TELLERS_DAY, TELLERS_A_100);
    tellers_restart();
    expect("+0:a>b/llama/direct=100 +0:b>a/llama/direct=10 ");
    tellers_tell("a", TELLERS_DAY, TELLERS_A_100);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    expect("+0:a>b/llama/direct=300 +0:b>a/llama/direct=10 ");
    /* The counter has what was told since the start. */
    assert_int_equal(tellers_network()->sent_bytes[PATH_KIND_DIRECT], 200);
}

/* Both ends are heard. */
static void test_two_ends(void **state)
{
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("b", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":[{\"peer\":\"a\",\"path\":\"relay\","
        "\"job\":\"llama\",\"sent\":50,\"received\":299},{\"peer\":\"hub\",\"path\":\"direct\","
        "\"sent\":3,"
        "\"received\":4}]}");
    expect("+0:a>b/llama/direct=300 +0:b>a/llama/relay=50 +0:b>hub//direct=3 +0:hub>b//direct=4 ");
}

/* A node that has lost its state: both meters count. One with too many peers is believed alone. */
static void test_meters_and_others(void **state)
{
    tellers_tell("a", TELLERS_DAY, TELLERS_A_100);
    tellers_tell("a", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":8,\"flows\":[{\"peer\":\"b\",\"path\":\"direct\","
        "\"job\":\"llama\",\"sent\":1,\"received\":0},{\"path\":\"lan\",\"sent\":70,"
        "\"received\":0}]}");
    tellers_tell("b", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":[{\"peer\":\"a\",\"path\":\"relay\","
        "\"sent\":10,\"received\":5000}]}");
    expect("+0:a>//lan=70 +0:a>b/llama/direct=101 +0:b>a//relay=10 ");
}

/* A hub beside this one has its own record of the same node. */
static void test_other_hub(void **state)
{
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = "traffic/default/2026-11-23/a/hub-b",
        .value = TELLERS_A_300,
        .expect = STORE_EXPECT_ANY};

    assert_int_equal(
        store_now_commit(tellers_hub.hub->store, &op, 1, tellers_hub.now, NULL, NULL, NULL), 0);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_100);
    expect("+0:a>b/llama/direct=300 +0:b>a/llama/direct=10 ");
}

/* Strangers' names, days to come and days long gone are not kept. */
static void test_what_is_left_out(void **state)
{
    tellers_tell("a", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":[{\"peer\":\"x\",\"path\":\"lan\","
        "\"sent\":1,\"received\":1}]}");
    tellers_tell("a", TELLERS_DAY - 2, TELLERS_A_100);
    tellers_tell("a", TELLERS_DAY + TRAFFIC_DAYS_KEPT + 1, TELLERS_A_100);
    expect("");
    assert_int_equal(book()->n_left_out, 3);
    tellers_tell("a", TELLERS_DAY + TRAFFIC_DAYS_KEPT, TELLERS_A_100);
    expect("+0:a>b/llama/direct=100 +0:b>a/llama/direct=10 ");
    assert_int_equal(book()->n_left_out, 3);
}

static int count_one(void *ctx, const struct store_item *item)
{
    ++*(unsigned *)ctx;
    return 0;
}

static unsigned count_records(void)
{
    unsigned n = 0;

    assert_int_equal(
        store_now_list(tellers_hub.hub->store, TRAFFIC_KEY_PREFIX, count_one, &n, NULL, NULL), 0);
    return n;
}

static void tick(int32_t today)
{
    struct err e = ERR_NULL;

    for (unsigned i = 0; i < 4; i++) {
        tellers_hub.now += TRAFFIC_BOOK_FLUSH;
        assert_int_equal(
            traffic_book_tick(book(), tellers_hub.now, (int64_t)today * 86400 + 43200, &e), 0);
        store_wait(tellers_hub.hub->store);
    }
}

/* A network has its part of the memory for flows, and takes nothing of another one's. */
static void test_fair_memory(void **state)
{
    static const char flows[] =
        "{\"day\":\"2026-11-23\",\"meter\":%u,\"flows\":["
        "{\"peer\":\"hub\",\"path\":\"lan\",\"sent\":1,\"received\":0},"
        "{\"peer\":\"hub\",\"path\":\"direct\",\"sent\":1,\"received\":0}]}";
    char text[512];

    assert_int_equal(sample_hub_ask(&tellers_hub, API_ACCESS_ADMIN, NULL, "POST", "/v1/networks",
                         "{\"name\":\"other\",\"cidr4\":\"10.99.0.0/16\"}", NULL),
        201);
    /* Four nodes with the hubs': three are of the first network. */
    book()->max_flows = 8;
    for (unsigned i = 1; i <= 4; i++) {
        (void)snprintf(text, sizeof(text), flows, i);
        tellers_tell("a", TELLERS_DAY, text);
    }
    assert_int_equal(book()->n_left_out, 2);
    assert_int_equal(book()->shares.n, 1);
    tick(TELLERS_DAY);
    tellers_hub.now += 1000 * NSEC_PER_SEC;
    tick(TELLERS_DAY);
    assert_int_equal(book()->shares.n, 0);
}

/* As many sums as a record takes, with the longest names and numbers, fit a value of the store. */
static void test_longest_record(void **state)
{
    json_t *json = json_pack("{s:s, s:[]}", "day", "2026-11-23", "flows");
    char name[NAME_MAX_LEN + 1] = "";
    struct traffic t;

    memset(name, 'n', NAME_MAX_LEN);
    sample_hub_add_node(&tellers_hub, name);
    for (int i = 0; i < 2 * TRAFFIC_FLOWS_MAX; i++) {
        char job[NAME_MAX_LEN + 1];

        (void)snprintf(job, sizeof(job), "%.60s%03u", name, (unsigned)i % 1000);
        (void)json_array_append_new(json_object_get(json, "flows"),
            json_pack("{s:I, s:s, s:s, s:s, s:I, s:I}", "meter", (json_int_t)(INT64_MAX - i % 2),
                "peer", name, "job", job, "path", "direct", "sent", (json_int_t)TRAFFIC_BYTES_MAX,
                "received", (json_int_t)TRAFFIC_BYTES_MAX));
    }
    assert_int_equal(traffic_decode(&t, json, "test", NULL), 0);
    json_decref(json);
    assert_int_equal(t.n, 2 * TRAFFIC_FLOWS_MAX);
    traffic_book_take(
        book(), tellers_node("a"), &t, tellers_hub.now, (int64_t)TELLERS_DAY * 86400 + 43200);
    traffic_deinit(&t);
    assert_int_equal(book()->n_left_out, 2 * TRAFFIC_FLOWS_MAX - TRAFFIC_BOOK_FLOWS_MAX);
    tick(TELLERS_DAY);
    assert_int_equal(count_records(), 1);
}

static void test_days(void **state)
{
    tellers_tell("a", TELLERS_DAY, TELLERS_A_100);
    tellers_tell("a", TELLERS_DAY + 1,
        "{\"day\":\"2026-11-24\",\"meter\":7,\"flows\":[{\"peer\":\"b\",\"path\":\"lan\","
        "\"sent\":5,\"received\":0}]}");
    tick(TELLERS_DAY + 1);
    assert_int_equal(count_records(), 2);
    expect_between(TELLERS_DAY, TELLERS_DAY + 1,
        "+0:a>b/llama/direct=100 +0:b>a/llama/direct=10 +1:a>b//lan=5 ");
    expect_between(TELLERS_DAY + 1, TELLERS_DAY + 1, "+1:a>b//lan=5 ");
    expect_between(TELLERS_DAY + 2, TELLERS_DAY + 9, "");
    tellers_hub.now += 1000 * NSEC_PER_SEC;
    tick(TELLERS_DAY + TRAFFIC_BOOK_DAYS);
    assert_int_equal(book()->entries.n, 0);
    assert_int_equal(count_records(), 1);
    expect_between(TELLERS_DAY, TELLERS_DAY + 1, "+1:a>b//lan=5 ");
}

static void test_network_goes(void **state)
{
    tellers_tell("a", TELLERS_DAY, TELLERS_A_100);
    tick(TELLERS_DAY);
    assert_int_equal(count_records(), 1);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    assert_int_equal(sample_hub_ask(&tellers_hub, API_ACCESS_ADMIN, NULL, "DELETE",
                         "/v1/networks/default", NULL, NULL),
        204);
    tick(TELLERS_DAY);
    assert_int_equal(count_records(), 0);
}

static void expect_entries(nsec_t now, size_t n)
{
    struct err e = ERR_NULL;

    assert_int_equal(traffic_book_tick(book(), now, (int64_t)TELLERS_DAY * 86400 + 43200, &e), 0);
    assert_int_equal(book()->entries.n, n);
}

/* What the store's answer writes to is there until it comes, however long that takes. */
static void test_late_answers(void **state)
{
    nsec_t late = tellers_hub.now + 3600 * NSEC_PER_SEC;
    struct err e = ERR_NULL;

    tellers_tell("a", TELLERS_DAY, TELLERS_A_100);
    expect_entries(late, 1);
    store_wait(tellers_hub.hub->store);
    assert_int_equal(traffic_book_write(book(), NULL, late, &e), 0);
    late += TRAFFIC_BOOK_FLUSH;
    expect_entries(late, 1);
    store_wait(tellers_hub.hub->store);
    late += TRAFFIC_BOOK_FLUSH;
    expect_entries(late, 0);
    expect("+0:a>b/llama/direct=100 +0:b>a/llama/direct=10 ");
}

static void test_keys(void **state)
{
    static const char *const wrong[] = {"traffic/", "traffic/a/2026-11-23/b",
        "traffic/a/2026-11-23/b/", "traffic/a/2026-11-31/b/c", "traffic/a/2026-11-23/b/c/d",
        "traffic//2026-11-23/b/c", "edge/a/2026-11-23/b/c"};
    struct traffic_key again = {.day = 7};
    char text[RECORD_KEY_MAX];

    assert_string_equal(traffic_key_format(text, "n", -1, "", ""), "traffic/n/");
    assert_string_equal(traffic_key_format(text, "n", TELLERS_DAY, "", ""), "traffic/n/2026-11-23");
    assert_string_equal(
        traffic_key_format(text, "n", TELLERS_DAY, "a", "hub"), "traffic/n/2026-11-23/a/hub");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        if (traffic_key_parse(&again, wrong[i]) || again.day != 7)
            fail_msg("%s", wrong[i]);
    assert_true(traffic_key_parse(&again, text));
    assert_int_equal(again.day, TELLERS_DAY);
    assert_string_equal(again.node, "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_twice_and_late, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_restart, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_two_ends, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_meters_and_others, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_other_hub, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_what_is_left_out, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_fair_memory, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_longest_record, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_days, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_network_goes, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_late_answers, tellers_enter, tellers_leave),
        cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
