/* test-allowedips.c - the trie: cases by hand, and random work beside a list that is searched
 * whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "allowedips/allowedips.h"
#include "base/err.h"
#include "base/secret.h"

static struct ip_prefix prefix(const char *text)
{
    struct err e = ERR_NULL;
    struct ip_prefix p;

    assert_int_equal(ip_prefix_parse(&p, text, &e), 0);
    return p;
}

static struct allowedips_owner *find(const struct allowedips *t, const char *text)
{
    struct err e = ERR_NULL;
    struct ip_addr a;

    assert_int_equal(ip_addr_parse(&a, text, &e), 0);
    return allowedips_find(t, &a);
}

static void insert(struct allowedips *t, const char *text, struct allowedips_owner *owner)
{
    struct ip_prefix p = prefix(text);

    assert_int_equal(allowedips_insert(t, &p, owner), 0);
}

static void test_longest_match(void **state)
{
    struct allowedips t = ALLOWEDIPS_NULL;
    struct allowedips_owner o[8] = {0};

    assert_null(find(&t, "10.0.0.1"));
    insert(&t, "192.168.4.0/24", &o[0]);
    insert(&t, "192.168.4.4/32", &o[1]);
    insert(&t, "192.168.0.0/16", &o[2]);
    insert(&t, "192.95.5.64/27", &o[3]);
    insert(&t, "192.95.5.65/27", &o[2]); /* the same block: moves */
    insert(&t, "0.0.0.0/0", &o[4]);
    insert(&t, "64.15.112.0/20", &o[5]);
    insert(&t, "2607:5300:6006::/48", &o[6]);
    insert(&t, "::/0", &o[7]);

    assert_ptr_equal(find(&t, "192.168.4.20"), &o[0]);
    assert_ptr_equal(find(&t, "192.168.4.4"), &o[1]);
    assert_ptr_equal(find(&t, "192.168.200.182"), &o[2]);
    assert_ptr_equal(find(&t, "192.95.5.68"), &o[2]);
    assert_ptr_equal(find(&t, "192.95.5.96"), &o[4]);
    assert_ptr_equal(find(&t, "64.15.127.3"), &o[5]);
    assert_ptr_equal(find(&t, "64.15.128.3"), &o[4]);
    assert_ptr_equal(find(&t, "2607:5300:6006::1"), &o[6]);
    assert_ptr_equal(find(&t, "2607:5300:6007::1"), &o[7]);
    assert_int_equal(o[3].n, 0);
    assert_int_equal(o[2].n, 2);
    allowedips_deinit(&t);
    allowedips_deinit(&t);
}

static void test_remove(void **state)
{
    struct allowedips t = ALLOWEDIPS_NULL;
    struct allowedips_owner a = {0};
    struct allowedips_owner b = {0};
    struct ip_prefix p = prefix("10.0.0.0/8");

    insert(&t, "10.0.0.0/8", &a);
    insert(&t, "10.1.0.0/16", &b);
    /* Not the owner's, and not there at all. */
    allowedips_remove(&t, &p, &b);
    assert_ptr_equal(find(&t, "10.2.0.0"), &a);
    p = prefix("10.0.0.0/9");
    allowedips_remove(&t, &p, &a);
    assert_ptr_equal(find(&t, "10.2.0.0"), &a);
    p = prefix("10.255.0.0/8");
    allowedips_remove(&t, &p, &a);
    assert_null(find(&t, "10.2.0.0"));
    assert_ptr_equal(find(&t, "10.1.0.0"), &b);
    assert_int_equal(a.n, 0);
    allowedips_remove_owner(&t, &b);
    assert_null(find(&t, "10.1.0.0"));
    assert_int_equal(t.root4, 0);
    allowedips_deinit(&t);
}

static void test_each(void **state)
{
    static const char *const texts[] = {
        "10.42.0.3/32", "0.0.0.0/0", "fd00::3/128", "::/0", "10.0.0.0/9"};
    struct allowedips t = ALLOWEDIPS_NULL;
    struct allowedips_owner a = {0};
    struct allowedips_owner b = {0};
    struct ip_prefix p;
    uint32_t cursor = 0;
    size_t n = sizeof(texts) / sizeof(*texts);

    for (size_t i = 0; i < n; i++)
        insert(&t, texts[i], &a);
    insert(&t, "10.128.0.0/9", &b);
    while (allowedips_each(&t, &a, &cursor, &p)) {
        char buf[IP_PREFIX_TEXT_MAX];

        assert_string_equal(ip_prefix_format(&p, buf), texts[--n]);
    }
    assert_int_equal(n, 0);
    allowedips_deinit(&t);
}

/* ---- the reference: a list, searched from one end to the other ---- */

#define N_OWNERS 30
#define MAX_LIST 1200

struct reference {
    struct ip_prefix prefix[MAX_LIST];
    unsigned owner[MAX_LIST];
    size_t n;
};

static void reference_insert(struct reference *w, const struct ip_prefix *p, unsigned owner)
{
    struct ip_prefix net = ip_prefix_mask(p);

    for (size_t i = 0; i < w->n; i++) {
        if (ip_prefix_equal(&w->prefix[i], &net)) {
            w->owner[i] = owner;
            return;
        }
    }
    assert_true(w->n < MAX_LIST);
    w->prefix[w->n] = net;
    w->owner[w->n++] = owner;
}

/* Takes out those that match @p, or all when it is NULL, of @owner. */
static void reference_remove(struct reference *w, const struct ip_prefix *p, unsigned owner)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->n; i++) {
        if (w->owner[i] == owner && (!p || ip_prefix_equal(&w->prefix[i], p)))
            continue;
        w->prefix[kept] = w->prefix[i];
        w->owner[kept++] = w->owner[i];
    }
    w->n = kept;
}

/* The owner's number, N_OWNERS for none. */
static unsigned reference_find(const struct reference *w, const struct ip_addr *a)
{
    unsigned owner = N_OWNERS;
    int best = -1;

    for (size_t i = 0; i < w->n; i++) {
        if (w->prefix[i].len > best && ip_prefix_has(&w->prefix[i], a)) {
            best = w->prefix[i].len;
            owner = w->owner[i];
        }
    }
    return owner;
}

/* Few distinct bits, so that prefixes nest and collide. */
static struct ip_prefix random_prefix(const struct rng *rng)
{
    struct ip_prefix p = {0};
    uint8_t b[16];

    for (size_t i = 0; i < sizeof(b); i++)
        b[i] = (uint8_t)(rng_u32(rng) % 4 == 0 ? rng_u32(rng) : 0x80 * (rng_u32(rng) & 1));
    if (rng_u32(rng) % 2) {
        p.addr = ip_addr_v4(b);
        p.len = (uint8_t)(rng_u32(rng) % 33);
    } else {
        b[0] = 0xfd;
        p.addr = ip_addr_v6(b);
        p.len = (uint8_t)(rng_u32(rng) % 129);
    }
    return p;
}

/* Every owner's list says what the reference says. */
static void compare_lists(
    const struct allowedips *t, const struct allowedips_owner *owners, const struct reference *w)
{
    for (unsigned i = 0; i < N_OWNERS; i++) {
        struct ip_prefix p;
        uint32_t cursor = 0;
        size_t expected = 0;
        size_t got = 0;

        for (size_t k = 0; k < w->n; k++)
            expected += w->owner[k] == i;
        for (; allowedips_each(t, &owners[i], &cursor, &p); got++)
            assert_int_equal(reference_find(w, &p.addr) < N_OWNERS, true);
        assert_int_equal(got, expected);
        assert_int_equal(owners[i].n, expected);
    }
}

static void test_reference(void **state)
{
    static struct reference w;

    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct allowedips t = ALLOWEDIPS_NULL;
        struct allowedips_owner owners[N_OWNERS] = {0};
        uint64_t s = seed;
        struct rng rng = rng_seeded(&s);

        w.n = 0;
        for (unsigned i = 0; i < 1200; i++) {
            unsigned owner = rng_u32(&rng) % N_OWNERS;
            struct ip_prefix p = random_prefix(&rng);

            switch (rng_u32(&rng) % 12) {
            case 0:
                if (w.n) {
                    size_t k = rng_u32(&rng) % w.n;

                    p = w.prefix[k];
                    owner = w.owner[k];
                }
                allowedips_remove(&t, &p, &owners[owner]);
                p = ip_prefix_mask(&p);
                reference_remove(&w, &p, owner);
                break;
            case 1:
                if (rng_u32(&rng) % 20 == 0) {
                    allowedips_remove_owner(&t, &owners[owner]);
                    reference_remove(&w, NULL, owner);
                }
                break;
            default:
                assert_int_equal(allowedips_insert(&t, &p, &owners[owner]), 0);
                reference_insert(&w, &p, owner);
            }
            for (unsigned k = 0; k < 2; k++) {
                struct ip_prefix probe = random_prefix(&rng);
                struct allowedips_owner *got = allowedips_find(&t, &probe.addr);
                unsigned expected = reference_find(&w, &probe.addr);

                if (got != (expected < N_OWNERS ? &owners[expected] : NULL))
                    fail_msg("seed %llu, step %u: expected owner %u", (unsigned long long)seed, i,
                        expected);
            }
        }
        compare_lists(&t, owners, &w);
        /* At most a fork per prefix; and nothing is left behind when all are gone. */
        assert_true(t.n_used <= 2 * MAX_LIST);
        for (unsigned i = 0; i < N_OWNERS; i++)
            allowedips_remove_owner(&t, &owners[i]);
        assert_int_equal(t.root4, 0);
        assert_int_equal(t.root6, 0);
        allowedips_deinit(&t);
    }
}

/* 65,536 peers with an address of each family. */
static void test_many(void **state)
{
    const uint32_t n = 65536;
    struct allowedips_owner *owners = calloc(n, sizeof(*owners));
    struct allowedips t = ALLOWEDIPS_NULL;

    assert_non_null(owners);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t b[16] = {10, 42, (uint8_t)(i >> 8), (uint8_t)i};
        struct ip_prefix p = {.addr = ip_addr_v4(b), .len = 32};

        assert_int_equal(allowedips_insert(&t, &p, &owners[i]), 0);
        b[0] = 0xfd;
        p = (struct ip_prefix){.addr = ip_addr_v6(b), .len = 128};
        assert_int_equal(allowedips_insert(&t, &p, &owners[i]), 0);
    }
    /* Two nodes a prefix at most, and the array is at most half as big again. */
    assert_true(t.cap * sizeof(*t.nodes) / n <= 2 * 2 * sizeof(*t.nodes) * 3 / 2);
    for (uint32_t i = 0; i < n; i += 7) {
        uint8_t b[16] = {10, 42, (uint8_t)(i >> 8), (uint8_t)i};
        struct ip_addr a = ip_addr_v4(b);

        assert_ptr_equal(allowedips_find(&t, &a), &owners[i]);
        b[0] = 0xfd;
        a = ip_addr_v6(b);
        assert_ptr_equal(allowedips_find(&t, &a), &owners[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        allowedips_remove_owner(&t, &owners[i]);
    assert_int_equal(t.root4 | t.root6, 0);
    allowedips_deinit(&t);
    free(owners);
}

/* Prefixes that end at, before and behind the boundary of the two halves, and the longest ones. */
static void test_prefixes_around_the_halves(void **state)
{
    static const struct {
        const char *prefix;
        const char *inside, *outside;
    } cases[] = {
        {"2001:db8:0:2::/63", "2001:db8:0:3::1", "2001:db8:0:4::1"},
        {"2001:db8:0:2::/64", "2001:db8:0:2:ffff::1", "2001:db8:0:3::1"},
        {"2001:db8:0:2::/65", "2001:db8:0:2:7fff::1", "2001:db8:0:2:8000::1"},
        {"2001:db8::8/127", "2001:db8::9", "2001:db8::a"},
        {"2001:db8::8/128", "2001:db8::8", "2001:db8::9"},
        {"10.0.0.8/31", "10.0.0.9", "10.0.0.10"},
        {"10.0.0.8/32", "10.0.0.8", "10.0.0.9"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct allowedips t = ALLOWEDIPS_NULL;
        struct allowedips_owner a = {0};
        uint32_t cursor = 0;
        struct ip_prefix p;
        char buf[IP_PREFIX_TEXT_MAX];

        insert(&t, cases[i].prefix, &a);
        assert_ptr_equal(find(&t, cases[i].inside), &a);
        assert_null(find(&t, cases[i].outside));
        assert_true(allowedips_each(&t, &a, &cursor, &p));
        assert_string_equal(ip_prefix_format(&p, buf), cases[i].prefix);
        allowedips_deinit(&t);
    }
}

/* What is removed makes room for what comes: the table does not grow by coming and going. */
static void test_nodes_are_used_again(void **state)
{
    struct allowedips t = ALLOWEDIPS_NULL;
    struct allowedips_owner a = {0};
    struct allowedips_owner b = {0};
    uint32_t n_used = 0;

    for (unsigned i = 0; i < 500; i++) {
        char text[32];

        for (unsigned k = 0; k < 8; k++) {
            (void)snprintf(text, sizeof(text), "10.%u.%u.0/24", i % 200, 37 * k % 256);
            insert(&t, text, k % 2 ? &a : &b);
        }
        if (i == 0)
            n_used = t.n_used;
        assert_int_equal(t.n_used, n_used);
        allowedips_remove_owner(&t, &a);
        assert_int_equal(a.n, 0);
        assert_int_equal(a.first, 0);
        assert_int_equal(b.n, 4);
        allowedips_remove_owner(&t, &b);
        assert_int_equal(t.root4, 0);
    }
    allowedips_deinit(&t);
}

/* It grows by half, and no sooner than the next prefix might not find its two nodes. */
static void test_the_table_grows_when_it_is_full(void **state)
{
    static const uint32_t caps[] = {16, 16, 16, 16, 16, 16, 16, 16, 24, 24, 24, 24, 36};
    struct allowedips t = ALLOWEDIPS_NULL;
    struct allowedips_owner a = {0};
    char text[32];

    for (uint32_t i = 0; i < sizeof(caps) / sizeof(*caps); i++) {
        (void)snprintf(text, sizeof(text), "10.%u.0.0/16", i);
        insert(&t, text, &a);
        /* The first one needs no fork, and node 0 is none. */
        assert_int_equal(t.n_used, 2 * (i + 1));
        assert_int_equal(t.cap, caps[i]);
    }
    allowedips_deinit(&t);
    assert_null(t.nodes);
    assert_int_equal(t.cap, 0);
}

/* A prefix that changes hands leaves the lists of both whole. */
static void test_a_prefix_in_the_middle_changes_hands(void **state)
{
    static const char *const texts[] = {"10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"};

    for (unsigned moved = 0; moved < 3; moved++) {
        struct allowedips t = ALLOWEDIPS_NULL;
        struct allowedips_owner a = {0};
        struct allowedips_owner b = {0};
        uint32_t cursor = 0;
        struct ip_prefix p;
        unsigned n = 0;

        for (unsigned i = 0; i < 3; i++)
            insert(&t, texts[i], &a);
        insert(&t, texts[moved], &b);
        insert(&t, "10.9.0.0/16", &b);
        assert_int_equal(a.n, 2);
        assert_int_equal(b.n, 2);
        while (allowedips_each(&t, &a, &cursor, &p))
            n++;
        assert_int_equal(n, 2);
        cursor = n = 0;
        while (allowedips_each(&t, &b, &cursor, &p))
            n++;
        assert_int_equal(n, 2);
        allowedips_deinit(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longest_match),
        cmocka_unit_test(test_remove),
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_prefixes_around_the_halves),
        cmocka_unit_test(test_nodes_are_used_again),
        cmocka_unit_test(test_the_table_grows_when_it_is_full),
        cmocka_unit_test(test_a_prefix_in_the_middle_changes_hands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
