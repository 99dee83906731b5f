/* test-hub-set.c - the hubs of a network as a node uses them: which there are, which one serves,
 * how each is reached, and which takes reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/hub_set.h"
#include "base/err.h"
#include "mesh/render/render.h"
#include "test/support/heard_log.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

struct world {
    uv_loop_t loop;
    struct state state;
    struct hub_set hubs;
    struct observe seen;
    struct observation items[4];
    struct hub_set_actions actions; /* of the last call */
    nsec_t now;
};

static struct world w;

static int on_event(void *ctx, struct watch_event *ev, nsec_t at, struct err *e)
{
    return 0;
}

static void on_change(void *ctx, bool heard, const char *why, nsec_t at)
{
}

static bool has_route(void *ctx, const struct ip_addr *to)
{
    return true;
}

/* What was the hub is an ordinary node. */
static void drop_hub(void)
{
    struct object o = sample_node(4);

    (void)snprintf(o.node.meta.name, sizeof(o.node.meta.name), "hub");
    sample_put(&w.state.snapshot, o);
}

/* The node n2, which is in a network without a hub. */
static int enter(void **state)
{
    const struct hub_link_listener listener = {
        .on_event = on_event, .on_change = on_change, .ctx = &w};

    w = (struct world){.now = 1000 * SEC};
    w.seen.items = w.items;
    w.state.secret = (struct x25519_secret){.b = {5, [31] = 0x40}};
    (void)snprintf(w.state.interface, sizeof(w.state.interface), "no-such-one");
    w.state.hub_api.n_api = 2;
    (void)snprintf(w.state.hub_api.api[0], sizeof(w.state.hub_api.api[0]), "joined:8443");
    (void)snprintf(w.state.hub_api.proxy, sizeof(w.state.hub_api.proxy), "http://proxy:3128");
    w.state.hub_api.pin.b[0] = 7;
    w.state.snapshot = sample_snapshot(2, 2);
    drop_hub();
    assert_int_equal(uv_loop_init(&w.loop), 0);
    hub_set_init(&w.hubs, &w.loop, &w.state, &listener);
    return 0;
}

static int leave(void **state)
{
    hub_set_stop(&w.hubs);
    hub_set_stop(&w.hubs);
    assert_int_equal(uv_run(&w.loop, UV_RUN_DEFAULT), 0);
    snapshot_deinit(&w.state.snapshot);
    return uv_loop_close(&w.loop);
}

/* Number @n is a hub, reached at 203.0.113.@n; @pin: 0: it does not say its TLS key. */
static void add_hub(unsigned n, uint8_t pin)
{
    struct object o = sample_node(n);
    char text[32];

    if (!o.node.hub)
        o.node.hub = calloc(1, sizeof(*o.node.hub));
    *o.node.hub = (struct node_hub){.n_endpoints = 1, .api_port = 9443, .has_tls_pin = pin != 0};
    o.node.hub->tls_pin.b[0] = pin;
    (void)snprintf(text, sizeof(text), "203.0.113.%u:51820", n);
    assert_int_equal(endpoint_parse(&o.node.hub->endpoints[0], text, NULL), 0);
    sample_put(&w.state.snapshot, o);
}

static struct hub_set_facts facts(void)
{
    return (struct hub_set_facts){.snapshot = &w.state.snapshot,
        .seen = &w.seen,
        .has_engine = true,
        .has_route = has_route,
        .now = w.now};
}

static int try_to_take(struct err *e)
{
    struct hub_set_facts f = facts();

    w.actions = (struct hub_set_actions){.serving_changed = false};
    return hub_set_take(&w.hubs, &f, &w.actions, e);
}

static void take(void)
{
    struct err e = ERR_NULL;

    if (try_to_take(&e) != 0)
        fail_msg("%s", err_text(&e));
}

static void poll_all(void)
{
    struct hub_set_facts f = facts();

    w.actions = (struct hub_set_actions){.serving_changed = false};
    hub_set_poll(&w.hubs, &f, &w.actions);
}

/* The engine has had a handshake with hub number @n so long ago. */
static void see(unsigned n, nsec_t ago)
{
    struct x25519_public key = sample_key(n);
    size_t at = 0;

    while (at < w.seen.n && memcmp(&w.items[at].key, &key, sizeof(key)) < 0)
        at++;
    if (at == w.seen.n || !x25519_public_equal(&w.items[at].key, &key)) {
        memmove(&w.items[at + 1], &w.items[at], (w.seen.n - at) * sizeof(w.items[0]));
        w.seen.n++;
    }
    w.items[at] = (struct observation){.key = key, .handshake_at = w.now - ago};
}

/* ---- which there are --------------------------------------------------------------------------
 */

/* There is always one that serves, also one that is nowhere. */
static void test_a_network_without_a_hub(void **state)
{
    struct agent_hub *nobody;

    heard_log_begin();
    take();
    assert_string_equal(heard_log_end(), "");
    nobody = w.hubs.serving;
    assert_non_null(nobody);
    assert_string_equal(nobody->name, "");
    assert_int_equal(w.hubs.n, 1);
    assert_true(w.actions.serving_changed);
    assert_true(w.actions.pass_soon);
    take();
    assert_ptr_equal(w.hubs.serving, nobody);
    assert_false(w.actions.serving_changed);
    assert_int_equal(w.hubs.n_gone, 0);
    add_hub(1, 0);
    heard_log_begin();
    take();
    assert_string_equal(heard_log_end(), "");
    assert_int_equal(w.hubs.n, 1);
    assert_string_equal(w.hubs.serving->name, "hub");
    assert_true(w.actions.serving_changed);
    assert_int_equal(w.hubs.n_gone, 1);
    hub_set_release_gone(&w.hubs);
    assert_int_equal(w.hubs.n_gone, 0);
}

/* A hub that stays is the same one; one with another key is not. */
static void test_hubs_come_and_go(void **state)
{
    struct x25519_public key;
    struct agent_hub *first;
    struct object o;

    add_hub(1, 0);
    take();
    first = hub_set_find(&w.hubs, "hub");
    assert_non_null(first);
    assert_null(hub_set_find(&w.hubs, "n3"));
    add_hub(3, 0);
    take();
    assert_int_equal(w.hubs.n, 2);
    assert_int_equal(w.hubs.n_gone, 0);
    assert_ptr_equal(hub_set_find(&w.hubs, "hub"), first);
    assert_non_null(hub_set_find(&w.hubs, "n3"));
    key = sample_key(3);
    assert_true(x25519_public_equal(&hub_set_find(&w.hubs, "n3")->key, &key));
    /* Under a name there is another machine now. */
    o = sample_node(1);
    o.node.key = sample_key(9);
    sample_put(&w.state.snapshot, o);
    take();
    assert_int_equal(w.hubs.n, 2);
    assert_int_equal(w.hubs.n_gone, 1);
    assert_ptr_equal(w.hubs.gone[0], first);
    assert_ptr_not_equal(hub_set_find(&w.hubs, "hub"), first);
    hub_set_release_gone(&w.hubs);
    /* It is an ordinary node now. */
    sample_put(&w.state.snapshot, sample_node(3));
    take();
    assert_int_equal(w.hubs.n, 1);
    assert_string_equal(w.hubs.serving->name, "hub");
    hub_set_release_gone(&w.hubs);
    /* While the snapshot names none, the last one stays. */
    drop_hub();
    take();
    assert_int_equal(w.hubs.n, 1);
    assert_string_equal(w.hubs.serving->name, "hub");
    assert_int_equal(w.hubs.n_gone, 0);
}

/* One whose key is none that anybody can have ends the list: those before it are used. */
static void test_a_hub_that_cannot_be_used(void **state)
{
    struct object wrong = sample_node(3);
    struct agent_hub *first;
    struct err e = ERR_NULL;

    wrong.node.key = (struct x25519_public){.b = {0}};
    wrong.node.hub = calloc(1, sizeof(*wrong.node.hub));
    wrong.node.hub->n_endpoints = 1;
    sample_put(&w.state.snapshot, wrong);
    assert_int_equal(try_to_take(&e), -EINVAL);
    assert_string_equal(e.text, "the key of the hub \"n3\" is one that nobody can have");
    assert_int_equal(w.hubs.n, 0);
    assert_null(w.hubs.serving);
    assert_false(w.actions.serving_changed);
    add_hub(1, 0);
    add_hub(4, 0);
    assert_int_equal(try_to_take(&e), -EINVAL);
    assert_int_equal(w.hubs.n, 1);
    first = w.hubs.serving;
    assert_string_equal(first->name, "hub");
    assert_true(w.actions.serving_changed);
    /* Beside it there is nothing else: what was used before stays. */
    drop_hub();
    assert_int_equal(try_to_take(&e), -EINVAL);
    assert_int_equal(w.hubs.n, 1);
    assert_ptr_equal(w.hubs.serving, first);
    assert_int_equal(w.hubs.n_gone, 0);
}

static void test_more_hubs_than_are_used(void **state)
{
    for (unsigned n = 10; n < 10 + HUB_CHOICE_MAX + 1; n++)
        add_hub(n, 0);
    take();
    assert_int_equal(w.hubs.n, HUB_CHOICE_MAX);
    assert_string_equal(w.hubs.items[HUB_CHOICE_MAX - 1]->name, "n25");
    assert_null(hub_set_find(&w.hubs, "n26"));
}

/* What each is made with. */
static void test_a_new_hub(void **state)
{
    struct x25519_public key = sample_key(3);
    const struct agent_hub *hub;

    add_hub(3, 0);
    take();
    hub = w.hubs.serving;
    assert_string_equal(hub->name, "n3");
    assert_true(x25519_public_equal(&hub->key, &key));
    assert_ptr_equal(hub->owner, &w);
    assert_true(hub->report.edges.run != 0);
    assert_ptr_equal(hub->transport.hub_api, &hub->hub_api);
    assert_ptr_equal(hub->transport.state, &w.state);
    assert_false(hub->is_seen || hub->has_moved);
    assert_int_equal(hub->boot, 0);
    assert_int_equal(hub->report_lost_at, 0);
    /* With one hub there is nothing to choose. */
    assert_int_equal(hub_set_due(&w.hubs), NSEC_NEVER);
    hub_set_on_lost(&w.hubs, hub);
    assert_true(w.hubs.choice.is_lost);
    assert_int_equal(hub_set_due(&w.hubs), NSEC_NEVER);
    hub_set_on_heard(&w.hubs, hub, w.now);
    assert_false(w.hubs.choice.is_lost);
    assert_true(w.hubs.choice.is_heard);
}

static void test_the_end(void **state)
{
    add_hub(1, 0);
    add_hub(3, 0);
    take();
    sample_put(&w.state.snapshot, sample_node(3));
    take();
    assert_int_equal(w.hubs.n_gone, 1);
    w.hubs.choose_at = w.now;
    hub_set_stop(&w.hubs);
    assert_int_equal(w.hubs.n, 0);
    assert_int_equal(w.hubs.n_gone, 0);
    assert_null(w.hubs.serving);
    assert_int_equal(hub_set_due(&w.hubs), NSEC_NEVER);
}

/* ---- how the API of each is reached -----------------------------------------------------------
 */

/* What the token said is of the only hub, or of the one that has that TLS key. */
static void test_whose_api_the_token_said(void **state)
{
    const struct agent_hub *hub;
    const struct agent_hub *other;

    add_hub(1, 9);
    take();
    hub = hub_set_find(&w.hubs, "hub");
    assert_int_equal(hub->hub_api.n_api, 2);
    assert_string_equal(hub->hub_api.api[0], "joined:8443");
    add_hub(3, 7);
    take();
    other = hub_set_find(&w.hubs, "n3");
    assert_int_equal(other->hub_api.n_api, 2);
    assert_string_equal(other->hub_api.api[0], "joined:8443");
    assert_int_equal(hub->hub_api.n_api, 1);
    assert_string_equal(hub->hub_api.api[0], "203.0.113.1:9443");
    assert_int_equal(hub->hub_api.pin.b[0], 9);
    assert_string_equal(hub->hub_api.proxy, "http://proxy:3128");
}

/* Where no hub says its key, it is taken to be the first one; the others' is not known. */
static void test_hubs_that_do_not_say_their_key(void **state)
{
    add_hub(1, 0);
    add_hub(3, 0);
    take();
    assert_int_equal(hub_set_find(&w.hubs, "hub")->hub_api.n_api, 2);
    assert_int_equal(hub_set_find(&w.hubs, "n3")->hub_api.n_api, 0);
    assert_string_equal(hub_set_find(&w.hubs, "n3")->hub_api.proxy, "http://proxy:3128");
    /* One that says another key than the token is not the one that the token was about. */
    add_hub(1, 9);
    take();
    assert_int_equal(hub_set_find(&w.hubs, "hub")->hub_api.n_api, 1);
    assert_string_equal(hub_set_find(&w.hubs, "hub")->hub_api.api[0], "203.0.113.1:9443");
}

/* ---- what the engine shows --------------------------------------------------------------------
 */

static void test_what_the_engine_shows(void **state)
{
    add_hub(1, 0);
    add_hub(3, 0);
    see(3, 10 * SEC);
    take();
    assert_false(hub_set_find(&w.hubs, "hub")->is_seen);
    assert_true(hub_set_find(&w.hubs, "n3")->is_seen);
    assert_int_equal(hub_set_find(&w.hubs, "n3")->seen.handshake_at, w.now - 10 * SEC);
    see(1, 20 * SEC);
    poll_all();
    assert_true(hub_set_find(&w.hubs, "hub")->is_seen);
    /* What the engine counts is told to the transport. */
    for (size_t i = 0; i < w.seen.n; i++)
        w.items[i].facts.rx_bytes = 7000;
    poll_all();
    for (unsigned i = 0; i < 2; i++) {
        const struct hub_transport *transport = &w.hubs.items[i]->transport.transport;

        assert_int_equal(transport->handshake_at, w.hubs.items[i]->seen.handshake_at);
        assert_int_equal(transport->asymmetry.rx_bytes, 7000);
    }
    w.seen.n = 0;
    poll_all();
    assert_false(hub_set_find(&w.hubs, "hub")->is_seen);
}

/* Each is somewhere after a poll, and packets go there. */
static void test_where_each_is(void **state)
{
    struct render_path paths[HUB_CHOICE_MAX];
    char text[ENDPOINT_TEXT_MAX];

    add_hub(1, 0);
    add_hub(3, 0);
    take();
    assert_int_equal(hub_set_paths(&w.hubs, paths), 0);
    heard_log_begin();
    poll_all();
    assert_string_equal(heard_log_end(), "");
    assert_true(w.actions.pass_soon);
    assert_int_equal(hub_set_paths(&w.hubs, paths), 2);
    assert_string_equal(paths[0].node, "hub");
    assert_string_equal(endpoint_format(&paths[0].endpoint, text), "203.0.113.1:51820");
    assert_string_equal(paths[1].node, "n3");
    assert_string_equal(endpoint_format(&paths[1].endpoint, text), "203.0.113.3:51820");
    poll_all();
    assert_false(w.actions.serving_changed);
    assert_true(hub_set_due(&w.hubs) >= w.now);
}

/* A hub that is not heard where it is looked for is looked for at its next endpoint. */
static void test_a_hub_is_looked_for_elsewhere(void **state)
{
    static const char *const words[] = {
        "info: weft: no answer from the hub, trying it at 203.0.113.99:51820\n",
        "info: weft: no answer from the hub hub, trying it at 203.0.113.99:51820\n",
    };

    for (unsigned i = 0; i < 2; i++) {
        struct node_hub *hub;

        add_hub(1, 0);
        if (i > 0)
            add_hub(3, 0);
        hub = snapshot_find_node(&w.state.snapshot, "hub")->hub;
        hub->n_endpoints = 2;
        assert_int_equal(endpoint_parse(&hub->endpoints[1], "203.0.113.99:51820", NULL), 0);
        take();
        if (i > 0)
            hub_set_find(&w.hubs, "hub")->health.path.path.endpoint = hub->endpoints[0];
        poll_all();
        w.now += 20 * SEC;
        heard_log_begin();
        poll_all();
        assert_non_null(strstr(heard_log_end(), words[i]));
        assert_true(w.actions.pass_soon);
        assert_ptr_equal(hub_set_next_handshake(&w.hubs), hub_set_find(&w.hubs, "hub"));
        assert_null(hub_set_next_handshake(&w.hubs));
    }
}

/* ---- which one serves -------------------------------------------------------------------------
 */

/* The link to the serving hub is lost, and another one has a session: that one serves then. */
static void test_another_one_serves(void **state)
{
    struct agent_hub *first;
    unsigned i;

    add_hub(1, 0);
    add_hub(3, 0);
    see(1, SEC);
    see(3, SEC);
    take();
    first = w.hubs.serving;
    assert_non_null(first);
    hub_set_on_heard(&w.hubs, w.hubs.items[w.hubs.items[0] == first], w.now);
    assert_false(w.hubs.choice.is_heard);
    hub_set_on_heard(&w.hubs, first, w.now);
    assert_true(w.hubs.choice.is_heard);
    /* What is lost with another one is nothing to it. */
    hub_set_on_lost(&w.hubs, w.hubs.items[w.hubs.items[0] == first]);
    assert_true(w.hubs.choose_at > 0);
    assert_false(w.hubs.choice.is_lost);
    hub_set_on_lost(&w.hubs, first);
    assert_true(w.hubs.choice.is_lost);
    assert_int_equal(w.hubs.choose_at, 0);
    assert_int_equal(hub_set_due(&w.hubs), 0);
    for (i = 0; i < 60 && w.hubs.serving == first; i++) {
        struct hub_set_facts f;

        w.now += SEC;
        see(first->name[0] == 'h' ? 3 : 1, SEC);
        f = facts();
        w.actions = (struct hub_set_actions){.serving_changed = false};
        hub_set_run(&w.hubs, &f, &w.actions);
        poll_all();
    }
    assert_ptr_not_equal(w.hubs.serving, first);
}

/* ---- reports ----------------------------------------------------------------------------------
 */

static void test_who_takes_reports(void **state)
{
    struct agent_hub *other;

    add_hub(1, 0);
    add_hub(3, 0);
    take();
    other = w.hubs.items[w.hubs.items[0] == w.hubs.serving];
    /* The serving one when it is heard; others when they have a session. */
    assert_false(hub_set_takes_report(&w.hubs, w.hubs.serving, w.now));
    assert_false(hub_set_takes_report(&w.hubs, other, w.now));
    other->is_seen = true;
    other->seen.handshake_at = w.now - 10 * SEC;
    assert_true(hub_set_takes_report(&w.hubs, other, w.now));
    /* After a report was lost, not until there is a new session, or some time has passed. */
    other->report_lost_at = w.now - SEC;
    assert_false(hub_set_takes_report(&w.hubs, other, w.now));
    assert_false(hub_set_takes_report(&w.hubs, other, w.now + 29 * SEC - 1));
    assert_true(hub_set_takes_report(&w.hubs, other, w.now + 29 * SEC));
    other->seen.handshake_at = w.now;
    assert_true(hub_set_takes_report(&w.hubs, other, w.now));
}

static void test_what_hubs_are_to_be_told(void **state)
{
    add_hub(1, 0);
    add_hub(3, 0);
    take();
    for (unsigned i = 0; i < 2; i++)
        w.hubs.items[i]->report.self_changed = w.hubs.items[i]->report.edges_changed = false;
    hub_set_on_self(&w.hubs);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(w.hubs.items[i]->report.self_changed);
        assert_false(w.hubs.items[i]->report.edges_changed);
    }
    hub_set_on_edges(&w.hubs);
    for (unsigned i = 0; i < 2; i++)
        assert_true(w.hubs.items[i]->report.edges_changed);
    assert_false(hub_set_is_settled(&w.hubs, w.now));
}

/* Of hubs that take no report only the serving one counts. */
static void test_what_is_still_to_be_reported(void **state)
{
    struct agent_hub *other;

    add_hub(1, 0);
    add_hub(3, 0);
    take();
    other = w.hubs.items[w.hubs.items[0] == w.hubs.serving];
    for (unsigned i = 0; i < 2; i++) {
        struct node_report *report = &w.hubs.items[i]->report;

        report->self_changed = report->edges_changed = report->edges.begins = false;
        report->node_reported = json_object();
        report->sent_at = w.now;
        assert_false(node_report_has_changes(report));
        assert_true(node_report_within(report) == NSEC_NEVER);
    }
    assert_false(hub_set_has_changes(&w.hubs, w.now));
    assert_true(hub_set_report_within(&w.hubs, w.now) == NSEC_NEVER);
    other->report.self_changed = true;
    assert_false(hub_set_has_changes(&w.hubs, w.now));
    assert_true(hub_set_report_within(&w.hubs, w.now) == NSEC_NEVER);
    other->is_seen = true;
    other->seen.handshake_at = w.now - SEC;
    assert_true(hub_set_has_changes(&w.hubs, w.now));
    assert_int_equal(hub_set_report_within(&w.hubs, w.now), node_report_within(&other->report));
    w.hubs.serving->report.edges_changed = true;
    assert_int_equal(hub_set_report_within(&w.hubs, w.now), node_report_within(&other->report));
    other->report.self_changed = false;
    assert_true(hub_set_has_changes(&w.hubs, w.now));
    assert_int_equal(
        hub_set_report_within(&w.hubs, w.now), node_report_within(&w.hubs.serving->report));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_network_without_a_hub, enter, leave),
        cmocka_unit_test_setup_teardown(test_hubs_come_and_go, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_hub_that_cannot_be_used, enter, leave),
        cmocka_unit_test_setup_teardown(test_more_hubs_than_are_used, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_new_hub, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_end, enter, leave),
        cmocka_unit_test_setup_teardown(test_whose_api_the_token_said, enter, leave),
        cmocka_unit_test_setup_teardown(test_hubs_that_do_not_say_their_key, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_the_engine_shows, enter, leave),
        cmocka_unit_test_setup_teardown(test_where_each_is, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_hub_is_looked_for_elsewhere, enter, leave),
        cmocka_unit_test_setup_teardown(test_another_one_serves, enter, leave),
        cmocka_unit_test_setup_teardown(test_who_takes_reports, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_hubs_are_to_be_told, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_still_to_be_reported, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
