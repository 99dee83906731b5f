/*
 * test-model.c - the store's records as the model has them: what is read at the start, what each
 * change tells, what is set aside, and what is looked up.
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
#include "base/text.h"
#include "hub/model/model.h"
#include "store/store_backend.h"
#include "store/store.h"
#include "test/support/notice.h"
#include "test/support/sample_mesh.h"
#include "test/support/store_now.h"

#define S NSEC_PER_SEC

/* This hub's run. */
#define BOOT 77

struct fixture {
    struct store *s;
    struct model model;
    struct str reported;       /* what the listener was told since it was last looked at */
    char *fabric;              /* that put_report() says; NULL: none */
    struct x25519_public lost; /* no private key is there for this one; none: for all others */
};

/* ---- the listener --------------------------------------------------------------------------- */

static int network_key(void *ctx, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    const struct fixture *f = ctx;

    if (x25519_public_equal(public, &f->lost))
        return err_set(e, -ENOENT, "no key for %s", name);
    *ret = (struct x25519_secret){.b = {public->b[0]}};
    return 0;
}

static void on_network(struct fixture *f, const char *what, const struct model_network *net)
{
    str_addf(&f->reported, "%s %s; ", what, net->spec.meta.name);
}

static void network_added(void *ctx, const struct model_network *net)
{
    on_network(ctx, "network added", net);
}

static void network_changed(void *ctx, const struct model_network *net)
{
    on_network(ctx, "network changed", net);
}

static void network_removed(void *ctx, const struct model_network *net)
{
    on_network(ctx, "network removed", net);
    model_reap_network(net);
}

static void node_added(void *ctx, const struct model_node *node)
{
    struct fixture *f = ctx;

    str_addf(&f->reported, "%s added; ", node->spec.meta.name);
}

static void node_changed(void *ctx, const struct model_node *node, const struct node *before)
{
    struct fixture *f = ctx;

    str_addf(&f->reported, "%s changed from key %u to %u; ", node->spec.meta.name, before->key.b[0],
        node->spec.key.b[0]);
}

static void node_removed(void *ctx, const struct model_node *node)
{
    struct fixture *f = ctx;

    assert_true(node->is_removed);
    str_addf(&f->reported, "%s removed; ", node->spec.meta.name);
    model_reap(node);
}

static void status_changed(void *ctx, const struct model_node *node)
{
    struct fixture *f = ctx;

    str_addf(
        &f->reported, "%s is %s; ", node->spec.meta.name, node->reported->heard.report.hostname);
}

static void edge_changed(void *ctx, struct model_edge *edge, enum edge_path before)
{
    struct fixture *f = ctx;

    str_addf(&f->reported, "%s from %s to %s between %s and %s; ", edge->spec.meta.name,
        before == EDGE_PATH_OFF ? "off" : "auto", edge->spec.path == EDGE_PATH_OFF ? "off" : "auto",
        edge->ends[0].node ? edge->ends[0].node->spec.meta.name : "nobody",
        edge->ends[1].node ? edge->ends[1].node->spec.meta.name : "nobody");
}

static void object_changed(void *ctx, const struct model_network *net, const struct object *before,
    const struct object *now)
{
    struct fixture *f = ctx;

    str_addf(&f->reported, "%s from %s to %s; ", now ? now->meta.name : before->meta.name,
        before ? notice_of(before)->text : "nothing", now ? notice_of(now)->text : "nothing");
}

static void broken(void *ctx, const char *key, const struct err *e)
{
    struct fixture *f = ctx;

    assert_true(e->code != 0);
    str_addf(&f->reported, "broken %s; ", key);
}

static void assert_told(struct fixture *f, const char *expected)
{
    assert_string_equal(str_text(&f->reported), expected);
    str_deinit(&f->reported);
}

/* ---- records -------------------------------------------------------------------------------- */

/* Without a sum, which a record need not have. @value: taken; NULL: the key goes. */
static void put_for(struct fixture *f, const char *key, char *value, uint32_t ttl_seconds)
{
    struct store_op op = {.kind = value ? STORE_OP_PUT : STORE_OP_DELETE,
        .key = key,
        .value = value,
        .expect = STORE_EXPECT_ANY,
        .ttl_seconds = ttl_seconds};
    struct err e = ERR_NULL;

    assert_int_equal(store_now_commit(f->s, &op, 1, 0, NULL, NULL, &e), 0);
    free(value);
}

static void put(struct fixture *f, const char *key, char *value)
{
    put_for(f, key, value, 0);
}

static void put_text(struct fixture *f, const char *key, const char *text)
{
    put(f, key, strdup(text));
}

static struct network sample_network(void)
{
    struct snapshot s = sample_snapshot(1, 1);
    struct network n = s.network;

    snapshot_deinit(&s);
    return n;
}

/* Made by the hub @maker with number 1's key. */
static void put_network(struct fixture *f, const char *maker, uint16_t mtu)
{
    struct network_maker by = {.key = sample_key(1)};
    struct network n = sample_network();

    n.mtu = mtu;
    (void)snprintf(by.name, sizeof(by.name), "%s", maker);
    put(f, "network/default", record_network_encode(&n, &by));
}

/* Number @n's record, with the key of number @key. */
static void put_node_of(struct fixture *f, unsigned n, unsigned key)
{
    static const struct token_hash token = {.b = {4}};
    struct object o = sample_node(n);
    char at[RECORD_KEY_MAX];

    o.node.key = sample_key(key);
    put(f, record_key(at, RECORD_NODE, "default", o.node.meta.name),
        record_node_encode(&o.node, &token));
    object_deinit(&o);
}

static void put_node(struct fixture *f, unsigned n)
{
    put_node_of(f, n, n);
}

static void put_edge(struct fixture *f, unsigned a, unsigned b, enum edge_path path)
{
    struct object o = sample_edge(a, b, path);
    char at[RECORD_KEY_MAX];

    put(f, record_key(at, RECORD_EDGE, "default", o.edge.meta.name), record_object_encode(&o));
    object_deinit(&o);
}

static const struct token_hash token_hash = {.b = {[0] = 0xab, [31] = 1}};

static void put_token(struct fixture *f, uint32_t uses, unsigned hub_key)
{
    struct token_record t = {.network = "default", .uses = uses, .hub_key = sample_key(hub_key)};
    char at[RECORD_KEY_MAX];

    put(f, token_hash_key(at, &token_hash), record_token_encode(&t));
}

static void put_report(struct fixture *f, uint64_t by, int64_t at, const char *hostname)
{
    struct report_record r = {.last_seen_at = at, .by = by, .has_reported = true};

    r.report.has_node = true;
    r.report.fabric = f->fabric;
    r.probed.owner = EDGE_OWNER_PROBE;
    (void)snprintf(r.report.hostname, sizeof(r.report.hostname), "%s", hostname);
    put(f, "report/default/n2", record_report_encode(&r));
}

/* ---- life ----------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    static struct fixture f;
    struct err e = ERR_NULL;
    const struct model_listener listener = {.ctx = &f,
        .network_key = network_key,
        .network_added = network_added,
        .network_changed = network_changed,
        .network_removed = network_removed,
        .node_added = node_added,
        .node_changed = node_changed,
        .node_removed = node_removed,
        .status_changed = status_changed,
        .edge_changed = edge_changed,
        .object_changed = object_changed,
        .broken = broken};

    f = (struct fixture){.reported = STR_NULL, .lost = sample_key(1000)};
    assert_int_equal(memory_open(&f.s, "", 1, &e), 0);
    model_init(&f.model, f.s, &listener, 5);
    f.model.boot = BOOT;
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    model_deinit(&f->model);
    store_free(f->s);
    str_deinit(&f->reported);
    return 0;
}

static void load(struct fixture *f)
{
    struct err e = ERR_NULL;

    assert_int_equal(model_load(&f->model, &e), 0);
}

/* The hub, n2 and n3; nothing of that has yet to be told. */
static struct model_network *load_sample(struct fixture *f)
{
    put_network(f, "hub", 1380);
    for (unsigned n = 1; n <= 3; n++)
        put_node(f, n);
    load(f);
    assert_told(f, "network added default; hub added; n2 added; n3 added; ");
    return model_find_network(&f->model, "default");
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* In which order they were written does not matter, as what others refer to is read first. */
static void test_load(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net;
    const struct model_token *token;

    put_report(f, 9, 1000, "box");
    put_token(f, 3, 1);
    put_edge(f, 2, 3, EDGE_PATH_OFF);
    put_node(f, 3);
    put_node(f, 2);
    put_node(f, 1);
    put(f, "ipam/default", record_ipam_encode(9, 12));
    put_network(f, "hub", 1380);
    put_text(f, "unheard-of/key", "whatever it is");
    load(f);
    assert_told(f, "network added default; hub added; n2 added; n3 added; "
                   "n2--n3 from auto to off between n2 and n3; n2 is box; ");
    net = model_find_network(&f->model, "default");
    assert_int_equal(net->spec.mtu, 1380);
    assert_int_equal(net->nodes.n, 3);
    assert_int_equal(net->ipam.next, 9);
    assert_int_equal(net->ipam.high, 12);
    assert_int_equal(model_next_number(net), 9);
    assert_int_equal(net->n_tokens, 1);
    token = model_find_token(&f->model, &token_hash);
    assert_int_equal(token->record.uses, 3);
    assert_true(net->has_key);
    assert_int_equal(net->secret.b[0], 1);
    assert_true(net->own == model_find_node(net, "hub"));
    assert_int_equal(net->key_failure.code, 0);
    assert_int_equal(f->model.damaged.n, 0);
    /* A change that comes later is told, too. */
    put_network(f, "hub", 1400);
    assert_told(f, "network changed default; ");
    assert_int_equal(net->spec.mtu, 1400);
}

static void test_lookups(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net = load_sample(f);
    struct model_node *n2 = model_find_node(net, "n2");
    struct model_node *n3 = model_find_node(net, "n3");
    struct x25519_public key = sample_key(2);
    struct object sample = sample_node(2);
    struct ip_addr nowhere = {.b = {1}};

    assert_non_null(n2);
    assert_null(model_find_network(&f->model, "other"));
    assert_null(model_find_node(net, "n4"));
    assert_ptr_equal(model_find_key(net, &key), n2);
    key = sample_key(4);
    assert_null(model_find_key(net, &key));
    assert_ptr_equal(model_find_address(net, &sample.node.address4), n2);
    assert_ptr_equal(model_find_address(net, &sample.node.address6), n2);
    assert_null(model_find_address(net, &nowhere));
    assert_int_equal(n2->token.b[0], 4);
    assert_true(model_is_self(model_find_node(net, "hub")) && !model_is_self(n2));
    /* The hubs are told apart from the other nodes. */
    assert_ptr_equal(
        list_first(&net->hubs, struct model_node, of_hubs), model_find_node(net, "hub"));
    assert_true(list_is_empty(&n2->of_hubs));
    /* An edge that is off, in either order. */
    assert_true(model_may_talk(n2, n3));
    put_edge(f, 2, 3, EDGE_PATH_OFF);
    assert_false(model_may_talk(n2, n3) || model_may_talk(n3, n2));
    assert_true(model_may_talk(n2, model_find_node(net, "hub")));
    assert_ptr_equal(model_find_edge(net, "n3", "n2"), model_find_edge(net, "n2", "n3"));
    assert_non_null(model_find_edge(net, "n2", "n3"));
    put_edge(f, 2, 3, EDGE_PATH_AUTO);
    assert_true(model_may_talk(n2, n3));
    assert_null(model_find_token(&f->model, &token_hash));
    object_deinit(&sample);
}

static void test_revisions(void **state)
{
    struct fixture *f = *state;
    char key[RECORD_KEY_MAX];
    struct model_network *net;
    uint64_t at;

    put_token(f, 3, 1);
    at = store_revision(f->s);
    net = load_sample(f);
    assert_true(model_revision(&f->model, token_hash_key(key, &token_hash)) == at);
    assert_true(model_revision(&f->model, "network/default") == at + 1);
    assert_true(model_revision(&f->model, "node/default/hub") == at + 2);
    assert_true(model_revision(&f->model, "node/default/n3") == at + 4);
    assert_int_equal(model_revision(&f->model, "node/default/n4"), 0);
    assert_int_equal(model_revision(&f->model, "node/other/n3"), 0);
    assert_int_equal(model_revision(&f->model, "edge/default/n2--n3"), 0);
    put_edge(f, 2, 3, EDGE_PATH_OFF);
    assert_true(model_revision(&f->model, "edge/default/n2--n3") == at + 5);
    /* The model keeps none of these. */
    put(f, "ipam/default", record_ipam_encode(9, 12));
    put_report(f, 9, 1000, "box");
    assert_int_equal(model_revision(&f->model, "ipam/default"), 0);
    assert_int_equal(model_revision(&f->model, "report/default/n2"), 0);
    assert_true(net->ipam_revision == at + 6);
    put_text(f, "node/default/n3", "{");
    assert_true(model_revision(&f->model, "node/default/n3") == at + 8);
}

static void test_changes_of_a_node(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net = load_sample(f);
    struct x25519_public before = sample_key(2);
    struct x25519_public after = sample_key(20);

    put_node_of(f, 2, 20);
    assert_told(f, "n2 changed from key 2 to 20; ");
    assert_null(model_find_key(net, &before));
    assert_ptr_equal(model_find_key(net, &after), model_find_node(net, "n2"));
    assert_int_equal(net->nodes.n, 3);
    assert_int_equal(ipam_next(&net->ipam, false), 4);
    put_edge(f, 2, 3, EDGE_PATH_OFF);
    assert_told(f, "n2--n3 from auto to off between n2 and n3; ");
    put(f, "node/default/n2", NULL);
    assert_told(f, "n2 removed; ");
    assert_null(model_find_node(net, "n2"));
    assert_null(model_find_key(net, &after));
    assert_int_equal(net->nodes.n, 2);
    /* Its number is free, and the others are not. */
    assert_int_equal(ipam_next(&net->ipam, false), 2);
    /* What is gone is gone once. */
    put(f, "node/default/n2", NULL);
    assert_told(f, "");
    /* The edge stays, and is that of the next node of this name. */
    put_edge(f, 2, 3, EDGE_PATH_AUTO);
    assert_told(f, "n2--n3 from off to auto between nobody and n3; ");
    put_node(f, 2);
    put_edge(f, 2, 3, EDGE_PATH_OFF);
    assert_told(f, "n2 added; n2--n3 from auto to off between n2 and n3; ");
    put(f, "edge/default/n2--n3", NULL);
    assert_told(f, "n2--n3 from off to auto between n2 and n3; ");
    assert_null(model_find_edge(net, "n2", "n3"));
    put(f, "edge/default/n2--n3", NULL);
    assert_told(f, "");
    assert_true(list_is_empty(&model_find_node(net, "n2")->edges));
}

static void test_changes_of_a_network(void **state)
{
    struct fixture *f = *state;

    (void)load_sample(f);
    put(f, "network/default", NULL);
    assert_told(f, "n3 removed; n2 removed; hub removed; network removed default; ");
    assert_null(model_find_network(&f->model, "default"));
    put(f, "network/default", NULL);
    /* What is of no network is nobody's. */
    put_node(f, 2);
    put_edge(f, 2, 3, EDGE_PATH_OFF);
    put_report(f, 9, 1000, "box");
    put(f, "ipam/default", record_ipam_encode(9, 12));
    assert_told(f, "");
    put_network(f, "hub", 1380);
    assert_told(f, "network added default; ");
}

static void test_tokens(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net = load_sample(f);
    char key[RECORD_KEY_MAX];

    put_token(f, 3, 1);
    put_token(f, 2, 1);
    assert_int_equal(net->n_tokens, 1);
    assert_int_equal(model_find_token(&f->model, &token_hash)->record.uses, 2);
    put(f, token_hash_key(key, &token_hash), NULL);
    assert_int_equal(net->n_tokens, 0);
    assert_null(model_find_token(&f->model, &token_hash));
    put(f, key, NULL);
    /* One of another network that had this name is kept, and is not this one's. */
    put_token(f, 3, 2);
    assert_int_equal(net->n_tokens, 0);
    assert_non_null(model_find_token(&f->model, &token_hash));
    put(f, key, NULL);
    put_text(f, "token/xyz", "{}");
    assert_told(f, "broken token/xyz; ");
}

static void put_notice(struct fixture *f, const char *key, const char *name, const char *text)
{
    struct notice spec = {.nodes = {"n2"}, .n_nodes = 1};
    struct object o = {.kind = &notice_kind};

    (void)snprintf(spec.text, sizeof(spec.text), "%s", text);
    (void)snprintf(o.meta.name, sizeof(o.meta.name), "%s", name);
    (void)snprintf(o.meta.network, sizeof(o.meta.network), "default");
    o.plain.spec = &spec;
    put(f, key, record_object_encode(&o));
}

/* Of a kind that means nothing else to the model. */
static void test_objects(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net;
    size_t i = 0;

    put_notice(f, "notice/default/y", "y", "old");
    put_network(f, "hub", 1380);
    load(f);
    assert_told(f, "network added default; y from nothing to old; ");
    net = model_find_network(&f->model, "default");
    put_notice(f, "notice/default/x", "x", "one");
    put_notice(f, "notice/default/x", "x", "two");
    assert_told(f, "x from nothing to one; x from one to two; ");
    assert_int_equal(net->objects.n, 2);
    assert_true(model_revision(&f->model, "notice/default/x") == store_revision(f->s));
    assert_true(model_find_object(net, &notice_kind, "x")->object.meta.resource_version ==
                store_revision(f->s));
    assert_int_equal(model_revision(&f->model, "notice/default/z"), 0);
    assert_null(model_find_object(net, &notice_kind, "z"));
    /* In the order of their names. */
    assert_string_equal(model_each_object(net, &notice_kind, &i)->meta.name, "x");
    assert_string_equal(model_each_object(net, &notice_kind, &i)->meta.name, "y");
    assert_null(model_each_object(net, &notice_kind, &i));
    put_notice(f, "notice/default/z", "x", "of another name");
    put_text(f, "notice/default/w", "{}");
    assert_told(f, "broken notice/default/z; broken notice/default/w; ");
    put(f, "notice/default/x", NULL);
    put(f, "notice/default/x", NULL);
    assert_told(f, "x from two to nothing; ");
    assert_null(model_find_object(net, &notice_kind, "x"));
    assert_non_null(model_find_object(net, &notice_kind, "y"));
}

/* ---- this hub's own node -------------------------------------------------------------------- */

/* A network that this hub has made, without its private key, is set aside. */
static void test_a_network_without_its_key(void **state)
{
    struct fixture *f = *state;

    f->lost = sample_key(1);
    put_network(f, "hub", 1380);
    load(f);
    assert_told(f, "broken network/default; ");
    assert_null(model_find_network(&f->model, "default"));
    assert_true(model_is_damaged(&f->model, RECORD_NETWORK, "default", ""));
    f->lost = sample_key(1000);
    put_network(f, "hub", 1380);
    assert_told(f, "network added default; ");
    assert_false(model_is_damaged(&f->model, RECORD_NETWORK, "default", ""));
}

/* Another hub has made the network: this one has a key in it once it has a node there. */
static void test_a_network_of_another_hub(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net;
    struct object self = sample_node(1);

    f->lost = sample_key(1);
    put_network(f, "other", 1380);
    load(f);
    assert_told(f, "network added default; ");
    net = model_find_network(&f->model, "default");
    assert_false(net->has_key);
    assert_string_equal(net->maker.name, "other");
    put_node_of(f, 1, 30);
    assert_told(f, "hub added; ");
    assert_true(net->has_key);
    assert_int_equal(net->public.b[0], 30);
    assert_int_equal(net->secret.b[0], 30);
    assert_ptr_equal(net->own, model_find_node(net, "hub"));
    assert_true(ip_addr_equal(&net->address4, &self.node.address4));
    assert_true(ip_addr_equal(&net->address6, &self.node.address6));
    put(f, "node/default/hub", NULL);
    assert_told(f, "hub removed; ");
    assert_null(net->own);
    object_deinit(&self);
}

/* A member of this hub's name is no hub, or has a key that is not this hub's. */
static void test_somebody_of_this_name(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net;
    static const struct token_hash token = {.b = {4}};
    struct object o = sample_node(2);

    (void)snprintf(o.node.meta.name, sizeof(o.node.meta.name), "hub");
    put_network(f, "hub", 1380);
    load(f);
    net = model_find_network(&f->model, "default");
    assert_true(net->has_key);
    put(f, "node/default/hub", record_node_encode(&o.node, &token));
    assert_told(f, "network added default; hub added; ");
    assert_false(net->has_key);
    assert_null(net->own);
    assert_int_equal(net->key_failure.code, -EEXIST);
    assert_int_equal(net->secret.b[0], 0);
    put(f, "node/default/hub", NULL);
    f->lost = sample_key(1);
    put_node(f, 1);
    assert_false(net->has_key);
    assert_null(net->own);
    assert_int_equal(net->key_failure.code, -ENOENT);
    object_deinit(&o);
}

/* ---- what cannot be understood -------------------------------------------------------------- */

/* @text under @key is set aside, told once, and forgotten with the key. */
static void assert_broken(struct fixture *f, const char *key, const char *text)
{
    char expected[2 * RECORD_KEY_MAX];

    (void)snprintf(expected, sizeof(expected), "broken %s; ", key);
    put_text(f, key, text);
    assert_told(f, expected);
    assert_non_null(damaged_find(&f->model.damaged, key));
    put_text(f, key, text);
    assert_told(f, "");
    put(f, key, NULL);
    assert_told(f, "");
    assert_null(damaged_find(&f->model.damaged, key));
}

static void test_broken_records(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net = load_sample(f);

    assert_broken(f, "node/default/n9", "{");
    assert_broken(f, "node/default/n9", "{}");
    assert_broken(f, "network/new", "{}");
    assert_broken(f, "edge/default/n8-n9", "{}");
    assert_broken(f, "ipam/default", "{}");
    /* Its network is not there: it is read as far as that it is JSON. */
    assert_broken(f, "node/other/n9", "{");
    put_text(f, "node/other/n9", "{}");
    assert_told(f, "");
    /* A key that begins as one of ours, and ends otherwise. */
    assert_broken(f, "node/default", "{}");
    assert_broken(f, "node/", "{}");
    assert_broken(f, "ipam/default/more", "{}");
    /* A sum that is not of this text. */
    assert_broken(f, "node/other/n9", "{\"a\":1,\"sum\":\"0f1e2d3c4b5a6978\"}");
    assert_int_equal(net->nodes.n, 3);
}

/* Whose addresses or key are somebody else's, or are none of a node. */
static void test_broken_nodes(void **state)
{
    static const struct token_hash token = {.b = {4}};
    struct fixture *f = *state;
    const struct model_network *net = load_sample(f);

    for (unsigned i = 0; i < 5; i++) {
        struct object o = sample_node(9);
        struct object other = sample_node(3);
        const char *name = "n9";

        if (i == 0)
            o.node.key = other.node.key;
        if (i == 1) {
            o.node.address4 = other.node.address4;
            o.node.address6 = other.node.address6;
        }
        if (i == 2)
            o.node.address6.b[15]++;
        if (i == 3)
            o.node.address4.b[13]++;
        if (i == 4)
            name = "n10";
        {
            char key[RECORD_KEY_MAX];
            char *text = record_node_encode(&o.node, &token);

            assert_broken(f, record_key(key, RECORD_NODE, "default", name), text);
            free(text);
        }
        object_deinit(&o);
        object_deinit(&other);
    }
    assert_int_equal(net->nodes.n, 3);
    /* Itself it may be. */
    put_node(f, 3);
    assert_told(f, "n3 changed from key 3 to 3; ");
}

/* What was said about an edge is not known: so the two do not talk. */
static void test_broken_edges(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net = load_sample(f);

    put_text(f, "edge/default/n2--n3", "{}");
    assert_told(f, "n2--n3 from auto to off between n2 and n3; broken edge/default/n2--n3; ");
    assert_false(model_may_talk(model_find_node(net, "n2"), model_find_node(net, "n3")));
    assert_true(
        model_find_edge(net, "n2", "n3")->spec.meta.resource_version == store_revision(f->s));
    put_edge(f, 2, 3, EDGE_PATH_AUTO);
    assert_told(f, "n2--n3 from off to auto between n2 and n3; ");
    /* Not with a hub, which is everybody's peer; nor where the name is no edge's. */
    put_text(f, "edge/default/hub--n2", "{}");
    put_text(f, "edge/default/n3--hub", "{}");
    put_text(f, "edge/default/n3--n2", "{}");
    put_text(f, "edge/default/n2--N3", "{}");
    put_text(f, "edge/default/n2", "{}");
    assert_told(f, "broken edge/default/hub--n2; broken edge/default/n3--hub; "
                   "broken edge/default/n3--n2; broken edge/default/n2--N3; "
                   "broken edge/default/n2; ");
    assert_int_equal(net->edges.n, 1);
}

static void test_broken_cursors_and_tokens(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net = load_sample(f);
    char key[RECORD_KEY_MAX];

    put(f, "ipam/default", record_ipam_encode(9, 12));
    assert_false(net->ipam.forgot);
    put(f, "ipam/default", record_ipam_encode(8, 11));
    assert_int_equal(net->ipam.next, 8);
    /* The highest one is never lower than it was. */
    assert_int_equal(net->ipam.high, 12);
    put_text(f, "ipam/default", "[]");
    assert_true(net->ipam.forgot);
    assert_true(net->ipam_revision == store_revision(f->s));
    put(f, "ipam/default", record_ipam_encode(9, 13));
    assert_false(net->ipam.forgot);
    assert_int_equal(net->ipam.high, 13);
    put_token(f, 3, 1);
    put_text(f, token_hash_key(key, &token_hash), "{}");
    assert_null(model_find_token(&f->model, &token_hash));
    assert_int_equal(net->n_tokens, 0);
}

/* While a node's record is damaged, any address may be its. */
static void test_wary(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net = load_sample(f);

    put(f, "ipam/default", record_ipam_encode(4, 12));
    assert_false(model_is_wary(net));
    assert_int_equal(model_next_number(net), 4);
    put_text(f, "node/default/n9", "{}");
    assert_true(model_is_wary(net));
    assert_true(model_is_damaged(&f->model, RECORD_NODE, "default", "n9"));
    assert_false(model_is_damaged(&f->model, RECORD_NODE, "default", "n8"));
    assert_int_equal(model_next_number(net), 13);
    put(f, "node/default/n9", NULL);
    assert_false(model_is_wary(net));
    /* That of another network has nothing to do with it. */
    put_text(f, "node/other/n9", "{");
    assert_false(model_is_wary(net));
}

/* ---- reports -------------------------------------------------------------------------------- */

static void test_reports_of_other_hubs(void **state)
{
    static char fabric[] = "{\"kind\":\"efa\"}";
    struct fixture *f = *state;
    struct model_node *n2 = model_find_node(load_sample(f), "n2");

    n2->reported->only_enrolled_at = 5;
    put_report(f, 9, 1000, "box");
    assert_told(f, "n2 is box; ");
    assert_int_equal(n2->reported->reported_at, 1000);
    assert_int_equal(n2->reported->stored_at, 1000);
    assert_int_equal(n2->reported->only_enrolled_at, 0);
    /* Others see nothing new in this one. */
    n2->reported->said[0].run = 3;
    put_report(f, 9, 1010, "box");
    assert_told(f, "");
    assert_int_equal(n2->reported->reported_at, 1010);
    assert_int_equal(n2->reported->said[0].run, 0);
    /* And in this one its fabric, by which they find who shares it. */
    f->fabric = fabric;
    put_report(f, 9, 1010, "box");
    assert_told(f, "n2 is box; ");
    /* What is here is newer than what is stored. */
    n2->reported->is_unsaved = true;
    put_report(f, 9, 1020, "other");
    assert_told(f, "");
    assert_int_equal(n2->reported->reported_at, 1010);
    assert_int_equal(n2->reported->stored_at, 1020);
    n2->reported->is_unsaved = false;
    put(f, "report/default/n2", NULL);
    put_text(f, "report/default/n9", "{}");
    assert_told(f, "");
}

/* What this run has written it knows, but after a start it does not. */
static void test_reports_of_this_hub(void **state)
{
    struct fixture *f = *state;
    struct model_node *n2 = model_find_node(load_sample(f), "n2");

    n2->reported->only_enrolled_at = 5;
    put_report(f, BOOT, 1000, "box");
    assert_told(f, "n2 is box; ");
    assert_int_equal(n2->reported->only_enrolled_at, 5);
    put_report(f, BOOT, 1010, "other");
    assert_told(f, "");
    assert_int_equal(n2->reported->reported_at, 1000);
    assert_int_equal(n2->reported->stored_at, 1010);
    assert_true(n2->reported->stored_revision == store_revision(f->model.store));
    /* An older hub does not say who it is. */
    f->model.boot = 0;
    put_report(f, 0, 1020, "other");
    assert_told(f, "n2 is other; ");
}

/* It reports to both hubs: here for a minute longer than there. */
static void test_reports_to_two_hubs(void **state)
{
    struct fixture *f = *state;
    struct model_node *n2 = model_find_node(load_sample(f), "n2");

    put_report(f, 9, 1000, "box");
    n2->reported->heard_here_at = 1000;
    str_deinit(&f->reported);
    put_report(f, 9, 1059, "other");
    assert_told(f, "");
    assert_int_equal(n2->reported->heard.last_seen_at, 1059);
    put_report(f, 9, 1058, "other");
    assert_int_equal(n2->reported->heard.last_seen_at, 1059);
    assert_int_equal(n2->reported->reported_at, 1000);
    put_report(f, 9, 1060, "other");
    assert_told(f, "n2 is other; ");
}

/* ---- what ends by itself -------------------------------------------------------------------- */

static void put_leased_node(struct fixture *f)
{
    struct object o = sample_node(2);

    put_for(f, "node/default/n2", record_node_encode(&o.node, &token_hash), 60);
    object_deinit(&o);
}

static void test_expiry(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net = load_sample(f);
    struct err e = ERR_NULL;

    put_leased_node(f);
    put_for(f, "unheard-of/key", strdup("x"), 60);
    assert_told(f, "n2 changed from key 2 to 2; ");
    assert_int_equal(model_expire(&f->model, 59 * S, &e), 0);
    store_wait(f->s);
    assert_told(f, "");
    assert_int_equal(model_expire(&f->model, 61 * S, &e), 0);
    assert_true(f->model.is_expiring);
    assert_true(model_find_node(net, "n2")->is_expired);
    assert_false(model_find_node(net, "n3")->is_expired);
    /* One is enough. */
    assert_int_equal(model_expire(&f->model, 61 * S, &e), 0);
    store_wait(f->s);
    assert_told(f, "n2 removed; ");
    assert_false(f->model.is_expiring);
}

/* Somebody has written it meanwhile: it stays, and is a node like any other again. */
static void test_expiry_that_is_late(void **state)
{
    struct fixture *f = *state;
    const struct model_network *net = load_sample(f);
    struct err e = ERR_NULL;

    put_leased_node(f);
    model_find_node(net, "n2")->spec.meta.resource_version--;
    str_deinit(&f->reported);
    assert_int_equal(model_expire(&f->model, 61 * S, &e), 0);
    assert_true(model_find_node(net, "n2")->is_expired);
    store_wait(f->s);
    assert_told(f, "");
    assert_false(model_find_node(net, "n2")->is_expired);
    assert_false(f->model.is_expiring);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_load, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lookups, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_revisions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_changes_of_a_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_changes_of_a_network, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tokens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_objects, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_network_without_its_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_network_of_another_hub, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_somebody_of_this_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken_nodes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken_edges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken_cursors_and_tokens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wary, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reports_of_other_hubs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reports_of_this_hub, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reports_to_two_hubs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_expiry, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_expiry_that_is_late, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
