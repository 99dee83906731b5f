/* test-drop.c - packets that ended are counted by why they did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/drop.h"

static void test_sum_of_several_threads(void **state)
{
    uint64_t sum[DROP_REASON_N] = {0};
    struct drops drops[2];

    memset(drops, 0, sizeof(drops));
    for (int i = 0; i < DROP_REASON_N; i++) {
        drop_count(&drops[0], (enum drop_reason)i, (uint64_t)i);
        drop_count(&drops[0], (enum drop_reason)i, 100);
        drop_count(&drops[1], (enum drop_reason)i, 1000);
    }
    drops_add(&drops[0], sum);
    drops_add(&drops[1], sum);
    for (int i = 0; i < DROP_REASON_N; i++)
        assert_int_equal(sum[i], 1100 + i);
}

static void test_names(void **state)
{
    assert_string_equal(drop_reason_names[DROP_NOT_IP], "not-ip");
    assert_string_equal(drop_reason_names[DROP_STUN_RATE_LIMITED], "stun-rate-limited");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_of_several_threads),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
