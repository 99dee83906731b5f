/* test-reachability.c - verdicts on a virtual clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "monitor/ping_monitor.h"

#define MS  NSEC_PER_MSEC
#define SEC NSEC_PER_SEC

static void test_one_answer_is_proof(void **state)
{
    struct reachability r = {0};
    uint16_t seq;

    assert_false(reachability_check(&r, SEC));
    seq = reachability_on_ping(&r, SEC);
    assert_int_equal(r.state, REACHABILITY_UNKNOWN);
    assert_true(reachability_on_answer(&r, seq, SEC + 5 * MS));
    assert_int_equal(r.state, REACHABILITY_REACHED);
    assert_int_equal(r.rtt, 5 * MS);
    assert_int_equal(r.state_since, SEC + 5 * MS);
    /* A second copy is no answer, nor is one to a ping that never was. */
    assert_false(reachability_on_answer(&r, seq, 2 * SEC));
    assert_false(reachability_on_answer(&r, (uint16_t)(seq + 1), 2 * SEC));
    assert_int_equal(r.rtt, 5 * MS);
    assert_int_equal(r.n_answers, 1);
}

static void test_silence_has_to_last(void **state)
{
    struct reachability r = {0};
    nsec_t now = SEC;

    (void)reachability_on_answer(&r, reachability_on_ping(&r, now), now + MS);
    /* Four a second: three pings are soon lost, and three seconds count. */
    for (now = 2 * SEC; now < 5 * SEC; now += 250 * MS) {
        assert_false(reachability_check(&r, now));
        (void)reachability_on_ping(&r, now);
    }
    assert_true(reachability_check(&r, 5 * SEC));
    assert_int_equal(r.state, REACHABILITY_SILENT);
    assert_false(reachability_check(&r, 6 * SEC));

    /* One in ten seconds: three pings count. An answer that is late is one. */
    assert_true(reachability_on_answer(&r, r.seq, 7 * SEC));
    for (now = 10 * SEC; now < 40 * SEC; now += 10 * SEC) {
        assert_false(reachability_check(&r, now));
        (void)reachability_on_ping(&r, now);
    }
    assert_true(reachability_check(&r, 40 * SEC));
}

/* Over several turns of the sequence number, each third ping lost. */
static void test_loss(void **state)
{
    struct reachability r = {0};
    nsec_t now = SEC;

    assert_int_equal(reachability_loss_permille(&r, now), 0);
    for (unsigned i = 0; i < 200000; i++, now += SEC) {
        uint16_t seq = reachability_on_ping(&r, now);

        if (i % 3 != 0)
            (void)reachability_on_answer(&r, seq, now + 10 * MS);
        assert_false(reachability_check(&r, now + SEC / 2));
    }
    assert_int_equal(r.state, REACHABILITY_REACHED);
    assert_in_range(reachability_loss_permille(&r, now), 300, 350);
    /* One from before the window has no place any more. */
    assert_false(reachability_on_answer(&r, (uint16_t)(r.seq - REACHABILITY_WINDOW), now));
    /* What is on its way is not lost. */
    r = (struct reachability){0};
    (void)reachability_on_ping(&r, now);
    assert_int_equal(reachability_loss_permille(&r, now + REACHABILITY_LATE_FOR - 1), 0);
    assert_int_equal(reachability_loss_permille(&r, now + REACHABILITY_LATE_FOR), 1000);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_answer_is_proof),
        cmocka_unit_test(test_silence_has_to_last),
        cmocka_unit_test(test_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
