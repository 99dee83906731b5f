/*
 * test-spending.c - budgets, as a whole hub judges them: what is told of them, and whose word
 * counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hub/traffic/spending.h"
#include "hub/watch/view.h"
#include "os/log.h"
#include "store/store.h"
#include "test/support/captured_log.h"
#include "test/support/failing_store.h"
#include "test/support/store_now.h"
#include "test/support/tellers.h"

/* @field: of the Network's spec; @value: JSON; NULL: it is to be absent. */
static void set_network(const char *field, const char *value, int status)
{
    json_t *net = NULL;
    char *body;

    assert_int_equal(sample_hub_ask(&tellers_hub, API_ACCESS_ADMIN, NULL, "GET",
                         "/v1/networks/default/objects/Network/default", NULL, &net),
        200);
    (void)json_object_del(net, "status");
    if (value)
        (void)json_object_set_new(json_object_get(net, "spec"), field, json_loads(value, 0, NULL));
    else
        (void)json_object_del(json_object_get(net, "spec"), field);
    body = json_dumps(net, 0);
    assert_int_equal(sample_hub_ask(&tellers_hub, API_ACCESS_ADMIN, NULL, "PUT",
                         "/v1/networks/default/objects/Network/default", body, NULL),
        status);
    free(body);
    json_decref(net);
}

/* The network's budgets, as they were judged last. */
static const struct spent_list *spent(void)
{
    return spending_of(&tellers_hub.hub->spending, "default");
}

static void set_budgets(const char *budgets, int status)
{
    set_network("budgets", budgets, status);
}

/* The names of the events and of what they are about, since the start. */
static void expect_events(int32_t today, const char *text)
{
    char found[1024] = "";
    const json_t *ev;
    json_t *events = NULL;
    size_t i;

    tellers_hub.now += SPENDING_EACH;
    store_wait(tellers_hub.hub->store);
    /* The first one may have to read, and then the second one judges. */
    for (i = 0; i < 2; i++) {
        spending_tick(&tellers_hub.hub->spending, tellers_hub.now, (int64_t)today * 86400 + 43200);
        store_wait(tellers_hub.hub->store);
    }
    assert_int_equal(sample_hub_ask(&tellers_hub, API_ACCESS_ADMIN, NULL, "GET",
                         "/v1/networks/default/events", NULL, &events),
        200);
    json_array_foreach(json_object_get(events, "events"), i, ev) {
        size_t len = strlen(found);

        (void)snprintf(found + len, sizeof(found) - len, "%s(%s) ",
            json_string_value(json_object_get(ev, "type")),
            json_string_value(json_object_get(ev, "object")));
    }
    assert_string_equal(found, text);
    json_decref(events);
}

/* The newest event says so, of noon of that day. */
static void expect_newest(int32_t day, const char *text)
{
    json_t *events = NULL;
    const json_t *list;
    const json_t *last;

    assert_int_equal(sample_hub_ask(&tellers_hub, API_ACCESS_ADMIN, NULL, "GET",
                         "/v1/networks/default/events", NULL, &events),
        200);
    list = json_object_get(events, "events");
    last = json_array_get(list, json_array_size(list) - 1);
    assert_string_equal(json_string_value(json_object_get(last, "text")), text);
    assert_int_equal(
        json_integer_value(json_object_get(last, "time")), (int64_t)day * 86400 + 43200);
    json_decref(events);
}

/* All that is found, "CODE SUBJECT ". */
static void expect_found(const char *text)
{
    const struct findings *found = health_of(&tellers_hub.hub->reports.health, "default");
    char is[256] = "";

    for (size_t i = 0; i < found->n; i++) {
        size_t len = strlen(is);

        (void)snprintf(is + len, sizeof(is) - len, "%s %s ",
            finding_kinds[found->items[i]->code].code, found->items[i]->subject);
    }
    assert_string_equal(is, text);
}

/* People are told how much of which budget is spent. */
static void test_words_of_events(void **state)
{
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":350}]", 200);
    expect_events(TELLERS_DAY, "BudgetNear(llama) ");
    expect_newest(TELLERS_DAY, "88 % of the day's budget of job llama is spent");
    expect_found("WEFT-COST-001 llama ");
    set_budgets("[{\"bytesPerDay\":155}]", 200);
    expect_events(TELLERS_DAY, "BudgetNear(llama) BudgetSpent(default) ");
    expect_newest(TELLERS_DAY, "200 % of the day's budget of network default is spent");
    expect_found("WEFT-COST-002 default ");
    set_budgets("[{\"bytesPerDay\":350}]", 200);
    expect_events(TELLERS_DAY, "BudgetNear(llama) BudgetSpent(default) BudgetNear(default) ");
    expect_newest(TELLERS_DAY, "88 % of the day's budget of network default is only spent");
    expect_found("WEFT-COST-001 default ");
    set_budgets("[{\"bytesPerDay\":1000}]", 200);
    expect_events(TELLERS_DAY,
        "BudgetNear(llama) BudgetSpent(default) BudgetNear(default) BudgetAgain(default) ");
    expect_newest(TELLERS_DAY, "31 % of the day's budget of network default is only spent");
    expect_found("");
    set_budgets("[{\"bytesPerDay\":350}]", 200);
    expect_events(TELLERS_DAY, "BudgetNear(llama) BudgetSpent(default) BudgetNear(default) "
                               "BudgetAgain(default) BudgetNear(default) ");
    expect_found("WEFT-COST-001 default ");
    /* A budget that is none any more. */
    set_network("budgets", NULL, 200);
    expect_events(TELLERS_DAY, "BudgetNear(llama) BudgetSpent(default) BudgetNear(default) "
                               "BudgetAgain(default) BudgetNear(default) ");
    expect_found("");
}

/* Where records cannot be read it is said, what was judged before stays, and is judged again. */
static void test_a_store_that_fails(void **state)
{
    struct spending *s = &tellers_hub.hub->spending;
    struct store *store = tellers_hub.hub->store;
    int64_t wall_s = (int64_t)TELLERS_DAY * 86400;
    nsec_t now = tellers_hub.now;
    struct captured_log log;

    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    set_budgets("[{\"bytesPerDay\":1000}]", 200);
    store_wait(store);
    spending_tick(s, now, wall_s);
    store_wait(store);
    spending_tick(s, now, wall_s);
    assert_int_equal(spent()->items[0].sum.bytes, 310);
    log_init("hub", LOG_LEVEL_WARNING);
    log = captured_log_begin();
    failing_store_begin(store, STORE_JOB_LIST);
    spending_tick(s, now += SPENDING_EACH, wall_s);
    store_wait(store);
    spending_tick(s, now, wall_s);
    failing_store_end(store);
    failing_store_set_full(store, true);
    spending_tick(s, now += SPENDING_EACH, wall_s);
    spending_tick(s, now, wall_s);
    failing_store_set_full(store, false);
    captured_log_end(&log,
        "warning: hub: the budgets of network default are not looked at: no space left\n"
        "warning: hub: the budgets of network default are not looked at: the store is behind: "
        "4096 requests wait for it, as many as may; try again\n");
    assert_int_equal(spent()->items[0].sum.bytes, 310);
    tellers_tell("b", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":[{\"peer\":\"a\",\"path\":\"direct\","
        "\"job\":\"llama\",\"sent\":10,\"received\":310}]}");
    spending_tick(s, now += SPENDING_EACH, wall_s);
    store_wait(store);
    assert_int_equal(spent()->items[0].sum.bytes, 320);
}

/* Each fifteen seconds at most; while the records of one look are read no other one is begun. */
static void test_when_it_is_looked_at(void **state)
{
    struct spending *s = &tellers_hub.hub->spending;
    struct store *store = tellers_hub.hub->store;
    nsec_t now = tellers_hub.now;

    set_budgets("[{\"bytesPerDay\":1000}]", 200);
    spending_tick(s, now, 0);
    assert_int_equal(store_pending(store), 1);
    spending_tick(s, now + SPENDING_EACH, 0);
    assert_int_equal(store_pending(store), 1);
    store_wait(store);
    spending_tick(s, now, 0);
    spending_tick(s, now + SPENDING_EACH - 1, 0);
    assert_int_equal(store_pending(store), 0);
    spending_tick(s, now + SPENDING_EACH, 0);
    assert_int_equal(store_pending(store), 1);
    store_wait(store);
    assert_int_equal(spending_of(s, "unheard-of")->n, 0);
}

/* Each level is told once; a new day and a greater budget end it. */
static void test_budgets(void **state)
{
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":350},{\"bytesPerDay\":1000}]", 200);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    /* b has not told yet. */
    expect_events(TELLERS_DAY, "");
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    expect_events(TELLERS_DAY, "BudgetNear(llama) ");
    expect_events(TELLERS_DAY, "BudgetNear(llama) ");
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":300},{\"bytesPerDay\":1000}]", 200);
    expect_events(TELLERS_DAY, "BudgetNear(llama) BudgetSpent(llama) ");
    assert_true(spent()->items[0].share > 1);
    assert_int_equal(spent()->items[1].sum.bytes, 310);
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":3000}]", 200);
    expect_events(TELLERS_DAY, "BudgetNear(llama) BudgetSpent(llama) BudgetAgain(llama) ");
    set_budgets("[{\"bytesPerDay\":310}]", 200);
    expect_events(TELLERS_DAY,
        "BudgetNear(llama) BudgetSpent(llama) BudgetAgain(llama) BudgetSpent(default) ");
    expect_events(TELLERS_DAY + 1,
        "BudgetNear(llama) BudgetSpent(llama) BudgetAgain(llama) BudgetSpent(default) "
        "BudgetAgain(default) ");
    /* As YAML has it, where a number with a fraction is a text. */
    set_budgets("[{\"bytesPerDay\":\"310.5\"}]", 200);
    set_budgets("[{\"bytesPerDay\":\"2e12\"}]", 200);
    set_budgets("[{\"bytesPerDay\":\"310.5 GB\"}]", 400);
    set_budgets("[{\"bytesPerDay\":\"0x10\"}]", 400);
    set_budgets("[{\"bytesPerDay\":\"1e\"}]", 400);
    set_budgets("[{\"bytesPerDay\":\" 10\"}]", 400);
    set_budgets("[{\"bytesPerDay\":\"1.\"}]", 400);
    set_budgets("[{\"bytesPerDay\":\"1e999\"}]", 400);
    set_budgets("[{\"bytesPerDay\":310,\"costPerDay\":1}]", 400);
    set_budgets("[{}]", 400);
    set_budgets("[{\"bytesPerDay\":0}]", 400);
    set_budgets("[{\"costPerDay\":1},{\"bytesPerDay\":1}]", 400);
    set_budgets("[{\"job\":\"A b\",\"costPerDay\":1}]", 400);
}

/* Does b's snapshot hold that text? */
static bool is_reported(const char *rate)
{
    char *text = view_snapshot_text(tellers_node("b"));
    bool is_there;

    assert_non_null(text);
    is_there = strstr(text, rate) != NULL;
    free(text);
    return is_there;
}

#define ALL_AT(price)                                                                              \
    "{\"currency\":\"EUR\",\"islands\":[{\"egressPerGB\":" price ",\"crossZonePerGB\":" price "}]" \
    "}"

/* The network's own table counts, from when it is there; and what it costs then is told, too. */
static void test_prices_of_the_network(void **state)
{
    json_t *answer = NULL;

    set_budgets("[{\"job\":\"llama\",\"costPerDay\":0.0003}]", 200);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    expect_events(TELLERS_DAY, "");
    assert_int_equal(spent()->items[0].sum.unpriced, 310);
    set_network("prices", ALL_AT("100"), 200);
    expect_events(TELLERS_DAY, "");
    assert_true(spent()->items[0].sum.money > 3e-5);
    set_network("prices", ALL_AT("1000"), 200);
    expect_events(TELLERS_DAY, "BudgetSpent(llama) ");
    assert_int_equal(sample_hub_ask(&tellers_hub, API_ACCESS_ADMIN, NULL, "GET",
                         "/v1/networks/default/traffic", NULL, &answer),
        200);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(answer, "prices"), "currency")), "EUR");
    json_decref(answer);
    /* All of its nodes see it. */
    assert_true(is_reported("\"currency\":\"EUR\""));
    set_network("prices", NULL, 200);
    expect_events(TELLERS_DAY, "BudgetSpent(llama) BudgetAgain(llama) ");
    assert_false(is_reported("EUR"));
    set_network("prices", "{\"islands\":[]}", 400);
}

/* What a node has told another hub counts, and what it has told both counts once. */
static void test_budget_of_all_hubs(void **state)
{
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = "traffic/default/2026-11-23/a/hub-b",
        .value = TELLERS_A_300,
        .expect = STORE_EXPECT_ANY};

    assert_int_equal(
        store_now_commit(tellers_hub.hub->store, &op, 1, tellers_hub.now, NULL, NULL, NULL), 0);
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":320}]", 200);
    tellers_tell("a", TELLERS_DAY, TELLERS_A_100);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    expect_events(TELLERS_DAY, "BudgetNear(llama) ");
    assert_int_equal(spent()->items[0].sum.bytes, 310);
    tellers_tell("b", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":[{\"peer\":\"a\",\"path\":\"direct\","
        "\"job\":\"llama\",\"sent\":10,\"received\":310}]}");
    expect_events(TELLERS_DAY, "BudgetNear(llama) BudgetSpent(llama) ");
}

#define A_LIES                                                                                     \
    "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":[{\"peer\":\"b\",\"path\":\"direct\","          \
    "\"job\":\"llama\",\"sent\":4000000000000000,\"received\":4000000000000000}]}"

/* A member that says more than the other end bears out spends nobody's budget: neither as a sender
 * nor as a receiver, neither before the other end has told nor after. */
static void test_liar(void **state)
{
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":100000},{\"bytesPerDay\":100000}]", 200);
    tellers_tell("a", TELLERS_DAY, A_LIES);
    expect_events(TELLERS_DAY, "");
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    expect_events(TELLERS_DAY, "");
    /* What b says it has received, with a message or two that may be lost; and a tenth. */
    assert_int_equal(spent()->items[0].sum.bytes, 330 + 65536 + 11);
    assert_int_equal(spent()->items[1].sum.bytes, 330 + 65536 + 11);
}

/* What a node alone can tell of, as it has sent it to a hub, spends the network's budget; and no
 * job's, since hubs are in none. */
static void test_alone(void **state)
{
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":10},{\"bytesPerDay\":1000}]", 200);
    tellers_tell("b", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":[{\"peer\":\"a\",\"path\":\"direct\","
        "\"sent\":1,\"received\":0}]}");
    tellers_tell("a", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":[{\"peer\":\"hub\",\"path\":\"direct\","
        "\"job\":\"llama\",\"sent\":5000000,\"received\":7000000}]}");
    expect_events(TELLERS_DAY, "BudgetSpent(default) ");
    assert_int_equal(spent()->items[0].sum.bytes, 0);
    assert_int_equal(spent()->items[1].sum.alone, 12000000);
}

/* A network that has no budgets any more has none that is spent, and judges nothing. */
static void test_no_budgets(void **state)
{
    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    set_budgets("[{\"bytesPerDay\":1}]", 200);
    expect_events(TELLERS_DAY, "BudgetSpent(default) ");
    assert_int_equal(spent()->n, 1);
    set_budgets("[]", 200);
    expect_events(TELLERS_DAY, "BudgetSpent(default) ");
    assert_int_equal(spent()->n, 0);
    set_budgets("[{\"bytesPerDay\":1,\"cap\":\"1Mbit\"}]", 400);
}

/* Budgets that go while a look is on its way, and come back, are not told by that look; and what it
 * writes to is there until it has ended. */
static void test_budgets_go_while_read(void **state)
{
    struct spending *s = &tellers_hub.hub->spending;
    unsigned *n = &tellers_network()->spec.budgets.n;
    int64_t wall_s = (int64_t)TELLERS_DAY * 86400;

    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    set_budgets("[{\"bytesPerDay\":1000}]", 200);
    store_wait(tellers_hub.hub->store);
    spending_tick(s, tellers_hub.now, wall_s);
    *n = 0;
    spending_tick(s, tellers_hub.now, wall_s);
    assert_int_equal(s->networks.n, 1);
    *n = 1;
    store_wait(tellers_hub.hub->store);
    assert_int_equal(spent()->n, 0);
    spending_tick(s, tellers_hub.now, wall_s);
    spending_tick(s, tellers_hub.now + SPENDING_EACH, wall_s);
    store_wait(tellers_hub.hub->store);
    assert_int_equal(spent()->items[0].sum.bytes, 310);
    *n = 0;
    spending_tick(s, tellers_hub.now + SPENDING_EACH, wall_s);
    assert_int_equal(s->networks.n, 0);
    /* Nothing is left behind, though no network was there any more. */
    keys_free_all(&s->networks);
    assert_null(s->networks.items);
}

/* A look that takes long is followed by a long rest. */
static void test_rest(void **state)
{
    struct spending *s = &tellers_hub.hub->spending;
    nsec_t begun;

    tellers_tell("a", TELLERS_DAY, TELLERS_A_300);
    tellers_tell("b", TELLERS_DAY, TELLERS_B_300);
    set_budgets("[{\"bytesPerDay\":1000}]", 200);
    begun = tellers_hub.now;
    spending_tick(s, begun, (int64_t)TELLERS_DAY * 86400);
    store_wait(tellers_hub.hub->store);
    assert_int_equal(spent()->items[0].sum.bytes, 310);
    /* It is seen 3 s later that it has ended: two of them it has taken, and it rests for 100. */
    spending_tick(s, begun + 3 * NSEC_PER_SEC, (int64_t)TELLERS_DAY * 86400);
    tellers_tell("a", TELLERS_DAY,
        "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":[{\"peer\":\"b\",\"path\":\"direct\","
        "\"job\":\"llama\",\"sent\":305,\"received\":10}]}");
    spending_tick(s, begun + 99 * NSEC_PER_SEC, (int64_t)TELLERS_DAY * 86400);
    store_wait(tellers_hub.hub->store);
    assert_int_equal(spent()->items[0].sum.bytes, 310);
    spending_tick(s, begun + 100 * NSEC_PER_SEC, (int64_t)TELLERS_DAY * 86400);
    store_wait(tellers_hub.hub->store);
    assert_int_equal(spent()->items[0].sum.bytes, 315);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_budgets, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_words_of_events, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_a_store_that_fails, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_when_it_is_looked_at, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_prices_of_the_network, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_budget_of_all_hubs, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_liar, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_alone, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_no_budgets, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_budgets_go_while_read, tellers_enter, tellers_leave),
        cmocka_unit_test_setup_teardown(test_rest, tellers_enter, tellers_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
