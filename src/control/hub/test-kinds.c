/*
 * test-kinds.c - one kind of object more: what a hub does with it without knowing it.
 *
 * The kind is the example of docs/HACKING.md, "A new object kind": test/support/notice.c. What an
 * administrator writes is kept, shown, told to the nodes that may see it, and loads again.
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
#include "base/text.h"
#include "store/store.h"
#include "test/support/notice.h"
#include "test/support/sample_hub.h"

#define PLACE "/v1/networks/default/objects/Notice/"

static struct model_network *network(struct sample_hub *s)
{
    return model_find_network(&s->hub->model, "default");
}

static void add_node(struct sample_hub *s, const char *name)
{
    uint8_t key[32] = {[1] = (uint8_t)name[0], [2] = 1};
    char text[BASE64_SIZE(32)];
    char body[256];

    base64_encode(key, sizeof(key), text);
    (void)snprintf(body, sizeof(body), "{\"name\":\"%s\",\"publicKey\":\"%s\"}", name, text);
    assert_int_equal(
        sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "POST", "/v1/networks/default/nodes", body, NULL),
        201);
}

/* With the nodes a, b and c, of which a and c listen. */
static void open_hub(struct sample_hub *s, bool on_disk)
{
    *s = (struct sample_hub){.now = 0};
    sample_hub_make_dir(s, on_disk);
    sample_hub_open(s);
    add_node(s, "a");
    add_node(s, "b");
    add_node(s, "c");
    sample_hub_listen(s, model_find_node(network(s), "a"));
    sample_hub_listen(s, model_find_node(network(s), "c"));
    sample_hub_hear(s);
}

static void close_hub(struct sample_hub *s)
{
    sample_hub_close(s);
    sample_hub_remove_dir(s);
}

/* What `weft apply` does. The status. */
static int put(struct sample_hub *s, const char *name, const char *node, unsigned version)
{
    char path[128];
    char body[512];
    int status;

    (void)snprintf(path, sizeof(path), PLACE "%s", name);
    (void)snprintf(body, sizeof(body),
        "{\"kind\":\"Notice\",\"metadata\":{\"name\":\"%s\",\"resourceVersion\":%u},"
        "\"spec\":{\"nodes\":[\"%s\",\"b\"],\"text\":\"be careful\"}}",
        name, version, node);
    status = sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "PUT", path, body, NULL);
    sample_hub_hear(s);
    return status;
}

/* How many notices the node number @ear hears of. */
static size_t heard(struct sample_hub *s, unsigned ear)
{
    return snapshot_list(&s->ears[ear].held, &notice_kind)->n;
}

static void test_apply_and_get(void **state)
{
    struct sample_hub s;
    json_t *json;
    json_t *items;

    open_hub(&s, false);
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "GET", PLACE "x", NULL, NULL), 404);
    assert_int_equal(put(&s, "x", "a", 0), 200);
    assert_int_equal(put(&s, "w", "a", 0), 200);
    assert_int_equal(put(&s, "y", "nobody", 0), 404);
    assert_int_equal(
        sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "GET", PLACE "x", NULL, &json), 200);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json, "spec"), "text")), "be careful");
    json_decref(json);
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "GET",
                         "/v1/networks/default/objects/Notice", NULL, &json),
        200);
    items = json_object_get(json, "items");
    assert_int_equal(json_array_size(items), 2);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(json_array_get(items, 0), "metadata"), "name")),
        "w");
    json_decref(json);
    close_hub(&s);
}

static void test_versions(void **state)
{
    struct sample_hub s;
    unsigned version;

    open_hub(&s, false);
    assert_int_equal(put(&s, "x", "a", 77), 409);
    assert_int_equal(put(&s, "x", "a", 0), 200);
    version =
        (unsigned)model_find_object(network(&s), &notice_kind, "x")->object.meta.resource_version;
    assert_int_equal(put(&s, "x", "a", version), 200);
    assert_int_equal(put(&s, "x", "a", version), 409);
    close_hub(&s);
}

/* Those whom it names hear of it, and of its end; a snapshot says the same as what was told. */
static void test_who_is_told(void **state)
{
    struct sample_hub s;

    open_hub(&s, false);
    assert_int_equal(put(&s, "x", "a", 0), 200);
    assert_int_equal(heard(&s, 0), 1);
    assert_int_equal(heard(&s, 1), 0);
    assert_int_equal(put(&s, "x", "c", 0), 200);
    assert_int_equal(heard(&s, 0), 0);
    assert_int_equal(heard(&s, 1), 1);
    sample_hub_compare(&s);
    sample_hub_listen(&s, model_find_node(network(&s), "b"));
    sample_hub_hear(&s);
    assert_int_equal(heard(&s, 2), 1);
    close_hub(&s);
}

static int remove_object(struct sample_hub *s, const char *path)
{
    int status = sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "DELETE", path, NULL, NULL);

    sample_hub_hear(s);
    return status;
}

/* Those who could see it hear of its end. It can be made again. */
static void test_remove(void **state)
{
    struct sample_hub s;

    open_hub(&s, false);
    assert_int_equal(remove_object(&s, PLACE "x"), 404);
    assert_int_equal(put(&s, "x", "a", 0), 200);
    assert_int_equal(put(&s, "y", "a", 0), 200);
    assert_int_equal(heard(&s, 0), 2);
    assert_int_equal(remove_object(&s, PLACE "x"), 204);
    assert_int_equal(heard(&s, 0), 1);
    assert_null(model_find_object(network(&s), &notice_kind, "x"));
    assert_non_null(model_find_object(network(&s), &notice_kind, "y"));
    assert_int_equal(remove_object(&s, PLACE "x"), 404);
    assert_int_equal(put(&s, "x", "c", 0), 200);
    sample_hub_compare(&s);
    close_hub(&s);
}

static int put_edge(struct sample_hub *s, const char *path)
{
    char body[256];

    (void)snprintf(body, sizeof(body),
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--c\"},"
        "\"spec\":{\"nodes\":[\"a\",\"c\"],\"path\":\"%s\"}}",
        path);
    return sample_hub_ask(
        s, API_ACCESS_ADMIN, NULL, "PUT", "/v1/networks/default/objects/MeshEdge/a--c", body, NULL);
}

/* Two that were cut off from each other see each other again. */
static void test_remove_edge(void **state)
{
    static const char path[] = "/v1/networks/default/objects/MeshEdge/a--c";
    struct sample_hub s;
    size_t n_before;

    open_hub(&s, false);
    n_before = s.ears[0].held.nodes.n;
    assert_int_equal(remove_object(&s, path), 404);
    assert_int_equal(put_edge(&s, "off"), 200);
    sample_hub_hear(&s);
    assert_int_equal(s.ears[0].held.nodes.n, n_before - 1);
    assert_int_equal(remove_object(&s, path), 204);
    assert_int_equal(s.ears[0].held.nodes.n, n_before);
    assert_null(model_find_edge(network(&s), "a", "c"));
    sample_hub_compare(&s);
    close_hub(&s);
}

static void test_remove_node_and_network(void **state)
{
    struct sample_hub s;

    open_hub(&s, false);
    assert_int_equal(remove_object(&s, "/v1/networks/default/objects/Node/none"), 404);
    assert_int_equal(remove_object(&s, "/v1/networks/default/objects/Node/hub"), 400);
    assert_int_equal(remove_object(&s, "/v1/networks/default/objects/Node/b"), 204);
    assert_null(model_find_node(network(&s), "b"));
    assert_int_equal(remove_object(&s, "/v1/networks/default/objects/Network/other"), 404);
    assert_int_equal(remove_object(&s, "/v1/networks/default/objects/Other/b"), 404);
    assert_int_equal(remove_object(&s, "/v1/networks/default/objects/Network/default"), 204);
    assert_null(network(&s));
    close_hub(&s);
}

/* ---- the store ------------------------------------------------------------------------------ */

static int no_key(void *ctx, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    return 0;
}

static void on_network(void *ctx, const struct model_network *net)
{
}

static void on_node(void *ctx, const struct model_node *node)
{
}

static void on_object(void *ctx, const struct model_network *net, const struct object *before,
    const struct object *now)
{
    ++*(unsigned *)ctx;
}

static void on_broken(void *ctx, const char *key, const struct err *e)
{
    fail_msg("%s: %s", key, err_text(e));
}

/* Another model of the same store, as after a start. */
static void test_loads_again(void **state)
{
    unsigned n_reported = 0;
    const struct model_listener listener = {.ctx = &n_reported,
        .network_key = no_key,
        .network_added = on_network,
        .node_added = on_node,
        .status_changed = on_node,
        .object_changed = on_object,
        .broken = on_broken};
    struct err e = ERR_NULL;
    struct model_object *o;
    struct sample_hub s;
    struct model model;

    open_hub(&s, false);
    assert_int_equal(put(&s, "x", "a", 0), 200);
    model_init(&model, s.hub->store, &listener, 1);
    assert_int_equal(model_load(&model, &e), 0);
    assert_int_equal(n_reported, 1);
    o = model_find_object(model_find_network(&model, "default"), &notice_kind, "x");
    assert_non_null(o);
    assert_string_equal(notice_of(&o->object)->nodes[0], "a");
    assert_int_equal(o->object.meta.resource_version,
        model_find_object(network(&s), &notice_kind, "x")->object.meta.resource_version);
    model_deinit(&model);
    close_hub(&s);
}

static void test_survives_a_restart(void **state)
{
    struct sample_hub s;
    json_t *before;
    json_t *after;

    open_hub(&s, true);
    assert_int_equal(put(&s, "x", "a", 0), 200);
    before = sample_hub_show(&s);
    assert_non_null(json_object_get(before, "Notice/default/x"));
    sample_hub_close(&s);
    sample_hub_open(&s);
    after = sample_hub_show(&s);
    assert_true(json_equal(before, after));
    json_decref(before);
    json_decref(after);
    close_hub(&s);
}

static void store_text(struct sample_hub *s, const char *key, const char *value)
{
    const struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    assert_int_equal(store_commit(s->hub->store, &op, 1, s->now, NULL, NULL, &e), 0);
    store_wait(s->hub->store);
}

/* What cannot be understood is set aside, as records of every kind are, and can be written anew. */
static void test_damaged(void **state)
{
    struct sample_hub s;

    open_hub(&s, false);
    store_text(&s, "notice/default/x", "{\"kind\":\"Notice\"}");
    store_text(&s, "notice/default", "{\"kind\":\"Notice\"}");
    assert_non_null(damaged_find(&s.hub->model.damaged, "notice/default/x"));
    assert_non_null(damaged_find(&s.hub->model.damaged, "notice/default"));
    assert_int_equal(put(&s, "x", "a", 0), 200);
    assert_null(damaged_find(&s.hub->model.damaged, "notice/default/x"));
    assert_int_equal(heard(&s, 0), 1);
    store_text(&s, "notice/default/y", "{\"kind\":\"Notice\"}");
    assert_int_equal(remove_object(&s, PLACE "y"), 204);
    assert_null(damaged_find(&s.hub->model.damaged, "notice/default/y"));
    close_hub(&s);
}

static int fail_on_item(void *ctx, const struct store_item *item)
{
    fail_msg("\"%s\" is left", item->key);
    return 0;
}

/* A network takes its objects with it. */
static void test_goes_with_its_network(void **state)
{
    struct sample_hub s;
    struct err e = ERR_NULL;

    open_hub(&s, false);
    assert_int_equal(put(&s, "x", "a", 0), 200);
    assert_int_equal(
        sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "DELETE", "/v1/networks/default", NULL, NULL),
        204);
    assert_int_equal(store_now_list(s.hub->store, "notice/", fail_on_item, NULL, NULL, &e), 0);
    close_hub(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apply_and_get),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_who_is_told),
        cmocka_unit_test(test_remove),
        cmocka_unit_test(test_remove_edge),
        cmocka_unit_test(test_remove_node_and_network),
        cmocka_unit_test(test_loads_again),
        cmocka_unit_test(test_survives_a_restart),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_goes_with_its_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
