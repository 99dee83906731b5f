/* test-node-file.c - node.json: what a node has asked for at its join, kept and checked. */
#include "agent/state/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "test/support/sample_mesh.h"

static char dir[64];
static char path[96];

static int enter(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-test-node-file.XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/node.json", dir);
    return 0;
}

static int leave(void **state)
{
    char public[96];

    (void)snprintf(public, sizeof(public), "%s/public.json", dir);
    (void)unlink(path);
    (void)unlink(public);
    return rmdir(dir);
}

/* n2 of three, which has asked for everything. */
static struct state make_state(void)
{
    struct state st = {.secret = {.b = {5, [31] = 0x40}},
        .interface = "weft0",
        .engine = ENGINE_KIND_USERSPACE,
        .wants_relay = true,
        .keeps_sources = true,
        .accepts = SUBNETS_ACCEPT_ALL,
        .listen_port = 51821,
        .n_given = 2,
        .machine = {.id = "0123456789abcdef",
            .cards = {"c000000000000001", "c000000000000002"},
            .n_cards = 2},
        .has_machine = true,
        .hub_api = {.n_api = 2, .pin = {{1, 2, 3}}}};
    struct object self = sample_node(2);

    st.snapshot = sample_snapshot(3, 2);
    assert_true(x25519_derive_public(&st.secret, &self.node.key));
    sample_put(&st.snapshot, self);
    (void)snprintf(st.hub_api.api[0], sizeof(st.hub_api.api[0]), "192.0.2.1:8443");
    (void)snprintf(st.hub_api.api[1], sizeof(st.hub_api.api[1]), "hub.example.org:8443");
    (void)snprintf(st.hub_api.proxy, sizeof(st.hub_api.proxy), "http://proxy:3128");
    assert_int_equal(state_parse_given(&st.given[0], "192.0.2.7:4000", NULL), 0);
    assert_int_equal(state_parse_given(&st.given[1], "2001:db8::7", NULL), 0);
    assert_int_equal(subnets_parse(&st.routes, "192.168.7.0/24,192.168.8.0/24", NULL), 0);
    return st;
}

static void write_well(struct state *st)
{
    struct err e = ERR_NULL;

    if (state_write(st, dir, &e) != 0)
        fail_msg("%s", err_text(&e));
}

static void test_all_of_it_comes_back(void **state)
{
    struct state st = make_state();
    struct state is = STATE_NULL;

    assert_true(access(path, F_OK) != 0 && !state_is_there(dir));
    write_well(&st);
    assert_true(state_is_there(dir));
    assert_int_equal(state_read(&is, dir, NULL), 0);
    assert_memory_equal(&is.secret, &st.secret, sizeof(st.secret));
    assert_string_equal(is.interface, "weft0");
    assert_int_equal(is.engine, ENGINE_KIND_USERSPACE);
    assert_true(is.wants_relay && is.keeps_sources);
    assert_false(is.keeps_hosts || is.answers_dns);
    assert_int_equal(is.accepts, SUBNETS_ACCEPT_ALL);
    assert_int_equal(is.listen_port, 51821);
    assert_int_equal(is.routes.n, 2);
    assert_int_equal(is.n_given, 2);
    assert_true(endpoint_equal(&is.given[0], &st.given[0]));
    assert_true(endpoint_equal(&is.given[1], &st.given[1]));
    assert_int_equal(is.given[1].port, 0);
    assert_int_equal(is.hub_api.n_api, 2);
    assert_string_equal(is.hub_api.api[0], "192.0.2.1:8443");
    assert_string_equal(is.hub_api.api[1], "hub.example.org:8443");
    assert_memory_equal(&is.hub_api.pin, &st.hub_api.pin, sizeof(st.hub_api.pin));
    assert_string_equal(is.hub_api.proxy, "http://proxy:3128");
    assert_true(is.has_machine);
    assert_string_equal(is.machine.id, "0123456789abcdef");
    assert_int_equal(is.machine.n_cards, 2);
    assert_string_equal(is.machine.cards[1], "c000000000000002");
    /* Of the network what is needed to reach the hub. */
    assert_string_equal(is.snapshot.self, "n2");
    assert_int_equal(is.snapshot.nodes.n, 2);
    assert_non_null(snapshot_find_node(&is.snapshot, "hub"));
    state_deinit(&is);
    state_deinit(&st);
}

static void test_a_node_that_has_asked_for_nothing(void **state)
{
    static const char *const absent[] = {"hubPin", "proxy", "machine"};
    struct state st = make_state();
    struct state is = STATE_NULL;
    json_t *json;

    st.has_machine = false;
    st.hub_api = (struct state_hub_api){.n_api = 0};
    st.n_given = 0;
    st.listen_port = 0;
    st.routes = (struct subnets)SUBNETS_NULL;
    st.wants_relay = st.keeps_sources = false;
    st.keeps_hosts = st.answers_dns = true;
    write_well(&st);
    assert_int_equal(state_read(&is, dir, NULL), 0);
    assert_int_equal(is.hub_api.n_api, 0);
    assert_string_equal(is.hub_api.proxy, "");
    assert_int_equal(is.n_given, 0);
    assert_int_equal(is.routes.n, 0);
    assert_false(is.wants_relay || is.keeps_sources);
    assert_true(is.keeps_hosts && is.answers_dns);
    assert_false(is.has_machine);
    assert_int_equal(is.listen_port, 0);
    state_deinit(&is);
    state_deinit(&st);
    json = json_load_file(path, 0, NULL);
    for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++)
        assert_null(json_object_get(json, absent[i]));
    assert_int_equal(json_array_size(json_object_get(json, "hubApi")), 0);
    json_decref(json);
}

/* The file with one field changed, which is taken; NULL: without it. */
static void change(const char *field, json_t *value)
{
    json_t *json = json_load_file(path, 0, NULL);

    assert_non_null(json);
    if (value)
        (void)json_object_set_new(json, field, value);
    else
        (void)json_object_del(json, field);
    assert_int_equal(json_dump_file(json, path, 0), 0);
    json_decref(json);
}

static void refuses(const char *field, json_t *value, const char *words)
{
    struct state st = make_state();
    struct state is = STATE_NULL;
    struct err e = ERR_NULL;

    write_well(&st);
    state_deinit(&st);
    change(field, value);
    assert_int_equal(state_read(&is, dir, &e), -EINVAL);
    assert_memory_equal(&is, &(struct state)STATE_NULL, sizeof(is));
    if (!strstr(e.text, words) || !strstr(e.text, path))
        fail_msg("\"%s\", and not \"%s\"", e.text, words);
}

static void test_fields_that_are_damaged(void **state)
{
    refuses("privateKey", json_string("short"), "\"privateKey\" is not a key");
    refuses("privateKey", NULL, "\"privateKey\"");
    refuses("interface", json_string("a/b"), "interface \"a/b\" is not a name");
    refuses("interface", json_string("sixteen-letters!"), "\"interface\"");
    refuses("interface", NULL, "\"interface\"");
    refuses("engine", NULL, "\"engine\"");
    refuses("machine", json_integer(7), "\"machine\"");
    refuses("engine", json_string("steam"), "steam");
    refuses("hubApi", json_pack("[s]", "nowhere"), "\"hubApi\" is not a list of HOST:PORT");
    refuses("hubApi", json_pack("[i]", 7), "\"hubApi\" is not a list of HOST:PORT");
    refuses("hubPin", json_string("short"), "\"hubPin\" is not a SHA-256");
    refuses("hubPin", NULL, "\"hubPin\" is not a SHA-256");
    refuses("proxy", json_string("ftp://x"), "the proxy's scheme \"ftp\"");
    refuses("acceptRoutes", json_string("some"), "\"acceptRoutes\": ");
    refuses("endpoints", json_pack("[i]", 7), "an endpoint is not a string");
    refuses(
        "endpoints", json_pack("[s]", "x"), "\"x\" is no endpoint: an address, or ADDRESS:PORT");
    refuses("listenPort", json_integer(65536), "\"listenPort\"");
    refuses("listenPort", json_integer(-1), "\"listenPort\"");
    refuses("endpoints",
        json_pack(
            "[s, s, s, s, s]", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"),
        "\"endpoints\"");
    refuses("joined", NULL, "\"joined\"");
    refuses("joined", json_object(), "node.json: the snapshot: ");
}

/* A node.json that was copied together from two. */
static void test_the_key_of_another_node(void **state)
{
    refuses("privateKey", json_string("CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEA="),
        "is damaged: its private key is not that of its node");
}

/* What an older version wrote has no such fields. */
static void test_fields_that_may_be_missing(void **state)
{
    static const char *const optional[] = {"proxy", "hosts", "dns", "relay", "routes",
        "keepSources", "acceptRoutes", "endpoints", "listenPort", "machine"};
    struct state st = make_state();
    struct state is = STATE_NULL;
    struct err e = ERR_NULL;

    write_well(&st);
    state_deinit(&st);
    for (size_t i = 0; i < sizeof(optional) / sizeof(*optional); i++)
        change(optional[i], NULL);
    if (state_read(&is, dir, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_true(is.keeps_hosts && is.answers_dns);
    assert_false(is.wants_relay || is.has_machine);
    assert_int_equal(is.hub_api.n_api, 2);
    state_deinit(&is);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_of_it_comes_back, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_node_that_has_asked_for_nothing, enter, leave),
        cmocka_unit_test_setup_teardown(test_fields_that_are_damaged, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_key_of_another_node, enter, leave),
        cmocka_unit_test_setup_teardown(test_fields_that_may_be_missing, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
