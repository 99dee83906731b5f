/* test-node-report.c - what a node reports of itself, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/meter.h"
#include "agent/node_daily.h"
#include "agent/node_report.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "mesh/object/edge_status.h"
#include "mesh/object/node_status.h"
#include "mesh/object/subnets.h"
#include "mesh/render/render.h"
#include "path/paths.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC

static void test_when_it_is_due(void **state)
{
    static const struct {
        nsec_t after;
        bool edges_changed;
        bool self_changed;
        bool is_due;
    } cases[] = {
        {60 * SEC - 1, false, false, false},
        {60 * SEC, false, false, true},
        {5 * SEC - 1, true, false, false},
        {5 * SEC, true, false, true},
        {200 * MS - 1, false, true, false},
        {200 * MS, false, true, true},
        {200 * MS, true, false, false},
    };
    struct node_report never = {.sent_at = 0};

    assert_true(node_report_is_due(&never, 1));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct node_report nr = {.sent_at = 0};

        node_report_on_sent(&nr, 100 * SEC);
        if (cases[i].edges_changed)
            nr.edges_changed = true;
        if (cases[i].self_changed)
            nr.self_changed = true;
        assert_int_equal(
            node_report_has_changes(&nr), cases[i].edges_changed || cases[i].self_changed);
        assert_true(node_report_within(&nr) == (cases[i].self_changed ? 200 * MS : NSEC_NEVER));
        if (node_report_is_due(&nr, 100 * SEC + cases[i].after) != cases[i].is_due)
            fail_msg("case %zu", i);
    }
}

static void take(struct node_report *nr, enum edge_report_result result)
{
    node_report_on_sent(nr, 100 * SEC);
    node_report_on_result(nr, result);
}

static void test_sent_settles_what_changed(void **state)
{
    struct node_report nr = {.edges_changed = true, .self_changed = true};

    node_report_on_sent(&nr, 100 * SEC);
    assert_false(node_report_has_changes(&nr));
    assert_false(node_report_is_due(&nr, 101 * SEC));
    /* The hub was away, and may have forgotten. */
    node_report_on_hub(&nr);
    assert_true(node_report_is_due(&nr, 101 * SEC));
}

/* Each of what is new makes one due; of what was sent only what was lost is said again. */
static void test_what_becomes_of_a_report(void **state)
{
    struct node_report nr;

    node_report_init(&nr, 7);
    assert_int_equal(nr.edges.run, 7);
    assert_false(node_report_has_changes(&nr));
    nr.edges.has_more = true;
    assert_true(node_report_has_changes(&nr));
    assert_int_equal(node_report_within(&nr), 200 * MS);
    nr.edges.has_more = false;
    node_report_on_sent(&nr, 100 * SEC);
    assert_int_equal(nr.sent_at, 100 * SEC);
    nr.node_reported = json_object();
    nr.traffic_sent = 9;
    node_report_on_result(&nr, EDGE_REPORT_LOST);
    assert_true(nr.edges_changed);
    assert_null(nr.node_reported);
    assert_int_equal(nr.traffic_reported, 0);
    nr.edges_changed = false;
    node_report_on_result(&nr, EDGE_REPORT_TAKEN);
    assert_false(nr.edges_changed || nr.is_old_hub);
    assert_int_equal(nr.traffic_reported, 9);
    nr.traffic_sent = 0;
    node_report_on_result(&nr, EDGE_REPORT_TAKEN);
    assert_int_equal(nr.traffic_reported, 9);
    nr.edges.has_more = true;
    node_report_on_result(&nr, EDGE_REPORT_OLD);
    assert_true(nr.is_old_hub && nr.edges_changed);
    assert_false(nr.edges.has_more);
    nr.edges_changed = false;
    node_report_on_result(&nr, EDGE_REPORT_OLD);
    assert_false(nr.edges_changed);
    nr.edges.begins = false;
    node_report_on_hub(&nr);
    assert_true(nr.edges.begins);
    assert_false(nr.is_old_hub);
    assert_int_equal(nr.sent_at, 0);
    nr.node_reported = json_object();
    node_report_deinit(&nr);
    assert_null(nr.node_reported);
}

static void test_hostname(void **state)
{
    char upper[] = "GPU-Box7";
    char own[] = "n2";
    char domain[] = "box.example.org";
    char empty[] = "";

    assert_true(node_report_hostname(upper, "n2"));
    assert_string_equal(upper, "gpu-box7");
    assert_false(node_report_hostname(own, "n2"));
    assert_false(node_report_hostname(domain, "n2"));
    assert_false(node_report_hostname(empty, "n2"));
}

/* n2 of four: a session with n3, none with n4. */
struct world {
    struct snapshot snapshot;
    struct observation seen[1];
    struct reach_peer reached[2];
    struct observe observe;
    struct reach reach;
    struct path_side self;
    struct subnets routes;
    struct node_speeds speeds;
    struct node_report_facts facts;
};

static struct world *make_world(void)
{
    static struct world w;

    w = (struct world){.snapshot = sample_snapshot(4, 2)};
    w.seen[0] = (struct observation){.key = sample_key(3), .handshake_at = 90 * SEC};
    w.observe = (struct observe){.items = w.seen, .n = 1};
    w.reached[0] = (struct reach_peer){.node = "n3", .kind = PATH_KIND_DIRECT};
    w.reached[1] = (struct reach_peer){.node = "n4", .kind = PATH_KIND_RELAY};
    w.reach = (struct reach){.items = w.reached, .n = 2};
    w.speeds.mb_per_s[0] = 1000;
    w.facts = (struct node_report_facts){.snapshot = &w.snapshot,
        .seen = &w.observe,
        .reach = &w.reach,
        .self = &w.self,
        .routes = &w.routes,
        .speeds = &w.speeds,
        .engine = ENGINE_KIND_USERSPACE,
        .now = 100 * SEC};
    return &w;
}

static json_t *get(const json_t *json, const char *first, const char *second)
{
    return json_object_get(json_object_get(json, first), second);
}

static void test_edges(void **state)
{
    struct world *w = make_world();
    struct node_report nr;
    json_t *json;
    const json_t *edge;

    node_report_init(&nr, 7);
    json = node_report_encode(&nr, &w->facts);
    edge = get(json, "edges", "n3");

    assert_string_equal(json_string_value(json_object_get(edge, "path")), "direct");
    assert_int_equal(json_integer_value(json_object_get(edge, "handshakeAgeSeconds")), 10);
    assert_null(json_object_get(edge, "alarm"));
    /* Nobody ever spoke there. */
    assert_null(get(json, "edges", "n4"));
    json_decref(json);
    /* But somebody should look at it. */
    w->reached[1].is_alarm = true;
    take(&nr, EDGE_REPORT_TAKEN);
    json = node_report_encode(&nr, &w->facts);
    assert_null(get(json, "edges", "n3"));
    edge = get(json, "edges", "n4");
    assert_true(json_is_true(json_object_get(edge, "alarm")));
    assert_true(json_is_null(json_object_get(edge, "handshakeAgeSeconds")));
    json_decref(json);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

static void edges_are(struct node_report *nr, const struct world *w, const char *expected)
{
    json_t *wanted = json_loads(expected, 0, NULL);
    json_t *json = node_report_encode(nr, &w->facts);
    char *text = json_dumps(json_object_get(json, "edges"), JSON_COMPACT);

    assert_non_null(wanted);
    if (!json_equal(json_object_get(json, "edges"), wanted))
        fail_msg("%s", text);
    free(text);
    json_decref(wanted);
    json_decref(json);
    take(nr, nr->is_old_hub ? EDGE_REPORT_OLD : EDGE_REPORT_TAKEN);
}

/* All that is said of an edge, and that it is said once. */
static void test_all_of_an_edge(void **state)
{
    struct world *w = make_world();
    struct object edge = sample_edge(2, 3, EDGE_PATH_AUTO);
    char key[X25519_BASE64_MAX];
    char text[1024];
    struct node_report nr;

    (void)x25519_public_format(&w->seen[0].key, key);
    edge.edge.rate = 20000000;
    sample_put(&w->snapshot, edge);
    w->seen[0].endpoint = endpoint("198.51.100.3:51820");
    node_report_init(&nr, 7);
    /* Where the engine has it. */
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":10,"
        "\"endpoint\":\"198.51.100.3:51820\",\"publicKey\":\"%s\"}}",
        key);
    edges_are(&nr, w, text);
    edges_are(&nr, w, "{}");
    /* Where packets go to; a handshake that is later than now is as old as now. */
    w->reached[0].remote = endpoint("[fe80::7]:4000");
    w->reached[0].remote.scope = 3;
    w->seen[0].handshake_at = 101 * SEC;
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":0,"
        "\"endpoint\":\"[fe80::7]:4000\",\"publicKey\":\"%s\"}}",
        key);
    edges_are(&nr, w, text);
    edges_are(&nr, w, "{}");
    /* Another key than the pinned one is worse than a rate that is not kept. */
    w->facts.rates_why = "no such scheduler";
    (void)snprintf(w->reached[0].why, sizeof(w->reached[0].why), "%s", render_why_key);
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":0,\"endpoint\":\"[fe80::7]:4000\","
        "\"publicKey\":\"%s\",\"error\":\"%s\"}}",
        key, render_why_key);
    edges_are(&nr, w, text);
    /* It is told of also where nobody ever spoke. */
    w->observe.n = 0;
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":null,"
        "\"endpoint\":\"[fe80::7]:4000\",\"error\":\"%s\"}}",
        render_why_key);
    edges_are(&nr, w, text);
    w->reached[0].why[0] = '\0';
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":null,"
        "\"endpoint\":\"[fe80::7]:4000\",\"error\":\"its rate is not kept: no such scheduler\"}}");
    edges_are(&nr, w, text);
    /* Why the path is no better one goes along, and what there is of it in 200 bytes. */
    w->facts.rates_why = "";
    w->observe.n = 1;
    w->reached[0].kind = PATH_KIND_RELAY;
    memset(w->reached[0].why, 'y', 250);
    w->reached[0].why[250] = '\0';
    w->reached[0].why[3] = '\033';
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"relay\",\"handshakeAgeSeconds\":0,\"endpoint\":\"[fe80::7]:4000\","
        "\"publicKey\":\"%s\",\"why\":\"yyy %.196s\"}}",
        key, w->reached[0].why + 4);
    edges_are(&nr, w, text);
    w->reached[0].why[0] = 'x';
    edges_are(&nr, w, "{}");
    w->reached[0].kind = PATH_KIND_DIRECT;
    w->facts.rates_why = "no such scheduler";
    /* Nor is one left out that had a path, and has none. */
    w->facts.rates_why = NULL;
    w->reached[0].why[0] = '\0';
    w->observe.n = 0;
    w->reached[0].kind = PATH_KIND_NONE;
    w->reached[0].fell_back_at = 5 * SEC;
    edges_are(&nr, w,
        "{\"n3\":{\"path\":\"none\",\"handshakeAgeSeconds\":null,"
        "\"endpoint\":\"[fe80::7]:4000\"}}");
    w->reached[0].kind = PATH_KIND_DIRECT;
    /* An older hub knows of none of that. */
    w->observe.n = 1;
    w->seen[0].handshake_at = 90 * SEC;
    nr.is_old_hub = true;
    edges_are(&nr, w, "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":10}}");
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

/* What is lost is told when it begins and when it is over, and when it is known at all. */
static void test_loss(void **state)
{
    struct world *w = make_world();
    struct loss_track track = {.n = 0};
    struct node_report nr;
    char key[X25519_BASE64_MAX];
    char text[1024];

    (void)x25519_public_format(&w->seen[0].key, key);
    w->seen[0].loss = &track;
    node_report_init(&nr, 7);
    loss_track_add(&track, 0, 0, 0, 40 * SEC);
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":10,\"publicKey\":\"%s\"}}", key);
    edges_are(&nr, w, text);
    for (unsigned i = 1; i <= 60; i++)
        loss_track_add(&track, 999, i % 10 == 0, 0, (40 + i) * SEC);
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":10,\"lossIn\":{\"lost\":6,"
        "\"packets\":59946,\"seconds\":60,\"periods\":6},\"publicKey\":\"%s\"}}",
        key);
    edges_are(&nr, w, text);
    /* Another figure of the same level is not. */
    loss_track_add(&track, 9990, 3, 0, 101 * SEC);
    edges_are(&nr, w, "{}");
    for (unsigned i = 0; i < 30; i++)
        loss_track_add(&track, 990, 10, 0, (102 + i) * SEC);
    w->facts.now = 131 * SEC;
    w->seen[0].handshake_at = 121 * SEC;
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":10,\"lossIn\":{\"lost\":305,"
        "\"packets\":59975,\"seconds\":51,\"periods\":6,\"usualPpm\":100,\"isWorse\":true},"
        "\"publicKey\":\"%s\"}}",
        key);
    edges_are(&nr, w, text);
    assert_int_equal(track.level, LOSS_LEVEL_SOME);
    /* That it is worse than usual no more is told. */
    track.is_worse = false;
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":10,\"lossIn\":{\"lost\":305,"
        "\"packets\":59975,\"seconds\":51,\"periods\":6,\"usualPpm\":100},"
        "\"publicKey\":\"%s\"}}",
        key);
    edges_are(&nr, w, text);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

/* Round trips are told when they are known, when they differ much, and when they are known no more.
 */
static void test_round_trips(void **state)
{
    struct world *w = make_world();
    struct rtt_spread *spread = &w->reached[0].spread;
    struct node_report nr;
    char key[X25519_BASE64_MAX];
    char text[1024];

    (void)x25519_public_format(&w->seen[0].key, key);
    node_report_init(&nr, 7);
    *spread = (struct rtt_spread){20000, 31500, 250, 120, 0};
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":10,\"rtt\":{\"p50Ms\":20.0,"
        "\"p99Ms\":31.5,\"jitterMs\":0.25,\"samples\":120},\"publicKey\":\"%s\"}}",
        key);
    edges_are(&nr, w, text);
    *spread = (struct rtt_spread){21000, 40000, 9000, 200, 0};
    edges_are(&nr, w, "{}");
    spread->p99_us = 80000;
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":10,\"rtt\":{\"p50Ms\":21.0,"
        "\"p99Ms\":80.0,\"jitterMs\":9.0,\"samples\":200},\"publicKey\":\"%s\"}}",
        key);
    edges_are(&nr, w, text);
    spread->usual_us = 20000;
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":10,\"rtt\":{\"p50Ms\":21.0,"
        "\"p99Ms\":80.0,\"jitterMs\":9.0,\"samples\":200,\"usualMs\":20.0},\"publicKey\":\"%s\"}}",
        key);
    edges_are(&nr, w, text);
    *spread = (struct rtt_spread){.samples = 0};
    (void)snprintf(text, sizeof(text),
        "{\"n3\":{\"path\":\"direct\",\"handshakeAgeSeconds\":10,\"publicKey\":\"%s\"}}", key);
    edges_are(&nr, w, text);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

/* A sample is told until the hub has it, and to each hub. */
static void test_samples_of_lines(void **state)
{
    static struct node_daily daily;
    struct world *w = make_world();
    struct node_report nr;
    json_t *json;

    daily = (struct node_daily){.n = 1, .seq = 5, .peers = {{.name = "n3", .seq = 5}}};
    daily.peers[0].sample = (struct daily_sample){.day = 20786, .raw_kbit = {7, 0}};
    w->facts.daily = &daily;
    node_report_init(&nr, 7);
    for (unsigned i = 0; i < 4; i++) {
        json = node_report_encode(&nr, &w->facts);
        assert_int_equal(json_object_size(json_object_get(json, "daily")), i < 2 || i == 3);
        json_decref(json);
        take(&nr, i == 0 ? EDGE_REPORT_LOST : EDGE_REPORT_TAKEN);
        daily.seq = daily.peers[0].seq = i == 2 ? 6 : daily.seq;
    }
    /* Another hub has none of it. */
    node_report_on_hub(&nr);
    json = node_report_encode(&nr, &w->facts);
    assert_int_equal(json_object_size(json_object_get(json, "daily")), 1);
    json_decref(json);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

/* A rate of an edge that the engine does not keep is told with that edge, also before a handshake.
 */
static void test_a_rate_that_is_not_kept(void **state)
{
    struct world *w = make_world();
    struct object edge = sample_edge(2, 4, EDGE_PATH_AUTO);
    struct node_report nr;
    json_t *json;

    edge.edge.rate = 20000000;
    sample_put(&w->snapshot, edge);
    node_report_init(&nr, 7);
    w->facts.rates_why = "the kernel's WireGuard keeps no rates";
    json = node_report_encode(&nr, &w->facts);
    assert_null(json_object_get(get(json, "edges", "n3"), "error"));
    assert_string_equal(json_string_value(json_object_get(get(json, "edges", "n4"), "error")),
        "its rate is not kept: the kernel's WireGuard keeps no rates");
    json_decref(json);
    /* Another engine keeps it. */
    w->facts.rates_why = "";
    take(&nr, EDGE_REPORT_TAKEN);
    json = node_report_encode(&nr, &w->facts);
    assert_true(json_is_null(get(json, "edges", "n4")));
    json_decref(json);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

/* ---- a hub that takes in what is said ------------------------------------------------------- */

enum { MANY = 5000 };

/* All of them with a session and a direct path. */
static struct world *make_large_world(void)
{
    static struct reach_peer reached[MANY];
    static struct observation seen[MANY];
    static struct world w;

    w = (struct world){.snapshot = sample_snapshot(4, 2)};
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(reached[i].node, sizeof(reached[i].node), "p%05u", i);
        reached[i].kind = PATH_KIND_DIRECT;
        reached[i].is_alarm = true;
        reached[i].why[0] = '\0';
    }
    w.observe = (struct observe){.items = seen, .n = 0};
    w.reach = (struct reach){.items = reached, .n = MANY};
    w.facts = (struct node_report_facts){.snapshot = &w.snapshot,
        .seen = &w.observe,
        .reach = &w.reach,
        .self = &w.self,
        .routes = &w.routes,
        .speeds = &w.speeds,
        .engine = ENGINE_KIND_USERSPACE,
        .fault = "",
        .applied = 40,
        .now = 100 * SEC};
    return &w;
}

/* A hub's half, which shares no code with the agent's. */
struct hub {
    struct edge_parts edges;
    struct edge_sequence said;
    unsigned n_reports;
};

static enum edge_report_result hear(struct hub *h, const json_t *body)
{
    json_t *text = json_object_get(body, "edges");
    bool begins = json_is_true(json_object_get(body, "begins"));
    struct edge_parts delta = {.owner = EDGE_OWNER_AGENT};
    char *bytes = json_dumps(body, JSON_COMPACT);

    assert_true(strlen(bytes) <= 64u << 10);
    free(bytes);
    h->n_reports++;
    if (!edge_sequence_takes(&h->said, (uint64_t)json_integer_value(json_object_get(body, "run")),
            (uint64_t)json_integer_value(json_object_get(body, "number")), begins))
        return EDGE_REPORT_AGAIN;
    if (begins)
        edge_parts_begin(&h->edges);
    assert_int_equal(edge_parts_decode(&delta, text, 1000, NULL), 0);
    for (size_t i = 0; i < delta.n; i++) {
        if (delta.items[i]->is_gone) {
            edge_parts_remove(&h->edges, delta.items[i]->peer);
            continue;
        }
        assert_int_equal(edge_parts_put(&h->edges, delta.items[i]), 0);
        delta.items[i] = NULL;
    }
    edge_parts_deinit(&delta);
    if (json_is_true(json_object_get(body, "ends")))
        edge_parts_end(&h->edges);
    return EDGE_REPORT_TAKEN;
}

/* One report. @is_lost: it does not arrive; @is_unanswered: it does, and its answer does not. */
static void exchange(
    struct node_report *nr, struct world *w, struct hub *h, bool is_lost, bool is_unanswered)
{
    json_t *body = node_report_encode(nr, &w->facts);
    enum edge_report_result became = is_lost ? EDGE_REPORT_LOST : hear(h, body);

    node_report_on_sent(nr, w->facts.now);
    node_report_on_result(nr, is_unanswered ? EDGE_REPORT_LOST : became);
    json_decref(body);
}

static void exchange_all(struct node_report *nr, struct world *w, struct hub *h)
{
    do
        exchange(nr, w, h, false, false);
    while (nr->edges.has_more);
}

static void compare(const struct hub *h, const struct world *w, size_t n)
{
    assert_int_equal(h->edges.n, n);
    for (size_t i = 0; i < n; i++) {
        const struct edge_part *part = edge_parts_find(&h->edges, w->reach.items[i].node);

        assert_non_null(part);
        assert_int_equal(part->said.path, w->reach.items[i].kind);
    }
}

/* Thousands of edges in reports of bounded size; then only what is different. */
static void test_thousands_of_edges(void **state)
{
    struct world *w = make_large_world();
    struct hub h = {.n_reports = 0};
    struct node_report nr;
    json_t *body;

    node_report_init(&nr, 7);
    exchange_all(&nr, w, &h);
    compare(&h, w, MANY);
    assert_true(h.n_reports > 1);
    body = node_report_encode(&nr, &w->facts);
    assert_int_equal(json_object_size(json_object_get(body, "edges")), 0);
    assert_null(json_object_get(body, "node"));
    node_report_on_result(&nr, hear(&h, body));
    json_decref(body);
    w->reach.items[77].kind = PATH_KIND_RELAY;
    body = node_report_encode(&nr, &w->facts);
    assert_int_equal(json_object_size(json_object_get(body, "edges")), 1);
    node_report_on_result(&nr, hear(&h, body));
    json_decref(body);
    /* The last ones leave. */
    w->reach.n = MANY - 10;
    exchange_all(&nr, w, &h);
    compare(&h, w, MANY - 10);
    edge_parts_deinit(&h.edges);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

/* Whatever is lost, the hub ends with what there is. */
static void test_what_is_lost(void **state)
{
    struct world *w = make_large_world();
    struct hub h = {.n_reports = 0};
    struct node_report nr;

    w->reach.n = 400;
    node_report_init(&nr, 7);
    for (unsigned i = 0; i < 2000; i++) {
        struct reach_peer *path = &w->reach.items[i * 7919 % w->reach.n];

        path->kind = path->kind == PATH_KIND_DIRECT ? PATH_KIND_RELAY : PATH_KIND_DIRECT;
        path->is_alarm = i % 11 != 0;
        exchange(&nr, w, &h, i % 5 == 1, i % 7 == 2);
        /* Now and then the hub is started anew. */
        if (i % 97 == 96) {
            edge_parts_deinit(&h.edges);
            h.said = (struct edge_sequence){.run = 0};
        }
    }
    for (size_t i = 0; i < w->reach.n; i++)
        w->reach.items[i].is_alarm = true;
    exchange(&nr, w, &h, false, false);
    exchange_all(&nr, w, &h);
    compare(&h, w, w->reach.n);
    edge_parts_deinit(&h.edges);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

/* To an older hub each report is all that there is. */
static void test_older_hub(void **state)
{
    struct world *w = make_large_world();
    struct node_report nr;
    json_t *body;

    node_report_init(&nr, 7);
    for (unsigned i = 0; i < 3; i++) {
        body = node_report_encode(&nr, &w->facts);
        take(&nr, EDGE_REPORT_OLD);
        assert_false(nr.edges.has_more);
        assert_int_equal(nr.edges_changed, i == 0);
        if (i > 0) {
            assert_int_equal(json_object_size(json_object_get(body, "edges")), 340);
            assert_null(json_object_get(body, "run"));
            assert_non_null(json_object_get(body, "node"));
        }
        json_decref(body);
    }
    node_report_on_hub(&nr);
    body = node_report_encode(&nr, &w->facts);
    assert_true(json_is_true(json_object_get(body, "begins")));
    json_decref(body);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

static void test_applied(void **state)
{
    char fault[EDGE_ERROR_MAX + 8] = "";
    struct world *w = make_large_world();
    struct node_report nr;
    json_t *body;

    w->reach.n = 0;
    node_report_init(&nr, 7);
    w->facts.fault = "no \"weft-wg\"\nthere";
    body = node_report_encode(&nr, &w->facts);
    assert_int_equal(json_integer_value(get(body, "applied", "revision")), 40);
    assert_string_equal(json_string_value(get(body, "applied", "error")), "no \"weft-wg\" there");
    json_decref(body);
    /* As much of it as the hub takes; none where there is none. */
    memset(fault, 'x', sizeof(fault) - 1);
    w->facts.fault = fault;
    body = node_report_encode(&nr, &w->facts);
    assert_int_equal(strlen(json_string_value(get(body, "applied", "error"))), EDGE_ERROR_MAX);
    json_decref(body);
    w->facts.fault = NULL;
    body = node_report_encode(&nr, &w->facts);
    assert_int_equal(json_object_size(json_object_get(body, "applied")), 1);
    json_decref(body);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

static void test_node(void **state)
{
    static const struct fabric_report fabric = {.kind = "efa", .gbit = 400};
    struct world *w = make_world();
    struct node_report nr;
    json_t *json;

    node_report_init(&nr, 7);
    json = node_report_encode(&nr, &w->facts);
    assert_string_equal(json_string_value(get(json, "node", "engine")), "userspace");
    assert_non_null(get(json, "node", "aead"));
    assert_null(get(json, "node", "hostname"));
    assert_null(get(json, "node", "routes"));
    assert_null(get(json, "node", "metricsPort"));
    assert_null(get(json, "node", "nat"));
    assert_null(get(json, "node", "fabric"));
    json_decref(json);

    w->facts.engine = ENGINE_KIND_KERNEL;
    w->facts.hostname = "box7";
    w->facts.nat = &(struct keepalive_bounds){.lives = 27 * SEC, .dies = 28500 * MS};
    w->facts.is_natted = true;
    w->facts.metrics_port = 9586;
    assert_int_equal(subnets_parse(&w->routes, "10.9.0.0/24", NULL), 0);
    json = node_report_encode(&nr, &w->facts);
    assert_string_equal(json_string_value(get(json, "node", "engine")), "kernel");
    assert_null(get(json, "node", "aead"));
    assert_string_equal(json_string_value(get(json, "node", "hostname")), "box7");
    assert_int_equal(json_array_size(get(json, "node", "routes")), 1);
    assert_int_equal(
        json_integer_value(json_object_get(get(json, "node", "nat"), "survivedMs")), 27000);
    assert_int_equal(
        json_integer_value(json_object_get(get(json, "node", "nat"), "forgottenMs")), 28500);
    assert_true(json_is_true(json_object_get(get(json, "node", "nat"), "natted")));
    assert_int_equal(json_integer_value(get(json, "node", "metricsPort")), 9586);
    json_decref(json);

    w->facts.engine = ENGINE_KIND_AUTO;
    w->facts.fabric = &fabric;
    json = node_report_encode(&nr, &w->facts);
    assert_string_equal(json_string_value(get(json, "node", "engine")), "");
    assert_string_equal(
        json_string_value(json_object_get(get(json, "node", "fabric"), "kind")), "efa");
    json_decref(json);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

/* What is found is in each report, and another finding makes one due, but not other figures. */
static void test_findings(void **state)
{
    struct world *w = make_world();
    const char *self = w->snapshot.self;
    struct findings found = {.n = 0};
    struct node_report nr;
    json_t *body;

    w->facts.wall_s = 1000;
    w->facts.findings = &found;
    node_report_init(&nr, 7);
    node_report_on_findings(&nr, &w->facts);
    assert_false(nr.edges_changed);
    body = node_report_encode(&nr, &w->facts);
    assert_true(json_is_array(json_object_get(body, "findings")));
    json_decref(body);
    take(&nr, EDGE_REPORT_TAKEN);

    (void)findings_add(&found, FINDING_CLOCK_OFF, self, 990, "12 s off");
    node_report_on_findings(&nr, &w->facts);
    assert_true(nr.edges_changed);
    body = node_report_encode(&nr, &w->facts);
    assert_int_equal(json_array_size(json_object_get(body, "findings")), 1);
    json_decref(body);
    take(&nr, EDGE_REPORT_TAKEN);
    (void)findings_add(&found, FINDING_CLOCK_OFF, self, 995, "13 s off");
    node_report_on_findings(&nr, &w->facts);
    assert_false(nr.edges_changed);
    (void)findings_add(&found, FINDING_DISK_LOW, self, 995, "it is nearly full");
    node_report_on_findings(&nr, &w->facts);
    assert_true(nr.edges_changed);
    take(&nr, EDGE_REPORT_TAKEN);
    /* It is over. */
    findings_deinit(&found);
    node_report_on_findings(&nr, &w->facts);
    assert_true(nr.edges_changed);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

/* What moved: number by number, beside few edges, and from the first on to a hub that begins. */
static void test_what_moved(void **state)
{
    struct world *w = make_large_world();
    struct meter m = {.id = 7, .counters = calloc(1, sizeof(*m.counters)), .has_counters = true};
    struct observation seen = {.key = sample_key(3), .facts.tx_bytes = 500};
    struct observe observe = {.items = &seen, .n = 1};
    struct reach reach = {.n = 0};
    struct meter_facts moved = {
        .snapshot = &w->snapshot, .seen = &observe, .reach = &reach, .wall_s = 1790000000};
    struct node_report nr;
    json_t *body;

    m.n_counters = 1;
    m.counters[0] = (struct meter_counter){.key = sample_key(3), .sent = 100};
    assert_int_equal(meter_look(&m, &moved), 0);
    assert_true(meter_settle(&m));
    assert_true(m.seq > 0);
    w->reach.n = 76;
    w->facts.meter = &m;
    node_report_init(&nr, 7);
    /* Beside so many edges there is no room. */
    body = node_report_encode(&nr, &w->facts);
    assert_null(json_object_get(body, "traffic"));
    assert_true(nr.edges.has_more);
    json_decref(body);
    w->reach.n = 75;
    nr.edges.has_more = false;
    body = node_report_encode(&nr, &w->facts);
    assert_non_null(json_object_get(body, "traffic"));
    assert_false(nr.edges.has_more);
    assert_int_equal(nr.traffic_sent, m.seq);
    json_decref(body);
    take(&nr, EDGE_REPORT_TAKEN);
    assert_int_equal(nr.traffic_reported, m.seq);
    /* The hub has all of it. */
    body = node_report_encode(&nr, &w->facts);
    assert_null(json_object_get(body, "traffic"));
    assert_int_equal(nr.traffic_sent, 0);
    json_decref(body);
    take(&nr, EDGE_REPORT_TAKEN);
    assert_int_equal(nr.traffic_reported, m.seq);
    /* One that begins has none of it; an older one takes none. */
    node_report_on_hub(&nr);
    body = node_report_encode(&nr, &w->facts);
    assert_non_null(json_object_get(body, "traffic"));
    json_decref(body);
    nr.traffic_reported = 0;
    nr.is_old_hub = true;
    body = node_report_encode(&nr, &w->facts);
    assert_null(json_object_get(body, "traffic"));
    json_decref(body);
    nr.is_old_hub = false;
    w->facts.meter = NULL;
    body = node_report_encode(&nr, &w->facts);
    assert_null(json_object_get(body, "traffic"));
    json_decref(body);
    meter_deinit(&m);
    node_report_deinit(&nr);
    snapshot_deinit(&w->snapshot);
}

/* ---- its parts of edges ---------------------------------------------------------------------- */

/* As the hub would show them: each with what was applied, and all of them each time. */
static void test_parts_of_edges(void **state)
{
    struct world *w = make_world();
    json_t *asked_for;
    json_t *expected;
    json_t *parts;

    w->reached[1].is_alarm = true;
    w->facts.applied = 40;
    w->facts.fault = "no tun";
    sample_put(&w->snapshot, sample_edge(2, 3, EDGE_PATH_AUTO));
    for (unsigned i = 0; i < 2; i++) {
        parts = node_report_parts(&w->facts, &asked_for);
        assert_int_equal(json_object_size(parts), 2);
        expected =
            json_pack("{s:s, s:i, s:s, s:{s:i, s:s, s:s}}", "path", "direct", "handshakeAgeSeconds",
                10, "publicKey", json_string_value(get(parts, "n3", "publicKey")), "applied",
                "revision", 40, "error", "no tun", "engine", "userspace");
        assert_true(json_equal(json_object_get(parts, "n3"), expected));
        assert_true(json_is_true(get(parts, "n4", "alarm")));
        json_decref(expected);
        json_decref(parts);
        /* Somebody has asked for one of the two. */
        expected = json_pack("{s:b}", "n3", 1);
        assert_true(json_equal(asked_for, expected));
        json_decref(expected);
        json_decref(asked_for);
    }
    snapshot_deinit(&w->snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_it_is_due),
        cmocka_unit_test(test_sent_settles_what_changed),
        cmocka_unit_test(test_what_becomes_of_a_report),
        cmocka_unit_test(test_hostname),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_all_of_an_edge),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_samples_of_lines),
        cmocka_unit_test(test_a_rate_that_is_not_kept),
        cmocka_unit_test(test_thousands_of_edges),
        cmocka_unit_test(test_what_is_lost),
        cmocka_unit_test(test_older_hub),
        cmocka_unit_test(test_applied),
        cmocka_unit_test(test_node),
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_what_moved),
        cmocka_unit_test(test_parts_of_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
