/*
 * test-leave-hub.c - a hub is told that a node leaves, by whichever way there is.
 *
 * A hub is a thread of the test that answers at the loopback: members in the clear, as through a
 * tunnel, and everybody by TLS. A proxy is another one, which lets nobody through.
 */
#include "agent/leave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/state/state.h"
#include "api/server/server.h"
#include "api/server/tls_front.h"
#include "base/err.h"
#include "base/text.h"
#include "test/support/canned_server.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"
#include "wire/member_proof.h"

#define OVERLAY_PORT 9443

/* Where nobody listens. */
#define NOBODY "127.0.0.1:9"

/** Written before it is asked, or by its thread while it is. */
static struct hub {
    pthread_t thread;
    uv_loop_t loop;
    uv_async_t end;
    struct server *server;
    struct identity identity;
    char address[32]; /* of its public API */
    uint16_t port;
    unsigned n_unproven; /* so many are refused for their stamp */
    int status;
    char asked[1024]; /* the paths of all: "/v1/leave|" */
} hub;

static char dir[64];

/** The node n2 of three. */
static struct state st;
static struct member_proof_signer signer;
static const struct endpoint overlay = {
    .addr = {.b = {[10] = 0xff, 0xff, 127, 0, 0, 1}}, .port = OVERLAY_PORT};

/* ---- the hub --------------------------------------------------------------------------------- */

static void post_leave(void *ctx, const struct request *rq, struct response *rs)
{
    size_t len = strlen(hub.asked);

    (void)snprintf(hub.asked + len, sizeof(hub.asked) - len, "%s|", rq->path);
    if (hub.n_unproven > 0) {
        hub.n_unproven--;
        response_json(rs, 401, json_pack("{s:s, s:i, s:i}", "error", "no", "boot", 5, "after", 7));
    } else if (hub.status == 204) {
        response_empty(rs);
    } else {
        response_refuse(rs, hub.status, "not now");
    }
}

static const struct route routes[] = {
    {"POST", "/v1/leave", API_ACCESS_OVERLAY, post_leave, ""},
    {"POST", "/v1/leave/{network}/{key}", API_ACCESS_PUBLIC, post_leave, ""},
    ROUTES_END,
};

static void on_end(uv_async_t *end)
{
    server_stop(hub.server);
    uv_close((uv_handle_t *)end, NULL);
}

static void *serve(void *arg)
{
    (void)uv_run(&hub.loop, UV_RUN_DEFAULT);
    return NULL;
}

/* @is_near: members reach it through the tunnel, too. */
static void start_hub(bool is_near)
{
    const struct server_config config = {
        .loop = &hub.loop, .routes = routes, .identity = &hub.identity};
    const struct endpoint at = {.addr = overlay.addr};
    struct server_listener *listener;
    struct err e = ERR_NULL;
    char certificate[128];
    char key[128];

    (void)snprintf(key, sizeof(key), "%s/tls.key", dir);
    (void)snprintf(certificate, sizeof(certificate), "%s/tls.crt", dir);
    hub = (struct hub){.identity = IDENTITY_NULL, .status = 204};
    assert_int_equal(uv_loop_init(&hub.loop), 0);
    assert_int_equal(uv_async_init(&hub.loop, &hub.end, on_end), 0);
    if (identity_open(&hub.identity, key, certificate, &e) != 0 ||
        server_new(&hub.server, &config, &e) != 0 ||
        server_listen_tls(hub.server, &at, &hub.port, &e) != 0)
        fail_msg("%s", err_text(&e));
    if (is_near)
        assert_int_equal(
            server_listen_overlay(hub.server, &overlay, NULL, NULL, &listener, NULL), 0);
    (void)snprintf(hub.address, sizeof(hub.address), "127.0.0.1:%u", hub.port);
    assert_int_equal(pthread_create(&hub.thread, NULL, serve, NULL), 0);
}

static void stop_hub(void)
{
    char path[128];

    if (!hub.server)
        return;
    (void)uv_async_send(&hub.end);
    assert_int_equal(pthread_join(hub.thread, NULL), 0);
    hub.server = server_free(hub.server);
    assert_int_equal(uv_loop_close(&hub.loop), 0);
    identity_close(&hub.identity);
    (void)snprintf(path, sizeof(path), "%s/tls.key", dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/tls.crt", dir);
    (void)unlink(path);
}

/* ---- the node -------------------------------------------------------------------------------- */

static int enter(void **state)
{
    const struct x25519_public key = sample_key(1);

    (void)snprintf(dir, sizeof(dir), "/tmp/weft-test-leave-hub.XXXXXX");
    assert_non_null(mkdtemp(dir));
    if (netns_enter(state) != 0)
        return -1;
    if (!*state)
        return 0;
    (void)netns_raise_loopback(*state);
    hub.server = NULL;
    st = (struct state){.secret = {.b = {5, [31] = 0x40}}, .snapshot = sample_snapshot(3, 2)};
    (void)snprintf(st.interface, sizeof(st.interface), "lo");
    assert_true(member_proof_signer_init(&signer, &st.secret, &key));
    return 0;
}

static int leave(void **state)
{
    stop_hub();
    state_deinit(&st);
    (void)rmdir(dir);
    return netns_leave(state);
}

/* What the join token has said: its first address leads nowhere. */
static void know_hub(void)
{
    st.hub_api = (struct state_hub_api){.n_api = 2, .pin = hub.identity.pin};
    (void)snprintf(st.hub_api.api[0], sizeof(st.hub_api.api[0]), "%s", NOBODY);
    (void)snprintf(st.hub_api.api[1], sizeof(st.hub_api.api[1]), "%s", hub.address);
}

/* Of number @n in the snapshot: a hub, at an address of the loopback. */
static struct node_hub *make_hub(const char *name, uint16_t api_port)
{
    struct node *node = (struct node *)snapshot_find_node(&st.snapshot, name);

    assert_non_null(node);
    if (!node->hub)
        node->hub = calloc(1, sizeof(*node->hub));
    assert_non_null(node->hub);
    *node->hub = (struct node_hub){.n_endpoints = 1, .api_port = api_port};
    node->hub->endpoints[0] = (struct endpoint){.addr = overlay.addr, .port = 51820};
    return node->hub;
}

static int tell(struct err *e)
{
    *e = (struct err)ERR_NULL;
    return leave_tell_hub(&st, &st.snapshot, &overlay, &signer, e);
}

/* "/v1/leave/default/" and the key, once for each time that it was asked. */
static const char *asked_publicly(unsigned times)
{
    static char text[1024];
    struct x25519_public public;
    char hex[2 * sizeof(public.b) + 1];

    assert_true(x25519_derive_public(&st.secret, &public));
    hex_encode(public.b, sizeof(public.b), hex);
    text[0] = '\0';
    for (unsigned i = 0; i < times; i++)
        (void)snprintf(
            text + strlen(text), sizeof(text) - strlen(text), "/v1/leave/default/%s|", hex);
    return text;
}

/* ---- by the tunnel --------------------------------------------------------------------------- */

static void test_the_tunnel_comes_first(void **state)
{
    struct err e;

    (void)netns_need(state);
    start_hub(true);
    know_hub();
    assert_int_equal(tell(&e), 0);
    assert_string_equal(hub.asked, "/v1/leave|");
    assert_string_equal(e.text, "");
}

/* The first stamp is any one; the hub says which one it takes. */
static void test_a_stamp_that_is_learned(void **state)
{
    struct err e;

    (void)netns_need(state);
    start_hub(true);
    hub.n_unproven = 1;
    assert_int_equal(tell(&e), 0);
    assert_string_equal(hub.asked, "/v1/leave|/v1/leave|");
    assert_int_equal(e.code, 0);
    assert_string_equal(e.text, "");
    assert_int_equal(signer.boot, 5);
    assert_int_equal(leave_tell_hub(&st, &st.snapshot, &overlay, &signer, NULL), 0);
    hub.n_unproven = 1;
    assert_int_equal(leave_tell_hub(&st, &st.snapshot, &overlay, &signer, NULL), 0);
}

/* Twice it is not. */
static void test_a_stamp_that_is_not_taken(void **state)
{
    struct err e;

    (void)netns_need(state);
    start_hub(true);
    hub.n_unproven = 9;
    assert_int_equal(snapshot_delete(&st.snapshot, &node_kind, "hub", NULL), 0);
    assert_int_equal(tell(&e), CLIENT_E_REFUSED);
    assert_string_equal(hub.asked, "/v1/leave|/v1/leave|");
}

/* ---- by the public API ----------------------------------------------------------------------- */

static void test_each_address_in_turn(void **state)
{
    struct err e;

    (void)netns_need(state);
    start_hub(false);
    know_hub();
    assert_int_equal(tell(&e), 0);
    assert_string_equal(hub.asked, asked_publicly(1));
    /* A refusal is an answer, and at the other addresses it may be another one. */
    hub.asked[0] = '\0';
    hub.status = 500;
    (void)snprintf(st.hub_api.api[0], sizeof(st.hub_api.api[0]), "localhost:%u", hub.port);
    (void)make_hub("hub", hub.port);
    assert_int_equal(tell(&e), CLIENT_E_REFUSED);
    assert_string_equal(hub.asked, asked_publicly(2));
    assert_string_equal(e.text, "not now");
}

static void test_a_proxy_that_lets_nobody_through(void **state)
{
    const char *const answers[] = {CANNED_STATUS("403 Forbidden"), CANNED_STATUS("403 Forbidden")};
    struct canned_server proxy;
    char expected[96];
    struct err e;

    (void)netns_need(state);
    start_hub(false);
    know_hub();
    (void)make_hub("hub", hub.port);
    canned_server_start(&proxy, answers, 2);
    (void)snprintf(st.hub_api.proxy, sizeof(st.hub_api.proxy), "%s", proxy.url);
    assert_int_equal(tell(&e), 0);
    canned_server_join(&proxy);
    (void)snprintf(
        expected, sizeof(expected), "CONNECT " NOBODY "|CONNECT 127.0.0.1:%u|", hub.port);
    assert_string_equal(proxy.asked, expected);
    assert_string_equal(hub.asked, asked_publicly(1));
}

/* What the token has said is about the hub that has its TLS key; another one is asked by its own.
 */
static void test_another_hub_by_its_own_key(void **state)
{
    struct node_hub *first;
    struct node_hub *second;
    struct err e;

    (void)netns_need(state);
    start_hub(false);
    know_hub();
    st.hub_api.n_api = 1;
    st.hub_api.pin.b[0] ^= 1;
    first = make_hub("hub", 9);
    first->has_tls_pin = true;
    first->tls_pin = st.hub_api.pin;
    second = make_hub("n3", hub.port);
    second->has_tls_pin = true;
    second->tls_pin = hub.identity.pin;
    assert_int_equal(tell(&e), 0);
    assert_string_equal(hub.asked, asked_publicly(1));
    /* With the wrong key it is nobody. */
    second->tls_pin.b[1] ^= 1;
    assert_int_equal(tell(&e), CLIENT_E_UNTRUSTED);
    assert_string_equal(hub.asked, asked_publicly(1));
    /* One that says no key is the token's. */
    first->has_tls_pin = false;
    st.hub_api.pin = hub.identity.pin;
    (void)snprintf(st.hub_api.api[0], sizeof(st.hub_api.api[0]), "%s", hub.address);
    assert_int_equal(tell(&e), 0);
    assert_string_equal(hub.asked, asked_publicly(2));
}

/* The only one is the token's, whatever key it says. */
static void test_the_only_hub(void **state)
{
    struct node_hub *only;
    struct err e;

    (void)netns_need(state);
    start_hub(false);
    know_hub();
    only = make_hub("hub", 9);
    only->has_tls_pin = true;
    assert_int_equal(tell(&e), 0);
    assert_string_equal(hub.asked, asked_publicly(1));
}

static void test_a_hub_whose_key_nobody_has(void **state)
{
    struct err e;

    (void)netns_need(state);
    (void)make_hub("hub", 9);
    (void)make_hub("n3", 9);
    ((struct node *)snapshot_find_node(&st.snapshot, "n3"))->key = (struct x25519_public){.b = {0}};
    assert_int_equal(tell(&e), -EINVAL);
    assert_string_equal(e.text, "the hub's key is one that nobody can have");
}

/* ---- without an agent ------------------------------------------------------------------------ */

static void test_a_node_whose_agent_has_ended(void **state)
{
    struct object self = sample_node(2);
    struct leave_result lr;
    struct err e = ERR_NULL;
    char path[128];

    (void)netns_need(state);
    start_hub(false);
    know_hub();
    assert_true(x25519_derive_public(&st.secret, &self.node.key));
    sample_put(&st.snapshot, self);
    (void)snprintf(st.interface, sizeof(st.interface), "weft0");
    if (state_write_snapshot(&st.snapshot, dir, &e) != 0 || state_write(&st, dir, &e) != 0)
        fail_msg("%s", err_text(&e));
    (void)snprintf(path, sizeof(path), "%s/sock", dir);
    assert_int_equal(leave_without_agent(dir, path, false, &lr, &e), 0);
    assert_true(lr.has_reported_hub);
    assert_string_equal(lr.why, "");
    assert_string_equal(hub.asked, asked_publicly(1));
    assert_false(state_is_there(dir));
    (void)snprintf(path, sizeof(path), "%s/lock", dir);
    (void)unlink(path);
}

/* ---- by the token ---------------------------------------------------------------------------- */

static void test_who_has_just_come(void **state)
{
    const char *const answers[] = {CANNED_STATUS("403 Forbidden"), CANNED_STATUS("403 Forbidden")};
    struct token token = {.n_api = 2, .hub_key = sample_key(1)};
    struct canned_server proxy;
    struct err e = ERR_NULL;

    (void)netns_need(state);
    start_hub(false);
    token.pin = hub.identity.pin;
    (void)snprintf(token.network, sizeof(token.network), "default");
    (void)snprintf(token.api[0], sizeof(token.api[0]), "%s", NOBODY);
    (void)snprintf(token.api[1], sizeof(token.api[1]), "%s", hub.address);
    assert_int_equal(leave_by_token(&st.secret, &token, NULL, &e), 0);
    assert_string_equal(hub.asked, asked_publicly(1));
    canned_server_start(&proxy, answers, 2);
    assert_int_equal(leave_by_token(&st.secret, &token, proxy.url, &e), 0);
    canned_server_join(&proxy);
    assert_memory_equal(proxy.asked, "CONNECT " NOBODY "|CONNECT 127.0.0.1:", 37);
    assert_string_equal(hub.asked, asked_publicly(2));
    hub.status = 500;
    assert_int_equal(leave_by_token(&st.secret, &token, NULL, &e), CLIENT_E_REFUSED);
    token.hub_key = (struct x25519_public){.b = {0}};
    assert_int_equal(leave_by_token(&st.secret, &token, NULL, &e), -EINVAL);
    assert_string_equal(e.text, "the key of the hub or of this machine is none");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_the_tunnel_comes_first),
        TEST(test_a_stamp_that_is_learned),
        TEST(test_a_stamp_that_is_not_taken),
        TEST(test_each_address_in_turn),
        TEST(test_a_proxy_that_lets_nobody_through),
        TEST(test_another_hub_by_its_own_key),
        TEST(test_the_only_hub),
        TEST(test_a_hub_whose_key_nobody_has),
        TEST(test_a_node_whose_agent_has_ended),
        TEST(test_who_has_just_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
