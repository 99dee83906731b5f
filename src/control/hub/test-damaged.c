/* test-damaged.c - records of the store that do not load: what is done with them, and what not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/store_open.h"
#include "base/err.h"
#include "hub/enrol/enrol.h"
#include "hub/record/record.h"
#include "os/clock.h"
#include "store/store.h"
#include "test/support/deaf_listener.h"
#include "test/support/sample_enrol.h"
#include "test/support/store_now.h"

#define WALL 1790000000

/* ---- a hub's model without the hub ---------------------------------------------------------- */

static struct x25519_secret hub_secret;
static struct x25519_public hub_public;
static unsigned n_broken;       /* records that the listener was told of */
static const char *lost_key_of; /* the network whose key file is gone */

static int give_key(void *ctx, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    if (lost_key_of && strcmp(lost_key_of, name) == 0)
        return err_set(e, -ENOENT, "its key is missing");
    *ret = hub_secret;
    return 0;
}

static void on_broken(void *ctx, const char *key, const struct err *e)
{
    assert_true(key[0] && err_text(e)[0]);
    n_broken++;
}

struct fixture {
    struct store *store;
    struct model model;
    struct enrol enrol;
    struct rng rng;
    struct err e;
    struct token_secret secrets[2];
    struct model_node *node; /* the last one that got in */
    char *value;             /* of the record that was read last */
};

/* As it is, without a sum of its own. */
static void put_raw(struct fixture *f, const char *key, const char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};

    assert_int_equal(store_now_commit(f->store, &op, 1, 0, NULL, NULL, &f->e), 0);
}

/* @value is taken. */
static void put(
    struct fixture *f, enum record_kind kind, const char *network, const char *name, char *value)
{
    char key[RECORD_KEY_MAX];
    struct store_op op = {.kind = value ? STORE_OP_PUT : STORE_OP_DELETE,
        .key = record_key(key, kind, network, name),
        .value = value,
        .expect = STORE_EXPECT_ANY};

    assert_int_equal(model_commit(&f->model, &op, 1, 0, NULL, NULL, &f->e), 0);
    store_wait(f->store);
    free(value);
}

static void load(struct fixture *f)
{
    struct model_listener listener = deaf_listener();

    n_broken = 0;
    listener.network_key = give_key;
    listener.broken = on_broken;
    model_init(&f->model, f->store, &listener, 1);
    assert_int_equal(model_load(&f->model, &f->e), 0);
    enrol_init(&f->enrol, &f->model, &f->rng);
}

static void unload(struct fixture *f)
{
    enrol_deinit(&f->enrol);
    model_deinit(&f->model);
}

static void reload(struct fixture *f)
{
    unload(f);
    load(f);
}

static int enter(struct fixture *f, unsigned token, uint8_t key, const char *name)
{
    static const struct ip_addr from = {{[15] = 1}};
    struct enrol_request rq = {.secret = f->secrets[token], .key = {.b = {9, key}}};

    (void)snprintf(rq.name, sizeof(rq.name), "%s", name);
    return sample_enrol_node(&f->enrol, &rq, NULL, &from, 0, WALL, &f->node, &f->e);
}

static uint8_t number_of(const struct model_node *node)
{
    return node->spec.address4.b[15];
}

static void add_network(struct fixture *f, const char *name)
{
    struct network_maker maker = {.key = hub_public, .name = HUB_NAME_DEFAULT};
    struct network n = {.mtu = NETWORK_MTU_DEFAULT};

    (void)snprintf(n.meta.name, sizeof(n.meta.name), "%s", name);
    assert_int_equal(ip_prefix_parse(&n.cidr4, "10.42.0.0/28", NULL), 0);
    assert_int_equal(ip_prefix_parse(&n.cidr6, "fd00::/64", NULL), 0);
    put(f, RECORD_NETWORK, name, "", record_network_encode(&n, &maker));
    put(f, RECORD_IPAM, name, "", record_ipam_encode(2, 1));
}

static void new_token(struct fixture *f, const char *network, struct token_secret *ret)
{
    struct token_request rq = {.ttl_seconds = 3600, .uses = 99};

    assert_int_equal(sample_enrol_token(
                         &f->enrol, model_find_network(&f->model, network), &rq, WALL, ret, &f->e),
        0);
}

static void set_edge(struct fixture *f, enum edge_path path)
{
    struct object edge = {.kind = &mesh_edge_kind,
        .edge = {.meta = {.name = "a--b", .network = "one"}, .nodes = {"a", "b"}, .path = path}};

    put(f, RECORD_EDGE, "one", "a--b", record_object_encode(&edge));
}

/* Two networks, two tokens, three nodes in the first, an edge, a report. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct report_record heard = {.last_seen_at = 5};

    lost_key_of = NULL;
    f->rng = rng_kernel();
    x25519_secret_make(&hub_secret, &f->rng);
    assert_true(x25519_derive_public(&hub_secret, &hub_public));
    assert_int_equal(store_open(&f->store, "memory:", 0, &f->e), 0);
    load(f);
    add_network(f, "one");
    add_network(f, "two");
    new_token(f, "one", &f->secrets[0]);
    new_token(f, "two", &f->secrets[1]);
    assert_int_equal(enter(f, 0, 1, "a"), 0);
    assert_int_equal(enter(f, 0, 2, "b"), 0);
    assert_int_equal(enter(f, 0, 3, "c"), 0);
    assert_int_equal(enter(f, 1, 4, "d"), 0);
    set_edge(f, EDGE_PATH_RELAY);
    put(f, RECORD_REPORT, "one", "a", record_report_encode(&heard));
    put(f, RECORD_REPORT, "one", "b", record_report_encode(&heard));
    assert_int_equal(n_broken, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    unload(f);
    store_free(f->store);
    free(f);
    return 0;
}

/* ---- damage --------------------------------------------------------------------------------- */

static int copy_value(void *ctx, const struct store_item *item)
{
    struct fixture *f = ctx;

    f->value = strdup(item->value);
    return 0;
}

/* Owned by the caller. */
static char *value_of(struct fixture *f, const char *key)
{
    assert_int_equal(store_now_get(f->store, key, copy_value, f, &f->e), 0);
    return f->value;
}

static void truncate_record(struct fixture *f, const char *key)
{
    char *value = value_of(f, key);

    value[strlen(value) / 2] = '\0';
    put_raw(f, key, value);
    free(value);
}

static const char *token_key(struct fixture *f, unsigned i, char buf[static RECORD_KEY_MAX])
{
    struct token_hash hash = token_hash_of(&f->secrets[i]);

    return token_hash_key(buf, &hash);
}

static void assert_damaged(struct fixture *f, const char *key)
{
    assert_int_equal(n_broken, 1);
    assert_int_equal(f->model.damaged.n, 1);
    assert_string_equal(f->model.damaged.items[0]->key, key);
    assert_true(err_text(&damaged_find(&f->model.damaged, key)->why)[0]);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Each record in turn is damaged by each of its bytes: one is set aside, all others are there. */
static void test_any_flipped_byte(void **state)
{
    static const char *const keys[] = {
        "network/two", "ipam/one", "node/one/a", "edge/one/a--b", "report/one/a"};
    struct fixture *f = *state;

    for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
        char *good = value_of(f, keys[k]);
        char *bad = strdup(good);

        for (size_t i = 0; i < strlen(good); i++) {
            bool spoils_sum_field = good + i >= strstr(good, ",\"sum\":\"") &&
                                    good + i < strstr(good, ",\"sum\":\"") + 8;

            bad[i] ^= 1;
            put_raw(f, keys[k], bad);
            bad[i] = good[i];
            /* Then it is one without a sum, which is as whole as it was. */
            if (spoils_sum_field)
                continue;
            reload(f);
            assert_damaged(f, keys[k]);
        }
        put_raw(f, keys[k], good);
        reload(f);
        assert_int_equal(f->model.damaged.n, 0);
        free(bad);
        free(good);
    }
}

static void test_swapped(void **state)
{
    static const char *const keys[][2] = {{"network/one", "network/two"}, {"ipam/one", "ipam/two"},
        {"node/one/a", "node/one/b"}, {"report/one/a", "report/one/b"}};
    struct fixture *f = *state;

    for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
        char *a = value_of(f, keys[k][0]);
        char *b = value_of(f, keys[k][1]);

        put_raw(f, keys[k][0], b);
        put_raw(f, keys[k][1], a);
        reload(f);
        assert_int_equal(f->model.damaged.n, 2);
        assert_non_null(damaged_find(&f->model.damaged, keys[k][0]));
        assert_non_null(damaged_find(&f->model.damaged, keys[k][1]));
        put_raw(f, keys[k][0], a);
        put_raw(f, keys[k][1], b);
        free(a);
        free(b);
    }
}

/* Also without a sum, as an earlier version wrote it, a node is not taken for another. */
static void test_swapped_without_sum(void **state)
{
    struct fixture *f = *state;
    char *value = value_of(f, "node/one/a");

    (void)snprintf(strstr(value, ",\"sum\":"), 2, "}");
    put_raw(f, "node/one/a", value);
    reload(f);
    assert_int_equal(f->model.damaged.n, 0);
    put_raw(f, "node/one/b", value);
    reload(f);
    assert_damaged(f, "node/one/b");
    free(value);
}

static void test_node(void **state)
{
    struct fixture *f = *state;

    truncate_record(f, "node/one/c");
    reload(f);
    assert_damaged(f, "node/one/c");
    assert_null(model_find_node(model_find_network(&f->model, "one"), "c"));
    assert_non_null(model_find_node(model_find_network(&f->model, "one"), "a"));
    /* Its name is not free, and neither is its number, 4, once the block has come to its end. */
    assert_int_equal(enter(f, 0, 20, "c"), ENROL_E_TAKEN);
    for (uint8_t n = 5; n <= 14; n++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "x%d", n);
        if (n == 14)
            reload(f);
        assert_int_equal(enter(f, 0, n, name), 0);
        assert_int_equal(number_of(f->node), n);
    }
    assert_int_equal(enter(f, 0, 15, "more"), ENROL_E_FULL);
    /* It is free when the record is gone. */
    put(f, RECORD_NODE, "one", "c", NULL);
    assert_int_equal(f->model.damaged.n, 0);
    assert_int_equal(enter(f, 0, 15, "more"), 0);
    assert_int_equal(number_of(f->node), 1);
    assert_int_equal(enter(f, 0, 16, "most"), 0);
    assert_int_equal(number_of(f->node), 4);
}

static void test_cursor(void **state)
{
    struct fixture *f = *state;

    truncate_record(f, "ipam/one");
    reload(f);
    assert_damaged(f, "ipam/one");
    /* Without knowing what was given out, only numbers behind all others are; and the next one
     * that is given out makes the record anew. */
    assert_int_equal(enter(f, 0, 20, "x"), 0);
    assert_int_equal(number_of(f->node), 5);
    assert_int_equal(f->model.damaged.n, 0);
    truncate_record(f, "ipam/one");
    truncate_record(f, "node/one/x");
    reload(f);
    assert_int_equal(f->model.damaged.n, 2);
    assert_int_equal(enter(f, 0, 21, "y"), ENROL_E_FULL);
    assert_int_equal(f->model.damaged.n, 2);
}

static void test_token(void **state)
{
    struct fixture *f = *state;
    char key0[RECORD_KEY_MAX];
    char key1[RECORD_KEY_MAX];
    char *value = value_of(f, token_key(f, 1, key1));

    put_raw(f, token_key(f, 0, key0), value);
    reload(f);
    assert_damaged(f, key0);
    assert_int_equal(enter(f, 0, 20, "x"), ENROL_E_DENIED);
    assert_int_equal(enter(f, 1, 21, "y"), 0);
    free(value);
}

static void test_edge(void **state)
{
    struct fixture *f = *state;
    struct model_network *net = model_find_network(&f->model, "one");

    assert_true(model_may_talk(model_find_node(net, "a"), model_find_node(net, "b")));
    truncate_record(f, "edge/one/a--b");
    reload(f);
    assert_damaged(f, "edge/one/a--b");
    net = model_find_network(&f->model, "one");
    /* It may have said that they shall not. */
    assert_false(model_may_talk(model_find_node(net, "a"), model_find_node(net, "b")));
    assert_true(model_may_talk(model_find_node(net, "a"), model_find_node(net, "c")));
    set_edge(f, EDGE_PATH_AUTO);
    assert_int_equal(f->model.damaged.n, 0);
    assert_true(model_may_talk(model_find_node(net, "a"), model_find_node(net, "b")));
}

static void test_network(void **state)
{
    struct fixture *f = *state;

    truncate_record(f, "network/one");
    reload(f);
    assert_damaged(f, "network/one");
    assert_null(model_find_network(&f->model, "one"));
    assert_non_null(model_find_node(model_find_network(&f->model, "two"), "d"));
    assert_int_equal(enter(f, 0, 20, "x"), ENROL_E_GONE);
}

static void test_lost_key(void **state)
{
    struct fixture *f = *state;

    lost_key_of = "one";
    reload(f);
    assert_damaged(f, "network/one");
    assert_non_null(model_find_network(&f->model, "two"));
}

/* A key that starts as ours do and goes on otherwise is none of another version's. */
static void test_keys(void **state)
{
    static const char *const keys[] = {
        "node/one", "network/", "token/", "token/abc", "edge/one", "report/one/", "ipam/one/more"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        put_raw(f, keys[i], "{\"next\":7}");
    put_raw(f, "future/one", "anything");
    reload(f);
    assert_int_equal(f->model.damaged.n, sizeof(keys) / sizeof(*keys));
}

static void test_seal(void **state)
{
    char *text = seal_add("k", "{\"a\":1}");
    struct err e = ERR_NULL;

    assert_non_null(text);
    assert_int_equal(seal_check("k", text, &e), 0);
    assert_int_equal(seal_check("other", text, &e), -EINVAL);
    assert_true(seal_is_there(text));
    /* With another end it is no sum, and no JSON either; and the damage is seen. */
    for (size_t i = strlen(text) - 2; text[i]; i++) {
        text[i] ^= 1;
        assert_false(seal_is_there(text));
        assert_int_equal(seal_check("k", text, &e), -EINVAL);
        assert_non_null(strstr(err_text(&e), "its last characters are "));
        text[i] ^= 1;
    }
    assert_int_equal(seal_check("k", "{\"a\":1}", &e), 0);
    assert_null(seal_add("k", "[]"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_flipped_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(test_swapped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_swapped_without_sum, setup, teardown),
        cmocka_unit_test_setup_teardown(test_node, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cursor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_token, setup, teardown),
        cmocka_unit_test_setup_teardown(test_edge, setup, teardown),
        cmocka_unit_test_setup_teardown(test_network, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
        cmocka_unit_test(test_seal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
