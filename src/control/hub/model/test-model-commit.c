/* test-model-commit.c - what the hub writes on its way to the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "store/store_backend.h"
#include "store/store.h"
#include "test/support/deaf_listener.h"
#include "test/support/sample_late.h"
#include "test/support/sample_mesh.h"
#include "test/support/store_now.h"

#define S NSEC_PER_SEC

static int keep_value(void *ctx, const struct store_item *item)
{
    (void)snprintf(ctx, 256, "%s", item->value);
    return 0;
}

/* What the model knows gets a sum; what it does not know stays as it is. */
static void test_sums(void **state)
{
    const struct model_listener nobody = {.ctx = NULL};
    struct model model;
    struct store *s;
    const struct store_op ops[] = {{.kind = STORE_OP_PUT,
                                       .key = "ipam/default",
                                       .value = "{\"next\":7}",
                                       .expect = STORE_EXPECT_ABSENT},
        {.kind = STORE_OP_PUT, .key = "mine/x", .value = "text", .expect = STORE_EXPECT_ABSENT},
        {.kind = STORE_OP_CHECK, .key = "mine/y", .expect = STORE_EXPECT_ABSENT}};
    struct err e = ERR_NULL;
    char value[256] = "";

    assert_int_equal(memory_open(&s, "", 1, &e), 0);
    model_init(&model, s, &nobody, 5);
    assert_int_equal(model_commit(&model, ops, 3, 1, NULL, NULL, &e), 0);
    store_wait(s);
    assert_int_equal(store_now_get(s, "ipam/default", keep_value, value, &e), 0);
    assert_true(seal_is_there(value));
    assert_int_equal(seal_check("ipam/default", value, &e), 0);
    assert_int_equal(store_now_get(s, "mine/x", keep_value, value, &e), 0);
    assert_string_equal(value, "text");
    model_deinit(&model);
    store_free(s);
}

/* ---- what ends by itself -------------------------------------------------------------------- */

static unsigned n_broken;

static int network_key(void *ctx, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    *ret = (struct x25519_secret){.b = {1}};
    return 0;
}

static void on_broken(void *ctx, const char *key, const struct err *e)
{
    assert_string_equal(key, "");
    n_broken++;
}

static struct model_listener make_listener(void)
{
    struct model_listener l = deaf_listener();

    l.network_key = network_key;
    l.broken = on_broken;
    return l;
}

static int count_one(void *ctx, const struct store_item *item)
{
    *(unsigned *)ctx += 1;
    return 0;
}

static unsigned count(struct store *s, const char *prefix)
{
    struct err e = ERR_NULL;
    unsigned n = 0;

    assert_int_equal(store_now_list(s, prefix, count_one, &n, NULL, &e), 0);
    return n;
}

/* @value: taken. */
static void put_leased(struct store *s, const char *key, char *value, uint32_t ttl_seconds)
{
    struct store_op op = {.kind = STORE_OP_PUT,
        .key = key,
        .value = value,
        .expect = STORE_EXPECT_ANY,
        .ttl_seconds = ttl_seconds};
    struct err e = ERR_NULL;

    assert_int_equal(store_now_commit(s, &op, 1, 0, NULL, NULL, &e), 0);
    free(value);
}

/* More than one commit removes go in one after the other. */
static void test_many_end(void **state)
{
    const struct model_listener listener = make_listener();
    struct err e = ERR_NULL;
    struct model model;
    struct store *s;

    assert_int_equal(memory_open(&s, "", 0, &e), 0);
    model_init(&model, s, &listener, 5);
    for (unsigned i = 0; i < 300; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "other/%u", i);
        put_leased(s, key, strdup("x"), i < 299 ? 60 : 61);
    }
    assert_int_equal(model_expire(&model, 60 * S, &e), 0);
    assert_int_equal(model.expired_at, 60 * S);
    store_wait(s);
    assert_int_equal(count(s, "other/"), 1);
    assert_false(model.is_expiring);
    model_deinit(&model);
    store_free(s);
}

/* The store has lost the commit, or its answer: the nodes are what they were, all of them, until
 * the next call. */
static void test_an_end_that_is_lost(void **state)
{
    const struct model_listener listener = make_listener();
    unsigned n_kept = 0;

    for (uint64_t seed = 1; seed < 12; seed++) {
        struct store *s = sample_late_open(seed, 0);
        struct snapshot sample = sample_snapshot(1, 1);
        struct network_maker by = {.key = sample_key(1), .name = "hub"};
        struct object o = sample_node(2);
        struct err e = ERR_NULL;
        struct model model;
        struct model_node *node;

        n_broken = 0;
        model_init(&model, s, &listener, 5);
        put_leased(s, "network/default", record_network_encode(&sample.network, &by), 0);
        put_leased(
            s, "node/default/n2", record_node_encode(&o.node, &(struct token_hash){.b = {4}}), 60);
        assert_int_equal(model_load(&model, &e), 0);
        node = model_find_node(model_find_network(&model, "default"), "n2");
        sample_late_set_loss(s, 1);
        assert_int_equal(model_expire(&model, 61 * S, &e), 0);
        assert_true(node->is_expired && model.is_expiring);
        store_wait(s);
        assert_int_equal(n_broken, 1);
        assert_false(model.is_expiring);
        sample_late_set_loss(s, 0);
        if (count(s, "node/") > 0) {
            n_kept++;
            assert_false(node->is_expired);
            assert_int_equal(model_expire(&model, 61 * S, &e), 0);
            store_wait(s);
            assert_int_equal(count(s, "node/"), 0);
            assert_int_equal(n_broken, 1);
        }
        object_deinit(&o);
        snapshot_deinit(&sample);
        model_deinit(&model);
        store_free(s);
    }
    assert_true(n_kept > 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_many_end),
        cmocka_unit_test(test_an_end_that_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
