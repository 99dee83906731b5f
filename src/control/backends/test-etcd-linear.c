/*
 * test-etcd-linear.c - several hubs at one etcd whose members die and stand still: is each history
 * of requests linearizable, and is no write lost that was acknowledged?
 *
 * Each hub talks to each member through a proxy, which loses requests and answers besides. A hub
 * finds out by itself what has become of most of them; the rest it calls unknown.
 *
 * WEFT_RUNS says how many runs (25), WEFT_SEED the first seed (1); a failure prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "backends/store_open.h"
#include "base/err.h"
#include "test/support/linear_hubs.h"
#include "test/support/netns.h"
#include "test/support/sample_etcd.h"

#define MEMBERS 3

struct scene {
    struct sample_etcd *cluster;         /* owns */
    struct linear_way *proxies[MEMBERS]; /* owns */
    uint64_t seed;
};

/* The members in another order for each hub, so that not all of them ask the same one. */
static struct store *open_hub(void *ctx, unsigned id)
{
    const struct scene *scene = ctx;
    struct store *s = NULL;
    struct err e = ERR_NULL;
    char url[256];

    (void)snprintf(url, sizeof(url), "etcd://%s,%s,%s?prefix=/linear/",
        linear_way_server(scene->proxies[id % 3]), linear_way_server(scene->proxies[(id + 1) % 3]),
        linear_way_server(scene->proxies[(id + 2) % 3]));
    if (store_open(&s, url, 0, &e) != 0)
        fail_msg("%s", e.text);
    return s;
}

static void disturb(void *ctx)
{
    struct scene *scene = ctx;

    sample_etcd_disturb(scene->cluster, scene->seed);
}

static void test_runs(void **state)
{
    static const struct sample_etcd_options opt = {.n = MEMBERS};
    struct scene scene = {.cluster = sample_etcd_start(&opt), .seed = linear_hubs_seed()};
    const struct linear_hubs_rules rules = {.ctx = &scene, .open = open_hub};
    struct linear_hubs_figures figures;
    unsigned n_requests = 0;
    unsigned n_answers = 0;

    assert_non_null(scene.cluster);
    for (unsigned i = 0; i < MEMBERS; i++)
        scene.proxies[i] = linear_way_open(
            sample_etcd_server(scene.cluster, i), scene.seed * MEMBERS + i, "/v3/watch");
    figures = linear_hubs_run(&rules, 25, scene.seed, disturb);
    sample_etcd_calm(scene.cluster);
    for (unsigned i = 0; i < MEMBERS; i++)
        scene.proxies[i] = linear_way_close(scene.proxies[i], &n_requests, &n_answers);
    print_message("%lu runs, %d hubs: %u requests to etcd and %u answers were lost; of the hubs' "
                  "own requests %u have an unknown outcome, and %u failed\n",
        figures.n_runs, LINEAR_HUBS, n_requests, n_answers, figures.n_unknown, figures.n_failed);
    sample_etcd_free(scene.cluster);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
    };

    netns_be_alone();
    return _cmocka_run_group_tests("linear", tests, sample_etcd_is_there() ? 1 : 0, NULL, NULL);
}
