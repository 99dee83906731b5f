/*
 * test-traffic-account.c - what was moved, taken flow by flow, against the same day as a whole:
 * traffic_edges_make() and price_add().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "hub/traffic/traffic_account.h"
#include "hub/traffic/traffic_edges.h"

#define NODES  7
#define JOBS   3
#define STEPS  400
#define ROUNDS 20

static const char *const names[NODES] = {"a", "b", "c", "d", "e", "f", "hub"};
static const char *const jobs[JOBS] = {"", "llama", "mixtral"};

static const struct budgets budgets = {
    .items = {{.job = "", .bytes = 1}, {.job = "llama", .bytes = 1}, {.job = "none", .bytes = 1}},
    .n = 3};

static const struct prices prices = {.islands = {{.name = "",
                                                     .egress = 0.09,
                                                     .has_egress = true,
                                                     .cross_zone = 0.01,
                                                     .has_cross_zone = true},
                                         {.name = "east", .egress = 0.05, .has_egress = true}},
    .n_islands = 2};

/* What the nodes have said, and the account of it. */
struct day {
    struct traffic_node nodes[NODES];
    struct traffic_account account;
    struct price_facts facts;
};

/* A node says that a sum is so much now; sometimes less than before, as an old report has it. */
static void say(struct day *d, struct rng *rng)
{
    struct traffic_node *node = &d->nodes[rng_u32(rng) % NODES];
    const char *peer = rng_u32(rng) % 16 == 0 ? "" : names[rng_u32(rng) % NODES];
    struct traffic_flow told = {.meter = 1 + rng_u32(rng) % 2,
        .peer = (char *)peer,
        .job = jobs[rng_u32(rng) % JOBS],
        .path = rng_u32(rng) % 2 ? PATH_KIND_DIRECT : PATH_KIND_RELAY,
        .sent = rng_u32(rng),
        .received = rng_u32(rng)};
    struct traffic one = {.flows = &told, .n = 1};

    assert_int_equal(traffic_merge(&node->traffic, &one, SIZE_MAX), 0);
    traffic_account_take(&d->account, node->name, &told);
}

static void expect_same(struct day *d)
{
    struct price_sum sums[BUDGETS_MAX];
    struct price_sum twin[BUDGETS_MAX] = {{.bytes = 0}};
    bool has_sent[NODES][BUDGETS_MAX] = {{false}};
    struct traffic_row *made;
    size_t n;

    assert_int_equal(traffic_account_price(&d->account, &d->facts, &budgets, sums), 0);
    assert_int_equal(traffic_edges_make(d->nodes, NODES, &made, &n), 0);
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < budgets.n; k++) {
            if (budgets.items[k].job[0] && strcmp(budgets.items[k].job, made[i].job) != 0)
                continue;
            price_add(&twin[k], &d->facts, made[i].from, made[i].to, made[i].path, made[i].bytes);
            for (unsigned who = 0; who < NODES; who++)
                has_sent[who][k] |= strcmp(names[who], made[i].from) == 0;
        }
    free(made);
    for (unsigned k = 0; k < budgets.n; k++) {
        assert_int_equal(sums[k].bytes, twin[k].bytes);
        assert_int_equal(sums[k].unpriced, twin[k].unpriced);
        assert_true(sums[k].money - twin[k].money < 1e-6 && twin[k].money - sums[k].money < 1e-6);
        for (unsigned who = 0; who < NODES; who++)
            assert_int_equal(
                traffic_account_has_sent(&d->account, names[who], k), has_sent[who][k]);
    }
}

static void test_twin(void **state)
{
    uint64_t seed = 20260101;
    struct rng rng = rng_seeded(&seed);
    json_t *islands = json_pack("{s:s, s:s}", "a", "east", "b", "east");
    json_t *hubs = json_pack("[s]", "hub");

    for (unsigned round = 0; round < ROUNDS; round++) {
        struct day d = {.facts = {.prices = &prices, .hub = "hub", .hubs = hubs}};

        for (unsigned i = 0; i < NODES; i++)
            (void)snprintf(d.nodes[i].name, sizeof(d.nodes[i].name), "%s", names[i]);
        traffic_account_init(&d.account, 0, rng_u64(&rng));
        for (unsigned step = 0; step < STEPS; step++) {
            say(&d, &rng);
            if (rng_u32(&rng) % 8 == 0)
                expect_same(&d);
        }
        /* Other islands are other prices, for all that was moved before. */
        d.facts.islands = islands;
        traffic_account_forget_prices(&d.account);
        expect_same(&d);
        traffic_account_deinit(&d.account);
        for (unsigned i = 0; i < NODES; i++)
            traffic_deinit(&d.nodes[i].traffic);
    }
    json_decref(islands);
    json_decref(hubs);
}

/* Nobody is settled again about whom nothing was said. */
static void test_only_who_has_moved(void **state)
{
    struct traffic_flow f = {.meter = 1, .peer = (char *)"b", .job = "", .path = PATH_KIND_DIRECT};
    struct price_facts facts = {.prices = &prices};
    struct price_sum sums[BUDGETS_MAX];
    struct traffic_account a;

    traffic_account_init(&a, 0, 7);
    f.sent = 5;
    f.received = 3;
    traffic_account_take(&a, "a", &f);
    assert_int_equal(traffic_account_price(&a, &facts, &budgets, sums), 0);
    assert_int_equal(sums[0].bytes, 8);
    /* The same again, and less. */
    traffic_account_take(&a, "a", &f);
    f.sent = 4;
    traffic_account_take(&a, "a", &f);
    assert_true(list_is_empty(&a.unsettled));
    f.sent = 6;
    traffic_account_take(&a, "a", &f);
    assert_ptr_equal(a.unsettled.next, a.unsettled.prev);
    assert_int_equal(traffic_account_price(&a, &facts, &budgets, sums), 0);
    assert_int_equal(sums[0].bytes, 9);
    traffic_account_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twin),
        cmocka_unit_test(test_only_who_has_moved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
