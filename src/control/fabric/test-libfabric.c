/*
 * test-libfabric.c - outputs of fi_info (test/corpus/libfabric), in the form of libfabric's
 * util/info.c, and what is said of them.
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
#include "fabric/fabric.h"
#include "os/file.h"

static struct fabric_facts machine;

static struct libfabric read_output(const char *name)
{
    struct libfabric l;
    char path[256];
    char *text = NULL;

    (void)snprintf(
        path, sizeof(path), "%s/test/corpus/libfabric/%s", getenv("WEFT_SOURCE_ROOT"), name);
    assert_int_equal(statefile_read(path, 1 << 20, &text, NULL, NULL), 0);
    libfabric_parse(&l, text);
    free(text);
    return l;
}

static void check_said(const struct libfabric *l, const char *wanted)
{
    struct str out = STR_NULL;

    libfabric_assess(l, &machine, &out);
    assert_string_equal(str_text(&out), wanted);
    str_deinit(&out);
}

static void test_outputs(void **state)
{
    struct libfabric l = read_output("efa");

    assert_string_equal(l.providers, "efa,tcp");
    assert_int_equal(l.n_efa, 2);
    l = read_output("plain");
    assert_string_equal(l.providers, "tcp,udp;ofi_rxd");
    assert_int_equal(l.n_efa, 0);
    l = read_output("none");
    assert_string_equal(l.providers, "");
}

static void test_what_is_said(void **state)
{
    struct libfabric efa = read_output("efa");
    struct libfabric plain = read_output("plain");

    machine = (struct fabric_facts){.kind = FABRIC_ETHERNET};
    check_said(&plain, "");
    machine.kind = FABRIC_EFA;
    machine.n_devices = 4;
    for (size_t i = 0; i < 4; i++)
        machine.devices[i] =
            (struct fabric_device){.link = FABRIC_LINK_EFA, .is_active = true, .gbit = 100};
    check_said(&efa, "this machine has 4 EFA devices, and libfabric's provider efa sees 2\n");
    check_said(&plain, "this machine has EFA, and fi_info knows no provider efa (tcp,udp;ofi_rxd): "
                       "without Amazon's EFA software NCCL uses TCP\n");
    machine.n_devices = 2;
    check_said(&efa, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_what_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
