/*
 * test-nccl-tests.c - recorded outputs of all_reduce_perf (test/corpus/nccl-tests), and the
 * verdicts.
 *
 * They have the columns of nccl-tests' source and of logs in public issues. The figures were made
 * for the test: no such machine was at hand.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "mesh/object/node_status.h"
#include "os/file.h"
#include "train/survey/sweep.h"

static struct sweep sweep;

/* Reads a recorded output, and judges it for the machine. */
static void assess(const char *name, const struct fabric_report *machine)
{
    char path[256];
    char *text = NULL;

    (void)snprintf(
        path, sizeof(path), "%s/test/corpus/nccl-tests/%s", getenv("WEFT_SOURCE_ROOT"), name);
    memset(&sweep, 0, sizeof(sweep));
    assert_int_equal(statefile_read(path, 1 << 20, &text, NULL, NULL), 0);
    nccl_tests_take_all(&sweep, text);
    free(text);
    sweep.is_done = true;
    sweep.by_nccl = true;
    sweep_assess(&sweep, machine, 0);
}

static const struct fabric_report p4d = {
    .kind = "efa", .machine = "p4d.24xlarge", .n_gpus = 8, .gbit = 400};
static const struct fabric_report p5 = {
    .kind = "efa", .machine = "p5.48xlarge", .n_gpus = 8, .gbit = 3200};

static void test_a_machine_as_it_should_be(void **state)
{
    assess("p5-efa", &p5);
    assert_int_equal(sweep.n_sizes, 28);
    assert_int_equal(sweep.sizes[0].bytes, 8);
    assert_int_equal(sweep.sizes[27].bytes, 1 << 30);
    assert_string_equal(sweep.log.network, "Libfabric");
    assert_false(sweep.is_wrong);
    assert_int_equal(sweep.verdict, VERDICT_PASS);
    assert_non_null(strstr(sweep.text, "pass: 347.7 GB/s of bus bandwidth, and p5.48xlarge gives "
                                       "about 350, 300 at the least (EC2 User Guide"));
}

static void test_the_fabric_is_off(void **state)
{
    assess("p4d-tcp", &p4d);
    assert_int_equal(sweep.n_sizes, 28);
    assert_int_equal(sweep.verdict, VERDICT_FAIL);
    assert_non_null(strstr(sweep.text, "fail: 3.1 GB/s"));
    assert_non_null(strstr(sweep.text, "; EFA is off, this is TCP: NET/IB : No device found."));
    /* NCCL has not said it. */
    memset(&sweep.log, 0, sizeof(sweep.log));
    sweep_assess(&sweep, &p4d, 0);
    assert_non_null(strstr(sweep.text, "; EFA seems to be off, this is TCP"));
    /* Across islands it is to be. */
    sweep.crosses = true;
    sweep_assess(&sweep, &p4d, 0);
    assert_int_equal(sweep.verdict, VERDICT_NONE);
    assert_null(strstr(sweep.text, "off"));
}

static void test_slow_is_not_off(void **state)
{
    struct str out = STR_NULL;
    struct verdict_expectation expected;

    assert_true(verdict_expect(&expected, &p4d));
    assert_int_equal(verdict_assess(&expected, &p4d, 29.6, NULL, &out), VERDICT_FAIL);
    assert_null(strstr(str_text(&out), "off"));
    str_deinit(&out);
}

static void test_columns(void **state)
{
    assess("old-columns", NULL);
    assert_int_equal(sweep.n_sizes, 18);
    assert_false(sweep.is_wrong);
    assert_true(sweep.sizes[17].busbw > 8 && sweep.sizes[17].us > 100);
    assert_int_equal(sweep.verdict, VERDICT_NONE);
    assess("wrong", NULL);
    assert_true(sweep.is_wrong);
    assert_int_equal(sweep.verdict, VERDICT_FAIL);
    assert_string_equal(sweep.text, "fail: some sums were wrong");
    assess("odd", NULL);
    assert_int_equal(sweep.n_sizes, 1);
}

static void test_expectations(void **state)
{
    struct fabric_report machine = {.kind = "infiniband", .gbit = 3200};
    struct verdict_expectation expected;

    assert_true(verdict_expect(&expected, &machine));
    assert_true(expected.least > 279.9 && expected.least < 280.1);
    machine.gbit = 0;
    assert_false(verdict_expect(&expected, &machine));
    machine = (struct fabric_report){.kind = "ethernet", .gbit = 100};
    assert_false(verdict_expect(&expected, &machine));
    /* A link of 1 Gbit/s is 0.125 GB/s. */
    expected = verdict_expect_plain(1e9);
    assert_true(expected.least > 0.0624 && expected.least < 0.0626);
}

static void test_a_plain_network(void **state)
{
    memset(&sweep, 0, sizeof(sweep));
    sweep.is_done = true;
    sweep.sizes[0] = (struct nccl_tests_size){.bytes = 1 << 30, .us = 1, .busbw = 0.1};
    sweep.n_sizes = 1;
    sweep_assess(&sweep, &p5, 1e9);
    assert_int_equal(sweep.verdict, VERDICT_PASS);
    sweep_assess(&sweep, &p5, 1e10);
    assert_string_equal(sweep.text,
        "fail: 0.1 GB/s of bus bandwidth, and this network gives about 1.125, 0.625 at the least "
        "(the rate that was measured between the slowest pair)");
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_a_machine_as_it_should_be),
        cmocka_unit_test(test_the_fabric_is_off),
        cmocka_unit_test(test_slow_is_not_off),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_expectations),
        cmocka_unit_test(test_a_plain_network),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
