/* test-hub-path.c - which of a hub's endpoints is tried, and when the next one is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/hublink/hub_health.h"

#define SEC NSEC_PER_SEC

static bool any_route(void *ctx, const struct ip_addr *to)
{
    return true;
}

static bool no_route(void *ctx, const struct ip_addr *to)
{
    return false;
}

static bool v6_only(void *ctx, const struct ip_addr *to)
{
    return !ip_addr_is_v4(to);
}

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

struct list {
    struct endpoint endpoints[3];
    unsigned n;
};

/* A hub with an IPv4 endpoint (port 1), an IPv6 one (2), and one more of IPv4 (3). */
static struct list three(void)
{
    return (struct list){.endpoints = {endpoint("192.0.2.1:1"), endpoint("[2001:db8::1]:2"),
                             endpoint("192.0.2.1:3")},
        .n = 3};
}

static bool take(
    struct hub_path *hp, const struct list *hub, bool works, nsec_t now, hub_path_fn has_route)
{
    return hub_path_take(hp, "hub", hub->endpoints, hub->n, works, now, has_route, NULL);
}

static void test_first_with_a_route(void **state)
{
    struct list hub = three();
    struct hub_path hp = {0};

    assert_true(take(&hp, &hub, false, 0, any_route));
    assert_int_equal(hp.path.endpoint.port, 1);
    hp = (struct hub_path){0};
    assert_true(take(&hp, &hub, false, 0, v6_only));
    assert_int_equal(hp.path.endpoint.port, 2);
    /* No route at all, perhaps because the network is not up yet: better than nothing. */
    hp = (struct hub_path){0};
    assert_true(take(&hp, &hub, false, 0, no_route));
    assert_int_equal(hp.path.endpoint.port, 1);
}

static void test_rotation(void **state)
{
    struct list hub = three();
    struct hub_path hp = {0};
    nsec_t now = 100 * SEC;

    assert_true(take(&hp, &hub, false, now, any_route));
    assert_false(take(&hp, &hub, false, now + HUB_PATH_TRY - 1, any_route));
    for (unsigned i = 0; i < 7; i++) {
        now += HUB_PATH_TRY;
        assert_true(take(&hp, &hub, false, now, any_route));
        assert_int_equal(hp.path.endpoint.port, (i + 1) % 3 + 1);
    }
}

static void test_working_one_is_kept(void **state)
{
    struct list hub = three();
    struct hub_path hp = {0};

    assert_true(take(&hp, &hub, false, 0, any_route));
    assert_false(take(&hp, &hub, true, 1000 * SEC, any_route));
    assert_int_equal(hp.path.endpoint.port, 1);
    /* The session is lost: its time counts from when it was taken up, so it has had its try. */
    assert_true(take(&hp, &hub, false, 1001 * SEC, any_route));
}

static void test_only_one(void **state)
{
    struct list hub = {.endpoints = {endpoint("192.0.2.1:1")}, .n = 1};
    struct hub_path hp = {0};

    assert_true(take(&hp, &hub, false, 0, any_route));
    for (unsigned i = 1; i < 5; i++)
        assert_false(take(&hp, &hub, false, i * HUB_PATH_TRY, any_route));
    assert_int_equal(hp.taken_at, 4 * HUB_PATH_TRY);
    /* Each try of it has its full time, also when there is another one by then. */
    hub.endpoints[hub.n++] = endpoint("192.0.2.2:2");
    assert_false(take(&hp, &hub, false, 5 * HUB_PATH_TRY - 1, any_route));
    assert_true(take(&hp, &hub, false, 5 * HUB_PATH_TRY, any_route));
    assert_int_equal(hp.path.endpoint.port, 2);
}

/* Another hub at the same place is tried from its first endpoint on, and at once. */
static void test_another_hub(void **state)
{
    struct list hub = three();
    struct hub_path hp = {0};

    assert_true(take(&hp, &hub, false, 0, v6_only));
    assert_string_equal(hp.path.node, "hub");
    assert_true(hub_path_take(&hp, "hub-b", hub.endpoints, hub.n, true, SEC, any_route, NULL));
    assert_string_equal(hp.path.node, "hub-b");
    assert_int_equal(hp.path.endpoint.port, 1);
    assert_int_equal(hp.taken_at, SEC);
}

/* The next one to which there is a way, and if there is none the one that is tried. */
static void test_endpoints_without_a_route_are_passed_over(void **state)
{
    struct list hub = three();
    struct hub_path hp = {0};

    assert_true(take(&hp, &hub, false, 0, v6_only));
    assert_int_equal(hp.path.endpoint.port, 2);
    assert_false(take(&hp, &hub, false, HUB_PATH_TRY, v6_only));
    assert_false(take(&hp, &hub, false, 2 * HUB_PATH_TRY, no_route));
    assert_int_equal(hp.path.endpoint.port, 2);
    assert_true(take(&hp, &hub, false, 3 * HUB_PATH_TRY, any_route));
    assert_int_equal(hp.path.endpoint.port, 3);
}

/* The hub has moved: what it does not list any more is left at once. */
static void test_list_changes(void **state)
{
    struct list hub = three();
    struct hub_path hp = {0};

    assert_true(take(&hp, &hub, false, 0, any_route));
    hub.endpoints[0] = endpoint("192.0.2.99:9");
    assert_true(take(&hp, &hub, true, SEC, any_route));
    assert_int_equal(hp.path.endpoint.port, 9);
}

/* What answers while the present endpoint does not is taken, after that had its chance. */
static void test_another_one_answers(void **state)
{
    struct list hub = three();
    struct hub_path hp = {0};
    nsec_t now = 10 * SEC;

    assert_false(hub_path_on_answer(&hp, &hub.endpoints[1], now));
    assert_true(take(&hp, &hub, false, 0, any_route));
    assert_false(hub_path_on_answer(&hp, &hub.endpoints[1], now));
    assert_false(hub_path_on_answer(&hp, &hub.endpoints[2], now + SEC / 4));
    assert_false(hub_path_on_answer(&hp, &hub.endpoints[1], now + SEC / 2 - 1));
    assert_true(hub_path_on_answer(&hp, &hub.endpoints[1], now + SEC / 2));
    assert_int_equal(hp.path.endpoint.port, 2);
    assert_int_equal(hp.taken_at, now + SEC / 2);
    assert_true(endpoint_is_none(&hp.other));
    /* And then that has its full time. */
    assert_false(take(&hp, &hub, false, now + SEC, any_route));
    assert_int_equal(hp.path.endpoint.port, 2);
}

/* One that answers as the present one does brings nothing. */
static void test_both_answer(void **state)
{
    struct list hub = three();
    struct hub_path hp = {0};
    nsec_t now = 10 * SEC;

    assert_true(take(&hp, &hub, false, 0, any_route));
    for (unsigned i = 0; i < 20; i++) {
        now += SEC / 5;
        assert_false(hub_path_on_answer(&hp, &hub.endpoints[1], now));
        assert_false(hub_path_on_answer(&hp, &hub.endpoints[0], now));
    }
    /* Nor do answers of another silence count. */
    assert_false(hub_path_on_answer(&hp, &hub.endpoints[1], now));
    assert_false(hub_path_on_answer(&hp, &hub.endpoints[1], now + 100 * SEC));
    assert_int_equal(hp.path.endpoint.port, 1);
    assert_int_equal(hp.other_since, now + 100 * SEC);
    assert_false(hub_path_on_answer(&hp, &hub.endpoints[0], now + 100 * SEC));
    assert_true(endpoint_is_none(&hp.other));
}

/* Answers that come 6 s after each other are of one silence. */
static void test_a_pause_between_answers(void **state)
{
    for (unsigned more = 0; more < 2; more++) {
        struct list hub = three();
        struct hub_path hp = {0};

        assert_true(take(&hp, &hub, false, 0, any_route));
        assert_false(hub_path_on_answer(&hp, &hub.endpoints[1], 10 * SEC));
        assert_int_equal(hub_path_on_answer(&hp, &hub.endpoints[1], 16 * SEC + more), !more);
        /* One of a third endpoint takes its place after such a pause, too. */
        hp = (struct hub_path){0};
        assert_true(take(&hp, &hub, false, 0, any_route));
        assert_false(hub_path_on_answer(&hp, &hub.endpoints[1], 10 * SEC));
        assert_false(hub_path_on_answer(&hp, &hub.endpoints[2], 16 * SEC + more));
        assert_true(endpoint_equal(&hp.other, &hub.endpoints[1 + more]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_with_a_route),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_working_one_is_kept),
        cmocka_unit_test(test_only_one),
        cmocka_unit_test(test_another_hub),
        cmocka_unit_test(test_endpoints_without_a_route_are_passed_over),
        cmocka_unit_test(test_list_changes),
        cmocka_unit_test(test_another_one_answers),
        cmocka_unit_test(test_both_answer),
        cmocka_unit_test(test_a_pause_between_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
