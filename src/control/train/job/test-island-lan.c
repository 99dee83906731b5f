/* test-island-lan.c - which nodes of the island are reached over its private network, and the hosts
 * file that leads there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/text.h"
#include "train/job/node.h"

#define PEER(name, number, path, endpoint, rtt, island)                                            \
    "{\"name\":\"" name "\",\"address4\":\"10.42.0." number "\",\"address6\":\"fd5a::" number      \
    "\",\"path\":\"" path "\",\"endpoint\":" endpoint ",\"rttMs\":" rtt ",\"island\":\"" island    \
    "\"}"
#define STATUS(self, peers)                                                                        \
    "{\"self\":{\"name\":\"a\",\"address4\":\"10.42.0.2\",\"island\":\"" self                      \
    "\"},\"peers\":[" peers "]}"

/* A hosts file's text of who is reached; the caller's to release. */
static struct island_lan lan_of(const char *status, struct str *ret_text)
{
    struct island_lan l = ISLAND_LAN_NULL;
    json_t *json = json_loads(status, 0, NULL);

    assert_non_null(json);
    assert_int_equal(island_lan_of_status(&l, json), 0);
    json_decref(json);
    *ret_text = (struct str)STR_NULL;
    island_lan_format(&l, ret_text);
    return l;
}

static void check(const char *status, const char *wanted)
{
    struct str text;
    struct island_lan l = lan_of(status, &text);

    assert_string_equal(str_text(&text), wanted);
    str_deinit(&text);
    island_lan_deinit(&l);
}

static void test_who_is_reached(void **state)
{
    /* Found: near, on the private network. Not: far, at a public address, through a relay. */
    check(STATUS("", PEER("b", "3", "lan", "\"10.1.0.3:51820\"", "0.3", "") "," PEER(
                         "c", "4", "lan", "\"10.1.0.4:51820\"", "50", "") "," PEER("d", "5",
                         "direct", "\"198.51.100.5:51820\"", "0.4",
                         "") "," PEER("e", "6", "relay", "null", "0.4", "")),
        "10.1.0.3\tb\n");
    /* By a label, however far, but still only where the packets go over a private network. */
    check(STATUS("rack", PEER("b", "3", "lan", "\"10.1.0.3:51820\"", "3", "rack") "," PEER("c", "4",
                             "direct", "\"198.51.100.4:51820\"", "0.4", "rack") "," PEER("d", "5",
                             "lan", "\"10.1.0.5:51820\"", "0.2", "other") "," PEER("e", "6", "lan",
                             "\"[fd00:1::6]:51820\"", "0.2", "rack")),
        "10.1.0.3\tb\nfd00:1::6\te\n");
    /* A link-local address says nothing without its interface. */
    check(STATUS("rack", PEER("b", "3", "lan", "\"169.254.0.3:51820\"", "0.3", "rack")), "");
    check(STATUS("", ""), "");
}

static void test_hosts(void **state)
{
    static const char old[] = "127.0.0.1 localhost\n"
                              "\n"
                              "# weft begin default/a/5f02a1b3\n"
                              "10.42.0.2\ta.default.weft a\n"
                              "10.42.0.3\tb.default.weft b\n"
                              "fd5a::3\tb.default.weft b\n"
                              "10.42.0.6\te.default.weft e\n"
                              "fd5a::6\te.default.weft e\n"
                              "10.42.0.7\tf.default.weft\n"
                              "# weft end default/a/5f02a1b3\n"
                              "10.42.0.3";
    struct str text;
    struct island_lan l =
        lan_of(STATUS("rack", PEER("b", "3", "lan", "\"10.1.0.3:51820\"", "3", "rack") "," PEER(
                                  "e", "6", "lan", "\"[fd00:1::6]:51820\"", "0.2", "rack")),
            &text);

    str_deinit(&text);
    island_lan_hosts(&l, &text, old, strlen(old));
    assert_string_equal(str_text(&text), ISLAND_LAN_MARK "127.0.0.1 localhost\n"
                                                         "\n"
                                                         "# weft begin default/a/5f02a1b3\n"
                                                         "10.42.0.2\ta.default.weft a\n"
                                                         "10.1.0.3\tb.default.weft b\n"
                                                         "fd00:1::6\te.default.weft e\n"
                                                         "10.42.0.7\tf.default.weft\n"
                                                         "# weft end default/a/5f02a1b3\n"
                                                         "10.42.0.3");
    str_deinit(&text);
    island_lan_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_reached),
        cmocka_unit_test(test_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
