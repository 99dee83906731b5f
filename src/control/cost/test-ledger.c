/* test-ledger.c - bytes times prices, and what has no price. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "cost/ledger.h"

#define GB UINT64_C(1000000000)

/* Two islands and a row for all others, a row of a node, and a hub that has one. */
static const struct prices prices = {.currency = "EUR",
    .islands = {{.name = "east",
                    .has_egress = true,
                    .egress = 0.09,
                    .nat = 0.045,
                    .has_cross_zone = true,
                    .cross_zone = 0.01},
        {.name = "west", .has_egress = true, .egress = 0.02},
        {.name = "gpu-9", .has_cross_zone = true, .cross_zone = 0},
        {.name = "hub", .has_egress = true, .egress = 0.05}},
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
    json_t *islands = json_pack("{s:s, s:s, s:s, s:s, s:s}", "e1", "east", "e2", "east", "w1",
        "west", "w2", "west", "gpu-9", "east");
    json_t *hubs = json_pack("[s, s]", "hub", "hub-b");
    struct price_facts facts = {.prices = &prices, .islands = islands, .hubs = hubs};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct price_sum sum = {.bytes = 0};

        price_add(&sum, &facts, cases[i].from, cases[i].to, cases[i].path, 10 * GB);
        if (fabs(sum.money - cases[i].money) > 1e-9 || sum.unpriced != cases[i].unpriced ||
            sum.bytes != 10 * GB)
            fail_msg("case %zu: %f and %llu", i, sum.money, (unsigned long long)sum.unpriced);
    }
    json_decref(hubs);
    json_decref(islands);
}

/* A row without a name is for all that have none. */
static void test_other_row(void **state)
{
    struct prices p = {.islands = {{.name = "", .has_egress = true, .egress = 1}}, .n_islands = 1};
    struct price_facts facts = {.prices = &p};
    struct price_sum sum = {.bytes = 0};

    price_add(&sum, &facts, "a", "b", PATH_KIND_DIRECT, GB);
    price_add(&sum, &facts, "a", "b", PATH_KIND_LAN, GB);
    assert_true(sum.money == 1);
    assert_int_equal(sum.unpriced, GB);
}

/* What a hub sent on, and neither it nor the sender has a price for, was moved once. */
static void test_unpriced_once(void **state)
{
    static const struct prices of_sender = {
        .islands = {{.name = "a", .has_egress = true, .egress = 1}}, .n_islands = 1};
    static const struct prices of_hub = {
        .islands = {{.name = "hub", .has_egress = true, .egress = 2}}, .n_islands = 1};
    const struct prices *tables[] = {NULL, &of_sender, &of_hub};
    json_t *hubs = json_pack("[s]", "hub");

    for (size_t i = 0; i < 3; i++) {
        struct price_facts facts = {.prices = tables[i], .hubs = hubs};
        struct price_sum sum = {.bytes = 0};

        price_add(&sum, &facts, "a", "b", PATH_KIND_RELAY, GB);
        assert_int_equal(sum.bytes, GB);
        assert_int_equal(sum.unpriced, GB);
        assert_true(sum.money == (double)i);
    }
    json_decref(hubs);
}

static json_t *answer(void)
{
    return json_pack("{s:s, s:s, s:s, s:{s:s, s:s}, s:[s], s:{s:i, s:i},"
                     " s:[{s:s, s:s, s:s, s:s, s:s, s:I}, {s:s, s:s, s:s, s:s, s:I},"
                     " {s:s, s:s, s:s, s:I}]}",
        "network", "default", "since", "2026-11-22", "until", "2026-11-23", "islands", "e1", "east",
        "w1", "west", "hubs", "hub", "leftOut", "rows", 0, "bytes", 0, "rows", "day", "2026-11-22",
        "from", "e1", "to", "w1", "job", "llama", "path", "direct", "bytes", (json_int_t)(100 * GB),
        "day", "2026-11-23", "from", "e1", "to", "w1", "path", "relay", "bytes", (json_int_t)GB,
        "day", "2026-11-23", "from", "w1", "path", "direct", "bytes", (json_int_t)(2 * GB));
}

static double cost(const json_t *ledger, const char *part, size_t i)
{
    return json_number_value(
        json_object_get(json_array_get(json_object_get(ledger, part), i), "cost"));
}

static json_int_t bytes_in_all(const json_t *ledger)
{
    return json_integer_value(json_object_get(json_object_get(ledger, "total"), "bytes"));
}

static void test_sums(void **state)
{
    struct err e = ERR_NULL;
    struct str out = STR_NULL;
    json_t *read = answer();
    json_t *json = ledger_make(&prices, read, &e);

    assert_non_null(json);
    assert_int_equal(bytes_in_all(json), 103 * GB);
    assert_string_equal(json_string_value(json_object_get(json, "currency")), "EUR");
    assert_int_equal(json_array_size(json_object_get(json, "edges")), 2);
    /* 100 GB direct, and 1 GB twice: by the sender, and by the hub. */
    assert_true(cost(json, "edges", 0) == 13.685);
    assert_true(cost(json, "edges", 1) == 0.04);
    assert_true(cost(json, "jobs", 0) == 0.225);
    assert_true(cost(json, "jobs", 1) == 13.5);
    assert_true(cost(json, "days", 0) == 13.5);
    assert_true(cost(json, "days", 1) == 0.225);
    ledger_format(&out, json);
    assert_non_null(strstr(str_text(&out), "total 103.00 GB, 13.7250 EUR\n"));
    str_deinit(&out);
    json_decref(json);
    json_decref(read);
}

static void test_without_prices(void **state)
{
    struct str out = STR_NULL;
    struct err e = ERR_NULL;
    json_t *read = answer();
    json_t *json = ledger_make(NULL, read, &e);

    assert_int_equal(bytes_in_all(json), 103 * GB);
    assert_true(json_is_null(json_object_get(json_object_get(json, "total"), "cost")));
    ledger_format(&out, json);
    assert_non_null(strstr(str_text(&out), "total 103.00 GB; no price table was given"));
    str_deinit(&out);
    json_decref(json);
    json_decref(read);
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

    price_add(&sum, &facts, "a", "b", PATH_KIND_DIRECT, 5);
    price_sum_add(&sum, &(struct price_sum){.bytes = 7, .unpriced = 7});
    assert_true(sum.bytes == INT64_MAX);
    assert_true(sum.unpriced == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_other_row),
        cmocka_unit_test(test_unpriced_once),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_without_prices),
        cmocka_unit_test(test_prices_of_the_answer),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
