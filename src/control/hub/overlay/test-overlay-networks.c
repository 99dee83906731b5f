/*
 * test-overlay-networks.c - the hub's interfaces, as the kernel has them: made, shadowed, removed.
 *
 * With real devices, in a network namespace, for the networks of a hub on the memory store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/metrics.h"
#include "base/secret.h"
#include "base/text.h"
#include "engine/engine.h"
#include "filter/relay.h"
#include "hub/overlay/overlay_internal.h"
#include "mesh/config/wg_config.h"
#include "mesh/render/render.h"
#include "net/netlink/rtnl.h"
#include "net/tun/offload.h"
#include "os/clock.h"
#include "test/support/netns.h"
#include "test/support/sample_hub.h"
#include "wire/path.h"
#include "wire/stun.h"

static struct world {
    struct sample_hub hub;
    uv_loop_t loop;
    struct overlay *o;
    struct overlay_options options;
    struct netlink *nl;
    struct model_network *net; /* 10.77.0.0/16 */
    struct err e;
} w;

static int enter(void **state)
{
    if (netns_enter(state) != 0)
        return -1;
    if (!*state)
        return 0;
    memset(&w, 0, sizeof(w));
    w.nl = *state;
    (void)netns_raise_loopback(w.nl);
    sample_hub_begin(&w.hub);
    w.net = sample_hub_network(&w.hub);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    w.options = (struct overlay_options){.state_dir = w.hub.dir, .api_port = 8443, .n_workers = 1};
    return overlay_new(&w.o, &w.loop, &w.options, NULL);
}

static int leave(void **state)
{
    if (!*state)
        return 0;
    for (size_t i = 0; i < w.hub.hub->model.networks.n; i++)
        overlay_remove_network(model_network_at(&w.hub.hub->model, i));
    overlay_stop(w.o);
    overlay_stop(w.o);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    w.o = overlay_free(w.o);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    sample_hub_end(&w.hub);
    return netns_leave(state);
}

static void add(const struct model_network *net)
{
    if (overlay_add_network(w.o, net, &w.e) != 0)
        fail_msg("%s", err_text(&w.e));
}

/* With the same block as the first one. */
static const struct model_network *make_second(void)
{
    assert_int_equal(sample_hub_ask(&w.hub, API_ACCESS_ADMIN, NULL, "POST", "/v1/networks",
                         "{\"name\":\"second\",\"cidr4\":\"10.77.0.0/16\"}", NULL),
        201);
    return model_find_network(&w.hub.hub->model, "second");
}

static struct rtnl_link link_of(const struct model_network *net)
{
    struct rtnl_link link;

    assert_int_equal(rtnl_find_link(w.nl, net->served->interface, &link), 0);
    return link;
}

static bool is_there(const struct model_network *net)
{
    struct rtnl_link link;

    return rtnl_find_link(w.nl, net->served->interface, &link) == 0;
}

/** The search for an entry with that block or address. */
struct search {
    struct ip_prefix prefix;
    bool is_route;
    bool is_own_table; /* of a route: not the main table */
    struct rtnl_entry found;
    unsigned n;
};

static int look_at(const struct rtnl_entry *entry, void *ctx)
{
    struct search *s = ctx;

    if (!ip_prefix_equal(&entry->prefix, &s->prefix) ||
        (s->is_route && rtnl_is_own_table(entry->table) != s->is_own_table))
        return 0;
    s->found = *entry;
    s->n++;
    return 0;
}

/* How many there are on the interface of @net. */
static unsigned find(struct search *s, const struct model_network *net)
{
    unsigned ifindex = link_of(net).ifindex;

    s->n = 0;
    if (s->is_route)
        assert_int_equal(rtnl_each_route(w.nl, ifindex, true, look_at, s), 0);
    else
        assert_int_equal(rtnl_each_address(w.nl, ifindex, look_at, s), 0);
    return s->n;
}

static int find_rule(const struct model_network *net, bool v4)
{
    const struct rtnl_rule rule = {.table = rtnl_table_of(net->served->interface),
        .from = v4 ? net->address4 : net->address6,
        .priority = 5186};

    return rtnl_find_rule(w.nl, v4, &rule);
}

/* ---- one network ----------------------------------------------------------------------------- */

static void test_its_interface(void **state)
{
    struct search address = {.prefix = netns_prefix("10.77.0.1/16")};
    struct rtnl_link link;

    (void)netns_need(state);
    add(w.net);
    link = link_of(w.net);
    assert_string_equal(link.kind, "tun");
    assert_true(link.up);
    assert_int_equal(link.mtu, w.net->spec.mtu);
    assert_int_equal(find(&address, w.net), 1);
    address.prefix = (struct ip_prefix){.addr = w.net->address6, .len = w.net->spec.cidr6.len};
    assert_int_equal(find(&address, w.net), 1);
}

/* What the hub says has to arrive on any line. */
static void test_its_routes(void **state)
{
    struct search route = {.prefix = netns_prefix("10.77.0.0/16"), .is_route = true};

    (void)netns_need(state);
    add(w.net);
    assert_int_equal(find(&route, w.net), 1);
    assert_int_equal(route.found.metrics.mtu, RENDER_MTU_SAFE);
    assert_int_equal(route.found.metrics.advmss, route.found.metrics.mtu - 20 - 20);
    route.prefix = w.net->spec.cidr6;
    assert_int_equal(find(&route, w.net), 1);
    assert_int_equal(route.found.metrics.mtu, 1280);
    assert_int_equal(route.found.metrics.advmss, RENDER_MTU_SAFE - 40 - 20);
    /* The hub's own packets leave by it, whatever interface else leads there. */
    route.prefix = netns_prefix("10.77.0.0/16");
    route.is_own_table = true;
    assert_int_equal(find(&route, w.net), 1);
    assert_int_equal(route.found.protocol, RTNL_PEER_ROUTES);
    assert_int_equal(route.found.metrics.mtu, RENDER_MTU_SAFE);
    assert_int_equal(find_rule(w.net, true), 0);
    route.prefix = w.net->spec.cidr6;
    assert_int_equal(find(&route, w.net), 1);
    assert_int_equal(find_rule(w.net, false), 0);
}

static void test_it_is_removed(void **state)
{
    (void)netns_need(state);
    add(w.net);
    assert_non_null(w.net->served->overlay);
    overlay_remove_network(w.net);
    assert_null(w.net->served->overlay);
    assert_false(is_there(w.net));
    assert_int_equal(find_rule(w.net, true), RTNL_E_ABSENT);
    assert_int_equal(find_rule(w.net, false), RTNL_E_ABSENT);
    overlay_remove_network(w.net);
    add(w.net);
    assert_true(is_there(w.net));
}

static void test_an_interface_of_that_name(void **state)
{
    (void)netns_need(state);
    assert_int_equal(rtnl_add_link(w.nl, w.net->served->interface, "bridge"), 0);
    assert_true(overlay_add_network(w.o, w.net, &w.e) < 0);
    assert_string_equal(w.e.text, "interface wt-default exists and is of another kind");
    assert_null(w.net->served->overlay);
    assert_string_equal(link_of(w.net).kind, "bridge");
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void use_block(const char *address)
{
    struct ip_prefix p = netns_prefix(address);
    struct rtnl_link link;

    assert_int_equal(rtnl_add_link(w.nl, "br0", "bridge"), 0);
    assert_int_equal(rtnl_find_link(w.nl, "br0", &link), 0);
    assert_int_equal(rtnl_add_address(w.nl, link.ifindex, &p, false), 0);
    assert_int_equal(rtnl_set_link(w.nl, link.ifindex, true, 0), 0);
}

static void test_a_block_that_is_in_use(void **state)
{
    struct ip_prefix block = netns_prefix("10.77.0.0/16");
    struct ip_prefix other = netns_prefix("10.78.0.0/16");

    (void)netns_need(state);
    assert_int_equal(overlay_check_block(w.o, &block, &w.e), 0);
    use_block("10.77.9.1/24");
    assert_int_equal(overlay_check_block(w.o, &block, &w.e), -EADDRINUSE);
    assert_string_equal(
        w.e.text, "the block 10.77.0.0/16 collides with the address 10.77.9.1/24 of br0");
    assert_int_equal(overlay_check_block(w.o, &other, &w.e), 0);
    assert_int_equal(overlay_add_network(w.o, w.net, &w.e), -EADDRINUSE);
    assert_false(is_there(w.net));
}

static void test_the_second_block_is_in_use(void **state)
{
    char text[IP_ADDR_TEXT_MAX];
    char address[IP_ADDR_TEXT_MAX + 8];
    struct ip_addr used;

    (void)netns_need(state);
    used = w.net->address6;
    used.b[15] = 77;
    (void)snprintf(address, sizeof(address), "%s/128", ip_addr_format(&used, text));
    use_block(address);
    assert_int_equal(overlay_add_network(w.o, w.net, &w.e), -EADDRINUSE);
}

/* A restart must not take the hub away from its members. */
static void test_a_network_with_members_comes_up_all_the_same(void **state)
{
    (void)netns_need(state);
    sample_hub_add_node(&w.hub, "aa");
    use_block("10.77.9.1/24");
    add(w.net);
    assert_true(is_there(w.net));
}

/* The machine is a member of the network that its hub serves: that is no use of the block. */
static void test_a_member_on_this_machine(void **state)
{
    char text[IP_PREFIX_TEXT_MAX];
    struct ip_prefix own = {.len = 16};

    (void)netns_need(state);
    sample_hub_add_node(&w.hub, "aa");
    own.addr = sample_hub_node(&w.hub, "aa")->spec.address4;
    use_block(ip_prefix_format(&own, text));
    add(w.net);
    assert_string_equal(w.e.text, "");
}

/* Its own networks take up no block of another one's: they may overlap. */
static void test_a_network_in_the_shadow_of_another(void **state)
{
    struct search address = {.prefix = netns_prefix("10.77.0.1/32")};
    const struct model_network *second;

    (void)netns_need(state);
    second = make_second();
    add(w.net);
    add(second);
    assert_int_equal(find(&address, second), 1);
    assert_int_equal(find(&address, w.net), 0);
    /* Its packets have no table of their own. */
    assert_int_equal(find_rule(w.net, true), 0);
    assert_int_equal(find_rule(second, true), RTNL_E_ABSENT);
    /* Their blocks of IPv6 are not the same. */
    assert_int_equal(find_rule(second, false), 0);
    overlay_remove_network(w.net);
    assert_true(is_there(second));
}

/* ---- its port, and its members --------------------------------------------------------------- */

static uint16_t take_port(int *ret_fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);

    *ret_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*ret_fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(*ret_fd, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

static void test_a_port_that_is_taken(void **state)
{
    int fd;

    (void)netns_need(state);
    w.o = overlay_free(w.o);
    w.options.listen_port = take_port(&fd);
    assert_int_equal(overlay_new(&w.o, &w.loop, &w.options, &w.e), 0);
    assert_int_equal(overlay_start(w.o, &w.e), -EADDRINUSE);
    (void)close(fd);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    w.o = overlay_free(w.o);
    assert_int_equal(overlay_new(&w.o, &w.loop, &w.options, &w.e), 0);
    assert_int_equal(overlay_start(w.o, &w.e), 0);
}

/* "aa", with that key. */
static const struct model_node *add_member(const struct x25519_public *key)
{
    char text[BASE64_SIZE(32)];
    char body[256];

    base64_encode(key->b, sizeof(key->b), text);
    (void)snprintf(body, sizeof(body), "{\"name\":\"aa\",\"publicKey\":\"%s\"}", text);
    assert_int_equal(sample_hub_ask(&w.hub, API_ACCESS_ADMIN, NULL, "POST",
                         "/v1/networks/default/nodes", body, NULL),
        201);
    return sample_hub_node(&w.hub, "aa");
}

static void test_a_member_is_a_peer(void **state)
{
    struct wg_config config = WG_CONFIG_NULL;
    struct overlay_facts facts;
    const struct model_node *node;

    (void)netns_need(state);
    sample_hub_add_node(&w.hub, "aa");
    node = sample_hub_node(&w.hub, "aa");
    assert_int_equal(overlay_start(w.o, &w.e), 0);
    assert_false(overlay_read_facts(node, clock_now(), &facts));
    add(w.net);
    overlay_add_node(w.o, node, clock_now());
    assert_true(overlay_read_facts(node, clock_now(), &facts));
    assert_int_equal(facts.handshake_at, 0);
    assert_int_equal(facts.rx_bytes, 0);
    /* The device has the network's key, and this one peer. */
    assert_int_equal(w.net->served->overlay->engine->ops->kind, ENGINE_KIND_USERSPACE);
    assert_int_equal(engine_get(w.net->served->overlay->engine, &config, &w.e), 0);
    assert_true(x25519_public_equal(&config.public, &w.net->public));
    assert_int_equal(config.n_peers, 1);
    assert_true(x25519_public_equal(&config.peers[0].key, &node->spec.key));
    assert_int_equal(config.peers[0].n_allowed, 2);
    wg_config_deinit(&config);
    overlay_cut_node(node);
    overlay_remove_node(node);
    assert_false(overlay_read_facts(node, clock_now(), &facts));
}

/* A socket on this machine that takes what is sent to it. */
static struct endpoint open_socket(int *ret_fd)
{
    struct endpoint ep = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})};
    const struct timeval patience = {.tv_sec = 10};

    ep.port = take_port(ret_fd);
    assert_int_equal(setsockopt(*ret_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    return ep;
}

/* What a member sends to the port to measure its way comes back from there. */
static void test_a_member_that_measures(void **state)
{
    const struct path_frame probe = {.kind = PATH_FRAME_PROBE,
        .flags = PATH_FRAME_WHOLE,
        .transaction = 7,
        .session = 9,
        .sequence = 1,
        .clock = 5000};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct xchacha_nonce nonce = {{3}};
    struct rng rng = rng_kernel();
    struct udp_path path = {.ifindex = 0};
    uint8_t frame[1200];
    struct x25519_secret secret;
    struct x25519_public public;
    const struct model_node *node;
    struct path_keys keys;
    nsec_t since = clock_now();
    struct path_frame ack;
    int fd;

    (void)netns_need(state);
    w.o = overlay_free(w.o);
    w.options.listen_port = take_port(&fd);
    to.sin_port = htons(w.options.listen_port);
    (void)close(fd);
    assert_int_equal(overlay_new(&w.o, &w.loop, &w.options, &w.e), 0);
    assert_int_equal(overlay_start(w.o, &w.e), 0);
    add(w.net);
    x25519_secret_make(&secret, &rng);
    assert_true(x25519_derive_public(&secret, &public));
    node = add_member(&public);
    overlay_add_node(w.o, node, clock_now());
    path.remote = open_socket(&fd);
    overlay__note_path(w.net->served->overlay, &public, &path, clock_now());
    assert_true(path_keys_derive(&keys, &secret, &public, &w.net->public));
    assert_true(path_frame_seal(&keys, &probe, &nonce, sizeof(frame), frame));
    assert_int_equal(
        sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)), sizeof(frame));
    while (w.o->probes.sequence == 0 && clock_now() - since < 10 * NSEC_PER_SEC)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_int_equal(recv(fd, frame, sizeof(frame), MSG_TRUNC), sizeof(frame));
    assert_true(path_frame_open(&keys, frame, sizeof(frame), &ack));
    assert_int_equal(ack.kind, PATH_FRAME_PROBE_ACK);
    assert_int_equal(ack.transaction, 7);
    secret_wipe(&keys, sizeof(keys));
    overlay_remove_node(node);
    (void)close(fd);
}

/* Each second what is new of its members is written, and how far its clock has come. */
static void test_what_is_done_each_second(void **state)
{
    static const char *const files[] = {"addresses.json", "timestamp"};
    char path[128];

    (void)netns_need(state);
    add(w.net);
    assert_int_equal(overlay_start(w.o, &w.e), 0);
    assert_int_equal(uv_timer_get_repeat(&w.o->tick), 1000);
    assert_true(uv_timer_get_due_in(&w.o->tick) <= 1000);
    w.o->has_updates = true;
    uv_timer_set_repeat(&w.o->tick, 1);
    assert_int_equal(uv_timer_again(&w.o->tick), 0);
    while (w.o->has_updates)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    overlay_stop(w.o);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", w.hub.dir, files[i]);
        assert_int_equal(access(path, F_OK), 0);
    }
    assert_false(w.o->is_started);
}

/* How often @part is in @text. */
static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;

    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

static void test_its_metrics(void **state)
{
    const struct stun_transaction id = {{1}};
    struct metrics m = METRICS_NULL;
    struct stun_hearing hearing;
    char *text;

    (void)netns_need(state);
    add(w.net);
    overlay_add_metrics(w.o, &m);
    text = metrics_take(&m);
    assert_non_null(text);
    /* Each offload is there, or it is said why it is not. */
    assert_int_equal(count(text, "\nweft_offload{interface=\"wt-default\",offload="), OFFLOAD_N);
    assert_int_equal(count(text, "why=\"\"} 0"), 0);
    assert_int_equal(count(text, "\nweft_drops_total{"), DROP_REASON_N);
    assert_int_equal(count(text, "\nweft_relay_packets_total 0\n"), 1);
    assert_int_equal(count(text, "\nweft_relay_bytes_total 0\n"), 1);
    assert_int_equal(count(text, "\nweft_relay_leases 0\n"), 1);
    assert_int_equal(count(text, "\nweft_stun_answers_total 0\n"), 1);
    assert_false(overlay_find_heard(w.o, &id, &hearing));
    free(text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_its_interface),
        TEST(test_its_routes),
        TEST(test_it_is_removed),
        TEST(test_an_interface_of_that_name),
        TEST(test_a_block_that_is_in_use),
        TEST(test_the_second_block_is_in_use),
        TEST(test_a_network_with_members_comes_up_all_the_same),
        TEST(test_a_member_on_this_machine),
        TEST(test_a_network_in_the_shadow_of_another),
        TEST(test_a_port_that_is_taken),
        TEST(test_a_member_is_a_peer),
        TEST(test_a_member_that_measures),
        TEST(test_what_is_done_each_second),
        TEST(test_its_metrics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
