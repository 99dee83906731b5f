/* test-machine.c - what is found of a machine, from two samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "health/machine.h"

#define GIB ((uint64_t)1 << 30)

static struct machine_watch watch;
static struct machine_sample before;
static struct machine_sample now;
static struct findings found;

/* A machine that is well, with a card, a port and all counters, and the same a minute later. */
static int set_up(void **state)
{
    findings_deinit(&found);
    memset(&watch, 0, sizeof(watch));
    memset(&before, 0, sizeof(before));
    before.at = 100 * NSEC_PER_SEC;
    for (unsigned c = 0; c < MACHINE_COUNTER_N; c++)
        before.has[c] = true;
    before.n_nics = 1;
    before.nics[0] = (struct machine_nic){"eth0", 5000000, 4000, 3000};
    before.n_ports = 1;
    before.ports[0] = (struct machine_port){"mlx5_0/1", true, 7, 1};
    before.disk_all = 100 * GIB;
    before.disk_free = 50 * GIB;
    before.has_files = true;
    before.files_free = 1000;
    now = before;
    now.at += 60 * NSEC_PER_SEC;
    now.counters[MACHINE_CPU_TICKS] = 12000;
    now.counters[MACHINE_CPU_IDLE] = 6000;
    now.counters[MACHINE_UDP_IN] = 1000000;
    now.counters[MACHINE_TCP_OUT] = 1000000;
    now.nics[0].packets += 1000000;
    return 0;
}

static int tear_down(void **state)
{
    findings_deinit(&found);
    return 0;
}

/* What is found by the two samples: the codes, each with a blank behind it. */
static const char *look(void)
{
    static char codes[256];
    size_t len = 0;

    machine_watch_take(&watch, &before);
    machine_watch_take(&watch, &now);
    findings_look(&found, "a");
    machine_find(&watch, "a", &found, 1000);
    findings_done(&found, "a", NULL, NULL);
    codes[0] = '\0';
    for (size_t i = 0; i < found.n; i++)
        len += (size_t)snprintf(
            codes + len, sizeof(codes) - len, "%s ", finding_kinds[found.items[i]->code].code);
    return codes;
}

static void test_well(void **state)
{
    assert_string_equal(look(), "");
}

static void test_card_drops(void **state)
{
    now.nics[0].dropped += 999;
    assert_string_equal(look(), "");
    now.nics[0].dropped += 5;
    assert_string_equal(look(), "WEFT-NIC-001 ");
    assert_non_null(strstr(found.items[0]->text, "card eth0 of a has dropped 1004 of"));
    /* A share alone is not enough. */
    (void)set_up(NULL);
    now.nics[0].packets = before.nics[0].packets + 1000;
    now.nics[0].dropped += 99;
    assert_string_equal(look(), "");
}

static void test_card_damages(void **state)
{
    now.nics[0].errors += 90;
    assert_string_equal(look(), "");
    now.nics[0].errors += 20;
    assert_string_equal(look(), "WEFT-NIC-002 ");
}

static void test_card_that_has_just_come(void **state)
{
    (void)snprintf(now.nics[0].name, sizeof(now.nics[0].name), "eth1");
    now.nics[0].dropped = 1000000;
    assert_string_equal(look(), "");
}

static void test_kernel_drops(void **state)
{
    now.counters[MACHINE_BACKLOG_DROPS] = 1;
    now.counters[MACHINE_UDP_DROPS] = 2000;
    assert_string_equal(look(), "WEFT-NIC-003 WEFT-UDP-003 ");
    (void)set_up(NULL);
    now.counters[MACHINE_UDP_DROPS] = 500;
    assert_string_equal(look(), "");
}

static void test_counter_that_is_not_told(void **state)
{
    now.counters[MACHINE_BACKLOG_DROPS] = 5;
    before.has[MACHINE_BACKLOG_DROPS] = false;
    assert_string_equal(look(), "");
}

static void test_counter_that_was_set_back(void **state)
{
    before.counters[MACHINE_BACKLOG_DROPS] = 1000;
    before.nics[0].dropped = UINT64_MAX;
    assert_string_equal(look(), "");
}

static void test_tcp_sends_again(void **state)
{
    now.counters[MACHINE_TCP_AGAIN] = 9999;
    assert_string_equal(look(), "");
    now.counters[MACHINE_TCP_AGAIN] = 10000;
    assert_string_equal(look(), "WEFT-TCP-001 ");
    (void)set_up(NULL);
    now.counters[MACHINE_TCP_OUT] = 999;
    now.counters[MACHINE_TCP_AGAIN] = 500;
    assert_string_equal(look(), "");
}

static void test_cores(void **state)
{
    now.counters[MACHINE_CPU_IDLE] = 359;
    assert_string_equal(look(), "WEFT-CPU-001 ");
    assert_non_null(strstr(found.items[0]->text, "3.0 % of the last 60 s"));
    (void)set_up(NULL);
    now.counters[MACHINE_CPU_IDLE] = 360;
    assert_string_equal(look(), "");
    now.counters[MACHINE_THROTTLED_US] = 3 * 1000 * 1000;
    assert_string_equal(look(), "WEFT-CPU-002 ");
    (void)set_up(NULL);
    now.counters[MACHINE_HOT_EVENTS] = 1;
    assert_string_equal(look(), "WEFT-CPU-003 ");
}

static void test_how_much_of_the_cores_is_used(void **state)
{
    assert_int_equal(machine_cpu_percent(NULL), -1);
    assert_int_equal(machine_cpu_percent(&watch), -1);
    (void)look();
    assert_int_equal(machine_cpu_percent(&watch), 50);
    now.at += 60 * NSEC_PER_SEC;
    before = now;
    now.counters[MACHINE_CPU_TICKS] += 1000;
    now.counters[MACHINE_CPU_IDLE] += 996;
    now.at += 60 * NSEC_PER_SEC;
    (void)look();
    assert_int_equal(machine_cpu_percent(&watch), 0);
    now.has[MACHINE_CPU_IDLE] = false;
    (void)look();
    assert_int_equal(machine_cpu_percent(&watch), -1);
}

static void test_disk(void **state)
{
    now.disk_free = GIB - 1;
    assert_string_equal(look(), "WEFT-DISK-001 ");
    now.disk_all = 10 * GIB;
    assert_string_equal(look(), "");
    now.disk_free = 4096;
    assert_string_equal(look(), "WEFT-DISK-002 ");
    now.disk_free = 5 * GIB;
    now.files_free = 0;
    assert_string_equal(look(), "WEFT-DISK-002 ");
    assert_non_null(strstr(found.items[0]->text, "takes no more files"));
    now.has_files = false;
    assert_string_equal(look(), "");
    /* It is looked at from the first sample on. */
    (void)set_up(NULL);
    before.disk_free = now.disk_free = 0;
    before.at = 0;
    assert_string_equal(look(), "WEFT-DISK-002 ");
}

static void test_fabric(void **state)
{
    now.ports[0].errors++;
    assert_string_equal(look(), "WEFT-FABRIC-003 ");
    now.ports[0].is_active = false;
    assert_string_equal(look(), "WEFT-FABRIC-002 ");
    now.n_ports = 0;
    assert_string_equal(look(), "WEFT-FABRIC-001 ");
    /* It stays so until the port is back. */
    before = now;
    now.at += 60 * NSEC_PER_SEC;
    assert_string_equal(look(), "WEFT-FABRIC-001 ");
}

static void test_port_that_was_never_active(void **state)
{
    before.ports[0].is_active = now.ports[0].is_active = false;
    now.ports[0].errors += 100;
    assert_string_equal(look(), "");
}

static void test_samples_too_far_apart_say_nothing(void **state)
{
    now.counters[MACHINE_BACKLOG_DROPS] = 5;
    now.at = before.at + MACHINE_APART_MAX + 1;
    assert_string_equal(look(), "");
    now.at = before.at + MACHINE_APART_MIN - 1;
    assert_string_equal(look(), "");
    now.at = before.at + MACHINE_APART_MIN;
    assert_string_equal(look(), "WEFT-NIC-003 ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_well),
        TEST(test_card_drops),
        TEST(test_card_damages),
        TEST(test_card_that_has_just_come),
        TEST(test_kernel_drops),
        TEST(test_counter_that_is_not_told),
        TEST(test_counter_that_was_set_back),
        TEST(test_tcp_sends_again),
        TEST(test_cores),
        TEST(test_how_much_of_the_cores_is_used),
        TEST(test_disk),
        TEST(test_fabric),
        TEST(test_port_that_was_never_active),
        TEST(test_samples_too_far_apart_say_nothing),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
