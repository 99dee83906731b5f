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
#include "hub/model/ipam.h"
#include "hub/networks/networks.h"
#include "hub/traffic/traffic_book.h"
#include "os/clock.h"
#include "store/store.h"
#include "test/support/captured_log.h"
#include "test/support/sample_hub.h"
#include "test/support/sample_late.h"
#include "test/support/store_now.h"

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
    struct x25519_secret untouched;
    struct err e = ERR_NULL;
    struct sample_hub s;
    char words[512];

    sample_hub_begin(&s);
    assert_int_equal(ask(&s, "POST", "/v1/networks", other), 201);
    assert_true(has_key(&s, "other"));
    net = model_find_network(&s.hub->model, "other");
    assert_int_equal(networks_key(&s.hub->networks, "other", &net->public, &secret, &e), 0);
    assert_memory_equal(&secret, &net->secret, sizeof(secret));
    /* The key of another network is not taken for it. */
    memset(&secret, 0x5a, sizeof(secret));
    untouched = secret;
    assert_int_equal(
        networks_key(&s.hub->networks, "default", &net->public, &secret, &e), -EUCLEAN);
    (void)snprintf(words, sizeof(words),
        "\"%s/keys/default.key\" is not the key of hub \"hub\" in network \"default\" as the "
        "database knows it; it is left as it is: put a copy in its place, or, if that is another "
        "hub, give this one another name (--name)",
        s.dir);
    assert_string_equal(err_text(&e), words);
    assert_int_equal(networks_key(&s.hub->networks, "none", &net->public, &secret, &e), -ENOENT);
    (void)snprintf(words, sizeof(words),
        "\"%s/keys/none.key\", the key of hub \"hub\" in network \"none\", is missing: put a copy "
        "in its place, or, if that is another hub, give this one another name (--name)",
        s.dir);
    assert_string_equal(err_text(&e), words);
    assert_memory_equal(&secret, &untouched, sizeof(secret));
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

/* Or is being made just now. */
static void test_held_key_is_of_one_that_is_made(void **state)
{
    struct networks *n;
    struct sample_hub s;

    sample_hub_begin(&s);
    n = &s.hub->networks;
    assert_int_equal(ask(&s, "POST", "/v1/networks", other), 201);
    networks_hold_keys(n, true);
    assert_int_equal(ask(&s, "DELETE", "/v1/networks/other", NULL), 204);
    (void)snprintf(n->adding, sizeof(n->adding), "other");
    networks_hold_keys(n, false);
    n->adding[0] = '\0';
    assert_true(has_key(&s, "other"));
    assert_null(n->held_keys);
    sample_hub_end(&s);
}

static void on_added(void *ctx, int r, const struct model_network *net, const struct err *e)
{
    *(struct err *)ctx = *e;
    ((struct err *)ctx)->code = r;
}

/* What is there, or just being made, is not made again, and the sentence says which it is. */
static void test_what_cannot_be_added(void **state)
{
    struct network wanted = {.meta.name = "default", .mtu = NETWORK_MTU_DEFAULT};
    struct err outcome = ERR_NULL;
    struct err e = ERR_NULL;
    struct networks *n;
    struct sample_hub s;

    sample_hub_begin(&s);
    n = &s.hub->networks;
    assert_int_equal(networks_add(n, &wanted, on_added, &outcome, &e), NETWORKS_E_EXISTS);
    assert_string_equal(err_text(&e), "there is a network \"default\" on this hub already");
    (void)snprintf(wanted.meta.name, sizeof(wanted.meta.name), "lab");
    (void)snprintf(n->adding, sizeof(n->adding), "third");
    assert_int_equal(networks_add(n, &wanted, on_added, &outcome, &e), -EAGAIN);
    assert_string_equal(err_text(&e), "network \"third\" is being made just now: try again");
    assert_string_equal(n->adding, "third");
    n->adding[0] = '\0';
    assert_null(model_find_network(&s.hub->model, "lab"));
    assert_false(has_key(&s, "lab"));
    sample_hub_end(&s);
}

/* As changes.c does when the data half cannot make the network. */
static void fail_to_bring_up(void *ctx, const struct model_node *node)
{
    (void)err_set(&node->net->served->failure, -EUCLEAN, "the interface is taken");
}

/* Every entry about that network is the actor's. Return: how many there are. */
static unsigned count_acts(struct sample_hub *s, const char *network, const char *actor)
{
    const json_t *entry;
    json_t *page = NULL;
    unsigned n = 0;
    size_t i;

    assert_int_equal(
        sample_hub_ask(s, API_ACCESS_ADMIN, NULL, "GET", "/v1/audit", NULL, &page), 200);
    json_array_foreach(json_object_get(page, "entries"), i, entry) {
        const char *of = json_string_value(json_object_get(entry, "network"));

        if (!of || strcmp(of, network) != 0)
            continue;
        assert_string_equal(json_string_value(json_object_get(entry, "actor")), actor);
        n++;
    }
    json_decref(page);
    return n;
}

/* A network that the hub cannot serve goes again, and both are done in the name of who wanted it.
 */
static void test_a_network_is_taken_back(void **state)
{
    struct network wanted = {.meta.name = "lab", .mtu = NETWORK_MTU_DEFAULT};
    struct model_listener before;
    struct err outcome = ERR_NULL;
    struct err e = ERR_NULL;
    struct sample_hub s;

    sample_hub_begin(&s);
    before = s.hub->model.listener;
    assert_int_equal(ip_prefix_parse(&wanted.cidr4, "10.61.0.0/16", NULL), 0);
    s.hub->model.listener.node_added = fail_to_bring_up;
    audit_act(&s.hub->audit, "admin:ci", &(struct ip_addr){{0}});
    assert_int_equal(networks_add(&s.hub->networks, &wanted, on_added, &outcome, &e), 0);
    audit_act_hub(&s.hub->audit);
    while (s.hub->networks.adding[0])
        (void)uv_run(&s.loop, UV_RUN_ONCE);
    store_wait(s.hub->store);
    s.hub->model.listener = before;
    assert_int_equal(outcome.code, -EUCLEAN);
    assert_string_equal(err_text(&outcome), "the interface is taken");
    assert_null(model_find_network(&s.hub->model, "lab"));
    assert_false(has_key(&s, "lab"));
    assert_string_equal(s.hub->audit.by.actor, "hub");
    assert_true(count_acts(&s, "lab", "admin:ci") >= 2);
    sample_hub_end(&s);
}

static int find_no_key(void *ctx, const char *name, const struct x25519_public *public,
    struct x25519_secret *ret, struct err *e)
{
    return err_set(e, -EUCLEAN, "the key of \"%s\" is gone", name);
}

static void test_a_network_that_is_set_aside_at_once(void **state)
{
    struct network wanted = {.meta.name = "lab", .mtu = NETWORK_MTU_DEFAULT};
    struct err outcome = ERR_NULL;
    struct err e = ERR_NULL;
    struct captured_log log;
    struct sample_hub s;

    sample_hub_begin(&s);
    assert_int_equal(ip_prefix_parse(&wanted.cidr4, "10.61.0.0/16", NULL), 0);
    s.hub->model.listener.network_key = find_no_key;
    log = captured_log_begin();
    assert_int_equal(networks_add(&s.hub->networks, &wanted, on_added, &outcome, &e), 0);
    while (s.hub->networks.adding[0])
        (void)uv_run(&s.loop, UV_RUN_ONCE);
    store_wait(s.hub->store);
    captured_log_end(&log,
        "error: hub: the record \"network/lab\" is set aside and left as it is (see "
        "weft-hub(8)): the key of \"lab\" is gone\n");
    assert_int_equal(outcome.code, -EIO);
    assert_string_equal(err_text(&outcome), "network \"lab\" was stored but cannot be read");
    sample_hub_end(&s);
}

/* ---- networks of other hubs ------------------------------------------------------------------ */

/* @value: taken. */
static void put_key(struct sample_hub *s, const char *key, char *value)
{
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .value = value, .expect = STORE_EXPECT_ANY};
    struct err e = ERR_NULL;

    assert_non_null(value);
    assert_int_equal(store_now_commit(s->hub->store, &op, 1, 1, NULL, NULL, &e), 0);
    free(value);
    store_wait(s->hub->store);
}

static void put(
    struct sample_hub *s, enum record_kind kind, const char *network, const char *name, char *value)
{
    char key[RECORD_KEY_MAX];

    put_key(s, record_key(key, kind, network, name), value);
}

/* This hub's key in the network "lab" is that of its first network. */
static void link_key(const struct sample_hub *s)
{
    char from[128];
    char to[128];

    (void)snprintf(from, sizeof(from), "%s/keys/default.key", s->dir);
    (void)snprintf(to, sizeof(to), "%s/keys/lab.key", s->dir);
    assert_int_equal(link(from, to), 0);
}

/* A hub of the store has made the network "lab", and three nodes are in it. */
static const struct model_network *make_network_of(struct sample_hub *s, const char *hub)
{
    bool is_own = strcmp(hub, s->hub->model.self) == 0;
    struct network_maker maker = {.key = {{3}}};
    struct network spec = model_find_network(&s->hub->model, "default")->spec;

    if (is_own) {
        link_key(s);
        maker.key = sample_hub_network(s)->public;
    }
    (void)snprintf(maker.name, sizeof(maker.name), "%s", hub);
    (void)snprintf(spec.meta.name, sizeof(spec.meta.name), "lab");
    assert_int_equal(ip_prefix_parse(&spec.cidr4, "10.61.0.0/16", NULL), 0);
    assert_int_equal(ip_prefix_parse(&spec.cidr6, "fd61::/64", NULL), 0);
    put(s, RECORD_NETWORK, "lab", "", record_network_encode(&spec, &maker));
    put(s, RECORD_IPAM, "lab", "", record_ipam_encode(5, 4));
    return model_find_network(&s->hub->model, "lab");
}

/* Another hub, that is. */
static const struct model_network *make_far_network(struct sample_hub *s)
{
    return make_network_of(s, "far");
}

/* As the loop does each second, until it has joined or not. */
static void join(struct sample_hub *s)
{
    struct networks *n = &s->hub->networks;

    n->join_at = 0;
    if (networks_join(n, clock_now()))
        while (n->adding[0])
            (void)uv_run(&s->loop, UV_RUN_ONCE);
    store_wait(s->hub->store);
}

static void test_a_network_is_joined(void **state)
{
    const struct model_network *net;
    char address[IP_ADDR_TEXT_MAX];
    struct x25519_secret secret;
    struct err e = ERR_NULL;
    struct sample_hub s;

    sample_hub_begin(&s);
    assert_false(networks_join(&s.hub->networks, clock_now()));
    net = make_far_network(&s);
    assert_null(net->own);
    join(&s);
    assert_non_null(net->own);
    assert_string_equal(net->own->spec.meta.name, s.hub->model.self);
    assert_string_equal(ip_addr_format(&net->own->spec.address4, address), "10.61.0.5");
    assert_int_equal(net->own->spec.hub->api_port, 8443);
    assert_true(net->own->spec.hub->has_tls_pin);
    assert_memory_equal(
        &net->own->spec.hub->tls_pin, s.hub->networks.tls_pin, sizeof(net->own->spec.hub->tls_pin));
    assert_int_equal(net->ipam.next, 6);
    assert_int_equal(net->ipam.high, 5);
    assert_true(has_key(&s, "lab"));
    assert_int_equal(networks_key(&s.hub->networks, "lab", &net->own->spec.key, &secret, &e), 0);
    assert_int_equal(s.hub->networks.join_failure.code, 0);
    /* There is nothing more to be joined. */
    assert_false(networks_join(&s.hub->networks, clock_now()));
    sample_hub_end(&s);
}

static void expect_no_joining(struct sample_hub *s, const char *words)
{
    struct networks *n = &s->hub->networks;
    struct captured_log log = captured_log_begin();
    nsec_t since = clock_now();
    char line[640];

    join(s);
    /* It is said once. */
    join(s);
    (void)snprintf(line, sizeof(line), "error: hub: %s\n", words);
    captured_log_end(&log, line);
    assert_null(model_find_network(&s->hub->model, "lab")->own);
    assert_string_equal(err_text(&n->join_failure), words);
    assert_string_equal(n->adding, "");
    assert_in_range(n->join_at, since + 5 * NSEC_PER_SEC, clock_now() + 5 * NSEC_PER_SEC);
    /* Not before the pause is over. */
    n->join_failure = (struct err)ERR_NULL;
    assert_false(networks_join(n, n->join_at - 1));
    assert_int_equal(n->join_failure.code, 0);
}

static void put_node_with(struct sample_hub *s, const char *name, unsigned number, bool is_hub,
    const struct x25519_public *key)
{
    static const struct token_hash none;
    struct node_hub places = {.n_endpoints = 1, .api_port = 8443};
    const struct model_network *net = model_find_network(&s->hub->model, "lab");
    struct node node = {.key = *key, .hub = is_hub ? &places : NULL};

    assert_int_equal(endpoint_parse(&places.endpoints[0], "203.0.113.9:51820", NULL), 0);
    (void)snprintf(node.meta.name, sizeof(node.meta.name), "%s", name);
    (void)snprintf(node.meta.network, sizeof(node.meta.network), "lab");
    node.address4 = ipam_address(&net->spec.cidr4, number);
    node.address6 = ipam_address(&net->spec.cidr6, number);
    put(s, RECORD_NODE, "lab", name, record_node_encode(&node, &none));
    assert_non_null(model_find_node(net, name));
}

static void put_node(struct sample_hub *s, const char *name, unsigned number, bool is_hub)
{
    const struct x25519_public key = {{9, (uint8_t)number, (uint8_t)(number >> 8)}};

    put_node_with(s, name, number, is_hub, &key);
}

/* Another node has this hub's name; as many hubs as may be are there; the key's file is none. */
static void test_a_network_that_cannot_be_joined(void **state)
{
    char path[128];
    char words[512];
    struct sample_hub s;
    FILE *f;

    sample_hub_begin(&s);
    (void)make_far_network(&s);
    put_node(&s, s.hub->model.self, 20, false);
    expect_no_joining(&s,
        "network \"lab\" has a node \"hub\" already, with another key than this hub has: give this "
        "hub a name of its own (--name), or, if that node is gone, \"weft node rm hub\" on another "
        "hub makes room");
    assert_int_equal(ask(&s, "DELETE", "/v1/networks/lab/nodes/hub", NULL), 204);
    for (unsigned i = 0; i < NETWORKS_HUBS_MAX; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "far-%u", i);
        put_node(&s, name, 30 + i, true);
    }
    expect_no_joining(&s, "network \"lab\" has 16 hubs, and no more fit");
    assert_int_equal(ask(&s, "DELETE", "/v1/networks/lab/nodes/far-0", NULL), 204);
    (void)snprintf(path, sizeof(path), "%s/keys/lab.key", s.dir);
    f = fopen(path, "we");
    assert_non_null(f);
    (void)fputs("no key", f);
    (void)fclose(f);
    (void)snprintf(words, sizeof(words),
        "\"%s\", the key of hub \"hub\" in network \"lab\", is no key: put a copy in its place, or "
        "remove it, and the hub makes another one",
        path);
    expect_no_joining(&s, words);
    assert_int_equal(unlink(path), 0);
    join(&s);
    assert_non_null(model_find_network(&s.hub->model, "lab")->own);
    assert_int_equal(s.hub->networks.join_failure.code, 0);
    assert_string_equal(s.hub->networks.adding, "");
    sample_hub_end(&s);
}

/* The hub had another name when it joined first. */
static void test_a_key_that_another_node_has(void **state)
{
    struct sample_hub s;

    sample_hub_begin(&s);
    (void)make_far_network(&s);
    link_key(&s);
    put_node_with(&s, "former", 30, true, &sample_hub_network(&s)->public);
    expect_no_joining(&s, "this hub's key in network \"lab\" is that of node \"former\": start it "
                          "with --name former, "
                          "as before");
    sample_hub_end(&s);
}

static void expect_number(struct sample_hub *s, const char *address, unsigned next, unsigned high)
{
    const struct model_network *net = model_find_network(&s->hub->model, "lab");
    char text[IP_ADDR_TEXT_MAX];

    assert_non_null(net->own);
    assert_string_equal(ip_addr_format(&net->own->spec.address4, text), address);
    assert_int_equal(net->ipam.next, next);
    assert_int_equal(net->ipam.high, high);
}

/* Who has made the network has its first address, unless somebody else has it by now. */
static void test_the_maker_comes_back(void **state)
{
    for (unsigned is_taken = 0; is_taken < 2; is_taken++) {
        struct sample_hub s;

        sample_hub_begin(&s);
        (void)make_network_of(&s, s.hub->model.self);
        if (is_taken)
            put_node(&s, "first", IPAM_HUB, false);
        join(&s);
        if (is_taken)
            expect_number(&s, "10.61.0.5", 6, 5);
        else
            expect_number(&s, "10.61.0.1", 5, 4);
        sample_hub_end(&s);
    }
}

/* Before anybody is served there is no pause, and the key is there at once. */
static void test_joining_at_the_start(void **state)
{
    struct networks *n;
    struct sample_hub s;

    sample_hub_begin(&s);
    n = &s.hub->networks;
    (void)make_far_network(&s);
    n->is_serving = false;
    n->join_at = clock_now() + 60 * NSEC_PER_SEC;
    (void)networks_join(n, clock_now());
    assert_true(has_key(&s, "lab"));
    store_wait(s.hub->store);
    expect_number(&s, "10.61.0.5", 6, 5);
    n->is_serving = true;
    sample_hub_end(&s);
}

/* What the store has lost is said, until it is tried again and there. */
static void test_a_joining_that_is_lost(void **state)
{
    unsigned n_failed = 0;

    for (uint64_t seed = 1; seed < 8; seed++) {
        struct sample_hub s = {.store = sample_late_open(seed, 0), .may_fail = true};
        const struct model_network *net;
        struct networks *n;

        sample_hub_make_dir(&s, false);
        sample_hub_open(&s);
        n = &s.hub->networks;
        net = make_far_network(&s);
        sample_late_set_loss(s.store, 1);
        join(&s);
        sample_late_set_loss(s.store, 0);
        n_failed += n->join_failure.code == -EIO;
        assert_string_equal(n->adding, "");
        join(&s);
        assert_non_null(net->own);
        assert_int_equal(n->join_failure.code, 0);
        sample_hub_end(&s);
    }
    assert_true(n_failed > 0);
}

/* One after the other, and not one that is going. */
static void test_which_network_is_joined(void **state)
{
    struct model_network *net;
    struct networks *n;
    struct sample_hub s;

    sample_hub_begin(&s);
    n = &s.hub->networks;
    net = (struct model_network *)make_far_network(&s);
    net->leaving = MODEL_NETWORK_REMOVED;
    assert_false(networks_join(n, clock_now()));
    net->leaving = NULL;
    net->is_retired = true;
    assert_false(networks_join(n, clock_now()));
    net->is_retired = false;
    (void)snprintf(n->adding, sizeof(n->adding), "third");
    assert_false(networks_join(n, clock_now()));
    assert_string_equal(n->adding, "third");
    n->adding[0] = '\0';
    assert_true(networks_join(n, clock_now()));
    assert_string_equal(n->adding, "lab");
    join(&s);
    while (n->adding[0])
        (void)uv_run(&s.loop, UV_RUN_ONCE);
    assert_non_null(net->own);
    assert_false(networks_join(n, clock_now()));
    sample_hub_end(&s);
}

/* ---- what goes with a network -----------------------------------------------------------------
 */

static int count_one(void *ctx, const struct store_item *item)
{
    *(unsigned *)ctx += strstr(item->key, "lab") != NULL;
    return 0;
}

static unsigned count_records(struct sample_hub *s, const char *prefix)
{
    struct err e = ERR_NULL;
    unsigned n = 0;

    assert_int_equal(store_now_list(s->hub->store, prefix, count_one, &n, NULL, &e), 0);
    return n;
}

static void on_removed(void *ctx, int r, const struct err *e)
{
    *(int *)ctx = r;
}

/* More records than one commit removes; of the network nothing is left, and of others all. */
static void test_all_of_a_network_goes(void **state)
{
    static const char edge[] = "/v1/networks/lab/objects/MeshEdge/n1--n2";
    const struct model_network *net;
    struct err e = ERR_NULL;
    struct sample_hub s;
    int r = 1;

    sample_hub_begin(&s);
    sample_hub_add_node(&s, "lab-of-another");
    net = make_far_network(&s);
    join(&s);
    for (unsigned i = 1; i <= 1100; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "n%u", i);
        put_node(&s, name, 100 + i, false);
    }
    assert_int_equal(ask(&s, "PUT", edge,
                         "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"n1--n2\"},\"spec\":{"
                         "\"nodes\":[\"n1\",\"n2\"],\"path\":\"off\"}}"),
        200);
    put(&s, RECORD_REPORT, "lab", "n1", strdup("{}"));
    put_key(&s, TRAFFIC_KEY_PREFIX "lab/2026-11-23/hub", strdup("{}"));
    put_key(&s, TRAFFIC_KEY_PREFIX "lab-of-another/2026-11-23/hub", strdup("{}"));
    /* Who asks for it is named for all of it. */
    audit_act(&s.hub->audit, "admin:ci", &(struct ip_addr){{0}});
    assert_int_equal(networks_remove(&s.hub->networks, net, on_removed, &r, &e), 0);
    assert_int_equal(networks_remove(&s.hub->networks, net, on_removed, &r, &e), -EAGAIN);
    assert_string_equal(err_text(&e), "network \"lab\" is being removed already");
    assert_string_equal(s.hub->audit.by.actor, "admin:ci");
    audit_act_hub(&s.hub->audit);
    store_wait(s.hub->store);
    assert_int_equal(r, 0);
    assert_null(model_find_network(&s.hub->model, "lab"));
    assert_int_equal(count_records(&s, "node/lab/"), 0);
    assert_int_equal(count_records(&s, "network/"), 0);
    assert_int_equal(count_records(&s, "ipam/"), 0);
    assert_int_equal(count_records(&s, "edge/"), 0);
    assert_int_equal(count_records(&s, "report/lab"), 0);
    assert_int_equal(count_records(&s, TRAFFIC_KEY_PREFIX "lab/"), 0);
    assert_int_equal(count_records(&s, TRAFFIC_KEY_PREFIX "lab-of-another/"), 1);
    assert_string_equal(s.hub->audit.by.actor, "hub");
    assert_non_null(sample_hub_node(&s, "lab-of-another"));
    sample_hub_end(&s);
}

/* ---- a store that loses -----------------------------------------------------------------------
 */

/* What the store has not taken, or not given, is not done, and may be tried again. */
static void test_a_store_that_loses(void **state)
{
    unsigned n_refused = 0;

    for (uint64_t seed = 1; seed < 12; seed++) {
        struct sample_hub s = {.store = sample_late_open(seed, 0), .may_fail = true};
        const struct model_network *net;

        sample_hub_make_dir(&s, false);
        sample_hub_open(&s);
        assert_int_equal(ask(&s, "POST", "/v1/networks", other), 201);
        net = model_find_network(&s.hub->model, "other");
        sample_late_set_loss(s.store, 1);
        assert_true(ask(&s, "DELETE", "/v1/networks/other", NULL) >= 500);
        if (model_find_network(&s.hub->model, "other") == net) {
            assert_null(net->leaving);
            n_refused++;
        }
        assert_true(ask(&s, "POST", "/v1/networks",
                        "{\"name\":\"lab\",\"cidr4\":\"10.60.0.0/16\"}") >= 500);
        assert_string_equal(s.hub->networks.adding, "");
        sample_late_set_loss(s.store, 0);
        store_wait(s.hub->store);
        if (model_find_network(&s.hub->model, "other"))
            assert_int_equal(ask(&s, "DELETE", "/v1/networks/other", NULL), 204);
        assert_false(has_key(&s, "other"));
        sample_hub_end(&s);
    }
    assert_true(n_refused > 0);
}

/* ---- what is there, and what is made up -------------------------------------------------------
 */

/* A network whose record cannot be understood is there all the same. */
static void test_a_damaged_network_is_there(void **state)
{
    const struct network wanted = {.meta.name = "other", .mtu = NETWORK_MTU_DEFAULT};
    struct err outcome = ERR_NULL;
    struct err e = ERR_NULL;
    struct sample_hub s;

    sample_hub_begin(&s);
    put(&s, RECORD_NETWORK, "other", "", strdup("{\"x\":"));
    assert_int_equal(ask(&s, "POST", "/v1/networks", other), 409);
    assert_int_equal(networks_add(&s.hub->networks, &wanted, on_added, &outcome, &e), 1);
    assert_string_equal(err_text(&e),
        "there is a network \"other\" on this hub already, whose record is damaged and set aside");
    assert_false(has_key(&s, "other"));
    sample_hub_end(&s);
}

/* Blocks that nobody gives are made up: IPv4's is always the same one, IPv6's never. */
static void test_blocks(void **state)
{
    char block[IP_PREFIX_TEXT_MAX];
    const struct model_network *a;
    struct ip_prefix first;
    struct sample_hub s;

    sample_hub_begin(&s);
    a = sample_hub_network(&s);
    assert_string_equal(ip_prefix_format(&a->spec.cidr4, block), "10.77.0.0/16");
    assert_int_equal(a->spec.cidr6.len, 64);
    assert_int_equal(a->spec.cidr6.addr.b[0], 0xfd);
    assert_int_equal(a->ipam.next, IPAM_HUB + 1);
    assert_int_equal(ask(&s, "POST", "/v1/networks",
                         "{\"name\":\"lab\",\"cidr4\":\"10.60.0.0/16\",\"cidr6\":"
                         "\"fd60::/64\",\"mtu\":1300,\"topology\":\"hub\"}"),
        201);
    assert_int_equal(
        ask(&s, "POST", "/v1/networks", "{\"name\":\"third\",\"cidr4\":\"10.62.0.0/16\"}"), 201);
    first = a->spec.cidr6;
    a = model_find_network(&s.hub->model, "third");
    assert_int_equal(a->spec.cidr6.len, 64);
    assert_memory_not_equal(a->spec.cidr6.addr.b, first.addr.b, 8);
    a = model_find_network(&s.hub->model, "lab");
    assert_int_equal(a->spec.mtu, 1300);
    assert_int_equal(a->spec.topology, TOPOLOGY_HUB);
    assert_int_equal(a->spec.cidr6.addr.b[1], 0x60);
    assert_string_equal(a->maker.name, "hub");
    assert_true(x25519_public_equal(&a->maker.key, &a->public));
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
        cmocka_unit_test(test_held_key_is_of_one_that_is_made),
        cmocka_unit_test(test_what_cannot_be_added),
        cmocka_unit_test(test_a_network_is_taken_back),
        cmocka_unit_test(test_a_network_that_is_set_aside_at_once),
        cmocka_unit_test(test_a_network_is_joined),
        cmocka_unit_test(test_a_network_that_cannot_be_joined),
        cmocka_unit_test(test_a_key_that_another_node_has),
        cmocka_unit_test(test_the_maker_comes_back),
        cmocka_unit_test(test_joining_at_the_start),
        cmocka_unit_test(test_a_joining_that_is_lost),
        cmocka_unit_test(test_which_network_is_joined),
        cmocka_unit_test(test_all_of_a_network_goes),
        cmocka_unit_test(test_a_store_that_loses),
        cmocka_unit_test(test_a_damaged_network_is_there),
        cmocka_unit_test(test_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
