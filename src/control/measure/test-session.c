/* test-session.c - one coordinator at a time, and nothing for who is not in the session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "measure/session.h"
#include "os/clock.h"

static const struct order first = {
    .kind = ORDER_SESSION, .id = {{1, 2, 3}}, .purpose = "preflight", .seconds = 10};
static const struct order second = {
    .kind = ORDER_SESSION, .id = {{4, 5, 6}}, .purpose = "bench", .seconds = 10};
static const struct ip_addr ann = {{[15] = 1}};
static const struct ip_addr bob = {{[15] = 2}};

static void test_one_at_a_time(void **state)
{
    struct session s;
    struct session_busy busy;
    uint64_t number, other;
    nsec_t now = 1000;

    session_init(&s);
    assert_false(session_has(&s, &first.id, now));
    assert_int_equal(session_begin(&s, &first, &ann, now, &number, &busy), 0);
    assert_true(session_has(&s, &first.id, now));
    assert_false(session_has(&s, &second.id, now));
    assert_int_equal(session_begin(&s, &second, &bob, now, &other, &busy), SESSION_E_BUSY);
    assert_true(ip_addr_equal(&busy.owner, &ann));
    session_end(&s, number, now);
    assert_false(session_has(&s, &first.id, now));
    assert_int_equal(session_begin(&s, &second, &bob, now, &other, &busy), 0);
    /* The end of one that is over already is not the end of the next. */
    session_end(&s, number, now);
    assert_true(session_has(&s, &second.id, now));
    /* A coordinator that has vanished holds nobody for longer than it said. */
    now += 10 * NSEC_PER_SEC;
    assert_false(session_has(&s, &second.id, now));
    assert_int_equal(session_begin(&s, &first, &ann, now, &number, &busy), 0);
    session_deinit(&s);
}

#define SEC NSEC_PER_SEC

static int begin(struct session *s, const struct ip_addr *who, nsec_t now, uint64_t *ret_number)
{
    static const struct order whole = {
        .kind = ORDER_SESSION, .id = {{7}}, .purpose = "bench", .seconds = ORDER_SECONDS_MAX};
    struct session_busy busy;

    return session_begin(s, &whole, who, now, ret_number, &busy);
}

/* Who has had its turn gives way to the next who asks, whatever time it has asked for. */
static void test_turns(void **state)
{
    const nsec_t start = 1000 * SEC;
    struct session s;
    struct session_busy busy;
    uint64_t mine, other;

    session_init(&s);
    assert_int_equal(begin(&s, &ann, start, &mine), 0);
    assert_int_equal(
        session_begin(&s, &second, &bob, start + SESSION_TURN - 1, &other, &busy), SESSION_E_BUSY);
    assert_true(ip_addr_equal(&busy.owner, &ann));
    assert_int_equal(busy.free_at, start + SESSION_TURN);
    assert_false(busy.is_waiting);
    /* While nobody else has asked, or it is ann that asks, its session goes on. */
    assert_int_equal(begin(&s, &ann, start + SESSION_TURN, &other), SESSION_E_BUSY);
    assert_true(session_is(&s, mine, start + SESSION_TURN));
    assert_int_equal(begin(&s, &bob, start + SESSION_TURN, &other), 0);
    assert_false(session_is(&s, mine, start + SESSION_TURN));
    assert_true(session_is(&s, other, start + SESSION_TURN));
    /* And bob has a turn of its own. */
    assert_int_equal(begin(&s, &ann, start + 2 * SESSION_TURN - 1, &mine), SESSION_E_BUSY);
    session_deinit(&s);
}

/* Many short sessions of one member are one turn, and do not keep the others from theirs. */
static void test_short_sessions_are_one_turn(void **state)
{
    struct session s;
    uint64_t mine, other;
    nsec_t now = 1000 * SEC;

    session_init(&s);
    for (nsec_t until = now + SESSION_TURN; now < until; now += SEC) {
        assert_int_equal(begin(&s, &ann, now, &mine), 0);
        session_end(&s, mine, now + SEC);
    }
    assert_int_equal(begin(&s, &ann, now, &mine), 0);
    assert_int_equal(begin(&s, &bob, now, &other), 0);
    session_end(&s, other, now);
    session_deinit(&s);
}

/* What an agent measures by itself ends for who asks, comes last, and is nobody's turn. */
static void test_in_the_background(void **state)
{
    static const struct order own = {
        .kind = ORDER_SESSION, .id = {{9}}, .purpose = SESSION_IN_BACKGROUND, .seconds = 30};
    static const struct ip_addr cid = {{[15] = 3}};
    struct session s;
    struct session_busy busy;
    uint64_t quiet, mine, other;
    nsec_t now = 1000 * SEC;

    session_init(&s);
    assert_int_equal(session_begin(&s, &own, &ann, now, &quiet, &busy), 0);
    assert_int_equal(session_begin(&s, &own, &bob, now, &other, &busy), SESSION_E_BUSY);
    assert_true(ip_addr_equal(&busy.owner, &ann));
    /* Even for a person at the same node. */
    assert_int_equal(begin(&s, &ann, ++now, &mine), 0);
    assert_false(session_is(&s, quiet, now));
    assert_int_equal(session_begin(&s, &own, &bob, now, &quiet, &busy), SESSION_E_BUSY);
    session_end(&s, mine, now);
    /* Nobody waits for what bob's agent wanted. */
    assert_int_equal(begin(&s, &ann, ++now, &mine), 0);
    assert_int_equal(begin(&s, &bob, ++now, &other), SESSION_E_BUSY);
    session_end(&s, mine, now);
    /* But bob waits now, and no agent is before him, though it was never served. */
    assert_int_equal(session_begin(&s, &own, &cid, ++now, &quiet, &busy), SESSION_E_BUSY);
    assert_true(busy.is_waiting && ip_addr_equal(&busy.owner, &bob));
    assert_int_equal(begin(&s, &bob, ++now, &other), 0);
    session_end(&s, other, ++now);
    /* It was no turn of cid's, who comes before ann. */
    assert_int_equal(session_begin(&s, &own, &cid, ++now, &quiet, &busy), 0);
    session_end(&s, quiet, ++now);
    assert_int_equal(begin(&s, &bob, ++now, &other), 0);
    assert_int_equal(begin(&s, &cid, ++now, &mine), SESSION_E_BUSY);
    session_end(&s, other, ++now);
    assert_int_equal(begin(&s, &ann, ++now, &mine), SESSION_E_BUSY);
    assert_int_equal(begin(&s, &cid, ++now, &mine), 0);
    session_deinit(&s);
}

/* Several members that want it all the time do not pass it to each other over a third one. */
static void test_who_waits_comes_first(void **state)
{
    static const struct ip_addr cid = {{[15] = 3}};
    struct session s;
    uint64_t mine, other;
    nsec_t now = 1000 * SEC;

    session_init(&s);
    assert_int_equal(begin(&s, &ann, now, &mine), 0);
    session_end(&s, mine, now);
    assert_int_equal(begin(&s, &bob, ++now, &other), 0);
    assert_int_equal(begin(&s, &cid, now, &mine), SESSION_E_BUSY);
    session_end(&s, other, now);
    assert_int_equal(begin(&s, &ann, now, &mine), SESSION_E_BUSY);
    assert_int_equal(begin(&s, &bob, now, &mine), SESSION_E_BUSY);
    assert_int_equal(begin(&s, &cid, ++now, &mine), 0);
    session_end(&s, mine, now);
    /* Ann was served before bob, and has asked. */
    assert_int_equal(begin(&s, &bob, now, &mine), SESSION_E_BUSY);
    assert_int_equal(begin(&s, &ann, ++now, &mine), 0);
    session_end(&s, mine, now);
    /* Who does not ask again is not waited for. */
    now += SESSION_WAIT;
    assert_int_equal(begin(&s, &cid, now, &mine), 0);
    session_end(&s, mine, now);
    /* More members than are remembered. */
    for (unsigned i = 0; i < 3 * SESSION_TURNS_MAX; i++) {
        const struct ip_addr who = {{[14] = 1, [15] = (uint8_t)i}};

        assert_int_equal(begin(&s, &who, ++now, &mine), 0);
        session_end(&s, mine, now);
    }
    assert_int_equal(s.n_turns, SESSION_TURNS_MAX);
    session_deinit(&s);
}

static void test_pings_are_counted(void **state)
{
    struct session s;
    struct session_busy busy;
    struct session_heard *heard;
    uint64_t number;
    uint32_t n = 77;
    size_t n_heard;

    session_init(&s);
    assert_false(session_hear(&s, &first.id, &ann, true, 1, &n));
    assert_int_equal(n, 77);
    (void)session_begin(&s, &first, &ann, 1, &number, &busy);
    assert_true(session_hear(&s, &first.id, &ann, true, 1, &n));
    assert_true(session_hear(&s, &first.id, &bob, true, 1, &n));
    assert_true(session_hear(&s, &first.id, &bob, false, 1, &n));
    assert_true(session_hear(&s, &first.id, &bob, true, 1, &n));
    assert_int_equal(n, 2);
    assert_false(session_hear(&s, &second.id, &bob, true, 1, &n));
    heard = session_copy_heard(&s, &n_heard);
    assert_int_equal(n_heard, 2);
    assert_true(ip_addr_equal(&heard[1].from, &bob));
    assert_int_equal(heard[1].n, 2);
    free(heard);
    /* As many as the table has room for, and no more. */
    for (uint32_t i = 0; i < 2 * SESSION_HEARD_MAX; i++) {
        struct ip_addr from = {{[10] = 9, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i}};

        assert_int_equal(
            session_hear(&s, &first.id, &from, true, 1, &n), i < SESSION_HEARD_MAX - 2);
    }
    session_deinit(&s);
}

static void test_hops(void **state)
{
    struct session s;
    struct session_busy busy;
    uint64_t number;
    int ends[2];
    char c;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    session_init(&s);
    assert_false(session_put_hop(&s, &first.id, 3, ends[0]));
    (void)session_begin(&s, &first, &ann, clock_now(), &number, &busy);
    assert_false(session_put_hop(&s, &second.id, 3, ends[0]));
    assert_true(session_put_hop(&s, &first.id, 3, ends[0]));
    assert_int_equal(session_take_hop(&s, 2, clock_now()), -1);
    assert_int_equal(session_take_hop(&s, 3, clock_now()), ends[0]);
    assert_int_equal(session_take_hop(&s, 3, clock_now()), -1);
    /* What nobody took is closed with the session. */
    assert_true(session_put_hop(&s, &first.id, 4, ends[0]));
    session_end(&s, number, clock_now());
    assert_int_equal(read(ends[1], &c, 1), 0);
    (void)close(ends[1]);
    session_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_short_sessions_are_one_turn),
        cmocka_unit_test(test_in_the_background),
        cmocka_unit_test(test_who_waits_comes_first),
        cmocka_unit_test(test_pings_are_counted),
        cmocka_unit_test(test_hops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
