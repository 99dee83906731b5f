/* test-node-watch.c - the machine is read on a thread, once each minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <cmocka.h>

#include "agent/node_machine.h"
#include "health/machine.h"
#include "os/clock.h"

#define LIMIT (10 * NSEC_PER_SEC)

/* Looks as of @now until something was read after @before. */
static const struct machine_watch *look(struct node_watch *nw, nsec_t now, nsec_t before)
{
    const struct machine_watch *seen = NULL;

    for (nsec_t until = clock_now() + LIMIT; !seen || seen->now.at <= before;) {
        assert_true(clock_now() < until);
        (void)poll(NULL, 0, 1);
        seen = node_watch_look(nw, now);
    }
    return seen;
}

static void test_it_is_read_each_minute(void **state)
{
    struct node_watch *nw = node_watch_new("/");
    const struct machine_watch *seen;
    nsec_t first;

    assert_non_null(nw);
    seen = look(nw, 1, 0);
    first = seen->now.at;
    assert_int_equal(seen->before.at, 0);
    assert_true(seen->now.disk_all > 0);
    /* Not before its time, however often it is looked at. */
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(node_watch_look(nw, NODE_WATCH_EACH)->now.at, first);
    seen = look(nw, 1 + NODE_WATCH_EACH, first);
    assert_int_equal(seen->before.at, first);
    (void)node_watch_free(nw);
}

static void test_it_ends_while_it_reads(void **state)
{
    struct node_watch *nw = node_watch_new("/");

    assert_null(node_watch_look(nw, 1));
    assert_null(node_watch_free(nw));
    assert_null(node_watch_look(NULL, 1));
    assert_null(node_watch_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_read_each_minute),
        cmocka_unit_test(test_it_ends_while_it_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
