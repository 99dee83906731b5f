/* test-node-metrics.c - where Prometheus may ask, and what it is told of the peers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>
#include <cmocka.h>

#include "agent/meter.h"
#include "agent/node_metrics.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "api/content/route.h"
#include "api/server/server.h"
#include "base/err.h"
#include "base/metrics.h"
#include "health/gpu.h"
#include "os/clock.h"
#include "test/support/heard_log.h"
#include "test/support/sample_mesh.h"

#define SEC  NSEC_PER_SEC
#define MS   NSEC_PER_MSEC
#define WALL (1790000000 * SEC)

/* ---- the port ------------------------------------------------------------------------------- */

static void test_places(void **state)
{
    static const struct {
        const char *text;
        const char *at; /* NULL: it is refused */
        bool is_overlay;
    } rows[] = {
        {"10.42.0.2", "10.42.0.2:9586", false},
        {"10.42.0.2:9000", "10.42.0.2:9000", false},
        {"0.0.0.0:1024", "0.0.0.0:1024", false},
        {"[fd00::1]:9000", "[fd00::1]:9000", false},
        {"fd00::1", "[fd00::1]:9586", false},
        {"overlay", "[::]:9586", true},
        {"overlay:9000", "[::]:9000", true},
        {"overlay:", NULL, false},
        {"overlay:0", NULL, false},
        {"overlay:65536", NULL, false},
        {"overlay:1023", NULL, false},
        {"overlays", NULL, false},
        {"10.42.0.2:80", NULL, false},
        {"10.42.0.2:", NULL, false},
        {"10.42.0", NULL, false},
        {"gpu-1:9586", NULL, false},
        {":9586", NULL, false},
        {"", NULL, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct metrics_place place = {.is_overlay = false};
        struct err e = ERR_NULL;
        int r = metrics_place_parse(&place, rows[i].text, METRICS_PORT_AGENT, &e);
        char text[ENDPOINT_TEXT_MAX];

        if (!rows[i].at) {
            if (r == 0 || (rows[i].text[0] && !strstr(err_text(&e), rows[i].text)))
                fail_msg("\"%s\": %d %s", rows[i].text, r, err_text(&e));
            assert_int_equal(place.at.port, 0);
            continue;
        }
        if (r != 0)
            fail_msg("\"%s\": %s", rows[i].text, err_text(&e));
        assert_string_equal(endpoint_format(&place.at, text), rows[i].at);
        assert_int_equal(place.is_overlay, rows[i].is_overlay);
    }
}

static void answer(void *ctx, const struct request *rq, struct response *rs)
{
    response_empty(rs);
}

static const struct route routes[] = {
    {"GET", "/metrics", API_ACCESS_METRICS, answer, ""},
    ROUTES_END,
};

/* An address that is not there is tried again, and said once; then the port is open. */
static void test_an_address_that_comes(void **state)
{
    struct snapshot s = sample_snapshot(2, 2);
    struct metrics_place place = {.at = {.port = METRICS_PORT_AGENT}, .is_overlay = true};
    struct metrics_port p = METRICS_PORT_NULL;
    struct server *server = NULL;
    struct err e = ERR_NULL;
    const char *said;
    uv_loop_t loop;
    struct server_config config = {.loop = &loop, .routes = routes};

    assert_int_equal(uv_loop_init(&loop), 0);
    if (server_new(&server, &config, &e) != 0)
        fail_msg("%s", err_text(&e));
    assert_false(metrics_port_open(&p, 1 * SEC));
    metrics_port_init(&p, &(struct metrics_place){.is_overlay = false}, server, &s);
    assert_true(p.due_at == NSEC_NEVER);
    metrics_port_init(&p, &place, server, &s);
    assert_int_equal(p.due_at, 0);
    heard_log_begin();
    assert_false(metrics_port_open(&p, 1 * SEC));
    said = heard_log_end();
    assert_non_null(strstr(said, "no figures for Prometheus yet, trying again"));
    assert_non_null(strstr(said, "10.42.0.2:9586"));
    assert_true(p.due_at > 1 * SEC && p.due_at < 10 * SEC);
    assert_false(metrics_port_open(&p, p.due_at - 1));
    heard_log_begin();
    assert_false(metrics_port_open(&p, p.due_at));
    assert_string_equal(heard_log_end(), "");
    assert_int_equal(metrics_port_overlay(&p), 0);
    /* It is there now. */
    assert_int_equal(endpoint_parse(&p.at, "127.0.0.1:9586", NULL), 0);
    p.at.port = 0; /* the kernel chooses */
    heard_log_begin();
    assert_true(metrics_port_open(&p, p.due_at));
    assert_non_null(strstr(heard_log_end(), "figures for Prometheus are at http://127.0.0.1:"));
    assert_int_not_equal(p.at.port, 0);
    assert_true(p.due_at == NSEC_NEVER);
    assert_false(metrics_port_open(&p, 100 * SEC));
    server_stop(server);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    server_free(server);
    assert_int_equal(uv_loop_close(&loop), 0);
    snapshot_deinit(&s);
}

static void test_where_others_are_sent(void **state)
{
    static const struct {
        const char *at;
        bool is_open;
        uint16_t port;
    } rows[] = {
        {"10.42.0.2:9586", true, 9586},
        {"10.42.0.2:9586", false, 0},
        {"0.0.0.0:9000", true, 9000},
        {"[::]:9000", true, 9000},
        {"127.0.0.1:9586", true, 0},
        {"[fd00::1]:9586", true, 0},
    };
    struct snapshot s = sample_snapshot(2, 2);

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct metrics_port p = {.is_open = rows[i].is_open, .own = snapshot_self(&s)->address4};

        assert_int_equal(endpoint_parse(&p.at, rows[i].at, NULL), 0);
        if (metrics_port_overlay(&p) != rows[i].port)
            fail_msg("row %zu: %u", i + 1, metrics_port_overlay(&p));
    }
    snapshot_deinit(&s);
}

/* At the overlay address members are answered; at any other everybody. */
static void test_who_is_answered(void **state)
{
    static const struct {
        const char *from;
        bool is_overlay;
        bool is_answered;
    } rows[] = {
        {"10.42.0.9:1", true, true},
        {"[fd5a:1::9]:1", true, true},
        {"192.0.2.1:1", true, false},
        {"[fd5a:2::9]:1", true, false},
        {"192.0.2.1:1", false, true},
    };
    struct snapshot s = sample_snapshot(2, 2);
    struct metrics_port p;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct request rq = {.access = API_ACCESS_METRICS};
        struct response rs = {0};

        metrics_port_init(&p, &(struct metrics_place){.is_overlay = rows[i].is_overlay}, NULL, &s);
        assert_int_equal(endpoint_parse(&rq.from, rows[i].from, NULL), 0);
        if (metrics_port_admits(&p, &rq, &rs) != rows[i].is_answered ||
            (rs.status != 403) != rows[i].is_answered)
            fail_msg("row %zu: %d", i + 1, rs.status);
        response_deinit(&rs);
        /* Who has come through the node's own socket has no such address. */
        rq.access = API_ACCESS_ADMIN;
        assert_true(metrics_port_admits(&p, &rq, &rs));
    }
    snapshot_deinit(&s);
}

/* ---- peers ---------------------------------------------------------------------------------- */

#define N_MANY 1000

/* Room for what is told of this node alone, as how long its passes take. */
#define OTHERS_MAX 16384

/* n2 and its peers, on a clock of 1000 s. */
static struct world {
    struct snapshot snapshot;
    struct observation seen[NODE_METRICS_PEERS_MAX + 2];
    struct reach_peer reached[NODE_METRICS_PEERS_MAX + 2];
    struct observe observe;
    struct reach reach;
    struct render_input render;
    struct node_metrics_facts facts;
    struct meter meter;
} w;

static void make_world(struct snapshot snapshot)
{
    w = (struct world){.snapshot = snapshot};
    w.observe.items = w.seen;
    w.reach.items = w.reached;
    w.render.snapshot = &w.snapshot;
    w.facts = (struct node_metrics_facts){.render = &w.render,
        .seen = &w.observe,
        .reach = &w.reach,
        .now = 1000 * SEC,
        .wall = WALL};
}

static char *tell_peers(void)
{
    struct metrics m = METRICS_NULL;
    char *text;

    node_metrics_add_peers(&m, &w.facts);
    text = metrics_take(&m);
    assert_non_null(text);
    return text;
}

/* Each of the lines is in @text, or, where it begins with '!', is not. */
static void expect_lines(const char *text, const char *const *lines)
{
    for (; *lines; lines++) {
        bool is_wanted = (*lines)[0] != '!';

        if (!strstr(text, *lines + !is_wanted) == is_wanted)
            fail_msg("%s\n%s", *lines, text);
    }
}

static void test_a_peer_that_answers(void **state)
{
    static const char *const lines[] = {"weft_agent_peers 1\n", "weft_agent_peers_left_out 0\n",
        "weft_agent_peer_session{peer=\"n3\"} 1\n", "weft_agent_peer_alarm{peer=\"n3\"} 0\n",
        "weft_agent_peer_path{peer=\"n3\",path=\"direct\"} 1\n",
        "weft_agent_peer_since_timestamp_seconds{peer=\"n3\"} 1789999940\n",
        "weft_agent_peer_rtt_seconds{peer=\"n3\"} 0.0123\n",
        "weft_agent_peer_loss_ratio{peer=\"n3\"} 0.025\n",
        "weft_agent_peer_handshake_age_seconds{peer=\"n3\"} 70\n",
        "weft_agent_peer_unanswered_seconds{peer=\"n3\"} 3\n",
        "weft_agent_peer_bytes_total{peer=\"n3\",direction=\"received\"} 7\n",
        "weft_agent_peer_bytes_total{peer=\"n3\",direction=\"sent\"} 9\n",
        "weft_agent_peer_mtu_bytes{peer=\"n3\"} 1", NULL};
    char *text;

    make_world(sample_snapshot(4, 2));
    w.seen[0] = (struct observation){.key = sample_key(3),
        .facts = {.rx_bytes = 7, .tx_bytes = 9},
        .handshake_at = 930 * SEC,
        .unanswered_since = 997 * SEC};
    w.observe.n = 1;
    w.reached[0] = (struct reach_peer){.node = "n3",
        .kind = PATH_KIND_DIRECT,
        .since = 940 * SEC,
        .is_measured = true,
        .rtt = 12300 * NSEC_PER_USEC,
        .loss_permille = 25};
    w.reach.n = 1;
    text = tell_peers();
    expect_lines(text, lines);
    free(text);
    /* Where nothing is measured there is no number. */
    w.reached[0].is_measured = false;
    text = tell_peers();
    expect_lines(text, (const char *const[]){"!rtt_seconds{", "!loss_ratio{",
                           "weft_agent_peer_path{peer=\"n3\",path=\"direct\"} 1\n", NULL});
    free(text);
    snapshot_deinit(&w.snapshot);
}

/* What is dead has no path and no round trip; how old it is has a number. */
static void test_peers_that_do_not_answer(void **state)
{
    static const char *const lines[] = {"weft_agent_peers 5\n",
        /* Its last handshake is too old to carry packets. */
        "weft_agent_peer_session{peer=\"n3\"} 0\n",
        "weft_agent_peer_handshake_age_seconds{peer=\"n3\"} 181\n",
        /* What is sent to it gets no answer. */
        "weft_agent_peer_session{peer=\"n4\"} 0\n",
        "weft_agent_peer_unanswered_seconds{peer=\"n4\"} 20\n",
        /* No path leads to it. */
        "weft_agent_peer_session{peer=\"n5\"} 0\n",
        /* It was never heard, and somebody should look at it. */
        "weft_agent_peer_session{peer=\"n6\"} 0\n", "weft_agent_peer_alarm{peer=\"n6\"} 1\n",
        "!handshake_age_seconds{peer=\"n6\"}", "!bytes_total{peer=\"n6\"",
        /* It was never heard: there was nothing to say to it. */
        "!peer=\"n7\"", "!rtt_seconds{", "!loss_ratio{", "!peer_path{", "!mtu_bytes{", "!since_",
        NULL};
    char *text;

    make_world(sample_snapshot(7, 2));
    for (unsigned i = 0; i < 5; i++) {
        w.reached[i] = (struct reach_peer){
            .kind = PATH_KIND_RELAY, .is_measured = true, .rtt = 38 * MS, .since = 1 * SEC};
        (void)snprintf(w.reached[i].node, sizeof(w.reached[i].node), "n%u", i + 3);
    }
    for (unsigned i = 0; i < 3; i++)
        w.seen[i] = (struct observation){.key = sample_key(i + 3), .handshake_at = 990 * SEC};
    w.seen[0].handshake_at = 819 * SEC;
    w.seen[1].unanswered_since = 980 * SEC;
    w.reached[2].kind = PATH_KIND_NONE;
    w.reached[3].is_alarm = true;
    w.reach.n = 5;
    w.observe.n = 3;
    text = tell_peers();
    expect_lines(text, lines);
    free(text);
    snapshot_deinit(&w.snapshot);
}

static int compare_reached(const void *a, const void *b)
{
    return strcmp(((const struct reach_peer *)a)->node, ((const struct reach_peer *)b)->node);
}

static int compare_seen(const void *a, const void *b)
{
    return x25519_public_compare(
        &((const struct observation *)a)->key, &((const struct observation *)b)->key);
}

/* As much as the meter keeps, with names as long as they may be. */
static void meter_many(void)
{
    struct traffic *day = &w.meter.days[0];
    char job[NAME_MAX_LEN + 1];

    w.meter.id = 16;
    w.meter.n_days = 1;
    memset(job, 'j', NAME_MAX_LEN);
    job[NAME_MAX_LEN] = '\0';
    for (unsigned i = 0; i < TRAFFIC_FLOWS_MAX; i++) {
        struct traffic_flow *flow = traffic_at(day, 16, w.reached[i].node, job, PATH_KIND_DIRECT);

        assert_non_null(flow);
        traffic_add(flow, UINT64_C(1) << 49, UINT64_C(1) << 49);
    }
    assert_int_equal(day->n, TRAFFIC_FLOWS_MAX);
}

/* @n peers with names as long as they may be, all that is measured, and numbers of many digits. */
static void make_many(unsigned n)
{
    make_world(sample_snapshot(2, 2));
    for (unsigned i = 0; i < n; i++) {
        struct object o = sample_node(i + 3);
        struct reach_peer *path = &w.reached[i];

        (void)snprintf(o.node.meta.name, sizeof(o.node.meta.name), "n%062u", i);
        *path = (struct reach_peer){.kind = PATH_KIND_DIRECT,
            .since = 1 * SEC,
            .is_measured = true,
            .rtt = 123457 * NSEC_PER_USEC,
            .spread = {123457, 234567, 12345, RTT_SAMPLES},
            .loss_permille = 123};
        memcpy(path->node, o.node.meta.name, sizeof(path->node));
        w.seen[i] = (struct observation){.key = o.node.key,
            .facts = {.rx_bytes = UINT64_C(1) << 49,
                .tx_bytes = UINT64_C(1) << 49,
                .arrivals = {.received = UINT64_C(1) << 39,
                    .lost = UINT64_C(1) << 33,
                    .reordered = UINT64_C(1) << 33}},
            .handshake_at = 900 * SEC};
        sample_put(&w.snapshot, o);
    }
    w.reach.n = w.observe.n = n;
    qsort(w.reached, n, sizeof(*w.reached), compare_reached);
    qsort(w.seen, n, sizeof(*w.seen), compare_seen);
}

/* How often @part stands in @text. */
static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

/* All that is told of peers. */
static char *tell_all(void)
{
    struct metrics m = METRICS_NULL;
    char *text;

    meter_add_metrics(&w.meter, &m);
    node_metrics_add_peers(&m, &w.facts);
    observe_add_metrics(&w.observe, &w.snapshot, &m);
    text = metrics_take(&m);
    assert_non_null(text);
    return text;
}

/* A thousand peers fit into 2 MiB, with what is not told of peers beside them, and each has one
 * series of each metric: labels are bounded. */
static void test_a_thousand_peers(void **state)
{
    nsec_t least = NSEC_NEVER;
    char *text = NULL;

    make_many(N_MANY);
    meter_many();
    for (unsigned i = 0; i < 3; i++) {
        nsec_t since = clock_now();

        free(text);
        text = tell_all();
        least = nsec_min(least, clock_now() - since);
    }
    if (strlen(text) >= (2u << 20) - OTHERS_MAX)
        fail_msg("%zu bytes", strlen(text));
    assert_int_equal(count(text, "\nweft_agent_peer_"), 14 * N_MANY);
    assert_int_equal(count(text, "\nweft_peer_"), 3 * N_MANY);
    assert_int_equal(count(text, "{peer=\"n"), (14 + 3) * N_MANY + 2 * TRAFFIC_FLOWS_MAX);
    assert_int_equal(count(text, "\nweft_agent_peer_rtt_seconds{"), N_MANY);
    assert_int_equal(count(text, "=\""), (14 + 5 + 3) * N_MANY + 2 * 4 * TRAFFIC_FLOWS_MAX);
    (void)printf("FIGURE a scrape of %d peers: %.1f ms, %zu bytes\n", N_MANY,
        (double)least / (double)NSEC_PER_MSEC, strlen(text));
    free(text);
    meter_deinit(&w.meter);
    snapshot_deinit(&w.snapshot);
}

static void test_more_peers_than_there_is_space_for(void **state)
{
    char *text;

    make_many(NODE_METRICS_PEERS_MAX + 1);
    text = tell_peers();
    expect_lines(text,
        (const char *const[]){"weft_agent_peers 2001\n", "weft_agent_peers_left_out 1\n", NULL});
    assert_int_equal(count(text, "\nweft_agent_peer_session{"), NODE_METRICS_PEERS_MAX);
    free(text);
    snapshot_deinit(&w.snapshot);
}

/* ---- GPUs ----------------------------------------------------------------------------------- */

static char *tell_gpus(const struct gpu_watch *gpus, int64_t at)
{
    struct metrics m = METRICS_NULL;

    node_metrics_add_gpus(&m, gpus, at);
    return metrics_take(&m);
}

static void test_gpus(void **state)
{
    static struct gpu_watch gpus;
    char *text = tell_gpus(NULL, 1000);

    assert_int_equal(count(text, "weft_agent_gpu"), 0);
    free(text);
    gpus = (struct gpu_watch){.at = 1000,
        .now = {.driver = GPU_DRIVER_OK,
            .n_gpus = 2,
            .gpus = {{.bus = "0000:3b:00.0",
                         .has_use = true,
                         .use = 87,
                         .has_ecc = true,
                         .ecc = 2,
                         .memory = 8000,
                         .memory_used = 600},
                {.bus = "0000:5e:00.0", .is_lost = true, .has_use = true, .use = 87}}},
        .xids = {{.bus = "0000:5e:00.0", .xid = 79, .at = 990}},
        .n_xids = 1};
    text = tell_gpus(&gpus, 1240);
    expect_lines(
        text, (const char *const[]){"weft_agent_gpu_use_ratio{gpu=\"0000:3b:00.0\"} 0.87\n",
                  "weft_agent_gpu_memory_bytes{gpu=\"0000:3b:00.0\"} 8000\n",
                  "weft_agent_gpu_memory_used_bytes{gpu=\"0000:3b:00.0\"} 600\n",
                  "weft_agent_gpu_uncorrected_errors{gpu=\"0000:3b:00.0\"} 2\n",
                  "weft_agent_gpu_fault{gpu=\"0000:5e:00.0\",xid=\"79\"} 1\n", NULL});
    assert_int_equal(count(text, "0000:5e:00.0"), 1);
    free(text);
    /* What is old, and what a driver has said that is gone, is not told. */
    text = tell_gpus(&gpus, 1241);
    assert_int_equal(count(text, "0000:"), 0);
    free(text);
    gpus.now.driver = GPU_DRIVER_SILENT;
    text = tell_gpus(&gpus, 1000);
    assert_int_equal(count(text, "0000:3b:00.0"), 0);
    free(text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_an_address_that_comes),
        cmocka_unit_test(test_where_others_are_sent),
        cmocka_unit_test(test_who_is_answered),
        cmocka_unit_test(test_a_peer_that_answers),
        cmocka_unit_test(test_peers_that_do_not_answer),
        cmocka_unit_test(test_a_thousand_peers),
        cmocka_unit_test(test_more_peers_than_there_is_space_for),
        cmocka_unit_test(test_gpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
