/* test-nic.c - features of a device, and what a device has none of. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/nic.h"
#include "test/support/emulated.h"
#include "test/support/netns.h"

#define FEATURE NIC_GRO_FORWARDING

/* Every device has that one, and by default it is off. */
static void test_feature(void **state)
{
    bool is_on = true;

    (void)netns_need(state);
    if (geteuid() != 0 || emulated_lacks("SIOCETHTOOL"))
        skip();
    assert_int_equal(nic_get_feature("lo", FEATURE, &is_on), 0);
    assert_false(is_on);
    assert_int_equal(nic_set_feature("lo", FEATURE, true), 0);
    assert_int_equal(nic_get_feature("lo", FEATURE, &is_on), 0);
    assert_true(is_on);
    assert_int_equal(nic_set_feature("lo", FEATURE, false), 0);
    assert_int_equal(nic_get_feature("lo", FEATURE, &is_on), 0);
    assert_false(is_on);
}

/* The loopback has it on, and never does it. */
static void test_gro_without_a_driver(void **state)
{
    bool is_on = false;

    (void)netns_need(state);
    if (geteuid() != 0 || emulated_lacks("SIOCETHTOOL"))
        skip();
    assert_int_equal(nic_get_feature("lo", NIC_GRO, &is_on), 0);
    assert_true(is_on);
    assert_false(nic_has_gro("lo"));
    assert_false(nic_lacks_merging("lo"));
    assert_false(nic_has_gro("no-such"));
    assert_false(nic_lacks_merging("no-such"));
}

static void test_none(void **state)
{
    struct nic_rings rings;
    bool is_on;

    (void)netns_need(state);
    if (emulated_lacks("SIOCETHTOOL"))
        skip();
    assert_int_equal(nic_get_rings("lo", &rings), -EOPNOTSUPP);
    assert_int_equal(nic_set_rings("lo", &rings), -EOPNOTSUPP);
    assert_int_equal(nic_get_rings("no-such", &rings), -ENODEV);
    assert_int_equal(nic_get_feature("lo", "no-such-feature", &is_on), -EOPNOTSUPP);
    /* The loopback cannot do without this one. */
    assert_int_equal(nic_get_feature("lo", "loopback", &is_on), -EOPNOTSUPP);
    assert_int_equal(nic_get_feature("no-such", FEATURE, &is_on), -ENODEV);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, netns_enter, netns_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_feature),
        CASE(test_gro_without_a_driver),
        CASE(test_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
