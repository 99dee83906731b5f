/* test-reachability.c - verdicts on a virtual clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "monitor/reachability.h"

#define MS  NSEC_PER_MSEC
#define SEC NSEC_PER_SEC

static void test_one_answer_is_proof(void **state)
{
    struct edge e = {0};
    uint16_t seq;

    assert_false(edge_judge(&e, SEC));
    seq = edge_on_ping(&e, SEC);
    assert_int_equal(e.state, EDGE_UNKNOWN);
    assert_true(edge_on_answer(&e, seq, SEC + 5 * MS));
    assert_int_equal(e.state, EDGE_REACHED);
    assert_int_equal(e.rtt, 5 * MS);
    assert_int_equal(e.since, SEC + 5 * MS);
    /* A second copy is no answer, nor is one to a ping that never was. */
    assert_false(edge_on_answer(&e, seq, 2 * SEC));
    assert_false(edge_on_answer(&e, (uint16_t)(seq + 1), 2 * SEC));
    assert_int_equal(e.rtt, 5 * MS);
    assert_int_equal(e.n_answers, 1);
}

static void test_silence_has_to_last(void **state)
{
    struct edge e = {0};
    nsec_t now = SEC;

    (void)edge_on_answer(&e, edge_on_ping(&e, now), now + MS);
    /* Four a second: three pings are soon lost, and three seconds count. */
    for (now = 2 * SEC; now < 5 * SEC; now += 250 * MS) {
        assert_false(edge_judge(&e, now));
        (void)edge_on_ping(&e, now);
    }
    assert_true(edge_judge(&e, 5 * SEC));
    assert_int_equal(e.state, EDGE_SILENT);
    assert_false(edge_judge(&e, 6 * SEC));

    /* One in ten seconds: three pings count. An answer that is late is one. */
    assert_true(edge_on_answer(&e, e.seq, 7 * SEC));
    for (now = 10 * SEC; now < 40 * SEC; now += 10 * SEC) {
        assert_false(edge_judge(&e, now));
        (void)edge_on_ping(&e, now);
    }
    assert_true(edge_judge(&e, 40 * SEC));
}

/* Over several turns of the sequence number, each third ping lost. */
static void test_loss(void **state)
{
    struct edge e = {0};
    nsec_t now = SEC;

    assert_int_equal(edge_loss_permille(&e, now), 0);
    for (unsigned i = 0; i < 200000; i++, now += SEC) {
        uint16_t seq = edge_on_ping(&e, now);

        if (i % 3 != 0)
            (void)edge_on_answer(&e, seq, now + 10 * MS);
        assert_false(edge_judge(&e, now + SEC / 2));
    }
    assert_int_equal(e.state, EDGE_REACHED);
    assert_in_range(edge_loss_permille(&e, now), 300, 350);
    /* One from before the window has no place any more. */
    assert_false(edge_on_answer(&e, (uint16_t)(e.seq - EDGE_WINDOW), now));
    /* What is on its way is not lost. */
    e = (struct edge){0};
    (void)edge_on_ping(&e, now);
    assert_int_equal(edge_loss_permille(&e, now + EDGE_LATE - 1), 0);
    assert_int_equal(edge_loss_permille(&e, now + EDGE_LATE), 1000);
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
