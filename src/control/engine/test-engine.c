/*
 * test-engine.c - what every data path must do, run against each that this machine has.
 *
 * The userspace one runs in this process: the data plane's device, reached
 * through the function that a hub would hand in. The kernel's is skipped where
 * the kernel has none. Each test is in a network namespace of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "base/secret.h"
#include "engine/engine.h"
#include "engine/engine_access.h"
#include "mesh/config/diff.h"
#include "mesh/config/wg_config.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "port/device.h"
#include "port/port.h"
#include "test/support/netns.h"
#include "uapi/uapi.h"

#define INTERFACE "wft0"

/** One data path under test. */
struct fixture {
    struct engine *engine; /* owns; NULL: this machine has it not */
    struct port *port;     /* owns; userspace only */
    struct device *device; /* owns; userspace only */
};

static const struct x25519_secret secret = {.b = {0x40, [31] = 0x41}};

static int call_device(void *ctx, const char *in, size_t len, struct str *out, struct err *e)
{
    size_t out_len;
    char *text;
    int r = uapi_handle(ctx, in, len, &text, &out_len);

    if (r != 0)
        return r;
    str_add_bytes(out, text, out_len);
    free(text);
    return 0;
}

static int open_userspace(struct fixture *f, struct err *e)
{
    const struct port_options port = {.offloads = offloads_all()};
    const struct device_options device = {.name = INTERFACE, .tun_fd = -1};
    int r = port_new(&f->port, &port, e);

    if (r == 0)
        r = device_new(&f->device, f->port, &device, e);
    if (r == 0)
        r = port_start(f->port, e);
    if (r == 0)
        r = engine_userspace_new(&f->engine, call_device, f->device);
    return r;
}

static int open_kernel(struct fixture *f, struct err *e)
{
    return engine_kernel_open(&f->engine, INTERFACE, e);
}

static int set_up(void **state, int (*open_it)(struct fixture *f, struct err *e))
{
    static struct fixture f;
    struct err e = ERR_NULL;
    int r;

    f = (struct fixture){0};
    *state = &f;
    if (unshare(CLONE_NEWNET) < 0) {
        (void)fprintf(stderr, "skipped: no network namespace: %s\n", strerror(errno));
        return 0;
    }
    r = open_it(&f, &e);
    if (r == 0)
        return 0;
    (void)fprintf(stderr, "skipped: %s\n", err_text(&e));
    f.engine = NULL;
    return r == ENGINE_E_UNSUPPORTED ? 0 : -1;
}

static int set_up_userspace(void **state)
{
    return set_up(state, open_userspace);
}

static int set_up_kernel(void **state)
{
    return set_up(state, open_kernel);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    f->engine = engine_close(f->engine);
    if (f->device)
        f->device = device_free(f->device);
    if (f->port) {
        port_stop(f->port);
        f->port = port_free(f->port);
    }
    return 0;
}

static struct engine *need(void **state)
{
    struct fixture *f = *state;

    if (!f->engine)
        skip();
    return f->engine;
}

/* ---- configurations ------------------------------------------------------------------------ */

static struct wg_config have(struct engine *engine)
{
    struct wg_config c = WG_CONFIG_NULL;
    struct err e = ERR_NULL;

    if (engine_get(engine, &c, &e) != 0)
        fail_msg("%s", err_text(&e));
    return c;
}

/* Peers that are a random choice of 20, with random properties. */
static struct wg_config random_config(const struct rng *rng)
{
    struct wg_config c = {.listen_port = (uint16_t)(30000 + rng_u32(rng) % 3)};

    assert_true(x25519_derive_public(&secret, &c.public));
    c.shows_dscp = rng_u32(rng) % 2 == 0;
    c.rates.all = rng_u32(rng) % 2 * TRAFFIC_RATE_MAX;
    c.rates.classes[rng_u32(rng) % TRAFFIC_CLASS_N] = rng_u32(rng) % 2 * TRAFFIC_RATE_MIN;
    for (uint8_t i = 1; i <= 20; i++) {
        struct wg_peer p = {.key = {.b = {i, 1}},
            .keepalive = (uint16_t)(rng_u32(rng) % 2 * 25),
            .rate = rng_u32(rng) % 2 * TRAFFIC_RATE_MIN};

        if (rng_u32(rng) % 3 == 0)
            continue;
        if (rng_u32(rng) % 2)
            p.psk.b[0] = 1;
        if (rng_u32(rng) % 2)
            p.endpoint = (struct endpoint){
                .addr = ip_addr_v4((uint8_t[]){127, 0, 0, 1}), .port = (uint16_t)(9 + i)};
        for (uint8_t b = 0, n_blocks = (uint8_t)(rng_u32(rng) % 4); b < n_blocks; b++) {
            struct ip_prefix v4 = {.addr = ip_addr_v4((uint8_t[]){10, 0, i, b}), .len = 32};
            struct ip_prefix v6 = {
                .addr = ip_addr_v6((uint8_t[16]){0xfd, [14] = i, [15] = b}), .len = 128};

            assert_int_equal(wg_peer_allow(&p, &v4), 0);
            assert_int_equal(wg_peer_allow(&p, &v6), 0);
        }
        assert_int_equal(wg_config_add(&c, &p), 0);
    }
    assert_int_equal(wg_config_sort(&c, NULL), 0);
    return c;
}

static void apply(struct engine *engine, const struct wg_config *want)
{
    struct wg_config now = have(engine);
    struct diff d = DIFF_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(diff_make(&d, &now, want, NULL), 0);
    if (engine_apply(engine, &d, &secret, &e) != 0)
        fail_msg("%s", err_text(&e));
    diff_deinit(&d);
    wg_config_deinit(&now);
}

/* ---- the contract -------------------------------------------------------------------------- */

static void test_fresh(void **state)
{
    struct wg_config c = have(need(state));

    assert_int_equal(c.n_peers, 0);
    assert_true(x25519_public_is_none(&c.public));
    wg_config_deinit(&c);
}

static void test_converges(void **state)
{
    struct engine *engine = need(state);
    uint64_t seed = 7;
    struct rng rng = rng_seeded(&seed);

    for (unsigned i = 0; i < 30; i++) {
        struct wg_config want = random_config(&rng);
        struct wg_config now;
        struct diff d = DIFF_NULL;

        if (engine->ops->check_rates(engine, NULL) != 0)
            wg_config_clear_rates(&want);
        apply(engine, &want);
        now = have(engine);
        assert_int_equal(now.n_peers, want.n_peers);
        assert_int_equal(diff_make(&d, &now, &want, NULL), 0);
        assert_true(diff_is_empty(&d));
        diff_deinit(&d);
        wg_config_deinit(&now);
        wg_config_deinit(&want);
    }
}

/* A peer that is nobody's wish any more leaves its blocks to others. */
static void test_block_moves(void **state)
{
    struct engine *engine = need(state);
    struct ip_prefix block = {.addr = ip_addr_v4((uint8_t[]){10, 0, 0, 1}), .len = 32};

    for (uint8_t owner = 1; owner <= 4; owner++) {
        struct wg_config want = WG_CONFIG_NULL;
        struct wg_config now;

        for (uint8_t i = 1; i <= 4; i++) {
            struct wg_peer p = {.key = {.b = {i, 1}}};

            if (i == owner)
                assert_int_equal(wg_peer_allow(&p, &block), 0);
            assert_int_equal(wg_config_add(&want, &p), 0);
        }
        assert_int_equal(wg_config_sort(&want, NULL), 0);
        apply(engine, &want);
        now = have(engine);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(now.peers[i].n_allowed, now.peers[i].key.b[0] == owner);
        wg_config_deinit(&now);
        wg_config_deinit(&want);
    }
}

static void test_interface_is_deleted(void **state)
{
    struct engine *engine = need(state);
    struct wg_config c = WG_CONFIG_NULL;
    struct err e = ERR_NULL;
    struct rtnl_link link;
    struct netlink nl;

    assert_int_equal(netlink_open(&nl, NETLINK_ROUTE), 0);
    assert_int_equal(rtnl_find_link(&nl, INTERFACE, &link), 0);
    assert_int_equal(rtnl_remove_link(&nl, link.ifindex), 0);
    netlink_close(&nl);
    /* In a process of its own the userspace engine ends with its interface. */
    if (engine->ops->kind == ENGINE_KIND_KERNEL)
        assert_int_equal(engine_get(engine, &c, &e), ENGINE_E_GONE);
}

static void test_rates(void **state)
{
    struct engine *engine = need(state);
    struct err e = ERR_NULL;
    int r = engine->ops->check_rates(engine, &e);

    assert_int_equal(r, engine->ops->kind == ENGINE_KIND_KERNEL ? ENGINE_E_UNSUPPORTED : 0);
    if (r != 0)
        assert_non_null(strstr(err_text(&e), "keeps no rates"));
}

static void test_next_keys(void **state)
{
    struct engine *engine = need(state);
    struct err e = ERR_NULL;
    int r = engine->ops->check_next_keys(engine, &e);

    assert_int_equal(r, engine->ops->kind == ENGINE_KIND_KERNEL ? ENGINE_E_UNSUPPORTED : 0);
    if (r != 0)
        assert_non_null(strstr(err_text(&e), "one key at a time"));
}

/* What it goes by, and nothing has come yet. */
static void expect_rules(struct engine *engine, bool is_on, uint64_t tag)
{
    struct engine_access a = {.is_on = false};
    struct err e = ERR_NULL;

    if (engine_get_access(engine, &a, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(a.is_on, is_on);
    assert_int_equal(a.tag, tag);
    assert_int_equal(a.n_rules + a.n_kinds + a.refused, 0);
    engine_access_deinit(&a);
}

/* All of them count, or none. */
static void test_rules(void **state)
{
    static const char rules[] =
        "self 10.42.0.2\nrefuse in\nset 10.42.0.1\nrule ssh\nallow tcp/22-22\nin set:0 10.42.0.2\n";
    struct engine *engine = need(state);
    struct err e = ERR_NULL;
    int r = engine_set_access(engine, rules, 7, &e);

    if (engine->ops->kind == ENGINE_KIND_KERNEL) {
        assert_int_equal(r, ENGINE_E_UNSUPPORTED);
        assert_non_null(strstr(err_text(&e), "goes by no rules"));
        return;
    }
    assert_int_equal(r, 0);
    expect_rules(engine, true, 7);
    assert_int_equal(engine_set_access(engine, "rule ssh\nallow ssh\n", 8, &e), -EINVAL);
    expect_rules(engine, true, 7);
    assert_int_equal(engine_set_access(engine, "", 9, &e), 0);
    expect_rules(engine, true, 9);
    assert_int_equal(engine_set_access(engine, NULL, 0, &e), 0);
    expect_rules(engine, false, 0);
    assert_int_equal(engine_set_access(engine, NULL, 0, &e), 0);
    assert_int_equal(engine_set_access(engine, rules, 10, &e), 0);
}

/* The kernel's engine keeps that to itself; the other one says why what is off is off. */
static void test_offloads(void **state)
{
    struct engine *engine = need(state);
    struct offloads o;
    struct err e = ERR_NULL;
    int r = engine->ops->offloads(engine, &o, &e);

    assert_int_equal(r, engine->ops->kind == ENGINE_KIND_KERNEL ? ENGINE_E_UNSUPPORTED : 0);
    for (int i = 0; r == 0 && i < OFFLOAD_N; i++)
        assert_int_equal(o.on[i], o.why[i][0] == '\0');
}

#define RUN_SEG 1000
#define RUN_N   20
/* In bursts of so many runs; many of them, and then it is in vain. */
#define BURST      100
#define BURSTS_MAX 200

/* Runs that the loopback hands on as they were sent are seen to come merged. */
static void test_merging(void **state)
{
    static const uint8_t bytes[RUN_N * RUN_SEG];
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(30000), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct engine *engine = need(state);
    struct wg_config want = {.listen_port = 30000};
    struct wg_config now = WG_CONFIG_NULL;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int seg = RUN_SEG;
    struct rtnl_link link;
    struct netlink nl;
    unsigned lo;

    if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof(seg)) < 0)
        skip();
    assert_int_equal(netlink_open(&nl, NETLINK_ROUTE), 0);
    lo = netns_raise_loopback(&nl);
    assert_int_equal(rtnl_find_link(&nl, INTERFACE, &link), 0);
    assert_int_equal(rtnl_set_link(&nl, link.ifindex, true, 0), 0);
    netlink_close(&nl);
    assert_true(x25519_derive_public(&secret, &want.public));
    apply(engine, &want);
    /* The port is opened once the interface is seen to be up. */
    for (unsigned i = 0; now.merging_ifindex == 0; i++) {
        assert_true(i < BURSTS_MAX);
        for (unsigned k = 0; k < BURST; k++)
            (void)sendto(fd, bytes, sizeof(bytes), 0, (const struct sockaddr *)&to, sizeof(to));
        wg_config_deinit(&now);
        now = have(engine);
    }
    assert_int_equal(now.merging_ifindex, lo);
    assert_int_equal(now.merging_percent, 100);
    wg_config_deinit(&now);
    (void)close(fd);
}

#define CONTRACT(set_up_it)                                                                        \
    cmocka_unit_test_setup_teardown(test_fresh, set_up_it, tear_down),                             \
        cmocka_unit_test_setup_teardown(test_converges, set_up_it, tear_down),                     \
        cmocka_unit_test_setup_teardown(test_block_moves, set_up_it, tear_down),                   \
        cmocka_unit_test_setup_teardown(test_offloads, set_up_it, tear_down),                      \
        cmocka_unit_test_setup_teardown(test_rates, set_up_it, tear_down),                         \
        cmocka_unit_test_setup_teardown(test_next_keys, set_up_it, tear_down),                     \
        cmocka_unit_test_setup_teardown(test_rules, set_up_it, tear_down),                         \
        cmocka_unit_test_setup_teardown(test_interface_is_deleted, set_up_it, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT(set_up_userspace),
        cmocka_unit_test_setup_teardown(test_merging, set_up_userspace, tear_down),
        CONTRACT(set_up_kernel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
