/* test-uapi.c - lines of the configuration protocol: what is taken, and as what. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "uapi/uapi_internal.h"

#define KEY_HEX "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef"

static const char *const refused[] = {
    "",
    "=",
    "get",
    "get=",
    "get=2",
    "set=true",
    "stats=0",
    "nonsense=1",
    "GET=1",
    " get=1",
    "private_key=",
    "private_key=" KEY_HEX "0",
    "private_key=zz112233",
    "public_key=" KEY_HEX " ",
    "preshared_key=00",
    "listen_port=65536",
    "listen_port=-1",
    "listen_port=0x10",
    "listen_port=1 ",
    "fwmark=4294967296",
    "fwmark=",
    "hand_over=true",
    "replace_peers=1",
    "replace_peers=false",
    "remove=1",
    "update_only=yes",
    "replace_allowed_ips=",
    "endpoint=1.2.3.4",
    "endpoint=1.2.3.4:65536",
    "endpoint=example.org:1",
    "endpoint=::1:2",
    "endpoint=[::1]",
    "persistent_keepalive_interval=65536",
    "persistent_keepalive_interval=off",
    "allowed_ip=10.0.0.0/33",
    "allowed_ip=::/129",
    "allowed_ip=10.0.0/8",
    "allowed_ip=",
    "allowed_ip=--10.0.0.0/8",
    "allowed_ip=-",
    "cipher=",
    "cipher=aes",
    "cipher=aes256gcm,",
    "session_cipher=aes256gcm",
    "rx_lost=1",
    "socket_drops=1",
    "merging_percent=1",
    "mtu=",
    "mtu=575",
    "mtu=65536",
    "pinned_endpoint=1",
    "pinned_endpoint=sessions",
    "relay=1",
    "relay=",
    "relayed=yes",
    "relayed=session",
    "handshake=true",
    "rate=",
    "rate=99999",
    "rate=1000000000001",
    "rate=20Mbit",
    "class_rate=bulk",
    "class_rate=bulk:",
    "class_rate=bul:200000",
    "class_rate=:200000",
    "class_rate=bulk:5",
    "show_dscp=1",
    "next_private_key=",
    "next_private_key=" KEY_HEX "0",
    "next_public_key=none",
    "next_public_key=" KEY_HEX " ",
    "replaces=",
    "replaces=00",
    "initiate_with_next=1",
    "initiate_with_current=yes",
    "heard_next=true",
    "session_next=true",
    "peer_rate=-1",
    "access=",
    "access",
    "access_counts=2",
    "access_tag=1",
};

static void test_refused(void **state)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        struct uapi_item item = {.key = UAPI_KEY_N};

        if (uapi_parse(&item, refused[i]) != -EINVAL)
            fail_msg("\"%s\" was taken", refused[i]);
        assert_int_equal(item.key, UAPI_KEY_N);
    }
    assert_int_equal(uapi_parse(&(struct uapi_item){0}, "protocol_version=2"), -EPROTO);
}

static struct uapi_item parse(const char *line, enum uapi_key key)
{
    struct uapi_item item;

    if (uapi_parse(&item, line) != 0)
        fail_msg("\"%s\" was refused", line);
    assert_int_equal(item.key, key);
    return item;
}

static void test_rules(void **state)
{
    struct uapi_item item = parse("access=in set:0 10.42.0.2/32", UAPI_KEY_ACCESS);

    assert_string_equal(item.text, "in set:0 10.42.0.2/32");
    (void)parse("access_counts=1", UAPI_KEY_ACCESS_COUNTS);
}

static void test_cipher(void **state)
{
    struct uapi_item item = parse("cipher=aes256gcm", UAPI_KEY_CIPHER);

    assert_int_equal(item.cipher.wanted, AEAD_CIPHER_AES256GCM);
    assert_false(item.cipher.takes_any);
    item = parse("cipher=chacha20poly1305,aes256gcm", UAPI_KEY_CIPHER);
    assert_int_equal(item.cipher.wanted, AEAD_CIPHER_CHACHA20POLY1305);
    assert_true(item.cipher.takes_any);
}

static void test_flags(void **state)
{
    (void)parse("get=1", UAPI_KEY_GET);
    (void)parse("set=1", UAPI_KEY_SET);
    (void)parse("stats=1", UAPI_KEY_STATS);
    (void)parse("replace_peers=true", UAPI_KEY_REPLACE_PEERS);
    (void)parse("remove=true", UAPI_KEY_REMOVE);
    (void)parse("update_only=true", UAPI_KEY_UPDATE_ONLY);
    (void)parse("replace_allowed_ips=true", UAPI_KEY_REPLACE_ALLOWED_IPS);
    (void)parse("protocol_version=1", UAPI_KEY_PROTOCOL_VERSION);
    (void)parse("handshake=now", UAPI_KEY_HANDSHAKE);
    assert_int_equal(parse("mtu=1408", UAPI_KEY_MTU).number, 1408);
    assert_int_equal(parse("mtu=0", UAPI_KEY_MTU).number, 0);
    assert_int_equal(parse("pinned_endpoint=true", UAPI_KEY_PINNED).pin, PIN_FIXED);
    assert_int_equal(parse("pinned_endpoint=false", UAPI_KEY_PINNED).pin, PIN_NONE);
    assert_int_equal(parse("pinned_endpoint=session", UAPI_KEY_PINNED).pin, PIN_SESSION);
    assert_true(parse("relay=true", UAPI_KEY_RELAY).is_on);
    assert_true(parse("rate=95000000", UAPI_KEY_RATE).number == 95000000);
    assert_true(parse("rate=0", UAPI_KEY_RATE).number == 0);
    assert_int_equal(
        parse("class_rate=bulk:100000", UAPI_KEY_CLASS_RATE).class_rate.class, TRAFFIC_CLASS_BULK);
    assert_true(parse("class_rate=control:100000", UAPI_KEY_CLASS_RATE).class_rate.rate == 100000);
    assert_true(parse("show_dscp=true", UAPI_KEY_SHOW_DSCP).is_on);
    assert_false(parse("show_dscp=false", UAPI_KEY_SHOW_DSCP).is_on);
    assert_true(parse("peer_rate=1000000000000", UAPI_KEY_PEER_RATE).number == TRAFFIC_RATE_MAX);
    assert_false(parse("relay=false", UAPI_KEY_RELAY).is_on);
    assert_true(parse("relayed=true", UAPI_KEY_RELAYED).is_on);
}

static void test_next_keys(void **state)
{
    char hex[X25519_HEX_MAX];
    struct uapi_item item = parse("next_private_key=" KEY_HEX, UAPI_KEY_NEXT_PRIVATE_KEY);

    assert_int_equal(item.private_key.b[1], 0x11);
    item = parse("next_public_key=" KEY_HEX, UAPI_KEY_NEXT_PUBLIC_KEY);
    assert_string_equal(x25519_public_format_hex(&item.public_key, hex), KEY_HEX);
    item = parse("replaces=" KEY_HEX, UAPI_KEY_REPLACES);
    assert_string_equal(x25519_public_format_hex(&item.public_key, hex), KEY_HEX);
    assert_true(parse("initiate_with_next=true", UAPI_KEY_INITIATE_WITH_NEXT).is_on);
    assert_false(parse("initiate_with_next=false", UAPI_KEY_INITIATE_WITH_NEXT).is_on);
    assert_true(parse("initiate_with_current=true", UAPI_KEY_INITIATE_WITH_CURRENT).is_on);
    /* Of the device before the first peer, and of a peer after it. */
    assert_true(UAPI_KEY_INITIATE_WITH_NEXT < UAPI_KEY_PUBLIC_KEY);
    assert_true(UAPI_KEY_INITIATE_WITH_CURRENT > UAPI_KEY_PUBLIC_KEY);
}

static void test_values(void **state)
{
    char text[ENDPOINT_TEXT_MAX], prefix[IP_PREFIX_TEXT_MAX], hex[X25519_HEX_MAX];
    struct uapi_item item;

    item = parse("public_key=" KEY_HEX, UAPI_KEY_PUBLIC_KEY);
    assert_string_equal(x25519_public_format_hex(&item.public_key, hex), KEY_HEX);
    item = parse("preshared_key=" KEY_HEX, UAPI_KEY_PRESHARED_KEY);
    assert_int_equal(item.preshared_key.b[31], 0xef);
    item = parse("private_key=" KEY_HEX, UAPI_KEY_PRIVATE_KEY);
    assert_int_equal(item.private_key.b[1], 0x11);
    item = parse("listen_port=51820", UAPI_KEY_LISTEN_PORT);
    assert_int_equal(item.number, 51820);
    item = parse("fwmark=4294967295", UAPI_KEY_FWMARK);
    assert_int_equal(item.number, 0xffffffff);
    item = parse("persistent_keepalive_interval=25", UAPI_KEY_KEEPALIVE);
    assert_int_equal(item.number, 25);
    item = parse("endpoint=[fe80::1]:7", UAPI_KEY_ENDPOINT);
    assert_string_equal(endpoint_format(&item.endpoint, text), "[fe80::1]:7");
    item = parse("allowed_ip=10.1.2.3/8", UAPI_KEY_ALLOWED_IP);
    assert_false(item.allowed_ip.is_removal);
    item = parse("allowed_ip=-fd00::/8", UAPI_KEY_ALLOWED_IP);
    assert_true(item.allowed_ip.is_removal);
    assert_string_equal(ip_prefix_format(&item.allowed_ip.prefix, prefix), "fd00::/8");
    item = parse("allowed_ip=+10.0.0.1", UAPI_KEY_ALLOWED_IP);
    assert_int_equal(item.allowed_ip.prefix.len, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_cipher),
        cmocka_unit_test(test_next_keys),
        cmocka_unit_test(test_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
