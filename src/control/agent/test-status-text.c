/* test-status-text.c - the status as people read it, of JSON that an agent may have given. */
#include "agent/status_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"

static void expect(
    void (*format)(const json_t *json, struct str *out), const char *json, const char *expected)
{
    json_error_t error;
    json_t *parsed = json_loads(json, 0, &error);
    struct str out = STR_NULL;

    if (!parsed)
        fail_msg("%s: %s", error.text, json);
    format(parsed, &out);
    assert_string_equal(str_text(&out), expected);
    str_deinit(&out);
    json_decref(parsed);
}

/* What a status says of which nothing else is known: before its lines, and between them. An agent
 * of a version before findings has none. */
#define HEAD "? in the network ?: ?, ?\ninterface ? (no engine), MTU 0\n"
#define HUB  "hub ? at an unknown place: does not answer, last handshake never\n"
#define OLD                                                                                        \
    "what is wrong is not shown: the agent is of an older version than this command; systemctl "   \
    "restart weft-agent\n"
#define TAIL OLD "\nno other node yet\n"

/* A status with a list, "peers" or another, of @n items, each as @fmt makes it of its number. */
__attribute__((format(printf, 3, 0))) static void list_items(
    struct str *json, const char *list, const char *fmt, unsigned n)
{
    str_addf(json, "{\"%s\":[", list);
    for (unsigned i = 0; i < n; i++) {
        str_add(json, i > 0 ? "," : "");
        str_addf(json, fmt, i);
    }
    str_add(json, "]}");
}

/* The line is among those of the status. */
static void expect_line(const char *json, const char *line)
{
    json_t *parsed = json_loads(json, 0, NULL);
    struct str out = STR_NULL;

    assert_non_null(parsed);
    status_text_format(parsed, &out);
    if (!strstr(str_text(&out), line))
        fail_msg("no \"%s\" in \"%s\"", line, str_text(&out));
    str_deinit(&out);
    json_decref(parsed);
}

static void expect_no(const char *json, const char *words)
{
    json_t *parsed = json_loads(json, 0, NULL);
    struct str out = STR_NULL;

    assert_non_null(parsed);
    status_text_format(parsed, &out);
    if (strstr(str_text(&out), words))
        fail_msg("\"%s\" in \"%s\"", words, str_text(&out));
    str_deinit(&out);
    json_decref(parsed);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static void test_paths_of_which_none_was_tried(void **state)
{
    expect(status_text_format_paths,
        "{\"name\":\"n3\",\"path\":\"relay\",\"sinceSeconds\":5,\"framesSent\":7,"
        "\"guessesSent\":2,\"self\":{\"mapping\":\"endpoint-independent\",\"natted\":true},"
        "\"peer\":{\"mapping\":\"unknown\",\"blocked\":true}}",
        "n3 is reached by relay for 5 s, RTT -\n"
        "here: endpoint-independent mapping, behind a NAT\n"
        "there: unknown mapping, no NAT seen, UDP blocked\n"
        "7 path frames were sent, 2 of them guesses at ports\n"
        "\n"
        "nothing has been tried yet\n");
}

static void test_paths_to_a_peer_that_is_silent(void **state)
{
    expect(status_text_format_paths,
        "{\"name\":\"n3\",\"path\":\"relay\",\"sinceSeconds\":5,\"silentSeconds\":130,"
        "\"why\":\"it is so\"}",
        "n3 is reached by relay for 5 s, RTT -\n"
        "what was sent to it for 2 min has had no answer\n"
        "it is so\n"
        "here: unknown mapping, no NAT seen\n"
        "there: unknown mapping, no NAT seen\n"
        "0 path frames were sent, 0 of them guesses at ports\n"
        "\n"
        "nothing has been tried yet\n");
}

static void test_paths_with_all_that_was_tried(void **state)
{
    expect(status_text_format_paths,
        "{\"name\":\"n3\",\"path\":\"direct\",\"sinceSeconds\":65,\"rttMs\":1.25,"
        "\"why\":\"it is so\",\"rateBitsPerSecond\":20000000,\"framesSent\":9,\"guessesSent\":0,"
        "\"candidates\":["
        "{\"endpoint\":\"192.0.2.3:1\",\"type\":\"host\",\"ownSocket\":true,"
        "\"verdict\":\"chosen\",\"rttMs\":1.25,\"pings\":4,\"pongs\":3,\"triedSecondsAgo\":2},"
        "{}],"
        "\"relays\":[{\"name\":\"hub\",\"verdict\":\"silent\",\"rttMs\":5,\"peerRttMs\":6},"
        "{\"name\":\"r2\",\"verdict\":\"chosen\"}]}",
        "n3 is reached by direct for 65 s, RTT 1.2 ms\n"
        "it is so\n"
        "what is sent to it is kept to 20Mbit\n"
        "here: unknown mapping, no NAT seen\n"
        "there: unknown mapping, no NAT seen\n"
        "9 path frames were sent, 0 of them guesses at ports\n"
        "\n"
        "ENDPOINT     FOUND             VERDICT  RTT     ANSWERED  TRIED\n"
        "192.0.2.3:1  host, own socket  chosen   1.2 ms  3/4       2 s ago\n"
        "?            ?                 ?        -       0/0       never\n"
        "\n"
        "RELAY  VERDICT            RTT HERE  RTT THERE\n"
        "hub    not reached there  5.0 ms    6.0 ms\n"
        "r2     chosen             -         -\n");
}

/* ---- this node ------------------------------------------------------------------------------- */

static void test_status_of_which_little_is_known(void **state)
{
    expect(status_text_format, "{}", HEAD HUB TAIL);
    expect(status_text_format,
        "{\"self\":{\"name\":\"\",\"network\":7,\"interface\":\"weft0\",\"engine\":\"kernel\","
        "\"mtu\":1420,\"address4\":\"10.42.0.2\",\"address6\":\"fd5a:1::2\"}}",
        "? in the network ?: 10.42.0.2, fd5a:1::2\ninterface weft0 (kernel), MTU 1420\n" HUB TAIL);
}

static void test_an_uplink(void **state)
{
    expect_line("{\"self\":{\"rates\":{\"bitsPerSecond\":19000000},\"uplink\":{\"state\":\"found\","
                "\"bitsPerSecond\":20000000,\"why\":\"\"}}}",
        "all 19Mbit\nthe uplink is found to carry 20Mbit\nhub");
    expect_line("{\"self\":{\"uplink\":{\"state\":\"found\",\"bitsPerSecond\":20000000,"
                "\"why\":\"it was told a rate\"}}}",
        "MTU 0\nthe uplink is found to carry 20Mbit, and is not kept to it: it was told a "
        "rate\nhub");
    expect(status_text_format,
        "{\"self\":{\"uplink\":{\"state\":\"unknown\",\"why\":\"too few\"}}}", HEAD HUB TAIL);
    expect(status_text_format,
        "{\"self\":{\"uplink\":{\"state\":\"fast\",\"bitsPerSecond\":2400000000}}}", HEAD HUB TAIL);
}

static void test_rates(void **state)
{
    expect(status_text_format,
        "{\"self\":{\"rates\":{\"classes\":{\"bulk\":2500000},\"showsDscp\":true,"
        "\"why\":\"this engine cannot\"}}}",
        HEAD "rates that are kept: bulk 2.5Mbit\n"
             "what is sent shows its DSCP outside the tunnel\n" HUB TAIL);
    expect(status_text_format, "{\"self\":{\"rates\":{\"bitsPerSecond\":null,\"classes\":{}}}}",
        HEAD HUB TAIL);
    expect_line("{\"self\":{\"rates\":{\"bitsPerSecond\":100000000}},\"peers\":["
                "{\"name\":\"a\"},{\"name\":\"b\",\"rateBitsPerSecond\":20000000},"
                "{\"rateBitsPerSecond\":1000}]}",
        "MTU 0\nrates that are kept: all 100Mbit, to b 20Mbit, to ? 1kbit\nhub");
}

/* Ten peers are named, and the others counted. */
static void test_rates_of_many_peers(void **state)
{
    static const char peer[] = "{\"name\":\"n%u\",\"rateBitsPerSecond\":1000000}";
    struct str json = STR_NULL;

    list_items(&json, "peers", peer, 10);
    expect_line(str_text(&json), ", to n8 1Mbit, to n9 1Mbit\n");
    str_deinit(&json);
    json = (struct str)STR_NULL;
    list_items(&json, "peers", peer, 12);
    expect_line(str_text(&json), ", to n8 1Mbit, to n9 1Mbit, and to 2 others\n");
    str_deinit(&json);
}

static void test_keepalive(void **state)
{
    expect(status_text_format, "{\"keepalive\":{\"seconds\":10}}",
        HEAD HUB "keepalive 10 s; not measured yet: no reason is known\n" TAIL);
    expect(status_text_format,
        "{\"keepalive\":{\"seconds\":25,\"from\":\"network\",\"why\":\"no session\"}}",
        HEAD HUB "keepalive 25 s, which the network says; not measured yet: no session\n" TAIL);
    expect(status_text_format,
        "{\"keepalive\":{\"seconds\":21,\"from\":\"measured\",\"found\":\"the NAT forgets\","
        "\"measuredSecondsAgo\":180,\"why\":\"no session\"}}",
        HEAD HUB "keepalive 21 s: the NAT forgets, seen 3 min ago\n" TAIL);
}

/* ---- hubs, and the cluster --------------------------------------------------------------------
 */

static void test_hub_that_answers_or_is_silent(void **state)
{
    /* An older agent does not say after how long its hub is silent. */
    expect_line("{\"hub\":{\"name\":\"h\",\"endpoint\":\"192.0.2.1:1\",\"reachable\":true,"
                "\"silentSeconds\":6,\"handshakeAgeSeconds\":0}}",
        "\nhub h at 192.0.2.1:1: answers, last handshake 0 s ago\n");
    expect_line("{\"hub\":{\"reachable\":true,\"silentSeconds\":7}}",
        "\nhub ? at an unknown place: silent for 7 s, last handshake never\n");
    expect_line("{\"hub\":{\"reachable\":true,\"silentSeconds\":22,\"quietSeconds\":23}}",
        "place: answers, last");
    expect_line("{\"hub\":{\"reachable\":true,\"silentSeconds\":23,\"quietSeconds\":23}}",
        "place: silent for 23 s, last");
    expect_line("{\"hub\":{\"reachable\":false,\"silentSeconds\":1}}",
        "place: does not answer, last handshake never\n");
}

/* One in a TLS stream has no place that says anything. */
static void test_a_hub_in_tls(void **state)
{
    expect(status_text_format,
        "{\"hub\":{\"name\":\"h\",\"endpoint\":\"127.0.0.1:9\",\"why\":\"UDP is blocked\"}}",
        HEAD "hub h in TLS: does not answer, last handshake never\n" TAIL);
}

static void test_other_hubs(void **state)
{
    expect(status_text_format,
        "{\"hubs\":[{\"name\":\"a\",\"serves\":true,\"endpoint\":\"192.0.2.1:1\"},"
        "{\"name\":\"b\",\"endpoint\":\"192.0.2.2:1\",\"handshakeAgeSeconds\":5},"
        "{\"why\":\"it is down\"}]}",
        HEAD HUB "hub b at 192.0.2.2:1: stands by, last handshake 5 s ago\n"
                 "hub ? at an unknown place: away, last handshake never\n" TAIL);
}

static void test_cluster(void **state)
{
    expect(status_text_format, "{\"cluster\":{\"reachable\":true,\"why\":\"x\"}}",
        HEAD HUB "cluster: its API says who is in the network\n" TAIL);
    /* Which is found, and said there. */
    expect(status_text_format, "{\"cluster\":{\"sinceSeconds\":7,\"why\":\"nobody listens\"}}",
        HEAD HUB TAIL);
    expect(status_text_format, "{\"cluster\":{\"sinceSeconds\":8,\"why\":\"\"}}",
        HEAD HUB "cluster: its API has been asked for 8 s and has not answered yet\n" TAIL);
    expect(status_text_format, "{\"cluster\":7}", HEAD HUB TAIL);
}

/* A line for each node with what lies behind it, then what is not used. */
static void test_subnets(void **state)
{
    static const char json[] =
        "{\"ownRoutes\":[{\"route\":\"10.9.0.0/24\"},{\"route\":\"10.8.0.0/24\",\"why\":\"no\"}],"
        "\"routes\":[{\"node\":\"a\",\"route\":\"10.0.0.0/24\",\"used\":true},"
        "{\"node\":\"a\",\"route\":\"10.1.0.0/24\",\"used\":false,\"why\":\"it is here\"},"
        "{\"node\":\"a\",\"route\":\"10.2.0.0/24\",\"used\":true},"
        "{\"node\":\"b\",\"route\":\"10.3.0.0/24\",\"used\":true}]}";
    static const char lines[] = "this node is the way to 10.9.0.0/24\n"
                                "through a: 10.0.0.0/24, 10.2.0.0/24\n"
                                "through b: 10.3.0.0/24\n"
                                "not through a: 10.1.0.0/24, it is here\n";
    struct str text = STR_NULL;

    expect(status_text_format_routes, json, lines);
    str_addf(&text, HEAD HUB "%s" TAIL, lines);
    expect(status_text_format, json, str_text(&text));
    str_deinit(&text);
    expect(status_text_format_routes, "{}", "");
}

/* ---- peers ------------------------------------------------------------------------------------
 */

static void test_a_peer_in_the_table(void **state)
{
    expect(status_text_format,
        "{\"peers\":[{\"name\":\"a\",\"address4\":\"10.42.0.3\",\"path\":\"relay\",\"relay\":"
        "\"r1\","
        "\"rttMs\":1.25,\"loss\":0.031,\"mtu\":1420,\"sinceSeconds\":7,\"handshakeAgeSeconds\":0,"
        "\"rxBytes\":1536,\"txBytes\":20},{}]}",
        HEAD HUB OLD "\nPEER  ADDRESS    PATH          RTT     LOSS   MTU   SINCE  HANDSHAKE  "
                     "RECEIVED  SENT\n"
                     "a     10.42.0.3  relay via r1  1.2 ms  3.1 %  1420  7 s    0 s ago    "
                     "1.5 KiB   20 B\n"
                     "?     ?          ?             -       -      0     0 s    never      "
                     "0 B       0 B\n\n");
}

/* Loss by the counters goes before that of probes, and small figures have three digits. */
static void test_loss_in_the_table(void **state)
{
    static const struct {
        const char *fields;
        const char *shown;
    } cases[] = {
        {"\"loss\":0.031,\"lossIn\":null", "3.1 %"},
        {"\"loss\":0.031,\"lossIn\":{\"share\":0}", "0.00 %"},
        {"\"loss\":null,\"lossIn\":{\"share\":0.000097}", "0.010 %"},
        {"\"loss\":null,\"lossIn\":{\"share\":0.001043}", "0.10 %"},
        {"\"lossIn\":{\"share\":1}", "100.00 %"},
        {"\"lossIn\":{\"share\":\"x\"}", "-"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct str out = STR_NULL;
        char text[128];
        json_t *json;

        (void)snprintf(text, sizeof(text), "{\"peers\":[{\"name\":\"a\",%s}]}", cases[i].fields);
        json = json_loads(text, 0, NULL);
        assert_non_null(json);
        status_text_format(json, &out);
        (void)snprintf(text, sizeof(text), "-    %s  ", cases[i].shown);
        if (!strstr(str_text(&out), text))
            fail_msg("case %zu: %s", i, str_text(&out));
        str_deinit(&out);
        json_decref(json);
    }
}

/* The last columns of a row say that of the numbers. */
static void test_units_of_times_and_bytes(void **state)
{
    static const struct {
        const char *seconds;
        const char *time;
        const char *bytes;
        const char *size;
    } cases[] = {
        {"119", "119 s", "1023", "1023 B"},
        {"120", "2 min", "1024", "1.0 KiB"},
        {"7199", "119 min", "1048575", "1024.0 KiB"},
        {"7200", "2 h", "1048576", "1.0 MiB"},
        {"172799", "47 h", "1610612736", "1.5 GiB"},
        {"172800", "2 d", "1099511627776", "1.0 TiB"},
        {"1000000", "11 d", "1125899906842624", "1.0 PiB"},
        {"0", "0 s", "1152921504606846976", "1024.0 PiB"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct str json = STR_NULL;
        struct str row = STR_NULL;

        str_addf(&json, "{\"peers\":[{\"sinceSeconds\":%s,\"rxBytes\":1,\"txBytes\":%s}]}",
            cases[i].seconds, cases[i].bytes);
        str_addf(&row, "  %s  ", cases[i].time);
        expect_line(str_text(&json), str_text(&row));
        str_deinit(&row);
        row = (struct str)STR_NULL;
        str_addf(&row, "  1 B       %s\n", cases[i].size);
        expect_line(str_text(&json), str_text(&row));
        str_deinit(&row);
        str_deinit(&json);
    }
}

/* Each once; of two paths the same words are two. */
static void test_reasons_of_peers(void **state)
{
    expect_line(
        "{\"peers\":[{\"path\":\"relay\",\"why\":\"x\"},{\"path\":\"none\",\"why\":\"x\"},"
        "{\"path\":\"relay\"},{\"path\":\"relay\",\"why\":\"y\"},"
        "{\"path\":\"relay\",\"why\":\"x\"},{\"path\":\"direct\",\"why\":\"\"},{\"why\":\"z\"}]}",
        "0 B       0 B\n\nrelay: x\nnone: x\nrelay: y\n?: z\n");
    expect_no("{\"peers\":[{\"path\":\"relay\",\"why\":\"x\"},{\"path\":\"relay\",\"why\":\"x\"}]}",
        "relay: x\nrelay: x\n");
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void test_jobs_that_run_here(void **state)
{
    expect_line(
        "{\"jobs\":[{\"job\":\"train\",\"nodes\":[\"a\",\"b\"]}]}", "job train, of 2 nodes\n");
    expect_line("{\"jobs\":[{\"job\":\"train\",\"nodes\":[\"a\"]}]}", "job train, of 1 node\n");
    expect_line("{\"jobs\":[{\"job\":\"train\",\"nodes\":[]}]}", "job train\n");
    expect_line("{\"jobs\":[{}]}", "job ?\n");
}

static void test_what_nccl_took(void **state)
{
    expect_line("{\"jobs\":[{\"job\":\"t\",\"nccl\":{\"verdict\":\"wanted\",\"text\":\"NCCL uses "
                "weft0\"}}]}",
        "job t; NCCL uses weft0\n");
    expect_line("{\"jobs\":[{\"job\":\"t\",\"nccl\":{\"verdict\":\"other\",\"text\":\"NCCL uses "
                "eth0\"}}]}",
        "job t; look at this: NCCL uses eth0\n");
    /* Half of it says nothing. */
    expect_line("{\"jobs\":[{\"job\":\"t\",\"nccl\":{\"verdict\":\"other\"}}]}", "job t\n");
    expect_line("{\"jobs\":[{\"job\":\"t\",\"nccl\":{\"text\":\"x\"}}]}", "job t\n");
}

static void test_the_budget_of_a_job(void **state)
{
    expect_line("{\"jobs\":[{\"job\":\"t\",\"budget\":{\"level\":\"spent\",\"share\":1.5}}]}",
        "job t; budget: of the day's budget (150.0 %), spent\n");
    expect_no("{\"jobs\":[{\"job\":\"t\",\"budget\":null}]}", "budget");
}

/* ---- findings --------------------------------------------------------------------------------
 */

static void test_findings(void **state)
{
    expect(status_text_format, "{\"findings\":[]}", HEAD HUB "\nno other node yet\n");
    expect(status_text_format,
        "{\"findings\":[{\"severity\":\"critical\",\"code\":\"WEFT-NODE-004\",\"subject\":\"a\","
        "\"forSeconds\":130,\"text\":\"two have its key\",\"fix\":\"leave\"},"
        "{\"severity\":\"note\",\"code\":\"WEFT-NAME-001\",\"subject\":\"a\",\"forSeconds\":7,"
        "\"text\":\"x\",\"fix\":\"y\"},{}]}",
        HEAD HUB "\nFINDINGS\n"
                 "critical  WEFT-NODE-004  a, for 2 min: two have its key\n"
                 "          leave\n"
                 "note      WEFT-NAME-001  a, for 7 s: x\n"
                 "          y\n"
                 "?         ?  ?, for 0 s: ?\n"
                 "          ?\n"
                 "\nno other node yet\n");
}

/* Of many the gravest, which come first, are shown, and the others counted. */
static void test_many_findings(void **state)
{
    static const char finding[] = "{\"code\":\"C%u\"}";
    struct str json = STR_NULL;

    list_items(&json, "findings", finding, 20);
    expect_no(str_text(&json), "more:");
    str_deinit(&json);
    json = (struct str)STR_NULL;
    list_items(&json, "findings", finding, 22);
    expect_line(str_text(&json), "?         C19  ?, for 0 s: ?\n          ?\nand 2 more: weft ");
    expect_no(str_text(&json), "C20");
    str_deinit(&json);
}

/* Why a peer is as it is is said once: by what was found, where something was. */
static void test_reasons_of_peers_of_which_something_is_found(void **state)
{
    static const char json[] =
        "{\"self\":{\"name\":\"a\"},\"findings\":[{\"subject\":\"a--b\"}],\"peers\":["
        "{\"name\":\"b\",\"path\":\"relay\",\"why\":\"x\"},"
        "{\"name\":\"c\",\"path\":\"relay\",\"why\":\"y\"}]}";
    static const char both[] =
        "{\"self\":{\"name\":\"a\"},\"findings\":[{\"subject\":\"a--b\"}],\"peers\":["
        "{\"name\":\"b\",\"path\":\"relay\",\"why\":\"x\"},"
        "{\"name\":\"c\",\"path\":\"relay\",\"why\":\"x\"}]}";

    expect_no(json, "relay: x");
    expect_line(json, "\nrelay: y\n");
    expect_line(both, "\nrelay: x\n");
}

static void test_a_peer_that_is_silent(void **state)
{
    expect_line("{\"peers\":[{\"path\":\"relay\",\"relay\":\"hub\",\"silentSeconds\":130,"
                "\"rttMs\":null,\"loss\":null}]}",
        "  relay via hub, silent for 2 min  -    -  ");
    expect_no("{\"peers\":[{\"path\":\"relay\",\"silentSeconds\":null}]}", "silent");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_of_which_none_was_tried),
        cmocka_unit_test(test_paths_to_a_peer_that_is_silent),
        cmocka_unit_test(test_paths_with_all_that_was_tried),
        cmocka_unit_test(test_status_of_which_little_is_known),
        cmocka_unit_test(test_an_uplink),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_rates_of_many_peers),
        cmocka_unit_test(test_keepalive),
        cmocka_unit_test(test_hub_that_answers_or_is_silent),
        cmocka_unit_test(test_a_hub_in_tls),
        cmocka_unit_test(test_other_hubs),
        cmocka_unit_test(test_cluster),
        cmocka_unit_test(test_subnets),
        cmocka_unit_test(test_a_peer_in_the_table),
        cmocka_unit_test(test_loss_in_the_table),
        cmocka_unit_test(test_units_of_times_and_bytes),
        cmocka_unit_test(test_reasons_of_peers),
        cmocka_unit_test(test_jobs_that_run_here),
        cmocka_unit_test(test_what_nccl_took),
        cmocka_unit_test(test_the_budget_of_a_job),
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_many_findings),
        cmocka_unit_test(test_reasons_of_peers_of_which_something_is_found),
        cmocka_unit_test(test_a_peer_that_is_silent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
