/* test-agent-core-pass.c - what a pass of a whole agent logs, renders and begins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/agent_core.h"
#include "agent/paths/edge/path_driver.h"
#include "base/err.h"
#include "net/netlink/rtnl.h"
#include "net/tun/offload.h"
#include "os/log.h"
#include "test/support/agent_world.h"
#include "test/support/netns.h"
#include "test/support/sample_engine.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

static bool *edges_changed(struct agent *a)
{
    return &a->hubs.serving->report.edges_changed;
}

/* ---- what is logged of a pass ---------------------------------------------------------------- */

static void test_what_somebody_has_done_is_logged(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct ip_prefix block = netns_prefix("10.42.0.0/16");
    char words[400];
    char key[X25519_BASE64_MAX];
    const struct x25519_public first = sample_key(77);
    struct wg_peer foreign = WG_PEER_NULL;

    agent_core_poll(a);
    assert_non_null(strstr(agent_world_pass(w), "info: weft: revision 40 applied to weft0: "));
    assert_string_equal(agent_world_pass(w), "");
    assert_int_equal(a->applied, 40);
    assert_int_equal(rtnl_set_link(w->nl, w->ifindex, false, 0), 0);
    assert_non_null(
        strstr(agent_world_pass(w), "info: weft: weft0 had been set down and is up again\n"));
    assert_int_equal(a->pass.due_at, w->now + PASS_PLAN_PERIOD);
    assert_int_equal(a->pass.held_until, w->now + PASS_PLAN_PAUSE);
    assert_string_equal(agent_world_pass(w), "");
    assert_int_equal(a->pass.held_until, 0);
    assert_int_equal(rtnl_remove_route(w->nl, w->ifindex, &block, NULL), 0);
    assert_non_null(
        strstr(agent_world_pass(w), "info: weft: the route to 10.42.0.0/16 had been taken "
                                    "from weft0 and leads into it again\n"));
    assert_int_equal(a->pass.held_until, w->now + PASS_PLAN_PAUSE);
    assert_int_equal(a->foreign_at, 0);
    foreign.key = first;
    assert_int_equal(wg_config_add(&w->engine.config, &foreign), 0);
    w->now++;
    (void)snprintf(words, sizeof(words),
        "warning: weft: 1 peer of weft0 that neither the hub nor this agent had added was removed, "
        "the last with the public key %s\n",
        x25519_public_format(&first, key));
    assert_non_null(strstr(agent_world_pass(w), words));
    assert_int_equal(a->foreign_at, w->now);
    foreign = (struct wg_peer)WG_PEER_NULL;
    foreign.key = sample_key(78);
    assert_int_equal(wg_config_add(&w->engine.config, &foreign), 0);
    foreign = (struct wg_peer)WG_PEER_NULL;
    foreign.key = sample_key(79);
    assert_int_equal(wg_config_add(&w->engine.config, &foreign), 0);
    assert_non_null(strstr(agent_world_pass(w),
        "warning: weft: 2 peers of weft0 that neither the hub nor this agent had added were "
        "removed, the last with the public key "));
    assert_string_equal(agent_world_pass(w), "");
    agent_world_end(w);
}

/* What it says of itself is logged, and what goes by it follows. */
static void test_an_engine_that_was_opened(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct offloads offloads = offloads_all();

    agent_core_poll(a);
    (void)agent_world_pass(w);
    assert_true(a->names.due_at == NSEC_NEVER);
    a->poll = (struct poll_plan)POLL_PLAN_NULL;
    offload_off(&offloads, OFFLOAD_TSO, "it got lost");
    w->engine.offloads = &offloads;
    (void)snprintf(a->reconcile.why, sizeof(a->reconcile.why), "nothing else is here");
    a->reconcile.has_opened = true;
    assert_string_equal(agent_world_pass(w),
        "info: weft: the kernel engine runs weft0: nothing else is here\n"
        "info: weft: weft0: the offload tso is off: it got lost\n");
    assert_int_equal(a->names.due_at, w->now);
    assert_int_equal(a->poll.due_at, w->now);
    assert_true(a->poll.has_changes);
    assert_string_equal(agent_world_pass(w), "");
    a->reconcile.has_opened = true;
    a->reconcile.why[0] = '\0';
    w->engine.offloads = NULL;
    assert_string_equal(agent_world_pass(w), "info: weft: the kernel engine runs weft0\n");
    agent_world_end(w);
}

/* A TUN device that stays without a process, as nobody uses it. Returns its number. */
static unsigned make_tun(struct netlink *nl)
{
    struct ifreq rq = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "weft0"};
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    struct rtnl_link link;

    if (fd < 0)
        skip();
    assert_int_equal(ioctl(fd, TUNSETIFF, &rq), 0);
    assert_int_equal(ioctl(fd, TUNSETPERSIST, 1), 0);
    (void)close(fd);
    assert_int_equal(rtnl_find_link(nl, "weft0", &link), 0);
    return link.ifindex;
}

static void test_an_interface_that_is_renamed_or_deleted(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    unsigned before;

    assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
    w->ifindex = make_tun(w->nl);
    agent_core_poll(a);
    (void)agent_world_pass(w);
    agent_world_peer(w, 3)->facts.handshake_sec = agent_world_wall() / SEC - 10;
    agent_core_poll(a);
    assert_int_equal(a->pass.held_until, 0);
    if (rtnl_rename_link(w->nl, w->ifindex, "other0") == 0) {
        assert_non_null(strstr(agent_world_pass(w),
            "info: weft: weft0 had been renamed to other0 and has its name again\n"));
        assert_int_equal(a->pass.held_until, w->now + PASS_PLAN_PAUSE);
        assert_string_equal(agent_world_pass(w), "");
    }
    before = w->engine.n_handshakes;
    assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
    w->ifindex = make_tun(w->nl);
    assert_non_null(strstr(agent_world_pass(w),
        "info: weft: weft0 had been deleted, or its data plane had ended: both are there again\n"));
    assert_int_equal(a->pass.held_until, w->now + PASS_PLAN_PAUSE);
    /* The new one has no sessions. */
    assert_int_equal(w->engine.n_handshakes, before + 1);
    assert_string_equal(agent_world_pass(w), "");
    assert_int_equal(a->pass.held_until, 0);
    agent_world_end(w);
}

/* This node has rules for what it forwards when it is the way to a subnet, or asks to be. */
static void test_rules_for_what_is_forwarded(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct node *self = (struct node *)snapshot_self(&a->snapshot);

    agent_core_poll(a);
    (void)agent_world_pass(w);
    assert_false(a->rules.was_router);
    assert_int_equal(a->rules.clamped_at, w->now);
    assert_null(a->marks.table.body);
    assert_int_equal(subnets_parse(&a->state.routes, "10.8.0.0/24", NULL), 0);
    (void)agent_world_pass(w);
    assert_true(a->rules.was_router);
    assert_int_equal(a->rules.routes.n, 0);
    self->routes = calloc(1, sizeof(*self->routes));
    assert_non_null(self->routes);
    assert_int_equal(subnets_parse(self->routes, "10.9.0.0/24", NULL), 0);
    a->state.routes.n = 0;
    (void)agent_world_pass(w);
    assert_true(a->rules.was_router);
    assert_int_equal(a->rules.routes.n, 1);
    agent_world_end(w);
}

/* The hub is told when a pass begins to fail, and when one succeeds again. */
static void test_a_fault_is_reported_once(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    nsec_t failed_at;

    agent_core_poll(a);
    *edges_changed(a) = false;
    agent_core_pass(a);
    assert_true(*edges_changed(a));
    *edges_changed(a) = false;
    agent_core_pass(a);
    assert_false(*edges_changed(a));
    a->listen_port = 7;
    w->engine.is_gone = true;
    assert_int_equal(rtnl_remove_link(w->nl, w->ifindex), 0);
    assert_non_null(strstr(
        agent_world_pass(w), "warning: weft: weft0 is not as the hub wants it, trying again: "));
    failed_at = w->now;
    assert_int_equal(a->listen_port, 0);
    assert_int_equal(a->pass.n_failed, 1);
    assert_true(a->pass.due_at > failed_at);
    assert_true(*edges_changed(a));
    *edges_changed(a) = false;
    agent_core_pass(a);
    assert_int_equal(a->pass.n_failed, 2);
    assert_false(*edges_changed(a));
    agent_world_end(w);
}

/* A reason why rates are not kept is logged once, and that it is over. */
static void test_rates_that_are_not_kept(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct object edge = sample_edge(2, 3, EDGE_PATH_AUTO);
    const char *log;
    char words[400];

    agent_core_poll(a);
    (void)agent_world_pass(w);
    edge.edge.rate = 20000000;
    sample_put(&a->snapshot, edge);
    *edges_changed(a) = false;
    log = agent_world_pass(w);
    (void)snprintf(words, sizeof(words), "warning: weft: weft0: its rates are not kept: %s\n",
        a->reconcile.rates_why);
    assert_non_null(strstr(log, words));
    assert_string_not_equal(a->rates_why, "");
    assert_true(*edges_changed(a));
    *edges_changed(a) = false;
    assert_null(strstr(agent_world_pass(w), "rates"));
    assert_false(*edges_changed(a));
    sample_put(&a->snapshot, sample_edge(2, 3, EDGE_PATH_AUTO));
    assert_non_null(strstr(
        agent_world_pass(w), "info: weft: weft0: nothing stands against its rates any more\n"));
    assert_string_equal(a->rates_why, "");
    agent_world_end(w);
}

/* ---- what is rendered, and begun ------------------------------------------------------------- */

static void test_what_is_rendered(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct render_input in;
    struct rtnl_link lan;

    assert_int_equal(rtnl_add_link(w->nl, "lan0", "bridge"), 0);
    assert_int_equal(rtnl_find_link(w->nl, "lan0", &lan), 0);
    assert_int_equal(rtnl_set_link(w->nl, lan.ifindex, true, 0), 0);
    agent_world_put_hub(&a->snapshot, "hub-b");
    agent_core_poll(a);
    agent_core_pass(a);
    agent_core_poll(a);
    a->listen_port = 7;
    in = agent_core_render_input(a);
    assert_ptr_equal(in.snapshot, &a->snapshot);
    assert_string_equal(in.relay, a->hubs.serving->name);
    assert_int_equal(in.listen_port, 7);
    /* That of the largest link, without what goes around a packet. */
    assert_int_equal(in.link_mtu, 1440);
    assert_int_equal(in.keepalive, node_keepalive_interval(&a->keepalive));
    assert_int_equal(in.pins, path_driver_pins(a->paths));
    assert_false(in.relays);
    assert_int_equal(in.n_paths, 2);
    assert_string_equal(in.paths[0].node, "hub");
    assert_string_equal(in.paths[1].node, "hub-b");
    a->state.listen_port = 8;
    assert_int_equal(agent_core_render_input(a).listen_port, 8);
    /* A relay is a node that wants to be one, may be one, and has the engine for it. */
    a->state.wants_relay = true;
    ((struct node *)snapshot_self(&a->snapshot))->relay = true;
    assert_false(agent_core_render_input(a).relays);
    a->state.engine = ENGINE_KIND_USERSPACE;
    assert_true(agent_core_render_input(a).relays);
    assert_int_equal(path_driver_self(a->paths)->relay_run, 0);
    assert_non_null(strstr(agent_world_pass(w), "this node relays for others now"));
    assert_true(path_driver_self(a->paths)->relay_run != 0);
    a->state.wants_relay = false;
    assert_false(agent_core_render_input(a).relays);
    a->state.wants_relay = true;
    ((struct node *)snapshot_self(&a->snapshot))->relay = false;
    assert_false(agent_core_render_input(a).relays);
    agent_world_end(w);
}

/* A hub that was started anew sees a handshake of each edge to a stock peer that had one. */
static void test_a_hub_that_has_forgotten(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    struct object finder = sample_node(4);
    unsigned before;

    agent_core_poll(a);
    agent_core_pass(a);
    agent_core_poll(a);
    before = w->engine.n_handshakes;
    agent_core_on_hub_forgot(a, w->now);
    assert_int_equal(w->engine.n_handshakes, before);
    for (unsigned n = 1; n <= 4; n++)
        if (n != 2)
            agent_world_peer(w, n)->facts.handshake_sec = agent_world_wall() / SEC - 10;
    agent_core_poll(a);
    before = w->engine.n_handshakes;
    agent_core_on_hub_forgot(a, w->now);
    assert_int_equal(w->engine.n_handshakes, before + 2);
    /* With one that finds paths the end that begins is settled otherwise. */
    finder.node.side = calloc(1, sizeof(*finder.node.side));
    assert_non_null(finder.node.side);
    sample_put(&a->snapshot, finder);
    before = w->engine.n_handshakes;
    agent_core_on_hub_forgot(a, w->now);
    assert_int_equal(w->engine.n_handshakes, before + 1);
    agent_world_end(w);
}

/* For who debugs: what comes next begins it anyway. */
static void test_a_handshake_that_cannot_be_begun(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    const struct x25519_public n4 = sample_key(4);
    char key[X25519_BASE64_MAX];
    char words[160];
    const char *log;

    agent_core_poll(a);
    agent_core_pass(a);
    agent_world_peer(w, 4)->facts.handshake_sec = agent_world_wall() / SEC;
    agent_core_poll(a);
    assert_int_equal(snapshot_delete(&a->snapshot, &node_kind, "n4", NULL), 0);
    assert_int_equal(rtnl_set_link(w->nl, w->ifindex, false, 0), 0);
    a->hubs.serving->health.wants_handshake = true;
    log_init("weft", LOG_LEVEL_DEBUG);
    log = agent_world_pass(w);
    log_init("weft", LOG_LEVEL_INFO);
    assert_null(strstr(log, "no handshake with the hub"));
    (void)snprintf(words, sizeof(words),
        "debug: weft: no handshake with %s: there is no such peer\n",
        x25519_public_format(&n4, key));
    assert_non_null(strstr(log, words));
    agent_world_end(w);
}

/* Who had a session hears of this node when the interface was down, since the engine has forgotten
 * it. */
static void test_sessions_that_the_engine_has_forgotten(void **state)
{
    struct agent_world *w = agent_world_make(state);
    struct agent *a = &w->agent;
    unsigned before;

    agent_core_poll(a);
    agent_core_pass(a);
    agent_world_peer(w, 3)->facts.handshake_sec = agent_world_wall() / SEC - 10;
    agent_world_peer(w, 4)->facts.handshake_sec = agent_world_wall() / SEC - 300;
    agent_core_poll(a);
    before = w->engine.n_handshakes;
    agent_core_pass(a);
    assert_int_equal(w->engine.n_handshakes, before);
    assert_int_equal(rtnl_set_link(w->nl, w->ifindex, false, 0), 0);
    agent_core_pass(a);
    assert_int_equal(w->engine.n_handshakes, before + 1);
    agent_world_end(w);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, netns_enter, netns_leave)

int main(int argc, char *argv[])
{
    static const struct CMUnitTest tests[] = {
        TEST(test_what_somebody_has_done_is_logged),
        TEST(test_an_engine_that_was_opened),
        TEST(test_an_interface_that_is_renamed_or_deleted),
        TEST(test_rules_for_what_is_forwarded),
        TEST(test_a_fault_is_reported_once),
        TEST(test_rates_that_are_not_kept),
        TEST(test_what_is_rendered),
        TEST(test_a_hub_that_has_forgotten),
        TEST(test_a_handshake_that_cannot_be_begun),
        TEST(test_sessions_that_the_engine_has_forgotten),
    };

    /* As the engine's process, which cannot run here. */
    if (argc > 1)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
