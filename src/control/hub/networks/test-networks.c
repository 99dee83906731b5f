/*
 * test-networks.c - networks are made and removed with their key files, one at a time; and what
 * happens to these files while a copy of the hub is made.
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

#include "base/err.h"
#include "test/support/sample_hub.h"

static int ask(struct sample_hub *s, const char *method, const char *path, const char *body)
{
    return sample_hub_ask(s, API_ACCESS_ADMIN, NULL, method, path, body, NULL);
}

static const char *const other = "{\"name\":\"other\",\"cidr4\":\"10.60.0.0/16\"}";

static bool has_key(const struct sample_hub *s, const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/keys/%s.key", s->dir, name);
    return access(path, F_OK) == 0;
}

static void check_interface(const char *prefix, const char *name, const char *interface)
{
    char text[16];

    networks_interface(prefix, name, text);
    assert_string_equal(text, interface);
}

/* An interface has 15 characters; a longer name is told apart by the digits at its end. */
static void test_interface(void **state)
{
    char a[16];
    char b[16];

    check_interface("weft", "default", "weft-default");
    check_interface("weft", "ten-digits", "weft-ten-digits");
    networks_interface("weft", "eleven-char", a);
    networks_interface("weft", "eleven-chat", b);
    assert_int_equal(strlen(a), 15);
    assert_memory_equal(a, "weft-eleve-", 11);
    assert_string_not_equal(a, b);
    networks_interface("weft", "eleven-chat", a);
    assert_string_equal(a, b);
}

static void test_key_file(void **state)
{
    const struct model_network *net;
    struct x25519_secret secret;
    struct err e = ERR_NULL;
    struct sample_hub s;

    sample_hub_begin(&s);
    assert_int_equal(ask(&s, "POST", "/v1/networks", other), 201);
    assert_true(has_key(&s, "other"));
    net = model_find_network(&s.hub->model, "other");
    assert_int_equal(networks_key(&s.hub->networks, "other", &net->public, &secret, &e), 0);
    assert_memory_equal(&secret, &net->secret, sizeof(secret));
    /* The key of another network is not taken for it. */
    assert_int_equal(
        networks_key(&s.hub->networks, "default", &net->public, &secret, &e), -EUCLEAN);
    assert_int_equal(networks_key(&s.hub->networks, "none", &net->public, &secret, &e), -ENOENT);
    assert_int_equal(ask(&s, "DELETE", "/v1/networks/other", NULL), 204);
    assert_false(has_key(&s, "other"));
    assert_true(has_key(&s, "default"));
    sample_hub_end(&s);
}

static void test_exists(void **state)
{
    struct sample_hub s;

    sample_hub_begin(&s);
    assert_int_equal(ask(&s, "POST", "/v1/networks", other), 201);
    assert_int_equal(ask(&s, "POST", "/v1/networks", other), 409);
    assert_true(has_key(&s, "other"));
    sample_hub_end(&s);
}

/* While the key of one is written no other is made; whoever asks is told to try again. */
static void test_one_at_a_time(void **state)
{
    const struct sample_question both[2] = {
        {"POST", "/v1/networks", other},
        {"POST", "/v1/networks", "{\"name\":\"third\",\"cidr4\":\"10.61.0.0/16\"}"},
    };
    struct sample_hub s;
    int statuses[2];

    sample_hub_begin(&s);
    s.may_fail = true;
    sample_hub_ask_both(&s, both, statuses);
    assert_int_equal(statuses[0], 201);
    assert_int_equal(statuses[1], 503);
    assert_false(has_key(&s, "third"));
    assert_int_equal(ask(&s, "POST", both[1].path, both[1].body), 201);
    sample_hub_end(&s);
}

/* The key of a network that is removed while a copy is made stays until the copy is complete. */
static void test_keys_are_held(void **state)
{
    struct sample_hub s;

    sample_hub_begin(&s);
    assert_int_equal(ask(&s, "POST", "/v1/networks", other), 201);
    networks_hold_keys(&s.hub->networks, true);
    assert_int_equal(ask(&s, "DELETE", "/v1/networks/other", NULL), 204);
    assert_true(has_key(&s, "other"));
    networks_hold_keys(&s.hub->networks, false);
    assert_false(has_key(&s, "other"));
    sample_hub_end(&s);
}

/* Unless a network of that name was made meanwhile, which has the file now. */
static void test_held_key_is_anothers(void **state)
{
    struct sample_hub s;

    sample_hub_begin(&s);
    assert_int_equal(ask(&s, "POST", "/v1/networks", other), 201);
    networks_hold_keys(&s.hub->networks, true);
    assert_int_equal(ask(&s, "DELETE", "/v1/networks/other", NULL), 204);
    assert_int_equal(ask(&s, "POST", "/v1/networks", other), 201);
    networks_hold_keys(&s.hub->networks, false);
    assert_true(has_key(&s, "other"));
    sample_hub_end(&s);
}

/* The hub's own nodes say where the hub is reached; they are written only when that changes. */
static void test_refresh(void **state)
{
    struct err e = ERR_NULL;
    struct model_node *self;
    struct sample_hub s;
    uint64_t before;

    sample_hub_begin(&s);
    self = model_find_node(model_find_network(&s.hub->model, "default"), HUB_NAME_DEFAULT);
    before = self->spec.meta.resource_version;
    assert_int_equal(networks_refresh(&s.hub->networks, s.now, &e), 0);
    store_wait(s.hub->store);
    assert_int_equal(self->spec.meta.resource_version, before);
    assert_int_equal(
        hub_public_parse(&s.hub->public_addresses.here.items[1], "203.0.113.9", 51820, &e), 0);
    s.hub->public_addresses.here.n = 2;
    assert_int_equal(networks_refresh(&s.hub->networks, s.now, &e), 0);
    store_wait(s.hub->store);
    assert_true(self->spec.meta.resource_version > before);
    assert_int_equal(self->spec.hub->n_endpoints, 2);
    sample_hub_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interface),
        cmocka_unit_test(test_key_file),
        cmocka_unit_test(test_exists),
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_keys_are_held),
        cmocka_unit_test(test_held_key_is_anothers),
        cmocka_unit_test(test_refresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
