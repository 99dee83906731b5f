/*
 * test-port-map.c - when a router is asked again, and that nobody waits for one.
 *
 * What a router answers is tested against one, in test/lab/paths/test_port_map.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/paths/socket/local_candidates.h"

#define SEC NSEC_PER_SEC

struct pause {
    enum port_mapping_kind kind;
    nsec_t lifetime;
    nsec_t pause;
};

static void test_pauses(void **state)
{
    static const struct pause pauses[] = {
        {PORT_MAPPING_NONE, 0, 600 * SEC},
        /* At half of the lifetime, but soon enough to see that the router was restarted. */
        {PORT_MAPPING_NAT_PMP, 7200 * SEC, 30 * SEC},
        {PORT_MAPPING_NAT_PMP, 4 * SEC, 30 * SEC},
        {PORT_MAPPING_NAT_PMP, 0, 30 * SEC},
        {PORT_MAPPING_UPNP, 3600 * SEC, 600 * SEC},
        {PORT_MAPPING_UPNP, 120 * SEC, 60 * SEC},
        {PORT_MAPPING_UPNP, NSEC_NEVER, 600 * SEC},
    };

    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        struct port_mapping pm = {.kind = pauses[i].kind, .lifetime = pauses[i].lifetime};

        assert_int_equal(port_map_pause_after(&pm), pauses[i].pause);
    }
}

static void on_mapping(void *ctx, const struct port_mapping *pm)
{
    fail();
}

/* With nothing asked for there is nothing to give back, and the end comes at once. */
static void test_it_ends(void **state)
{
    uv_loop_t loop;
    struct port_map *pm = NULL;

    assert_int_equal(uv_loop_init(&loop), 0);
    for (int give_back = 0; give_back < 2; give_back++) {
        assert_int_equal(port_map_new(&pm, &loop, on_mapping, NULL, NULL), 0);
        pm = port_map_free(pm, give_back);
        assert_null(pm);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
    }
    assert_null(port_map_free(NULL, true));
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
