/*
 * test-node-parts.c - what the agent's small parts decide: what the measuring service is told,
 * which jobs have started, and which keepalive is kept and told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/meter.h"
#include "agent/node_jobs.h"
#include "agent/node_keepalive.h"
#include "agent/node_measure.h"
#include "agent/paths/edge/reach.h"
#include "agent/state/state.h"
#include "base/text.h"
#include "measure/order.h"
#include "measure/service.h"
#include "os/log.h"
#include "test/support/heard_log.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

/* ---- members that may measure --------------------------------------------------------------- */

static void test_members_and_how_they_are_reached(void **state)
{
    struct snapshot s = sample_snapshot(4, 2);
    struct reach_peer reached[] = {
        {.node = "n3", .kind = PATH_KIND_DIRECT, .underlay = endpoint("198.51.100.3:1").addr},
        {.node = "n4", .kind = PATH_KIND_RELAY},
    };
    struct reach reach = {.items = reached, .n = 2};
    struct service_member members[4];
    struct node_measure nm = {.host = NULL};
    const struct node *n3 = snapshot_find_node(&s, "n3");

    memset(members, 0xff, sizeof(members));
    assert_int_equal(node_measure_list(&nm, &s, &reach, members, 4), 4);
    /* In the snapshot's order: the hub, n2, which is this node, n3, n4. */
    assert_string_equal(members[0].name, "hub");
    assert_string_equal(members[0].path, "");
    assert_true(members[0].is_hub);
    assert_false(members[1].is_hub);
    assert_string_equal(members[1].path, "");
    assert_string_equal(members[2].name, "n3");
    assert_string_equal(members[2].hostname, "");
    assert_string_equal(members[2].path, "direct");
    assert_true(ip_addr_equal(&members[2].address, &n3->address4));
    assert_true(ip_addr_equal(&members[2].underlay, &reached[0].underlay));
    assert_string_equal(members[3].path, "relay");
    assert_true(ip_addr_is_none(&members[3].underlay));
    /* A network that is larger than the service takes is told in part. */
    members[2].name[0] = 'x';
    assert_int_equal(node_measure_list(&nm, &s, &reach, members, 2), 2);
    assert_int_equal(members[2].name[0], 'x');
    snapshot_deinit(&s);
}

static struct node *node_in(struct snapshot *s, const char *name)
{
    return (struct node *)snapshot_find_node(s, name);
}

/* What n2 proves to n3: the proof of n2's agent in answer to the challenge 010203. */
static void prove_to_n3(struct snapshot *s, const struct x25519_secret *secret2,
    uint8_t mac[static MEASURE_PROOF_MAC], const json_t *order)
{
    static const char challenge[] = "01020300000000000000000000000000";
    json_t *asked = json_deep_copy(order);
    char address[IP_ADDR_TEXT_MAX];
    json_t *answer = NULL;
    const json_t *proofs;

    (void)ip_addr_format(&node_in(s, "n3")->address4, address);
    (void)json_object_set_new(
        asked, "challenges", json_pack("{s:s, s:s}", address, challenge, "192.0.2.1", challenge));
    assert_int_equal(node_measure_prove(secret2, s, asked, &answer, NULL), 0);
    /* Whom nobody knows gets no proof. */
    proofs = json_object_get(answer, "proofs");
    assert_int_equal(json_object_size(proofs), 1);
    assert_true(
        hex_decode(json_string_value(json_object_get(proofs, address)), mac, MEASURE_PROOF_MAC));
    json_decref(answer);

    /* Nor does who has that address, and a key that nobody can have. */
    node_in(s, "n4")->key = (struct x25519_public){.b = {0}};
    (void)json_object_set_new(asked, "challenges", json_pack("{s:s}", "10.42.0.4", challenge));
    answer = NULL;
    assert_int_equal(node_measure_prove(secret2, s, asked, &answer, NULL), 0);
    assert_int_equal(json_object_size(json_object_get(answer, "proofs")), 0);
    json_decref(answer);
    node_in(s, "n4")->key = sample_key(4);

    (void)json_object_set_new(asked, "challenges", json_pack("{s:s}", "10.42.0.x", challenge));
    assert_int_equal(node_measure_prove(secret2, s, asked, &answer, NULL), -EINVAL);
    (void)json_object_set_new(asked, "challenges", json_pack("{s:i}", address, 7));
    assert_int_equal(node_measure_prove(secret2, s, asked, &answer, NULL), -EINVAL);
    (void)json_object_set_new(asked, "challenges", json_pack("{s:s}", address, "0102"));
    assert_int_equal(node_measure_prove(secret2, s, asked, &answer, NULL), -EINVAL);
    (void)json_object_set_new(asked, "challenges", json_array());
    assert_int_equal(node_measure_prove(secret2, s, asked, &answer, NULL), -EINVAL);
    (void)json_object_del(asked, "id");
    assert_int_equal(node_measure_prove(secret2, s, asked, &answer, NULL), -EINVAL);
    json_decref(asked);
}

/* A question that is none, or is about more nodes than an order may be. */
static void test_what_is_no_question(void **state)
{
    static const struct x25519_secret secret2 = {{8, [31] = 0x40}};
    struct order o = {.kind = ORDER_SESSION, .purpose = "bench", .seconds = 60};
    struct snapshot s = sample_snapshot(4, 2);
    json_t *array = json_array();
    json_t *order = order_encode(&o);
    json_t *challenges = json_object();
    json_t *answer = NULL;
    struct err e = ERR_NULL;

    assert_int_equal(node_measure_prove(&secret2, &s, array, &answer, &e), -EINVAL);
    assert_string_equal(e.text, "the body is no object with \"id\", \"purpose\", \"seconds\"");
    for (unsigned i = 0; i < ORDER_NODES_MAX; i++) {
        char address[IP_ADDR_TEXT_MAX];

        (void)snprintf(address, sizeof(address), "192.0.%u.%u", i / 256, i % 256);
        (void)json_object_set_new(
            challenges, address, json_string("01020300000000000000000000000000"));
    }
    (void)json_object_set(order, "challenges", challenges);
    assert_int_equal(node_measure_prove(&secret2, &s, order, &answer, &e), 0);
    json_decref(answer);
    (void)json_object_set_new(challenges, "x", json_string(""));
    assert_int_equal(node_measure_prove(&secret2, &s, order, &answer, &e), -EINVAL);
    assert_memory_equal(e.text, "\"challenges\" is no object of at most ", 37);
    json_decref(array);
    json_decref(order);
    json_decref(challenges);
    snapshot_deinit(&s);
}

/* Of a large network the keys are derived bit by bit: those that are known stay. */
static void test_keys_of_a_large_network(void **state)
{
    enum { N = 300 };
    static const struct x25519_secret secret2 = {{8, [31] = 0x40}};
    static struct service_member members[N];
    struct snapshot s = sample_snapshot(N, 2);
    struct node_measure nm = {.secret = &secret2};
    struct reach reach = {.n = 0};
    static const unsigned expected[] = {128, 256, N - 2, N - 2};

    for (unsigned i = 0; i < 4; i++) {
        unsigned n = 0;

        assert_int_equal(node_measure_list(&nm, &s, &reach, members, N), N);
        for (unsigned k = 0; k < N; k++)
            n += members[k].has_key;
        assert_int_equal(n, expected[i]);
        assert_int_equal(nm.n_keys, expected[i]);
    }
    /* Of one that has left nothing is kept. */
    assert_int_equal(snapshot_delete(&s, &node_kind, "n7", NULL), 0);
    assert_int_equal(node_measure_list(&nm, &s, &reach, members, N), N - 1);
    assert_int_equal(nm.n_keys, N - 3);
    for (unsigned k = 0; k < N - 1; k++)
        assert_int_equal(members[k].has_key,
            strcmp(members[k].name, "hub") != 0 && strcmp(members[k].name, "n2") != 0);
    node_measure_stop(&nm);
    assert_null(nm.keys);
    assert_int_equal(nm.n_keys, 0);
    snapshot_deinit(&s);
}

/* The service of one node takes what the agent of another proves, and not what a third one does. */
static void test_orders_are_proven_between_two_nodes(void **state)
{
    static const struct x25519_secret secret2 = {{8, [31] = 0x40}};
    static const struct x25519_secret secret3 = {{16, [31] = 0x40}};
    struct snapshot s = sample_snapshot(4, 2);
    struct snapshot far = sample_snapshot(4, 3);
    struct node_measure nm = {.secret = &secret3};
    struct service_member members[4];
    struct reach reach = {.n = 0};
    struct order o = {.kind = ORDER_SESSION, .purpose = "bench", .seconds = 60};
    const struct order_challenge c = {{1, 2, 3}};
    const struct measure_proof p = order_proof_input(&o, &c);
    uint8_t mac[MEASURE_PROOF_MAC];
    json_t *order = order_encode(&o);

    assert_true(x25519_derive_public(&secret2, &node_in(&s, "n2")->key));
    assert_true(x25519_derive_public(&secret3, &node_in(&s, "n3")->key));
    node_in(&far, "n2")->key = node_in(&s, "n2")->key;
    node_in(&far, "n3")->key = node_in(&s, "n3")->key;
    prove_to_n3(&s, &secret2, mac, order);
    json_decref(order);

    assert_int_equal(node_measure_list(&nm, &far, &reach, members, 4), 4);
    assert_false(members[0].has_key); /* the hub */
    assert_true(members[1].has_key);
    assert_false(members[2].has_key); /* itself */
    assert_true(measure_proof_verify(mac, &members[1].key, &p));
    assert_true(members[3].has_key);
    assert_false(measure_proof_verify(mac, &members[3].key, &p));
    /* Derived anew for a new key. */
    node_in(&far, "n2")->key = node_in(&far, "n4")->key;
    assert_int_equal(node_measure_list(&nm, &far, &reach, members, 4), 4);
    assert_false(measure_proof_verify(mac, &members[1].key, &p));
    node_measure_stop(&nm);
    snapshot_deinit(&s);
    snapshot_deinit(&far);
}

/* ---- the keepalive -------------------------------------------------------------------------- */

static void on_keepalive(void *ctx, bool is_measured, bool is_other)
{
}

/* A node whose state directory has what an earlier run has measured. */
struct kept {
    uv_loop_t loop;
    char dir[64];
    struct node_keepalive nk;
};

static struct kept *begin_kept(const struct keepalive_known *known, const char *damage)
{
    static struct kept k;
    char path[128];

    (void)snprintf(k.dir, sizeof(k.dir), "/tmp/weft-test-keepalive-XXXXXX");
    assert_non_null(mkdtemp(k.dir));
    if (known)
        assert_int_equal(state_write_keepalive(known, k.dir, NULL), 0);
    if (damage) {
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/keepalive.json", k.dir);
        f = fopen(path, "w");
        assert_non_null(f);
        (void)fputs(damage, f);
        (void)fclose(f);
    }
    assert_int_equal(uv_loop_init(&k.loop), 0);
    node_keepalive_init(&k.nk, &k.loop, k.dir, on_keepalive, NULL);
    return &k;
}

static void end_kept(struct kept *k)
{
    char path[128];

    keepalive_probe_stop(&k->nk.probe);
    (void)uv_run(&k->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&k->loop), 0);
    (void)snprintf(path, sizeof(path), "%s/keepalive.json", k->dir);
    (void)unlink(path);
    assert_int_equal(rmdir(k->dir), 0);
}

static void test_keepalive_for_peers(void **state)
{
    const struct keepalive_known measured = {
        .bounds = {.lives = 40 * SEC, .dies = 50 * SEC}, .measured_at = 1790000000 * SEC};
    static const struct {
        bool is_measured;
        uint16_t network;
        nsec_t expected;
    } cases[] = {
        /* Nothing is measured: only a fixed one is known to hold anything. */
        {false, NETWORK_KEEPALIVE_AUTO, 0},
        {false, 0, 0},
        {false, 15, 15 * SEC},
        /* Three quarters of what survived; the network's own goes before it. */
        {true, NETWORK_KEEPALIVE_AUTO, 30 * SEC},
        {true, 0, 30 * SEC},
        {true, 15, 15 * SEC},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct kept *k = begin_kept(cases[i].is_measured ? &measured : NULL, NULL);
        struct network net = {.keepalive = cases[i].network};

        if (node_keepalive_to_tell(&k->nk, &net) != cases[i].expected)
            fail_msg("case %zu: %lld ns", i, (long long)node_keepalive_to_tell(&k->nk, &net));
        assert_int_equal(
            node_keepalive_interval(&k->nk), cases[i].is_measured ? 30 : NETWORK_KEEPALIVE_UNKNOWN);
        end_kept(k);
    }
}

static void test_a_result_is_kept_for_the_next_start(void **state)
{
    struct kept *k = begin_kept(NULL, NULL);
    struct keepalive_known read = KEEPALIVE_KNOWN_NULL;
    struct network net = {.keepalive = NETWORK_KEEPALIVE_AUTO};

    k->nk.probe.plan.known = (struct keepalive_known){
        .bounds = {.lives = 24 * SEC, .dies = 30 * SEC}, .measured_at = 1790000000 * SEC};
    node_keepalive_on_result(&k->nk, &net);
    assert_int_equal(state_read_keepalive(&read, k->dir, NULL), 0);
    assert_int_equal(read.bounds.lives, 24 * SEC);
    end_kept(k);
}

/* What follows from a measurement depends on what the network says. */
static void test_what_is_told_of_a_result(void **state)
{
#define FLOW    "test: a silent UDP flow is forgotten after about 27 s"
#define FIXED   ", and the network lab's keepalive is "
#define IS_LOST " s, so this node cannot be reached when it has been idle; \"auto\" would be 18 s\n"
    static const struct {
        uint16_t network;
        nsec_t dies;
        const char *words;
    } cases[] = {
        {NETWORK_KEEPALIVE_AUTO, 30 * SEC, "info: " FLOW "; the keepalive is 18 s\n"},
        {0, 30 * SEC, "warning: " FLOW FIXED "0" IS_LOST},
        {31, 30 * SEC, "warning: " FLOW FIXED "31" IS_LOST},
        {30, 30 * SEC, "warning: " FLOW FIXED "30" IS_LOST},
        {29, 30 * SEC, "info: " FLOW "; the network's keepalive of 29 s stays\n"},
        {0, NSEC_NEVER,
            "info: test: a silent UDP flow is kept for more than 24 s; the network's keepalive of "
            "0 s stays\n"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct kept *k = begin_kept(NULL, NULL);
        struct network net = {.meta = {.name = "lab"}, .keepalive = cases[i].network};

        k->nk.probe.plan.known = (struct keepalive_known){
            .bounds = {.lives = 24 * SEC, .dies = cases[i].dies}, .measured_at = SEC};
        log_init("test", LOG_LEVEL_INFO);
        heard_log_begin();
        node_keepalive_on_result(&k->nk, &net);
        assert_string_equal(heard_log_end(), cases[i].words);
        end_kept(k);
    }
}

/* That a mapping has gone is told while more is to be measured; after it the result is. */
static void test_what_is_told_of_a_shorter_keepalive(void **state)
{
    struct kept *k = begin_kept(NULL, NULL);
    struct keepalive *machine = &k->nk.probe.plan.machine;

    log_init("test", LOG_LEVEL_INFO);
    heard_log_begin();
    node_keepalive_on_interval(&k->nk);
    assert_string_equal(heard_log_end(), "");
    keepalive_start(machine, 0, SEC);
    k->nk.probe.plan.known.bounds = (struct keepalive_bounds){.lives = 24 * SEC, .dies = 40 * SEC};
    machine->bounds = (struct keepalive_bounds){.lives = 24 * SEC, .dies = 30 * SEC};
    heard_log_begin();
    node_keepalive_on_interval(&k->nk);
    assert_string_equal(heard_log_end(),
        "info: test: a UDP mapping that was silent for 30 s is gone; until more is known the "
        "keepalive is 18 s\n");
    end_kept(k);
}

/* What was measured is not lost for this run when it cannot be kept. */
static void test_a_result_that_cannot_be_kept(void **state)
{
    struct kept *k = begin_kept(NULL, NULL);
    struct network net = {.keepalive = NETWORK_KEEPALIVE_AUTO};

    k->nk.dir = "/dev/null";
    log_init("test", LOG_LEVEL_WARNING);
    heard_log_begin();
    node_keepalive_on_result(&k->nk, &net);
    assert_memory_equal(
        heard_log_end(), "warning: test: what was measured of idle UDP mappings is not kept: ", 67);
    end_kept(k);
}

/* Somebody may want to see what is in it. */
static void test_a_damaged_file_is_left_alone(void **state)
{
    struct kept *k;
    struct keepalive_known read = KEEPALIVE_KNOWN_NULL;
    struct network net = {.keepalive = NETWORK_KEEPALIVE_AUTO};

    log_init("test", LOG_LEVEL_ERROR);
    heard_log_begin();
    k = begin_kept(NULL, "{\"half");
    assert_non_null(strstr(heard_log_end(),
        "; it is left as it is, and what is measured is not kept until it is removed\n"));
    assert_true(k->nk.is_damaged);
    k->nk.probe.plan.known = (struct keepalive_known){
        .bounds = {.lives = 24 * SEC, .dies = 30 * SEC}, .measured_at = 1790000000 * SEC};
    node_keepalive_on_result(&k->nk, &net);
    assert_true(state_read_keepalive(&read, k->dir, NULL) < 0);
    end_kept(k);
}

/* ---- jobs ----------------------------------------------------------------------------------- */

/* One that is only about to start does not use the network: it may test it first. */
static void test_which_jobs_have_started(void **state)
{
    int32_t pid = (int32_t)getpid();
    struct node_jobs nj;
    struct meter meter;

    meter = (struct meter){.id = 17};
    nj = (struct node_jobs){.meter = &meter};
    node_jobs_begin(&nj, "train", pid, 1000 * SEC);
    node_jobs_begin(&nj, "other", pid, 1000 * SEC);
    node_jobs_start(&nj, "unknown", pid);
    assert_int_equal(node_jobs_started(&nj), 0);
    node_jobs_start(&nj, "train", pid);
    node_jobs_start(&nj, "train", pid);
    assert_int_equal(node_jobs_started(&nj), 1);
    /* It goes on in another run. */
    node_jobs_begin(&nj, "train", pid, 1001 * SEC);
    assert_int_equal(node_jobs_started(&nj), 1);
    node_jobs_end(&nj, "train", pid);
    assert_int_equal(node_jobs_started(&nj), 0);
    node_jobs_stop(&nj);
    meter_deinit(&meter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_and_how_they_are_reached),
        cmocka_unit_test(test_orders_are_proven_between_two_nodes),
        cmocka_unit_test(test_what_is_no_question),
        cmocka_unit_test(test_keys_of_a_large_network),
        cmocka_unit_test(test_keepalive_for_peers),
        cmocka_unit_test(test_a_result_is_kept_for_the_next_start),
        cmocka_unit_test(test_what_is_told_of_a_result),
        cmocka_unit_test(test_what_is_told_of_a_shorter_keepalive),
        cmocka_unit_test(test_a_result_that_cannot_be_kept),
        cmocka_unit_test(test_a_damaged_file_is_left_alone),
        cmocka_unit_test(test_which_jobs_have_started),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
