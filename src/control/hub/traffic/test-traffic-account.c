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

/* Who has told nothing: "hub" never does, "f" is gone, the others might. */
static enum traffic_voice voice_of(
    const void *ctx, const char *name, uint64_t others[static TRAFFIC_END_N])
{
    if (strcmp(name, "hub") == 0)
        return TRAFFIC_VOICE_MUTE;
    return strcmp(name, "f") == 0 ? TRAFFIC_VOICE_GONE : TRAFFIC_VOICE_AGENT;
}

static const struct traffic_facts ends = {.voice = voice_of};

/* The same, of the day as a whole. */
struct twin {
    struct traffic_spent sums[BUDGETS_MAX];
    struct price_sum own[NODES][BUDGETS_MAX];
};

static void add_row(struct twin *twin, const struct day *d, const struct traffic_row *row)
{
    for (unsigned k = 0; k < budgets.n; k++) {
        struct price_sum sum = {.alone = row->teller ? row->bytes : 0};

        if (row->word == TRAFFIC_WORD_WAITING ||
            (budgets.items[k].job[0] && strcmp(budgets.items[k].job, row->job) != 0))
            continue;
        price_add(&sum, &d->facts, row->from, row->to, row->path, row->bytes);
        price_sum_add(&twin->sums[k].all, &sum);
        if (!row->teller)
            price_sum_add(&twin->sums[k].agreed, &sum);
        for (unsigned who = 0; who < NODES; who++) {
            bool is_own = row->teller && strcmp(row->teller, names[who]) == 0;

            if (is_own && strcmp(names[who], row->from) == 0)
                price_sum_add(&twin->own[who][k], &sum);
        }
    }
}

static void expect_sum(const struct price_sum *a, const struct price_sum *b)
{
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->alone, b->alone);
    assert_int_equal(a->unpriced, b->unpriced);
    assert_true(a->money - b->money < 1e-6 && b->money - a->money < 1e-6);
}

static void expect_same(struct day *d)
{
    struct traffic_prices by = {.facts = &d->facts, .budgets = &budgets, .ends = &ends};
    struct traffic_spent sums[BUDGETS_MAX];
    struct traffic_node told[NODES];
    struct twin twin = {.sums = {{.all = {.bytes = 0}}}};
    struct traffic_edges *made;
    size_t n = 0;

    for (unsigned i = 0; i < NODES; i++)
        if (d->nodes[i].traffic.n > 0)
            told[n++] = d->nodes[i];
    assert_int_equal(traffic_account_price(&d->account, &by, sums), 0);
    assert_int_equal(traffic_edges_make(told, n, &ends, &made), 0);
    for (size_t i = 0; i < made->n; i++)
        add_row(&twin, d, &made->rows[i]);
    assert_int_equal(d->account.disputes.n, made->n_disputes);
    traffic_edges_free(made);
    for (unsigned k = 0; k < budgets.n; k++) {
        expect_sum(&sums[k].all, &twin.sums[k].all);
        expect_sum(&sums[k].agreed, &twin.sums[k].agreed);
        for (unsigned who = 0; who < NODES; who++) {
            struct price_sum own = traffic_account_own(&d->account, names[who], k);

            expect_sum(&own, &twin.own[who][k]);
        }
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
    struct traffic_flow f = {
        .meter = 1, .peer = (char *)"hub", .job = "", .path = PATH_KIND_DIRECT};
    struct price_facts facts = {.prices = &prices};
    struct traffic_prices by = {.facts = &facts, .budgets = &budgets, .ends = &ends};
    struct traffic_spent sums[BUDGETS_MAX];
    struct traffic_account a;

    traffic_account_init(&a, 0, 7);
    f.sent = 5;
    f.received = 3;
    traffic_account_take(&a, "a", &f);
    assert_int_equal(traffic_account_price(&a, &by, sums), 0);
    assert_int_equal(sums[0].all.bytes, 8);
    /* The same again, and less. */
    traffic_account_take(&a, "a", &f);
    f.sent = 4;
    traffic_account_take(&a, "a", &f);
    assert_true(list_is_empty(&a.unsettled));
    f.sent = 6;
    traffic_account_take(&a, "a", &f);
    /* About a; the hub is the other sender. */
    assert_ptr_equal(a.unsettled.next, a.unsettled.prev);
    assert_int_equal(traffic_account_price(&a, &by, sums), 0);
    assert_int_equal(sums[0].all.bytes, 9);
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
