/* test-ledger.c - bytes times prices, and what has no price. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "cost/ledger.h"

#define GB UINT64_C(1000000000)

#define D PATH_KIND_DIRECT

/* Two islands and a row for all others, a row of a node, and a hub that has one. */
static const struct prices prices = {.currency = "EUR",
    .islands = {{.name = "east", .egress = 0.09, .nat = 0.045, .cross_zone = 0.01},
        {.name = "west", .egress = 0.02, .cross_zone = NAN},
        {.name = "gpu-9", .egress = NAN, .nat = 1, .cross_zone = 0},
        {.name = "hub", .egress = 0.05, .cross_zone = NAN}},
    .n_islands = 4};

static void test_prices(void **state)
{
    static const struct {
        const char *from;
        const char *to;
        enum path_kind path;
        double money; /* of 10 GB */
        uint64_t unpriced;
    } cases[] = {
        {"e1", "w1", PATH_KIND_DIRECT, 1.35, 0},
        {"w1", "e1", PATH_KIND_DIRECT, 0.2, 0},
        {"e1", "e2", PATH_KIND_DIRECT, 0.1, 0}, /* inside an island */
        {"e1", "w1", PATH_KIND_LAN, 0.1, 0},
        {"w1", "w2", PATH_KIND_LAN, 0, 10 * GB}, /* its row says nothing of that */
        {"e1", "", PATH_KIND_DIRECT, 1.35, 0},
        {"x1", "e1", PATH_KIND_DIRECT, 0, 10 * GB}, /* no row */
        {"gpu-9", "w1", PATH_KIND_DIRECT, 0, 10 * GB},
        {"gpu-9", "e1", PATH_KIND_LAN, 0, 0},   /* free, by the table */
        {"e1", "w1", PATH_KIND_RELAY, 1.85, 0}, /* and once more by the hub */
        {"e1", "e2", PATH_KIND_RELAY, 1.85, 0}, /* the hub is elsewhere */
        {"e1", "hub", PATH_KIND_STREAM, 1.35, 0},
        {"e1", "hub-b", PATH_KIND_STREAM, 1.35, 0}, /* which serves this node */
        {"hub", "e1", PATH_KIND_DIRECT, 0.5, 0},
    };
    json_t *nodes = json_pack("{s:{s:s, s:s, s:s, s:s, s:s}, s:[s, s]}", "islands", "e1", "east",
        "e2", "east", "w1", "west", "w2", "west", "gpu-9", "east", "hubs", "hub", "hub-b");
    struct price_facts facts = {.prices = &prices, .nodes = nodes};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct price_sum sum = {.bytes = 0};
        struct traffic_row row = {cases[i].from, cases[i].to, "", cases[i].path, .bytes = 10 * GB};

        price_add(&sum, &facts, &row);
        if (fabs(sum.money - cases[i].money) > 1e-9 || sum.unpriced != cases[i].unpriced ||
            sum.bytes != 10 * GB || sum.alone != 0)
            fail_msg("case %zu: %f and %llu", i, sum.money, (unsigned long long)sum.unpriced);
    }
    json_decref(nodes);
}

/* What only one end tells of counts as such, be it that the other one will still tell. */
static void test_one_end(void **state)
{
    static const uint64_t alone[TRAFFIC_WORD_N] = {0, GB, GB};
    struct price_facts facts = {.prices = NULL};

    for (unsigned word = 0; word < TRAFFIC_WORD_N; word++) {
        struct price_sum sum = {.bytes = 1};

        price_add(&sum, &facts, &(struct traffic_row){"a", "b", "", D, word, GB});
        assert_int_equal(sum.bytes, GB + 1);
        assert_int_equal(sum.alone, alone[word]);
        assert_int_equal(sum.unpriced, GB);
        assert_true(sum.money == 0);
    }
}

/* A row without a name is for all that have none. */
static void test_other_row(void **state)
{
    struct prices p = {.islands = {{.egress = 1, .cross_zone = NAN}}, .n_islands = 1};
    struct price_facts facts = {.prices = &p};
    struct price_sum sum = {.bytes = 0};

    price_add(&sum, &facts, &(struct traffic_row){"a", "b", "", D, .bytes = GB});
    price_add(&sum, &facts, &(struct traffic_row){"a", "b", "", PATH_KIND_LAN, .bytes = GB});
    assert_true(sum.money == 1);
    assert_int_equal(sum.unpriced, GB);
}

/* What a hub sent on, and neither it nor the sender has a price for, was moved once. */
static void test_unpriced_once(void **state)
{
    static const struct prices of_sender = {
        .islands = {{.name = "a", .egress = 1}}, .n_islands = 1};
    static const struct prices of_hub = {.islands = {{.name = "hub", .egress = 2}}, .n_islands = 1};
    const struct prices *tables[] = {NULL, &of_sender, &of_hub};
    json_t *nodes = json_pack("{s:[s]}", "hubs", "hub");

    for (size_t i = 0; i < 3; i++) {
        struct price_facts facts = {.prices = tables[i], .nodes = nodes};
        struct price_sum sum = {.bytes = 0};

        price_add(&sum, &facts, &(struct traffic_row){"a", "b", "", PATH_KIND_RELAY, .bytes = GB});
        assert_int_equal(sum.bytes, GB);
        assert_int_equal(sum.unpriced, GB);
        assert_true(sum.money == (double)i);
    }
    json_decref(nodes);
}

static json_t *answer(void)
{
    return json_pack("{s:s, s:s, s:s, s:{s:s, s:s}, s:[s], s:{s:i, s:i},"
                     " s:[{s:s, s:s, s:s, s:s, s:s, s:I}, {s:s, s:s, s:s, s:s, s:I},"
                     " {s:s, s:s, s:s, s:I, s:s}]}",
        "network", "default", "since", "2026-11-22", "until", "2026-11-23", "islands", "e1", "east",
        "w1", "west", "hubs", "hub", "leftOut", "rows", 0, "bytes", 0, "rows", "day", "2026-11-22",
        "from", "e1", "to", "w1", "job", "llama", "path", "direct", "bytes", (json_int_t)(100 * GB),
        "day", "2026-11-23", "from", "e1", "to", "w1", "path", "relay", "bytes", (json_int_t)GB,
        "day", "2026-11-23", "from", "w1", "path", "direct", "bytes", (json_int_t)(2 * GB), "word",
        "one");
}

static double cost(const json_t *ledger, const char *part, size_t i)
{
    return json_number_value(
        json_object_get(json_array_get(json_object_get(ledger, part), i), "cost"));
}

static void expect_json(json_t *ledger, const char *whole)
{
    json_t *expected = json_loads(whole, 0, NULL);

    assert_non_null(expected);
    if (!json_equal(ledger, expected)) {
        char *text = json_dumps(ledger, JSON_COMPACT);

        fail_msg("%s is not %s", text, whole);
    }
    json_decref(expected);
}

static void expect_tables(const json_t *ledger, const char *whole)
{
    struct str out = STR_NULL;

    ledger_format(&out, ledger);
    assert_string_equal(str_text(&out), whole);
    str_deinit(&out);
}

/* 100 GB direct, and 1 GB twice: by the sender, and by the hub. */
static void test_sums(void **state)
{
    struct err e = ERR_NULL;
    json_t *read = answer();
    json_t *json = ledger_make(&prices, read, &e);

    expect_json(json,
        "{\"network\":\"default\",\"since\":\"2026-11-22\",\"until\":\"2026-11-23\",\"currency\":"
        "\"EUR\","
        "\"total\":{\"bytes\":103000000000,\"oneEndBytes\":2000000000,\"unpricedBytes\":0,\"cost\":"
        "13.725},"
        "\"edges\":["
        "{\"from\":\"e1\",\"to\":\"w1\",\"paths\":[\"direct\",\"relay\"],\"bytes\":101000000000,"
        "\"oneEndBytes\":0,\"unpricedBytes\":0,\"cost\":13.685},"
        "{\"from\":\"w1\",\"to\":null,\"paths\":[\"direct\"],\"bytes\":2000000000,"
        "\"oneEndBytes\":2000000000,\"unpricedBytes\":0,\"cost\":0.04}],"
        "\"jobs\":["
        "{\"job\":null,\"bytes\":3000000000,\"oneEndBytes\":2000000000,\"unpricedBytes\":0,"
        "\"cost\":0.225},"
        "{\"job\":\"llama\",\"bytes\":100000000000,\"oneEndBytes\":0,\"unpricedBytes\":0,\"cost\":"
        "13.5}],"
        "\"days\":["
        "{\"day\":\"2026-11-22\",\"bytes\":100000000000,\"oneEndBytes\":0,\"unpricedBytes\":0,"
        "\"cost\":13.5},"
        "{\"day\":\"2026-11-23\",\"bytes\":3000000000,\"oneEndBytes\":2000000000,\"unpricedBytes\":"
        "0,"
        "\"cost\":0.225}],"
        "\"leftOut\":{\"rows\":0,\"bytes\":0}}");
    expect_tables(json, "network default, 2026-11-22 to 2026-11-23 (UTC)\n\n"
                        "FROM  TO        PATH          BYTES      COST         UNPRICED\n"
                        "e1    w1        direct,relay  101.00 GB  13.6850 EUR  -\n"
                        "w1    (others)  direct        2.00 GB    0.0400 EUR   -\n\n"
                        "JOB     BYTES      COST         UNPRICED\n"
                        "(none)  3.00 GB    0.2250 EUR   -\n"
                        "llama   100.00 GB  13.5000 EUR  -\n\n"
                        "DAY         BYTES      COST         UNPRICED\n"
                        "2026-11-22  100.00 GB  13.5000 EUR  -\n"
                        "2026-11-23  3.00 GB    0.2250 EUR   -\n\n"
                        "total 103.00 GB, 13.7250 EUR\n");
    json_decref(json);
    json_decref(read);
}

/* One row alone: its edge is shown, and its job if it has one; the day is as much as the total. */
static json_t *one_row(const char *job)
{
    return json_pack("{s:s, s:s, s:s, s:{s:i, s:I}, s:[{s:s, s:s, s:s, s:s*, s:s, s:I}]}",
        "network", "n", "since", "2026-11-22", "until", "2026-11-22", "leftOut", "rows", 1, "bytes",
        (json_int_t)GB, "rows", "day", "2026-11-22", "from", "w1", "to", "w2", "job", job, "path",
        "newer", "bytes", (json_int_t)GB);
}

static void test_one_row(void **state)
{
    static const char edge[] = "network n, 2026-11-22 to 2026-11-22 (UTC)\n\n"
                               "FROM  TO  PATH    BYTES    COST        UNPRICED\n"
                               "w1    w2  direct  1.00 GB  0.0000 EUR  1.00 GB\n\n";
    static const char llama[] = "JOB    BYTES    COST        UNPRICED\n"
                                "llama  1.00 GB  0.0000 EUR  1.00 GB\n\n";
    static const char total[] =
        "total 1.00 GB, 0.0000 EUR without 1.00 GB that the price table has no price for\n"
        "1.00 GB more are in rows that the answer had no room for: ask for fewer days\n";
    const char *const jobs[] = {NULL, "llama"};

    for (unsigned i = 0; i < 2; i++) {
        json_t *read = one_row(jobs[i]);
        json_t *json = ledger_make(&prices, read, NULL);
        char whole[1024];

        (void)snprintf(whole, sizeof(whole), "%s%s%s", edge, jobs[i] ? llama : "", total);
        expect_tables(json, whole);
        json_decref(json);
        json_decref(read);
    }
}

/* What is not summed up goes through as it came. */
static void test_disputes_and_budgets(void **state)
{
    static const char disputes[] =
        "[{\"day\":\"2026-11-22\",\"from\":\"a\",\"to\":\"b\",\"sent\":2000000000,\"received\":"
        "1000,"
        "\"counted\":66636},{\"day\":\"2026-11-22\",\"from\":\"a\",\"to\":\"b\",\"job\":\"j\","
        "\"sent\":0,\"received\":0,\"counted\":0}]";
    static const char budgets[] =
        "[{\"job\":\"j\",\"level\":\"near\",\"share\":0.9,\"cost\":9,\"costPerDay\":10},"
        "{\"level\":\"low\",\"share\":0.1,\"bytes\":1000,\"bytesPerDay\":10000}]";
    static const char told[] =
        "2026-11-22: a says it has sent 2.00 GB to b, which says it has received 1.00 kB;"
        " 66.64 kB are counted\n"
        "2026-11-22: a says it has sent 0 B to b for job j, which says it has received 0 B;"
        " 0 B are counted\n"
        "budget of job j: 9.00 of 10.00 a day (90.0 %), near its end\n"
        "budget of the network: 1.00 kB of 10.00 kB a day (10.0 %)\n";
    json_t *read = one_row(NULL);
    json_t *json;
    struct str out = STR_NULL;

    (void)json_object_set_new(read, "disputes", json_loads(disputes, 0, NULL));
    (void)json_object_set_new(read, "budgets", json_loads(budgets, 0, NULL));
    json = ledger_make(NULL, read, NULL);
    assert_true(json_equal(json_object_get(json, "disputes"), json_object_get(read, "disputes")));
    assert_true(json_equal(json_object_get(json, "budgets"), json_object_get(read, "budgets")));
    ledger_format(&out, json);
    assert_string_equal(strstr(str_text(&out), "2026-11-22: a"), told);
    str_deinit(&out);
    json_decref(json);
    json_decref(read);
}

static void test_without_prices(void **state)
{
    json_t *read = one_row(NULL);
    json_t *json;

    (void)json_object_del(read, "leftOut");
    json = ledger_make(NULL, read, NULL);
    expect_json(json,
        "{\"network\":\"n\",\"since\":\"2026-11-22\",\"until\":\"2026-11-22\",\"currency\":null,"
        "\"total\":{\"bytes\":1000000000,\"oneEndBytes\":0,\"unpricedBytes\":1000000000,\"cost\":"
        "null},"
        "\"edges\":[{\"from\":\"w1\",\"to\":\"w2\",\"paths\":[\"direct\"],\"bytes\":1000000000,"
        "\"oneEndBytes\":0,\"unpricedBytes\":1000000000,\"cost\":null}],"
        "\"jobs\":[{\"job\":null,\"bytes\":1000000000,\"oneEndBytes\":0,"
        "\"unpricedBytes\":1000000000,\"cost\":null}],"
        "\"days\":[{\"day\":\"2026-11-22\",\"bytes\":1000000000,\"oneEndBytes\":0,"
        "\"unpricedBytes\":1000000000,\"cost\":null}],\"leftOut\":null}");
    expect_tables(json, "network n, 2026-11-22 to 2026-11-22 (UTC)\n\n"
                        "FROM  TO  PATH    BYTES    COST  UNPRICED\n"
                        "w1    w2  direct  1.00 GB  -     1.00 GB\n\n"
                        "total 1.00 GB; no price table was given, so no cost is known\n");
    json_decref(json);
    json_decref(read);
}

/* An answer that is none is refused with words. */
static void test_refused(void **state)
{
    static const struct {
        const char *answer;
        const char *said;
    } cases[] = {
        {"[]", "the hub's answer: is not a JSON object"},
        {"{}", "the hub's answer: \"rows\" is missing"},
        {"{\"rows\":[],\"islands\":7}", "the hub's answer: \"islands\" is not an object"},
        {"{\"rows\":[7]}", "the hub's answer: a row: is not a JSON object"},
        {"{\"rows\":[{\"path\":\"lan\",\"from\":\"a\",\"bytes\":1}]}",
            "the hub's answer: a row: \"day\" is missing"},
        {"{\"rows\":[{\"day\":\"x\",\"path\":\"lan\",\"from\":\"A b\",\"bytes\":1}]}",
            "the hub's answer: a row: from \"A b\""},
        {"{\"rows\":[{\"day\":\"x\",\"path\":\"lan\",\"from\":\"a\",\"bytes\":-1}]}",
            "the hub's answer: a row: \"bytes\" is not a whole number"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *read = json_loads(cases[i].answer, 0, NULL);
        struct err e = ERR_NULL;

        assert_non_null(read);
        assert_null(ledger_make(NULL, read, &e));
        if (strncmp(e.text, cases[i].said, strlen(cases[i].said)) != 0)
            fail_msg("case %zu: %s", i, e.text);
        json_decref(read);
    }
}

/* The answer's own table counts where no other one is given; one that is none is refused. */
static void test_prices_of_the_answer(void **state)
{
    json_t *read = answer();
    struct err e = ERR_NULL;
    json_t *json;

    (void)json_object_set_new(
        read, "prices", json_loads("{\"islands\":[{\"egressPerGB\":0.1}]}", 0, NULL));
    json = ledger_make(NULL, read, &e);
    assert_non_null(json);
    assert_true(cost(json, "edges", 0) == 10.2);
    json_decref(json);
    (void)json_object_set_new(read, "prices", json_object());
    assert_null(ledger_make(NULL, read, &e));
    assert_non_null(strstr(e.text, "\"islands\" is missing"));
    json_decref(read);
}

static void test_budgets(void **state)
{
    static const struct {
        double share;
        struct budget budget;
        struct price_sum sum;
        enum spent_level level;
    } cases[] = {
        {0.5, {.cost = 20}, {.money = 10}, SPENT_LOW},
        {0.8, {.cost = 20}, {.money = 16}, SPENT_NEAR_END},
        {1, {.cost = 20}, {.money = 20}, SPENT_ALL},
        {0.25, {.bytes = 4 * GB}, {.bytes = GB, .money = 100}, SPENT_LOW},
        {2, {.bytes = GB}, {.bytes = 2 * GB}, SPENT_ALL},
        {0, {.cost = 1}, {.bytes = 100 * GB, .unpriced = 100 * GB}, SPENT_LOW},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct spent s = {.budget = cases[i].budget, .sum = cases[i].sum};

        spent_measure(&s);
        if (fabs(s.share - cases[i].share) > 1e-9 || s.level != cases[i].level)
            fail_msg("case %zu: %f, level %d", i, s.share, (int)s.level);
    }
}

static void expect_text(const struct budget *budget, const struct price_sum *sum, const char *text)
{
    struct spent s = {.budget = *budget, .sum = *sum};
    struct str out = STR_NULL;
    json_t *json;

    spent_measure(&s);
    json = spent_encode_one(&s);
    spent_format(&out, json);
    assert_string_equal(str_text(&out), text);
    str_deinit(&out);
    json_decref(json);
}

/* Of money and of bytes, of a job and of all, and with what was stored when budgets had caps. */
static void test_spent_as_json(void **state)
{
    struct spent_list list = {
        .items = {{.budget = {.job = "j", .cost = 20},
                      .sum = {.bytes = 7, .alone = 3, .unpriced = 2, .money = 16.00000049}},
            {.budget = {.bytes = 3, .ignored_cap = "50Mbit"}, .sum = {.bytes = 1}}},
        .n = 2};
    json_t *json;

    for (unsigned i = 0; i < list.n; i++)
        spent_measure(&list.items[i]);
    json = spent_encode(&list);
    expect_json(json,
        "[{\"job\":\"j\",\"costPerDay\":20.0,\"bytes\":7,\"oneEndBytes\":3,\"unpricedBytes\":2,"
        "\"cost\":16.0,\"level\":\"near\",\"share\":0.8,\"capBitsPerSecond\":null},"
        "{\"bytesPerDay\":3,\"bytes\":1,\"oneEndBytes\":0,\"unpricedBytes\":0,\"cost\":0.0,"
        "\"level\":\"low\",\"share\":0.3333,\"capBitsPerSecond\":null,\"ignoredCap\":\"50Mbit\"}]");
    json_decref(json);
    assert_ptr_equal(spent_find(&list, "j"), &list.items[0]);
    assert_ptr_equal(spent_find(&list, ""), &list.items[1]);
    assert_null(spent_find(&list, "k"));
}

static void test_words(void **state)
{
    struct str out = STR_NULL;
    json_t *json = json_pack("{s:f, s:s}", "share", 0.5, "level", "low");
    struct budget bytes = {.bytes = 2 * GB};
    struct budget cost = {.cost = 20};
    struct price_sum sum = {.bytes = GB * 19 / 10, .money = 3.5};

    expect_text(&bytes, &sum, "1.90 GB of 2.00 GB a day (95.0 %), near its end");
    expect_text(&cost, &sum, "3.50 of 20.00 a day (17.5 %)");
    bytes.bytes = GB;
    expect_text(&bytes, &sum, "1.90 GB of 1.00 GB a day (190.0 %), spent");
    /* As it was stored when budgets had caps. */
    memcpy(cost.ignored_cap, "50Mbit", 7);
    expect_text(&cost, &sum, "3.50 of 20.00 a day (17.5 %); its cap of 50Mbit has no effect");
    /* An earlier hub's. */
    spent_format(&out, json);
    assert_string_equal(str_text(&out), "of the day's budget (50.0 %)");
    str_deinit(&out);
    json_decref(json);
}

/* However much many nodes say, a budget that is spent is not whole again. */
static void test_most(void **state)
{
    struct price_facts facts = {.prices = NULL};
    struct price_sum sum = {.bytes = INT64_MAX - 1, .unpriced = INT64_MAX - 1};

    price_add(&sum, &facts, &(struct traffic_row){"a", "b", "", D, .bytes = 5});
    assert_true(sum.bytes == INT64_MAX);
    assert_true(sum.unpriced == INT64_MAX);
    price_add(&sum, &facts, &(struct traffic_row){"a", "b", "", D, .bytes = 7});
    assert_true(sum.bytes == INT64_MAX);
    assert_true(sum.unpriced == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_one_end),
        cmocka_unit_test(test_other_row),
        cmocka_unit_test(test_unpriced_once),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_one_row),
        cmocka_unit_test(test_disputes_and_budgets),
        cmocka_unit_test(test_without_prices),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_prices_of_the_answer),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_spent_as_json),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
