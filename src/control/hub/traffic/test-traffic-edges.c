/* test-traffic-edges.c - what counts of what two ends say, when they agree and when one lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#include "hub/model/model.h"
#include "hub/traffic/traffic_read.h"

#define MB UINT64_C(1000000)

/* What one node says of another one. */
struct saying {
    const char *node;
    const char *peer;
    const char *job;
    enum path_kind path;
    uint64_t sent;
    uint64_t received;
};

/* Its members are a, b, c, a hub and a stock WireGuard. */
static struct model_network net;

static struct model_node *member(const char *name)
{
    struct model_node *node = keys_open(&net.nodes, name, sizeof(*node));

    assert_non_null(node);
    return node;
}

static int add_members(void **state)
{
    static struct node_hub hub;

    (void)member("a");
    (void)member("b");
    (void)member("c");
    member("hub")->spec.hub = &hub;
    member("stock")->spec.stock = true;
    return 0;
}

static int remove_members(void **state)
{
    keys_free_all(&net.nodes);
    return 0;
}

#define SAYINGS_MAX 6

struct settled {
    struct keys nodes; /* of struct traffic_node */
    struct traffic_edges edges;
};

static struct traffic_node *node_of(struct settled *s, const char *name)
{
    struct traffic_node *node = keys_open(&s->nodes, name, sizeof(*node));

    assert_non_null(node);
    return node;
}

static void settle(struct settled *s, const struct saying *sayings)
{
    s->nodes = (struct keys)KEYS_NULL;
    for (size_t i = 0; i < SAYINGS_MAX && sayings[i].node; i++) {
        struct traffic_flow *flow = traffic_at(&node_of(s, sayings[i].node)->traffic, 7,
            sayings[i].peer, sayings[i].job ? sayings[i].job : "", sayings[i].path);

        assert_non_null(flow);
        traffic_add(flow, sayings[i].sent, sayings[i].received);
    }
    assert_int_equal(traffic_edges_make(&s->edges, &s->nodes, &net), 0);
}

static void forget(struct settled *s)
{
    free(s->edges.rows);
    for (size_t i = 0; i < s->nodes.n; i++)
        traffic_deinit(&container_of(s->nodes.items[i], struct traffic_node, keyed)->traffic);
    keys_free_all(&s->nodes);
}

/* "a>b/job/path=bytes word " of each row, and then "!a>b/job:sent,received=counted " of each
 * dispute. */
static const char *text_of(const struct settled *s, char *buf, size_t cap)
{
    size_t len = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < s->edges.n; i++) {
        const struct traffic_row *r = &s->edges.rows[i];

        len += (size_t)snprintf(buf + len, cap - len, "%s>%s/%s/%s=%" PRIu64 "%s ", r->from, r->to,
            r->job, path_kind_names[r->path], r->bytes,
            r->word == TRAFFIC_WORD_BOTH  ? ""
            : r->word == TRAFFIC_WORD_ONE ? "?"
                                          : "...");
    }
    for (size_t i = 0; i < s->edges.n_disputes; i++) {
        const struct traffic_dispute *d = &s->edges.disputes[i];

        len +=
            (size_t)snprintf(buf + len, cap - len, "!%s>%s/%s:%" PRIu64 ",%" PRIu64 "=%" PRIu64 " ",
                d->from, d->to, d->job, d->sent, d->received, d->counted);
    }
    return buf;
}

#define D PATH_KIND_DIRECT
#define R PATH_KIND_RELAY

static const struct {
    const char *what;
    struct saying sayings[SAYINGS_MAX];
    const char *expected;
} cases[] = {
    {"a little was lost on the way: it was sent, and is paid for",
        {{"a", "b", "j", D, 1000 * MB, 0}, {"b", "a", "j", D, 0, 950 * MB}},
        "a>b/j/direct=1000000000 "},
    {"the sender has not told the last minute yet",
        {{"a", "b", "j", D, 950 * MB, 0}, {"b", "a", "j", D, 0, 1000 * MB}},
        "a>b/j/direct=1000000000 "},
    {"a sender that lies", {{"a", "b", "j", D, 9000000 * MB, 0}, {"b", "a", "j", D, 0, 100 * MB}},
        "a>b/j/direct=110065536 !a>b/:9000000000000,100000000=110065536 "},
    {"a receiver that lies", {{"a", "b", "j", D, 100 * MB, 0}, {"b", "a", "j", D, 0, 9000000 * MB}},
        "a>b/j/direct=110000000 !a>b/:100000000,9000000000000=110000000 "},
    {"a sender that conceals what it has sent",
        {{"a", "b", "j", D, 1 * MB, 0}, {"b", "a", "j", D, 0, 9000 * MB}},
        "a>b/j/direct=1100000 !a>b/:1000000,9000000000=1100000 "},
    {"a receiver that has told, but nothing of this",
        {{"a", "b", "j", D, 9000 * MB, 0}, {"b", "c", "", D, 0, 1 * MB},
            {"c", "b", "", D, 1 * MB, 0}},
        "a>b/j/direct=65536 c>b//direct=1000000 !a>b/:9000000000,0=65536 "},
    {"a receiver that makes up what a node that has told has never sent",
        {{"b", "a", "j", D, 0, 1 * MB}, {"a", "c", "", D, 1 * MB, 0}, {"c", "a", "", D, 0, 1 * MB}},
        "a>c//direct=1000000 "},
    {"what both have moved, as of a job that only one of them knows",
        {{"a", "b", "j", D, 500 * MB, 0}, {"b", "a", "", D, 0, 500 * MB}},
        "a>b//direct=499934464 a>b/j/direct=65536 !a>b/j:500000000,0=65536 "},
    {"two jobs of one edge, and the path as the sender says",
        {{"a", "b", "j", D, 300 * MB, 0}, {"a", "b", "j", R, 100 * MB, 0},
            {"a", "b", "k", R, 100 * MB, 0}, {"b", "a", "j", D, 0, 400 * MB},
            {"b", "a", "k", D, 0, 100 * MB}},
        "a>b/j/direct=300000000 a>b/j/relay=100000000 a>b/k/relay=100000000 "},
    {"to a hub, which is in no job and never tells", {{"a", "hub", "j", D, 500 * MB, 20 * MB}},
        "a>hub//direct=500000000? hub>a//direct=20000000? "},
    {"to a stock WireGuard, likewise", {{"a", "stock", "j", D, 500 * MB, 20 * MB}},
        "a>stock//direct=500000000? stock>a//direct=20000000? "},
    {"to a node that was removed before it told", {{"a", "gone", "j", D, 500 * MB, 0}},
        "a>gone/j/direct=500000000? "},
    {"to a member that has not told of the day yet", {{"a", "b", "j", D, 500 * MB, 0}},
        "a>b/j/direct=500000000... "},
    {"from one that cannot tell all its peers apart: what b says is among all others",
        {{"a", "", "", D, 700 * MB, 0}, {"a", "c", "j", D, 10 * MB, 0},
            {"b", "a", "j", D, 0, 600 * MB}, {"c", "a", "j", D, 0, 50 * MB}},
        "a>//direct=700000000? a>c/j/direct=10000000 "},
    {"to one that cannot: its sum of all others bears the sender out",
        {{"a", "b", "j", D, 600 * MB, 0}, {"b", "", "", D, 0, 700 * MB}},
        "a>b/j/direct=600000000 "},
    {"but no more than that", {{"a", "b", "j", D, 6000 * MB, 0}, {"b", "", "", D, 0, 700 * MB}},
        "a>b/j/direct=770065536 !a>b/:6000000000,0=770065536 "},
    {"two paths of as much: what cannot be divided goes to the first one",
        {{"a", "b", "j", D, 500 * MB, 0}, {"a", "b", "j", R, 500 * MB, 0},
            {"b", "a", "j", D, 0, 100 * MB + 1}},
        "a>b/j/direct=55032769 a>b/j/relay=55032768 !a>b/:1000000000,100000001=110065537 "},
    {"all others are in no job", {{"a", "", "j", D, 5 * MB, 0}}, "a>//direct=5000000? "},
};

static void test_cases(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct settled s;
        char text[512];

        settle(&s, cases[i].sayings);
        if (strcmp(text_of(&s, text, sizeof(text)), cases[i].expected) != 0)
            fail_msg("%s: %s, not %s", cases[i].what, text, cases[i].expected);
        forget(&s);
    }
}

#define DISPUTE (UINT64_C(16) << 20)
#define LOST    UINT64_C(65536)

/* Up to a tenth and 16 MiB above what the other end bears out nobody disputes. */
static const struct {
    uint64_t sent;
    uint64_t received;
    uint64_t counted;
    bool is_disputed;
} bounds[] = {
    {1000 * MB, 1000 * MB, 1000 * MB, false},
    {1100 * MB + LOST + DISPUTE, 1000 * MB, 1100 * MB + LOST, false},
    {1100 * MB + LOST + DISPUTE + 1, 1000 * MB, 1100 * MB + LOST, true},
    {1000 * MB, 1100 * MB + DISPUTE, 1100 * MB, false},
    {1000 * MB, 1100 * MB + DISPUTE + 1, 1100 * MB, true},
    {1100 * MB + LOST, 1000 * MB, 1100 * MB + LOST, false},
    {1100 * MB + LOST - 1, 1000 * MB, 1100 * MB + LOST - 1, false},
};

static void test_bounds_of_what_is_borne_out(void **state)
{
    for (size_t i = 0; i < sizeof(bounds) / sizeof(*bounds); i++) {
        struct saying sayings[SAYINGS_MAX] = {
            {"a", "b", "", D, bounds[i].sent, 0}, {"b", "a", "", D, 0, bounds[i].received}};
        struct settled s;

        settle(&s, sayings);
        assert_int_equal(s.edges.n, 1);
        assert_int_equal(s.edges.rows[0].bytes, bounds[i].counted);
        assert_int_equal(s.edges.n_disputes, bounds[i].is_disputed);
        forget(&s);
    }
}

/* Of a day so many are told, and no more. */
static void test_many_disputes(void **state)
{
    struct settled s = {.nodes = KEYS_NULL};
    char name[8];

    for (unsigned i = 0; i < TRAFFIC_DISPUTES_MAX + 2; i++) {
        (void)snprintf(name, sizeof(name), "n%03u", i);
        traffic_add(traffic_at(&node_of(&s, "a")->traffic, i, name, "", D), 1000 * MB, 0);
        traffic_add(traffic_at(&node_of(&s, name)->traffic, 1, "a", "", D), 1, 0);
    }
    assert_int_equal(traffic_edges_make(&s.edges, &s.nodes, &net), 0);
    assert_int_equal(s.edges.n_disputes, TRAFFIC_DISPUTES_MAX);
    assert_string_equal(s.edges.disputes[TRAFFIC_DISPUTES_MAX - 1].to, "n255");
    forget(&s);
}

/* As JSON has it. */
static void test_names_of_words(void **state)
{
    assert_string_equal(traffic_word_names[TRAFFIC_WORD_BOTH], "both");
    assert_string_equal(traffic_word_names[TRAFFIC_WORD_ONE], "one");
    assert_string_equal(traffic_word_names[TRAFFIC_WORD_WAITING], "waiting");
}

/* The greatest sums there are: nothing wraps, and the parts are no more than the whole. */
static void test_greatest(void **state)
{
    struct saying sayings[SAYINGS_MAX] = {{"a", "b", "", D, TRAFFIC_BYTES_MAX, 0},
        {"a", "b", "", R, TRAFFIC_BYTES_MAX, 0}, {"a", "b", "j", D, TRAFFIC_BYTES_MAX, 0},
        {"b", "a", "", D, 0, TRAFFIC_BYTES_MAX}, {"b", "a", "j", D, 0, TRAFFIC_BYTES_MAX}};
    struct settled s;
    uint64_t sum = 0;

    settle(&s, sayings);
    for (size_t i = 0; i < s.edges.n; i++)
        sum += s.edges.rows[i].bytes;
    assert_int_equal(s.edges.n_disputes, 1);
    assert_int_equal(sum, s.edges.disputes[0].counted);
    assert_true(sum > 2 * TRAFFIC_BYTES_MAX);
    forget(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_bounds_of_what_is_borne_out),
        cmocka_unit_test(test_many_disputes),
        cmocka_unit_test(test_names_of_words),
        cmocka_unit_test(test_greatest),
    };

    return cmocka_run_group_tests(tests, add_members, remove_members);
}
