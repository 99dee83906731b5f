/* test-wg-quick.c - a configuration as text: for wg-quick, for a phone, for wg(8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/render/render.h"
#include "test/support/sample_mesh.h"

#define HUB_ENDPOINT "203.0.113.10:51820"

static struct wg_config render(const struct snapshot *s)
{
    struct render_input in = {.snapshot = s};
    struct wg_config c = WG_CONFIG_NULL;
    struct err e = ERR_NULL;

    if (render_config(&c, &in, &e) < 0)
        fail_msg("%s", err_text(&e));
    return c;
}

static void test_a_file(void **state)
{
    static const struct wg_quick_style style = {.key_file = WG_QUICK_KEY_FILE};
    struct snapshot s = sample_snapshot(2, 2);
    struct wg_config c = render(&s);
    size_t len = 0;
    char *text;

    c.peers[0].psk.b[31] = 1;
    c.listen_port = 51820;
    c.fwmark = 0xca6c;
    text = wg_quick_format(&c, &s, &style, &len);
    assert_string_equal(text,
        "# n2 in the network default\n"
        "[Interface]\n"
        "Address = 10.42.0.2/16, fd5a:1::2/64\n"
        "MTU = 1420\n"
        "ListenPort = 51820\n"
        "FwMark = 0xca6c\n"
        "PostUp = wg set %i private-key /etc/wireguard/%i.key\n"
        "PostUp = wg set %i peer "
        "AQAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= persistent-keepalive 10\n"
        "\n"
        "[Peer]\n"
        "# hub\n"
        "PublicKey = AQAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
        "PresharedKey = AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=\n"
        "AllowedIPs = 10.42.0.1/32, fd5a:1::1/128\n"
        "Endpoint = hub.example.org:51820\n");
    assert_int_equal(len, strlen(text));
    free(text);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

/* A hub that has a name is reached by it from a file, which lives long; an interface that runs is
 * told where the hub is today. */
static void test_names(void **state)
{
    static const struct wg_quick_style style = {.key_file = WG_QUICK_KEY_FILE};
    struct snapshot s = sample_snapshot(3, 2);
    struct node_hub *hub = s.nodes.items[0]->node.hub;
    struct wg_config c = render(&s);
    char *text;

    assert_non_null(hub);
    text = wg_quick_format(&c, &s, &style, NULL);
    assert_null(strstr(text, HUB_ENDPOINT));
    assert_non_null(strstr(text, "1::1/128\nEndpoint = hub.example.org:51820\n"));
    assert_non_null(strstr(text, "1::3/128\nEndpoint = hub.example.org:51820\n"));
    free(text);
    text = wg_quick_format_peers(&c, &s, NULL);
    assert_null(strstr(text, "example"));
    assert_non_null(strstr(text, "1::3/128\nEndpoint = " HUB_ENDPOINT "\n"));
    free(text);
    hub->n_names = 0;
    text = wg_quick_format(&c, &s, &style, NULL);
    assert_non_null(strstr(text, "1::3/128\nEndpoint = " HUB_ENDPOINT "\n"));
    free(text);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

/* For a phone: all in the text, the private key too, and nothing that may be left out. */
static void test_compact(void **state)
{
    const struct x25519_secret secret = {.b = {[31] = 2}};
    const struct wg_quick_style style = {.secret = &secret, .is_compact = true};
    struct snapshot s = sample_snapshot(2, 2);
    struct wg_config c = render(&s);
    char *text = wg_quick_format(&c, &s, &style, NULL);

    assert_string_equal(text, "[Interface]\n"
                              "PrivateKey=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAI=\n"
                              "Address=10.42.0.2/16,fd5a:1::2/64\n"
                              "MTU=1420\n"
                              "[Peer]\n"
                              "PublicKey=AQAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
                              "AllowedIPs=10.42.0.1/32,fd5a:1::1/128\n"
                              "Endpoint=hub.example.org:51820\n"
                              "PersistentKeepalive=10\n");
    free(text);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

/* For an interface that runs: the peers and nothing of the interface's own. */
static void test_peers(void **state)
{
    struct snapshot s = sample_snapshot(3, 2);
    struct wg_config c = render(&s);
    char *text = wg_quick_format_peers(&c, &s, NULL);

    assert_string_equal(text, "[Peer]\n"
                              "# hub\n"
                              "PublicKey = AQAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
                              "AllowedIPs = 10.42.0.1/32, fd5a:1::1/128\n"
                              "Endpoint = 203.0.113.10:51820\n"
                              "PersistentKeepalive = 10\n"
                              "\n"
                              "[Peer]\n"
                              "# n3\n"
                              "PublicKey = AwAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
                              "AllowedIPs = 10.42.0.3/32, fd5a:1::3/128\n"
                              "Endpoint = 203.0.113.10:51820\n");
    free(text);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file),
        cmocka_unit_test(test_compact),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_peers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
