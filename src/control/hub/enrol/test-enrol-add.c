/*
 * test-enrol-add.c - stock WireGuards that an administrator adds, those who come at the same time
 * and want the same, and uses of tokens that are given back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "hub/enrol/enrol.h"
#include "store/store.h"
#include "test/support/enrolling.h"
#include "test/support/sample_enrol.h"

#define S NSEC_PER_SEC

static const struct audit_by admin = {.actor = "uid:0"};

/* The outcome of one that is answered later. */
struct outcome {
    unsigned n;
    int r;
    const struct model_node *node;
    struct err e;
};

static void on_done(void *ctx, int r, const struct model_node *node, const struct err *e)
{
    struct outcome *o = ctx;

    *o = (struct outcome){.n = o->n + 1, .r = r, .node = node};
    if (r != 0)
        o->e = *e;
}

static struct model_network *network_of(struct enrolling *f)
{
    return model_find_network(&f->model, "default");
}

static struct enrol_request request(uint8_t n, const char *name)
{
    struct enrol_request rq = {.key = enrolling_key(n)};

    (void)snprintf(rq.name, sizeof(rq.name), "%s", name);
    return rq;
}

/* Added, and waited for; as enrol_add(). */
static int add(struct enrolling *f, const struct enrol_request *rq)
{
    struct outcome o = {.n = 0};
    int r;

    f->e = (struct err)ERR_NULL;
    r = enrol_add(&f->enrol, network_of(f), rq, &admin, S, on_done, &o, &f->e);
    if (r != 0)
        return r;
    store_wait(f->store);
    assert_int_equal(o.n, 1);
    if (o.r == 0)
        f->node = model_find_node(o.node->net, o.node->spec.meta.name);
    else
        f->e = o.e;
    return o.r;
}

static int add_named(struct enrolling *f, uint8_t n, const char *name)
{
    struct enrol_request rq = request(n, name);

    return add(f, &rq);
}

/* A hub's own node. */
static void put_hub(struct enrolling *f, uint8_t n, const char *name)
{
    struct node_hub hub = {.n_endpoints = 1, .api_port = 8443};
    struct node node = {.key = enrolling_key(n), .hub = &hub};
    const struct network *net = &network_of(f)->spec;

    assert_int_equal(endpoint_parse(&hub.endpoints[0], "203.0.113.9:51820", NULL), 0);
    (void)snprintf(node.meta.name, sizeof(node.meta.name), "%s", name);
    (void)snprintf(node.meta.network, sizeof(node.meta.network), "default");
    node.address4 = ipam_address(&net->cidr4, IPAM_HUB);
    node.address6 = ipam_address(&net->cidr6, IPAM_HUB);
    enrolling_put(
        f, RECORD_NODE, "default", name, record_node_encode(&node, &(struct token_hash){.b = {0}}));
    assert_non_null(model_find_node(network_of(f), name));
}

/* ---- what an administrator adds -------------------------------------------------------------- */

/* The next number, and the highest one that was ever given. */
static int keep_cursor(void *ctx, const struct store_item *item)
{
    uint32_t *cursor = ctx;

    return record_ipam_decode(&cursor[0], &cursor[1], item->value, NULL);
}

static void test_a_node_is_added(void **state)
{
    struct enrolling *f = *state;
    struct enrol_request rq = request(1, "printer");
    json_t *labels = json_pack("{s:s}", "floor", "2");
    uint32_t cursor[2];
    char text[SUBNETS_TEXT_MAX];

    rq.labels = labels;
    assert_int_equal(subnets_parse(&rq.routes, "10.9.0.0/24", &f->e), 0);
    assert_int_equal(add(f, &rq), 0);
    json_decref(labels);
    assert_string_equal(f->node->spec.meta.name, "printer");
    assert_true(f->node->spec.stock);
    assert_false(f->node->spec.ephemeral || f->node->spec.relay);
    assert_int_equal(f->node->spec.n_labels, 1);
    assert_string_equal(subnets_format(f->node->spec.routes, text), "10.9.0.0/24");
    enrolling_assert_address(f, "10.42.0.2", "fd00::2");
    assert_int_equal(store_now_get(f->store, "ipam/default", keep_cursor, cursor, &f->e), 0);
    assert_int_equal(cursor[0], 3);
    assert_int_equal(cursor[1], 2);
    /* It has no lease, and has enrolled by no token. */
    assert_int_equal(store_due(f->store), NSEC_NEVER);
    assert_int_equal(f->enrol.n_enrolled + f->enrol.n_refused, 0);
    assert_int_equal(f->enrol.n_waiting, 0);
}

static void test_what_is_not_added(void **state)
{
    struct enrolling *f = *state;
    struct enrol_request rq = request(5, "r2");
    struct model_network *net = network_of(f);

    put_hub(f, 9, "h");
    assert_int_equal(add_named(f, 1, "localhost"), -EINVAL);
    assert_int_equal(add_named(f, 1, "printer"), 0);
    assert_int_equal(add_named(f, 2, "printer"), ENROL_E_TAKEN);
    assert_string_equal(err_text(&f->e),
        "network \"default\" has a node \"printer\" already: choose another name, or, if that "
        "machine is gone, \"weft node rm printer --network default\" on the hub makes room");
    assert_int_equal(add_named(f, 1, "other"), ENROL_E_TAKEN);
    assert_string_equal(
        err_text(&f->e), "node \"printer\" of network \"default\" has this public key already");
    assert_int_equal(add_named(f, 9, "other"), -EINVAL);
    assert_string_equal(err_text(&f->e), "the public key is that of hub \"h\"");
    rq.key = (struct x25519_public){{1}};
    assert_int_equal(add(f, &rq), -EINVAL);
    assert_string_equal(err_text(&f->e),
        "the public key belongs to no private key: \"wg pubkey\" makes one from a private key");
    rq = request(5, "r2");
    assert_int_equal(subnets_parse(&rq.routes, "10.42.7.0/24", &f->e), 0);
    assert_int_equal(add(f, &rq), -EINVAL);
    /* A record that cannot be read may be that of a node of this name. */
    enrolling_may_fail = true;
    enrolling_put(f, RECORD_NODE, "default", "damaged", strdup("{"));
    enrolling_may_fail = false;
    assert_int_equal(add_named(f, 4, "damaged"), ENROL_E_TAKEN);
    net->has_key = false;
    assert_int_equal(add_named(f, 3, "other"), -EAGAIN);
    assert_string_equal(
        err_text(&f->e), "this hub does not serve network \"default\" yet: try again");
    net->has_key = true;
    net->leaving = MODEL_NETWORK_REMOVED;
    assert_int_equal(add_named(f, 3, "other"), ENROL_E_GONE);
    assert_string_equal(err_text(&f->e), "network \"default\" does not exist any more");
    net->leaving = NULL;
    assert_int_equal(net->nodes.n, 2);
}

/* A network of which a node's record is damaged gives no address that may be that node's. */
static void test_no_address_is_surely_free(void **state)
{
    struct enrolling *f = *state;

    enrolling_add_network(f, "small", "10.9.0.0/29");
    enrolling_new_token(f, "small", 9, false);
    enrolling_put(f, RECORD_IPAM, "small", "", record_ipam_encode(7, 6));
    enrolling_may_fail = true;
    enrolling_put(f, RECORD_NODE, "small", "damaged", strdup("{"));
    enrolling_may_fail = false;
    assert_int_equal(enrolling_enter(f, 1, ""), ENROL_E_FULL);
    assert_string_equal(err_text(&f->e),
        "network \"small\" has no address left: its 6 are in use, or may be those of nodes whose "
        "records are damaged");
}

/* ---- with a token ---------------------------------------------------------------------------- */

static void test_a_network_that_takes_nobody(void **state)
{
    struct enrolling *f = *state;
    struct model_network *net = network_of(f);

    enrolling_new_token(f, "default", 9, false);
    net->leaving = MODEL_NETWORK_REMOVED;
    assert_int_equal(enrolling_enter(f, 1, ""), ENROL_E_GONE);
    assert_string_equal(
        err_text(&f->e), "network \"default\" of this token does not exist any more");
    net->leaving = NULL;
    net->has_key = false;
    assert_int_equal(enrolling_ask(f, 1, "", NULL, ENROLLING_WALL), -EAGAIN);
    assert_string_equal(err_text(&f->e),
        "this hub does not serve network \"default\" yet: try again, or ask another hub");
    net->has_key = true;
    put_hub(f, 9, "h");
    assert_int_equal(enrolling_enter(f, 9, ""), -EINVAL);
    assert_string_equal(err_text(&f->e), "the public key is that of hub \"h\"");
    assert_int_equal(f->enrol.n_refused, 3);
    assert_int_equal(f->enrol.n_enrolled, 0);
    assert_int_equal(enrolling_enter(f, 1, ""), 0);
    assert_int_equal(enrolling_enter(f, 1, ""), 0);
    assert_int_equal(f->enrol.n_enrolled, 2);
    assert_false(f->node->spec.stock);
}

/* A machine says that it is a stock WireGuard. */
static void test_a_stock_engine(void **state)
{
    struct enrolling *f = *state;
    struct enrol_request rq = request(1, "stock");
    struct enrol_proof proof = enrolling_proof(1);

    enrolling_new_token(f, "default", 1, true);
    rq.secret = f->secret;
    (void)snprintf(rq.engine, sizeof(rq.engine), REQUEST_ENGINE_STOCK);
    assert_int_equal(sample_enrol_node(&f->enrol, &rq, &proof, &(struct ip_addr){{0}}, S,
                         ENROLLING_WALL, &f->node, &f->e),
        0);
    assert_true(f->node->spec.stock && f->node->spec.ephemeral);
}

/* A token is kept for a day after its end, and has its time from when it was made. */
static void test_what_a_token_is(void **state)
{
    struct enrolling *f = *state;
    struct token_request rq = {.ttl_seconds = 100, .uses = 7, .ephemeral = true, .relay = true};
    struct model_network *net = network_of(f);
    struct token_secret secret = {{0}};
    struct token_write made;
    struct token_record record;
    struct token_hash hash;
    char key[RECORD_KEY_MAX];

    assert_int_equal(subnets_parse(&rq.routes, "10.9.0.0/24", &f->e), 0);
    net->n_tokens = ENROL_TOKENS_MAX - 1;
    assert_int_equal(
        enrol_new_secret(&f->enrol, net, &rq, "uid:0", 1000, &made, &secret, &f->e), 0);
    hash = token_hash_of(&secret);
    assert_string_equal(made.key, token_hash_key(key, &hash));
    assert_ptr_equal(made.op.key, made.key);
    assert_ptr_equal(made.op.value, made.value);
    assert_int_equal(made.op.kind, STORE_OP_PUT);
    assert_true(made.op.expect == STORE_EXPECT_ABSENT);
    assert_int_equal(made.op.ttl_seconds, 100 + 86400);
    assert_int_equal(record_token_decode(&record, made.value, &f->e), 0);
    assert_string_equal(record.network, "default");
    assert_true(x25519_public_equal(&record.hub_key, &net->maker.key));
    assert_int_equal(record.expires_at, 1100);
    assert_int_equal(record.created_at, 1000);
    assert_string_equal(record.created_by, "uid:0");
    assert_int_equal(record.uses, 7);
    assert_true(record.ephemeral && record.relay);
    assert_int_equal(record.routes.n, 1);
    token_write_deinit(&made);
    net->n_tokens = ENROL_TOKENS_MAX;
    assert_int_equal(enrol_new_secret(&f->enrol, net, &rq, "uid:0", 1000, &made, &secret, &f->e),
        ENROL_E_TOKENS);
    net->n_tokens = 0;
}

/* A use is given back while the token may still be used, and no more than there may be. */
static void test_uses_that_are_given_back(void **state)
{
    struct enrolling *f = *state;
    struct model_token *t;
    struct token_write w;
    struct token_record record;
    struct token_hash hash;
    char key[RECORD_KEY_MAX];

    enrolling_new_token(f, "default", 3, false);
    hash = token_hash_of(&f->secret);
    t = model_find_token(&f->model, &hash);
    enrol_give_back(t, ENROLLING_WALL + 3500, &w);
    assert_int_equal(record_token_decode(&record, w.value, &f->e), 0);
    assert_int_equal(record.uses, 4);
    assert_int_equal(record.expires_at, ENROLLING_WALL + 3600);
    assert_string_equal(w.key, token_hash_key(key, &hash));
    assert_ptr_equal(w.op.key, w.key);
    assert_ptr_equal(w.op.value, w.value);
    assert_int_equal(w.op.kind, STORE_OP_PUT);
    assert_true(w.op.expect == t->revision);
    assert_int_equal(w.op.ttl_seconds, 100 + 86400);
    token_write_deinit(&w);
    enrol_give_back(t, ENROLLING_WALL + 3600, &w);
    assert_null(w.value);
    t->record.uses = REQUEST_USES_MAX - 1;
    enrol_give_back(t, ENROLLING_WALL + 3599, &w);
    assert_non_null(w.value);
    assert_int_equal(w.op.ttl_seconds, 1 + 86400);
    token_write_deinit(&w);
    t->record.uses = REQUEST_USES_MAX;
    enrol_give_back(t, ENROLLING_WALL, &w);
    assert_null(w.value);
}

/* ---- at the same time ------------------------------------------------------------------------ */

static void ask_soon(
    struct enrolling *f, uint8_t n, const char *name, const char *routes, struct outcome *ret)
{
    struct enrol_request rq = request(n, name);
    struct enrol_proof proof = enrolling_proof(n);
    const struct model_node *node = NULL;

    rq.secret = f->secret;
    if (routes)
        assert_int_equal(subnets_parse(&rq.routes, routes, &f->e), 0);
    *ret = (struct outcome){.n = 0};
    assert_int_equal(
        enrol_node(&f->enrol, &rq, &proof, &admin, S, ENROLLING_WALL, on_done, ret, &node, &f->e),
        0);
    assert_null(node);
}

/* Who wants what another one is just being given waits for the outcome of that one. */
static void test_who_wants_the_same(void **state)
{
    struct enrolling *f = *state;
    struct outcome o[6];
    uint64_t before;

    enrolling_new_token(f, "default", 9, false);
    /* The first one is a batch of its own: the others come while it is on its way. */
    ask_soon(f, 1, "first", NULL, &o[0]);
    ask_soon(f, 2, "a", NULL, &o[1]);
    ask_soon(f, 3, "a", NULL, &o[2]);
    ask_soon(f, 4, "b", NULL, &o[3]);
    ask_soon(f, 4, "", NULL, &o[4]);
    ask_soon(f, 5, "c", NULL, &o[5]);
    assert_int_equal(f->enrol.n_waiting, 6);
    store_wait(f->store);
    assert_int_equal(f->enrol.n_waiting, 0);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(o[i].n, 1);
        assert_int_equal(o[i].r, i == 2 ? ENROL_E_TAKEN : 0);
    }
    assert_ptr_equal(o[3].node, o[4].node);
    assert_int_equal(network_of(f)->nodes.n, 4);
    assert_int_equal(network_of(f)->ipam.next, 6);
    assert_int_equal(network_of(f)->ipam.high, 5);
    /* And so does who wants routes, as another one does; each batch is one commit. */
    enrolling_new_token(f, "default", 9, false);
    before = store_revision(f->store);
    ask_soon(f, 11, "d", NULL, &o[0]);
    ask_soon(f, 12, "e", NULL, &o[1]);
    ask_soon(f, 13, "g", "10.9.0.0/24", &o[2]);
    ask_soon(f, 14, "h", "10.9.1.0/24", &o[3]);
    store_wait(f->store);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(o[i].r, 0);
    assert_int_equal(store_revision(f->store) - before, 3);
}

/* One use is left, and two want it at the same time. */
static void test_the_last_use(void **state)
{
    struct enrolling *f = *state;
    struct outcome o[3];

    enrolling_new_token(f, "default", 2, false);
    for (unsigned i = 0; i < 3; i++)
        ask_soon(f, (uint8_t)(i + 1), "", NULL, &o[i]);
    store_wait(f->store);
    assert_int_equal(o[0].r, 0);
    assert_int_equal(o[1].r, 0);
    assert_int_equal(o[2].r, ENROL_E_DENIED);
    assert_string_equal(err_text(&o[2].e),
        "the token is used up: make a new one with \"weft token new --network default\"");
}

/* Two networks in one batch: each has its own addresses. */
static void test_two_networks_at_once(void **state)
{
    struct enrolling *f = *state;
    struct outcome o[3];
    struct token_secret secret;

    enrolling_add_network(f, "other", "10.43.0.0/16");
    enrolling_new_token(f, "other", 9, false);
    secret = f->secret;
    enrolling_new_token(f, "default", 9, false);
    ask_soon(f, 1, "first", NULL, &o[0]);
    ask_soon(f, 2, "a", NULL, &o[1]);
    f->secret = secret;
    ask_soon(f, 2, "a", NULL, &o[2]);
    store_wait(f->store);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(o[i].r, 0);
    assert_int_equal(network_of(f)->ipam.next, 4);
    assert_int_equal(model_find_network(&f->model, "other")->ipam.next, 3);
    assert_int_equal(model_find_network(&f->model, "other")->ipam.high, 2);
}

/* The store takes no more for now: who waits hears so at once, and may try again. */
static void test_a_store_that_takes_no_more(void **state)
{
    struct enrolling *f = *state;
    struct outcome o;

    enrolling_new_token(f, "default", 9, false);
    while (store_pending(f->store) < STORE_PENDING_MAX)
        enrolling_put_soon(f, RECORD_IPAM, "default", "", record_ipam_encode(2, 1));
    ask_soon(f, 1, "", NULL, &o);
    assert_int_equal(o.n, 1);
    assert_int_equal(o.r, -EAGAIN);
    assert_null(o.node);
    assert_int_equal(f->enrol.n_waiting, 0);
    store_wait(f->store);
    ask_soon(f, 1, "", NULL, &o);
    store_wait(f->store);
    assert_int_equal(o.r, 0);
}

/* The hub ends while some wait, who hear nothing more. */
static void test_the_end_while_some_wait(void **state)
{
    struct enrolling *f = *state;
    static struct outcome o[3];
    struct enrol none = {.n_waiting = 0};

    enrolling_new_token(f, "default", 9, false);
    for (unsigned i = 0; i < 3; i++)
        ask_soon(f, (uint8_t)(i + 1), "", NULL, &o[i]);
    assert_int_equal(f->enrol.n_waiting, 3);
    enrol_deinit(&none);
}

/* ---- others who change the same -------------------------------------------------------------- */

static struct enrolling *meddled;
static unsigned n_meddles; /* that are still to come */

/* Each change of the cursor is followed by another one, before a batch can take it in. */
static void on_cursor(void *ctx, const struct store_item *item)
{
    if (n_meddles == 0)
        return;
    n_meddles--;
    enrolling_put_soon(meddled, RECORD_IPAM, "default", "", record_ipam_encode(50, 49));
}

/* A batch that conflicts is tried again, but not for ever. */
static void test_batches_that_conflict(void **state)
{
    struct store_watch *watch = NULL;
    struct outcome o;

    meddled = *state;
    enrolling_new_token(meddled, "default", 9, false);
    assert_int_equal(store_watch(meddled->store, "ipam/", store_revision(meddled->store) + 1,
                         on_cursor, NULL, &watch, &meddled->e),
        0);
    for (unsigned n_conflicts = 7; n_conflicts <= 8; n_conflicts++) {
        n_meddles = n_conflicts;
        on_cursor(NULL, NULL);
        ask_soon(meddled, (uint8_t)n_conflicts, "", NULL, &o);
        store_wait(meddled->store);
        assert_int_equal(n_meddles, 0);
        assert_int_equal(o.n, 1);
        assert_int_equal(o.r, n_conflicts == 7 ? 0 : -EAGAIN);
        if (n_conflicts == 8)
            assert_string_equal(
                err_text(&o.e), "the hub is too busy to take the node in: try again");
        else
            assert_int_equal(network_of(meddled)->ipam.next, 51);
    }
    store_watch_close(watch);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ENROLLING_CASE(test_a_node_is_added),
        ENROLLING_CASE(test_what_is_not_added),
        ENROLLING_CASE(test_no_address_is_surely_free),
        ENROLLING_CASE(test_a_network_that_takes_nobody),
        ENROLLING_CASE(test_a_stock_engine),
        ENROLLING_CASE(test_what_a_token_is),
        ENROLLING_CASE(test_uses_that_are_given_back),
        ENROLLING_CASE(test_who_wants_the_same),
        ENROLLING_CASE(test_the_last_use),
        ENROLLING_CASE(test_two_networks_at_once),
        ENROLLING_CASE(test_a_store_that_takes_no_more),
        ENROLLING_CASE(test_the_end_while_some_wait),
        cmocka_unit_test_setup_teardown(
            test_batches_that_conflict, enrolling_setup, enrolling_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
