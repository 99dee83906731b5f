/*
 * test-nccl-log.c - logs of NCCL's, and what is said of them.
 *
 * The lines have the form that NCCL 2.18 to 2.30 and the plugins give them, as in their source and
 * in logs of public issues; host names and addresses are changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "fabric/fabric.h"
#include "train/profile/nccl_log.h"
#include "train/profile/profile.h"

#define LINE "gpu-1:188:585 [0] NCCL INFO "

static void check(
    const char *name, const char *text, enum nccl_log_verdict verdict, const char *sentence)
{
    const struct profile *p = NULL;
    struct nccl_log log = {.n_lines = 0};
    struct str out = STR_NULL;

    for (size_t i = 0; (p = profile_at(i)) && strcmp(p->name, name) != 0; i++)
        ;
    assert_non_null(p);
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");

        if (!nccl_log_take(&log, text, len))
            break;
        text += len + (text[len] == '\n');
    }
    assert_int_equal(nccl_log_assess(&log, p, 4, "weft0", &out), verdict);
    assert_string_equal(str_text(&out), sentence);
    str_deinit(&out);
}

static void test_wanted(void **state)
{
    check("efa",
        "NCCL version 2.27.7+cuda12.9\n" LINE "NET/Plugin: Loaded net plugin Libfabric (v10)\n" LINE
        "NET/OFI Initializing aws-ofi-nccl 1.16.2\n" LINE
        "NET/OFI Selected provider is efa, fabric is efa (found 4 nics)\n" LINE
        "Using network Libfabric\n",
        NCCL_LOG_WANTED,
        "NCCL uses Libfabric, as the fabric profile efa wants, by libfabric's efa");
    check("efa",
        LINE "NET/OFI Selected Provider is efa (found 1 nics)\n" LINE
             "Using network AWS Libfabric\n",
        NCCL_LOG_WANTED,
        "NCCL uses AWS Libfabric, as the fabric profile efa wants, by libfabric's efa; but with 1 "
        "of 4 devices");
    check("infiniband",
        LINE "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB weft0:10.42.0.7<0>\n" LINE
             "Using network IBext_v8\n",
        NCCL_LOG_WANTED, "NCCL uses IBext_v8, as the fabric profile infiniband wants");
    check("gpudirect-tcpxo", LINE "Using network FasTrak\n", NCCL_LOG_WANTED,
        "NCCL uses FasTrak, as the fabric profile gpudirect-tcpxo wants");
}

static void test_fell_to_sockets(void **state)
{
    check("efa",
        LINE "NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open "
             "shared object file: No such file or directory\n" LINE
             "NET/Plugin : No plugin found, using internal implementation\n" LINE
             "NET/IB : No device found.\n" LINE "NET/Socket : Using [0]weft0:10.42.0.7<0>\n" LINE
             "Using network Socket\n",
        NCCL_LOG_OTHER,
        "the fabric profile efa was wanted, and NCCL uses Socket: NET/Plugin : Plugin load "
        "(libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared object file: No such "
        "file "
        "or directory");
    check("infiniband",
        LINE "NCCL_IB_DISABLE set by environment to 1.\n" LINE "Using network Socket\n",
        NCCL_LOG_OTHER,
        "the fabric profile infiniband was wanted, and NCCL uses Socket: NCCL_IB_DISABLE set by "
        "environment to 1.");
    check("infiniband", LINE "NET/IB : No device found.\n" LINE "Using network Socket\n",
        NCCL_LOG_OTHER,
        "the fabric profile infiniband was wanted, and NCCL uses Socket: NET/IB : No device "
        "found.");
    check("roce", LINE "Using network Socket\n", NCCL_LOG_OTHER,
        "the fabric profile roce was wanted, and NCCL uses Socket: its log does not say why");
}

static void test_unknown(void **state)
{
    check("efa", "", NCCL_LOG_UNKNOWN, "NCCL has not said which network it uses");
    check("infiniband", "gpu-1:1:1 [0] init.cc:9 NCCL WARN Error: network IB not found.\n",
        NCCL_LOG_UNKNOWN,
        "NCCL has not said which network it uses; its last word on that: Error: network IB not "
        "found.");
    check("efa", "step 1: Using network of friends\nUsing network Socket\n", NCCL_LOG_UNKNOWN,
        "NCCL has not said which network it uses");
}

static void test_bounds(void **state)
{
    struct nccl_log log = {.n_lines = 0};
    char line[4096];
    size_t n = 0;

    memset(line, 'x', sizeof(line));
    while (nccl_log_take(&log, line, sizeof(line)))
        n++;
    assert_int_equal(n, NCCL_LOG_LINES_MAX);
    memcpy(line, LINE "Using network ", strlen(LINE "Using network "));
    log = (struct nccl_log){.n_lines = 0};
    assert_false(nccl_log_take(&log, line, sizeof(line)));
    assert_int_equal(strlen(log.network), NCCL_LOG_TEXT_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_fell_to_sockets),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
