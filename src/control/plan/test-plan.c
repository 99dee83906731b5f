/* test-plan.c - plans: what fits, who meets how often, what it costs, and when the answer is no. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "plan/plan.h"

#define GBIT 1e9

/* @n nodes in islands of @each; inside 0.2 ms and 100 Gbit/s, between as given. */
static void make(struct matrix *m, size_t n, size_t each, double rtt, double bps)
{
    assert_int_equal(matrix_new(m, n), 0);
    for (size_t a = 0; a < n; a++) {
        (void)snprintf(m->nodes[a].name, sizeof(m->nodes[a].name), "n%zu", a);
        (void)snprintf(m->nodes[a].island, sizeof(m->nodes[a].island), "i%zu", a / each);
        for (size_t b = 0; b < n; b++) {
            bool in = a / each == b / each;

            if (a != b)
                m->links[a * n + b] = (struct matrix_link){.rtt = in ? 0.0002 : rtt,
                    .kept = 1,
                    .one_bps = in ? 100 * GBIT : bps,
                    .many_bps = in ? 100 * GBIT : bps};
        }
    }
}

static struct prices prices;

static struct plan_options options_for(double params)
{
    prices_default(&prices);
    return (struct plan_options){.model = {.params = params, .dtype = MODEL_BF16},
        .gpu = model_gpu_find("h100"),
        .gpus = 8,
        .share = 0.1,
        .efficiency = 0.4,
        .transport = SYNC_NCCL,
        .prices = &prices};
}

static void test_guesses(void **state)
{
    struct model m = {.params = 70e9, .dtype = MODEL_BF16};

    model_guess(&m);
    /* Llama 2 of 70 billion weights has 80 layers of width 8192. */
    assert_in_range((uintmax_t)m.layers, 76, 88);
    assert_in_range((uintmax_t)m.hidden, 7900, 8500);
    assert_in_range((uintmax_t)m.batch, 950, 1000);
    m = (struct model){.params = 70e9, .layers = 80, .hidden = 8192, .batch = 3};
    model_guess(&m);
    assert_true(m.layers == 80 && m.hidden == 8192 && m.batch == 3);
}

static void test_memory(void **state)
{
    struct model m = {.params = 1e9, .dtype = MODEL_BF16};
    struct model_cut c = {1, 1, 1, 1, 1, 1, false, false};
    double alone;

    model_guess(&m);
    /* 16 bytes a weight, and two of its layer's. */
    assert_true(fabs(model_memory(&m, &c).states - 16e9) < 1e6);
    alone = model_memory(&m, &c).activations;
    c.tensor = 2;
    assert_true(fabs(model_memory(&m, &c).activations - alone / 2) < 1);
    c.recompute = true;
    assert_true(model_memory(&m, &c).activations < alone / 4);
    c = (struct model_cut){1, 1, 1, 1, 8, 8, true, false};
    assert_true(model_memory(&m, &c).states < 3e9);
}

/* 70 billion weights on 16 H100 in one island: they fit, and a step is a synchronous one. */
static void test_one_island(void **state)
{
    struct plan_options opt = options_for(70e9);
    struct matrix m = MATRIX_NULL;
    struct plan p = PLAN_NULL;

    opt.fabric_bps = 3200 * GBIT;
    make(&m, 4, 4, 0, 0);
    assert_int_equal(plan_make(&p, &m, &opt, NULL), 0);
    assert_true(p.inside.fits && p.is_synchronous && plan_is_good(&p));
    assert_true(p.inside.memory.total <= 80e9);
    assert_int_equal(
        p.inside.cut.tensor * p.inside.cut.pipeline * p.inside.cut.sequence * p.inside.cut.replicas,
        32);
    assert_true(p.inside.step > p.inside.work);
    assert_int_equal(p.n_edges, 0);
    plan_deinit(&p);

    /* A trillion weights do not. */
    opt = options_for(1e12);
    assert_int_equal(plan_make(&p, &m, &opt, NULL), 0);
    assert_false(p.inside.fits);
    assert_false(plan_is_good(&p));
    plan_deinit(&p);
    matrix_deinit(&m);
}

/* Two islands, 100 Mbit/s and 50 ms between: no, and every so many steps instead. */
static void test_across_a_wan(void **state)
{
    struct plan_options opt = options_for(7e9);
    struct matrix m = MATRIX_NULL;
    struct plan p = PLAN_NULL;
    struct str out = STR_NULL;
    const struct plan_exchange *x;

    make(&m, 4, 2, 0.05, 100e6);
    assert_int_equal(plan_make(&p, &m, &opt, NULL), 0);
    assert_true(p.inside.fits);
    assert_false(p.is_synchronous);
    /* 14 GB in two halves of 7 GB each way at 90 Mbit/s: more than 20 minutes for a step. */
    assert_int_equal(p.best, PLAN_HIERARCHICAL);
    assert_true(p.average_s[p.best] > 1200 && p.average_share[p.best] > 0.9);
    x = p.exchange;
    for (unsigned f = 0; f < PLAN_FORM_N; f++) {
        assert_true(x[f].share <= 0.1 + 1e-9);
        /* One step less would be too much. */
        assert_true(x[f].seconds / (x[f].seconds + (x[f].interval - 1) * p.inside.step) > 0.1);
    }
    assert_true(x[PLAN_BF16].interval < x[PLAN_FP32].interval);
    assert_true(x[PLAN_INT8].interval < x[PLAN_BF16].interval);
    assert_true(x[PLAN_TOPK].interval < x[PLAN_INT8].interval && x[PLAN_TOPK].pays);
    /* The link carries all fragments in the interval. */
    assert_true(p.fragments * p.fragment_s <= p.stream_interval * p.inside.step + 1e-6);
    plan_format(&p, &out);
    assert_non_null(strstr(str_text(&out), "no: averaging gradients in each step"));
    assert_non_null(strstr(str_text(&out), "100 Mbit/s and 50 ms between"));
    str_deinit(&out);
    plan_deinit(&p);
    matrix_deinit(&m);
}

static void test_leaders_are_the_well_connected(void **state)
{
    struct plan_options opt = options_for(1e9);
    struct matrix m = MATRIX_NULL;
    struct plan p = PLAN_NULL;
    struct err e = ERR_NULL;

    make(&m, 4, 2, 0.05, 100e6);
    /* What n1 says to others is faster than what n0 says. */
    m.links[1 * 4 + 2].one_bps = m.links[1 * 4 + 3].one_bps = 200e6;
    assert_int_equal(plan_make(&p, &m, &opt, NULL), 0);
    assert_int_equal(p.islands[0].leader, 1);
    assert_int_equal(p.n_edges, 2);
    plan_deinit(&p);
    for (size_t i = 0; i < 16; i++)
        if (m.links[i].rtt > 0.01)
            m.links[i] = (struct matrix_link){0};
    assert_true(plan_make(&p, &m, &opt, &e) < 0);
    assert_non_null(strstr(e.text, "nothing was measured between them"));
    matrix_deinit(&m);
}

static void test_money(void **state)
{
    struct plan_options opt = options_for(7e9);
    struct matrix m = MATRIX_NULL;
    struct plan p = PLAN_NULL;
    double syncs;

    make(&m, 4, 2, 0.05, 1 * GBIT);
    (void)snprintf(prices.one_place, sizeof(prices.one_place), "here");
    prices.one_place_gpu_hour = 10;
    assert_int_equal(plan_make(&p, &m, &opt, NULL), 0);
    syncs = p.steps_per_day / p.exchange[p.form].interval;
    assert_true(fabs(p.edges[0].bytes_per_day - syncs * p.exchange[p.form].bytes) < 1);
    assert_true(fabs(p.edges[0].money_per_day - p.edges[0].bytes_per_day / 1e9 * 0.09) < 1e-6);
    assert_true(fabs(p.gpu_money - 32 * 24 * 3.93) < 1e-6);
    assert_true(p.flat_money > p.traffic_money * 10);
    /* As many tokens take nine tenths of the day where no exchange is waited for. */
    assert_true(p.one_place_money >= 0.9 * 32 * 240 - 1 && p.one_place_money < 32 * 240);
    assert_true(fabs(p.lines[0].break_even_gb - 2042.5 / 0.07) < 1e-3);
    plan_deinit(&p);
    matrix_deinit(&m);
}

/* Nodes of an island in two zones: the ring passes from one to the other twice. */
static void test_zones(void **state)
{
    struct plan_options opt = options_for(7e9);
    struct matrix m = MATRIX_NULL;
    struct plan p = PLAN_NULL;

    make(&m, 4, 4, 0, 0);
    prices.islands[0].nat_hour = 0.045;
    assert_int_equal(plan_make(&p, &m, &opt, NULL), 0);
    assert_true(p.zone_bytes == 0 && p.zone_money == 0);
    assert_true(fabs(p.nat_money - 24 * 0.045) < 1e-9);
    plan_deinit(&p);
    prices.islands[0].zones = 2;
    assert_int_equal(plan_make(&p, &m, &opt, NULL), 0);
    assert_true(
        fabs(p.zone_bytes / (2 * 1.5 * 14e9 * (p.inside.cut.sharded ? 1.5 : 1) * p.steps_per_day) -
             1) < 1e-9);
    assert_true(fabs(p.zone_money - p.zone_bytes / 1e9 * 0.01) < 1e-6);
    plan_deinit(&p);
    /* What the table does not say costs nothing in a plan. */
    prices.islands[0].cross_zone = NAN;
    assert_int_equal(plan_make(&p, &m, &opt, NULL), 0);
    assert_true(p.zone_bytes > 0 && p.zone_money == 0);
    plan_deinit(&p);
    matrix_deinit(&m);
}

/* Sizes that were asked for: no more bytes take longer than the model's own. */
static void test_syncs(void **state)
{
    struct plan_options opt = options_for(1e9);
    struct matrix m = MATRIX_NULL;
    struct plan p = PLAN_NULL;

    make(&m, 4, 2, 0.05, 100e6);
    opt.sync_bytes[0] = 2e9;
    opt.sync_bytes[1] = 4e9;
    opt.n_syncs = 2;
    assert_int_equal(plan_make(&p, &m, &opt, NULL), 0);
    for (unsigned k = 0; k < PLAN_KIND_N; k++)
        assert_true(p.syncs[0].kinds[k] == p.average_s[k]);
    for (unsigned f = 0; f < PLAN_FORM_N; f++) {
        assert_true(p.syncs[1].exchange[f] == p.exchange[f].seconds);
        assert_true(p.syncs[0].exchange[f] < p.syncs[1].exchange[f]);
    }
    plan_deinit(&p);
    matrix_deinit(&m);
}

static void test_json(void **state)
{
    struct plan_options opt = options_for(7e9);
    struct matrix m = MATRIX_NULL;
    struct plan p = PLAN_NULL;
    json_t *json;

    make(&m, 4, 2, 0.05, 100e6);
    assert_int_equal(plan_make(&p, &m, &opt, NULL), 0);
    json = plan_encode(&p);
    assert_non_null(json);
    assert_int_equal(json_array_size(json_object_get(json, "islands")), 2);
    assert_int_equal(json_array_size(json_object_get(json, "ring")), 4);
    assert_true(json_is_false(json_object_get(json_object_get(json, "everyStep"), "advised")));
    json_decref(json);
    plan_deinit(&p);
    plan_deinit(&p);
    matrix_deinit(&m);
}

/* One island has nothing to exchange with. */
static void test_json_of_one_island(void **state)
{
    struct plan_options opt = options_for(7e9);
    struct matrix m = MATRIX_NULL;
    struct plan p = PLAN_NULL;
    json_t *json;

    make(&m, 4, 4, 0, 0);
    assert_int_equal(plan_make(&p, &m, &opt, NULL), 0);
    json = plan_encode(&p);
    assert_true(json_is_null(json_object_get(json, "exchange")));
    json_decref(json);
    plan_deinit(&p);
    matrix_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_one_island),
        cmocka_unit_test(test_across_a_wan),
        cmocka_unit_test(test_leaders_are_the_well_connected),
        cmocka_unit_test(test_money),
        cmocka_unit_test(test_zones),
        cmocka_unit_test(test_syncs),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_of_one_island),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
