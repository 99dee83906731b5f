/*
 * test-apply.c - what a record leaves in the model beside what the listener is told of it, and what
 * the hub notes there itself.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/server/stream.h"
#include "base/err.h"
#include "hub/model/model.h"
#include "store/store_backend.h"
#include "store/store.h"
#include "test/support/deaf_listener.h"
#include "test/support/sample_mesh.h"
#include "test/support/store_now.h"

static struct store *store;
static struct model model;
static struct model_network *net; /* "default", with the hub, n2 and n3 */
static unsigned n_changed;        /* edges */
static char broken_key[RECORD_KEY_MAX];

/* ---- the listener --------------------------------------------------------------------------- */

static int network_key(void *ctx, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    *ret = (struct x25519_secret){.b = {public->b[0]}};
    return 0;
}

static void edge_changed(void *ctx, struct model_edge *edge, enum edge_path before)
{
    n_changed++;
}

static void broken(void *ctx, const char *key, const struct err *e)
{
    (void)snprintf(broken_key, sizeof(broken_key), "%s", key);
}

/* ---- records -------------------------------------------------------------------------------- */

/* @value: taken; NULL: the key goes. */
static void put(const char *key, char *value)
{
    struct store_op op = {.kind = value ? STORE_OP_PUT : STORE_OP_DELETE,
        .key = key,
        .value = value,
        .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    broken_key[0] = '\0';
    assert_int_equal(store_now_commit(store, &op, 1, 0, NULL, NULL, &e), 0);
    free(value);
}

static void put_network_at(const char *key)
{
    struct network_maker by = {.key = sample_key(1), .name = "hub"};
    struct snapshot s = sample_snapshot(1, 1);

    put(key, record_network_encode(&s.network, &by));
    snapshot_deinit(&s);
}

static void put_network(void)
{
    put_network_at("network/default");
}

static void put_node(unsigned n, uint8_t token)
{
    struct object o = sample_node(n);
    char key[RECORD_KEY_MAX];

    put(record_key(key, RECORD_NODE, "default", o.node.meta.name),
        record_node_encode(&o.node, &(struct token_hash){.b = {token}}));
    object_deinit(&o);
}

static int set_up(void **state)
{
    struct model_listener listener = deaf_listener();
    struct err e = ERR_NULL;

    listener.network_key = network_key;
    listener.edge_changed = edge_changed;
    listener.broken = broken;
    n_changed = 0;
    assert_int_equal(memory_open(&store, "", 1, &e), 0);
    model_init(&model, store, &listener, 5);
    assert_string_equal(model.self, "hub");
    put_network();
    for (unsigned n = 1; n <= 3; n++)
        put_node(n, 4);
    assert_int_equal(model_load(&model, &e), 0);
    net = model_find_network(&model, "default");
    return 0;
}

static int tear_down(void **state)
{
    model_deinit(&model);
    store_free(store);
    return 0;
}

/* ---- networks and nodes --------------------------------------------------------------------- */

/* What was made of it for those who watch is made anew. */
static void test_texts_of_a_network(void **state)
{
    net->watched->text = line_new("{}", 2);
    put_network();
    assert_null(net->watched->text);
}

static void test_changes_of_a_node(void **state)
{
    struct model_node *hub = model_find_node(net, "hub");
    struct model_node *n2 = model_find_node(net, "n2");

    assert_int_equal(n2->reported->heard.probed.owner, EDGE_OWNER_PROBE);
    assert_ptr_equal(n2->reported->node, n2);
    assert_ptr_equal(n2->watched->node, n2);
    assert_ptr_equal(n2->watched->block, net->watched->blocks[0]);
    /* Its token may be another one. */
    n2->watched->text = line_new("{}", 2);
    put_node(2, 9);
    assert_int_equal(n2->token.b[0], 9);
    assert_null(n2->watched->text);
    /* A hub that has changed is one of the hubs as before, and once. */
    put_node(1, 4);
    assert_ptr_equal(list_first(&net->hubs, struct model_node, of_hubs), hub);
    assert_ptr_equal(net->hubs.next, net->hubs.prev);
    assert_null(model_find_node(NULL, "n2"));
    /* It is in each index once. */
    assert_int_equal(net->by_key.n, 3);
    assert_int_equal(net->by_address.n, 6);
}

/* A record that is of another network than its key says, or is another one. */
static void test_a_record_of_another_network(void **state)
{
    struct object o = sample_node(9);

    (void)snprintf(o.node.meta.network, sizeof(o.node.meta.network), "other");
    put("node/default/n9", record_node_encode(&o.node, &(struct token_hash){.b = {4}}));
    assert_string_equal(broken_key, "node/default/n9");
    assert_string_equal(err_text(&damaged_find(&model.damaged, "node/default/n9")->why),
        "it holds the Node \"n9\" of network \"other\"");
    object_deinit(&o);
    put_network_at("network/new");
    assert_string_equal(broken_key, "network/new");
    assert_null(model_find_network(&model, "new"));
    assert_int_equal(model.networks.n, 1);
}

/* What is damaged in a network that is not there. */
static void test_damage_in_no_network(void **state)
{
    put("edge/other/n2--n3", strdup("{"));
    put("ipam/other", strdup("{"));
    assert_int_equal(n_changed, 0);
    assert_int_equal(model.damaged.n, 2);
    assert_false(net->ipam.forgot);
    assert_int_equal(net->edges.n, 0);
}

/* Of an edge whose record is damaged the key says which it is, as long as these are names. */
static void test_a_damaged_edge(void **state)
{
    char a[NAME_MAX_LEN + 2] = "";
    char b[NAME_MAX_LEN + 2] = "";
    char name[2 * sizeof(a) + 2];
    char key[RECORD_KEY_MAX];
    const struct model_edge *edge;

    memset(a, 'a', NAME_MAX_LEN);
    memset(b, 'b', NAME_MAX_LEN);
    (void)snprintf(name, sizeof(name), "%s--%s", a, b);
    put(record_key(key, RECORD_EDGE, "default", name), strdup("{}"));
    edge = model_find_edge(net, a, b);
    assert_non_null(edge);
    assert_string_equal(edge->spec.meta.name, name);
    assert_string_equal(edge->spec.meta.network, "default");
    assert_string_equal(edge->spec.nodes[0], a);
    assert_string_equal(edge->spec.nodes[1], b);
    assert_int_equal(edge->spec.path, EDGE_PATH_OFF);
    assert_true(edge->spec.meta.resource_version == store_revision(store));
    assert_ptr_equal(edge->net, net);
    assert_ptr_equal(edge->ends[1].edge, edge);
    a[NAME_MAX_LEN] = 'a';
    (void)snprintf(name, sizeof(name), "%s--b", a);
    put(record_key(key, RECORD_EDGE, "default", name), strdup("{}"));
    b[NAME_MAX_LEN] = 'b';
    (void)snprintf(name, sizeof(name), "a--%s", b);
    put(record_key(key, RECORD_EDGE, "default", name), strdup("{}"));
    assert_int_equal(net->edges.n, 1);
    assert_int_equal(n_changed, 1);
}

/* ---- reports -------------------------------------------------------------------------------- */

static void say(struct edge_parts *parts, const char *peer, const struct edge_said *said)
{
    struct edge_part *part = calloc(1, sizeof(*part) + strlen(peer) + 1);

    part->said = *said;
    memcpy(part->peer, peer, strlen(peer) + 1);
    assert_int_equal(edge_parts_put(parts, part), 0);
}

static void probe(struct edge_parts *parts, const char *peer, enum edge_reach tunnel)
{
    struct edge_part *part = calloc(1, sizeof(*part) + strlen(peer) + 1);

    part->probed.tunnel = (uint8_t)tunnel;
    memcpy(part->peer, peer, strlen(peer) + 1);
    assert_int_equal(edge_parts_put(parts, part), 0);
}

static void fill_edges(struct report_record *r)
{
    r->probed.owner = EDGE_OWNER_PROBE;
    say(&r->report.edges, "a", &(struct edge_said){.path = PATH_KIND_N - 1, .is_alarm = true});
    say(&r->report.edges, "b", &(struct edge_said){.path = PATH_KIND_N - 1, .fell_at = 5});
    say(&r->report.edges, "c", &(struct edge_said){.path = PATH_KIND_LAN, .error = strdup("no")});
    say(&r->report.edges, "d", &(struct edge_said){.path = PATH_KIND_N, .fell_at = 6});
    for (unsigned i = 0; i < 3; i++)
        probe(&r->probed, (const char *[]){"a", "b", "c"}[i], EDGE_REACH_SILENT);
    probe(&r->probed, "d", EDGE_REACH_REACHED);
}

static void expect_counts(const struct reported_counts *c)
{
    assert_int_equal(c->by_path[PATH_KIND_LAN], 1);
    assert_int_equal(c->by_path[PATH_KIND_N - 1], 2);
    assert_int_equal(c->alarms, 1);
    assert_int_equal(c->fallen, 2);
    assert_int_equal(c->failing, 1);
    assert_int_equal(c->unreached, 3);
}

/* What a node says of its edges is counted anew each time. */
static void test_counts_of_edges(void **state)
{
    struct reported_node r = {.counts = {.alarms = 9, .unreached = 9}};

    fill_edges(&r.heard);
    reported_count_edges(&r);
    expect_counts(&r.counts);
    report_record_deinit(&r.heard);
}

/* A record of a node of which another hub has only seen that it is there; and one that has
 * reported. */
static void test_reports_in_the_store(void **state)
{
    struct report_record heard = {.last_seen_at = 1000, .by = 9, .probed.owner = EDGE_OWNER_PROBE};
    struct model_node *n2 = model_find_node(net, "n2");

    n2->watched->text = line_new("{}", 2);
    put("report/default/n2", record_report_encode(&heard));
    assert_int_equal(n2->reported->stored_at, 1000);
    assert_true(n2->reported->stored_revision == store_revision(store));
    assert_int_equal(n2->reported->heard.last_seen_at, 1000);
    assert_int_equal(n2->reported->reported_at, 0);
    assert_null(n2->watched->text);
    n2->reported->counts.alarms = 9;
    heard.has_reported = true;
    heard.report.has_edges = true;
    fill_edges(&heard);
    put("report/default/n2", record_report_encode(&heard));
    assert_int_equal(n2->reported->reported_at, 1000);
    expect_counts(&n2->reported->counts);
    report_record_deinit(&heard);
}

/* ---- what the hub notes --------------------------------------------------------------------- */

/* A number is held for a node that is on its way to the store, or given back. */
static void test_numbers_that_are_held(void **state)
{
    uint32_t cursor;

    put("ipam/default", record_ipam_encode(7, 9));
    assert_int_equal(model_next_number(net), 7);
    cursor = model_hold_number(net, 7);
    assert_int_equal(cursor, 7);
    assert_int_equal(net->ipam.next, 8);
    assert_int_equal(model_next_number(net), 8);
    net->ipam.next = 7;
    assert_int_equal(model_next_number(net), 8);
    model_give_number(net, 7, cursor);
    assert_int_equal(model_next_number(net), 7);
}

static void test_notes(void **state)
{
    struct token_record record = {.network = "default", .uses = 2, .hub_key = sample_key(1)};
    const struct token_hash hash = {.b = {7}};
    char key[RECORD_KEY_MAX];

    put(token_hash_key(key, &hash), record_token_encode(&record));
    model_count_given_back(model_find_token(&model, &hash));
    model_count_given_back(model_find_token(&model, &hash));
    assert_int_equal(model_find_token(&model, &hash)->n_given_back, 2);
    /* One that was there before its network was not counted. */
    net->n_tokens = 0;
    put(key, NULL);
    assert_int_equal(net->n_tokens, 0);
    assert_null(model_find_token(&model, &hash));
    model_set_network_leaving(net, MODEL_NETWORK_REMOVED);
    assert_string_equal(net->leaving, MODEL_NETWORK_REMOVED);
    model_set_network_leaving(net, NULL);
    assert_null(net->leaving);
    assert_true(net->has_key && !net->is_retired);
    model_retire(net);
    assert_true(!net->has_key && net->is_retired);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_texts_of_a_network, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_changes_of_a_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_record_of_another_network, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damage_in_no_network, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_damaged_edge, set_up, tear_down),
        cmocka_unit_test(test_counts_of_edges),
        cmocka_unit_test_setup_teardown(test_reports_in_the_store, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_numbers_that_are_held, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_notes, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
