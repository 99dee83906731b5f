/* test-path-explain.c - what a node says of a path that is not direct, and when it complains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "path/paths.h"
#include "test/support/path_couple.h"

#define SEC NSEC_PER_SEC

static struct couple couple;

/* The end that hears the other, and gets no answer, can say so; the one that is deaf cannot. */
static void test_one_way_break_is_named(void **state)
{
    struct couple *c = &couple;
    struct path_view views[2];

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    c->nodes[0].is_deaf = true;
    couple_run_with_traffic(c, 200 * SEC);
    couple_assert_relayed(c);
    for (unsigned i = 0; i < 2; i++)
        assert_true(paths_view(c->nodes[i].paths, &c->nodes[1 - i].key, &views[i], c->now));
    assert_non_null(strstr(views[1].why, "arrives here, but it does not hear this node"));
    assert_null(strstr(views[0].why, "arrives here"));
    c->nodes[1].is_deaf = true;
    couple_run_with_traffic(c, 200 * SEC);
    assert_true(paths_view(c->nodes[1].paths, &c->nodes[0].key, &views[1], c->now));
    assert_null(strstr(views[1].why, "arrives here"));
    couple_stop(c);
}

static void test_mesh_complains_about_the_relay(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_DIRECT);
    c->nodes[1].is_deaf = true;
    couple_tell(c);
    couple_run(c, 29 * SEC);
    assert_int_equal(c->nodes[0].n_events, 0);
    assert_false(couple_view(c, 0).is_alarm);
    couple_run(c, 2 * SEC);
    assert_int_equal(c->nodes[0].n_events, 1);
    assert_non_null(strstr(c->nodes[0].event, "only direct paths are wanted"));
    assert_true(couple_view(c, 0).is_alarm);
    /* Once, and once more when it is over. */
    couple_run(c, 300 * SEC);
    assert_int_equal(c->nodes[0].n_events, 1);
    c->nodes[1].is_deaf = false;
    couple_run(c, 600 * SEC);
    couple_assert_direct(c);
    assert_non_null(strstr(c->nodes[0].event, "the alarm is over"));
    assert_false(couple_view(c, 0).is_alarm);
    couple_stop(c);
}

/** What the two say of themselves, and a part of what node 0 says of why they are not direct. */
struct reason {
    struct behavior nat[2];
    bool has_v6_only[2];
    const char *words;
    uint16_t port; /* of node 1, where it is another */
};

static const struct reason reasons[] = {
    {{{.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT},
         {.is_natted = true, .mapping = BEHAVIOR_ADDRESS_DEPENDENT}},
        .words = "both NATs are symmetric: open UDP 51820 at a or b, or give"},
    {{{.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT}, {.is_natted = true}},
        .words = "the NAT of a is symmetric and that of b lets in only what it sent to"},
    {{{.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT}, {.is_natted = true}}, .port = 40001,
        .words = "open UDP 51820 at a, or UDP 40001 at b"},
    {{{.is_natted = true}, {.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT}},
        .words = "the NAT of b is symmetric and that of a lets in only what it sent to"},
    {{{.is_natted = true, .mapping = BEHAVIOR_PORT_DEPENDENT}, {.is_natted = false}},
        .words = "something drops UDP between the two: let in UDP 51820 at a or b"},
    {{{.is_natted = true}, {.is_natted = true}}, .words = "something drops UDP between the two"},
    {{{.is_blocked = true}, {.is_natted = true}}, .words = "UDP is blocked at a: allow UDP out"},
    {{{.is_natted = true}, {.is_blocked = true}}, .words = "UDP is blocked at b: allow UDP out"},
    {.has_v6_only = {false, true},
        .words = "a has IPv4 addresses only and b IPv6: give either an address of the other kind"},
    {.has_v6_only = {true, false},
        .words = "a has IPv6 addresses only and b IPv4: give either an address of the other kind"},
};

static void check_reason(struct couple *c, const struct reason *reason)
{
    struct path_side sides[2] = {{.generation = 9}, {.generation = 9}};

    couple_start(c, PATH_POLICY_AUTO);
    for (unsigned i = 0; i < 2; i++) {
        struct endpoint host = reason->has_v6_only[i] ? c->nodes[i].ep6 : c->nodes[i].ep;

        c->nodes[i].is_deaf = true;
        sides[i].nat = reason->nat[i];
        if (i == 1 && reason->port != 0)
            host.port = reason->port;
        assert_true(candidates_add(&sides[i].candidates, CANDIDATE_HOST, &host));
    }
    paths_set_self(c->nodes[0].paths, &sides[0], c->now);
    paths_set_peer_side(c->nodes[0].paths, &c->nodes[1].key, &sides[1], c->now);
    couple_run(c, 20 * SEC);
    if (!strstr(couple_view(c, 0).why, reason->words))
        fail_msg("\"%s\" has no \"%s\"", couple_view(c, 0).why, reason->words);
    couple_stop(c);
}

static void test_each_reason(void **state)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        check_reason(&couple, &reasons[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_way_break_is_named),
        cmocka_unit_test(test_mesh_complains_about_the_relay),
        cmocka_unit_test(test_each_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
