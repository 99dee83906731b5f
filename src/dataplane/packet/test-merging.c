/* test-merging.c - what is concluded of how datagrams arrive, and when nothing is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "packet/merging.h"

#define SEG   1400
#define CALLS (MERGING_ENOUGH / (UDP_INBOX_MESSAGES - 1) + 1)
#define START (100 * NSEC_PER_SEC)

struct world {
    struct merging merging;
    struct merging_window window;
    struct udp_run runs[UDP_INBOX_MESSAGES];
    nsec_t now;
};

/* A call's worth of datagrams of one flow by interface @ifindex, @in_run of them in each run. */
static struct world arriving(uint32_t ifindex, unsigned in_run)
{
    struct world w = {.now = START};

    for (unsigned i = 0; i < UDP_INBOX_MESSAGES; i++)
        w.runs[i] = (struct udp_run){.len = in_run * SEG, .seg = SEG, .path = {.ifindex = ifindex}};
    return w;
}

static void take_calls(struct world *w, unsigned n_calls, nsec_t apart)
{
    for (unsigned i = 0; i < n_calls; i++) {
        merging_take(&w->merging, &w->window, w->runs, UDP_INBOX_MESSAGES, w->now);
        w->now += apart;
    }
}

static struct merging_seen read_now(const struct world *w)
{
    return merging_read(&w->merging, w->now);
}

static void test_one_by_one(void **state)
{
    struct world w = arriving(7, 1);
    struct merging_seen seen;

    take_calls(&w, CALLS - 1, NSEC_PER_USEC);
    assert_int_equal(read_now(&w).ifindex, 0);
    take_calls(&w, 1, NSEC_PER_USEC);
    seen = read_now(&w);
    assert_int_equal(seen.ifindex, 7);
    assert_int_equal(seen.percent, 0);
    assert_true(merging_is_low(&seen));
}

static void test_merged(void **state)
{
    struct world w = arriving(7, 40);
    struct merging_seen seen;

    take_calls(&w, CALLS, NSEC_PER_USEC);
    seen = read_now(&w);
    assert_int_equal(seen.ifindex, 7);
    assert_int_equal(seen.percent, 100);
    assert_false(merging_is_low(&seen));
    /* What was set back is seen as soon as there is enough of it. */
    for (unsigned i = 0; i < UDP_INBOX_MESSAGES; i++)
        w.runs[i].len = SEG;
    take_calls(&w, 2 * CALLS, NSEC_PER_USEC);
    seen = read_now(&w);
    assert_true(merging_is_low(&seen));
}

/* One call of nine has two in each of its runs: 8 are merged, and 56 are not. */
static void test_some_are_merged(void **state)
{
    struct world w = arriving(7, 1);
    struct merging_seen seen;

    for (unsigned i = 0; i < 2 * CALLS; i++) {
        for (unsigned k = 0; k < UDP_INBOX_MESSAGES; k++)
            w.runs[k].len = (i % 9 == 0 ? 2 : 1) * SEG;
        take_calls(&w, 1, NSEC_PER_USEC);
    }
    seen = read_now(&w);
    assert_in_range(seen.percent, 11, 13);
    assert_false(merging_is_low(&seen));
}

/* Where they come slowly nothing is to be merged. */
static void test_too_slow(void **state)
{
    struct world w = arriving(7, 1);

    take_calls(&w, 10 * CALLS, 2 * MERGING_WITHIN / CALLS);
    assert_int_equal(read_now(&w).ifindex, 0);
}

/* Neighbours that no kernel would merge say nothing. */
static void test_what_is_not_of_one_flow(void **state)
{
    struct world w = arriving(7, 1);

    for (unsigned i = 0; i < UDP_INBOX_MESSAGES; i += 2)
        w.runs[i].path.remote.port = 9;
    take_calls(&w, 10 * CALLS, NSEC_PER_USEC);
    assert_int_equal(read_now(&w).ifindex, 0);
    w = arriving(7, 1);
    for (unsigned i = 0; i < UDP_INBOX_MESSAGES; i += 2)
        w.runs[i].len = w.runs[i].seg = SEG - 1;
    take_calls(&w, 10 * CALLS, NSEC_PER_USEC);
    assert_int_equal(read_now(&w).ifindex, 0);
    w = arriving(7, 1);
    for (unsigned i = 0; i < UDP_INBOX_MESSAGES; i += 2)
        w.runs[i].tos = 1;
    take_calls(&w, 10 * CALLS, NSEC_PER_USEC);
    assert_int_equal(read_now(&w).ifindex, 0);
}

static void test_it_grows_old(void **state)
{
    struct world w = arriving(7, 1);

    take_calls(&w, CALLS, NSEC_PER_USEC);
    w.now += MERGING_HOLDS - NSEC_PER_SEC;
    assert_int_equal(read_now(&w).ifindex, 7);
    assert_int_equal(read_now(&w).age / NSEC_PER_SEC, (MERGING_HOLDS - 1) / NSEC_PER_SEC);
    w.now += 2 * NSEC_PER_SEC;
    assert_int_equal(read_now(&w).ifindex, 0);
}

/* Two network cards by turns: the one that does not merge is named. */
static void test_two_interfaces(void **state)
{
    struct world w = arriving(7, 1);

    for (unsigned turn = 0; turn < 4; turn++) {
        for (unsigned i = 0; i < UDP_INBOX_MESSAGES; i++) {
            w.runs[i].path.ifindex = turn % 2 == 0 ? 7 : 8;
            w.runs[i].len = turn % 2 == 0 ? SEG : 40 * SEG;
        }
        take_calls(&w, 2 * CALLS, NSEC_PER_USEC);
        assert_int_equal(read_now(&w).ifindex, 7);
        w.now += 2 * MERGING_WITHIN;
    }
    /* And if nothing comes by it any more, the other one. */
    w.now += MERGING_STAYS;
    take_calls(&w, CALLS, NSEC_PER_USEC);
    assert_int_equal(read_now(&w).ifindex, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_merged),
        cmocka_unit_test(test_some_are_merged),
        cmocka_unit_test(test_too_slow),
        cmocka_unit_test(test_what_is_not_of_one_flow),
        cmocka_unit_test(test_it_grows_old),
        cmocka_unit_test(test_two_interfaces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
