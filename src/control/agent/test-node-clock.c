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
    assert_string_equal(node_clock_why(&nc),
        "this machine's clock is 11 s behind the hub's; let the one that is wrong follow a time "
        "server: \"timedatectl set-ntp true\", or chrony");
    /* It is over at eight seconds, and begins with eleven. */
    node_clock_compare(&nc, 9);
    assert_non_null(strstr(node_clock_why(&nc), "9 s ahead"));
    node_clock_compare(&nc, -8);
    assert_string_equal(node_clock_why(&nc), "");
    node_clock_compare(&nc, 11);
    assert_non_null(strstr(node_clock_why(&nc), "11 s ahead"));
    node_clock_compare(&nc, 0);
    assert_string_equal(node_clock_why(&nc), "");
    node_clock_compare(&nc, INT64_MIN);
    assert_non_null(strstr(node_clock_why(&nc), "behind"));
}

/* By more than ten seconds; and it is over when the clock is within them again. */
static void test_how_far_back(void **state)
{
    struct node_clock nc;

    node_clock_init(&nc, dir);
    assert_int_equal(nc.before, 0);
    node_clock_look(&nc, true, NOW, 1);
    assert_int_equal(nc.before, NOW);
    node_clock_look(&nc, true, NOW - 10 * NSEC_PER_SEC, 2);
    assert_string_equal(nc.lockout, "");
    assert_int_equal(nc.before, NOW);
    node_clock_look(&nc, true, NOW - 10 * NSEC_PER_SEC - 1, 3);
    assert_string_equal(nc.lockout,
        "this machine's clock was set back, and for 10 s more peers refuse the handshakes that the "
        "kernel's WireGuard begins, since they are dated before earlier ones");
    node_clock_look(&nc, true, NOW - HOUR, 4);
    assert_non_null(strstr(nc.lockout, "for 3600 s more"));
    node_clock_look(&nc, true, NOW - 10 * NSEC_PER_SEC, 5);
    assert_string_equal(nc.lockout, "");
    assert_int_equal(nc.before, NOW);
    node_clock_look(&nc, true, NOW + 1, 6);
    assert_int_equal(nc.before, NOW + 1);
    timestamp_file_end(&nc.file, NOW, 7);
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

/* What the hub says of a second machine with this node's key. */
static void test_a_copy(void **state)
{
    struct node_copy nc = {.is_copy = false};
    json_t *body = json_pack("{s:{s:s, s:b}}", "copy", "why", "two\nmachines", "isCopy", 1);

    node_copy_on_answer(&nc, body);
    assert_true(nc.is_copy);
    assert_string_equal(nc.why, "two machines");
    json_decref(body);
    body = json_object();
    node_copy_on_answer(&nc, body);
    assert_false(nc.is_copy);
    assert_string_equal(nc.why, "");
    json_decref(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_how_far_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_set_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_lockout, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_copy, set_up, tear_down),
    };

    log_init("test", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
