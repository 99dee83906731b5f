/* test-stun-heard.c - what has arrived is remembered, as long as there is room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "filter/relay.h"

static struct stun_transaction id_of(unsigned n)
{
    return (struct stun_transaction){.b = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16)}};
}

static void test_oldest_gives_way(void **state)
{
    struct stun_hearing hearing = {.at = 0};
    struct stun_transaction id = id_of(0);
    struct stun_heard h;

    assert_int_equal(stun_heard_init(&h), 0);
    assert_false(stun_heard_find(&h, &id, &hearing)); /* also that of all zeroes */
    for (unsigned n = 0; n <= STUN_HEARD_MAX; n++) {
        struct endpoint from = {.port = (uint16_t)(n + 1)};

        id = id_of(n);
        stun_heard_add(&h, &id, &from, n + 1);
        assert_true(stun_heard_find(&h, &id, &hearing));
        assert_int_equal(hearing.from.port, n + 1);
        assert_int_equal(hearing.at, n + 1);
    }
    id = id_of(0);
    assert_false(stun_heard_find(&h, &id, &hearing));
    id = id_of(1);
    assert_true(stun_heard_find(&h, &id, &hearing));
    stun_heard_deinit(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_oldest_gives_way)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
