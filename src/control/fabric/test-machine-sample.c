/* test-machine-sample.c - what the kernel's files say, read from a recorded tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/machine_sample.h"
#include "test/support/machines.h"

static void test_server(void **state)
{
    static const uint64_t counts[MACHINE_COUNTER_N] = {
        [MACHINE_CPU_TICKS] = 100 + 20 + 30 + 4000 + 500 + 6 + 7 + 8,
        [MACHINE_CPU_IDLE] = 4500,
        [MACHINE_THROTTLED_US] = 123456,
        [MACHINE_HOT_EVENTS] = 5,
        [MACHINE_BACKLOG_DROPS] = 31,
        [MACHINE_UDP_IN] = 20321 + 880,
        [MACHINE_UDP_DROPS] = 79584 + 16,
        [MACHINE_TCP_OUT] = 319433,
        [MACHINE_TCP_AGAIN] = 182,
    };
    char root[MACHINES_PATH_MAX];
    struct tree t = {.root = root};
    struct machine_sample s;

    machines_unpack("../counters/server", root);
    machine_sample_read(&s, &t, "/", 77);
    machines_remove(root);
    assert_int_equal(s.at, 77);
    for (unsigned c = 0; c < MACHINE_COUNTER_N; c++) {
        assert_true(s.has[c]);
        assert_int_equal(s.counters[c], counts[c]);
    }
    /* The end of a virtual cable is no card. */
    assert_int_equal(s.n_nics, 1);
    assert_string_equal(s.nics[0].name, "eth0");
    assert_int_equal(s.nics[0].packets, 1234);
    assert_int_equal(s.nics[0].dropped, 11);
    assert_int_equal(s.nics[0].errors, 7);
    assert_int_equal(s.n_ports, 2);
    assert_string_equal(s.ports[0].name, "mlx5_0/1");
    assert_true(s.ports[0].is_active);
    assert_int_equal(s.ports[0].errors, 7);
    assert_int_equal(s.ports[0].downed, 2);
    assert_false(s.ports[1].is_active);
    assert_int_equal(s.ports[1].errors, 0);
    assert_true(s.disk_all > 0);
}

static void test_nothing_is_said(void **state)
{
    struct tree t = {.root = "/nowhere"};
    struct machine_sample s;

    machine_sample_read(&s, &t, "/nowhere", 77);
    for (unsigned c = 0; c < MACHINE_COUNTER_N; c++)
        assert_false(s.has[c]);
    assert_int_equal(s.n_nics + s.n_ports, 0);
    assert_int_equal(s.disk_all, 0);
}

/* This machine's kernel says at least what every kernel does. */
static void test_this_machine(void **state)
{
    struct tree t = {.root = ""};
    struct machine_sample s;

    machine_sample_read(&s, &t, "/", 77);
    assert_true(s.has[MACHINE_CPU_TICKS]);
    assert_true(s.counters[MACHINE_CPU_TICKS] > s.counters[MACHINE_CPU_IDLE]);
    assert_true(s.has[MACHINE_TCP_OUT]);
    assert_true(s.has[MACHINE_BACKLOG_DROPS]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_server),
        cmocka_unit_test(test_nothing_is_said),
        cmocka_unit_test(test_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
