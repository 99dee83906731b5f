/*
 * test-changes-data.c - what the data half is told of a change of the model, and when.
 *
 * A hub on the memory store, with an engine that keeps what it is told, and a real router. No
 * interface is made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "filter/relay.h"
#include "hub/changes.h"
#include "os/clock.h"
#include "os/log.h"
#include "relay/router.h"
#include "store/store.h"
#include "test/support/captured_log.h"
#include "test/support/router_sample.h"
#include "test/support/sample_hub.h"
#include "test/support/sample_overlay.h"

static struct sample_hub s;
static struct sample_overlay so;

static struct model_network *network(void)
{
    return sample_hub_network(&s);
}

static int enter(void **state)
{
    sample_hub_begin(&s);
    sample_overlay_begin(&so, &s);
    return 0;
}

/* The end of the hub takes all from the data half that is still there. */
static int leave(void **state)
{
    if (network()->served->overlay)
        network()->served->overlay->device = NULL;
    sample_hub_end(&s);
    assert_int_equal(so.n_closed, 1);
    assert_int_equal(so.o.by_remote.n, 0);
    assert_true(list_is_empty(&so.o.recontacts));
    assert_true(list_is_empty(&so.o.networks));
    sample_overlay_end(&so);
    return 0;
}

static int ask(const char *method, const char *path, const char *body)
{
    return sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, method, path, body, NULL);
}

/* As another hub writes it. @value: NULL deletes; taken. */
static void put(const char *key, char *value)
{
    sample_hub_write(&s, key, value);
    free(value);
}

/* The engine was told of one change of a peer since the last call, or of the last of several. */
static void expect_change(enum diff_op op, const struct x25519_public *key)
{
    const struct sample_peers_change *change;

    assert_int_not_equal(so.engine.n_changes, 0);
    change = &so.engine.changes[--so.engine.n_changes];
    assert_int_equal(change->op, op);
    assert_true(x25519_public_equal(&change->key, key));
}

/* A member that was heard at a place of its own. */
static struct model_node *add_member(const char *name)
{
    struct model_node *node;
    struct udp_path path = {.remote = sample_endpoint((uint8_t)name[0])};

    sample_hub_add_node(&s, name);
    node = sample_hub_node(&s, name);
    expect_change(DIFF_OP_ADD, &node->spec.key);
    assert_int_equal(so.engine.n_changes, 0);
    assert_non_null(node->served->overlay);
    overlay__note_path(network()->served->overlay, &node->spec.key, &path, clock_now());
    return node;
}

static bool no_index(void *ctx, uint32_t index)
{
    return false;
}

static bool is_relayed(const struct model_node *from, const struct model_node *to)
{
    struct wg_initiation msg = sample_initiation(&to->spec.key, 5);
    struct router_arrival in = {
        .from = from->served->overlay->path.remote, .now = clock_now(), .is_local = no_index};

    return router_route(relay_router(so.o.relay), &in, (const uint8_t *)&msg, sizeof(msg)).action ==
           ROUTER_ACTION_FORWARD;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* For a while a removed node has its session, and nothing is relayed for it. */
static void test_a_node_that_is_removed(void **state)
{
    const struct model_node *a = add_member("aa");
    const struct model_node *b = add_member("bb");
    struct x25519_public key = b->spec.key;
    nsec_t since = clock_now();

    assert_true(is_relayed(a, b));
    assert_int_equal(ask("DELETE", "/v1/networks/default/nodes/bb", NULL), 204);
    assert_int_equal(so.engine.n_changes, 0);
    assert_null(b->served->overlay->router);
    assert_false(is_relayed(a, b));
    while (so.engine.n_changes == 0 && clock_now() - since < 5 * NSEC_PER_SEC)
        (void)uv_run(&s.loop, UV_RUN_ONCE);
    assert_int_equal(so.engine.n_changes, 1);
    expect_change(DIFF_OP_REMOVE, &key);
}

/* The data half is rid of the former node before it has the next one. */
static void test_a_node_that_comes_back(void **state)
{
    const struct model_node *a = add_member("aa");
    struct x25519_public key = a->spec.key;

    assert_int_equal(ask("DELETE", "/v1/networks/default/nodes/aa", NULL), 204);
    sample_hub_add_node(&s, "aa");
    assert_int_equal(so.engine.n_changes, 2);
    expect_change(DIFF_OP_ADD, &key);
    expect_change(DIFF_OP_REMOVE, &key);
}

/* As another hub writes the node @a with this spec. */
static void write_node(const struct model_node *a, const struct node *spec)
{
    put("node/default/aa", record_node_encode(spec, &a->token));
    so.engine.changes[so.engine.n_changes] = (struct sample_peers_change){0};
}

/* Other addresses are an update of the peer; another key is another peer. */
static void test_a_node_that_changes(void **state)
{
    const struct model_node *a = add_member("aa");
    struct node spec = a->spec;
    struct x25519_public before = spec.key;

    network()->served->overlay->device = &so.device;
    write_node(a, &spec);
    assert_int_equal(so.engine.n_changes, 0);
    spec.address4.b[15] = 77;
    spec.address6.b[15] = 77;
    write_node(a, &spec);
    assert_int_equal(so.engine.n_changes, 1);
    expect_change(DIFF_OP_UPDATE, &spec.key);
    spec.key.b[3] ^= 1;
    write_node(a, &spec);
    assert_int_equal(so.engine.n_changes, 2);
    expect_change(DIFF_OP_ADD, &spec.key);
    expect_change(DIFF_OP_REMOVE, &before);
}

/* Hubs have no sessions with each other. */
static void test_another_hub_comes(void **state)
{
    const struct model_node *own = network()->own;
    struct node spec = own->spec;

    (void)snprintf(spec.meta.name, sizeof(spec.meta.name), "far");
    spec.key.b[3] ^= 1;
    spec.address4.b[15] = 77;
    spec.address6.b[15] = 77;
    put("node/default/far", record_node_encode(&spec, &own->token));
    assert_non_null(model_find_node(network(), "far"));
    assert_int_equal(so.engine.n_changes, 0);
    assert_null(sample_hub_node(&s, "far")->served->overlay);
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void test_an_edge_is_turned_off(void **state)
{
    const struct model_node *a = add_member("aa");
    const struct model_node *b = add_member("bb");
    const struct model_node *c = add_member("cc");

    assert_true(is_relayed(a, b));
    sample_hub_turn_edge_off(&s, "aa", "bb");
    assert_false(is_relayed(a, b));
    assert_true(is_relayed(a, c));
    assert_int_equal(ask("DELETE", "/v1/networks/default/objects/MeshEdge/aa--bb", NULL), 204);
    assert_true(is_relayed(a, b));
}

static void put_edge(const char *name, const char *to, const char *path)
{
    char text[256];
    char key[64];

    (void)snprintf(key, sizeof(key), "edge/default/%s", name);
    (void)snprintf(text, sizeof(text),
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"%s\",\"network\":\"default\"},"
        "\"spec\":{\"nodes\":[\"aa\",\"%s\"],\"path\":\"%s\"}}",
        name, to, path);
    put(key, strdup(text));
}

/* One that was off before its second node came is off then. */
static void test_an_edge_that_is_off_already(void **state)
{
    const struct model_node *a = add_member("aa");
    const struct model_node *b;

    put_edge("aa--bb", "bb", "off");
    put_edge("aa--cc", "cc", "relay");
    b = add_member("bb");
    assert_int_equal(network()->edges.n, 2);
    assert_false(is_relayed(a, b));
    assert_true(is_relayed(a, add_member("cc")));
}

/* ---- the hub's own node, and its end --------------------------------------------------------- */

/* All of the network's data half goes at once, and it is said why. */
static void test_the_hubs_own_node_is_removed(void **state)
{
    const struct model_node *a = add_member("aa");
    const struct model_node *b = add_member("bb");
    struct captured_log log = captured_log_begin();

    put("node/default/hub", NULL);
    captured_log_end(&log,
        "error: hub: hub \"hub\" was removed from network \"default\" by an administrator: it "
        "serves the network no more, until it is started again\n");
    assert_false(network()->served->is_up);
    assert_true(network()->is_retired);
    assert_int_equal(so.engine.n_changes, 2);
    expect_change(DIFF_OP_REMOVE, &b->spec.key);
    expect_change(DIFF_OP_REMOVE, &a->spec.key);
    assert_int_equal(so.n_closed, 1);
    assert_null(network()->served->overlay);
    assert_true(list_is_empty(&network()->removed));
}

/* The end may be asked for twice. */
static void test_the_end(void **state)
{
    const struct model_node *a = add_member("aa");
    struct x25519_public key = a->spec.key;

    add_member("bb");
    assert_int_equal(ask("DELETE", "/v1/networks/default/nodes/bb", NULL), 204);
    changes_stop(&s.hub->changes);
    assert_int_equal(so.engine.n_changes, 2);
    so.engine.n_changes--;
    expect_change(DIFF_OP_REMOVE, &key);
    assert_int_equal(so.n_closed, 1);
    assert_false(network()->served->is_up);
    assert_false(s.hub->changes.is_running);
    changes_stop(&s.hub->changes);
    assert_int_equal(so.n_closed, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_a_node_that_is_removed),
        TEST(test_a_node_that_comes_back),
        TEST(test_a_node_that_changes),
        TEST(test_another_hub_comes),
        TEST(test_an_edge_is_turned_off),
        TEST(test_an_edge_that_is_off_already),
        TEST(test_the_hubs_own_node_is_removed),
        TEST(test_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
