/* test-parts.c - candidates, what STUN answers say of a NAT, and what a pong is taken for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "path/behavior.h"
#include "path/candidate.h"
#include "path/path_internal.h"
#include "path/path_pair_internal.h"

static struct endpoint ep(const char *text)
{
    struct endpoint e;

    assert_int_equal(endpoint_parse(&e, text, NULL), 0);
    return e;
}

static bool add(struct candidates *c, enum candidate_kind kind, const char *text)
{
    struct endpoint e = ep(text);

    return candidates_add(c, kind, &e);
}

static void test_order_and_duplicates(void **state)
{
    struct candidates c = {.n = 0};
    struct candidates same;

    assert_true(add(&c, CANDIDATE_REFLEXIVE, "203.0.113.1:1000"));
    assert_true(add(&c, CANDIDATE_HOST, "192.168.1.2:51820"));
    assert_true(add(&c, CANDIDATE_GIVEN, "203.0.113.9:51820"));
    assert_true(add(&c, CANDIDATE_HOST, "[2001:db8::2]:51820"));
    assert_false(add(&c, CANDIDATE_REFLEXIVE, "192.168.1.2:51820"));
    same = c;
    assert_true(candidates_equal(&c, &same));
    /* A node without a NAT: a server sees its host address. The earlier kind is kept. */
    assert_true(add(&c, CANDIDATE_HOST, "203.0.113.1:1000"));
    assert_false(candidates_equal(&c, &same));
    assert_int_equal(c.n, 4);
    assert_int_equal(c.items[2].kind, CANDIDATE_HOST);
    assert_int_equal(c.items[3].kind, CANDIDATE_GIVEN);
}

static void test_a_full_set_keeps_the_better(void **state)
{
    struct candidates c = {.n = 0};
    char text[64];

    for (unsigned i = 0; i < CANDIDATES_MAX; i++) {
        (void)snprintf(text, sizeof(text), "203.0.113.1:%u", i + 1);
        assert_true(add(&c, CANDIDATE_REFLEXIVE, text));
    }
    assert_false(add(&c, CANDIDATE_REFLEXIVE, "203.0.113.2:1"));
    assert_true(add(&c, CANDIDATE_HOST, "10.0.0.1:1"));
    assert_int_equal(c.n, CANDIDATES_MAX);
    assert_int_equal(c.items[0].kind, CANDIDATE_HOST);
}

static void test_impossible_endpoints(void **state)
{
    static const char *const bad[] = {"127.0.0.1:1", "0.1.2.3:1", "224.0.0.1:1",
        "255.255.255.255:1", "[::1]:1", "[ff02::1]:1", "[fe80::1]:1", "[::]:1"};
    struct candidates c = {.n = 0};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(add(&c, CANDIDATE_HOST, bad[i]));
    assert_true(add(&c, CANDIDATE_HOST, "169.254.7.7:1"));
}

static void test_private_addresses(void **state)
{
    static const struct {
        const char *text;
        bool private;
    } cases[] = {{"10.1.2.3:1", true}, {"172.16.0.1:1", true}, {"172.32.0.1:1", false},
        {"192.168.0.1:1", true}, {"192.169.0.1:1", false}, {"100.64.0.1:1", true},
        {"100.128.0.1:1", false}, {"[fd00::1]:1", true}, {"[2001:db8::1]:1", false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct endpoint e = ep(cases[i].text);

        assert_int_equal(candidate_is_private(&e.addr), cases[i].private);
    }
}

static void test_names(void **state)
{
    assert_int_equal(candidate_kind_parse("reflexive"), CANDIDATE_REFLEXIVE);
    assert_int_equal(candidate_kind_parse("heard"), CANDIDATE_NONE);
    assert_int_equal(candidate_kind_parse(""), CANDIDATE_NONE);
    for (int r = 1; r < BEHAVIOR_RULE_N; r++)
        assert_int_equal(
            behavior_rule_parse(behavior_rule_name((enum behavior_rule)r)), (enum behavior_rule)r);
}

/* ---- the NAT -------------------------------------------------------------------------------- */

struct answer {
    const char *server;
    const char *mapped;
};

static struct behavior survey(const struct answer *answers, size_t n)
{
    struct behavior_survey s = BEHAVIOR_SURVEY_NULL;
    struct endpoint own = ep("192.168.1.2:51820");

    for (size_t i = 0; i < n; i++) {
        struct endpoint server = ep(answers[i].server);
        struct endpoint mapped = ep(answers[i].mapped);

        behavior_survey_add(&s, &server, &mapped, (nsec_t)i);
    }
    return behavior_of(&s, &own, 1);
}

#define SURVEY(...)                                                                                \
    survey((const struct answer[]){__VA_ARGS__},                                                   \
        sizeof((const struct answer[]){__VA_ARGS__}) / sizeof(struct answer))

#define S1  "198.51.100.1:3478"
#define S1B "198.51.100.1:3479"
#define S2  "198.51.100.2:3478"

static void test_mapping(void **state)
{
    assert_int_equal(SURVEY({S1, "203.0.113.1:5"}).mapping, BEHAVIOR_UNKNOWN);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S1B, "203.0.113.1:5"}).mapping, BEHAVIOR_UNKNOWN);
    assert_int_equal(SURVEY({S1, "203.0.113.1:5"}, {S2, "203.0.113.1:5"}).mapping,
        BEHAVIOR_ENDPOINT_INDEPENDENT);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S2, "203.0.113.1:6"}).mapping, BEHAVIOR_ADDRESS_DEPENDENT);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S1B, "203.0.113.1:6"}).mapping, BEHAVIOR_PORT_DEPENDENT);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S1B, "203.0.113.1:5"}, {S2, "203.0.113.1:6"}).mapping,
        BEHAVIOR_ADDRESS_DEPENDENT);
    assert_int_equal(
        SURVEY({S1, "203.0.113.1:5"}, {S2, "203.0.113.1:6"}, {S1B, "203.0.113.1:7"}).mapping,
        BEHAVIOR_PORT_DEPENDENT);
}

static void test_no_nat(void **state)
{
    struct behavior b = SURVEY({S1, "192.168.1.2:51820"});

    assert_false(b.is_natted);
    assert_int_equal(b.mapping, BEHAVIOR_ENDPOINT_INDEPENDENT);
    assert_true(SURVEY({S1, "203.0.113.1:5"}).is_natted);
}

static void test_steps(void **state)
{
    struct behavior b =
        SURVEY({S1, "203.0.113.1:5000"}, {S2, "203.0.113.1:5002"}, {S1B, "203.0.113.1:5004"});

    assert_int_equal(b.port_step, 2);
    assert_int_equal(b.last_port, 5004);
    assert_int_equal(behavior_predict(&b, 0), 5006);
    assert_int_equal(behavior_predict(&b, 2), 5010);
    assert_int_equal(behavior_predict(&b, BEHAVIOR_GUESSES), 0);
    /* Somebody else's mapping came between. */
    b = SURVEY({S1, "203.0.113.1:5000"}, {S2, "203.0.113.1:5001"}, {S1B, "203.0.113.1:5004"});
    assert_int_equal(b.port_step, 1);
    b = SURVEY({S1, "203.0.113.1:5000"}, {S2, "203.0.113.1:51234"}, {S1B, "203.0.113.1:2000"});
    assert_int_equal(b.port_step, 0);
    assert_int_equal(behavior_predict(&b, 0), 0);
    b = SURVEY({S1, "203.0.113.1:65534"}, {S1B, "203.0.113.1:65535"});
    assert_int_equal(behavior_predict(&b, 0), 0);
}

/* The peer may put into its pong what it likes: no time is reckoned from that. */
static void test_pongs(void **state)
{
    const nsec_t sent = 5 * NSEC_PER_SEC;
    const nsec_t at = sent + 7 * NSEC_PER_MSEC;
    struct path_pair pair = {.id = 1};
    struct path_frame pong = {.transaction = 3, .held_us = 2000};
    const uint64_t others[] = {0, (uint64_t)sent - 1, (uint64_t)INT64_MIN, UINT64_MAX};

    path__pair_on_ping(&pair, 3, sent);
    for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++) {
        pong.clock = others[i];
        assert_false(path__pair_on_pong(&pair, &pong, at, at));
    }
    assert_int_equal(pair.rtt, 0);
    pong.clock = (uint64_t)sent;
    assert_true(path__pair_on_pong(&pair, &pong, at, at));
    assert_int_equal(pair.rtt, 5 * NSEC_PER_MSEC);
    assert_false(path__pair_on_pong(&pair, &pong, at, at));
    /* One that says that it was held for longer than it was away has taken no time. */
    path__pair_on_ping(&pair, 4, sent);
    pair.n_samples = 0;
    pong.transaction = 4;
    pong.held_us = UINT32_MAX;
    assert_true(path__pair_on_pong(&pair, &pong, at, at));
    assert_int_equal(pair.rtt, NSEC_PER_USEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_duplicates),
        cmocka_unit_test(test_a_full_set_keeps_the_better),
        cmocka_unit_test(test_impossible_endpoints),
        cmocka_unit_test(test_private_addresses),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_mapping),
        cmocka_unit_test(test_no_nat),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_pongs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
