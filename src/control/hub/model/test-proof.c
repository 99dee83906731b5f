/* test-proof.c - that a request comes from a node: what is taken, once, and what a refusal says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "api/content/route.h"
#include "hub/model/model.h"
#include "hub/model/proof.h"

#define NOW  (1000 * NSEC_PER_SEC)
#define BOOT 77

static struct world {
    struct model model;
    struct model_network net;
    struct model_node node;
    struct proof_state proof;
    struct member_proof_key key; /* as the node has it */
    char header[MEMBER_PROOF_TEXT_MAX];
} w;

static int set_up(void **state)
{
    const struct x25519_secret node = {.b = {[0] = 8, [31] = 64}};
    struct x25519_public hub;

    memset(&w, 0, sizeof(w));
    w.model.boot = BOOT;
    w.net.model = &w.model;
    w.net.has_key = true;
    w.net.secret = (struct x25519_secret){.b = {[0] = 16, [31] = 64}};
    w.node.net = &w.net;
    w.node.proof = &w.proof;
    (void)snprintf(w.node.spec.meta.name, sizeof(w.node.spec.meta.name), "n2");
    assert_true(x25519_derive_public(&node, &w.node.spec.key));
    assert_true(x25519_derive_public(&w.net.secret, &hub));
    assert_true(member_proof_key_make(&w.key, &node, &hub, &w.node.spec.key));
    return 0;
}

/* A request of the node, with that stamp. */
static struct request request(uint64_t boot, uint64_t sequence)
{
    static const char body[] = "{\"a\": 1}";
    struct request rq = {.method = "PUT",
        .path = "/v1/x",
        .bytes = body,
        .n_bytes = sizeof(body) - 1,
        .authorization = w.header,
        .now = NOW};
    struct member_proof_request what = {
        .method = rq.method, .path = rq.path, .body = rq.bytes, .body_len = rq.n_bytes};
    struct member_proof proof = {.boot = boot, .sequence = sequence};

    assert_true(member_proof_make(&proof, &w.key, &what));
    (void)member_proof_format(&proof, w.header);
    return rq;
}

static void assert_taken(const struct request *rq)
{
    struct response rs = {0};

    assert_true(proof_take(&w.node, rq, &rs));
    assert_int_equal(rs.status, 0);
    assert_null(rs.body);
}

/* And the refusal says which are taken: those beyond @after; negative: it cannot say. */
static void assert_refused(const struct request *rq, json_int_t after)
{
    struct response rs = {0};
    const json_t *boot, *least;

    assert_false(proof_take(&w.node, rq, &rs));
    assert_int_equal(rs.status, 401);
    assert_string_equal(json_string_value(json_object_get(rs.body, "error")),
        "the request does not prove that it comes from node \"n2\" itself: on its machine \"weft\" "
        "asks through the agent's socket");
    boot = json_object_get(rs.body, "boot");
    least = json_object_get(rs.body, "after");
    assert_int_equal(boot != NULL, after >= 0);
    assert_int_equal(least != NULL, after >= 0);
    if (after >= 0) {
        assert_int_equal(json_integer_value(boot), BOOT);
        assert_int_equal(json_integer_value(least), after);
    }
    response_deinit(&rs);
}

static void test_a_proof_is_taken_once(void **state)
{
    struct request rq = request(BOOT, NOW + 5);

    assert_taken(&rq);
    assert_refused(&rq, NOW + 5);
    /* One that was overtaken is taken as well. */
    rq = request(BOOT, NOW + 4);
    assert_taken(&rq);
    assert_refused(&rq, NOW + 5);
}

/* The first request sets from where on numbers count: what was sent to an earlier run of the hub
 * does not. */
static void test_what_is_older_than_the_first_look(void **state)
{
    struct request rq = request(BOOT, NOW);

    assert_refused(&rq, NOW);
    rq = request(BOOT, NOW - 1);
    assert_refused(&rq, NOW);
    rq = request(BOOT, NOW + 1);
    rq.now = 2 * NOW;
    assert_taken(&rq);
}

static void test_what_is_no_proof(void **state)
{
    struct request rq = request(BOOT + 1, NOW + 1);

    /* Of another run of the hub. */
    assert_refused(&rq, NOW);
    rq = request(BOOT, NOW + 1);
    rq.authorization = NULL;
    assert_refused(&rq, NOW);
    rq.authorization = "Bearer x";
    assert_refused(&rq, NOW);
    /* For another request. */
    rq = request(BOOT, NOW + 1);
    rq.method = "GET";
    assert_refused(&rq, NOW);
    rq = request(BOOT, NOW + 1);
    rq.path = "/v1/y";
    assert_refused(&rq, NOW);
    rq = request(BOOT, NOW + 1);
    rq.n_bytes--;
    assert_refused(&rq, NOW);
    rq = request(BOOT, NOW + 1);
    rq.bytes = "{\"a\": 2}";
    assert_refused(&rq, NOW);
    /* None of them has used up the number. */
    rq = request(BOOT, NOW + 1);
    assert_taken(&rq);
}

static void test_the_key_is_made_once(void **state)
{
    const struct member_proof_key *key = proof_key(&w.node, NOW);

    assert_memory_equal(key, &w.key, sizeof(*key));
    assert_true(w.proof.has_key);
    assert_int_equal(w.proof.window.highest, NOW);
    assert_ptr_equal(proof_key(&w.node, 2 * NOW), key);
    assert_int_equal(w.proof.window.highest, NOW);
}

static void test_there_is_no_key(void **state)
{
    struct request rq = request(BOOT, NOW + 1);

    /* The hub's is not there. */
    w.net.has_key = false;
    assert_null(proof_key(&w.node, NOW));
    assert_refused(&rq, -1);
    /* Nobody can have the node's. */
    w.net.has_key = true;
    memset(&w.node.spec.key, 0, sizeof(w.node.spec.key));
    assert_null(proof_key(&w.node, NOW));
    assert_refused(&rq, -1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_proof_is_taken_once, set_up),
        cmocka_unit_test_setup(test_what_is_older_than_the_first_look, set_up),
        cmocka_unit_test_setup(test_what_is_no_proof, set_up),
        cmocka_unit_test_setup(test_the_key_is_made_once, set_up),
        cmocka_unit_test_setup(test_there_is_no_key, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
