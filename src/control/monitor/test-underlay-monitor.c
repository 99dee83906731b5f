/* test-underlay-monitor.c - which endpoint is asked, and what an answer or none of it means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "monitor/underlay_monitor.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC

static const struct x25519_secret secret = {.b = {5, [31] = 0x40}};

static struct underlay_member member(unsigned n_at)
{
    struct underlay_member m = {.name = "b", .n_at = n_at};

    for (unsigned i = 0; i < n_at; i++)
        m.at[i] = (struct endpoint){
            .addr = ip_addr_v4((uint8_t[]){192, 0, 2, (uint8_t)(i + 1)}), .port = 7};
    return m;
}

static void answer(struct underlay_member *m, uint64_t transaction, nsec_t now)
{
    struct path_frame f = {.kind = PATH_FRAME_PONG, .transaction = transaction, .held_us = 1000};

    underlay_monitor__on_frame(m, &f, &m->at[m->asked], now);
}

/* The endpoints are asked in turn until one answers; then that one, until it is silent. */
static void test_which_endpoint_is_asked(void **state)
{
    struct underlay_member m = member(2);

    underlay_monitor__on_ping(&m, 1, 1 * SEC);
    assert_int_equal(m.asked, 0);
    underlay_monitor__on_ping(&m, 2, 2 * SEC);
    assert_int_equal(m.asked, 1);
    assert_int_equal(m.reach, EDGE_REACH_UNKNOWN);
    /* An answer to the ping before does not count. */
    answer(&m, 1, 2 * SEC + 4 * MS);
    assert_int_equal(m.reach, EDGE_REACH_UNKNOWN);
    assert_int_equal(m.heard_at, 2 * SEC + 4 * MS);
    answer(&m, 2, 2 * SEC + 5 * MS);
    assert_int_equal(m.reach, EDGE_REACH_REACHED);
    assert_int_equal(m.rtt, 4 * MS);
    assert_true(endpoint_equal(&m.endpoint, &m.at[1]));
    for (unsigned i = 0; i < 4; i++)
        underlay_monitor__on_ping(&m, 3 + i, (3 + i) * SEC);
    assert_int_equal(m.asked, 1);
    /* It stays the endpoint of what is known until that changes. */
    for (unsigned i = 0; m.reach == EDGE_REACH_REACHED; i++) {
        assert_true(i < 3);
        assert_true(endpoint_equal(&m.endpoint, &m.at[1]));
        underlay_monitor__on_ping(&m, 7 + i, (7 + i) * SEC);
    }
    assert_int_equal(m.reach, EDGE_REACH_SILENT);
}

static void test_a_member_that_never_answers(void **state)
{
    struct underlay_member m = member(5);

    for (unsigned i = 0; i < 5; i++) {
        underlay_monitor__on_ping(&m, i, (i + 1) * SEC);
        assert_int_equal(m.asked, i);
        assert_int_equal(m.reach, EDGE_REACH_UNKNOWN);
    }
    underlay_monitor__on_ping(&m, 9, 9 * SEC);
    assert_int_equal(m.reach, EDGE_REACH_SILENT);
}

/* A thousand members are asked at a hundred a second, each once a round. */
static void test_pace(void **state)
{
    struct underlay_member *members = calloc(1000, sizeof(*members));
    struct underlay_monitor u;
    uint64_t seed = 3;
    struct rng rng = rng_seeded(&seed);
    nsec_t now = 100 * SEC;
    size_t first;

    assert_non_null(members);
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(members[i].name, sizeof(members[i].name), "n%04u", i);
        members[i].public.b[0] = 9;
    }
    assert_true(underlay_monitor_init(&u, &secret, 5 * SEC, &rng));
    assert_int_equal(underlay_monitor_set(&u, members, 1000, now), 0);
    assert_int_equal(underlay_monitor_period(&u), 10 * SEC);
    first = u.cursor;
    assert_true(first > 0);
    underlay_monitor_run(&u, now + 1 * SEC - 1);
    assert_int_equal((u.cursor + 1000 - first) % 1000, 100);
    /* After a suspend the missed turns are left out. */
    underlay_monitor_run(&u, now + 4000 * SEC);
    assert_int_equal((u.cursor + 1000 - first) % 1000, 101);
    assert_true(u.due_at > now + 4000 * SEC);
    underlay_monitor_close(&u);
}

/* What is known of a member stays when the list is read again, unless it has another key. */
static void test_members_are_read_again(void **state)
{
    struct underlay_monitor u;
    uint64_t seed = 3;
    struct rng rng = rng_seeded(&seed);
    struct edge_probed reported = {.rtt_us = 0};

    assert_true(underlay_monitor_init(&u, &secret, 5 * SEC, &rng));
    for (unsigned i = 0; i < 3; i++) {
        struct underlay_member *m = calloc(1, sizeof(*m));

        assert_non_null(m);
        *m = member(2);
        m->public.b[0] = i < 2 ? 9 : 11;
        assert_int_equal(underlay_monitor_set(&u, m, 1, 1 * SEC), 0);
        assert_true(u.members[0].has_keys);
        assert_int_equal(u.members[0].reach, i == 1 ? EDGE_REACH_REACHED : EDGE_REACH_UNKNOWN);
        underlay_monitor__on_ping(&u.members[0], 5, 1 * SEC);
        answer(&u.members[0], 5, 1 * SEC + 3 * MS);
    }
    underlay_monitor_tell(&u, 0, &reported, 2 * SEC);
    assert_int_equal(reported.underlay, EDGE_REACH_REACHED);
    assert_int_equal(reported.underlay_rtt_us, 2000);
    assert_true(reported.is_heard);
    underlay_monitor_tell(&u, 0, &reported, 60 * SEC);
    assert_false(reported.is_heard);
    underlay_monitor_close(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_endpoint_is_asked),
        cmocka_unit_test(test_a_member_that_never_answers),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_members_are_read_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
