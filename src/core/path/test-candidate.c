/* test-candidate.c - the endpoints that a peer may have, in order, and those that none has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "path/candidate.h"

static struct endpoint ep(const char *text)
{
    struct endpoint e;

    assert_int_equal(endpoint_parse(&e, text, NULL), 0);
    return e;
}

static void assert_candidates(const struct candidates *c, const char *const *texts)
{
    char text[ENDPOINT_TEXT_MAX];

    for (unsigned i = 0; i < c->n; i++)
        assert_string_equal(endpoint_format(&c->items[i].endpoint, text), texts[i]);
}

static bool add(struct candidates *c, enum candidate_kind kind, const char *text)
{
    struct endpoint e = ep(text);

    return candidates_add(c, kind, &e);
}

static void test_order_and_duplicates(void **state)
{
    struct candidates c = {.n = 0};
    struct candidates same;

    assert_true(add(&c, CANDIDATE_REFLEXIVE, "203.0.113.1:1000"));
    assert_true(add(&c, CANDIDATE_HOST, "192.168.1.2:51820"));
    assert_true(add(&c, CANDIDATE_GIVEN, "203.0.113.9:51820"));
    assert_true(add(&c, CANDIDATE_HOST, "[2001:db8::2]:51820"));
    assert_false(add(&c, CANDIDATE_REFLEXIVE, "192.168.1.2:51820"));
    same = c;
    assert_true(candidates_equal(&c, &same));
    /* A node without a NAT: a server sees its host address. The earlier kind is kept. */
    assert_true(add(&c, CANDIDATE_HOST, "203.0.113.1:1000"));
    assert_false(candidates_equal(&c, &same));
    assert_int_equal(c.n, 4);
    assert_int_equal(c.items[2].kind, CANDIDATE_HOST);
    assert_int_equal(c.items[3].kind, CANDIDATE_GIVEN);
    /* Those of one kind stand as they were told. */
    assert_candidates(&c, (const char *const[]){"192.168.1.2:51820", "[2001:db8::2]:51820",
                              "203.0.113.1:1000", "203.0.113.9:51820"});
}

/* One that gets an earlier kind leaves its place, and the others keep their order. */
static void test_a_better_kind_moves_one_alone(void **state)
{
    struct candidates c = {.n = 0};

    assert_true(add(&c, CANDIDATE_GIVEN, "203.0.113.1:1"));
    assert_true(add(&c, CANDIDATE_GIVEN, "203.0.113.1:2"));
    assert_true(add(&c, CANDIDATE_GIVEN, "203.0.113.1:3"));
    assert_false(add(&c, CANDIDATE_GIVEN, "203.0.113.1:1"));
    assert_true(add(&c, CANDIDATE_HOST, "203.0.113.1:2"));
    assert_int_equal(c.n, 3);
    assert_candidates(&c, (const char *const[]){"203.0.113.1:2", "203.0.113.1:1", "203.0.113.1:3"});
    assert_int_equal(c.items[0].kind, CANDIDATE_HOST);
    assert_int_equal(c.items[1].kind, CANDIDATE_GIVEN);
}

static void test_finding_and_comparing(void **state)
{
    struct endpoint known = ep("203.0.113.1:2");
    struct endpoint other_port = ep("203.0.113.1:3");
    struct endpoint other_address = ep("203.0.113.2:2");
    struct candidates a = {.n = 0};
    struct candidates b;

    assert_null(candidates_find(&a, &known));
    assert_true(add(&a, CANDIDATE_HOST, "203.0.113.1:1"));
    assert_true(add(&a, CANDIDATE_GIVEN, "203.0.113.1:2"));
    assert_ptr_equal(candidates_find(&a, &known), &a.items[1]);
    assert_null(candidates_find(&a, &other_port));
    assert_null(candidates_find(&a, &other_address));
    b = a;
    assert_true(candidates_equal(&a, &b));
    b.n = 1;
    assert_false(candidates_equal(&a, &b));
    assert_false(candidates_equal(&b, &a));
    b = a;
    b.items[1].kind = CANDIDATE_MAPPED;
    assert_false(candidates_equal(&a, &b));
    b = a;
    b.items[1].endpoint.port++;
    assert_false(candidates_equal(&a, &b));
}

static void test_a_full_set_keeps_the_better(void **state)
{
    struct candidates c = {.n = 0};
    char text[64];

    for (unsigned i = 0; i < CANDIDATES_MAX; i++) {
        (void)snprintf(text, sizeof(text), "203.0.113.1:%u", i + 1);
        assert_true(add(&c, CANDIDATE_REFLEXIVE, text));
    }
    assert_false(add(&c, CANDIDATE_REFLEXIVE, "203.0.113.2:1"));
    assert_true(add(&c, CANDIDATE_HOST, "10.0.0.1:1"));
    assert_int_equal(c.n, CANDIDATES_MAX);
    assert_int_equal(c.items[0].kind, CANDIDATE_HOST);
    /* It is the last one that went. */
    for (unsigned i = 1; i < CANDIDATES_MAX; i++)
        assert_int_equal(c.items[i].endpoint.port, i);
}

static void test_impossible_endpoints(void **state)
{
    static const char *const good[] = {"169.254.7.7:1", "1.0.0.1:1", "126.0.0.1:1", "128.0.0.1:1",
        "223.255.255.255:1", "[::2]:1", "[1::1]:1", "[fe00::1]:1", "[fec0::1]:1"};
    static const char *const bad[] = {"127.0.0.1:1", "0.1.2.3:1", "224.0.0.1:1",
        "255.255.255.255:1", "[::1]:1", "[ff02::1]:1", "[fe80::1]:1", "[::]:1"};
    struct candidates c = {.n = 0};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(add(&c, CANDIDATE_HOST, bad[i]));
    assert_int_equal(c.n, 0);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(add(&c, CANDIDATE_HOST, good[i]));
    c.items[0].endpoint.port = 0;
    assert_false(candidate_is_possible(&c.items[0].endpoint));
}

static void test_private_addresses(void **state)
{
    static const struct {
        const char *text;
        bool private;
    } cases[] = {{"10.1.2.3:1", true}, {"11.1.2.3:1", false}, {"172.15.0.1:1", false},
        {"172.16.0.1:1", true}, {"172.31.0.1:1", true}, {"172.32.0.1:1", false},
        {"173.16.0.1:1", false}, {"192.168.0.1:1", true}, {"192.169.0.1:1", false},
        {"193.168.0.1:1", false}, {"100.63.0.1:1", false}, {"100.64.0.1:1", true},
        {"100.127.0.1:1", true}, {"100.128.0.1:1", false}, {"101.64.0.1:1", false},
        {"169.254.0.1:1", true}, {"[fc00::1]:1", true}, {"[fd00::1]:1", true},
        {"[fe00::1]:1", false}, {"[fe80::1]:1", true}, {"[2001:db8::1]:1", false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct endpoint e = ep(cases[i].text);

        assert_int_equal(candidate_is_private(&e.addr), cases[i].private);
    }
}

static void test_names_of_kinds(void **state)
{
    static const char *const names[CANDIDATE_KIND_N] = {
        "none", "host", "given", "mapped", "reflexive", "predicted", "heard"};

    for (int k = 0; k < CANDIDATE_KIND_N; k++) {
        bool is_reported = k >= CANDIDATE_HOST && k <= CANDIDATE_REFLEXIVE;

        assert_string_equal(candidate_kind_names[k], names[k]);
        assert_int_equal(candidate_kind_parse(names[k]), is_reported ? k : CANDIDATE_NONE);
    }
    assert_int_equal(candidate_kind_parse(""), CANDIDATE_NONE);
}

/* ---- blocks of overlays ---------------------------------------------------------------------- */

static struct ip_prefix prefix(const char *text)
{
    struct ip_prefix p;

    assert_int_equal(ip_prefix_parse(&p, text, NULL), 0);
    return p;
}

static bool add_block(struct candidate_blocks *blocks, const char *text)
{
    struct ip_prefix p = prefix(text);

    return candidate_blocks_add(blocks, &p);
}

static bool have(const struct candidate_blocks *blocks, const char *text)
{
    struct ip_addr a;

    assert_int_equal(ip_addr_parse(&a, text, NULL), 0);
    return candidate_blocks_have(blocks, &a);
}

static void test_blocks_of_other_overlays(void **state)
{
    static const char *const added[] = {
        "10.43.7.1/32", "10.43.0.0/16", "10.43.7.2/32", "fd43::/64"};
    /* A LAN in it, and what is in none, or is one of them. */
    static const char *const excluded[] = {"10.43.8.0/24", "10.0.0.0/8", "10.43.0.0/16"};
    static const struct {
        const char *address;
        bool is_inside;
    } cases[] = {{"10.43.7.1", true}, {"10.43.9.9", true}, {"10.43.8.1", false},
        {"10.44.0.1", false}, {"fd43::7", true}, {"fd44::7", false}};
    struct candidate_blocks blocks = {.n = 0};

    for (size_t i = 0; i < sizeof(added) / sizeof(*added); i++)
        assert_true(add_block(&blocks, added[i]));
    assert_int_equal(blocks.n, 2);
    for (size_t i = 0; i < sizeof(excluded) / sizeof(*excluded); i++) {
        struct ip_prefix p = prefix(excluded[i]);

        candidate_blocks_exclude(&blocks, &p);
    }
    assert_int_equal(blocks.n_outside, 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(have(&blocks, cases[i].address), cases[i].is_inside);
}

static void test_there_is_room_for_so_many_blocks(void **state)
{
    struct candidate_blocks blocks = {.n = 0};
    struct candidate_blocks before;
    char text[64];

    for (unsigned i = 0; i < 2 + CANDIDATE_BLOCKS_OTHERS; i++) {
        (void)snprintf(text, sizeof(text), "10.%u.0.0/16", i);
        assert_true(add_block(&blocks, text));
        assert_int_equal(blocks.n, i + 1);
    }
    before = blocks;
    assert_false(add_block(&blocks, "10.99.0.0/16"));
    assert_true(candidate_blocks_equal(&blocks, &before));
    assert_false(have(&blocks, "10.99.0.1"));
    /* What is in one of them already needs none. */
    assert_true(add_block(&blocks, "10.7.8.0/24"));
    assert_true(candidate_blocks_equal(&blocks, &before));
    /* A larger one takes the place of all that are in it. */
    assert_true(add_block(&blocks, "10.0.0.0/11"));
    assert_int_equal(blocks.n, 2 + CANDIDATE_BLOCKS_OTHERS - 32 + 1);
    assert_true(have(&blocks, "10.31.0.1"));
    assert_true(have(&blocks, "10.33.0.1"));
    assert_false(have(&blocks, "10.34.0.1"));
}

static void test_the_smallest_part_that_leads_elsewhere_counts(void **state)
{
    struct candidate_blocks blocks = {.n = 0};
    struct ip_prefix part;

    assert_true(add_block(&blocks, "10.0.0.0/8"));
    assert_true(add_block(&blocks, "fd43::/32"));
    part = prefix("10.1.0.0/16");
    candidate_blocks_exclude(&blocks, &part);
    part = prefix("10.1.2.0/24");
    candidate_blocks_exclude(&blocks, &part);
    part = prefix("fd43:0:1::/48");
    candidate_blocks_exclude(&blocks, &part);
    assert_int_equal(blocks.n_outside, 3);
    assert_false(have(&blocks, "10.1.2.3"));
    assert_false(have(&blocks, "10.1.3.3"));
    assert_true(have(&blocks, "10.2.2.3"));
    assert_false(have(&blocks, "fd43:0:1::3"));
    assert_true(have(&blocks, "fd43:0:2::3"));
    /* There is room for so many. */
    for (unsigned i = 0; i < 2 * CANDIDATE_BLOCKS_OUTSIDE; i++)
        candidate_blocks_exclude(&blocks, &part);
    assert_int_equal(blocks.n_outside, CANDIDATE_BLOCKS_OUTSIDE);
    /* A block that begins in such a part is an overlay again. */
    blocks.n_outside = 1;
    blocks.items[blocks.n++] = prefix("10.1.7.0/24");
    assert_true(have(&blocks, "10.1.7.1"));
    assert_false(have(&blocks, "10.1.8.1"));
    blocks.items[blocks.n++] = prefix("10.1.0.0/16");
    assert_true(have(&blocks, "10.1.8.1"));
}

static void test_blocks_are_compared_in_both_lists(void **state)
{
    struct candidate_blocks a = {.n = 0};
    struct candidate_blocks b;
    struct ip_prefix part = prefix("10.1.0.0/16");

    assert_true(add_block(&a, "10.0.0.0/8"));
    candidate_blocks_exclude(&a, &part);
    b = a;
    assert_true(candidate_blocks_equal(&a, &b));
    b.n = 0;
    assert_false(candidate_blocks_equal(&a, &b));
    assert_false(candidate_blocks_equal(&b, &a));
    b = a;
    b.n_outside = 0;
    assert_false(candidate_blocks_equal(&a, &b));
    b = a;
    b.items[0].len++;
    assert_false(candidate_blocks_equal(&a, &b));
    b = a;
    b.outside[0].len++;
    assert_false(candidate_blocks_equal(&a, &b));
}

/* A part is one of a block that is larger, of its own family; by one bit is enough. */
static void test_parts_are_of_a_larger_block(void **state)
{
    static const struct {
        const char *part;
        bool is_part;
    } cases[] = {{"10.1.0.0/17", true}, {"10.1.0.0/16", false}, {"10.0.0.0/15", false},
        {"10.2.0.0/17", false}, {"fd43::/64", false}, {"::/96", false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct candidate_blocks blocks = {.n = 0};
        struct ip_prefix part = prefix(cases[i].part);

        assert_true(add_block(&blocks, "10.1.0.0/16"));
        candidate_blocks_exclude(&blocks, &part);
        assert_int_equal(blocks.n_outside, cases[i].is_part);
        assert_int_equal(have(&blocks, "10.1.0.1"), !cases[i].is_part);
        assert_true(have(&blocks, "10.1.128.1"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_duplicates),
        cmocka_unit_test(test_a_better_kind_moves_one_alone),
        cmocka_unit_test(test_finding_and_comparing),
        cmocka_unit_test(test_a_full_set_keeps_the_better),
        cmocka_unit_test(test_impossible_endpoints),
        cmocka_unit_test(test_private_addresses),
        cmocka_unit_test(test_names_of_kinds),
        cmocka_unit_test(test_blocks_of_other_overlays),
        cmocka_unit_test(test_there_is_room_for_so_many_blocks),
        cmocka_unit_test(test_the_smallest_part_that_leads_elsewhere_counts),
        cmocka_unit_test(test_blocks_are_compared_in_both_lists),
        cmocka_unit_test(test_parts_are_of_a_larger_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
