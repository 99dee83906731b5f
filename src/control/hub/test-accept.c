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
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "hub/handlers/handlers.h"
#include "hub/networks/networks.h"
#include "os/clock.h"
#include "store/store.h"
#include "test/support/sample_enrol.h"
#include "test/support/sample_hub.h"
#include "test/support/sample_late.h"
#include "test/support/sample_ops.h"
#include "test/support/store_now.h"

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
    assert_int_equal(
        sample_enrol_token(&s->hub->enrol, net, &rq, clock_wall_s(), &er.secret, &e), 0);
    assert_int_equal(
        sample_enrol_node(&s->hub->enrol, &er, NULL, &from, s->now, clock_wall_s(), &node, &e), 0);
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
        status = sample_hub_ask(&s, API_ACCESS_OVERLAY, loud, "PUT", "/v1/status", body, NULL);
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

static int fail_at_any(void *ctx, const struct store_item *item)
{
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
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "POST", "/v1/networks",
                         "{\"name\":\"other\",\"cidr4\":\"10.50.0.0/16\"}", NULL),
        201);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        struct store_op op = {
            .kind = STORE_OP_PUT, .key = keys[i], .value = "{", .expect = STORE_EXPECT_ANY};

        assert_int_equal(store_now_commit(s.hub->store, &op, 1, s.now, NULL, NULL, &e), 0);
    }
    assert_int_equal(s.hub->model.damaged.n, 3);
    assert_int_equal(
        sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "DELETE", "/v1/networks/other", NULL, NULL),
        204);
    assert_int_equal(store_now_list(s.hub->store, "", fail_below_other, NULL, NULL, &e), 0);
    assert_int_equal(s.hub->model.damaged.n, 0);
    sample_hub_close(&s);
    sample_hub_remove_dir(&s);
}

/* The hub's own node is not written into a network that is being removed, or has been. */
static void test_a_removed_network_has_no_hub(void **state)
{
    static const char *const keys[] = {"node/default/hub", "ipam/default", "network/default"};
    struct sample_hub s = {.now = 0};
    struct model_network *net;
    struct store_op ops[3];
    struct hub_places next = {.n = 1};
    struct err e = ERR_NULL;
    uint64_t before;

    sample_hub_make_dir(&s, false);
    sample_hub_open(&s);
    (void)hub_public_parse(&next.items[0], "192.0.2.9", 51820, NULL);
    public_addresses_set_next(&s.hub->public_addresses, &next);
    net = model_find_network(&s.hub->model, "default");
    before = model_find_node(net, "hub")->spec.meta.resource_version;
    model_set_network_leaving(net, "a test removes it");
    assert_int_equal(networks_refresh(&s.hub->networks, s.now, &e), 0);
    store_wait(s.hub->store);
    assert_int_equal(model_find_node(net, "hub")->spec.meta.resource_version, before);
    model_set_network_leaving(net, NULL);
    for (unsigned i = 0; i < 3; i++)
        ops[i] =
            (struct store_op){.kind = STORE_OP_DELETE, .key = keys[i], .expect = STORE_EXPECT_ANY};
    assert_int_equal(store_commit(s.hub->store, ops, 3, s.now, NULL, NULL, &e), 0);
    assert_int_equal(networks_refresh(&s.hub->networks, s.now, &e), 0);
    store_wait(s.hub->store);
    assert_int_equal(store_now_list(s.hub->store, "node/", fail_at_any, NULL, NULL, &e), 0);
    sample_hub_close(&s);
    sample_hub_remove_dir(&s);
}

/* ---- two at once ----------------------------------------------------------------------------- */

/* What is in the file opens the hub, whoever asked first. */
static void test_one_rotation_at_a_time(void **state)
{
    static const struct sample_question one = {"POST", "/v1/admin-token-file", NULL};
    const struct sample_question both[2] = {one, one};
    struct sample_hub s = {.now = 0};
    int statuses[2];

    sample_hub_make_dir(&s, false);
    sample_hub_open(&s);
    sample_hub_ask_both(&s, both, statuses);
    assert_int_equal(statuses[0], 200);
    assert_int_equal(statuses[1], 409);
    assert_int_equal(
        sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "POST", "/v1/admin-token-file", NULL, NULL),
        200);
    sample_hub_close(&s);
    sample_hub_remove_dir(&s);
}

/* What nodes are told is what is in the file, whoever asked first. */
static void test_one_move_at_a_time(void **state)
{
    static const struct sample_question one = {
        "PUT", "/v1/move", "{\"public\":[\"192.0.2.9:51820\"]}"};
    const struct sample_question both[2] = {one, one};
    struct sample_hub s = {.now = 0};
    int statuses[2];
    char path[128];

    sample_hub_make_dir(&s, false);
    sample_hub_open(&s);
    sample_hub_ask_both(&s, both, statuses);
    assert_int_equal(statuses[0], 200);
    assert_int_equal(statuses[1], 409);
    (void)snprintf(path, sizeof(path), "%s/move.json", s.dir);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(s.hub->public_addresses.next.n, 1);
    assert_int_equal(
        sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "PUT", "/v1/move", "{\"public\":[]}", NULL),
        200);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(s.hub->public_addresses.next.n, 0);
    sample_hub_close(&s);
    sample_hub_remove_dir(&s);
}

/* ---- a store that is late, and loses answers ------------------------------------------------ */

#define NODES 12

/* Ask, and count whether it was done, refused, or is not known. */
static void do_one(struct sample_hub *s, const char *method, const char *path, const char *body,
    unsigned counts[3])
{
    int status = sample_hub_ask(s, API_ACCESS_ADMIN, NULL, method, path, body, NULL);

    counts[status >= 500 ? 2 : status >= 400 ? 1 : 0]++;
}

static void do_something(struct sample_hub *s, unsigned i, unsigned counts[3])
{
    char key[BASE64_SIZE(32)];
    uint8_t bytes[32] = {[1] = (uint8_t)i, [2] = (uint8_t)(i >> 8), [3] = 1};
    char path[256];
    char body[512];

    base64_encode(bytes, sizeof(bytes), key);
    switch (i % 5) {
    case 0:
    case 1:
        (void)snprintf(
            body, sizeof(body), "{\"name\":\"n%u\",\"publicKey\":\"%s\"}", i % NODES, key);
        do_one(s, "POST", "/v1/networks/default/nodes", body, counts);
        break;
    case 2:
        (void)snprintf(path, sizeof(path), "/v1/networks/default/nodes/n%u", i / 5 % NODES);
        do_one(s, "DELETE", path, NULL, counts);
        break;
    case 3:
        (void)snprintf(
            path, sizeof(path), "/v1/networks/default/objects/MeshEdge/n%u--n%u", i % 4, 4 + i % 4);
        (void)snprintf(body, sizeof(body),
            "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"n%u--n%u\"},"
            "\"spec\":{\"nodes\":[\"n%u\",\"n%u\"],\"path\":\"off\"}}",
            i % 4, 4 + i % 4, i % 4, 4 + i % 4);
        do_one(s, "PUT", path, body, counts);
        break;
    default:
        (void)snprintf(body, sizeof(body), "{\"name\":\"admin%u\",\"role\":\"viewer\"}", i % 7);
        do_one(s, "POST", "/v1/admin-tokens", body, counts);
        (void)snprintf(path, sizeof(path), "/v1/admin-tokens/admin%u", i / 3 % 7);
        do_one(s, "DELETE", path, NULL, counts);
        break;
    }
}

struct kept {
    struct hub *hub;
    size_t n_nodes;
    size_t n_edges;
    size_t n_admins;
};

/* What is stored is in the model, at that very revision, and nothing is about nobody. */
static int check_kept(void *ctx, const struct store_item *item)
{
    struct kept *kept = ctx;
    struct record_key k = record_key_parse(item->key);
    struct audit_before before = {.revision = 0};
    const struct model_network *net = model_find_network(&kept->hub->model, "default");

    access_before(&kept->hub->handlers, item->key, &before);
    if (k.kind == RECORD_NODE || k.kind == RECORD_EDGE || strncmp(item->key, "admin/", 6) == 0)
        assert_int_equal(before.revision, item->revision);
    if (k.kind == RECORD_REPORT)
        assert_non_null(model_find_node(net, k.name));
    kept->n_nodes += k.kind == RECORD_NODE;
    kept->n_edges += k.kind == RECORD_EDGE;
    kept->n_admins += strncmp(item->key, "admin/", 6) == 0;
    return 0;
}

static void test_a_store_that_loses_answers(void **state)
{
    struct sample_hub s = {.now = 0};
    unsigned counts[3] = {0};
    struct err e = ERR_NULL;
    struct kept kept;
    const struct model_network *net;

    sample_hub_make_dir(&s, false);
    s.store = sample_late_open(9, 0);
    sample_hub_open(&s);
    s.may_fail = true;
    sample_late_set_loss(s.store, 4);
    for (unsigned i = 0; i < 1500; i++)
        do_something(&s, i, counts);
    sample_late_set_loss(s.store, 0);
    store_wait(s.store);
    assert_true(counts[0] > 300 && counts[2] > 100);
    kept = (struct kept){.hub = s.hub};
    net = model_find_network(&s.hub->model, "default");
    assert_int_equal(store_now_list(s.store, "", check_kept, &kept, NULL, &e), 0);
    assert_int_equal(kept.n_nodes, net->nodes.n);
    assert_int_equal(kept.n_edges, net->edges.n);
    assert_int_equal(kept.n_admins, s.hub->admins.n);
    assert_int_equal(s.hub->admins.n_coming, 0);
    /* An edge of which an end has gone is gone as well. */
    for (size_t i = 0; i < net->edges.n; i++)
        assert_true(model_edge_at(net, i)->ends[0].node && model_edge_at(net, i)->ends[1].node);
    sample_hub_close(&s);
    sample_hub_remove_dir(&s);
}

/* A network whose record is damaged is there: it is not made anew, whichever way that is asked. */
static void test_a_damaged_network_is_there(void **state)
{
    struct sample_hub s = {.now = 0};
    const struct store_op op = {
        .kind = STORE_OP_PUT, .key = "network/hurt", .value = "{", .expect = STORE_EXPECT_ABSENT};
    struct err e = ERR_NULL;

    sample_hub_make_dir(&s, false);
    sample_hub_open(&s);
    assert_int_equal(store_commit(s.hub->store, &op, 1, s.now, NULL, NULL, &e), 0);
    store_wait(s.hub->store);
    assert_true(model_is_damaged(&s.hub->model, RECORD_NETWORK, "hurt", ""));
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "POST", "/v1/networks",
                         "{\"name\":\"hurt\"}", NULL),
        409);
    assert_int_equal(
        sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "PUT", "/v1/networks/hurt/objects/Network/hurt",
            "{\"kind\":\"Network\",\"metadata\":{\"name\":\"hurt\"},"
            "\"spec\":{\"cidr4\":\"10.9.0.0/16\",\"cidr6\":\"fd09::/64\"}}",
            NULL),
        409);
    sample_hub_close(&s);
    sample_hub_remove_dir(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whatever_is_taken),
        cmocka_unit_test(test_a_flood_of_reports),
        cmocka_unit_test(test_a_removed_network_leaves_nothing),
        cmocka_unit_test(test_a_removed_network_has_no_hub),
        cmocka_unit_test(test_one_rotation_at_a_time),
        cmocka_unit_test(test_one_move_at_a_time),
        cmocka_unit_test(test_a_store_that_loses_answers),
        cmocka_unit_test(test_a_damaged_network_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
