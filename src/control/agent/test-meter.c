/* test-meter.c - what is counted over restarts, days and jobs, and what a hub makes of the reports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/meter.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "base/err.h"
#include "base/metrics.h"
#include "base/secret.h"
#include "test/support/sample_mesh.h"

#define DAY  86400
#define NOON (INT64_C(20780) * DAY + DAY / 2)

/* The hub's key is the greatest one, though its name is the first. */
#define HUB 9

/* n2 of four, and an engine with counters for the hub, n3 and n4. */
struct world {
    struct snapshot snapshot;
    struct observation seen[3];
    struct reach_peer reached[2];
    struct observe observe;
    struct reach reach;
    struct meter meter;
    bool is_streamed;
    int64_t wall_s;
};

static int by_key(const void *a, const void *b)
{
    const struct observation *x = a;
    const struct observation *y = b;

    return x25519_public_compare(&x->key, &y->key);
}

static struct world *make_world(void)
{
    static const unsigned peers[] = {HUB, 3, 4};
    static struct world w;
    struct object hub = sample_node(1);

    w = (struct world){.snapshot = sample_snapshot(4, 2), .wall_s = NOON};
    hub.node.key = sample_key(HUB);
    sample_put(&w.snapshot, hub);
    for (unsigned i = 0; i < 3; i++)
        w.seen[i].key = sample_key(peers[i]);
    qsort(w.seen, 3, sizeof(w.seen[0]), by_key);
    w.observe = (struct observe){.items = w.seen, .n = 3};
    w.reached[0] = (struct reach_peer){.node = "n3", .kind = PATH_KIND_DIRECT};
    w.reached[1] = (struct reach_peer){.node = "n4", .kind = PATH_KIND_RELAY};
    w.reach = (struct reach){.items = w.reached, .n = 2};
    w.meter = (struct meter){.id = 17};
    return &w;
}

static void end_world(struct world *w)
{
    meter_deinit(&w->meter);
    snapshot_deinit(&w->snapshot);
}

/* The engine's counters of a peer. */
static struct wg_facts *counters(struct world *w, unsigned peer)
{
    struct x25519_public key = sample_key(peer);
    struct observation *ob = (struct observation *)observe_find(&w->observe, &key);

    assert_non_null(ob);
    return &ob->facts;
}

static void look(struct world *w)
{
    struct meter_facts facts = {.snapshot = &w->snapshot,
        .seen = &w->observe,
        .reach = &w->reach,
        .is_streamed = w->is_streamed,
        .wall_s = w->wall_s};

    assert_int_equal(meter_look(&w->meter, &facts), 0);
}

static void move(struct world *w, unsigned peer, uint64_t sent, uint64_t received)
{
    counters(w, peer)->tx_bytes += sent;
    counters(w, peer)->rx_bytes += received;
}

static struct traffic_flow *flow_find(
    const struct traffic *t, uint64_t meter, const char *peer, const char *job, enum path_kind path)
{
    for (size_t i = 0; i < t->n; i++) {
        struct traffic_flow *f = &t->flows[i];

        if (f->meter == meter && f->path == path && strcmp(f->peer, peer) == 0 &&
            strcmp(f->job, job) == 0)
            return f;
    }
    return NULL;
}

static const struct traffic_flow *flow(
    const struct world *w, const char *peer, const char *job, enum path_kind path)
{
    const struct traffic *day = &w->meter.days[w->meter.n_days - 1];
    const struct traffic_flow *f = flow_find(day, w->meter.id, peer, job, path);

    assert_non_null(f);
    return f;
}

static void set_members(struct world *w, const char *job, const char *names)
{
    json_t *json = json_loads(names, 0, NULL);

    meter_job_members(meter_job_find(&w->meter, job), json);
    json_decref(json);
}

/* The agent's program is replaced: what was written is all that is left. */
static void restart_agent(struct world *w)
{
    struct err e = ERR_NULL;
    json_t *json;

    (void)meter_settle(&w->meter);
    json = meter_encode(&w->meter);
    meter_deinit(&w->meter);
    assert_int_equal(meter_decode(&w->meter, json, "test", &e), 0);
    json_decref(json);
}

static void test_restarts(void **state)
{
    struct world *w = make_world();

    /* What an engine had moved before there was a meter is not today's. */
    move(w, 3, 5000, 5000);
    look(w);
    assert_int_equal(w->meter.days[0].n, 0);
    assert_int_equal(w->meter.n_counters, 1);
    move(w, 3, 100, 10);
    move(w, HUB, 7, 8);
    look(w);
    look(w);
    assert_int_equal(flow(w, "n3", "", PATH_KIND_DIRECT)->sent, 100);
    assert_int_equal(flow(w, "n3", "", PATH_KIND_DIRECT)->received, 10);
    assert_int_equal(flow(w, "hub", "", PATH_KIND_DIRECT)->sent, 7);
    /* The agent restarts, and the engine goes on meanwhile. */
    restart_agent(w);
    move(w, 3, 30, 0);
    look(w);
    assert_int_equal(flow(w, "n3", "", PATH_KIND_DIRECT)->sent, 130);
    /* The engine restarts: its counters begin at 0. */
    *counters(w, 3) = (struct wg_facts){.tx_bytes = 20};
    look(w);
    assert_int_equal(flow(w, "n3", "", PATH_KIND_DIRECT)->sent, 150);
    /* A peer that was away and is there again, as after a new key. */
    *counters(w, 4) = (struct wg_facts){.tx_bytes = 1000, .rx_bytes = 1};
    look(w);
    assert_int_equal(flow(w, "n4", "", PATH_KIND_RELAY)->sent, 1000);
    assert_int_equal(flow(w, "n4", "", PATH_KIND_RELAY)->received, 1);
    end_world(w);
}

/* Of the last day, and of this meter: the sums of one before it are the hub's to tell. */
static void test_metrics(void **state)
{
    struct world *w = make_world();
    struct metrics metrics = METRICS_NULL;
    struct metrics none = METRICS_NULL;
    char *text;

    meter_add_metrics(&w->meter, &none);
    text = metrics_take(&none);
    assert_string_equal(text, "");
    free(text);
    look(w);
    move(w, 4, 1, 1);
    look(w);
    w->wall_s += DAY;
    meter_job_begin(&w->meter, "llama");
    set_members(w, "llama", "[\"n3\"]");
    move(w, 3, 100, 10);
    look(w);
    traffic_add(traffic_at(&w->meter.days[1], 16, "n3", "", PATH_KIND_LAN), 5, 5);
    meter_job_end(&w->meter, "llama");
    meter_add_metrics(&w->meter, &metrics);
    text = metrics_take(&metrics);
    assert_non_null(
        strstr(text, "\nweft_agent_traffic_bytes_total{peer=\"n3\",job=\"llama\",path=\"direct\","
                     "direction=\"sent\"} 100\n"
                     "weft_agent_traffic_bytes_total{peer=\"n3\",job=\"llama\",path=\"direct\","
                     "direction=\"received\"} 10\n"));
    assert_null(strstr(text, "n4"));
    assert_null(strstr(text, "lan"));
    free(text);
    end_world(w);
}

static void test_days_and_paths(void **state)
{
    struct world *w = make_world();

    look(w);
    move(w, 3, 10, 0);
    look(w);
    w->reached[0].kind = PATH_KIND_RELAY;
    move(w, 3, 5, 0);
    look(w);
    assert_int_equal(flow(w, "n3", "", PATH_KIND_DIRECT)->sent, 10);
    assert_int_equal(flow(w, "n3", "", PATH_KIND_RELAY)->sent, 5);
    w->wall_s += DAY;
    move(w, 3, 1, 0);
    look(w);
    assert_int_equal(w->meter.n_days, 2);
    assert_int_equal(flow(w, "n3", "", PATH_KIND_RELAY)->sent, 1);
    /* A node that no hub hears keeps the last days only. */
    for (unsigned i = 0; i < 20; i++) {
        w->wall_s += DAY;
        move(w, 3, 1, 0);
        look(w);
    }
    assert_int_equal(w->meter.n_days, METER_DAYS_MAX);
    for (unsigned i = 0; i < METER_DAYS_MAX; i++) {
        assert_int_equal(
            w->meter.days[METER_DAYS_MAX - 1 - i].day, traffic_day(w->wall_s) - (int32_t)i);
        assert_int_equal(w->meter.days[i].n, 1);
    }
    end_world(w);
}

/* The days of @w's meter, the first @n of them from @first on without a gap. */
static void assert_days(const struct world *w, int32_t first, unsigned n)
{
    assert_int_equal(w->meter.n_days, n);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(w->meter.days[i].day, first + (int32_t)i);
}

/* The wall clock is set back: days stay in order, and a day that is there is gone on with. */
static void test_a_clock_that_goes_back(void **state)
{
    struct world *w = make_world();
    const int32_t today = traffic_day(NOON);

    look(w);
    w->wall_s = NOON + 2 * DAY;
    move(w, 3, 2, 0);
    look(w);
    w->wall_s = NOON + DAY;
    move(w, 3, 1, 0);
    look(w);
    assert_days(w, today, 3);
    w->wall_s = NOON + 2 * DAY;
    move(w, 3, 5, 0);
    look(w);
    assert_int_equal(w->meter.days[1].flows[0].sent, 1);
    assert_int_equal(w->meter.days[2].flows[0].sent, 7);
    for (int i = 3; i < METER_DAYS_MAX; i++) {
        w->wall_s = NOON + i * DAY;
        look(w);
    }
    assert_days(w, today, METER_DAYS_MAX);
    /* One before all that are kept takes the place of the oldest. */
    w->wall_s = NOON - DAY;
    look(w);
    assert_int_equal(w->meter.n_days, METER_DAYS_MAX);
    assert_int_equal(w->meter.days[0].day, today - 1);
    assert_int_equal(w->meter.days[1].day, today + 1);
    assert_int_equal(w->meter.days[1].flows[0].sent, 1);
    end_world(w);
}

/* A node whose hub has all of it keeps yesterday and today, else what the hub lacks too. */
static void test_days_that_a_hub_has(void **state)
{
    struct world *w = make_world();
    const int32_t first = traffic_day(NOON);

    look(w);
    for (unsigned i = 0; i < 5; i++) {
        w->wall_s = NOON + i * DAY;
        move(w, 3, 1, 0);
        look(w);
    }
    assert_days(w, first, 5);
    /* What has no number yet no hub has. */
    meter_forget(&w->meter, UINT64_MAX, w->wall_s);
    assert_days(w, first, 5);
    assert_true(meter_settle(&w->meter));
    meter_forget(&w->meter, 0, w->wall_s);
    assert_days(w, first, 5);
    meter_forget(&w->meter, 1, w->wall_s);
    assert_days(w, first + 1, 4);
    meter_forget(&w->meter, 5, w->wall_s);
    assert_days(w, first + 3, 2);
    assert_int_equal(w->meter.days[0].flows[0].seq, 4);
    meter_forget(&w->meter, 5, w->wall_s + 2 * DAY);
    assert_int_equal(w->meter.n_days, 0);
    end_world(w);
}

static void test_paths(void **state)
{
    struct world *w = make_world();

    look(w);
    w->is_streamed = true;
    move(w, HUB, 1, 2);
    /* Of n3's path nothing is known, and n4 is not among those that are reached. */
    w->reached[0].kind = PATH_KIND_NONE;
    w->reach.n = 1;
    move(w, 3, 3, 0);
    move(w, 4, 0, 4);
    look(w);
    assert_int_equal(w->meter.days[0].n, 3);
    assert_int_equal(flow(w, "hub", "", PATH_KIND_STREAM)->sent, 1);
    assert_int_equal(flow(w, "hub", "", PATH_KIND_STREAM)->received, 2);
    assert_int_equal(flow(w, "n3", "", PATH_KIND_DIRECT)->sent, 3);
    assert_int_equal(flow(w, "n4", "", PATH_KIND_DIRECT)->received, 4);
    end_world(w);
}

static void test_a_meter_without_a_number_counts_nothing(void **state)
{
    struct world *w = make_world();

    w->meter.id = 0;
    look(w);
    move(w, 3, 1, 1);
    look(w);
    assert_int_equal(w->meter.n_days, 0);
    assert_false(w->meter.has_counters);
    end_world(w);
}

/* Between two states a snapshot may have no nodes. */
static void test_a_network_without_nodes(void **state)
{
    struct world *w = make_world();

    snapshot_deinit(&w->snapshot);
    w->snapshot = (struct snapshot)SNAPSHOT_NULL;
    look(w);
    assert_int_equal(w->meter.n_counters, 0);
    assert_true(w->meter.has_counters);
    end_world(w);
}

static void test_jobs(void **state)
{
    struct world *w = make_world();

    look(w);
    meter_job_begin(&w->meter, "llama");
    meter_job_begin(&w->meter, "llama");
    set_members(w, "llama", "[\"n2\", \"n3\"]");
    move(w, 3, 100, 0);
    move(w, 4, 50, 0);
    look(w);
    assert_int_equal(flow(w, "n3", "llama", PATH_KIND_DIRECT)->sent, 100);
    assert_int_equal(flow(w, "n4", "", PATH_KIND_RELAY)->sent, 50);
    /* Two jobs share the edge to n3. */
    meter_job_begin(&w->meter, "bert");
    set_members(w, "bert", "[\"n3\", \"n4\", 7]");
    move(w, 3, 11, 7);
    look(w);
    assert_int_equal(flow(w, "n3", "llama", PATH_KIND_DIRECT)->sent, 106);
    assert_int_equal(flow(w, "n3", "llama", PATH_KIND_DIRECT)->received, 4);
    assert_int_equal(flow(w, "n3", "bert", PATH_KIND_DIRECT)->sent, 5);
    assert_int_equal(flow(w, "n3", "bert", PATH_KIND_DIRECT)->received, 3);
    /* One of the job's two commands has ended, then the other one. */
    meter_job_end(&w->meter, "llama");
    assert_non_null(meter_job_find(&w->meter, "llama"));
    meter_job_end(&w->meter, "llama");
    meter_job_end(&w->meter, "bert");
    meter_job_end(&w->meter, "never-begun");
    assert_int_equal(w->meter.n_jobs, 0);
    move(w, 3, 1, 0);
    look(w);
    assert_int_equal(flow(w, "n3", "", PATH_KIND_DIRECT)->sent, 1);
    end_world(w);
}

static void test_more_jobs_than_are_told_apart(void **state)
{
    struct world *w = make_world();
    char name[16];

    for (unsigned i = 0; i <= METER_JOBS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "job-%u", i);
        meter_job_begin(&w->meter, name);
    }
    assert_int_equal(w->meter.n_jobs, METER_JOBS_MAX);
    assert_null(meter_job_find(&w->meter, name));
    meter_job_end(&w->meter, "job-0");
    assert_null(meter_job_find(&w->meter, "job-0"));
    assert_int_equal(w->meter.n_jobs, METER_JOBS_MAX - 1);
    assert_non_null(meter_job_find(&w->meter, "job-15"));
    end_world(w);
}

/* ---- a hub ---------------------------------------------------------------------------------- */

/* A hub as it should be: it keeps the greater of each two sums. */
struct hub {
    struct traffic days[64];
    unsigned n_days;
    uint64_t reported; /* what the node thinks that it has */
};

static void hub_take(struct hub *hub, const json_t *json)
{
    struct traffic t;
    struct err e = ERR_NULL;
    unsigned i = 0;

    assert_int_equal(traffic_decode(&t, json, "test", &e), 0);
    while (i < hub->n_days && hub->days[i].day != t.day)
        i++;
    assert_true(i < 64);
    if (i == hub->n_days)
        hub->days[hub->n_days++].day = t.day;
    assert_int_equal(traffic_merge(&hub->days[i], &t, SIZE_MAX), 0);
    traffic_deinit(&t);
}

static uint64_t hub_sum(const struct hub *hub)
{
    uint64_t n = 0;

    for (unsigned d = 0; d < hub->n_days; d++)
        for (size_t i = 0; i < hub->days[d].n; i++)
            n += hub->days[d].flows[i].sent;
    return n;
}

/* One report. It may be lost, or its answer may. */
static bool report(struct world *w, struct hub *hub, bool arrives, bool is_answered)
{
    uint64_t upto;
    bool more;
    json_t *json;

    json = meter_report(&w->meter, hub->reported, &upto, &more);
    if (json && arrives)
        hub_take(hub, json);
    if (json && arrives && is_answered)
        hub->reported = upto;
    json_decref(json);
    return json != NULL;
}

/* Traffic, restarts of all three, lost reports and lost answers, over some days: all that was
 * moved is with the hub in the end, once. */
static void test_nothing_is_lost_or_doubled(void **state)
{
    struct world *w = make_world();
    uint64_t seed = 20261123;
    struct rng rng = rng_seeded(&seed);
    struct hub hub = {.n_days = 0};
    uint64_t moved = 0;

    look(w);
    for (unsigned step = 0; step < 3000; step++) {
        unsigned what = rng_u32(&rng) % 16;
        unsigned peer = 3 + rng_u32(&rng) % 2;
        uint64_t n = rng_u32(&rng) % 100000;

        if (what < 8) {
            move(w, peer, n, n / 2);
            moved += n;
            look(w);
        } else if (what == 8) {
            /* The engine restarts after the last look. */
            *counters(w, peer) = (struct wg_facts){0};
            look(w);
        } else if (what == 9) {
            restart_agent(w);
            hub.reported = 0;
        } else if (what == 10) {
            hub.reported = 0;
        } else if (what == 11 && step % 200 == 0) {
            w->wall_s += DAY;
        } else if (what == 12) {
            w->reached[0].kind = PATH_KIND_LAN + rng_u32(&rng) % 4;
        } else {
            (void)meter_settle(&w->meter);
            (void)report(w, &hub, rng_u32(&rng) % 4 != 0, rng_u32(&rng) % 4 != 0);
            meter_forget(&w->meter, hub.reported, w->wall_s);
        }
    }
    (void)meter_settle(&w->meter);
    while (report(w, &hub, true, true))
        continue;
    assert_true(moved > 0);
    assert_int_equal(hub_sum(&hub), moved);
    for (unsigned i = 0; i < hub.n_days; i++)
        traffic_deinit(&hub.days[i]);
    end_world(w);
}

/* Many flows, of two days: parts, each of one day, and all of it in the end. */
static void test_parts(void **state)
{
    struct meter m;
    struct hub hub = {.n_days = 0};
    uint64_t upto;
    bool more;
    json_t *json;
    static const uint64_t parts[] = {64, 100, 164, 200};
    unsigned n_parts = 0;

    m = (struct meter){.id = 5};
    for (unsigned d = 0; d < 2; d++) {
        m.days[d].day = 20000 + (int32_t)d;
        m.n_days++;
        for (unsigned i = 0; i < 100; i++) {
            char peer[16];
            struct traffic_flow *f;

            (void)snprintf(peer, sizeof(peer), "p%u", i);
            f = traffic_at(&m.days[d], 5, peer, "", PATH_KIND_LAN);
            traffic_add(f, 1, 0);
            f->is_changed = true;
        }
    }
    upto = 9;
    more = true;
    assert_null(meter_report(&m, 0, &upto, &more));
    assert_int_equal(upto, 0);
    assert_false(more);
    assert_true(meter_settle(&m));
    assert_false(meter_settle(&m));
    while ((json = meter_report(&m, hub.reported, &upto, &more))) {
        hub_take(&hub, json);
        hub.reported = upto;
        assert_true(n_parts < 4);
        assert_int_equal(upto, parts[n_parts++]);
        assert_int_equal(more, upto < 200);
        json_decref(json);
    }
    assert_int_equal(n_parts, 4);
    assert_int_equal(hub_sum(&hub), 200);
    assert_true(m.seq <= hub.reported);
    for (unsigned i = 0; i < hub.n_days; i++)
        traffic_deinit(&hub.days[i]);
    meter_deinit(&m);
}

/* Counters of n4 and n3 that stand in another order than their keys. */
#define FILE_TEXT                                                                                  \
    "{\"meter\":17,\"days\":[%s],\"counters\":{"                                                   \
    "\"BAAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\":[40,4],"                                     \
    "\"AwAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\":[30,3]}}"

static void test_what_is_in_the_file(void **state)
{
    struct world *w = make_world();
    char *text;
    json_t *json;

    move(w, 3, 30, 3);
    look(w);
    move(w, 4, 40, 4);
    look(w);
    json = meter_encode(&w->meter);
    text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text,
        "{\"meter\":17,\"days\":[{\"day\":\"2026-11-23\",\"flows\":[{\"meter\":17,\"peer\":\"n4\","
        "\"path\":\"relay\",\"sent\":40,\"received\":4}]}],"
        "\"counters\":{\"AwAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\":[30,3],"
        "\"BAAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\":[40,4]}}");
    free(text);
    json_decref(json);
    end_world(w);
}

/* All flows of the file are to be told, and each peer's bytes are counted from there on. */
static void test_a_file_is_gone_on_with(void **state)
{
    struct world *w = make_world();
    char text[1024];
    json_t *json;

    (void)snprintf(text, sizeof(text), FILE_TEXT,
        "{\"day\":\"2026-11-21\",\"flows\":[{\"peer\":\"n3\",\"path\":\"lan\","
        "\"sent\":"
        "1,\"received\":2,\"meter\":17}]},{\"day\":\"2026-11-22\",\"flows\":[{\"peer\":\"n3\","
        "\"path\":\"lan\",\"sent\":3,\"received\":4,\"meter\":17}]}");
    json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_int_equal(meter_decode(&w->meter, json, "test", NULL), 0);
    json_decref(json);
    assert_int_equal(w->meter.id, 17);
    assert_int_equal(w->meter.seq, 2);
    assert_int_equal(w->meter.days[0].flows[0].seq, 1);
    assert_int_equal(w->meter.days[1].flows[0].seq, 2);
    assert_int_equal(w->meter.n_counters, 2);
    move(w, 3, 31, 3);
    move(w, 4, 40, 5);
    look(w);
    assert_int_equal(flow(w, "n3", "", PATH_KIND_DIRECT)->sent, 1);
    assert_int_equal(flow(w, "n3", "", PATH_KIND_DIRECT)->received, 0);
    assert_int_equal(flow(w, "n4", "", PATH_KIND_RELAY)->sent, 0);
    assert_int_equal(flow(w, "n4", "", PATH_KIND_RELAY)->received, 1);
    end_world(w);
}

#define NOT_TWO                                                                                    \
    "test: the counters of \"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\" are not two numbers"

static void test_damaged_files(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"{}", "test: \"days\" is missing"},
        {"{\"meter\":0,\"days\":[],\"counters\":{}}",
            "test: \"meter\" is not a whole number from 1 to 9223372036854775807"},
        {"{\"meter\":1,\"days\":[{}],\"counters\":{}}", "test: \"day\" is missing"},
        {"{\"meter\":1,\"days\":[],\"counters\":{\"x\":[1,2]}}", "test: \"x\" is no public key"},
        {"{\"meter\":1,\"days\":[],\"counters\":{\"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\":"
         "[1]}}",
            NOT_TWO},
        {"{\"meter\":1,\"days\":[],\"counters\":{\"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\":"
         "[1,2,3]}}",
            NOT_TWO},
        {"{\"meter\":1,\"days\":[],\"counters\":{\"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\":"
         "[-1,0]}}",
            NOT_TWO},
        {"{\"meter\":1,\"days\":[],\"counters\":{\"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\":"
         "[0,-1]}}",
            NOT_TWO},
        {"{\"meter\":1,\"days\":[{\"day\":\"2026-11-23\",\"flows\":[]},"
         "{\"day\":\"2026-11-23\",\"flows\":[]}],\"counters\":{}}",
            "test: the days are not in order"},
        {"{\"meter\":1,\"days\":[{\"day\":\"2026-11-23\",\"flows\":[]},"
         "{\"day\":\"2026-11-22\",\"flows\":[]}],\"counters\":{}}",
            "test: the days are not in order"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = json_loads(cases[i].text, 0, NULL);
        struct meter m = {.id = 99};
        struct err e = ERR_NULL;

        assert_int_equal(meter_decode(&m, json, "test", &e), -EINVAL);
        assert_string_equal(e.text, cases[i].words);
        assert_int_equal(m.id, 99);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_days_and_paths),
        cmocka_unit_test(test_a_clock_that_goes_back),
        cmocka_unit_test(test_days_that_a_hub_has),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_a_meter_without_a_number_counts_nothing),
        cmocka_unit_test(test_a_network_without_nodes),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_more_jobs_than_are_told_apart),
        cmocka_unit_test(test_nothing_is_lost_or_doubled),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_what_is_in_the_file),
        cmocka_unit_test(test_a_file_is_gone_on_with),
        cmocka_unit_test(test_damaged_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
