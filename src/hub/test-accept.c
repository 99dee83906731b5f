/*
 * test-accept.c - what the hub accepts, every agent accepts.
 *
 * Also how often others are told of what a node says of itself. The same requests, decided by a
 * fuzzer: fuzz-accept.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/sample_enrol.h"
#include "hub/sample_hub.h"
#include "hub/sample_ops.h"
#include "sys/rng_kernel.h"
#include "store/store_now.h"

#define ROUNDS  60
#define CHOICES 3000

/* By one seed, the same each time; WEFT_SEED has the first one that is tried. */
static void run_round(struct sample_hub *s, uint64_t seed)
{
    uint8_t bytes[CHOICES];
    struct choices c = {.bytes = bytes, .n = sizeof(bytes)};
    uint64_t state = seed;
    struct rng rng = rng_seeded(&state);

    sample_hub_seed(seed);
    rng_fill(&rng, bytes, sizeof(bytes));
    sample_hub_open(s);
    sample_ops_run(s, &c);
    sample_hub_close(s);
}

static void test_whatever_is_taken(void **state)
{
    const char *given = getenv("WEFT_SEED");
    struct rng kernel = rng_kernel();
    uint64_t seed = given ? strtoull(given, NULL, 10) : rng_u32(&kernel);
    struct sample_hub s = {.now = 0};

    sample_hub_make_dir(&s, false);
    for (unsigned i = 0; i < ROUNDS; i++)
        run_round(&s, seed + i);
    sample_hub_remove_dir(&s);
}

static struct model_node *enrol(struct sample_hub *s, const char *name, uint8_t key)
{
    struct token_request rq = {.ttl_seconds = 3600, .uses = 1};
    struct model_network *net = model_find_network(&s->hub->model, "default");
    struct enrol_request er = {.key = {{key}}};
    static const struct ip_addr from = {{[15] = 1}};
    struct model_node *node;
    struct err e = ERR_NULL;

    (void)snprintf(er.name, sizeof(er.name), "%s", name);
    assert_int_equal(sample_enrol_token(&s->hub->enrol, net, &rq, hub__wall(), &er.secret, &e), 0);
    assert_int_equal(
        sample_enrol_node(&s->hub->enrol, &er, NULL, &from, s->now, hub__wall(), &node, &e), 0);
    return node;
}

/* Reports as fast as they can be made, for a minute: how many are taken, and how many are told. */
static void test_a_flood_of_reports(void **state)
{
    struct sample_hub s = {.now = 0};
    struct model_node *loud;
    unsigned n_taken = 0;
    size_t n_before;
    char body[128];

    sample_hub_make_dir(&s, false);
    sample_hub_open(&s);
    loud = enrol(&s, "loud", 5);
    sample_hub_listen(&s, enrol(&s, "ear", 6));
    sample_hub_hear(&s);
    n_before = s.ears[0].n_events;
    for (unsigned i = 0; i < 6000; i++) {
        int status;

        s.now += NSEC_PER_SEC / 100;
        (void)snprintf(body, sizeof(body), "{\"node\":{\"paths\":{\"generation\":%u}}}", i);
        status = sample_hub_ask(&s, DOOR_OVERLAY, loud, "PUT", "/v1/status", body, NULL);
        assert_true(status == 204 || status == 429);
        n_taken += status == 204;
        if (i == 0) {
            sample_hub_hear(&s);
            /* The first one at once. */
            assert_int_equal(s.ears[0].n_events, n_before + 1);
        }
        if (i % 100 == 99)
            watch_tick(&s.hub->watcher, s.now);
        sample_hub_hear(&s);
    }
    assert_in_range(n_taken, 300, 331);
    /* Five, one each two seconds, and heartbeats. */
    assert_in_range(s.ears[0].n_events - n_before, 20, 45);
    /* And the last one is there in the end. */
    sample_hub_compare(&s);
    sample_hub_close(&s);
    sample_hub_remove_dir(&s);
}

static int fail_below_other(void *ctx, const struct store_item *item)
{
    if (strstr(item->key, "/other"))
        fail_msg("\"%s\" is left", item->key);
    return 0;
}

/* What was set aside in a network goes with it, or it would come back in the next of its name. */
static void test_a_removed_network_leaves_nothing(void **state)
{
    static const char *const keys[] = {"node/other/gone", "report/other/nobody", "edge/other/a--b"};
    struct sample_hub s = {.now = 0};
    struct err e = ERR_NULL;

    sample_hub_make_dir(&s, false);
    sample_hub_open(&s);
    assert_int_equal(sample_hub_ask(&s, DOOR_ADMIN, NULL, "POST", "/v1/networks",
                         "{\"name\":\"other\",\"cidr4\":\"10.50.0.0/16\"}", NULL),
        201);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        struct store_op op = {
            .kind = STORE_OP_PUT, .key = keys[i], .value = "{", .expect = STORE_EXPECT_ANY};

        assert_int_equal(store_now_commit(s.hub->store, &op, 1, s.now, NULL, NULL, &e), 0);
    }
    assert_int_equal(s.hub->model.damaged.records.n, 3);
    assert_int_equal(
        sample_hub_ask(&s, DOOR_ADMIN, NULL, "DELETE", "/v1/networks/other", NULL, NULL), 204);
    assert_int_equal(store_now_list(s.hub->store, "", fail_below_other, NULL, NULL, &e), 0);
    assert_int_equal(s.hub->model.damaged.records.n, 0);
    sample_hub_close(&s);
    sample_hub_remove_dir(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whatever_is_taken),
        cmocka_unit_test(test_a_flood_of_reports),
        cmocka_unit_test(test_a_removed_network_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
