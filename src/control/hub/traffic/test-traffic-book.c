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

#include "hub/traffic/spending.h"
#include "hub/traffic/traffic_book.h"
#include "hub/traffic/traffic_key.h"
#include "hub/traffic/traffic_read.h"
#include "hub/watch/view.h"
#include "store/store_now.h"
#include "test/support/sample_hub.h"

#define DAY 20780

static struct sample_hub hub;

static struct model_network *network(void)
{
    return sample_hub_network(&hub);
}

static struct model_node *node(const char *name)
{
    return sample_hub_node(&hub, name);
}

/* Nodes that are added by their keys are stock WireGuards, which never tell anything. */
static void give_agents(void)
{
    struct model_network *net = network();

    for (size_t i = 0; net && i < net->nodes.n; i++)
        model_node_at(net, i)->pub.spec.stock = false;
}

static int enter(void **state)
{
    hub = (struct sample_hub){.now = NSEC_PER_SEC};
    sample_hub_make_dir(&hub, true);
    sample_hub_open(&hub);
    sample_hub_add_node(&hub, "a");
    sample_hub_add_node(&hub, "b");
    give_agents();
    return 0;
}

static int leave(void **state)
{
    sample_hub_close(&hub);
    sample_hub_remove_dir(&hub);
    return 0;
}

static void restart(void)
{
    sample_hub_close(&hub);
    sample_hub_open(&hub);
    give_agents();
}

static struct traffic_book *book(void)
{
    return &hub.hub->traffic;
}

/* A node tells the hub, at noon of @today. */
static void tell(const char *who, int32_t today, const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    struct traffic t;

    assert_non_null(json);
    assert_int_equal(traffic_decode(&t, json, "test", NULL), 0);
    traffic_book_take(book(), node(who), &t, hub.now, (int64_t)today * 86400 + 43200);
    traffic_deinit(&t);
    json_decref(json);
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

        (void)snprintf(f->text + len, sizeof(f->text) - len, "%+d:%s>%s/%s/%s=%llu ", day - DAY,
            row->from, row->to, row->job, path_kind_name(row->path),
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
    struct traffic_query query = {.network = "default", .since = since, .until = until};
    struct found found = {.text = ""};
    struct traffic_reader reader = {.on_day = on_day, .on_end = on_end, .ctx = &found};
    struct err e = ERR_NULL;

    /* Records that are being read are not written yet. */
    store_wait(hub.hub->store);
    assert_int_equal(traffic_read(book(), &query, &reader, hub.now, &e), 0);
    store_wait(hub.hub->store);
    assert_true(found.has_ended);
    assert_string_equal(found.text, text);
}

static void expect(const char *text)
{
    expect_between(DAY, DAY, text);
}

#define A_100                                                                                      \
    "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":"                                               \
    "[{\"peer\":\"b\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":100,\"received\":10}]}"
#define A_300                                                                                      \
    "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":"                                               \
    "[{\"peer\":\"b\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":300,\"received\":10}]}"

/* What b says of the same: it bears a out. */
#define B_300                                                                                      \
    "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":"                                               \
    "[{\"peer\":\"a\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":10,\"received\":300}]}"

/* ---- the tests ------------------------------------------------------------------------------ */

static void test_twice_and_late(void **state)
{
    assert_int_equal(traffic_day(INT64_C(1795392000)), DAY);
    tell("a", DAY, A_300);
    tell("a", DAY, A_300);
    tell("a", DAY, A_100);
    expect("+0:a>b/llama/direct=300 +0:b>a/llama/direct=10 ");
    assert_int_equal(network()->sent_bytes[PATH_KIND_DIRECT], 300);
}

/* A hub that restarts has what it had; what it is told again counts once, and so does what comes
 * while the record is still being read. */
static void test_restart(void **state)
{
    tell("a", DAY, A_100);
    restart();
    expect("+0:a>b/llama/direct=100 +0:b>a/llama/direct=10 ");
    tell("a", DAY, A_100);
    tell("a", DAY, A_300);
    expect("+0:a>b/llama/direct=300 +0:b>a/llama/direct=10 ");
    /* The counter has what was told since the start. */
    assert_int_equal(network()->sent_bytes[PATH_KIND_DIRECT], 200);
}

/* Both ends are heard. */
static void test_two_ends(void **state)
{
    tell("a", DAY, A_300);
    tell("b", DAY,
        "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":[{\"peer\":\"a\",\"path\":\"relay\","
        "\"job\":\"llama\",\"sent\":50,\"received\":299},{\"peer\":\"hub\",\"path\":\"direct\","
        "\"sent\":3,"
        "\"received\":4}]}");
    expect("+0:a>b/llama/direct=300 +0:b>a/llama/relay=50 +0:b>hub//direct=3 +0:hub>b//direct=4 ");
}

/* A node that has lost its state: both meters count. One with too many peers is believed alone. */
static void test_meters_and_others(void **state)
{
    tell("a", DAY, A_100);
    tell("a", DAY,
        "{\"day\":\"2026-11-23\",\"meter\":8,\"flows\":[{\"peer\":\"b\",\"path\":\"direct\","
        "\"job\":\"llama\",\"sent\":1,\"received\":0},{\"path\":\"lan\",\"sent\":70,"
        "\"received\":0}]}");
    tell("b", DAY,
        "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":[{\"peer\":\"a\",\"path\":\"relay\","
        "\"sent\":10,\"received\":5000}]}");
    expect("+0:a>//lan=70 +0:a>b/llama/direct=101 +0:b>a//relay=10 ");
}

/* A hub beside this one has its own record of the same node. */
static void test_other_hub(void **state)
{
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = "traffic/default/2026-11-23/a/hub-b",
        .value = A_300,
        .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(hub.hub->store, &op, 1, hub.now, NULL, NULL, NULL), 0);
    tell("a", DAY, A_100);
    expect("+0:a>b/llama/direct=300 +0:b>a/llama/direct=10 ");
}

/* Strangers' names, days to come and days long gone are not kept. */
static void test_what_is_left_out(void **state)
{
    tell("a", DAY,
        "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":[{\"peer\":\"x\",\"path\":\"lan\","
        "\"sent\":1,\"received\":1}]}");
    tell("a", DAY - 2, A_100);
    tell("a", DAY + TRAFFIC_BOOK_DAYS_BACK + 1, A_100);
    expect("");
    assert_int_equal(book()->n_left_out, 3);
    tell("a", DAY + TRAFFIC_BOOK_DAYS_BACK, A_100);
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
        store_now_list(hub.hub->store, TRAFFIC_KEY_PREFIX, count_one, &n, NULL, NULL), 0);
    return n;
}

static void tick(int32_t today)
{
    struct err e = ERR_NULL;

    for (unsigned i = 0; i < 4; i++) {
        hub.now += TRAFFIC_BOOK_FLUSH;
        assert_int_equal(traffic_book_tick(book(), hub.now, (int64_t)today * 86400 + 43200, &e), 0);
        store_wait(hub.hub->store);
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

    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "POST", "/v1/networks",
                         "{\"name\":\"other\",\"cidr4\":\"10.99.0.0/16\"}", NULL),
        201);
    /* Four nodes with the hubs': three are of the first network. */
    book()->max_flows = 8;
    for (unsigned i = 1; i <= 4; i++) {
        (void)snprintf(text, sizeof(text), flows, i);
        tell("a", DAY, text);
    }
    assert_int_equal(book()->n_left_out, 2);
    assert_int_equal(book()->shares.n, 1);
    tick(DAY);
    hub.now += 1000 * NSEC_PER_SEC;
    tick(DAY);
    assert_int_equal(book()->shares.n, 0);
}

/* As many sums as a record takes, with the longest names and numbers, fit a value of the store. */
static void test_longest_record(void **state)
{
    json_t *json = json_pack("{s:s, s:[]}", "day", "2026-11-23", "flows");
    char name[NAME_MAX_LEN + 1] = "";
    struct traffic t;

    memset(name, 'n', NAME_MAX_LEN);
    sample_hub_add_node(&hub, name);
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
    traffic_book_take(book(), node("a"), &t, hub.now, (int64_t)DAY * 86400 + 43200);
    traffic_deinit(&t);
    assert_int_equal(book()->n_left_out, 2 * TRAFFIC_FLOWS_MAX - TRAFFIC_BOOK_FLOWS_MAX);
    tick(DAY);
    assert_int_equal(count_records(), 1);
}

static void test_days(void **state)
{
    tell("a", DAY, A_100);
    tell("a", DAY + 1,
        "{\"day\":\"2026-11-24\",\"meter\":7,\"flows\":[{\"peer\":\"b\",\"path\":\"lan\","
        "\"sent\":5,\"received\":0}]}");
    tick(DAY + 1);
    assert_int_equal(count_records(), 2);
    expect_between(DAY, DAY + 1, "+0:a>b/llama/direct=100 +0:b>a/llama/direct=10 +1:a>b//lan=5 ");
    expect_between(DAY + 1, DAY + 1, "+1:a>b//lan=5 ");
    expect_between(DAY + 2, DAY + 9, "");
    hub.now += 1000 * NSEC_PER_SEC;
    tick(DAY + TRAFFIC_BOOK_DAYS);
    assert_int_equal(book()->entries.n, 0);
    assert_int_equal(count_records(), 1);
    expect_between(DAY, DAY + 1, "+1:a>b//lan=5 ");
}

/* ---- budgets -------------------------------------------------------------------------------- */

/* @field: of the Network's spec; @value: JSON; NULL: it is to be absent. */
static void set_network(const char *field, const char *value, int status)
{
    json_t *net = NULL;
    char *body;

    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "GET",
                         "/v1/networks/default/objects/Network/default", NULL, &net),
        200);
    (void)json_object_del(net, "status");
    if (value)
        (void)json_object_set_new(json_object_get(net, "spec"), field, json_loads(value, 0, NULL));
    else
        (void)json_object_del(json_object_get(net, "spec"), field);
    body = json_dumps(net, 0);
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "PUT",
                         "/v1/networks/default/objects/Network/default", body, NULL),
        status);
    free(body);
    json_decref(net);
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

    hub.now += SPENDING_EACH;
    store_wait(hub.hub->store);
    /* The first one may have to read, and then the second one judges. */
    for (i = 0; i < 2; i++) {
        spending_tick(&hub.hub->spending, hub.now, (int64_t)today * 86400 + 43200);
        store_wait(hub.hub->store);
    }
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "GET",
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

/* Each level is told once; a new day and a greater budget end it. */
static void test_budgets(void **state)
{
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":350},{\"bytesPerDay\":1000}]", 200);
    tell("a", DAY, A_300);
    /* b has not told yet. */
    expect_events(DAY, "");
    tell("b", DAY, B_300);
    expect_events(DAY, "BudgetNear(llama) ");
    expect_events(DAY, "BudgetNear(llama) ");
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":300},{\"bytesPerDay\":1000}]", 200);
    expect_events(DAY, "BudgetNear(llama) BudgetSpent(llama) ");
    assert_true(network()->spent.items[0].share > 1);
    assert_int_equal(network()->spent.items[1].sum.bytes, 310);
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":3000}]", 200);
    expect_events(DAY, "BudgetNear(llama) BudgetSpent(llama) BudgetAgain(llama) ");
    set_budgets("[{\"bytesPerDay\":310}]", 200);
    expect_events(
        DAY, "BudgetNear(llama) BudgetSpent(llama) BudgetAgain(llama) BudgetSpent(default) ");
    expect_events(DAY + 1,
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
static bool is_told(const char *rate)
{
    char *text = view_snapshot_text(node("b"));
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
    tell("a", DAY, A_300);
    tell("b", DAY, B_300);
    expect_events(DAY, "");
    assert_int_equal(network()->spent.items[0].sum.unpriced, 310);
    set_network("prices", ALL_AT("100"), 200);
    expect_events(DAY, "");
    assert_true(network()->spent.items[0].sum.money > 3e-5);
    set_network("prices", ALL_AT("1000"), 200);
    expect_events(DAY, "BudgetSpent(llama) ");
    assert_int_equal(sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "GET",
                         "/v1/networks/default/traffic", NULL, &answer),
        200);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(answer, "prices"), "currency")), "EUR");
    json_decref(answer);
    /* All of its nodes see it. */
    assert_true(is_told("\"currency\":\"EUR\""));
    set_network("prices", NULL, 200);
    expect_events(DAY, "BudgetSpent(llama) BudgetAgain(llama) ");
    assert_false(is_told("EUR"));
    set_network("prices", "{\"islands\":[]}", 400);
}

/* What a node has told another hub counts, and what it has told both counts once. */
static void test_budget_of_all_hubs(void **state)
{
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = "traffic/default/2026-11-23/a/hub-b",
        .value = A_300,
        .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(hub.hub->store, &op, 1, hub.now, NULL, NULL, NULL), 0);
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":320}]", 200);
    tell("a", DAY, A_100);
    tell("b", DAY, B_300);
    expect_events(DAY, "BudgetNear(llama) ");
    assert_int_equal(network()->spent.items[0].sum.bytes, 310);
    tell("b", DAY,
        "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":[{\"peer\":\"a\",\"path\":\"direct\","
        "\"job\":\"llama\",\"sent\":10,\"received\":310}]}");
    expect_events(DAY, "BudgetNear(llama) BudgetSpent(llama) ");
}

#define A_LIES                                                                                     \
    "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":[{\"peer\":\"b\",\"path\":\"direct\","          \
    "\"job\":\"llama\",\"sent\":4000000000000000,\"received\":4000000000000000}]}"

/* A member that says more than the other end bears out spends nobody's budget: neither as a sender
 * nor as a receiver, neither before the other end has told nor after. */
static void test_liar(void **state)
{
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":100000},{\"bytesPerDay\":100000}]", 200);
    tell("a", DAY, A_LIES);
    expect_events(DAY, "");
    tell("b", DAY, B_300);
    expect_events(DAY, "");
    /* What b says it has received, with a message or two that may be lost; and a tenth. */
    assert_int_equal(network()->spent.items[0].sum.bytes, 330 + 65536 + 11);
    assert_int_equal(network()->spent.items[1].sum.bytes, 330 + 65536 + 11);
    /* Who goes on to say so is seen, each way once; the other one could be late until then. */
    hub.now += TRAFFIC_DISPUTE_AFTER;
    expect_events(DAY, "TrafficDisputed(a--b) TrafficDisputed(a--b) ");
    expect_events(DAY, "TrafficDisputed(a--b) TrafficDisputed(a--b) ");
}

/* What a node alone can tell of, as it has sent it to a hub, spends the network's budget, but slows
 * nobody else; and no job's, since hubs are in none. */
static void test_alone(void **state)
{
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":10,\"cap\":\"1Mbit\"},"
                "{\"bytesPerDay\":1000,\"cap\":\"2Mbit\"}]",
        200);
    tell("b", DAY,
        "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":[{\"peer\":\"a\",\"path\":\"direct\","
        "\"sent\":1,\"received\":0}]}");
    tell("a", DAY,
        "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":[{\"peer\":\"hub\",\"path\":\"direct\","
        "\"job\":\"llama\",\"sent\":5000000,\"received\":7000000}]}");
    expect_events(DAY, "BudgetSpent(default) ");
    assert_int_equal(network()->spent.items[0].sum.bytes, 0);
    assert_int_equal(network()->spent.items[1].sum.alone, 12000000);
    assert_int_equal(node("a")->cap, 2000000);
    assert_int_equal(node("b")->cap, 0);
}

/* What the nodes of the first budget's job may send each other, as they are told; 0: any. */
static json_int_t cap_told(void)
{
    json_t *json = spent_encode_one(&network()->spent.items[0]);
    json_int_t cap = json_integer_value(json_object_get(json, "capBitsPerSecond"));

    assert_int_equal(json_integer_value(json_object_get(json, "bytesPerDay")),
        network()->pub.spec.budgets.items[0].bytes);
    json_decref(json);
    return cap;
}

/* A job's budget with a cap slows its nodes towards each other, until there is some of it again.
 * The nodes themselves may send as before. */
static void test_job_cap(void **state)
{
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":100,\"cap\":\"2Mbit\"}]", 200);
    tell("a", DAY,
        "{\"day\":\"2026-11-23\",\"meter\":7,\"flows\":"
        "[{\"peer\":\"b\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":90,\"received\":0}]}");
    tell("b", DAY,
        "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":"
        "[{\"peer\":\"a\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":0,\"received\":90}]}");
    expect_events(DAY, "BudgetNear(llama) ");
    assert_int_equal(cap_told(), 0);
    tell("a", DAY, A_300);
    tell("b", DAY,
        "{\"day\":\"2026-11-23\",\"meter\":9,\"flows\":"
        "[{\"peer\":\"a\",\"path\":\"direct\",\"job\":\"llama\",\"sent\":0,\"received\":300}]}");
    expect_events(DAY, "BudgetNear(llama) BudgetSpent(llama) ");
    assert_int_equal(cap_told(), 2000000);
    assert_int_equal(node("a")->cap, 0);
    assert_false(is_told("\"rate\":"));
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":10000,\"cap\":\"2Mbit\"}]", 200);
    expect_events(DAY, "BudgetNear(llama) BudgetSpent(llama) BudgetAgain(llama) ");
    assert_int_equal(cap_told(), 0);
    set_budgets("[{\"job\":\"llama\",\"bytesPerDay\":1,\"cap\":\"2Mbit\"}]", 200);
    expect_events(
        DAY, "BudgetNear(llama) BudgetSpent(llama) BudgetAgain(llama) BudgetSpent(llama) ");
    assert_int_equal(cap_told(), 2000000);
    expect_events(DAY + 1,
        "BudgetNear(llama) BudgetSpent(llama) BudgetAgain(llama) BudgetSpent(llama) "
        "BudgetAgain(llama) ");
    assert_int_equal(cap_told(), 0);
}

/* A network's budget with a cap slows all that each node sends. A smaller rate of an
 * administrator's stays. */
static void test_caps(void **state)
{
    tell("a", DAY, A_300);
    tell("b", DAY, B_300);
    set_budgets("[{\"bytesPerDay\":1,\"cap\":\"1Mbit\"}]", 200);
    expect_events(DAY, "BudgetSpent(default) ");
    assert_int_equal(node("a")->cap, 1000000);
    assert_true(is_told("\"rate\":\"1Mbit\""));
    assert_int_equal(network()->spent.items[0].cap, 1000000);
    set_budgets("[]", 200);
    expect_events(DAY, "BudgetSpent(default) ");
    assert_int_equal(node("a")->cap, 0);
    assert_false(is_told("\"rate\":"));
    set_budgets("[{\"bytesPerDay\":1,\"cap\":\"fast\"}]", 400);
    set_budgets("[{\"bytesPerDay\":1,\"cap\":\"1kbit\"}]", 400);
}

static void test_network_goes(void **state)
{
    tell("a", DAY, A_100);
    tick(DAY);
    assert_int_equal(count_records(), 1);
    tell("a", DAY, A_300);
    assert_int_equal(
        sample_hub_ask(&hub, API_ACCESS_ADMIN, NULL, "DELETE", "/v1/networks/default", NULL, NULL),
        204);
    tick(DAY);
    assert_int_equal(count_records(), 0);
}

static void test_keys(void **state)
{
    static const char *const wrong[] = {"traffic/", "traffic/a/2026-11-23/b",
        "traffic/a/2026-11-31/b/c", "traffic/a/2026-11-23/b/c/d", "traffic//2026-11-23/b/c",
        "edge/a/2026-11-23/b/c"};
    struct traffic_key key = {.network = "n", .day = DAY, .node = "a", .hub = "hub"};
    struct traffic_key again;
    char text[RECORD_KEY_MAX];

    assert_string_equal(traffic_key_format(text, &key), "traffic/n/2026-11-23/a/hub");
    assert_true(traffic_key_parse(&again, text));
    assert_int_equal(again.day, DAY);
    assert_string_equal(again.hub, "hub");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        if (traffic_key_parse(&again, wrong[i]))
            fail_msg("%s", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_twice_and_late, enter, leave),
        cmocka_unit_test_setup_teardown(test_restart, enter, leave),
        cmocka_unit_test_setup_teardown(test_two_ends, enter, leave),
        cmocka_unit_test_setup_teardown(test_meters_and_others, enter, leave),
        cmocka_unit_test_setup_teardown(test_other_hub, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_left_out, enter, leave),
        cmocka_unit_test_setup_teardown(test_fair_memory, enter, leave),
        cmocka_unit_test_setup_teardown(test_longest_record, enter, leave),
        cmocka_unit_test_setup_teardown(test_days, enter, leave),
        cmocka_unit_test_setup_teardown(test_budgets, enter, leave),
        cmocka_unit_test_setup_teardown(test_prices_of_the_network, enter, leave),
        cmocka_unit_test_setup_teardown(test_budget_of_all_hubs, enter, leave),
        cmocka_unit_test_setup_teardown(test_liar, enter, leave),
        cmocka_unit_test_setup_teardown(test_alone, enter, leave),
        cmocka_unit_test_setup_teardown(test_job_cap, enter, leave),
        cmocka_unit_test_setup_teardown(test_caps, enter, leave),
        cmocka_unit_test_setup_teardown(test_network_goes, enter, leave),
        cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
