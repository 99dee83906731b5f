/* test-subnets.c - which blocks may be routed; overlaps against a reference that goes by address.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/secret.h"
#include "mesh/object/fields.h"
#include "mesh/object/network.h"
#include "mesh/object/subnets.h"

static struct ip_prefix prefix(const char *text)
{
    struct ip_prefix p;
    struct err e = ERR_NULL;

    if (subnet_parse(&p, text, &e) < 0)
        fail_msg("%s", err_text(&e));
    return p;
}

static void test_parse(void **state)
{
    static const struct {
        const char *text;
        const char *says; /* a part of the sentence; NULL: it is taken */
    } cases[] = {
        {"10.9.0.0/24", NULL},
        {"10.0.0.0/8", NULL},
        {"192.0.2.7", NULL},
        {"192.0.2.7/32", NULL},
        {"fd09::/64", NULL},
        {"2001:db8::/32", NULL},
        {"100.64.0.0/10", NULL},
        {"10.9.0.5/24", "the subnet is 10.9.0.0/24"},
        {"fd09::1/64", "the subnet is fd09::/64"},
        {"0.0.0.0/0", "every address there is"},
        {"::/0", "every address there is"},
        {"128.0.0.0/1", "wider than /8"},
        {"10.0.0.0/7", "wider than /8"},
        {"fc00::/7", "wider than /16"},
        {"127.0.0.0/8", "overlaps 127.0.0.0/8"},
        {"169.254.169.254/32", "overlaps 169.254.0.0/16"},
        {"224.0.0.0/24", "overlaps 224.0.0.0/3"},
        {"fe80::/64", "overlaps fe80::/10"},
        {"ff02::/16", "overlaps ff00::/8"},
        {"::1", "overlaps ::/8"},
        {"10.9.0.0/33", "route \"10.9.0.0/33\": prefix length \"33\" is not a number from 0 to 32"},
        {"10.9.0/24", "10.9.0/24"},
        {"", "route"},
        {"lan", "lan"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ip_prefix p;
        struct err e = ERR_NULL;
        int r = subnet_parse(&p, cases[i].text, &e);

        if (!cases[i].says && r != 0)
            fail_msg("case %zu: %s", i, err_text(&e));
        if (cases[i].says && (r != -EINVAL || !strstr(err_text(&e), cases[i].says)))
            fail_msg("case %zu, \"%s\": %s", i, cases[i].text, err_text(&e));
    }
}

static void test_list(void **state)
{
    struct subnets s = SUBNETS_NULL;
    struct subnets before;
    struct err e = ERR_NULL;
    char text[SUBNETS_TEXT_MAX];

    assert_int_equal(subnets_parse(&s, "fd09::/64,10.9.1.0/24,10.9.0.0/24,10.9.1.0/24", &e), 0);
    assert_string_equal(subnets_format(&s, text), "10.9.0.0/24, 10.9.1.0/24, fd09::/64");
    before = s;
    assert_int_equal(subnets_parse(&s, "10.8.0.0/24,10.9.0.0/16", &e), -EINVAL);
    assert_string_equal(
        err_text(&e), "route 10.9.0.0/16 overlaps route 10.9.0.0/24 of the same list");
    assert_int_equal(subnets_parse(&s, "10.8.0.0/24,", &e), -EINVAL);
    assert_true(subnets_equal(&s, &before));
    for (unsigned i = s.n; i < SUBNETS_MAX; i++) {
        (void)snprintf(text, sizeof(text), "10.20.%u.0/24", i);
        assert_int_equal(subnets_parse(&s, text, &e), 0);
    }
    assert_int_equal(subnets_parse(&s, "10.21.0.0/24", &e), -EINVAL);
    assert_string_equal(err_text(&e), "route 10.21.0.0/24 is one too many: 16 are allowed");
}

static void test_network(void **state)
{
    struct network n = {.meta = {.name = "default"}};
    struct ip_prefix inside = prefix("10.77.3.0/24");
    struct ip_prefix around = prefix("10.0.0.0/8");
    struct ip_prefix six = prefix("fd5a:1::/64");
    struct ip_prefix beside = prefix("10.78.0.0/16");
    struct err e = ERR_NULL;

    assert_int_equal(ip_prefix_parse(&n.cidr4, "10.77.0.0/16", NULL), 0);
    assert_int_equal(ip_prefix_parse(&n.cidr6, "fd5a:1::/64", NULL), 0);
    assert_int_equal(subnets_check_network(&inside, &n, &e), -EINVAL);
    assert_string_equal(err_text(&e), "route 10.77.3.0/24 overlaps 10.77.0.0/16, from which "
                                      "network \"default\" gives its nodes their addresses");
    assert_int_equal(subnets_check_network(&around, &n, &e), -EINVAL);
    assert_int_equal(subnets_check_network(&six, &n, &e), -EINVAL);
    assert_int_equal(subnets_check_network(&beside, &n, &e), 0);
}

static void test_accept(void **state)
{
    static const char *const private[] = {
        "10.9.0.0/24", "172.16.0.0/12", "192.168.7.1", "100.64.0.0/10", "fd09::/64"};
    static const char *const public[] = {
        "8.8.8.0/24", "172.0.0.0/8", "192.0.0.0/8", "100.0.0.0/8", "2001:db8::/32"};
    enum subnets_accept a = SUBNETS_ACCEPT_N;
    struct err e = ERR_NULL;

    for (size_t i = 0; i < sizeof(private) / sizeof(*private); i++) {
        struct ip_prefix in = prefix(private[i]);
        struct ip_prefix out = prefix(public[i]);

        assert_true(subnets_accepts(SUBNETS_ACCEPT_PRIVATE, &in));
        assert_false(subnets_accepts(SUBNETS_ACCEPT_PRIVATE, &out));
        assert_true(subnets_accepts(SUBNETS_ACCEPT_ALL, &out));
        assert_false(subnets_accepts(SUBNETS_ACCEPT_NONE, &in));
    }
    for (unsigned i = 0; i < SUBNETS_ACCEPT_N; i++) {
        assert_int_equal(subnets_accept_parse(&a, subnets_accept_names[i], &e), 0);
        assert_int_equal(a, i);
    }
    assert_int_equal(subnets_accept_parse(&a, "some", &e), -EINVAL);
    assert_string_equal(err_text(&e), "\"some\" is none of private, all, none");
}

static void test_json(void **state)
{
    static const char *const bad[] = {"{\"r\": [1]}", "{\"r\": \"10.9.0.0/24\"}",
        "{\"r\": [\"10.9.0.1/24\"]}", "{\"r\": [\"10.9.0.0/24\", \"10.9.0.0/25\"]}"};
    struct subnets s = SUBNETS_NULL;
    struct subnets again = SUBNETS_NULL;
    struct err e = ERR_NULL;
    struct fields f;
    json_t *json;

    assert_int_equal(subnets_parse(&s, "10.9.0.0/24,fd09::/64", &e), 0);
    json = json_pack("{s:o}", "r", subnets_encode(&s));
    f = fields_make(json, "test", &e);
    subnets_decode(&f, "r", &again);
    subnets_decode(&f, "absent", &again);
    assert_int_equal(fields_end(&f), 0);
    assert_true(subnets_equal(&s, &again));
    json_decref(json);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json = json_loads(bad[i], 0, NULL);
        assert_non_null(json);
        f = fields_make(json, "test", &e);
        subnets_decode(&f, "r", &again);
        assert_int_equal(fields_end(&f), -EINVAL);
        assert_true(subnets_equal(&s, &again));
        json_decref(json);
    }
}

/* ---- against a reference: blocks inside 10.9.0.0/26, looked at address by address
 * ---------------- */

#define REFERENCE_ADDRESSES 64

static struct ip_prefix some_prefix(struct rng *rng)
{
    uint8_t len = (uint8_t)(26 + rng_u32(rng) % 7);
    uint8_t b[4] = {10, 9, 0, (uint8_t)(rng_u32(rng) % REFERENCE_ADDRESSES)};
    struct ip_prefix p = {.addr = ip_addr_v4(b), .len = len};

    return ip_prefix_mask(&p);
}

/* Which of the addresses are in it, one bit each. */
static uint64_t addresses_of(const struct ip_prefix *p)
{
    uint64_t set = 0;

    for (unsigned i = 0; i < REFERENCE_ADDRESSES; i++) {
        struct ip_addr a = ip_addr_v4((const uint8_t[4]){10, 9, 0, (uint8_t)i});

        if (ip_prefix_has(p, &a))
            set |= UINT64_C(1) << i;
    }
    return set;
}

static void check_against_reference(
    const struct subnets *s, uint64_t taken, const struct ip_prefix *p)
{
    uint64_t own = addresses_of(p);
    bool is_equal = false;
    bool is_inside = false;

    for (unsigned i = 0; i < s->n; i++) {
        uint64_t held = addresses_of(&s->items[i]);

        is_equal = is_equal || held == own;
        is_inside = is_inside || (held & own) == own;
    }
    assert_int_equal(subnets_find(s, p) != NULL, (taken & own) != 0);
    assert_int_equal(subnets_has(s, p), is_equal);
    assert_int_equal(subnets_covers(s, p), is_inside);
}

static void test_reference(void **state)
{
    const char *given = getenv("WEFT_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
    struct rng rng = rng_seeded(&seed);

    for (unsigned round = 0; round < 2000; round++) {
        struct subnets s = SUBNETS_NULL;
        uint64_t taken = 0;

        for (unsigned i = 0; i < 24; i++) {
            struct ip_prefix p = some_prefix(&rng);
            bool was_there = subnets_has(&s, &p);
            bool is_free = (taken & addresses_of(&p)) == 0 && s.n < SUBNETS_MAX;
            int r;

            check_against_reference(&s, taken, &p);
            r = subnets_add(&s, &p, NULL);
            assert_int_equal(r, was_there || is_free ? 0 : -EINVAL);
            if (r == 0)
                taken |= addresses_of(&p);
        }
    }
}

static void test_without(void **state)
{
    struct subnets all = SUBNETS_NULL;
    struct subnets some = SUBNETS_NULL;
    struct subnets rest;
    char text[SUBNETS_TEXT_MAX];

    assert_int_equal(subnets_parse(&all, "10.8.0.0/24,10.9.0.0/24,fd09::/64", NULL), 0);
    rest = subnets_without(&all, &some);
    assert_true(subnets_equal(&rest, &all));
    /* One that only overlaps is another one. */
    assert_int_equal(subnets_parse(&some, "10.8.0.0/16,10.9.0.0/24", NULL), 0);
    rest = subnets_without(&all, &some);
    assert_string_equal(subnets_format(&rest, text), "10.8.0.0/24, fd09::/64");
    rest = subnets_without(&all, &all);
    assert_int_equal(rest.n, 0);
}

static void test_subnets_for_people(void **state)
{
    char text[SUBNETS_TEXT_MAX] = "before";
    struct subnets s = {.n = 0};

    assert_string_equal(subnets_format(&s, text), "");
    assert_int_equal(ip_prefix_parse(&s.items[0], "10.1.0.0/16", NULL), 0);
    assert_int_equal(ip_prefix_parse(&s.items[1], "fd01::/64", NULL), 0);
    s.n = 1;
    assert_string_equal(subnets_format(&s, text), "10.1.0.0/16");
    s.n = 2;
    assert_string_equal(subnets_format(&s, text), "10.1.0.0/16, fd01::/64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_accept),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_without),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_subnets_for_people),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
