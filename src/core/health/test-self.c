/* test-self.c - what a node finds, by each fact alone, and which causes hide what follows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>

#include "base/text.h"
#include "health/self.h"

#define AT 1790000000

/* A node "a" with a hub that answers, and a peer "b" on a direct path that does. */
static struct self_facts well(struct self_peer *peer)
{
    *peer = (struct self_peer){.name = "b",
        .path = SELF_PATH_DIRECT,
        .kind = "direct",
        .relay = "",
        .why = "",
        .since_s = 600,
        .mtu = 1440,
        .session = {.handshake_age_s = 20, .heard_s = 1}};
    return (struct self_facts){.name = "a",
        .at = AT,
        .running_s = 3600,
        .foreign_age_s = -1,
        .hub = {.name = "hub",
            .at = "192.0.2.1:51820",
            .is_heard = true,
            .silent_s = 2,
            .quiet_s = 7,
            .has_session = true},
        .peers = peer,
        .n_peers = 1};
}

/* All that is found: "CODE SUBJECT;" by subject and the order of the table. */
static const char *codes(const struct self_facts *facts)
{
    static char text[1024];
    struct findings f = {.n = 0};
    size_t len = 0;

    self_find(&f, facts, NULL, NULL);
    text[0] = '\0';
    for (size_t i = 0; i < f.n; i++) {
        assert_true(f.items[i]->text[0] != '\0' && f.items[i]->fix[0] != '\0');
        assert_int_equal(f.items[i]->since, AT);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s %s", i > 0 ? ";" : "",
            finding_kinds[f.items[i]->code].code, f.items[i]->subject);
    }
    findings_deinit(&f);
    return text;
}

/* The sentence of the only finding. */
static const char *sentence(const struct self_facts *facts)
{
    static char text[FINDING_TEXT_MAX];
    struct findings f = {.n = 0};

    self_find(&f, facts, NULL, NULL);
    assert_int_equal(f.n, 1);
    memcpy(text, f.items[0]->text, sizeof(text));
    findings_deinit(&f);
    return text;
}

static void test_all_is_well(void **state)
{
    struct self_peer peer;
    struct self_facts facts = well(&peer);

    assert_string_equal(codes(&facts), "");
    /* Nor is anything wrong with an agent that has just started, or that has no hub. */
    facts.running_s = 9;
    facts.hub.is_heard = facts.hub.has_session = false;
    facts.hub.silent_s = -1;
    assert_string_equal(codes(&facts), "");
    facts.running_s = 3600;
    facts.hub.name = NULL;
    assert_string_equal(codes(&facts), "");
    facts.n_peers = 0;
    assert_string_equal(codes(&facts), "");
}

static void test_each_fault_of_the_machine(void **state)
{
    static const struct self_name names[] = {
        {"minio", "n3", "it is taken"}, {"x", "n4", "so"}, {"y", "n5", ""}};
    static const struct self_subnet subnets[] = {
        {"10.9.0.0/24", ""}, {"10.8.0.0/24", "no"}, {"10.7.0.0/24", "nor"}};
    struct self_peer peer;
    struct self_facts facts = well(&peer);

    facts.copied = "two have its key";
    assert_string_equal(codes(&facts), "WEFT-NODE-004 a");
    facts = well(&peer);
    facts.clock_off = "It is ahead.";
    assert_string_equal(codes(&facts), "WEFT-CLOCK-001 a");
    assert_string_equal(sentence(&facts), "It is ahead.");
    facts = well(&peer);
    facts.drained = "its disk is full";
    assert_string_equal(codes(&facts), "WEFT-HEALTH-002 a");
    assert_string_equal(sentence(&facts), "this node is drained: its disk is full");
    facts = well(&peer);
    facts.rates = "this engine cannot";
    assert_string_equal(codes(&facts), "WEFT-RATE-001 a");
    facts = well(&peer);
    facts.rules = "this kernel has no packet filter";
    assert_string_equal(codes(&facts), "WEFT-RULE-001 a");
    facts = well(&peer);
    facts.offloads = "the offload tso is off: it got lost";
    assert_string_equal(codes(&facts), "WEFT-OFFLOAD-001 a");
    facts = well(&peer);
    facts.apart_at = "";
    assert_string_equal(codes(&facts), "");
    facts.apart_at = "eth0";
    assert_string_equal(codes(&facts), "WEFT-OFFLOAD-002 a");
    assert_string_equal(sentence(&facts),
        "datagrams of one flow arrive at eth0 one by one, and its "
        "rx-udp-gro-forwarding is off");
    facts = well(&peer);
    facts.cluster = "nobody listens";
    facts.cluster_s = 9;
    assert_string_equal(codes(&facts), "WEFT-KUBE-001 a");
    assert_string_equal(sentence(&facts),
        "the cluster's API does not answer for 9 s, known peers stay, and no change of the network "
        "is heard of: nobody listens");
    /* Nobody takes anything then either. */
    facts.edges_unwritten = "the API server answers 403: no";
    facts.edges_unwritten_s = 7;
    assert_string_equal(codes(&facts), "WEFT-KUBE-001 a");
    facts.cluster = NULL;
    assert_string_equal(codes(&facts), "WEFT-KUBE-002 a");
    assert_string_equal(sentence(&facts), "this node's parts of edges are not written to the "
                                          "cluster, for 7 s: the API server answers "
                                          "403: no");
    facts = well(&peer);
    facts.names_unwritten = "it is read-only";
    assert_string_equal(codes(&facts), "WEFT-NAME-002 a");
    facts = well(&peer);
    facts.names_unanswered = "port 53 is taken";
    assert_string_equal(codes(&facts), "WEFT-NAME-003 a");
    facts = well(&peer);
    facts.names = names;
    facts.n_names = 1;
    assert_string_equal(codes(&facts), "WEFT-NAME-001 a");
    assert_string_equal(sentence(&facts),
        "the name \"minio\" of node n3 is left out of the hosts file: it is taken");
    facts.n_names = 2;
    assert_string_equal(sentence(&facts), "the name \"minio\" of node n3 is left out of the hosts "
                                          "file: it is taken; the name \"x\" of "
                                          "node n4 is left out of the hosts file: so");
    facts.n_names = 3;
    assert_non_null(strstr(sentence(&facts), "hosts file: so; and 1 more"));
    facts = well(&peer);
    facts.subnets = subnets;
    facts.n_subnets = 1;
    assert_string_equal(codes(&facts), "");
    facts.n_subnets = 3;
    assert_string_equal(codes(&facts), "WEFT-ROUTE-001 a");
    assert_string_equal(sentence(&facts),
        "this node is not yet the way to 10.8.0.0/24: no; nor to 10.7.0.0/24: nor");
}

static void test_foreign_peers_are_forgotten(void **state)
{
    struct self_peer peer;
    struct self_facts facts = well(&peer);

    facts.n_foreign = 2;
    facts.foreign = "AA=";
    facts.foreign_age_s = 599;
    assert_string_equal(codes(&facts), "WEFT-PEERS-001 a");
    assert_string_equal(sentence(&facts),
        "peers that somebody else had added to the interface and that were removed: 2, the last "
        "599 s ago with the public key AA=");
    facts.foreign_age_s = 600;
    assert_string_equal(codes(&facts), "");
}

/* A NAT that forgets, and a network that says how often to say hello. */
static void test_a_keepalive_that_does_not_hold(void **state)
{
    static const struct {
        int64_t keepalive_s;
        int64_t forgets_s;
        bool is_fixed;
        bool is_natted;
        bool is_found;
    } cases[] = {{0, 30, true, true, true}, {30, 30, true, true, true}, {29, 30, true, true, false},
        {0, 30, true, false, false}, {0, 0, true, true, false}, {0, 30, false, true, false}};
    struct self_peer peer;
    struct self_facts facts = well(&peer);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        facts.keepalive_s = cases[i].keepalive_s;
        facts.nat_forgets_s = cases[i].forgets_s;
        facts.is_fixed = cases[i].is_fixed;
        facts.is_natted = cases[i].is_natted;
        assert_string_equal(codes(&facts), cases[i].is_found ? "WEFT-NAT-001 a" : "");
    }
}

/* Then neither the hub nor a peer is blamed. */
static void test_what_is_wrong_here_comes_first(void **state)
{
    struct self_peer peer;
    struct self_facts facts = well(&peer);

    facts.hub.is_heard = facts.hub.has_session = false;
    facts.hub.silent_s = 40;
    peer.session = (struct self_session){.handshake_age_s = 200, .silent_s = 60};
    facts.fault = "no /dev/net/tun";
    assert_string_equal(codes(&facts), "WEFT-APPLY-001 a");
    assert_string_equal(sentence(&facts),
        "the interface is not as it should be, and nobody is reached until it is: no /dev/net/tun");
    facts.n_failed = 1;
    assert_non_null(strstr(sentence(&facts), "; it was tried 1 time: no /dev/net/tun"));
    facts.n_failed = 2;
    assert_non_null(strstr(sentence(&facts), "; it was tried 2 times: "));
    facts.fault = "";
    facts.lockout = "the clock was set back";
    facts.clock_off = "it is behind";
    assert_string_equal(codes(&facts), "WEFT-CLOCK-002 a");
}

static void test_a_hub_that_is_not_reached(void **state)
{
    struct self_peer peer;
    struct self_facts facts = well(&peer);

    /* It is silent for a while before that is said. */
    facts.hub.silent_s = 19;
    assert_string_equal(codes(&facts), "");
    facts.hub.silent_s = 20;
    assert_string_equal(codes(&facts), "WEFT-HUB-003 hub");
    assert_string_equal(sentence(&facts), "hub at 192.0.2.1:51820 has not been heard for 20 s");
    facts.hub.is_heard = false;
    facts.hub.silent_s = 9;
    assert_string_equal(codes(&facts), "");
    facts.hub.silent_s = 10;
    assert_string_equal(codes(&facts), "WEFT-HUB-003 hub");
    facts.hub.silent_s = -1;
    assert_non_null(strstr(sentence(&facts), "does not answer, though its WireGuard does"));
    facts.hub.has_session = false;
    assert_string_equal(sentence(&facts),
        "no handshake with hub comes about at 192.0.2.1:51820: it is down, or UDP to it is "
        "blocked");
    facts.hub.tls_fails = "refused";
    assert_string_equal(
        sentence(&facts), "hub at 192.0.2.1:51820: UDP to it fails, and so does TLS: refused");
    /* Its heartbeats come slower in a large network. */
    facts = well(&peer);
    facts.hub.quiet_s = 23;
    facts.hub.silent_s = 35;
    assert_string_equal(codes(&facts), "");
}

/* Who is reached through it is not to blame, and who went directly may be. */
static void test_peers_beside_a_hub_that_is_lost(void **state)
{
    struct self_peer peers[3];
    struct self_facts facts = well(&peers[0]);

    facts.hub.is_heard = facts.hub.has_session = false;
    facts.hub.silent_s = 40;
    facts.peers = peers;
    facts.n_peers = 3;
    peers[1] = peers[2] = peers[0];
    peers[1].name = "c";
    peers[1].path = SELF_PATH_NONE;
    peers[1].awaits_hub = true;
    peers[1].session = (struct self_session){.handshake_age_s = 60, .silent_s = 40};
    peers[2].name = "d";
    peers[2].path = SELF_PATH_BY_OTHER;
    peers[2].session = (struct self_session){.handshake_age_s = 60, .silent_s = 40};
    assert_string_equal(codes(&facts), "WEFT-PEER-001 a--d;WEFT-HUB-003 hub");
    peers[2].path = SELF_PATH_BY_HUB;
    assert_string_equal(codes(&facts), "WEFT-HUB-003 hub");
}

static void test_a_line_that_is_cut(void **state)
{
    static const struct self_other_hub other = {"hub-b", "it is down"};
    struct self_peer peers[2];
    struct self_facts facts = well(&peers[0]);

    facts.hub.is_heard = false;
    facts.hub.silent_s = 40;
    facts.others = &other;
    facts.n_others = 1;
    facts.peers = peers;
    facts.n_peers = 2;
    /* One that was direct until the line was cut, and one of which nothing is known. */
    peers[1] = peers[0];
    peers[1].name = "c";
    peers[1].path = SELF_PATH_BY_HUB;
    peers[1].session.heard_s = 38;
    peers[0].path = SELF_PATH_NONE;
    peers[0].awaits_hub = true;
    peers[0].fell_back_s = 30;
    peers[0].session = (struct self_session){.handshake_age_s = 60, .silent_s = 28, .heard_s = 50};
    assert_string_equal(codes(&facts), "WEFT-LINE-001 a");
    /* One that was heard after the hub shows that it is not. */
    peers[1].session.heard_s = 35;
    assert_string_equal(codes(&facts), "WEFT-LINE-001 a");
    peers[1].session.heard_s = 34;
    assert_string_equal(codes(&facts), "WEFT-HUB-003 hub;WEFT-HUBS-001 hub-b");
    facts.hub.silent_s = -1;
    peers[1].session.heard_s = 13;
    assert_string_equal(codes(&facts), "WEFT-LINE-001 a");
    peers[1].session.heard_s = 12;
    assert_string_equal(codes(&facts), "WEFT-HUB-003 hub;WEFT-HUBS-001 hub-b");
    facts.hub.silent_s = 40;
    peers[1].session.heard_s = -1;
    /* So does a hub that answers in TLS, and refuses. */
    peers[1].path = SELF_PATH_BY_HUB;
    facts.hub.is_refused = true;
    assert_string_equal(codes(&facts), "WEFT-HUB-003 hub;WEFT-HUBS-001 hub-b");
    facts.hub.is_refused = false;
    assert_string_equal(codes(&facts), "WEFT-LINE-001 a");
    /* Who was relayed by that hub alone says nothing of the line. */
    peers[0].fell_back_s = 0;
    assert_string_equal(codes(&facts), "WEFT-HUB-003 hub;WEFT-HUBS-001 hub-b");
}

static void test_what_is_wrong_with_a_hub_that_answers(void **state)
{
    struct self_peer peer;
    struct self_facts facts = well(&peer);

    facts.hub.by_tls = "UDP is blocked";
    assert_string_equal(codes(&facts), "WEFT-UDP-001 a");
    facts.hub.is_one_way = true;
    assert_string_equal(codes(&facts), "WEFT-UDP-002 a");
    assert_string_equal(sentence(&facts), "UDP is blocked");
    facts = well(&peer);
    facts.hub.refused = "other blocks";
    assert_string_equal(codes(&facts), "WEFT-EVENT-001 hub");
    facts = well(&peer);
    facts.hub.store_behind_s = 34;
    assert_string_equal(codes(&facts), "WEFT-HUB-002 hub");
    assert_string_equal(sentence(&facts),
        "its store has not said for 34 s what has changed; what was changed elsewhere since then "
        "is not known here");
    /* What it is like is not known while it is not heard. */
    facts.hub.is_heard = false;
    facts.hub.silent_s = 40;
    facts.hub.by_tls = "UDP is blocked";
    assert_string_equal(codes(&facts), "WEFT-HUB-003 hub");
}

/* Fresh, late, and stale. */
static void test_handshakes(void **state)
{
    static const struct {
        struct self_session session;
        const char *found;
    } cases[] = {
        {{.handshake_age_s = 134, .renewal_due_s = 14}, ""},
        {{.handshake_age_s = 135, .renewal_due_s = 15}, ""},
        {{.handshake_age_s = 136, .renewal_due_s = 14}, ""},
        {{.handshake_age_s = 136, .renewal_due_s = 15}, "WEFT-HANDSHAKE-001 a--b"},
        {{.handshake_age_s = 900}, ""},
        {{.handshake_age_s = -1}, ""},
        {{.handshake_age_s = 20, .silent_s = 10}, "WEFT-PEER-001 a--b"},
        {{.handshake_age_s = 179, .silent_s = 150}, "WEFT-PEER-001 a--b"},
        {{.handshake_age_s = 180, .silent_s = 25}, "WEFT-HANDSHAKE-002 a--b"},
        {{.handshake_age_s = 200, .silent_s = 30, .renewal_due_s = 60}, "WEFT-HANDSHAKE-002 a--b"},
        {{.handshake_age_s = -1, .silent_s = 179}, "WEFT-PEER-001 a--b"},
        {{.handshake_age_s = -1, .silent_s = 180}, "WEFT-HANDSHAKE-002 a--b"},
    };
    struct self_peer peer;
    struct self_facts facts = well(&peer);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        peer.session = cases[i].session;
        assert_string_equal(codes(&facts), cases[i].found);
    }
    peer.session = (struct self_session){.handshake_age_s = 190, .silent_s = 130};
    assert_string_equal(sentence(&facts),
        "the last handshake with b is 3 min old, and what was sent for 2 min has had no answer");
    peer.session.handshake_age_s = 100;
    peer.path = SELF_PATH_BY_HUB;
    peer.kind = "relay";
    peer.relay = "hub";
    assert_string_equal(sentence(&facts),
        "b does not answer: what was sent to it, relay via hub, for 2 min has had no answer");
}

/* While it may still be this machine's line, nobody is blamed anew. */
static void test_a_silence_while_the_hub_is_late(void **state)
{
    struct self_peer peer;
    struct self_facts facts = well(&peer);
    struct findings f = {.n = 0};

    peer.session = (struct self_session){.handshake_age_s = 60, .silent_s = 30};
    facts.hub.silent_s = 7;
    assert_string_equal(codes(&facts), "");
    facts.hub.silent_s = 6;
    assert_string_equal(codes(&facts), "WEFT-PEER-001 a--b");
    self_find(&f, &facts, NULL, NULL);
    facts.hub.silent_s = 19;
    self_find(&f, &facts, NULL, NULL);
    assert_non_null(findings_find(&f, FINDING_PEER_SILENT, "a--b"));
    findings_deinit(&f);
}

/* Why a path is not what it should be is not asked of a peer that does not answer. */
static void test_paths(void **state)
{
    struct self_peer peer;
    struct self_facts facts = well(&peer);

    peer.path = SELF_PATH_BY_HUB;
    peer.kind = "relay";
    peer.relay = "hub";
    peer.why = "both NATs are symmetric";
    assert_string_equal(codes(&facts), "");
    peer.fell_back_s = 29;
    assert_string_equal(codes(&facts), "");
    peer.fell_back_s = 30;
    assert_string_equal(codes(&facts), "WEFT-PATH-003 a--b");
    /* It was lost, which says more than that it is not there. */
    peer.is_alarm = true;
    assert_string_equal(codes(&facts), "WEFT-PATH-003 a--b");
    peer.fell_back_s = 29;
    assert_string_equal(codes(&facts), "");
    peer.fell_back_s = 0;
    assert_string_equal(codes(&facts), "WEFT-PATH-004 a--b");
    assert_string_equal(sentence(&facts),
        "no direct path to b, though only direct paths are wanted: both NATs are symmetric");
    peer.session.silent_s = 40;
    assert_string_equal(codes(&facts), "WEFT-PEER-001 a--b");
    facts = well(&peer);
    peer.path = SELF_PATH_NONE;
    peer.why = "the edge is set to direct";
    peer.since_s = 29;
    assert_string_equal(codes(&facts), "");
    peer.since_s = 30;
    assert_string_equal(codes(&facts), "WEFT-PATH-002 a--b");
    peer.is_key_refused = true;
    assert_string_equal(codes(&facts), "WEFT-KEY-001 a--b");
    peer.is_off = true;
    assert_string_equal(codes(&facts), "");
}

static void test_short_packets(void **state)
{
    struct self_peer peer;
    struct self_facts facts = well(&peer);

    peer.mtu = 1280;
    assert_string_equal(codes(&facts), "");
    peer.mtu = 1279;
    assert_string_equal(codes(&facts), "WEFT-MTU-001 a--b");
    peer.since_s = 29;
    assert_string_equal(codes(&facts), "");
    peer.since_s = 600;
    peer.mtu = 0;
    assert_string_equal(codes(&facts), "");
}

static void test_longer_round_trips(void **state)
{
    struct findings f = {.n = 0};
    struct self_peer peer;
    struct self_facts facts = well(&peer);

    peer.longer_s = 150;
    peer.longer_ms = 61.25;
    peer.usual_ms = 20;
    assert_string_equal(codes(&facts), "WEFT-RTT-001 a--b");
    self_find(&f, &facts, NULL, NULL);
    assert_string_equal(f.items[0]->text,
        "each round trip between a and b has taken 61.2 ms or more for 2 min, and in the last hour "
        "20.0 ms were usual");
    findings_deinit(&f);
    /* A relay has lines of its own. */
    peer.path = SELF_PATH_BY_HUB;
    assert_string_equal(codes(&facts), "");
}

/* What ends ends, also of a peer that has left, and what goes on keeps its beginning. */
static void test_what_was_found_before(void **state)
{
    struct self_peer peers[2];
    struct self_facts facts = well(&peers[0]);
    struct findings f = {.n = 0};

    peers[0].session.silent_s = 40;
    peers[1] = peers[0];
    peers[1].name = "c";
    facts.n_peers = 2;
    facts.copied = "two have its key";
    self_find(&f, &facts, NULL, NULL);
    assert_int_equal(f.n, 3);
    facts.at += 10;
    facts.n_peers = 1;
    facts.copied = NULL;
    self_find(&f, &facts, NULL, NULL);
    assert_int_equal(f.n, 1);
    assert_int_equal(findings_find(&f, FINDING_PEER_SILENT, "a--b")->since, AT);
    findings_deinit(&f);
}

/* ---- what the hub is told ------------------------------------------------------------------- */

static json_t *parsed(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

static void test_what_the_hub_is_told(void **state)
{
    struct findings f = {.n = 0};
    struct findings back = {.n = 0};
    json_t *json;

    (void)findings_add(&f, FINDING_CLOCK_OFF, "b", AT, "the clock is 12 s off");
    finding_set_fix(findings_add(&f, FINDING_HANDSHAKE_LATE, "b--c", AT, "it is late"), "mend it");
    (void)findings_add(&f, FINDING_HANDSHAKE_LATE, "a--b", AT, "it is late");
    /* The hub sees these itself, and the last two are not of this node. */
    (void)findings_add(&f, FINDING_APPLY_FAILED, "b", AT, "it fails");
    (void)findings_add(&f, FINDING_PAIR_NO_PATH, "a--b", AT, "no path");
    (void)findings_add(&f, FINDING_HUB_UNREACHED, "hub", AT, "not there");
    (void)findings_add(&f, FINDING_HANDSHAKE_LATE, "c--d", AT, "it is late");
    (void)findings_add(&f, FINDING_CLOCK_OFF, "bb", AT, "the clock is 12 s off");
    json = self_encode(&f, "b", AT + 5);
    assert_int_equal(json_array_size(json), 3);
    assert_int_equal(self_decode(&back, json, 1000, NULL), 0);
    assert_int_equal(back.n, 3);
    assert_int_equal(findings_find(&back, FINDING_CLOCK_OFF, "")->since, 995);
    assert_string_equal(findings_find(&back, FINDING_CLOCK_OFF, "")->text, "the clock is 12 s off");
    assert_string_equal(findings_find(&back, FINDING_HANDSHAKE_LATE, "c")->fix, "mend it");
    assert_non_null(findings_find(&back, FINDING_HANDSHAKE_LATE, "a"));
    json_decref(json);
    findings_deinit(&back);
    findings_deinit(&f);
}

static void test_findings_that_are_not_taken(void **state)
{
    static const char *const passed_over[] = {
        "[{'code':'WEFT-NEWER-001','text':'x'}]",
        "[{'code':'WEFT-NODE-001','text':'x'}]",
        "[{'code':'WEFT-CLOCK-001','text':'x','peer':'b'}]",
        "[{'code':'WEFT-HANDSHAKE-001','text':'x'}]",
    };
    static const char *const refused[] = {
        "[1]",
        "[{'code':'WEFT-CLOCK-001'}]",
        "[{'code':'WEFT-CLOCK-001','text':''}]",
        "[{'code':'WEFT-CLOCK-001','text':'x','peer':'B!'}]",
        "[{'code':'WEFT-CLOCK-001','text':'x','forSeconds':-1}]",
    };
    struct findings f = {.n = 0};
    struct err e = ERR_NULL;
    char text[128];
    json_t *json;

    for (size_t i = 0; i < 4 + 5; i++) {
        (void)snprintf(text, sizeof(text), "%s", i < 4 ? passed_over[i] : refused[i - 4]);
        for (char *p = text; *p; p++)
            if (*p == '\'')
                *p = '"';
        json = parsed(text);
        assert_int_equal(self_decode(&f, json, 1, &e), i < 4 ? 0 : -EINVAL);
        assert_int_equal(f.n, 0);
        json_decref(json);
    }
    json = json_array();
    for (unsigned i = 0; i <= SELF_SAID_MAX; i++)
        (void)json_array_append_new(json, json_object());
    assert_int_equal(self_decode(&f, json, 1, &e), -EINVAL);
    assert_string_equal(err_text(&e), "a report has 17 findings, and 16 are allowed");
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_well),
        cmocka_unit_test(test_each_fault_of_the_machine),
        cmocka_unit_test(test_foreign_peers_are_forgotten),
        cmocka_unit_test(test_a_keepalive_that_does_not_hold),
        cmocka_unit_test(test_what_is_wrong_here_comes_first),
        cmocka_unit_test(test_a_hub_that_is_not_reached),
        cmocka_unit_test(test_peers_beside_a_hub_that_is_lost),
        cmocka_unit_test(test_a_line_that_is_cut),
        cmocka_unit_test(test_what_is_wrong_with_a_hub_that_answers),
        cmocka_unit_test(test_handshakes),
        cmocka_unit_test(test_a_silence_while_the_hub_is_late),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_short_packets),
        cmocka_unit_test(test_longer_round_trips),
        cmocka_unit_test(test_what_was_found_before),
        cmocka_unit_test(test_what_the_hub_is_told),
        cmocka_unit_test(test_findings_that_are_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
