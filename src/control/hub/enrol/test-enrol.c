/* test-enrol.c - who gets in, what they get, and what those are told who do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hub/enrol/enrol.h"
#include "hub/watch/reports.h"
#include "store/store_backend.h"
#include "test/support/enrolling.h"
#include "test/support/sample_enrol.h"
#include "test/support/sample_late.h"

static void test_enters(void **state)
{
    struct enrolling *f = *state;

    enrolling_new_token(f, "default", 1, false);
    assert_int_equal(enrolling_enter(f, 1, "gpu-1"), 0);
    assert_string_equal(f->node->spec.meta.name, "gpu-1");
    enrolling_assert_address(f, "10.42.0.2", "fd00::2");
    enrolling_new_token(f, "default", 1, false);
    assert_int_equal(enrolling_enter(f, 2, ""), 0);
    assert_memory_equal(f->node->spec.meta.name, "node-", 5);
    enrolling_assert_address(f, "10.42.0.3", "fd00::3");
    assert_int_equal(store_due(f->store) > 3600 * NSEC_PER_SEC, 1);
}

/* What would become of it is said, and neither a node nor a use of the token is gone for it. */
static void test_asking_first(void **state)
{
    const struct ip_addr from = {{0}};
    const struct audit_by by = {.from = from};
    struct enrol_proof proof = enrolling_proof(1);
    const struct model_network *net = NULL;
    struct enrolling *f = *state;
    struct enrol_request rq = {.key = enrolling_key(1), .name = "gpu-1"};

    enrolling_new_token(f, "default", 1, false);
    for (int i = 0; i < 2; i++) {
        rq.secret = f->secret;
        assert_int_equal(
            enrol_try(&f->enrol, &rq, &proof, &by, NSEC_PER_SEC, ENROLLING_WALL, &net, &f->e), 0);
        assert_string_equal(net->spec.meta.name, "default");
        assert_null(model_find_node(net, "gpu-1"));
    }
    assert_int_equal(enrolling_enter(f, 2, "gpu-1"), 0);
    rq.secret = f->secret;
    assert_int_equal(
        enrol_try(&f->enrol, &rq, &proof, &by, NSEC_PER_SEC, ENROLLING_WALL, &net, &f->e),
        ENROL_E_DENIED);
    assert_non_null(strstr(f->e.text, "used up"));
}

static void test_asking_again(void **state)
{
    struct enrolling *f = *state;
    struct model_node *first;

    enrolling_new_token(f, "default", 1, false);
    assert_int_equal(enrolling_enter(f, 1, "gpu-1"), 0);
    first = f->node;
    /* The token is used up, and still the same machine gets the same answer. */
    assert_int_equal(enrolling_enter(f, 1, "gpu-1"), 0);
    assert_ptr_equal(f->node, first);
    assert_int_equal(enrolling_enter(f, 1, ""), 0);
    assert_ptr_equal(f->node, first);
    assert_int_equal(enrolling_enter(f, 1, "other"), ENROL_E_TAKEN);
    assert_string_equal(f->e.text, "this machine is node \"gpu-1\" already, not \"other\"");
    assert_int_equal(enrolling_enter(f, 2, ""), ENROL_E_DENIED);
    assert_non_null(strstr(f->e.text, "used up"));
    /* Another token does not make it another node. */
    enrolling_new_token(f, "default", 1, false);
    assert_int_equal(enrolling_enter(f, 1, ""), ENROL_E_TAKEN);
    assert_non_null(strstr(f->e.text, "\"gpu-1\""));
}

/* Who has the token and a member's public key, which is no secret, is told nothing of that member.
 */
static void test_asking_for_another(void **state)
{
    struct enrol_proof other = enrolling_proof(2);
    struct enrolling *f = *state;

    enrolling_new_token(f, "default", 9, false);
    /* A machine of which only the public key is known here, as a stock WireGuard's is. */
    assert_int_equal(enrolling_ask(f, 1, "gpu-1", NULL, ENROLLING_WALL), 0);
    f->node = NULL;
    assert_int_equal(enrolling_ask(f, 1, "gpu-1", NULL, ENROLLING_WALL), ENROL_E_TAKEN);
    assert_string_equal(f->e.text,
        "a node of network \"default\" has this public key already, and the request does not prove "
        "to come from it");
    assert_int_equal(enrolling_ask(f, 1, "", &other, ENROLLING_WALL), ENROL_E_DENIED);
    assert_non_null(strstr(f->e.text, "does not prove"));
    assert_null(f->node);
    assert_int_equal(enrolling_enter(f, 1, ""), 0);
    assert_string_equal(f->node->spec.meta.name, "gpu-1");
    /* A wrong proof is worse than none, the first time, too. */
    assert_int_equal(enrolling_ask(f, 3, "", &other, ENROLLING_WALL), ENROL_E_DENIED);
    assert_int_equal(enrolling_ask(f, 3, "", NULL, ENROLLING_WALL), 0);
}

static void test_uses(void **state)
{
    struct enrolling *f = *state;

    enrolling_new_token(f, "default", 3, false);
    for (uint8_t i = 1; i <= 3; i++)
        assert_int_equal(enrolling_enter(f, i, ""), 0);
    assert_int_equal(enrolling_enter(f, 2, ""), 0);
    assert_int_equal(enrolling_enter(f, 4, ""), ENROL_E_DENIED);
}

static void test_refusals(void **state)
{
    struct enrolling *f = *state;

    memset(f->secret.b, 7, sizeof(f->secret.b));
    assert_int_equal(enrolling_enter(f, 1, ""), ENROL_E_DENIED);
    assert_non_null(strstr(f->e.text, "does not know this token"));
    enrolling_new_token(f, "default", 9, false);
    assert_int_equal(enrolling_enter_at(f, 1, "", ENROLLING_WALL + 3600), ENROL_E_DENIED);
    assert_non_null(strstr(f->e.text, "expired 0 s ago"));
    assert_int_equal(enrolling_enter_at(f, 1, "", ENROLLING_WALL + 3599), 0);
    assert_int_equal(enrolling_enter_at(f, 1, "", ENROLLING_WALL + 3700), ENROL_E_DENIED);
    assert_int_equal(enrolling_enter(f, 2, "a"), 0);
    assert_int_equal(enrolling_enter(f, 3, "a"), ENROL_E_TAKEN);
    assert_string_equal(f->e.text,
        "network \"default\" has a node \"a\" already: choose another name, or, if that machine is "
        "gone, \"weft node rm a --network default\" on the hub makes room");
}

/* Whoever has a token may enrol a key without its secret; one that no secret has is refused. */
static void test_keys_that_nobody_has(void **state)
{
    struct enrolling *f = *state;
    struct x25519_public keys[] = {{{1}}, enrolling_key(1), {{[31] = 0x80}}};

    enrolling_new_token(f, "default", 9, false);
    assert_int_equal(enrolling_enter(f, 1, "a"), 0);
    /* Another spelling of the same key. */
    keys[1].b[31] |= 0x80;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        struct enrol_request rq = {.secret = f->secret, .key = keys[i], .name = "b"};
        struct err e = ERR_NULL;

        assert_int_equal(sample_enrol_node(&f->enrol, &rq, NULL, &(struct ip_addr){{0}},
                             NSEC_PER_SEC, ENROLLING_WALL, &f->node, &e),
            -EINVAL);
        assert_non_null(strstr(err_text(&e), "belongs to no private key"));
    }
}

/* A name by which programs reach something else, on every member that has it in its hosts file. */
static void test_reserved_names(void **state)
{
    static const char *const reserved[] = {"localhost", "hub", "registry", "ip6-localhost", "127"};
    struct enrolling *f = *state;

    enrolling_new_token(f, "default", 1, false);
    for (unsigned i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
        assert_int_equal(enrolling_enter(f, 1, reserved[i]), -EINVAL);
        assert_non_null(strstr(f->e.text, reserved[i]));
    }
    /* It has cost no use. */
    assert_int_equal(enrolling_enter(f, 1, "registry-1"), 0);
}

static void test_labels(void **state)
{
    struct enrolling *f = *state;
    struct enrol_request rq = {.key = enrolling_key(1)};
    json_t *good = json_pack("{s:s}", "gpu", "h100");
    json_t *bad = json_pack("{s:s}", "white space", "x");
    struct ip_addr from = {{0}};

    enrolling_new_token(f, "default", 1, false);
    rq.secret = f->secret;
    rq.labels = bad;
    assert_true(
        sample_enrol_node(&f->enrol, &rq, NULL, &from, 0, ENROLLING_WALL, &f->node, &f->e) < 0);
    assert_non_null(strstr(f->e.text, "white space"));
    /* It has cost no use. */
    rq.labels = good;
    assert_int_equal(
        sample_enrol_node(&f->enrol, &rq, NULL, &from, 0, ENROLLING_WALL, &f->node, &f->e), 0);
    assert_int_equal(f->node->spec.n_labels, 1);
    assert_string_equal(f->node->spec.labels[0].value, "h100");
    json_decref(good);
    json_decref(bad);
}

static void test_network_gone(void **state)
{
    struct enrolling *f = *state;

    enrolling_new_token(f, "default", 9, false);
    enrolling_put(f, RECORD_NETWORK, "default", "", NULL);
    assert_int_equal(enrolling_enter(f, 1, ""), ENROL_E_GONE);
    assert_non_null(strstr(f->e.text, "\"default\""));
    /* Another network of that name is another network. */
    enrolling_new_hub_key(f);
    enrolling_add_network(f, "default", "10.42.0.0/16");
    assert_int_equal(enrolling_enter(f, 1, ""), ENROL_E_GONE);
}

static void test_full(void **state)
{
    struct enrolling *f = *state;

    enrolling_add_network(f, "small", "10.9.0.0/29");
    enrolling_new_token(f, "small", 9, false);
    for (uint8_t i = 1; i <= 5; i++)
        assert_int_equal(enrolling_enter(f, i, ""), 0);
    enrolling_assert_address(f, "10.9.0.6", "fd00::6");
    /* Number 1 is the hub's own, which this test has not made; then nothing is left. */
    assert_int_equal(ipam_take(&model_find_network(&f->model, "small")->ipam, IPAM_HUB), 0);
    assert_int_equal(enrolling_enter(f, 6, ""), ENROL_E_FULL);
    assert_string_equal(f->e.text, "network \"small\" has no address left: its 6 are in use");
}

static void test_kept_over_a_restart(void **state)
{
    struct enrolling *f = *state;

    enrolling_new_token(f, "default", 9, false);
    assert_int_equal(enrolling_enter(f, 1, "a"), 0);
    assert_int_equal(enrolling_enter(f, 2, "b"), 0);
    enrolling_put(f, RECORD_NODE, "default", "b", NULL);
    enrol_deinit(&f->enrol);
    model_deinit(&f->model);
    enrolling_load(f);
    assert_int_equal(enrolling_enter(f, 1, ""), 0);
    assert_string_equal(f->node->spec.meta.name, "a");
    enrolling_assert_address(f, "10.42.0.2", "fd00::2");
    /* The removed node's address is not given out again. */
    assert_int_equal(enrolling_enter(f, 3, "c"), 0);
    enrolling_assert_address(f, "10.42.0.4", "fd00::4");
}

/* Another hub on the same store was quicker. */
static void test_race(void **state)
{
    struct enrolling *f = *state;

    enrolling_new_token(f, "default", 1, false);
    enrolling_put_soon(f, RECORD_IPAM, "default", "", record_ipam_encode(77, 76));
    assert_int_equal(enrolling_enter(f, 1, ""), 0);
    enrolling_assert_address(f, "10.42.0.77", "fd00::4d");
}

static void test_relay(void **state)
{
    struct token_request rq = {.ttl_seconds = 3600, .uses = 1, .relay = true};
    struct enrolling *f = *state;

    assert_int_equal(sample_enrol_token(&f->enrol, model_find_network(&f->model, "default"), &rq,
                         ENROLLING_WALL, &f->secret, &f->e),
        0);
    assert_int_equal(enrolling_enter(f, 1, "r1"), 0);
    assert_true(f->node->spec.relay);
    enrolling_new_token(f, "default", 1, false);
    assert_int_equal(enrolling_enter(f, 2, "plain"), 0);
    assert_false(f->node->spec.relay);
}

static void new_routed_token(struct enrolling *f, const char *routes)
{
    struct token_request rq = {.ttl_seconds = 3600, .uses = 10};

    assert_int_equal(subnets_parse(&rq.routes, routes, &f->e), 0);
    assert_int_equal(sample_enrol_token(&f->enrol, model_find_network(&f->model, "default"), &rq,
                         ENROLLING_WALL, &f->secret, &f->e),
        0);
}

/* @name asks for @routes; as enrolling_enter(). */
static int enter_asking(struct enrolling *f, uint8_t n, const char *name, const char *routes)
{
    struct enrol_request rq = {.secret = f->secret, .key = enrolling_key(n)};
    struct enrol_proof proof = enrolling_proof(n);

    (void)snprintf(rq.name, sizeof(rq.name), "%s", name);
    assert_int_equal(subnets_parse(&rq.routes, routes, &f->e), 0);
    return sample_enrol_node(&f->enrol, &rq, &proof, &(struct ip_addr){{0}}, NSEC_PER_SEC,
        ENROLLING_WALL, &f->node, &f->e);
}

/* A node has what it asks for and its token admits, and nothing of another one's. */
static void test_routes(void **state)
{
    struct enrolling *f = *state;
    char text[SUBNETS_TEXT_MAX];

    enrolling_new_token(f, "default", 1, false);
    assert_int_equal(enter_asking(f, 1, "plain", "10.9.0.0/24"), 0);
    assert_null(f->node->spec.routes);
    new_routed_token(f, "10.9.0.0/16,fd09::/64");
    assert_int_equal(enter_asking(f, 2, "r1", "10.9.1.0/24,10.8.0.0/24,fd09::/64"), 0);
    assert_non_null(f->node->spec.routes);
    assert_string_equal(subnets_format(f->node->spec.routes, text), "10.9.1.0/24, fd09::/64");
    assert_int_equal(enter_asking(f, 3, "r2", "10.9.1.128/25"), ENROL_E_TAKEN);
    assert_string_equal(f->e.text,
        "route 10.9.1.128/25 overlaps 10.9.1.0/24, which is reached through node \"r1\": \"weft "
        "node set r1 --no-route 10.9.1.0/24\" takes it from there");
    assert_null(model_find_node(model_find_network(&f->model, "default"), "r2"));
    assert_int_equal(enter_asking(f, 3, "r2", "10.9.0.0/16"), ENROL_E_TAKEN);
    assert_int_equal(enter_asking(f, 3, "r2", "10.42.7.0/24"), -EINVAL);
    /* It may ask for what it does not get. */
    assert_int_equal(enter_asking(f, 3, "r2", "10.8.0.0/24,10.9.2.0/24"), 0);
    assert_string_equal(subnets_format(f->node->spec.routes, text), "10.9.2.0/24");
}

static void test_ephemeral(void **state)
{
    struct enrolling *f = *state;

    enrolling_new_token(f, "default", 1, true);
    assert_int_equal(enrolling_enter(f, 1, "guest"), 0);
    assert_true(f->node->spec.ephemeral);
    assert_int_equal(store_due(f->store), (1 + ENROL_EPHEMERAL_SECONDS) * NSEC_PER_SEC);
    assert_int_equal(
        model_expire(&f->model, (1 + ENROL_EPHEMERAL_SECONDS) * NSEC_PER_SEC, &f->e), 0);
    store_wait(f->store);
    assert_null(model_find_node(model_find_network(&f->model, "default"), "guest"));
}

/* Whom another hub of the same store has heard is not away; nor for ever there for that. */
static void test_heard_elsewhere(void **state)
{
    struct enrolling *f = *state;
    struct reports reports = {.model = &f->model};
    struct report_record heard = {.last_seen_at = ENROLLING_WALL + 550, .by = 4711};
    struct model_network *net = model_find_network(&f->model, "default");
    nsec_t end = (1 + ENROL_EPHEMERAL_SECONDS) * NSEC_PER_SEC;

    enrolling_new_token(f, "default", 1, true);
    assert_int_equal(enrolling_enter(f, 1, "guest"), 0);
    f->node->reported->seen_at = 0;
    f->store->is_shared = true;
    enrolling_put(f, RECORD_REPORT, "default", "guest", record_report_encode(&heard));
    presence_tick(&reports, end - NSEC_PER_SEC, ENROLLING_WALL + 600);
    assert_int_equal(model_expire(&f->model, end, &f->e), 0);
    store_wait(f->store);
    assert_ptr_equal(model_find_node(net, "guest"), f->node);
    presence_tick(&reports, 2 * end - 2 * NSEC_PER_SEC, ENROLLING_WALL + 1200);
    assert_int_equal(model_expire(&f->model, 2 * end, &f->e), 0);
    store_wait(f->store);
    assert_null(model_find_node(net, "guest"));
}

/* Whose lease has ended, and who is changed at the same time, is looked at again. */
static void test_expiry_conflicts(void **state)
{
    nsec_t end = (1 + ENROL_EPHEMERAL_SECONDS) * NSEC_PER_SEC;
    struct enrolling *f = *state;
    struct model_network *net = model_find_network(&f->model, "default");
    struct node spec;

    enrolling_new_token(f, "default", 1, true);
    assert_int_equal(enrolling_enter(f, 1, "guest"), 0);
    spec = f->node->spec;
    spec.ephemeral = false;
    enrolling_put_soon(
        f, RECORD_NODE, "default", "guest", record_node_encode(&spec, &f->node->token));
    assert_int_equal(model_expire(&f->model, end, &f->e), 0);
    assert_true(f->node->is_expired);
    store_wait(f->store);
    assert_ptr_equal(model_find_node(net, "guest"), f->node);
    assert_false(f->node->spec.ephemeral);
    /* It stays, so what is known about it is written again. */
    assert_false(f->node->is_expired);
    assert_int_equal(model_expire(&f->model, 2 * end, &f->e), 0);
    store_wait(f->store);
    assert_ptr_equal(model_find_node(net, "guest"), f->node);
}

/* The store takes nothing more: nobody is on the way out. */
static void test_expiry_not_accepted(void **state)
{
    nsec_t end = (1 + ENROL_EPHEMERAL_SECONDS) * NSEC_PER_SEC;
    struct enrolling *f = *state;

    enrolling_new_token(f, "default", 1, true);
    assert_int_equal(enrolling_enter(f, 1, "guest"), 0);
    for (unsigned i = 0; i < STORE_PENDING_MAX; i++)
        enrolling_put_soon(f, RECORD_IPAM, "default", "", record_ipam_encode(9, 8));
    assert_true(model_expire(&f->model, end, &f->e) < 0);
    assert_false(f->node->is_expired);
    store_wait(f->store);
    assert_int_equal(model_expire(&f->model, end, &f->e), 0);
    store_wait(f->store);
    assert_null(model_find_node(model_find_network(&f->model, "default"), "guest"));
}

/* The store loses the commit: the node stays, and is as others until the next try. */
static void test_expiry_lost(void **state)
{
    nsec_t end = (1 + ENROL_EPHEMERAL_SECONDS) * NSEC_PER_SEC;
    struct enrolling *f = *state;
    struct model_network *net = model_find_network(&f->model, "default");
    unsigned n_stayed = 0;

    enrolling_new_token(f, "default", 1, true);
    assert_int_equal(enrolling_enter(f, 1, "guest"), 0);
    enrolling_may_fail = true;
    sample_late_set_loss(f->store, 1);
    for (unsigned i = 0; i < 20 && model_find_node(net, "guest"); i++) {
        assert_int_equal(model_expire(&f->model, end, &f->e), 0);
        store_wait(f->store);
        n_stayed += model_find_node(net, "guest") != NULL;
        if (model_find_node(net, "guest"))
            assert_false(f->node->is_expired);
    }
    enrolling_may_fail = false;
    assert_true(n_stayed > 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ENROLLING_CASE(test_enters),
        ENROLLING_CASE(test_asking_first),
        ENROLLING_CASE(test_asking_again),
        ENROLLING_CASE(test_asking_for_another),
        ENROLLING_CASE(test_uses),
        ENROLLING_CASE(test_refusals),
        ENROLLING_CASE(test_keys_that_nobody_has),
        ENROLLING_CASE(test_reserved_names),
        ENROLLING_CASE(test_labels),
        ENROLLING_CASE(test_network_gone),
        ENROLLING_CASE(test_full),
        ENROLLING_CASE(test_kept_over_a_restart),
        ENROLLING_CASE(test_race),
        ENROLLING_CASE(test_relay),
        ENROLLING_CASE(test_routes),
        ENROLLING_CASE(test_ephemeral),
        ENROLLING_CASE(test_heard_elsewhere),
        ENROLLING_CASE(test_expiry_conflicts),
        ENROLLING_CASE(test_expiry_not_accepted),
        cmocka_unit_test_setup_teardown(test_expiry_lost, enrolling_setup_late, enrolling_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
