/*
 * test-networks-refresh.c - the hub's own nodes say where the hub is reached, and are written anew
 * when that is another place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/networks/networks.h"
#include "os/log.h"
#include "store/store.h"
#include "test/support/captured_log.h"
#include "test/support/failing_store.h"
#include "test/support/sample_hub.h"

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

/* Refreshes; was the node written anew? */
static bool is_refreshed(struct sample_hub *s)
{
    uint64_t before = sample_hub_node(s, "hub")->spec.meta.resource_version;
    struct err e = ERR_NULL;

    assert_int_equal(networks_refresh(&s->hub->networks, s->now, &e), 0);
    store_wait(s->hub->store);
    assert_int_equal(s->hub->networks.refresh_failure.code, 0);
    return sample_hub_node(s, "hub")->spec.meta.resource_version > before;
}

/* A name which the resolver has found. */
static void be_found(struct hub_public *ret, const char *text)
{
    assert_int_equal(hub_public_parse(ret, text, 51820, NULL), 0);
    assert_int_equal(endpoint_parse(&ret->at[0], "203.0.113.8:51821", NULL), 0);
    ret->n = 1;
}

/* Whatever of it is another one is written, once. */
static void test_each_change_is_refreshed(void **state)
{
    static const struct tls_pin pin = {{7}};
    const struct node_hub *told;
    struct hub_places *here;
    struct sample_hub s;

    sample_hub_begin(&s);
    here = &s.hub->public_addresses.here;
    assert_int_equal(hub_public_parse(&here->items[0], "203.0.113.8", 51820, NULL), 0);
    assert_true(is_refreshed(&s));
    assert_false(is_refreshed(&s));
    assert_int_equal(hub_public_parse(&here->items[0], "203.0.113.8:51821", 51820, NULL), 0);
    assert_true(is_refreshed(&s));
    assert_int_equal(hub_public_parse(&here->items[1], "203.0.113.9", 51820, NULL), 0);
    here->n = 2;
    assert_true(is_refreshed(&s));
    assert_int_equal(hub_public_parse(&here->items[1], "203.0.113.10", 51820, NULL), 0);
    assert_true(is_refreshed(&s));
    be_found(&here->items[0], "hub.example.org:51821");
    assert_true(is_refreshed(&s));
    assert_false(is_refreshed(&s));
    be_found(&here->items[0], "hub.example.net:51821");
    assert_true(is_refreshed(&s));
    s.hub->networks.api_port = 9443;
    assert_true(is_refreshed(&s));
    s.hub->networks.tls_pin = &pin;
    assert_true(is_refreshed(&s));
    assert_false(is_refreshed(&s));
    told = sample_hub_node(&s, "hub")->spec.hub;
    assert_memory_equal(&told->tls_pin, &pin, sizeof(pin));
    assert_int_equal(told->n_names, 1);
    assert_string_equal(told->names[0], "hub.example.net:51821");
    assert_int_equal(told->n_endpoints, 2);
    assert_int_equal(told->api_port, 9443);
    s.hub->networks.tls_pin = NULL;
    assert_true(is_refreshed(&s));
    assert_false(sample_hub_node(&s, "hub")->spec.hub->has_tls_pin);
    sample_hub_end(&s);
}

/* What the store does not take is known, and said, unless somebody else has changed the node. */
static void test_a_refresh_that_fails(void **state)
{
    struct err e = ERR_NULL;
    struct captured_log log;
    struct sample_hub s;

    sample_hub_begin(&s);
    log_init("hub", LOG_LEVEL_WARNING);
    sample_hub_node(&s, "hub")->spec.meta.resource_version--;
    s.hub->networks.api_port = 9443;
    log = captured_log_begin();
    assert_int_equal(networks_refresh(&s.hub->networks, s.now, &e), 0);
    store_wait(s.hub->store);
    captured_log_end(&log, "");
    assert_int_equal(s.hub->networks.refresh_failure.code, STORE_E_CONFLICT);
    assert_int_not_equal(sample_hub_node(&s, "hub")->spec.hub->api_port, 9443);
    sample_hub_node(&s, "hub")->spec.meta.resource_version++;
    failing_store_begin(s.hub->store, STORE_JOB_COMMIT);
    for (unsigned i = 0; i < 2; i++) {
        /* Who is not served yet is told by who starts the hub. */
        s.hub->networks.is_serving = i == 0;
        log = captured_log_begin();
        assert_int_equal(networks_refresh(&s.hub->networks, s.now, &e), 0);
        store_wait(s.hub->store);
        captured_log_end(
            &log, i == 0 ? "warning: hub: nodes are not told where this hub is now: no space left\n"
                         : "");
        assert_int_equal(s.hub->networks.refresh_failure.code, FAILING_STORE_R);
    }
    failing_store_end(s.hub->store);
    s.hub->networks.is_serving = true;
    /* What the store does not even accept is said at once. */
    failing_store_set_full(s.hub->store, true);
    assert_int_equal(networks_refresh(&s.hub->networks, s.now, &e), -EAGAIN);
    assert_int_equal(s.hub->networks.refresh_failure.code, -EAGAIN);
    failing_store_set_full(s.hub->store, false);
    assert_true(is_refreshed(&s));
    sample_hub_end(&s);
}

/* What others have said of it stays when it moves. */
static void test_refresh_keeps_the_rest(void **state)
{
    static const char path[] = "/v1/networks/default/objects/Node/hub";
    struct err e = ERR_NULL;
    struct model_node *self;
    struct sample_hub s;
    json_t *node = NULL;
    char *text;

    sample_hub_begin(&s);
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "GET", path, NULL, &node), 200);
    json_object_set_new(json_object_get(node, "spec"), "labels", json_pack("{s:s}", "k", "v"));
    text = json_dumps(node, 0);
    assert_int_equal(sample_hub_ask(&s, API_ACCESS_ADMIN, NULL, "PUT", path, text, NULL), 200);
    free(text);
    json_decref(node);
    self = sample_hub_node(&s, "hub");
    self->spec.hub->rendezvous_epoch = 7;
    s.hub->networks.api_port = 9443;
    assert_int_equal(networks_refresh(&s.hub->networks, s.now, &e), 0);
    store_wait(s.hub->store);
    self = sample_hub_node(&s, "hub");
    assert_int_equal(self->spec.hub->api_port, 9443);
    assert_int_equal(self->spec.hub->rendezvous_epoch, 7);
    assert_int_equal(self->spec.n_labels, 1);
    assert_int_equal(self->spec.hub->n_endpoints, 1);
    assert_true(self->spec.hub->has_tls_pin);
    sample_hub_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refresh),
        cmocka_unit_test(test_each_change_is_refreshed),
        cmocka_unit_test(test_a_refresh_that_fails),
        cmocka_unit_test(test_refresh_keeps_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
