/* test-status.c - how peers are reached, and the status that is made of it, as JSON and for people.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/agent_core.h"
#include "agent/node_findings.h"
#include "agent/status.h"
#include "agent/status_text.h"
#include "base/text.h"
#include "mesh/object/node_status.h"
#include "net/tun/offload.h"
#include "test/support/sample_mesh.h"

#define SEC  NSEC_PER_SEC
#define NOW  (500 * SEC)
#define WALL (1790000000 * SEC)

/* What the agent of "n2" in a network of four knows: the hub and n3 have spoken, n4 has not. */
struct scene {
    struct agent agent;
    struct agent_hub hub; /* the one that serves */
    struct render_input render;
    struct hub_link_view link;
    const char *tls_failure;
    bool gro_off; /* the engine says that it does without udp-gro */
};

static struct wg_peer spoken(unsigned n, int64_t seconds_ago)
{
    struct wg_peer p = {.key = sample_key(n),
        .facts = {.handshake_sec = WALL / SEC - seconds_ago, .rx_bytes = 1536, .tx_bytes = 20}};

    assert_int_equal(endpoint_parse(&p.endpoint, "203.0.113.10:51820", NULL), 0);
    return p;
}

/* Nothing is looked for: the rule alone tells how each is reached. */
static void evaluate(struct scene *sc, bool hub_heard, const char *stream_why, nsec_t now)
{
    struct reach_facts facts = {
        .in = &sc->render, .hub_heard = hub_heard, .stream_why = stream_why, .now = now};

    assert_int_equal(reach_update(&sc->agent.reach, &facts, NULL, NULL), 0);
}

static void look(struct scene *sc, bool hub_heard)
{
    evaluate(sc, hub_heard, NULL, NOW - 60 * SEC);
}

static void make_scene(struct scene *sc, bool hub_heard)
{
    struct keepalive_known none = KEEPALIVE_KNOWN_NULL;
    struct wg_config c = WG_CONFIG_NULL;
    struct wg_peer peers[] = {spoken(1, 12), spoken(3, 4), {.key = sample_key(4)}};

    peers[1].rate = 20000000;
    c.rates.all = 100000000;
    c.shows_dscp = true;
    c.rates.classes[TRAFFIC_CLASS_BULK] = 2500000;
    *sc = (struct scene){
        .agent = {.snapshot = sample_snapshot(4, 2),
            .hubs = {.items = {&sc->hub}, .n = 1, .serving = &sc->hub},
            .reconcile = {.interface = "weft0", .why = "this kernel has no WireGuard"}},
        .hub = {.name = "hub", .key = sample_key(1)},
        .link = {.silent_for = 3 * NSEC_PER_SEC, .quiet_max = HUB_LINK_QUIET_MAX}};
    keepalive_plan_init(&sc->agent.keepalive.probe.plan, &none);
    sc->render = (struct render_input){.snapshot = &sc->agent.snapshot};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(wg_config_add(&c, &peers[i]), 0);
    assert_int_equal(wg_config_sort(&c, NULL), 0);
    assert_int_equal(observe_take(&sc->agent.seen, &c, NOW, WALL), 0);
    look(sc, hub_heard);
    wg_config_deinit(&c);
}

static void free_scene(struct scene *sc)
{
    snapshot_deinit(&sc->agent.snapshot);
    observe_deinit(&sc->agent.seen);
    reach_deinit(&sc->agent.reach);
    findings_deinit(&sc->agent.findings);
}

static json_t *encode(struct scene *sc, bool hub_heard)
{
    struct offloads offloads = offloads_all();
    struct status_input in = {.agent = &sc->agent,
        .render = &sc->render,
        .engine = "userspace",
        .offloads = &offloads,
        .hub = sc->link,
        .tls_failure = sc->tls_failure,
        .now = NOW,
        .wall = WALL};
    json_t *json;

    in.hub.is_heard = hub_heard;
    offload_off(&offloads, OFFLOAD_UDP_GSO, "it got lost");
    if (sc->gro_off)
        offload_off(&offloads, OFFLOAD_UDP_GRO, "apart");
    node_findings_look(&sc->agent.findings, &in);
    json = status_encode(&in);
    assert_non_null(json);
    return json;
}

static void test_json(void **state)
{
    static const char expected[] =
        "{\"self\": {\"name\": \"n2\", \"address4\": \"10.42.0.2\", \"address6\": \"fd5a:1::2\", "
        "\"publicKey\": \"AgAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\", "
        "\"island\": \"\", "
        "\"network\": \"default\", \"interface\": \"weft0\", \"engine\": \"userspace\", "
        "\"engineWhy\": \"this kernel has no WireGuard\", \"fault\": \"\", "
        "\"retry\": null, \"foreignPeers\": null, "
        "\"offloads\": [{\"name\": \"udp-gso\", \"on\": false, \"why\": \"it got lost\"}, "
        "{\"name\": \"udp-gro\", \"on\": true, \"why\": \"\"}, "
        "{\"name\": \"tso\", \"on\": true, \"why\": \"\"}, "
        "{\"name\": \"uso\", \"on\": true, \"why\": \"\"}], "
        "\"rates\": {\"bitsPerSecond\": 100000000, \"classes\": {\"bulk\": 2500000}, "
        "\"showsDscp\": true, \"why\": \"\"}, \"mtu\": 1420, \"revision\": 40, "
        "\"uplink\": {\"state\": \"unknown\", \"from\": \"found\", \"trains\": 0, "
        "\"peers\": 0, \"why\": \"this agent measures nothing\"}}, "
        "\"hub\": {\"name\": \"hub\", \"address4\": \"10.42.0.1\", \"address6\": \"fd5a:1::1\", "
        "\"publicKey\": \"AQAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\", "
        "\"island\": \"\", "
        "\"endpoint\": \"203.0.113.10:51820\", \"apiPort\": 8443, "
        "\"handshakeAgeSeconds\": 12, \"reachable\": true, \"silentSeconds\": 3, "
        "\"quietSeconds\": 7, "
        "\"udp\": true, \"why\": \"\", "
        "\"oneWay\": \"\", "
        "\"rxBytes\": 1536, "
        "\"txBytes\": 20, \"lossIn\": null}, "
        "\"keepalive\": {\"seconds\": 10, \"from\": \"default\", \"survivedSeconds\": null, "
        "\"forgottenSeconds\": null, \"measured\": null, \"measuredSecondsAgo\": null, "
        "\"found\": \"\", \"why\": \"there is no session with the hub by UDP\"}, "
        "\"peers\": [{\"name\": \"n3\", \"address4\": \"10.42.0.3\", \"address6\": \"fd5a:1::3\", "
        "\"publicKey\": \"AwAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\", "
        "\"island\": \"\", \"path\": \"relay\", \"relay\": \"hub\", "
        "\"why\": \"this peer does not say where it "
        "may be reached, as a stock WireGuard does not, so the hub relays: run the weft "
        "agent on it\", \"sinceSeconds\": 60, "
        "\"silentSeconds\": null, \"rttMs\": null, "
        "\"leastRttMs\": null, \"rttP50Ms\": null, \"rttP99Ms\": null, "
        "\"jitterMs\": null, \"rttUsualMs\": null, \"loss\": null, \"rateBitsPerSecond\": "
        "20000000, "
        "\"lossIn\": null, "
        "\"endpoint\": \"203.0.113.10:51820\", \"handshakeAgeSeconds\": 4, "
        "\"mtu\": 1120, \"rxBytes\": 1536, \"txBytes\": 20, "
        "\"since\": 1789999940, \"alarm\": false, \"stock\": false}, "
        "{\"name\": \"n4\", \"address4\": \"10.42.0.4\", \"address6\": \"fd5a:1::4\", "
        "\"publicKey\": \"BAAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\", "
        "\"island\": \"\", \"path\": \"relay\", \"relay\": \"hub\", "
        "\"why\": \"this peer does not say where it "
        "may be reached, as a stock WireGuard does not, so the hub relays: run the weft "
        "agent on it\", \"sinceSeconds\": 60, "
        "\"silentSeconds\": null, \"rttMs\": null, "
        "\"leastRttMs\": null, \"rttP50Ms\": null, \"rttP99Ms\": null, "
        "\"jitterMs\": null, \"rttUsualMs\": null, \"loss\": null, \"rateBitsPerSecond\": null, "
        "\"lossIn\": null, "
        "\"endpoint\": null, \"handshakeAgeSeconds\": null, "
        "\"mtu\": 1120, \"rxBytes\": 0, \"txBytes\": 0, "
        "\"since\": 1789999940, \"alarm\": false, \"stock\": false}], "
        "\"namesLeftOut\": [], \"namesPending\": false, "
        "\"routes\": [], \"ownRoutes\": [], \"jobs\": [], "
        "\"findings\": [{\"code\": \"WEFT-OFFLOAD-001\", \"severity\": \"note\", "
        "\"about\": \"node\", \"subject\": \"n2\", \"title\": \"an offload is off\", "
        "\"since\": 1790000000, \"forSeconds\": 0, "
        "\"text\": \"the offload udp-gso is off: it got lost\", "
        "\"fix\": \"It is the kernel's, or a driver's that is broken; use a newer kernel.\"}]}";
    struct scene sc;
    json_t *json;
    char *text;

    make_scene(&sc, true);
    json = encode(&sc, true);
    text = json_dumps(json, 0);
    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
    free_scene(&sc);
}

/* @place: a field of the status, and one of its own or "". @expected: JSON without spaces; "": the
 * field is not there. */
static void check_field(
    const json_t *status, const char *place, const char *field, const char *expected)
{
    const json_t *o = json_object_get(status, place);
    char *text = NULL;

    if (field[0] != '\0')
        o = json_object_get(json_is_array(o) ? json_array_get(o, 0) : o, field);
    if (o)
        text = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    assert_string_equal(text ? text : "", expected);
    free(text);
}

static void expect(struct scene *sc, const char *place, const char *field, const char *expected)
{
    json_t *json = encode(sc, sc->link.is_heard);

    check_field(json, place, field, expected);
    json_decref(json);
}

/* What the agent reaches at another place than its engine says, and what is known of such a path.
 */
static void test_a_peer_on_its_own_path(void **state)
{
    struct fabric_report *fabric = calloc(1, sizeof(*fabric));
    struct loss_track track = {.n = 0};
    struct reach_peer *peer;
    struct observation *ob;
    struct scene sc;
    struct node *node;

    make_scene(&sc, true);
    expect(&sc, "peers", "fabric", "");
    peer = &sc.agent.reach.items[0];
    *peer = (struct reach_peer){.node = "n3",
        .kind = PATH_KIND_DIRECT,
        .since = NOW - 90 * SEC - 1,
        .is_alarm = true,
        .rtt = 1234567,
        .least_rtt = 1000 * NSEC_PER_USEC,
        .loss_permille = 25};
    assert_int_equal(endpoint_parse(&peer->remote, "198.51.100.7:4000", NULL), 0);
    expect(&sc, "peers", "rttMs", "null");
    expect(&sc, "peers", "loss", "null");
    expect(&sc, "peers", "silentSeconds", "null");
    peer->is_measured = true;
    expect(&sc, "peers", "rttMs", "1.234");
    expect(&sc, "peers", "leastRttMs", "1.0");
    expect(&sc, "peers", "rttP99Ms", "null");
    peer->spread = (struct rtt_spread){1200, 9000, 0, RTT_SAMPLES_MIN, 1100};
    expect(&sc, "peers", "rttP50Ms", "1.2");
    expect(&sc, "peers", "rttP99Ms", "9.0");
    expect(&sc, "peers", "jitterMs", "0.0");
    expect(&sc, "peers", "rttUsualMs", "1.1");
    peer->spread.samples = RTT_SAMPLES_MIN - 1;
    expect(&sc, "peers", "rttP50Ms", "null");
    expect(&sc, "peers", "rttUsualMs", "null");
    expect(&sc, "peers", "loss", "null");
    peer->has_loss = true;
    expect(&sc, "peers", "loss", "0.025");
    peer->silent_since = NOW - 40 * SEC - 1;
    expect(&sc, "peers", "silentSeconds", "40");
    expect(&sc, "findings", "code", "\"WEFT-PEER-001\"");
    expect(&sc, "findings", "subject", "\"n2--n3\"");
    peer->silent_since = 0;
    expect(&sc, "peers", "path", "\"direct\"");
    expect(&sc, "peers", "relay", "null");
    expect(&sc, "peers", "endpoint", "\"198.51.100.7:4000\"");
    expect(&sc, "peers", "alarm", "true");
    expect(&sc, "peers", "sinceSeconds", "90");
    node = (struct node *)snapshot_find_node(&sc.agent.snapshot, "n3");
    node->stock = true;
    node->fabric = fabric;
    assert_non_null(fabric);
    (void)snprintf(fabric->kind, sizeof(fabric->kind), "efa");
    expect(&sc, "peers", "stock", "true");
    expect(&sc, "peers", "fabric",
        "{\"kind\":\"efa\",\"machine\":\"\",\"gpu\":\"\",\"gpus\":0,\"gbit\":0,"
        "\"askedTogether\":false,\"keys\":[]}");
    ob = (struct observation *)observe_find(&sc.agent.seen, &node->key);
    ob->handshake_at = NOW;
    expect(&sc, "peers", "handshakeAgeSeconds", "0");
    ob->facts.rx_bytes = UINT64_MAX;
    ob->facts.tx_bytes = INT64_MAX;
    expect(&sc, "peers", "rxBytes", "9223372036854775807");
    expect(&sc, "peers", "txBytes", "9223372036854775807");
    ob->loss = &track;
    for (unsigned i = 0; i < 60; i++)
        loss_track_add(&track, 999, 1, 0, NOW - (59 - i) * SEC);
    expect(&sc, "peers", "lossIn",
        "{\"share\":0.001,\"from\":\"counters\",\"lost\":59,\"packets\":59000,"
        "\"seconds\":59,\"periods\":6}");
    ob->loss = NULL;
    /* Whom the network does not have any more is left out. */
    (void)snprintf(peer->node, sizeof(peer->node), "n9");
    expect(&sc, "peers", "name", "\"n4\"");
    free_scene(&sc);
}

/* How datagrams arrive; and where they arrive one by one, that is not said of the offload, too. */
static void test_merging(void **state)
{
    struct scene sc;

    make_scene(&sc, true);
    expect(&sc, "self", "merging", "");
    /* Of a device that is gone. */
    sc.agent.seen.merging_ifindex = INT32_MAX;
    sc.agent.seen.merging_percent = 97;
    sc.agent.seen.merging_age_s = 12;
    expect(&sc, "self", "merging", "{\"device\":\"\",\"percent\":97,\"ageSeconds\":12}");
    expect(&sc, "findings", "code", "\"WEFT-OFFLOAD-001\"");
    sc.gro_off = true;
    expect(&sc, "findings", "text",
        "\"the offload udp-gso is off: it got lost; the offload udp-gro is off: apart\"");
    sc.agent.seen.merging_percent = 0;
    expect(&sc, "findings", "text", "\"the offload udp-gso is off: it got lost\"");
    free_scene(&sc);
}

/* Null or nothing stands for what is not known. */
static void test_what_is_known_of_the_hub(void **state)
{
    struct hub_transport *transport;
    struct scene sc;
    struct node *hub;

    make_scene(&sc, true);
    sc.link.is_heard = true;
    sc.tls_failure = "of before";
    transport = &sc.hub.transport.transport;
    (void)snprintf(transport->why, sizeof(transport->why), "UDP is blocked");
    expect(&sc, "hub", "tlsFailure", "");
    expect(&sc, "hub", "storeBehindSeconds", "");
    expect(&sc, "hub", "why", "\"\"");
    transport->choice.by_stream = true;
    expect(&sc, "hub", "why", "\"UDP is blocked\"");
    expect(&sc, "hub", "udp", "false");
    transport->choice.by_stream = false;
    sc.link = (struct hub_link_view){.silent_for = NSEC_NEVER, .store_behind_s = 3};
    expect(&sc, "hub", "silentSeconds", "null");
    expect(&sc, "hub", "storeBehindSeconds", "3");
    expect(&sc, "hub", "tlsFailure", "\"of before\"");
    expect(&sc, "hub", "reachable", "false");
    for (size_t i = 0; i < sc.agent.seen.n; i++)
        sc.agent.seen.items[i].handshake_at = 0;
    expect(&sc, "hub", "udp", "false");
    sc.agent.seen.n = 0;
    expect(&sc, "hub", "endpoint", "null");
    expect(&sc, "hub", "handshakeAgeSeconds", "null");
    expect(&sc, "hub", "rxBytes", "0");
    expect(&sc, "hub", "txBytes", "0");
    hub = (struct node *)snapshot_find_node(&sc.agent.snapshot, "hub");
    hub->key = sample_key(8);
    free(hub->hub);
    hub->hub = NULL;
    expect(&sc, "hub", "", "null");
    free_scene(&sc);
}

static void test_names_and_copies(void **state)
{
    struct scene sc;

    make_scene(&sc, true);
    expect(&sc, "namesFailure", "", "");
    expect(&sc, "copied", "", "");
    sc.agent.names.opt.is_on = true;
    sc.agent.names.left_out = json_pack("[{s:s}]", "name", "minio");
    (void)err_set(&sc.agent.names.failure, -EROFS, "it is read-only");
    (void)snprintf(sc.agent.copy.why, sizeof(sc.agent.copy.why), "another has its key");
    expect(&sc, "namesPending", "", "true");
    expect(&sc, "namesLeftOut", "", "[{\"name\":\"minio\"}]");
    expect(&sc, "namesFailure", "", "\"it is read-only\"");
    expect(&sc, "copied", "", "\"another has its key\"");
    json_decref(sc.agent.names.left_out);
    free_scene(&sc);
}

static void check_table(const json_t *json, const char *expected)
{
    struct str out = STR_NULL;

    status_text_format(json, &out);
    assert_string_equal(str_text(&out), expected);
    str_deinit(&out);
}

static void test_table(void **state)
{
    struct scene sc;
    json_t *json;

    make_scene(&sc, true);
    json = encode(&sc, true);
    check_table(json,
        "n2 in the network default: 10.42.0.2, fd5a:1::2\n"
        "interface weft0 (userspace), MTU 1420\n"
        "rates that are kept: all 100Mbit, bulk 2.5Mbit, to n3 20Mbit\n"
        "what is sent shows its DSCP outside the tunnel\n"
        "hub hub at 203.0.113.10:51820: answers, last handshake 12 s ago\n"
        "keepalive 10 s; not measured yet: there is no session with the hub by UDP\n"
        "\n"
        "FINDINGS\n"
        "note      WEFT-OFFLOAD-001  n2, for 0 s: the offload udp-gso is off: it got lost\n"
        "          It is the kernel's, or a driver's that is broken; use a newer kernel.\n"
        "\n"
        "PEER  ADDRESS    PATH           RTT  LOSS  MTU   SINCE  HANDSHAKE  RECEIVED  SENT\n"
        "n3    10.42.0.3  relay via hub  -    -     1120  60 s   4 s ago    1.5 KiB   20 B\n"
        "n4    10.42.0.4  relay via hub  -    -     1120  60 s   never      0 B       0 B\n"
        "\n"
        "relay: this peer does not say where it may be reached, as a stock WireGuard does not, so "
        "the hub relays: run the weft agent on it\n");
    json_decref(json);
    free_scene(&sc);
}

/* A mesh says so at once where a peer finds no paths; of others see path/test-paths.c. */
static void test_mesh_alarms(void **state)
{
    struct scene sc;
    struct str out = STR_NULL;
    json_t *json;
    json_t *peer;
    size_t i;

    make_scene(&sc, true);
    sc.agent.snapshot.network.topology = TOPOLOGY_MESH;
    look(&sc, true);
    assert_int_equal(sc.agent.reach.n_alarms, 2);
    json = encode(&sc, true);
    json_array_foreach(json_object_get(json, "peers"), i, peer)
        assert_true(json_is_true(json_object_get(peer, "alarm")));
    status_text_format(json, &out);
    assert_non_null(strstr(str_text(&out), "\nwarning   WEFT-PATH-004  n2--n3, for 0 s: no direct "
                                           "path to n3, though only direct paths "
                                           "are wanted: "));
    assert_non_null(strstr(str_text(&out), "WEFT-PATH-004  n2--n4"));
    assert_null(strstr(str_text(&out), "\nrelay: "));
    str_deinit(&out);
    json_decref(json);
    free_scene(&sc);
}

/* A name that would take the place of another is told, with the reason. */
static void test_names_left_out(void **state)
{
    struct scene sc;
    json_t *json;
    struct str out = STR_NULL;

    make_scene(&sc, true);
    sc.agent.names.left_out = json_pack("[{s:s, s:s, s:s}]", "name", "minio", "node", "n3", "why",
        "this machine's resolver leads it to 192.0.2.7");
    json = encode(&sc, true);
    status_text_format(json, &out);
    assert_non_null(strstr(str_text(&out),
        ", for 0 s: the name \"minio\" of node n3 is left out of the hosts file: this machine's "
        "resolver leads it to 192.0.2.7\n"));
    str_deinit(&out);
    json_decref(json);
    json_decref(sc.agent.names.left_out);
    free_scene(&sc);
}

/* A hub's network keeps all on it: that is what is wanted, and the reason says so. */
static void test_topology_hub(void **state)
{
    struct scene sc;

    make_scene(&sc, true);
    sc.agent.snapshot.network.topology = TOPOLOGY_HUB;
    look(&sc, true);
    assert_int_equal(sc.agent.reach.n_alarms, 0);
    assert_int_equal(sc.agent.reach.items[0].kind, PATH_KIND_RELAY);
    assert_non_null(strstr(sc.agent.reach.items[0].why, "topology is hub"));
    free_scene(&sc);
}

static void test_table_without_hub(void **state)
{
    struct scene sc;
    json_t *json;

    make_scene(&sc, false);
    sc.tls_failure = "the hub says why";
    sc.link.silent_for = 40 * SEC;
    json = encode(&sc, false);
    check_table(json,
        "n2 in the network default: 10.42.0.2, fd5a:1::2\n"
        "interface weft0 (userspace), MTU 1420\n"
        "rates that are kept: all 100Mbit, bulk 2.5Mbit, to n3 20Mbit\n"
        "what is sent shows its DSCP outside the tunnel\n"
        "hub hub at 203.0.113.10:51820: does not answer, last handshake 12 s ago\n"
        "keepalive 10 s; not measured yet: there is no session with the hub by UDP\n"
        "\n"
        "FINDINGS\n"
        "critical  WEFT-HUB-003  hub, for 0 s: hub at 203.0.113.10:51820: UDP to it fails, and so "
        "does TLS: the hub says why\n"
        "          On the hub: systemctl status weft-hub. On the way: UDP to its port, or TCP to "
        "its API.\n"
        "note      WEFT-OFFLOAD-001  n2, for 0 s: the offload udp-gso is off: it got lost\n"
        "          It is the kernel's, or a driver's that is broken; use a newer kernel.\n"
        "\n"
        "PEER  ADDRESS    PATH  RTT  LOSS  MTU   SINCE  HANDSHAKE  RECEIVED  SENT\n"
        "n3    10.42.0.3  none  -    -     1120  60 s   4 s ago    1.5 KiB   20 B\n"
        "n4    10.42.0.4  none  -    -     1120  60 s   never      0 B       0 B\n"
        "\n"
        "none: the hub does not answer, and packets to this peer go through it\n");
    json_decref(json);
    free_scene(&sc);
}

/* A clock that is wrong, and one that was set back, of which no firewall is the reason. */
static void test_clock(void **state)
{
    struct agent_hub second = {.name = "other", .key = sample_key(5)};
    struct str out = STR_NULL;
    struct scene sc;
    json_t *json;

    make_scene(&sc, false);
    sc.hub.key = sample_key(0);
    sc.agent.hubs.items[sc.agent.hubs.n++] = &second;
    json = encode(&sc, true);
    assert_null(json_object_get(json, "clock"));
    status_text_format(json, &out);
    assert_non_null(strstr(out.text, "it is down, or UDP to it is blocked"));
    assert_null(strstr(out.text, "CLOCK"));
    assert_non_null(strstr(out.text, "WEFT-HUBS-001  other, for 0 s: no handshake with it"));
    str_deinit(&out);
    json_decref(json);
    sc.agent.time = (struct node_clock){.off = "It is 7200 s ahead."};
    json = encode(&sc, true);
    assert_string_equal(json_string_value(json_object_get(json, "clock")), "It is 7200 s ahead.");
    json_decref(json);
    sc.agent.time = (struct node_clock){.lockout = "the clock was set back"};
    json = encode(&sc, true);
    out = (struct str)STR_NULL;
    status_text_format(json, &out);
    assert_non_null(strstr(out.text, "WEFT-CLOCK-002  n2, for 0 s: the clock was set back\n"));
    assert_null(strstr(out.text, "blocked"));
    str_deinit(&out);
    json_decref(json);
    free_scene(&sc);
}

/* What the agent does about an interface that is not as it should be, and has done. */
static void test_fault_and_foreign_peers(void **state)
{
    struct str out = STR_NULL;
    struct scene sc;
    json_t *json;

    make_scene(&sc, false);
    sc.link.silent_for = NSEC_NEVER;
    sc.agent.reconcile.n_foreign = 2;
    sc.agent.reconcile.foreign = sample_key(9);
    sc.agent.foreign_at = NOW - 7 * NSEC_PER_SEC;
    sc.agent.pass = (struct pass_plan){.due_at = NOW + 1500 * NSEC_PER_MSEC,
        .n_failed = 3,
        .fault = {.text = "somebody else has it"}};
    expect(&sc, "self", "foreignPeers",
        "{\"removed\":2,\"last\":\"CQAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\",\"ageSeconds\":"
        "7}");
    expect(&sc, "self", "retry", "{\"failures\":3,\"inSeconds\":1.5}");
    json = encode(&sc, false);
    status_text_format(json, &out);
    assert_non_null(strstr(out.text,
        "n2, for 0 s: the interface is not as it should be, and nobody is reached until it is; it "
        "was tried 3 times: somebody else has it\n"));
    assert_non_null(strstr(out.text,
        "n2, for 0 s: peers that somebody else had added to the interface and that were removed: "
        "2, the last 7 s ago with the public key CQAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"));
    str_deinit(&out);
    json_decref(json);
    sc.agent.pass.due_at = NOW - SEC;
    expect(&sc, "self", "retry", "{\"failures\":3,\"inSeconds\":0.0}");
    free_scene(&sc);
}

static void check_keepalive_line(struct scene *sc, const char *expected)
{
    json_t *json = encode(sc, true);
    struct str out = STR_NULL;

    status_text_format(json, &out);
    if (!strstr(str_text(&out), expected))
        fail_msg("\"%s\" is not in:\n%s", expected, str_text(&out));
    str_deinit(&out);
    json_decref(json);
}

/* What was measured is in force, unless the network says otherwise; and both are told. */
static void test_keepalive(void **state)
{
    struct keepalive_known known = {.measured_at = WALL - 180 * SEC,
        .bounds = {.lives = 28 * SEC, .dies = 29500 * NSEC_PER_MSEC}};
    struct keepalive_plan *plan;
    const json_t *keepalive;
    struct scene sc;
    json_t *json;

    make_scene(&sc, true);
    plan = &sc.agent.keepalive.probe.plan;
    keepalive_plan_init(plan, &known);
    plan->view.is_natted = true;
    assert_int_equal(endpoint_parse(&plan->view.hub, "203.0.113.10:51820", NULL), 0);
    sc.render.keepalive = 21;
    json = encode(&sc, true);
    keepalive = json_object_get(json, "keepalive");
    assert_int_equal(json_integer_value(json_object_get(keepalive, "seconds")), 21);
    assert_string_equal(json_string_value(json_object_get(keepalive, "from")), "measured");
    assert_true(json_real_value(json_object_get(keepalive, "survivedSeconds")) == 28);
    assert_true(json_real_value(json_object_get(keepalive, "forgottenSeconds")) == 29.5);
    assert_int_equal(json_integer_value(json_object_get(keepalive, "measured")), WALL / SEC - 180);
    assert_int_equal(json_integer_value(json_object_get(keepalive, "measuredSecondsAgo")), 180);
    assert_string_equal(json_string_value(json_object_get(keepalive, "why")), "");
    json_decref(json);
    check_keepalive_line(&sc,
        "keepalive 21 s: the NAT forgets a silent UDP mapping after about 29 s, seen 3 min ago\n");
    sc.agent.snapshot.network.keepalive = 25;
    check_keepalive_line(&sc, "keepalive 25 s, which the network says: the NAT forgets");
    expect(&sc, "keepalive", "from", "\"network\"");
    /* By a clock that was set back since. */
    plan->known.measured_at = WALL + SEC;
    expect(&sc, "keepalive", "measuredSecondsAgo", "0");
    plan->known.bounds.dies = NSEC_NEVER;
    expect(&sc, "keepalive", "forgottenSeconds", "null");
    free_scene(&sc);
}

/* What is wrong here is said before the hub is blamed; a missed heartbeat is not an answer. */
static void test_faults(void **state)
{
    struct str out = STR_NULL;
    struct scene sc;
    json_t *json;

    make_scene(&sc, true);
    sc.link.silent_for = 12 * NSEC_PER_SEC;
    (void)err_set(&sc.agent.pass.fault, -EIO, "cannot open /dev/net/tun");
    json = encode(&sc, true);
    status_text_format(json, &out);
    assert_non_null(strstr(str_text(&out),
        "n2, for 0 s: the interface is not as it should be, and nobody is reached until it is: "
        "cannot open /dev/net/tun\n"));
    assert_non_null(
        strstr(str_text(&out), "\nhub hub at 203.0.113.10:51820: silent for 12 s, last handshake"));
    str_deinit(&out);
    out = (struct str)STR_NULL;
    json_decref(json);
    /* One whose heartbeats come slower. */
    sc.link.quiet_max = 23 * NSEC_PER_SEC;
    json = encode(&sc, true);
    status_text_format(json, &out);
    assert_non_null(strstr(str_text(&out), "hub hub at 203.0.113.10:51820: answers, last hand"));
    assert_null(strstr(str_text(&out), "its store"));
    str_deinit(&out);
    out = (struct str)STR_NULL;
    json_decref(json);
    /* One that does not hear what changes in its store. */
    sc.link.store_behind_s = 34;
    json = encode(&sc, true);
    status_text_format(json, &out);
    assert_non_null(strstr(str_text(&out), "hub, for 0 s: its store has not said for 34 s what has "
                                           "changed; what was changed elsewhere since "
                                           "then is not known here\n"));
    str_deinit(&out);
    json_decref(json);
    free_scene(&sc);
}

/* Of several hubs each is told: which serves, and what is wrong with one that does not answer. */
static void test_hubs(void **state)
{
    struct agent_hub lost = {.name = "hub-b", .key = sample_key(3), .report_lost_at = NOW};
    struct agent_hub never = {.name = "hub-c", .key = sample_key(4)};
    struct str out = STR_NULL;
    struct scene sc;
    json_t *json;

    make_scene(&sc, true);
    json = encode(&sc, true);
    assert_null(json_object_get(json, "hubs"));
    assert_null(json_object_get(json_object_get(json, "hub"), "refused"));
    json_decref(json);
    (void)err_set(&sc.hub.refused, -EINVAL, "they give the network other blocks");
    json = encode(&sc, true);
    status_text_format(json, &out);
    assert_non_null(strstr(str_text(&out),
        "hub, for 0 s: its events are refused, what was known before them stays, and its "
        "administrator has to look into it: they give the network other blocks\n"));
    str_deinit(&out);
    out = (struct str)STR_NULL;
    json_decref(json);
    sc.agent.hubs.items[1] = &lost;
    sc.agent.hubs.items[2] = &never;
    sc.agent.hubs.n = 3;
    json = encode(&sc, true);
    check_field(json, "hubs", "",
        "[{\"name\":\"hub\",\"serves\":true,\"reachable\":true,\"endpoint\":"
        "\"203.0.113.10:51820\",\"handshakeAgeSeconds\":12,\"why\":\"\"},{\"name\":\"hub-b\","
        "\"serves\":false,\"reachable\":false,\"endpoint\":\"203.0.113.10:51820\","
        "\"handshakeAgeSeconds\":4,\"why\":\"it did not answer this node's last report, so it may "
        "be "
        "down\"},{\"name\":\"hub-c\",\"serves\":false,\"reachable\":false,\"endpoint\":null,"
        "\"handshakeAgeSeconds\":null,\"why\":\"no handshake with it comes about at an unknown "
        "place: "
        "it is down, or UDP to it is blocked\"}]");
    status_text_format(json, &out);
    assert_non_null(strstr(str_text(&out),
        "hub hub-b at 203.0.113.10:51820: away, last handshake 4 s ago\nhub hub-c at an unknown "
        "place: away, last handshake never\n"));
    assert_non_null(strstr(str_text(&out),
        "hub-b, for 0 s: it did not answer this node's last report, so it may be down\n"));
    assert_non_null(strstr(str_text(&out),
        "hub-c, for 0 s: no handshake with it comes about at an unknown place: it is down, or UDP "
        "to it is blocked\n"));
    str_deinit(&out);
    json_decref(json);
    json = encode(&sc, false);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(json, "hubs"), 0), "why")),
        "it does not answer, and another one is being asked");
    json_decref(json);
    (void)err_set(&sc.agent.pass.fault, -EIO, "no /dev/net/tun");
    sc.agent.hubs.items[0] = &never;
    sc.agent.hubs.n = 2;
    expect(&sc, "hubs", "why", "\"the interface of this node is not as it should be\"");
    free_scene(&sc);
}

/* Where a cluster says who is in the network, its silence is told, and for how long. */
static void test_cluster(void **state)
{
    static const char *const lines[] = {
        "\ncluster: its API has been asked for 7 s and has not answered yet\n",
        "\ncluster: its API says who is in the network\n",
        "n2, for 0 s: the cluster's API does not answer for 9 s, known peers stay, and no change "
        "of the network is heard of: nobody listens there\n"};
    struct status_cluster clusters[] = {{.since = NOW - 7 * SEC}, {false}, {false}};
    struct scene sc;

    status_cluster_set(&clusters[1], true, "", NOW - 8 * SEC);
    status_cluster_set(&clusters[2], false, "nobody listens there", NOW - 9 * SEC);
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        struct str out = STR_NULL;
        json_t *json;

        make_scene(&sc, true);
        sc.agent.cluster = (struct cluster_watch *)&sc; /* there is one; it is not looked into */
        sc.agent.cluster_seen = clusters[i];
        json = encode(&sc, true);
        status_text_format(json, &out);
        assert_non_null(strstr(str_text(&out), lines[i]));
        assert_int_equal(
            json_is_true(json_object_get(json_object_get(json, "cluster"), "reachable")), i == 1);
        str_deinit(&out);
        json_decref(json);
        free_scene(&sc);
    }
}

/* Whatever another version, or a damaged agent, answers. */
static void test_table_of_strange_json(void **state)
{
    static const char *const cases[] = {
        "{}",
        "[]",
        "null",
        "{\"peers\": 7, \"self\": []}",
        "{\"peers\": [7, {}, {\"path\": 1, \"why\": []}]}",
        "{\"hub\": {\"handshakeAgeSeconds\": \"x\"}}",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = json_loads(cases[i], JSON_DECODE_ANY, NULL);
        struct str out = STR_NULL;

        status_text_format(json, &out);
        assert_true(strlen(str_text(&out)) > 0);
        str_deinit(&out);
        json_decref(json);
    }
}

static void test_since(void **state)
{
    struct scene sc;

    make_scene(&sc, true);
    evaluate(&sc, true, NULL, NOW);
    assert_true(reach_find(&sc.agent.reach, "n3")->since == NOW - 60 * SEC);
    evaluate(&sc, false, NULL, NOW);
    assert_true(reach_find(&sc.agent.reach, "n3")->since == NOW);
    assert_int_equal(reach_find(&sc.agent.reach, "n3")->kind, PATH_KIND_NONE);
    evaluate(&sc, true, "UDP is blocked", NOW + SEC);
    assert_int_equal(reach_find(&sc.agent.reach, "n3")->kind, PATH_KIND_STREAM);
    assert_string_equal(reach_find(&sc.agent.reach, "n3")->why, "UDP is blocked");
    evaluate(&sc, true, "UDP is blocked", NOW + 2 * SEC);
    assert_true(reach_find(&sc.agent.reach, "n3")->since == NOW + SEC);
    /* Neither this node nor the hub is a peer. */
    assert_null(reach_find(&sc.agent.reach, "n2"));
    assert_null(reach_find(&sc.agent.reach, "hub"));
    free_scene(&sc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_a_peer_on_its_own_path),
        cmocka_unit_test(test_merging),
        cmocka_unit_test(test_what_is_known_of_the_hub),
        cmocka_unit_test(test_names_and_copies),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_without_hub),
        cmocka_unit_test(test_fault_and_foreign_peers),
        cmocka_unit_test(test_keepalive),
        cmocka_unit_test(test_mesh_alarms),
        cmocka_unit_test(test_names_left_out),
        cmocka_unit_test(test_topology_hub),
        cmocka_unit_test(test_table_of_strange_json),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_hubs),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_cluster),
        cmocka_unit_test(test_since),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
