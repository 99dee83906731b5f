/* test-udp-asymmetry.c - which way is broken follows from what arrives, and from what the hub has
 * heard.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/hublink/hub_transport.h"

#define SEC NSEC_PER_SEC

static const struct endpoint outside = {.addr = {{[15] = 1}}, .port = 4000};

/* The hub answers nothing from 100 s on; the bytes that are counted from then on, each second. */
static struct udp_asymmetry look(const uint64_t *rx, unsigned n, bool is_udp)
{
    struct udp_asymmetry ua = {.silent_since = 0};

    udp_asymmetry_look(&ua, 0, rx[0], true, 99 * SEC);
    for (unsigned i = 0; i < n; i++)
        udp_asymmetry_look(&ua, 100 * SEC, rx[i], is_udp, (nsec_t)(100 + i) * SEC);
    return ua;
}

static void test_arrivals(void **state)
{
    struct udp_asymmetry ua = look((uint64_t[]){500, 500, 500}, 3, true);

    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_UNKNOWN);
    ua = look((uint64_t[]){500, 500, 648}, 3, true);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_OUT);
    /* What was under way when it last answered proves nothing. */
    ua = look((uint64_t[]){500, 648, 648}, 3, true);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_UNKNOWN);
    /* Through the stream; by a new engine. */
    ua = look((uint64_t[]){500, 500, 648}, 3, false);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_UNKNOWN);
    ua = look((uint64_t[]){500, 500, 100}, 3, true);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_UNKNOWN);
    udp_asymmetry_look(&ua, 100 * SEC, 200, true, 103 * SEC);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_OUT);
    /* It is only noticed later that nothing was answered: what came since then counts. */
    ua = look((uint64_t[]){500}, 1, true);
    udp_asymmetry_look(&ua, 0, 500, true, 101 * SEC);
    udp_asymmetry_look(&ua, 0, 648, true, 105 * SEC);
    udp_asymmetry_look(&ua, 100 * SEC, 648, true, 107 * SEC);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_OUT);
    udp_asymmetry_look(&ua, 0, 900, true, 108 * SEC);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_UNKNOWN);
}

static void test_hearing(void **state)
{
    struct udp_asymmetry ua = look((uint64_t[]){500, 500}, 2, true);

    assert_true(udp_asymmetry_wants_to_ask(&ua, 102 * SEC));
    ua.asked_at = 102 * SEC;
    assert_false(udp_asymmetry_wants_to_ask(&ua, 104 * SEC - 1));
    assert_true(udp_asymmetry_wants_to_ask(&ua, 104 * SEC));
    udp_asymmetry_on_heard(&ua, &outside);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_IN);
    assert_false(udp_asymmetry_wants_to_ask(&ua, 162 * SEC - 1));
    assert_true(udp_asymmetry_wants_to_ask(&ua, 162 * SEC));
    /* One that was lost by chance; then it is asked again soon, and is so no more. */
    ua.asked_at = 162 * SEC;
    udp_asymmetry_on_heard(&ua, NULL);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_IN);
    assert_true(udp_asymmetry_wants_to_ask(&ua, 164 * SEC));
    udp_asymmetry_on_heard(&ua, NULL);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_IN);
    /* One that is heard begins the count anew. */
    udp_asymmetry_on_heard(&ua, &outside);
    assert_int_equal(ua.n_unheard, 0);
    assert_true(endpoint_equal(&ua.from, &outside));
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_IN);
        udp_asymmetry_on_heard(&ua, NULL);
    }
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_UNKNOWN);
    /* That is settled, too. */
    assert_false(udp_asymmetry_wants_to_ask(&ua, 164 * SEC));
}

static void test_not_heard(void **state)
{
    struct udp_asymmetry ua = look((uint64_t[]){500, 500, 648}, 3, true);

    for (unsigned i = 0; i < 3; i++)
        udp_asymmetry_on_heard(&ua, NULL);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_OUT);
    ua.asked_at = 104 * SEC;
    assert_false(udp_asymmetry_wants_to_ask(&ua, 120 * SEC));
    assert_string_equal(udp_asymmetry_names[UDP_ASYMMETRY_OUT], "out");
    assert_string_equal(udp_asymmetry_names[UDP_ASYMMETRY_IN], "in");
    assert_string_equal(udp_asymmetry_names[UDP_ASYMMETRY_UNKNOWN], "");
}

/* WireGuard goes on being silent for a while after UDP passes again. */
static void test_answered(void **state)
{
    struct udp_asymmetry ua = look((uint64_t[]){500, 500, 648}, 3, true);

    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_OUT);
    udp_asymmetry_on_answer(&ua, 110 * SEC);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_UNKNOWN);
    udp_asymmetry_look(&ua, 100 * SEC, 648, true, 111 * SEC);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_UNKNOWN);
    /* What was on its way through the stream when UDP was taken again. */
    udp_asymmetry_look(&ua, 100 * SEC, 900, true, 111 * SEC);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_UNKNOWN);
    /* It is blocked again. */
    udp_asymmetry_look(&ua, 100 * SEC, 1000, true, 113 * SEC);
    assert_int_equal(udp_asymmetry_of(&ua), UDP_ASYMMETRY_OUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrivals),
        cmocka_unit_test(test_hearing),
        cmocka_unit_test(test_not_heard),
        cmocka_unit_test(test_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
