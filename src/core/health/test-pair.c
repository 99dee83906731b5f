/* test-pair.c - how a pair is, and what is found of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "health/node.h"
#include "health/pair.h"
#include "mesh/object/mesh_edge.h"

static const struct x25519_public key = {.b = {1}};
static const struct x25519_public other = {.b = {2}};
static const struct edge_said direct = {.path = PATH_KIND_DIRECT};
static const struct edge_said relay = {.path = PATH_KIND_RELAY};
static const struct edge_said none = {.path = PATH_KIND_NONE};
static const struct edge_said fell = {.path = PATH_KIND_RELAY, .fell_at = 5};
static const struct edge_said failed = {.path = PATH_KIND_DIRECT, .error = (char *)"no"};
static const struct edge_said alarmed = {.path = PATH_KIND_RELAY, .is_alarm = true};
static const struct edge_said fell_in_mesh = {
    .path = PATH_KIND_RELAY, .fell_at = 5, .is_alarm = true};
static const struct edge_said lan = {.path = PATH_KIND_LAN};
static const struct edge_said stream = {.path = PATH_KIND_STREAM};
static const struct edge_said lost = {.path = PATH_KIND_N, .fell_at = 5};
static const struct edge_said explained = {.path = PATH_KIND_RELAY, .why = (char *)"its NAT is"};
static const struct edge_said cut = {.path = PATH_KIND_NONE, .why = (char *)"it is off"};

#define QUIET "the two have not spoken to each other yet"

static const struct edge_probed silent = {.tunnel = EDGE_REACH_SILENT};
static const struct edge_probed heard = {
    .tunnel = EDGE_REACH_SILENT, .underlay = EDGE_REACH_REACHED};
static const struct edge_probed deaf = {.tunnel = EDGE_REACH_SILENT, .underlay = EDGE_REACH_SILENT};
static const struct {
    enum edge_path path;
    const struct edge_said *said[2];
    const struct edge_probed *probed;
    const char *error;
    int64_t silent_for;
    uint64_t applied;
    bool is_stock;
    bool is_pinned;
    enum edge_state state;
    const char *why;
} assessed[] = {
    {.state = EDGE_STATE_IDLE, .applied = 1, .why = QUIET},
    {.said = {&direct, &relay}, .applied = 1, .state = EDGE_STATE_RELAY, .why = ""},
    {.said = {&direct, &direct}, .applied = 1, .state = EDGE_STATE_DIRECT, .why = ""},
    {.said = {&relay, &explained}, .applied = 1, .state = EDGE_STATE_RELAY, .why = "b: its NAT is"},
    {.said = {&stream, &explained}, .applied = 1, .state = EDGE_STATE_STREAM, .why = ""},
    {.said = {&cut, NULL},
        .applied = 1,
        .state = EDGE_STATE_NONE,
        .why = "a has no path to b: it is off"},
    {.said = {&direct, &none}, .applied = 1, .state = EDGE_STATE_NONE, .why = "b has no path to a"},
    {.said = {&fell, NULL},
        .applied = 1,
        .state = EDGE_STATE_FELL,
        .why = "a had a direct path to b and has lost it: now it is relay"},
    {.path = EDGE_PATH_RELAY,
        .said = {&fell, NULL},
        .applied = 1,
        .state = EDGE_STATE_RELAY,
        .why = ""},
    {.said = {&direct, NULL},
        .probed = &silent,
        .applied = 1,
        .state = EDGE_STATE_UNREACHED,
        .why = "b does not answer a through the tunnel"},
    {.said = {&none, &none}, .applied = 1, .state = EDGE_STATE_NONE, .why = "a has no path to b"},
    {.said = {&lan, &lan}, .applied = 1, .state = EDGE_STATE_LAN, .why = ""},
    {.said = {&lan, &direct}, .applied = 1, .state = EDGE_STATE_DIRECT, .why = ""},
    {.said = {&relay, &stream}, .applied = 1, .state = EDGE_STATE_STREAM, .why = ""},
    {.said = {NULL, &lost},
        .applied = 1,
        .state = EDGE_STATE_FELL,
        .why = "b had a direct path to a and has lost it: now it is none"},
    {.probed = &heard,
        .applied = 1,
        .state = EDGE_STATE_UNREACHED,
        .why = "b does not answer a through the tunnel, but at its underlay endpoint it does"},
    {.probed = &deaf,
        .applied = 1,
        .state = EDGE_STATE_UNREACHED,
        .why = "b does not answer a through the tunnel, and by UDP at its underlay endpoint "
               "neither"},
    {.silent_for = EDGE_SILENT_AFTER - 1, .applied = 1, .state = EDGE_STATE_IDLE, .why = QUIET},
    {.said = {&direct, NULL},
        .silent_for = 90,
        .applied = 1,
        .state = EDGE_STATE_SILENT,
        .why = "the agent of a has not been heard for 90 s: what it said is that old"},
    {.silent_for = -1, .state = EDGE_STATE_UNAPPLIED, .why = "the agent of a has never been heard"},
    {.applied = 0,
        .state = EDGE_STATE_UNAPPLIED,
        .why = "the agent of a has never applied a snapshot"},
    {.silent_for = -1, .is_stock = true, .applied = 1, .state = EDGE_STATE_IDLE, .why = QUIET},
    {.error = "no engine",
        .applied = 1,
        .silent_for = 500,
        .state = EDGE_STATE_FAILING,
        .why = "a cannot apply it: no engine"},
    {.said = {&failed, NULL},
        .applied = 1,
        .state = EDGE_STATE_FAILING,
        .why = "a cannot apply it: no"},
    {.said = {&direct, &direct},
        .is_pinned = true,
        .applied = 1,
        .state = EDGE_STATE_REFUSED,
        .why = "another public key is pinned for a than it has, so the two do not talk"},
    {.path = EDGE_PATH_OFF, .is_pinned = true, .error = "x", .state = EDGE_STATE_OFF, .why = ""},
};

/* ---- the state ------------------------------------------------------------------------------ */

static void test_states(void **state)
{
    for (size_t i = 0; i < sizeof(assessed) / sizeof(*assessed); i++) {
        struct mesh_edge spec = {.nodes = {"a", "b"}, .path = assessed[i].path};
        struct pair_facts facts = {.spec = &spec,
            .ends = {
                {.node = "a",
                    .has_agent = !assessed[i].is_stock,
                    .tells_applied = true,
                    .applied = assessed[i].applied,
                    .key = &key,
                    .said = assessed[i].said[0],
                    .probed = assessed[i].probed,
                    .error = assessed[i].error,
                    .silent_for = assessed[i].silent_for},
                {.node = "b", .has_agent = true, .key = &key, .said = assessed[i].said[1]},
            }};
        struct pair_verdict is;

        if (assessed[i].is_pinned)
            spec.pins[0].key = other;
        pair_assess(&facts, &is);
        if (is.state != assessed[i].state || strcmp(is.why, assessed[i].why) != 0)
            fail_msg("case %zu is %s: \"%s\"", i, edge_state_names[is.state], is.why);
    }
}

/* What the edge itself wants, what the network does, and what only the second end says. */
static void test_states_by_the_rest(void **state)
{
    static const struct {
        enum edge_path path;
        bool has_no_spec;
        bool wants_relay;
        bool is_pinned;
        const struct edge_said *said[2];
        const struct edge_probed *probed;
        const char *error;
        int64_t silent_for[2];
        bool tells_applied;
        enum edge_state state;
        const char *why;
    } cases[] = {
        {.has_no_spec = true, .said = {&direct, &lan}, .state = EDGE_STATE_DIRECT, .why = ""},
        {.said = {&fell, NULL}, .wants_relay = true, .state = EDGE_STATE_RELAY, .why = ""},
        {.has_no_spec = true,
            .said = {&fell, NULL},
            .wants_relay = true,
            .state = EDGE_STATE_RELAY,
            .why = ""},
        {.has_no_spec = true,
            .said = {&fell, NULL},
            .state = EDGE_STATE_FELL,
            .why = "a had a direct path to b and has lost it: now it is relay"},
        {.path = EDGE_PATH_DIRECT,
            .said = {&fell, NULL},
            .wants_relay = true,
            .state = EDGE_STATE_FELL,
            .why = "a had a direct path to b and has lost it: now it is relay"},
        {.is_pinned = true,
            .state = EDGE_STATE_REFUSED,
            .why = "another public key is pinned for b than it has, so the two do not talk"},
        {.probed = &silent,
            .state = EDGE_STATE_UNREACHED,
            .why = "a does not answer b through the tunnel"},
        {.error = "no engine",
            .silent_for = {-1, 500},
            .state = EDGE_STATE_FAILING,
            .why = "b cannot apply it: no engine"},
        {.silent_for = {500, -1},
            .state = EDGE_STATE_UNAPPLIED,
            .why = "the agent of b has never been heard"},
        {.tells_applied = true,
            .state = EDGE_STATE_UNAPPLIED,
            .why = "the agent of b has never applied a snapshot"},
        {.silent_for = {0, EDGE_SILENT_AFTER - 1}, .state = EDGE_STATE_IDLE, .why = QUIET},
        {.said = {&stream, &none}, .state = EDGE_STATE_NONE, .why = "b has no path to a"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mesh_edge spec = {.nodes = {"a", "b"}, .path = cases[i].path};
        struct pair_facts facts = {.spec = cases[i].has_no_spec ? NULL : &spec,
            .wants_relay = cases[i].wants_relay,
            .ends = {
                {.node = "a",
                    .has_agent = true,
                    .key = &key,
                    .said = cases[i].said[0],
                    .silent_for = cases[i].silent_for[0]},
                {.node = "b",
                    .has_agent = true,
                    .tells_applied = cases[i].tells_applied,
                    .key = &key,
                    .said = cases[i].said[1],
                    .probed = cases[i].probed,
                    .error = cases[i].error,
                    .silent_for = cases[i].silent_for[1]},
            }};
        struct pair_verdict is;

        if (cases[i].is_pinned)
            spec.pins[1].key = other;
        pair_assess(&facts, &is);
        if (is.state != cases[i].state || strcmp(is.why, cases[i].why) != 0)
            fail_msg("case %zu is %s: \"%s\"", i, edge_state_names[is.state], is.why);
    }
    for (int64_t late = -1; late <= 0; late++) {
        struct pair_facts facts = {
            .ends = {{.node = "a", .has_agent = true, .silent_for = EDGE_SILENT_AFTER + late},
                {.node = "b"}}};
        struct pair_verdict is;

        pair_assess(&facts, &is);
        assert_int_equal(is.state, late < 0 ? EDGE_STATE_IDLE : EDGE_STATE_SILENT);
    }
}

/* ---- what is found -------------------------------------------------------------------------- */

static const struct edge_said refusing = {.path = PATH_KIND_NONE, .error = (char *)"another key"};
static const struct edge_said served_better = {
    .path = PATH_KIND_RELAY, .fell_at = 5, .is_relay_better = true};
static const struct edge_probed well = {
    .tunnel = EDGE_REACH_REACHED, .underlay = EDGE_REACH_REACHED, .is_heard = true};
/* UDP of the other end arrives here, and nothing of ours is answered; and the other way round. */
static const struct edge_probed hears = {
    .tunnel = EDGE_REACH_REACHED, .underlay = EDGE_REACH_SILENT, .is_heard = true};
static const struct edge_probed hears_nothing = {
    .tunnel = EDGE_REACH_REACHED, .underlay = EDGE_REACH_SILENT};
static const struct edge_probed hears_only = {
    .tunnel = EDGE_REACH_SILENT, .underlay = EDGE_REACH_SILENT, .is_heard = true};

/* A pair of agents that have applied everything and are there; @said and @probed are since 100. */
static struct pair_facts facts_of(const struct mesh_edge *spec, const struct edge_said *a,
    const struct edge_said *b, const struct edge_probed *pa, const struct edge_probed *pb)
{
    struct pair_end end = {.key = &key,
        .has_agent = true,
        .tells_applied = true,
        .applied = 1,
        .said_at = 100,
        .probed_at = 100,
        .there_at = 100};
    struct pair_facts f = {.spec = spec, .ends = {end, end}};

    f.ends[0].node = "a";
    f.ends[1].node = "b";
    f.ends[0].said = a;
    f.ends[1].said = b;
    f.ends[0].probed = pa;
    f.ends[1].probed = pb;
    return f;
}

/* What is found: "CODE FROM: words"; "": nothing, or it waits. */
static void expect(const struct pair_facts *f, const char *expected)
{
    char is[EDGE_WHY_MAX + 64] = "";
    struct pair_verdict v;

    pair_assess(f, &v);
    if (v.is_found && !v.waits)
        (void)snprintf(is, sizeof(is), "%s %s: %s", finding_kinds[v.code].code,
            finding_kinds[v.code].subject == FINDING_OF_WAY ? f->ends[v.from].node : "-", v.text);
    assert_string_equal(is, expected);
}

#define DEAF_B "WEFT-ONEWAY-001 b: UDP from b does not arrive at a, while UDP from a arrives at b"

static void test_what_is_found(void **state)
{
    const struct mesh_edge relayed = {.nodes = {"a", "b"}, .path = EDGE_PATH_RELAY};
    struct mesh_edge pinned = {.nodes = {"a", "b"}, .pins = {[1] = {.key = other}}};
    struct pair_facts f = facts_of(NULL, &direct, &direct, &well, &well);

    expect(&f, "");
    f = facts_of(NULL, &fell, &relay, NULL, NULL);
    expect(&f, "WEFT-PATH-003 -: a had a direct path to b and has lost it: now it is relay");
    f = facts_of(&relayed, &fell, &relay, NULL, NULL);
    expect(&f, "");
    f = facts_of(NULL, &served_better, &relay, NULL, NULL);
    expect(&f, "");
    f = facts_of(NULL, &direct, &none, NULL, NULL);
    expect(&f, "WEFT-PATH-002 -: b has no path to a");
    /* Which is why nothing answers through the tunnel. */
    f = facts_of(NULL, &none, &direct, &deaf, &silent);
    expect(&f, "WEFT-PATH-002 -: a has no path to b");
    f = facts_of(NULL, &direct, &direct, &well, &silent);
    expect(&f, "WEFT-PATH-001 -: a does not answer b through the tunnel");
    f = facts_of(NULL, &relay, &alarmed, NULL, NULL);
    expect(&f, "WEFT-PATH-004 -: b has no direct path to a, though only direct paths are wanted");
    f.wants_relay = true;
    expect(&f, "");
    f = facts_of(NULL, &fell_in_mesh, &alarmed, NULL, NULL);
    expect(&f, "WEFT-PATH-003 -: a had a direct path to b and has lost it: now it is relay");
    f = facts_of(NULL, &failed, &direct, NULL, NULL);
    expect(&f, "WEFT-APPLY-002 -: a cannot apply it: no");
    /* Of which nobody speaks any more: who pins it is the cause. */
    f = facts_of(&pinned, &refusing, &refusing, &silent, &silent);
    expect(&f,
        "WEFT-KEY-001 -: another public key is pinned for b than it has, so the two do not talk");
    /* What an agent cannot apply at all is found of the node. */
    f = facts_of(NULL, &direct, &none, NULL, NULL);
    f.ends[0].error = "no engine";
    expect(&f, "");
    f = facts_of(NULL, &direct, &none, NULL, NULL);
    f.ends[0].applied = 0;
    expect(&f, "");
}

/* It takes both probes to tell which way is cut; and it explains what follows from it. */
static void test_a_way_that_is_cut(void **state)
{
    const struct mesh_edge relayed = {.nodes = {"a", "b"}, .path = EDGE_PATH_RELAY};
    struct pair_facts f = facts_of(NULL, &fell, &fell, &hears_nothing, &hears);

    expect(&f, DEAF_B "");
    f = facts_of(NULL, &direct, &direct, &hears, &hears_nothing);
    expect(&f, "WEFT-ONEWAY-001 a: UDP from a does not arrive at b, while UDP from b arrives at a");
    f = facts_of(NULL, &direct, &none, &hears_nothing, &hears_only);
    expect(&f, DEAF_B ", and the tunnel is dead");
    /* One probe alone, one that is answered, and two that hear nothing or each other. */
    f = facts_of(NULL, &relay, &relay, NULL, &hears);
    expect(&f, "");
    f = facts_of(NULL, &relay, &relay, &well, &hears);
    expect(&f, "");
    f = facts_of(NULL, &relay, &relay, &hears_nothing, &hears_nothing);
    expect(&f, "");
    f = facts_of(NULL, &relay, &relay, &hears, &hears);
    expect(&f, "");
    /* Nobody sends that way, and all is well. */
    f = facts_of(&relayed, &relay, &relay, &hears_nothing, &hears);
    expect(&f, "");
}

/* What follows from a machine that is down is not found of its pairs. */
static void test_a_cause_hides_what_follows(void **state)
{
    const struct edge_probed *const probed[] = {&silent, &hears_only};
    const struct edge_said *const said[] = {&fell, &none, &failed};

    for (unsigned i = 0; i < 2; i++)
        for (unsigned k = 0; k < 3; k++) {
            struct pair_facts f = facts_of(NULL, said[k], said[k], probed[i], &silent);
            struct pair_verdict v;

            f.ends[1].is_down = true;
            f.ends[1].silent_for = 20;
            expect(&f, "");
            pair_assess(&f, &v);
            assert_int_equal(v.state, k == 2 ? EDGE_STATE_FAILING : EDGE_STATE_SILENT);
            if (k < 2)
                assert_string_equal(v.why, "b is down, or cut off: its agent was last heard 20 s "
                                           "ago, and what it said is that old");
        }
}

/* Whether a machine is down is not known before it is heard again, or is not. */
static void test_what_waits(void **state)
{
    struct pair_facts f = facts_of(NULL, &fell, &relay, NULL, NULL);
    struct pair_verdict v;

    f.ends[1].there_at = 99;
    expect(&f, "");
    pair_assess(&f, &v);
    assert_true(v.is_found && v.waits);
    f.ends[1].there_at = PAIR_ALWAYS_THERE;
    expect(&f, "WEFT-PATH-003 -: a had a direct path to b and has lost it: now it is relay");
    f = facts_of(NULL, &direct, &direct, &well, &silent);
    f.ends[0].there_at = 99;
    f.ends[0].probed_at = 5;
    expect(&f, "");
    /* One without an agent is not waited for; it may be switched off. */
    f.ends[0].has_agent = false;
    /* It may be a hub, which b is to reach in TLS by then. */
    f.ends[1].there_at = 100 + PAIR_OTHER_WAY_WITHIN - 1;
    expect(&f, "");
    f.ends[1].there_at = 100 + PAIR_OTHER_WAY_WITHIN;
    expect(&f, "WEFT-PATH-001 -: a does not answer b through the tunnel");
    f.ends[0].is_away = true;
    expect(&f, "");
}

/* What a silent agent said is old; what probes say is not. */
static void test_a_silent_agent(void **state)
{
    struct pair_facts f = facts_of(NULL, &fell, &none, NULL, NULL);

    f.ends[0].silent_for = EDGE_SILENT_AFTER;
    expect(&f, "");
    f = facts_of(NULL, &fell, &none, &silent, NULL);
    f.ends[1].silent_for = EDGE_SILENT_AFTER;
    expect(&f, "WEFT-PATH-001 -: b does not answer a through the tunnel");
}

/* Since when it is in its state, of what says so; what is old says nothing. */
static void test_since_when(void **state)
{
    const struct edge_said relay_since = {.path = PATH_KIND_RELAY, .path_at = 700};
    const struct edge_said relay_later = {.path = PATH_KIND_RELAY, .path_at = 800};
    const struct edge_said direct_since = {.path = PATH_KIND_DIRECT, .path_at = 100};
    const struct edge_said fell_since = {.path = PATH_KIND_RELAY, .path_at = 800, .fell_at = 900};
    const struct {
        const struct edge_said *said[2];
        const struct edge_probed *probed;
        int64_t probed_at;
        int64_t silent_for;
        int64_t since;
    } cases[] = {
        {.said = {&relay_later, &relay_since}, .since = 700},
        {.said = {&direct_since, &relay_since}, .since = 700},
        {.said = {&direct_since, &direct_since}, .since = 100},
        {.said = {&relay, &relay_later}, .since = 800},
        {.said = {&relay, &relay}, .since = 0},
        {.said = {&fell_since, &relay_since}, .since = 900},
        {.said = {&direct_since, NULL}, .probed = &silent, .probed_at = 950, .since = 950},
        {.said = {&direct_since, NULL}, .probed = &silent, .probed_at = 1, .since = 0},
        {.said = {&direct_since, NULL}, .silent_for = 90, .since = 910},
        {.since = 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct pair_facts f =
            facts_of(NULL, cases[i].said[0], cases[i].said[1], cases[i].probed, NULL);
        struct pair_verdict v;

        f.ends[0].probed_at = cases[i].probed_at;
        f.ends[0].silent_for = cases[i].silent_for;
        pair_assess(&f, &v);
        if (pair_since(&f, v.state, 1000) != cases[i].since)
            fail_msg("case %zu, %s: %lld", i, edge_state_names[v.state],
                (long long)pair_since(&f, v.state, 1000));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_since_when),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_states_by_the_rest),
        cmocka_unit_test(test_what_is_found),
        cmocka_unit_test(test_a_way_that_is_cut),
        cmocka_unit_test(test_a_cause_hides_what_follows),
        cmocka_unit_test(test_what_waits),
        cmocka_unit_test(test_a_silent_agent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
