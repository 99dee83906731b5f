/*
 * test-overlay.c - the members of the hub's networks, as devices and relay are told of them.
 *
 * On the model of a memory store, an engine that keeps what it is told, a real router, and a clock
 * of the test's own. No interface is made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "filter/relay.h"
#include "hub/overlay/overlay_internal.h"
#include "os/clock.h"
#include "path/pmtu.h"
#include "relay/router.h"
#include "shared/device_state.h"
#include "test/support/router_sample.h"
#include "test/support/sample_hub.h"
#include "test/support/sample_peers.h"
#include "wire/path.h"

/* ---- when the hub speaks first -------------------------------------------------------------- */

static void test_recontact(void **state)
{
    struct recontact_node node = {.ends_at = 0};
    struct list nodes;

    list_init(&nodes);
    list_init(&node.link);
    assert_false(recontact_begin(&nodes, &node, 100 * NSEC_PER_SEC));
    assert_true(list_is_empty(&nodes));
    assert_int_equal(endpoint_parse(&node.at, "192.0.2.7:51820", NULL), 0);
    assert_true(recontact_begin(&nodes, &node, 100 * NSEC_PER_SEC));
    assert_ptr_equal(nodes.next, &node.link);
    assert_false(recontact_is_over(&node, false, 120 * NSEC_PER_SEC - 1));
    assert_true(recontact_is_over(&node, false, 120 * NSEC_PER_SEC));
    assert_true(recontact_is_over(&node, true, 101 * NSEC_PER_SEC));
    /* Again, it is there once, and its time begins anew. */
    assert_true(recontact_begin(&nodes, &node, 110 * NSEC_PER_SEC));
    assert_ptr_equal(node.link.next, &nodes);
    assert_false(recontact_is_over(&node, false, 120 * NSEC_PER_SEC));
}

/* ---- a hub whose data half is ours ---------------------------------------------------------- */

struct fixture {
    struct sample_hub hub;
    struct sample_peers engine;
    struct overlay o;
    struct overlay_network net;
    struct device device; /* no more than a name */
    nsec_t now;
};

static struct model_node *member(struct fixture *f, const char *name)
{
    return sample_hub_node(&f->hub, name);
}

/* As an administrator adds a stock WireGuard. */
static struct model_node *add_member_of(
    struct fixture *f, const char *name, const struct x25519_public *key)
{
    char text[BASE64_SIZE(32)];
    char body[256];

    base64_encode(key->b, sizeof(key->b), text);
    (void)snprintf(body, sizeof(body), "{\"name\":\"%s\",\"publicKey\":\"%s\"}", name, text);
    assert_int_equal(sample_hub_ask(&f->hub, API_ACCESS_ADMIN, NULL, "POST",
                         "/v1/networks/default/nodes", body, NULL),
        201);
    return member(f, name);
}

/* The same, with a key that starts with @key. */
static struct model_node *add_member(struct fixture *f, const char *name, uint8_t key)
{
    return add_member_of(f, name, &(struct x25519_public){.b = {key, 7}});
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct rng rng = rng_kernel();

    sample_hub_make_dir(&f->hub, false);
    sample_hub_open(&f->hub);
    sample_peers_init(&f->engine);
    f->now = 1000 * NSEC_PER_SEC;
    list_init(&f->o.networks);
    list_init(&f->o.recontacts);
    (void)pthread_mutex_init(&f->o.lock, NULL);
    assert_int_equal(relay_new(&f->o.relay, 1, &rng), 0);
    /* Of another family than routes have: there are none. */
    assert_int_equal(netlink_open(&f->o.nl, NETLINK_GENERIC), 0);
    f->net.device = &f->device;
    f->net.overlay = &f->o;
    f->net.model = sample_hub_network(&f->hub);
    f->net.engine = &f->engine.engine;
    htab_init(&f->net.by_key, 5);
    list_add_tail(&f->o.networks, &f->net.siblings);
    assert_int_equal(
        router_network_add(&f->net.router, relay_router(f->o.relay), &f->net.model->public), 0);
    f->net.model->served->overlay = &f->net;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < f->net.model->nodes.n; i++)
        overlay_remove_node(model_node_at(f->net.model, i));
    /* Nothing is kept of who is not there any more. */
    assert_int_equal(f->net.by_key.n, 0);
    assert_int_equal(f->o.by_remote.n, 0);
    assert_true(list_is_empty(&f->o.recontacts));
    f->net.model->served->overlay = NULL;
    addresses_close(&f->o.addresses);
    router_network_remove(relay_router(f->o.relay), f->net.router);
    f->o.relay = relay_free(f->o.relay);
    htab_deinit(&f->net.by_key);
    htab_deinit(&f->o.by_remote);
    netlink_close(&f->o.nl);
    (void)pthread_mutex_destroy(&f->o.lock);
    sample_hub_close(&f->hub);
    sample_hub_remove_dir(&f->hub);
    free(f);
    return 0;
}

/* The last change that the engine was told; there was one since the last call. */
static const struct sample_peers_change *last_change(struct fixture *f)
{
    assert_int_not_equal(f->engine.n_changes, 0);
    return &f->engine.changes[--f->engine.n_changes];
}

/* ---- peers ---------------------------------------------------------------------------------- */

/* A member's peer has its two addresses and nothing else, and the hub waits for it. */
static void test_a_member_is_a_peer(void **state)
{
    struct fixture *f = *state;
    struct model_node *node = add_member(f, "n1", 1);
    const struct sample_peers_change *change;
    struct node before;

    overlay_add_node(&f->o, node, f->now);
    change = last_change(f);
    assert_int_equal(change->op, DIFF_OP_ADD);
    assert_memory_equal(&change->key, &node->spec.key, sizeof(change->key));
    assert_int_equal(change->n_allowed, 2);
    assert_true(ip_addr_equal(&change->allowed[0].addr, &node->spec.address4) ||
                ip_addr_equal(&change->allowed[1].addr, &node->spec.address4));
    assert_true(ip_addr_equal(&change->allowed[0].addr, &node->spec.address6) ||
                ip_addr_equal(&change->allowed[1].addr, &node->spec.address6));
    assert_true(change->set_allowed && change->set_mtu);
    assert_false(change->set_endpoint);
    assert_false(change->set_keepalive);
    /* A node that has changed otherwise is the same peer. */
    before = node->spec;
    overlay_change_node(node, &before);
    change = last_change(f);
    assert_int_equal(f->engine.n_changes, 0);
    assert_int_equal(change->op, DIFF_OP_UPDATE);
    assert_memory_equal(&change->key, &node->spec.key, sizeof(change->key));
    assert_int_equal(change->n_allowed, 2);
    assert_false(change->set_endpoint || change->set_keepalive);
    /* Another key is another peer. */
    before = node->spec;
    before.key.b[0] ^= 1;
    node->served->overlay->keys[0].key = before.key;
    overlay_change_node(node, &before);
    assert_int_equal(f->engine.n_changes, 2);
    assert_int_equal(last_change(f)->op, DIFF_OP_ADD);
    change = last_change(f);
    assert_int_equal(change->op, DIFF_OP_REMOVE);
    assert_memory_equal(&change->key, &before.key, sizeof(change->key));
    overlay_remove_node(node);
    change = last_change(f);
    assert_int_equal(change->op, DIFF_OP_REMOVE);
    assert_memory_equal(&change->key, &node->spec.key, sizeof(change->key));
    assert_null(node->served->overlay);
    /* Of what is not there any more nothing is changed, and nothing is known. */
    overlay_remove_node(node);
    overlay_cut_node(node);
    overlay_change_node(node, &before);
    overlay_node_is_at(node, &(struct endpoint){.port = 1}, f->now);
    overlay_change_edge(node, node);
    assert_int_equal(f->engine.n_changes, 0);
}

/* With another key everything that was known of the node is of another one. */
static void test_another_key(void **state)
{
    struct fixture *f = *state;
    struct model_node *node = add_member(f, "n1", 1);
    struct udp_path path = {.ifindex = 3};
    struct overlay_facts facts;
    struct overlay_node *over;
    struct node before;

    overlay_add_node(&f->o, node, f->now);
    over = node->served->overlay;
    path.remote = sample_endpoint(1);
    overlay__note_path(&f->net, &node->spec.key, &path, f->now);
    over->probes.mtu = 1400;
    over->probes.sequence = 9;
    over->probes.keys[0] = calloc(1, sizeof(*over->probes.keys[0]));
    before = node->spec;
    node->spec.key.b[0] ^= 1;
    f->engine.n_changes = 0;
    overlay_change_node(node, &before);
    assert_int_equal(f->engine.n_changes, 2);
    assert_int_equal(last_change(f)->op, DIFF_OP_ADD);
    assert_int_equal(last_change(f)->op, DIFF_OP_REMOVE);
    assert_memory_equal(&over->keys[0].key, &node->spec.key, X25519_SIZE);
    assert_true(overlay_read_facts(node, f->now, &facts));
    assert_int_equal(facts.handshake_at, 0);
    assert_true(endpoint_is_none(&facts.endpoint));
    assert_int_equal(f->o.by_remote.n, 0);
    assert_int_equal(over->probes.mtu, 0);
    assert_int_equal(over->probes.sequence, 0);
    assert_null(over->probes.keys[0]);
    /* It is heard by its new key alone. */
    overlay__note_path(&f->net, &before.key, &path, f->now);
    assert_int_equal(f->o.by_remote.n, 0);
    overlay__note_path(&f->net, &node->spec.key, &path, f->now);
    assert_int_equal(f->o.by_remote.n, 1);
    assert_int_equal(over->handshake_at, f->now);
    assert_true(endpoint_equal(&over->path.remote, &path.remote));
    assert_int_equal(over->path.ifindex, 3);
}

/* A node that was at an address is spoken to there, until it is heard or twenty seconds are over.
 */
static void test_a_hub_that_starts_again(void **state)
{
    struct fixture *f = *state;
    struct model_node *nodes[2] = {add_member(f, "n1", 1), add_member(f, "n2", 2)};
    const struct sample_peers_change *change;
    struct udp_path path = {.ifindex = 0};
    struct endpoint at;
    json_t *all = json_object();
    json_t *net = json_object();

    assert_int_equal(endpoint_parse(&at, "192.0.2.7:4000", NULL), 0);
    for (unsigned i = 0; i < 2; i++)
        addresses_add(net, &nodes[i]->spec.key, &at);
    json_object_set_new(all, "default", net);
    addresses_open(&f->o.addresses, f->hub.dir);
    addresses_write(&f->o.addresses, all, f->now);
    addresses_close(&f->o.addresses);
    addresses_open(&f->o.addresses, f->hub.dir);
    for (unsigned i = 0; i < 2; i++) {
        overlay_add_node(&f->o, nodes[i], f->now);
        change = last_change(f);
        assert_int_equal(change->op, DIFF_OP_ADD);
        assert_true(change->set_endpoint && endpoint_equal(&change->endpoint, &at));
        assert_true(change->set_keepalive);
        assert_int_equal(change->keepalive, RECONTACT_KEEPALIVE_S);
    }
    overlay__tick_nodes(&f->o, f->now + NSEC_PER_SEC);
    assert_int_equal(f->engine.n_changes, 0);
    path.remote = at;
    overlay__note_path(&f->net, &nodes[0]->spec.key, &path, f->now + NSEC_PER_SEC);
    overlay__tick_nodes(&f->o, f->now + 2 * NSEC_PER_SEC);
    change = last_change(f);
    assert_memory_equal(&change->key, &nodes[0]->spec.key, sizeof(change->key));
    assert_true(change->set_keepalive);
    assert_int_equal(change->keepalive, 0);
    assert_false(change->set_endpoint);
    assert_int_equal(f->engine.n_changes, 0);
    overlay__tick_nodes(&f->o, f->now + RECONTACT_FOR);
    change = last_change(f);
    assert_memory_equal(&change->key, &nodes[1]->spec.key, sizeof(change->key));
    assert_int_equal(change->keepalive, 0);
    /* A stream of one that was heard changes nothing; of another it begins anew. */
    overlay_node_is_at(nodes[0], &at, f->now + RECONTACT_FOR);
    assert_int_equal(f->engine.n_changes, 0);
    overlay_node_is_at(nodes[1], &at, f->now + RECONTACT_FOR);
    change = last_change(f);
    assert_int_equal(change->op, DIFF_OP_UPDATE);
    assert_memory_equal(&change->key, &nodes[1]->spec.key, sizeof(change->key));
    assert_true(change->set_endpoint && endpoint_equal(&change->endpoint, &at));
    assert_int_equal(change->keepalive, RECONTACT_KEEPALIVE_S);
    assert_int_equal(f->engine.n_changes, 0);
    /* A node without a session whose place is not said has nothing to begin at. */
    overlay_node_is_at(nodes[1], &(struct endpoint){.port = 0}, f->now + RECONTACT_FOR);
    change = last_change(f);
    assert_false(change->set_endpoint || change->set_keepalive);
    /* One that goes while it is spoken to is not spoken to later. */
    overlay_remove_node(nodes[1]);
    f->engine.n_changes = 0;
    overlay__tick_nodes(&f->o, f->now + 3 * RECONTACT_FOR);
    assert_int_equal(f->engine.n_changes, 0);
}

/* ---- facts ---------------------------------------------------------------------------------- */

static void test_facts(void **state)
{
    struct fixture *f = *state;
    struct model_node *node = add_member(f, "n1", 1);
    struct wg_peer peer = {.key = node->spec.key, .facts = {.rx_bytes = 10, .tx_bytes = 20}};
    struct udp_path path = {.ifindex = 0};
    struct overlay_facts facts;

    assert_false(overlay_read_facts(node, f->now, &facts));
    overlay_add_node(&f->o, node, f->now);
    f->engine.peer = &peer;
    assert_true(overlay_read_facts(node, f->now, &facts));
    assert_int_equal(facts.handshake_at, 0);
    assert_true(endpoint_is_none(&facts.endpoint));
    assert_int_equal(facts.rx_bytes, 10);
    assert_int_equal(facts.tx_bytes, 20);
    /* The engine is asked every two seconds; what a handshake tells is known at once. */
    peer.facts.rx_bytes = 11;
    assert_int_equal(endpoint_parse(&path.remote, "192.0.2.8:4000", NULL), 0);
    overlay__note_path(&f->net, &node->spec.key, &path, f->now);
    assert_true(overlay_read_facts(node, f->now + NSEC_PER_SEC, &facts));
    assert_int_equal(facts.rx_bytes, 10);
    assert_int_equal(facts.handshake_at, f->now);
    assert_true(endpoint_equal(&facts.endpoint, &path.remote));
    assert_true(overlay_read_facts(node, f->now + 2 * NSEC_PER_SEC, &facts));
    assert_int_equal(facts.rx_bytes, 11);
    /* A later packet that is no handshake moves it, and leaves the time. */
    path.remote.port++;
    overlay__note_path(&f->net, &node->spec.key, &path, 0);
    assert_true(overlay_read_facts(node, f->now + 3 * NSEC_PER_SEC, &facts));
    assert_int_equal(facts.handshake_at, f->now);
    assert_true(endpoint_equal(&facts.endpoint, &path.remote));
}

/* ---- probes of the way to the hub ------------------------------------------------------------ */

/** A member that measures, its line, and the hub's end of it. */
struct member_line {
    struct fixture *f;
    struct overlay_node *node;
    struct path_keys keys; /* the member's */
    struct endpoint at;    /* where it is heard */
    int fd;                /* where the hub's answers come out */
    uint64_t sequence;     /* of its last probe */
};

static void open_line(struct member_line *l, struct fixture *f)
{
    struct udp_path path = {.ifindex = 0};
    struct rng rng = rng_kernel();
    struct x25519_secret secret;
    struct x25519_public public;
    struct model_node *node;
    int fds[2];

    *l = (struct member_line){.f = f, .sequence = 100};
    x25519_secret_make(&secret, &rng);
    assert_true(x25519_derive_public(&secret, &public));
    node = add_member_of(f, "n1", &public);
    overlay_add_node(&f->o, node, f->now);
    l->node = node->served->overlay;
    assert_true(path_keys_derive(&l->keys, &secret, &public, &f->net.model->public));
    assert_int_equal(endpoint_parse(&l->at, "192.0.2.8:4000", NULL), 0);
    path.remote = l->at;
    overlay__note_path(&f->net, &public, &path, f->now);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
    f->o.probes = (struct probe_answers){.overlay = &f->o, .fd = fds[0], .run = 77};
    l->fd = fds[1];
}

static void close_line(struct member_line *l)
{
    (void)close(l->fd);
    (void)close(l->f->o.probes.fd);
    secret_wipe(&l->keys, sizeof(l->keys));
}

/* The interface by which they come. */
#define ASK_IFINDEX 3

/* Sends a probe of @len bytes from @from. Return: how long the answer to it is; 0: there is none.
 */
static size_t ask(
    struct member_line *l, const struct path_frame *probe, const struct endpoint *from, size_t len)
{
    struct probe_answers_frame msg = {.header = {.port = from->port, .ifindex = ASK_IFINDEX}};
    struct xchacha_nonce nonce = {{3}};
    struct path_frame ack;
    ssize_t n;

    memcpy(msg.header.remote, from->addr.b, sizeof(msg.header.remote));
    assert_true(path_frame_seal(&l->keys, probe, &nonce, len, msg.frame));
    probe_answers__take(&l->f->o.probes, &msg, len, l->f->now);
    n = recv(l->fd, &msg, sizeof(msg), 0);
    if (n < 0)
        return 0;
    assert_true((size_t)n > sizeof(msg.header));
    assert_memory_equal(msg.header.remote, from->addr.b, sizeof(msg.header.remote));
    assert_int_equal(msg.header.port, from->port);
    assert_int_equal(msg.header.flags, FRAME_SOCKET_DONT_FRAGMENT);
    assert_true(path_frame_open(&l->keys, msg.frame, (size_t)n - sizeof(msg.header), &ack));
    assert_int_equal(ack.kind, PATH_FRAME_PROBE_ACK);
    assert_int_equal(ack.transaction, probe->transaction);
    assert_int_equal(ack.echo, probe->session);
    assert_int_equal(ack.size, len);
    assert_int_equal(ack.session, 77);
    assert_int_equal(ack.sequence, l->f->o.probes.sequence);
    assert_int_equal(ack.clock, probe->clock);
    return (size_t)n - sizeof(msg.header);
}

/* The member's next probe, which says that it has found @mtu. */
static struct path_frame next_probe(struct member_line *l, uint16_t mtu)
{
    return (struct path_frame){.kind = PATH_FRAME_PROBE,
        .flags = PATH_FRAME_WHOLE,
        .size = mtu,
        .transaction = 40 + l->sequence,
        .session = 9,
        .sequence = ++l->sequence,
        .clock = 5000};
}

/* Each is answered with as many bytes, and what it says is what the hub sends from then on. */
static void test_probes_are_answered_whole(void **state)
{
    static const size_t lens[] = {PATH_FRAME_MIN + 8, 1172, 1400, 1472, 8973, PATH_FRAME_MAX};
    const struct sample_peers_change *change;
    struct member_line l;
    uint16_t whole;

    open_line(&l, *state);
    whole = l.f->net.model->spec.mtu & ~(WG_PADDING - 1);
    for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
        struct path_frame probe = next_probe(&l, 0);

        assert_int_equal(ask(&l, &probe, &l.at, lens[i]), lens[i]);
        assert_int_equal(l.node->probes.mtu, 0);
        assert_int_equal(l.f->o.probes.sequence, i + 1);
    }
    l.f->engine.n_changes = 0;
    for (uint16_t mtu = PMTU_INNER_MIN; mtu < 9000; mtu += 1000) {
        struct path_frame probe = next_probe(&l, mtu);

        assert_int_equal(ask(&l, &probe, &l.at, 1172), 1172);
        assert_int_equal(l.node->probes.mtu, mtu);
        change = last_change(l.f);
        assert_int_equal(change->op, DIFF_OP_UPDATE);
        assert_true(change->set_mtu);
        /* What the hub sends is never longer than the network's packets, padded as WireGuard's. */
        assert_int_equal(change->mtu, mtu < whole ? mtu & ~(WG_PADDING - 1) : whole);
        assert_int_equal(l.f->engine.n_changes, 0);
        /* Saying it again changes nothing. */
        probe = next_probe(&l, mtu);
        assert_int_equal(ask(&l, &probe, &l.at, 1172), 1172);
        assert_int_equal(l.f->engine.n_changes, 0);
    }
    close_line(&l);
}

static void test_what_a_probe_may_not_say(void **state)
{
    struct path_frame probe;
    struct path_frame old;
    struct member_line l;

    open_line(&l, *state);
    probe = next_probe(&l, 1400);
    assert_int_equal(ask(&l, &probe, &l.at, 1200), 1200);
    /* Less than every path carries, or more than there is. */
    probe = next_probe(&l, PMTU_INNER_MIN - 1);
    (void)ask(&l, &probe, &l.at, 1200);
    probe = next_probe(&l, PATH_FRAME_MAX + 1);
    (void)ask(&l, &probe, &l.at, 1200);
    assert_int_equal(l.node->probes.mtu, 1400);
    probe = next_probe(&l, PATH_FRAME_MAX);
    (void)ask(&l, &probe, &l.at, 1200);
    assert_int_equal(l.node->probes.mtu, PATH_FRAME_MAX);
    /* That it does not know any more. */
    probe = next_probe(&l, 0);
    (void)ask(&l, &probe, &l.at, 1200);
    assert_int_equal(l.node->probes.mtu, 0);
    /* One that was kept, and comes again later. */
    old = next_probe(&l, 1136);
    probe = next_probe(&l, 1440);
    (void)ask(&l, &probe, &l.at, 1200);
    (void)ask(&l, &old, &l.at, 1200);
    assert_int_equal(l.node->probes.mtu, 1440);
    probe.size = 1300;
    (void)ask(&l, &probe, &l.at, 1200);
    assert_int_equal(l.node->probes.mtu, 1440);
    close_line(&l);
}

/* The member is asked from where it was heard last, and from nowhere else. */
static void test_a_member_that_moves(void **state)
{
    static const char *const places[] = {
        "192.0.2.9:4000", "192.0.2.8:4001", "169.254.1.1:4000", "[2001:db8::1]:4000"};
    struct udp_path path = {.ifindex = 0};
    struct path_frame probe;
    struct member_line l;
    struct endpoint before;

    open_line(&l, *state);
    before = l.at;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        assert_int_equal(endpoint_parse(&path.remote, places[i], NULL), 0);
        overlay__note_path(&l.f->net, &l.node->keys[0].key, &path, 0);
        assert_int_equal(l.f->o.by_remote.n, 1);
        probe = next_probe(&l, 1400);
        assert_int_equal(ask(&l, &probe, &before, 1200), 0);
        assert_int_equal(ask(&l, &probe, &path.remote, 1200), 1200);
        before = path.remote;
    }
    /* A link-local address is one of an interface. */
    assert_int_equal(endpoint_parse(&path.remote, "[fe80::1]:4000", NULL), 0);
    path.remote.scope = ASK_IFINDEX;
    overlay__note_path(&l.f->net, &l.node->keys[0].key, &path, 0);
    assert_int_equal(ask(&l, &probe, &path.remote, 1200), 1200);
    path.remote.scope = ASK_IFINDEX + 1;
    overlay__note_path(&l.f->net, &l.node->keys[0].key, &path, 0);
    assert_int_equal(ask(&l, &probe, &path.remote, 1200), 0);
    close_line(&l);
}

/* Four members of one machine are told apart; of more, as many are asked whose frame it is. */
static void test_members_of_one_machine(void **state)
{
    struct fixture *f = *state;
    struct udp_path path = {.ifindex = 0};
    struct path_frame probe;
    struct member_line l;

    open_line(&l, f);
    path.remote = l.at;
    for (uint8_t i = 0; i < 5; i++) {
        char name[] = {'x', (char)('a' + i), '\0'};
        struct model_node *node = add_member(f, name, (uint8_t)(20 + i));

        overlay_add_node(&f->o, node, f->now);
        overlay__note_path(&f->net, &node->spec.key, &path, f->now);
        if (i == 2) {
            probe = next_probe(&l, 1400);
            assert_int_equal(ask(&l, &probe, &l.at, 1200), 1200);
        }
    }
    assert_int_equal(f->o.by_remote.n, 6);
    probe = next_probe(&l, 1400);
    (void)ask(&l, &probe, &l.at, 1200);
    close_line(&l);
}

static void test_who_gets_no_answer(void **state)
{
    struct endpoint other;
    struct path_frame probe;
    struct member_line l;
    unsigned n = 0;

    open_line(&l, *state);
    assert_int_equal(endpoint_parse(&other, "192.0.2.9:4000", NULL), 0);
    /* Who was not heard there, though he has the key; and a frame of another kind. */
    probe = next_probe(&l, 1400);
    assert_int_equal(ask(&l, &probe, &other, 1200), 0);
    probe.flags = 0;
    assert_int_equal(ask(&l, &probe, &l.at, 1200), 0);
    probe.flags = PATH_FRAME_WHOLE;
    probe.kind = PATH_FRAME_PING;
    assert_int_equal(ask(&l, &probe, &l.at, 1200), 0);
    assert_int_equal(l.node->probes.mtu, 0);
    /* More than a search needs. */
    for (unsigned i = 0; i < 500; i++) {
        probe = next_probe(&l, 1400);
        n += ask(&l, &probe, &l.at, 1200) != 0;
    }
    /* Three of the burst went to those above that had its tag. */
    assert_int_equal(n, 62);
    l.f->now += 4 * NSEC_PER_SEC;
    probe = next_probe(&l, 1400);
    assert_int_equal(ask(&l, &probe, &l.at, 1200), 1200);
    /* A frame that is too short to have a tag. */
    probe_answers__take(&l.f->o.probes, &(struct probe_answers_frame){.header.port = 4000}, 3, 1);
    /* Another key: another member, whom these frames are not of. */
    l.keys.send_tag.b[0] ^= 1;
    probe = next_probe(&l, 1400);
    assert_int_equal(ask(&l, &probe, &l.at, 1200), 0);
    close_line(&l);
}

/* ---- the file ------------------------------------------------------------------------------- */

/* What is heard is written, but for streams; who was not heard since stays as it was. */
static void test_addresses(void **state)
{
    struct fixture *f = *state;
    struct model_node *a = add_member(f, "a", 1);
    struct model_node *b = add_member(f, "b", 2);
    struct udp_path path = {.ifindex = 0};
    struct addresses again = ADDRESSES_NULL;
    struct endpoint at;

    addresses_open(&f->o.addresses, f->hub.dir);
    overlay_add_node(&f->o, a, f->now);
    overlay_add_node(&f->o, b, f->now);
    assert_int_equal(endpoint_parse(&path.remote, "192.0.2.8:4000", NULL), 0);
    overlay__note_path(&f->net, &a->spec.key, &path, f->now);
    assert_int_equal(endpoint_parse(&path.remote, "127.87.0.1:4000", NULL), 0);
    overlay__note_path(&f->net, &b->spec.key, &path, f->now);
    assert_true(f->o.has_updates);
    overlay__tick_nodes(&f->o, f->now);
    assert_false(f->o.has_updates);
    addresses_open(&again, f->hub.dir);
    assert_true(addresses_find(&again, "default", &a->spec.key, &at));
    assert_int_equal(at.port, 4000);
    assert_false(addresses_find(&again, "default", &b->spec.key, &at));
    assert_false(addresses_find(&again, "other", &a->spec.key, &at));
    addresses_close(&again);
    /* Not again within two seconds. */
    assert_int_equal(endpoint_parse(&path.remote, "192.0.2.8:4001", NULL), 0);
    overlay__note_path(&f->net, &a->spec.key, &path, 0);
    overlay__tick_nodes(&f->o, f->now + NSEC_PER_SEC);
    addresses_open(&again, f->hub.dir);
    assert_true(addresses_find(&again, "default", &a->spec.key, &at));
    assert_int_equal(at.port, 4000);
    addresses_close(&again);
    overlay__tick_nodes(&f->o, f->now + 2 * NSEC_PER_SEC);
    addresses_open(&again, f->hub.dir);
    assert_true(addresses_find(&again, "default", &a->spec.key, &at));
    assert_int_equal(at.port, 4001);
    addresses_close(&again);
    /* Where nothing is new, nothing is written; nor for a packet that comes as the last one did. */
    addresses_open(&again, f->hub.dir);
    addresses_write(&again, json_object(), f->now);
    addresses_close(&again);
    overlay__note_path(&f->net, &a->spec.key, &path, f->now);
    overlay__tick_nodes(&f->o, f->now + 60 * NSEC_PER_SEC);
    addresses_open(&again, f->hub.dir);
    assert_false(addresses_find(&again, "default", &a->spec.key, &at));
    addresses_close(&again);
}

/* Who was not heard since the hub has started stays in the file as it was. */
static void test_an_address_of_before(void **state)
{
    struct fixture *f = *state;
    struct model_node *a = add_member(f, "a", 1);
    struct model_node *b = add_member(f, "b", 2);
    struct udp_path path = {.remote = sample_endpoint(2)};
    struct endpoint before = sample_endpoint(1);
    struct addresses again = ADDRESSES_NULL;
    json_t *net = json_object();
    struct endpoint at;

    addresses_open(&f->o.addresses, f->hub.dir);
    addresses_add(net, &a->spec.key, &before);
    addresses_write(&f->o.addresses, json_pack("{s:o}", "default", net), f->now);
    addresses_close(&f->o.addresses);
    addresses_open(&f->o.addresses, f->hub.dir);
    overlay_add_node(&f->o, a, f->now);
    overlay_add_node(&f->o, b, f->now);
    overlay__note_path(&f->net, &b->spec.key, &path, f->now);
    overlay__tick_nodes(&f->o, f->now + 60 * NSEC_PER_SEC);
    addresses_open(&again, f->hub.dir);
    assert_true(addresses_find(&again, "default", &a->spec.key, &at));
    assert_true(endpoint_equal(&at, &before));
    assert_true(addresses_find(&again, "default", &b->spec.key, &at));
    assert_true(endpoint_equal(&at, &path.remote));
    addresses_close(&again);
}

/* The addresses of thousands of nodes are not written each two seconds. */
static void test_a_long_file_of_addresses(void **state)
{
    struct fixture *f = *state;
    struct endpoint at = {.port = 4000};
    json_t *all = json_object();
    json_t *net = json_object();
    nsec_t each;
    char *text;

    for (unsigned i = 0; i < 4000; i++) {
        struct x25519_public key = {.b = {(uint8_t)i, (uint8_t)(i >> 8)}};

        addresses_add(net, &key, &at);
    }
    json_object_set_new(all, "default", net);
    text = json_dumps(all, JSON_COMPACT);
    /* 50 KiB for each second. */
    each = strlen(text) * NSEC_PER_SEC / (50 << 10);
    free(text);
    assert_true(each > 3 * NSEC_PER_SEC);
    addresses_open(&f->o.addresses, f->hub.dir);
    assert_true(addresses_may_write(&f->o.addresses, 0));
    addresses_write(&f->o.addresses, all, f->now);
    assert_false(addresses_may_write(&f->o.addresses, f->now + each - 1));
    assert_true(addresses_may_write(&f->o.addresses, f->now + each));
    /* A short one waits for two seconds. */
    addresses_write(&f->o.addresses, json_object(), f->now);
    assert_false(addresses_may_write(&f->o.addresses, f->now + 2 * NSEC_PER_SEC - 1));
    assert_true(addresses_may_write(&f->o.addresses, f->now + 2 * NSEC_PER_SEC));
}

/* A file that is damaged, or none at all, stays as it is. */
static void test_a_damaged_file_of_addresses(void **state)
{
    static const char *const damaged[] = {"[1", "[1]", "{\"a\":{},\"a\":{}}"};
    struct fixture *f = *state;
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/addresses.json", f->hub.dir);
    for (size_t i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
        struct addresses a = ADDRESSES_NULL;
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        (void)fputs(damaged[i], file);
        (void)fclose(file);
        addresses_open(&a, f->hub.dir);
        assert_false(addresses_may_write(&a, f->now));
        addresses_close(&a);
        addresses_close(&a);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    addresses_open(&f->o.addresses, f->hub.dir);
    assert_false(addresses_may_write(&f->o.addresses, f->now));
    assert_int_equal(rmdir(path), 0);
}

/* ---- the relay ------------------------------------------------------------------------------ */

static bool no_index(void *ctx, uint32_t index)
{
    return false;
}

/* Is what @from sends from its place to begin a session with @to, under the receiver index, sent on
 * to where @to is? */
static bool is_relayed(
    struct fixture *f, const struct model_node *from, const struct model_node *to, uint32_t index)
{
    struct wg_initiation msg = sample_initiation(&to->spec.key, index);
    struct router_arrival in = {
        .from = from->served->overlay->path.remote, .now = f->now, .is_local = no_index};
    struct router_verdict v =
        router_route(relay_router(f->o.relay), &in, (const uint8_t *)&msg, sizeof(msg));

    if (v.action != ROUTER_ACTION_FORWARD)
        return false;
    assert_true(endpoint_equal(&v.to, &to->served->overlay->path.remote));
    return true;
}

/* Members of the relay: a with the key 1, b with 2, and c with 3, each heard at a place of its own.
 */
static void add_three(struct fixture *f, struct model_node *ret[static 3])
{
    for (uint8_t i = 0; i < 3; i++) {
        char name[] = {(char)('a' + i), '\0'};
        struct udp_path path = {.remote = sample_endpoint(i)};

        ret[i] = add_member(f, name, (uint8_t)(i + 1));
        overlay_add_node(&f->o, ret[i], f->now);
        overlay__note_path(&f->net, &ret[i]->spec.key, &path, f->now);
    }
}

/* An administrator turns the edge of a and b off. */
static void turn_off(struct fixture *f, const char *name, const char *a, const char *b)
{
    char path[96];
    char body[160];

    (void)snprintf(path, sizeof(path), "/v1/networks/default/objects/MeshEdge/%s", name);
    (void)snprintf(body, sizeof(body),
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"nodes\":[\"%s\",\"%s\"],"
        "\"path\":\"off\"}}",
        name, a, b);
    assert_int_equal(sample_hub_ask(&f->hub, API_ACCESS_ADMIN, NULL, "PUT", path, body, NULL), 200);
}

static void test_members_are_relayed(void **state)
{
    struct fixture *f = *state;
    struct model_node *nodes[3];
    struct udp_path path = {.remote = sample_endpoint(7)};

    add_three(f, nodes);
    assert_false(overlay__is_leased(&f->net, &nodes[1]->spec.key, 5, f->now));
    assert_true(is_relayed(f, nodes[0], nodes[1], 5));
    /* Its answers come under this index, so the hub's device takes it for no session of its own. */
    assert_true(overlay__is_leased(&f->net, &nodes[1]->spec.key, 5, f->now));
    assert_false(overlay__is_leased(&f->net, &nodes[1]->spec.key, 6, f->now));
    assert_false(overlay__is_leased(&f->net, &nodes[0]->spec.key, 5, f->now));
    assert_false(overlay__is_leased(&f->net, &f->net.model->public, 5, f->now));
    overlay__note_path(&f->net, &nodes[1]->spec.key, &path, 0);
    assert_true(is_relayed(f, nodes[0], nodes[1], 5));
    overlay_remove_node(nodes[1]);
    overlay__note_path(&f->net, &nodes[1]->spec.key, &path, 0);
    assert_int_equal(f->o.by_remote.n, 2);
    assert_int_equal(router_n_leases(relay_router(f->o.relay)), 0);
}

static void test_an_edge_that_is_off(void **state)
{
    struct fixture *f = *state;
    struct model_node *nodes[3];
    struct node before;
    struct udp_path path = {.remote = sample_endpoint(8)};

    add_three(f, nodes);
    turn_off(f, "a--b", "a", "b");
    overlay_change_edge(nodes[0], nodes[1]);
    assert_false(is_relayed(f, nodes[0], nodes[1], 5));
    assert_false(is_relayed(f, nodes[1], nodes[0], 6));
    assert_true(is_relayed(f, nodes[0], nodes[2], 7));
    overlay_change_edge(nodes[0], nodes[2]);
    assert_true(is_relayed(f, nodes[0], nodes[2], 7));
    /* It stays off when the node has another key. */
    before = nodes[0]->spec;
    nodes[0]->spec.key.b[5] ^= 1;
    overlay_change_node(nodes[0], &before);
    overlay__note_path(&f->net, &nodes[0]->spec.key, &path, f->now);
    assert_false(is_relayed(f, nodes[0], nodes[1], 8));
    assert_true(is_relayed(f, nodes[0], nodes[2], 9));
}

/* What is cut is relayed nothing, whatever is heard or said of it later; its peer stays. */
static void test_a_cut_member(void **state)
{
    struct fixture *f = *state;
    struct model_node *nodes[3];
    struct udp_path path = {.remote = sample_endpoint(8)};

    add_three(f, nodes);
    assert_true(is_relayed(f, nodes[1], nodes[0], 5));
    assert_non_null(nodes[0]->served->overlay->router);
    f->engine.n_changes = 0;
    overlay_cut_node(nodes[0]);
    assert_null(nodes[0]->served->overlay->router);
    overlay_cut_node(nodes[0]);
    overlay_change_edge(nodes[0], nodes[1]);
    overlay_change_edge(nodes[1], nodes[0]);
    overlay__note_path(&f->net, &nodes[0]->spec.key, &path, f->now);
    assert_false(overlay__is_leased(&f->net, &nodes[0]->spec.key, 5, f->now));
    assert_false(overlay__is_leased(&f->net, &nodes[1]->spec.key, 5, f->now));
    assert_false(is_relayed(f, nodes[1], nodes[0], 5));
    assert_false(is_relayed(f, nodes[0], nodes[1], 6));
    assert_true(is_relayed(f, nodes[1], nodes[2], 7));
    assert_int_equal(f->engine.n_changes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recontact),
        cmocka_unit_test_setup_teardown(test_a_member_is_a_peer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_hub_that_starts_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_facts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_probes_are_answered_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_a_probe_may_not_say, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_member_that_moves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_members_of_one_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_gets_no_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_address_of_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_long_file_of_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_damaged_file_of_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_members_are_relayed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_edge_that_is_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_cut_member, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
