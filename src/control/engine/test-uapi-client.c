/* test-uapi-client.c - the client's side of the configuration protocol, line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"
#include "engine/uapi_client.h"
#include "mesh/config/diff.h"
#include "mesh/config/wg_config.h"
#include "net/tun/offload.h"
#include "relay/line.h"

#define KEY_1 "0100000000000000000000000000000000000000000000000000000000000000"
#define KEY_2 "0200000000000000000000000000000000000000000000000000000000000000"
#define KEY_3 "0300000000000000000000000000000000000000000000000000000000000000"
#define ZERO  "0000000000000000000000000000000000000000000000000000000000000000"

static struct ip_prefix prefix(const char *text)
{
    struct ip_prefix p;

    assert_int_equal(ip_prefix_parse(&p, text, NULL), 0);
    return p;
}

static struct wg_peer peer(uint8_t number, const char *endpoint, const char *block)
{
    struct wg_peer p = {.key = {.b = {number}}};
    struct ip_prefix allowed = prefix(block);

    if (endpoint)
        assert_int_equal(endpoint_parse(&p.endpoint, endpoint, NULL), 0);
    assert_int_equal(wg_peer_allow(&p, &allowed), 0);
    return p;
}

static void add(struct wg_config *c, struct wg_peer p)
{
    assert_int_equal(wg_config_add(c, &p), 0);
}

static void check_request(
    const struct wg_config *have, const struct wg_config *want, const char *expected)
{
    static const struct x25519_secret secret = {.b = {0xab}};
    struct diff d = DIFF_NULL;
    struct str out = STR_NULL;

    assert_int_equal(diff_make(&d, have, want, NULL), 0);
    uapi_client_encode(&d, &secret, &out);
    assert_string_equal(str_text(&out), expected);
    str_deinit(&out);
    diff_deinit(&d);
}

static void test_encode(void **state)
{
    struct wg_config none = WG_CONFIG_NULL;
    struct wg_config first = {.public = {.b = {1}}, .listen_port = 51820, .fwmark = 9};
    struct wg_config second = {.public = {.b = {1}}, .listen_port = 51820, .fwmark = 9};

    add(&first, peer(1, "192.0.2.1:7", "10.42.0.1/32"));
    add(&first, peer(2, "[2001:db8::1]:7", "fd5a::2/128"));
    first.peers[0].keepalive = 10;
    first.peers[0].pin = PIN_SESSION;
    first.peers[0].is_relayed = true;
    first.is_relay = true;
    first.peers[0].mtu = 1424;
    first.peers[0].rate = 20000000;
    first.rates.all = 100000000;
    first.rates.classes[TRAFFIC_CLASS_BULK] = 100000;
    first.shows_dscp = true;
    first.peers[1].cipher = (struct noise_choice){AEAD_CIPHER_AES256GCM, true};
    check_request(&none, &first,
        "set=1\n"
        "private_key=ab00000000000000000000000000000000000000000000000000000000000000\n"
        "listen_port=51820\n"
        "fwmark=9\n"
        "relay=true\n"
        "rate=100000000\n"
        "class_rate=bulk:100000\n"
        "show_dscp=true\n"
        "public_key=" KEY_1 "\n"
        "endpoint=192.0.2.1:7\n"
        "persistent_keepalive_interval=10\n"
        "pinned_endpoint=session\n"
        "relayed=true\n"
        "mtu=1424\n"
        "peer_rate=20000000\n"
        "replace_allowed_ips=true\n"
        "allowed_ip=10.42.0.1/32\n"
        "public_key=" KEY_2 "\n"
        "endpoint=[2001:db8::1]:7\n"
        "cipher=aes256gcm,chacha20poly1305\n"
        "replace_allowed_ips=true\n"
        "allowed_ip=fd5a::2/128\n"
        "\n");

    first.peers[1].psk.b[0] = 1;
    second.rates.all = 100000000;
    add(&second, peer(2, "[2001:db8::1]:8", "fd5a::3/128"));
    add(&second, peer(3, NULL, "10.42.0.3/32"));
    check_request(&first, &second,
        "set=1\n"
        "relay=false\n"
        "class_rate=bulk:0\n"
        "show_dscp=false\n"
        "public_key=" KEY_1 "\n"
        "remove=true\n"
        "public_key=" KEY_2 "\n"
        "update_only=true\n"
        "preshared_key=" ZERO "\n"
        "endpoint=[2001:db8::1]:8\n"
        "cipher=chacha20poly1305\n"
        "replace_allowed_ips=true\n"
        "allowed_ip=fd5a::3/128\n"
        "public_key=" KEY_3 "\n"
        "replace_allowed_ips=true\n"
        "allowed_ip=10.42.0.3/32\n"
        "\n");
    wg_config_deinit(&first);
    wg_config_deinit(&second);
}

static void test_handshake(void **state)
{
    struct x25519_public key = {.b = {1}};
    struct str out = STR_NULL;

    uapi_client_encode_handshake(&key, &out);
    assert_string_equal(str_text(&out), "set=1\n"
                                        "public_key=" KEY_1 "\n"
                                        "update_only=true\n"
                                        "handshake=now\n"
                                        "\n");
    str_deinit(&out);
}

static void test_decode(void **state)
{
    static const char answer[] =
        "private_key=ab00000000000000000000000000000000000000000000000000000000000000\n"
        "listen_port=40000\n"
        "listen_errno=98\n"
        "fwmark=0x1f\n"
        "socket_drops=41\n"
        "relay=true\n"
        "relay_capacity=10000000\n"
        "relay_rate=9500000\n"
        "relay_level=full\n"
        "relay_closed=true\n"
        "relay_pair_away=" KEY_1 "," KEY_2 ",5000000\n"
        "relay_pair=" KEY_1 "," KEY_3 ",4500000\n"
        "rate=100000000\n"
        "class_rate=bulk:20000000\n"
        "class_rate=unheard-of:1\n"
        "group_rate=16:400000\n"
        "show_dscp=true\n"
        "weather=sunny\n"
        "public_key=" KEY_1 "\n"
        "preshared_key=" KEY_3 "\n"
        "protocol_version=1\n"
        "endpoint=192.0.2.1:7\n"
        "last_handshake_time_sec=1790000000\n"
        "last_handshake_time_nsec=123\n"
        "tx_bytes=5\n"
        "peer_rate=5000000\n"
        "rate_group=16\n"
        "rx_bytes=18446744073709551615\n"
        "rx_datagrams=1000\n"
        "rx_lost=18446744073709551615\n"
        "rx_reordered=7\n"
        "rx_repeated=3\n"
        "persistent_keepalive_interval=25\n"
        "cipher=aes256gcm\n"
        "session_cipher=aes256gcm\n"
        "pinned_endpoint=session\n"
        "relayed=true\n"
        "mtu=8928\n"
        "allowed_ip=10.42.0.1/32\n"
        "allowed_ip=fd5a::1/128\n"
        "public_key=" KEY_2 "\n"
        "errno=0\n"
        "\n";
    struct wg_config c = WG_CONFIG_NULL;
    struct err e = ERR_NULL;
    char text[ENDPOINT_TEXT_MAX];

    assert_int_equal(uapi_client_decode(&c, answer, strlen(answer), &e), 0);
    assert_false(x25519_public_is_none(&c.public));
    assert_int_equal(c.listen_port, 40000);
    assert_int_equal(c.listen_errno, EADDRINUSE);
    assert_int_equal(c.fwmark, 31);
    assert_int_equal(c.n_peers, 2);
    assert_int_equal(c.peers[0].psk.b[0], 3);
    assert_string_equal(endpoint_format(&c.peers[0].endpoint, text), "192.0.2.1:7");
    assert_int_equal(c.peers[0].keepalive, 25);
    assert_int_equal(c.peers[0].cipher.wanted, AEAD_CIPHER_AES256GCM);
    assert_int_equal(c.peers[0].pin, PIN_SESSION);
    assert_int_equal(c.peers[1].pin, PIN_NONE);
    assert_true(c.is_relay && c.peers[0].is_relayed && !c.peers[1].is_relayed);
    assert_true(noise_choice_is_null(c.peers[1].cipher));
    assert_int_equal(c.peers[0].n_allowed, 2);
    assert_int_equal(c.peers[0].facts.handshake_sec, 1790000000);
    assert_int_equal(c.peers[0].facts.handshake_nsec, 123);
    assert_true(c.peers[0].facts.rx_bytes == UINT64_MAX);
    assert_int_equal(c.peers[0].facts.tx_bytes, 5);
    assert_int_equal(c.socket_drops, 41);
    assert_non_null(c.line);
    assert_int_equal(c.line->capacity, 10000000);
    assert_int_equal(c.line->rate, 9500000);
    assert_int_equal(c.line->level, RELAY_LINE_FULL);
    assert_int_equal(c.line->n_pairs, 2);
    assert_true(c.line->pairs[0].is_away && !c.line->pairs[1].is_away);
    assert_int_equal(c.line->pairs[0].pair.rate, 5000000);
    assert_int_equal(c.line->pairs[1].pair.keys[1].b[0], 3);
    assert_true(c.line->notice.is_closed);
    assert_int_equal(c.line->notice.n_away, 1);
    assert_true(c.line->notice.away[0] ==
                path_pair_tag(&c.line->pairs[0].pair.keys[0], &c.line->pairs[0].pair.keys[1]));
    assert_int_equal(c.peers[0].facts.arrivals.received, 1000);
    assert_true(c.peers[0].facts.arrivals.lost == UINT64_MAX);
    assert_int_equal(c.peers[0].facts.arrivals.reordered, 7);
    assert_int_equal(c.peers[0].facts.arrivals.repeated, 3);
    assert_int_equal(c.peers[1].facts.arrivals.received, 0);
    assert_int_equal(c.peers[0].mtu, 8928);
    assert_int_equal(c.peers[1].mtu, 0);
    assert_true(c.peers[0].rate == 5000000 && c.peers[1].rate == 0);
    assert_true(c.rates.all == 100000000);
    assert_true(c.rates.classes[TRAFFIC_CLASS_BULK] == 20000000);
    assert_true(c.rates.classes[TRAFFIC_CLASS_NORMAL] == 0);
    assert_true(c.shows_dscp);
    assert_int_equal(c.peers[1].n_allowed, 0);
    wg_config_deinit(&c);
}

/* How datagrams arrive. */
static void test_decode_merging(void **state)
{
    static const char answer[] =
        "merging_ifindex=3\nmerging_percent=97\nmerging_age_s=12\nerrno=0\n\n";
    static const char wrong[] = "merging_ifindex=3\nmerging_percent=101\nerrno=0\n\n";
    struct wg_config c = WG_CONFIG_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(uapi_client_decode(&c, wrong, strlen(wrong), &e), -EBADMSG);
    assert_string_equal(e.text, "the engine answered with a wrong merging_percent");
    assert_int_equal(uapi_client_decode(&c, answer, strlen(answer), &e), 0);
    assert_int_equal(c.merging_ifindex, 3);
    assert_int_equal(c.merging_percent, 97);
    assert_int_equal(c.merging_age_s, 12);
    wg_config_deinit(&c);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *answer;
        int r;
        const char *says;
    } cases[] = {
        {"errno=0\n\n", 0, ""},
        {"errno=22\n\n", -EINVAL, "the engine refused: Invalid argument"},
        {"errno=-98\n\n", -EADDRINUSE, "the engine refused: Address already in use"},
        {"", -EBADMSG, "the engine's answer does not end with errno"},
        {"listen_port=1\n\n", -EBADMSG, "the engine's answer does not end with errno"},
        {"listen_port=65536\nerrno=0\n\n", -EBADMSG,
            "the engine answered with a wrong listen_port"},
        {"fwmark=-1\nerrno=0\n\n", -EBADMSG, "the engine answered with a wrong fwmark"},
        {"private_key=zz\nerrno=0\n\n", -EBADMSG, "the engine answered with a wrong private_key"},
        {"public_key=00\nerrno=0\n\n", -EBADMSG, "the engine answered with a wrong public_key"},
        {"public_key=" KEY_1 "\nallowed_ip=10.0.0.0/33\nerrno=0\n\n", -EBADMSG,
            "the engine answered with a wrong allowed_ip"},
        {"public_key=" KEY_1 "\nendpoint=nowhere\nerrno=0\n\n", -EBADMSG,
            "the engine answered with a wrong endpoint"},
        {"public_key=" KEY_1 "\nrx_lost=-1\nerrno=0\n\n", -EBADMSG,
            "the engine answered with a wrong rx_lost"},
        {"public_key=" KEY_1 "\nrx_bytes=1x\nerrno=0\n\n", -EBADMSG,
            "the engine answered with a wrong rx_bytes"},
        {"class_rate=bulk\nerrno=0\n\n", -EBADMSG, "the engine answered with a wrong class_rate"},
        {"hello\n\n", -EBADMSG, "the engine answered with \"hello\""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct err e = ERR_NULL;

        assert_int_equal(
            uapi_client_result(cases[i].answer, strlen(cases[i].answer), &e), cases[i].r);
        assert_string_equal(e.text, cases[i].says);
    }
}

static void test_long_line(void **state)
{
    char text[UAPI_CLIENT_LINE_MAX + 3];
    struct err e = ERR_NULL;

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\n';
    assert_int_equal(uapi_client_result(text, sizeof(text), &e), -EBADMSG);
    assert_string_equal(e.text, "the engine answered with a line of 1026 bytes");
}

/* The answer to "stats=1" has other lines, too. */
static void test_offloads(void **state)
{
    static const char good[] =
        "cipher=chacha20poly1305\noffload_udp-gso=off\noffload_udp-gso_why=it got lost\n"
        "offload_udp-gro=on\noffload_tso=on\noffload_uso=on\noffload_lro=on\npeers=3\nerrno=0\n\n";
    static const char *const bad[] = {
        "offload_udp-gso=on\noffload_udp-gro=on\noffload_tso=on\nerrno=0\n\n",
        "offload_udp-gso=perhaps\noffload_udp-gro=on\noffload_tso=on\noffload_uso=on\nerrno=0\n\n",
        "hello\n\n",
        "",
    };
    struct offloads o;
    struct err e = ERR_NULL;

    assert_int_equal(uapi_client_decode_stats(&o, NULL, good, strlen(good), &e), 0);
    assert_false(o.on[OFFLOAD_UDP_GSO]);
    assert_string_equal(o.why[OFFLOAD_UDP_GSO], "it got lost");
    assert_true(o.on[OFFLOAD_UDP_GRO] && o.on[OFFLOAD_TSO] && o.on[OFFLOAD_USO]);
    assert_string_equal(o.why[OFFLOAD_TSO], "");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(uapi_client_decode_stats(&o, NULL, bad[i], strlen(bad[i]), &e), -EBADMSG);
    assert_int_equal(uapi_client_decode_stats(&o, NULL, "errno=22\n\n", 10, &e), -EINVAL);
}

/* Of the same answer; a process of an older version does not say it. */
static void test_abilities(void **state)
{
    static const char yes[] = "peers=3\nrates=true\nnext_keys=true\nerrno=0\n\n";
    static const char older[] = "peers=3\nrates=true\nerrno=0\n\n";
    static const char oldest[] = "peers=3\nerrno=0\n\n";
    struct uapi_abilities can = {.keeps_rates = false};
    struct err e = ERR_NULL;

    assert_int_equal(uapi_client_decode_stats(NULL, &can, yes, strlen(yes), &e), 0);
    assert_true(can.keeps_rates && can.has_next_keys);
    assert_int_equal(uapi_client_decode_stats(NULL, &can, older, strlen(older), &e), 0);
    assert_true(can.keeps_rates && !can.has_next_keys);
    assert_int_equal(uapi_client_decode_stats(NULL, &can, oldest, strlen(oldest), &e), 0);
    assert_false(can.keeps_rates || can.has_next_keys);
    assert_int_equal(uapi_client_decode_stats(NULL, &can, "rates=true\n\n", 12, &e), -EBADMSG);
}

/* A change of keys, from both keys to the next one alone. */
static void test_encode_next_keys(void **state)
{
    static const struct x25519_secret secret = {.b = {0xab}}, next = {.b = {0xcd}};
    struct wg_config have = {.public = {.b = {9}}};
    struct wg_config both = {
        .public = {.b = {9}}, .next_public = {.b = {8}}, .initiate_with_next = true};
    struct wg_config want = {.public = {.b = {8}}};
    struct diff d = DIFF_NULL;
    struct str out = STR_NULL;

    add(&have, peer(1, NULL, "10.42.0.1/32"));
    add(&both, peer(1, NULL, "10.42.0.1/32"));
    add(&want, peer(2, NULL, "10.42.0.1/32"));
    both.peers[0].next_key.b[0] = 2;
    both.peers[0].initiate_with_current = true;
    assert_int_equal(diff_make(&d, &have, &both, NULL), 0);
    d.next_secret = &next;
    uapi_client_encode(&d, &secret, &out);
    assert_string_equal(str_text(&out),
        "set=1\n"
        "next_private_key=cd00000000000000000000000000000000000000000000000000000000000000\n"
        "initiate_with_next=true\n"
        "public_key=" KEY_1 "\n"
        "update_only=true\n"
        "next_public_key=" KEY_2 "\n"
        "initiate_with_current=true\n"
        "\n");
    str_deinit(&out);
    diff_deinit(&d);
    /* The engine has no next key any more, once it is the key; saying so harms nothing. */
    check_request(&both, &want,
        "set=1\n"
        "private_key=ab00000000000000000000000000000000000000000000000000000000000000\n"
        "next_private_key=" ZERO "\n"
        "initiate_with_next=false\n"
        "public_key=" KEY_2 "\n"
        "replaces=" KEY_1 "\n"
        "update_only=true\n"
        "initiate_with_current=false\n"
        "\n");
    wg_config_deinit(&have);
    wg_config_deinit(&both);
    wg_config_deinit(&want);
}

static void test_decode_next_keys(void **state)
{
    static const char answer[] =
        "private_key=" KEY_1 "\nnext_private_key=" KEY_2 "\ninitiate_with_next=true\n"
        "public_key=" KEY_1 "\nnext_public_key=" KEY_3 "\nheard_next=true\nsession_next=true\n"
        "initiate_with_current=true\npublic_key=" KEY_2 "\nerrno=0\n\n";
    static const char *const wrong[] = {
        "next_private_key=02\nerrno=0\n\n",
        "public_key=" KEY_1 "\nnext_public_key=" KEY_3 "0\nerrno=0\n\n",
    };
    struct wg_config c = WG_CONFIG_NULL;
    struct x25519_public expected;
    struct err e = ERR_NULL;

    assert_int_equal(uapi_client_decode(&c, answer, strlen(answer), &e), 0);
    assert_true(x25519_derive_public(&(struct x25519_secret){.b = {2}}, &expected));
    assert_true(x25519_public_equal(&c.next_public, &expected));
    assert_true(c.initiate_with_next);
    assert_int_equal(c.n_peers, 2);
    assert_int_equal(c.peers[0].next_key.b[0], 3);
    assert_true(c.peers[0].facts.heard_next && c.peers[0].facts.session_next);
    assert_true(c.peers[0].initiate_with_current);
    assert_true(x25519_public_is_none(&c.peers[1].next_key));
    assert_false(c.peers[1].facts.heard_next || c.peers[1].facts.session_next);
    assert_true(wg_config_has_next_keys(&c));
    wg_config_clear_next_keys(&c);
    assert_false(wg_config_has_next_keys(&c) || c.initiate_with_next);
    assert_false(c.peers[0].initiate_with_current);
    wg_config_deinit(&c);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(uapi_client_decode(&c, wrong[i], strlen(wrong[i]), &e), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_handshake),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_decode_merging),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_offloads),
        cmocka_unit_test(test_abilities),
        cmocka_unit_test(test_encode_next_keys),
        cmocka_unit_test(test_decode_next_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
