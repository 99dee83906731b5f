/*
 * test-genl-wg.c - changes of any size, cut into messages and put together again.
 *
 * A request has the same attributes as an answer, so the decoder of answers
 * reads back what the encoder wrote.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/wireguard.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/secret.h"
#include "mesh/config/diff.h"
#include "mesh/config/wg_config.h"
#include "net/netlink/genl_wg.h"

#define FAMILY  77
#define IFINDEX 5

static const struct x25519_secret secret = {.b = {9, 9, 9}};

static struct ip_prefix random_block(const struct rng *rng, unsigned number)
{
    struct ip_prefix p = {.len = 32};

    if (rng_u32(rng) % 2)
        p.addr = ip_addr_v4(
            (uint8_t[]){10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number});
    else
        p = (struct ip_prefix){
            .addr = ip_addr_v6((uint8_t[16]){0xfd, 0x5a, [13] = (uint8_t)(number >> 16),
                [14] = (uint8_t)(number >> 8), [15] = (uint8_t)number}),
            .len = 128};
    return p;
}

static struct wg_config make_config(const struct rng *rng, unsigned n_peers, unsigned n_blocks)
{
    struct wg_config c = {.listen_port = 51820, .fwmark = 7};
    unsigned number = 0;

    for (unsigned i = 0; i < n_peers; i++) {
        struct wg_peer p = {.keepalive = (uint16_t)(i % 3)};

        rng_fill(rng, p.key.b, sizeof(p.key.b));
        if (i % 2)
            rng_fill(rng, p.psk.b, sizeof(p.psk.b));
        if (i % 5)
            p.endpoint =
                (struct endpoint){.addr = random_block(rng, i).addr, .port = (uint16_t)(i + 1)};
        for (unsigned b = 0; b < n_blocks; b++) {
            struct ip_prefix block = random_block(rng, number++);

            assert_int_equal(wg_peer_allow(&p, &block), 0);
        }
        assert_int_equal(wg_config_add(&c, &p), 0);
    }
    assert_int_equal(wg_config_sort(&c, NULL), 0);
    return c;
}

/** Takes messages as the kernel would. */
struct receiver {
    struct wg_config config;
    unsigned n_messages;
    unsigned n_keys;     /* messages that carry the private key */
    unsigned n_replaces; /* peers whose blocks are replaced */
    unsigned n_removes;
};

static void count_flags(const struct nlattr *peers, struct receiver *rx)
{
    const struct nlattr *attrs[WGPEER_A_MAX + 1];
    const struct nlattr *peer;

    mnl_attr_for_each_nested(peer, peers) {
        uint32_t flags;

        netlink_attributes(
            mnl_attr_get_payload(peer), mnl_attr_get_payload_len(peer), attrs, WGPEER_A_MAX + 1);
        flags = mnl_attr_get_u32(attrs[WGPEER_A_FLAGS]);
        rx->n_replaces += (flags & WGPEER_F_REPLACE_ALLOWEDIPS) != 0;
        rx->n_removes += (flags & WGPEER_F_REMOVE_ME) != 0;
    }
}

static int receive(struct nlmsghdr *nlh, void *ctx)
{
    const struct nlattr *attrs[WGDEVICE_A_MAX + 1];
    struct receiver *rx = ctx;
    const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);

    assert_true(nlh->nlmsg_len <= NETLINK_MESSAGE_MAX);
    assert_int_equal(nlh->nlmsg_type, FAMILY);
    assert_int_equal(genl->cmd, WG_CMD_SET_DEVICE);
    netlink_attributes(mnl_nlmsg_get_payload_offset(nlh, sizeof(*genl)),
        mnl_nlmsg_get_payload_len(nlh) - sizeof(*genl), attrs, WGDEVICE_A_MAX + 1);
    assert_int_equal(mnl_attr_get_u32(attrs[WGDEVICE_A_IFINDEX]), IFINDEX);
    assert_null(attrs[WGDEVICE_A_FLAGS]); /* Never replaces all peers. */
    rx->n_messages++;
    rx->n_keys += attrs[WGDEVICE_A_PRIVATE_KEY] != NULL;
    count_flags(attrs[WGDEVICE_A_PEERS], rx);
    return genl_wg_decode(nlh, &rx->config);
}

static void check_equal(const struct wg_config *a, const struct wg_config *b)
{
    assert_int_equal(a->n_peers, b->n_peers);
    assert_int_equal(a->listen_port, b->listen_port);
    assert_int_equal(a->fwmark, b->fwmark);
    for (size_t i = 0; i < a->n_peers; i++) {
        const struct wg_peer *x = &a->peers[i];
        const struct wg_peer *y = &b->peers[i];

        assert_true(x25519_public_equal(&x->key, &y->key));
        assert_memory_equal(x->psk.b, y->psk.b, sizeof(x->psk.b));
        assert_true(endpoint_equal(&x->endpoint, &y->endpoint));
        assert_int_equal(x->keepalive, y->keepalive);
        assert_true(wg_peer_allows_equal(x, y));
    }
}

/* From nothing to everything. */
static void round_trip(unsigned n_peers, unsigned n_blocks, unsigned min_messages)
{
    uint64_t seed = n_peers * 1000 + n_blocks;
    struct rng rng = rng_seeded(&seed);
    struct wg_config want = make_config(&rng, n_peers, n_blocks);
    struct wg_config have = WG_CONFIG_NULL;
    struct receiver rx = {.n_messages = 0};
    struct diff d = DIFF_NULL;

    want.public.b[0] = 1;
    assert_int_equal(diff_make(&d, &have, &want, NULL), 0);
    assert_int_equal(genl_wg_encode(FAMILY, IFINDEX, &d, &secret, receive, &rx), 0);
    assert_int_equal(wg_config_sort(&rx.config, NULL), 0);
    check_equal(&rx.config, &want);
    assert_true(rx.n_messages >= min_messages);
    assert_int_equal(rx.n_keys, 1);
    assert_int_equal(rx.n_replaces, n_peers);
    diff_deinit(&d);
    wg_config_deinit(&want);
    wg_config_deinit(&rx.config);
}

static void test_round_trips(void **state)
{
    static const struct {
        unsigned n_peers;
        unsigned n_blocks;
        unsigned min_messages;
    } cases[] = {
        {0, 0, 1}, {1, 0, 1}, {1, 2, 1}, {3, 3, 1}, {700, 2, 3}, {3, 5000, 6}, {1, 1200, 1}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        round_trip(cases[i].n_peers, cases[i].n_blocks, cases[i].min_messages);
}

/* Sizes around the edge of a message. */
static void test_edge_of_message(void **state)
{
    for (unsigned n_blocks = 780; n_blocks < 830; n_blocks++)
        round_trip(2, n_blocks, 1);
    for (unsigned n_peers = 100; n_peers < 160; n_peers++)
        round_trip(n_peers, 1, 1);
}

static void test_removal(void **state)
{
    uint64_t seed = 1;
    struct rng rng = rng_seeded(&seed);
    struct wg_config have = make_config(&rng, 4, 2);
    struct wg_config want = {.listen_port = 51820, .fwmark = 7};
    struct receiver rx = {.n_messages = 0};
    struct diff d = DIFF_NULL;

    assert_int_equal(diff_make(&d, &have, &want, NULL), 0);
    assert_int_equal(genl_wg_encode(FAMILY, IFINDEX, &d, &secret, receive, &rx), 0);
    assert_int_equal(rx.n_removes, 4);
    assert_int_equal(rx.n_keys, 0);
    diff_deinit(&d);
    wg_config_deinit(&have);
    wg_config_deinit(&rx.config);
}

static int refuse(struct nlmsghdr *nlh, void *ctx)
{
    return -EPERM;
}

static void test_failure_is_passed_up(void **state)
{
    struct diff d = {.set_fwmark = true};

    assert_int_equal(genl_wg_encode(FAMILY, IFINDEX, &d, &secret, refuse, NULL), -EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_edge_of_message),
        cmocka_unit_test(test_removal),
        cmocka_unit_test(test_failure_is_passed_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
