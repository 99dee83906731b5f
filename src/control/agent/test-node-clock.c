/* test-node-clock.c - a clock that is off, and one that was set back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/node_machine.h"
#include "agent/state/state.h"
#include "os/log.h"

#define NOW  ((nsec_t)1790000000 * NSEC_PER_SEC)
#define HOUR (3600 * NSEC_PER_SEC)

static char dir[64];

static int set_up(void **state)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/weft-test-clock.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    char path[PATH_MAX];

    (void)unlink(state_timestamp_path(path, dir));
    return rmdir(dir);
}

static void test_off(void **state)
{
    struct node_clock nc;

    node_clock_init(&nc, dir);
    assert_string_equal(node_clock_why(&nc), "");
    node_clock_compare(&nc, 10);
    node_clock_compare(&nc, -10);
    assert_string_equal(node_clock_why(&nc), "");
    node_clock_compare(&nc, 7200);
    assert_non_null(strstr(node_clock_why(&nc), "7200 s ahead of the hub's"));
    node_clock_compare(&nc, 10);
    assert_non_null(strstr(node_clock_why(&nc), "10 s ahead"));
    node_clock_compare(&nc, -11);
    assert_non_null(strstr(node_clock_why(&nc), "11 s behind the hub's"));
    assert_non_null(strstr(node_clock_why(&nc), "time server"));
    node_clock_compare(&nc, 0);
    assert_string_equal(node_clock_why(&nc), "");
    node_clock_compare(&nc, INT64_MIN);
    assert_non_null(strstr(node_clock_why(&nc), "behind"));
}

/* Beside the kernel's engine, in one run and in one after it. */
static void test_set_back(void **state)
{
    for (int restarts = 0; restarts < 2; restarts++) {
        struct node_clock nc;

        node_clock_init(&nc, dir);
        node_clock_look(&nc, true, NOW + 2 * HOUR, 1);
        assert_string_equal(nc.lockout, "");
        if (restarts) {
            timestamp_file_end(&nc.file, NOW + 2 * HOUR, 1);
            node_clock_init(&nc, dir);
        }
        node_clock_compare(&nc, 0);
        node_clock_look(&nc, true, NOW, 2);
        assert_non_null(strstr(nc.lockout, "was set back"));
        assert_string_equal(node_clock_why(&nc), nc.lockout);
        node_clock_look(&nc, true, NOW + 3 * HOUR, 3);
        assert_string_equal(nc.lockout, "");
        timestamp_file_end(&nc.file, NOW + 3 * HOUR, 3);
        (void)unlink(nc.path);
    }
}

/* What a time server does, a restart, and the userspace engine, which dates its own later. */
static void test_no_lockout(void **state)
{
    struct node_clock nc;

    node_clock_init(&nc, dir);
    node_clock_look(&nc, true, NOW, 1);
    node_clock_look(&nc, true, NOW - NSEC_PER_SEC, 2);
    assert_string_equal(nc.lockout, "");
    /* Killed, and at once started again. */
    node_clock_init(&nc, dir);
    node_clock_look(&nc, true, NOW + NSEC_PER_SEC, 3);
    assert_string_equal(nc.lockout, "");
    node_clock_look(&nc, true, NOW - HOUR, 4);
    assert_string_not_equal(nc.lockout, "");
    node_clock_look(&nc, false, NOW - HOUR, 5);
    assert_string_equal(nc.lockout, "");
    timestamp_file_end(&nc.file, NOW, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_set_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_lockout, set_up, tear_down),
    };

    log_init("test", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
